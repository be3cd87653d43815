/* Paths as a process of a container reads them, magic links of /proc included: /proc/self/fd/5,
 * /proc/1/root/etc. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* What `path` names for the process `pid`, whose root is `root` and for whom relative paths begin at `base`:
 * an O_PATH descriptor that the caller closes, or -1. One component after the other, which openat2 cannot do
 * here: its RESOLVE_IN_ROOT takes no magic link, and /proc/self would be this process. `no_follow`: of the
 * last component. */
int walk_path(pid_t pid, int root, int base, const char *path, bool no_follow);
