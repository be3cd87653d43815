/* The rules of config.md, "Process". */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "libocispec/check.h"
#include "libocispec/names.h"

static fallible check_command(const char *at, const struct oci_process *process) {
    if (process->cwd == NULL || process->cwd[0] != '/')
        return check_unexpected("an absolute path", process->cwd, "%scwd", at);
    if (process->args.count == 0)
        return error_new(ERROR_INVALID, "%sargs: must not be empty", at);
    for (size_t i = 0; i < process->env.count; i++) {
        const char *equals = strchr(process->env.items[i], '=');
        if (equals == NULL || equals == process->env.items[i]) /* what it is instead may be a secret */
            return error_new(ERROR_INVALID, "%senv[%zu]: expected the form NAME=VALUE", at, i);
    }
    return NULL;
}

static fallible check_user(const char *at, const struct oci_user *user) {
    /* (uid_t)-1 means "leave it as it is" to the kernel: the process would stay what the runtime is. */
    if (user->uid == UINT32_MAX || user->gid == UINT32_MAX)
        return error_new(ERROR_INVALID, "%suser.%s: expected a number less than 4294967295", at,
                         user->uid == UINT32_MAX ? "uid" : "gid");
    if (user->umask.set && user->umask.value > 0777)
        return error_new(ERROR_INVALID,
                         "%suser.umask: expected an integer between 0 and 511 (0777), found %u", at,
                         user->umask.value);
    return NULL;
}

static fallible check_rlimits(const char *at, const struct oci_process *process) {
    uint64_t seen = 0;
    for (size_t i = 0; i < process->rlimits_count; i++) {
        const struct oci_rlimit *rlimit = &process->rlimits[i];
        int number = oci_rlimit_number(rlimit->type);
        if (number < 0)
            return check_unexpected("a known resource limit", rlimit->type, "%srlimits[%zu].type", at, i);
        if ((seen >> number & 1) != 0)
            return error_new(ERROR_INVALID, "%srlimits[%zu].type: %s is there twice", at, i, rlimit->type);
        seen |= UINT64_C(1) << number;
        if (rlimit->soft > rlimit->hard)
            return error_new(ERROR_INVALID, "%srlimits[%zu].soft: expected at most hard, %llu, found %llu",
                             at, i, (unsigned long long)rlimit->hard, (unsigned long long)rlimit->soft);
    }
    return NULL;
}

static fallible check_capabilities(const char *at, const struct oci_capabilities *capabilities) {
    static const char what[] = "a known capability";
    if (capabilities == NULL)
        return NULL;
    memory_owned char *inner = text_formatted("%scapabilities.", at);
    TRY(check_words(inner, "bounding", &capabilities->bounding, oci_capability_names, what));
    TRY(check_words(inner, "effective", &capabilities->effective, oci_capability_names, what));
    TRY(check_words(inner, "inheritable", &capabilities->inheritable, oci_capability_names, what));
    TRY(check_words(inner, "permitted", &capabilities->permitted, oci_capability_names, what));
    return check_words(inner, "ambient", &capabilities->ambient, oci_capability_names, what);
}

/* sched_setattr(2) says EINVAL to all of these at once; here each has its name. */
static fallible check_scheduler(const char *at, const struct oci_scheduler *scheduler) {
    const char *policy = scheduler->policy;
    if (oci_name_index(oci_scheduler_policies, policy) < 0)
        return check_unexpected("a known scheduling policy", policy, "%sscheduler.policy", at);
    if (scheduler->nice < -20 || scheduler->nice > 19)
        return error_new(ERROR_INVALID, "%sscheduler.nice: expected an integer between -20 and 19, found %d",
                         at, scheduler->nice);
    memory_owned char *inner = text_formatted("%sscheduler.", at);
    TRY(check_words(inner, "flags", &scheduler->flags, oci_scheduler_flags, "a known scheduler flag"));
    bool real_time = strcmp(policy, "SCHED_FIFO") == 0 || strcmp(policy, "SCHED_RR") == 0;
    if (real_time && (scheduler->priority < 1 || scheduler->priority > 99))
        return error_new(ERROR_INVALID,
                         "%sscheduler.priority: expected an integer between 1 and 99 for %s, found %d", at,
                         policy, scheduler->priority);
    if (!real_time && scheduler->priority != 0)
        return error_new(ERROR_INVALID, "%sscheduler.priority: expected 0 for %s, found %d", at, policy,
                         scheduler->priority);
    bool deadline = strcmp(policy, "SCHED_DEADLINE") == 0;
    if (!deadline && (scheduler->runtime != 0 || scheduler->deadline != 0 || scheduler->period != 0))
        return error_new(ERROR_INVALID, "%sscheduler: runtime, deadline and period are for SCHED_DEADLINE",
                         at);
    if (deadline && (scheduler->runtime < 1024 || scheduler->runtime > scheduler->deadline ||
                     (scheduler->period != 0 && scheduler->deadline > scheduler->period)))
        return error_new(
            ERROR_INVALID,
            "%sscheduler: expected nanoseconds with 1024 <= runtime <= deadline <= period, found "
            "%llu, %llu, %llu",
            at, (unsigned long long)scheduler->runtime, (unsigned long long)scheduler->deadline,
            (unsigned long long)scheduler->period);
    return NULL;
}

static fallible check_scheduling(const char *at, const struct oci_process *process) {
    static const char list[] = "a list of processors like 0-3,7";
    const struct oci_io_priority *io = process->io_priority;
    const struct oci_cpu_affinity *affinity = process->exec_cpu_affinity;
    if (process->scheduler != NULL)
        TRY(check_scheduler(at, process->scheduler));
    if (io != NULL) {
        if (oci_name_index(oci_io_priority_classes, io->class_name) < 0)
            return check_unexpected("a known I/O priority class", io->class_name, "%sioPriority.class", at);
        if (io->priority < 0 || io->priority > 7)
            return error_new(ERROR_INVALID,
                             "%sioPriority.priority: expected an integer between 0 and 7, found %d", at,
                             io->priority);
    }
    if (affinity != NULL && affinity->initial != NULL && !oci_index_set_parse(affinity->initial, NULL))
        return check_unexpected(list, affinity->initial, "%sexecCPUAffinity.initial", at);
    if (affinity != NULL && affinity->final != NULL && !oci_index_set_parse(affinity->final, NULL))
        return check_unexpected(list, affinity->final, "%sexecCPUAffinity.final", at);
    return NULL;
}

struct error *check_process(const char *at, const struct oci_process *process) {
    TRY(check_command(at, process));
    TRY(check_user(at, &process->user));
    TRY(check_rlimits(at, process));
    TRY(check_capabilities(at, process->capabilities));
    const struct optional_int64 *score = &process->oom_score_adj;
    if (score->set && (score->value < -1000 || score->value > 1000))
        return error_new(ERROR_INVALID,
                         "%soomScoreAdj: expected an integer between -1000 and 1000, found %lld", at,
                         (long long)score->value);
    return check_scheduling(at, process);
}
