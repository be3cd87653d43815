#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>

#include "egress/egress.h"
#include "egress/netlink.h"
#include "egress/rules.h"

#define RECEIVE_BUFFER (1024 * 1024)
#define BOUND_PRIORITY 1

struct error *packet_log_bind(int packet_log, bool *bound) {
    /* The socket remembers: its priority, which means nothing to netlink, travels with it to the warden.
     * Asking the kernel again would throw away the packets that wait before the answer. */
    int mark = 0;
    socklen_t mark_length = sizeof mark;
    *bound =
        getsockopt(packet_log, SOL_SOCKET, SO_PRIORITY, &mark, &mark_length) == 0 && mark == BOUND_PRIORITY;
    if (*bound)
        return NULL;
    /* Beyond net.core.rmem_max only with CAP_NET_ADMIN over the machine; the rules' rate limit keeps the log
     * within the default as well. */
    int size = RECEIVE_BUFFER;
    if (setsockopt(packet_log, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size) < 0)
        (void)setsockopt(packet_log, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);

    netlink_batch_owned struct netlink_batch batch = {0};
    struct nfgenmsg header = {
        .nfgen_family = AF_UNSPEC, .version = NFNETLINK_V0, .res_id = htons(WALL_LOG_GROUP)};
    struct nfulnl_msg_config_cmd command = {.command = NFULNL_CFG_CMD_BIND};
    struct nfulnl_msg_config_mode mode = {.copy_range = htonl(WALL_SNAP_LENGTH),
                                          .copy_mode = NFULNL_COPY_PACKET};
    netlink_message_begin(&batch, (NFNL_SUBSYS_ULOG << 8) | NFULNL_MSG_CONFIG, NLM_F_ACK, &header,
                          sizeof header, "packet log");
    netlink_put(&batch, NFULA_CFG_CMD, &command, sizeof command);
    netlink_put(&batch, NFULA_CFG_MODE, &mode, sizeof mode);
    netlink_put_be32(&batch, NFULA_CFG_QTHRESH, 1); /* a held SYN cannot wait for company */
    netlink_put_be16(&batch, NFULA_CFG_FLAGS, NFULNL_CFG_F_SEQ);
    netlink_message_end(&batch);
    struct error *error = netlink_transact(packet_log, &batch, 1, "bind");
    /* EBUSY: the group is bound to this very socket. EPERM: to another, or we may not ask. */
    if (error != NULL && error->number != EBUSY && error->number != EPERM)
        return error;
    *bound = error == NULL || error->number == EBUSY;
    error_free(error);
    mark = BOUND_PRIORITY;
    if (*bound && setsockopt(packet_log, SOL_SOCKET, SO_PRIORITY, &mark, sizeof mark) < 0)
        return error_system(errno, "setsockopt", "packet log");
    return NULL;
}

