/* The session keyring of a container's process (keyrings(7)): the caller's keys are not the container's. */
#pragma once

#include "base/error.h"
#include "libocispec/config.h"
#include "sys/procfs.h"

/* Joins the session keyring `name` (NULL: one without a name, of its own), labelled as the process is
 * (`procfs`: where lsm_wants_procfs). A kernel without keys (ENOSYS; EPERM where a seccomp filter says so)
 * and a user whose keys are used up (EDQUOT; crun #594, runc #4676) are no reason to fail; the sandbox's own
 * filter denies every call about keys. */
fallible keyring_join(const char *name, const struct procfs *procfs, const struct oci_process *process);
