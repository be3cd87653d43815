#include "warden/mutation.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fd.h"
#include "sys/calls.h"
#include "warden/walk.h"

#define NONE (-1)
#define LINKS_MAX 40 /* as many symlinks as the kernel follows */
#define CAPABILITY_DAC_OVERRIDE 1

enum kind { OPEN, CREAT, OPENAT2, MAKE, MAKE_NODE, SYMLINK, LINK, REMOVE, RENAME, CHANGE, TRUNCATE, TIMES };

/* Which argument is what; NONE where a call has none. */
struct call {
    const char *name;
    enum kind kind;
    int directory, path;   /* the file, for `link` the existing one */
    int directory2, path2; /* of the new name */
    int flags;             /* AT_... or O_... */
    bool no_follow;        /* of the last component, whatever the flags */
};

static const struct call calls[] = {
    {"open", OPEN, NONE, 0, NONE, NONE, 1, false},
    {"openat", OPEN, 0, 1, NONE, NONE, 2, false},
    {"openat2", OPENAT2, 0, 1, NONE, NONE, NONE, false},
    {"creat", CREAT, NONE, 0, NONE, NONE, NONE, false},
    {"mkdir", MAKE, NONE, 0, NONE, NONE, NONE, true},
    {"mkdirat", MAKE, 0, 1, NONE, NONE, NONE, true},
    {"mknod", MAKE_NODE, NONE, 0, NONE, NONE, NONE, true},
    {"mknodat", MAKE_NODE, 0, 1, NONE, NONE, NONE, true},
    {"symlink", SYMLINK, NONE, 0, NONE, 1, NONE, true},
    {"symlinkat", SYMLINK, NONE, 0, 1, 2, NONE, true},
    {"link", LINK, NONE, 0, NONE, 1, NONE, true},
    {"linkat", LINK, 0, 1, 2, 3, 4, true},
    {"unlink", REMOVE, NONE, 0, NONE, NONE, NONE, true},
    {"unlinkat", REMOVE, 0, 1, NONE, NONE, 2, true},
    {"rmdir", REMOVE, NONE, 0, NONE, NONE, NONE, true},
    {"rename", RENAME, NONE, 0, NONE, 1, NONE, true},
    {"renameat", RENAME, 0, 1, 2, 3, NONE, true},
    {"renameat2", RENAME, 0, 1, 2, 3, 4, true},
    {"chmod", CHANGE, NONE, 0, NONE, NONE, NONE, false},
    {"fchmodat", CHANGE, 0, 1, NONE, NONE, NONE, false},
    {"fchmodat2", CHANGE, 0, 1, NONE, NONE, 3, false},
    {"chown", CHANGE, NONE, 0, NONE, NONE, NONE, false},
    {"chown32", CHANGE, NONE, 0, NONE, NONE, NONE, false},
    {"lchown", CHANGE, NONE, 0, NONE, NONE, NONE, true},
    {"lchown32", CHANGE, NONE, 0, NONE, NONE, NONE, true},
    {"fchownat", CHANGE, 0, 1, NONE, NONE, 4, false},
    {"utime", CHANGE, NONE, 0, NONE, NONE, NONE, false},
    {"utimes", CHANGE, NONE, 0, NONE, NONE, NONE, false},
    {"futimesat", CHANGE, 0, 1, NONE, NONE, NONE, false},
    {"utimensat", TIMES, 0, 1, NONE, NONE, 3, false},
    {"utimensat_time64", TIMES, 0, 1, NONE, NONE, 3, false},
    {"truncate", TRUNCATE, NONE, 0, NONE, NONE, NONE, false},
    {"truncate64", TRUNCATE, NONE, 0, NONE, NONE, NONE, false},
    {"setxattr", CHANGE, NONE, 0, NONE, NONE, NONE, false},
    {"lsetxattr", CHANGE, NONE, 0, NONE, NONE, NONE, true},
    {"setxattrat", CHANGE, 0, 1, NONE, NONE, 2, false},
    {"removexattr", CHANGE, NONE, 0, NONE, NONE, NONE, false},
    {"lremovexattr", CHANGE, NONE, 0, NONE, NONE, NONE, true},
    {"removexattrat", CHANGE, 0, 1, NONE, NONE, 2, false},
};

