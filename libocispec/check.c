/* The rules of config.md that no table can say, but for the process (check_process.c) and linux
 * (check_linux.c). */
#include "libocispec/check.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "libocispec/names.h"

char *check_quoted(const char *value) {
    enum { VALUE_SHOWN_MAX = 64 };
    size_t length = strlen(value);
    bool cut = length > VALUE_SHOWN_MAX;
    if (cut) /* not within a character */
        for (length = VALUE_SHOWN_MAX; length > 0 && ((unsigned char)value[length] & 0xc0) == 0x80;)
            length--;
    struct json_writer json = {0};
    json_string_bytes(&json, value, length);
    if (cut)
        text_append(&json.text, "...");
    return text_take(&json.text);
}

struct error *check_unexpected(const char *words, const char *value, const char *field, ...) {
    text_owned struct text path = {0};
    va_list arguments;
    va_start(arguments, field);
    text_vformat(&path, field, arguments);
    va_end(arguments);
    memory_owned char *found = value ? check_quoted(value) : memory_copy_string("nothing");
    return error_new(ERROR_INVALID, "%s: expected %s, found %s", text_string(&path), words, found);
}

struct error *check_words(const char *at, const char *key, const struct string_list *list,
                          const char *const *names, const char *what) {
    for (size_t i = 0; i < list->count; i++)
        if (oci_name_index(names, list->items[i]) < 0)
            return check_unexpected(what, list->items[i], "%s%s[%zu]", at, key, i);
    return NULL;
}

/* The kernel takes at most this many extents (user_namespaces(7), UID_GID_MAP_MAX_EXTENTS). */
enum { ID_MAPPINGS_MAX = 340 };

static bool ranges_meet(uint32_t a, uint32_t a_size, uint32_t b, uint32_t b_size) {
    return a < (uint64_t)b + b_size && b < (uint64_t)a + a_size;
}

struct error *check_id_mappings(const char *at, const struct oci_id_mapping *mappings, size_t count) {
    if (count > ID_MAPPINGS_MAX)
        return error_new(ERROR_INVALID, "%s: expected at most %d mappings, found %zu", at, ID_MAPPINGS_MAX,
                         count);
    for (size_t i = 0; i < count; i++) {
        const struct oci_id_mapping *mapping = &mappings[i];
        if (mapping->size == 0)
            return error_new(ERROR_INVALID, "%s[%zu].size: expected at least 1, found 0", at, i);
        /* The last id, 4294967295, means "none" and cannot be mapped. */
        if ((uint64_t)mapping->container_id + mapping->size > UINT32_MAX)
            return error_new(ERROR_INVALID, "%s[%zu]: containerID %u with size %u goes beyond 4294967294", at,
                             i, mapping->container_id, mapping->size);
        if ((uint64_t)mapping->host_id + mapping->size > UINT32_MAX)
            return error_new(ERROR_INVALID, "%s[%zu]: hostID %u with size %u goes beyond 4294967294", at, i,
                             mapping->host_id, mapping->size);
        for (size_t j = 0; j < i; j++) {
            const struct oci_id_mapping *other = &mappings[j];
            if (ranges_meet(mapping->container_id, mapping->size, other->container_id, other->size))
                return error_new(ERROR_INVALID, "%s[%zu]: its containerIDs overlap those of [%zu]", at, i, j);
            if (ranges_meet(mapping->host_id, mapping->size, other->host_id, other->size))
                return error_new(ERROR_INVALID, "%s[%zu]: its hostIDs overlap those of [%zu]", at, i, j);
        }
    }
    return NULL;
}

static fallible check_mount(const struct oci_mount *mount, size_t index) {
    if (mount->destination == NULL || mount->destination[0] == '\0')
        return error_new(ERROR_INVALID, "mounts[%zu].destination: must not be empty", index);
    bool uids = mount->uid_mappings_count > 0;
    bool gids = mount->gid_mappings_count > 0;
    if (uids != gids)
        return error_new(ERROR_INVALID, "mounts[%zu].%s: required, because %s is given", index,
                         uids ? "gidMappings" : "uidMappings", uids ? "uidMappings" : "gidMappings");
    if (!uids)
        return NULL;
    memory_owned char *uid_path = text_formatted("mounts[%zu].uidMappings", index);
    memory_owned char *gid_path = text_formatted("mounts[%zu].gidMappings", index);
    TRY(check_id_mappings(uid_path, mount->uid_mappings, mount->uid_mappings_count));
    return check_id_mappings(gid_path, mount->gid_mappings, mount->gid_mappings_count);
}

