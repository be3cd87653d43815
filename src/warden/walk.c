#include "warden/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "sys/calls.h"

#define LINKS_MAX 40 /* as many symlinks as the kernel follows */
#define PROC_ROOT_INODE 1

struct walk {
    pid_t pid;
    int root;
    int at;                  /* O_PATH, owned */
    char rest[2 * PATH_MAX]; /* still to go */
    int links;
};

static bool step_to(struct walk *walk, int fd) {
    if (fd < 0)
        return false;
    fd_close(walk->at);
    walk->at = fd;
    return true;
}

static bool step_to_root(struct walk *walk) {
    return step_to(walk, openat(walk->root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

static bool is_root(const struct walk *walk) {
    struct statx here, root;
    return statx(walk->at, "", AT_EMPTY_PATH, STATX_INO | STATX_MNT_ID, &here) == 0 &&
           statx(walk->root, "", AT_EMPTY_PATH, STATX_INO | STATX_MNT_ID, &root) == 0 &&
           here.stx_ino == root.stx_ino && here.stx_dev_minor == root.stx_dev_minor &&
           here.stx_dev_major == root.stx_dev_major && here.stx_mnt_id == root.stx_mnt_id;
}

static bool is_proc(int fd) {
    struct statfs status;
    return fstatfs(fd, &status) == 0 && status.f_type == PROC_SUPER_MAGIC;
}

/* The number by which the process knows itself: the last of NSpid. 0 where it cannot be read. */
static int own_number(pid_t pid) {
    char text[4096];
    snprintf(text, sizeof text, "/proc/%d/status", (int)pid);
    fd_owned int fd = open(text, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (length <= 0)
        return 0;
    text[length] = '\0';
    char *line = strstr(text, "\nNSpid:");
    if (line == NULL)
        return 0;
    line[1 + strcspn(line + 1, "\n")] = '\0';
    const char *last = strrchr(line, '\t');
    return last != NULL ? (int)strtol(last + 1, NULL, 10) : 0;
}

/* Puts a link's text before what is left. */
static bool prepend(struct walk *walk, const char *target) {
    char joined[2 * PATH_MAX];
    int length = snprintf(joined, sizeof joined, "%s/%s", target, walk->rest);
    if (length >= (int)sizeof joined || ++walk->links > LINKS_MAX)
        return false;
    memcpy(walk->rest, joined, (size_t)length + 1);
    return target[0] != '/' || step_to_root(walk);
}

static bool follow(struct walk *walk, const char *name) {
    char target[PATH_MAX];
    if (is_proc(walk->at)) {
        struct stat status;
        bool self = strcmp(name, "self") == 0 || strcmp(name, "thread-self") == 0;
        if (self && fstat(walk->at, &status) == 0 && status.st_ino == PROC_ROOT_INODE) {
            snprintf(target, sizeof target, "%d", own_number(walk->pid));
            return prepend(walk, target);
        }
        fd_owned int plain = sys_openat2(walk->at, name, O_PATH | O_CLOEXEC, 0, RESOLVE_NO_MAGICLINKS);
        if (plain < 0 && errno == ELOOP)
            /* Where the link stands for a file, not for a path. */
            return ++walk->links <= LINKS_MAX && step_to(walk, openat(walk->at, name, O_PATH | O_CLOEXEC));
    }
    ssize_t length = readlinkat(walk->at, name, target, sizeof target - 1);
    if (length <= 0)
        return false;
    target[length] = '\0';
    return prepend(walk, target);
}

static bool step(struct walk *walk, const char *name, bool no_follow) {
    if (strcmp(name, ".") == 0)
        return true;
    if (strcmp(name, "..") == 0)
        return is_root(walk) || step_to(walk, openat(walk->at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
    fd_owned int next = openat(walk->at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct stat status;
    if (next < 0 || fstat(next, &status) < 0)
        return false;
    if (S_ISLNK(status.st_mode) && !no_follow)
        return follow(walk, name);
    return step_to(walk, fd_take(&next));
}

int walk_path(pid_t pid, int root, int base, const char *path, bool no_follow) {
    if (strlen(path) >= PATH_MAX)
        return -1;
    struct walk walk = {.pid = pid, .root = root, .at = -1};
    memcpy(walk.rest, path, strlen(path) + 1);
    bool going = path[0] == '/' ? step_to_root(&walk)
                                : step_to(&walk, openat(base, ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
    while (going) {
        const char *rest = walk.rest + strspn(walk.rest, "/");
        size_t length = strcspn(rest, "/");
        if (length == 0)
            return walk.at;
        char name[NAME_MAX + 1];
        if (length > NAME_MAX)
            break;
        memcpy(name, rest, length);
        name[length] = '\0';
        memmove(walk.rest, rest + length, strlen(rest + length) + 1);
        going = step(&walk, name, no_follow && strspn(walk.rest, "/") == strlen(walk.rest));
    }
    fd_close(walk.at);
    return -1;
}
