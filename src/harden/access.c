/* What may be read and written: the mounts that the policy leaves writable, and the plan for Landlock. */
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "harden/parts.h"
#include "policy/match.h"
#include "policy/path_glob.h"

/* --- mounts --- */

static bool is_below(const char *path, const char *const *places) {
    for (; *places != NULL; places++)
        if (match_path_within(path, *places))
            return true;
    return false;
}

/* The kernel's file systems and the devices: every container has them, and the rules for them are elsewhere.
 */
static bool is_system_mount(const struct oci_mount *mount) {
    static const char *const places[] = {"/proc", "/sys", "/dev", NULL};
    memory_owned char *destination = match_path_clean(mount->destination);
    return is_below(destination, places);
}

bool harden_mount_is_read_only(const struct oci_mount *mount) {
    bool read_only = false;
    for (size_t i = 0; i < mount->options.count; i++) {
        const char *option = mount->options.items[i];
        if (strcmp(option, "ro") == 0 || strcmp(option, "rro") == 0)
            read_only = true;
        else if (strcmp(option, "rw") == 0 || strcmp(option, "rrw") == 0)
            read_only = false;
    }
    return read_only;
}

char *harden_line_path(const struct hardened *hardened, const struct facts *facts, const char *line) {
    const char *home = facts->container_home;
    const char *cwd = hardened->config->process != NULL ? hardened->config->process->cwd : NULL;
    /* Both are the image's to choose, and so must not stand for everything, mounts included. */
    bool whole = strcmp(line, "@cwd") == 0 || strcmp(line, "~") == 0;
    const char *chosen = line[0] == '@' ? cwd : home;
    if (whole) {
        memory_owned char *path = chosen != NULL && chosen[0] == '/' ? match_path_clean(chosen) : NULL;
        return path != NULL && strcmp(path, "/") != 0 ? memory_copy_string(path) : NULL;
    }
    if (line[0] == '~' && line[1] == '/' && home != NULL && home[0] == '/') {
        memory_owned char *path = text_formatted("%s%s", home, line + 1);
        return match_path_clean(path);
    }
    return line[0] == '/' ? match_path_clean(line) : NULL;
}

/* Does a line of the list hold the whole place? */
static bool is_listed(const struct hardened *hardened, const struct facts *facts,
                      const struct string_list *lines, const char *place) {
    for (size_t i = 0; i < lines->count; i++) {
        memory_owned char *path = harden_line_path(hardened, facts, lines->items[i]);
        if (path != NULL && match_path_within(place, path))
            return true;
    }
    return false;
}

/* Where the mount will be. */
static char *mount_place(const struct hardened *hardened, size_t index) {
    const struct mount_fact *fact = hardened->mount_sources[index];
    return fact != NULL && fact->place != NULL
               ? memory_copy_string(fact->place)
               : match_path_clean(hardened->config->mounts[index].destination);
}

void harden_mount_make_read_only(struct oci_mount *mount) {
    for (size_t i = mount->options.count; i > 0; i--)
        if (strcmp(mount->options.items[i - 1], "rw") == 0 || strcmp(mount->options.items[i - 1], "rrw") == 0)
            string_list_remove(&mount->options, i - 1);
    string_list_append(&mount->options, string_list_contains(&mount->options, "rbind") ? "rro" : "ro");
}

void harden_add_rebind(struct hardened *hardened, const char *path, enum rebind_kind kind) {
    for (size_t i = 0; i < hardened->rebinds_count; i++)
        if (strcmp(hardened->rebinds[i].path, path) == 0)
            return;
    hardened->rebinds =
        memory_resize(hardened->rebinds, hardened->rebinds_count + 1, sizeof *hardened->rebinds);
    hardened->rebinds[hardened->rebinds_count++] = (struct rebind){memory_copy_string(path), kind};
}

