#include "policy/check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/memory.h"
#include "policy/gaps.h"
#include "policy/hosts.h"
#include "policy/keys.h"
#include "policy/match.h"

/* Names below which anybody can have a host of his own within minutes: what is sent there is sent to anybody.
 */
static const char *const shared_hosting[] = {"amazonaws.com",
                                             "appspot.com",
                                             "azureedge.net",
                                             "azurewebsites.net",
                                             "blob.core.windows.net",
                                             "cloudfront.net",
                                             "core.windows.net",
                                             "firebaseapp.com",
                                             "fly.dev",
                                             "github.io",
                                             "gitlab.io",
                                             "googleapis.com",
                                             "googleusercontent.com",
                                             "herokuapp.com",
                                             "netlify.app",
                                             "ngrok.io",
                                             "onrender.com",
                                             "pages.dev",
                                             "r2.dev",
                                             "run.app",
                                             "storage.googleapis.com",
                                             "trycloudflare.com",
                                             "vercel.app",
                                             "web.app",
                                             "windows.net",
                                             "workers.dev",
                                             NULL};
/* Below these, as below one label, are other people's domains. */
static const char *const public_suffixes[] = {
    "ac.uk",  "co.in",  "co.jp",  "co.kr", "co.nz",  "co.uk", "com.au", "com.br", "com.cn", "com.mx",
    "com.tr", "eu.org", "gov.uk", "ne.jp", "net.au", "or.jp", "org.au", "org.uk", NULL};

#define IPV4_BITS_FEW 16
#define IPV6_BITS_FEW 32

static bool is_among(const char *const *words, const char *word) {
    for (; *words != NULL; words++)
        if (strcmp(*words, word) == 0)
            return true;
    return false;
}

