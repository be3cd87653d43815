/* The lines of one log, over all its files: PATH is the one that is written to, PATH.1 what was renamed away
 * last, PATH.2 before that (docs/log.md).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "cli/log_parts.h"

/* Four times the longest line that is written; a longer one is not a record, and is not kept. */
#define LINE_MAX_BYTES 65536
#define BUFFER_BYTES 65536
/* More than any writer keeps; a directory of somebody else's may hold whatever it likes. */
#define FILES_MAX 256

struct log_reader {
    char *path;
    bool is_stream;       /* standard input: no offsets, no other files */
    int files[FILES_MAX]; /* still to be read, the oldest last */
    size_t file_count;
    int64_t offset; /* in the oldest */
    char *buffer;
    size_t at, filled;   /* what of the buffer was not looked at yet */
    struct text partial; /* a line whose end has not come */
    bool overlong;       /* ... and which is too long to keep */
    bool given;          /* `partial` is what the caller was given: it is done with it now */
    uint64_t unreadable;
};

/* -- files -- */

static struct error *open_file(const char *path, int *fd) {
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a fifo must not be waited for */
    struct stat status;
    if (*fd < 0)
        return error_system(errno, "open the log", "%s", path);
    struct error *error = NULL;
    if (fstat(*fd, &status) < 0)
        error = error_system(errno, "look at the log", "%s", path);
    else if (!S_ISREG(status.st_mode))
        error = error_new(ERROR_INVALID, "%s is not a regular file", path);
    if (error == NULL)
        return NULL;
    fd_close(*fd);
    *fd = -1;
    return error;
}

static bool is_same_file(int one, int other) {
    struct stat a, b;
    return fstat(one, &a) == 0 && fstat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static bool holds(const struct log_reader *reader, int fd) {
    for (size_t i = 0; i < reader->file_count; i++)
        if (is_same_file(reader->files[i], fd))
            return true;
    return false;
}

/* The older files, beginning with the newest of them, up to `known` (-1: all). While they are opened one by
 * one, a writer may rename them: each becomes one older then, so none is missed, and one is found twice. */
static void open_rotated(struct log_reader *reader, int known) {
    for (unsigned number = 1; reader->file_count < FILES_MAX; number++) {
        memory_owned char *path = text_formatted("%s.%u", reader->path, number);
        int fd;
        error_owned error = open_file(path, &fd);
        if (error != NULL)
            return;
        if (known >= 0 && is_same_file(known, fd)) {
            fd_close(fd);
            return;
        }
        if (holds(reader, fd))
            fd_close(fd);
        else
            reader->files[reader->file_count++] = fd;
    }
}

struct error *log_reader_open(const char *path, struct log_reader **out) {
    bool is_stream = strcmp(path, "-") == 0;
    int fd;
    *out = NULL;
    if (!is_stream)
        TRY(open_file(path, &fd));
    else if ((fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)) < 0)
        return error_system(errno, "duplicate", "the standard input");
    struct log_reader *reader = memory_zeroed(sizeof *reader);
    reader->path = memory_copy_string(is_stream ? "the standard input" : path);
    reader->is_stream = is_stream;
    reader->buffer = memory_zeroed(BUFFER_BYTES);
    reader->files[reader->file_count++] = fd;
    if (!is_stream && text_ends_with(path, LOG_SUFFIX))
        open_rotated(reader, -1);
    *out = reader;
    return NULL;
}

void log_reader_close(struct log_reader *reader) {
    if (reader == NULL)
        return;
    for (size_t i = 0; i < reader->file_count; i++)
        fd_close(reader->files[i]);
    text_free(&reader->partial);
    free(reader->buffer);
    free(reader->path);
    free(reader);
}

const char *log_reader_path(const struct log_reader *reader) {
    return reader->path;
}

uint64_t log_reader_unreadable(const struct log_reader *reader) {
    return reader->unreadable;
}

