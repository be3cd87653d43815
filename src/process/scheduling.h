/* On which processors a container's process runs, with which priority, where its memory comes from, and which
 * personality it has: process.scheduler, process.ioPriority, process.execCPUAffinity (config.md, "Linux
 * Process"), linux.personality and linux.memoryPolicy (config-linux.md). */
#pragma once

#include <sys/types.h>

#include "base/error.h"
#include "libocispec/config.h"

/* process.scheduler and process.ioPriority of the process `pid`, which is in its cgroup already: the kernel
 * looks at its cpuset (SCHED_DEADLINE must own all processors of its domain). From outside, because the
 * privileges that real time needs are the machine's, which a user namespace does not have; and when the
 * container stands, because what sets it up is to be no real-time work. Absent: nothing is done. */
fallible scheduling_apply(pid_t pid, const struct oci_process *process);

/* The process `pid` (0: the caller) may run on these processors and no others, as "0-3,7". `field` names the
 * list in an error: one without any processor of the machine, or of the process's cpuset, is ERROR_INVALID.
 */
fallible affinity_set(pid_t pid, const char *list, const char *field);
/* The calling process may run on every processor that its cgroup has: the caller's affinity is not inherited.
 */
void affinity_reset(void);

/* linux.personality of the calling process; absent: the plain one of this machine, whatever the caller has
 * (`setarch -R` would leave every container without address randomization). Before a seccomp filter. */
fallible personality_apply(const struct oci_linux *linux_config);
/* linux.memoryPolicy of the calling process, which is in its cgroup already: only nodes of its cpuset can be
 * had. Absent: the default, whatever the caller has. */
fallible memory_policy_apply(const struct oci_linux *linux_config);
