/* The systemd driver: the container's cgroup is that of a transient scope which systemd makes around init,
 * with delegation: below it, and for values that systemd has no property for, the files are ours to write
 * (systemd.io, "Control Group APIs and Delegation"). */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "cgroup/systemd.h"

#define UNIT_NAME_MAX 255
#define UNIT_EXISTS "org.freedesktop.systemd1.UnitExists"
#define FORM "slice:prefix:name, such as system.slice:pinfold:web, "

/* ---- names ---- */

static bool name_is_plain(const char *name) {
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.:\\";
    return strspn(name, allowed) == strlen(name);
}

/* "a-b.slice" lies in "a.slice"; "-.slice" is the root (systemd.slice(5)). */
static bool slice_is_valid(const char *slice) {
    if (strcmp(slice, "-.slice") == 0)
        return true;
    size_t length = strlen(slice);
    return length > strlen(".slice") && length <= UNIT_NAME_MAX && text_ends_with(slice, ".slice") &&
           name_is_plain(slice) && strchr(slice, ':') == NULL && slice[0] != '-' && slice[0] != '.' &&
           slice[length - strlen(".slice") - 1] != '-' && strstr(slice, "--") == NULL;
}

/* The unit of a container ID, which may hold a plus sign, where a unit's name may not. */
static char *unit_of_id(const char *id) {
    struct text unit = {0};
    text_append(&unit, "pinfold-");
    for (; *id != '\0'; id++) {
        if (*id == '+')
            text_append(&unit, "\\x2b");
        else
            text_append_bytes(&unit, id, 1);
    }
    text_append(&unit, ".scope");
    return text_take(&unit);
}

static struct error *names_parse(const char *cgroups_path, char **slice, char **unit) {
    const char *first = strchr(cgroups_path, ':');
    const char *second = first == NULL ? NULL : strchr(first + 1, ':');
    if (second == NULL || strchr(second + 1, ':') != NULL || strchr(cgroups_path, '/') != NULL)
        return error_new(ERROR_INVALID,
                         "linux.cgroupsPath: \"%s\" is not allowed with the systemd driver; " FORM "is",
                         cgroups_path);
    *slice = strndup(cgroups_path, (size_t)(first - cgroups_path));
    memory_owned char *prefix = strndup(first + 1, (size_t)(second - first - 1));
    const char *name = second + 1;
    if (name[0] != '\0')
        *unit = prefix[0] == '\0' ? text_formatted("%s.scope", name)
                                  : text_formatted("%s-%s.scope", prefix, name);
    if (*unit == NULL || !name_is_plain(*unit) || (*unit)[0] == '.' || strlen(*unit) > UNIT_NAME_MAX)
        return error_new(ERROR_INVALID,
                         "linux.cgroupsPath: \"%s\" gives a unit no name; " FORM
                         "with letters, digits and any of _-.\\ is allowed",
                         cgroups_path);
    if ((*slice)[0] != '\0' && !slice_is_valid(*slice))
        return error_new(ERROR_INVALID,
                         "linux.cgroupsPath: \"%s\" is not the name of a slice; one such as "
                         "machine-web.slice is",
                         *slice);
    return NULL;
}

struct error *systemd_names(const char *cgroups_path, const char *container_id, bool user_manager,
                            char **slice, char **unit) {
    *slice = NULL;
    *unit = NULL;
    struct error *error = NULL;
    if (cgroups_path == NULL || cgroups_path[0] == '\0')
        *unit = unit_of_id(container_id);
    else
        error = names_parse(cgroups_path, slice, unit);
    if (error == NULL && strlen(*unit) > UNIT_NAME_MAX)
        error = error_new(ERROR_INVALID, "the container's ID is too long for a unit of systemd: %s", *unit);
    if (error != NULL) {
        free(*slice);
        free(*unit);
        *slice = *unit = NULL;
        return error;
    }
    if (*slice == NULL || (*slice)[0] == '\0')
        memory_replace_string(slice, user_manager ? "user.slice" : "system.slice");
    return NULL;
}

char *systemd_slice_path(const char *slice) {
    struct text path = {0};
    text_append(&path, "");
    if (strcmp(slice, "-.slice") != 0)
        for (const char *dash = strchr(slice, '-');; dash = strchr(dash + 1, '-')) {
            if (dash == NULL) {
                text_format(&path, "/%s", slice);
                break;
            }
            text_format(&path, "/%.*s.slice", (int)(dash - slice), slice);
        }
    return text_take(&path);
}

/* ---- plan ---- */

