/* The file of a container's log: who may read it, how it is found again, and how several writers share it. */
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
#define GROUPS_MAX (1024 * 1024)

int64_t record_wall_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t record_monotonic_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

char *record_log_path(const char *container_id, bool root, const char *home) {
    if (container_id[0] == '\0' || container_id[0] == '.' || strchr(container_id, '/') != NULL)
        return NULL;
    if (root)
        return text_formatted("/var/log/pinfold/%s.jsonl", container_id);
    return text_formatted("%s/.local/state/pinfold/%s.jsonl", home ? home : "", container_id);
}

/* Up to `capacity` - 1 bytes of a small file, NUL-terminated; "" when it cannot be read. */
static void read_small(const char *path, char *buffer, size_t capacity) {
    buffer[0] = '\0';
    fd_owned int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    size_t length = 0;
    ssize_t got;
    while (length < capacity - 1 && (got = read(fd, buffer + length, capacity - 1 - length)) > 0)
        length += (size_t)got;
    buffer[length] = '\0';
}

/* Root of the machine, and not of a user namespace (rootless engines call the runtime as uid 0 of one). */
static bool is_machine_root(void) {
    if (geteuid() != 0)
        return false;
    char map[128];
    unsigned long inside = 1, outside = 1, count = 0;
    read_small("/proc/self/uid_map", map, sizeof map);
    return sscanf(map, "%lu %lu %lu", &inside, &outside, &count) == 3 && inside == 0 && outside == 0 &&
           count == 4294967295ul;
}

/* The gid of `adm`, or -1. By hand: getgrnam loads NSS modules, which a static binary cannot. */
static gid_t adm_group(void) {
    text_owned struct text groups = {0};
    error_ignore(
        file_read(AT_FDCWD, "/etc/group", GROUPS_MAX, &groups)); /* what was read is looked through */
    for (const char *line = text_string(&groups); line != NULL && *line != '\0';) {
        unsigned gid;
        if (text_starts_with(line, "adm:") && sscanf(line, "adm:%*[^:]:%u", &gid) == 1)
            return (gid_t)gid;
        line = strchr(line, '\n');
        if (line != NULL)
            line++;
    }
    return (gid_t)-1;
}

/* Makes the directory of `path` and those above it. The last one is the log's: closed to others. */
static struct error *make_parents(const char *path, bool machine_root, gid_t group) {
    memory_owned char *directory = memory_copy_string(path);
    char *last = strrchr(directory, '/');
    if (last == NULL || last == directory)
        return NULL;
    *last = '\0';
    for (char *slash = directory + 1;; slash++) {
        bool end = *slash == '\0';
        if (*slash != '/' && !end)
            continue;
        *slash = '\0';
        mode_t mode = !machine_root ? 0700 : end ? 0750 : 0755;
        if (mkdir(directory, mode) == 0) {
            /* The caller's umask may be wider or narrower; and adm must be able to enter. */
            if (chmod(directory, mode) < 0)
                return error_system(errno, "chmod", "%s", directory);
            if (end && machine_root && group != (gid_t)-1)
                (void)!chown(directory, (uid_t)-1, group);
        } else if (errno != EEXIST) {
            return error_system(errno, "make the log directory", "%s", directory);
        }
        if (end)
            return NULL;
        *slash = '/';
    }
}

