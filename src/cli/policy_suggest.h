/* `pinfold policy suggest`. */
#pragma once

#include "base/error.h"

/* argv[0] is "suggest". Prints a policy: what a run was denied, or would have been (on_denied_action:
 * log_only), as the lines that allow it, with reason and count as comments. */
fallible policy_suggest_command(int argc, char **argv);