/* The thread whose call is judged. */
struct task {
    pid_t pid;
    const struct seccomp_data *data;
    int root; /* O_PATH, -1 until it is needed */
    bool learning;
    bool creates; /* that a file is not there is usual */
};

/* --- what the task wrote down --- */

static bool read_memory(const struct task *task, uint64_t address, void *out, size_t size) {
    struct iovec local = {out, size}, remote = {(void *)(uintptr_t)address, size};
    return process_vm_readv(task->pid, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

/* A path, NUL-terminated; false for "" and for what is too long or not there. */
static bool read_path(const struct task *task, int argument, char out[PATH_MAX]) {
    uint64_t address = task->data->args[argument];
    /* One element for each page: a transfer ends before the first element that is not mapped whole. */
    size_t in_page = 4096 - address % 4096;
    struct iovec local = {out, PATH_MAX};
    struct iovec remote[2] = {{(void *)(uintptr_t)address, in_page},
                              {(void *)(uintptr_t)(address + in_page), PATH_MAX - in_page}};
    ssize_t length = process_vm_readv(task->pid, &local, 1, remote, in_page < PATH_MAX ? 2 : 1, 0);
    return length > 0 && memchr(out, '\0', (size_t)length) != NULL && out[0] != '\0';
}

/* --- names to files --- */

static int task_root(struct task *task) {
    if (task->root < 0) {
        char link[32];
        snprintf(link, sizeof link, "/proc/%d/root", (int)task->pid);
        task->root = open(link, O_PATH | O_DIRECTORY | O_CLOEXEC);
    }
    return task->root;
}

/* The directory that relative paths begin at. */
static int task_base(const struct task *task, int argument) {
    int number = argument == NONE ? AT_FDCWD : (int)task->data->args[argument];
    char link[48];
    if (number == AT_FDCWD)
        snprintf(link, sizeof link, "/proc/%d/cwd", (int)task->pid);
    else
        snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)task->pid, number);
    return open(link, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* The text of a descriptor's place, as seen from the task's root. */
static bool place_of(struct task *task, int fd, char out[PATH_MAX]) {
    char link[32], root[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, out, PATH_MAX - 1);
    if (length <= 0 || out[0] != '/')
        return false;
    out[length] = '\0';
    /* From another mount namespace the kernel shows a path from that namespace's root, which is the
     * container's. A task with a root of its own inside has that root as a prefix. */
    snprintf(link, sizeof link, "/proc/self/fd/%d", task_root(task));
    ssize_t root_length = readlink(link, root, sizeof root - 1);
    if (root_length > 1 && length >= root_length && memcmp(out, root, (size_t)root_length) == 0 &&
        (out[root_length] == '/' || out[root_length] == '\0')) {
        memmove(out, out + root_length, (size_t)(length - root_length) + 1);
        if (out[0] == '\0')
            memcpy(out, "/", 2);
    }
    return true;
}

static int open_path(int directory, const char *path, uint64_t flags, uint64_t resolve) {
    /* Magic links (/proc/PID/fd/N) lead to what the link stands for, not to a path. */
    return sys_openat2(directory, path, flags | O_PATH | O_CLOEXEC, 0, resolve | RESOLVE_NO_MAGICLINKS);
}

/* A relative path that leaves its directory by ".." or an absolute symlink: again from the root, by the
 * directory's text, if that text leads to the same directory. */
static int open_from_root(struct task *task, int base, const char *path, uint64_t flags, uint64_t resolve) {
    char text[2 * PATH_MAX + 1], place[PATH_MAX];
    struct stat there, here;
    if (!place_of(task, base, place) || fstat(base, &here) < 0)
        return -1;
    fd_owned int same = open_path(task_root(task), place, O_DIRECTORY, resolve);
    if (same < 0 || fstat(same, &there) < 0 || here.st_ino != there.st_ino || here.st_dev != there.st_dev)
        return -1;
    snprintf(text, sizeof text, "%s/%s", place, path);
    return open_path(task_root(task), text, flags, resolve);
}

/* Opens (O_PATH) what `path` names for the task, as far as openat2 can. -1 with errno. */
static int resolve_plain(struct task *task, int directory, const char *path, uint64_t flags, uint64_t how) {
    bool inside = (how & (RESOLVE_BENEATH | RESOLVE_IN_ROOT)) != 0;
    if (path[0] == '/' && !inside)
        return open_path(task_root(task), path, flags, how | RESOLVE_IN_ROOT);
    fd_owned int base = task_base(task, directory);
    if (base < 0)
        return -1;
    if (inside)
        return open_path(base, path, flags, how);
    /* From the descriptor itself, which is exact about the mount that it lies on, where text would not be. */
    int fd = open_path(base, path, flags, how | RESOLVE_BENEATH);
    if (fd >= 0 || errno != EXDEV)
        return fd;
    return open_from_root(task, base, path, flags, how | RESOLVE_IN_ROOT);
}

/* -1 with errno. A magic link is ELOOP for openat2 here, and below /proc/self, which is not this process,
 * nothing is there. The second look costs a call for each component: not for each file that is about to be
 * made. */
static int resolve(struct task *task, int directory, const char *path, uint64_t flags, uint64_t how) {
    int fd = resolve_plain(task, directory, path, flags, how);
    bool again = errno == ELOOP || (errno == ENOENT && (!task->creates || strstr(path, "proc/") != NULL));
    if (fd >= 0 || how != 0 || !again)
        return fd;
    int error = errno;
    fd_owned int base = task_base(task, directory);
    fd = walk_path(task->pid, task_root(task), base, path, (flags & O_NOFOLLOW) != 0);
    struct stat status;
    if (fd >= 0 && (flags & O_DIRECTORY) != 0 && (fstat(fd, &status) < 0 || !S_ISDIR(status.st_mode))) {
        fd_close(fd);
        fd = -1;
    }
    errno = error;
    return fd;
}

/* A path cut in two: the directory, opened, and the last name. */
struct name {
    int parent;
    char last[NAME_MAX + 1];
    bool slash; /* the path ended with one */
};

/* False (errno is kept) for a last name that is "." or "..", or none; the parent is the caller's to close. */
static bool resolve_parent(struct task *task, int directory, const char *path, uint64_t how,
                           struct name *out) {
    char text[PATH_MAX];
    size_t length = strlen(path);
    memcpy(text, path, length + 1);
    out->parent = -1;
    out->slash = length > 0 && text[length - 1] == '/';
    while (length > 0 && text[length - 1] == '/')
        text[--length] = '\0';
    char *slash = strrchr(text, '/');
    const char *last = slash != NULL ? slash + 1 : text;
    if (last[0] == '\0' || strcmp(last, ".") == 0 || strcmp(last, "..") == 0 || strlen(last) > NAME_MAX)
        return false;
    memcpy(out->last, last, strlen(last) + 1);
    /* With its slash: "a" may be a symlink to a directory. "x" alone lies in "." */
    if (slash != NULL)
        slash[1] = '\0';
    out->parent = resolve(task, directory, slash != NULL ? text : ".", O_DIRECTORY, how);
    return out->parent >= 0;
}

/* --- what the kernel would say --- */

/* The mount that a descriptor lies on; 0 where the kernel (before 5.8) cannot say. */
static uint64_t mount_of(int fd) {
    struct statx status;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &status) < 0 || (status.stx_mask & STATX_MNT_ID) == 0)
        return 0;
    return status.stx_mnt_id;
}

