#include "sys/calls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <linux/sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OPEN_ATTEMPTS 1024

/* Not in Debian 12's kernel headers: include/uapi/linux/pidfd.h of 6.15. */
struct pidfd_info_615 {
    uint64_t mask;
    uint64_t cgroupid;
    uint32_t pid, tgid, ppid;
    uint32_t ruid, rgid, euid, egid, suid, sgid, fsuid, fsgid;
    int32_t exit_code;
};
#define PIDFD_GET_INFO_615 _IOWR(0xFF, 11, struct pidfd_info_615)
#define PIDFD_INFO_EXIT_615 (1ULL << 3)

pid_t sys_clone3(uint64_t flags, int *pidfd, int cgroup_fd) {
    int descriptor = -1;
    struct clone_args arguments = {
        .flags = flags | CLONE_PIDFD, .pidfd = (uint64_t)(uintptr_t)&descriptor, .exit_signal = SIGCHLD};
    if (flags & CLONE_PARENT) /* the kernel takes it from the caller then, and refuses one */
        arguments.exit_signal = 0;
    if (cgroup_fd >= 0) {
        arguments.flags |= CLONE_INTO_CGROUP;
        arguments.cgroup = (uint64_t)cgroup_fd;
    }
    pid_t pid = (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);
    if (pid > 0)
        *pidfd = descriptor;
    return pid;
}

#define SPAWN_STACK_BYTES (256 * 1024)

#ifdef __SANITIZE_ADDRESS__
/* AddressSanitizer takes a stack that it did not make for a wild pointer; its builds fork. */
pid_t sys_spawn(int (*body)(void *data), void *data, int *pidfd) {
    pid_t pid = sys_clone3(0, pidfd, -1);
    if (pid == 0)
        _exit(body(data));
    return pid;
}
#else
pid_t sys_spawn(int (*body)(void *data), void *data, int *pidfd) {
    char *stack =
        mmap(NULL, SPAWN_STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED)
        return -1;
    pid_t pid =
        clone(body, stack + SPAWN_STACK_BYTES, CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, data, pidfd);
    int number = errno;
    munmap(stack, SPAWN_STACK_BYTES);
    errno = number;
    return pid;
}
#endif

#ifdef PINFOLD_FAULT_POINTS
/* tests/bats/rootfs.bats: so many attempts of each lookup meet a rename. Read at the start, because init has
 * no environment. */
static int attempts_that_fail;
__attribute__((constructor)) static void attempts_read(void) {
    const char *again = getenv("PINFOLD_OPEN_AGAIN");
    attempts_that_fail = again != NULL ? (int)strtol(again, NULL, 10) : 0;
}
#else
enum { attempts_that_fail = 0 };
#endif

static int openat2_once(int directory, const char *path, struct open_how *how, int attempt) {
    if (attempt < attempts_that_fail) {
        errno = EAGAIN;
        return -1;
    }
    return (int)syscall(SYS_openat2, directory, path, how, sizeof *how);
}

int sys_openat2(int directory, const char *path, uint64_t flags, uint64_t mode, uint64_t resolve) {
    struct open_how how = {.flags = flags | O_CLOEXEC, .mode = mode, .resolve = resolve};
    int fd = -1;
    for (int attempt = 0; attempt < OPEN_ATTEMPTS; attempt++) {
        fd = openat2_once(directory, path, &how, attempt);
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
            break;
    }
    return fd;
}

int sys_open_tree(int directory, const char *path, unsigned flags) {
    return (int)syscall(SYS_open_tree, directory, path, flags | OPEN_TREE_CLOEXEC);
}

int sys_move_mount(int from_directory, const char *from, int to_directory, const char *to, unsigned flags) {
    return (int)syscall(SYS_move_mount, from_directory, from, to_directory, to, flags);
}

int sys_fsopen(const char *type, unsigned flags) {
    return (int)syscall(SYS_fsopen, type, flags | FSOPEN_CLOEXEC);
}

