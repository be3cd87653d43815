#include "harden/parts.h"

/* `none` is a wall with no host in it: whatever interface the engine adds leads nowhere. */
void harden_network(const struct policy *policy, struct hardened *hardened) {
    hardened->wall = policy->network_mode != POLICY_NETWORK_OPEN;
}
