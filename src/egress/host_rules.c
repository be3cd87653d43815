#include "egress/host_rules.h"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_conntrack_tuple_common.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "egress/broker_sockets.h"
#include "egress/host_alias.h"
#include "egress/matches.h"
#include "egress/names.h"
#include "policy/hosts.h"

#define TCP_SOURCE_PORT 0 /* of UDP as well, as is the next */
#define TCP_DESTINATION_PORT 2
#define PORT_DNS 53
/* Before an engine's own redirections of names (Docker's, at NF_IP_PRI_NAT_DST, -100): of two redirections
 * the first one counts. */
#define BEFORE_ENGINES (-110)

static const char *const set_names[WALL_SETS] = {"allowed_ipv4", "allowed_ipv6", "below_ipv4",
                                                 "below_ipv6",   "ranges_ipv4",  "ranges_ipv6"};
static const uint8_t families[2] = {NFPROTO_IPV4, NFPROTO_IPV6};

/* -- what is let through -- */

/* Where names below a "*.name" line get their addresses (egress/names.h): the first of the /16 and of the
 * /48. */
static const uint8_t below_ipv4[4] = {198, 19};
static const uint8_t below_ipv6[16] = {0xfd, 0x00, 0x98, 0x00, 0, 1};

static struct nft_ranges *set_of(struct wall_openings *out, enum wall_set_kind kind, int family) {
    return &out->sets[2 * kind + (family == AF_INET ? 0 : 1)];
}

static void add_address(struct wall_openings *out, int family, const uint8_t *address, uint16_t port) {
    nft_ranges_add(set_of(out, WALL_SET_ADDRESSES, family), address, family == AF_INET ? 32 : 128, port);
}

static void add_entry(struct wall_openings *out, const struct host_entry *entry, uint16_t port) {
    add_address(out, AF_INET, entry->ipv4, port);
    add_address(out, AF_INET6, entry->ipv6, port);
}

static void add_port(struct wall_openings *out, const struct host_map *map, const struct policy_host *host,
                     uint16_t port) {
    struct host_entry entry;
    switch (host->kind) {
    case POLICY_HOST_NAME:
        if (host_map_find(map, host->name, &entry))
            add_entry(out, &entry, port);
        break;
    case POLICY_HOST_BELOW:
        nft_ranges_add(set_of(out, WALL_SET_BELOW, AF_INET), below_ipv4, 32, port);
        nft_ranges_add(set_of(out, WALL_SET_BELOW, AF_INET6), below_ipv6, 128, port);
        for (size_t i = 0; i < host_map_exact_count(map); i++) {
            entry = host_map_exact(map, i);
            if (policy_host_matches_name(host, entry.name, port))
                add_entry(out, &entry, port);
        }
        break;
    case POLICY_HOST_RANGE:
        if (host->prefix == (host->family == AF_INET ? 32 : 128))
            add_address(out, host->family, host->address, port);
        else
            nft_ranges_add(set_of(out, WALL_SET_RANGES, host->family), host->address, host->prefix, port);
        break;
    }
}

static struct error *add_lines(struct wall_openings *out, const struct policy_list *lines,
                               const struct string_list *names) {
    host_map_owned map = NULL;
    TRY(host_map_make_after(names, lines, &map));
    for (size_t i = 0; i < lines->values.count; i++) {
        struct policy_host host = {0};
        struct error *error = policy_host_read(lines->values.items[i], &host);
        for (size_t k = 0; error == NULL && k < host.ports_count; k++)
            add_port(out, map, &host, host.ports[k]);
        policy_host_clear(&host);
        TRY(error);
    }
    return NULL;
}

/* At the ports that the name has. */
static struct error *add_aliases(struct wall_openings *out, const struct policy_list *lines,
                                 const struct string_list *aliases) {
    for (size_t i = 0; aliases->count > 0 && i < lines->values.count; i++) {
        struct policy_host host = {0};
        struct error *error = policy_host_read(lines->values.items[i], &host);
        for (size_t k = 0; error == NULL && k < aliases->count * host.ports_count; k++) {
            uint16_t port = host.ports[k % host.ports_count];
            struct host_alias alias;
            if (host_alias_read(aliases->items[k / host.ports_count], &alias) &&
                policy_host_matches_name(&host, alias.name, port))
                add_address(out, alias.family, alias.address, port);
        }
        policy_host_clear(&host);
        TRY(error);
    }
    return NULL;
}

