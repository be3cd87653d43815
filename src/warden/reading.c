#include "warden/reading.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "sys/calls.h"
#include "warden/task.h"

#define RULES_MAX (1024 * 1024)
#define DEPTH_MAX PATH_MAX /* a path has no more components, and a loop of mounts none at all */

/* --- the rules --- */

static int inode_compare(const void *one, const void *other) {
    return memcmp(one, other, sizeof(struct access_inode));
}

struct error *readable_read(int fd, struct readable *out) {
    struct stat status;
    if (fstat(fd, &status) < 0)
        return error_system(errno, "stat", "the rules of Landlock");
    size_t size = (size_t)status.st_size, item = sizeof(struct access_inode);
    if (size == 0 || size % item != 0 || size / item > RULES_MAX)
        return error_new(ERROR_INVALID, "the rules of Landlock: %zu bytes", size);
    memory_owned struct access_inode *items = memory_zeroed(size);
    for (size_t at = 0; at < size;) {
        ssize_t length = pread(fd, (char *)items + at, size - at, (off_t)at);
        if (length <= 0)
            return error_system(length < 0 ? errno : EPIPE, "read", "the rules of Landlock");
        at += (size_t)length;
    }
    qsort(items, size / item, item, inode_compare);
    *out = (struct readable){items, size / item};
    items = NULL;
    return NULL;
}

void readable_clear(struct readable *readable) {
    free(readable->items);
    *readable = (struct readable){0};
}

static bool has_rule(const struct readable *readable, const struct statx *status) {
    const struct access_inode inode = {access_inode_device(status->stx_dev_major, status->stx_dev_minor),
                                       status->stx_ino};
    return bsearch(&inode, readable->items, readable->count, sizeof inode, inode_compare) != NULL;
}

/* --- the kernel's question --- */

static bool look(int fd, struct statx *out) {
    return statx(fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_INO | STATX_MNT_ID, out) == 0 &&
           (out->stx_mask & STATX_MNT_ID) != 0; /* Linux 5.8, which Landlock needs more than */
}

static bool is_same(const struct statx *one, const struct statx *other) {
    return one->stx_ino == other->stx_ino && one->stx_dev_major == other->stx_dev_major &&
           one->stx_dev_minor == other->stx_dev_minor && one->stx_mnt_id == other->stx_mnt_id;
}

