#include "egress/rules.h"

#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_conntrack_tuple_common.h>
#include <linux/netfilter_ipv4.h>
#include <netinet/in.h>
#include <string.h>

#include "base/memory.h"
#include "egress/host_rules.h"
#include "egress/matches.h"
#include "egress/observing.h"

#define SET_HELD "held"
/* A SYN is sent again after one second; an answer that has not come by then never comes. */
/* Of the connection tracking; 0 is everybody's. */
#define BROKER_ZONE 20594
#define HELD_TIMEOUT_MS 4000
/* At most 400 + 4 x 200 are held at once; more room than that, since the kernel sweeps the set lazily. */
#define HELD_SIZE 8192

/* Source port, destination port and sequence number: the first 8 bytes of the TCP header, in both families. A
 * SYN that is sent again has the same; a new attempt, even from the same port, has another initial sequence
 * number. */
static void load_attempt(struct netlink_batch *rule) {
    nft_load_payload(rule, NFT_PAYLOAD_TRANSPORT_HEADER, 0, 8, REGISTER_A);
}

/* Loopback addresses behind which an engine listens from outside the sandbox: they must not pass as loopback.
 */
static void redirection_rules(struct wall_plan *plan) {
    struct netlink_batch *rule;

    /* Docker's resolver; it forwards any name, from the host's namespace where it must. */
    rule = rule_begin(plan, "output", "the engine's resolver");
    match_engine_resolver(rule);
    nft_verdict(rule, NFT_GOTO, "refuse");

    if (plan->variant == WALL_ALONE)
        return;
    /* What an engine's rules (nat output, before ours) have given another destination. */
    uint8_t original = IP_CT_DIR_ORIGINAL;
    uint32_t redirected = IPS_DST_NAT, none = 0;
    rule = rule_begin(plan, "output", "redirected elsewhere");
    nft_load_conntrack(rule, NFT_CT_DIRECTION, REGISTER_A);
    nft_compare(rule, REGISTER_A, NFT_CMP_EQ, &original, sizeof original);
    nft_load_conntrack(rule, NFT_CT_STATUS, REGISTER_A);
    nft_mask(rule, REGISTER_A, &redirected, sizeof redirected);
    nft_compare(rule, REGISTER_A, NFT_CMP_NEQ, &none, sizeof none);
    nft_verdict(rule, NFT_GOTO, "refuse");
}

