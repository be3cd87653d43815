/* Any bytes as config.json, hardened: it is refused with a reason or keeps the promises (invariants of
 * DESIGN.md), and hardening what was hardened changes nothing. The first bytes choose what the facts say of
 * the mounts. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "harden/harden.h"
#include "harden/parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FACT_BYTES 8

static void require(bool condition) {
    if (!condition)
        abort();
}

static void fill_facts(const struct oci_config *config, const uint8_t *choice, struct facts *facts) {
    static const mode_t modes[] = {S_IFDIR, S_IFREG, S_IFSOCK, S_IFCHR};
    static char *const places[] = {"/etc", "/dev", "/sys", "/var/lib/docker"};
    facts->mounts_count = config->mounts_count;
    facts->mounts = memory_zeroed((config->mounts_count + 1) * sizeof *facts->mounts);
    for (size_t i = 0; i < config->mounts_count; i++) {
        struct mount_fact *fact = &facts->mounts[i];
        const struct oci_mount *mount = &config->mounts[i];
        uint8_t byte = choice[i % FACT_BYTES];
        fact->source_fd = -1;
        fact->bind =
            string_list_contains(&mount->options, "bind") || string_list_contains(&mount->options, "rbind");
        if (!fact->bind || mount->source == NULL || (byte & 0x80) != 0)
            continue;
        fact->real_path = mount->source[0] == '/' ? mount->source : "/x";
        fact->status.st_mode = modes[byte & 3];
        fact->device_major = byte & 7;
        fact->engine_made = (byte & 4) != 0;
        if ((byte & 0x30) == 0x30) {
            fact->place_relation = (enum place_relation)(1 + byte % 3);
            fact->host_place = places[byte & 3];
        }
        if ((byte & 0x40) != 0) {
            string_list_append(&fact->credentials, "a/.aws/");
            string_list_append(&fact->control_sockets, "s");
        }
    }
    facts->namespaces_count = config->linux_config != NULL ? config->linux_config->namespaces_count : 0;
    facts->namespace_is_host = memory_zeroed(facts->namespaces_count + 1);
    facts->root_is_mount = (choice[0] & 1) != 0;
    facts->container_home = "/home/x";
}

static void check_promises(const struct hardened *hardened, const struct policy *policy) {
    const struct oci_config *config = hardened->config;
    require(hardened->wall && hardened->denied != NULL);
    require(config->root == NULL || config->root->readonly);
    require(oci_config_namespace(config, "network") != NULL && oci_config_namespace(config, "pid") != NULL);
    if (config->process != NULL) {
        require(config->process->no_new_privileges);
        for (size_t i = 0; i < config->process->env.count; i++) {
            const char *equals = strchr(config->process->env.items[i], '=');
            if (equals == NULL)
                continue;
            memory_owned char *name = text_formatted("%.*s", (int)(equals - config->process->env.items[i]),
                                                     config->process->env.items[i]);
            require(harden_environment_reason(policy, name, equals + 1) == NULL);
        }
        const struct oci_capabilities *sets = config->process->capabilities;
        for (size_t i = 0; sets != NULL && i < sets->bounding.count; i++)
            require(string_list_contains(&policy->capabilities.values, sets->bounding.items[i]));
    }
    for (size_t i = 0; i < config->mounts_count; i++) {
        const struct mount_fact *fact = hardened->mount_sources[i];
        if (fact == NULL || fact->real_path == NULL)
            continue;
        require(!S_ISSOCK(fact->status.st_mode) || fact->engine_made);
        require(fact->credential == NULL);
    }
    for (size_t i = 0; i < hardened->scratch_count; i++)
        require(hardened->scratch[i].path[0] == '/' && hardened->scratch[i].path[1] != '\0');
    for (size_t i = 0; i < hardened->changes_count; i++)
        require(hardened->changes[i].message != NULL && hardened->changes[i].field != NULL);
}

static char *written(const struct oci_config *config) {
    struct json_writer json = {0};
    schema_write(&oci_config_schema, config, &json);
    return text_take(&json.text);
}

static void free_facts(struct facts *facts) {
    for (size_t i = 0; i < facts->mounts_count; i++) {
        string_list_free(&facts->mounts[i].credentials);
        string_list_free(&facts->mounts[i].control_sockets);
    }
    free(facts->mounts);
    free(facts->namespace_is_host);
}

static void check_idempotent(const struct hardened *hardened, const struct policy *policy) {
    struct facts facts = {.root_fd = -1};
    static const uint8_t plain[FACT_BYTES] = {0};
    fill_facts(hardened->config, plain, &facts);
    struct hardened *again = NULL;
    error_owned error = harden(hardened->config, policy, &facts, &again);
    /* The new facts may refuse what the first ones let pass; but what passes stays as it is. */
    if (error == NULL && again->config->mounts_count == hardened->config->mounts_count) {
        memory_owned char *one = written(hardened->config);
        memory_owned char *two = written(again->config);
        require(strcmp(one, two) == 0);
    }
    hardened_free(again);
    free_facts(&facts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < FACT_BYTES)
        return 0;
    struct oci_config *config = NULL;
    error_owned error = oci_config_parse("fuzz", (const char *)data + FACT_BYTES, size - FACT_BYTES, &config);
    if (error != NULL)
        return 0;
    struct policy *policy = NULL;
    error_owned unknown = policy_select("agent", &policy);
    require(unknown == NULL);
    struct facts facts = {.root_fd = -1};
    fill_facts(config, data, &facts);
    memory_owned char *before = written(config);
    struct hardened *hardened = NULL;
    error_owned refused = harden(config, policy, &facts, &hardened);
    require((refused == NULL) == (hardened != NULL));
    if (refused != NULL) {
        require(refused->kind == ERROR_REFUSED && strstr(refused->message, ".refused: ") != NULL);
    } else {
        check_promises(hardened, policy);
        check_idempotent(hardened, policy);
    }
    memory_owned char *after = written(config);
    require(strcmp(before, after) == 0);
    hardened_free(hardened);
    free_facts(&facts);
    policy_free(policy);
    oci_config_free(config);
    return 0;
}
