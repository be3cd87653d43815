#include "harden/parts.h"

/* `none` is a wall with no host in it: whatever interface the engine adds leads nowhere. */
void harden_network(const struct policy *policy, struct hardened *hardened) {
    hardened->wall = policy->network_mode != POLICY_NETWORK_OPEN;
    const struct oci_linux *linux_config = harden_linux(hardened);
    /* A device is no more than an interface that the engine would add by a hook. The wall stands before it
     * comes, does not depend on interfaces, and the workload has no capability to change either. Without a
     * namespace for a wall there is no container (namespaces.c). */
    for (size_t i = 0; hardened->wall && i < linux_config->net_devices_count; i++)
        harden_note(hardened, CHANGE_SET, "linux.netDevices", linux_config->net_devices[i].device, NULL,
                    "built-in: the network wall", NULL,
                    "The device is moved behind the network wall: nothing goes out through it but what the "
                    "policy %s allows.",
                    policy->name);
}
