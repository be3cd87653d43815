/* Links and routes of the calling thread's network namespace, for the wall. */
#pragma once

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define LOOPBACK_INDEX 1 /* of lo in every network namespace: it is made with the namespace */

struct link {
    uint32_t index;
    char name[IFNAMSIZ];
    bool stacked; /* sends through another link of the same namespace (VLAN, bridge, bond): that one is the
                     way out */
};
/* Every link except lo. */
struct link_list {
    struct link *items;
    size_t count;
};
void link_list_free(struct link_list *list);
#define link_list_owned __attribute__((cleanup(link_list_free)))

fallible links_read(struct link_list *out);

/* Brings lo up; up already is fine. */
fallible routes_loopback_up(void);

/* Adds the local default routes through lo, IPv4 and IPv6, at the worst metric, so that they serve only where
 * the engine's routes lead nowhere. There already is fine. A namespace without IPv6 keeps IPv4's alone. */
fallible routes_local_add(void);
/* Takes them out again; absent is fine. */
fallible routes_local_remove(void);

/* Whether an address is that of a neighbour: reached by an interface other than lo, without a gateway. */
fallible routes_is_neighbour(int family, const uint8_t *address, bool *out);
