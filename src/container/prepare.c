/* container_prepare: what explain shows and create executes. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "container/container.h"
#include "container/fault.h"
#include "container/file_program.h"
#include "harden/seccomp.h"
#include "policy/gaps.h"
#include "policy/resolve.h"
#include "process/lsm.h"

/* A user namespace without mappings: the caller as its root, the narrowest that can run anything. crun has it
 * so too; runc refuses. */
static void mapping_default(const struct oci_config *config, struct oci_id_mapping **mappings, size_t *count,
                            uint32_t host_id) {
    const struct oci_namespace *user = oci_config_namespace(config, "user");
    if (user == NULL || oci_namespace_is_joined(user))
        return;
    *mappings = memory_zeroed(sizeof **mappings);
    **mappings = (struct oci_id_mapping){.host_id = host_id, .size = 1};
    *count = 1;
}

static void mappings_complete(struct oci_config *config) {
    struct oci_linux *part = config->linux_config;
    if (part->uid_mappings_count > 0 || part->gid_mappings_count > 0)
        return;
    mapping_default(config, &part->uid_mappings, &part->uid_mappings_count, geteuid());
    mapping_default(config, &part->gid_mappings, &part->gid_mappings_count, getegid());
}

static struct error *resolve_policy(const struct runtime_options *runtime,
                                    const struct string_map *annotations, struct policy **out) {
    bool root;
    memory_owned char *home = facts_user_home(&root);
    struct policy_request request = {.places = policy_places_default(home, root),
                                     .called = runtime->policy_called,
                                     .given = runtime->policy_given,
                                     .workspace = runtime->workspace,
                                     .annotations = annotations,
                                     .sandbox = runtime->sandbox};
    return policy_resolve(&request, out);
}

struct error *container_policy(const struct runtime_options *runtime, const struct string_map *annotations,
                               struct policy **out) {
    struct error *error = resolve_policy(runtime, annotations, out);
    if (error != NULL) {
        policy_free(*out);
        *out = NULL;
    }
    return error;
}

static struct error *read_config(const char *bundle, const char *config, struct prepared *out) {
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
    mappings_complete(out->config);
    return NULL;
}

static struct error *look_and_harden(const char *bundle, struct prepared *out) {
    TRY(lsm_label_mounts(out->config));
    TRY(facts_collect(out->config, bundle, out->policy, &out->facts));
    if (fault_without("landlock"))
        out->facts->has_landlock = false;
    if (out->policy->observe_files == POLICY_OBSERVER_BPF && out->facts->root) {
        struct error *error = file_program_try();
        out->facts->has_file_program = error == NULL;
        error_ignore(error); /* harden says what is needed */
    }
    TRY(harden(out->config, out->policy, out->facts, &out->hardened));
    if (fault_without("reading") && out->hardened->observed != NULL) {
        oci_seccomp_free(out->hardened->observed);
        out->hardened->observed = harden_seccomp_observed(OBSERVED_MUTATIONS);
        out->hardened->executions_observed = false;
    }
    return lsm_check(out->hardened->config->process, out->hardened->config->linux_config);
}

struct error *container_prepare(const struct runtime_options *runtime, const char *bundle, const char *config,
                                struct prepared *out) {
    *out = (struct prepared){0};
    TRY(read_config(bundle, config, out));
    /* Kept with the error where there is one: a refusal is recorded. */
    TRY(resolve_policy(runtime, &out->config->annotations, &out->policy));
    TRY(policy_gaps_check(out->policy));
    return look_and_harden(bundle, out);
}

struct error *container_prepare_again(const struct container *container, struct prepared *out) {
    struct policy *policy = NULL;
    *out = (struct prepared){0};
    TRY(container_stored_policy(container, &policy));
    return container_prepare_under(container, policy, out);
}

struct error *container_prepare_under(const struct container *container, struct policy *policy,
                                      struct prepared *out) {
    *out = (struct prepared){.policy = policy};
    TRY(read_config(container->state->bundle, NULL, out));
    return look_and_harden(container->state->bundle, out);
}

bool container_keeps_groups(const struct oci_config *hardened) {
    const char *value = string_map_get(&hardened->annotations, "run.oci.keep_original_groups");
    return value != NULL && strcmp(value, "1") == 0;
}

void prepared_clear(struct prepared *prepared) {
    if (prepared->facts != NULL && prepared->facts->has_file_program)
        file_program_release();
    hardened_free(prepared->hardened);
    facts_free(prepared->facts);
    policy_free(prepared->policy);
    oci_config_free(prepared->config);
    *prepared = (struct prepared){0};
}
