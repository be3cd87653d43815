/* Hardening as a pure function (DESIGN.md section 6, invariant 2): (config, policy, facts) -> hardened,
 * changes. No system call, nothing of sys/. `pinfold explain` prints the result and create executes exactly
 * that result. */
#pragma once

#include "base/error.h"
#include "facts/facts.h"
#include "libocispec/config.h"
#include "policy/access_plan.h"
#include "policy/policy.h"
#include "record/record.h"

enum change_kind {
    CHANGE_REMOVED, /* taken out of config.json, and recorded */
    CHANGE_ADDED,   /* put in */
    CHANGE_SET,     /* given another value */
    CHANGE_DEGRADED /* a built-in second layer that this machine lacks */
};

struct change {
    enum change_kind kind;
    char *field;   /* JSON path in config.json: "process.env" */
    char *subject; /* name of the variable, mount destination, capability; never a secret value */
    char *reason;  /* reason code, "credential.env.removed"; NULL: owes no record */
    char *message; /* one sentence for a person */
    char *rule;    /* the policy line that decided */
    char *remedy;  /* the policy line that would allow it, or NULL */
};

enum scratch_kind {
    SCRATCH_OWN_LAYER, /* bind the container's own directory over itself, writable */
    SCRATCH_TMPFS      /* a tmpfs with the content copied up: the root is not the container's own */
};

struct scratch_place {
    char *path; /* in the container, absolute, clean */
    enum scratch_kind kind;
    bool create; /* make it where it is missing */
};

/* A place inside a mount that is bound over itself, in this order, when all mounts are there. One that is
 * missing is passed over. */
enum rebind_kind {
    REBIND_FIXED,    /* as it is: a mount point can be neither moved nor removed */
    REBIND_WRITABLE, /* writable inside a mount that is not */
    REBIND_MADE      /* made first, an empty directory */
};
struct rebind {
    char *path;
    enum rebind_kind kind;
};

struct decoy {
    char *path;          /* in the container */
    const char *content; /* fake, static text */
};

/* What records denied accesses to files. */
enum files_observer { FILES_UNOBSERVED, FILES_BY_SECCOMP, FILES_BY_BPF };

#define HARDEN_INSIDE_DIRECTORY RECORD_INSIDE_DIRECTORY
#define HARDEN_INSIDE_FILE HARDEN_INSIDE_DIRECTORY "/denials.jsonl"

struct hardened {
    struct oci_config *config; /* what is executed */
    const struct mount_fact *
        *mount_sources;       /* parallel to config->mounts; NULL for a mount that hardening added */
    bool confined;            /* false: policy unconfined, all below is empty */
    bool wall;                /* the network namespace gets the wall */
    bool executions_observed; /* programs that are run are recorded */
    bool reached_observed;    /* no wall: what is reached is recorded (network.mode: open) */
    bool reached_must;        /* and without that there is no container: observe.network is written */
    struct scratch_place *scratch;
    size_t scratch_count;
    struct rebind *rebinds;
    size_t rebinds_count;
    struct access_plan *access; /* for Landlock; NULL: it is not used */
    struct decoy *decoys;
    size_t decoys_count;
    bool inside; /* the container has HARDEN_INSIDE_DIRECTORY */
    struct oci_seccomp
        *denied; /* rules with SCMP_ACT_NOTIFY and errnoRet: calls that are denied and recorded */
    enum files_observer files_observer;
    struct oci_seccomp *observed; /* rules with SCMP_ACT_NOTIFY: file calls that the warden is asked about */
    struct change *changes;
    size_t changes_count;
};

/* `policy` and `facts` must outlive the result. Refusals are ERROR_REFUSED: "reason.code: sentence (policy
 * line)". */
fallible harden(const struct oci_config *config, const struct policy *policy, const struct facts *facts,
                struct hardened **out);
/* The part of it that concerns one process: for `exec`. `process` is changed in place (environment scrubbed,
 * capabilities and no_new_privs as the container has them); changes are appended to a hardened without
 * config. */
void harden_process(struct oci_process *process, const struct policy *policy, struct hardened *changes);
/* PINFOLD_DENIALS=... as a container's process has it, or NULL; and given to a process of `exec`. */
const char *harden_inside_variable(const struct oci_process *process);
void harden_inside_set(struct oci_process *process, const char *item);
/* The part that concerns resources: for `update`. hardened->config is the stored configuration with what is
 * asked for in it; it is changed in place. */
void harden_resources(const struct policy *policy, struct hardened *hardened);
void hardened_free(struct hardened *hardened);

/* For the parts of harden/: appends a change; every string is copied. */
void harden_note(struct hardened *hardened, enum change_kind kind, const char *field, const char *subject,
                 const char *reason, const char *rule, const char *remedy, const char *message, ...)
    __attribute__((format(printf, 8, 9)));
