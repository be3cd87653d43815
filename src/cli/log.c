#include "cli/log.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "cli/log_parts.h"
#include "cli/options.h"

/* Four times the longest line that is written; a longer one is not a record, and is not kept. */
#define LINE_MAX_BYTES 65536
#define FOLLOW_MS 100

static const char usage[] = "usage: pinfold log (ID | PREFIX | NAME | --last) [--follow] [--json | "
                            "--summary] [--reason GLOB] [--run RUN] "
                            "[--exit-code] [--log-dir DIR]";

struct log_options {
    const char *name; /* NULL with --last */
    const char *reason;
    const char *run;
    const char *directory;
    bool last, follow, json, summary, exit_code;
};

static struct error *usage_error(const char *problem) {
    return error_new(ERROR_USAGE, "log: %s; %s", problem, usage);
}

static struct error *parse_options(int argc, char **argv, struct log_options *options, bool *help) {
    *options = (struct log_options){0};
    *help = false;
    const struct option table[] = {
        {"last", 'l', OPTION_FLAG, &options->last, "the newest log"},
        {"follow", 'f', OPTION_FLAG, &options->follow, "go on until the container ends"},
        {"json", 0, OPTION_FLAG, &options->json, "the records as they are"},
        {"summary", 0, OPTION_FLAG, &options->summary, "counts for each reason and object"},
        {"reason", 0, OPTION_VALUE, &options->reason, "only reason codes like this: 'net.*'"},
        {"run", 0, OPTION_VALUE, &options->run, "only records of this run id"},
        {"exit-code", 0, OPTION_FLAG, &options->exit_code, "exit status 3 when there is a denial"},
        {"log-dir", 0, OPTION_VALUE, &options->directory, "where the logs are"},
        {NULL, 0, OPTION_FLAG, NULL, NULL},
    };
    /* Options may stand after the container's name, too: `pinfold log ID --json`. */
    while (argc > 1) {
        int first;
        TRY(options_parse("log", table, argc, argv, &first, help));
        if (*help) {
            options_print("pinfold log (ID | PREFIX | NAME | --last) [OPTIONS]", table);
            return NULL;
        }
        if (first < argc && options->name != NULL)
            return usage_error("one container at a time");
        if (first < argc)
            options->name = argv[first];
        argv += first;
        argc -= first;
    }
    if ((options->name != NULL) == options->last)
        return usage_error(options->last ? "either a container or --last" : "which container?");
    if (options->json && options->summary)
        return usage_error("either --json or --summary");
    return NULL;
}

/* -- reading -- */

struct reader {
    int fd;
    const char *path;
    const struct log_options *options;
    struct log_table *table; /* NULL with --json */
    struct text partial;     /* a line whose end has not come */
    bool overlong;           /* ... and which is too long to keep */
    int64_t offset;
    bool denied;
    bool run_seen;
    bool ended; /* the last record of the wanted run was the container's end */
    uint64_t unreadable;
};

static bool is_wanted(const struct log_options *options, const struct log_record *record) {
    if (options->run != NULL && (record->run == NULL || strcmp(record->run, options->run) != 0))
        return false;
    return options->reason == NULL ||
           (record->reason != NULL && fnmatch(options->reason, record->reason, 0) == 0);
}

static void take_line(struct reader *reader, const char *line, size_t length) {
    struct log_record record;
    if (length == 0)
        return;
    if (!log_record_parse(line, length, &record)) {
        reader->unreadable++;
        log_record_clear(&record);
        return;
    }
    /* Another run may follow in the same file; then this end was not the last. */
    if (reader->options->run == NULL ||
        (record.run != NULL && strcmp(record.run, reader->options->run) == 0)) {
        reader->ended = log_record_is_end(&record);
        reader->run_seen = true;
    }
    if (is_wanted(reader->options, &record)) {
        reader->denied |= log_record_is_denial(&record);
        if (reader->table != NULL) {
            log_table_add(reader->table, &record);
        } else {
            fwrite(line, 1, length, stdout);
            fputc('\n', stdout);
        }
    }
    log_record_clear(&record);
}

