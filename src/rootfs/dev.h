/* /dev: the default devices and links of config-linux.md, and linux.devices. */
#pragma once

#include "base/error.h"
#include "libocispec/config.h"
#include "rootfs/paths.h"

/* Nodes for a user namespace, which may make none (mknod(2)): detached mounts, parallel to linux.devices, -1
 * where there is none. */
struct device_nodes {
    int *trees;
    size_t count;
};
/* In the runtime's own namespaces: makes the nodes that the machine does not have at their paths, with the
 * mode asked for and the owner as the container's mappings know it. None without mappings, and none where the
 * runtime may not either. */
fallible device_nodes_make(const struct oci_config *config, struct device_nodes *out);
void device_nodes_free(struct device_nodes *nodes);

/* Makes the default devices, linux.devices and the links. A device that is there already wins. Where mknod is
 * not allowed (a user namespace) the node that was made outside is bound, else the machine's own, after its
 * number was verified. */
fallible devices_make(const struct rootfs *root, const struct oci_config *config,
                      const struct device_nodes *nodes);

/* Binds the terminal's other end on /dev/console, by its descriptor: a name in /dev/pts belongs to the
 * container and could be anything (CVE-2025-52565). */
fallible console_bind(const struct rootfs *root, int terminal);
