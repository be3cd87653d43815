/* Where the controller of a resource lives: its own hierarchy of v1, or the unified one. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "cgroup/internal.h"

static const char *v2_name(const char *controller) {
    if (strcmp(controller, "blkio") == 0)
        return "io";
    if (strcmp(controller, "cpuacct") == 0)
        return "cpu";
    return controller;
}

const struct cgroup_directory *cgroup_unified_directory(const struct cgroup *cgroup) {
    for (size_t i = 0; i < cgroup->count; i++)
        if (strcmp(cgroup->directories[i].controllers, "unified") == 0)
            return &cgroup->directories[i];
    return NULL;
}

bool cgroup_place_find(const struct cgroup *cgroup, const char *controller, struct cgroup_place *place) {
    for (size_t i = 0; i < cgroup->count; i++) {
        if (!cgroup_word_in(cgroup->directories[i].controllers, ",", controller))
            continue;
        *place = (struct cgroup_place){.directory = cgroup->directories[i].path};
        return true;
    }
    const struct cgroup_directory *unified = cgroup_unified_directory(cgroup);
    if (unified == NULL)
        return false;
    *place = (struct cgroup_place){.directory = unified->path, .unified = true};
    const char *name = v2_name(controller);
    if (cgroup_unified_has(unified->path, name))
        return true;
    memory_owned char *top = cgroup_unified_top(unified->path);
    if (strcmp(top, unified->path) == 0 || !cgroup_unified_has(top, name))
        return false;
    /* In the hybrid layout controllers are enabled only when a limit asks for one. */
    cgroup_unified_enable(top, unified->path, name);
    return cgroup_unified_has(unified->path, name);
}

struct error *cgroup_place_need(const struct cgroup *cgroup, const char *field, const char *controller,
                                struct cgroup_place *place) {
    if (cgroup_place_find(cgroup, controller, place))
        return NULL;
    const struct cgroup_directory *unified = cgroup_unified_directory(cgroup);
    if (cgroup->count == 0)
        return error_new(
            ERROR_UNAVAILABLE,
            "%s needs the %s controller, and this container has no cgroup (no cgroup file system that may "
            "be written, or --cgroup-manager disabled)",
            field, controller);
    if (unified != NULL) {
        memory_owned char *top = cgroup_unified_top(unified->path);
        if (cgroup_unified_has(top, v2_name(controller)))
            return error_new(
                ERROR_UNAVAILABLE,
                "%s needs the %s controller, which cannot be enabled for %s: a cgroup above it holds "
                "processes of its own, or may not be changed",
                field, v2_name(controller), unified->path);
    }
    return error_new(ERROR_UNAVAILABLE, "%s needs the %s controller, which %s", field, controller,
                     cgroup->rootless ? "is not given to this user (cgroup delegation)"
                                      : "no mounted cgroup hierarchy of this machine has");
}

bool cgroup_has_controller(const struct cgroup *cgroup, const char *controller) {
    for (size_t i = 0; i < cgroup->count; i++) {
        const struct cgroup_directory *directory = &cgroup->directories[i];
        if (cgroup_word_in(directory->controllers, ",", controller))
            return true;
        if (strcmp(directory->controllers, "unified") != 0)
            continue;
        /* Before cgroup_make: what it could enable, from the top for root, from the nearest directory for a
         * user. In the hybrid layout nothing is enabled before a limit asks for it. */
        bool made = access(directory->path, F_OK) == 0;
        memory_owned char *asked = cgroup_path_existing(directory->path);
        if (!cgroup->rootless && !(cgroup->unified && made)) {
            char *root = cgroup_unified_top(asked);
            free(asked);
            asked = root;
        }
        if (cgroup_unified_has(asked, v2_name(controller)))
            return true;
    }
    return false;
}
