/* What processes of our own may do: a filter of one list, and their capabilities. Those of containers are
 * process/'s. */
#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sys/calls.h"

#define CALLS_MAX 120
#define FAMILIES_MAX 8
/* Of a call's first argument that half in which an int is. */
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define FIRST_ARGUMENT (offsetof(struct seccomp_data, args) + 4)
#else
#define FIRST_ARGUMENT offsetof(struct seccomp_data, args)
#endif

int sys_seccomp_only(const char *const *names, unsigned count, const int *families, unsigned families_count) {
    int calls[CALLS_MAX];
    unsigned known = 0;
    if (count > CALLS_MAX || families_count > FAMILIES_MAX) {
        errno = E2BIG;
        return -1;
    }
    for (unsigned i = 0; i < count; i++) {
        int number = seccomp_syscall_resolve_name(names[i]);
        if (number >= 0)
            calls[known++] = number;
    }
    struct sock_filter filter[CALLS_MAX + FAMILIES_MAX + 10];
    unsigned short length = 0;
    const unsigned architecture = offsetof(struct seccomp_data, arch),
                   call = offsetof(struct seccomp_data, nr);
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, architecture);
    filter[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, seccomp_arch_native(), 1, 0);
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, call);
    if (families_count > 0) {
        unsigned char beyond = (unsigned char)(families_count + 3);
        filter[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, beyond);
        filter[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, FIRST_ARGUMENT);
        for (unsigned i = 0; i < families_count; i++)
            filter[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)families[i],
                                                            (unsigned char)(families_count - i), 0);
        filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
        filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    /* An x32 number has a bit of its own and so equals none of the list. */
    for (unsigned i = 0; i < known; i++)
        filter[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i],
                                                        (unsigned char)(known - i), 0);
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {.len = length, .filter = filter};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

int sys_capabilities_set(uint64_t keep, uint64_t use) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {0};
    if (syscall(SYS_capget, &header, data) < 0)
        return -1;
    for (int half = 0; half < 2; half++) {
        data[half].permitted &= (uint32_t)(keep >> (32 * half));
        data[half].effective = data[half].permitted & (uint32_t)(use >> (32 * half));
        data[half].inheritable = 0;
    }
    return (int)syscall(SYS_capset, &header, data);
}
