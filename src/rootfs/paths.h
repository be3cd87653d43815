/* The only opener of paths inside a container's root. Every component is resolved by the kernel as if the
 * root were
 * "/" (openat2 RESOLVE_IN_ROOT): a symlink of the image, absolute or with "..", never leaves it, and what is
 * opened is never looked up again by name (CVE-2021-30465, CVE-2019-18837, CVE-2024-45310). */
#pragma once

#include <sys/types.h>

#include "base/error.h"

/* A container's root directory. Only this module turns (rootfs, path) into a descriptor. */
struct rootfs {
    int fd; /* O_PATH, the root's mount */
};

/* A path as the container sees it; a type of its own so that it cannot be handed to a function for host
 * paths. */
struct container_path {
    const char *text;
};

/* Opens an existing path. `flags` as for open(2), usually O_PATH. O_NOFOLLOW applies to the last component.
 */
fallible rootfs_open(const struct rootfs *root, struct container_path path, int flags, int *out);

/* The same for a place that the runtime picks by itself (scratch, decoys): ELOOP where a symlink of the image
 * stands in the way, which would move the place to somewhere nobody judged. */
fallible rootfs_open_plain(const struct rootfs *root, struct container_path path, int flags, int *out);

/* The same, symlinks followed as long as nothing leaves the mount that the root lies on: EXDEV. */
fallible rootfs_open_same_mount(const struct rootfs *root, struct container_path path, int flags, int *out);

/* Opens a directory (O_PATH), making what is missing with `mode` for the last and 0755 for the others.
 * `owner` (uid and gid) is given to the last one when it is made here; -1 keeps the caller's. */
fallible rootfs_make_directory(const struct rootfs *root, struct container_path path, mode_t mode, uid_t uid,
                               gid_t gid, int *out);

/* Opens a path to mount a file on (O_PATH), making an empty regular file and its parents where it is missing.
 */
fallible rootfs_make_file(const struct rootfs *root, struct container_path path, uid_t uid, gid_t gid,
                          int *out);
/* The same for a file that is mounted at the caller's wish: a symlink to nothing, such as /etc/resolv.conf of
 * an image with systemd, has its target made, in the root. */
fallible rootfs_make_mount_point(const struct rootfs *root, struct container_path path, int *out);

/* Opens the parent directory of a path (making it) and gives the last component, for mknodat and symlinkat.
 * The caller frees *name. A path that ends in ".." or is the root itself is ERROR_INVALID. */
fallible rootfs_open_parent(const struct rootfs *root, struct container_path path, int *directory,
                            char **name);

/* "/a//b/./x/../c/" to "/a/b/c"; ".." at the top stays at the top. The caller frees it. */
char *container_path_clean(const char *path);
