/* The files of cgroup v1 (Documentation/admin-guide/cgroup-v1). */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "cgroup/internal.h"

#define LIMIT "linux.resources.memory.limit"
#define SWAP "linux.resources.memory.swap"

/* The kernel counts pages: what it holds is the number of bytes rounded down. */
static struct error *expect_bytes(const char *field, const char *directory, const char *file, int64_t bytes) {
    if (bytes == -1)
        return NULL;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    return cgroup_file_expect(field, directory, file, (uint64_t)bytes / page * page);
}

static struct error *memory_check_usage(const char *directory, int64_t limit) {
    memory_owned char *usage = cgroup_file_read(directory, "memory.usage_in_bytes");
    if (usage == NULL)
        return error_system(errno, "read", "%s/memory.usage_in_bytes", directory);
    if (strtoll(usage, NULL, 10) > limit)
        return error_new(ERROR_INVALID,
                         LIMIT ": %" PRId64
                               " is below the %s bytes in use, and checkBeforeUpdate asks to refuse that",
                         limit, usage);
    return NULL;
}

struct error *cgroup_v1_memory(const char *directory, const struct oci_memory *memory) {
    memory_owned char *beyond = NULL;
    TRY(cgroup_swap_beyond_limit(memory, &beyond));
    bool limit = cgroup_wanted(memory->limit);
    if (limit && memory->check_before_update.set && memory->check_before_update.value &&
        memory->limit.value != -1)
        TRY(memory_check_usage(directory, memory->limit.value));

    /* memsw must never be below the limit: going up it is to be written first, going down the limit is. */
    cgroup_settings_owned struct cgroup_settings settings = {0};
    if (limit) {
        char *value = NULL;
        TRY(cgroup_limit_text(LIMIT, memory->limit.value, "-1", &value));
        cgroup_settings_add(&settings, LIMIT, "memory", "memory.limit_in_bytes", value);
    }
    bool swap = cgroup_wanted(memory->swap);
    int64_t together = swap ? memory->swap.value : -1;
    /* Without swap accounting memsw is missing, and unlimited is what there is. */
    if (beyond != NULL && (together != -1 || cgroup_file_exists(directory, "memory.memsw.limit_in_bytes")))
        cgroup_settings_add(&settings, swap ? SWAP : LIMIT, "memory", "memory.memsw.limit_in_bytes",
                            text_formatted("%" PRId64, together));
    if (cgroup_wanted(memory->reservation)) {
        char *value = NULL;
        TRY(cgroup_limit_text("linux.resources.memory.reservation", memory->reservation.value, "-1", &value));
        cgroup_settings_add(&settings, "linux.resources.memory.reservation", "memory",
                            "memory.soft_limit_in_bytes", value);
    }
    if (cgroup_wanted(memory->kernel_tcp)) {
        char *value = NULL;
        TRY(cgroup_limit_text("linux.resources.memory.kernelTCP", memory->kernel_tcp.value, "-1", &value));
        cgroup_settings_add(&settings, "linux.resources.memory.kernelTCP", "memory",
                            "memory.kmem.tcp.limit_in_bytes", value);
    }
    /* memory.kernel is not written: kernels since 5.16 refuse it, and kernel memory is part of the limit. */
    if (memory->swappiness.set) {
        if (memory->swappiness.value > 100)
            return error_new(ERROR_INVALID,
                             "linux.resources.memory.swappiness: %" PRIu64 " is not allowed; 0 to 100 is",
                             memory->swappiness.value);
        cgroup_settings_add(&settings, "linux.resources.memory.swappiness", "memory", "memory.swappiness",
                            text_formatted("%" PRIu64, memory->swappiness.value));
    }
    if (memory->disable_oom_killer.set)
        cgroup_settings_add(&settings, "linux.resources.memory.disableOOMKiller", "memory",
                            "memory.oom_control",
                            memory_copy_string(memory->disable_oom_killer.value ? "1" : "0"));
    TRY(cgroup_settings_write(&settings, directory));

    if (limit)
        TRY(expect_bytes(LIMIT, directory, "memory.limit_in_bytes", memory->limit.value));
    if (swap)
        TRY(expect_bytes(SWAP, directory, "memory.memsw.limit_in_bytes", memory->swap.value));
    if (cgroup_wanted(memory->reservation))
        TRY(expect_bytes("linux.resources.memory.reservation", directory, "memory.soft_limit_in_bytes",
                         memory->reservation.value));
    return NULL;
}

