/* The parts of pinfold-egress-hook: the network wall for containers of another runtime (DESIGN.md section 7).
 */
#pragma once

#include "base/error.h"
#include "libocispec/config.h"

/* Whether a wall can hold a container that has this configuration: ERROR_REFUSED with a reason code and the
 * remedy where it could take the wall down, pass by it, or has none to stand in. Pure. */
fallible egress_judge(const struct oci_config *config);

/* What the hook does for a container that was made and whose program does not run yet: the wall in its
 * network namespace, and the processes beside it. Nothing of that is left when it fails. `policy_given`: a
 * name or a file, NULL: the machine's own policy. */
fallible egress_set_up(const struct oci_state *state, const char *policy_given);
