/* Companions: processes of this same program that live beside a container, each with a sealed plan (DESIGN.md
 * section 4). */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

#define COMPANION_FD_FIRST 3
#define COMPANION_FDS_MAX 8

/* Starts a fresh image of this program as `pinfold SUBCOMMAND`, in a session of its own, in "/", without an
 * environment, with no signal blocked or ignored: descriptors[i] is its descriptor COMPANION_FD_FIRST + i
 * (not open where that is -1), the standard ones are /dev/null, nothing else is open. The caller keeps its
 * own. ERROR_SYSTEM names `what`. */
fallible companion_spawn(const char *subcommand, const int *descriptors, size_t count, const char *what,
                         pid_t *pid);

/* A plan as a file in memory that nobody can change any more, to be read from its beginning. ERROR_SYSTEM
 * names `what`. */
fallible companion_plan_seal(const void *bytes, size_t length, const char *what, int *out);
