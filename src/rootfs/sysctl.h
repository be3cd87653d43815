/* linux.sysctl: the only writer of /proc/sys, through a procfs that the container cannot have covered
 * (CVE-2025-52881, CVE-2019-16884). */
#pragma once

#include "base/error.h"
#include "libocispec/config.h"
#include "sys/procfs.h"

/* In the container's namespaces, before its program runs; `procfs` is a whole one, opened outside. A key that
 * is not namespaced is ERROR_INVALID. */
fallible sysctl_apply(const struct oci_linux *linux_config, const struct procfs *procfs);