/* Lines that name a part of a mount that is otherwise read-only. */
static void reopen_parts(const struct policy *policy, const struct facts *facts, const char *place,
                         struct hardened *hardened) {
    const struct string_list *lines = &policy->writable.values;
    for (size_t i = 0; i < lines->count; i++) {
        memory_owned char *path = harden_line_path(hardened, facts, lines->items[i]);
        if (path != NULL && strcmp(path, place) != 0 && match_path_within(path, place))
            harden_add_rebind(hardened, path, REBIND_WRITABLE);
    }
}

bool harden_is_learning(const struct policy *policy) {
    return policy->on_denied_action == POLICY_DENIED_LOG_ONLY;
}

void harden_writable_mounts(const struct policy *policy, const struct facts *facts,
                            struct hardened *hardened) {
    if (policy->filesystem_default != POLICY_ACCESS_DENY || harden_is_learning(policy) ||
        string_list_contains(&policy->writable.values, "@mounts"))
        return;
    for (size_t i = 0; i < hardened->config->mounts_count; i++) {
        struct oci_mount *mount = &hardened->config->mounts[i];
        /* NULL: hardening added it. */
        if (hardened->mount_sources[i] == NULL || is_system_mount(mount) || harden_mount_is_read_only(mount))
            continue;
        memory_owned char *place = mount_place(hardened, i);
        if (is_listed(hardened, facts, &policy->writable.values, place) ||
            is_listed(hardened, facts, &policy->scratch.values, place))
            continue;
        harden_mount_make_read_only(mount);
        reopen_parts(policy, facts, place, hardened);
        memory_owned char *remedy = harden_remedy("filesystem", "writable", place);
        harden_note(hardened, CHANGE_SET, "mounts", place, NULL, "filesystem.writable", remedy,
                    "%s is read-only: filesystem.writable names neither it nor @mounts", place);
    }
}

/* --- the plan --- */

static void append_once(struct string_list *list, const char *path) {
    if (!string_list_contains(list, path))
        string_list_append(list, path);
}

/* A rule holds for what is mounted below, too. */
static void append_place(struct string_list *list, const char *path) {
    for (size_t i = 0; i < list->count; i++)
        if (match_path_within(path, list->items[i]))
            return;
    string_list_append(list, path);
}

static void plan_writable(const struct hardened *hardened, struct access_plan *plan) {
    const struct oci_config *config = hardened->config;
    if (config->root == NULL || !config->root->readonly)
        append_once(&plan->writable, "/");
    for (size_t i = 0; i < hardened->scratch_count; i++)
        append_place(&plan->writable, hardened->scratch[i].path);
    for (size_t i = 0; i < hardened->rebinds_count; i++)
        if (hardened->rebinds[i].kind == REBIND_WRITABLE)
            append_place(&plan->writable, hardened->rebinds[i].path);
    for (size_t i = 0; i < config->mounts_count; i++) {
        memory_owned char *place = mount_place(hardened, i);
        if (harden_mount_is_read_only(&config->mounts[i]) || match_path_within(place, "/proc"))
            continue;
        /* A queue that is opened by its name has a path in this file system alone, and none above it. */
        if (config->mounts[i].type != NULL && strcmp(config->mounts[i].type, "mqueue") == 0)
            append_once(&plan->writable, place);
        else
            append_place(&plan->writable, place);
    }
    /* Also where it is a directory of the root: what is made there is done before Landlock. */
    if (!string_list_contains(&plan->writable, "/dev"))
        append_once(&plan->writable_files, "/dev");
    append_once(&plan->writable_files, "/proc");
}

static fallible add_readable(const struct policy *policy, const struct facts *facts, size_t index,
                             const struct hardened *hardened, struct access_plan *plan) {
    const char *line = policy->readable.values.items[index];
    const struct glob_fact *glob = facts_glob(facts, line);
    if (glob == NULL) {
        memory_owned char *path = harden_line_path(hardened, facts, line);
        if (path != NULL)
            append_once(&plan->readable, path);
        return NULL;
    }
    if (glob->incomplete)
        return error_new(
            ERROR_REFUSED,
            "policy.glob.too_wide: filesystem.readable: %s matches or searches more than is looked at (%s); "
            "name a directory",
            line, policy_list_origin(&policy->readable, index));
    for (size_t i = 0; i < glob->matches.count; i++)
        append_once(&plan->readable, glob->matches.items[i]);
    return NULL;
}

