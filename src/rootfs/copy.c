/* The content of a directory, or of one file, into another directory: for tmpcopyup and scratch places in
 * memory. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "rootfs/mounts.h"

#define DEPTH_MAX 64

struct copy {
    uint64_t left; /* bytes still allowed */
    const char *subject;
};

static struct error *copy_directory(struct copy *copy, int from, int to, int depth);

static struct error *copy_metadata(struct copy *copy, int fd, const struct stat *status, const char *name) {
    /* EINVAL: an owner that the user namespace does not map; the file then stays the container root's. */
    if (fchown(fd, status->st_uid, status->st_gid) < 0 && errno != EINVAL && errno != EPERM)
        return error_system(errno, "chown", "%s in the copy of %s", name, copy->subject);
    if (fchmod(fd, status->st_mode & 07777) < 0)
        return error_system(errno, "chmod", "%s in the copy of %s", name, copy->subject);
    struct timespec times[2] = {status->st_atim, status->st_mtim};
    if (futimens(fd, times) < 0)
        return error_system(errno, "utimens", "%s in the copy of %s", name, copy->subject);
    return NULL;
}

/* user.* and security.capability; what the tmpfs cannot hold is left out, as cp -a does. */
static void copy_attributes(int from, int to) {
    char names[4096];
    ssize_t length = flistxattr(from, names, sizeof names);
    for (ssize_t at = 0; at < length; at += (ssize_t)strlen(names + at) + 1) {
        char value[4096];
        ssize_t size = fgetxattr(from, names + at, value, sizeof value);
        if (size >= 0)
            (void)!fsetxattr(to, names + at, value, (size_t)size, 0);
    }
}

static struct error *copy_content(struct copy *copy, int source, int to, const char *name,
                                  const struct stat *status) {
    fd_owned int copied = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (copied < 0)
        return error_system(errno, "create", "%s in the copy of %s", name, copy->subject);
    char buffer[65536];
    for (;;) {
        ssize_t length = read(source, buffer, sizeof buffer);
        if (length < 0)
            return error_system(errno, "read", "%s in %s", name, copy->subject);
        if (length == 0)
            break;
        if ((uint64_t)length > copy->left)
            return error_new(
                ERROR_REFUSED,
                "filesystem.scratch: %s holds too much to be copied into memory; mount a volume there",
                copy->subject);
        copy->left -= (uint64_t)length;
        TRY(fd_write_all(copied, buffer, (size_t)length, name));
    }
    copy_attributes(source, copied);
    return copy_metadata(copy, copied, status, name);
}

static struct error *copy_file(struct copy *copy, int from, int to, const char *name,
                               const struct stat *status) {
    fd_owned int source = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (source < 0)
        return error_system(errno, "open", "%s in %s", name, copy->subject);
    return copy_content(copy, source, to, name, status);
}

static struct error *copy_entry(struct copy *copy, int from, int to, const char *name, int depth) {
    struct stat status;
    if (fstatat(from, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return error_system(errno, "stat", "%s in %s", name, copy->subject);
    if (S_ISREG(status.st_mode))
        return copy_file(copy, from, to, name, &status);
    if (S_ISLNK(status.st_mode)) {
        char target[PATH_MAX];
        ssize_t length = readlinkat(from, name, target, sizeof target - 1);
        if (length < 0)
            return error_system(errno, "readlink", "%s in %s", name, copy->subject);
        target[length] = '\0';
        if (symlinkat(target, to, name) < 0)
            return error_system(errno, "symlink", "%s in the copy of %s", name, copy->subject);
        (void)!fchownat(to, name, status.st_uid, status.st_gid, AT_SYMLINK_NOFOLLOW);
        return NULL;
    }
    if (!S_ISDIR(status.st_mode))
        return NULL; /* sockets, FIFOs and devices of a place for temporary files are of no use to a new
                        container */
    if (mkdirat(to, name, 0700) < 0)
        return error_system(errno, "mkdir", "%s in the copy of %s", name, copy->subject);
    fd_owned int inner_from = openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    fd_owned int inner_to = openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inner_from < 0 || inner_to < 0)
        return error_system(errno, "open", "%s in %s", name, copy->subject);
    TRY(copy_directory(copy, inner_from, inner_to, depth + 1));
    copy_attributes(inner_from, inner_to);
    return copy_metadata(copy, inner_to, &status, name);
}

static void directory_close(DIR **directory) {
    if (*directory != NULL)
        closedir(*directory);
}

static struct error *copy_directory(struct copy *copy, int from, int to, int depth) {
    if (depth > DEPTH_MAX)
        return error_system(ELOOP, "copy", "%s", copy->subject);
    int duplicate = fcntl(from, F_DUPFD_CLOEXEC, 0);
    if (duplicate < 0)
        return error_system(errno, "duplicate", "a descriptor of %s", copy->subject);
    __attribute__((cleanup(directory_close))) DIR *directory = fdopendir(duplicate);
    if (directory == NULL) {
        int number = errno;
        fd_close(duplicate);
        return error_system(number, "read", "directory %s", copy->subject);
    }
    struct dirent *entry;
    while ((errno = 0, entry = readdir(directory)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        TRY(copy_entry(copy, from, to, entry->d_name, depth));
    }
    if (errno != 0)
        return error_system(errno, "read", "directory %s", copy->subject);
    return NULL;
}

struct error *directory_copy(int from, int to, uint64_t limit, const char *subject) {
    struct copy copy = {.left = limit, .subject = subject};
    copy_attributes(from, to);
    return copy_directory(&copy, from, to, 0);
}

struct error *file_copy(int from, int to, const char *name, uint64_t limit, const char *subject) {
    struct copy copy = {.left = limit, .subject = subject};
    struct stat status;
    if (fstat(from, &status) < 0)
        return error_system(errno, "stat", "%s", subject);
    return copy_content(&copy, from, to, name, &status);
}
