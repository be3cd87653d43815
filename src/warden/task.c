#include "warden/task.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
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

/* --- mode bits --- */

bool task_mode_denies(const struct task *task, const struct stat *file, mode_t bit) {
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
    if ((capabilities >> CAPABILITY_DAC_OVERRIDE & 1) != 0 && (bit != S_IXOTH || (file->st_mode & 0111) != 0))
        return false;
    if ((capabilities >> CAPABILITY_DAC_READ_SEARCH & 1) != 0 && bit == S_IROTH)
        return false;
    if (uid == file->st_uid)
        return (file->st_mode & (bit << 6)) == 0;
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
    return (file->st_mode & (member ? bit << 3 : bit)) == 0;
}