static bool is_read_only(struct task *task, int fd) {
    struct statfs status;
    if (fstatfs(fd, &status) < 0)
        return false;
    return (status.f_flags & ST_RDONLY) != 0 || (task->learning && mount_of(fd) == mount_of(task_root(task)));
}

static bool denied(struct task *task, int fd, struct mutation *out, int activity, const char *doing) {
    out->activity_id = activity;
    out->doing = doing;
    out->on_root_mount = mount_of(fd) == mount_of(task_root(task));
    struct statfs status;
    out->let_through = task->learning && fstatfs(fd, &status) == 0 && (status.f_flags & ST_RDONLY) == 0;
    return true;
}

/* EROFS for a file that is there. */
static bool denied_file(struct task *task, int fd, struct mutation *out, const char *doing) {
    if (!place_of(task, fd, out->path))
        return false;
    memcpy(out->place, out->path, sizeof out->place);
    return denied(task, fd, out, 3, doing);
}

/* EROFS for a name in a directory. */
static bool denied_name(struct task *task, const struct name *name, struct mutation *out, int activity,
                        const char *doing) {
    if (!place_of(task, name->parent, out->place))
        return false;
    bool in_root = strcmp(out->place, "/") == 0;
    if (snprintf(out->path, sizeof out->path, "%s/%s", in_root ? "" : out->place, name->last) >=
        (int)sizeof out->path)
        return false;
    /* "Make / writable" would be more than was asked. */
    if (in_root)
        memcpy(out->place, out->path, sizeof out->place);
    return denied(task, name->parent, out, activity, doing);
}

