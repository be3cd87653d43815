/* The calls that the sandbox denies (with errno and reason code) and the mutating file calls that it
 * observes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libocispec/config.h"
#include "policy/policy.h"

/* listenerPath of the documents below: the listener is the warden's. Not a path, so it never equals an
 * engine's. */
#define HARDEN_SECCOMP_LISTENER "warden"

/* Denied calls as an OCI seccomp document: default SCMP_ACT_ALLOW, rules SCMP_ACT_NOTIFY with errnoRet, all
 * for reason "syscall.not_allowed"; calls that well-meaning programs try at every start are SCMP_ACT_ERRNO
 * and leave no record. NULL for a policy that does not confine. Freed with oci_seccomp_free. */
struct oci_seccomp *harden_seccomp_denied(const struct policy *policy);
/* The same rules, all answered by the filter itself: for a container whose one listener is the user's. */
struct oci_seccomp *harden_seccomp_denied_silently(const struct policy *policy);
/* Whether the profile (or NULL) sends a listener to an agent of the user's: listenerPath and a rule that
 * notifies. */
bool harden_seccomp_has_agent(const struct oci_seccomp *profile);
/* What the warden is asked about and lets through or answers itself; the sum of them. */
enum observed_calls {
    OBSERVED_MUTATIONS = 1, /* open for writing, create, rename, unlink, chmod, ... */
    OBSERVED_OWNERS = 2,    /* chown and chmod alone, a part of the former */
    OBSERVED_READS = 4,     /* every other open, and execve */
    OBSERVED_EXECUTIONS = 8 /* execve */
};
/* These calls as a document like the former; NULL for none. */
struct oci_seccomp *harden_seccomp_observed(unsigned calls);
/* Why the first rule for this call is there, half a sentence for `pinfold why`; NULL for a call without a
 * rule. */
const char *harden_seccomp_reason(const char *call);
/* The key of the policy that takes the first rule for this call out; false where none does. */
bool harden_seccomp_key(const char *call, enum policy_key *key);
