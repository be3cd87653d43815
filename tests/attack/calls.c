/* System calls that a sandbox denies, in all the ways in which they can be said. */
#define _GNU_SOURCE
#include "attempts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/mount.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int outcome(long result) {
    return result < 0 ? -1 : 0;
}

/* --- mounts --- */

static int mount_tmpfs(void) {
    return mount("none", "/work", "tmpfs", 0, NULL);
}
static int mount_remount(void) {
    return mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL);
}
static int mount_bind(void) {
    return mount("/proc", "/work", NULL, MS_BIND | MS_REC, NULL);
}
static int umount_mask(void) {
    return umount2("/proc/keys", MNT_DETACH);
}
static int mount_pivot(void) {
    /* Where it works it must not take the root from the other attempts. */
    unshare(CLONE_NEWNS);
    mount(NULL, "/", NULL, MS_PRIVATE | MS_REC, NULL);
    mount("none", "/work", "tmpfs", 0, NULL);
    if (chdir("/work") < 0)
        return -1;
    return outcome(syscall(SYS_pivot_root, ".", "."));
}
static int mount_open_tree(void) {
    return outcome(syscall(SYS_open_tree, AT_FDCWD, "/", OPEN_TREE_CLONE));
}
static int mount_move(void) {
    long fd = syscall(SYS_open_tree, AT_FDCWD, "/proc", OPEN_TREE_CLONE);
    return outcome(syscall(SYS_move_mount, fd, "", AT_FDCWD, "/work", MOVE_MOUNT_F_EMPTY_PATH));
}
static int mount_fsopen(void) {
    return outcome(syscall(SYS_fsopen, "tmpfs", 0));
}
static int mount_fspick(void) {
    return outcome(syscall(SYS_fspick, AT_FDCWD, "/", 0));
}
static int mount_attributes(void) {
    struct mount_attr attributes = {.attr_clr = MOUNT_ATTR_RDONLY};
    return outcome(syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, &attributes, sizeof attributes));
}

/* --- namespaces --- */

static int namespace_user(void) {
    return unshare(CLONE_NEWUSER);
}
static int namespace_mount(void) {
    return unshare(CLONE_NEWNS);
}
/* One without a wall. */
static int namespace_network(void) {
    return unshare(CLONE_NEWNET);
}
static int namespace_many(void) {
    return unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID | CLONE_FS);
}
static int namespace_clone(void) {
    long child = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
    if (child == 0)
        _exit(0);
    return outcome(child);
}
static int namespace_clone3(void) {
    struct {
        uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
    } arguments = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
    long child = syscall(SYS_clone3, &arguments, sizeof arguments);
    if (child == 0)
        _exit(0);
    return outcome(child);
}
static int namespace_join(void) {
    int fd = open("/proc/self/ns/net", O_RDONLY);
    return fd < 0 ? -1 : setns(fd, CLONE_NEWNET);
}
static int namespace_join_process(void) {
    long fd = syscall(SYS_pidfd_open, getppid(), 0);
    return fd < 0 ? -1 : setns((int)fd, CLONE_NEWUTS);
}

/* --- the kernel --- */

static int kernel_bpf(void) {
    union bpf_attr attributes = {
        .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
    return outcome(syscall(SYS_bpf, BPF_MAP_CREATE, &attributes, sizeof attributes));
}
static int kernel_perf(void) {
    struct perf_event_attr attributes = {
        .type = PERF_TYPE_SOFTWARE, .size = sizeof attributes, .config = PERF_COUNT_SW_CPU_CLOCK};
    return outcome(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0));
}
static int kernel_userfaultfd(void) {
    return outcome(syscall(SYS_userfaultfd, 1 /* UFFD_USER_MODE_ONLY */));
}
static int kernel_log(void) {
    return outcome(syscall(SYS_syslog, 10 /* size of the buffer */, NULL, 0));
}
static int kernel_kexec(void) {
    return outcome(syscall(SYS_kexec_load, 0L, 0xffffL, NULL, 0L));
}
/* None of these does anything where it is let through: the arguments are wrong. */
static int kernel_reboot(void) {
    return outcome(syscall(SYS_reboot, 0xfee1dead, 672274793, 0x12345, NULL));
}
static int kernel_module_load(void) {
    return outcome(syscall(SYS_finit_module, -1, "", 0));
}
static int kernel_module_image(void) {
    return outcome(syscall(SYS_init_module, NULL, 0L, ""));
}
static int kernel_module_remove(void) {
    return outcome(syscall(SYS_delete_module, "pinfold_none", O_NONBLOCK));
}
static int kernel_swap(void) {
    return outcome(syscall(SYS_swapon, "/pinfold-none", 0));
}
static int kernel_accounting(void) {
    return outcome(syscall(SYS_acct, "/pinfold-none"));
}
static int kernel_quota(void) {
    return outcome(syscall(SYS_quotactl, 0x80000500 /* Q_GETINFO, user */, "/pinfold-none", 0, NULL));
}
static int kernel_clock(void) {
    return outcome(syscall(SYS_settimeofday, NULL, NULL));
}
static int kernel_clock_by_id(void) {
    return outcome(syscall(SYS_clock_settime, CLOCK_REALTIME, NULL));
}
static int kernel_fanotify(void) {
    return outcome(syscall(SYS_fanotify_init, FAN_CLASS_NOTIF, O_RDONLY));
}