static void output_rules(struct wall_plan *plan, uint32_t mark) {
    struct netlink_batch *rule;

    if (plan->openings != NULL)
        host_rules_output(plan, mark);
    redirection_rules(plan);
    rule = rule_begin(plan, "output", "loopback address, IPv4");
    match_loopback_address(rule, NFPROTO_IPV4, false, NFT_CMP_EQ);
    nft_verdict(rule, NF_ACCEPT, NULL);
    rule = rule_begin(plan, "output", "loopback address, IPv6");
    match_loopback_address(rule, NFPROTO_IPV6, false, NFT_CMP_EQ);
    nft_verdict(rule, NF_ACCEPT, NULL);

    /* Resets, the warden's and the kernel's, to a workload that bound a source address which is not loopback:
     * with the local default route it may bind any. They stay in the namespace. */
    rule = rule_begin(plan, "output", "reset within the namespace");
    match_out_of_loopback(rule);
    match_tcp_flags(rule, TCP_FLAG_SYN | TCP_FLAG_RST, TCP_FLAG_RST);
    nft_verdict(rule, NF_ACCEPT, NULL);

    if (plan->variant != WALL_ALONE) {
        /* The container's own addresses. What takes the local default route for want of another has a
         * loopback source, and is denied and recorded like the rest. */
        rule = rule_begin(plan, "output", "own address, IPv4");
        match_out_of_loopback(rule);
        match_loopback_address(rule, NFPROTO_IPV4, true, NFT_CMP_NEQ);
        nft_verdict(rule, NF_ACCEPT, NULL);
        rule = rule_begin(plan, "output", "own address, IPv6");
        match_out_of_loopback(rule);
        match_loopback_address(rule, NFPROTO_IPV6, true, NFT_CMP_NEQ);
        nft_verdict(rule, NF_ACCEPT, NULL);

        /* A workload may send from the address of somebody outside (tracking_rules). What the broker answers
         * to such a packet, and what refuses it, a reset or an ICMP error with all that it carried, would be
         * replies to him. The first comes from loopback, for only later is it translated; the second belongs
         * to a connection that the kernel has not noted yet, as it does when a packet has arrived. */
        static const uint8_t families[] = {NFPROTO_IPV4, NFPROTO_IPV6};
        static const char *const names[] = {"reply of the broker to somebody outside, IPv4",
                                            "reply of the broker to somebody outside, IPv6"};
        uint8_t reply = IP_CT_DIR_REPLY;
        uint32_t loopback = LOOPBACK_INDEX, noted = IPS_CONFIRMED, none = 0;
        for (size_t i = 0; i < 2; i++) {
            rule = rule_begin(plan, "output", names[i]);
            nft_load_meta(rule, NFT_META_OIF, REGISTER_A);
            nft_compare(rule, REGISTER_A, NFT_CMP_NEQ, &loopback, sizeof loopback);
            match_loopback_address(rule, families[i], true, NFT_CMP_EQ);
            nft_load_conntrack(rule, NFT_CT_DIRECTION, REGISTER_A);
            nft_compare(rule, REGISTER_A, NFT_CMP_EQ, &reply, sizeof reply);
            nft_verdict(rule, NFT_GOTO, "refuse");
        }
        rule = rule_begin(plan, "output", "reply to an inbound connection");
        nft_load_conntrack(rule, NFT_CT_DIRECTION, REGISTER_A);
        nft_compare(rule, REGISTER_A, NFT_CMP_EQ, &reply, sizeof reply);
        nft_load_conntrack(rule, NFT_CT_STATUS, REGISTER_A);
        nft_mask(rule, REGISTER_A, &noted, sizeof noted);
        nft_compare(rule, REGISTER_A, NFT_CMP_NEQ, &none, sizeof none);
        accept_marked(rule, plan->variant, mark);
    }

    /* Router solicitation (133), neighbour solicitation and advertisement (135, 136): the kernel's own,
     * without which an interface that comes later has no IPv6. A workload needs a raw socket to send one. */
    static const uint8_t neighbour_discovery[][2] = {{133, 133}, {135, 136}};
    static const char *const names[] = {"router solicitation", "neighbour discovery"};
    for (size_t i = 0; i < 2; i++) {
        rule = rule_begin(plan, "output", names[i]);
        match_protocol(rule, IPPROTO_ICMPV6);
        nft_load_payload(rule, NFT_PAYLOAD_NETWORK_HEADER, IPV6_HOP_LIMIT, 1, REGISTER_A);
        nft_compare_u8(rule, REGISTER_A, NFT_CMP_EQ, 255);
        nft_load_payload(rule, NFT_PAYLOAD_TRANSPORT_HEADER, 0, 1, REGISTER_A);
        nft_compare_u8(rule, REGISTER_A, NFT_CMP_GTE, neighbour_discovery[i][0]);
        nft_compare_u8(rule, REGISTER_A, NFT_CMP_LTE, neighbour_discovery[i][1]);
        accept_marked(rule, plan->variant, mark);
    }
    /* The kernel reports multicast membership of every interface (MLDv2, type 143): nobody's attempt, so no
     * record, but a workload that joins groups of its choice would speak through it. */
    rule = rule_begin(plan, "output", "membership report");
    match_protocol(rule, IPPROTO_ICMPV6);
    nft_load_payload(rule, NFT_PAYLOAD_TRANSPORT_HEADER, 0, 1, REGISTER_A);
    nft_compare_u8(rule, REGISTER_A, NFT_CMP_EQ, 143);
    nft_verdict(rule, NF_DROP, NULL);

    rule = rule_begin(plan, "output", "connection attempt");
    match_tcp_flags(rule, TCP_FLAG_FIN | TCP_FLAG_SYN | TCP_FLAG_RST | TCP_FLAG_ACK, TCP_FLAG_SYN);
    nft_verdict(rule, NFT_GOTO, "attempt");
    rule = rule_begin(plan, "output", "other TCP");
    match_protocol(rule, IPPROTO_TCP);
    nft_reject(rule, NFT_REJECT_TCP_RST, 0);
    rule = rule_begin(plan, "output", "any other");
    nft_verdict(rule, NFT_GOTO, "refuse");
}

