/* What the policy's lines about places of the container meet on this machine: globs, and names inside mounts.
 */
#pragma once

#include "facts/facts.h"

/* Finds what the globs of filesystem.readable, hidden and protected match: in the root, and in each mount's
 * source. Symlinks are not followed. Needs the facts of the root and the mounts. */
void look_for_globs(const struct oci_config *config, const struct policy *policy, struct facts *facts);

/* How much there is of each name of filesystem.protected in a mounted directory. */
void look_for_protected(const struct policy *policy, struct mount_fact *fact);

/* Where a mount at this path will be: with the symlinks that the image has on the way followed. NULL: at that
 * very path. The caller frees it. */
char *look_for_place(int root_fd, const char *destination);
