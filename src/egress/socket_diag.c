#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "egress/egress.h"
#include "egress/netlink.h"

static struct error *inode_take(uint16_t type, const uint8_t *payload, size_t length, void *data) {
    struct inet_diag_msg answer;
    if (type == SOCK_DIAG_BY_FAMILY && length >= sizeof answer) {
        memcpy(&answer, payload, sizeof answer);
        *(uint32_t *)data = answer.idiag_inode;
    }
    return NULL;
}

static uint32_t look(int socket_diagnosis, const struct denied_packet *packet, uint32_t interface) {
    struct inet_diag_req_v2 request = {.sdiag_family = (uint8_t)packet->family,
                                       .sdiag_protocol = (uint8_t)packet->protocol,
                                       .idiag_states = UINT32_MAX};
    size_t address = packet->family == AF_INET ? 4 : 16;
    struct inet_diag_sockid *id = &request.id;
    id->idiag_cookie[0] = id->idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    /* udp_diag looks an exact socket up with the two ends exchanged, "for historical reasons" as the kernel
     * says. */
    bool exchanged = packet->protocol == IPPROTO_UDP;
    memcpy(exchanged ? id->idiag_dst : id->idiag_src, packet->source, address);
    memcpy(exchanged ? id->idiag_src : id->idiag_dst, packet->destination, address);
    id->idiag_sport = htons(exchanged ? packet->destination_port : packet->source_port);
    id->idiag_dport = htons(exchanged ? packet->source_port : packet->destination_port);
    id->idiag_if = interface;

    netlink_batch_owned struct netlink_batch batch = {0};
    netlink_message_begin(&batch, SOCK_DIAG_BY_FAMILY, 0, &request, sizeof request, "socket");
    netlink_message_end(&batch);
    uint32_t inode = 0;
    /* ENOENT: the socket is gone. Any other refusal leaves the attempt without its process, not without its
     * record. */
    error_ignore(netlink_query(socket_diagnosis, &batch, inode_take, &inode, "find"));
    return inode;
}

uint32_t socket_inode_find(int socket_diagnosis, const struct denied_packet *packet) {
    if (socket_diagnosis < 0 || (packet->protocol != IPPROTO_TCP && packet->protocol != IPPROTO_UDP))
        return 0;
    /* A link-local connection is always bound to an interface, another one if the program asked for that. */
    bool local = packet->family == AF_INET6 && packet->destination[0] == 0xfe &&
                 (packet->destination[1] & 0xc0) == 0x80;
    uint32_t inode = look(socket_diagnosis, packet, local ? packet->interface_out : 0);
    if (inode == 0 && !local && packet->interface_out != 0)
        inode = look(socket_diagnosis, packet, packet->interface_out);
    return inode;
}