struct error *wall_openings_make(const struct wall_network *network, struct wall_openings *out,
                                 bool *needed) {
    bool hosts = network->allowed_hosts != NULL && network->allowed_hosts->values.count > 0;
    *out = (struct wall_openings){.brokered = hosts || network->brokered,
                                  .dials_here = !network->uplink_elsewhere,
                                  .inbound_denied = network->inbound_denied};
    for (size_t i = 0; i < WALL_SETS; i++)
        out->sets[i] =
            (struct nft_ranges){.address_length = i % 2 == 0 ? 4 : 16, .keys = i / 2 != WALL_SET_RANGES};
    if (network->changed)
        snprintf(out->identity, sizeof out->identity, WALL_IDENTITY "%s", network->digest);
    *needed = out->brokered || out->inbound_denied || network->changed;
    if (!hosts)
        return NULL;
    struct error *error = add_lines(out, network->allowed_hosts, network->names);
    if (error == NULL && network->aliases != NULL)
        error = add_aliases(out, network->allowed_hosts, network->aliases);
    for (size_t i = 0; i < WALL_SETS; i++)
        nft_ranges_complete(&out->sets[i]);
    if (error != NULL)
        wall_openings_free(out);
    return error;
}

void wall_openings_free(struct wall_openings *openings) {
    for (size_t i = 0; i < WALL_SETS; i++)
        nft_ranges_free(&openings->sets[i]);
    *openings = (struct wall_openings){0};
}

/* -- rules -- */

static void match_mark(struct netlink_batch *rule, uint32_t mark) {
    nft_load_meta(rule, NFT_META_MARK, REGISTER_A);
    nft_compare(rule, REGISTER_A, NFT_CMP_EQ, &mark, sizeof mark);
}

static void load_destination_port(struct netlink_batch *rule, uint32_t into) {
    nft_load_payload(rule, NFT_PAYLOAD_TRANSPORT_HEADER, TCP_DESTINATION_PORT, 2, into);
}

static void match_port(struct netlink_batch *rule, uint32_t operation, uint16_t port) {
    uint16_t ordered = htons(port);
    load_destination_port(rule, REGISTER_A);
    nft_compare(rule, REGISTER_A, operation, &ordered, sizeof ordered);
}

void host_rules_chains(struct wall_plan *plan) {
    if (plan->openings->brokered)
        plan->chains[plan->chain_count++] = (struct nft_chain){.name = "broker",
                                                               .base = true,
                                                               .nat = true,
                                                               .hook = NF_INET_LOCAL_OUT,
                                                               .priority = BEFORE_ENGINES,
                                                               .policy = NF_ACCEPT};
    if (plan->openings->inbound_denied) {
        plan->chains[plan->chain_count++] =
            (struct nft_chain){.name = "input", .base = true, .hook = NF_INET_LOCAL_IN, .policy = NF_DROP};
        plan->chains[plan->chain_count++] = (struct nft_chain){.name = "inbound"};
    }
}

/* What the broker sends has the mark, which a workload cannot set: it has neither CAP_NET_ADMIN nor
 * CAP_NET_RAW. */
static void marked_rules(struct wall_plan *plan, uint32_t mark) {
    struct netlink_batch *rule;

    if (plan->variant != WALL_ALONE) {
        /* Docker's resolver: at port 53 as it was sent, and where Docker's own rules have redirected it. */
        rule = rule_begin(plan, "output", "the broker to the engine's resolver");
        match_mark(rule, mark);
        match_engine_resolver(rule);
        nft_verdict(rule, NF_ACCEPT, NULL);
    }
    /* What leads nowhere, or into the container itself. Nobody's attempt, so no record but the broker's. */
    rule = rule_begin(plan, "output", "the broker's, within the namespace, TCP");
    match_mark(rule, mark);
    match_out_of_loopback(rule);
    match_protocol(rule, IPPROTO_TCP);
    nft_reject(rule, NFT_REJECT_TCP_RST, 0);
    rule = rule_begin(plan, "output", "the broker's, within the namespace");
    match_mark(rule, mark);
    match_out_of_loopback(rule);
    nft_reject(rule, NFT_REJECT_ICMPX_UNREACH, NFT_REJECT_ICMPX_ADMIN_PROHIBITED);
    if (plan->variant != WALL_ALONE) {
        rule = rule_begin(plan, "output", "the broker's");
        match_mark(rule, mark);
        nft_verdict(rule, NF_ACCEPT, NULL);
    }
}

