/* Each resource to the hierarchy where its controller lives. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "cgroup/internal.h"

static struct error *apply_memory(const struct cgroup *cgroup, const struct oci_memory *memory) {
    const struct {
        const char *field;
        bool wanted;
    } fields[] = {
        {"linux.resources.memory.limit", cgroup_wanted(memory->limit)},
        {"linux.resources.memory.reservation", cgroup_wanted(memory->reservation)},
        {"linux.resources.memory.swap", cgroup_wanted(memory->swap)},
        {"linux.resources.memory.kernelTCP", cgroup_wanted(memory->kernel_tcp)},
        {"linux.resources.memory.swappiness", memory->swappiness.set},
        {"linux.resources.memory.disableOOMKiller",
         memory->disable_oom_killer.set && memory->disable_oom_killer.value},
    };
    struct cgroup_place place;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (!fields[i].wanted)
            continue;
        memory_owned char *swap = NULL;
        TRY(cgroup_swap_beyond_limit(memory, &swap));
        TRY(cgroup_place_need(cgroup, fields[i].field, "memory", &place));
        return place.unified ? cgroup_v2_memory(place.directory, memory)
                             : cgroup_v1_memory(place.directory, memory);
    }
    /* Only values that ask for what a missing controller gives anyhow, except an OOM killer to be put back
     * on. */
    if (memory->disable_oom_killer.set && cgroup_place_find(cgroup, "memory", &place) && !place.unified)
        return cgroup_v1_memory(place.directory, memory);
    return NULL;
}

static struct error *apply_cpu(const struct cgroup *cgroup, const struct oci_cpu *cpu) {
    struct cgroup_place place;
    const char *field = cgroup_wanted_unsigned(cpu->shares)            ? "linux.resources.cpu.shares"
                        : cgroup_wanted(cpu->quota)                    ? "linux.resources.cpu.quota"
                        : cgroup_wanted_unsigned(cpu->period)          ? "linux.resources.cpu.period"
                        : cpu->burst.set                               ? "linux.resources.cpu.burst"
                        : cgroup_wanted(cpu->realtime_runtime)         ? "linux.resources.cpu.realtimeRuntime"
                        : cgroup_wanted_unsigned(cpu->realtime_period) ? "linux.resources.cpu.realtimePeriod"
                        : cpu->idle.set                                ? "linux.resources.cpu.idle"
                                                                       : NULL;
    if (field != NULL) {
        bool only_zeros = !cgroup_wanted_unsigned(cpu->shares) && !cgroup_wanted(cpu->quota) &&
                          !cgroup_wanted_unsigned(cpu->period) && !cgroup_wanted_unsigned(cpu->burst) &&
                          !cgroup_wanted(cpu->realtime_runtime) &&
                          !cgroup_wanted_unsigned(cpu->realtime_period) && !cgroup_wanted(cpu->idle);
        if (!only_zeros || cgroup_place_find(cgroup, "cpu", &place)) {
            TRY(cgroup_place_need(cgroup, field, "cpu", &place));
            TRY(place.unified ? cgroup_v2_cpu(place.directory, cpu) : cgroup_v1_cpu(place.directory, cpu));
        }
    }
    const struct {
        const char *field;
        const char *file;
        const char *value;
    } sets[] = {{"linux.resources.cpu.cpus", "cpuset.cpus", cpu->cpus},
                {"linux.resources.cpu.mems", "cpuset.mems", cpu->mems}};
    cgroup_settings_owned struct cgroup_settings settings = {0};
    for (size_t i = 0; i < 2; i++) {
        if (sets[i].value == NULL || sets[i].value[0] == '\0')
            continue;
        TRY(cgroup_place_need(cgroup, sets[i].field, "cpuset", &place));
        cgroup_settings_add(&settings, sets[i].field, "cpuset", sets[i].file,
                            memory_copy_string(sets[i].value));
    }
    return settings.count == 0 ? NULL : cgroup_settings_write(&settings, place.directory);
}

static struct error *apply_pids(const struct cgroup *cgroup, const struct oci_pids *pids) {
    static const char field[] = "linux.resources.pids.limit";
    if (!pids->limit.set)
        return NULL;
    struct cgroup_place place;
    memory_owned char *value = NULL;
    TRY(cgroup_limit_text(field, pids->limit.value, "max", &value));
    /* systemd cannot say 0 and would make it something else at its next reload (runc #4949). */
    bool zero_under_systemd = cgroup->scope != NULL && pids->limit.value == 0;
    if (pids->limit.value == -1 && !cgroup_place_find(cgroup, "pids", &place))
        return NULL;
    TRY(cgroup_place_need(cgroup, field, "pids", &place));
    /* The kernel takes no number beyond the highest possible pid, 4194304. */
    bool unlimited = pids->limit.value == -1 || pids->limit.value > 4194304;
    cgroup_settings_owned struct cgroup_settings settings = {0};
    cgroup_settings_add(&settings, field, "pids", "pids.max",
                        memory_copy_string(unlimited            ? "max"
                                           : zero_under_systemd ? "1"
                                                                : value));
    TRY(cgroup_settings_write(&settings, place.directory));
    return unlimited || zero_under_systemd
               ? NULL
               : cgroup_file_expect(field, place.directory, "pids.max", (uint64_t)pids->limit.value);
}

