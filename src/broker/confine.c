/* What hostile bytes could make of the broker (DESIGN.md section 4): a process without a file system, without
 * another program, and without a privilege but that of marking its packets. */
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "broker/parts.h"
#include "sys/calls.h"
#include "sys/landlock.h"

#define NOBODY 65534
#define DESCRIPTORS (2 * 4096 + 256)

/* No open, no exec, no new process, no signal, no debugging of others, no listening. */
static const char *const calls_of_broker[] = {
    /* the loop */
    "epoll_wait",
    "epoll_pwait",
    "epoll_ctl",
    "poll",
    "ppoll",
    /* sockets that were made for it, and those that it makes to connect */
    "accept4",
    "socket",
    "connect",
    "getsockopt",
    "setsockopt",
    "getsockname",
    "getpeername",
    "recvfrom",
    "recvmsg",
    "sendto",
    "sendmsg",
    "read",
    "readv",
    "write",
    "writev",
    "shutdown",
    "close",
    "fcntl",
    "ioctl",
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
    "time",
    "restart_syscall",
    "rt_sigreturn",
    "rt_sigprocmask",
    "getpid",
    "gettid",
    "exit",
    "exit_group",
};

/* No AF_UNIX: a path leads to a socket of the machine's. AF_NETLINK: routes (engine_names.c). */
static const int families_of_broker[] = {AF_INET, AF_INET6, AF_NETLINK};

#define COUNT(list) (sizeof(list) / sizeof *(list))
#define CAPABILITY(name) (UINT64_C(1) << (name))

const char *const *confine_broker_calls(unsigned *count) {
    *count = COUNT(calls_of_broker);
    return calls_of_broker;
}

const int *confine_broker_families(unsigned *count) {
    *count = COUNT(families_of_broker);
    return families_of_broker;
}

/* Keeps the one capability with which packets can be marked: CAP_NET_RAW since Linux 5.17, before that
 * CAP_NET_ADMIN, which can do much more. */
static bool keep_mark(void) {
    static const uint64_t ways[] = {CAPABILITY(CAP_NET_RAW), CAPABILITY(CAP_NET_ADMIN)};
    fd_owned int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    uint32_t mark = 1;
    for (unsigned i = 0; i < COUNT(ways); i++)
        if (sys_capabilities_set(ways[0] | ways[1], ways[i]) == 0 &&
            setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof mark) == 0)
            return sys_capabilities_set(ways[i], ways[i]) == 0;
    return false;
}

static struct error *become_nobody(uint64_t keep) {
    if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
        return error_system(errno, "prctl", "PR_SET_KEEPCAPS");
    /* EPERM: an ordinary user, who stays one. EINVAL: the user namespace has no such user; then what drops
     * the privileges is the capabilities alone. */
    if (setgroups(0, NULL) < 0 && errno != EPERM)
        return error_system(errno, "setgroups", "of the broker");
    if (setresgid(NOBODY, NOBODY, NOBODY) < 0 && errno != EPERM && errno != EINVAL)
        return error_system(errno, "setresgid", "of the broker");
    if (setresuid(NOBODY, NOBODY, NOBODY) < 0 && errno != EPERM && errno != EINVAL)
        return error_system(errno, "setresuid", "of the broker");
    return sys_capabilities_set(keep, keep) < 0 ? error_system(errno, "capset", "of the broker") : NULL;
}

/* A ruleset without a rule: no file can be opened. A second layer, since no call that opens one is left. */
static void no_files(void) {
    static const uint64_t rights[] = {(LANDLOCK_FS_TRUNCATE << 1) - 1, (LANDLOCK_FS_REFER << 1) - 1,
                                      LANDLOCK_FS_REFER - 1};
    for (unsigned i = 0; i < COUNT(rights); i++) {
        fd_owned int ruleset = sys_landlock_create(rights[i]);
        if (ruleset < 0)
            continue;
        (void)!sys_landlock_restrict(ruleset);
        return;
    }
}

struct error *confine_broker(bool marks) {
    struct rlimit descriptors;
    if (getrlimit(RLIMIT_NOFILE, &descriptors) == 0) {
        rlim_t most = descriptors.rlim_max;
        descriptors.rlim_cur = most == RLIM_INFINITY || most > DESCRIPTORS ? DESCRIPTORS : most;
        (void)setrlimit(RLIMIT_NOFILE, &descriptors); /* fewer connections at once */
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return error_system(errno, "prctl", "PR_SET_NO_NEW_PRIVS");
    TRY(become_nobody(marks ? CAPABILITY(CAP_NET_RAW) | CAPABILITY(CAP_NET_ADMIN) : 0));
    if (marks && !keep_mark())
        return error_new(ERROR_UNAVAILABLE,
                         "it may not mark its packets (SO_MARK) in the container's network namespace");
    no_files();
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return error_system(errno, "prctl", "for the broker");
    /* ENOSYS, EINVAL: a machine whose ABI libseccomp does not know, or a kernel without filters. */
    if (sys_seccomp_only(calls_of_broker, COUNT(calls_of_broker), families_of_broker,
                         COUNT(families_of_broker)) < 0 &&
        errno != ENOSYS && errno != EINVAL)
        return error_system(errno, "seccomp", "for the broker");
    return NULL;
}

void confine_keeper(void) {
    /* Its child gives up what it does not need itself: to mark, to become nobody. What is bound again are low
     * ports; and the child is another user's, in time. */
    static const uint64_t needed = CAPABILITY(CAP_NET_RAW) | CAPABILITY(CAP_NET_ADMIN) |
                                   CAPABILITY(CAP_NET_BIND_SERVICE) | CAPABILITY(CAP_SETUID) |
                                   CAPABILITY(CAP_SETGID) | CAPABILITY(CAP_KILL);
    (void)sys_capabilities_set(needed, needed);
}