/* A workload may send from an address that is not its own (IPV6_FREEBIND needs no privilege and IPv6 does not
 * look at the source again; in IPv4 the local default route makes any address local). Sent to itself, over
 * loopback, from the address and port of somebody outside, such a packet would be the original direction of a
 * connection, and what the workload then sends to that somebody the reply to it, which the output chain lets
 * out. What stays in the namespace is therefore not tracked; loopback's own addresses are, since nobody
 * outside has one and redirections of them need it. */
static void tracking_rules(struct wall_plan *plan) {
    static const uint8_t families[] = {NFPROTO_IPV4, NFPROTO_IPV6};
    static const char *const names[] = {"within the namespace, IPv4", "within the namespace, IPv6"};
    for (size_t i = 0; i < 2; i++) {
        struct netlink_batch *rule = rule_begin(plan, "untracked", names[i]);
        match_out_of_loopback(rule);
        match_loopback_address(rule, families[i], true, NFT_CMP_NEQ);
        nft_untrack(rule);
    }
}

/* A workload may ask the broker's own nameserver, from any of the ports that the broker's next question will
 * have: to the connection tracking that question would be another packet of the workload's connection, which
 * is redirected to the broker itself, and no name would be found any more, by no container of the pod. What
 * the broker sends is looked up in a zone of its own; answers need none, since the workload's own come from
 * loopback. */
static void zone_rules(struct wall_plan *plan, uint32_t mark) {
    if (plan->variant == WALL_ALONE || plan->openings == NULL || !plan->openings->brokered ||
        !plan->openings->dials_here)
        return;
    uint16_t zone = BROKER_ZONE;
    struct netlink_batch *rule = rule_begin(plan, "untracked", "the broker's, tracked apart");
    nft_load_meta(rule, NFT_META_MARK, REGISTER_A);
    nft_compare(rule, REGISTER_A, NFT_CMP_EQ, &mark, sizeof mark);
    nft_load_immediate(rule, &zone, sizeof zone, REGISTER_A);
    nft_set_zone(rule, IP_CT_DIR_ORIGINAL, REGISTER_A);
}

static void denial_rules(struct wall_plan *plan) {
    struct netlink_batch *rule;

    /* Never answered by ICMP: connect() would keep the error to itself until the first retransmission, one
     * second. */
    rule = rule_begin(plan, "attempt", "held and sent again");
    load_attempt(rule);
    nft_lookup(rule, SET_HELD, REGISTER_A);
    nft_reject(rule, NFT_REJECT_TCP_RST, 0);
    rule = rule_begin(plan, "attempt", "counted");
    nft_count(rule, WALL_COUNTER_DENIED);
    rule = rule_begin(plan, "attempt", "held below the rate");
    nft_limit(rule, WALL_LOG_RATE, WALL_LOG_BURST);
    load_attempt(rule);
    nft_add_to_set(rule, SET_HELD, REGISTER_A);
    nft_count(rule, WALL_COUNTER_LOGGED);
    nft_log(rule, WALL_LOG_GROUP, WALL_PREFIX_HELD, WALL_SNAP_LENGTH);
    nft_verdict(rule, NF_DROP, NULL);
    rule = rule_begin(plan, "attempt", "refused above it");
    nft_reject(rule, NFT_REJECT_TCP_RST, 0);

    log_rules(plan, "refuse", WALL_COUNTER_DENIED, WALL_LOG_RATE, WALL_LOG_BURST, WALL_PREFIX_DENIED);
    rule = rule_begin(plan, "refuse", "refused, TCP");
    match_protocol(rule, IPPROTO_TCP);
    nft_reject(rule, NFT_REJECT_TCP_RST, 0);
    rule = rule_begin(plan, "refuse", "refused, any other");
    nft_reject(rule, NFT_REJECT_ICMPX_UNREACH, NFT_REJECT_ICMPX_ADMIN_PROHIBITED);
}

