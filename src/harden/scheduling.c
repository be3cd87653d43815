#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "harden/parts.h"

/* The kernel asks for CAP_SYS_NICE on the machine for all of these, and the runtime has it where the sandbox
 * has not: without this, a config.json would give by a field what the policy takes away as a capability. A
 * real-time sandbox stops everything else on its processors, the warden included. */
static void give_up(const struct policy *policy, const char *field, const char *subject, const char *kept,
                    struct hardened *hardened) {
    harden_note(hardened, CHANGE_REMOVED, field, subject, "capability.dropped",
                "processes.capabilities: \"@default\"",
                "processes: {capabilities: [\"@default\", CAP_SYS_NICE]}",
                "%s needs CAP_SYS_NICE, which the policy %s does not give: %s", subject, policy->name, kept);
}

static bool is_real_time(const char *policy) {
    return strcmp(policy, "SCHED_FIFO") == 0 || strcmp(policy, "SCHED_RR") == 0 ||
           strcmp(policy, "SCHED_DEADLINE") == 0;
}

static void cut_scheduler(struct oci_process *process, const struct policy *policy,
                          struct hardened *hardened) {
    struct oci_scheduler *scheduler = process->scheduler;
    static const char field[] = "process.scheduler";
    if (scheduler == NULL)
        return;
    bool clamps = string_list_contains(&scheduler->flags, "SCHED_FLAG_UTIL_CLAMP_MIN");
    if (is_real_time(scheduler->policy) || clamps) {
        give_up(policy, field, clamps ? "SCHED_FLAG_UTIL_CLAMP_MIN" : scheduler->policy,
                "the scheduler is SCHED_OTHER", hardened);
        free(scheduler->policy);
        string_list_free(&scheduler->flags);
        *scheduler = (struct oci_scheduler){.policy = memory_copy_string("SCHED_OTHER"),
                                            .nice = scheduler->nice > 0 ? scheduler->nice : 0};
    } else if (scheduler->nice < 0) {
        memory_owned char *subject = text_formatted("nice %d", scheduler->nice);
        give_up(policy, field, subject, "the nice value is 0", hardened);
        scheduler->nice = 0;
    }
}

static void cut_io_priority(struct oci_process *process, const struct policy *policy,
                            struct hardened *hardened) {
    struct oci_io_priority *io = process->io_priority;
    if (io == NULL || strcmp(io->class_name, "IOPRIO_CLASS_RT") != 0)
        return;
    give_up(policy, "process.ioPriority", "IOPRIO_CLASS_RT", "the class is IOPRIO_CLASS_BE", hardened);
    memory_replace_string(&io->class_name, "IOPRIO_CLASS_BE");
}

void harden_scheduling(struct oci_process *process, const struct policy *policy, struct hardened *hardened) {
    if (!string_list_contains(&policy->capabilities.values, "CAP_SYS_NICE")) {
        cut_scheduler(process, policy, hardened);
        cut_io_priority(process, policy, hardened);
    }
    /* "unconfined" is what a process has that no profile was given, unless the runtime itself runs under one:
     * then it would lead out of that. */
    if (process->apparmor_profile != NULL && strcmp(process->apparmor_profile, "unconfined") == 0) {
        free(process->apparmor_profile);
        process->apparmor_profile = NULL;
    }
}
