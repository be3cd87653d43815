/* Any bytes as the document of `exec --process`: whatever is accepted can be hardened for the sandbox and
 * turned into what the kernel is given; nothing of it is wider than the policy. Seeds: corpus/process. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "harden/harden.h"
#include "libocispec/config.h"
#include "libocispec/names.h"
#include "policy/policy.h"
#include "process/command.h"
#include "process/identity.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition)
        abort();
}

/* What was checked has a number in the kernel. */
static void require_known(const struct oci_process *process) {
    const struct oci_scheduler *scheduler = process->scheduler;
    if (scheduler != NULL) {
        require(oci_name_index(oci_scheduler_policies, scheduler->policy) >= 0);
        for (size_t i = 0; i < scheduler->flags.count; i++)
            require(oci_name_index(oci_scheduler_flags, scheduler->flags.items[i]) >= 0);
    }
    if (process->io_priority != NULL)
        require(oci_name_index(oci_io_priority_classes, process->io_priority->class_name) >= 0);
    for (size_t i = 0; i < process->rlimits_count; i++)
        require(oci_rlimit_number(process->rlimits[i].type) >= 0);
    require(process->args.count > 0 && process->cwd[0] == '/');
}

static void require_within(const struct string_list *set, const struct policy *policy) {
    for (size_t i = 0; i < set->count; i++)
        require(string_list_contains(&policy->capabilities.values, set->items[i]));
}

static void require_hardened(const struct oci_process *process, const struct policy *policy) {
    require(process->no_new_privileges);
    if (process->capabilities != NULL) {
        require_within(&process->capabilities->bounding, policy);
        require_within(&process->capabilities->permitted, policy);
        require_within(&process->capabilities->effective, policy);
        require_within(&process->capabilities->inheritable, policy);
        require_within(&process->capabilities->ambient, policy);
    }
    if (process->scheduler != NULL)
        require(process->scheduler->priority == 0 && process->scheduler->runtime == 0 &&
                process->scheduler->nice >= 0);
    if (process->io_priority != NULL)
        require(strcmp(process->io_priority->class_name, "IOPRIO_CLASS_RT") != 0);
    require(process->apparmor_profile == NULL || strcmp(process->apparmor_profile, "unconfined") != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct oci_process *process = NULL;
    error_owned error = oci_process_parse("process", (const char *)data, size, &process);
    require((error == NULL) == (process != NULL));
    if (process == NULL) {
        require(strchr(error->message, '\n') == NULL);
        return 0;
    }
    require_known(process);
    struct policy *policy = NULL;
    error_owned none = policy_select("agent", &policy);
    require(none == NULL);
    struct hardened *changes = memory_zeroed(sizeof *changes);
    harden_process(process, policy, changes);
    require_hardened(process, policy);
    /* What hardening made is still a document that is accepted. */
    error_owned again = oci_process_check(process);
    require(again == NULL);
    struct capability_sets sets;
    capability_sets_from(process->capabilities, &sets);
    require((sets.effective & ~sets.bounding) == 0 || process->capabilities != NULL);
    command_complete_environment(&process->env, NULL);
    require(!command_lacks_home(&process->env));
    hardened_free(changes);
    policy_free(policy);
    oci_process_free(process);

    memory_owned char *list = memory_zeroed(size + 1);
    memcpy(list, data, size);
    struct oci_index_set set;
    require(oci_index_set_parse(list, &set) == oci_index_set_parse(list, NULL));
    return 0;
}
