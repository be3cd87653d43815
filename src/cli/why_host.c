#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "cli/why.h"
#include "policy/match_host.h"

/* What is asked for: read as a line of a policy is, so that a name, an address and their ports mean the same.
 */
static struct error *question_read(const char *subject, struct policy_host *out) {
    TRY(policy_host_read(subject, out));
    if (out->kind == POLICY_HOST_BELOW ||
        (out->kind == POLICY_HOST_RANGE && out->prefix != (out->family == AF_INET ? 32 : 128)))
        return error_new(ERROR_USAGE, "why: expected one host, found \"%.100s\"", subject);
    return NULL;
}

/* The line that would let it through; what is special has the words in the error. */
static struct error *remedy_find(const struct policy_host *asked, struct why_answer *answer) {
    error_owned special = policy_host_check(asked);
    memory_owned char *line = policy_host_write(asked);
    if (special != NULL)
        answer->note = memory_copy_string(special->message);
    else
        answer->remedy = text_formatted("network: {allowed_hosts: [\"%s\"]}", line);
    return NULL;
}

static struct error *by_lines(const struct policy *policy, const struct policy_host *asked,
                              struct why_answer *answer) {
    for (size_t i = 0; i < asked->ports_count; i++) {
        size_t index = 0;
        bool found;
        TRY(match_host(&policy->allowed_hosts, asked, asked->ports[i], &found, &index));
        if (!found) {
            answer->rule =
                text_formatted("network.allowed_hosts does not name it with port %u", asked->ports[i]);
            answer->origin = memory_copy_string(policy_origin(policy, POLICY_NETWORK_ALLOWED_HOSTS));
            return remedy_find(asked, answer);
        }
        memory_replace_string(&answer->origin, policy_list_origin(&policy->allowed_hosts, index));
        memory_owned char *rule =
            text_formatted("network.allowed_hosts: %s", policy->allowed_hosts.values.items[index]);
        memory_replace_string(&answer->rule, rule);
    }
    answer->allowed = true;
    return NULL;
}

struct error *why_host(const struct prepared *prepared, const char *subject, struct why_answer *answer) {
    const struct policy *policy = prepared->policy;
    answer->what = text_formatted("connecting to %s", subject);
    struct policy_host asked = {0};
    struct error *error = question_read(subject, &asked);
    if (error == NULL && policy->network_mode != POLICY_NETWORK_ALLOWLIST) {
        answer->allowed = policy->network_mode == POLICY_NETWORK_OPEN;
        answer->rule = text_formatted("network.mode: %s", answer->allowed ? "open" : "none");
        answer->origin = memory_copy_string(policy_origin(policy, POLICY_NETWORK_MODE));
    } else if (error == NULL) {
        error = by_lines(policy, &asked, answer);
    }
    policy_host_clear(&asked);
    return error;
}
