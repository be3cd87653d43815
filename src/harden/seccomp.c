#include "harden/seccomp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "harden/parts.h"
#include "policy/keys.h"

/* Values of the kernel's ABI (include/uapi), the same on all machines that pinfold is built for. They stand
 * here because a pure module includes no header that has system calls. */
enum {
    KERNEL_O_WRONLY = 01,
    KERNEL_O_RDWR = 02,
    KERNEL_O_CREAT = 0100,
    KERNEL_O_TRUNC = 01000,
    KERNEL_NEWTIME = 0x00000080,
    KERNEL_NEWNS = 0x00020000,
    KERNEL_NEWCGROUP = 0x02000000,
    KERNEL_NEWUTS = 0x04000000,
    KERNEL_NEWIPC = 0x08000000,
    KERNEL_NEWUSER = 0x10000000,
    KERNEL_NEWPID = 0x20000000,
    KERNEL_NEWNET = 0x40000000,
    FAMILY_NETLINK = 16,
    NETLINK_PROTOCOL_AUDIT = 9,
    SOCKETCALL_SOCKET = 1,
    SOCKETCALL_SOCKETPAIR = 8,
    IOCTL_TIOCSTI = 0x5412,
    IOCTL_TIOCLINUX = 0x541C,
    SECCOMP_SET_FILTER = 1,
    SECCOMP_NEW_LISTENER = 8,
};

/* When a row of the table applies: the policy's key that takes it out. */
enum unless { ALWAYS, UNLESS_PTRACE, UNLESS_USERNS };

enum test {
    ANY = 0, /* no condition */
    IS, /* the argument's low 32 bits are one of the values: the kernel takes an int, whatever is above it */
    IS_ABOVE, /* greater than the only value, in 64 bits: garbage in the upper half counts as above */
    IS_NOT,   /* not the only value, in 64 bits */
    HAS       /* all bits of one of the values are set */
};

struct condition {
    enum test test;
    uint32_t argument;
    const uint32_t *values;
    size_t count;
};
#define VALUES(...)                                                                                          \
    (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)

struct row {
    const char *calls; /* separated by spaces; names of other ABIs (umount of x86, ...) included */
    int error;
    enum unless unless;
    bool silent; /* answered by the filter itself: a call that well-meaning programs try at every start */
    struct condition when[2];
    const char *reason;
};

#define NAMESPACES_OF_CLONE                                                                                  \
    KERNEL_NEWUSER, KERNEL_NEWNS, KERNEL_NEWCGROUP, KERNEL_NEWUTS, KERNEL_NEWIPC, KERNEL_NEWPID, KERNEL_NEWNET
/* In clone the value of CLONE_NEWTIME is a part of the exit signal. */
#define NAMESPACES_OF_UNSHARE NAMESPACES_OF_CLONE, KERNEL_NEWTIME

/* Every family that is not AF_UNIX 1, AF_INET 2, AF_INET6 10 or AF_NETLINK 16; AF_UNSPEC is for the kernel to
 * refuse. */
#define FAMILIES_BELOW_NETLINK 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15

