/* Names of the runtime specification that have a number in the kernel, and the closed sets of words. */
#pragma once

#include <stdbool.h>

/* The number of "CAP_CHOWN" ... "CAP_CHECKPOINT_RESTORE" (capabilities(7)), -1 if the name is unknown. */
int oci_capability_number(const char *name);
/* The name of a capability, NULL beyond the last one known. */
const char *oci_capability_name(int number);
/* The RLIMIT_ number of "RLIMIT_NOFILE" ... (getrlimit(2)), -1 if the name is unknown. */
int oci_rlimit_number(const char *name);

/* Sets of words, each closed by NULL. */
extern const char *const oci_capability_names[];    /* in the order of their numbers */
extern const char *const oci_scheduler_policies[];  /* sched(7), in the order of their numbers from 0 */
extern const char *const oci_scheduler_flags[];     /* sched_setattr(2), in the order of their bits from 0 */
extern const char *const oci_io_priority_classes[]; /* ioprio_set(2), in the order of their numbers from 1 */
extern const char *const oci_memory_policy_modes[]; /* set_mempolicy(2), in the order of their numbers */
extern const char *const oci_memory_policy_flags[]; /* in the order of their bits, from 13 */
extern const char *const oci_namespace_types[];
extern const char *const oci_hook_names[];
extern const char *const oci_seccomp_actions[];
extern const char *const oci_seccomp_operators[];
extern const char *const oci_seccomp_architectures[];
extern const char *const oci_seccomp_flags[];

/* The place of `name` in such a set, or -1; NULL is in none. */
int oci_name_index(const char *const *names, const char *name);

/* A set of processors or memory nodes; the highest that any kernel is built for is 8191. */
#define OCI_INDEX_COUNT 8192
struct oci_index_set {
    unsigned long words[OCI_INDEX_COUNT / (8 * sizeof(unsigned long))];
};
/* "0-3,7" (cpuset(7), "List format", without its strides) as a set; false where the text is anything else or
 * names an index beyond the highest. `out` may be NULL: only look. */
bool oci_index_set_parse(const char *text, struct oci_index_set *out);

/* The path below /proc/sys of a sysctl key, "net.ipv4.conf.eth0/1.forwarding" ->
 * "net/ipv4/conf/eth0.1/forwarding" (sysctl.d(5): the first separator decides which of "." and "/"
 * separates). NULL if a component is empty, "." or
 * ".."; else the caller frees it. */
char *oci_sysctl_path(const char *key);
