#include <string.h>

#include "base/memory.h"
#include "harden/parts.h"
#include "policy/match.h"

/* What joins the machine's network namespace, or has none of its own. */
static bool has_own_network(const struct oci_linux *linux_config, const struct facts *facts) {
    for (size_t i = 0; i < linux_config->namespaces_count && i < facts->namespaces_count; i++)
        if (strcmp(linux_config->namespaces[i].type, "network") == 0)
            return !facts->namespace_is_host[i];
    return false;
}

/* Nothing is denied; hosts that are reached are recorded by rules, which nobody puts into the machine's own
 * namespace. */
static fallible observe(const struct policy *policy, const struct facts *facts, struct hardened *hardened) {
    static const char key[] = "observe.network";
    bool must = policy->origins[POLICY_OBSERVE_NETWORK] != NULL &&
                !string_list_contains(&policy->best_effort.values, key);
    if (!policy->observe_network)
        return NULL;
    if (has_own_network(harden_linux(hardened), facts)) {
        hardened->reached_observed = true;
        hardened->reached_must = must;
        return NULL;
    }
    if (must)
        return error_new(
            ERROR_UNAVAILABLE,
            "observe.network, written in %s, needs a network namespace of the container's own, and this "
            "one uses the host's; take the line out, or let it be missing: enforcement: {best_effort: [%s]}",
            policy_origin(policy, POLICY_OBSERVE_NETWORK), key);
    harden_note(
        hardened, CHANGE_DEGRADED, "linux.namespaces", "reached hosts", "mechanism.unavailable",
        "observe.network: true", NULL,
        "What is reached over the network is not recorded: the container uses the host's network, where "
        "no rules are put.");
    return NULL;
}

/* The broker of the next start, or of a pod's next container, asks the name servers that it finds there, and
 * takes addresses from there that may be private: a workload must not write them for it. */
void harden_resolver_files(const struct policy *policy, struct hardened *hardened) {
    if (policy->network_mode != POLICY_NETWORK_ALLOWLIST || policy->allowed_hosts.values.count == 0)
        return;
    for (size_t i = 0; i < hardened->config->mounts_count; i++) {
        struct oci_mount *mount = &hardened->config->mounts[i];
        memory_owned char *place = match_path_clean(mount->destination);
        if ((strcmp(place, "/etc/resolv.conf") != 0 && strcmp(place, "/etc/hosts") != 0) ||
            harden_mount_is_read_only(mount))
            continue;
        harden_mount_make_read_only(mount);
        harden_note(hardened, CHANGE_SET, "mounts", place, NULL, "network.allowed_hosts", NULL,
                    "%s is read-only: what stands there decides where allowed hosts are", place);
    }
}

/* `none` is a wall with no host in it: whatever interface the engine adds leads nowhere. */
fallible harden_network(const struct policy *policy, const struct facts *facts, struct hardened *hardened) {
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
    return hardened->wall ? NULL : observe(policy, facts, hardened);
}
