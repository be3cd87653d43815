/* A user namespace that no process lives in, for id-mapped mounts. */
#pragma once

#include "base/error.h"

/* Makes one with these lines of uid_map and gid_map (user_namespaces(7)), through a helper process that is
 * gone when this returns; *out keeps it alive. */
fallible user_namespace_make(const char *uid_map, const char *gid_map, int *out);