/* Packet sockets do not pass the output chain. What did has the mark, which is taken off before any packet
 * socket can see it; the rest goes nowhere, but ARP, which the kernel itself sends past the output chain. */
static void egress_plan(struct wall_plan *plan, uint32_t mark, const struct link_list *links) {
    size_t count = 0;
    plan->devices = memory_zeroed((links->count + 1) * sizeof *plan->devices);
    for (size_t i = 0; i < links->count; i++)
        if (!links->items[i].stacked)
            plan->devices[count++] = links->items[i].name;
    plan->egress_chain = (struct nft_chain){.name = "egress",
                                            .base = true,
                                            .hook = NF_NETDEV_EGRESS,
                                            .policy = NF_DROP,
                                            .devices = plan->devices};
    uint32_t zero = 0;
    uint16_t arp = htons(0x0806);
    struct nft_rule *passed = &plan->egress_rules[0], *resolution = &plan->egress_rules[1];
    *passed = (struct nft_rule){.chain = "egress", .name = "passed the output chain"};
    nft_load_meta(&passed->expressions, NFT_META_MARK, REGISTER_A);
    nft_compare(&passed->expressions, REGISTER_A, NFT_CMP_EQ, &mark, sizeof mark);
    nft_load_immediate(&passed->expressions, &zero, sizeof zero, REGISTER_A);
    nft_set_meta(&passed->expressions, NFT_META_MARK, REGISTER_A);
    nft_verdict(&passed->expressions, NF_ACCEPT, NULL);
    *resolution = (struct nft_rule){.chain = "egress", .name = "address resolution"};
    nft_load_meta(&resolution->expressions, NFT_META_PROTOCOL, REGISTER_A);
    nft_compare(&resolution->expressions, REGISTER_A, NFT_CMP_EQ, &arp, sizeof arp);
    nft_verdict(&resolution->expressions, NF_ACCEPT, NULL);
}

void wall_plan_make(struct wall_plan *plan, enum wall_variant variant, uint32_t mark,
                    const struct link_list *links, const struct wall_openings *openings) {
    *plan = (struct wall_plan){.variant = variant, .openings = openings};
    if (variant == WALL_NONE) {
        observing_rules(plan);
        return;
    }
    /* The order is the order of the rules below: a dump lists rules chain by chain as the chains were made.
     */
    plan->chains[plan->chain_count++] =
        (struct nft_chain){.name = "output", .base = true, .hook = NF_INET_LOCAL_OUT, .policy = NF_DROP};
    plan->chains[plan->chain_count++] =
        (struct nft_chain){.name = "forward", .base = true, .hook = NF_INET_FORWARD, .policy = NF_DROP};
    plan->chains[plan->chain_count++] = (struct nft_chain){.name = "untracked",
                                                           .base = true,
                                                           .hook = NF_INET_LOCAL_OUT,
                                                           .priority = WALL_BEFORE_TRACKING,
                                                           .policy = NF_ACCEPT};
    if (openings != NULL)
        host_rules_chains(plan);
    plan->chains[plan->chain_count++] = (struct nft_chain){.name = "attempt"};
    plan->chains[plan->chain_count++] = (struct nft_chain){.name = "refuse"};
    output_rules(plan, mark);
    if (openings != NULL)
        host_rules_identity(plan);
    tracking_rules(plan);
    zone_rules(plan, mark);
    if (openings != NULL)
        host_rules_rest(plan, mark);
    denial_rules(plan);
    if (variant == WALL_EGRESS)
        egress_plan(plan, mark, links);
}

void wall_plan_free(struct wall_plan *plan) {
    for (size_t i = 0; i < plan->rule_count; i++)
        netlink_batch_free(&plan->rules[i].expressions);
    for (size_t i = 0; i < EGRESS_RULES; i++)
        netlink_batch_free(&plan->egress_rules[i].expressions);
    free(plan->devices);
    *plan = (struct wall_plan){0};
}