/* Only what the policy says less of than everything needs rules for reading. What is writable is readable
 * too: a workload could rename what it may not read to where it may, and what an exec opens anew by its path.
 */
static fallible plan_readable(const struct policy *policy, const struct facts *facts,
                              const struct hardened *hardened, struct access_plan *plan) {
    const struct oci_config *config = hardened->config;
    const bool mounts = string_list_contains(&policy->readable.values, "@mounts");
    plan->image = string_list_contains(&policy->readable.values, "@image");
    for (size_t i = 0; i < policy->readable.values.count; i++)
        TRY(add_readable(policy, facts, i, hardened, plan));
    append_once(&plan->readable, "/proc");
    append_once(&plan->readable, "/sys");
    append_once(&plan->readable, "/dev");
    if (hardened->inside)
        append_once(&plan->readable, HARDEN_INSIDE_DIRECTORY);
    for (size_t i = 0; i < config->mounts_count; i++) {
        const struct mount_fact *fact = hardened->mount_sources[i];
        if (is_system_mount(&config->mounts[i]))
            continue;
        memory_owned char *place = mount_place(hardened, i);
        bool open = mounts || fact == NULL || fact->engine_made ||
                    !harden_mount_is_read_only(&config->mounts[i]) ||
                    is_listed(hardened, facts, &policy->readable.values, place);
        append_once(open ? &plan->readable : &plan->unreadable, place);
    }
    plan->reads = !plan->image || plan->unreadable.count > 0;
    if (!plan->reads) {
        string_list_free(&plan->readable);
        plan->image = false;
    }
    return NULL;
}

static bool is_best_effort(const struct policy *policy, const char *name) {
    return string_list_contains(&policy->best_effort.values, name);
}

#define MISSING "Landlock is not there: the kernel is older than 5.19, or was started without it"

static fallible plan_degrade(const struct policy *policy, const struct access_plan *plan,
                             struct hardened *hardened) {
    if (!plan->reads) {
        harden_note(hardened, CHANGE_DEGRADED, "landlock", "landlock", "mechanism.degraded",
                    "built-in: second layer", NULL, MISSING "; what is read-only is so by its mount alone");
        return NULL;
    }
    if (!is_best_effort(policy, "landlock") && !is_best_effort(policy, "filesystem.readable"))
        return error_new(ERROR_REFUSED,
                         "mechanism.unavailable: filesystem.readable (%s) cannot be enforced: " MISSING
                         "; to run without it: enforcement: {best_effort: [filesystem.readable]}",
                         policy_origin(policy, POLICY_FILESYSTEM_READABLE));
    harden_note(hardened, CHANGE_DEGRADED, "landlock", "filesystem.readable", "mechanism.degraded",
                "enforcement.best_effort", NULL, MISSING "; everything in the container may be read");
    return NULL;
}

fallible harden_access(const struct policy *policy, const struct facts *facts, struct hardened *hardened) {
    if (harden_is_learning(policy))
        return NULL;
    struct access_plan *plan = memory_zeroed(sizeof *plan);
    plan_writable(hardened, plan);
    struct error *error = plan_readable(policy, facts, hardened, plan);
    /* Each exec has a domain of its own, and a process looks into no other domain: a debugger that is started
     * by exec could not attach. */
    const bool wanted = plan->reads || !policy->ptrace;
    if (error == NULL && wanted && !facts->has_landlock)
        error = plan_degrade(policy, plan, hardened);
    bool kept = error == NULL && wanted && facts->has_landlock;
    if (kept)
        hardened->access = plan;
    else
        access_plan_free(plan);
    return error;
}