/* The id outside of our user namespace, which is what the user's directory is named by. */
static unsigned owner_outside(void) {
    memory_owned char *map = cgroup_file_read("/proc/self", "uid_map");
    unsigned inside, outside, count;
    for (const char *line = map; line != NULL && *line != '\0';) {
        if (sscanf(line, "%u %u %u", &inside, &outside, &count) == 3 && geteuid() >= inside &&
            geteuid() - inside < count)
            return outside + (geteuid() - inside);
        line = strchr(line, '\n');
        line = line == NULL ? NULL : line + 1;
    }
    return geteuid();
}

/* Where the manager's own cgroup most likely is: the user's manager says it only over the bus. What it turns
 * out to be replaces this once the scope is there. */
static char *manager_path(const char *own_cgroup, bool user_manager) {
    if (!user_manager)
        return memory_copy_string("");
    unsigned owner = owner_outside();
    memory_owned char *service = text_formatted("/user@%u.service", owner);
    const char *found = strstr(own_cgroup, service);
    if (found != NULL)
        return strndup(own_cgroup, (size_t)(found - own_cgroup) + strlen(service));
    return text_formatted("/user.slice/user-%u.slice%s", owner, service);
}

static struct systemd_scope *scope_new(const char *unit, const char *slice, bool user_manager) {
    struct systemd_scope *scope = memory_zeroed(sizeof *scope);
    scope->unit = memory_copy_string(unit);
    scope->slice = memory_copy_string(slice);
    scope->user_manager = user_manager;
    if (!user_manager)
        return scope;
    const char *runtime_directory = getenv("XDG_RUNTIME_DIR");
    const char *bus_address = getenv("DBUS_SESSION_BUS_ADDRESS");
    scope->runtime_directory = runtime_directory != NULL && runtime_directory[0] == '/'
                                   ? memory_copy_string(runtime_directory)
                                   : text_formatted("/run/user/%u", owner_outside());
    if (bus_address != NULL && bus_address[0] != '\0')
        scope->bus_address = memory_copy_string(bus_address);
    return scope;
}

struct error *systemd_plan(const char *cgroups_path, const char *container_id, bool user_manager,
                           struct cgroup **out) {
    *out = NULL;
    memory_owned char *slice = NULL;
    memory_owned char *unit = NULL;
    TRY(systemd_names(cgroups_path, container_id, user_manager, &slice, &unit));
    cgroup_hierarchies_owned struct cgroup_hierarchies hierarchies = {0};
    TRY(cgroup_hierarchies_read(&hierarchies));
    if (cgroup_hierarchies_layout(&hierarchies) != CGROUP_LAYOUT_V2)
        return error_new(ERROR_UNAVAILABLE,
                         "the systemd cgroup driver needs cgroup v2 alone at " CGROUP_BASE
                         ", which this machine does not have; call without --systemd-cgroup (podman: "
                         "--cgroup-manager cgroupfs)");
    const struct cgroup_hierarchy *unified = &hierarchies.items[0];
    memory_owned char *manager = manager_path(unified->own + strlen(unified->mount_point), user_manager);
    memory_owned char *slices = systemd_slice_path(slice);
    struct cgroup *cgroup = memory_zeroed(sizeof *cgroup);
    cgroup->unified = true;
    cgroup->rootless = user_manager;
    cgroup->relative_path = text_formatted("%s%s/%s", manager, slices, unit);
    cgroup->directories = memory_zeroed(sizeof *cgroup->directories);
    cgroup->directories[0].controllers = memory_copy_string(unified->controllers);
    cgroup->directories[0].path = text_formatted("%s%s", unified->mount_point, cgroup->relative_path);
    cgroup->count = 1;
    cgroup->scope = scope_new(unit, slice, user_manager);
    *out = cgroup;
    return NULL;
}

/* ---- requests ---- */

/* The request holds borrowed strings but for its lists. */
static struct systemd_request request_for(const struct systemd_scope *scope, const char *operation) {
    struct systemd_request request = {.operation = (char *)operation, .unit = scope->unit};
    systemd_addresses(scope->user_manager, scope->runtime_directory, scope->bus_address, &request.addresses);
    return request;
}

static void request_clear(struct systemd_request *request) {
    string_list_free(&request->addresses);
    systemd_properties_clear(&request->properties);
}
#define request_owned __attribute__((cleanup(request_clear)))

static struct error *ask(const struct systemd_request *request) {
    memory_owned char *error_name = NULL;
    return systemd_ask(request, &error_name);
}

