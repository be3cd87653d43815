/* process.apparmorProfile, process.selinuxLabel (config.md, "Linux Process") and linux.mountLabel
 * (config-linux.md). What was asked for is put in place or the container fails:
 *
 * - AppArmor off and a profile asked for: ERROR_UNAVAILABLE. Engines ask only where it is on (podman,
 *   containerd and dockerd look first), so that nobody relies on its being ignored. "unconfined" asks for
 *   nothing, and is fine everywhere.
 * - SELinux off and a label asked for, process or mount: ERROR_UNAVAILABLE. runc refuses a process label
 *   then, and its mounts fail with a mount label; engines leave both empty there.
 *
 * Whether they are on is read where a user namespace cannot hide it (crun #2063), and a label is written
 * through sys/procfs.h alone (CVE-2019-16884: a fake /proc of the image swallowed it). */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "libocispec/config.h"
#include "sys/procfs.h"

/* Whether all that these ask for can be had here; `linux_config` may be NULL. */
fallible lsm_check(const struct oci_process *process, const struct oci_linux *linux_config);

/* Whether the process asks for a label, so that lsm_open needs a procfs. */
bool lsm_wants_procfs(const struct oci_process *process);

/* The attributes of the calling process through which its next program gets its labels. They are its own
 * alone: a child that writes to them is refused by the kernel. -1: not asked for. */
struct lsm_attributes {
    int apparmor;
    int selinux;
    bool stack; /* this process is confined already, and no_new_privs lets a profile only be added */
};
#define LSM_ATTRIBUTES_NONE ((struct lsm_attributes){-1, -1, false})
fallible lsm_open(const struct procfs *procfs, const struct oci_process *process, struct lsm_attributes *out);
/* Writes the labels; closes. Right before execve: every execve uses them up, a hook's too. */
fallible lsm_apply(struct lsm_attributes *attributes, const struct oci_process *process);

/* While it is on, a session keyring that is made carries the process's label (crun #687: without it the
 * program may not read its own). Best effort: it guards nothing of ours. */
void lsm_label_keys(const struct procfs *procfs, const struct oci_process *process, bool on);

/* linux.mountLabel becomes an option of each mount that makes a file system of its own and can be labelled,
 * as `context=LABEL` or what the annotation run.oci.mount_context_type names. An option that is there already
 * stays. */
fallible lsm_label_mounts(struct oci_config *config);
