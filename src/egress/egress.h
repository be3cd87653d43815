/* The wall (DESIGN.md section 7, egress-facts.md): routes and nftables rules of a network namespace, each
 * written as one netlink batch. All functions act on the network namespace of the calling thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/error.h"
#include "policy/policy.h"

/* What the wall has to know of a policy's network section. */
struct wall_network {
    const char *digest;                      /* of that section: policy_network_digest */
    const struct policy_list *allowed_hosts; /* NULL or none: there is no broker, and nothing leaves */
    const struct string_list *aliases;       /* of names of these hosts (host_alias.h), or NULL */
    bool uplink_elsewhere;                   /* the broker dials from another namespace (uplink: host) */
    bool inbound_denied;
    bool open; /* nothing is denied: what goes out is observed (wall_observe) */
    /* Where the policy was changed under a running container (wall_change): */
    bool changed;
    bool brokered;                   /* there is a broker, though perhaps no host */
    const struct string_list *names; /* of host_names_remember, or NULL */
};

/* Sockets that live in the container's network namespace and are handed to the warden; -1 for none. */
struct wall_sockets {
    int packet_log;       /* NETLINK_NETFILTER */
    int socket_diagnosis; /* NETLINK_SOCK_DIAG */
    int reset_ipv4;       /* raw, header included */
    int reset_ipv6;       /* raw, header included; -1 where the kernel has no IPv6 */
    int rules;            /* NETLINK_NETFILTER, for wall_counters_read */
};
#define WALL_SOCKETS_NONE ((struct wall_sockets){-1, -1, -1, -1, -1})

/* `create`: brings lo up and installs rules that depend on no interface: everything out is denied, IPv4 and
 * IPv6, in output and forward; table `pinfold` with the digest in its user data. A table of ours with the
 * same digest is joined (*joined true); with another digest: ERROR_REFUSED "net.namespace.shared: ...". With
 * allowed hosts, connections to their addresses and all questions for names are redirected to the broker's
 * ports (broker_sockets.h), and what has *mark may leave. */
fallible wall_raise(const struct wall_network *network, bool *joined, uint32_t *mark);

/* `create`, for network->open: nothing is denied, and the first packet of each flow that leaves goes to the
 * packet log. The table has the same name and identity as a wall's, so that no container of another policy
 * joins. */
fallible wall_observe(const struct wall_network *network, bool *joined);

/* `start`: looks at the namespace as the engine has left it. With lo alone: local default routes (with a
 * preferred source) make every address reach the rules. With interfaces: rules that keep inbound replies and
 * loopback working and deny the rest, and a netdev egress chain against packet sockets on each interface
 * where the kernel has it. Then reads the rules back and fails unless they are what was written. */
fallible wall_complete(const struct wall_network *network);

/* The same, for who cannot look again when the engine is done: rules that hold with lo alone and with the
 * interfaces that may come later. These have no netdev chain. */
fallible wall_complete_early(const struct wall_network *network);

/* Puts the rules and elements of another policy in the place of those that are there, and its identity with
 * them, as one transaction of the kernel's: each packet meets the old ones or the new ones, never none.
 * (Elements beyond some thousands follow in further ones; until then less is let through.) What was connected
 * stays so; that is the broker's to end. Then reads it back. `network->changed` is set. */
fallible wall_change(const struct wall_network *network);
/* The mark of the wall that is here. */
fallible wall_mark_read(uint32_t *mark);

/* Reads the table back: an error when it is absent or was changed. */
fallible wall_verify(const struct wall_network *network);

/* Opens the sockets of the warden in this namespace, and binds the packet log if nobody else holds it, so
 * that a warden without CAP_NET_ADMIN has it too. packet_log_bind tries again later. */
fallible wall_open_sockets(struct wall_sockets *out);
void wall_close_sockets(struct wall_sockets *sockets);

/* How many attempts the wall has denied (initial SYNs and datagrams, not retransmissions), or, with `open`,
 * how many flows have begun; and how many of these it put into the packet log; the others were never shown to
 * anybody. `rules` is wall_sockets.rules, or -1 for a socket of the calling thread's namespace. The kernel
 * wants CAP_NET_ADMIN over that namespace at the call. */
fallible wall_counters_read(int rules, bool open, uint64_t *counted, uint64_t *logged);

/* Takes our table (and netdev table) out of a namespace that outlives the container. Absent is fine. */
fallible wall_remove(void);

/* -- what the warden does with the sockets -- */

/* Binds the wall's log group with sequence numbers and a large buffer; *bound is false when another process
 * of this namespace holds it, or the caller lacks CAP_NET_ADMIN over the namespace (the kernel says EPERM for
 * both). Bound already by this socket is fine. */
fallible packet_log_bind(int packet_log, bool *bound);

/* One denied packet as the kernel logged it. */
struct denied_packet {
    bool held;    /* a TCP SYN that waits for an answer; else the kernel has answered already */
    bool let_out; /* nothing was denied: the first packet of a flow */
    bool inbound; /* it came from outside */
    int family;   /* AF_INET, AF_INET6 */
    int protocol; /* IPPROTO_TCP, ... */
    uint8_t source[16], destination[16];    /* network order; 4 bytes for AF_INET */
    uint16_t source_port, destination_port; /* host order; 0 where the protocol has none */
    uint32_t tcp_sequence;
    uint32_t log_sequence;  /* of the packet log, to find gaps */
    int64_t uid;            /* -1 unknown */
    uint32_t interface_out; /* index; 0 unknown. Link-local addresses mean nothing without it. */
    char name[256];         /* that a DNS question asks for, printable, without the last dot; "" for none */
};

/* Whether the packet asks a name server. */
bool packet_is_name_query(const struct denied_packet *packet);

/* Parses one datagram read from the packet log: calls `each` for every packet in it. Hostile bytes: bounded
 * by `length`, never reads past it; a malformed message is skipped and counted in *malformed. (Fuzzed.) */
void packet_log_parse(const void *bytes, size_t length,
                      void (*each)(const struct denied_packet *packet, void *data), void *data,
                      unsigned *malformed);

/* The inode of the socket that sent the packet (an exact look-up, never a dump); 0 when it is gone. */
uint32_t socket_inode_find(int socket_diagnosis, const struct denied_packet *packet);

/* Answers a held SYN with a reset, as if it came from the destination. */
fallible packet_reset(const struct wall_sockets *sockets, const struct denied_packet *packet);