static struct error *scope_properties(const struct systemd_scope *scope,
                                      const struct oci_resources *resources,
                                      const struct string_map *annotations,
                                      struct systemd_properties *properties) {
    /* The engine ends its containers, also when the machine goes down: systemd's default would do so beside
     * it. */
    systemd_property_add(properties, "DefaultDependencies", "b", "false");
    systemd_property_add(properties, "CollectMode", "s", "inactive-or-failed");
    TRY(systemd_properties_from_annotations(annotations, properties));
    static const char *const always[] = {
        "Delegate", "CPUAccounting", "MemoryAccounting", "IOAccounting", "TasksAccounting",
    };
    for (size_t i = 0; i < sizeof always / sizeof always[0]; i++)
        systemd_property_add(properties, always[i], "b", "true");
    /* A user's manager may not attach device programs. */
    return systemd_properties_from_resources(resources, NULL, !scope->user_manager, properties);
}

/* The cgroup where init is now, as this process sees it. */
static struct error *directory_adopt(struct cgroup *cgroup, pid_t pid) {
    memory_owned char *mounts = cgroup_file_read("/proc/self", "mountinfo");
    memory_owned char *process = text_formatted("/proc/%d", (int)pid);
    memory_owned char *its = cgroup_file_read(process, "cgroup");
    if (mounts == NULL || its == NULL)
        return error_system(errno, "read", "%s/cgroup", process);
    cgroup_hierarchies_owned struct cgroup_hierarchies hierarchies = {0};
    cgroup_hierarchies_parse(CGROUP_BASE, mounts, its, &hierarchies);
    const char *found = hierarchies.count == 0 ? "" : hierarchies.items[hierarchies.count - 1].own;
    const char *name = strrchr(found, '/');
    /* runc #3780: a scope of that name which is another's left the container where it was. */
    if (name == NULL || strcmp(name + 1, cgroup->scope->unit) != 0)
        return error_new(ERROR_UNAVAILABLE, "systemd has made %s, but the container is in cgroup %s",
                         cgroup->scope->unit, its);
    memory_replace_string(&cgroup->directories[0].path, found);
    return NULL;
}

struct error *cgroup_scope_start(struct cgroup *cgroup, const char *container_id, pid_t pid,
                                 const struct oci_resources *resources, const struct string_map *annotations,
                                 struct string_list *created) {
    struct systemd_scope *scope = cgroup->scope;
    request_owned struct systemd_request request = request_for(scope, SYSTEMD_START);
    memory_owned char *description = text_formatted("pinfold container %s", container_id);
    request.slice = scope->slice;
    request.description = description;
    request.pid = (uint32_t)pid;
    TRY(scope_properties(scope, resources, annotations, &request.properties));
    memory_owned char *error_name = NULL;
    struct error *error = systemd_ask(&request, &error_name);
    if (error != NULL) {
        if (error_name != NULL && strcmp(error_name, UNIT_EXISTS) == 0)
            string_list_free(created); /* what was intended is another's */
        return error_context(error, "systemd scope %s (linux.cgroupsPath)", scope->unit);
    }
    TRY(directory_adopt(cgroup, pid));
    string_list_free(created);
    string_list_append(created, cgroup->directories[0].path);
    return NULL;
}

struct error *cgroup_scope_stop(const struct cgroup *cgroup) {
    if (cgroup == NULL || cgroup->scope == NULL)
        return NULL;
    request_owned struct systemd_request request = request_for(cgroup->scope, SYSTEMD_STOP);
    return error_context(ask(&request), "systemd scope %s", cgroup->scope->unit);
}

struct error *systemd_attach(const struct cgroup *cgroup, pid_t pid) {
    request_owned struct systemd_request request = request_for(cgroup->scope, SYSTEMD_ATTACH);
    request.pid = (uint32_t)pid;
    return error_context(ask(&request), "systemd scope %s", cgroup->scope->unit);
}

struct error *cgroup_update(const struct cgroup *cgroup, const struct oci_resources *resources) {
    if (cgroup->scope != NULL) {
        const char *directory = cgroup->directories[0].path;
        /* What is refused is refused before anything is changed. */
        if (resources->memory != NULL)
            TRY(cgroup_v2_memory_check(directory, resources->memory));
        request_owned struct systemd_request request = request_for(cgroup->scope, SYSTEMD_SET);
        TRY(systemd_properties_from_resources(resources, directory, !cgroup->scope->user_manager,
                                              &request.properties));
        if (request.properties.items_count > 0)
            TRY(error_context(ask(&request), "systemd scope %s", cgroup->scope->unit));
    }
    /* Afterwards: systemd has written what it rounds. */
    return cgroup_apply(cgroup, resources);
}