static const struct row denied_rows[] = {
    {"mount umount umount2 pivot_root move_mount open_tree open_tree_attr fsopen fsconfig fsmount fspick "
     "mount_setattr",
     EPERM, .reason = "the mounts of a sandbox are fixed"},

    {"unshare", EPERM, UNLESS_USERNS, .when = {{HAS, 0, VALUES(NAMESPACES_OF_UNSHARE)}},
     .reason = "a new user namespace gives capabilities over much kernel code"},
    {"clone", EPERM, UNLESS_USERNS, .when = {{HAS, 0, VALUES(NAMESPACES_OF_CLONE)}},
     .reason = "a new user namespace gives capabilities over much kernel code"},
    /* Its flags lie in memory, where a filter cannot look; with ENOSYS every libc falls back to clone.
     * Silent: each thread and each posix_spawn tries it. */
    {"clone3", ENOSYS, UNLESS_USERNS, .silent = true, .reason = "its flags cannot be seen by a filter"},
    {"setns", EPERM, .reason = "a sandbox stays in its namespaces"},

    {"ptrace process_vm_readv process_vm_writev pidfd_getfd kcmp", EPERM, UNLESS_PTRACE,
     .reason = "a process of a sandbox does not look into another"},

    {"bpf", EPERM, .reason = "kernel attack surface"},
    {"perf_event_open", EPERM, .reason = "kernel attack surface"},
    {"keyctl add_key request_key", EPERM, .reason = "keyrings are not namespaced"},
    /* A ring's requests pass no filter and no observer. */
    {"io_uring_setup", ENOSYS, .reason = "requests of a ring pass by every filter"},
    {"io_uring_enter io_uring_register", ENOSYS, .silent = true, .reason = "there is no ring to use"},
    {"userfaultfd", EPERM, .reason = "makes kernel races easy to win"},
    {"open_by_handle_at", EPERM, .reason = "opens files outside of the root"},
    {"kexec_load kexec_file_load reboot", EPERM, .reason = "belongs to the machine"},
    {"init_module finit_module delete_module", EPERM, .reason = "belongs to the machine"},
    {"swapon swapoff acct quotactl quotactl_fd", EPERM, .reason = "belongs to the machine"},
    {"settimeofday stime clock_settime clock_settime64", EPERM, .reason = "belongs to the machine"},
    {"syslog", EPERM, .reason = "the kernel's log is the machine's"},
    {"lookup_dcookie nfsservctl", EPERM, .reason = "obsolete kernel code"},
    {"fanotify_init", EPERM, .reason = "sees files of the whole mount"},

    {"socket socketpair", EAFNOSUPPORT, .when = {{IS, 0, VALUES(FAMILIES_BELOW_NETLINK)}},
     .reason = "only unix, IPv4, IPv6 and route netlink sockets"},
    {"socket socketpair", EAFNOSUPPORT, .when = {{IS_ABOVE, 0, VALUES(FAMILY_NETLINK)}},
     .reason = "only unix, IPv4, IPv6 and route netlink sockets"},
    /* EINVAL, because useradd and login abort when it is EPERM; silent, because each of them tries. */
    {"socket", EINVAL, .silent = true,
     .when = {{IS, 0, VALUES(FAMILY_NETLINK)}, {IS, 2, VALUES(NETLINK_PROTOCOL_AUDIT)}},
     .reason = "the audit log is the machine's"},
    {"socket", EPROTONOSUPPORT,
     .when = {{IS, 0, VALUES(FAMILY_NETLINK)}, {IS, 2, VALUES(1, 2, 3, 4, 5, 6, 7, 8)}},
     .reason = "only route netlink"},
    {"socket", EPROTONOSUPPORT,
     .when = {{IS, 0, VALUES(FAMILY_NETLINK)}, {IS_ABOVE, 2, VALUES(NETLINK_PROTOCOL_AUDIT)}},
     .reason = "only route netlink"},
    /* The older way of 32-bit programs to say socket and socketpair: the family lies in memory, where a
     * filter cannot look, and a check by the warden could be raced. */
    {"socketcall", ENOSYS, .when = {{IS, 0, VALUES(SOCKETCALL_SOCKET, SOCKETCALL_SOCKETPAIR)}},
     .reason = "the family cannot be seen by a filter"},

    /* What is put into the terminal's input is run by the shell outside. */
    {"ioctl", EPERM, .when = {{IS, 1, VALUES(IOCTL_TIOCSTI, IOCTL_TIOCLINUX)}},
     .reason = "types into the terminal"},

    /* A filter that asks a supervisor of the workload's own would win over ours, being newer, and could say
     * "continue" for what ours denies. The kernel refuses a second listener with EBUSY only while the first
     * one lives. */
    {"seccomp", EBUSY, .silent = true,
     .when = {{IS, 0, VALUES(SECCOMP_SET_FILTER)}, {HAS, 1, VALUES(SECCOMP_NEW_LISTENER)}},
     .reason = "a newer listener could continue what this filter denies"},
};

/* Calls that change a file by its name, and only with the arguments that change something: each one costs a
 * wake-up of the warden (tar: half of all notifications were utimensat(fd, NULL)). What acts on a descriptor
 * has no name here and was judged when the descriptor was opened. */
