/* container_prepare: what explain shows and create executes. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "container/container.h"

/* What the specification has and this version does not apply. An engine that asks for it must hear so: a
 * container without what was written would be one that is open where its owner believes it closed (invariant
 * 1). */
static struct error *unsupported_error(const char *field) {
    return error_new(ERROR_UNAVAILABLE, "%s: not supported by this version of pinfold; leave it out", field);
}

struct error *container_process_supported(const struct oci_process *process) {
    bool apparmor = process->apparmor_profile != NULL && strcmp(process->apparmor_profile, "unconfined") != 0;
    const struct {
        bool asked;
        const char *field;
    } fields[] = {
        {apparmor, "process.apparmorProfile"},
        {process->selinux_label != NULL, "process.selinuxLabel"},
        {process->scheduler != NULL, "process.scheduler"},
        {process->io_priority != NULL, "process.ioPriority"},
        {process->exec_cpu_affinity != NULL, "process.execCPUAffinity"},
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (fields[i].asked)
            return unsupported_error(fields[i].field);
    return NULL;
}

static struct error *config_supported(const struct oci_config *config) {
    TRY(container_process_supported(config->process));
    if (config->linux_config->mount_label != NULL)
        return unsupported_error("linux.mountLabel");
    if (config->linux_config->personality != NULL)
        return unsupported_error("linux.personality");
    return NULL;
}

struct error *container_prepare(const struct runtime_options *runtime, const char *bundle, const char *config,
                                struct prepared *out) {
    *out = (struct prepared){0};
    memory_owned char *path = config ? memory_copy_string(config) : text_formatted("%s/config.json", bundle);
    text_owned struct text bytes = {0};
    TRY(file_read(AT_FDCWD, path, SCHEMA_BYTES_MAX, &bytes));
    TRY(oci_config_parse(config ? config : "config.json", text_string(&bytes), bytes.length, &out->config));
    if (out->config->process == NULL)
        return error_new(ERROR_INVALID, "process: required to create a container");
    if (out->config->root == NULL)
        return error_new(ERROR_INVALID, "root: required to create a container");
    if (out->config->linux_config == NULL)
        out->config->linux_config = memory_zeroed(sizeof *out->config->linux_config);
    TRY(config_supported(out->config));
    TRY(policy_select(runtime->policy_name, &out->policy));
    TRY(facts_collect(out->config, bundle, out->policy, &out->facts));
    return harden(out->config, out->policy, out->facts, &out->hardened);
}

bool container_keeps_groups(const struct oci_config *hardened) {
    const char *value = string_map_get(&hardened->annotations, "run.oci.keep_original_groups");
    return value != NULL && strcmp(value, "1") == 0;
}

void prepared_clear(struct prepared *prepared) {
    hardened_free(prepared->hardened);
    facts_free(prepared->facts);
    policy_free(prepared->policy);
    oci_config_free(prepared->config);
    *prepared = (struct prepared){0};
}