/* --- keyrings --- */

#define PROCESS_KEYRING (-2)
#define SESSION_KEYRING (-3)

static int key_add(void) {
    return outcome(syscall(SYS_add_key, "user", "pinfold-escape", "x", 1L, PROCESS_KEYRING));
}
static int key_request(void) {
    syscall(SYS_add_key, "user", "pinfold-escape", "x", 1L, PROCESS_KEYRING);
    return outcome(syscall(SYS_request_key, "user", "pinfold-escape", NULL, PROCESS_KEYRING));
}
static int key_control(void) {
    return outcome(syscall(SYS_keyctl, 0 /* KEYCTL_GET_KEYRING_ID */, SESSION_KEYRING, 0));
}

/* --- rings, whose requests pass by every filter --- */

/* One request, submitted and waited for; its result as a system call has it. */
static int ring_do(struct io_uring_sqe request) {
    struct io_uring_params parameters = {0};
    int ring = (int)syscall(SYS_io_uring_setup, 4, &parameters);
    if (ring < 0)
        return -1;
    size_t size = parameters.sq_off.array + parameters.sq_entries * sizeof(uint32_t);
    size_t completions = parameters.cq_off.cqes + parameters.cq_entries * sizeof(struct io_uring_cqe);
    if (completions > size)
        size = completions;
    char *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    struct io_uring_sqe *requests = mmap(NULL, parameters.sq_entries * sizeof *requests,
                                         PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
    char *done = (parameters.features & IORING_FEAT_SINGLE_MMAP) != 0
                     ? shared
                     : mmap(NULL, completions, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_CQ_RING);
    if (shared == MAP_FAILED || requests == MAP_FAILED || done == MAP_FAILED)
        return -1;
    requests[0] = request;
    *(uint32_t *)(shared + parameters.sq_off.array) = 0;
    __atomic_store_n((uint32_t *)(shared + parameters.sq_off.tail), 1, __ATOMIC_RELEASE);
    if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
        return -1;
    const struct io_uring_cqe *completion = (const struct io_uring_cqe *)(done + parameters.cq_off.cqes);
    errno = completion->res < 0 ? -completion->res : 0;
    return completion->res < 0 ? -1 : completion->res;
}

static int ring_open(void) {
    return outcome(ring_do((struct io_uring_sqe){.opcode = IORING_OP_OPENAT,
                                                 .fd = AT_FDCWD,
                                                 .addr = (uintptr_t) "/etc/passwd",
                                                 .open_flags = O_RDONLY}));
}
static int ring_connect(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, length) < 0 || listen(listener, 1) < 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) < 0)
        return -1;
    return outcome(ring_do((struct io_uring_sqe){.opcode = IORING_OP_CONNECT,
                                                 .fd = socket(AF_INET, SOCK_STREAM, 0),
                                                 .addr = (uintptr_t)&address,
                                                 .off = sizeof address}));
}

/* --- files by their number: CVE of 2014, "shocker" --- */

static int handle_open(void) {
    struct {
        struct file_handle handle;
        unsigned char bytes[128];
    } file = {.handle.handle_bytes = sizeof file.bytes};
    int mount_id;
    if (name_to_handle_at(AT_FDCWD, "/dev/shm", &file.handle, &mount_id, 0) < 0)
        return -1;
    int mount_fd = open("/dev/shm", O_RDONLY | O_DIRECTORY);
    return outcome(open_by_handle_at(mount_fd, &file.handle, O_RDONLY));
}

/* --- socket families --- */

static int family_vsock(void) {
    return socket(40, SOCK_STREAM, 0) < 0 ? -1 : 0;
}
static int family_packet(void) {
    return socket(AF_PACKET, SOCK_RAW, 0) < 0 ? -1 : 0;
}
static int family_alg(void) {
    return socket(38, SOCK_SEQPACKET, 0) < 0 ? -1 : 0;
}
static int family_xdp(void) {
    return socket(44, SOCK_RAW, 0) < 0 ? -1 : 0;
}
static int family_key(void) {
    return socket(15, SOCK_RAW, 2) < 0 ? -1 : 0;
}
static int family_bluetooth(void) {
    return socket(31, SOCK_RAW, 1) < 0 ? -1 : 0;
}
static int family_netfilter(void) {
    return socket(AF_NETLINK, SOCK_RAW, 12) < 0 ? -1 : 0;
}
static int family_diag(void) {
    return socket(AF_NETLINK, SOCK_RAW, 4) < 0 ? -1 : 0;
}
static int family_audit(void) {
    return socket(AF_NETLINK, SOCK_RAW, 9) < 0 ? -1 : 0;
}
/* The kernel takes the low half alone. */
static int family_upper_half(void) {
    return outcome(syscall(SYS_socket, 1L << 32 | AF_PACKET, (long)SOCK_RAW, 0L));
}

