#include "policy/match_host.h"

static bool matches(const struct policy_host *line, const struct policy_host *asked, uint16_t port) {
    if (asked->kind != POLICY_HOST_RANGE)
        return policy_host_matches_name(line, asked->name, port);
    return policy_host_matches_address(line, asked->family, asked->address, port) &&
           policy_host_is_reachable(asked, line->is_private);
}

struct error *match_host(const struct policy_list *lines, const struct policy_host *asked, uint16_t port,
                         bool *allowed, size_t *index) {
    *allowed = false;
    for (size_t i = 0; !*allowed && i < lines->values.count; i++) {
        struct policy_host line;
        struct error *error = policy_host_read(lines->values.items[i], &line);
        *allowed = error == NULL && matches(&line, asked, port);
        *index = i;
        policy_host_clear(&line);
        TRY(error);
    }
    return NULL;
}