static fallible check_hook_list(const char *name, const struct oci_hook *hooks, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (hooks[i].path == NULL || hooks[i].path[0] != '/')
            return check_unexpected("an absolute path", hooks[i].path, "hooks.%s[%zu].path", name, i);
        if (hooks[i].timeout.set && hooks[i].timeout.value <= 0)
            return error_new(ERROR_INVALID, "hooks.%s[%zu].timeout: expected more than 0, found %lld", name,
                             i, (long long)hooks[i].timeout.value);
    }
    return NULL;
}

static fallible check_hooks(const struct oci_hooks *hooks) {
    if (hooks == NULL)
        return NULL;
    TRY(check_hook_list("prestart", hooks->prestart, hooks->prestart_count));
    TRY(check_hook_list("createRuntime", hooks->create_runtime, hooks->create_runtime_count));
    TRY(check_hook_list("createContainer", hooks->create_container, hooks->create_container_count));
    TRY(check_hook_list("startContainer", hooks->start_container, hooks->start_container_count));
    TRY(check_hook_list("poststart", hooks->poststart, hooks->poststart_count));
    return check_hook_list("poststop", hooks->poststop, hooks->poststop_count);
}

/* Without a UTS namespace of its own the container would rename the host. */
static fallible check_host_name(const struct oci_config *config, const char *key, const char *value) {
    enum { HOST_NAME_MAX_LENGTH = 64 }; /* uname(2), __NEW_UTS_LEN */
    if (value == NULL || value[0] == '\0')
        return NULL;
    if (strlen(value) > HOST_NAME_MAX_LENGTH)
        return error_new(ERROR_INVALID, "%s: expected at most %d bytes, found %zu", key, HOST_NAME_MAX_LENGTH,
                         strlen(value));
    if (oci_config_namespace(config, "uts") == NULL)
        return error_new(ERROR_INVALID, "%s: needs an entry of type \"uts\" in linux.namespaces", key);
    return NULL;
}

struct error *oci_config_check(const struct oci_config *config) {
    if (config->oci_version == NULL || !text_starts_with(config->oci_version, "1."))
        return check_unexpected("a version that starts with \"1.\"", config->oci_version, "ociVersion");
    if (config->root != NULL && (config->root->path == NULL || config->root->path[0] == '\0'))
        return error_new(ERROR_INVALID, "root.path: must not be empty");
    if (config->process != NULL)
        TRY(check_process("process.", config->process));
    for (size_t i = 0; i < config->mounts_count; i++)
        TRY(check_mount(&config->mounts[i], i));
    TRY(check_hooks(config->hooks));
    TRY(check_linux(config)); /* first the entries of linux.namespaces, which the next two look at */
    TRY(check_host_name(config, "hostname", config->hostname));
    return check_host_name(config, "domainname", config->domainname);
}

struct error *oci_process_check(const struct oci_process *process) {
    return check_process("process.", process);
}

struct error *oci_resources_check(const struct oci_resources *resources) {
    return check_resources("", resources);
}

struct error *oci_config_parse(const char *document, const char *bytes, size_t length,
                               struct oci_config **out) {
    void *read;
    *out = NULL;
    TRY(schema_read(&oci_config_schema, document, bytes, length, &read));
    struct error *error = oci_config_check(read);
    if (error != NULL) {
        oci_config_free(read);
        return error_context(error, "%s", document);
    }
    *out = read;
    return NULL;
}

struct error *oci_process_parse(const char *document, const char *bytes, size_t length,
                                struct oci_process **out) {
    void *read;
    *out = NULL;
    TRY(schema_read(&oci_process_schema, document, bytes, length, &read));
    struct error *error = check_process("", read);
    if (error != NULL) {
        oci_process_free(read);
        return error_context(error, "%s", document);
    }
    *out = read;
    return NULL;
}

struct error *oci_resources_parse(const char *document, const char *bytes, size_t length,
                                  struct oci_resources **out) {
    void *read;
    *out = NULL;
    TRY(schema_read(&oci_resources_schema, document, bytes, length, &read));
    struct error *error = check_resources("", read);
    if (error != NULL) {
        oci_resources_free(read);
        return error_context(error, "%s", document);
    }
    *out = read;
    return NULL;
}