/* --- through another door of the kernel --- */

#ifdef __x86_64__
static long call_32(long number, long a, long b, long c, long d) {
    long result;
    register long r8 __asm__("r8") = 0; /* int 0x80 clears r8 to r11 on some kernels */
    __asm__ volatile("int $0x80"
                     : "=a"(result), "+r"(r8)
                     : "a"(number), "b"(a), "c"(b), "d"(c), "S"(d), "D"(0)
                     : "memory", "r9", "r10", "r11");
    result = (int)result;
    errno = result < 0 ? (int)-result : 0;
    return result < 0 ? -1 : result;
}
static int door_32_mount(void) {
    return outcome(call_32(21, 0, 0, 0, 0));
}
static int door_32_socketcall(void) {
    uint32_t *arguments =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    arguments[0] = AF_PACKET;
    arguments[1] = SOCK_RAW;
    return outcome(call_32(102, 1, (long)(uintptr_t)arguments, 0, 0));
}
static int door_32_socket(void) {
    return outcome(call_32(359, AF_PACKET, SOCK_RAW, 0, 0));
}
static int door_32_keyctl(void) {
    return outcome(call_32(288, 0, SESSION_KEYRING, 0, 0));
}
static int door_x32_mount(void) {
    return outcome(syscall(0x40000000 | SYS_mount, NULL, NULL, NULL, 0L, NULL));
}
#endif

/* --- the terminal, whose reader outside is a shell --- */

static int terminal(void) {
    setsid();
    int controller = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    if (controller < 0 || unlockpt(controller) < 0)
        return -1;
    int fd = open(ptsname(controller), O_RDWR | O_NOCTTY);
    ioctl(fd, TIOCSCTTY, 0);
    return fd;
}
static int terminal_type(void) {
    return ioctl(terminal(), TIOCSTI, "x");
}
static int terminal_type_upper_half(void) {
    return outcome(syscall(SYS_ioctl, (long)terminal(), 1L << 32 | TIOCSTI, "x"));
}
static int terminal_paste(void) {
    char paste = 3;
    return ioctl(terminal(), 0x541C /* TIOCLINUX */, &paste);
}

/* --- the sandbox's own filter --- */

static int filter_listener(void) {
    struct sock_filter allow = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
    struct sock_fprog program = {1, &allow};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return outcome(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program));
}

const struct attempt call_attempts[] = {
    {"mount_tmpfs", mount_tmpfs},
    {"mount_remount", mount_remount},
    {"mount_bind", mount_bind},
    {"umount_mask", umount_mask},
    {"mount_pivot", mount_pivot},
    {"mount_open_tree", mount_open_tree},
    {"mount_move", mount_move},
    {"mount_fsopen", mount_fsopen},
    {"mount_fspick", mount_fspick},
    {"mount_attributes", mount_attributes},
    {"namespace_user", namespace_user},
    {"namespace_mount", namespace_mount},
    {"namespace_network", namespace_network},
    {"namespace_many", namespace_many},
    {"namespace_clone", namespace_clone},
    {"namespace_clone3", namespace_clone3},
    {"namespace_join", namespace_join},
    {"namespace_join_process", namespace_join_process},
    {"kernel_bpf", kernel_bpf},
    {"kernel_perf", kernel_perf},
    {"kernel_userfaultfd", kernel_userfaultfd},
    {"kernel_log", kernel_log},
    {"kernel_kexec", kernel_kexec},
    {"kernel_reboot", kernel_reboot},
    {"kernel_module_load", kernel_module_load},
    {"kernel_module_image", kernel_module_image},
    {"kernel_module_remove", kernel_module_remove},
    {"kernel_swap", kernel_swap},
    {"kernel_accounting", kernel_accounting},
    {"kernel_quota", kernel_quota},
    {"kernel_clock", kernel_clock},
    {"kernel_clock_by_id", kernel_clock_by_id},
    {"kernel_fanotify", kernel_fanotify},
    {"key_add", key_add},
    {"key_request", key_request},
    {"key_control", key_control},
    {"ring_open", ring_open},
    {"ring_connect", ring_connect},
    {"handle_open", handle_open},
    {"family_vsock", family_vsock},
    {"family_packet", family_packet},
    {"family_alg", family_alg},
    {"family_xdp", family_xdp},
    {"family_key", family_key},
    {"family_bluetooth", family_bluetooth},
    {"family_netfilter", family_netfilter},
    {"family_diag", family_diag},
    {"family_audit", family_audit},
    {"family_upper_half", family_upper_half},
#ifdef __x86_64__
    {"door_32_mount", door_32_mount},
    {"door_32_socketcall", door_32_socketcall},
    {"door_32_socket", door_32_socket},
    {"door_32_keyctl", door_32_keyctl},
    {"door_x32_mount", door_x32_mount},
#endif
    {"terminal_type", terminal_type},
    {"terminal_type_upper_half", terminal_type_upper_half},
    {"terminal_paste", terminal_paste},
    {"filter_listener", filter_listener},
    {0},
};
