/* Other processes, and what root may do where nothing takes it away. */
#define _GNU_SOURCE
#include "attempts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

static char memory[16];

static int process_trace(void) {
    return ptrace(PTRACE_SEIZE, attempt_peer(), NULL, NULL) < 0 ? -1 : 0;
}
static int process_read(void) {
    struct iovec here = {memory, 1}, there = {memory, 1};
    return process_vm_readv(attempt_peer(), &here, 1, &there, 1, 0) < 0 ? -1 : 0;
}
static int process_write(void) {
    struct iovec here = {memory, 1}, there = {memory, 1};
    return process_vm_writev(attempt_peer(), &here, 1, &there, 1, 0) < 0 ? -1 : 0;
}
static int process_descriptor(void) {
    long process = syscall(SYS_pidfd_open, attempt_peer(), 0);
    return syscall(SYS_pidfd_getfd, process, 0, 0) < 0 ? -1 : 0;
}
static int process_compare(void) {
    return syscall(SYS_kcmp, getpid(), attempt_peer(), KCMP_FILE, 0L, 0L) < 0 ? -1 : 0;
}

static int peer_open(const char *file, int flags) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", attempt_peer(), file);
    return open(path, flags);
}
static int process_environment(void) {
    return attempt_find_marker(peer_open("environ", O_RDONLY));
}
static int process_root(void) {
    return attempt_find_marker(peer_open("root/secret", O_RDONLY));
}
static int process_memory(void) {
    int fd = peer_open("mem", O_RDWR);
    return fd < 0 || pread(fd, memory, 1, (off_t)(uintptr_t)memory) < 0 ? -1 : 0;
}

/* --- capabilities --- */

static int capability_chroot(void) {
    return chroot("/work");
}
static int capability_disk(void) {
    return mknod("/tmp/disk", S_IFBLK | 0600, makedev(8, 0));
}
static int capability_raw_socket(void) {
    return socket(AF_INET, SOCK_RAW, IPPROTO_ICMP) < 0 ? -1 : 0;
}
static int capability_host_name(void) {
    return sethostname("escaped", 7);
}
static int capability_priority(void) {
    return setpriority(PRIO_PROCESS, 0, -5);
}
static int capability_interface(void) {
    struct ifreq request = {.ifr_name = "lo"};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &request) < 0)
        return -1;
    return ioctl(fd, SIOCSIFFLAGS, &request);
}
static int capability_mark(void) {
    int mark = 1;
    return setsockopt(socket(AF_INET, SOCK_STREAM, 0), SOL_SOCKET, SO_MARK, &mark, sizeof mark);
}
static int capability_kernel_log(void) {
    return open("/dev/kmsg", O_RDONLY | O_NONBLOCK) < 0 ? -1 : 0;
}

/* --- what came along --- */

static int came_variable(void) {
    return attempt_find_marker(open("/proc/self/environ", O_RDONLY));
}
static int came_descriptor(void) {
    int result = ABSENT;
    for (int fd = 3; fd < 256; fd++)
        if (fcntl(fd, F_GETFD) >= 0 && attempt_find_marker(fd) == 0)
            result = 0;
    return result;
}
/* The environment that the first process was started with. */
static int came_first_environment(void) {
    return attempt_find_marker(open("/proc/1/environ", O_RDONLY));
}

const struct attempt process_attempts[] = {
    {"process_trace", process_trace},
    {"process_read", process_read},
    {"process_write", process_write},
    {"process_descriptor", process_descriptor},
    {"process_compare", process_compare},
    {"process_environment", process_environment},
    {"process_root", process_root},
    {"process_memory", process_memory},
    {"capability_chroot", capability_chroot},
    {"capability_disk", capability_disk},
    {"capability_raw_socket", capability_raw_socket},
    {"capability_host_name", capability_host_name},
    {"capability_priority", capability_priority},
    {"capability_interface", capability_interface},
    {"capability_mark", capability_mark},
    {"capability_kernel_log", capability_kernel_log},
    {"came_variable", came_variable},
    {"came_descriptor", came_descriptor},
    {"came_first_environment", came_first_environment},
    {0},
};
