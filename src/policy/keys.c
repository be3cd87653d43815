#include "policy/keys.h"

#include <inttypes.h>
#include <string.h>

static const char *const access_words[] = {"deny", "allow", NULL};
static const char *const workspace_words[] = {"copy", "direct", NULL};
static const char *const mode_words[] = {"none", "allowlist", "open", NULL};
static const char *const uplink_words[] = {"container", "auto", "host", NULL};
static const char *const denied_words[] = {"stop", "block_and_log", "log_only", NULL};
static const char *const switch_words[] = {"true", "auto", "false", NULL};
static const char *const observer_words[] = {"true", "seccomp", "auto", "bpf", "false", NULL};

#define KEY(key, kind, member, narrowness, line, ...)                                                        \
    {                                                                                                        \
        .name = key, .type = POLICY_TYPE_##kind, .offset = offsetof(struct policy, member),                  \
        .narrower = POLICY_NARROWER_##narrowness, .help = line __VA_OPT__(, ) __VA_ARGS__                    \
    }

const struct policy_key_info policy_keys[POLICY_KEY_COUNT] = {
    [POLICY_FILESYSTEM_DEFAULT] =
        KEY("filesystem.default", WORD, filesystem_default, LOWER,
            "deny: the root file system is read-only but for what is writable and scratch",
            .words = access_words),
    [POLICY_FILESYSTEM_READABLE] =
        KEY("filesystem.readable", LIST, readable, FEWER,
            "what may be read, where narrower than everything that is there", .item = POLICY_ITEM_READABLE),
    [POLICY_FILESYSTEM_WRITABLE] =
        KEY("filesystem.writable", LIST, writable, FEWER,
            "what may be written: @mounts is what the engine mounted writable, @cwd the working directory",
            .item = POLICY_ITEM_WRITABLE),
    [POLICY_FILESYSTEM_SCRATCH] =
        KEY("filesystem.scratch", LIST, scratch, FEWER, "writable, private to the container and gone with it",
            .item = POLICY_ITEM_SCRATCH),
    [POLICY_FILESYSTEM_HIDDEN] =
        KEY("filesystem.hidden", LIST, hidden, MORE, "paths and globs that the container does not see",
            .item = POLICY_ITEM_HIDDEN),
    [POLICY_FILESYSTEM_PROTECTED] =
        KEY("filesystem.protected", LIST, protected, MORE,
            "read-only inside writable places: what the host would later run", .item = POLICY_ITEM_PROTECTED),
    [POLICY_FILESYSTEM_WORKSPACE] =
        KEY("filesystem.workspace", WORD, workspace, LOWER,
            "copy: changes to the mounted project wait to be applied", .words = workspace_words),
    [POLICY_NETWORK_MODE] = KEY("network.mode", WORD, network_mode, LOWER,
                                "none, only the allowed hosts, or everything", .words = mode_words),
    [POLICY_NETWORK_ALLOWED_HOSTS] =
        KEY("network.allowed_hosts", LIST, allowed_hosts, FEWER,
            "hosts that connections may go to; ports 80 and 443 unless others are named",
            .item = POLICY_ITEM_HOST),
    [POLICY_NETWORK_INBOUND] = KEY("network.inbound", WORD, inbound, LOWER, "whether connections may come in",
                                   .words = access_words),
    [POLICY_NETWORK_UPLINK] =
        KEY("network.uplink", WORD, uplink, LOWER, "from which network namespace allowed hosts are dialled",
            .words = uplink_words),
    [POLICY_CREDENTIALS_INHERIT] =
        KEY("credentials.inherit_user_credentials", BOOL, inherit_user_credentials, LOWER,
            "whether secrets of the environment and mounted credentials are passed on"),
    [POLICY_CREDENTIALS_ENVIRONMENT] =
        KEY("credentials.environment", LIST, environment, FEWER,
            "variables that are let through though they look like credentials", .item = POLICY_ITEM_VARIABLE),
    [POLICY_CREDENTIALS_MOUNTS] =
        KEY("credentials.mounts", LIST, credential_mounts, FEWER,
            "mounted credentials, control sockets and places of the host that are let through",
            .item = POLICY_ITEM_MOUNT),
    [POLICY_PROCESSES_CAPABILITIES] =
        KEY("processes.capabilities", LIST, capabilities, FEWER,
            "the most that a process keeps of what the engine gives it", .item = POLICY_ITEM_CAPABILITY),
    [POLICY_PROCESSES_PTRACE] = KEY("processes.ptrace", BOOL, ptrace, LOWER,
                                    "whether processes may trace each other: debuggers, strace"),
    [POLICY_PROCESSES_USERNS] = KEY("processes.userns", BOOL, userns, LOWER,
                                    "whether user namespaces may be made: nested sandboxes of browsers"),
    [POLICY_PROCESSES_GPU] =
        KEY("processes.gpu", BOOL, gpu, LOWER, "whether devices of GPUs are let through"),
    [POLICY_PROCESSES_LOADER_VARIABLES] =
        KEY("processes.loader_variables", BOOL, loader_variables, LOWER,
            "whether variables are passed on that make programs load or run other code"),
    [POLICY_LIMITS_TIME] = KEY("limits.time", DURATION, time, LOWER, "how long the container may run"),
    [POLICY_LIMITS_EXEC_TIME] =
        KEY("limits.exec_time", DURATION, exec_time, LOWER, "how long each exec may run"),
    [POLICY_LIMITS_GRACE] = KEY("limits.grace", DURATION, grace, LOWER,
                                "time between SIGTERM and SIGKILL when a limit is reached"),
    [POLICY_LIMITS_MEMORY] = KEY("limits.memory", SIZE, memory, LOWER, "memory of all processes together"),
    [POLICY_LIMITS_CPUS] = KEY("limits.cpus", CPUS, cpus, LOWER, "processors, also a part of one"),
    [POLICY_LIMITS_PIDS] = KEY("limits.pids", COUNT, pids, LOWER, "processes and threads"),
    [POLICY_LIMITS_OUTPUT] = KEY("limits.output", SIZE, output, LOWER, "bytes of standard output and error"),
    [POLICY_LIMITS_SCRATCH] = KEY("limits.scratch", SIZE, scratch_limit, LOWER, "bytes in scratch places"),
    [POLICY_ON_DENIED_ACTION] =
        KEY("on_denied_action", WORD, on_denied_action, LOWER,
            "what a denied action does: end the container, fail and be recorded, or only be recorded",
            .words = denied_words),
    [POLICY_OBSERVE_FILES] =
        KEY("observe.files", WORD, observe_files, LOWER,
            "whether denied file accesses are recorded, and by what", .words = observer_words),
    [POLICY_OBSERVE_PROCESSES] =
        KEY("observe.processes", BOOL, observe_processes, HIGHER, "whether started programs are recorded"),
    [POLICY_OBSERVE_NETWORK] =
        KEY("observe.network", BOOL, observe_network, HIGHER, "whether allowed connections are recorded"),
    [POLICY_LOG_FILE] = KEY("log.file", BOOL, log_file, HIGHER, "whether records go to a file"),
    [POLICY_LOG_KEEP] =
        KEY("log.keep", DURATION, log_keep, NEITHER, "how long the files of ended containers are kept"),
    [POLICY_LOG_TOTAL] =
        KEY("log.total", SIZE, log_total, NEITHER, "how large all of them together may become"),
    [POLICY_LOG_JOURNALD] = KEY("log.journald", WORD, log_journald, LOWER,
                                "whether records go to the journal", .words = switch_words),
    [POLICY_LOG_OTLP] = KEY("log.otlp", TEXT, log_otlp, NEITHER,
                            "file of OTLP/JSON that records go to, or URL of an OpenTelemetry collector"),
    [POLICY_LOG_INSIDE] =
        KEY("log.inside", BOOL, log_inside, LOWER, "whether the container sees its own denials"),
    [POLICY_ENFORCEMENT_BEST_EFFORT] =
        KEY("enforcement.best_effort", LIST, best_effort, FEWER,
            "keys and mechanisms that may be missing on this machine", .item = POLICY_ITEM_MECHANISM),
};

