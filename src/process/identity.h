/* Who a container's process is: user, groups, capabilities, no_new_privs (config.md, "POSIX process",
 * config-linux.md "Capabilities"). All by plain system calls: no name service, no allocation. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "libocispec/config.h"

struct capability_sets {
    uint64_t bounding, effective, inheritable, permitted, ambient; /* bit N: capability N */
};

/* Names to bits. NULL capabilities: all sets empty. A name that this kernel does not have is left out. */
void capability_sets_from(const struct oci_capabilities *capabilities, struct capability_sets *out);

/* Drops, in the order that the kernel wants: bounding set while CAP_SETPCAP is held, groups, then ids with
 * KEEPCAPS, then the sets, then ambient. no_new_privs is set when asked. `allow_setgroups` false: the user
 * namespace forbids setgroups, which is fine while there are no groups to set. */
fallible identity_assume(const struct oci_process *process, const struct capability_sets *sets,
                         bool allow_setgroups);

/* In a user namespace with these mappings: becomes its root, or, where it has none, the user that the
 * container is for. Without mappings nothing is done. */
fallible identity_become_namespace_root(const struct oci_linux *linux_config, const struct oci_user *user);

/* The score of the process `pid`. An unprivileged runtime cannot lower it and keeps what it has. */
fallible oom_score_apply(pid_t pid, const struct oci_process *process);

/* Rlimits of the process `pid`, before it enters a user namespace. Raising a hard limit needs
 * CAP_SYS_RESOURCE of the machine; the error names the limit. */
fallible rlimits_apply(pid_t pid, const struct oci_process *process);