static uint16_t read_be16(const uint8_t *bytes) {
    return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

/* Docker's resolver is reached on another port, which its rules put in the place of 53 before ours see the
 * packet. */
bool packet_is_name_query(const struct denied_packet *packet) {
    static const uint8_t docker_resolver[4] = {127, 0, 0, 11};
    return packet->protocol == IPPROTO_UDP &&
           (packet->destination_port == 53 ||
            (packet->family == AF_INET && memcmp(packet->destination, docker_resolver, 4) == 0));
}

static uint32_t read_be32(const uint8_t *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* RFC 1035, 4.1: the name of the first question. Bytes that are no part of a host name become \\DDD as in
 * zone files. What is no question, or no whole name, leaves no name. */
static void question_parse(const uint8_t *bytes, size_t length, char *name, size_t size) {
    if (length < 12 || (bytes[2] & 0x80) != 0 || read_be16(bytes + 4) == 0)
        return;
    size_t at = 12, used = 0;
    while (at < length && bytes[at] != 0) {
        size_t label = bytes[at++];
        if (label > 63 || label > length - at)
            goto none;
        if (used > 0)
            name[used++] = '.';
        for (; label > 0; label--, at++) {
            uint8_t byte = bytes[at];
            bool plain = byte > ' ' && byte < 0x7f && byte != '.' && byte != '\\';
            if (size - used < 8)
                goto none;
            if (plain)
                name[used++] = (char)byte;
            else
                used += (size_t)snprintf(name + used, size - used, "\\%03u", byte);
        }
    }
    if (at >= length)
        goto none;
    name[used] = '\0';
    return;
none:
    name[0] = '\0';
}

/* The transport header, as far as it was copied. False when it is too short to tell what was tried. */
static bool transport_parse(const uint8_t *bytes, size_t length, struct denied_packet *packet) {
    switch (packet->protocol) {
    case IPPROTO_TCP:
        if (length < 8)
            return false;
        packet->tcp_sequence = read_be32(bytes + 4);
        break;
    case IPPROTO_UDP:
    case IPPROTO_UDPLITE:
    case IPPROTO_DCCP:
    case IPPROTO_SCTP:
        if (length < 4)
            return false;
        break;
    default:
        return true;
    }
    packet->source_port = read_be16(bytes);
    packet->destination_port = read_be16(bytes + 2);
    if (packet->protocol == IPPROTO_UDP && length >= 8 && packet_is_name_query(packet))
        question_parse(bytes + 8, length - 8, packet->name, sizeof packet->name);
    return true;
}

static bool ipv4_parse(const uint8_t *bytes, size_t length, struct denied_packet *packet) {
    if (length < 20 || bytes[0] >> 4 != 4)
        return false;
    size_t header = (size_t)(bytes[0] & 0x0f) * 4;
    if (header < 20 || header > length)
        return false;
    packet->family = AF_INET;
    packet->protocol = bytes[9];
    memcpy(packet->source, bytes + 12, 4);
    memcpy(packet->destination, bytes + 16, 4);
    if ((read_be16(bytes + 6) & 0x1fff) != 0) /* a later fragment has no transport header */
        return !packet->held;
    return transport_parse(bytes + header, length - header, packet);
}

static bool ipv6_parse(const uint8_t *bytes, size_t length, struct denied_packet *packet) {
    if (length < 40 || bytes[0] >> 4 != 6)
        return false;
    packet->family = AF_INET6;
    memcpy(packet->source, bytes + 8, 16);
    memcpy(packet->destination, bytes + 24, 16);
    uint8_t next = bytes[6];
    size_t offset = 40;
    for (;;) {
        packet->protocol = next;
        switch (next) {
        case IPPROTO_HOPOPTS:
        case IPPROTO_ROUTING:
        case IPPROTO_DSTOPTS:
        case IPPROTO_FRAGMENT:
            if (length - offset < 8)
                return !packet->held; /* the headers were longer than what was copied */
            if (next == IPPROTO_FRAGMENT && (read_be16(bytes + offset + 2) & 0xfff8) != 0) {
                packet->protocol = bytes[offset];
                return !packet->held;
            }
            /* RFC 8200: the length of a fragment header is fixed, its second byte is reserved. */
            size_t step = next == IPPROTO_FRAGMENT ? 8 : ((size_t)bytes[offset + 1] + 1) * 8;
            next = bytes[offset];
            if (step > length - offset)
                return !packet->held;
            offset += step;
            continue;
        default:
            return transport_parse(bytes + offset, length - offset, packet);
        }
    }
}

static bool packet_parse(const uint8_t *bytes, size_t length, struct denied_packet *packet) {
    struct nfgenmsg header;
    struct netlink_attribute table[NFULA_SEQ + 1];
    if (!netlink_message_read(bytes, length, &header, sizeof header, table, NFULA_SEQ))
        return false;
    struct netlink_attribute payload = table[NFULA_PAYLOAD];
    if (payload.value == NULL || payload.length == 0 || table[NFULA_SEQ].length != sizeof(uint32_t))
        return false;
    *packet = (struct denied_packet){.uid = -1};
    packet->held = netlink_is_string(table[NFULA_PREFIX], WALL_PREFIX_HELD);
    packet->inbound = netlink_is_string(table[NFULA_PREFIX], WALL_PREFIX_INBOUND);
    packet->let_out = netlink_is_string(table[NFULA_PREFIX], WALL_PREFIX_LET_OUT);
    packet->log_sequence = netlink_get_be32(table[NFULA_SEQ]);
    packet->interface_out = netlink_get_be32(table[NFULA_IFINDEX_OUTDEV]);
    if (table[NFULA_UID].length == sizeof(uint32_t))
        packet->uid = netlink_get_be32(table[NFULA_UID]);
    bool parsed = payload.value[0] >> 4 == 4 ? ipv4_parse(payload.value, payload.length, packet)
                                             : ipv6_parse(payload.value, payload.length, packet);
    return parsed && (!packet->held || packet->protocol == IPPROTO_TCP);
}

void packet_log_parse(const void *bytes, size_t length,
                      void (*each)(const struct denied_packet *packet, void *data), void *data,
                      unsigned *malformed) {
    const uint8_t *next = bytes;
    while (length > 0) {
        struct nlmsghdr message;
        if (length < sizeof message) {
            (*malformed)++;
            return;
        }
        memcpy(&message, next, sizeof message);
        if (message.nlmsg_len < sizeof message || message.nlmsg_len > length) {
            (*malformed)++;
            return;
        }
        if (message.nlmsg_type == ((NFNL_SUBSYS_ULOG << 8) | NFULNL_MSG_PACKET)) {
            struct denied_packet packet;
            if (packet_parse(next + NLMSG_HDRLEN, message.nlmsg_len - NLMSG_HDRLEN, &packet))
                each(&packet, data);
            else
                (*malformed)++;
        }
        size_t step = NLMSG_ALIGN((size_t)message.nlmsg_len);
        if (step > length)
            step = length;
        next += step;
        length -= step;
    }
}