/* The directory that holds a file, by the text of its place: it leads to the same file, or there is doubt. */
static int open_above(struct task *task, const char *place, const struct statx *status) {
    char text[PATH_MAX];
    struct statx found;
    size_t length = strlen(place);
    if (length >= sizeof text || place[0] != '/')
        return -1;
    memcpy(text, place, length + 1);
    char *slash = strrchr(text, '/');
    const char *last = slash + 1;
    *slash = '\0';
    fd_owned int directory =
        sys_openat2(task_root(task), text[0] != '\0' ? text : "/", O_PATH | O_DIRECTORY | O_CLOEXEC, 0,
                    RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS);
    if (directory < 0)
        return -1;
    fd_owned int same = sys_openat2(directory, last, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0,
                                    RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
    if (same < 0 || !look(same, &found) || !is_same(&found, status))
        return -1;
    return fd_take(&directory);
}

/* Is there no rule at the file, nor at any directory above it? False where that cannot be told. */
static bool is_outside(struct task *task, int file, const struct statx *status, const char *place,
                       const struct readable *readable) {
    struct statx here = *status;
    if (has_rule(readable, &here))
        return false;
    fd_owned int at = S_ISDIR(status->stx_mode) ? openat(file, ".", O_PATH | O_DIRECTORY | O_CLOEXEC)
                                                : open_above(task, place, status);
    for (int depth = 0; depth < DEPTH_MAX; depth++) {
        struct statx next;
        if (at < 0 || !look(at, &next) || has_rule(readable, &next))
            return false;
        /* ".." of a mount's root is the directory above the mount's place, and of the last root itself. */
        if (depth > 0 && is_same(&next, &here))
            return true;
        here = next;
        int above = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        fd_close(at);
        at = above;
    }
    return false;
}

/* --- calls --- */

struct wish {
    int directory; /* argument */
    int path;
    uint64_t flags; /* O_... */
    uint64_t how;   /* RESOLVE_... */
    bool executes;
};

static bool wish_read(const struct task *task, const char *call, struct wish *out) {
    const uint64_t *arguments = (const uint64_t *)task->data->args;
    *out = (struct wish){.directory = NONE};
    if (strcmp(call, "open") == 0) {
        out->flags = (uint32_t)arguments[1];
    } else if (strcmp(call, "openat") == 0) {
        out->directory = 0;
        out->path = 1;
        out->flags = (uint32_t)arguments[2];
    } else if (strcmp(call, "openat2") == 0) {
        struct open_how how;
        if (arguments[3] < sizeof how || !task_read_memory(task, arguments[2], &how, sizeof how))
            return false;
        *out = (struct wish){
            .directory = 0, .path = 1, .flags = how.flags, .how = how.resolve & ~(uint64_t)RESOLVE_CACHED};
    } else if (strcmp(call, "execve") == 0) {
        out->executes = true;
    } else if (strcmp(call, "execveat") == 0) {
        if ((arguments[4] & ~(uint64_t)AT_SYMLINK_NOFOLLOW) != 0)
            return false;
        *out = (struct wish){
            .directory = 0, .path = 1, .flags = arguments[4] != 0 ? O_NOFOLLOW : 0, .executes = true};
    } else {
        return false;
    }
    return true;
}

/* What the kernel answers before it asks Landlock is its own answer, and not ours to record. */
static bool is_asked(const struct task *task, const struct wish *wish, int fd) {
    struct stat status;
    if (fstat(fd, &status) < 0)
        return false;
    const int access = (int)(wish->flags & O_ACCMODE);
    if (wish->executes)
        return S_ISREG(status.st_mode) && !task_mode_denies(task, &status, S_IXOTH);
    if (S_ISLNK(status.st_mode) || S_ISSOCK(status.st_mode) ||
        (S_ISDIR(status.st_mode) && (access != O_RDONLY || (wish->flags & O_CREAT) != 0)))
        return false;
    return !task_mode_denies(task, &status, S_IROTH) &&
           (access == O_RDONLY || !task_mode_denies(task, &status, S_IWOTH));
}

static bool judge(struct task *task, const char *call, const struct readable *readable,
                  struct mutation *out) {
    struct wish wish;
    char path[PATH_MAX];
    struct statx status;
    if (!wish_read(task, call, &wish))
        return false;
    const int access = (int)(wish.flags & O_ACCMODE);
    if (access == O_WRONLY || access == O_ACCMODE || (wish.flags & O_PATH) != 0 ||
        (wish.flags & O_TMPFILE) == O_TMPFILE || (wish.flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL) ||
        !task_read_path(task, wish.path, path))
        return false;
    fd_owned int fd =
        task_resolve(task, wish.directory, path, wish.flags & (O_NOFOLLOW | O_DIRECTORY), wish.how);
    if (fd < 0 || !look(fd, &status) || !task_place_of(task, fd, out->path) ||
        !is_outside(task, fd, &status, out->path, readable) || !is_asked(task, &wish, fd))
        return false;
    memcpy(out->place, out->path, sizeof out->place);
    out->activity_id = 2;
    out->doing = wish.executes ? "executing" : S_ISDIR(status.stx_mode) ? "listing" : "reading";
    out->let_through = false;
    out->on_root_mount = false;
    return true;
}

bool reading_judge(const char *call, const struct seccomp_data *data, pid_t pid,
                   const struct readable *readable, struct mutation *out) {
    if (readable == NULL || readable->count == 0)
        return false;
    struct task task = {.pid = pid, .data = data, .root = -1};
    bool result = judge(&task, call, readable, out);
    fd_close(task.root);
    return result;
}
