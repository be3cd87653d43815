#include "policy/match_host.h"

static bool is_special(const struct policy_host *asked) {
    if (asked->kind != POLICY_HOST_RANGE)
        return false;
    struct policy_host plain = *asked;
    plain.is_private = false;
    struct error *error = policy_host_check(&plain);
    bool special = error != NULL;
    error_ignore(error);
    return special;
}

static bool matches(const struct policy_host *line, const struct policy_host *asked, uint16_t port) {
    if (asked->kind != POLICY_HOST_RANGE)
        return policy_host_matches_name(line, asked->name, port);
    return policy_host_matches_address(line, asked->family, asked->address, port) &&
           (line->is_private || !is_special(asked));
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
