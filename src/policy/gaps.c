#include "policy/gaps.h"

#include <string.h>

#include "policy/keys.h"

#define UNAVAILABLE "mechanism.unavailable"

/* Only values that ask for something: what is off needs no mechanism. */
static bool asks(const struct policy *policy, enum policy_key key) {
    switch (key) {
    case POLICY_FILESYSTEM_WORKSPACE:
        return policy->workspace == POLICY_WORKSPACE_COPY;
    case POLICY_NETWORK_INBOUND:
        return policy->inbound == POLICY_ACCESS_DENY && policy->network_mode == POLICY_NETWORK_OPEN;
    case POLICY_PROCESSES_GPU:
        return policy->gpu;
    case POLICY_LOG_FILE:
        return !policy->log_file;
    case POLICY_LOG_OTLP:
        return policy->log_otlp != NULL && policy->log_otlp[0] != '/';
    default:
        return policy_number_of(policy, key)->set; /* limits */
    }
}

static const char *const mechanisms[POLICY_KEY_COUNT] = {
    [POLICY_FILESYSTEM_WORKSPACE] = "an overlay over the workspace, which this version does not make",
    [POLICY_NETWORK_INBOUND] = "a network wall, which there is none of with network.mode: open",
    [POLICY_PROCESSES_GPU] =
        "rules for the devices of GPUs, which this version does not have; name the devices "
        "in credentials.mounts",
    [POLICY_LIMITS_TIME] = "a clock in the warden, which this version does not have",
    [POLICY_LIMITS_EXEC_TIME] = "a clock in the warden, which this version does not have",
    [POLICY_LIMITS_OUTPUT] = "a count of output, which this version does not keep",
    [POLICY_LIMITS_SCRATCH] = "sizes of scratch places, which this version does not set",
    [POLICY_LOG_FILE] = "records without a file, which this version does not make",
    [POLICY_LOG_OTLP] =
        "a sender of OTLP over HTTP, which this version does not have; a path is a file of OTLP/JSON that a "
        "collector reads",
};

const char *policy_gap(const struct policy *policy, enum policy_key key) {
    return policy->confined && mechanisms[key] != NULL && asks(policy, key) ? mechanisms[key] : NULL;
}

struct error *policy_gaps_check(struct policy *policy) {
    for (enum policy_key key = 0; key < POLICY_KEY_COUNT; key++) {
        const char *mechanism = policy_gap(policy, key);
        if (mechanism == NULL || policy->origins[key] == NULL)
            continue; /* built-in second layers may be missing */
        const char *name = policy_keys[key].name;
        if (!string_list_contains(&policy->best_effort.values, name))
            return error_new(ERROR_UNAVAILABLE,
                             "%s, written in %s, needs %s; take the line out, or let it be missing: "
                             "enforcement: {best_effort: [%s]}",
                             name, policy_origin(policy, key), mechanism, name);
        policy_remark(policy, UNAVAILABLE, name, policy_origin(policy, key),
                      "%s is not in force: it needs %s.", name, mechanism);
    }
    return NULL;
}
