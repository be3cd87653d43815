#include "libocispec/names.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/memory.h"

const char *const oci_capability_names[] = {
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_DAC_READ_SEARCH",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_KILL",
    "CAP_SETGID",
    "CAP_SETUID",
    "CAP_SETPCAP",
    "CAP_LINUX_IMMUTABLE",
    "CAP_NET_BIND_SERVICE",
    "CAP_NET_BROADCAST",
    "CAP_NET_ADMIN",
    "CAP_NET_RAW",
    "CAP_IPC_LOCK",
    "CAP_IPC_OWNER",
    "CAP_SYS_MODULE",
    "CAP_SYS_RAWIO",
    "CAP_SYS_CHROOT",
    "CAP_SYS_PTRACE",
    "CAP_SYS_PACCT",
    "CAP_SYS_ADMIN",
    "CAP_SYS_BOOT",
    "CAP_SYS_NICE",
    "CAP_SYS_RESOURCE",
    "CAP_SYS_TIME",
    "CAP_SYS_TTY_CONFIG",
    "CAP_MKNOD",
    "CAP_LEASE",
    "CAP_AUDIT_WRITE",
    "CAP_AUDIT_CONTROL",
    "CAP_SETFCAP",
    "CAP_MAC_OVERRIDE",
    "CAP_MAC_ADMIN",
    "CAP_SYSLOG",
    "CAP_WAKE_ALARM",
    "CAP_BLOCK_SUSPEND",
    "CAP_AUDIT_READ",
    "CAP_PERFMON",
    "CAP_BPF",
    "CAP_CHECKPOINT_RESTORE",
    NULL,
};

const char *const oci_namespace_types[] = {
    "pid", "network", "mount", "ipc", "uts", "user", "cgroup", "time", NULL,
};

const char *const oci_hook_names[] = {
    "prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop", NULL,
};

const char *const oci_seccomp_actions[] = {
    "SCMP_ACT_KILL",  "SCMP_ACT_KILL_PROCESS", "SCMP_ACT_KILL_THREAD", "SCMP_ACT_TRAP",   "SCMP_ACT_ERRNO",
    "SCMP_ACT_TRACE", "SCMP_ACT_ALLOW",        "SCMP_ACT_LOG",         "SCMP_ACT_NOTIFY", NULL,
};

const char *const oci_seccomp_operators[] = {
    "SCMP_CMP_NE", "SCMP_CMP_LT", "SCMP_CMP_LE",        "SCMP_CMP_EQ",
    "SCMP_CMP_GE", "SCMP_CMP_GT", "SCMP_CMP_MASKED_EQ", NULL,
};

const char *const oci_seccomp_architectures[] = {
    "SCMP_ARCH_X86",     "SCMP_ARCH_X86_64",   "SCMP_ARCH_X32",         "SCMP_ARCH_ARM",
    "SCMP_ARCH_AARCH64", "SCMP_ARCH_MIPS",     "SCMP_ARCH_MIPS64",      "SCMP_ARCH_MIPS64N32",
    "SCMP_ARCH_MIPSEL",  "SCMP_ARCH_MIPSEL64", "SCMP_ARCH_MIPSEL64N32", "SCMP_ARCH_PPC",
    "SCMP_ARCH_PPC64",   "SCMP_ARCH_PPC64LE",  "SCMP_ARCH_S390",        "SCMP_ARCH_S390X",
    "SCMP_ARCH_PARISC",  "SCMP_ARCH_PARISC64", "SCMP_ARCH_RISCV64",     "SCMP_ARCH_LOONGARCH64",
    "SCMP_ARCH_M68K",    "SCMP_ARCH_SH",       "SCMP_ARCH_SHEB",        NULL,
};

const char *const oci_seccomp_flags[] = {
    "SECCOMP_FILTER_FLAG_TSYNC",
    "SECCOMP_FILTER_FLAG_LOG",
    "SECCOMP_FILTER_FLAG_SPEC_ALLOW",
    "SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV",
    NULL,
};

const char *const oci_scheduler_policies[] = {
    "SCHED_OTHER", "SCHED_FIFO", "SCHED_RR", "SCHED_BATCH", "SCHED_ISO", "SCHED_IDLE", "SCHED_DEADLINE", NULL,
};

const char *const oci_scheduler_flags[] = {
    "SCHED_FLAG_RESET_ON_FORK",  "SCHED_FLAG_RECLAIM",
    "SCHED_FLAG_DL_OVERRUN",     "SCHED_FLAG_KEEP_POLICY",
    "SCHED_FLAG_KEEP_PARAMS",    "SCHED_FLAG_UTIL_CLAMP_MIN",
    "SCHED_FLAG_UTIL_CLAMP_MAX", NULL,
};

