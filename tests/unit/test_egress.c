/* egress/: the packet log's parser on captured messages, whole and damaged; kinds of addresses; the
 * comparison of rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>

#include "base/memory.h"
#include "egress/address.h"
#include "egress/egress.h"
#include "egress/nft.h"

/* Captured from a Linux 6.18 kernel, except `extensions`: the same SYN behind hop-by-hop options and a first
 * fragment. */
// clang-format off
static const uint8_t held_ipv4[] = {
    0x90, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x02, 0x00, 0x50, 0x72, 0x08, 0x00, 0x01, 0x00, 0x08, 0x00, 0x03, 0x00, 0x11, 0x00, 0x0a, 0x00,
    0x70, 0x69, 0x6e, 0x66, 0x6f, 0x6c, 0x64, 0x20, 0x68, 0x65, 0x6c, 0x64, 0x00, 0x00, 0x00, 0x00,
    0x08, 0x00, 0x05, 0x00, 0x00, 0x00, 0x00, 0x01, 0x08, 0x00, 0x0b, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x08, 0x00, 0x0e, 0x00, 0x00, 0x00, 0x00, 0x00, 0x08, 0x00, 0x0c, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x40, 0x00, 0x09, 0x00, 0x45, 0x00, 0x00, 0x3c, 0xd7, 0x90, 0x40, 0x00, 0x40, 0x06, 0xe0, 0x24,
    0x7f, 0x00, 0x00, 0x01, 0x01, 0x02, 0x03, 0x04, 0x97, 0x18, 0x01, 0xbb, 0x1b, 0x35, 0x7c, 0xe7,
    0x00, 0x00, 0x00, 0x00, 0xa0, 0x02, 0xff, 0xd7, 0x83, 0x35, 0x00, 0x00, 0x02, 0x04, 0xff, 0xd7,
    0x04, 0x02, 0x08, 0x0a, 0x36, 0x43, 0x49, 0x92, 0x00, 0x00, 0x00, 0x00, 0x01, 0x03, 0x03, 0x0a};

static const uint8_t held_ipv6[] = {
    0xa4, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x0a, 0x00, 0x50, 0x72, 0x08, 0x00, 0x01, 0x00, 0x86, 0xdd, 0x03, 0x00, 0x11, 0x00, 0x0a, 0x00,
    0x70, 0x69, 0x6e, 0x66, 0x6f, 0x6c, 0x64, 0x20, 0x68, 0x65, 0x6c, 0x64, 0x00, 0x00, 0x00, 0x00,
    0x08, 0x00, 0x05, 0x00, 0x00, 0x00, 0x00, 0x01, 0x08, 0x00, 0x0b, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x08, 0x00, 0x0e, 0x00, 0x00, 0x00, 0x00, 0x00, 0x08, 0x00, 0x0c, 0x00, 0x00, 0x00, 0x00, 0x01,
    0x54, 0x00, 0x09, 0x00, 0x60, 0x03, 0x7e, 0xd4, 0x00, 0x28, 0x06, 0x40, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x20, 0x01, 0x0d, 0xb8,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x88, 0x22, 0x01, 0xbb,
    0xca, 0x6a, 0x5f, 0x29, 0x00, 0x00, 0x00, 0x00, 0xa0, 0x02, 0xff, 0xc4, 0x2d, 0xe9, 0x00, 0x00,
    0x02, 0x04, 0xff, 0xc4, 0x04, 0x02, 0x08, 0x0a, 0x64, 0x32, 0xd7, 0xe1, 0x00, 0x00, 0x00, 0x00,
    0x01, 0x03, 0x03, 0x0a};

