/* What is wider in a policy than it looks. Pure. */
#pragma once

#include "policy/policy.h"

/* Appends one sentence for each, beginning with the line that it is about. */
void policy_check(const struct policy *policy, struct string_list *warnings);