const char *const oci_io_priority_classes[] = {
    "IOPRIO_CLASS_RT",
    "IOPRIO_CLASS_BE",
    "IOPRIO_CLASS_IDLE",
    NULL,
};

const char *const oci_memory_policy_modes[] = {
    "MPOL_DEFAULT",        "MPOL_PREFERRED",           "MPOL_BIND", "MPOL_INTERLEAVE", "MPOL_LOCAL",
    "MPOL_PREFERRED_MANY", "MPOL_WEIGHTED_INTERLEAVE", NULL,
};

const char *const oci_memory_policy_flags[] = {
    "MPOL_F_NUMA_BALANCING",
    "MPOL_F_RELATIVE_NODES",
    "MPOL_F_STATIC_NODES",
    NULL,
};

static const struct {
    const char *name;
    int number;
} rlimits[] = {
    {"RLIMIT_AS", RLIMIT_AS},
    {"RLIMIT_CORE", RLIMIT_CORE},
    {"RLIMIT_CPU", RLIMIT_CPU},
    {"RLIMIT_DATA", RLIMIT_DATA},
    {"RLIMIT_FSIZE", RLIMIT_FSIZE},
    {"RLIMIT_LOCKS", RLIMIT_LOCKS},
    {"RLIMIT_MEMLOCK", RLIMIT_MEMLOCK},
    {"RLIMIT_MSGQUEUE", RLIMIT_MSGQUEUE},
    {"RLIMIT_NICE", RLIMIT_NICE},
    {"RLIMIT_NOFILE", RLIMIT_NOFILE},
    {"RLIMIT_NPROC", RLIMIT_NPROC},
    {"RLIMIT_RSS", RLIMIT_RSS},
    {"RLIMIT_RTPRIO", RLIMIT_RTPRIO},
    {"RLIMIT_RTTIME", RLIMIT_RTTIME},
    {"RLIMIT_SIGPENDING", RLIMIT_SIGPENDING},
    {"RLIMIT_STACK", RLIMIT_STACK},
};

int oci_name_index(const char *const *names, const char *name) {
    for (int i = 0; name != NULL && names[i] != NULL; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

int oci_capability_number(const char *name) {
    return oci_name_index(oci_capability_names, name);
}

const char *oci_capability_name(int number) {
    int count = (int)(sizeof oci_capability_names / sizeof *oci_capability_names) - 1;
    return number >= 0 && number < count ? oci_capability_names[number] : NULL;
}

int oci_rlimit_number(const char *name) {
    for (size_t i = 0; name != NULL && i < sizeof rlimits / sizeof *rlimits; i++)
        if (strcmp(rlimits[i].name, name) == 0)
            return rlimits[i].number;
    return -1;
}

char *oci_sysctl_path(const char *key) {
    char *path = memory_copy_string(key);
    if (path[strcspn(path, "./")] == '.') {
        for (char *byte = path; *byte != '\0'; byte++)
            *byte = *byte == '.' ? '/' : *byte == '/' ? '.' : *byte;
    }
    for (const char *component = path;; component++) {
        size_t length = strcspn(component, "/");
        if (length == 0 || (component[0] == '.' && (length == 1 || (length == 2 && component[1] == '.')))) {
            free(path);
            return NULL;
        }
        component += length;
        if (*component == '\0')
            return path;
    }
}

/* A decimal number at *text, which is moved beyond it; -1 if there is none, or too large a one. */
static long index_read(const char **text) {
    long number = 0;
    const char *digit = *text;
    for (; *digit >= '0' && *digit <= '9' && number < OCI_INDEX_COUNT; digit++)
        number = number * 10 + (*digit - '0');
    if (digit == *text || number >= OCI_INDEX_COUNT)
        return -1;
    *text = digit;
    return number;
}

bool oci_index_set_parse(const char *text, struct oci_index_set *out) {
    const size_t bits = 8 * sizeof(unsigned long);
    if (out != NULL)
        *out = (struct oci_index_set){0};
    for (;; text++) {
        long first = index_read(&text);
        long last = first;
        if (first >= 0 && *text == '-') {
            text++;
            last = index_read(&text);
        }
        if (first < 0 || last < first)
            return false;
        for (long index = first; out != NULL && index <= last; index++)
            out->words[(size_t)index / bits] |= 1UL << ((size_t)index % bits);
        if (*text != ',')
            return *text == '\0';
    }
}
