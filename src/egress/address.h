/* What kind of place an address is, for the reason of a denial and for what an allowed name may resolve to.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum address_kind {
    ADDRESS_PUBLIC,
    ADDRESS_PRIVATE, /* private, shared, loopback, link-local, multicast, reserved: RFC 6890 and its registry
                      */
    ADDRESS_METADATA /* a cloud's instance metadata or credential service */
};

/* `address` is 4 bytes for AF_INET, 16 for AF_INET6, in network order. An IPv6 address that carries an IPv4
 * address (mapped, NAT64, 6to4) is of that one's kind. */
enum address_kind address_classify(int family, const uint8_t *address);

#define ADDRESS_TEXT_SIZE 64
/* Writes "1.2.3.4", or with a port that is not 0 "1.2.3.4:443" and "[2001:db8::1]:443". */
void address_write(int family, const uint8_t *address, uint16_t port, char text[ADDRESS_TEXT_SIZE]);
