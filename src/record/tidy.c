/* Logs of containers that are gone: removed when they are older than log.keep, and, the oldest first, when
 * all of the directory are more than log.total. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "record/internal.h"

#define STAMP ".tidied"
#define INTERVAL_SECONDS 300 /* a look at ten thousand logs takes 20 ms */
#define LOGS_MAX 100000

struct old_log {
    char *name;
    int64_t modified; /* ms */
    int64_t size;
    bool current; /* ID.jsonl: its container may live */
};
struct old_logs {
    struct old_log *items;
    size_t count;
};

bool record_is_log_name(const char *name, bool *current) {
    static const char suffix[] = ".jsonl";
    const char *found = NULL;
    for (const char *next = name; (next = strstr(next, suffix)) != NULL; next++)
        found = next;
    if (found == NULL || found == name || name[0] == '.')
        return false;
    const char *rest = found + sizeof suffix - 1;
    *current = *rest == '\0';
    if (*current)
        return true;
    size_t digits = strspn(rest + 1, "0123456789");
    return *rest == '.' && digits > 0 && digits < 4 && rest[1 + digits] == '\0';
}

static bool is_ours(int directory, const char *name, struct stat *status) {
    return fstatat(directory, name, status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status->st_mode) &&
           status->st_uid == geteuid();
}

static int64_t modified_ms(const struct stat *status) {
    return (int64_t)status->st_mtim.tv_sec * 1000 + status->st_mtim.tv_nsec / 1000000;
}

/* Whether it is this one's turn: many containers end at once. */
static bool take_turn(int directory) {
    fd_owned int stamp =
        openat(directory, STAMP, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
    struct stat status;
    if (stamp < 0 || fstat(stamp, &status) < 0 || !S_ISREG(status.st_mode) ||
        flock(stamp, LOCK_EX | LOCK_NB) < 0)
        return false;
    int64_t age = clock_ms(CLOCK_REALTIME) - modified_ms(&status);
    if (status.st_size > 0 && age >= 0 && age < INTERVAL_SECONDS * 1000)
        return false;
    return lseek(stamp, 0, SEEK_SET) == 0 && write(stamp, "\n", 1) == 1; /* its time is what counts */
}

static void list(int directory, struct old_logs *logs) {
    int again = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = again < 0 ? NULL : fdopendir(again);
    if (stream == NULL) {
        fd_close(again);
        return;
    }
    struct dirent *entry;
    while ((entry = readdir(stream)) != NULL && logs->count < LOGS_MAX) {
        struct stat status;
        bool current;
        if (!record_is_log_name(entry->d_name, &current) || !is_ours(directory, entry->d_name, &status))
            continue;
        if ((logs->count & (logs->count - 1)) == 0)
            logs->items =
                memory_resize(logs->items, logs->count == 0 ? 1 : logs->count * 2, sizeof *logs->items);
        logs->items[logs->count++] = (struct old_log){.name = memory_copy_string(entry->d_name),
                                                      .modified = modified_ms(&status),
                                                      .size = status.st_size,
                                                      .current = current};
    }
    closedir(stream);
}

static int oldest_first(const void *one, const void *two) {
    const struct old_log *a = one, *b = two;
    return a->modified < b->modified ? -1 : a->modified > b->modified;
}

/* Whether it was removed. What changed since it was listed is left. */
static bool remove_log(int directory, const struct old_log *log) {
    struct stat status, opened;
    if (!is_ours(directory, log->name, &status) || modified_ms(&status) != log->modified)
        return false;
    if (log->current) {
        fd_owned int fd =
            openat(directory, log->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &opened) < 0 || opened.st_ino != status.st_ino || record_file_is_written(fd))
            return false;
    }
    return unlinkat(directory, log->name, 0) == 0;
}

void record_tidy(int directory, int64_t keep_ms, int64_t total) {
    if (directory < 0 || (keep_ms <= 0 && total <= 0) || !take_turn(directory))
        return;
    struct old_logs logs = {0};
    list(directory, &logs);
    if (logs.count > 1)
        qsort(logs.items, logs.count, sizeof *logs.items, oldest_first);
    int64_t sum = 0, now = clock_ms(CLOCK_REALTIME);
    for (size_t i = 0; i < logs.count; i++)
        sum += logs.items[i].size;
    for (size_t i = 0; i < logs.count; i++) {
        const struct old_log *log = &logs.items[i];
        bool expired = keep_ms > 0 && now - log->modified > keep_ms;
        bool too_much = total > 0 && sum > total;
        if ((expired || too_much) && remove_log(directory, log))
            sum -= log->size;
        free(log->name);
    }
    free(logs.items);
}
