#include "rootfs/masks.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "rootfs/attach.h"
#include "sys/calls.h"

static bool is_absent(const struct error *error) {
    return error != NULL && (error->number == ENOENT || error->number == ENOTDIR || error->number == EACCES);
}

static struct error *null_device_open(int *out) {
    *out = open("/dev/null", O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct stat status;
    if (*out < 0 || fstat(*out, &status) < 0)
        return error_system(errno, "open", "/dev/null");
    if (!S_ISCHR(status.st_mode) || status.st_rdev != makedev(1, 3))
        return error_new(ERROR_REFUSED, "/dev/null of this machine is not the null device (CVE-2025-31133)");
    return NULL;
}

static struct error *empty_directory_make(int staging, int *out) {
    string_list_owned struct string_list data = {0};
    string_list_append(&data, "size=0k");
    string_list_append(&data, "nr_inodes=2");
    string_list_append(&data, "mode=755");
    fd_owned int tree = -1;
    TRY(mount_new("tmpfs", "tmpfs", &data,
                  MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, &tree));
    /* Attached, since kernels before 6.15 copy only mounts that are part of a mount namespace; until it is
     * copied, because createContainer hooks look into the bundle, which it lies on. */
    TRY(mount_attach(tree, staging, "the empty directory of masks"));
    *out = fd_take(&tree);
    return NULL;
}

static struct error *mask(const struct rootfs *root, const char *path, int null_device, int empty_directory) {
    fd_owned int target = -1;
    struct error *error = rootfs_open(root, (struct container_path){path}, O_PATH, &target);
    if (is_absent(error)) {
        error_ignore(error);
        return NULL;
    }
    TRY(error);
    struct stat status;
    if (fstat(target, &status) < 0)
        return error_system(errno, "stat", "%s in the container's root", path);
    fd_owned int tree = -1;
    TRY(mount_copy(S_ISDIR(status.st_mode) ? empty_directory : null_device, false, path, &tree));
    /* The null device is the machine's own inode: a container's root could change its mode and owner for
     * everybody. Writing to a device does not need a writable mount. */
    TRY(mount_change(tree, false, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, 0, path));
    return mount_attach(tree, target, path);
}

static struct error *make_readonly(const struct rootfs *root, const char *path) {
    fd_owned int target = -1;
    struct error *error = rootfs_open(root, (struct container_path){path}, O_PATH, &target);
    if (is_absent(error)) {
        error_ignore(error);
        return NULL;
    }
    TRY(error);
    /* A copy of the place keeps the flags of its mount, which a user namespace may not clear (crun #950). */
    fd_owned int tree = -1;
    TRY(mount_copy(target, true, path, &tree));
    TRY(mount_change(tree, true, MOUNT_ATTR_RDONLY, 0, path));
    return mount_attach(tree, target, path);
}

struct error *masks_attach(const struct rootfs *root, const struct oci_linux *linux_config, int staging) {
    if (linux_config == NULL)
        return NULL;
    for (size_t i = 0; i < linux_config->readonly_paths.count; i++)
        TRY(error_context(make_readonly(root, linux_config->readonly_paths.items[i]),
                          "linux.readonlyPaths[%zu]", i));
    if (linux_config->masked_paths.count == 0)
        return NULL;
    fd_owned int null_device = -1;
    fd_owned int empty_directory = -1;
    TRY(null_device_open(&null_device));
    TRY(empty_directory_make(staging, &empty_directory));
    for (size_t i = 0; i < linux_config->masked_paths.count; i++)
        TRY(error_context(mask(root, linux_config->masked_paths.items[i], null_device, empty_directory),
                          "linux.maskedPaths[%zu]", i));
    return mount_detach(empty_directory, "the empty directory of masks");
}