static const struct row observed_rows[] = {
    {.calls = "open",
     .when = {{HAS, 1, VALUES(KERNEL_O_WRONLY, KERNEL_O_RDWR, KERNEL_O_CREAT, KERNEL_O_TRUNC)}}},
    {.calls = "openat",
     .when = {{HAS, 2, VALUES(KERNEL_O_WRONLY, KERNEL_O_RDWR, KERNEL_O_CREAT, KERNEL_O_TRUNC)}}},
    {.calls = "openat2 creat"},
    {.calls = "mkdir mkdirat mknod mknodat symlink symlinkat link linkat"},
    {.calls = "unlink unlinkat rmdir rename renameat renameat2"},
    {.calls = "utime utimes"},
    {.calls = "utimensat utimensat_time64 futimesat", .when = {{IS_NOT, 1, VALUES(0)}}},
    {.calls = "truncate truncate64"},
    {.calls = "setxattr lsetxattr setxattrat removexattr lremovexattr removexattrat"},
};

/* Also asked about for the container's view of its denials, whose owner and mode stay as they are. */
static const struct row owner_row = {.calls =
                                         "chmod fchmodat fchmodat2 chown lchown fchownat chown32 lchown32"};

/* What Landlock is asked about when a policy says what may be read. */
static const struct row reading_row = {.calls = "open openat"};
static const struct row execution_row = {.calls = "execve execveat"};

static bool row_applies(const struct row *row, const struct policy *policy) {
    switch (row->unless) {
    case UNLESS_PTRACE:
        return !policy->ptrace;
    case UNLESS_USERNS:
        return !policy->userns;
    case ALWAYS:
        break;
    }
    return true;
}

static void argument_set(struct oci_seccomp_argument *out, const struct condition *condition,
                         uint32_t value) {
    static const char *const operators[] = {
        [IS] = "SCMP_CMP_MASKED_EQ",
        [IS_ABOVE] = "SCMP_CMP_GT",
        [IS_NOT] = "SCMP_CMP_NE",
        [HAS] = "SCMP_CMP_MASKED_EQ",
    };
    *out = (struct oci_seccomp_argument){
        .index = condition->argument, .value = value, .op = memory_copy_string(operators[condition->test])};
    /* OCI: for MASKED_EQ `value` is the mask and `valueTwo` what must be left. */
    if (condition->test == IS) {
        out->value = UINT32_MAX;
        out->value_two = value;
    } else if (condition->test == HAS) {
        out->value_two = value;
    }
}

static struct oci_seccomp_rule *document_add_rule(struct oci_seccomp *document, const struct row *row) {
    document->syscalls =
        memory_resize(document->syscalls, document->syscalls_count + 1, sizeof *document->syscalls);
    struct oci_seccomp_rule *rule = &document->syscalls[document->syscalls_count++];
    *rule = (struct oci_seccomp_rule){
        .action = memory_copy_string(row->silent ? "SCMP_ACT_ERRNO" : "SCMP_ACT_NOTIFY"),
    };
    if (row->error != 0)
        rule->errno_return = (struct optional_uint32){true, (uint32_t)row->error};
    for (const char *name = row->calls; *name != '\0';) {
        size_t length = strcspn(name, " ");
        char *copy = memory_zeroed(length + 1);
        memcpy(copy, name, length);
        string_list_append_owned(&rule->names, copy);
        name += length + strspn(name + length, " ");
    }
    return rule;
}

/* One rule for each combination of the conditions' values: within a rule all conditions hold, between rules
 * any. */
static void document_add_row(struct oci_seccomp *document, const struct row *row) {
    size_t first_count = row->when[0].test == ANY ? 1 : row->when[0].count;
    size_t second_count = row->when[1].test == ANY ? 1 : row->when[1].count;
    for (size_t first = 0; first < first_count; first++)
        for (size_t second = 0; second < second_count; second++) {
            struct oci_seccomp_rule *rule = document_add_rule(document, row);
            size_t choice[2] = {first, second};
            for (size_t i = 0; i < 2; i++) {
                if (row->when[i].test == ANY)
                    continue;
                rule->args = memory_resize(rule->args, rule->args_count + 1, sizeof *rule->args);
                argument_set(&rule->args[rule->args_count++], &row->when[i], row->when[i].values[choice[i]]);
            }
        }
}

