#include "egress/host_alias.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/memory.h"

#include "egress/address.h"
#include "egress/names.h"
#include "policy/hosts.h"

bool host_alias_read(const char *text, struct host_alias *out) {
    char address[INET6_ADDRSTRLEN];
    const char *space = strchr(text, ' ');
    size_t length = space == NULL ? sizeof address : (size_t)(space - text);
    if (length >= sizeof address)
        return false;
    memcpy(address, text, length);
    address[length] = '\0';
    *out =
        (struct host_alias){.name = space + 1, .family = strchr(address, ':') == NULL ? AF_INET : AF_INET6};
    return inet_pton(out->family, address, out->address) == 1 && space[1] != '\0';
}

static bool is_allowed(const struct policy_list *allowed_hosts, const char *name) {
    bool allowed = false;
    for (size_t i = 0; !allowed && i < allowed_hosts->values.count; i++) {
        struct policy_host host = {0};
        struct error *error = policy_host_read(allowed_hosts->values.items[i], &host);
        for (size_t k = 0; error == NULL && !allowed && k < host.ports_count; k++)
            allowed = policy_host_matches_name(&host, name, host.ports[k]);
        policy_host_clear(&host);
        error_ignore(error); /* the policy's reader has said it */
    }
    return allowed;
}

/* Loopback is the broker's own side, link-local addresses are where clouds keep their metadata. */
static bool is_near(const struct host_alias *alias) {
    static const uint8_t loopback[16] = {[15] = 1};
    const uint8_t *address = alias->address;
    if (alias->family == AF_INET)
        return address[0] == 127 || (address[0] == 169 && address[1] == 254);
    return memcmp(address, loopback, sizeof loopback) == 0 ||
           (address[0] == 0xfe && (address[1] & 0xc0) == 0x80);
}

static bool is_admissible(const struct host_alias *alias) {
    return policy_address_is_reachable(alias->family, alias->address, true) && !is_near(alias) &&
           address_classify(alias->family, alias->address) != ADDRESS_METADATA &&
           !host_address_is_synthetic(alias->family, alias->address);
}

void host_aliases_add(struct string_list *aliases, const struct policy_list *allowed_hosts,
                      const char *address, const char *name) {
    char normal[HOST_NAME_SIZE];
    struct host_alias alias;
    if (aliases->count == HOST_ALIASES_MAX || !host_name_normalise(name, strlen(name), normal) ||
        !is_allowed(allowed_hosts, normal))
        return;
    memory_owned char *text = text_formatted("%s %s", address, normal);
    if (host_alias_read(text, &alias) && strcmp(alias.name, normal) == 0 && is_admissible(&alias) &&
        !string_list_contains(aliases, text))
        string_list_append(aliases, text);
}
