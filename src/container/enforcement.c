#include "container/enforcement.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "container/network.h"
#include "harden/seccomp.h"
#include "libocispec/schema_table.h"
#include "policy/keys.h"
#include "record/record.h"

/* --- the document --- */

static const struct schema_field policy_fields[] = {
    STRING(REQUIRED, "name", enforcement_policy, name),
    STRING(OPTIONAL, "origin", enforcement_policy, origin),
    STRING(OPTIONAL, "digest", enforcement_policy, digest),
};
static const struct schema policy_schema = SCHEMA("policy", enforcement_policy, policy_fields);
static const struct schema_field network_fields[] = {
    STRING(REQUIRED, "mode", enforcement_network, mode),
    BOOL(REQUIRED, "wall", enforcement_network, wall),
};
static const struct schema network_schema = SCHEMA("network", enforcement_network, network_fields);
static const struct schema_field line_fields[] = {
    STRING(REQUIRED, "key", enforcement_line, key),
    STRING(OPTIONAL, "value", enforcement_line, value),
    STRING(OPTIONAL, "origin", enforcement_line, origin),
};
static const struct schema line_schema = SCHEMA("line", enforcement_line, line_fields);
static const struct schema_field change_fields[] = {
    STRING(REQUIRED, "kind", enforcement_change, kind),
    STRING(OPTIONAL, "field", enforcement_change, field),
    STRING(OPTIONAL, "subject", enforcement_change, subject),
    STRING(OPTIONAL, "reason", enforcement_change, reason),
    STRING(OPTIONAL, "message", enforcement_change, message),
    STRING(OPTIONAL, "rule", enforcement_change, rule),
    STRING(OPTIONAL, "remedy", enforcement_change, remedy),
};
static const struct schema change_schema = SCHEMA("change", enforcement_change, change_fields);
static const struct schema_field mechanism_fields[] = {
    STRING(REQUIRED, "name", enforcement_mechanism, name),
    STRING(REQUIRED, "state", enforcement_mechanism, state),
    STRING(OPTIONAL, "how", enforcement_mechanism, how),
};
static const struct schema mechanism_schema = SCHEMA("mechanism", enforcement_mechanism, mechanism_fields);
static const struct schema_field place_fields[] = {
    STRING(REQUIRED, "path", enforcement_place, path),
    STRING(OPTIONAL, "kind", enforcement_place, kind),
};
static const struct schema place_schema = SCHEMA("place", enforcement_place, place_fields);
static const struct schema_field hook_fields[] = {
    STRING(REQUIRED, "kind", enforcement_hook, kind),
    STRING(OPTIONAL, "path", enforcement_hook, path),
};
static const struct schema hook_schema = SCHEMA("hook", enforcement_hook, hook_fields);
static const struct schema_field enforcement_fields[] = {
    OBJECT(REQUIRED, "policy", enforcement, policy, enforcement_policy, policy_schema),
    STRING(OPTIONAL, "bundle", enforcement, bundle),
    BOOL(REQUIRED, "confined", enforcement, confined),
    OBJECT(REQUIRED, "network", enforcement, network, enforcement_network, network_schema),
    OBJECTS(REQUIRED, "lines", enforcement, lines, enforcement_line, line_schema),
    OBJECTS(REQUIRED, "changes", enforcement, changes, enforcement_change, change_schema),
    OBJECTS(REQUIRED, "mechanisms", enforcement, mechanisms, enforcement_mechanism, mechanism_schema),
    STRINGS(REQUIRED, "unlimited", enforcement, unlimited),
    OBJECTS(REQUIRED, "scratch", enforcement, scratch, enforcement_place, place_schema),
    OBJECTS(REQUIRED, "persistent", enforcement, persistent, enforcement_place, place_schema),
    OBJECTS(REQUIRED, "hooks", enforcement, hooks, enforcement_hook, hook_schema),
    STRINGS(REQUIRED, "decoys", enforcement, decoys),
    BOOL(REQUIRED, "decoys_deny", enforcement, decoys_deny),
    STRINGS(REQUIRED, "denied_calls", enforcement, denied_calls),
    POINTER(OPTIONAL, "config", enforcement, config, oci_config, oci_config_schema),
};
const struct schema enforcement_schema = SCHEMA("enforcement.json", enforcement, enforcement_fields);

