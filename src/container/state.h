/* The state directory of a container, ROOT/ID: one JSON file that is replaced as a whole, locked while it
 * changes. What `create` is about to make is written before it is made, so that `delete --force` finds it
 * after a SIGKILL (DESIGN.md invariant 8). */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "cgroup/cgroup.h"
#include "container/process.h"
#include "libocispec/config.h"
#include "policy/access_plan.h"
#include "policy/policy.h"

struct container_state {
    char *pinfold_version;
    char *id;
    char *bundle;  /* absolute */
    char *rootfs;  /* absolute */
    char *created; /* RFC 3339 */
    char *owner;
    char *status; /* creating, created, running: what was last done; what is, says container_status */
    struct process_identity init;
    struct process_identity warden; /* pid 0: none */
    struct process_identity broker; /* its keeper; pid 0: none */
    char *policy;
    char *policy_digest;
    char *policy_file;             /* where the effective policy is kept; NULL: as create has left it */
    int64_t policy_generation;     /* how often it was changed (policy_update.c) */
    struct string_list host_names; /* then: all names that ever had an address (egress/names.h) */
    bool brokered;                 /* then: there is a broker, though perhaps no allowed host */
    bool sandbox;                  /* of `pinfold sandbox`: no engine has made it */
    char *run_id;
    char *log_path; /* NULL: nothing is recorded */
    bool confined;
    bool wall;
    bool observed;                   /* no wall: rules that show what is reached */
    struct string_list host_aliases; /* egress/host_alias.h */
    bool wall_opened;   /* it lets something through, or less in: start needs the policy for it */
    bool no_hooks;      /* the stored config.json need not be read to find none */
    char *network_path; /* a network namespace that is joined and outlives the container, with its inode: */
    uint64_t network_inode; /* the wall is taken out of it after its last container of ours */
    struct cgroup *cgroup;
    struct string_list cgroups_created; /* directories that may be removed */
    struct string_list rdt_created;     /* of linux.intelRdt */
    uint64_t mount_namespace;           /* by which members are told; 0: by the cgroup alone */
    bool shares_mounts;                 /* it is in its caller's mount namespace: nothing is told by that */
    struct access_plan *access;         /* for Landlock in exec; NULL: it is not used */
    struct string_map annotations;
    uint64_t files_namespace; /* of processes, which the file observer's program looks at; 0: none */
    char *seccomp_agent;      /* linux.seccomp.listenerPath where a rule notifies, NULL: none */
    char *seccomp_agent_metadata;
};

struct container {
    char *id;
    int directory;                 /* ROOT/ID, locked */
    char *path;                    /* ROOT/ID */
    struct container_state *state; /* NULL: create was killed before it wrote any */
    bool poststart_failed; /* this process is its start: what is left of the container is to be deleted */
    bool hooks_begun; /* this process is its create and ran hooks: those for the end are due (runtime.md) */
};

/* FORCED: locked, and a state file that cannot be read counts as none, with a warning (for delete --force).
 */
enum container_lock { CONTAINER_UNLOCKED, CONTAINER_LOCKED, CONTAINER_FORCED };

/* The specification asks for uniqueness only; this is what engines use: [A-Za-z0-9_+-][A-Za-z0-9_+.-]*, at
 * most 255. */
fallible container_id_check(const char *id);

/* Makes ROOT/ID, locked; ERROR_CONTAINER_EXISTS when it is there. */
fallible container_make(const char *root, const char *id, struct container **out);
/* Opens ROOT/ID and reads its state; ERROR_CONTAINER_MISSING when it is not there. */
fallible container_open(const char *root, const char *id, enum container_lock lock, struct container **out);
fallible container_save(const struct container *container);
/* Among the containers of one --root: who puts up or takes down the wall of a network namespace that outlives
 * them holds it, so that nobody takes down what another has just joined. `directory`: a container's; *lock is
 * the caller's to close. */
fallible container_lock_walls(int directory, int *lock);
/* The configuration as it was really applied, kept in the state directory: exec, update and the hooks at the
 * end start from it. */
fallible container_store_config(const struct container *container, const struct oci_config *config);
fallible container_stored_config(const struct container *container, struct oci_config **out);
/* Removes ROOT/ID with the files that this runtime makes in it. */
fallible container_remove_directory(const struct container *container);
/* The effective policy, kept where it is not one that is built in. */
fallible container_store_policy(const struct container *container, const struct policy *policy);
/* Keeps another one beside it, whatever it is; the state that says so is the caller's to save. The one before
 * stays for who has read the state already, older ones go. */
fallible container_store_other_policy(struct container *container, const struct policy *policy);
/* The policy that is in force. */
fallible container_stored_policy(const struct container *container, struct policy **out);
void container_close(struct container *container);
void container_cleanup(struct container **container);
#define container_owned __attribute__((cleanup(container_cleanup)))

/* Now, in RFC 3339; the caller frees it. */
char *container_time_now(void);

/* "creating", "created", "running", "paused" or "stopped", as it is now. */
const char *container_status(const struct container *container);
/* Opens init; ERROR_NOT_RUNNING when it is gone or a zombie. */
fallible container_open_init(const struct container *container, int *pidfd);

/* ociVersion of the documents that this runtime writes. */
#define CONTAINER_STATE_VERSION "1.2.0"

/* The state of runtime.md, with what engines read beside it (rootfs, created, owner). */
void container_state_write(const struct container *container, const char *status, struct json_writer *json);
/* The same as text, which the caller frees. */
char *container_state_text(const struct container *container, const char *status);
extern const struct schema container_state_schema;
