#include "rootfs/sysctl.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "libocispec/names.h"
#include "rootfs/attach.h"
#include "sys/calls.h"

#define PROC_MAGIC 0x9fa0

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

/* A procfs that is attached nowhere. Where the user namespace may not make one, the machine's, if it is one.
 */
static struct error *procfs_open(int *out) {
    struct error *error =
        mount_new("proc", "proc", NULL, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, out);
    if (error == NULL)
        return NULL;
    error_ignore(error);
    *out = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct statfs fs;
    if (*out < 0 || fstatfs(*out, &fs) < 0 || fs.f_type != PROC_MAGIC)
        return error_new(ERROR_REFUSED, "linux.sysctl: /proc of the container is not a procfs");
    return NULL;
}

struct error *sysctl_apply(const struct oci_linux *linux_config) {
    if (linux_config == NULL || linux_config->sysctl.count == 0)
        return NULL;
    fd_owned int proc = -1;
    TRY(procfs_open(&proc));
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
        fd_owned int file =
            sys_openat2(proc, path, O_WRONLY, 0, RESOLVE_BENEATH | RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS);
        if (file < 0)
            return error_system(errno, "open", "linux.sysctl.%s", item->key);
        TRY(error_context(fd_write_all(file, item->value, strlen(item->value), item->value),
                          "linux.sysctl.%s", item->key));
    }
    return NULL;
}
