#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "harden/parts.h"

/* A file of a controller by its name would be written last, and undo the limit. */
static void unified_cut(struct hardened *hardened, struct oci_resources *resources, const char *file,
                        const char *rule, const char *remedy) {
    struct string_map *unified = &resources->unified;
    for (size_t i = 0; i < unified->count; i++) {
        if (strcmp(unified->items[i].key, file) != 0)
            continue;
        harden_note(hardened, CHANGE_REMOVED, "linux.resources.unified", file, NULL, rule, remedy,
                    "this limit is the policy's to set");
        free(unified->items[i].key);
        free(unified->items[i].value);
        memmove(&unified->items[i], &unified->items[i + 1],
                (unified->count - i - 1) * sizeof *unified->items);
        unified->count--;
        return;
    }
}

static void pids_limit(const struct policy *policy, struct oci_resources *resources,
                       struct hardened *hardened) {
    if (resources->pids == NULL)
        resources->pids = memory_zeroed(sizeof *resources->pids);
    unified_cut(hardened, resources, "pids.max", "limits.pids", "limits: {pids: null}");
    struct optional_int64 *limit = &resources->pids->limit;
    /* Engines write 0 and -1 for "no limit". */
    if (limit->set && limit->value > 0 && limit->value <= policy->pids.value)
        return;
    memory_owned char *remedy = limit->set && limit->value > 0
                                    ? text_formatted("limits: {pids: %" PRId64 "}", limit->value)
                                    : memory_copy_string("limits: {pids: null}");
    harden_note(hardened, CHANGE_SET, "linux.resources.pids.limit", "pids", NULL, "limits.pids", remedy,
                "at most %" PRId64 " processes and threads", policy->pids.value);
    *limit = policy->pids;
}

static void memory_limit(const struct policy *policy, struct oci_resources *resources,
                         struct hardened *hardened) {
    static const char remedy[] = "limits: {memory: null}";
    if (resources->memory == NULL)
        resources->memory = memory_zeroed(sizeof *resources->memory);
    unified_cut(hardened, resources, "memory.max", "limits.memory", remedy);
    struct optional_int64 *limit = &resources->memory->limit;
    if (limit->set && limit->value > 0 && limit->value <= policy->memory.value)
        return;
    harden_note(hardened, CHANGE_SET, "linux.resources.memory.limit", "memory", NULL, "limits.memory", remedy,
                "at most %" PRId64 " bytes of memory", policy->memory.value);
    *limit = policy->memory;
}

/* Microseconds in each period, cpu.max of cgroup v2. */
static void cpus_limit(const struct policy *policy, struct oci_resources *resources,
                       struct hardened *hardened) {
    enum { PERIOD = 100000, THOUSANDTHS = 1000 };
    static const char remedy[] = "limits: {cpus: null}";
    if (resources->cpu == NULL)
        resources->cpu = memory_zeroed(sizeof *resources->cpu);
    unified_cut(hardened, resources, "cpu.max", "limits.cpus", remedy);
    struct oci_cpu *cpu = resources->cpu;
    double period = cpu->period.set && cpu->period.value > 0 ? (double)cpu->period.value : PERIOD;
    if (cpu->quota.set && cpu->quota.value > 0 &&
        (double)cpu->quota.value * THOUSANDTHS <= (double)policy->cpus.value * period)
        return;
    harden_note(hardened, CHANGE_SET, "linux.resources.cpu.quota", "cpu", NULL, "limits.cpus", remedy,
                "at most %" PRId64 " thousandths of a processor", policy->cpus.value);
    cpu->period = (struct optional_uint64){.set = true, .value = PERIOD};
    cpu->quota = (struct optional_int64){.set = true, .value = policy->cpus.value * (PERIOD / THOUSANDTHS)};
    cpu->burst = (struct optional_uint64){0}; /* not more than the quota, which is smaller now */
}

void harden_limits(const struct policy *policy, struct hardened *hardened) {
    if (!policy->pids.set && !policy->memory.set && !policy->cpus.set)
        return;
    struct oci_linux *linux_config = harden_linux(hardened);
    if (linux_config->resources == NULL)
        linux_config->resources = memory_zeroed(sizeof *linux_config->resources);
    if (policy->pids.set)
        pids_limit(policy, linux_config->resources, hardened);
    if (policy->memory.set)
        memory_limit(policy, linux_config->resources, hardened);
    if (policy->cpus.set)
        cpus_limit(policy, linux_config->resources, hardened);
}
