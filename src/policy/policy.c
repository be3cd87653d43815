#include "policy/policy.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"

/* The most capabilities that a sandbox keeps: what package managers, builds and servers use inside their own
 * tree. Not SYS_CHROOT, MKNOD, SETPCAP, AUDIT_WRITE, NET_RAW, which engines grant by default. */
static const char *const agent_capabilities[] = {
    "CAP_CHOWN",   "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID",           "CAP_KILL",
    "CAP_SETFCAP", "CAP_SETGID",       "CAP_SETUID", "CAP_NET_BIND_SERVICE", NULL};
static const char *const agent_writable[] = {"@mounts", "@cwd", NULL};
static const char *const agent_scratch[] = {"/tmp", "/var/tmp", "/run", "~", NULL};

#define AGENT_PIDS 1024

static void append_all(struct string_list *list, const char *const *items) {
    for (; *items != NULL; items++)
        string_list_append(list, *items);
}

static void canonical_list(struct text *text, const char *key, const struct string_list *list) {
    text_format(text, "%s:", key);
    for (size_t i = 0; i < list->count; i++)
        /* The length before each item: no item's content can imitate a list of another shape. */
        text_format(text, " %zu:%s", strlen(list->items[i]), list->items[i]);
    text_append(text, "\n");
}

/* One line for each key, in a fixed order, whether it was written or is the default: equal digests mean equal
 * behaviour. The name is not part of it, and neither is the origin. */
static void canonical_text(const struct policy *policy, struct text *text) {
    static const char *const modes[] = {[POLICY_NETWORK_NONE] = "none",
                                        [POLICY_NETWORK_ALLOWLIST] = "allowlist",
                                        [POLICY_NETWORK_OPEN] = "open"};
    text_append(text, "version: 1\n");
    text_format(text, "confined: %d\n", policy->confined);
    text_format(text, "filesystem.root_read_only: %d\n", policy->root_read_only);
    canonical_list(text, "filesystem.writable", &policy->writable);
    canonical_list(text, "filesystem.scratch", &policy->scratch);
    text_format(text, "network.mode: %s\n", modes[policy->network_mode]);
    text_format(text, "credentials.inherit_user_credentials: %d\n", policy->inherit_user_credentials);
    canonical_list(text, "credentials.environment", &policy->environment);
    canonical_list(text, "credentials.mounts", &policy->credential_mounts);
    canonical_list(text, "processes.capabilities", &policy->capabilities);
    text_format(text, "processes.ptrace: %d\n", policy->ptrace);
    text_format(text, "processes.userns: %d\n", policy->userns);
    if (policy->pids.set)
        text_format(text, "limits.pids: %" PRId64 "\n", policy->pids.value);
    else
        text_append(text, "limits.pids: null\n");
}

static struct policy *make_agent(void) {
    struct policy *policy = memory_zeroed(sizeof *policy);
    policy->confined = true;
    policy->root_read_only = true;
    append_all(&policy->writable, agent_writable);
    append_all(&policy->scratch, agent_scratch);
    policy->network_mode = POLICY_NETWORK_ALLOWLIST;
    append_all(&policy->capabilities, agent_capabilities);
    policy->pids = (struct optional_int64){.set = true, .value = AGENT_PIDS};
    return policy;
}

static struct policy *make_unconfined(void) {
    struct policy *policy = memory_zeroed(sizeof *policy);
    policy->network_mode = POLICY_NETWORK_OPEN;
    policy->inherit_user_credentials = true;
    policy->ptrace = true;
    policy->userns = true;
    return policy;
}

static const struct {
    const char *name;
    struct policy *(*make)(void);
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
        struct policy *policy = built_in[i].make();
        policy->name = memory_copy_string(name);
        policy->origin = text_formatted("built-in %s", name);
        text_owned struct text lines = {0};
        canonical_text(policy, &lines);
        policy->digest = policy_sha256(text_string(&lines), lines.length);
        *out = policy;
        return NULL;
    }
    return error_new(ERROR_INVALID, "policy \"%s\" is not known; the known policies are: %s", name,
                     text_string(&known));
}

void policy_free(struct policy *policy) {
    if (policy == NULL)
        return;
    free(policy->name);
    free(policy->origin);
    free(policy->digest);
    string_list_free(&policy->writable);
    string_list_free(&policy->scratch);
    string_list_free(&policy->environment);
    string_list_free(&policy->credential_mounts);
    string_list_free(&policy->capabilities);
    free(policy);
}
