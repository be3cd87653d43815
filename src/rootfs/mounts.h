/* The mounts of config.json (config.md, "Mounts"). Bind sources are copied in the runtime's mount namespace
 * from the descriptors that were judged; the container's init only attaches them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "libocispec/config.h"
#include "rootfs/paths.h"

/* A container's own cgroup directory, to be shown at /sys/fs/cgroup. */
struct cgroup_view {
    char *name; /* "memory", "cpu,cpuacct"; "" for pure v2: the directory itself */
    int tree;   /* detached copy, read-only unless asked otherwise */
};

struct mount_set {
    int *trees; /* parallel to config.mounts: a detached tree for a bind mount, else -1 */
    size_t count;
    struct cgroup_view *cgroup_views;
    size_t cgroup_views_count;
    dev_t *made; /* parallel to config.mounts: the device of a tmpfs that was made for it, else 0 */
    int *late;   /* parallel to config.mounts: a tmpfs that is yet to become read-only, else -1 */
    size_t late_count;
};

/* The source of a bind mount, as it was opened and judged. */
struct bind_source {
    bool judged;      /* false: hardening chose it; it is opened by its path */
    int fd;           /* O_PATH, borrowed; -1 where it could not be opened */
    int open_errno;   /* why */
    const char *path; /* real path, borrowed */
    dev_t device;
    ino_t inode;
};

/* Copies every bind source. `sources` is parallel to config.mounts. With `reopen` (an unprivileged runtime,
 * whose own mount namespace is not its to copy from) the container's init calls this in the new namespace:
 * each source is opened again by its real path and must be the inode that was judged. With `strict` an option
 * that a bind mount cannot have is ERROR_INVALID; else one with a value ("size=1k") is passed over with a
 * warning, as mount(2) does and plain runtimes do. */
fallible mount_set_prepare(const struct oci_config *config, const struct bind_source *sources, bool reopen,
                           bool strict, struct mount_set *out);
void mount_set_free(struct mount_set *set);
/* Takes over `tree`. */
void mount_set_add_cgroup_view(struct mount_set *set, const char *name, int tree);

/* Attaches all mounts of config.json in their order. One at "/" becomes the root: root->fd is then another.
 */
fallible mount_set_attach(struct rootfs *root, const struct oci_config *config, struct mount_set *set);
/* When all is made that comes inside (devices, the places of other mounts): what was asked to be read-only
 * is. */
fallible mount_set_complete(const struct oci_config *config, struct mount_set *set);

/* More than this in a place that is copied into memory is a mistake that the user should hear of. */
#define COPY_UP_MAX (256ull * 1024 * 1024)
/* Copies the content of a directory into another one: files, directories, symlinks, owners, modes, times; at
 * most `limit` bytes. Never follows a symlink. */
fallible directory_copy(int from, int to, uint64_t limit, const char *subject);
/* The same of one file, open for reading, into the directory `to` as `name`. */
fallible file_copy(int from, int to, const char *name, uint64_t limit, const char *subject);