/* Whether the mode bits alone keep the task from writing: the kernel looks at them before the mount, so its
 * answer is EACCES. Access control lists and other modules are not looked at: then the kernel's EROFS goes
 * without a record. */
static bool mode_denies_write(const struct task *task, const struct stat *file) {
    char path[32], text[4096];
    snprintf(path, sizeof path, "/proc/%d/status", (int)task->pid);
    fd_owned int status = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = status >= 0 ? read(status, text, sizeof text - 1) : -1;
    if (length <= 0)
        return true;
    text[length] = '\0';
    const char *uids = strstr(text, "\nUid:"), *gids = strstr(text, "\nGid:"),
               *caps = strstr(text, "\nCapEff:");
    const char *groups = strstr(text, "\nGroups:");
    unsigned uid, gid;
    unsigned long long capabilities;
    if (uids == NULL || gids == NULL || caps == NULL || sscanf(uids, "\nUid: %*u %*u %*u %u", &uid) != 1 ||
        sscanf(gids, "\nGid: %*u %*u %*u %u", &gid) != 1 ||
        sscanf(caps, "\nCapEff: %llx", &capabilities) != 1)
        return true;
    if ((capabilities >> CAPABILITY_DAC_OVERRIDE & 1) != 0)
        return false;
    if (uid == file->st_uid)
        return (file->st_mode & S_IWUSR) == 0;
    bool member = gid == file->st_gid;
    for (const char *at = groups != NULL ? groups + strlen("\nGroups:") : ""; !member;) {
        char *end;
        unsigned long group = strtoul(at, &end, 10);
        const char *line_end = strchr(at, '\n');
        if (end == at || (line_end != NULL && end > line_end))
            break;
        member = group == file->st_gid;
        at = end;
    }
    return (file->st_mode & (member ? S_IWGRP : S_IWOTH)) == 0;
}

static bool judge_open_existing(struct task *task, int fd, uint64_t flags, struct mutation *out) {
    if ((flags & O_CREAT) != 0 && (flags & O_EXCL) != 0)
        return false; /* EEXIST */
    if (!is_read_only(task, fd))
        return false;
    struct stat status;
    /* Directories are EISDIR, symlinks ELOOP; devices, pipes and sockets are written to on any mount. */
    if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
        return false;
    bool writes = (flags & O_ACCMODE) == O_WRONLY || (flags & O_ACCMODE) == O_RDWR;
    if ((flags & O_TRUNC) == 0 && (!writes || mode_denies_write(task, &status)))
        return false; /* only O_TRUNC is refused by the mount before the mode bits are looked at */
    return denied_file(task, fd, out, "writing to");
}

/* A file that is not there, or a symlink to one: where would it be made? */
static bool judge_open_missing(struct task *task, int directory, const char *path, uint64_t flags,
                               uint64_t how, struct mutation *out) {
    char text[PATH_MAX];
    memcpy(text, path, strlen(path) + 1);
    for (int links = 0; links < LINKS_MAX; links++) {
        struct name name;
        if (!resolve_parent(task, directory, text, how, &name))
            return false;
        fd_owned int parent = name.parent;
        char target[PATH_MAX], place[PATH_MAX];
        ssize_t length =
            (flags & (O_EXCL | O_NOFOLLOW)) != 0 ? -1 : readlinkat(parent, name.last, target, sizeof target);
        if (length < 0) {
            struct stat status;
            /* There after all, or (slash) to be a directory: not for us. */
            if (name.slash || fstatat(parent, name.last, &status, AT_SYMLINK_NOFOLLOW) == 0 ||
                errno != ENOENT)
                return false;
            return is_read_only(task, parent) && denied_name(task, &name, out, 1, "creating");
        }
        if (length == 0 || (size_t)length >= sizeof target || how != 0 || !place_of(task, parent, place))
            return false;
        int written = target[0] == '/' ? snprintf(text, sizeof text, "%.*s", (int)length, target)
                                       : snprintf(text, sizeof text, "%s/%.*s", place, (int)length, target);
        if (written >= (int)sizeof text)
            return false;
    }
    return false;
}