static void take_bytes(struct reader *reader, const char *bytes, size_t length) {
    for (const char *end = bytes + length; bytes < end;) {
        const char *newline = memchr(bytes, '\n', (size_t)(end - bytes));
        size_t span = (size_t)((newline ? newline : end) - bytes);
        if (reader->partial.length + span > LINE_MAX_BYTES)
            reader->overlong = true;
        if (newline != NULL && reader->partial.length == 0 && !reader->overlong) {
            take_line(reader, bytes, span);
        } else if (!reader->overlong) {
            text_append_bytes(&reader->partial, bytes, span);
            if (newline != NULL)
                take_line(reader, reader->partial.data, reader->partial.length);
        } else if (newline != NULL) {
            reader->unreadable++;
        }
        if (newline != NULL) {
            reader->partial.length = 0;
            reader->overlong = false;
        }
        bytes += span + 1;
    }
}

static struct error *read_to_end(struct reader *reader) {
    char buffer[65536];
    for (;;) {
        ssize_t got = pread(reader->fd, buffer, sizeof buffer, reader->offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_system(errno, "read", "%s", reader->path);
        if (got == 0)
            return NULL;
        reader->offset += got;
        take_bytes(reader, buffer, (size_t)got);
    }
}

static struct error *written(void) {
    if (fflush(stdout) != 0)
        return error_system(errno, "write", "the standard output");
    return NULL;
}

static struct error *follow(struct reader *reader) {
    const struct timespec pause = {.tv_nsec = FOLLOW_MS * 1000000L};
    while (!reader->ended) {
        struct stat status;
        if (fstat(reader->fd, &status) == 0 && status.st_size < reader->offset) /* copied and truncated */
            reader->offset = 0;
        TRY(read_to_end(reader));
        if (reader->table != NULL && !reader->options->summary)
            log_table_flush(reader->table);
        TRY(written()); /* a reader that went away ends this */
        if (!reader->ended)
            nanosleep(&pause, NULL);
    }
    return NULL;
}

static struct error *show(struct reader *reader) {
    TRY(read_to_end(reader));
    if (reader->options->follow)
        TRY(follow(reader));
    /* A last line without its end: a record that is just being written, or one that never was finished. */
    if (reader->partial.length > 0 && !reader->overlong) {
        uint64_t unreadable = reader->unreadable;
        take_line(reader, reader->partial.data, reader->partial.length);
        reader->unreadable = unreadable;
    }
    /* A mistyped run must not read as one in which nothing was denied. */
    if (reader->options->run != NULL && !reader->run_seen)
        return error_new(ERROR_INVALID, "no record of run \"%s\" in %s", reader->options->run, reader->path);
    if (reader->table != NULL)
        log_table_finish(reader->table);
    TRY(written());
    if (reader->unreadable > 0)
        fprintf(stderr, "pinfold: log: %llu lines of %s are not records and were left out\n",
                (unsigned long long)reader->unreadable, reader->path);
    return NULL;
}

struct error *log_command(int argc, char **argv, int *exit_status) {
    struct log_options options;
    memory_owned char *path = NULL;
    *exit_status = 0;
    bool help;
    TRY(parse_options(argc, argv, &options, &help));
    if (help)
        return NULL;
    TRY(log_find(options.name, options.directory, &path));
    fd_owned int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return error_system(errno, "open the log", "%s", path);
    struct reader reader = {.fd = fd, .path = path, .options = &options};
    if (!options.json)
        reader.table = log_table_open(stdout, options.summary);
    struct error *error = show(&reader);
    if (reader.table != NULL)
        log_table_close(reader.table);
    text_free(&reader.partial);
    if (error == NULL && options.exit_code && reader.denied)
        *exit_status = LOG_EXIT_DENIED;
    return error;
}