static struct oci_seccomp *document_new(void) {
    /* Every ABI that the machine's kernel takes from one process; a filter that leaves one out can be walked
     * around. */
    static const char *const architectures[] = {
#if defined(__x86_64__)
        "SCMP_ARCH_X86_64",
        "SCMP_ARCH_X86",
        "SCMP_ARCH_X32",
#elif defined(__aarch64__)
        "SCMP_ARCH_AARCH64",
        "SCMP_ARCH_ARM",
#endif
        NULL,
    };
    struct oci_seccomp *document = memory_zeroed(sizeof *document);
    document->default_action = memory_copy_string("SCMP_ACT_ALLOW");
    document->listener_path = memory_copy_string(HARDEN_SECCOMP_LISTENER);
    for (size_t i = 0; architectures[i] != NULL; i++)
        string_list_append(&document->architectures, architectures[i]);
    return document;
}

struct oci_seccomp *harden_seccomp_denied(const struct policy *policy) {
    if (!policy->confined)
        return NULL;
    struct oci_seccomp *document = document_new();
    for (size_t i = 0; i < sizeof denied_rows / sizeof *denied_rows; i++)
        if (row_applies(&denied_rows[i], policy))
            document_add_row(document, &denied_rows[i]);
    return document;
}

struct oci_seccomp *harden_seccomp_denied_silently(const struct policy *policy) {
    struct oci_seccomp *document = harden_seccomp_denied(policy);
    for (size_t i = 0; document != NULL && i < document->syscalls_count; i++)
        memory_replace_string(&document->syscalls[i].action, "SCMP_ACT_ERRNO");
    return document;
}

bool harden_seccomp_has_agent(const struct oci_seccomp *profile) {
    if (profile == NULL || profile->listener_path == NULL || profile->listener_path[0] == '\0')
        return false;
    for (size_t i = 0; i < profile->syscalls_count; i++)
        if (profile->syscalls[i].action != NULL &&
            strcmp(profile->syscalls[i].action, "SCMP_ACT_NOTIFY") == 0)
            return true;
    return false;
}

/* What keeps the program that sees results from being what is wanted; NULL: nothing. */
static const char *program_obstacle(const struct policy *policy, const struct facts *facts,
                                    const struct hardened *hardened) {
    const struct oci_namespace *pid = oci_config_namespace(hardened->config, "pid");
    if (!facts->has_file_program)
        return "a BPF program that can be loaded, by root alone and with the helper pinfold-observe";
    if (pid == NULL || oci_namespace_is_joined(pid))
        return "a process namespace of the container's own, by which the program tells its processes";
    if (policy->on_denied_action == POLICY_DENIED_LOG_ONLY)
        return "denials, of which on_denied_action: log_only leaves none to be seen";
    if (hardened->access != NULL && hardened->access->reads)
        return "a policy that does not narrow what may be read, which the seccomp observer tells";
    return NULL;
}

static fallible program_choose(const struct policy *policy, const struct facts *facts,
                               struct hardened *hardened) {
    static const char key[] = "observe.files";
    if (policy->observe_files != POLICY_OBSERVER_BPF)
        return NULL;
    const char *obstacle = program_obstacle(policy, facts, hardened);
    if (obstacle == NULL) {
        hardened->files_observer = FILES_BY_BPF;
        return NULL;
    }
    if (!string_list_contains(&policy->best_effort.values, key))
        return error_new(ERROR_UNAVAILABLE,
                         "observe.files: bpf, written in %s, needs %s; take the line out, or let it be "
                         "missing: enforcement: {best_effort: [%s]}",
                         policy_origin(policy, POLICY_OBSERVE_FILES), obstacle, key);
    harden_note(hardened, CHANGE_DEGRADED, key, "file observer", "mechanism.degraded", "observe.files: bpf",
                NULL, "Denied file calls are told by the seccomp observer: BPF needs %s.", obstacle);
    return NULL;
}

/* Where everything may be read, as by default, nobody waits for a look at it. And what is not observed at all
 * costs nothing but for chown and chmod, where those of the container's view are to be passed over. */
static void observe(const struct policy *policy, struct hardened *hardened) {
    if (policy->observe_files != POLICY_OBSERVER_OFF && hardened->files_observer == FILES_UNOBSERVED)
        hardened->files_observer = FILES_BY_SECCOMP;
    unsigned calls = hardened->inside ? OBSERVED_OWNERS : 0;
    if (hardened->files_observer == FILES_BY_SECCOMP)
        calls |= OBSERVED_MUTATIONS;
    if (hardened->files_observer == FILES_BY_SECCOMP && hardened->access != NULL && hardened->access->reads)
        calls |= OBSERVED_READS;
    if (policy->observe_processes)
        calls |= OBSERVED_EXECUTIONS;
    hardened->executions_observed = policy->observe_processes;
    hardened->observed = harden_seccomp_observed(calls);
}