void enforcement_free(struct enforcement *enforcement) {
    schema_free(&enforcement_schema, enforcement);
}

static char *copy(const char *text) {
    return text != NULL && text[0] != '\0' ? memory_copy_string(text) : NULL;
}

#define APPEND(enforcement, member, ...)                                                                     \
    do {                                                                                                     \
        (enforcement)->member = memory_resize((enforcement)->member, (enforcement)->member##_count + 1,      \
                                              sizeof *(enforcement)->member);                                \
        (enforcement)->member[(enforcement)->member##_count++] =                                             \
            (__typeof__(*(enforcement)->member)){__VA_ARGS__};                                               \
    } while (0)

/* --- the policy's lines --- */

static void lines_add(struct enforcement *out, const struct policy *policy) {
    for (enum policy_key key = 0; key < POLICY_KEY_COUNT; key++) {
        const char *name = policy_keys[key].name;
        if (policy_keys[key].type != POLICY_TYPE_LIST) {
            struct text value = {0};
            policy_value_write(policy, key, &value);
            APPEND(out, lines, .key = memory_copy_string(name), .value = text_take(&value),
                   .origin = copy(policy_origin(policy, key)));
            continue;
        }
        const struct policy_list *list = policy_list_of(policy, key);
        if (list->values.count == 0)
            APPEND(out, lines, .key = memory_copy_string(name), .value = memory_copy_string("[]"),
                   .origin = copy(policy_origin(policy, key)));
        for (size_t i = 0; i < list->values.count; i++)
            APPEND(out, lines, .key = memory_copy_string(name), .value = copy(list->values.items[i]),
                   .origin = copy(policy_list_origin(list, i)));
    }
}

static void changes_add(struct enforcement *out, const struct hardened *hardened) {
    static const char *const kinds[] = {[CHANGE_REMOVED] = "removed",
                                        [CHANGE_ADDED] = "added",
                                        [CHANGE_SET] = "set",
                                        [CHANGE_DEGRADED] = "degraded"};
    for (size_t i = 0; i < hardened->changes_count; i++) {
        const struct change *change = &hardened->changes[i];
        APPEND(out, changes, .kind = memory_copy_string(kinds[change->kind]), .field = copy(change->field),
               .subject = copy(change->subject), .reason = copy(change->reason),
               .message = copy(change->message), .rule = copy(change->rule), .remedy = copy(change->remedy));
    }
}

/* --- mechanisms --- */

static void mechanism_add(struct enforcement *out, const char *name, const char *state, const char *how) {
    APPEND(out, mechanisms, .name = memory_copy_string(name), .state = memory_copy_string(state),
           .how = memory_copy_string(how));
}

/* The sentence of a change that says that this mechanism is not what it should be. */
static const struct change *degraded_find(const struct hardened *hardened, const char *field) {
    for (size_t i = 0; i < hardened->changes_count; i++)
        if (hardened->changes[i].kind == CHANGE_DEGRADED &&
            text_starts_with(hardened->changes[i].field, field))
            return &hardened->changes[i];
    return NULL;
}

static bool is_missing(const struct change *change) {
    return change->reason != NULL && strcmp(change->reason, "mechanism.unavailable") == 0;
}

/* Every degradation, under its own name, is a mechanism that is not enforced; what is listed here holds
 * unless one says otherwise. */
static void mechanism_or_degraded(struct enforcement *out, const struct hardened *hardened, const char *name,
                                  const char *field, const char *how) {
    const struct change *change = degraded_find(hardened, field);
    if (change == NULL) {
        mechanism_add(out, name, "enforced", how);
        return;
    }
    mechanism_add(out, name, is_missing(change) ? "unavailable" : "degraded", change->message);
}

static size_t list_length(const struct oci_process *process) {
    return process->capabilities != NULL ? process->capabilities->bounding.count : 0;
}

static void broker_add(struct enforcement *out, const struct policy *policy) {
    mechanism_add(out, "allowed hosts", "enforced",
                  policy->uplink == POLICY_UPLINK_HOST
                      ? "a broker answers their names alone, compares names of TLS and HTTP with them, and "
                        "connects from the runtime's network namespace"
                      : "a broker answers their names alone, compares names of TLS and HTTP with them, and "
                        "connects from the container's network namespace");
}

static void network_add(struct enforcement *out, const struct hardened *hardened,
                        const struct policy *policy) {
    if (!hardened->wall) {
        mechanism_add(out, "network wall", "off", "network.mode: open");
        if (hardened->reached_observed)
            mechanism_add(
                out, "reached hosts", "enforced",
                "nf_tables rules of the network namespace log the first packet of each flow that leaves");
        else if (!policy->observe_network)
            mechanism_add(out, "reached hosts", "off", "observe.network: false");
        return;
    }
    mechanism_add(out, "network wall", "enforced",
                  "nf_tables and routes of the network namespace; put up before the engine's interfaces, "
                  "completed and read back at start");
    if (network_has_broker(policy))
        broker_add(out, policy);
    if (policy->inbound == POLICY_ACCESS_DENY)
        mechanism_add(out, "inbound connections", "enforced",
                      "an nf_tables input chain: loopback and answers alone come in");
}

/* What tells of denied accesses to files; what denies them is in force without it. */
static void observer_add(struct enforcement *out, const struct hardened *hardened,
                         const struct policy *policy) {
    static const char name[] = "denied file calls";
    if (policy->observe_files == POLICY_OBSERVER_OFF)
        mechanism_add(out, name, "off", "observe.files: false: they are denied, and not recorded");
    else if (hardened->files_observer == FILES_UNOBSERVED)
        mechanism_add(out, name, "unavailable",
                      "the container's only seccomp listener is the engine's agent's: they are denied, and "
                      "not recorded");
    else if (hardened->files_observer == FILES_BY_BPF)
        mechanism_add(out, name, "enforced",
                      "BPF: a program at the end of each system call sees those that were denied; nobody "
                      "waits for it");
    else
        mechanism_add(out, name, "enforced",
                      "seccomp: the warden is asked about each call that would change a file, answers those "
                      "that are denied, and records them");
}

static void mechanisms_add(struct enforcement *out, const struct hardened *hardened,
                           const struct policy *policy, const struct facts *facts) {
    static const char learning_how[] =
        "on_denied_action: log_only: what would be denied is recorded and let through";
    const bool learning = policy->on_denied_action == POLICY_DENIED_LOG_ONLY;
    const struct oci_config *config = hardened->config;
    if (config->root->readonly)
        mechanism_add(out, "root file system", "enforced",
                      "a read-only mount; writable are the places below and what is mounted writable");
    else
        mechanism_add(out, "root file system", "off", learning ? learning_how : "filesystem.default: allow");
    mechanism_add(out, "credentials", policy->inherit_user_credentials ? "off" : "enforced",
                  policy->inherit_user_credentials
                      ? "credentials.inherit_user_credentials: true"
                      : "taken out of config.json and of what exec brings, by name, value, path and inode");
    network_add(out, hardened, policy);
    if (hardened->access != NULL)
        mechanism_add(out, "landlock", "enforced",
                      hardened->access->reads ? "what may be read and what may be written"
                                              : "a second layer: what may be written");
    if (learning)
        mechanism_add(out, "system calls", "off", learning_how);
    else
        mechanism_or_degraded(out, hardened, "system calls", "linux.seccomp",
                              "a seccomp filter denies; a user notification records");
    observer_add(out, hardened, policy);
    memory_owned char *capabilities =
        text_formatted("%zu are left in the bounding set", list_length(config->process));
    mechanism_add(out, "capabilities", "enforced", capabilities);
    mechanism_add(out, "no_new_privs", config->process->no_new_privileges ? "enforced" : "off",
                  "set before the program is executed, for exec too");
    mechanism_add(out, "namespaces", "enforced", "the container's own, or another container's");
    mechanism_add(out, "devices", "enforced", "the standard devices; a nodev root and the device cgroup");
    mechanism_add(out, "kernel files", "enforced", "masked and read-only parts of /proc and /sys");
    if (hardened->decoys_count > 0)
        mechanism_add(out, "decoys", facts->has_fanotify ? "enforced" : "degraded",
                      facts->has_fanotify
                          ? "an opened decoy is denied while the warden lives (fanotify permission events)"
                          : "this user cannot have file permission events: an opened decoy is only observed");
    if (config->linux_config->resources != NULL && config->linux_config->resources->pids != NULL)
        mechanism_or_degraded(out, hardened, "number of processes", "linux.resources.pids",
                              "the pids cgroup");
    if (hardened->executions_observed)
        mechanism_add(out, "programs that are run", "enforced",
                      "a notified execve, and a pidfd for the end; without effect on what may run");
    else
        mechanism_add(out, "programs that are run", "off",
                      policy->observe_processes ? "a seccomp agent of the user's has the only listener"
                                                : "observe.processes: false");
    mechanism_add(out, "record", "enforced", "a warden outside the container; without it nothing runs on");
    if (policy->log_journald != POLICY_SWITCH_OFF && record_has_journal())
        mechanism_add(out, "journal", "enforced", "records go to the journal too, with fields of their own");
    if (policy->log_otlp != NULL && policy->log_otlp[0] == '/')
        mechanism_add(out, "otlp", "enforced", "records are appended to a file of OTLP/JSON too");
    if (policy->log_inside)
        mechanism_add(out, "view from inside", hardened->inside ? "enforced" : "unavailable",
                      hardened->inside ? "the container reads its own denials in " HARDEN_INSIDE_FILE
                                       : "a mount of the engine's is at " HARDEN_INSIDE_DIRECTORY);
    for (size_t i = 0; i < hardened->changes_count; i++) {
        const struct change *change = &hardened->changes[i];
        if (change->kind == CHANGE_DEGRADED && !text_starts_with(change->field, "linux.seccomp") &&
            !text_starts_with(change->field, "linux.resources.pids"))
            mechanism_add(out, change->subject != NULL ? change->subject : change->field,
                          is_missing(change) ? "unavailable" : "degraded", change->message);
    }
}

/* --- what is not limited, what stays, what runs outside --- */

static void unlimited_add(struct enforcement *out, const struct hardened *hardened,
                          const struct policy *policy) {
    const struct oci_resources *resources = hardened->config->linux_config->resources;
    bool memory = resources != NULL && resources->memory != NULL && resources->memory->limit.set &&
                  resources->memory->limit.value > 0;
    bool cpus = resources != NULL && resources->cpu != NULL && resources->cpu->quota.set &&
                resources->cpu->quota.value > 0;
    bool pids = resources != NULL && resources->pids != NULL && resources->pids->limit.set;
    for (enum policy_key key = POLICY_LIMITS_TIME; key <= POLICY_LIMITS_SCRATCH; key++) {
        const struct optional_int64 *limit = policy_number_of(policy, key);
        bool by_engine = (key == POLICY_LIMITS_MEMORY && memory) || (key == POLICY_LIMITS_CPUS && cpus);
        bool set = key == POLICY_LIMITS_PIDS ? pids : (limit->set || by_engine);
        if (!set && key != POLICY_LIMITS_GRACE)
            string_list_append(&out->unlimited, policy_keys[key].name);
    }
}

static bool is_writable(const struct oci_mount *mount) {
    bool writable = true;
    for (size_t i = 0; i < mount->options.count; i++) {
        const char *option = mount->options.items[i];
        if (strcmp(option, "ro") == 0 || strcmp(option, "rro") == 0)
            writable = false;
        else if (strcmp(option, "rw") == 0 || strcmp(option, "rrw") == 0)
            writable = true;
    }
    return writable;
}

static void places_add(struct enforcement *out, const struct hardened *hardened) {
    for (size_t i = 0; i < hardened->scratch_count; i++)
        APPEND(out, scratch, .path = memory_copy_string(hardened->scratch[i].path),
               .kind =
                   memory_copy_string(hardened->scratch[i].kind == SCRATCH_OWN_LAYER ? "layer" : "tmpfs"));
    for (size_t i = 0; i < hardened->decoys_count; i++)
        string_list_append(&out->decoys, hardened->decoys[i].path);
    for (size_t i = 0; i < hardened->config->mounts_count; i++) {
        const struct oci_mount *mount = &hardened->config->mounts[i];
        const struct mount_fact *fact = hardened->mount_sources[i];
        if (fact != NULL && fact->bind && is_writable(mount))
            APPEND(out, persistent, .path = memory_copy_string(mount->destination),
                   .kind = copy(mount->source));
    }
}

static void hooks_add(struct enforcement *out, const struct oci_config *config) {
    if (config->hooks == NULL)
        return;
    /* startContainer hooks are confined as the program is. */
    const struct {
        const char *kind;
        const struct oci_hook *hooks;
        size_t count;
    } kinds[] = {
        {"prestart", config->hooks->prestart, config->hooks->prestart_count},
        {"createRuntime", config->hooks->create_runtime, config->hooks->create_runtime_count},
        {"createContainer", config->hooks->create_container, config->hooks->create_container_count},
        {"poststart", config->hooks->poststart, config->hooks->poststart_count},
        {"poststop", config->hooks->poststop, config->hooks->poststop_count},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (size_t k = 0; k < kinds[i].count; k++)
            APPEND(out, hooks, .kind = memory_copy_string(kinds[i].kind),
                   .path = copy(kinds[i].hooks[k].path));
}

/* The names of the calls that are denied, each once; those of which only some forms are denied ("socket" with
 * a family, "clone" with a flag) end with a star. */
static void calls_add(struct enforcement *out, const struct oci_seccomp *denied) {
    for (size_t i = 0; denied != NULL && i < denied->syscalls_count; i++) {
        const struct oci_seccomp_rule *rule = &denied->syscalls[i];
        if (rule->action == NULL || strcmp(rule->action, "SCMP_ACT_ALLOW") == 0)
            continue;
        for (size_t n = 0; n < rule->names.count; n++) {
            char name[64];
            size_t length = strlen(rule->names.items[n]);
            if (length > sizeof name - 2)
                continue;
            memcpy(name, rule->names.items[n], length + 1);
            if (rule->args_count > 0)
                memcpy(name + length, "*", 2);
            /* Only a call with conditions has several rules. */
            if (rule->args_count == 0 || !string_list_contains(&out->denied_calls, name))
                string_list_append(&out->denied_calls, name);
        }
    }
}

struct enforcement *enforcement_make(const struct hardened *hardened, const struct policy *policy,
                                     const struct facts *facts) {
    struct enforcement *out = memory_zeroed(sizeof *out);
    out->policy.name = memory_copy_string(policy->name);
    out->policy.origin = copy(policy->origin);
    out->policy.digest = copy(policy->digest);
    out->bundle = copy(facts->bundle);
    out->confined = hardened->confined;
    struct text mode = {0};
    policy_value_write(policy, POLICY_NETWORK_MODE, &mode);
    out->network = (struct enforcement_network){.mode = text_take(&mode), .wall = hardened->wall};
    out->decoys_deny = hardened->confined && facts->has_fanotify;
    hooks_add(out, hardened->config);
    places_add(out, hardened);
    if (!hardened->confined)
        return out;
    lines_add(out, policy);
    changes_add(out, hardened);
    mechanisms_add(out, hardened, policy, facts);
    unlimited_add(out, hardened, policy);
    calls_add(out, hardened->denied);
    return out;
}

static void line_clear(struct enforcement_line *line) {
    free(line->key);
    free(line->value);
    free(line->origin);
}

static bool is_mechanism(const struct enforcement *enforcement, const char *name) {
    for (size_t i = 0; i < enforcement->mechanisms_count; i++)
        if (strcmp(enforcement->mechanisms[i].name, name) == 0)
            return true;
    return false;
}

void enforcement_change_policy(struct enforcement *enforcement, const struct policy *policy, bool brokered) {
    memory_replace_string(&enforcement->policy.name, policy->name);
    memory_replace_string(&enforcement->policy.origin, policy->origin);
    memory_replace_string(&enforcement->policy.digest, policy->digest);
    for (size_t i = 0; i < enforcement->lines_count; i++)
        line_clear(&enforcement->lines[i]);
    enforcement->lines_count = 0;
    lines_add(enforcement, policy);
    struct text mode = {0};
    policy_value_write(policy, POLICY_NETWORK_MODE, &mode);
    free(enforcement->network.mode);
    enforcement->network.mode = text_take(&mode);
    if (brokered && !is_mechanism(enforcement, "allowed hosts"))
        broker_add(enforcement, policy);
}
