#include "egress/observing.h"

#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <netinet/in.h>

#include "egress/matches.h"

/* Until its first packet has passed all hooks a flow is not noted (confirmed): so one that is not answered,
 * and sent again, is shown once. */
static void match_new_flow(struct netlink_batch *rule) {
    uint32_t state = NF_CT_STATE_BIT(IP_CT_NEW), noted = IPS_CONFIRMED, none = 0;
    nft_load_conntrack(rule, NFT_CT_STATE, REGISTER_A);
    nft_mask(rule, REGISTER_A, &state, sizeof state);
    nft_compare(rule, REGISTER_A, NFT_CMP_NEQ, &none, sizeof none);
    nft_load_conntrack(rule, NFT_CT_STATUS, REGISTER_A);
    nft_mask(rule, REGISTER_A, &noted, sizeof noted);
    nft_compare(rule, REGISTER_A, NFT_CMP_EQ, &none, sizeof none);
}

void observing_rules(struct wall_plan *plan) {
    static const uint8_t families[] = {NFPROTO_IPV4, NFPROTO_IPV6};
    static const char *const loopback[] = {"loopback address, IPv4", "loopback address, IPv6"};
    static const struct {
        uint8_t protocol;
        const char *name;
    } others[] = {{IPPROTO_TCP, "other TCP"}, {IPPROTO_IGMP, "membership report"}};
    struct netlink_batch *rule;

    /* The chain accepts, whatever becomes of its rules and of who reads the log. */
    plan->chains[plan->chain_count++] =
        (struct nft_chain){.name = "output", .base = true, .hook = NF_INET_LOCAL_OUT, .policy = NF_ACCEPT};
    plan->chains[plan->chain_count++] = (struct nft_chain){.name = "flow"};
    rule = rule_begin(plan, "output", "within the namespace");
    match_out_of_loopback(rule);
    nft_verdict(rule, NF_ACCEPT, NULL);
    for (size_t i = 0; i < 2; i++) { /* an engine's resolver */
        rule = rule_begin(plan, "output", loopback[i]);
        match_loopback_address(rule, families[i], false, NFT_CMP_EQ);
        nft_verdict(rule, NF_ACCEPT, NULL);
    }
    rule = rule_begin(plan, "output", "connection");
    match_tcp_flags(rule, TCP_FLAG_FIN | TCP_FLAG_SYN | TCP_FLAG_RST | TCP_FLAG_ACK, TCP_FLAG_SYN);
    match_new_flow(rule);
    nft_verdict(rule, NFT_GOTO, "flow");
    /* The kernel's own, and connections that are older than the tracking. */
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        rule = rule_begin(plan, "output", others[i].name);
        match_protocol(rule, others[i].protocol);
        nft_verdict(rule, NF_ACCEPT, NULL);
    }
    rule = rule_begin(plan, "output", "any other");
    match_new_flow(rule);
    nft_verdict(rule, NFT_GOTO, "flow");

    log_rules(plan, "flow", WALL_COUNTER_LET_OUT, WALL_LOG_RATE, WALL_LOG_BURST, WALL_PREFIX_LET_OUT);
}