enum policy_key policy_key_find(const char *name) {
    enum policy_key key = 0;
    while (key < POLICY_KEY_COUNT && strcmp(policy_keys[key].name, name) != 0)
        key++;
    return key;
}

static void *place_of(const struct policy *policy, enum policy_key key) {
    return (char *)(uintptr_t)policy + policy_keys[key].offset;
}

struct policy_list *policy_list_of(const struct policy *policy, enum policy_key key) {
    return place_of(policy, key);
}

struct optional_int64 *policy_number_of(const struct policy *policy, enum policy_key key) {
    return place_of(policy, key);
}

/* A number with the largest unit that leaves nothing over. */
static void unit_write(int64_t value, const char *const *names, const int64_t *units, struct text *text) {
    for (size_t i = 0; names[i] != NULL; i++)
        if (units[i] == 1 || (value != 0 && value % units[i] == 0)) {
            text_format(text, "%" PRId64 "%s", value / units[i], names[i]);
            return;
        }
}

static void duration_write(int64_t milliseconds, struct text *text) {
    static const char *const names[] = {"d", "h", "m", "s", "ms", NULL};
    static const int64_t units[] = {86400000, 3600000, 60000, 1000, 1};
    unit_write(milliseconds, names, units, text);
}

static void size_write(int64_t bytes, struct text *text) {
    static const char *const names[] = {"TiB", "GiB", "MiB", "KiB", "", NULL};
    static const int64_t units[] = {1ll << 40, 1ll << 30, 1ll << 20, 1ll << 10, 1};
    unit_write(bytes, names, units, text);
}

