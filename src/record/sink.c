/* Writing to a container's log: how several writers share its file, and its numbers. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/memory.h"
#include "record/internal.h"

/* How far back the highest sequence of a run is looked for. Records of one run are adjacent but for those of
 * an overlapping run (a restart), which are few. */
#define TAIL_MAX (1024 * 1024)
#define TAIL_CHUNK (16 * 1024)
/* Another writer holds the lock for microseconds, or, on a machine that has no time for it, for hundreds of
 * milliseconds. A reader of the file can hold it for ever (flock needs no write permission), so that it is
 * waited for this long and then done without: the numbers may then repeat. */
#define LOCK_WAIT_MS 1000
#define LOCK_HOPELESS_MS 30000
/* A clock is slewed by at most a part in 2,000. */
#define CLOCK_TOLERANCE_MS 2000
#define CLOCK_DRIFT 1000

int64_t record_clock_step(struct record_clock *clock, int64_t wall, int64_t steady) {
    int64_t passed = steady - clock->steady, step = wall - clock->wall - passed;
    bool first = clock->steady == 0;
    *clock = (struct record_clock){wall, steady};
    int64_t tolerance = CLOCK_TOLERANCE_MS + passed / CLOCK_DRIFT;
    return first || (step > -tolerance && step < tolerance) ? 0 : step;
}

/* The sequence of the last record of the run in `bytes`, 0 for none. A plain search is exact: inside a JSON
 * string the quotes would be escaped. Both keys stand in `metadata`, the end of a line. */
static uint64_t last_sequence(const char *bytes, size_t length, const char *correlation) {
    static const char key[] = "\"sequence\":";
    size_t size = strlen(correlation);
    const char *end = memrchr(bytes, '\n', length); /* what follows is not complete */
    while (end != NULL && end > bytes) {
        const char *newline = memrchr(bytes, '\n', (size_t)(end - bytes));
        const char *line = newline ? newline + 1 : bytes;
        size_t span = (size_t)(end - line);
        if (memmem(line, span, correlation, size) != NULL) {
            const char *found = memmem(line, span, key, sizeof key - 1);
            if (found != NULL)
                return strtoull(found + sizeof key - 1, NULL, 10);
        }
        end = newline;
    }
    return 0;
}

/* Reads [from, to) of the file, NUL-terminated; the caller frees it. NULL on failure. */
static char *read_range(int fd, int64_t from, int64_t to, size_t *length) {
    char *bytes = memory_zeroed((size_t)(to - from) + 1);
    *length = 0;
    while ((int64_t)*length < to - from) {
        ssize_t got = pread(fd, bytes + *length, (size_t)(to - from) - *length, from + (int64_t)*length);
        if (got <= 0)
            break;
        *length += (size_t)got;
    }
    return bytes;
}

/* The highest sequence of the run between `low` and `size` of a file, 0 for none. Backwards: the last record
 * of the run has it. Chunks overlap by a line's length. */
static uint64_t find_sequence(int fd, const char *correlation, int64_t low, int64_t size) {
    uint64_t found = 0;
    for (int64_t end = size; end > low && found == 0;) {
        int64_t start = end - TAIL_CHUNK > low ? end - TAIL_CHUNK : low;
        size_t length = 0;
        int64_t until = end + RECORD_LINE_MAX < size ? end + RECORD_LINE_MAX : size;
        memory_owned char *bytes = read_range(fd, start, until, &length);
        found = last_sequence(bytes, length, correlation);
        end = start;
    }
    return found;
}

