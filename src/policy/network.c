/* What the wall of a network namespace is known by. */
#include "base/memory.h"
#include "policy/keys.h"
#include "policy/policy.h"

/* In the order of the policy: the addresses of names follow from it. */
char *policy_network_digest(const struct policy *policy) {
    static const enum policy_key keys[] = {POLICY_NETWORK_MODE, POLICY_NETWORK_INBOUND,
                                           POLICY_NETWORK_UPLINK};
    text_owned struct text lines = {0};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        text_format(&lines, "%s\t", policy_keys[keys[i]].name);
        policy_value_write(policy, keys[i], &lines);
        text_append(&lines, "\n");
    }
    for (size_t i = 0; i < policy->allowed_hosts.values.count; i++)
        text_format(&lines, "-\t%s\n", policy->allowed_hosts.values.items[i]);
    return policy_sha256(text_string(&lines), lines.length);
}
