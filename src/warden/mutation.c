#include "warden/mutation.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "sys/calls.h"
#include "warden/task.h"

#define CAPABILITY_CHOWN 0
#define CAPABILITY_FOWNER 3
#define LINKS_MAX 40 /* as many symlinks as the kernel follows */

enum kind {
    OPEN,
    CREAT,
    OPENAT2,
    MAKE,
    MAKE_NODE,
    SYMLINK,
    LINK,
    REMOVE,
    RENAME,
    ATTRIBUTE,
    MODE,
    OWNER,
    TRUNCATE,
    TIMES,
    TIMES_OLD,
    EXECUTE,   /* these two are only described */
    DESCRIPTOR /* `directory` is the file's */
};

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
    {"chmod", MODE, NONE, 0, NONE, NONE, NONE, false},
    {"fchmodat", MODE, 0, 1, NONE, NONE, NONE, false},
    {"fchmodat2", MODE, 0, 1, NONE, NONE, 3, false},
    {"chown", OWNER, NONE, 0, NONE, NONE, NONE, false},
    {"chown32", OWNER, NONE, 0, NONE, NONE, NONE, false},
    {"lchown", OWNER, NONE, 0, NONE, NONE, NONE, true},
    {"lchown32", OWNER, NONE, 0, NONE, NONE, NONE, true},
    {"fchownat", OWNER, 0, 1, NONE, NONE, 4, false},
    {"utime", TIMES_OLD, NONE, 0, NONE, NONE, NONE, false},
    {"utimes", TIMES_OLD, NONE, 0, NONE, NONE, NONE, false},
    {"futimesat", TIMES_OLD, 0, 1, NONE, NONE, NONE, false},
    {"utimensat", TIMES, 0, 1, NONE, NONE, 3, false},
    {"utimensat_time64", TIMES, 0, 1, NONE, NONE, 3, false},
    {"truncate", TRUNCATE, NONE, 0, NONE, NONE, NONE, false},
    {"truncate64", TRUNCATE, NONE, 0, NONE, NONE, NONE, false},
    {"setxattr", ATTRIBUTE, NONE, 0, NONE, NONE, NONE, false},
    {"lsetxattr", ATTRIBUTE, NONE, 0, NONE, NONE, NONE, true},
    {"setxattrat", ATTRIBUTE, 0, 1, NONE, NONE, 2, false},
    {"removexattr", ATTRIBUTE, NONE, 0, NONE, NONE, NONE, false},
    {"lremovexattr", ATTRIBUTE, NONE, 0, NONE, NONE, NONE, true},
    {"removexattrat", ATTRIBUTE, 0, 1, NONE, NONE, 2, false},
    {"execve", EXECUTE, NONE, 0, NONE, NONE, NONE, false},
    {"execveat", EXECUTE, 0, 1, NONE, NONE, NONE, false},
    {"fchmod", DESCRIPTOR, 0, NONE, NONE, NONE, NONE, false},
    {"fchown", DESCRIPTOR, 0, NONE, NONE, NONE, NONE, false},
    {"fchown32", DESCRIPTOR, 0, NONE, NONE, NONE, NONE, false},
    {"ftruncate", DESCRIPTOR, 0, NONE, NONE, NONE, NONE, false},
    {"ftruncate64", DESCRIPTOR, 0, NONE, NONE, NONE, NONE, false},
    {"fallocate", DESCRIPTOR, 0, NONE, NONE, NONE, NONE, false},
    {"fsetxattr", DESCRIPTOR, 0, NONE, NONE, NONE, NONE, false},
    {"fremovexattr", DESCRIPTOR, 0, NONE, NONE, NONE, NONE, false},
};

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
    out->error = EROFS;
    out->activity_id = activity;
    out->doing = doing;
    out->on_root_mount = mount_of(fd) == mount_of(task_root(task));
    struct statfs status;
    out->let_through = task->learning && fstatfs(fd, &status) == 0 && (status.f_flags & ST_RDONLY) == 0;
    return true;
}

/* By owner and mode, on a mount that is writable. */
static bool refused(struct mutation *out, int error) {
    out->error = error;
    out->let_through = out->on_root_mount = false;
    return true;
}

static bool describe_file(struct task *task, int fd, struct mutation *out, const char *doing) {
    if (!task_place_of(task, fd, out->path))
        return false;
    memcpy(out->place, out->path, sizeof out->place);
    return denied(task, fd, out, 3, doing);
}

