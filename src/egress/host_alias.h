/* Addresses that an allowed name has by the hosts file which the engine mounted (podman --add-host, Docker's
 * extra_hosts, Kubernetes' hostAliases): programs read them there and ask nobody, so they are redirected to
 * the broker like the address that it would have answered with. As text "ADDRESS NAME", for the state and for
 * the broker's plan. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "policy/policy.h"

#define HOST_ALIASES_MAX 1024

struct host_alias {
    const char *name; /* within the text that was read */
    int family;
    uint8_t address[16];
};

/* False for anything else than host_aliases_add has made. */
bool host_alias_read(const char *text, struct host_alias *out);
/* Adds the entry of a hosts file, if a line of network.allowed_hosts names it. Private addresses count, since
 * the engine's user wrote them; the cloud's metadata services, loopback, link-local ones and what no policy
 * can allow do not.
 */
void host_aliases_add(struct string_list *aliases, const struct policy_list *allowed_hosts,
                      const char *address, const char *name);