static void warn(struct string_list *warnings, const char *origin, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void warn(struct string_list *warnings, const char *origin, const char *format, ...) {
    struct text text = {0};
    text_format(&text, "%s: ", origin);
    va_list arguments;
    va_start(arguments, format);
    text_vformat(&text, format, arguments);
    va_end(arguments);
    string_list_append_owned(warnings, text_take(&text));
}

static void host_check(const char *item, const char *origin, struct string_list *warnings) {
    struct policy_host host;
    struct error *error = policy_host_read(item, &host);
    error_ignore(error); /* it is one of ours */
    if (host.kind == POLICY_HOST_BELOW && host.name != NULL) {
        if (strchr(host.name, '.') == NULL || is_among(public_suffixes, host.name))
            warn(warnings, origin, "\"%s\" is every host of other people's domains", item);
        else if (is_among(shared_hosting, host.name))
            warn(warnings, origin,
                 "\"%s\" is shared hosting, where anybody can have a host: name the host that is meant",
                 item);
    }
    if (host.kind == POLICY_HOST_RANGE &&
        host.prefix < (host.family == AF_INET ? IPV4_BITS_FEW : IPV6_BITS_FEW))
        warn(warnings, origin, "\"%s\" is a large part of the network", item);
    if (host.is_private)
        warn(warnings, origin, "\"%s\" may lead to private addresses: to this machine's own network", item);
    policy_host_clear(&host);
}

static void lists_check(const struct policy *policy, struct string_list *warnings) {
    for (size_t i = 0; i < policy->allowed_hosts.values.count; i++)
        host_check(policy->allowed_hosts.values.items[i], policy_list_origin(&policy->allowed_hosts, i),
                   warnings);
    for (size_t i = 0; i < policy->writable.values.count; i++)
        if (strcmp(policy->writable.values.items[i], "/") == 0)
            warn(warnings, policy_list_origin(&policy->writable, i),
                 "filesystem.writable: \"/\" makes the whole root file system writable");
    for (size_t i = 0; i < policy->environment.values.count; i++)
        if (policy->environment.values.items[i][0] == '*')
            warn(warnings, policy_list_origin(&policy->environment, i),
                 "credentials.environment: \"%s\" lets secrets through that nobody thought of: name the "
                 "variables",
                 policy->environment.values.items[i]);
    for (size_t i = 0; i < policy->credential_mounts.values.count; i++) {
        const char *item = policy->credential_mounts.values.items[i];
        const char *origin = policy_list_origin(&policy->credential_mounts, i);
        if (text_ends_with(item, ".sock"))
            warn(warnings, origin, "credentials.mounts: \"%s\": who can speak to a daemon can do what it can",
                 item);
        else if (item[0] == '/' && strchr(item + 1, '/') == NULL)
            warn(warnings, origin, "credentials.mounts: \"%s\" is a whole directory of the machine", item);
    }
}

/* More than the built-in policy gives: capabilities that reach beyond the container's own files. */
static void capabilities_check(const struct policy *policy, struct string_list *warnings) {
    struct policy *agent = NULL;
    error_ignore(policy_select("agent", &agent)); /* it is built in */
    for (size_t i = 0; i < policy->capabilities.values.count; i++)
        if (!string_list_contains(&agent->capabilities.values, policy->capabilities.values.items[i]))
            warn(warnings, policy_list_origin(&policy->capabilities, i),
                 "processes.capabilities: %s is more than a sandbox keeps by default",
                 policy->capabilities.values.items[i]);
    policy_free(agent);
}

struct wide_value {
    enum policy_key key;
    const char *value;
    const char *what;
};

static const struct wide_value wide_values[] = {
    {POLICY_FILESYSTEM_DEFAULT, "allow", "the whole root file system is writable"},
    {POLICY_NETWORK_MODE, "open", "everything can be reached, and everything that is read can be sent away"},
    {POLICY_NETWORK_UPLINK, "host", "allowed hosts are dialled from the machine, past the engine's networks"},
    {POLICY_CREDENTIALS_INHERIT, "true", "every secret of the environment is passed on"},
    {POLICY_PROCESSES_PTRACE, "true", "processes can read and change each other"},
    {POLICY_PROCESSES_USERNS, "true", "user namespaces open much of the kernel to the container"},
    {POLICY_PROCESSES_GPU, "true", "drivers of GPUs are large, and mistakes in them are the kernel's"},
    {POLICY_LIMITS_PIDS, "null", "a fork bomb takes the machine's processes"},
    {POLICY_ON_DENIED_ACTION, "log_only",
     "what the workload does is recorded, and not denied: for learning alone"},
};

void policy_check(const struct policy *policy, struct string_list *warnings) {
    if (!policy->confined) {
        warn(warnings, policy->origin, "this policy confines nothing");
        return;
    }
    for (size_t i = 0; i < sizeof wide_values / sizeof wide_values[0]; i++) {
        text_owned struct text value = {0};
        policy_value_write(policy, wide_values[i].key, &value);
        if (strcmp(text_string(&value), wide_values[i].value) == 0)
            warn(warnings, policy_origin(policy, wide_values[i].key), "%s: %s: %s",
                 policy_keys[wide_values[i].key].name, wide_values[i].value, wide_values[i].what);
    }
    lists_check(policy, warnings);
    capabilities_check(policy, warnings);
    if (policy->network_mode != POLICY_NETWORK_ALLOWLIST && policy->allowed_hosts.values.count > 0)
        warn(warnings, policy_origin(policy, POLICY_NETWORK_MODE),
             "network.allowed_hosts has no effect with this network.mode");
    for (enum policy_key key = 0; key < POLICY_KEY_COUNT; key++)
        if (policy->origins[key] != NULL && policy_gap(policy, key) != NULL)
            warn(warnings, policy_origin(policy, key),
                 string_list_contains(&policy->best_effort.values, policy_keys[key].name)
                     ? "%s is not in force: it needs %s"
                     : "create refuses this line: %s needs %s",
                 policy_keys[key].name, policy_gap(policy, key));
}
