#include "cli/log.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "cli/log_parts.h"
#include "cli/options.h"
#include "record/reasons.h"

#define FOLLOW_MS 100

static const char usage[] =
    "usage: pinfold log (ID | PREFIX | NAME | FILE | -)... | --last | --all [OPTIONS]";

/* Which records are shown. */
struct log_filter {
    const char *reason;
    const char *run;
    const char *exec_id;
    const char *since;
    int64_t since_ms;
    bool denied, executions;
};

struct log_options {
    struct log_choice choice;
    struct log_filter filter;
    bool follow, json, summary, exit_code, reasons;
};

/* -- options -- */

static struct error *usage_error(const char *problem) {
    return error_new(ERROR_USAGE, "log: %s; %s", problem, usage);
}

/* "10m" is ten minutes ago; "2026-11-30", with " 14:05" or " 14:05:09" or a T between, is a time of this
 * place. */
static bool parse_since(const char *words, int64_t *since_ms) {
    static const struct {
        char unit;
        int64_t seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    char *end;
    errno = 0;
    unsigned long long number = strtoull(words, &end, 10);
    if (end != words && words[0] >= '0' && words[0] <= '9' && errno == 0 && number < 1000000000 &&
        end[0] != '\0' && end[1] == '\0')
        for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
            if (units[i].unit == end[0]) {
                *since_ms = ((int64_t)time(NULL) - (int64_t)number * units[i].seconds) * 1000;
                return true;
            }
    static const char *const formats[] = {"%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M",
                                          "%Y-%m-%dT%H:%M:%S"};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        struct tm local = {.tm_isdst = -1};
        const char *rest = strptime(words, formats[i], &local);
        if (rest == NULL || *rest != '\0')
            continue;
        *since_ms = (int64_t)mktime(&local) * 1000;
        return true;
    }
    return false;
}

static struct error *check_options(struct log_options *options) {
    struct log_choice *choice = &options->choice;
    if ((choice->names.count > 0) == (choice->which != LOG_NAMED))
        return usage_error(choice->names.count > 0 ? "either containers, or --last or --all"
                                                   : "which container?");
    if (options->json && options->summary)
        return usage_error("either --json or --summary");
    struct log_filter *filter = &options->filter;
    if (filter->since != NULL && !parse_since(filter->since, &filter->since_ms))
        return error_new(ERROR_USAGE,
                         "log: --since is how long ago, like 90s, 10m, 2h or 7d, or a time like "
                         "\"2026-11-30 14:05\"; found \"%s\"",
                         filter->since);
    /* Who asks for their reason wants to see them. */
    filter->executions |= filter->reason != NULL;
    return NULL;
}

static struct error *parse_options(int argc, char **argv, struct log_options *options, bool *help) {
    *help = false;
    bool last = false, all = false;
    struct log_filter *filter = &options->filter;
    const struct option table[] = {
        {"last", 'l', OPTION_FLAG, &last, "the container that wrote last"},
        {"all", 0, OPTION_FLAG, &all, "all containers"},
        {"follow", 'f', OPTION_FLAG, &options->follow, "go on until the containers end"},
        {"json", 0, OPTION_FLAG, &options->json, "the records as they are"},
        {"summary", 0, OPTION_FLAG, &options->summary, "counts for each reason and object, and the ends"},
        {"denied", 0, OPTION_FLAG, &filter->denied, "only what was denied"},
        {"reason", 0, OPTION_VALUE, &filter->reason, "only reason codes like this: 'net.*'"},
        {"executions", 0, OPTION_FLAG, &filter->executions, "programs that were run, too"},
        {"exec", 0, OPTION_VALUE, &filter->exec_id, "only what came from this exec"},
        {"run", 0, OPTION_VALUE, &filter->run, "only records of this run id"},
        {"since", 0, OPTION_VALUE, &filter->since, "only from then on: 10m, 2h, \"2026-11-30 14:05\""},
        {"exit-code", 0, OPTION_FLAG, &options->exit_code, "exit status 3 when there is a denial"},
        {"reasons", 0, OPTION_FLAG, &options->reasons, "the reason codes, and what each means"},
        {"log-dir", 0, OPTION_VALUE, &options->choice.directory, "where the logs are"},
        {NULL, 0, OPTION_FLAG, NULL, NULL},
    };
    int first;
    TRY(options_parse_anywhere("log", table, argc, argv, &first, help));
    if (*help) {
        options_print("pinfold log (ID | PREFIX | NAME | FILE | -)... | --last | --all [OPTIONS]", table);
        return NULL;
    }
    for (int i = first; i < argc; i++)
        string_list_append(&options->choice.names, argv[i]);
    if (options->reasons)
        return first == argc && !last && !all ? NULL : usage_error("--reasons reads no log");
    if (last && all)
        return usage_error("either --last or --all");
    options->choice.which = last ? LOG_LAST : all ? LOG_ALL : LOG_NAMED;
    return check_options(options);
}

static struct error *written(void) {
    if (fflush(stdout) != 0)
        return error_system(errno, "write", "the standard output");
    return NULL;
}

static struct error *print_reasons(void) {
    size_t count;
    const struct record_reason *reasons = record_reasons(&count);
    for (size_t i = 0; i < count; i++)
        printf("%-26s %s\n", reasons[i].code, reasons[i].meaning);
    return written();
}

/* -- reading -- */

/* One of the logs that are shown together, with its next record. */
struct source {
    struct log_reader *reader;
    struct log_record record; /* where `line` is not NULL */
    const char *line;
    size_t length;
    bool run_seen;
    bool ended; /* the last record of the wanted run was the container's end */
};

struct sources {
    struct source *items;
    size_t count;
    const struct log_options *options;
    struct log_table *table; /* NULL with --json */
    bool denied;
};

