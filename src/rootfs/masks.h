/* linux.maskedPaths and linux.readonlyPaths. */
#pragma once

#include "base/error.h"
#include "libocispec/config.h"
#include "rootfs/paths.h"

/* What covers must be real: the machine's /dev/null is opened before the container's root is entered, and its
 * device number verified (CVE-2025-31133). `staging`: a directory of the runtime to hold the empty
 * directory's mount. A path that is missing is passed over. */
fallible masks_attach(const struct rootfs *root, const struct oci_linux *linux_config, int staging);
