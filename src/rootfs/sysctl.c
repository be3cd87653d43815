#include "rootfs/sysctl.h"

#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "libocispec/names.h"

/* The /proc/sys keys that belong to a namespace; all others are the machine's. */
static const struct {
    const char *prefix; /* a whole key, or with its dot at the end all below */
    const char *namespace;
} namespaced[] = {
    {"kernel.msgmax", "ipc"}, {"kernel.msgmnb", "ipc"},          {"kernel.msgmni", "ipc"},
    {"kernel.sem", "ipc"},    {"kernel.shmall", "ipc"},          {"kernel.shmmax", "ipc"},
    {"kernel.shmmni", "ipc"}, {"kernel.shm_rmid_forced", "ipc"}, {"fs.mqueue.", "ipc"},
    {"net.", "network"},      {"kernel.domainname", "uts"},      {"kernel.hostname", "uts"},
    {"user.", "user"},
};

static bool has_namespace(const struct oci_linux *linux_config, const char *type) {
    for (size_t i = 0; i < linux_config->namespaces_count; i++)
        if (strcmp(linux_config->namespaces[i].type, type) == 0)
            return true;
    return false;
}

static struct error *key_check(const struct oci_linux *linux_config, const char *key) {
    for (size_t i = 0; i < sizeof namespaced / sizeof namespaced[0]; i++) {
        const char *prefix = namespaced[i].prefix;
        bool matches = text_ends_with(prefix, ".") ? text_starts_with(key, prefix) : strcmp(key, prefix) == 0;
        if (!matches)
            continue;
        if (has_namespace(linux_config, namespaced[i].namespace))
            return NULL;
        return error_new(ERROR_INVALID, "linux.sysctl.%s: needs a %s namespace of the container's own", key,
                         namespaced[i].namespace);
    }
    return error_new(ERROR_INVALID,
                     "linux.sysctl.%s: is a setting of the whole machine; allowed are net.*, fs.mqueue.*, "
                     "the kernel.* keys of IPC, and user.*",
                     key);
}

struct error *sysctl_apply(const struct oci_linux *linux_config, const struct procfs *procfs) {
    if (linux_config == NULL)
        return NULL;
    for (size_t i = 0; i < linux_config->sysctl.count; i++) {
        const struct key_value *item = &linux_config->sysctl.items[i];
        memory_owned char *below = oci_sysctl_path(item->key);
        if (below == NULL)
            return error_new(ERROR_INVALID, "linux.sysctl.%s: expected a name such as net.ipv4.ip_forward",
                             item->key);
        memory_owned char *path = text_formatted("sys/%s", below);
        memory_owned char *dotted = memory_copy_string(below);
        for (char *at = dotted; *at != '\0'; at++)
            *at = *at == '/' ? '.' : *at;
        TRY(key_check(linux_config, dotted));
        struct error *error = procfs_write(procfs, path, item->value);
        /* The commonest mistake: two numbers are expected, or groups that the user namespace does not map. */
        if (error != NULL && error->number == EINVAL)
            return error_context(error, "linux.sysctl.%s: the kernel does not take \"%s\"", item->key,
                                 item->value);
        TRY(error_context(error, "linux.sysctl.%s", item->key));
    }
    return NULL;
}