static void sources_close(struct sources *sources) {
    for (size_t i = 0; i < sources->count; i++) {
        log_record_clear(&sources->items[i].record);
        log_reader_close(sources->items[i].reader);
    }
    free(sources->items);
    if (sources->table != NULL)
        log_table_close(sources->table);
}

static struct error *sources_open(struct sources *sources, const struct string_list *paths) {
    sources->items = memory_resize(NULL, paths->count, sizeof *sources->items);
    for (size_t i = 0; i < paths->count; i++) {
        struct source *source = &sources->items[i];
        *source = (struct source){0};
        TRY(log_reader_open(paths->items[i], &source->reader));
        sources->count++;
    }
    return NULL;
}

static bool is(const char *wanted, const char *found) {
    return wanted == NULL || (found != NULL && strcmp(wanted, found) == 0);
}

static bool is_wanted(const struct log_options *options, const struct log_record *record) {
    const struct log_filter *filter = &options->filter;
    if (!is(filter->run, record->run) || !is(filter->exec_id, record->exec_id) ||
        record->time_ms < filter->since_ms)
        return false;
    if (filter->denied && !log_record_is_denial(record))
        return false;
    /* A build runs thousands of programs: in a table they would hide what it is there for. */
    if (!options->json && !filter->executions && log_record_is_execution(record))
        return false;
    return filter->reason == NULL ||
           (record->reason != NULL && fnmatch(filter->reason, record->reason, 0) == 0);
}

static void show_record(struct sources *sources, struct source *source) {
    struct log_record *record = &source->record;
    /* Another run may follow in the same file; then this end was not the last. */
    if (is(sources->options->filter.run, record->run)) {
        source->ended = log_record_is_end(record);
        source->run_seen = true;
    }
    if (is_wanted(sources->options, record)) {
        sources->denied |= log_record_is_denial(record);
        if (sources->table != NULL) {
            log_table_add(sources->table, record);
        } else {
            fwrite(source->line, 1, source->length, stdout);
            fputc('\n', stdout);
        }
    }
    log_record_clear(record);
    source->line = NULL;
}

/* All that there is, by time; within one log in the order in which it was written, whatever the clock did. */
static struct error *read_to_end(struct sources *sources) {
    for (;;) {
        struct source *first = NULL;
        for (size_t i = 0; i < sources->count; i++) {
            struct source *source = &sources->items[i];
            if (source->line == NULL)
                TRY(log_reader_next(source->reader, &source->record, &source->line, &source->length));
            if (source->line != NULL && (first == NULL || source->record.time_ms < first->record.time_ms))
                first = source;
        }
        if (first == NULL)
            return NULL;
        show_record(sources, first);
    }
}

static bool all_ended(const struct sources *sources) {
    for (size_t i = 0; i < sources->count; i++)
        if (!sources->items[i].ended)
            return false;
    return true;
}

static struct error *follow(struct sources *sources) {
    const struct timespec pause = {.tv_nsec = FOLLOW_MS * 1000000L};
    while (!all_ended(sources)) {
        TRY(read_to_end(sources));
        if (sources->table != NULL && !sources->options->summary)
            log_table_flush(sources->table);
        TRY(written()); /* a reader that went away ends this */
        if (!all_ended(sources))
            nanosleep(&pause, NULL);
    }
    return NULL;
}

/* A mistyped run must not read as one in which nothing was denied. */
static struct error *check_run(const struct sources *sources) {
    const char *run = sources->options->filter.run;
    bool seen = run == NULL;
    for (size_t i = 0; i < sources->count; i++)
        seen |= sources->items[i].run_seen;
    if (seen)
        return NULL;
    return error_new(ERROR_INVALID, "no record of run \"%s\" in %s%s", run,
                     log_reader_path(sources->items[0].reader), sources->count > 1 ? " and the others" : "");
}

static struct error *show(struct sources *sources) {
    TRY(read_to_end(sources));
    if (sources->options->follow)
        TRY(follow(sources));
    for (size_t i = 0; i < sources->count; i++) {
        struct source *source = &sources->items[i];
        log_reader_rest(source->reader, &source->record, &source->line, &source->length);
        if (source->line != NULL)
            show_record(sources, source);
    }
    TRY(check_run(sources));
    if (sources->table != NULL)
        log_table_finish(sources->table);
    TRY(written());
    for (size_t i = 0; i < sources->count; i++) {
        const struct log_reader *reader = sources->items[i].reader;
        if (log_reader_unreadable(reader) > 0)
            fprintf(stderr, "pinfold: log: %llu lines of %s are not records and were left out\n",
                    (unsigned long long)log_reader_unreadable(reader), log_reader_path(reader));
    }
    return NULL;
}

static struct error *run_command(const struct log_options *options, int *exit_status) {
    string_list_owned struct string_list paths = {0};
    TRY(log_find(&options->choice, &paths));
    __attribute__((cleanup(sources_close))) struct sources sources = {.options = options};
    TRY(sources_open(&sources, &paths));
    if (!options->json)
        sources.table = log_table_open(
            stdout, (struct log_layout){.summary = options->summary, .several = paths.count > 1});
    TRY(show(&sources));
    if (options->exit_code && sources.denied)
        *exit_status = LOG_EXIT_DENIED;
    return NULL;
}

struct error *log_command(int argc, char **argv, int *exit_status) {
    struct log_options options = {0};
    *exit_status = 0;
    bool help;
    struct error *error = parse_options(argc, argv, &options, &help);
    if (error == NULL && !help && options.reasons)
        error = print_reasons();
    else if (error == NULL && !help)
        error = run_command(&options, exit_status);
    string_list_free(&options.choice.names);
    return error;
}
