#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "cgroup/systemd.h"
#include "libocispec/schema_table.h"

static const struct schema_field directory_fields[] = {
    {.key = "controllers", .type = SCHEMA_STRING, .offset = offsetof(struct cgroup_directory, controllers)},
    {.key = "path", .type = SCHEMA_STRING, .offset = offsetof(struct cgroup_directory, path)},
};
static const struct schema directory_schema = {.name = "cgroup directory",
                                               .size = sizeof(struct cgroup_directory),
                                               .fields = directory_fields,
                                               .field_count =
                                                   sizeof directory_fields / sizeof directory_fields[0]};
static const struct schema_field scope_fields[] = {
    STRING(REQUIRED, "unit", systemd_scope, unit),
    STRING(REQUIRED, "slice", systemd_scope, slice),
    BOOL(OPTIONAL, "userManager", systemd_scope, user_manager),
    STRING(OPTIONAL, "runtimeDirectory", systemd_scope, runtime_directory),
    STRING(OPTIONAL, "busAddress", systemd_scope, bus_address),
};
static const struct schema scope_schema = SCHEMA("systemd scope", systemd_scope, scope_fields);
static const struct schema_field cgroup_fields[] = {
    {.key = "unified", .type = SCHEMA_BOOL, .offset = offsetof(struct cgroup, unified)},
    {.key = "rootless", .type = SCHEMA_BOOL, .offset = offsetof(struct cgroup, rootless)},
    {.key = "relativePath", .type = SCHEMA_STRING, .offset = offsetof(struct cgroup, relative_path)},
    {.key = "directories",
     .type = SCHEMA_OBJECTS,
     .offset = offsetof(struct cgroup, directories),
     .count_offset = offsetof(struct cgroup, count),
     .child = &directory_schema},
    POINTER(OPTIONAL, "scope", cgroup, scope, systemd_scope, scope_schema),
};
const struct schema cgroup_schema = {.name = "cgroup",
                                     .size = sizeof(struct cgroup),
                                     .fields = cgroup_fields,
                                     .field_count = sizeof cgroup_fields / sizeof cgroup_fields[0]};

void cgroup_free(struct cgroup *cgroup) {
    if (cgroup == NULL)
        return;
    for (size_t i = 0; i < cgroup->count; i++) {
        free(cgroup->directories[i].controllers);
        free(cgroup->directories[i].path);
    }
    free(cgroup->directories);
    free(cgroup->relative_path);
    schema_free(&scope_schema, cgroup->scope);
    free(cgroup);
}

/* "/a/b" from what the document says: single slashes, no "." left; NULL where nothing is left or a component
 * is "..". */
static char *path_normal(const char *path) {
    struct text normal = {0};
    memory_owned char *copy = memory_copy_string(path);
    char *rest = copy;
    for (char *component; (component = strsep(&rest, "/")) != NULL;) {
        if (component[0] == '\0' || strcmp(component, ".") == 0)
            continue;
        if (strcmp(component, "..") == 0) {
            text_free(&normal);
            return NULL;
        }
        text_format(&normal, "/%s", component);
    }
    return normal.length == 0 ? NULL : text_take(&normal);
}

/* "system.slice:prefix:name", which engines write for the systemd driver. */
static bool path_is_systemd(const char *path) {
    const char *first = strchr(path, ':');
    return first != NULL && strchr(first + 1, ':') != NULL && strchr(path, '/') == NULL;
}

static struct error *path_check(const char *cgroups_path, const char *container_id, char **out) {
    if (cgroups_path == NULL || cgroups_path[0] == '\0') {
        if (strchr(container_id, '/') != NULL || strcmp(container_id, ".") == 0 ||
            strcmp(container_id, "..") == 0 || container_id[0] == '\0')
            return error_known(ERROR_ID_FORMAT, NULL);
        *out = text_formatted("/" CGROUP_OWN_PARENT "/%s", container_id);
        return NULL;
    }
    if (path_is_systemd(cgroups_path))
        return error_new(
            ERROR_INVALID,
            "linux.cgroupsPath: %s has the form slice:prefix:name, which needs --systemd-cgroup; "
            "without that flag a path such as /pinfold/%s is allowed",
            cgroups_path, container_id);
    *out = path_normal(cgroups_path);
    if (*out == NULL)
        return error_new(
            ERROR_INVALID,
            "linux.cgroupsPath: %s does not name a cgroup of the container's own; a path below the root "
            "without .. is allowed, such as /pinfold/%s",
            cgroups_path, container_id);
    if (strchr(*out, '\n') != NULL) {
        free(*out);
        *out = NULL;
        return error_new(ERROR_INVALID,
                         "linux.cgroupsPath: a line break is not allowed in the name of a cgroup");
    }
    return NULL;
}

