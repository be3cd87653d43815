/* /dev: the default devices and links of config-linux.md, and linux.devices. */
#pragma once

#include "base/error.h"
#include "libocispec/config.h"
#include "rootfs/paths.h"

/* Makes the default devices, linux.devices and the links. A device that is there already wins. Where mknod is
 * not allowed (a user namespace) the machine's own node is bound, after its number was verified. */
fallible devices_make(const struct rootfs *root, const struct oci_config *config);

/* Binds the terminal's other end on /dev/console, by its descriptor: a name in /dev/pts belongs to the
 * container and could be anything (CVE-2025-52565). */
fallible console_bind(const struct rootfs *root, int terminal);
