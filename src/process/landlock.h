/* Landlock: the second layer behind read-only mounts, and the first where reading is restricted. A domain
 * cannot be left or joined: init and every exec make their own, from the same plan. */
#pragma once

#include "base/error.h"
#include "policy/access_plan.h"

/* Makes the rules for the calling process's root, in which all mounts are final. What is not there gets none.
 * Each place is opened beneath the root; a symlink on the way is followed where it stays on the root's own
 * mount. Descriptors 0 to 2 + `preserve_fds` may be opened again through /proc/self/fd, wherever they come
 * from. *ruleset is the caller's. Where reading is restricted *readable is too: a sealed file of the inodes
 * (struct access_inode) with a rule that lets read, for who judges a denied call; else it stays as it is. */
fallible landlock_prepare(const struct access_plan *plan, unsigned preserve_fds, int *ruleset, int *readable);

/* Restricts the calling thread, which has no_new_privs or CAP_SYS_ADMIN. -1: nothing is done. */
fallible landlock_restrict(int ruleset);
