/* What a container must not have, for a wall of its network namespace to hold it. */
#include <string.h>

#include "base/text.h"
#include "hooks/egress.h"

/* Under pinfold the first two are dropped and the others denied by more than one layer; under another runtime
 * the container has what the engine gave it. */
static const struct {
    const char *name;
    const char *does;
} powers[] = {
    {"CAP_NET_ADMIN", "rewrites the rules of the wall"},
    {"CAP_NET_RAW",
     "sends past the rules by packet sockets, and marks its packets as the broker's (SO_MARK)"},
    {"CAP_SYS_ADMIN", "joins other network namespaces"},
    {"CAP_SYS_MODULE", "changes the kernel that holds the wall"},
    {"CAP_SYS_RAWIO", "changes the memory of the kernel that holds the wall"},
};

/* In any set: what is in the bounding set alone comes back with a set-user-ID program. */
static bool has(const struct oci_capabilities *sets, const char *name) {
    return string_list_contains(&sets->bounding, name) || string_list_contains(&sets->effective, name) ||
           string_list_contains(&sets->permitted, name) || string_list_contains(&sets->inheritable, name) ||
           string_list_contains(&sets->ambient, name);
}

struct error *egress_judge(const struct oci_config *config) {
    if (oci_config_namespace(config, "network") == NULL)
        return error_new(ERROR_REFUSED,
                         "namespace.host.refused: the container would use the host's network "
                         "(linux.namespaces has no network), where no wall can stand; use the engine's "
                         "default network or none, for example `--network none`");
    const struct oci_capabilities *sets = config->process->capabilities;
    for (size_t i = 0; sets != NULL && i < sizeof powers / sizeof powers[0]; i++)
        if (has(sets, powers[i].name))
            return error_new(ERROR_REFUSED,
                             "capability.refused: process.capabilities has %s, which %s; take it away, for "
                             "example with `--cap-drop %s`, and leave out --privileged",
                             powers[i].name, powers[i].does, powers[i].name + strlen("CAP_"));
    return NULL;
}