static bool describe_name(struct task *task, const struct name *name, struct mutation *out, int activity,
                          const char *doing) {
    if (!task_place_of(task, name->parent, out->place))
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

/* No name in this directory is the task's to change. */
static bool is_closed(const struct task *task, int directory) {
    return task_is_refused(task, directory, S_IWOTH | S_IXOTH);
}

/* For a name in a directory: EROFS before anything else, then EACCES. */
static bool denied_name(struct task *task, const struct name *name, struct mutation *out, int activity,
                        const char *doing) {
    if (is_read_only(task, name->parent))
        return describe_name(task, name, out, activity, doing);
    return is_closed(task, name->parent) && describe_name(task, name, out, activity, doing) &&
           refused(out, EACCES);
}

static bool judge_open_existing(struct task *task, int fd, uint64_t flags, struct mutation *out) {
    if ((flags & O_CREAT) != 0 && (flags & O_EXCL) != 0)
        return false; /* EEXIST */
    struct stat status;
    /* Directories are EISDIR, symlinks ELOOP; devices, pipes and sockets are written to on any mount. */
    if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
        return false;
    const bool truncates = (flags & O_TRUNC) != 0;
    const uint64_t access = flags & O_ACCMODE;
    const bool writes = access == O_WRONLY || access == O_RDWR;
    if (!writes && !truncates)
        return false;
    const bool read_only = is_read_only(task, fd);
    /* Only O_TRUNC is refused by the mount before the mode bits are looked at. */
    if (!(read_only && truncates) &&
        task_is_refused(task, fd, S_IWOTH | (access == O_RDWR || !writes ? S_IROTH : 0)))
        return describe_file(task, fd, out, "writing to") && refused(out, EACCES);
    if (!read_only || (!truncates && task_mode_denies(task, &status, S_IWOTH)))
        return false;
    return describe_file(task, fd, out, "writing to");
}

/* A file that is not there, or a symlink to one: where would it be made? */
static bool judge_open_missing(struct task *task, int directory, const char *path, uint64_t flags,
                               uint64_t how, struct mutation *out) {
    char text[PATH_MAX];
    memcpy(text, path, strlen(path) + 1);
    for (int links = 0; links < LINKS_MAX; links++) {
        struct name name;
        if (!task_resolve_parent(task, directory, text, how, &name))
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
            return denied_name(task, &name, out, 1, "creating");
        }
        if (length == 0 || (size_t)length >= sizeof target || how != 0 || !task_place_of(task, parent, place))
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
        fd_owned int fd = task_resolve(task, directory, path, O_DIRECTORY, how);
        if (fd < 0 || !is_read_only(task, fd) || (flags & O_ACCMODE) == O_RDONLY ||
            !task_place_of(task, fd, out->path))
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
    fd_owned int fd = task_resolve(task, directory, path, (flags & O_NOFOLLOW) != 0 ? O_NOFOLLOW : 0, how);
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
    if (task->data->args[3] < sizeof how || !task_read_memory(task, task->data->args[2], &how, sizeof how))
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
    if (!task_resolve_parent(task, directory, path, 0, &name))
        return false;
    fd_owned int parent = name.parent;
    struct stat status;
    if (name.slash && call->kind != MAKE)
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
        fd_owned int old = task_resolve(task, call->directory, path, flags != 0 ? 0 : O_NOFOLLOW, 0);
        if (old < 0)
            return false;
    }
    char new_path[PATH_MAX];
    return task_read_path(task, call->path2, new_path) &&
           judge_make(task, call, call->directory2, new_path, out);
}

