/* The files of cgroup v2 (Documentation/admin-guide/cgroup-v2.rst). */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "cgroup/internal.h"

#define LIMIT "linux.resources.memory.limit"

bool cgroup_unified_has(const char *directory, const char *controller) {
    memory_owned char *controllers = cgroup_file_read(directory, "cgroup.controllers");
    return controllers != NULL && cgroup_word_in(controllers, " ", controller);
}

char *cgroup_unified_top(const char *path) {
    char *top = memory_copy_string(path);
    bool unified = false;
    if (!cgroup_path_is_cgroup(path, &unified) || !unified)
        return top;
    struct stat here;
    if (stat(path, &here) < 0)
        return top;
    while (strcmp(top, "/") != 0) {
        char *parent = cgroup_path_parent(top);
        struct stat above;
        if (stat(parent, &above) < 0 || above.st_dev != here.st_dev) {
            free(parent);
            break;
        }
        free(top);
        top = parent;
    }
    return top;
}

static void enable_in(const char *directory, const char *wanted) {
    memory_owned char *available = cgroup_file_read(directory, "cgroup.controllers");
    memory_owned char *enabled = cgroup_file_read(directory, "cgroup.subtree_control");
    if (available == NULL || enabled == NULL)
        return;
    text_owned struct text all = {0};
    string_list_owned struct string_list missing = {0};
    char *rest = available;
    for (char *word; (word = strsep(&rest, " ")) != NULL;) {
        if (word[0] == '\0' || cgroup_word_in(enabled, " ", word))
            continue;
        if (wanted != NULL && !cgroup_word_in(wanted, " ", word))
            continue;
        text_format(&all, "%s+%s", all.length == 0 ? "" : " ", word);
        string_list_append_owned(&missing, text_formatted("+%s", word));
    }
    if (missing.count == 0)
        return;
    struct error *error = cgroup_file_write(directory, "cgroup.subtree_control", text_string(&all));
    if (error == NULL)
        return;
    error_ignore(error);
    /* All or nothing; one of them may be the one that cannot be (cpu with real-time tasks about: EINVAL). */
    for (size_t i = 0; i < missing.count; i++)
        error_ignore(cgroup_file_write(directory, "cgroup.subtree_control", missing.items[i]));
}

void cgroup_unified_enable(const char *top, const char *leaf, const char *wanted) {
    size_t length = strlen(top);
    if (strncmp(leaf, top, length) != 0 || leaf[length] != '/')
        return;
    memory_owned char *directory = memory_copy_string(leaf);
    for (char *slash = directory + length; slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        enable_in(directory, wanted);
        *slash = '/';
    }
}

struct error *cgroup_v2_memory_check(const char *directory, const struct oci_memory *memory) {
    if (!cgroup_wanted(memory->limit) || memory->limit.value == -1 || !memory->check_before_update.set ||
        !memory->check_before_update.value)
        return NULL;
    memory_owned char *usage = cgroup_file_read(directory, "memory.current");
    if (usage == NULL)
        return error_system(errno, "read", "%s/memory.current", directory);
    if (strtoll(usage, NULL, 10) > memory->limit.value)
        return error_new(ERROR_INVALID,
                         LIMIT ": %" PRId64
                               " is below the %s bytes in use, and checkBeforeUpdate asks to refuse that",
                         memory->limit.value, usage);
    return NULL;
}

struct error *cgroup_v2_memory(const char *directory, const struct oci_memory *memory) {
    memory_owned char *swap = NULL;
    TRY(cgroup_swap_beyond_limit(memory, &swap));
    if (memory->disable_oom_killer.set && memory->disable_oom_killer.value)
        return error_new(
            ERROR_UNAVAILABLE,
            "linux.resources.memory.disableOOMKiller: cgroup v2 cannot switch the OOM killer off");
    if (memory->swappiness.set)
        return error_new(ERROR_UNAVAILABLE, "linux.resources.memory.swappiness: cgroup v2 has no swappiness");
    TRY(cgroup_v2_memory_check(directory, memory));
    bool limit = cgroup_wanted(memory->limit);
    /* kernel and kernelTCP are part of memory.max. */
    cgroup_settings_owned struct cgroup_settings settings = {0};
    if (swap != NULL && (strcmp(swap, "max") != 0 || cgroup_file_exists(directory, "memory.swap.max")))
        cgroup_settings_add(&settings, "linux.resources.memory.swap", "memory", "memory.swap.max",
                            memory_copy_string(swap));
    if (limit) {
        char *value = NULL;
        TRY(cgroup_limit_text(LIMIT, memory->limit.value, "max", &value));
        cgroup_settings_add(&settings, LIMIT, "memory", "memory.max", value);
    }
    if (cgroup_wanted(memory->reservation)) {
        char *value = NULL;
        TRY(cgroup_limit_text("linux.resources.memory.reservation", memory->reservation.value, "max",
                              &value));
        cgroup_settings_add(&settings, "linux.resources.memory.reservation", "memory", "memory.low", value);
    }
    return cgroup_settings_write(&settings, directory);
}

