/* The rules of a network policy that lets something through: what is redirected to the broker, what the
 * broker itself may send, and what may come in. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "egress/egress.h"
#include "egress/nft_set.h"
#include "egress/rules.h"

/* What is redirected to the broker: an address and a port. Of each kind a set for IPv4, then one for IPv6,
 * each only where it has elements: intervals cost most to write, and few policies have any. */
enum wall_set_kind {
    WALL_SET_ADDRESSES, /* of exact names, of aliases, and single ones of the policy */
    WALL_SET_BELOW,     /* the first address of a prefix in which names below "*.name" lines have theirs */
    WALL_SET_RANGES,    /* of the policy: intervals */
    WALL_SET_KINDS
};
#define WALL_SETS (2 * WALL_SET_KINDS)

struct wall_openings {
    bool brokered;                     /* there are allowed hosts: the following count */
    bool dials_here;                   /* the broker dials from this namespace, with the mark */
    struct nft_ranges sets[WALL_SETS]; /* at 2 * kind for IPv4, the next for IPv6 */
    bool inbound_denied;
    char identity[80]; /* the comment of a rule that says which policy was put in place of the first; "": none
                        */
};

/* ERROR_INVALID for a line that cannot be read. *needed is false where the policy lets nothing through and
 * nothing less in than without a policy: then there are no openings. */
fallible wall_openings_make(const struct wall_network *network, struct wall_openings *out, bool *needed);
void wall_openings_free(struct wall_openings *openings);
#define wall_openings_owned __attribute__((cleanup(wall_openings_free)))

/* Parts of wall_plan_make, wall_plan_put_new and wall_plan_compare, with plan->openings. */
void host_rules_chains(struct wall_plan *plan);
/* The first rules of the output chain. */
void host_rules_output(struct wall_plan *plan, uint32_t mark);
/* With openings->identity. */
void host_rules_identity(struct wall_plan *plan);
/* Those of host_rules_chains. */
void host_rules_rest(struct wall_plan *plan, uint32_t mark);
/* A netlink message may be as large as the socket's send buffer, 212 KiB by default. */
#define HOST_ELEMENTS_A_BATCH 2000
/* The sets, and their elements as far as one batch takes them. */
void host_rules_put_sets(const struct wall_openings *openings, struct netlink_batch *batch);
/* The same for sets that may be there: what they hold now is what they hold then. */
void host_rules_replace_sets(const struct wall_openings *openings, struct netlink_batch *batch);
/* How many there are, and those of a further batch, HOST_ELEMENTS_A_BATCH after `from`: all sets are counted
 * through. */
size_t host_rules_elements(const struct wall_openings *openings);
void host_rules_put_elements(const struct wall_openings *openings, size_t from, struct netlink_batch *batch);
fallible host_rules_compare_sets(const struct wall_openings *openings, int socket);
