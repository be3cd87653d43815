#include "sys/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"
#include "sys/calls.h"

#define PROC_ROOT_INODE 1 /* PROC_ROOT_INO of the kernel; a bind mount of a directory below has another */

static int detached_open(enum procfs_part part) {
    fd_owned int fs = sys_fsopen("proc", 0);
    if (fs < 0)
        return -1;
    /* A kernel without it (before 5.8) gives the whole. */
    if (part == PROCFS_PROCESSES)
        (void)!sys_fsconfig(fs, FSCONFIG_SET_STRING, "subset", "pid", 0);
    if (sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return -1;
    return sys_fsmount(fs, 0, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
}

static bool is_procfs(int fd) {
    struct statfs fs;
    return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

struct error *procfs_open(enum procfs_part part, struct procfs *out) {
    out->fd = detached_open(part);
    if (out->fd >= 0)
        return NULL;
    fd_owned int mounted = open("/proc", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat status;
    if (mounted < 0)
        return error_system(errno, "open", "/proc");
    if (!is_procfs(mounted) || fstat(mounted, &status) < 0 || status.st_ino != PROC_ROOT_INODE)
        return error_new(ERROR_REFUSED, "/proc is not a procfs; nothing is written there (CVE-2019-16884)");
    out->fd = fd_take(&mounted);
    return NULL;
}

void procfs_close(struct procfs *procfs) {
    fd_close(fd_take(&procfs->fd));
}

struct error *procfs_open_file(const struct procfs *procfs, const char *path, int flags, int *out) {
    *out = sys_openat2(procfs->fd, path, (uint64_t)flags, 0,
                       RESOLVE_BENEATH | RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS);
    if (*out < 0 && errno == EXDEV)
        return error_new(ERROR_REFUSED, "/proc/%s: something is mounted over it (CVE-2025-52881)", path);
    if (*out < 0)
        return error_system(errno, "open", "/proc/%s", path);
    if (!is_procfs(*out)) {
        fd_close(fd_take(out));
        return error_new(ERROR_REFUSED, "/proc/%s is not a file of procfs (CVE-2025-52881)", path);
    }
    return NULL;
}

struct error *procfs_write(const struct procfs *procfs, const char *path, const char *value) {
    fd_owned int file = -1;
    TRY(procfs_open_file(procfs, path, O_WRONLY, &file));
    size_t length = strlen(value);
    ssize_t written = write(file, value, length);
    if (written < 0)
        return error_system(errno, "write", "/proc/%s", path);
    if ((size_t)written != length)
        return error_system(EIO, "write", "/proc/%s", path);
    return NULL;
}

struct error *procfs_write_process(const struct procfs *procfs, pid_t pid, const char *file,
                                   const char *value) {
    memory_owned char *path = text_formatted("%d/%s", (int)pid, file);
    return procfs_write(procfs, path, value);
}

struct error *procfs_open_namespace(const struct procfs *procfs, pid_t pid, const char *name, int *out) {
    memory_owned char *path = text_formatted("%d/ns", (int)pid);
    fd_owned int directory = -1;
    TRY(procfs_open_file(procfs, path, O_PATH | O_DIRECTORY, &directory));
    *out = openat(directory, name, O_RDONLY | O_CLOEXEC); /* the last step is a link of the kernel's own */
    if (*out < 0)
        return error_system(errno, "open", "/proc/%s/%s", path, name);
    return NULL;
}
