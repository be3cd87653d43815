/* Hooks (config.md, "POSIX-platform Hooks"): programs of the engine's, given the container's state on
 * standard input. */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "libocispec/config.h"

/* What the hooks of one point have in common. */
struct hook_context {
    const char *point;     /* "createRuntime", for messages */
    const char *state;     /* compact JSON; slashes are not escaped (consumers compare bytes) */
    const char *directory; /* where they run; NULL, or one that cannot be entered: where the caller is */
    /* Of a hook that says nothing of its own: the runtime's outside, as crun and runc have it (a hook without
     * PATH finds no program), the process's inside. NULL: none. */
    char *const *environment;
    /* Called in the hook's process, last of all; an error ends it. NULL: it has the caller's privileges. */
    fallible (*confine)(void *data);
    void *data;
};

/* Runs them one after the other in the calling process's namespaces and cgroup; the first that fails or
 * overruns its timeout (its whole process group is killed then) is the error, named by point and number. A
 * hook has the caller's standard output and error, and no other descriptor. */
fallible hooks_run(const struct oci_hook *hooks, size_t count, const struct hook_context *context);