/* Of the piece before this one, which was full when the run went on. */
static uint64_t find_in_older(const struct record_sink *sink, const char *correlation) {
    memory_owned char *older = text_formatted("%s.1", sink->name);
    fd_owned int fd =
        openat(sink->directory, older, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
        return 0;
    return find_sequence(fd, correlation, status.st_size > TAIL_MAX ? status.st_size - TAIL_MAX : 0,
                         status.st_size);
}

/* Brings the own counter up to date with what stands in the file between `seen` and its end. */
static void catch_up(struct record_sink *sink, const char *correlation, int64_t size) {
    int64_t seen = size < sink->seen ? 0 : sink->seen; /* copied and truncated: the counter goes on */
    int64_t low = seen > size - TAIL_MAX ? seen : size - TAIL_MAX;
    if (correlation == NULL)
        return;
    uint64_t highest = find_sequence(sink->fd, correlation, low, size);
    if (highest > sink->highest)
        sink->highest = highest;
}

struct error *record_sink_open(const struct record_subject *subject, uint64_t *shared,
                               struct record_sink *out) {
    *out = (struct record_sink){.directory = -1,
                                .fd = -1,
                                .path = subject->log_path,
                                .keep_ms = subject->log_keep_ms,
                                .total = subject->log_total,
                                .piece = record_piece_size(subject->log_total),
                                .shared = shared};
    if (subject->log_path == NULL || subject->log_path[0] != '/')
        return error_new(ERROR_INVALID, "record: log_path: expected an absolute path");
    out->name = strrchr(subject->log_path, '/') + 1;
    struct error *error = record_file_open(out);
    if (error != NULL)
        record_sink_close(out);
    return error;
}

static bool lock_file(struct record_sink *sink) {
    if (flock(sink->fd, LOCK_EX | LOCK_NB) == 0)
        return true;
    int64_t now = clock_ms(CLOCK_MONOTONIC);
    if (now < sink->lock_hopeless)
        return false;
    struct timespec pause = {.tv_nsec = 200000};
    for (int64_t end = now + LOCK_WAIT_MS; clock_ms(CLOCK_MONOTONIC) < end;) {
        nanosleep(&pause, NULL);
        if (flock(sink->fd, LOCK_EX | LOCK_NB) == 0)
            return true;
    }
    sink->lock_hopeless = clock_ms(CLOCK_MONOTONIC) + LOCK_HOPELESS_MS;
    return false;
}

/* A line of which only the beginning found room is taken back, where nobody else writes meanwhile. */
static struct error *write_line(struct record_sink *sink, const struct text *line, bool locked) {
    ssize_t written;
    do
        written = write(sink->fd, line->data, line->length);
    while (written < 0 && errno == EINTR);
    if (written < 0)
        return error_system(errno, "write", "%s", sink->path);
    sink->torn = (size_t)written != line->length;
    if (!sink->torn)
        return NULL;
    if (locked && ftruncate(sink->fd, sink->seen) == 0)
        sink->torn = false;
    return error_system(ENOSPC, "write", "%s", sink->path);
}

/* Looks at what others wrote since the last look. Under the lock only is the end of the file the end of a
 * line: a write grows the file page by page, and who looks in between sees half of it. */
static void look_at_others(struct record_sink *sink, const char *correlation, bool locked) {
    struct stat status;
    if (fstat(sink->fd, &status) < 0)
        return;
    if (sink->shared == NULL && sink->highest == 0 && sink->piece > 0 && correlation != NULL)
        sink->highest = find_in_older(sink, correlation);
    if (status.st_size == sink->seen)
        return;
    if (sink->shared == NULL)
        catch_up(sink, correlation, status.st_size);
    if (!locked)
        return;
    sink->seen = status.st_size;
    char last = '\n';
    if (status.st_size > 0 && pread(sink->fd, &last, 1, status.st_size - 1) == 1)
        sink->torn = last != '\n';
}

/* The lock of the file that the log is now: it may have been renamed, removed or replaced meanwhile. */
static bool lock_current(struct record_sink *sink, const char *correlation) {
    for (int attempt = 0; attempt < 3; attempt++) {
        bool locked = lock_file(sink);
        if (record_file_look(sink))
            continue;
        look_at_others(sink, correlation, locked);
        if (!locked || sink->piece == 0 || sink->seen + RECORD_LINE_MAX <= sink->piece)
            return locked;
        record_file_rotate(sink);
    }
    bool locked = lock_file(sink);
    look_at_others(sink, correlation, locked);
    return locked;
}

struct error *record_sink_append(struct record_sink *sink, const char *correlation,
                                 void (*make)(uint64_t sequence, void *data, struct text *line), void *data) {
    bool locked = lock_current(sink, correlation);
    uint64_t sequence =
        sink->shared != NULL ? __atomic_add_fetch(sink->shared, 1, __ATOMIC_SEQ_CST) : sink->highest + 1;
    sink->highest = sequence;
    text_owned struct text line = {0};
    if (sink->torn)
        text_append(&line, "\n");
    make(sequence, data, &line);
    struct error *error = write_line(sink, &line, locked);
    if (locked && error == NULL)
        sink->seen += (int64_t)line.length;
    if (locked)
        flock(sink->fd, LOCK_UN);
    return error;
}

void record_sink_close(struct record_sink *sink) {
    fd_close(sink->fd);
    fd_close(sink->directory);
    sink->fd = sink->directory = -1;
    free(sink->news);
    sink->news = NULL;
}