static void cpus_write(int64_t thousandths, struct text *text) {
    text_format(text, "%" PRId64, thousandths / 1000);
    if (thousandths % 1000 == 0)
        return;
    text_format(text, ".%03d", (int)(thousandths % 1000));
    while (text->data[text->length - 1] == '0')
        text->data[--text->length] = '\0';
}

static void number_write(enum policy_type type, int64_t value, struct text *text) {
    if (type == POLICY_TYPE_DURATION)
        duration_write(value, text);
    else if (type == POLICY_TYPE_SIZE)
        size_write(value, text);
    else if (type == POLICY_TYPE_CPUS)
        cpus_write(value, text);
    else
        text_format(text, "%" PRId64, value);
}

void policy_value_write(const struct policy *policy, enum policy_key key, struct text *text) {
    const struct policy_key_info *info = &policy_keys[key];
    const void *place = place_of(policy, key);
    if (info->type == POLICY_TYPE_BOOL) {
        text_append(text, *(const bool *)place ? "true" : "false");
    } else if (info->type == POLICY_TYPE_WORD) {
        text_append(text, info->words[*(const unsigned *)place]);
    } else if (info->type == POLICY_TYPE_TEXT) {
        const char *string = *(char *const *)place;
        text_append(text, string != NULL ? string : "null");
    } else {
        const struct optional_int64 *number = place;
        if (number->set)
            number_write(info->type, number->value, text);
        else
            text_append(text, "null");
    }
}

void policy_canonical_write(const struct policy *policy, struct text *text) {
    text_format(text, "version: 1\nconfined: %d\n", policy->confined);
    for (enum policy_key key = 0; key < POLICY_KEY_COUNT; key++) {
        text_format(text, "%s:", policy_keys[key].name);
        if (policy_keys[key].type == POLICY_TYPE_LIST) {
            const struct string_list *values = &policy_list_of(policy, key)->values;
            for (size_t i = 0; i < values->count; i++)
                /* The length before each item: no item's content can imitate a list of another shape. */
                text_format(text, " %zu:%s", strlen(values->items[i]), values->items[i]);
        } else {
            text_append(text, " ");
            policy_value_write(policy, key, text);
        }
        text_append(text, "\n");
    }
}