/* "2MB", "1GB", "64KB": it becomes part of a file's name, so nothing else gets through. */
static bool page_size_valid(const char *size) {
    if (size == NULL || size[0] < '1' || size[0] > '9')
        return false;
    size_t digits = strspn(size, "0123456789");
    return digits <= 8 && (strcmp(size + digits, "KB") == 0 || strcmp(size + digits, "MB") == 0 ||
                           strcmp(size + digits, "GB") == 0);
}

static struct error *apply_hugepages(const struct cgroup *cgroup, const struct oci_resources *resources) {
    for (size_t i = 0; i < resources->hugepage_limits_count; i++) {
        const struct oci_hugepage_limit *limit = &resources->hugepage_limits[i];
        memory_owned char *field = text_formatted("linux.resources.hugepageLimits[%zu]", i);
        if (!page_size_valid(limit->page_size))
            return error_new(ERROR_INVALID,
                             "%s.pageSize: \"%s\" is not allowed; a number followed by KB, MB or GB is",
                             field, limit->page_size != NULL ? limit->page_size : "");
        struct cgroup_place place;
        TRY(cgroup_place_need(cgroup, field, "hugetlb", &place));
        const char *ending = place.unified ? "max" : "limit_in_bytes";
        memory_owned char *file = text_formatted("hugetlb.%s.%s", limit->page_size, ending);
        memory_owned char *reserved = text_formatted("hugetlb.%s.rsvd.%s", limit->page_size, ending);
        cgroup_settings_owned struct cgroup_settings settings = {0};
        cgroup_settings_add(&settings, field, "hugetlb", file, text_formatted("%" PRIu64, limit->limit));
        if (cgroup_file_exists(place.directory, reserved))
            cgroup_settings_add(&settings, field, "hugetlb", reserved,
                                text_formatted("%" PRIu64, limit->limit));
        TRY(cgroup_settings_write(&settings, place.directory));
    }
    return NULL;
}

static struct error *apply_devices(const struct cgroup *cgroup, const struct oci_resources *resources) {
    if (resources->devices_count == 0)
        return NULL;
    for (size_t i = 0; i < cgroup->count; i++)
        if (cgroup_word_in(cgroup->directories[i].controllers, ",", "devices"))
            return cgroup_v1_devices(cgroup->directories[i].path, resources->devices,
                                     resources->devices_count);
    /* Without a cgroup, or for a user who may not load a device program: a user namespace has no mknod, and
     * what its owner mounts opens no device. So nothing opens but the nodes that were made or bound for
     * linux.devices, with the rights of the caller. */
    if (cgroup->count == 0 || cgroup->rootless)
        return NULL;
    const struct cgroup_directory *unified = cgroup_unified_directory(cgroup);
    if (unified != NULL)
        return cgroup_v2_devices(unified->path, resources->devices, resources->devices_count);
    return error_new(ERROR_UNAVAILABLE,
                     "linux.resources.devices needs the devices controller, which no mounted cgroup "
                     "hierarchy of this machine has");
}

static struct error *apply_unified(const struct cgroup *cgroup, const struct string_map *unified) {
    if (unified->count == 0)
        return NULL;
    const struct cgroup_directory *directory = cgroup_unified_directory(cgroup);
    if (directory == NULL)
        return error_new(
            ERROR_UNAVAILABLE,
            "invalid configuration: linux.resources.unified.%s needs cgroup v2, which is not mounted or not "
            "writable here",
            unified->items[0].key);
    for (size_t i = 0; i < unified->count; i++) {
        /* A controller that is not enabled yet. */
        memory_owned char *controller = memory_copy_string(unified->items[i].key);
        controller[strcspn(controller, ".")] = '\0';
        if (!cgroup_unified_has(directory->path, controller) && strcmp(controller, "cgroup") != 0) {
            memory_owned char *top = cgroup_unified_top(directory->path);
            if (cgroup_unified_has(top, controller))
                cgroup_unified_enable(top, directory->path, controller);
        }
    }
    return cgroup_v2_unified(directory->path, unified);
}

struct error *cgroup_apply(const struct cgroup *cgroup, const struct oci_resources *resources) {
    if (resources == NULL)
        return NULL;
    if (resources->memory != NULL)
        TRY(apply_memory(cgroup, resources->memory));
    if (resources->cpu != NULL)
        TRY(apply_cpu(cgroup, resources->cpu));
    if (resources->pids != NULL)
        TRY(apply_pids(cgroup, resources->pids));
    if (resources->block_io != NULL && cgroup_block_io_wanted(resources->block_io)) {
        struct cgroup_place place;
        TRY(cgroup_place_need(cgroup, "linux.resources.blockIO", "blkio", &place));
        TRY(place.unified ? cgroup_v2_block_io(place.directory, resources->block_io)
                          : cgroup_v1_block_io(place.directory, resources->block_io));
    }
    TRY(apply_hugepages(cgroup, resources));
    if (resources->network != NULL)
        TRY(cgroup_apply_network(cgroup, resources->network));
    TRY(cgroup_apply_rdma(cgroup, resources->rdma, resources->rdma_count));
    TRY(apply_devices(cgroup, resources));
    return apply_unified(cgroup, &resources->unified);
}
