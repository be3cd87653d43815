#include "process/scheduling.h"

#include <errno.h>
#include <string.h>
#include <sys/personality.h>

#include "base/memory.h"
#include "libocispec/names.h"
#include "sys/scheduling.h"

#define MEMORY_POLICY_FLAG_FIRST 13 /* MPOL_F_NUMA_BALANCING, include/uapi/linux/mempolicy.h */

static struct error *scheduler_apply(pid_t pid, const struct oci_scheduler *scheduler) {
    struct sys_sched_attributes attributes = {
        .policy = (uint32_t)oci_name_index(oci_scheduler_policies, scheduler->policy),
        .nice = scheduler->nice,
        .priority = (uint32_t)scheduler->priority,
        .runtime = scheduler->runtime,
        .deadline = scheduler->deadline,
        .period = scheduler->period,
    };
    for (size_t i = 0; i < scheduler->flags.count; i++)
        attributes.flags |= UINT64_C(1) << oci_name_index(oci_scheduler_flags, scheduler->flags.items[i]);
    if (sys_sched_setattr(pid, &attributes) == 0)
        return NULL;
    int number = errno;
    const char *why = "";
    if (number == EPERM)
        why = " (without CAP_SYS_NICE, without real-time budget in its cpu cgroup, or, for SCHED_DEADLINE, "
              "with a "
              "cpuset or an affinity of its own)";
    else if (number == EINVAL || number == EOPNOTSUPP)
        why = " (this kernel does not have it)";
    return error_system(number, "set", "process.scheduler %s%s", scheduler->policy, why);
}

struct error *scheduling_apply(pid_t pid, const struct oci_process *process) {
    const struct oci_io_priority *io = process->io_priority;
    if (process->scheduler != NULL)
        TRY(scheduler_apply(pid, process->scheduler));
    if (io == NULL)
        return NULL;
    int io_class = 1 + oci_name_index(oci_io_priority_classes, io->class_name);
    if (sys_ioprio_set(pid, io_class, io->priority) < 0)
        return error_system(errno, "set", "process.ioPriority %s %d", io->class_name, io->priority);
    return NULL;
}

struct error *affinity_set(pid_t pid, const char *list, const char *field) {
    struct oci_index_set processors;
    if (!oci_index_set_parse(list, &processors))
        return error_new(ERROR_INVALID, "%s: expected a list of processors like 0-3,7", field);
    if (sys_sched_setaffinity(pid, processors.words, sizeof processors.words) == 0)
        return NULL;
    if (errno == EINVAL)
        return error_new(ERROR_INVALID,
                         "%s: none of the processors \"%s\" is there, or is in the container's cpuset", field,
                         list);
    return error_system(errno, "set", "%s to %s", field, list);
}

void affinity_reset(void) {
    unsigned long all[OCI_INDEX_COUNT / (8 * sizeof(unsigned long))];
    memset(all, 0xff, sizeof all);
    /* The kernel keeps what is there; EINVAL where the cpuset leaves nothing, and then nothing is inherited
     * either. */
    (void)!sys_sched_setaffinity(0, all, sizeof all);
}

struct error *personality_apply(const struct oci_linux *linux_config) {
    const struct oci_personality *wanted = linux_config->personality;
    bool is_32_bit = wanted != NULL && strcmp(wanted->domain, "LINUX32") == 0;
    if (personality(is_32_bit ? PER_LINUX32 : PER_LINUX) < 0)
        return error_system(errno, "set", "linux.personality %s", wanted ? wanted->domain : "LINUX");
    return NULL;
}

struct error *memory_policy_apply(const struct oci_linux *linux_config) {
    const struct oci_memory_policy *policy = linux_config->memory_policy;
    if (policy == NULL) {
        (void)!sys_set_mempolicy(0, NULL, 0); /* ENOSYS: a kernel without memory nodes has no policy */
        return NULL;
    }
    struct oci_index_set nodes = {0};
    if (policy->nodes != NULL && !oci_index_set_parse(policy->nodes, &nodes))
        return error_new(ERROR_INVALID, "linux.memoryPolicy.nodes: expected memory nodes like 0-3,7");
    int mode = oci_name_index(oci_memory_policy_modes, policy->mode);
    for (size_t i = 0; i < policy->flags.count; i++)
        mode |=
            1 << (MEMORY_POLICY_FLAG_FIRST + oci_name_index(oci_memory_policy_flags, policy->flags.items[i]));
    /* One more than there are bits: the kernel takes the last one for no node (set_mempolicy(2), "BUGS"). */
    if (sys_set_mempolicy(mode, policy->nodes ? nodes.words : NULL,
                          policy->nodes ? OCI_INDEX_COUNT + 1 : 0) == 0)
        return NULL;
    return error_system(errno, "set", "linux.memoryPolicy %s to nodes \"%s\"%s", policy->mode,
                        policy->nodes ? policy->nodes : "",
                        errno == EINVAL ? " (is a node there, in the container's cpuset, and does this "
                                          "kernel have the mode and flags?)"
                                        : "");
}
