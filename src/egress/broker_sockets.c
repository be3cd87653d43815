#include "egress/broker_sockets.h"

#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>

#include "base/fd.h"

#define BACKLOG 4096

/* The first one decides who of several keepers has the ports: it is bound before any other is tried. */
static const struct {
    size_t member;
    int family, type;
    uint16_t port;
    const char *name;
} descriptions[BROKER_SOCKET_COUNT] = {
    {offsetof(struct broker_sockets, relay_ipv4), AF_INET, SOCK_STREAM, BROKER_RELAY_PORT, "relay, IPv4"},
    {offsetof(struct broker_sockets, relay_ipv6), AF_INET6, SOCK_STREAM, BROKER_RELAY_PORT, "relay, IPv6"},
    {offsetof(struct broker_sockets, names_udp_ipv4), AF_INET, SOCK_DGRAM, BROKER_DNS_PORT, "DNS, IPv4"},
    {offsetof(struct broker_sockets, names_udp_ipv6), AF_INET6, SOCK_DGRAM, BROKER_DNS_PORT, "DNS, IPv6"},
    {offsetof(struct broker_sockets, names_tcp_ipv4), AF_INET, SOCK_STREAM, BROKER_DNS_PORT,
     "DNS over TCP, IPv4"},
    {offsetof(struct broker_sockets, names_tcp_ipv6), AF_INET6, SOCK_STREAM, BROKER_DNS_PORT,
     "DNS over TCP, IPv6"},
};

static int *socket_of(struct broker_sockets *sockets, size_t index) {
    return (int *)((char *)sockets + descriptions[index].member);
}

static int socket_get(const struct broker_sockets *sockets, size_t index) {
    return *(const int *)((const char *)sockets + descriptions[index].member);
}

static bool is_bound(int fd) {
    struct sockaddr_in6 own = {0};
    socklen_t length = sizeof own;
    return getsockname(fd, (struct sockaddr *)&own, &length) == 0 && own.sin6_port != 0;
}

static int set_reuse(int fd, int on) {
    return setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
}