/* The broker asks its nameservers from this namespace, where a workload may bind port 53 of the engine's
 * resolver, which is on loopback, or of any IPv6 address, and send over loopback what looks like an answer;
 * or what makes the connection tracking take the question itself for an answer, and bring it to the workload.
 * Answers of the real ones have, here, either another interface or, before it is translated, another port. */
static void feigned_answer_rules(struct wall_plan *plan) {
    static const uint8_t protocols[2] = {IPPROTO_UDP, IPPROTO_TCP};
    static const char *const names[2] = {"a feigned answer of a nameserver",
                                         "a feigned answer of a nameserver, TCP"};
    for (size_t i = 0; i < 2; i++) {
        struct netlink_batch *rule = rule_begin(plan, "output", names[i]);
        match_out_of_loopback(rule);
        match_protocol(rule, protocols[i]);
        nft_load_payload(rule, NFT_PAYLOAD_TRANSPORT_HEADER, TCP_SOURCE_PORT, 2, REGISTER_A);
        nft_compare(rule, REGISTER_A, NFT_CMP_EQ, &(uint16_t){htons(PORT_DNS)}, sizeof(uint16_t));
        nft_verdict(rule, NFT_GOTO, "refuse");
    }
}

/* The reset that refuses a connection from outside (inbound_rules). Its connection is marked there, is not
 * noted, and goes with it: nothing that a workload sends, from whatever address, has that mark. */
static void refusal_rule(struct wall_plan *plan, uint32_t mark) {
    uint8_t reply = IP_CT_DIR_REPLY;
    struct netlink_batch *rule = rule_begin(plan, "output", "refusal of a connection from outside");
    match_tcp_flags(rule, TCP_FLAG_SYN | TCP_FLAG_RST, TCP_FLAG_RST);
    nft_load_conntrack(rule, NFT_CT_DIRECTION, REGISTER_A);
    nft_compare(rule, REGISTER_A, NFT_CMP_EQ, &reply, sizeof reply);
    nft_load_conntrack(rule, NFT_CT_MARK, REGISTER_A);
    nft_compare(rule, REGISTER_A, NFT_CMP_EQ, &mark, sizeof mark);
    accept_marked(rule, plan->variant, mark);
}

void host_rules_output(struct wall_plan *plan, uint32_t mark) {
    static const char *const names[2] = {"redirected to the broker, IPv4", "redirected to the broker, IPv6"};
    if (plan->openings->inbound_denied && plan->variant != WALL_ALONE)
        refusal_rule(plan, mark);
    if (!plan->openings->brokered)
        return;
    if (plan->openings->dials_here)
        marked_rules(plan, mark);
    /* The interface is still the one that the packet would have left by: only the address tells. */
    for (size_t i = 0; i < 2; i++) {
        struct netlink_batch *rule = rule_begin(plan, "output", names[i]);
        match_loopback_address(rule, families[i], false, NFT_CMP_EQ);
        match_port(rule, NFT_CMP_GTE, BROKER_DNS_PORT);
        nft_compare(rule, REGISTER_A, NFT_CMP_LTE, &(uint16_t){htons(BROKER_RELAY_PORT)}, sizeof(uint16_t));
        nft_verdict(rule, NF_ACCEPT, NULL);
    }
    if (plan->openings->dials_here && plan->variant != WALL_ALONE)
        feigned_answer_rules(plan);
}

static void redirect(struct netlink_batch *rule, uint16_t port) {
    uint16_t ordered = htons(port);
    nft_load_immediate(rule, &ordered, sizeof ordered, REGISTER_A);
    nft_redirect(rule, REGISTER_A);
}

