#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "cgroup/internal.h"

#define FREEZE_WAIT_MS 2000

static const char *freezer_directory(const struct cgroup *cgroup, bool unified) {
    for (size_t i = 0; i < cgroup->count; i++)
        if (cgroup_word_in(cgroup->directories[i].controllers, ",", unified ? "unified" : "freezer"))
            return cgroup->directories[i].path;
    return NULL;
}

static bool unified_is_frozen(const char *directory) {
    memory_owned char *events = cgroup_file_read(directory, "cgroup.events");
    return events != NULL && cgroup_word_in(events, "\n", "frozen 1");
}

static bool v1_is_frozen(const char *directory) {
    memory_owned char *state = cgroup_file_read(directory, "freezer.state");
    return state != NULL && strcmp(state, "FROZEN") == 0;
}

static struct error *thaw(const char *directory, bool unified) {
    return unified ? cgroup_file_write(directory, "cgroup.freeze", "0")
                   : cgroup_file_write(directory, "freezer.state", "THAWED");
}

static struct error *freeze(const char *directory, bool unified) {
    struct error *error = NULL;
    for (int waited = 0; waited < FREEZE_WAIT_MS; waited++) {
        /* v1 gives up on tasks that fork meanwhile, and goes on when it is asked again. */
        if (waited == 0 || !unified)
            error = unified ? cgroup_file_write(directory, "cgroup.freeze", "1")
                            : cgroup_file_write(directory, "freezer.state", "FROZEN");
        if (error != NULL)
            break;
        if (unified ? unified_is_frozen(directory) : v1_is_frozen(directory))
            return NULL;
        struct timespec millisecond = {.tv_nsec = 1000000};
        nanosleep(&millisecond, NULL);
    }
    if (error == NULL)
        error = error_system(ETIMEDOUT, "freeze", "%s", directory);
    /* Never leave it half frozen: nothing in it could be killed any more. */
    error_ignore(thaw(directory, unified));
    return error;
}

struct error *cgroup_freeze(const struct cgroup *cgroup, bool frozen) {
    const char *unified = freezer_directory(cgroup, true);
    const char *v1 = freezer_directory(cgroup, false);
    if (unified == NULL && v1 == NULL)
        return error_new(ERROR_UNAVAILABLE,
                         "the container has no cgroup that can be frozen (the freezer of cgroup v1, or "
                         "cgroup v2)");
    if (frozen) /* v2 where it is: what it froze can still be killed */
        return freeze(unified != NULL ? unified : v1, unified != NULL);
    struct error *error = unified == NULL ? NULL : thaw(unified, true);
    if (v1 != NULL) {
        struct error *second = thaw(v1, false);
        if (error == NULL)
            error = second;
        else
            error_ignore(second);
    }
    return error;
}

bool cgroup_is_frozen(const struct cgroup *cgroup) {
    const char *unified = freezer_directory(cgroup, true);
    const char *v1 = freezer_directory(cgroup, false);
    return (unified != NULL && unified_is_frozen(unified)) || (v1 != NULL && v1_is_frozen(v1));
}

void cgroup_thaw_stray(const struct cgroup *cgroup, pid_t pid) {
    const char *v1 = freezer_directory(cgroup, false);
    char number[24];
    snprintf(number, sizeof number, "%d", (int)pid);
    if (v1 != NULL) /* the caller sees by the process's end whether it was of use */
        error_ignore(cgroup_file_write(v1, "cgroup.procs", number));
}
