/* container_update: other limits for a container that is there, and the stored configuration made to say so.
 */
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/memory.h"
#include "container/changes.h"
#include "container/container.h"
#include "warden/warden.h"

/* Engines write zero for "leave it as it is"; it must not undo in the stored document what is in force.
 * pids.limit, burst, idle and swappiness mean it. */
static void zeros_forget(struct oci_resources *resources) {
    struct oci_memory *memory = resources->memory;
    struct oci_cpu *cpu = resources->cpu;
    struct optional_int64 *const numbers[] = {
        memory ? &memory->limit : NULL,      memory ? &memory->reservation : NULL,
        memory ? &memory->swap : NULL,       memory ? &memory->kernel : NULL,
        memory ? &memory->kernel_tcp : NULL, cpu ? &cpu->quota : NULL,
        cpu ? &cpu->realtime_runtime : NULL,
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i] != NULL && numbers[i]->value == 0)
            numbers[i]->set = false;
    struct optional_uint64 *const unsigneds[] = {
        cpu ? &cpu->shares : NULL,
        cpu ? &cpu->period : NULL,
        cpu ? &cpu->realtime_period : NULL,
    };
    for (size_t i = 0; i < sizeof unsigneds / sizeof *unsigneds; i++)
        if (unsigneds[i] != NULL && unsigneds[i]->value == 0)
            unsigneds[i]->set = false;
    struct oci_block_io *block = resources->block_io;
    if (block != NULL && block->weight.value == 0)
        block->weight.set = false;
    if (block != NULL && block->leaf_weight.value == 0)
        block->leaf_weight.set = false;
}

/* Memory without a limit is that only without the old one of memory and swap together, too. */
static void swap_follow(struct oci_resources *resources) {
    struct oci_memory *memory = resources->memory;
    if (memory != NULL && memory->limit.set && memory->limit.value == -1 && !memory->swap.set)
        memory->swap = memory->limit;
}

/* Of `all`, the parts that `request` speaks of: what is not asked for is not written again. */
static struct oci_resources *parts_of(const struct oci_resources *all, const struct oci_resources *request) {
    struct oci_resources *parts = schema_copy(&oci_resources_schema, all);
    const struct {
        const char *key;
        bool asked;
    } members[] = {
        {"devices", request->devices_count > 0}, {"memory", request->memory != NULL},
        {"cpu", request->cpu != NULL},           {"pids", request->pids != NULL},
        {"blockIO", request->block_io != NULL},  {"hugepageLimits", request->hugepage_limits_count > 0},
        {"network", request->network != NULL},   {"rdma", request->rdma_count > 0},
        {"unified", request->unified.count > 0},
    };
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (!members[i].asked)
            schema_forget(&oci_resources_schema, members[i].key, parts);
    return parts;
}

/* A policy's limits hold for an update as well. What it changed is recorded as it is for create. */
static struct error *resources_harden(const struct container *container, struct oci_config *config) {
    if (!container->state->confined)
        return NULL;
    struct policy *policy = NULL;
    TRY(container_stored_policy(container, &policy));
    struct hardened *hardened = memory_zeroed(sizeof *hardened);
    hardened->config = config;
    harden_resources(policy, hardened);
    fd_owned int channel = -1;
    struct error *error = changes_record(container->directory, NULL, hardened, &channel);
    hardened->config = NULL;
    hardened_free(hardened);
    policy_free(policy);
    return error;
}

static struct error *update_with(struct container *container, struct oci_config *config,
                                 struct oci_resources *request) {
    if (config->linux_config->resources == NULL)
        config->linux_config->resources = memory_zeroed(sizeof *config->linux_config->resources);
    struct oci_resources *before = parts_of(config->linux_config->resources, request);
    oci_resources_merge(config->linux_config->resources, request);
    struct error *error = resources_harden(container, config);
    if (error == NULL) {
        struct oci_resources *parts = parts_of(config->linux_config->resources, request);
        error = cgroup_update(container->state->cgroup, parts);
        oci_resources_free(parts);
        /* What was written before it failed is taken back; the first error is the one to tell. */
        if (error != NULL)
            error_ignore(cgroup_update(container->state->cgroup, before));
    }
    oci_resources_free(before);
    return error == NULL ? container_store_config(container, config) : error;
}

static struct error *rdt_update(struct container *container, struct oci_config *config, const char *l3_cache,
                                const char *memory_bandwidth) {
    if (l3_cache == NULL && memory_bandwidth == NULL)
        return NULL;
    struct oci_intel_rdt *rdt = config->linux_config->intel_rdt;
    if (rdt == NULL)
        return error_new(ERROR_INVALID,
                         "the schemas of Intel RDT can be changed only in a container that was "
                         "created with linux.intelRdt");
    string_list_free(&rdt->schemata); /* they would go before the two */
    if (l3_cache != NULL)
        memory_replace_string(&rdt->l3_cache_schema, l3_cache);
    if (memory_bandwidth != NULL)
        memory_replace_string(&rdt->memory_bandwidth_schema, memory_bandwidth);
    TRY(oci_config_check(config));
    return cgroup_rdt_update(rdt, container->id);
}

struct error *container_update(struct container *container, struct oci_resources *request,
                               const char *l3_cache_schema, const char *memory_bandwidth_schema) {
    const char *status = container_status(container);
    if (container->state == NULL || container->state->cgroup == NULL || strcmp(status, "stopped") == 0 ||
        strcmp(status, "creating") == 0)
        return error_known(ERROR_NOT_RUNNING, NULL);
    zeros_forget(request);
    swap_follow(request);
    struct oci_config *config = NULL;
    TRY(container_stored_config(container, &config));
    struct error *error = rdt_update(container, config, l3_cache_schema, memory_bandwidth_schema);
    if (error == NULL)
        error = update_with(container, config, request);
    oci_config_free(config);
    return error;
}