static bool judge_open(struct task *task, int directory, const char *path, uint64_t flags, uint64_t how,
                       struct mutation *out) {
    if ((flags & O_PATH) != 0)
        return false;
    if ((flags & O_TMPFILE) == O_TMPFILE) {
        /* A file without a name, in the directory that the path names. */
        fd_owned int fd = resolve(task, directory, path, O_DIRECTORY, how);
        if (fd < 0 || !is_read_only(task, fd) || (flags & O_ACCMODE) == O_RDONLY ||
            !place_of(task, fd, out->path))
            return false;
        memcpy(out->place, out->path, sizeof out->place);
        return denied(task, fd, out, 1, "creating a file in");
    }
    if ((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
        return judge_open_missing(task, directory, path, flags, how, out);
    /* A slash at the end is for directories, which nobody writes to. */
    if (path[strlen(path) - 1] == '/')
        return false;
    task->creates = (flags & O_CREAT) != 0;
    fd_owned int fd = resolve(task, directory, path, (flags & O_NOFOLLOW) != 0 ? O_NOFOLLOW : 0, how);
    if (fd >= 0)
        return judge_open_existing(task, fd, flags, out);
    if (errno != ENOENT || (flags & O_CREAT) == 0)
        return false;
    return judge_open_missing(task, directory, path, flags, how, out);
}

static bool judge_open_call(struct task *task, const struct call *call, const char *path,
                            struct mutation *out) {
    if (call->kind == CREAT)
        return judge_open(task, call->directory, path, O_WRONLY | O_CREAT | O_TRUNC, 0, out);
    if (call->kind == OPEN)
        return judge_open(task, call->directory, path, (uint32_t)task->data->args[call->flags], 0, out);
    struct open_how how;
    if (task->data->args[3] < sizeof how || !read_memory(task, task->data->args[2], &how, sizeof how))
        return false;
    const uint64_t known = RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH |
                           RESOLVE_IN_ROOT | RESOLVE_CACHED;
    if ((how.flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) == 0 || (how.resolve & ~known) != 0)
        return false;
    return judge_open(task, call->directory, path, how.flags, how.resolve & ~(uint64_t)RESOLVE_CACHED, out);
}

/* mkdir, mknod, symlink, link: the name must be free, which is looked at before the mount. */
static bool judge_make(struct task *task, const struct call *call, int directory, const char *path,
                       struct mutation *out) {
    struct name name;
    if (!resolve_parent(task, directory, path, 0, &name))
        return false;
    fd_owned int parent = name.parent;
    struct stat status;
    if (!is_read_only(task, parent) || (name.slash && call->kind != MAKE))
        return false;
    if (fstatat(parent, name.last, &status, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT)
        return false; /* EEXIST, or in doubt */
    return denied_name(task, &name, out, 1, "creating");
}

static bool judge_make_call(struct task *task, const struct call *call, const char *path,
                            struct mutation *out) {
    if (call->kind == MAKE)
        return judge_make(task, call, call->directory, path, out);
    if (call->kind == MAKE_NODE) {
        mode_t type = (mode_t)task->data->args[call->path + 1] & S_IFMT;
        bool makes = type == 0 || type == S_IFREG || type == S_IFCHR || type == S_IFBLK || type == S_IFIFO ||
                     type == S_IFSOCK;
        return makes && judge_make(task, call, call->directory, path, out);
    }
    /* symlink and link: `path` is the old one. */
    if (call->kind == LINK) {
        uint64_t flags = call->flags == NONE ? 0 : task->data->args[call->flags];
        if ((flags & ~(uint64_t)AT_SYMLINK_FOLLOW) != 0)
            return false;
        fd_owned int old = resolve(task, call->directory, path, flags != 0 ? 0 : O_NOFOLLOW, 0);
        if (old < 0)
            return false;
    }
    char new_path[PATH_MAX];
    return read_path(task, call->path2, new_path) && judge_make(task, call, call->directory2, new_path, out);
}

/* unlink, rmdir: the mount is looked at before the name. */
static bool judge_remove(struct task *task, const struct call *call, const char *path, struct mutation *out) {
    if (call->flags != NONE && ((uint32_t)task->data->args[call->flags] & ~(uint32_t)AT_REMOVEDIR) != 0)
        return false;
    struct name name;
    if (!resolve_parent(task, call->directory, path, 0, &name))
        return false;
    fd_owned int parent = name.parent;
    return is_read_only(task, parent) && denied_name(task, &name, out, 4, "removing");
}

/* rename: both names on one mount (EXDEV comes first), which is looked at before the names. */
static bool judge_rename(struct task *task, const struct call *call, const char *path, struct mutation *out) {
    /* RENAME_NOREPLACE, RENAME_EXCHANGE, RENAME_WHITEOUT; the last two exclude each other's company */
    uint32_t flags = call->flags == NONE ? 0 : (uint32_t)task->data->args[call->flags];
    if ((flags & ~7u) != 0 || ((flags & 2) != 0 && (flags & 5) != 0))
        return false;
    char new_path[PATH_MAX];
    struct name old, new;
    if (!read_path(task, call->path2, new_path) || !resolve_parent(task, call->directory, path, 0, &old))
        return false;
    fd_owned int parent = old.parent;
    if (!is_read_only(task, parent) || !resolve_parent(task, call->directory2, new_path, 0, &new))
        return false;
    fd_owned int new_parent = new.parent;
    uint64_t mount = mount_of(parent);
    if (mount == 0 || mount != mount_of(new_parent))
        return false;
    return denied_name(task, &old, out, 5, "renaming");
}

/* Calls that change what a name stands for. */
static bool judge_change(struct task *task, const struct call *call, const char *path, struct mutation *out) {
    bool no_follow = call->no_follow;
    if (call->flags != NONE) {
        uint32_t flags = (uint32_t)task->data->args[call->flags];
        if ((flags & ~(uint32_t)(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)) != 0)
            return false;
        no_follow |= (flags & AT_SYMLINK_NOFOLLOW) != 0;
    }
    fd_owned int fd = resolve(task, call->directory, path, no_follow ? O_NOFOLLOW : 0, 0);
    if (fd < 0 || !is_read_only(task, fd))
        return false;
    if (call->kind == TRUNCATE) {
        struct stat status;
        if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || mode_denies_write(task, &status))
            return false;
        return denied_file(task, fd, out, "writing to");
    }
    return denied_file(task, fd, out, "changing");
}

/* utimensat with two times that are both UTIME_OMIT succeeds without a look at the file. */
static bool times_change(const struct task *task) {
    uint64_t address = task->data->args[2];
    struct timespec times[2];
    if (address == 0)
        return true;
    if ((task->data->arch & __AUDIT_ARCH_64BIT) == 0)
        return false; /* laid out otherwise; in doubt */
    if (!read_memory(task, address, times, sizeof times))
        return false;
    for (int i = 0; i < 2; i++)
        if (times[i].tv_nsec != UTIME_OMIT && times[i].tv_nsec != UTIME_NOW &&
            (times[i].tv_nsec < 0 || times[i].tv_nsec > 999999999))
            return false; /* EINVAL */
    return times[0].tv_nsec != UTIME_OMIT || times[1].tv_nsec != UTIME_OMIT;
}

static bool judge(struct task *task, const struct call *call, struct mutation *out) {
    char path[PATH_MAX];
    if (!read_path(task, call->path, path))
        return false;
    switch (call->kind) {
    case OPEN:
    case CREAT:
    case OPENAT2:
        return judge_open_call(task, call, path, out);
    case MAKE:
    case MAKE_NODE:
    case SYMLINK:
    case LINK:
        return judge_make_call(task, call, path, out);
    case REMOVE:
        return judge_remove(task, call, path, out);
    case RENAME:
        return judge_rename(task, call, path, out);
    case TIMES:
        return times_change(task) && judge_change(task, call, path, out);
    case CHANGE:
    case TRUNCATE:
        return judge_change(task, call, path, out);
    }
    return false;
}

bool mutation_judge(const char *call, const struct seccomp_data *data, pid_t pid, bool learning,
                    struct mutation *out) {
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (strcmp(calls[i].name, call) == 0) {
            struct task task = {.pid = pid, .data = data, .root = -1, .learning = learning};
            bool result = judge(&task, &calls[i], out);
            fd_close(task.root);
            return result;
        }
    return false;
}
