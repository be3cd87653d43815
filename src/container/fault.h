/* Fault points: a test build kills itself at a named step, to show what `delete --force` then has to find
 * (tests/bats/leftovers.bats). In other builds they are nothing. In the order in which create passes them:
 * directory, state, cgroup, cgroup-limits, clone, go, warden, begun, hooks, ready, saved, pid-file; with the
 * systemd driver, after clone and in place of the two of cgroups: recorded, scope.
 *
 * It also stops (SIGSTOP) where PINFOLD_PAUSE names the place, and does without the protections that
 * PINFOLD_WITHOUT names ("secrecy,landlock"), so that the test of an attack can show that it works then.
 * Where PINFOLD_FAIL names the place, it fails there with an error. */
#pragma once

#include "base/error.h"

#ifdef PINFOLD_FAULT_POINTS
#define FAULT_BUILD true
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static inline bool fault_wanted(const char *variable, const char *name) {
    size_t length = strlen(name);
    for (const char *wanted = getenv(variable); wanted != NULL && *wanted != '\0';) {
        size_t word = strcspn(wanted, ",");
        if (word == length && memcmp(wanted, name, length) == 0)
            return true;
        wanted += word + (wanted[word] == ',');
    }
    return false;
}
static inline void fault_point(const char *name) {
    if (fault_wanted("PINFOLD_FAULT", name))
        kill(getpid(), SIGKILL);
}
static inline void fault_pause(const char *name) {
    if (fault_wanted("PINFOLD_PAUSE", name))
        raise(SIGSTOP);
}
static inline bool fault_without(const char *name) {
    return fault_wanted("PINFOLD_WITHOUT", name);
}
static inline struct error *fault_fail(const char *name) {
    return fault_wanted("PINFOLD_FAIL", name) ? error_new(ERROR_UNAVAILABLE, "PINFOLD_FAIL=%s", name) : NULL;
}
#else
#define FAULT_BUILD false
static inline void fault_point(const char *name) {
    (void)name;
}
static inline void fault_pause(const char *name) {
    (void)name;
}
#define fault_without(name) false
static inline struct error *fault_fail(const char *name) {
    (void)name;
    return NULL;
}
#endif
