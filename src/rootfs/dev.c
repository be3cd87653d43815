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

static bool is_node(const struct stat *status, const struct device_node *node) {
    return (status->st_mode & S_IFMT) == node->type && status->st_rdev == makedev(node->major, node->minor);
}

/* The errno, 0 for none: what it means depends on where the node is to be. */
static int node_create(int directory, const char *name, const struct device_node *node) {
    mode_t umask_before = umask(0);
    int result = mknodat(directory, name, node->type | node->mode, makedev(node->major, node->minor));
    int number = result < 0 ? errno : 0;
    umask(umask_before);
    return number;
}

/* A root that is read-only and has no /dev of its own: nothing can be put there, and the image's nodes are
 * all there is (crun #1745). */
static struct error *unless_read_only(struct error *error) {
    if (error == NULL || error->number != EROFS)
        return error;
    error_ignore(error);
    return NULL;
}

static struct error *device_attach(const struct rootfs *root, const struct device_node *node, int tree) {
    fd_owned int target = -1;
    TRY(rootfs_make_file(root, (struct container_path){node->path}, (uid_t)-1, (gid_t)-1, &target));
    return mount_attach(tree, target, node->path);
}

static struct error *device_bind(const struct rootfs *root, const struct device_node *node) {
    fd_owned int source = open(node->path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (source < 0)
        return error_system(errno, "open", "device %s", node->path);
    struct stat status;
    if (fstat(source, &status) < 0)
        return error_system(errno, "stat", "device %s", node->path);
    if (!is_node(&status, node))
        return error_new(ERROR_REFUSED, "%s of this machine is not the device %u:%u", node->path, node->major,
                         node->minor);
    fd_owned int tree = -1;
    TRY(mount_copy(source, false, node->path, &tree));
    /* The machine's own inode: its mode and owner are not for a container's root to change. Writing to a
     * device does not need a writable mount. */
    TRY(mount_change(tree, false, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, 0, node->path));
    return device_attach(root, node, tree);
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
    if (node->type != S_IFIFO && is_without_devices(directory))
        return unless_read_only(device_bind(root, node));
    int number = node_create(directory, name, node);
    if (number == EEXIST)
        return NULL;
    if (number == EPERM && node->type != S_IFIFO)
        return device_bind(root, node);
    if (number != 0)
        return unless_read_only(error_system(number, "mknod", "%s", node->path));
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

static struct device_node node_of(const struct oci_device *device) {
    return (struct device_node){
        .path = device->path,
        .type = device_type(device->type),
        .major = (unsigned)device->major,
        .minor = (unsigned)device->minor,
        .mode = device->file_mode.set ? device->file_mode.value & 07777 : 0666,
        .uid = device->uid.set ? device->uid.value : 0,
        .gid = device->gid.set ? device->gid.value : 0,
    };
}

static bool machine_has(const struct device_node *node) {
    struct stat status;
    return lstat(node->path, &status) == 0 && is_node(&status, node);
}

/* *out stays -1 where the runtime may not make it. */
static struct error *node_make(int directory, const char *name, const struct device_node *node, int *out) {
    int number = node_create(directory, name, node);
    if (number == EPERM)
        return NULL; /* no CAP_MKNOD, or a device cgroup that denies it */
    if (number != 0)
        return error_system(number, "mknod", "%s", node->path);
    if (fchownat(directory, name, node->uid, node->gid, AT_SYMLINK_NOFOLLOW) < 0)
        return error_system(errno, "chown", "%s", node->path);
    fd_owned int source = openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (source < 0)
        return error_system(errno, "open", "%s", node->path);
    TRY(mount_copy(source, false, node->path, out));
    return mount_change(*out, false, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, 0, node->path);
}

struct error *device_nodes_make(const struct oci_config *config, struct device_nodes *out) {
    const struct oci_linux *linux_config = config->linux_config;
    if (linux_config == NULL || oci_config_namespace(config, "user") == NULL)
        return NULL;
    fd_owned int directory = -1;
    for (size_t i = 0; i < linux_config->devices_count; i++) {
        struct device_node node = node_of(&linux_config->devices[i]);
        if (node.type == S_IFIFO || machine_has(&node) ||
            !oci_id_map_translate(linux_config->uid_mappings, linux_config->uid_mappings_count, &node.uid) ||
            !oci_id_map_translate(linux_config->gid_mappings, linux_config->gid_mappings_count, &node.gid))
            continue;
        if (directory < 0) {
            out->trees = memory_zeroed(linux_config->devices_count * sizeof *out->trees);
            out->count = linux_config->devices_count;
            for (size_t j = 0; j < out->count; j++)
                out->trees[j] = -1;
            TRY(mount_new("tmpfs", "devices", NULL, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, &directory));
        }
        memory_owned char *name = text_formatted("%zu", i);
        TRY(error_context(node_make(directory, name, &node, &out->trees[i]), "linux.devices[%zu]", i));
    }
    return NULL;
}

void device_nodes_free(struct device_nodes *nodes) {
    for (size_t i = 0; i < nodes->count; i++)
        fd_close(nodes->trees[i]);
    free(nodes->trees);
    *nodes = (struct device_nodes){0};
}

/* As device_make: what is there already wins, an image's link too, and where nothing can be put there is
 * none. */
static struct error *made_attach(const struct rootfs *root, const struct device_node *node, int tree) {
    fd_owned int directory = -1;
    memory_owned char *name = NULL;
    TRY(rootfs_open_parent(root, (struct container_path){node->path}, &directory, &name));
    struct stat status;
    if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0)
        return NULL;
    return unless_read_only(device_attach(root, node, tree));
}

struct error *devices_make(const struct rootfs *root, const struct oci_config *config,
                           const struct device_nodes *nodes) {
    TRY(directory_verify(root));
    for (size_t i = 0; i < sizeof default_devices / sizeof default_devices[0]; i++)
        TRY(device_make(root, &default_devices[i]));
    const struct oci_linux *linux_config = config->linux_config;
    for (size_t i = 0; linux_config != NULL && i < linux_config->devices_count; i++) {
        struct device_node node = node_of(&linux_config->devices[i]);
        bool made = i < nodes->count && nodes->trees[i] >= 0;
        struct error *error = made ? made_attach(root, &node, nodes->trees[i]) : device_make(root, &node);
        TRY(error_context(error, "linux.devices[%zu]", i));
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