static struct error *open_file(const char *path, int *out) {
    bool machine_root = is_machine_root();
    const int flags = O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    for (unsigned attempt = 0;; attempt++) {
        int fd = open(path, flags | O_CLOEXEC);
        if (fd >= 0) {
            *out = fd;
            return NULL;
        }
        if (errno != ENOENT || attempt > 3)
            return error_system(errno, "open the log", "%s", path);
        gid_t group = machine_root ? adm_group() : (gid_t)-1;
        TRY(make_parents(path, machine_root, group));
        mode_t mode = machine_root ? 0640 : 0600;
        fd = open(path, flags | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (fd >= 0) {
            *out = fd;
            if (fchmod(fd, mode) < 0) /* whatever the umask */
                return error_system(errno, "chmod", "%s", path);
            /* No group adm, or a file system without owners: root alone reads it, which is the safe side. */
            if (group != (gid_t)-1)
                (void)!fchown(fd, (uid_t)-1, group);
            return NULL;
        }
        if (errno != EEXIST) /* else another writer was first */
            return error_system(errno, "make the log", "%s", path);
    }
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

/* Brings the own counter up to date with what stands in the file between `seen` and its end. */
static void catch_up(struct record_sink *sink, const char *correlation, int64_t size) {
    int64_t seen = size < sink->seen ? 0 : sink->seen; /* copied and truncated: the counter goes on */
    int64_t low = seen > size - TAIL_MAX ? seen : size - TAIL_MAX;
    if (correlation == NULL)
        low = size;
    /* Backwards: the last record of the run has its highest sequence. Chunks overlap by a line's length. */
    for (int64_t end = size; end > low;) {
        int64_t start = end - TAIL_CHUNK > low ? end - TAIL_CHUNK : low;
        size_t length = 0;
        int64_t until = end + RECORD_LINE_MAX < size ? end + RECORD_LINE_MAX : size;
        memory_owned char *bytes = read_range(sink->fd, start, until, &length);
        uint64_t highest = last_sequence(bytes, length, correlation);
        if (highest > sink->highest)
            sink->highest = highest;
        if (highest > 0)
            break;
        end = start;
    }
}

struct error *record_sink_open(const struct record_subject *subject, uint64_t *shared,
                               struct record_sink *out) {
    *out = (struct record_sink){.fd = -1, .path = subject->log_path, .shared = shared};
    if (subject->log_path == NULL || subject->log_path[0] != '/')
        return error_new(ERROR_INVALID, "record: log_path: expected an absolute path");
    fd_owned int fd = -1;
    TRY(open_file(subject->log_path, &fd));
    struct stat status;
    if (fstat(fd, &status) < 0)
        return error_system(errno, "stat", "%s", subject->log_path);
    if (!S_ISREG(status.st_mode))
        return error_new(ERROR_INVALID, "log %s is not a regular file", subject->log_path);
    /* A file that someone else put there in advance could be read, or taken away, by them. */
    if (status.st_uid != geteuid() && status.st_uid != 0)
        return error_new(ERROR_INVALID, "log %s belongs to uid %u, not to the runtime's", subject->log_path,
                         status.st_uid);
    out->fd = fd_take(&fd);
    return NULL;
}

static bool lock_file(struct record_sink *sink) {
    if (flock(sink->fd, LOCK_EX | LOCK_NB) == 0)
        return true;
    int64_t now = record_monotonic_ms();
    if (now < sink->lock_hopeless)
        return false;
    struct timespec pause = {.tv_nsec = 200000};
    for (int64_t end = now + LOCK_WAIT_MS; record_monotonic_ms() < end;) {
        nanosleep(&pause, NULL);
        if (flock(sink->fd, LOCK_EX | LOCK_NB) == 0)
            return true;
    }
    sink->lock_hopeless = record_monotonic_ms() + LOCK_HOPELESS_MS;
    return false;
}

static struct error *write_line(struct record_sink *sink, const struct text *line) {
    ssize_t written;
    do
        written = write(sink->fd, line->data, line->length);
    while (written < 0 && errno == EINTR);
    if (written < 0)
        return error_system(errno, "write", "%s", sink->path);
    sink->torn = (size_t)written != line->length;
    if (sink->torn)
        return error_system(ENOSPC, "write", "%s", sink->path);
    return NULL;
}

/* Looks at what others wrote since the last look. Under the lock only is the end of the file the end of a
 * line: a write grows the file page by page, and who looks in between sees half of it. */
static void look_at_others(struct record_sink *sink, const char *correlation, bool locked) {
    struct stat status;
    if (fstat(sink->fd, &status) < 0 || status.st_size == sink->seen)
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

struct error *record_sink_append(struct record_sink *sink, const char *correlation,
                                 void (*make)(uint64_t sequence, void *data, struct text *line), void *data) {
    bool locked = lock_file(sink);
    look_at_others(sink, correlation, locked);
    uint64_t sequence =
        sink->shared != NULL ? __atomic_add_fetch(sink->shared, 1, __ATOMIC_SEQ_CST) : ++sink->highest;
    text_owned struct text line = {0};
    if (sink->torn)
        text_append(&line, "\n");
    make(sequence, data, &line);
    struct error *error = write_line(sink, &line);
    if (locked && error == NULL)
        sink->seen += (int64_t)line.length;
    if (locked)
        flock(sink->fd, LOCK_UN);
    return error;
}

void record_sink_close(struct record_sink *sink) {
    fd_close(sink->fd);
    sink->fd = -1;
}
