/* What the warden may still call (DESIGN.md section 4): it reads what a hostile workload wrote. */
#include <errno.h>

#include "sys/calls.h"
#include "warden/observers.h"

/* No exec, no new process, no mount, no namespace, no new network socket, no debugging of others. */
static const char *const calls_of_warden[] = {
    /* the loop and its messages */
    "poll",
    "ppoll",
    "accept4",
    "recvmsg",
    "recvfrom",
    "sendmsg",
    "sendto",
    "shutdown",
    "getsockopt",
    "setsockopt",
    "getsockname",
    "ioctl",
    "read",
    "write",
    "writev",
    "readv",
    "pread64",
    "close",
    "fcntl",
    "dup",
    /* the observers: the caller's memory and paths, decoys */
    "process_vm_readv",
    "open",
    "openat",
    "openat2",
    "readlink",
    "readlinkat",
    "stat",
    "lstat",
    "fstat",
    "newfstatat",
    "statx",
    "statfs",
    "fstatfs",
    "access",
    "faccessat",
    "faccessat2",
    "getdents64",
    "getxattr",
    "lseek",
    "fanotify_init",
    "fanotify_mark",
    "inotify_init1",
    "inotify_add_watch",
    /* the log */
    "flock",
    "fsync",
    "fdatasync",
    "ftruncate",
    "rename",
    "renameat",
    "renameat2",
    "mkdir",
    "mkdirat",
    "unlink",
    "unlinkat",
    "fchmod",
    "umask",
    /* programs that are run, and their ends */
    "pidfd_open",
    "epoll_create1",
    "epoll_ctl",
    "epoll_wait",
    "epoll_pwait",
    /* the container's end, and ours */
    "pidfd_send_signal",
    "exit",
    "exit_group",
    /* the C library */
    "brk",
    "mmap",
    "munmap",
    "mremap",
    "mprotect",
    "madvise",
    "futex",
    "getrandom",
    "clock_gettime",
    "gettimeofday",
    "clock_nanosleep",
    "nanosleep",
    "restart_syscall",
    "rt_sigaction",
    "rt_sigprocmask",
    "rt_sigreturn",
    "sigaltstack",
    "getpid",
    "gettid",
    "getppid",
    "geteuid",
    "getuid",
    "getegid",
    "getgid",
    "sched_yield",
    "sched_getaffinity",
    "uname",
    "capget",
    "capset",
    "prctl",
};

#define COUNT(list) (sizeof(list) / sizeof *(list))

fallible confine_calls(void) {
    /* ENOSYS, EINVAL: a machine whose ABI libseccomp does not know, or a kernel without filters. */
    if (sys_seccomp_only(calls_of_warden, COUNT(calls_of_warden), NULL, 0) < 0 && errno != ENOSYS &&
        errno != EINVAL)
        return error_system(errno, "seccomp", "for the warden");
    return NULL;
}

void confine_capabilities(uint64_t keep) {
    (void)!sys_capabilities_set(keep, keep);
}
