/* The root itself: from the image's directory to "/". */
#pragma once

#include <sys/stat.h>

#include "base/error.h"
#include "libocispec/config.h"
#include "rootfs/paths.h"

/* In the container's new mount namespace: ends propagation to the machine, copies the root's tree over itself
 * and opens it. `path` is the root's real path and must still be the directory that `judged` describes. */
fallible rootfs_enter(const char *path, const struct stat *judged, const struct oci_config *config,
                      struct rootfs *out);

/* No device node of the image's opens a device, on the root and on what is mounted below it so far: a layer
 * may hold any node, and a device cgroup is not on every machine. */
fallible rootfs_forbid_devices(const struct rootfs *root);

/* Makes the root mount read-only (without what is mounted below it); its other flags stay. */
fallible rootfs_make_readonly(const struct rootfs *root);

/* Makes it "/" and leaves the old root, which nothing refers to afterwards. `no_pivot`: for a machine that
 * runs from its initial ramdisk, where pivot_root cannot work. */
fallible rootfs_pivot(const struct rootfs *root, bool no_pivot);

/* For a container without a mount namespace of its own: takes the root with all its mounts out of the one in
 * which they were made, goes to the mount namespace `to` and makes the root "/" for this process alone. They
 * are in no namespace's table then and end with the last process that has them. */
fallible rootfs_take_away(const struct rootfs *root, int to, const struct oci_config *config);

/* linux.rootfsPropagation, the last step: before pivot_root it would make that fail. */
fallible rootfs_propagate(const struct oci_config *config);
