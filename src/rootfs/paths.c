#include "rootfs/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"
#include "sys/calls.h"

#define DANGLING_LINKS_MAX 16

static int open_resolved(int root, const char *path, int flags, uint64_t resolve) {
    return sys_openat2(root, path, (uint64_t)flags, 0, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | resolve);
}

static int open_in_root(int root, const char *path, int flags) {
    return open_resolved(root, path, flags, 0);
}

struct error *rootfs_open_plain(const struct rootfs *root, struct container_path path, int flags, int *out) {
    *out = open_resolved(root->fd, path.text, flags, RESOLVE_NO_SYMLINKS);
    if (*out < 0)
        return error_system(errno, "open", "%s in the container's root", path.text);
    return NULL;
}

struct error *rootfs_open_same_mount(const struct rootfs *root, struct container_path path, int flags,
                                     int *out) {
    *out = open_resolved(root->fd, path.text, flags, RESOLVE_NO_XDEV);
    if (*out < 0)
        return error_system(errno, "open", "%s in the container's root", path.text);
    return NULL;
}

struct error *rootfs_open(const struct rootfs *root, struct container_path path, int flags, int *out) {
    *out = open_in_root(root->fd, path.text, flags);
    if (*out < 0)
        return error_system(errno, "open", "%s in the container's root", path.text);
    return NULL;
}

char *container_path_clean(const char *path) {
    struct text clean = {0};
    const char *next = path;
    while (*next != '\0') {
        while (*next == '/')
            next++;
        size_t length = strcspn(next, "/");
        if (length == 2 && strncmp(next, "..", 2) == 0) {
            char *slash = clean.length > 0 ? strrchr(clean.data, '/') : NULL;
            clean.length = slash ? (size_t)(slash - clean.data) : 0;
            if (clean.data != NULL)
                clean.data[clean.length] = '\0';
        } else if (length > 0 && !(length == 1 && next[0] == '.')) {
            text_append(&clean, "/");
            text_append_bytes(&clean, next, length);
        }
        next += length;
    }
    if (clean.length == 0)
        text_append(&clean, "/");
    return text_take(&clean);
}

/* What a symlink at directory/name points to, as a path in the root; NULL when it is no symlink. */
static char *link_target(int directory, const char *name, const char *directory_path) {
    char target[PATH_MAX];
    ssize_t length = readlinkat(directory, name, target, sizeof target - 1);
    if (length < 0)
        return NULL;
    target[length] = '\0';
    return target[0] == '/' ? memory_copy_string(target) : text_formatted("%s/%s", directory_path, target);
}

/* The first part of a path that is no directory, for the message (crun #307). */
static char *first_file_of(const struct rootfs *root, const char *path) {
    for (size_t length = 1; path[length - 1] != '\0'; length++) {
        if (path[length] != '/' && path[length] != '\0')
            continue;
        memory_owned char *part = strndup(path, length);
        fd_owned int fd = open_in_root(root->fd, part, O_PATH);
        struct stat status;
        if (fd >= 0 && fstat(fd, &status) == 0 && !S_ISDIR(status.st_mode))
            return text_formatted("%s", part);
    }
    return memory_copy_string(path);
}

