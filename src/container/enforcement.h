/* What holds for a container and why (DESIGN.md section 2, invariant 2): the effective policy with the origin
 * of every line, what hardening changed, which mechanism holds what, and what none does. `pinfold explain`
 * prints it; create leaves it in the state directory as enforcement.json. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "facts/facts.h"
#include "harden/harden.h"
#include "libocispec/config.h"
#include "libocispec/schema.h"
#include "policy/policy.h"

#define ENFORCEMENT_FILE "enforcement.json" /* in the state directory */

struct enforcement_line {
    char *key; /* "network.mode" */
    char *value;
    char *origin; /* "built-in agent", "/etc/pinfold/policy.yaml:12:5" */
};
struct enforcement_change {
    char *kind; /* removed, added, set, degraded */
    char *field;
    char *subject;
    char *reason; /* of its record, NULL: owes none */
    char *message;
    char *rule;
    char *remedy;
};
struct enforcement_mechanism {
    char *name;  /* "seccomp" */
    char *state; /* enforced, degraded, unavailable, off */
    char *how;
};
struct enforcement_place {
    char *path; /* in the container */
    char *kind; /* layer, tmpfs; of what persists: the place on the host */
};
struct enforcement_hook {
    char *kind; /* "createRuntime" */
    char *path;
};
struct enforcement_policy {
    char *name;
    char *origin;
    char *digest;
};
struct enforcement_network {
    char *mode;
    bool wall;
};
struct enforcement {
    struct enforcement_policy policy;
    char *bundle;
    bool confined;
    struct enforcement_network network;
    bool decoys_deny; /* else an opened decoy is only observed */
    struct enforcement_line *lines;
    size_t lines_count;
    struct enforcement_change *changes;
    size_t changes_count;
    struct enforcement_mechanism *mechanisms;
    size_t mechanisms_count;
    struct string_list unlimited; /* keys of limits that nobody set */
    struct enforcement_place *scratch;
    size_t scratch_count;
    struct enforcement_place *persistent; /* what outlives the container: writable mounts of the host's */
    size_t persistent_count;
    struct enforcement_hook *hooks; /* programs that run outside of the sandbox */
    size_t hooks_count;
    struct string_list decoys;
    struct string_list denied_calls;
    struct oci_config *config; /* what is executed; only where it was asked for */
};
extern const struct schema enforcement_schema;

/* The caller frees it. */
struct enforcement *enforcement_make(const struct hardened *hardened, const struct policy *policy,
                                     const struct facts *facts);
/* Of a container that is there: another policy's lines, and what holds its network section. */
void enforcement_change_policy(struct enforcement *enforcement, const struct policy *policy, bool brokered);
void enforcement_free(struct enforcement *enforcement);
