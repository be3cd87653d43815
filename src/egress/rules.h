/* The rules of the wall, as one plan from which they are written and with which they are compared. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "egress/nft.h"
#include "egress/routes.h"

#define WALL_TABLE "pinfold"
#define WALL_IDENTITY "policy "
#define WALL_LOG_GROUP 20594 /* "Pr"; one holder a group and network namespace */
#define WALL_PREFIX_HELD "pinfold held"
#define WALL_PREFIX_DENIED "pinfold denied"
#define WALL_PREFIX_LET_OUT "pinfold let out"
#define WALL_PREFIX_INBOUND "pinfold inbound"
#define WALL_COUNTER_DENIED "denied"
#define WALL_COUNTER_LET_OUT "let_out"
#define WALL_COUNTER_LOGGED "logged"
/* A DNS question with the longest name, over IPv6. */
#define WALL_SNAP_LENGTH 320

#define WALL_LOG_RATE 200
#define WALL_LOG_BURST 400
/* What comes in is of anybody's making: it must not fill the log. */
#define WALL_INBOUND_RATE 20
#define WALL_INBOUND_BURST 50

#define WALL_BEFORE_TRACKING (-300) /* NF_IP_PRI_RAW; connection tracking is at -200 */

enum wall_variant {
    WALL_NONE,       /* nothing is denied, new flows are observed */
    WALL_ALONE,      /* depends on no interface: nothing but loopback addresses */
    WALL_INTERFACES, /* also replies to inbound connections, and the container's own addresses */
    WALL_EGRESS      /* the same, and a netdev egress chain that lets only marked packets out */
};

#define EGRESS_RULES 2

struct wall_openings; /* host_rules.h */

struct wall_plan {
    enum wall_variant variant;
    const struct wall_openings *openings; /* NULL: nothing but the denials */
    struct nft_chain chains[8];
    size_t chain_count;
    struct nft_rule rules[56];
    size_t rule_count;
    /* The netdev table, with WALL_EGRESS and at least one device. */
    struct nft_chain egress_chain;
    struct nft_rule egress_rules[EGRESS_RULES];
    const char **devices;
};

/* `mark` is the secret of this namespace that tells packets which the output chain let through; not 0.
 * `links` may be NULL except with WALL_EGRESS; they and the openings must live as long as the plan. */
void wall_plan_make(struct wall_plan *plan, enum wall_variant variant, uint32_t mark,
                    const struct link_list *links, const struct wall_openings *openings);
void wall_plan_free(struct wall_plan *plan);
#define wall_plan_owned __attribute__((cleanup(wall_plan_free)))

/* Appends what raises the wall in a namespace without one (the table is new, or the batch is refused with
 * EEXIST). */
void wall_plan_put_new(const struct wall_plan *plan, struct netlink_batch *batch, const void *user_data,
                       size_t user_data_length);
/* Appends what puts the plan's rules in the place of any earlier plan's, in the table that is there. `netdev`
 * says whether to touch the netdev table at all: kernels without the family refuse any message about it. */
void wall_plan_put_again(const struct wall_plan *plan, struct netlink_batch *batch, bool netdev);
/* The same with chains and sets that may not be there yet, and with the elements of the sets. The netdev
 * table, whose rules no policy changes, is left alone. */
void wall_plan_put_change(const struct wall_plan *plan, struct netlink_batch *batch);
/* Fails unless both tables hold exactly the plan. */
fallible wall_plan_compare(const struct wall_plan *plan, int socket);
