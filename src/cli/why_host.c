#include "base/memory.h"
#include "base/text.h"
#include "cli/why.h"

struct error *why_host(const struct prepared *prepared, const char *subject, struct why_answer *answer) {
    const struct policy *policy = prepared->policy;
    answer->what = text_formatted("connecting to %s", subject);
    if (policy->network_mode != POLICY_NETWORK_ALLOWLIST) {
        answer->allowed = policy->network_mode == POLICY_NETWORK_OPEN;
        answer->rule = text_formatted("network.mode: %s", answer->allowed ? "open" : "none");
        answer->origin = memory_copy_string(policy_origin(policy, POLICY_NETWORK_MODE));
        return NULL;
    }
    answer->rule = memory_copy_string("network.allowed_hosts does not name it");
    answer->origin = memory_copy_string(policy_origin(policy, POLICY_NETWORK_ALLOWED_HOSTS));
    answer->remedy = text_formatted("network: {allowed_hosts: [%s]}", subject);
    return NULL;
}