struct error *cgroup_v1_cpu(const char *directory, const struct oci_cpu *cpu) {
    cgroup_settings_owned struct cgroup_settings settings = {0};
    if (cgroup_wanted_unsigned(cpu->shares))
        cgroup_settings_add(&settings, "linux.resources.cpu.shares", "cpu", "cpu.shares",
                            text_formatted("%" PRIu64, cpu->shares.value));
    if (cgroup_wanted_unsigned(cpu->period))
        cgroup_settings_add(&settings, "linux.resources.cpu.period", "cpu", "cpu.cfs_period_us",
                            text_formatted("%" PRIu64, cpu->period.value));
    if (cgroup_wanted(cpu->quota)) {
        char *value = NULL;
        TRY(cgroup_limit_text("linux.resources.cpu.quota", cpu->quota.value, "-1", &value));
        cgroup_settings_add(&settings, "linux.resources.cpu.quota", "cpu", "cpu.cfs_quota_us", value);
    }
    if (cpu->burst.set && (cpu->burst.value != 0 || cgroup_file_exists(directory, "cpu.cfs_burst_us")))
        cgroup_settings_add(&settings, "linux.resources.cpu.burst", "cpu", "cpu.cfs_burst_us",
                            text_formatted("%" PRIu64, cpu->burst.value));
    if (cgroup_wanted_unsigned(cpu->realtime_period))
        cgroup_settings_add(&settings, "linux.resources.cpu.realtimePeriod", "cpu", "cpu.rt_period_us",
                            text_formatted("%" PRIu64, cpu->realtime_period.value));
    if (cgroup_wanted(cpu->realtime_runtime))
        cgroup_settings_add(&settings, "linux.resources.cpu.realtimeRuntime", "cpu", "cpu.rt_runtime_us",
                            text_formatted("%" PRId64, cpu->realtime_runtime.value));
    if (cpu->idle.set && (cpu->idle.value != 0 || cgroup_file_exists(directory, "cpu.idle")))
        cgroup_settings_add(&settings, "linux.resources.cpu.idle", "cpu", "cpu.idle",
                            text_formatted("%" PRId64, cpu->idle.value));
    /* Containers that come at the same moment may take what was just made room for. */
    struct error *error = NULL;
    for (int attempt = 0; attempt < 5; attempt++) {
        error_free(error);
        if (cgroup_wanted(cpu->realtime_runtime))
            TRY(error_context(
                cgroup_v1_realtime_room(directory, cpu->realtime_runtime.value, cpu->realtime_period.value),
                "linux.resources.cpu.realtimeRuntime"));
        error = cgroup_settings_write(&settings, directory);
        if (error == NULL || error->number != EINVAL || !cgroup_wanted(cpu->realtime_runtime))
            break;
    }
    TRY(error);
    if (cgroup_wanted(cpu->quota) && cpu->quota.value > 0)
        TRY(cgroup_file_expect("linux.resources.cpu.quota", directory, "cpu.cfs_quota_us",
                               (uint64_t)cpu->quota.value));
    return NULL;
}

static struct error *cpuset_fill_file(const char *directory, const char *file) {
    memory_owned char *value = cgroup_file_read(directory, file);
    if (value == NULL)
        return error_system(errno, "read", "%s/%s", directory, file);
    if (value[0] != '\0')
        return NULL;
    memory_owned char *parent = cgroup_path_parent(directory);
    if (!cgroup_path_is_cgroup(parent, NULL))
        return NULL; /* the top of what this process sees */
    TRY(cpuset_fill_file(parent, file));
    memory_owned char *above = cgroup_file_read(parent, file);
    if (above == NULL)
        return error_system(errno, "read", "%s/%s", parent, file);
    return above[0] == '\0' ? NULL : cgroup_file_write(directory, file, above);
}

struct error *cgroup_v1_cpuset_fill(const char *directory) {
    TRY(cpuset_fill_file(directory, "cpuset.cpus"));
    return cpuset_fill_file(directory, "cpuset.mems");
}