/* Whether this process may make directories below `path`, seen at its deepest directory that exists; for v2
 * also whether it may move processes there (cgroups(7), "delegation containment"). */
static bool may_make_below(const char *path, bool unified) {
    memory_owned char *existing = cgroup_path_existing(path);
    if (faccessat(AT_FDCWD, existing, W_OK | X_OK, AT_EACCESS) < 0)
        return false;
    memory_owned char *procs = text_formatted("%s/cgroup.procs", existing);
    return !unified || faccessat(AT_FDCWD, procs, W_OK, AT_EACCESS) == 0;
}

/* Where a relative path begins. In v2 a cgroup that holds processes (the caller's own holds at least the
 * caller) cannot give controllers to those below it, so that it is the cgroup beside the caller's. */
static char *relative_base(const struct cgroup_hierarchy *hierarchy, const char *relative, bool rootless) {
    if (!hierarchy->unified || strcmp(hierarchy->own, hierarchy->mount_point) == 0)
        return memory_copy_string(hierarchy->own);
    char *beside = cgroup_path_parent(hierarchy->own);
    memory_owned char *leaf = text_formatted("%s%s", beside, relative);
    if (!rootless || may_make_below(leaf, true))
        return beside;
    free(beside);
    return memory_copy_string(hierarchy->own);
}

struct error *cgroup_plan_in(const struct cgroup_hierarchies *hierarchies, const char *cgroups_path,
                             const char *container_id, bool rootless, struct cgroup **out) {
    *out = NULL;
    char *relative = NULL;
    TRY(path_check(cgroups_path, container_id, &relative));
    struct cgroup *cgroup = memory_zeroed(sizeof *cgroup);
    cgroup->relative_path = relative;
    cgroup->rootless = rootless;
    cgroup->unified = cgroup_hierarchies_layout(hierarchies) == CGROUP_LAYOUT_V2;
    bool absolute = cgroups_path != NULL && cgroups_path[0] == '/';
    for (size_t i = 0; i < hierarchies->count; i++) {
        const struct cgroup_hierarchy *hierarchy = &hierarchies->items[i];
        memory_owned char *base = absolute ? memory_copy_string(hierarchy->mount_point)
                                           : relative_base(hierarchy, relative, rootless);
        memory_owned char *path = text_formatted("%s%s", base, relative);
        if (rootless && !may_make_below(path, hierarchy->unified))
            continue;
        cgroup->directories =
            memory_resize(cgroup->directories, cgroup->count + 1, sizeof *cgroup->directories);
        cgroup->directories[cgroup->count++] = (struct cgroup_directory){
            .controllers = memory_copy_string(hierarchy->controllers), .path = memory_copy_string(path)};
    }
    *out = cgroup;
    return NULL;
}

struct error *cgroup_plan(const char *cgroups_path, const char *container_id, enum cgroup_manager manager,
                          bool rootless, struct cgroup **out) {
    *out = NULL;
    if (manager == CGROUP_MANAGER_DISABLED) {
        /* Nothing is looked at: where cgroups are disabled there may be no cgroup file system to look at. */
        *out = memory_zeroed(sizeof **out);
        return NULL;
    }
    if (manager == CGROUP_MANAGER_SYSTEMD)
        return systemd_plan(cgroups_path, container_id, rootless, out);
    cgroup_hierarchies_owned struct cgroup_hierarchies hierarchies = {0};
    TRY(cgroup_hierarchies_read(&hierarchies));
    return cgroup_plan_in(&hierarchies, cgroups_path, container_id, rootless, out);
}