/* An observer that is written has no listener. */
static fallible observer_must_not(const struct policy *policy, enum policy_key key, bool asked,
                                  const char *agent) {
    const char *name = policy_keys[key].name;
    if (policy->origins[key] == NULL || !asked || string_list_contains(&policy->best_effort.values, name))
        return NULL;
    return error_new(
        ERROR_UNAVAILABLE,
        "%s, written in %s, needs the container's only seccomp listener, which the "
        "agent at %s has by linux.seccomp.listenerPath; take the line out, or let it be missing: "
        "enforcement: {best_effort: [%s]}",
        name, policy_origin(policy, key), agent, name);
}

static fallible observers_must_not(const struct policy *policy, const char *agent) {
    TRY(observer_must_not(policy, POLICY_OBSERVE_FILES,
                          policy->observe_files != POLICY_OBSERVER_AUTO &&
                              policy->observe_files != POLICY_OBSERVER_OFF,
                          agent));
    return observer_must_not(policy, POLICY_OBSERVE_PROCESSES, policy->observe_processes, agent);
}

/* A process can have one listener, and who wrote a listenerPath wants that one. What it answers cannot widen
 * the sandbox: the denied calls come before the profile in the filter, so they are never asked about. What
 * is lost is their records, and those of writes to read-only places. */
struct error *harden_seccomp(const struct policy *policy, const struct facts *facts,
                             struct hardened *hardened) {
    const struct oci_seccomp *profile =
        hardened->config->linux_config != NULL ? hardened->config->linux_config->seccomp : NULL;
    if (!harden_seccomp_has_agent(profile)) {
        hardened->denied = harden_seccomp_denied(policy);
        TRY(program_choose(policy, facts, hardened));
        observe(policy, hardened);
        return NULL;
    }
    TRY(observers_must_not(policy, profile->listener_path));
    hardened->denied = harden_seccomp_denied_silently(policy);
    harden_note(hardened, CHANGE_DEGRADED, "linux.seccomp.listenerPath", profile->listener_path,
                "mechanism.degraded", "built-in: seccomp observer", NULL,
                "The seccomp agent at %s has the container's only listener: denied system calls, writes to "
                "read-only places and reads that the policy does not grant still fail, but are not recorded "
                "one by one, nor are the programs that are run.",
                profile->listener_path);
    return NULL;
}

struct oci_seccomp *harden_seccomp_observed(unsigned calls) {
    if (calls == 0)
        return NULL;
    struct oci_seccomp *document = document_new();
    if ((calls & OBSERVED_READS) != 0)
        document_add_row(document, &reading_row);
    if ((calls & (OBSERVED_READS | OBSERVED_EXECUTIONS)) != 0)
        document_add_row(document, &execution_row);
    if ((calls & (OBSERVED_MUTATIONS | OBSERVED_OWNERS)) != 0)
        document_add_row(document, &owner_row);
    for (size_t i = 0; (calls & OBSERVED_MUTATIONS) != 0 && i < sizeof observed_rows / sizeof *observed_rows;
         i++)
        document_add_row(document, &observed_rows[i]);
    return document;
}

static const struct row *row_find(const char *call) {
    size_t length = strlen(call);
    for (size_t i = 0; length > 0 && i < sizeof denied_rows / sizeof *denied_rows; i++) {
        const char *name = denied_rows[i].calls;
        while (*name != '\0') {
            size_t this_length = strcspn(name, " ");
            if (this_length == length && memcmp(name, call, length) == 0)
                return &denied_rows[i];
            name += this_length + strspn(name + this_length, " ");
        }
    }
    return NULL;
}

const char *harden_seccomp_reason(const char *call) {
    const struct row *row = row_find(call);
    return row != NULL ? row->reason : NULL;
}

bool harden_seccomp_key(const char *call, enum policy_key *key) {
    const struct row *row = row_find(call);
    if (row == NULL || row->unless == ALWAYS)
        return false;
    *key = row->unless == UNLESS_PTRACE ? POLICY_PROCESSES_PTRACE : POLICY_PROCESSES_USERNS;
    return true;
}
