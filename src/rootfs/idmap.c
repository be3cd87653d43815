#include "rootfs/idmap.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/memory.h"
#include "sys/calls.h"
#include "sys/user_namespace.h"

/* --- the option --- */

static bool number_read(const char **at, uint32_t *out) {
    char *end;
    if (**at < '0' || **at > '9')
        return false;
    errno = 0;
    unsigned long long value = strtoull(*at, &end, 10);
    *at = end;
    *out = (uint32_t)value;
    return errno == 0 && value <= UINT32_MAX;
}

/* "0-100000-10#10-200000-5" to lines of uid_map; with "@" before a triplet its second number is an id of the
 * container. */
static bool triplets_read(const char *text, size_t length, const struct oci_id_mapping *container,
                          size_t container_count, struct text *lines) {
    memory_owned char *copy = strndup(text, length);
    const char *at = copy;
    for (;;) {
        uint32_t from, to, size;
        bool relative = *at == '@';
        at += relative;
        if (!number_read(&at, &from) || *at++ != '-' || !number_read(&at, &to) || *at++ != '-' ||
            !number_read(&at, &size) || size == 0)
            return false;
        if (relative && !oci_id_map_translate(container, container_count, &to))
            return false;
        text_format(lines, "%u %u %u\n", from, to, size);
        if (*at == '\0')
            return true;
        if (*at++ != '#')
            return false;
    }
}

static bool option_read(const char *option, const struct oci_linux *linux_config, struct text *uids,
                        struct text *gids) {
    while (*option != '\0') {
        size_t length = strcspn(option, ";");
        bool is_uids = text_starts_with(option, "uids="), is_gids = text_starts_with(option, "gids=");
        if ((!is_uids && !is_gids) ||
            !triplets_read(option + 5, length - 5,
                           is_uids ? linux_config->uid_mappings : linux_config->gid_mappings,
                           is_uids ? linux_config->uid_mappings_count : linux_config->gid_mappings_count,
                           is_uids ? uids : gids))
            return false;
        option += length + (option[length] == ';');
    }
    return uids->length > 0 && gids->length > 0;
}

/* --- the namespace --- */

static struct error *namespace_of(const struct oci_config *config, const struct oci_mount *mount,
                                  const struct mount_options *options, int *out) {
    const struct oci_linux *linux_config = config->linux_config;
    text_owned struct text uids = {0};
    text_owned struct text gids = {0};
    if (mount->uid_mappings_count > 0) {
        memory_owned char *uid_lines = oci_id_map_lines(mount->uid_mappings, mount->uid_mappings_count);
        memory_owned char *gid_lines = oci_id_map_lines(mount->gid_mappings, mount->gid_mappings_count);
        return user_namespace_make(uid_lines, gid_lines, out);
    }
    if (options->idmap_mappings != NULL) {
        if (!option_read(options->idmap_mappings, linux_config, &uids, &gids))
            return error_new(ERROR_INVALID,
                             "options: expected idmap=uids=FROM-TO-SIZE;gids=FROM-TO-SIZE, found idmap=%s",
                             options->idmap_mappings);
        return user_namespace_make(text_string(&uids), text_string(&gids), out);
    }
    const struct oci_namespace *user = oci_config_namespace(config, "user");
    if (user != NULL && oci_namespace_is_joined(user)) {
        *out = open(user->path, O_RDONLY | O_CLOEXEC);
        return *out < 0 ? error_system(errno, "open", "linux.namespaces user: %s", user->path) : NULL;
    }
    if (user == NULL || linux_config->uid_mappings_count == 0 || linux_config->gid_mappings_count == 0)
        return error_new(
            ERROR_INVALID,
            "options: idmap needs uidMappings and gidMappings of the mount, or a user namespace");
    memory_owned char *uid_lines =
        oci_id_map_lines(linux_config->uid_mappings, linux_config->uid_mappings_count);
    memory_owned char *gid_lines =
        oci_id_map_lines(linux_config->gid_mappings, linux_config->gid_mappings_count);
    return user_namespace_make(uid_lines, gid_lines, out);
}

struct error *idmap_apply(const struct oci_config *config, const struct oci_mount *mount,
                          const struct mount_options *options, int tree) {
    if (!options->idmap && mount->uid_mappings_count == 0)
        return NULL;
    if (!options->bind)
        return error_new(ERROR_INVALID, "%s: only for a bind mount, found type %s",
                         options->idmap ? "options: idmap" : "uidMappings",
                         mount->type ? mount->type : "none");
    fd_owned int namespace = -1;
    TRY(error_context(namespace_of(config, mount, options, &namespace), "id mapping"));
    struct mount_attr attributes = {.attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t) namespace};
    unsigned flags = AT_EMPTY_PATH | (options->idmap_recursive ? AT_RECURSIVE : 0);
    if (sys_mount_setattr(tree, "", flags, &attributes) == 0)
        return NULL;
    switch (errno) {
    case EINVAL: /* FS_ALLOW_IDMAP; also for any mount below it */
        return error_new(ERROR_UNAVAILABLE,
                         "the file system of %s%s does not support id-mapped mounts (EINVAL)", mount->source,
                         options->idmap_recursive ? ", or of a mount below it," : "");
    case EPERM:
        return error_new(ERROR_UNAVAILABLE,
                         "%s cannot be id-mapped: it is already, or the runtime is not root of the user "
                         "namespace that mounted its file system (EPERM)",
                         mount->source);
    default:
        return error_system(errno, "id-map", "%s", mount->source);
    }
}
