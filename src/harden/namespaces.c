#include <string.h>

#include "base/memory.h"
#include "harden/parts.h"

/* A namespace that is absent from config.json is the host's (config-linux.md, "Namespaces"). These can be
 * added without asking: nothing that a workload needs is lost with the host's. */
static const struct {
    const char *type;
    const char *what;
} added[] = {
    {"mount", "mounts"},
    {"pid", "processes"},
    {"ipc", "shared memory and message queues"},
    {"uts", "host name"},
    {"cgroup", "view of the cgroups"},
};

static void add(struct oci_linux *linux_config, const char *type) {
    linux_config->namespaces = memory_resize(linux_config->namespaces, linux_config->namespaces_count + 1,
                                             sizeof *linux_config->namespaces);
    linux_config->namespaces[linux_config->namespaces_count++] =
        (struct oci_namespace){.type = memory_copy_string(type)};
}

static fallible refuse_host(const struct policy *policy, const char *type, const char *how) {
    if (strcmp(type, "network") == 0)
        return error_new(
            ERROR_REFUSED,
            "namespace.host.refused: the container would use the host's network (%s), where no wall "
            "can stand (network.mode: %s, %s); use the engine's default network or none, for example "
            "`--network none`, or a policy with network: {mode: open} (--policy unconfined has no wall)",
            how, policy->network_mode == POLICY_NETWORK_NONE ? "none" : "allowlist", policy->origin);
    return error_new(
        ERROR_REFUSED,
        "namespace.host.refused: the container would join the host's %s namespace (%s; %s); leave it "
        "out, and the container gets its own",
        type, how, policy->origin);
}

fallible harden_namespaces(const struct policy *policy, const struct facts *facts,
                           struct hardened *hardened) {
    struct oci_linux *linux_config = harden_linux(hardened);
    for (size_t i = 0; i < linux_config->namespaces_count && i < facts->namespaces_count; i++) {
        const struct oci_namespace *namespace = &linux_config->namespaces[i];
        if (!facts->namespace_is_host[i] || strcmp(namespace->type, "user") == 0 ||
            strcmp(namespace->type, "time") == 0)
            continue;
        if (strcmp(namespace->type, "network") == 0 && policy->network_mode == POLICY_NETWORK_OPEN)
            continue;
        memory_owned char *how = text_formatted("linux.namespaces: path %s", namespace->path);
        return refuse_host(policy, namespace->type, how);
    }
    if (policy->network_mode != POLICY_NETWORK_OPEN &&
        oci_config_namespace(hardened->config, "network") == NULL)
        return refuse_host(policy, "network", "linux.namespaces has no network");
    for (size_t i = 0; i < sizeof added / sizeof added[0]; i++) {
        if (oci_config_namespace(hardened->config, added[i].type) != NULL)
            continue;
        add(linux_config, added[i].type);
        harden_note(hardened, CHANGE_ADDED, "linux.namespaces", added[i].type, "namespace.added",
                    "built-in: namespaces", NULL, "the container has its own %s, not the host's",
                    added[i].what);
    }
    return NULL;
}
