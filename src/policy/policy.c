#include "policy/policy.h"

#include <string.h>

#include "base/memory.h"
#include "policy/keys.h"

/* The most capabilities that a sandbox keeps: what package managers, builds and servers use inside their own
 * tree. Not SYS_CHROOT, MKNOD, SETPCAP, AUDIT_WRITE, NET_RAW, which engines grant by default. */
static const char *const agent_capabilities[] = {
    "CAP_CHOWN",   "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID",           "CAP_KILL",
    "CAP_SETFCAP", "CAP_SETGID",       "CAP_SETUID", "CAP_NET_BIND_SERVICE", NULL};
static const char *const agent_readable[] = {"@image", "@mounts", NULL};
static const char *const agent_writable[] = {"@mounts", "@cwd", NULL};
static const char *const agent_scratch[] = {"/tmp", "/var/tmp", "/run", "~", NULL};
static const char *const agent_protected[] = {".git/hooks", NULL};

#define SECOND ((int64_t)1000)
#define DAY (24 * 3600 * SECOND)
#define GIB ((int64_t)1 << 30)
#define AGENT_PIDS 1024

void policy_list_append(struct policy_list *list, const char *value, const char *origin) {
    string_list_append(&list->values, value);
    string_list_append(&list->origins, origin);
}

const char *policy_list_origin(const struct policy_list *list, size_t index) {
    return index < list->origins.count ? list->origins.items[index] : "";
}

void policy_list_remove(struct policy_list *list, size_t index) {
    string_list_remove(&list->values, index);
    if (index < list->origins.count)
        string_list_remove(&list->origins, index);
}

void policy_list_free(struct policy_list *list) {
    string_list_free(&list->values);
    string_list_free(&list->origins);
}

const char *policy_origin(const struct policy *policy, enum policy_key key) {
    if (policy->origins[key] != NULL)
        return policy->origins[key];
    return policy->confined ? "built-in agent" : "built-in unconfined";
}

void policy_remark(struct policy *policy, const char *reason, const char *subject, const char *rule,
                   const char *message, ...) {
    struct text sentence = {0};
    va_list arguments;
    va_start(arguments, message);
    text_vformat(&sentence, message, arguments);
    va_end(arguments);
    policy->remarks = memory_resize(policy->remarks, policy->remarks_count + 1, sizeof *policy->remarks);
    policy->remarks[policy->remarks_count++] = (struct policy_remark){.reason = memory_copy_string(reason),
                                                                      .subject = memory_copy_string(subject),
                                                                      .rule = memory_copy_string(rule),
                                                                      .message = text_take(&sentence)};
}

void policy_digest_update(struct policy *policy) {
    text_owned struct text lines = {0};
    policy_canonical_write(policy, &lines);
    free(policy->digest);
    policy->digest = policy_sha256(text_string(&lines), lines.length);
}

static void append_all(struct policy_list *list, const char *const *items, const char *origin) {
    for (; *items != NULL; items++)
        policy_list_append(list, *items, origin);
}

static struct optional_int64 limit(int64_t value) {
    return (struct optional_int64){.set = true, .value = value};
}

static void make_agent(struct policy *policy) {
    policy->confined = true;
    policy->filesystem_default = POLICY_ACCESS_DENY;
    append_all(&policy->readable, agent_readable, policy->origin);
    append_all(&policy->writable, agent_writable, policy->origin);
    append_all(&policy->scratch, agent_scratch, policy->origin);
    append_all(&policy->protected, agent_protected, policy->origin);
    policy->workspace = POLICY_WORKSPACE_DIRECT;
    policy->network_mode = POLICY_NETWORK_ALLOWLIST;
    policy->inbound = POLICY_ACCESS_ALLOW;
    policy->uplink = POLICY_UPLINK_AUTO;
    append_all(&policy->capabilities, agent_capabilities, policy->origin);
    policy->loader_variables = true;
    policy->grace = limit(10 * SECOND);
    policy->pids = limit(AGENT_PIDS);
    policy->on_denied_action = POLICY_DENIED_BLOCK_AND_LOG;
    policy->observe_files = POLICY_OBSERVER_AUTO;
    policy->observe_processes = true;
    policy->observe_network = true;
    policy->log_file = true;
    policy->log_keep = limit(30 * DAY);
    policy->log_total = limit(GIB);
    policy->log_journald = POLICY_SWITCH_AUTO;
    policy->log_inside = true;
}

static void make_unconfined(struct policy *policy) {
    policy->filesystem_default = POLICY_ACCESS_ALLOW;
    policy->workspace = POLICY_WORKSPACE_DIRECT;
    policy->network_mode = POLICY_NETWORK_OPEN;
    policy->inbound = POLICY_ACCESS_ALLOW;
    policy->uplink = POLICY_UPLINK_AUTO;
    policy->inherit_user_credentials = true;
    policy->ptrace = true;
    policy->userns = true;
    policy->gpu = true;
    policy->loader_variables = true;
    policy->on_denied_action = POLICY_DENIED_LOG_ONLY;
    policy->observe_files = POLICY_OBSERVER_OFF;
    policy->log_journald = POLICY_SWITCH_OFF;
}

static const struct {
    const char *name;
    void (*make)(struct policy *policy);
} built_in[] = {{"agent", make_agent}, {"unconfined", make_unconfined}};

fallible policy_select(const char *name, struct policy **out) {
    *out = NULL;
    if (name == NULL || name[0] == '\0')
        name = built_in[0].name;
    text_owned struct text known = {0};
    for (size_t i = 0; i < sizeof built_in / sizeof built_in[0]; i++) {
        text_format(&known, "%s%s", i > 0 ? ", " : "", built_in[i].name);
        if (strcmp(name, built_in[i].name) != 0)
            continue;
        struct policy *policy = memory_zeroed(sizeof *policy);
        policy->name = memory_copy_string(name);
        policy->origin = text_formatted("built-in %s", name);
        built_in[i].make(policy);
        policy_digest_update(policy);
        *out = policy;
        return NULL;
    }
    return error_new(ERROR_INVALID, "policy \"%s\" is not known; the known policies are: %s", name,
                     text_string(&known));
}

void policy_free(struct policy *policy) {
    if (policy == NULL)
        return;
    for (enum policy_key key = 0; key < POLICY_KEY_COUNT; key++) {
        free(policy->origins[key]);
        if (policy_keys[key].type == POLICY_TYPE_LIST)
            policy_list_free(policy_list_of(policy, key));
    }
    for (size_t i = 0; i < policy->files_count; i++) {
        free(policy->files[i].path);
        free(policy->files[i].chain);
    }
    free(policy->files);
    for (size_t i = 0; i < policy->remarks_count; i++) {
        free(policy->remarks[i].reason);
        free(policy->remarks[i].subject);
        free(policy->remarks[i].message);
        free(policy->remarks[i].rule);
    }
    free(policy->remarks);
    free(policy->log_otlp);
    free(policy->name);
    free(policy->origin);
    free(policy->digest);
    free(policy);
}
