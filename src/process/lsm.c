#include "process/lsm.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/memory.h"

static bool apparmor_enabled(void) {
    text_owned struct text answer = {0};
    error_owned error = file_read(AT_FDCWD, "/sys/module/apparmor/parameters/enabled", 16, &answer);
    return error == NULL && text_starts_with(text_string(&answer), "Y");
}

static bool selinux_enabled(void) {
    struct statfs status;
    return statfs("/sys/fs/selinux", &status) == 0 && (unsigned)status.f_type == SELINUX_MAGIC;
}

/* "unconfined" where there is nothing to be confined by. */
static bool wants_apparmor(const struct oci_process *process) {
    return process->apparmor_profile != NULL &&
           (strcmp(process->apparmor_profile, "unconfined") != 0 || apparmor_enabled());
}

struct error *lsm_check(const struct oci_process *process, const struct oci_linux *linux_config) {
    if (wants_apparmor(process) && !apparmor_enabled())
        return error_new(
            ERROR_UNAVAILABLE,
            "process.apparmorProfile: AppArmor is not enabled on this machine; leave the profile out");
    bool label = process->selinux_label != NULL;
    if ((label || (linux_config != NULL && linux_config->mount_label != NULL)) && !selinux_enabled())
        return error_new(ERROR_UNAVAILABLE, "%s: SELinux is not enabled on this machine; leave the label out",
                         label ? "process.selinuxLabel" : "linux.mountLabel");
    return NULL;
}

bool lsm_wants_procfs(const struct oci_process *process) {
    return process->selinux_label != NULL || wants_apparmor(process);
}

/* AppArmor's own attribute, or the one that all modules shared (Linux before 5.8). */
static struct error *apparmor_open(const struct procfs *procfs, const char *name, int flags, int *out) {
    memory_owned char *path = text_formatted("self/attr/apparmor/%s", name);
    struct error *error = procfs_open_file(procfs, path, flags, out);
    if (error == NULL || error->number != ENOENT)
        return error;
    error_free(error);
    memory_owned char *older = text_formatted("self/attr/%s", name);
    return procfs_open_file(procfs, older, flags, out);
}

static bool is_confined(const struct procfs *procfs) {
    char profile[16] = "";
    fd_owned int fd = -1;
    error_owned error = apparmor_open(procfs, "current", O_RDONLY, &fd);
    return error == NULL && read(fd, profile, sizeof profile - 1) > 0 &&
           !text_starts_with(profile, "unconfined");
}

struct error *lsm_open(const struct procfs *procfs, const struct oci_process *process,
                       struct lsm_attributes *out) {
    *out = LSM_ATTRIBUTES_NONE;
    if (wants_apparmor(process)) {
        TRY(error_context(apparmor_open(procfs, "exec", O_WRONLY, &out->apparmor),
                          "process.apparmorProfile"));
        out->stack = process->no_new_privileges && is_confined(procfs);
    }
    if (process->selinux_label == NULL)
        return NULL;
    return error_context(procfs_open_file(procfs, "self/attr/exec", O_WRONLY, &out->selinux),
                         "process.selinuxLabel");
}

static struct error *attribute_write(int *fd, const char *value, const char *field) {
    if (*fd < 0)
        return NULL;
    ssize_t written = write(*fd, value, strlen(value));
    int number = errno;
    fd_close(fd_take(fd));
    if (written >= 0)
        return NULL;
    return error_system(number, "apply", "%s \"%s\"%s", field, value,
                        number == ENOENT ? " (it is not loaded)" : "");
}

struct error *lsm_apply(struct lsm_attributes *attributes, const struct oci_process *process) {
    memory_owned char *profile = text_formatted("%s %s", attributes->stack ? "stack" : "exec",
                                                process->apparmor_profile ? process->apparmor_profile : "");
    TRY(attribute_write(&attributes->apparmor, profile, "process.apparmorProfile"));
    return attribute_write(&attributes->selinux, process->selinux_label ? process->selinux_label : "",
                           "process.selinuxLabel");
}

void lsm_label_keys(const struct procfs *procfs, const struct oci_process *process, bool on) {
    if (process->selinux_label == NULL)
        return;
    /* An empty line takes the label back (security/selinux/hooks.c). */
    error_ignore(procfs_write(procfs, "self/attr/keycreate", on ? process->selinux_label : "\n"));
}

static bool has_context(const struct oci_mount *mount) {
    static const char *const words[] = {"context=", "fscontext=", "defcontext=", "rootcontext="};
    for (size_t i = 0; i < mount->options.count; i++)
        for (size_t word = 0; word < sizeof words / sizeof words[0]; word++)
            if (text_starts_with(mount->options.items[i], words[word]))
                return true;
    return false;
}

/* proc, sysfs and cgroup label their files themselves; a bind mount has the labels of what it shows. */
static bool can_be_labelled(const struct oci_mount *mount) {
    static const char *const types[] = {"tmpfs", "devpts", "mqueue", "ramfs", "overlay"};
    if (mount->type == NULL || string_list_contains(&mount->options, "bind") ||
        string_list_contains(&mount->options, "rbind"))
        return false;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(mount->type, types[i]) == 0)
            return true;
    return false;
}

struct error *lsm_label_mounts(struct oci_config *config) {
    static const char annotation[] = "run.oci.mount_context_type";
    const char *label = config->linux_config ? config->linux_config->mount_label : NULL;
    const char *type = string_map_get(&config->annotations, annotation);
    if (label == NULL)
        return NULL;
    if (type == NULL)
        type = "context";
    if (strcmp(type, "context") != 0 && strcmp(type, "fscontext") != 0 && strcmp(type, "defcontext") != 0 &&
        strcmp(type, "rootcontext") != 0)
        return error_new(ERROR_INVALID,
                         "annotations.%s: expected context, fscontext, defcontext or rootcontext",
                         annotation);
    for (size_t i = 0; i < config->mounts_count; i++)
        if (can_be_labelled(&config->mounts[i]) && !has_context(&config->mounts[i]))
            string_list_append_owned(&config->mounts[i].options, text_formatted("%s=%s", type, label));
    return NULL;
}
