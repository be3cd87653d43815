#include "rootfs/dev.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "rootfs/attach.h"
#include "sys/calls.h"

struct device_node {
    const char *path;
    mode_t type;
    unsigned major, minor;
    mode_t mode;
    uid_t uid;
    gid_t gid;
};

static const struct device_node default_devices[] = {
    {"/dev/null", S_IFCHR, 1, 3, 0666, 0, 0},    {"/dev/zero", S_IFCHR, 1, 5, 0666, 0, 0},
    {"/dev/full", S_IFCHR, 1, 7, 0666, 0, 0},    {"/dev/random", S_IFCHR, 1, 8, 0666, 0, 0},
    {"/dev/urandom", S_IFCHR, 1, 9, 0666, 0, 0}, {"/dev/tty", S_IFCHR, 5, 0, 0666, 0, 0},
};

static const struct {
    const char *path;
    const char *target;
} default_links[] = {
    {"/dev/fd", "/proc/self/fd"},       {"/dev/stdin", "/proc/self/fd/0"}, {"/dev/stdout", "/proc/self/fd/1"},
    {"/dev/stderr", "/proc/self/fd/2"}, {"/dev/ptmx", "pts/ptmx"},
};

static struct error *device_bind(const struct rootfs *root, const struct device_node *node) {
    fd_owned int source = open(node->path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (source < 0)
        return error_system(errno, "open", "device %s", node->path);
    struct stat status;
    if (fstat(source, &status) < 0)
        return error_system(errno, "stat", "device %s", node->path);
    if ((status.st_mode & S_IFMT) != node->type || status.st_rdev != makedev(node->major, node->minor))
        return error_new(ERROR_REFUSED, "%s of this machine is not the device %u:%u", node->path, node->major,
                         node->minor);
    fd_owned int tree = -1;
    TRY(mount_copy(source, false, node->path, &tree));
    /* The machine's own inode: its mode and owner are not for a container's root to change. Writing to a
     * device does not need a writable mount. */
    TRY(mount_change(tree, false, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, 0, node->path));
    fd_owned int target = -1;
    TRY(rootfs_make_file(root, (struct container_path){node->path}, (uid_t)-1, (gid_t)-1, &target));
    return mount_attach(tree, target, node->path);
}

static bool is_without_devices(int directory) {
    struct statvfs status;
    return fstatvfs(directory, &status) == 0 && (status.f_flag & ST_NODEV) != 0;
}

static struct error *device_make(const struct rootfs *root, const struct device_node *node) {
    fd_owned int directory = -1;
    memory_owned char *name = NULL;
    TRY(rootfs_open_parent(root, (struct container_path){node->path}, &directory, &name));
    /* A sandbox's root has no devices (pivot.h), and neither has a /dev that is a part of it: not the
     * image's, not ours. */
    if (node->type != S_IFIFO && is_without_devices(directory)) {
        struct error *error = device_bind(root, node);
        if (error == NULL || error->number != EROFS)
            return error;
        error_ignore(error); /* nothing can be put there; as below */
        return NULL;
    }
    mode_t umask_before = umask(0);
    int result = mknodat(directory, name, node->type | node->mode, makedev(node->major, node->minor));
    int number = errno;
    umask(umask_before);
    if (result < 0 && number == EEXIST)
        return NULL;
    if (result < 0 && number == EPERM && node->type != S_IFIFO)
        return device_bind(root, node);
    /* A root that is read-only and has no /dev of its own: the image's nodes are all there is. */
    if (result < 0 && number == EROFS)
        return NULL;
    if (result < 0)
        return error_system(number, "mknod", "%s", node->path);
    if ((node->uid != 0 || node->gid != 0) &&
        fchownat(directory, name, node->uid, node->gid, AT_SYMLINK_NOFOLLOW) < 0)
        return error_system(errno, "chown", "%s", node->path);
    return NULL;
}

static struct error *link_make(const struct rootfs *root, const char *path, const char *target) {
    fd_owned int directory = -1;
    memory_owned char *name = NULL;
    TRY(rootfs_open_parent(root, (struct container_path){path}, &directory, &name));
    if (symlinkat(target, directory, name) < 0 && errno != EEXIST && errno != EROFS)
        return error_system(errno, "symlink", "%s", path);
    return NULL;
}

static mode_t device_type(const char *type) {
    switch (type[0]) {
    case 'b':
        return S_IFBLK;
    case 'p':
        return S_IFIFO;
    default:
        return S_IFCHR;
    }
}

/* An image whose /dev is a link would have nodes and links made wherever it points: in a volume of the
 * user's, say (CVE-2026-41579). */
static struct error *directory_verify(const struct rootfs *root) {
    fd_owned int directory = -1;
    struct error *error =
        rootfs_open_plain(root, (struct container_path){"/dev"}, O_PATH | O_DIRECTORY, &directory);
    if (error != NULL && error->number == ENOENT) {
        error_ignore(error); /* made with the first device */
        return NULL;
    }
    if (error != NULL && (error->number == ELOOP || error->number == ENOTDIR)) {
        error_free(error);
        return error_new(ERROR_REFUSED, "/dev of the container's root is not a directory (CVE-2026-41579)");
    }
    return error;
}

struct error *devices_make(const struct rootfs *root, const struct oci_config *config) {
    TRY(directory_verify(root));
    for (size_t i = 0; i < sizeof default_devices / sizeof default_devices[0]; i++)
        TRY(device_make(root, &default_devices[i]));
    const struct oci_linux *linux_config = config->linux_config;
    for (size_t i = 0; linux_config != NULL && i < linux_config->devices_count; i++) {
        const struct oci_device *device = &linux_config->devices[i];
        struct device_node node = {
            .path = device->path,
            .type = device_type(device->type),
            .major = (unsigned)device->major,
            .minor = (unsigned)device->minor,
            .mode = device->file_mode.set ? device->file_mode.value & 07777 : 0666,
            .uid = device->uid.set ? device->uid.value : 0,
            .gid = device->gid.set ? device->gid.value : 0,
        };
        TRY(error_context(device_make(root, &node), "linux.devices[%zu]", i));
    }
    for (size_t i = 0; i < sizeof default_links / sizeof default_links[0]; i++)
        TRY(link_make(root, default_links[i].path, default_links[i].target));
    if (access("/proc/kcore", F_OK) == 0)
        TRY(link_make(root, "/dev/core", "/proc/kcore"));
    return NULL;
}

struct error *console_bind(const struct rootfs *root, int terminal) {
    fd_owned int tree = -1;
    TRY(mount_copy(terminal, false, "the terminal", &tree));
    fd_owned int target = -1;
    struct error *error =
        rootfs_make_file(root, (struct container_path){"/dev/console"}, (uid_t)-1, (gid_t)-1, &target);
    if (error != NULL && error->number == EROFS) {
        error_ignore(error); /* no place for /dev/console; the terminal itself works (crun #1745) */
        return NULL;
    }
    TRY(error);
    return mount_attach(tree, target, "/dev/console");
}
