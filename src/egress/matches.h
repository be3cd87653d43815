/* What the rules of the wall are put together from: each match ends its rule where it does not hold. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "egress/rules.h"

/* Offsets of header fields (RFC 791, 8200, 9293, 4443). */
#define IPV4_SOURCE 12
#define IPV4_DESTINATION 16
#define IPV6_HOP_LIMIT 7
#define IPV6_SOURCE 8
#define IPV6_DESTINATION 24
#define TCP_FLAGS 13
#define TCP_FLAG_FIN 0x01
#define TCP_FLAG_SYN 0x02
#define TCP_FLAG_RST 0x04
#define TCP_FLAG_ACK 0x10

/* Appends a rule to the plan, after all that are there. */
struct netlink_batch *rule_begin(struct wall_plan *plan, const char *chain, const char *name);

void match_u8(struct netlink_batch *rule, uint32_t meta_key, uint8_t value);
/* NFPROTO_IPV4, NFPROTO_IPV6 */
void match_family(struct netlink_batch *rule, uint8_t family);
void match_protocol(struct netlink_batch *rule, uint8_t protocol);
/* With the family. `operation`: NFT_CMP_EQ, NFT_CMP_NEQ. */
void match_loopback_address(struct netlink_batch *rule, uint8_t family, bool source, uint32_t operation);
/* Docker's resolver, 127.0.0.11. */
void match_engine_resolver(struct netlink_batch *rule);
void match_out_of_loopback(struct netlink_batch *rule);
void match_tcp_flags(struct netlink_batch *rule, uint8_t mask, uint8_t flags);
/* What goes out by an interface: with the mark that the netdev chain asks for, where there is one. */
void accept_marked(struct netlink_batch *rule, enum wall_variant variant, uint32_t mark);
/* Appends the rules with which a chain of what is denied or observed begins: all is counted, and what comes
 * below the rate is logged. */
void log_rules(struct wall_plan *plan, const char *chain, const char *counter, uint64_t rate, uint32_t burst,
               const char *prefix);
