#include "warden/task.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "sys/calls.h"
#include "warden/walk.h"

#define CAPABILITY_DAC_OVERRIDE 1
#define CAPABILITY_DAC_READ_SEARCH 2

/* --- what the task wrote down --- */

bool task_read_memory(const struct task *task, uint64_t address, void *out, size_t size) {
    struct iovec local = {out, size}, remote = {(void *)(uintptr_t)address, size};
    return process_vm_readv(task->pid, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

bool task_read_path(const struct task *task, int argument, char out[PATH_MAX]) {
    if (task->recorded != NULL) {
        const char *path = task->recorded[argument != task->recorded_first];
        return snprintf(out, PATH_MAX, "%s", path) < PATH_MAX && out[0] != '\0';
    }
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

int task_root(struct task *task) {
    if (task->root < 0) {
        char link[32];
        snprintf(link, sizeof link, "/proc/%d/root", (int)task->pid);
        task->root = open(link, O_PATH | O_DIRECTORY | O_CLOEXEC);
    }
    return task->root;
}

int task_base(const struct task *task, int argument) {
    int number = argument == NONE ? AT_FDCWD : (int)task->data->args[argument];
    char link[48];
    if (number == AT_FDCWD)
        snprintf(link, sizeof link, "/proc/%d/cwd", (int)task->pid);
    else
        snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)task->pid, number);
    return open(link, O_PATH | O_CLOEXEC);
}

bool task_place_of(struct task *task, int fd, char out[PATH_MAX]) {
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
    if (!task_place_of(task, base, place) || fstat(base, &here) < 0)
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
int task_resolve(struct task *task, int directory, const char *path, uint64_t flags, uint64_t how) {
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

bool task_resolve_parent(struct task *task, int directory, const char *path, uint64_t how, struct name *out) {
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
    out->parent = task_resolve(task, directory, slash != NULL ? text : ".", O_DIRECTORY, how);
    return out->parent >= 0;
}

/* --- owners and mode bits --- */

struct identity {
    unsigned uid, gid;
    unsigned long long capabilities;
    char text[4096]; /* of /proc/PID/status, in which the groups are */
};

static bool identity_read(const struct task *task, struct identity *out) {
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/status", (int)task->pid);
    fd_owned int status = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = status >= 0 ? read(status, out->text, sizeof out->text - 1) : -1;
    if (length <= 0)
        return false;
    out->text[length] = '\0';
    const char *uids = strstr(out->text, "\nUid:"), *gids = strstr(out->text, "\nGid:"),
               *caps = strstr(out->text, "\nCapEff:");
    return uids != NULL && gids != NULL && caps != NULL &&
           sscanf(uids, "\nUid: %*u %*u %*u %u", &out->uid) == 1 &&
           sscanf(gids, "\nGid: %*u %*u %*u %u", &out->gid) == 1 &&
           sscanf(caps, "\nCapEff: %llx", &out->capabilities) == 1;
}

static bool has_capability(const struct identity *identity, int capability) {
    return (identity->capabilities >> capability & 1) != 0;
}

static bool is_member(const struct identity *identity, unsigned group) {
    bool member = identity->gid == group;
    const char *groups = strstr(identity->text, "\nGroups:");
    for (const char *at = groups != NULL ? groups + strlen("\nGroups:") : ""; !member;) {
        char *end;
        unsigned long number = strtoul(at, &end, 10);
        const char *line_end = strchr(at, '\n');
        if (end == at || (line_end != NULL && end > line_end))
            break;
        member = number == group;
        at = end;
    }
    return member;
}

static bool mode_denies(const struct identity *identity, const struct stat *file, mode_t bit) {
    if (has_capability(identity, CAPABILITY_DAC_OVERRIDE) &&
        (bit != S_IXOTH || S_ISDIR(file->st_mode) || (file->st_mode & 0111) != 0))
        return false;
    if (has_capability(identity, CAPABILITY_DAC_READ_SEARCH) &&
        (bit == S_IROTH || (bit == S_IXOTH && S_ISDIR(file->st_mode))))
        return false;
    if (identity->uid == file->st_uid)
        return (file->st_mode & (bit << 6)) == 0;
    return (file->st_mode & (is_member(identity, file->st_gid) ? bit << 3 : bit)) == 0;
}

bool task_mode_denies(const struct task *task, const struct stat *file, mode_t bit) {
    struct identity identity;
    return !identity_read(task, &identity) || mode_denies(&identity, file, bit);
}

/* The owner of its directory in /proc is who the task acts as, or root where it may not be looked into. */
static bool is_plainly_owner(const struct task *task, const struct stat *file) {
    char path[32];
    struct stat status;
    snprintf(path, sizeof path, "/proc/%d", (int)task->pid);
    return stat(path, &status) == 0 && status.st_uid == file->st_uid;
}

/* Of file systems known to ask owners and modes and nothing else. A server, or the program behind FUSE, has
 * an answer of its own, and so has /proc. */
static bool goes_by_mode(int fd) {
    struct statfs status;
    if (fstatfs(fd, &status) < 0)
        return false;
    switch ((unsigned long)status.f_type) {
    case EXT4_SUPER_MAGIC:
    case XFS_SUPER_MAGIC:
    case BTRFS_SUPER_MAGIC:
    case F2FS_SUPER_MAGIC:
    case TMPFS_MAGIC:
    case OVERLAYFS_SUPER_MAGIC:
        return true;
    default:
        return false;
    }
}

bool task_is_refused(const struct task *task, int fd, mode_t bits) {
    struct stat file;
    struct identity identity;
    char link[32];
    if (fstat(fd, &file) < 0 || S_ISLNK(file.st_mode))
        return false;
    /* Nearly always one of these, for a third of what reading the task's status costs. */
    if ((file.st_mode & (bits | bits << 3 | bits << 6)) == (bits | bits << 3 | bits << 6) ||
        ((file.st_mode & bits << 6) == bits << 6 && is_plainly_owner(task, &file)))
        return false;
    if (!goes_by_mode(fd) || !identity_read(task, &identity))
        return false;
    bool refused = false;
    for (mode_t bit = S_IXOTH; bit <= S_IROTH; bit <<= 1)
        refused |= (bits & bit) != 0 && mode_denies(&identity, &file, bit);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    return refused && getxattr(link, "system.posix_acl_access", NULL, 0) <= 0;
}

bool task_is_stranger(const struct task *task, int fd, int capability) {
    struct stat file;
    struct identity identity;
    return fstat(fd, &file) == 0 && !is_plainly_owner(task, &file) && goes_by_mode(fd) &&
           identity_read(task, &identity) && identity.uid != file.st_uid &&
           !has_capability(&identity, capability);
}
