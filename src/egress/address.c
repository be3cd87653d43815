#include "egress/address.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

struct range {
    uint8_t address[16];
    uint8_t bits;
};

/* AWS (EC2, ECS, EKS), Alibaba, Azure (wire server), Oracle, Scaleway. */
static const struct range metadata_ipv4[] = {
    {{169, 254, 169, 254}, 32}, {{169, 254, 170, 2}, 32}, {{169, 254, 170, 23}, 32}, {{169, 254, 42, 42}, 32},
    {{100, 100, 100, 200}, 32}, {{168, 63, 129, 16}, 32}, {{192, 0, 0, 192}, 32}};

static const struct range metadata_ipv6[] = {
    {{0xfd, 0x00, 0x0e, 0xc2}, 32},                            /* AWS, fd00:ec2::254 and others */
    {{0xfd, 0x20, 0x00, 0xce, [14] = 0x02, [15] = 0x54}, 128}, /* Google */
    {{0xfd, 0x00, 0x00, 0xc1, [12] = 0xa9, [13] = 0xfe, [14] = 0xa9, [15] = 0xfe}, 128}, /* Oracle */
    {{0xfd, 0x00, 0x00, 0x42, [15] = 0x42}, 128}};                                       /* Scaleway */

static const struct range private_ipv4[] = {
    {{0}, 8},          {{10}, 8},        {{100, 64}, 10}, {{127}, 8}, {{169, 254}, 16}, {{172, 16}, 12},
    {{192, 0, 0}, 24}, {{192, 168}, 16}, {{198, 18}, 15}, {{224}, 4}, {{240}, 4}};

static const struct range private_ipv6[] = {
    {{0x20, 0x01}, 32},                         /* Teredo: leads to an IPv4 address that it hides */
    {{0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}, 48}, /* NAT64 for local use */
    {{0x01}, 64},                               /* discard */
    {{0xfc}, 7},
    {{0xfe, 0x80}, 10},
    {{0xfe, 0xc0}, 10},
    {{0xff}, 8}};

static bool range_has(const struct range *range, const uint8_t *address) {
    size_t bytes = range->bits / 8, bits = range->bits % 8;
    if (memcmp(range->address, address, bytes) != 0)
        return false;
    return bits == 0 || ((range->address[bytes] ^ address[bytes]) & (0xff << (8 - bits)) & 0xff) == 0;
}

static bool ranges_have(const struct range *ranges, size_t count, const uint8_t *address) {
    for (size_t i = 0; i < count; i++)
        if (range_has(&ranges[i], address))
            return true;
    return false;
}

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const uint8_t *embedded_ipv4(const uint8_t *address) {
    /* IPv4-mapped, NAT64 (RFC 6052), IPv4-translated (RFC 7915: what stateless translators lead to IPv4), and
     * IPv4-compatible, :: and ::1 among them (RFC 4291 2.5.5.1: what automatic tunnels lead to IPv4). */
    static const struct range at_the_end[] = {{{[10] = 0xff, [11] = 0xff}, 96},
                                              {{0x00, 0x64, 0xff, 0x9b}, 96},
                                              {{[8] = 0xff, [9] = 0xff}, 96},
                                              {{0}, 96}};
    static const struct range six_to_four = {{0x20, 0x02}, 16};
    if (ranges_have(at_the_end, COUNT(at_the_end), address))
        return address + 12;
    return range_has(&six_to_four, address) ? address + 2 : NULL;
}

enum address_kind address_classify(int family, const uint8_t *address) {
    if (family == AF_INET6) {
        const uint8_t *inner = embedded_ipv4(address);
        if (inner != NULL)
            return address_classify(AF_INET, inner);
        if (ranges_have(metadata_ipv6, COUNT(metadata_ipv6), address))
            return ADDRESS_METADATA;
        return ranges_have(private_ipv6, COUNT(private_ipv6), address) ? ADDRESS_PRIVATE : ADDRESS_PUBLIC;
    }
    if (ranges_have(metadata_ipv4, COUNT(metadata_ipv4), address))
        return ADDRESS_METADATA;
    return ranges_have(private_ipv4, COUNT(private_ipv4), address) ? ADDRESS_PRIVATE : ADDRESS_PUBLIC;
}

void address_write(int family, const uint8_t *address, uint16_t port, char text[ADDRESS_TEXT_SIZE]) {
    char plain[INET6_ADDRSTRLEN] = "";
    inet_ntop(family, address, plain, sizeof plain);
    if (port == 0)
        snprintf(text, ADDRESS_TEXT_SIZE, "%s", plain);
    else
        snprintf(text, ADDRESS_TEXT_SIZE, family == AF_INET6 ? "[%s]:%u" : "%s:%u", plain, port);
}
