#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "egress/egress.h"

#define TCP_HEADER 20
#define IPV4_HEADER 20
#define IPV6_HEADER 40

/* The Internet checksum (RFC 1071), not yet folded. */
static uint32_t checksum_add(uint32_t sum, const uint8_t *bytes, size_t length) {
    for (size_t i = 0; i + 1 < length; i += 2)
        sum += (uint32_t)(bytes[i] << 8 | bytes[i + 1]);
    return sum;
}

static uint16_t checksum_fold(uint32_t sum) {
    while (sum >> 16 != 0)
        sum = (sum & 0xffff) + (sum >> 16);
    return htons((uint16_t)~sum);
}

/* RFC 9293, 3.10.7.1: to a SYN without ACK: RST and ACK, sequence 0, acknowledging the SYN. The ends are
 * exchanged. */
static void tcp_build(uint8_t *tcp, const struct denied_packet *packet, size_t address) {
    uint16_t from = htons(packet->destination_port), to = htons(packet->source_port);
    uint32_t acknowledged = htonl(packet->tcp_sequence + 1);
    memset(tcp, 0, TCP_HEADER);
    memcpy(tcp, &from, sizeof from);
    memcpy(tcp + 2, &to, sizeof to);
    memcpy(tcp + 8, &acknowledged, sizeof acknowledged);
    tcp[12] = (TCP_HEADER / 4) << 4;
    tcp[13] = 0x14; /* RST, ACK */
    uint32_t sum = IPPROTO_TCP + TCP_HEADER;
    sum = checksum_add(sum, packet->source, address);
    sum = checksum_add(sum, packet->destination, address);
    sum = checksum_add(sum, tcp, TCP_HEADER);
    uint16_t checksum = checksum_fold(sum);
    memcpy(tcp + 16, &checksum, sizeof checksum);
}

static struct error *send_ipv4(int socket, const struct denied_packet *packet) {
    uint8_t bytes[IPV4_HEADER + TCP_HEADER] = {
        [0] = 0x45, [3] = sizeof bytes, [6] = 0x40, [8] = 64, [9] = IPPROTO_TCP};
    memcpy(bytes + 12, packet->destination, 4);
    memcpy(bytes + 16, packet->source, 4);
    tcp_build(bytes + IPV4_HEADER, packet, 4); /* the kernel fills in the header's own checksum */
    struct sockaddr_in to = {.sin_family = AF_INET};
    memcpy(&to.sin_addr, packet->source, 4);
    if (sendto(socket, bytes, sizeof bytes, MSG_NOSIGNAL, (struct sockaddr *)&to, sizeof to) < 0)
        return error_system(errno, "send", "reset");
    return NULL;
}

static struct error *send_ipv6(int socket, const struct denied_packet *packet) {
    uint8_t bytes[IPV6_HEADER + TCP_HEADER] = {[0] = 0x60, [5] = TCP_HEADER, [6] = IPPROTO_TCP, [7] = 64};
    memcpy(bytes + 8, packet->destination, 16);
    memcpy(bytes + 24, packet->source, 16);
    tcp_build(bytes + IPV6_HEADER, packet, 16);
    struct sockaddr_in6 to = {.sin6_family = AF_INET6};
    memcpy(&to.sin6_addr, packet->source, 16);
    if (IN6_IS_ADDR_LINKLOCAL(&to.sin6_addr))
        to.sin6_scope_id = packet->interface_out;
    if (sendto(socket, bytes, sizeof bytes, MSG_NOSIGNAL, (struct sockaddr *)&to, sizeof to) < 0)
        return error_system(errno, "send", "reset");
    return NULL;
}

struct error *packet_reset(const struct wall_sockets *sockets, const struct denied_packet *packet) {
    if (packet->family == AF_INET)
        return send_ipv4(sockets->reset_ipv4, packet);
    return send_ipv6(sockets->reset_ipv6, packet);
}
