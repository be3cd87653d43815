/* The effective policy (DESIGN.md section 5): what all documents and annotations together come to. Keys are
 * described once, by the table of policy/keys.h. */
#pragma once

#include "base/error.h"
#include "base/text.h"
#include "libocispec/schema.h"

/* Enumerations of words run from the narrowest to the widest, so that they can be compared. */
enum policy_access { POLICY_ACCESS_DENY, POLICY_ACCESS_ALLOW };
enum policy_workspace { POLICY_WORKSPACE_COPY, POLICY_WORKSPACE_DIRECT };
enum policy_network_mode { POLICY_NETWORK_NONE, POLICY_NETWORK_ALLOWLIST, POLICY_NETWORK_OPEN };
enum policy_uplink { POLICY_UPLINK_CONTAINER, POLICY_UPLINK_AUTO, POLICY_UPLINK_HOST };
enum policy_on_denied { POLICY_DENIED_STOP, POLICY_DENIED_BLOCK_AND_LOG, POLICY_DENIED_LOG_ONLY };
enum policy_switch { POLICY_SWITCH_ON, POLICY_SWITCH_AUTO, POLICY_SWITCH_OFF };
/* BPF and SECCOMP: this observer or none. ON: one must be had. BPF is after AUTO, so that no annotation,
 * which may come from an image, puts a program into the machine's kernel. */
enum policy_observer {
    POLICY_OBSERVER_ON,
    POLICY_OBSERVER_SECCOMP,
    POLICY_OBSERVER_AUTO,
    POLICY_OBSERVER_BPF,
    POLICY_OBSERVER_OFF
};

/* The items of a list, and where each of them was written: "/etc/pinfold/policy.yaml:12:5", "built-in agent".
 */
struct policy_list {
    struct string_list values;
    struct string_list origins; /* parallel to values */
};
void policy_list_append(struct policy_list *list, const char *value, const char *origin);
/* Where item `index` was written; "" when nobody said. */
const char *policy_list_origin(const struct policy_list *list, size_t index);
void policy_list_remove(struct policy_list *list, size_t index);
void policy_list_free(struct policy_list *list);

/* Every key but version and extends, in the order of the document. */
enum policy_key {
    POLICY_FILESYSTEM_DEFAULT,
    POLICY_FILESYSTEM_READABLE,
    POLICY_FILESYSTEM_WRITABLE,
    POLICY_FILESYSTEM_SCRATCH,
    POLICY_FILESYSTEM_HIDDEN,
    POLICY_FILESYSTEM_PROTECTED,
    POLICY_FILESYSTEM_WORKSPACE,
    POLICY_NETWORK_MODE,
    POLICY_NETWORK_ALLOWED_HOSTS,
    POLICY_NETWORK_INBOUND,
    POLICY_NETWORK_UPLINK,
    POLICY_CREDENTIALS_INHERIT,
    POLICY_CREDENTIALS_ENVIRONMENT,
    POLICY_CREDENTIALS_MOUNTS,
    POLICY_PROCESSES_CAPABILITIES,
    POLICY_PROCESSES_PTRACE,
    POLICY_PROCESSES_USERNS,
    POLICY_PROCESSES_GPU,
    POLICY_PROCESSES_LOADER_VARIABLES,
    POLICY_LIMITS_TIME,
    POLICY_LIMITS_EXEC_TIME,
    POLICY_LIMITS_GRACE,
    POLICY_LIMITS_MEMORY,
    POLICY_LIMITS_CPUS,
    POLICY_LIMITS_PIDS,
    POLICY_LIMITS_OUTPUT,
    POLICY_LIMITS_SCRATCH,
    POLICY_ON_DENIED_ACTION,
    POLICY_OBSERVE_FILES,
    POLICY_OBSERVE_PROCESSES,
    POLICY_OBSERVE_NETWORK,
    POLICY_LOG_FILE,
    POLICY_LOG_KEEP,
    POLICY_LOG_TOTAL,
    POLICY_LOG_JOURNALD,
    POLICY_LOG_OTLP,
    POLICY_LOG_INSIDE,
    POLICY_ENFORCEMENT_BEST_EFFORT,
    POLICY_KEY_COUNT
};

