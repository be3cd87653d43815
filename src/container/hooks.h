/* Hooks (config.md, "POSIX-platform Hooks"): programs of the engine's, given the container's state on
 * standard input. */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "libocispec/config.h"

/* Runs them one after the other in the calling process's namespaces; the first that fails or overruns its
 * timeout is the error, named by `point` and number. The environment is the hook's own, empty where it says
 * none. */
fallible hooks_run(const struct oci_hook *hooks, size_t count, const char *point, const char *state_json);
