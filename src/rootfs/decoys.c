#include "rootfs/decoys.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"
#include "rootfs/attach.h"
#include "sys/calls.h"

static struct error *decoy_write(int store, const char *name, const char *content, int *source) {
    fd_owned int fd = openat(store, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_system(errno, "create", "decoy %s", name);
    TRY(fd_write_all(fd, content, strlen(content), name));
    /* Readable by everybody: a permission event comes after the mode was checked, and a decoy that the mode
     * hides would give no sign of who asked for it. */
    if (fchmod(fd, 0444) < 0)
        return error_system(errno, "chmod", "decoy %s", name);
    *source = openat(store, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (*source < 0)
        return error_system(errno, "open", "decoy %s", name);
    return NULL;
}

static struct error *decoy_place(const struct rootfs *root, const char *path, uid_t uid, gid_t gid,
                                 int source) {
    memory_owned char *parent = memory_copy_string(path);
    char *slash = strrchr(parent, '/');
    if (slash == NULL || slash == parent)
        return error_new(ERROR_INVALID, "%s: expected a path in a home directory", path);
    *slash = '\0';
    fd_owned int directory = -1;
    struct error *error =
        rootfs_open_plain(root, (struct container_path){parent}, O_PATH | O_DIRECTORY, &directory);
    if (error != NULL && error->number == ENOENT) {
        error_ignore(error);
        error = rootfs_make_directory(root, (struct container_path){parent}, 0700, uid, gid, &directory);
    }
    /* A symlink of the image could lead into a directory of the user's, where we would leave files. */
    if (error != NULL && (error->number == ELOOP || error->number == ENOTDIR)) {
        error_ignore(error);
        return NULL;
    }
    TRY(error);
    fd_owned int target = -1;
    TRY(rootfs_make_file(root, (struct container_path){path}, uid, gid, &target));
    fd_owned int tree = -1;
    TRY(mount_copy(source, false, path, &tree));
    TRY(mount_change(tree, false,
                     MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, 0, path));
    return mount_attach(tree, target, path);
}

struct error *decoys_attach(const struct rootfs *root, const struct decoy_request *requests, size_t count,
                            uid_t uid, gid_t gid, int store, int *sources) {
    for (size_t i = 0; i < count; i++)
        sources[i] = -1;
    for (size_t i = 0; i < count; i++) {
        memory_owned char *name = text_formatted("%zu", i);
        TRY(decoy_write(store, name, requests[i].content, &sources[i]));
        TRY(error_context(decoy_place(root, requests[i].path, uid, gid, sources[i]), "decoy %s",
                          requests[i].path));
    }
    return NULL;
}