static const uint8_t udp[] = {
    0x78, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x02, 0x00, 0x50, 0x72, 0x08, 0x00, 0x01, 0x00, 0x08, 0x00, 0x03, 0x00, 0x13, 0x00, 0x0a, 0x00,
    0x70, 0x69, 0x6e, 0x66, 0x6f, 0x6c, 0x64, 0x20, 0x64, 0x65, 0x6e, 0x69, 0x65, 0x64, 0x00, 0x00,
    0x08, 0x00, 0x05, 0x00, 0x00, 0x00, 0x00, 0x01, 0x08, 0x00, 0x0b, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x08, 0x00, 0x0e, 0x00, 0x00, 0x00, 0x00, 0x00, 0x08, 0x00, 0x0c, 0x00, 0x00, 0x00, 0x00, 0x02,
    0x25, 0x00, 0x09, 0x00, 0x45, 0x00, 0x00, 0x21, 0x87, 0x20, 0x40, 0x00, 0x40, 0x11, 0x30, 0xa5,
    0x7f, 0x00, 0x00, 0x01, 0x01, 0x02, 0x03, 0x04, 0xce, 0xe8, 0x00, 0x63, 0x00, 0x0d, 0x83, 0x25,
    0x68, 0x65, 0x6c, 0x6c, 0x6f, 0x00, 0x00, 0x00};

static const uint8_t icmp[] = {
    0x78, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x02, 0x00, 0x50, 0x72, 0x08, 0x00, 0x01, 0x00, 0x08, 0x00, 0x03, 0x00, 0x13, 0x00, 0x0a, 0x00,
    0x70, 0x69, 0x6e, 0x66, 0x6f, 0x6c, 0x64, 0x20, 0x64, 0x65, 0x6e, 0x69, 0x65, 0x64, 0x00, 0x00,
    0x08, 0x00, 0x05, 0x00, 0x00, 0x00, 0x00, 0x01, 0x08, 0x00, 0x0b, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x08, 0x00, 0x0e, 0x00, 0x00, 0x00, 0x00, 0x00, 0x08, 0x00, 0x0c, 0x00, 0x00, 0x00, 0x00, 0x03,
    0x28, 0x00, 0x09, 0x00, 0x45, 0x00, 0x00, 0x24, 0xb1, 0xaa, 0x40, 0x00, 0x40, 0x01, 0x06, 0x28,
    0x7f, 0x00, 0x00, 0x01, 0x01, 0x02, 0x03, 0x04, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};

static const uint8_t dns[] = {
    0x94, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x02, 0x00, 0x50, 0x72, 0x08, 0x00, 0x01, 0x00, 0x08, 0x00, 0x03, 0x00, 0x13, 0x00, 0x0a, 0x00,
    0x70, 0x69, 0x6e, 0x66, 0x6f, 0x6c, 0x64, 0x20, 0x64, 0x65, 0x6e, 0x69, 0x65, 0x64, 0x00, 0x00,
    0x08, 0x00, 0x05, 0x00, 0x00, 0x00, 0x00, 0x01, 0x08, 0x00, 0x0b, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x08, 0x00, 0x0e, 0x00, 0x00, 0x00, 0x00, 0x00, 0x08, 0x00, 0x0c, 0x00, 0x00, 0x00, 0x00, 0x04,
    0x42, 0x00, 0x09, 0x00, 0x45, 0x00, 0x00, 0x3e, 0x69, 0x74, 0x40, 0x00, 0x40, 0x11, 0x42, 0x2a,
    0x7f, 0x00, 0x00, 0x01, 0x08, 0x08, 0x08, 0x08, 0xa2, 0xcf, 0x00, 0x35, 0x00, 0x2a, 0x8f, 0x4c,
    0x12, 0x34, 0x01, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x06, 0x73, 0x65, 0x63,
    0x72, 0x65, 0x74, 0x04, 0x65, 0x76, 0x69, 0x6c, 0x04, 0x74, 0x65, 0x73, 0x74, 0x00, 0x00, 0x01,
    0x00, 0x01, 0x00, 0x00};