/* At loopback. -1 with errno. */
static int bind_once(int fd, size_t index) {
    struct sockaddr_in ipv4 = {.sin_family = AF_INET,
                               .sin_port = htons(descriptions[index].port),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 ipv6 = {.sin6_family = AF_INET6,
                                .sin6_port = htons(descriptions[index].port),
                                .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    return descriptions[index].family == AF_INET ? bind(fd, (struct sockaddr *)&ipv4, sizeof ipv4)
                                                 : bind(fd, (struct sockaddr *)&ipv6, sizeof ipv6);
}

/* Without SO_REUSEADDR, which would let a workload bind the same port while nobody listens. Only what an
 * earlier broker of the namespace has left, connections that wait for their last packets, is bound over. */
static int bind_one(int fd, size_t index) {
    if (bind_once(fd, index) == 0)
        return 0;
    if (errno != EADDRINUSE || descriptions[index].type != SOCK_STREAM)
        return -1;
    if (set_reuse(fd, 1) < 0)
        return -1;
    int result = bind_once(fd, index);
    int number = errno;
    if (set_reuse(fd, 0) < 0)
        return -1;
    errno = number;
    return result;
}

struct error *broker_sockets_bind(struct broker_sockets *sockets) {
    for (size_t i = 0; i < BROKER_SOCKET_COUNT && !sockets->bound; i++) {
        int *fd = socket_of(sockets, i);
        if (*fd < 0 || is_bound(*fd) || bind_one(*fd, i) == 0)
            continue;
        if (errno == EADDRINUSE)
            return NULL;
        /* net.ipv6.conf.lo.disable_ipv6 */
        if (errno != EADDRNOTAVAIL || descriptions[i].family != AF_INET6)
            return error_system(errno, "bind", "the broker's socket: %s", descriptions[i].name);
        fd_close(fd_take(fd));
    }
    sockets->bound = true;
    return NULL;
}

static struct error *open_one(struct broker_sockets *sockets, size_t index) {
    int *fd = socket_of(sockets, index), on = 1;
    *fd = socket(descriptions[index].family, descriptions[index].type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*fd < 0 && descriptions[index].family == AF_INET6 && errno == EAFNOSUPPORT)
        return NULL;
    if (*fd < 0)
        return error_system(errno, "socket", "the broker's: %s", descriptions[index].name);
    if (descriptions[index].family == AF_INET6 &&
        setsockopt(*fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) < 0)
        return error_system(errno, "setsockopt", "the broker's socket: %s", descriptions[index].name);
    return NULL;
}

struct error *broker_sockets_open(uint32_t mark, struct broker_sockets *out) {
    *out = BROKER_SOCKETS_NONE;
    struct error *error = NULL;
    for (size_t i = 0; i < BROKER_SOCKET_COUNT && error == NULL; i++)
        error = open_one(out, i);
    if (error == NULL)
        error = broker_sockets_bind(out);
    if (error != NULL)
        broker_sockets_close(out);
    else
        out->mark = mark;
    return error;
}

void broker_sockets_close(struct broker_sockets *sockets) {
    for (size_t i = 0; i < BROKER_SOCKET_COUNT; i++)
        fd_close(socket_get(sockets, i));
    *sockets = BROKER_SOCKETS_NONE;
}

struct error *broker_sockets_listen(const struct broker_sockets *sockets) {
    for (size_t i = 0; i < BROKER_SOCKET_COUNT; i++) {
        int fd = socket_get(sockets, i);
        if (fd < 0 || descriptions[i].type != SOCK_STREAM)
            continue;
        /* Nobody can bind where somebody listens. Connections inherit it, and so the next broker of the
         * namespace, and this one when it is started again, need not wait until the last of them is
         * forgotten: the kernel looks for them at listen(), too. */
        if (set_reuse(fd, 1) < 0)
            return error_system(errno, "setsockopt", "the broker's socket: %s", descriptions[i].name);
        if (listen(fd, BACKLOG) < 0)
            return error_system(errno, "listen", "at the broker's socket: %s", descriptions[i].name);
    }
    return NULL;
}

void broker_sockets_silence(const struct broker_sockets *sockets) {
    for (size_t i = 0; i < BROKER_SOCKET_COUNT; i++) {
        int fd = socket_get(sockets, i);
        if (fd < 0)
            continue;
        if (descriptions[i].type == SOCK_STREAM) {
            (void)set_reuse(fd, 0);
            (void)shutdown(fd, SHUT_RDWR); /* ENOTCONN where nobody listened yet */
            continue;
        }
        char byte;
        for (int n = 0; n < BACKLOG && recv(fd, &byte, sizeof byte, MSG_DONTWAIT) >= 0; n++)
            ;
    }
}

size_t broker_sockets_pack(const struct broker_sockets *sockets, int fds[BROKER_SOCKET_COUNT],
                           uint32_t *present) {
    size_t count = 0;
    *present = 0;
    for (size_t i = 0; i < BROKER_SOCKET_COUNT; i++) {
        if (socket_get(sockets, i) < 0)
            continue;
        *present |= 1u << i;
        fds[count++] = socket_get(sockets, i);
    }
    return count;
}

void broker_sockets_unpack(int *fds, size_t count, uint32_t present, struct broker_sockets *out) {
    size_t next = 0;
    *out = BROKER_SOCKETS_NONE;
    for (size_t i = 0; i < BROKER_SOCKET_COUNT && next < count; i++)
        if (present & (1u << i))
            *socket_of(out, i) = fd_take(&fds[next++]);
}

struct handed {
    uint32_t mark;
    uint32_t bound;
    uint32_t present;
};

struct error *broker_sockets_send(int channel, const struct broker_sockets *sockets) {
    struct handed handed = {.mark = sockets->mark, .bound = sockets->bound};
    int fds[BROKER_SOCKET_COUNT];
    size_t count = broker_sockets_pack(sockets, fds, &handed.present);
    return fd_send(channel, &handed, sizeof handed, fds, count);
}

struct error *broker_sockets_receive(int channel, struct broker_sockets *out) {
    struct handed handed;
    int fds[BROKER_SOCKET_COUNT];
    size_t count = 0;
    *out = BROKER_SOCKETS_NONE;
    TRY(fd_receive(channel, &handed, sizeof handed, fds, BROKER_SOCKET_COUNT, &count));
    broker_sockets_unpack(fds, count, handed.present, out);
    for (size_t i = 0; i < count; i++)
        fd_close(fds[i]);
    out->mark = handed.mark;
    out->bound = handed.bound != 0;
    return NULL;
}
