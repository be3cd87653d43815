#include "harden/harden.h"

#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "harden/parts.h"
#include "harden/seccomp.h"

void harden_note(struct hardened *hardened, enum change_kind kind, const char *field, const char *subject,
                 const char *reason, const char *rule, const char *remedy, const char *message, ...) {
    hardened->changes =
        memory_resize(hardened->changes, hardened->changes_count + 1, sizeof *hardened->changes);
    struct change *change = &hardened->changes[hardened->changes_count++];
    struct text sentence = {0};
    va_list arguments;
    va_start(arguments, message);
    text_vformat(&sentence, message, arguments);
    va_end(arguments);
    *change = (struct change){
        .kind = kind,
        .field = field != NULL ? memory_copy_string(field) : NULL,
        .subject = subject != NULL ? memory_copy_string(subject) : NULL,
        .reason = reason != NULL ? memory_copy_string(reason) : NULL,
        .rule = rule != NULL ? memory_copy_string(rule) : NULL,
        .remedy = remedy != NULL ? memory_copy_string(remedy) : NULL,
        .message = text_take(&sentence),
    };
}

char *harden_remedy(const char *section, const char *key, const char *item) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./";
    if (item[0] != '\0' && item[0] != '-' && strspn(item, plain) == strlen(item))
        return text_formatted("%s: {%s: [%s]}", section, key, item);
    struct text text = {0};
    text_format(&text, "%s: {%s: [\"", section, key);
    for (; *item != '\0'; item++) {
        unsigned char byte = (unsigned char)*item;
        if (byte == '"' || byte == '\\')
            text_format(&text, "\\%c", byte);
        else if (byte < 0x20 || byte == 0x7f)
            text_format(&text, "\\x%02x", byte);
        else
            text_append_bytes(&text, item, 1);
    }
    text_append(&text, "\"]}");
    return text_take(&text);
}

struct oci_linux *harden_linux(struct hardened *hardened) {
    if (hardened->config->linux_config == NULL)
        hardened->config->linux_config = memory_zeroed(sizeof *hardened->config->linux_config);
    return hardened->config->linux_config;
}

void harden_mount_clear(struct oci_mount *mount) {
    free(mount->destination);
    free(mount->type);
    free(mount->source);
    string_list_free(&mount->options);
    free(mount->uid_mappings);
    free(mount->gid_mappings);
    *mount = (struct oci_mount){0};
}

void harden_add_mount(struct hardened *hardened, const char *destination, const char *type,
                      const char *source, const char *const *options) {
    struct oci_config *config = hardened->config;
    config->mounts = memory_resize(config->mounts, config->mounts_count + 1, sizeof *config->mounts);
    hardened->mount_sources =
        memory_resize(hardened->mount_sources, config->mounts_count + 1, sizeof *hardened->mount_sources);
    struct oci_mount *mount = &config->mounts[config->mounts_count];
    *mount = (struct oci_mount){.destination = memory_copy_string(destination),
                                .type = memory_copy_string(type),
                                .source = memory_copy_string(source)};
    for (; *options != NULL; options++)
        string_list_append(&mount->options, *options);
    hardened->mount_sources[config->mounts_count++] = NULL;
}

void harden_process(struct oci_process *process, const struct policy *policy, struct hardened *changes) {
    if (!policy->confined || process == NULL)
        return;
    harden_environment(process, policy, changes);
    harden_capabilities(process, policy, changes);
    harden_scheduling(process, policy, changes);
    if (!process->no_new_privileges)
        harden_note(changes, CHANGE_SET, "process.noNewPrivileges", "no_new_privs", NULL,
                    "built-in: no_new_privs", NULL,
                    "set-user-ID programs and file capabilities give nothing");
    process->no_new_privileges = true;
}

void harden_resources(const struct policy *policy, struct hardened *hardened) {
    if (!policy->confined)
        return;
    harden_devices(policy, hardened);
    harden_limits(policy, hardened);
}

static fallible harden_all(const struct policy *policy, const struct facts *facts,
                           struct hardened *hardened) {
    harden_process(hardened->config->process, policy, hardened);
    harden_annotations(policy, hardened);
    TRY(harden_policy_files(policy, facts, hardened));
    TRY(harden_namespaces(policy, facts, hardened));
    TRY(harden_network(policy, facts, hardened));
    TRY(harden_mounts(policy, facts, hardened));
    harden_writable_mounts(policy, facts, hardened);
    harden_resolver_files(policy, hardened);
    harden_rootfs(policy, facts, hardened);
    harden_inside(policy, hardened);
    harden_resources(policy, hardened);
    harden_masks(hardened);
    TRY(harden_hidden(policy, facts, hardened));
    TRY(harden_protected(policy, facts, hardened));
    TRY(harden_access(policy, facts, hardened));
    return harden_seccomp(policy, facts, hardened);
}

fallible harden(const struct oci_config *config, const struct policy *policy, const struct facts *facts,
                struct hardened **out) {
    *out = NULL;
    if (facts->mounts_count != config->mounts_count)
        return error_new(ERROR_INVALID, "mounts: %zu of config.json, %zu looked at", config->mounts_count,
                         facts->mounts_count);
    struct hardened *hardened = memory_zeroed(sizeof *hardened);
    hardened->config = oci_config_copy(config);
    hardened->confined = policy->confined;
    hardened->mount_sources = memory_resize(NULL, config->mounts_count + 1, sizeof *hardened->mount_sources);
    for (size_t i = 0; i < config->mounts_count; i++)
        hardened->mount_sources[i] = &facts->mounts[i];
    if (policy->confined) {
        struct error *error = harden_all(policy, facts, hardened);
        if (error != NULL) {
            hardened_free(hardened);
            return error;
        }
    }
    *out = hardened;
    return NULL;
}

void hardened_free(struct hardened *hardened) {
    if (hardened == NULL)
        return;
    oci_config_free(hardened->config);
    free(hardened->mount_sources);
    for (size_t i = 0; i < hardened->scratch_count; i++)
        free(hardened->scratch[i].path);
    free(hardened->scratch);
    for (size_t i = 0; i < hardened->rebinds_count; i++)
        free(hardened->rebinds[i].path);
    free(hardened->rebinds);
    access_plan_free(hardened->access);
    for (size_t i = 0; i < hardened->decoys_count; i++)
        free(hardened->decoys[i].path);
    free(hardened->decoys);
    oci_seccomp_free(hardened->denied);
    oci_seccomp_free(hardened->observed);
    for (size_t i = 0; i < hardened->changes_count; i++) {
        struct change *change = &hardened->changes[i];
        free(change->field);
        free(change->subject);
        free(change->reason);
        free(change->message);
        free(change->rule);
        free(change->remedy);
    }
    free(hardened->changes);
    free(hardened);
}
