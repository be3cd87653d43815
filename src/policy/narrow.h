/* Which of two policies is the narrower one: annotations may only narrow, a ceiling bounds. Pure. */
#pragma once

#include "policy/document.h"
#include "policy/policy.h"

/* Is the value of the key in `narrow` no wider than in `wide`? For a list *item is the first one that is
 * wider (FEWER: of `narrow`; MORE: the one of `wide` that is missing), else it is not touched. */
bool policy_is_within(const struct policy *narrow, const struct policy *wide, enum policy_key key,
                      size_t *item);

/* Puts what an annotation writes over the policy as far as that narrows it; what does not is ignored, with a
 * remark each. `document` writes one key; `annotation` is its name. */
void policy_narrow(struct policy *policy, const struct policy_document *document, const char *annotation);

#define POLICY_CEILING_EXCEEDED "policy.ceiling.exceeded"
/* ERROR_REFUSED "policy.ceiling.exceeded: ..." naming both lines when the policy is wider than the ceiling.
 */
fallible policy_ceiling_check(const struct policy *policy, const struct policy_document *ceiling);
