/* Lines of a policy that this version of the runtime cannot put in place. What was written is enforced or
 * create fails (DESIGN.md invariant 1); `enforcement: {best_effort: [KEY]}` lets it go on with a remark. */
#pragma once

#include "policy/policy.h"

/* ERROR_UNAVAILABLE naming the line and the mechanism, for the first such line that best_effort does not
 * name; the others, and allowed hosts, become remarks "mechanism.unavailable". */
fallible policy_gaps_check(struct policy *policy);
/* Why a key's value is not in force ("limits.time: needs a supervisor's clock"), NULL when it is. */
const char *policy_gap(const struct policy *policy, enum policy_key key);
