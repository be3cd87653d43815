/* Ways out over the network. The far end (tests/bats/escapes_network.bats) has these addresses and echoes
 * what it gets. */
#define _GNU_SOURCE
#include "attempts.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct target {
    struct sockaddr_storage address;
    socklen_t length;
};

static struct target target_of(const char *address, uint16_t port) {
    struct target target = {.length = sizeof(struct sockaddr_in)};
    struct sockaddr_in *four = (struct sockaddr_in *)&target.address;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&target.address;
    if (inet_pton(AF_INET, address, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons(port);
    } else if (inet_pton(AF_INET6, address, &six->sin6_addr) == 1) {
        six->sin6_family = AF_INET6;
        six->sin6_port = htons(port);
        target.length = sizeof *six;
    }
    return target;
}

/* Sends a byte and waits for it to come back: only then has it left. */
static int echoed(int fd) {
    char byte = 'x';
    struct pollfd answer = {.fd = fd, .events = POLLIN};
    if (send(fd, &byte, 1, MSG_NOSIGNAL) < 0)
        return -1;
    if (poll(&answer, 1, 3000) <= 0)
        return ABSENT;
    return recv(fd, &byte, 1, 0) < 0 ? -1 : 0;
}
static int reach(int type, int protocol, const char *address, uint16_t port) {
    struct target target = target_of(address, port);
    int fd = socket(target.address.ss_family, type, protocol);
    if (fd < 0 || connect(fd, (struct sockaddr *)&target.address, target.length) < 0)
        return -1;
    return echoed(fd);
}

static int tcp_address(void) {
    return reach(SOCK_STREAM, 0, "1.2.3.4", 443);
}
static int tcp_dns(void) {
    return reach(SOCK_STREAM, 0, "1.2.3.4", 53);
}
static int tcp_metadata(void) {
    return reach(SOCK_STREAM, 0, "169.254.169.254", 80);
}
static int tcp_private(void) {
    return reach(SOCK_STREAM, 0, "10.77.0.1", 443);
}
static int tcp_six(void) {
    return reach(SOCK_STREAM, 0, "2001:db8::1", 443);
}
static int tcp_mapped(void) {
    return reach(SOCK_STREAM, 0, "::ffff:1.2.3.4", 443);
}
static int tcp_several_paths(void) {
    return reach(SOCK_STREAM, 262 /* IPPROTO_MPTCP */, "1.2.3.4", 443);
}
static int tcp_fast_open(void) {
    struct target target = target_of("1.2.3.4", 443);
    char byte = 'x';
    struct pollfd answer = {.fd = socket(AF_INET, SOCK_STREAM, 0), .events = POLLIN};
    if (sendto(answer.fd, &byte, 1, MSG_FASTOPEN, (struct sockaddr *)&target.address, target.length) < 0)
        return -1;
    if (poll(&answer, 1, 3000) <= 0)
        return ABSENT;
    return recv(answer.fd, &byte, 1, 0) < 0 ? -1 : 0;
}
static int tcp_without_waiting(void) {
    struct target target = target_of("1.2.3.4", 443);
    struct pollfd ready = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), .events = POLLOUT};
    if (connect(ready.fd, (struct sockaddr *)&target.address, target.length) == 0 || errno != EINPROGRESS)
        return -1;
    poll(&ready, 1, 3000);
    socklen_t length = sizeof errno;
    int error = 0;
    getsockopt(ready.fd, SOL_SOCKET, SO_ERROR, &error, &length);
    errno = error;
    return error != 0 ? -1 : echoed(ready.fd);
}
static int tcp_by_device(void) {
    struct target target = target_of("1.2.3.4", 443);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "eth0", 5) < 0 ||
        connect(fd, (struct sockaddr *)&target.address, target.length) < 0)
        return -1;
    return echoed(fd);
}
static int tcp_from_port(void) {
    struct target target = target_of("1.2.3.4", 443), source = target_of("0.0.0.0", 53);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(fd, (struct sockaddr *)&source.address, source.length) < 0 ||
        connect(fd, (struct sockaddr *)&target.address, target.length) < 0)
        return -1;
    return echoed(fd);
}

static int udp_dns(void) {
    return reach(SOCK_DGRAM, 0, "1.2.3.4", 53);
}
static int udp_quic(void) {
    return reach(SOCK_DGRAM, 0, "1.2.3.4", 443);
}
static int udp_six(void) {
    return reach(SOCK_DGRAM, 0, "2001:db8::1", 53);
}
static int udp_metadata(void) {
    return reach(SOCK_DGRAM, 0, "169.254.169.254", 53);
}
/* One message to each of several places in one call, without connect. */
static int udp_many(void) {
    struct target target = target_of("1.2.3.4", 54);
    char byte = 'x';
    struct iovec data = {&byte, 1};
    struct mmsghdr message = {
        .msg_hdr = {
            .msg_name = &target.address, .msg_namelen = target.length, .msg_iov = &data, .msg_iovlen = 1}};
    struct pollfd answer = {.fd = socket(AF_INET, SOCK_DGRAM, 0), .events = POLLIN};
    if (sendmmsg(answer.fd, &message, 1, 0) < 0)
        return -1;
    return poll(&answer, 1, 1000) > 0 ? 0 : ABSENT;
}
static int udp_lite(void) {
    return reach(SOCK_DGRAM, 136 /* IPPROTO_UDPLITE */, "1.2.3.4", 53);
}
static int udp_broadcast(void) {
    struct target target = target_of("10.77.0.255", 54);
    char byte = 'x';
    int yes = 1;
    struct pollfd answer = {.fd = socket(AF_INET, SOCK_DGRAM, 0), .events = POLLIN};
    setsockopt(answer.fd, SOL_SOCKET, SO_BROADCAST, &yes, sizeof yes);
    if (sendto(answer.fd, &byte, 1, 0, (struct sockaddr *)&target.address, target.length) < 0)
        return -1;
    return poll(&answer, 1, 1000) > 0 ? 0 : ABSENT;
}
static int ping(void) {
    struct target target = target_of("1.2.3.4", 0);
    unsigned char echo[8] = {8};
    struct pollfd answer = {.fd = socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP), .events = POLLIN};
    if (answer.fd < 0 ||
        sendto(answer.fd, echo, sizeof echo, 0, (struct sockaddr *)&target.address, target.length) < 0)
        return -1;
    return poll(&answer, 1, 1000) > 0 ? 0 : ABSENT;
}

/* A socket without a file, which belongs to the network namespace. */
static int abstract_socket(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    static const char name[] = "\0" MARKER;
    memcpy(address.sun_path, name, sizeof name - 1);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sizeof name - 1);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, length) < 0)
        return -1;
    return attempt_find_marker(fd);
}

const struct attempt network_attempts[] = {
    {"tcp_address", tcp_address},
    {"tcp_dns", tcp_dns},
    {"tcp_metadata", tcp_metadata},
    {"tcp_private", tcp_private},
    {"tcp_six", tcp_six},
    {"tcp_mapped", tcp_mapped},
    {"tcp_several_paths", tcp_several_paths},
    {"tcp_fast_open", tcp_fast_open},
    {"tcp_without_waiting", tcp_without_waiting},
    {"tcp_by_device", tcp_by_device},
    {"tcp_from_port", tcp_from_port},
    {"udp_dns", udp_dns},
    {"udp_quic", udp_quic},
    {"udp_six", udp_six},
    {"udp_metadata", udp_metadata},
    {"udp_many", udp_many},
    {"udp_lite", udp_lite},
    {"udp_broadcast", udp_broadcast},
    {"ping", ping},
    {"abstract_socket", abstract_socket},
    {0},
};