static const uint8_t extensions[] = {
    0xb4, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x0a, 0x00, 0x50, 0x72, 0x08, 0x00, 0x01, 0x00, 0x86, 0xdd, 0x03, 0x00, 0x11, 0x00, 0x0a, 0x00,
    0x70, 0x69, 0x6e, 0x66, 0x6f, 0x6c, 0x64, 0x20, 0x68, 0x65, 0x6c, 0x64, 0x00, 0x00, 0x00, 0x00,
    0x08, 0x00, 0x05, 0x00, 0x00, 0x00, 0x00, 0x01, 0x08, 0x00, 0x0b, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x08, 0x00, 0x0e, 0x00, 0x00, 0x00, 0x00, 0x00, 0x08, 0x00, 0x0c, 0x00, 0x00, 0x00, 0x00, 0x01,
    0x64, 0x00, 0x09, 0x00, 0x60, 0x03, 0x7e, 0xd4, 0x00, 0x38, 0x00, 0x40, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x20, 0x01, 0x0d, 0xb8,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x2c, 0x00, 0x01, 0x04,
    0x00, 0x00, 0x00, 0x00, 0x06, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x88, 0x22, 0x01, 0xbb,
    0xca, 0x6a, 0x5f, 0x29, 0x00, 0x00, 0x00, 0x00, 0xa0, 0x02, 0xff, 0xc4, 0x2d, 0xe9, 0x00, 0x00,
    0x02, 0x04, 0xff, 0xc4, 0x04, 0x02, 0x08, 0x0a, 0x64, 0x32, 0xd7, 0xe1, 0x00, 0x00, 0x00, 0x00,
    0x01, 0x03, 0x03, 0x0a};
// clang-format on

struct seen {
    struct denied_packet packets[8];
    unsigned count, malformed;
};

static void see(const struct denied_packet *packet, void *data) {
    struct seen *seen = data;
    assert_true(seen->count < 8);
    seen->packets[seen->count++] = *packet;
}

static struct seen parse(const void *bytes, size_t length) {
    struct seen seen = {0};
    /* On the heap and without slack, for the sanitizer. */
    memory_owned uint8_t *copy = length > 0 ? memory_copy(bytes, length) : NULL;
    packet_log_parse(copy, length, see, &seen, &seen.malformed);
    return seen;
}

static void assert_address(int family, const uint8_t *address, const char *expected) {
    char text[ADDRESS_TEXT_SIZE];
    address_write(family, address, 0, text);
    assert_string_equal(text, expected);
}

static void test_held_ipv4(void **state) {
    (void)state;
    struct seen seen = parse(held_ipv4, sizeof held_ipv4);
    assert_int_equal(seen.malformed, 0);
    assert_int_equal(seen.count, 1);
    const struct denied_packet *packet = &seen.packets[0];
    assert_true(packet->held);
    assert_int_equal(packet->family, AF_INET);
    assert_int_equal(packet->protocol, IPPROTO_TCP);
    assert_address(AF_INET, packet->source, "127.0.0.1");
    assert_address(AF_INET, packet->destination, "1.2.3.4");
    assert_int_equal(packet->source_port, 0x9718);
    assert_int_equal(packet->destination_port, 443);
    assert_int_equal(packet->tcp_sequence, 0x1b357ce7);
    assert_int_equal(packet->log_sequence, 0);
    assert_int_equal(packet->uid, 0);
    assert_int_equal(packet->interface_out, 1);
    assert_string_equal(packet->name, "");
}

static void test_held_ipv6(void **state) {
    (void)state;
    struct seen seen = parse(held_ipv6, sizeof held_ipv6);
    assert_int_equal(seen.count, 1);
    const struct denied_packet *packet = &seen.packets[0];
    assert_true(packet->held);
    assert_int_equal(packet->family, AF_INET6);
    assert_address(AF_INET6, packet->source, "::1");
    assert_address(AF_INET6, packet->destination, "2001:db8::1");
    assert_int_equal(packet->source_port, 0x8822);
    assert_int_equal(packet->destination_port, 443);
    assert_int_equal(packet->tcp_sequence, 0xca6a5f29);
    assert_int_equal(packet->log_sequence, 1);
}