/* "QUOTA PERIOD"; a part that is not given keeps the value that the kernel has. */
static struct error *cpu_max_text(const char *directory, const struct oci_cpu *cpu, char **out) {
    char *quota = NULL;
    if (cgroup_wanted(cpu->quota)) {
        TRY(cgroup_limit_text("linux.resources.cpu.quota", cpu->quota.value, "max", &quota));
    } else {
        quota = cgroup_file_read(directory, "cpu.max");
        if (quota == NULL)
            return error_system(errno, "read", "%s/cpu.max", directory);
        quota[strcspn(quota, " ")] = '\0';
    }
    if (cgroup_wanted_unsigned(cpu->period))
        *out = text_formatted("%s %" PRIu64, quota, cpu->period.value);
    else
        *out = memory_copy_string(quota);
    free(quota);
    return NULL;
}

struct error *cgroup_v2_cpu(const char *directory, const struct oci_cpu *cpu) {
    if (cgroup_wanted(cpu->realtime_runtime) || cgroup_wanted_unsigned(cpu->realtime_period))
        return error_new(ERROR_UNAVAILABLE,
                         "linux.resources.cpu.realtime%s: cgroup v2 has no real-time limits",
                         cgroup_wanted(cpu->realtime_runtime) ? "Runtime" : "Period");
    cgroup_settings_owned struct cgroup_settings settings = {0};
    if (cgroup_wanted_unsigned(cpu->shares))
        cgroup_settings_add(&settings, "linux.resources.cpu.shares", "cpu", "cpu.weight",
                            text_formatted("%" PRIu64, cgroup_weight_from_shares(cpu->shares.value)));
    if (cgroup_wanted(cpu->quota) || cgroup_wanted_unsigned(cpu->period)) {
        char *value = NULL;
        TRY(cpu_max_text(directory, cpu, &value));
        cgroup_settings_add(
            &settings, cgroup_wanted(cpu->quota) ? "linux.resources.cpu.quota" : "linux.resources.cpu.period",
            "cpu", "cpu.max", value);
    }
    if (cpu->burst.set && (cpu->burst.value != 0 || cgroup_file_exists(directory, "cpu.max.burst")))
        cgroup_settings_add(&settings, "linux.resources.cpu.burst", "cpu", "cpu.max.burst",
                            text_formatted("%" PRIu64, cpu->burst.value));
    if (cpu->idle.set && (cpu->idle.value != 0 || cgroup_file_exists(directory, "cpu.idle")))
        cgroup_settings_add(&settings, "linux.resources.cpu.idle", "cpu", "cpu.idle",
                            text_formatted("%" PRId64, cpu->idle.value));
    return cgroup_settings_write(&settings, directory);
}

/* Of the cgroup.* files only these are limits; procs, kill, type and their like would move or kill processes.
 */
static bool unified_key_is_core_limit(const char *key) {
    return strcmp(key, "cgroup.max.depth") == 0 || strcmp(key, "cgroup.max.descendants") == 0 ||
           strcmp(key, "cgroup.pressure") == 0;
}

static struct error *unified_key_check(const char *directory, const char *key) {
    const char *dot = strchr(key, '.');
    if (dot == NULL || dot == key || dot[1] == '\0' || strchr(key, '/') != NULL)
        return error_new(
            ERROR_INVALID,
            "linux.resources.unified: \"%s\" is not allowed; the name of a cgroup v2 file, such as "
            "memory.high, is",
            key);
    if (strncmp(key, "cgroup.", 7) == 0) {
        if (unified_key_is_core_limit(key))
            return NULL;
        return error_new(
            ERROR_INVALID,
            "linux.resources.unified: \"%s\" is not allowed; of the cgroup files, cgroup.max.depth, "
            "cgroup.max.descendants and cgroup.pressure are",
            key);
    }
    memory_owned char *controller = memory_copy_string(key);
    controller[dot - key] = '\0';
    if (!cgroup_unified_has(directory, controller))
        return error_new(
            ERROR_UNAVAILABLE,
            "invalid configuration: linux.resources.unified.%s needs the %s controller, which cgroup v2 "
            "does not have here",
            key, controller);
    return NULL;
}

struct error *cgroup_v2_unified(const char *directory, const struct string_map *unified) {
    for (size_t i = 0; i < unified->count; i++)
        TRY(unified_key_check(directory, unified->items[i].key));
    for (size_t i = 0; i < unified->count; i++) {
        const char *key = unified->items[i].key;
        /* Files such as io.max take one line a write. */
        memory_owned char *lines =
            memory_copy_string(unified->items[i].value != NULL ? unified->items[i].value : "");
        char *rest = lines;
        for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
            if (line[0] == '\0')
                continue;
            struct error *error = cgroup_file_write(directory, key, line);
            if (error != NULL)
                return error_context(error, "linux.resources.unified.%s", key);
        }
    }
    return NULL;
}
