/* The sockets of the broker: made by init in the container's network namespace, handed to the warden together
 * with the wall's, and by the warden to the broker's keeper over the broker channel. They are bound, and
 * nobody listens until the broker does: until then, and whenever the broker is gone, a connect is refused. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Where the rules redirect to, at 127.0.0.1 and ::1. */
#define BROKER_DNS_PORT 18
#define BROKER_RELAY_PORT 19

#define BROKER_SOCKET_COUNT 6

/* -1 for none: a namespace without IPv6, where a question for AAAA is answered with no data. */
struct broker_sockets {
    int relay_ipv4, relay_ipv6;         /* TCP; SO_ORIGINAL_DST of what they accept says where to */
    int names_udp_ipv4, names_udp_ipv6; /* DNS */
    int names_tcp_ipv4, names_tcp_ipv6; /* DNS with two bytes of length before each message */
    uint32_t mark; /* of this namespace's wall: what has it may leave. Only for sockets of this namespace */
    bool bound;    /* false: the broker of another container of this namespace has the ports, so far */
};
#define BROKER_SOCKETS_NONE ((struct broker_sockets){-1, -1, -1, -1, -1, -1, 0, false})

/* Opens them in the calling thread's network namespace, non-blocking, and tries to bind them. `mark`: from
 * wall_raise. */
fallible broker_sockets_open(uint32_t mark, struct broker_sockets *out);
void broker_sockets_close(struct broker_sockets *sockets);

/* Tries to bind those that are not bound yet; sockets->bound says whether all are. Cheap when bound. For the
 * keeper, a few times a second: when the container that had the broker of a namespace ends, the next one's
 * takes over. The caller needs CAP_NET_BIND_SERVICE over the namespace, wherever it is itself. */
fallible broker_sockets_bind(struct broker_sockets *sockets);

/* For the broker: it listens from here on. */
fallible broker_sockets_listen(const struct broker_sockets *sockets);
/* For the keeper, when the broker is gone: nobody listens any more, though the sockets are still bound, so
 * that nobody else can. What waited to be accepted or read is thrown away. */
void broker_sockets_silence(const struct broker_sockets *sockets);

/* For messages that carry them: those that there are in fds, and bit N of *present for the Nth; returns how
 * many. The other way takes them out of fds; mark and bound are the caller's to tell. */
size_t broker_sockets_pack(const struct broker_sockets *sockets, int fds[BROKER_SOCKET_COUNT],
                           uint32_t *present);
void broker_sockets_unpack(int *fds, size_t count, uint32_t present, struct broker_sockets *out);

/* One message over a SOCK_SEQPACKET pair; the sender keeps its own. */
fallible broker_sockets_send(int channel, const struct broker_sockets *sockets);
/* What broker_sockets_send sent. A peer that closed is ERROR_SYSTEM with EPIPE, as with fd_receive. */
fallible broker_sockets_receive(int channel, struct broker_sockets *out);