static void test_extension_headers(void **state) {
    (void)state;
    struct seen seen = parse(extensions, sizeof extensions);
    assert_int_equal(seen.count, 1);
    assert_true(seen.packets[0].held);
    assert_int_equal(seen.packets[0].protocol, IPPROTO_TCP);
    assert_int_equal(seen.packets[0].destination_port, 443);
    assert_int_equal(seen.packets[0].tcp_sequence, 0xca6a5f29);
}

static void test_datagrams(void **state) {
    (void)state;
    struct seen seen = parse(udp, sizeof udp);
    assert_int_equal(seen.count, 1);
    assert_false(seen.packets[0].held);
    assert_int_equal(seen.packets[0].protocol, IPPROTO_UDP);
    assert_int_equal(seen.packets[0].destination_port, 99);
    assert_false(packet_is_name_query(&seen.packets[0]));
    seen = parse(icmp, sizeof icmp);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.packets[0].protocol, IPPROTO_ICMP);
    assert_int_equal(seen.packets[0].destination_port, 0);
}

#define DNS_NAME (0x54 + 20 + 8 + 12) /* where the first label of `dns` begins */

static void test_question(void **state) {
    (void)state;
    struct seen seen = parse(dns, sizeof dns);
    assert_int_equal(seen.count, 1);
    assert_true(packet_is_name_query(&seen.packets[0]));
    assert_string_equal(seen.packets[0].name, "secret.evil.test");

    uint8_t changed[sizeof dns];
    memcpy(changed, dns, sizeof dns);
    memcpy(changed + DNS_NAME + 1, "a.\\\"\n\x80",
           6); /* six bytes of one label that would forge or break a name */
    seen = parse(changed, sizeof changed);
    assert_string_equal(seen.packets[0].name, "a\\046\\092\"\\010\\128.evil.test");
    changed[DNS_NAME] = 0xc0; /* a pointer, which no question of a resolver has */
    seen = parse(changed, sizeof changed);
    assert_int_equal(seen.count, 1);
    assert_string_equal(seen.packets[0].name, "");
    memcpy(changed, dns, sizeof dns);
    changed[DNS_NAME - 10] |= 0x80; /* an answer */
    seen = parse(changed, sizeof changed);
    assert_string_equal(seen.packets[0].name, "");
}

static void test_truncated(void **state) {
    (void)state;
    static const struct {
        const uint8_t *bytes;
        size_t length;
    } whole[] = {{held_ipv4, sizeof held_ipv4},
                 {held_ipv6, sizeof held_ipv6},
                 {udp, sizeof udp},
                 {icmp, sizeof icmp},
                 {dns, sizeof dns},
                 {extensions, sizeof extensions}};
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
        /* Cut by the socket: the message says more than there is. */
        for (size_t length = 0; length < whole[i].length; length++) {
            struct seen seen = parse(whole[i].bytes, length);
            assert_int_equal(seen.count, 0);
            assert_int_equal(seen.malformed, length == 0 ? 0 : 1);
        }
        /* Cut by the message: what is left must be whole, or is skipped. */
        size_t padding =
            (size_t)(-whole[i].bytes[0x50] & 3); /* after the last attribute, the payload at 0x50 */
        for (size_t length = 16; length < whole[i].length - padding; length++) {
            memory_owned uint8_t *copy = memory_copy(whole[i].bytes, length);
            uint32_t claimed = (uint32_t)length;
            memcpy(copy, &claimed, sizeof claimed);
            struct seen seen = parse(copy, length);
            assert_int_equal(seen.count + seen.malformed, 1);
            if (seen.count == 1) /* the payload is the last attribute: never a packet without all of it */
                fail_msg("message %zu cut to %zu bytes gave a packet", i, length);
        }
    }
}