/* unlink, rmdir: the mount is looked at before the name. */
static bool judge_remove(struct task *task, const struct call *call, const char *path, struct mutation *out) {
    if (call->flags != NONE && ((uint32_t)task->data->args[call->flags] & ~(uint32_t)AT_REMOVEDIR) != 0)
        return false;
    struct name name;
    if (!task_resolve_parent(task, call->directory, path, 0, &name))
        return false;
    fd_owned int parent = name.parent;
    struct stat status;
    if (!is_read_only(task, parent) && fstatat(parent, name.last, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    return denied_name(task, &name, out, 4, "removing");
}

/* rename: both names on one mount (EXDEV comes first), which is looked at before the names. */
static bool judge_rename(struct task *task, const struct call *call, const char *path, struct mutation *out) {
    /* RENAME_NOREPLACE, RENAME_EXCHANGE, RENAME_WHITEOUT; the last two exclude each other's company */
    uint32_t flags = call->flags == NONE ? 0 : (uint32_t)task->data->args[call->flags];
    if ((flags & ~7u) != 0 || ((flags & 2) != 0 && (flags & 5) != 0))
        return false;
    char new_path[PATH_MAX];
    struct name old, new;
    if (!task_read_path(task, call->path2, new_path) ||
        !task_resolve_parent(task, call->directory, path, 0, &old))
        return false;
    fd_owned int parent = old.parent;
    const bool read_only = is_read_only(task, parent);
    if ((!read_only && !is_closed(task, parent)) ||
        !task_resolve_parent(task, call->directory2, new_path, 0, &new))
        return false;
    fd_owned int new_parent = new.parent;
    uint64_t mount = mount_of(parent);
    struct stat status;
    if (mount == 0 || mount != mount_of(new_parent))
        return false;
    if (read_only)
        return describe_name(task, &old, out, 5, "renaming");
    return fstatat(parent, old.last, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           describe_name(task, &old, out, 5, "renaming") && refused(out, EACCES);
}

static bool times_read(const struct task *task, struct timespec times[2]) {
    /* Of another ABI they are laid out otherwise: in doubt. */
    return (task->data->arch & __AUDIT_ARCH_64BIT) != 0 &&
           task_read_memory(task, task->data->args[2], times, 2 * sizeof *times);
}

/* utimensat with a time that is not the present. */
static bool times_given(const struct task *task) {
    struct timespec times[2];
    return task->data->args[2] != 0 && times_read(task, times) &&
           (times[0].tv_nsec < UTIME_OMIT || times[1].tv_nsec < UTIME_OMIT);
}

/* What is written to a file's own attributes is written to the file. */
static bool is_user_attribute(const struct task *task, const struct call *call, int fd) {
    /* setxattrat and removexattrat have their flags before the name */
    const int argument = call->path + (call->directory == NONE ? 1 : 2);
    char name[sizeof "user." - 1];
    struct stat status;
    return task_read_memory(task, task->data->args[argument], name, sizeof name) &&
           memcmp(name, "user.", sizeof name) == 0 && fstat(fd, &status) == 0 &&
           (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode));
}

/* EACCES or EPERM for a change of what is on a writable mount; 0 where it succeeds, or in doubt. */
static int refusal_of_change(const struct task *task, const struct call *call, int fd) {
    switch (call->kind) {
    case MODE:
        return task_is_stranger(task, fd, CAPABILITY_FOWNER) ? EPERM : 0;
    case OWNER:
        return task_is_stranger(task, fd, CAPABILITY_CHOWN) ? EPERM : 0;
    case ATTRIBUTE:
        return is_user_attribute(task, call, fd) && task_is_refused(task, fd, S_IWOTH) ? EACCES : 0;
    case TIMES:
    case TIMES_OLD: {
        if (!task_is_stranger(task, fd, CAPABILITY_FOWNER))
            return 0;
        const bool given = call->kind == TIMES ? times_given(task) : task->data->args[call->path + 1] != 0;
        /* The present is anybody's who may write. */
        return given ? EPERM : task_is_refused(task, fd, S_IWOTH) ? EACCES : 0;
    }
    default:
        return 0;
    }
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
    fd_owned int fd = task_resolve(task, call->directory, path, no_follow ? O_NOFOLLOW : 0, 0);
    if (fd < 0)
        return false;
    if (call->kind == TRUNCATE) {
        struct stat status;
        if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
            return false;
        if (task_is_refused(task, fd, S_IWOTH))
            return describe_file(task, fd, out, "writing to") && refused(out, EACCES);
        return is_read_only(task, fd) && !task_mode_denies(task, &status, S_IWOTH) &&
               describe_file(task, fd, out, "writing to");
    }
    if (is_read_only(task, fd))
        return describe_file(task, fd, out, "changing");
    const int error = refusal_of_change(task, call, fd);
    return error != 0 && describe_file(task, fd, out, "changing") && refused(out, error);
}

/* utimensat with two times that are both UTIME_OMIT succeeds without a look at the file. */
static bool times_change(const struct task *task) {
    struct timespec times[2];
    if (task->data->args[2] == 0)
        return true;
    if (!times_read(task, times))
        return false;
    for (int i = 0; i < 2; i++)
        if (times[i].tv_nsec != UTIME_OMIT && times[i].tv_nsec != UTIME_NOW &&
            (times[i].tv_nsec < 0 || times[i].tv_nsec > 999999999))
            return false; /* EINVAL */
    return times[0].tv_nsec != UTIME_OMIT || times[1].tv_nsec != UTIME_OMIT;
}

static bool judge(struct task *task, const struct call *call, struct mutation *out) {
    char path[PATH_MAX];
    if (call->kind == EXECUTE || call->kind == DESCRIPTOR)
        return false;
    if (!task_read_path(task, call->path, path))
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
    case ATTRIBUTE:
    case TIMES_OLD:
    case MODE:
    case OWNER:
    case TRUNCATE:
        return judge_change(task, call, path, out);
    case EXECUTE:
    case DESCRIPTOR:
        break;
    }
    return false;
}

static const struct call *call_find(const char *name) {
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (strcmp(calls[i].name, name) == 0)
            return &calls[i];
    return NULL;
}

bool mutation_judge(const char *name, const struct seccomp_data *data, pid_t pid, bool learning,
                    struct mutation *out) {
    const struct call *call = call_find(name);
    if (call == NULL)
        return false;
    struct task task = {.pid = pid, .data = data, .root = -1, .learning = learning};
    bool result = judge(&task, call, out);
    out->of_owner = call->kind == OWNER || call->kind == MODE;
    fd_close(task.root);
    return result;
}

/* --- what was denied --- */

static uint64_t open_flags(const struct task *task, const struct call *call) {
    struct open_how how;
    if (call->kind == CREAT)
        return O_WRONLY | O_CREAT | O_TRUNC;
    if (call->kind == OPEN)
        return (uint32_t)task->data->args[call->flags];
    return task_read_memory(task, task->data->args[2], &how, sizeof how) ? how.flags : 0;
}

static void describe_kind(const struct task *task, const struct call *call, struct mutation *out) {
    static const struct {
        int activity_id;
        const char *doing;
    } kinds[] = {
        [MAKE] = {1, "creating"},      [MAKE_NODE] = {1, "creating"},  [SYMLINK] = {1, "creating"},
        [LINK] = {1, "creating"},      [REMOVE] = {4, "removing"},     [RENAME] = {5, "renaming"},
        [ATTRIBUTE] = {3, "changing"}, [MODE] = {3, "changing"},       [OWNER] = {3, "changing"},
        [TIMES] = {3, "changing"},     [TIMES_OLD] = {3, "changing"},  [TRUNCATE] = {3, "writing to"},
        [EXECUTE] = {2, "executing"},  [DESCRIPTOR] = {3, "changing"},
    };
    out->activity_id = kinds[call->kind].activity_id;
    out->doing = kinds[call->kind].doing;
    if (call->kind != OPEN && call->kind != OPENAT2 && call->kind != CREAT)
        return;
    const uint64_t flags = open_flags(task, call);
    const bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0;
    out->activity_id = writes ? 3 : 2;
    out->doing = writes ? "writing to" : "reading";
}

/* The file itself where it is there, else its name in its directory, else the words of the call. */
static void describe_place(struct task *task, const struct call *call, const char *path,
                           struct mutation *out) {
    const bool follow = !call->no_follow && call->kind != LINK;
    const bool by_descriptor = call->kind == DESCRIPTOR || (path[0] == '\0' && call->directory != NONE);
    fd_owned int file = by_descriptor ? task_base(task, call->directory)
                                      : task_resolve(task, call->directory, path, follow ? 0 : O_NOFOLLOW, 0);
    if (file >= 0 && task_place_of(task, file, out->path)) {
        out->on_root_mount = mount_of(file) == mount_of(task_root(task));
        memcpy(out->place, out->path, sizeof out->place);
        return;
    }
    struct name name;
    if (!by_descriptor && task_resolve_parent(task, call->directory, path, 0, &name)) {
        const int activity = out->activity_id;
        const char *doing = out->doing;
        bool told =
            describe_name(task, &name, out, activity == 3 ? 1 : activity, activity == 3 ? "creating" : doing);
        fd_close(name.parent);
        if (told)
            return;
    }
    snprintf(out->path, sizeof out->path, "%s", path[0] != '\0' ? path : "(a descriptor)");
    memcpy(out->place, out->path, sizeof out->place);
}

bool mutation_describe(const char *name, const struct seccomp_data *data, pid_t pid, int error,
                       const char *const paths[2], struct mutation *out) {
    const struct call *call = call_find(name);
    if (call == NULL)
        return false;
    struct task task = {
        .pid = pid, .data = data, .root = -1, .recorded = paths, .recorded_first = call->path};
    *out = (struct mutation){0};
    /* As the observer tells it that is asked before the call, where both say the same. */
    if (!judge(&task, call, out) || out->error != error) {
        const bool makes = call->kind == LINK || call->kind == SYMLINK;
        struct call only = *call;
        if (makes) {
            only.directory = call->directory2;
            only.path = call->path2;
        }
        describe_kind(&task, call, out);
        describe_place(&task, &only, paths[makes], out);
    }
    out->error = error;
    out->let_through = false;
    fd_close(task.root);
    return true;
}