static bool plan_has_egress(const struct wall_plan *plan) {
    return plan->devices != NULL && plan->devices[0] != NULL;
}

void wall_plan_put_new(const struct wall_plan *plan, struct netlink_batch *batch, const void *user_data,
                       size_t user_data_length) {
    nft_table_add(batch, NFPROTO_INET, WALL_TABLE, user_data, user_data_length, NLM_F_EXCL);
    nft_counter_add(batch, NFPROTO_INET, WALL_TABLE,
                    plan->variant == WALL_NONE ? WALL_COUNTER_LET_OUT : WALL_COUNTER_DENIED);
    nft_counter_add(batch, NFPROTO_INET, WALL_TABLE, WALL_COUNTER_LOGGED);
    if (plan->variant != WALL_NONE)
        nft_set_add(batch, NFPROTO_INET, WALL_TABLE, SET_HELD, 8, HELD_TIMEOUT_MS, HELD_SIZE);
    if (plan->openings != NULL)
        host_rules_put_sets(plan->openings, batch);
    for (size_t i = 0; i < plan->chain_count; i++)
        nft_chain_add(batch, NFPROTO_INET, WALL_TABLE, &plan->chains[i]);
    for (size_t i = 0; i < plan->rule_count; i++)
        nft_rule_add(batch, NFPROTO_INET, WALL_TABLE, &plan->rules[i]);
}

void wall_plan_put_again(const struct wall_plan *plan, struct netlink_batch *batch, bool netdev) {
    for (size_t i = 0; i < plan->chain_count; i++)
        nft_chain_flush(batch, NFPROTO_INET, WALL_TABLE, plan->chains[i].name);
    for (size_t i = 0; i < plan->rule_count; i++)
        nft_rule_add(batch, NFPROTO_INET, WALL_TABLE, &plan->rules[i]);
    if (!netdev)
        return;
    /* Added so that it can be taken away whether or not it was there: its devices may be others now. */
    nft_table_add(batch, NFPROTO_NETDEV, WALL_TABLE, NULL, 0, 0);
    nft_table_delete(batch, NFPROTO_NETDEV, WALL_TABLE);
    if (!plan_has_egress(plan))
        return;
    nft_table_add(batch, NFPROTO_NETDEV, WALL_TABLE, NULL, 0, 0);
    nft_chain_add(batch, NFPROTO_NETDEV, WALL_TABLE, &plan->egress_chain);
    for (size_t i = 0; i < EGRESS_RULES; i++)
        nft_rule_add(batch, NFPROTO_NETDEV, WALL_TABLE, &plan->egress_rules[i]);
}

void wall_plan_put_change(const struct wall_plan *plan, struct netlink_batch *batch) {
    for (size_t i = 0; i < plan->chain_count; i++)
        nft_chain_add(batch, NFPROTO_INET, WALL_TABLE, &plan->chains[i]);
    if (plan->openings != NULL)
        host_rules_replace_sets(plan->openings, batch);
    wall_plan_put_again(plan, batch, false);
}

static struct error *plan_compare_once(const struct wall_plan *plan, int socket) {
    TRY(nft_compare_table(socket, NFPROTO_INET, WALL_TABLE, plan->chains, plan->chain_count, plan->rules,
                          plan->rule_count));
    if (plan->openings != NULL)
        TRY(host_rules_compare_sets(plan->openings, socket));
    if (!plan_has_egress(plan))
        return NULL;
    return nft_compare_table(socket, NFPROTO_NETDEV, WALL_TABLE, &plan->egress_chain, 1, plan->egress_rules,
                             EGRESS_RULES);
}

struct error *wall_plan_compare(const struct wall_plan *plan, int socket) {
    /* EAGAIN: another writer of the namespace (a pod's next container) was between two parts of the dump. */
    for (int attempt = 0;; attempt++) {
        struct error *error = plan_compare_once(plan, socket);
        if (error == NULL || error->number != EAGAIN || attempt == 10)
            return error;
        error_free(error);
    }
}
