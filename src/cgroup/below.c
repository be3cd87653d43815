/* Sub-cgroups of a container, for exec --cgroup. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "cgroup/internal.h"

static bool has_parent_component(const char *path) {
    for (const char *part = path; part != NULL; part = strchr(part, '/')) {
        part += strspn(part, "/");
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0'))
            return true;
    }
    return false;
}

/* Whether the directory carries one of the controllers "cpu,cpuacct". */
static bool carries_any(const struct cgroup_directory *directory, const char *controllers) {
    memory_owned char *list = memory_copy_string(controllers);
    char *rest = list;
    for (const char *name; (name = strsep(&rest, ",")) != NULL;)
        if (cgroup_word_in(directory->controllers, ",", name))
            return true;
    return false;
}

static struct error *check_controllers(const struct cgroup *cgroup, const char *controllers) {
    memory_owned char *list = memory_copy_string(controllers);
    char *rest = list;
    for (const char *name; (name = strsep(&rest, ",")) != NULL;) {
        bool known = false;
        for (size_t i = 0; i < cgroup->count; i++)
            known = known || cgroup_word_in(cgroup->directories[i].controllers, ",", name);
        if (!known)
            return error_new(ERROR_INVALID,
                             "exec --cgroup: unknown controller %s: the container has no cgroup of it", name);
    }
    return NULL;
}

struct error *cgroup_attach_below(const struct cgroup *cgroup, const char *place, pid_t pid) {
    const char *colon = strchr(place, ':');
    const char *path = colon ? colon + 1 : place;
    memory_owned char *controllers = NULL;
    if (has_parent_component(path))
        return error_new(ERROR_INVALID,
                         "exec --cgroup: %s is not a sub cgroup path: `..` components are not allowed", path);
    if (colon != NULL) {
        controllers = text_formatted("%.*s", (int)(colon - place), place);
        TRY(check_controllers(cgroup, controllers));
    }
    memory_owned char *number = text_formatted("%d", (int)pid);
    memory_owned char *missing = NULL;
    size_t joined = 0;
    for (size_t i = 0; i < cgroup->count; i++) {
        const struct cgroup_directory *directory = &cgroup->directories[i];
        if (controllers != NULL && !carries_any(directory, controllers))
            continue;
        memory_owned char *below = text_formatted("%s/%s", directory->path, path + strspn(path, "/"));
        if (access(below, F_OK) == 0) {
            TRY(error_context(cgroup_file_write(below, "cgroup.procs", number), "exec --cgroup"));
            joined++;
        } else if (missing == NULL) {
            missing = memory_copy_string(below);
        }
    }
    /* Without controllers it is asked for wherever it is: v1 has a tree for each of them. */
    if (missing == NULL || (controllers == NULL && joined > 0))
        return NULL;
    return error_new(ERROR_INVALID,
                     "exec --cgroup: adding pid %d to %s/cgroup.procs: no such file or directory", (int)pid,
                     missing);
}
