/* Tests of the wall: each is a child in a new user and network namespace, so that they need no privilege.
 */
#pragma once

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "egress/netlink.h"

/* In the child cmocka's assertions would unwind into the parent's frames: a check that fails ends it. */
#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: %s (errno %d)\n", __FILE__, __LINE__, #condition, errno);                \
            _exit(1);                                                                                        \
        }                                                                                                    \
    } while (0)
#define CHECK_OK(expression)                                                                                 \
    do {                                                                                                     \
        struct error *error_here = (expression);                                                             \
        if (error_here != NULL) {                                                                            \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #expression, error_here->message);        \
            _exit(1);                                                                                        \
        }                                                                                                    \
    } while (0)
/* Fails with an error whose message begins and goes on so. */
#define CHECK_ERROR(expression, error_kind, words)                                                           \
    do {                                                                                                     \
        struct error *error_here = (expression);                                                             \
        CHECK(error_here != NULL);                                                                           \
        if (error_here->kind != (error_kind) || strstr(error_here->message, words) == NULL) {                \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, error_here->message);                         \
            _exit(1);                                                                                        \
        }                                                                                                    \
        error_free(error_here);                                                                              \
    } while (0)

#define NO_NAMESPACE 77

static void write_file(const char *path, const char *text) {
    fd_owned int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        _exit(NO_NAMESPACE);
}

static void run_apart(void (*body)(void)) {
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char map[40];
        uid_t uid = geteuid();
        gid_t gid = getegid();
        alarm(30);
        if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
            _exit(NO_NAMESPACE);
        write_file("/proc/self/setgroups", "deny");
        snprintf(map, sizeof map, "0 %u 1", uid);
        write_file("/proc/self/uid_map", map);
        snprintf(map, sizeof map, "0 %u 1", gid);
        write_file("/proc/self/gid_map", map);
        body();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NO_NAMESPACE) {
        print_message("skipped: no user and network namespace can be made here\n");
        skip();
    }
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* A pair of interfaces, both in this namespace; `up` with addresses 10.9.0.1 and 2001:db8:9::1 on the first.
 */
static void make_interfaces(void) {
    int socket = -1;
    CHECK_OK(netlink_open(NETLINK_ROUTE, &socket));
    netlink_batch_owned struct netlink_batch batch = {0};
    struct ifinfomsg link = {.ifi_family = AF_UNSPEC};
    netlink_message_begin(&batch, RTM_NEWLINK, NLM_F_CREATE | NLM_F_ACK, &link, sizeof link, "pair");
    netlink_put_string(&batch, IFLA_IFNAME, "pair0");
    size_t info = netlink_nest_begin(&batch, IFLA_LINKINFO);
    netlink_put(&batch, IFLA_INFO_KIND, "veth", 4);
    netlink_nest_end(&batch, info);
    netlink_message_end(&batch);
    CHECK_OK(netlink_transact(socket, &batch, 1, "make"));
    netlink_batch_free(&batch);
    link = (struct ifinfomsg){
        .ifi_index = (int)if_nametoindex("pair0"), .ifi_flags = IFF_UP, .ifi_change = IFF_UP};
    netlink_message_begin(&batch, RTM_NEWLINK, NLM_F_ACK, &link, sizeof link, "up");
    netlink_message_end(&batch);
    struct ifaddrmsg address = {
        .ifa_family = AF_INET, .ifa_prefixlen = 24, .ifa_index = (unsigned)link.ifi_index};
    uint8_t own[4] = {10, 9, 0, 1};
    netlink_message_begin(&batch, RTM_NEWADDR, NLM_F_CREATE | NLM_F_ACK, &address, sizeof address, "address");
    netlink_put(&batch, IFA_LOCAL, own, sizeof own);
    netlink_message_end(&batch);
    CHECK_OK(netlink_transact(socket, &batch, 2, "set up"));
    close(socket);
}

static double milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1000 + (double)now.tv_nsec / 1e6;
}

/* The errno of connect() or sendto(), 0 for success. */
static int attempt(int type, const char *address, uint16_t port) {
    struct sockaddr_in ipv4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 ipv6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    bool six = strchr(address, ':') != NULL;
    CHECK(inet_pton(six ? AF_INET6 : AF_INET, address,
                    six ? (void *)&ipv6.sin6_addr : (void *)&ipv4.sin_addr) == 1);
    const struct sockaddr *to = six ? (struct sockaddr *)&ipv6 : (struct sockaddr *)&ipv4;
    socklen_t length = six ? sizeof ipv6 : sizeof ipv4;
    int fd = socket(six ? AF_INET6 : AF_INET, type | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    int result = type == SOCK_STREAM ? connect(fd, to, length) : (int)sendto(fd, "x", 1, 0, to, length);
    int number = result < 0 ? errno : 0;
    close(fd);
    return number;
}