int sys_fspick(int directory, const char *path, unsigned flags) {
    return (int)syscall(SYS_fspick, directory, path, flags | FSPICK_CLOEXEC);
}

int sys_fsconfig(int fs, unsigned command, const char *key, const void *value, int auxiliary) {
    return (int)syscall(SYS_fsconfig, fs, command, key, value, auxiliary);
}

int sys_fsmount(int fs, unsigned flags, unsigned attributes) {
    return (int)syscall(SYS_fsmount, fs, flags | FSMOUNT_CLOEXEC, attributes);
}

int sys_mount_setattr(int directory, const char *path, unsigned flags, const struct mount_attr *attributes) {
    return (int)syscall(SYS_mount_setattr, directory, path, flags, attributes, sizeof *attributes);
}

int sys_pivot_root(const char *new_root, const char *put_old) {
    return (int)syscall(SYS_pivot_root, new_root, put_old);
}

int sys_pidfd_open(pid_t pid, unsigned flags) {
    return (int)syscall(SYS_pidfd_open, pid, flags);
}

int sys_pidfd_send_signal(int pidfd, int signal) {
    return (int)syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0);
}

void sys_signals_reset(void) {
    /* The kernel's own structure; its size does not depend on glibc's sigset_t. */
    const struct {
        void (*handler)(int);
        unsigned long flags;
        void (*restorer)(void);
        uint64_t mask;
    } action = {.handler = SIG_DFL};
    const uint64_t none = 0;
    for (int number = 1; number <= 64; number++)
        (void)!syscall(SYS_rt_sigaction, number, &action, NULL, sizeof none); /* EINVAL: SIGKILL, SIGSTOP */
    (void)!syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof none);
}

bool sys_seccomp_flag_supported(const char *name) {
    static const struct {
        const char *name;
        unsigned flags;
    } known[] = {
        {"SECCOMP_FILTER_FLAG_TSYNC", 1u << 0},
        {"SECCOMP_FILTER_FLAG_LOG", 1u << 1},
        {"SECCOMP_FILTER_FLAG_SPEC_ALLOW", 1u << 2},
        {"SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV", 1u << 3 | 1u << 5}, /* with NEW_LISTENER only */
    };
    /* A flag that is unknown is EINVAL before the filter is looked at; there is none at address 0. */
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, name) == 0)
            return syscall(SYS_seccomp, 1 /* SECCOMP_SET_MODE_FILTER */, known[i].flags, NULL) < 0 &&
                   errno == EFAULT;
    return false;
}

/* Not in Debian 12's kernel headers: include/uapi/linux/nsfs.h of 6.11. */
#define NS_GET_MNTNS_ID_611 _IOR(0xb7, 0x5, uint64_t)

int sys_mount_namespace_id(int fd, uint64_t *id) {
    return ioctl(fd, NS_GET_MNTNS_ID_611, id);
}

int sys_close_range(unsigned first, unsigned last, unsigned flags) {
    return (int)syscall(SYS_close_range, first, last, flags);
}

int sys_keyctl_join_session(const char *name) {
    return (int)syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, name, 0, 0, 0);
}

int sys_pidfd_exit_status(int pidfd, int *wait_status) {
    struct pidfd_info_615 info = {.mask = PIDFD_INFO_EXIT_615};
    if (ioctl(pidfd, PIDFD_GET_INFO_615, &info) < 0) {
        errno = ENOSYS;
        return -1;
    }
    if (!(info.mask & PIDFD_INFO_EXIT_615)) {
        errno = EAGAIN;
        return -1;
    }
    *wait_status = info.exit_code;
    return 0;
}

int sys_execveat(int directory, const char *path, char *const *arguments, char *const *environment,
                 int flags) {
    return (int)syscall(SYS_execveat, directory, path, arguments, environment, flags);
}

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

int sys_memfd_executable(const char *name) {
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
    if (fd < 0 && errno == EINVAL) /* before Linux 6.3 every one is executable */
        fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    return fd;
}
