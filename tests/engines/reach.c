/* reach PROTOCOL ADDRESS PORT: one attempt to send, from inside a container. PROTOCOL is tcp, udp or icmp (an
 * echo request on a datagram socket, which needs no capability); ADDRESS is IPv4 or IPv6. Prints "sent", or
 * the name of the error, which for udp and icmp is also looked for after the send, where a refusal by the
 * network shows. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int say(const char *operation) {
    printf("%s: %s\n", operation, strerrorname_np(errno));
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 4)
        return 2;
    struct sockaddr_in6 six = {.sin6_family = AF_INET6,
                               .sin6_port = htons((in_port_t)strtoul(argv[3], NULL, 10))};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = six.sin6_port};
    int is_four = inet_pton(AF_INET, argv[2], &four.sin_addr) == 1;
    if (!is_four && inet_pton(AF_INET6, argv[2], &six.sin6_addr) != 1)
        return 2;
    const struct sockaddr *address = is_four ? (struct sockaddr *)&four : (struct sockaddr *)&six;
    socklen_t length = is_four ? sizeof four : sizeof six;
    int is_tcp = strcmp(argv[1], "tcp") == 0, is_icmp = strcmp(argv[1], "icmp") == 0;
    int protocol = is_icmp ? (is_four ? IPPROTO_ICMP : IPPROTO_ICMPV6) : 0;

    int fd = socket(address->sa_family, (is_tcp ? SOCK_STREAM : SOCK_DGRAM) | SOCK_NONBLOCK, protocol);
    if (fd < 0)
        return say("socket");
    if (connect(fd, address, length) < 0 && errno != EINPROGRESS)
        return say("connect");
    struct pollfd event = {.fd = fd, .events = POLLOUT};
    int failure = 0;
    socklen_t size = sizeof failure;
    if (is_tcp) {
        if (poll(&event, 1, 3000) == 0)
            errno = ETIMEDOUT;
        else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &size) == 0)
            errno = failure;
        if (errno != 0 && errno != EINPROGRESS)
            return say("connect");
    }
    unsigned char echo[16] = {is_four ? 8 : 128};
    const void *data = is_icmp ? (const void *)echo : "escaped\n";
    if (send(fd, data, is_icmp ? sizeof echo : 8, MSG_NOSIGNAL) < 0)
        return say("send");
    event.events = POLLIN;
    poll(&event, 1, 200);
    if (!is_tcp && getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &size) == 0 && failure != 0) {
        errno = failure;
        return say("answer");
    }
    puts("sent");
    return 0;
}
