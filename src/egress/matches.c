#include "egress/matches.h"

#include <linux/netfilter.h>
#include <netinet/in.h>

static const uint8_t loopback_ipv4 = 127; /* the first byte says it: 127.0.0.0/8 */
static const uint8_t loopback_ipv6[16] = {[15] = 1};

struct netlink_batch *rule_begin(struct wall_plan *plan, const char *chain, const char *name) {
    struct nft_rule *rule = &plan->rules[plan->rule_count++];
    *rule = (struct nft_rule){.chain = chain, .name = name};
    return &rule->expressions;
}

void match_u8(struct netlink_batch *rule, uint32_t meta_key, uint8_t value) {
    nft_load_meta(rule, meta_key, REGISTER_A);
    nft_compare_u8(rule, REGISTER_A, NFT_CMP_EQ, value);
}

void match_family(struct netlink_batch *rule, uint8_t family) {
    match_u8(rule, NFT_META_NFPROTO, family);
}

void match_protocol(struct netlink_batch *rule, uint8_t protocol) {
    match_u8(rule, NFT_META_L4PROTO, protocol);
}

void match_loopback_address(struct netlink_batch *rule, uint8_t family, bool source, uint32_t operation) {
    match_family(rule, family);
    if (family == NFPROTO_IPV4) {
        nft_load_payload(rule, NFT_PAYLOAD_NETWORK_HEADER, source ? IPV4_SOURCE : IPV4_DESTINATION, 1,
                         REGISTER_A);
        nft_compare_u8(rule, REGISTER_A, operation, loopback_ipv4);
    } else {
        nft_load_payload(rule, NFT_PAYLOAD_NETWORK_HEADER, source ? IPV6_SOURCE : IPV6_DESTINATION, 16,
                         REGISTER_A);
        nft_compare(rule, REGISTER_A, operation, loopback_ipv6, sizeof loopback_ipv6);
    }
}

void match_engine_resolver(struct netlink_batch *rule) {
    static const uint8_t docker_resolver[4] = {127, 0, 0, 11};
    match_family(rule, NFPROTO_IPV4);
    nft_load_payload(rule, NFT_PAYLOAD_NETWORK_HEADER, IPV4_DESTINATION, 4, REGISTER_A);
    nft_compare(rule, REGISTER_A, NFT_CMP_EQ, docker_resolver, sizeof docker_resolver);
}

void match_out_of_loopback(struct netlink_batch *rule) {
    uint32_t index = LOOPBACK_INDEX;
    nft_load_meta(rule, NFT_META_OIF, REGISTER_A);
    nft_compare(rule, REGISTER_A, NFT_CMP_EQ, &index, sizeof index);
}

void match_tcp_flags(struct netlink_batch *rule, uint8_t mask, uint8_t flags) {
    match_protocol(rule, IPPROTO_TCP);
    nft_load_payload(rule, NFT_PAYLOAD_TRANSPORT_HEADER, TCP_FLAGS, 1, REGISTER_A);
    nft_mask(rule, REGISTER_A, &mask, sizeof mask);
    nft_compare_u8(rule, REGISTER_A, NFT_CMP_EQ, flags);
}

void accept_marked(struct netlink_batch *rule, enum wall_variant variant, uint32_t mark) {
    if (variant == WALL_EGRESS) {
        nft_load_immediate(rule, &mark, sizeof mark, REGISTER_A);
        nft_set_meta(rule, NFT_META_MARK, REGISTER_A);
    }
    nft_verdict(rule, NF_ACCEPT, NULL);
}

void log_rules(struct wall_plan *plan, const char *chain, const char *counter, uint64_t rate, uint32_t burst,
               const char *prefix) {
    struct netlink_batch *rule = rule_begin(plan, chain, "counted");
    nft_count(rule, counter);
    rule = rule_begin(plan, chain, "logged below the rate");
    nft_limit(rule, rate, burst);
    nft_count(rule, WALL_COUNTER_LOGGED);
    nft_log(rule, WALL_LOG_GROUP, prefix, WALL_SNAP_LENGTH);
}
