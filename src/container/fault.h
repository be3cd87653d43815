/* Fault points: a test build kills itself at a named step, to show what `delete --force` then has to find
 * (tests/bats/leftovers.bats). In other builds they are nothing. In the order in which create passes them:
 * directory, state, cgroup, cgroup-limits, clone, recorded, warden, go, hooks, ready, saved, pid-file. */
#pragma once

#ifdef PINFOLD_FAULT_POINTS
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static inline void fault_point(const char *name) {
    const char *wanted = getenv("PINFOLD_FAULT");
    if (wanted != NULL && strcmp(wanted, name) == 0)
        kill(getpid(), SIGKILL);
}
#else
static inline void fault_point(const char *name) {
    (void)name;
}
#endif
