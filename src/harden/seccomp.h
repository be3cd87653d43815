/* The calls that the sandbox denies (with errno and reason code) and the mutating file calls that it observes. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "libocispec/config.h"
#include "policy/policy.h"

/* Denied calls as an OCI seccomp document: default SCMP_ACT_ALLOW, rules SCMP_ACT_NOTIFY with errnoRet. */
struct oci_seccomp *harden_seccomp_denied(const struct policy *policy);
/* Mutating file calls (open for writing, create, rename, unlink, chmod, ...), for the observer. */
struct oci_seccomp *harden_seccomp_observed(void);
