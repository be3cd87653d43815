#include "process/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory.h"
#include "libocispec/names.h"
#include "sys/procfs.h"

static int last_capability(void) {
    for (int number = CAP_LAST_CAP; number >= 0 && number < 63; number++)
        if (prctl(PR_CAPBSET_READ, number + 1, 0, 0, 0) < 0)
            return number;
    return CAP_LAST_CAP;
}

static uint64_t bits_from(const struct string_list *names, uint64_t known) {
    uint64_t bits = 0;
    for (size_t i = 0; i < names->count; i++) {
        int number = oci_capability_number(names->items[i]);
        if (number >= 0)
            bits |= UINT64_C(1) << number;
    }
    return bits & known;
}

void capability_sets_from(const struct oci_capabilities *capabilities, struct capability_sets *out) {
    *out = (struct capability_sets){0};
    if (capabilities == NULL)
        return;
    uint64_t known = (UINT64_C(2) << last_capability()) - 1;
    out->bounding = bits_from(&capabilities->bounding, known);
    out->effective = bits_from(&capabilities->effective, known);
    out->inheritable = bits_from(&capabilities->inheritable, known);
    out->permitted = bits_from(&capabilities->permitted, known);
    out->ambient = bits_from(&capabilities->ambient, known);
}

static struct error *bounding_set_drop(uint64_t keep) {
    int last = last_capability();
    for (int number = 0; number <= last; number++) {
        if (keep & (UINT64_C(1) << number))
            continue;
        if (prctl(PR_CAPBSET_DROP, number, 0, 0, 0) == 0)
            continue;
        int why = errno; /* without CAP_SETPCAP that matters only for what is in the set */
        if (prctl(PR_CAPBSET_READ, number, 0, 0, 0) == 1)
            return error_system(why, "drop", "capability %s from the bounding set",
                                oci_capability_name(number));
    }
    return NULL;
}

static struct error *sets_apply(const struct capability_sets *sets) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    for (int half = 0; half < 2; half++) {
        data[half].effective = (uint32_t)(sets->effective >> (32 * half));
        data[half].permitted = (uint32_t)(sets->permitted >> (32 * half));
        data[half].inheritable = (uint32_t)(sets->inheritable >> (32 * half));
    }
    if (syscall(SYS_capset, &header, data) < 0)
        return error_system(errno, "capset", "the capabilities of process.capabilities");
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
        return error_system(errno, "clear", "the ambient capabilities");
    for (int number = 0; number < 64; number++) {
        if (!(sets->ambient & (UINT64_C(1) << number)))
            continue;
        /* Only what is permitted and inheritable can be ambient; the kernel says EPERM to the rest. */
        if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, number, 0, 0) < 0 && errno != EPERM)
            return error_system(errno, "raise", "ambient capability %s", oci_capability_name(number));
    }
    return NULL;
}

static struct error *groups_apply(const struct oci_user *user, bool allow_setgroups) {
    if (!allow_setgroups) {
        if (user->additional_gids_count > 0)
            return error_new(ERROR_INVALID, "process.user.additionalGids: this user namespace does not allow "
                                            "setgroups; leave the list empty");
        return NULL;
    }
    gid_t groups[65536 / 16];
    if (user->additional_gids_count > sizeof groups / sizeof groups[0])
        return error_new(ERROR_INVALID, "process.user.additionalGids: at most %zu groups",
                         sizeof groups / sizeof groups[0]);
    for (size_t i = 0; i < user->additional_gids_count; i++)
        groups[i] = user->additional_gids[i];
    if (setgroups(user->additional_gids_count, groups) < 0)
        return error_system(errno, "setgroups", "process.user.additionalGids");
    return NULL;
}

struct error *identity_assume(const struct oci_process *process, const struct capability_sets *sets,
                              bool allow_setgroups) {
    const struct oci_user *user = &process->user;
    if (process->no_new_privileges && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return error_system(errno, "set", "no_new_privs");
    umask(user->umask.set ? user->umask.value : 0022);
    TRY(bounding_set_drop(sets->bounding));
    TRY(groups_apply(user, allow_setgroups));
    if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
        return error_system(errno, "set", "PR_SET_KEEPCAPS");
    /* The system calls themselves: glibc's wrappers would broadcast to threads, and there are none. */
    if (syscall(SYS_setresgid, user->gid, user->gid, user->gid) < 0)
        return error_system(errno, "setresgid", "process.user.gid %u", user->gid);
    if (syscall(SYS_setresuid, user->uid, user->uid, user->uid) < 0)
        return error_system(errno, "setresuid", "process.user.uid %u", user->uid);
    TRY(sets_apply(sets));
    if (prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) < 0)
        return error_system(errno, "clear", "PR_SET_KEEPCAPS");
    return NULL;
}

struct error *identity_become_namespace_root(const struct oci_linux *linux_config,
                                             const struct oci_user *user) {
    if (linux_config->uid_mappings_count == 0)
        return NULL;
    bool has_root = false;
    for (size_t i = 0; i < linux_config->uid_mappings_count; i++)
        has_root = has_root || linux_config->uid_mappings[i].container_id == 0;
    uid_t uid = has_root ? 0 : user->uid;
    gid_t gid = has_root ? 0 : user->gid;
    if (setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
        return error_system(errno, "become", "uid %u of the user namespace", uid);
    return NULL;
}

struct error *oom_score_apply(pid_t pid, const struct oci_process *process) {
    if (!process->oom_score_adj.set)
        return NULL;
    memory_owned char *value = text_formatted("%lld", (long long)process->oom_score_adj.value);
    procfs_owned struct procfs procfs = PROCFS_NONE;
    TRY(procfs_open(PROCFS_PROCESSES, &procfs));
    struct error *error = procfs_write_process(&procfs, pid, "oom_score_adj", value);
    if (error != NULL && error->number == EACCES && geteuid() != 0) {
        error_ignore(error); /* engines ask for their own value, which it then has already */
        return NULL;
    }
    return error_context(error, "process.oomScoreAdj");
}

struct error *rlimits_apply(pid_t pid, const struct oci_process *process) {
    for (size_t i = 0; i < process->rlimits_count; i++) {
        const struct oci_rlimit *limit = &process->rlimits[i];
        struct rlimit value = {.rlim_cur = limit->soft, .rlim_max = limit->hard};
        if (prlimit(pid, (enum __rlimit_resource)oci_rlimit_number(limit->type), &value, NULL) == 0)
            continue;
        int number = errno;
        struct rlimit now = {0};
        (void)!prlimit(pid, (enum __rlimit_resource)oci_rlimit_number(limit->type), NULL, &now);
        return error_system(number, "set",
                            "process.rlimits[%zu] %s to %llu (this machine allows at most %llu)", i,
                            limit->type, (unsigned long long)limit->hard, (unsigned long long)now.rlim_max);
    }
    return NULL;
}