/* A file that the policy was read from. */
struct policy_file_identity {
    uint64_t device;
    uint64_t inode;
};
struct policy_file {
    char *path;
    bool pinned; /* its content is what `policy trust` has seen: who can write to it does not matter */
    struct policy_file_identity *chain; /* the file, its directory, and so on up to "/" */
    size_t chain_count;
};

/* What is to be told about how the policy came to be: an annotation that counted for nothing, a line that has
 * no effect yet. */
struct policy_remark {
    char *reason;  /* "policy.annotation.ignored" */
    char *subject; /* the annotation, or the key */
    char *message; /* one sentence */
    char *rule;    /* the line that decided */
};

struct policy {
    char *name;    /* "agent" */
    char *origin;  /* where it stands, for records: "built-in agent" */
    char *digest;  /* hexadecimal SHA-256 of the canonical text of all lines */
    bool confined; /* false for `unconfined` alone: nothing is changed, observed or denied */
    char *origins[POLICY_KEY_COUNT]; /* where each key was written; NULL: nowhere, it is built in */
    struct policy_file *files;
    size_t files_count;
    struct policy_remark *remarks;
    size_t remarks_count;

    enum policy_access filesystem_default; /* DENY: the root file system is read-only */
    struct policy_list readable;  /* "@image", "@mounts", "~", "@cwd", or paths and globs in the container */
    struct policy_list writable;  /* "@mounts", "@cwd", "~", or paths in the container */
    struct policy_list scratch;   /* paths in the container, "~" */
    struct policy_list hidden;    /* paths and globs in the container */
    struct policy_list protected; /* read-only inside writable places: relative to each, or absolute */
    enum policy_workspace workspace;

    enum policy_network_mode network_mode;
    struct policy_list allowed_hosts; /* as policy/hosts.h writes them: "example.org:443 private" */
    enum policy_access inbound;
    enum policy_uplink uplink;

    bool inherit_user_credentials;
    struct policy_list environment;       /* names or globs let through */
    struct policy_list credential_mounts; /* paths let through */

    struct policy_list capabilities; /* the most that is kept, "CAP_CHOWN" ... */
    bool ptrace;
    bool userns;
    bool gpu;
    bool loader_variables; /* LD_PRELOAD, NODE_OPTIONS, ...: what makes programs run other code */

    /* Limits that are not set are none. */
    struct optional_int64 time;      /* milliseconds */
    struct optional_int64 exec_time; /* milliseconds */
    struct optional_int64 grace;     /* milliseconds */
    struct optional_int64 memory;    /* bytes */
    struct optional_int64 cpus;      /* thousandths of a processor */
    struct optional_int64 pids;
    struct optional_int64 output;        /* bytes */
    struct optional_int64 scratch_limit; /* bytes */

    enum policy_on_denied on_denied_action;
    enum policy_observer observe_files;
    bool observe_processes;
    bool observe_network;
    bool log_file;
    struct optional_int64 log_keep;  /* milliseconds */
    struct optional_int64 log_total; /* bytes */
    enum policy_switch log_journald;
    char *log_otlp; /* a URL, NULL: none */
    bool log_inside;
    struct policy_list best_effort; /* keys and mechanisms that may be missing: "landlock", "limits.time" */
};

/* Where the value of a key was written; "built-in agent" where it was not. For a list that is the place of
 * the list, which may hold nothing. */
const char *policy_origin(const struct policy *policy, enum policy_key key);

void policy_remark(struct policy *policy, const char *reason, const char *subject, const char *rule,
                   const char *message, ...) __attribute__((format(printf, 5, 6)));
/* Computes the digest anew, after a change. */
void policy_digest_update(struct policy *policy);

/* Hexadecimal SHA-256 of the network section alone, by which a wall is known: containers of one network
 * namespace need the same. The caller frees it. */
char *policy_network_digest(const struct policy *policy);

/* The built-in policy called `name` (NULL or "": agent). An unknown name is ERROR_INVALID and lists the known
 * ones. */
fallible policy_select(const char *name, struct policy **out);
void policy_free(struct policy *policy);

/* Hexadecimal SHA-256 of the text, for digests of policies and files; the caller frees it. */
char *policy_sha256(const char *bytes, size_t length);
