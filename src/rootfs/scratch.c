#include "rootfs/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/text.h"
#include "rootfs/attach.h"
#include "rootfs/mounts.h"
#include "sys/calls.h"

#define ATTRIBUTES (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

static struct error *own_layer(int place, const char *path) {
    fd_owned int tree = -1;
    TRY(mount_copy(place, false, path, &tree));
    TRY(mount_change(tree, false, ATTRIBUTES, MOUNT_ATTR_RDONLY, path));
    return mount_attach(tree, place, path);
}

static struct error *directory_in_memory(const struct rootfs *root, int place, const char *path) {
    struct stat status;
    if (fstat(place, &status) < 0)
        return error_system(errno, "stat", "%s in the container's root", path);
    string_list_owned struct string_list data = {0};
    string_list_append_owned(&data, text_formatted("mode=%o", status.st_mode & 07777));
    fd_owned int tree = -1;
    TRY(mount_new("tmpfs", "tmpfs", &data, ATTRIBUTES, &tree));
    if (fchownat(tree, "", status.st_uid, status.st_gid, AT_EMPTY_PATH) < 0 && errno != EINVAL)
        return error_system(errno, "chown", "%s in the container's root", path);
    fd_owned int from = -1;
    TRY(rootfs_open(root, (struct container_path){path}, O_RDONLY | O_DIRECTORY, &from));
    TRY(directory_copy(from, tree, COPY_UP_MAX, path));
    return mount_attach(tree, place, path);
}

/* One file of a new file system: before Linux 6.15 a copy can be made of an attached mount only. */
static struct error *file_in_memory(const struct rootfs *root, int place, const char *path, int staging) {
    fd_owned int store = -1, from = -1, copied = -1, tree = -1;
    TRY(rootfs_open_plain(root, (struct container_path){path}, O_RDONLY | O_NONBLOCK, &from));
    TRY(mount_new("tmpfs", "tmpfs", NULL, ATTRIBUTES, &store));
    TRY(mount_attach(store, staging, path));
    struct error *error = file_copy(from, store, "file", COPY_UP_MAX, path);
    if (error == NULL) {
        copied = openat(store, "file", O_PATH | O_NOFOLLOW | O_CLOEXEC);
        error = copied < 0 ? error_system(errno, "open", "the copy of %s", path)
                           : mount_copy(copied, false, path, &tree);
    }
    if (error == NULL)
        error = mount_attach(tree, place, path);
    struct error *left = mount_detach(store, path);
    if (error == NULL)
        return left;
    error_ignore(left); /* the namespace ends with this failure */
    return error;
}

static struct error *file_mount(const struct rootfs *root, const struct scratch_request *request,
                                int staging) {
    fd_owned int place = -1;
    struct stat status;
    struct error *error = rootfs_open_plain(root, (struct container_path){request->path}, O_PATH, &place);
    if (error != NULL && (error->number == ENOENT || error->number == ENOTDIR || error->number == ELOOP)) {
        error_ignore(error); /* as for directories */
        return NULL;
    }
    TRY(error);
    if (fstat(place, &status) < 0)
        return error_system(errno, "stat", "%s in the container's root", request->path);
    if (!S_ISREG(status.st_mode))
        return NULL; /* pipes, sockets and devices are written to on any mount */
    return request->tmpfs ? file_in_memory(root, place, request->path, staging)
                          : own_layer(place, request->path);
}

struct error *scratch_mount(const struct rootfs *root, const struct scratch_request *request, int staging) {
    struct container_path path = {request->path};
    fd_owned int place = -1;
    struct error *error = rootfs_open_plain(root, path, O_PATH | O_DIRECTORY, &place);
    if (error != NULL && error->number == ENOENT && request->create) {
        error_ignore(error);
        error = rootfs_make_directory(root, path, request->mode, request->uid, request->gid, &place);
    }
    if (error != NULL && error->number == ENOTDIR) {
        error_ignore(error);
        return file_mount(root, request, staging);
    }
    /* No such place in the image, or one that a symlink of the image moves to where nobody looked, such as a
     * home that is /usr: nothing that is to be writable. */
    if (error != NULL && (error->number == ENOENT || error->number == ELOOP)) {
        error_ignore(error);
        return NULL;
    }
    TRY(error);
    return request->tmpfs ? directory_in_memory(root, place, request->path) : own_layer(place, request->path);
}