/* The file that was read to its end is done with: what it holds without an end of line never was finished. */
static void next_file(struct log_reader *reader) {
    fd_close(reader->files[--reader->file_count]);
    reader->offset = 0;
    if (reader->partial.length > 0 || reader->overlong)
        reader->unreadable++;
    reader->partial.length = 0;
    reader->overlong = false;
}

/* The end of the file that is written to: was it renamed, or emptied? True where there is more to read now.
 */
static bool look_again(struct log_reader *reader) {
    int current = reader->files[0];
    struct stat status;
    if (fstat(current, &status) == 0 && status.st_size < reader->offset) { /* copied and truncated */
        reader->offset = 0;
        return true;
    }
    int fd;
    error_owned error = open_file(reader->path, &fd);
    if (error != NULL || is_same_file(fd, current)) {
        if (error == NULL)
            fd_close(fd);
        return false;
    }
    /* What was appended before it was renamed comes first; then, where it happened more than once, the
     * others. */
    reader->file_count = 0;
    reader->files[reader->file_count++] = fd;
    open_rotated(reader, current);
    if (reader->file_count == FILES_MAX)
        fd_close(reader->files[--reader->file_count]);
    reader->files[reader->file_count++] = current;
    return true;
}

/* -- lines -- */

/* More bytes into the buffer; *some is false at the end of what there is. */
static struct error *fill(struct log_reader *reader, bool *some) {
    reader->at = reader->filled = 0;
    *some = false;
    for (bool looked = false;;) {
        int fd = reader->files[reader->file_count - 1];
        ssize_t got = reader->is_stream ? read(fd, reader->buffer, BUFFER_BYTES)
                                        : pread(fd, reader->buffer, BUFFER_BYTES, reader->offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_system(errno, "read", "%s", reader->path);
        if (got > 0) {
            reader->offset += got;
            reader->filled = (size_t)got;
            *some = true;
            return NULL;
        }
        if (reader->is_stream)
            return NULL;
        if (reader->file_count > 1)
            next_file(reader);
        else if (looked || !look_again(reader))
            return NULL;
        else
            looked = true;
    }
}

/* Takes bytes up to the next end of line. True where a whole line is in `partial`. */
static bool take_bytes(struct log_reader *reader) {
    const char *bytes = reader->buffer + reader->at;
    size_t length = reader->filled - reader->at;
    const char *newline = memchr(bytes, '\n', length);
    size_t span = newline ? (size_t)(newline - bytes) : length;
    if (reader->partial.length + span > LINE_MAX_BYTES)
        reader->overlong = true;
    if (!reader->overlong)
        text_append_bytes(&reader->partial, bytes, span);
    reader->at += span + (newline != NULL);
    if (newline == NULL)
        return false;
    bool whole = !reader->overlong && reader->partial.length > 0;
    if (reader->overlong)
        reader->unreadable++;
    reader->overlong = false;
    if (!whole)
        reader->partial.length = 0;
    return whole;
}

/* The next line that is a record. */
struct error *log_reader_next(struct log_reader *reader, struct log_record *record, const char **line,
                              size_t *length) {
    *line = NULL;
    if (reader->given)
        reader->partial.length = 0;
    reader->given = false;
    for (bool some = true; some;) {
        if (reader->at == reader->filled)
            TRY(fill(reader, &some));
        while (reader->at < reader->filled)
            if (take_bytes(reader)) {
                if (log_record_parse(reader->partial.data, reader->partial.length, record)) {
                    *line = reader->partial.data;
                    *length = reader->partial.length;
                    reader->given = true;
                    return NULL;
                }
                log_record_clear(record);
                reader->partial.length = 0;
                reader->unreadable++;
            }
    }
    return NULL;
}

/* A last line without its end: a record that is just being written, or one that never was finished. */
void log_reader_rest(struct log_reader *reader, struct log_record *record, const char **line,
                     size_t *length) {
    *line = NULL;
    if (reader->given || reader->overlong || reader->partial.length == 0)
        return;
    if (log_record_parse(reader->partial.data, reader->partial.length, record)) {
        *line = reader->partial.data;
        *length = reader->partial.length;
        reader->given = true;
    } else {
        log_record_clear(record);
    }
}