/* What is in a set is redirected. */
static void allowed_rule(struct wall_plan *plan, size_t set) {
    static const char *const names[WALL_SETS] = {"allowed, IPv4",
                                                 "allowed, IPv6",
                                                 "allowed below a name, IPv4",
                                                 "allowed below a name, IPv6",
                                                 "allowed range, IPv4",
                                                 "allowed range, IPv6"};
    static const uint8_t below_masks[2][16] = {{0xff, 0xff}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
    size_t i = set % 2, length = plan->openings->sets[set].address_length;
    struct netlink_batch *rule = rule_begin(plan, "broker", names[set]);
    match_family(rule, families[i]);
    match_protocol(rule, IPPROTO_TCP);
    nft_load_payload(rule, NFT_PAYLOAD_NETWORK_HEADER, i == 0 ? IPV4_DESTINATION : IPV6_DESTINATION,
                     (uint32_t)length, REGISTER_A);
    if (set / 2 == WALL_SET_BELOW)
        nft_mask(rule, REGISTER_A, below_masks[i], length);
    load_destination_port(rule, i == 0 ? REGISTER_A_SECOND : REGISTER_B);
    nft_lookup(rule, set_names[set], REGISTER_A);
    redirect(rule, BROKER_RELAY_PORT);
}

static void broker_rules(struct wall_plan *plan, uint32_t mark) {
    static const struct {
        uint8_t protocol;
        const char *name;
    } questions[] = {{IPPROTO_UDP, "a name asked for"}, {IPPROTO_TCP, "a name asked for, TCP"}};
    static const char *const loopback[2] = {"loopback's own, IPv4", "loopback's own, IPv6"};
    struct netlink_batch *rule;

    if (plan->openings->dials_here) {
        rule = rule_begin(plan, "broker", "the broker's");
        match_mark(rule, mark);
        nft_verdict(rule, NFT_RETURN, NULL);
    }
    /* Whatever server was asked, on loopback as well: without a resolv.conf that is where resolvers ask. */
    for (size_t i = 0; i < 2; i++) {
        rule = rule_begin(plan, "broker", questions[i].name);
        match_protocol(rule, questions[i].protocol);
        match_port(rule, NFT_CMP_EQ, PORT_DNS);
        redirect(rule, BROKER_DNS_PORT);
    }
    /* However wide a range of the policy is. */
    for (size_t i = 0; i < 2; i++) {
        rule = rule_begin(plan, "broker", loopback[i]);
        match_loopback_address(rule, families[i], false, NFT_CMP_EQ);
        nft_verdict(rule, NFT_RETURN, NULL);
    }
    for (size_t i = 0; i < WALL_SETS; i++)
        if (plan->openings->sets[i].count > 0)
            allowed_rule(plan, i);
}

static void input_rules(struct wall_plan *plan, uint32_t mark) {
    struct netlink_batch *rule;
    uint32_t index = LOOPBACK_INDEX, none = 0,
             known = NF_CT_STATE_BIT(IP_CT_ESTABLISHED) | NF_CT_STATE_BIT(IP_CT_RELATED);

    rule = rule_begin(plan, "input", "within the namespace");
    nft_load_meta(rule, NFT_META_IIF, REGISTER_A);
    nft_compare(rule, REGISTER_A, NFT_CMP_EQ, &index, sizeof index);
    nft_verdict(rule, NF_ACCEPT, NULL);
    rule = rule_begin(plan, "input", "answers");
    nft_load_conntrack(rule, NFT_CT_STATE, REGISTER_A);
    nft_mask(rule, REGISTER_A, &known, sizeof known);
    nft_compare(rule, REGISTER_A, NFT_CMP_NEQ, &none, sizeof none);
    nft_verdict(rule, NF_ACCEPT, NULL);
    /* Without these, 133 to 136, an interface has no IPv6; the kernel alone reads them. */
    rule = rule_begin(plan, "input", "neighbour discovery");
    match_protocol(rule, IPPROTO_ICMPV6);
    nft_load_payload(rule, NFT_PAYLOAD_NETWORK_HEADER, IPV6_HOP_LIMIT, 1, REGISTER_A);
    nft_compare_u8(rule, REGISTER_A, NFT_CMP_EQ, 255);
    nft_load_payload(rule, NFT_PAYLOAD_TRANSPORT_HEADER, 0, 1, REGISTER_A);
    nft_compare_u8(rule, REGISTER_A, NFT_CMP_GTE, 133);
    nft_compare_u8(rule, REGISTER_A, NFT_CMP_LTE, 136);
    nft_verdict(rule, NF_ACCEPT, NULL);
    rule = rule_begin(plan, "input", "connection from outside");
    match_tcp_flags(rule, TCP_FLAG_FIN | TCP_FLAG_SYN | TCP_FLAG_RST | TCP_FLAG_ACK, TCP_FLAG_SYN);
    nft_verdict(rule, NFT_GOTO, "inbound");
    /* To this container alone: what a network says to everybody is no attempt. */
    rule = rule_begin(plan, "input", "datagram from outside");
    match_protocol(rule, IPPROTO_UDP);
    match_u8(rule, NFT_META_PKTTYPE, PACKET_HOST);
    nft_verdict(rule, NFT_GOTO, "inbound");

    log_rules(plan, "inbound", WALL_COUNTER_DENIED, WALL_INBOUND_RATE, WALL_INBOUND_BURST,
              WALL_PREFIX_INBOUND);
    /* A reset at once: who dials would wait for ten seconds and more. Datagrams go unanswered. */
    rule = rule_begin(plan, "inbound", "refused, TCP");
    match_protocol(rule, IPPROTO_TCP);
    nft_load_immediate(rule, &mark, sizeof mark, REGISTER_A);
    nft_set_conntrack(rule, NFT_CT_MARK, REGISTER_A);
    nft_reject(rule, NFT_REJECT_TCP_RST, 0);
}

/* It denies what the chain's policy denies; its comment is what counts. (The user data of a table cannot be
 * written anew.) */
void host_rules_identity(struct wall_plan *plan) {
    if (plan->openings->identity[0] != '\0')
        nft_verdict(rule_begin(plan, "forward", plan->openings->identity), NF_DROP, NULL);
}

void host_rules_rest(struct wall_plan *plan, uint32_t mark) {
    if (plan->openings->brokered)
        broker_rules(plan, mark);
    if (plan->openings->inbound_denied)
        input_rules(plan, mark);
}

/* -- sets -- */

size_t host_rules_elements(const struct wall_openings *openings) {
    size_t count = 0;
    for (size_t i = 0; i < WALL_SETS; i++)
        count += openings->sets[i].count;
    return count;
}

void host_rules_put_elements(const struct wall_openings *openings, size_t from, struct netlink_batch *batch) {
    size_t end = from + HOST_ELEMENTS_A_BATCH, begin = 0;
    for (size_t i = 0; i < WALL_SETS; i++) {
        const struct nft_ranges *ranges = &openings->sets[i];
        size_t first = from > begin ? from - begin : 0;
        size_t last = end - begin < ranges->count ? end - begin : ranges->count;
        if (end > begin && first < last)
            nft_ranges_put(batch, NFPROTO_INET, WALL_TABLE, set_names[i], ranges, first, last - first);
        begin += ranges->count;
    }
}

void host_rules_put_sets(const struct wall_openings *openings, struct netlink_batch *batch) {
    if (!openings->brokered)
        return;
    for (size_t i = 0; i < WALL_SETS; i++)
        if (openings->sets[i].count > 0)
            nft_range_set_add(batch, NFPROTO_INET, WALL_TABLE, set_names[i], &openings->sets[i],
                              2 + (uint32_t)i);
    host_rules_put_elements(openings, 0, batch);
}

void host_rules_replace_sets(const struct wall_openings *openings, struct netlink_batch *batch) {
    if (!openings->brokered)
        return;
    /* Of one that has no elements any more no rule speaks. */
    for (size_t i = 0; i < WALL_SETS; i++)
        if (openings->sets[i].count > 0) {
            nft_range_set_add(batch, NFPROTO_INET, WALL_TABLE, set_names[i], &openings->sets[i],
                              2 + (uint32_t)i);
            nft_set_flush(batch, NFPROTO_INET, WALL_TABLE, set_names[i]);
        }
    host_rules_put_elements(openings, 0, batch);
}

struct error *host_rules_compare_sets(const struct wall_openings *openings, int socket) {
    for (size_t i = 0; openings->brokered && i < WALL_SETS; i++)
        if (openings->sets[i].count > 0)
            TRY(nft_ranges_compare(socket, NFPROTO_INET, WALL_TABLE, set_names[i], &openings->sets[i]));
    return NULL;
}
