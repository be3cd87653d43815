/* linux.intelRdt: a class of service of the resctrl file system (config-linux.md, "IntelRdt"; the kernel's
 * Documentation/filesystems/resctrl.rst), which limits and counts what a container uses of cache and memory
 * bandwidth. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/memory.h"
#include "cgroup/internal.h"

#define RDT_MOUNT "/sys/fs/resctrl"
#define RDT_MAGIC 0x07655821 /* RDTGROUP_SUPER_MAGIC, which Debian 12's headers lack */

/* "/" is the class of everybody who is in no other. */
static char *class_directory(const char *mount, const struct oci_intel_rdt *rdt, const char *id) {
    if (rdt->clos_id != NULL && strcmp(rdt->clos_id, "/") == 0)
        return memory_copy_string(mount);
    return text_formatted("%s/%s", mount, rdt->clos_id != NULL ? rdt->clos_id : id);
}

static bool wants_monitoring(const struct oci_intel_rdt *rdt) {
    return rdt->enable_monitoring || rdt->enable_cmt || rdt->enable_mbm;
}

/* What is to be written to schemata, a line each: either `schemata`, or the two single ones. */
static void schemata_lines(const struct oci_intel_rdt *rdt, struct string_list *lines) {
    for (size_t i = 0; i < rdt->schemata.count; i++)
        string_list_append(lines, rdt->schemata.items[i]);
    if (lines->count > 0)
        return;
    if (rdt->l3_cache_schema != NULL)
        string_list_append(lines, rdt->l3_cache_schema);
    if (rdt->memory_bandwidth_schema != NULL)
        string_list_append(lines, rdt->memory_bandwidth_schema);
}

/* The kernel prints lines with blanks before them ("    L3:0=f;1=f"). */
static bool schemata_has(const char *content, const char *wanted) {
    memory_owned char *copy = memory_copy_string(content);
    char *rest = copy;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;)
        if (strcmp(line + strspn(line, " "), wanted) == 0)
            return true;
    return false;
}

static struct error *schemata_write(const char *directory, const struct string_list *lines) {
    text_owned struct text all = {0};
    for (size_t i = 0; i < lines->count; i++)
        text_format(&all, "%s\n", lines->items[i]);
    return lines->count == 0
               ? NULL
               : error_context(cgroup_file_write(directory, "schemata", text_string(&all)), "linux.intelRdt");
}

struct error *cgroup_rdt_intent_in(const char *mount, const struct oci_intel_rdt *rdt, const char *id,
                                   struct string_list *would_create) {
    string_list_owned struct string_list lines = {0};
    schemata_lines(rdt, &lines);
    memory_owned char *directory = class_directory(mount, rdt, id);
    bool there = access(directory, F_OK) == 0;
    if (!there && rdt->clos_id != NULL && lines.count == 0)
        return error_new(
            ERROR_INVALID,
            "linux.intelRdt.closID: there is no class %s in %s, and no schema is given to make one",
            rdt->clos_id, mount);
    /* A class that is there belongs to others as well: it must say already what is asked for. */
    memory_owned char *content = there && lines.count > 0 ? cgroup_file_read(directory, "schemata") : NULL;
    for (size_t i = 0; there && strcmp(directory, mount) != 0 && i < lines.count; i++)
        if (content == NULL || !schemata_has(content, lines.items[i]))
            return error_new(ERROR_INVALID,
                             "linux.intelRdt: the class %s exists, and its schemata has no line %s",
                             directory, lines.items[i]);
    if (!there)
        string_list_append(would_create, directory);
    if (wants_monitoring(rdt))
        string_list_append_owned(would_create, text_formatted("%s/mon_groups/%s", directory, id));
    return NULL;
}

static struct error *pid_write(const char *directory, pid_t pid) {
    memory_owned char *number = text_formatted("%d", (int)pid);
    return error_context(cgroup_file_write(directory, "tasks", number), "linux.intelRdt");
}

struct error *cgroup_rdt_apply_in(const char *mount, const struct oci_intel_rdt *rdt, const char *id,
                                  const struct string_list *create, pid_t pid) {
    string_list_owned struct string_list lines = {0};
    schemata_lines(rdt, &lines);
    memory_owned char *directory = class_directory(mount, rdt, id);
    for (size_t i = 0; i < create->count; i++)
        if (mkdir(create->items[i], 0755) < 0 && errno != EEXIST)
            return error_context(error_system(errno, "mkdir", "%s", create->items[i]), "linux.intelRdt");
    if (strcmp(directory, mount) == 0 || string_list_contains(create, directory))
        TRY(schemata_write(directory, &lines));
    TRY(pid_write(directory, pid));
    if (!wants_monitoring(rdt))
        return NULL;
    memory_owned char *monitoring = text_formatted("%s/mon_groups/%s", directory, id);
    return pid_write(monitoring, pid);
}

/* resctrl is where everybody mounts it, or the field cannot be had. */
static struct error *rdt_need(void) {
    struct statfs system;
    if (statfs(RDT_MOUNT, &system) == 0 && system.f_type == RDT_MAGIC)
        return NULL;
    return error_new(ERROR_UNAVAILABLE,
                     "linux.intelRdt needs the resctrl file system, which is not mounted at " RDT_MOUNT);
}

struct error *cgroup_rdt_intent(const struct oci_intel_rdt *rdt, const char *id,
                                struct string_list *would_create) {
    TRY(rdt_need());
    return cgroup_rdt_intent_in(RDT_MOUNT, rdt, id, would_create);
}

struct error *cgroup_rdt_apply(const struct oci_intel_rdt *rdt, const char *id,
                               const struct string_list *create, pid_t pid) {
    return cgroup_rdt_apply_in(RDT_MOUNT, rdt, id, create, pid);
}

struct error *cgroup_rdt_update(const struct oci_intel_rdt *rdt, const char *id) {
    TRY(rdt_need());
    string_list_owned struct string_list lines = {0};
    schemata_lines(rdt, &lines);
    memory_owned char *directory = class_directory(RDT_MOUNT, rdt, id);
    return schemata_write(directory, &lines);
}

struct error *cgroup_rdt_remove(const struct string_list *created) {
    for (size_t i = created->count; i > 0; i--)
        if (rmdir(created->items[i - 1]) < 0 && errno != ENOENT)
            return error_system(errno, "rmdir", "%s (linux.intelRdt)", created->items[i - 1]);
    return NULL;
}
