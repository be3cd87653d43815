/* A bundle made from this machine itself (DESIGN.md section 9): its own system directories read-only, the few
 * files of /etc that programs need, an empty home, and one directory of the user's as the workspace. */
#pragma once

#include "base/error.h"
#include "base/text.h"
#include "policy/policy.h"

struct sandbox_request {
    const char *workspace; /* absolute, symlinks resolved */
    struct string_list command;
    struct string_list environment; /* NAME=VALUE, what was asked for by name */
    char *const
        *caller_environment; /* credentials in it are shown to hardening, to be recorded as left out */
    bool terminal;
};

/* Makes the bundle at `bundle`, which must not exist: config.json and rootfs/. */
fallible sandbox_bundle_make(const char *bundle, const struct sandbox_request *request,
                             const struct policy *policy);
/* Removes it. Nothing is mounted in it: mounts are the container's own. */
void sandbox_bundle_remove(const char *bundle);