/* The payload itself cut short, in a message that is whole. */
static void test_short_payload(void **state) {
    (void)state;
    for (size_t length = 0; length < sizeof held_ipv4 - 0x54; length++) {
        memory_owned uint8_t *copy = memory_copy(held_ipv4, 0x54 + length);
        uint32_t message = (uint32_t)(0x54 + length);
        uint16_t attribute = (uint16_t)(4 + length);
        memcpy(copy, &message, sizeof message);
        memcpy(copy + 0x50, &attribute, sizeof attribute);
        struct seen seen = parse(copy, message);
        /* Ports and sequence number are in the first 8 bytes of the TCP header; a reset needs no more. */
        assert_int_equal(seen.count, length >= 28 ? 1 : 0);
        assert_int_equal(seen.malformed, length >= 28 ? 0 : 1);
    }
}

static void test_damaged(void **state) {
    (void)state;
    uint8_t copy[sizeof held_ipv4];
    memcpy(copy, held_ipv4, sizeof copy);
    copy[0x54] = 0x4f; /* a header of 60 bytes is all there is: no room for TCP */
    assert_int_equal(parse(copy, sizeof copy).malformed, 1);
    copy[0x54] = 0x44; /* a header of 16 bytes */
    assert_int_equal(parse(copy, sizeof copy).malformed, 1);
    memcpy(copy, held_ipv4, sizeof copy);
    copy[0x54 + 9] = IPPROTO_UDP; /* held, and not TCP: nothing to reset */
    assert_int_equal(parse(copy, sizeof copy).malformed, 1);
    copy[0x54 + 7] = 0x01; /* a later fragment */
    assert_int_equal(parse(copy, sizeof copy).malformed, 1);
    memcpy(copy, held_ipv4, sizeof copy);
    memset(copy, 0xff, 4); /* a message of 4 GiB */
    assert_int_equal(parse(copy, sizeof copy).malformed, 1);
    memset(copy, 0, 4); /* one of none: must end */
    assert_int_equal(parse(copy, sizeof copy).malformed, 1);
    memcpy(copy, held_ipv4, sizeof copy);
    copy[0x24] = 'x'; /* another prefix */
    struct seen seen = parse(copy, sizeof copy);
    assert_int_equal(seen.count, 1);
    assert_false(seen.packets[0].held);
}

static void test_two_in_one(void **state) {
    (void)state;
    uint8_t both[sizeof held_ipv4 + sizeof held_ipv6];
    memcpy(both, held_ipv4, sizeof held_ipv4);
    memcpy(both + sizeof held_ipv4, held_ipv6, sizeof held_ipv6);
    struct seen seen = parse(both, sizeof both);
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.packets[0].family, AF_INET);
    assert_int_equal(seen.packets[1].family, AF_INET6);
    both[0x54] = 0; /* the first one damaged: the second one still counts */
    seen = parse(both, sizeof both);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.malformed, 1);
    assert_int_equal(seen.packets[0].family, AF_INET6);
}