static struct error *make_directory(const struct rootfs *root, const char *path, mode_t mode, uid_t uid,
                                    gid_t gid, int depth, int *out) {
    *out = open_in_root(root->fd, path, O_PATH | O_DIRECTORY);
    if (*out >= 0)
        return NULL;
    if (errno == ENOTDIR) {
        memory_owned char *file = first_file_of(root, path);
        return error_system(ENOTDIR, "open", "directory %s in the container's root: %s", path, file);
    }
    if (errno != ENOENT)
        return error_system(errno, "open", "directory %s in the container's root", path);
    if (depth > DANGLING_LINKS_MAX)
        return error_system(ELOOP, "open", "directory %s in the container's root", path);

    memory_owned char *clean = container_path_clean(path);
    char *slash = strrchr(clean, '/');
    memory_owned char *name = memory_copy_string(slash + 1);
    memory_owned char *parent =
        slash == clean ? memory_copy_string("/") : strndup(clean, (size_t)(slash - clean));
    if (name[0] == '\0' || strcmp(name, "..") == 0)
        return error_system(ENOENT, "open", "directory %s in the container's root", path);

    fd_owned int directory = -1;
    TRY(make_directory(root, parent, 0755, (uid_t)-1, (gid_t)-1, depth + 1, &directory));
    bool made = mkdirat(directory, name, mode) == 0;
    if (!made && errno != EEXIST)
        return error_system(errno, "mkdir", "%s in the container's root", clean);
    *out = openat(directory, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (*out < 0) {
        int number = errno;
        /* A symlink to nothing, such as /var/run -> /run in an image without /run: its target is made, in the
         * root. */
        memory_owned char *target = link_target(directory, name, parent);
        if (target == NULL)
            return error_system(number, "open", "directory %s in the container's root", clean);
        return make_directory(root, target, mode, uid, gid, depth + 1, out);
    }
    /* Mode and owner are set on what was made here, never on what the image has; the umask does not matter.
     */
    memory_owned char *self = text_formatted("/proc/self/fd/%d", *out);
    if (made && chmod(self, mode) < 0)
        return error_system(errno, "chmod", "%s in the container's root", clean);
    if (made && uid != (uid_t)-1 && fchownat(*out, "", uid, gid, AT_EMPTY_PATH) < 0)
        return error_system(errno, "chown", "%s in the container's root", clean);
    return NULL;
}

struct error *rootfs_make_directory(const struct rootfs *root, struct container_path path, mode_t mode,
                                    uid_t uid, gid_t gid, int *out) {
    memory_owned char *clean = container_path_clean(path.text);
    return make_directory(root, clean, mode, uid, gid, 0, out);
}

struct error *rootfs_open_parent(const struct rootfs *root, struct container_path path, int *directory,
                                 char **name) {
    memory_owned char *clean = container_path_clean(path.text);
    char *slash = strrchr(clean, '/');
    if (slash[1] == '\0' || strcmp(slash + 1, "..") == 0)
        return error_new(ERROR_INVALID, "%s: expected a path below the container's root", path.text);
    *name = memory_copy_string(slash + 1);
    if (slash == clean)
        slash++;
    *slash = '\0';
    struct error *error = make_directory(root, clean, 0755, (uid_t)-1, (gid_t)-1, 0, directory);
    if (error != NULL) {
        free(*name);
        *name = NULL;
    }
    return error;
}

static struct error *make_file(const struct rootfs *root, struct container_path path, uid_t uid, gid_t gid,
                               bool follow, int depth, int *out) {
    memory_owned char *clean = container_path_clean(path.text);
    *out = open_in_root(root->fd, clean, O_PATH);
    if (*out >= 0)
        return NULL;
    if (errno != ENOENT)
        return error_system(errno, "open", "%s in the container's root", path.text);
    if (depth > DANGLING_LINKS_MAX)
        return error_system(ELOOP, "open", "%s in the container's root", path.text);
    fd_owned int directory = -1;
    memory_owned char *name = NULL;
    TRY(rootfs_open_parent(root, path, &directory, &name));
    fd_owned int file = openat(directory, name, O_RDONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (file < 0) {
        int number = errno;
        memory_owned char *parent = strndup(clean, (size_t)(strrchr(clean, '/') - clean));
        memory_owned char *target = follow && number == EEXIST ? link_target(directory, name, parent) : NULL;
        if (target != NULL)
            return make_file(root, (struct container_path){target}, uid, gid, follow, depth + 1, out);
        return error_system(number, "create", "%s in the container's root", path.text);
    }
    if (uid != (uid_t)-1 && fchown(file, uid, gid) < 0)
        return error_system(errno, "chown", "%s in the container's root", path.text);
    *out = openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (*out < 0)
        return error_system(errno, "open", "%s in the container's root", path.text);
    return NULL;
}

struct error *rootfs_make_file(const struct rootfs *root, struct container_path path, uid_t uid, gid_t gid,
                               int *out) {
    return make_file(root, path, uid, gid, false, 0, out);
}

struct error *rootfs_make_mount_point(const struct rootfs *root, struct container_path path, int *out) {
    return make_file(root, path, (uid_t)-1, (gid_t)-1, true, 0, out);
}
