/* `pinfold explain`: what hardening makes of a config.json and why, without running anything. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "facts/facts.h"
#include "harden/harden.h"
#include "policy/policy.h"

/* For a person, or (json) as one JSON object. Strings of the config are escaped: a terminal never sees a
 * control byte that an image chose. */
void explain_print(const struct hardened *hardened, const struct policy *policy, const struct facts *facts,
                   bool json, FILE *out);