static void test_address_kinds(void **state) {
    (void)state;
    static const struct {
        const char *address;
        enum address_kind kind;
    } rows[] = {
        {"1.2.3.4", ADDRESS_PUBLIC},
        {"169.254.169.254", ADDRESS_METADATA},
        {"169.254.170.2", ADDRESS_METADATA},
        {"169.254.170.23", ADDRESS_METADATA},
        {"169.254.42.42", ADDRESS_METADATA},
        {"100.100.100.200", ADDRESS_METADATA},
        {"168.63.129.16", ADDRESS_METADATA},
        {"192.0.0.192", ADDRESS_METADATA},
        {"168.63.129.17", ADDRESS_PUBLIC},
        {"169.254.1.1", ADDRESS_PRIVATE},
        {"0.0.0.0", ADDRESS_PRIVATE},
        {"10.255.255.255", ADDRESS_PRIVATE},
        {"11.0.0.0", ADDRESS_PUBLIC},
        {"100.63.255.255", ADDRESS_PUBLIC},
        {"100.64.0.0", ADDRESS_PRIVATE},
        {"100.127.255.255", ADDRESS_PRIVATE},
        {"100.128.0.0", ADDRESS_PUBLIC},
        {"127.8.8.8", ADDRESS_PRIVATE},
        {"172.15.255.255", ADDRESS_PUBLIC},
        {"172.16.0.0", ADDRESS_PRIVATE},
        {"172.31.255.255", ADDRESS_PRIVATE},
        {"172.32.0.0", ADDRESS_PUBLIC},
        {"192.168.1.1", ADDRESS_PRIVATE},
        {"198.17.255.255", ADDRESS_PUBLIC},
        {"198.19.0.1", ADDRESS_PRIVATE},
        {"224.0.0.1", ADDRESS_PRIVATE},
        {"255.255.255.255", ADDRESS_PRIVATE},
        {"2001:db8::1", ADDRESS_PUBLIC},
        {"::", ADDRESS_PRIVATE},
        {"::1", ADDRESS_PRIVATE},
        {"fd00:ec2::254", ADDRESS_METADATA},
        {"fd00:ec2::23", ADDRESS_METADATA},
        {"fd20:ce::254", ADDRESS_METADATA},
        {"fd00:c1::a9fe:a9fe", ADDRESS_METADATA},
        {"fd00:42::42", ADDRESS_METADATA},
        {"fd00:42::43", ADDRESS_PRIVATE},
        {"fe80::1", ADDRESS_PRIVATE},
        {"ff02::1", ADDRESS_PRIVATE},
        {"::ffff:169.254.169.254", ADDRESS_METADATA},
        {"::ffff:1.2.3.4", ADDRESS_PUBLIC},
        {"64:ff9b::a9fe:a9fe", ADDRESS_METADATA},
        {"64:ff9b::10.0.0.1", ADDRESS_PRIVATE},
        {"64:ff9b::1.2.3.4", ADDRESS_PUBLIC},
        {"2002:a9fe:a9fe::1", ADDRESS_METADATA},
        {"::169.254.169.254", ADDRESS_METADATA},
        {"::1.2.3.4", ADDRESS_PUBLIC},
        {"::ffff:0:169.254.169.254", ADDRESS_METADATA},
        {"::ffff:0:10.0.0.1", ADDRESS_PRIVATE},
        {"::ffff:0:1.2.3.4", ADDRESS_PUBLIC},
        {"2001:0:a9fe:a9fe::1", ADDRESS_PRIVATE},
        {"2001:1::1", ADDRESS_PUBLIC},
        {"2002:a00:1::1", ADDRESS_PRIVATE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t address[16];
        int family = strchr(rows[i].address, ':') != NULL ? AF_INET6 : AF_INET;
        assert_int_equal(inet_pton(family, rows[i].address, address), 1);
        if (address_classify(family, address) != rows[i].kind)
            fail_msg("%s is of kind %d", rows[i].address, (int)address_classify(family, address));
    }
}

static void test_address_text(void **state) {
    (void)state;
    char text[ADDRESS_TEXT_SIZE];
    uint8_t address[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 1};
    address_write(AF_INET6, address, 443, text);
    assert_string_equal(text, "[2001:db8::1]:443");
    address_write(AF_INET6, address, 0, text);
    assert_string_equal(text, "2001:db8::1");
    memset(address, 0xff, 16);
    address_write(AF_INET6, address, 65535, text);
    assert_string_equal(text, "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535");
    address_write(AF_INET, address, 65535, text);
    assert_string_equal(text, "255.255.255.255:65535");
}

/* A rule is the same only with each expression, value and verdict in its place; what a kernel adds is passed
 * over. */
static void test_rule_comparison(void **state) {
    (void)state;
    netlink_batch_owned struct netlink_batch plan = {0}, other = {0};
    nft_load_meta(&plan, NFT_META_L4PROTO, REGISTER_A);
    nft_compare_u8(&plan, REGISTER_A, NFT_CMP_EQ, IPPROTO_TCP);
    nft_verdict(&plan, NF_DROP, NULL);
    assert_true(nft_attributes_match(plan.data, plan.length, plan.data, plan.length));

    netlink_put_raw(&other, plan.data, plan.length);
    nft_verdict(&other, NF_ACCEPT, NULL); /* one expression more */
    assert_false(nft_attributes_match(plan.data, plan.length, other.data, other.length));
    netlink_batch_free(&other);

    nft_load_meta(&other, NFT_META_L4PROTO, REGISTER_A);
    nft_compare_u8(&other, REGISTER_A, NFT_CMP_EQ, IPPROTO_TCP);
    assert_false(nft_attributes_match(plan.data, plan.length, other.data, other.length)); /* one less */
    nft_verdict(&other, NF_ACCEPT, NULL);
    assert_false(
        nft_attributes_match(plan.data, plan.length, other.data, other.length)); /* another verdict */
    netlink_batch_free(&other);

    nft_compare_u8(&other, REGISTER_A, NFT_CMP_EQ, IPPROTO_TCP);
    nft_load_meta(&other, NFT_META_L4PROTO, REGISTER_A);
    nft_verdict(&other, NF_DROP, NULL);
    assert_false(nft_attributes_match(plan.data, plan.length, other.data, other.length)); /* another order */
    netlink_batch_free(&other);

    nft_load_meta(&other, NFT_META_L4PROTO, REGISTER_A);
    nft_compare_u8(&other, REGISTER_A, NFT_CMP_NEQ, IPPROTO_TCP);
    nft_verdict(&other, NF_DROP, NULL);
    assert_false(
        nft_attributes_match(plan.data, plan.length, other.data, other.length)); /* another operation */
    netlink_batch_free(&other);

    /* Attributes of a type that the plan does not write are the kernel's own. */
    netlink_batch_owned struct netlink_batch one = {0};
    netlink_put_be32(&one, NFTA_LIMIT_BURST, 5);
    netlink_put_be32(&other, NFTA_LIMIT_BURST, 5);
    netlink_put_be32(&other, NFTA_LIMIT_FLAGS, 0);
    assert_true(nft_attributes_match(one.data, one.length, other.data, other.length));
    assert_false(nft_attributes_match(other.data, other.length, one.data, one.length));
}

static void test_user_data(void **state) {
    (void)state;
    uint8_t data[64];
    struct netlink_attribute found;
    size_t length = nft_user_data_put(data, 0, "digest", 7);
    uint32_t mark = 0x12345678;
    length += nft_user_data_put(data + length, 0x50, &mark, sizeof mark);
    assert_int_equal(length, 15);
    struct netlink_attribute all = {.value = data, .length = length};
    assert_true(nft_user_data_find(all, 0x50, &found));
    assert_int_equal(netlink_get_u32(found), mark);
    assert_true(nft_user_data_find(all, 0, &found));
    assert_true(netlink_is_string(found, "digest"));
    assert_false(nft_user_data_find(all, 1, &found));
    all.length = 14; /* cut */
    assert_false(nft_user_data_find(all, 0x50, &found));
    all.length = 0;
    assert_false(nft_user_data_find(all, 0, &found));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_held_ipv4),         cmocka_unit_test(test_held_ipv6),
        cmocka_unit_test(test_extension_headers), cmocka_unit_test(test_datagrams),
        cmocka_unit_test(test_question),          cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_short_payload),     cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_two_in_one),        cmocka_unit_test(test_address_kinds),
        cmocka_unit_test(test_address_text),      cmocka_unit_test(test_rule_comparison),
        cmocka_unit_test(test_user_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
