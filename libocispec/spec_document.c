#include "libocispec/spec_document.h"

#include <string.h>

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static const char *const capabilities[] = {"CAP_AUDIT_WRITE", "CAP_KILL", "CAP_NET_BIND_SERVICE", NULL};

static const char *const masked_paths[] = {
    "/proc/acpi",
    "/proc/asound",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/scsi",
    "/proc/interrupts",
    "/proc/sched_debug",
    "/sys/firmware",
    "/sys/devices/virtual/powercap",
    NULL,
};

static const char *const readonly_paths[] = {
    "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger", NULL,
};

static void strings_write(struct json_writer *json, const char *key, const char *const *strings) {
    json_key(json, key);
    json_array_begin(json);
    for (; *strings != NULL; strings++)
        json_string(json, *strings);
    json_array_end(json);
}

static void process_write(struct json_writer *json) {
    json_key(json, "process");
    json_object_begin(json);
    json_member_boolean(json, "terminal", true);
    json_key(json, "user");
    json_object_begin(json);
    json_member_integer(json, "uid", 0);
    json_member_integer(json, "gid", 0);
    json_object_end(json);
    strings_write(json, "args", LIST("sh"));
    strings_write(json, "env",
                  LIST("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TERM=xterm"));
    json_member_string(json, "cwd", "/");
    /* No inheritable (CVE-2022-29162: a file's inheritable capabilities would come back at an exec), no
     * ambient. */
    json_key(json, "capabilities");
    json_object_begin(json);
    strings_write(json, "bounding", capabilities);
    strings_write(json, "effective", capabilities);
    strings_write(json, "permitted", capabilities);
    json_object_end(json);
    json_key(json, "rlimits");
    json_array_begin(json);
    json_object_begin(json);
    json_member_string(json, "type", "RLIMIT_NOFILE");
    json_member_integer(json, "hard", 1024);
    json_member_integer(json, "soft", 1024);
    json_object_end(json);
    json_array_end(json);
    json_member_boolean(json, "noNewPrivileges", true);
    json_object_end(json);
}

static void mount_write(struct json_writer *json, const char *destination, const char *type,
                        const char *source, const char *const *options) {
    json_object_begin(json);
    json_member_string(json, "destination", destination);
    json_member_string(json, "type", type);
    json_member_string(json, "source", source);
    if (options != NULL)
        strings_write(json, "options", options);
    json_object_end(json);
}

static void mounts_write(bool rootless, struct json_writer *json) {
    json_key(json, "mounts");
    json_array_begin(json);
    mount_write(json, "/proc", "proc", "proc", NULL);
    mount_write(json, "/dev", "tmpfs", "tmpfs", LIST("nosuid", "strictatime", "mode=755", "size=65536k"));
    if (rootless) /* group 5 (tty) is not mapped */
        mount_write(json, "/dev/pts", "devpts", "devpts",
                    LIST("nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"));
    else
        mount_write(json, "/dev/pts", "devpts", "devpts",
                    LIST("nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"));
    mount_write(json, "/dev/shm", "tmpfs", "shm",
                LIST("nosuid", "noexec", "nodev", "mode=1777", "size=65536k"));
    mount_write(json, "/dev/mqueue", "mqueue", "mqueue", LIST("nosuid", "noexec", "nodev"));
    if (rootless) { /* sysfs can be mounted only by the owner of the network namespace, which is the host's
                       here */
        mount_write(json, "/sys", "none", "/sys", LIST("rbind", "nosuid", "noexec", "nodev", "ro"));
    } else {
        mount_write(json, "/sys", "sysfs", "sysfs", LIST("nosuid", "noexec", "nodev", "ro"));
        mount_write(json, "/sys/fs/cgroup", "cgroup", "cgroup",
                    LIST("nosuid", "noexec", "nodev", "relatime", "ro"));
    }
    json_array_end(json);
}

static void mapping_write(struct json_writer *json, const char *key, uint32_t host_id) {
    json_key(json, key);
    json_array_begin(json);
    json_object_begin(json);
    json_member_integer(json, "containerID", 0);
    json_member_integer(json, "hostID", host_id);
    json_member_integer(json, "size", 1);
    json_object_end(json);
    json_array_end(json);
}

static void linux_write(bool rootless, uint32_t uid, uint32_t gid, bool cgroup_namespace,
                        struct json_writer *json) {
    json_key(json, "linux");
    json_object_begin(json);
    if (rootless) {
        mapping_write(json, "uidMappings", uid);
        mapping_write(json, "gidMappings", gid);
    } else {
        json_key(json, "resources");
        json_object_begin(json);
        json_key(json, "devices");
        json_array_begin(json);
        json_object_begin(json);
        json_member_boolean(json, "allow", false);
        json_member_string(json, "access", "rwm");
        json_object_end(json);
        json_array_end(json);
        json_object_end(json);
    }
    const char *const *namespaces = rootless ? LIST("pid", "ipc", "uts", "mount", "user", "cgroup")
                                             : LIST("pid", "network", "ipc", "uts", "mount", "cgroup");
    json_key(json, "namespaces");
    json_array_begin(json);
    for (; *namespaces != NULL; namespaces++) {
        if (!cgroup_namespace && strcmp(*namespaces, "cgroup") == 0)
            continue;
        json_object_begin(json);
        json_member_string(json, "type", *namespaces);
        json_object_end(json);
    }
    json_array_end(json);
    strings_write(json, "maskedPaths", masked_paths);
    strings_write(json, "readonlyPaths", readonly_paths);
    json_object_end(json);
}

void oci_spec_document(bool rootless, uint32_t uid, uint32_t gid, bool cgroup_namespace,
                       struct json_writer *json) {
    json_object_begin(json);
    json_member_string(json, "ociVersion", "1.2.0");
    process_write(json);
    json_key(json, "root");
    json_object_begin(json);
    json_member_string(json, "path", "rootfs");
    json_member_boolean(json, "readonly", true);
    json_object_end(json);
    json_member_string(json, "hostname", "pinfold");
    mounts_write(rootless, json);
    linux_write(rootless, uid, gid, cgroup_namespace, json);
    json_object_end(json);
}

static void line_begin(struct text *text, size_t depth) {
    text_append(text, "\n");
    for (size_t i = 0; i < depth; i++)
        text_append(text, "    ");
}

void oci_document_indent(const char *compact, struct text *text) {
    size_t depth = 0;
    bool string = false;
    for (const char *at = compact; *at != '\0'; at++) {
        bool opens = !string && (*at == '{' || *at == '[');
        bool closes = !string && (*at == '}' || *at == ']');
        if (opens && (at[1] == '}' || at[1] == ']')) {
            text_append_bytes(text, at++, 2);
            continue;
        }
        if (closes)
            line_begin(text, depth > 0 ? --depth : 0);
        text_append_bytes(text, at, 1);
        if (opens)
            line_begin(text, ++depth);
        if (string && *at == '\\' && at[1] != '\0')
            text_append_bytes(text, ++at, 1);
        else if (*at == '"')
            string = !string;
        else if (!string && *at == ',')
            line_begin(text, depth);
        else if (!string && *at == ':')
            text_append(text, " ");
    }
    text_append(text, "\n");
}
