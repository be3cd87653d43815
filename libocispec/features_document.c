#include "libocispec/features_document.h"

#include "libocispec/names.h"

static void strings_write(struct json_writer *json, const char *key, const char *const *strings) {
    if (strings == NULL)
        return;
    json_key(json, key);
    json_array_begin(json);
    for (; *strings != NULL; strings++)
        json_string(json, *strings);
    json_array_end(json);
}

static void enabled_write(struct json_writer *json, const char *key, bool enabled) {
    json_key(json, key);
    json_object_begin(json);
    json_member_boolean(json, "enabled", enabled);
    json_object_end(json);
}

static void cgroup_write(const struct oci_features *features, struct json_writer *json) {
    json_key(json, "cgroup");
    json_object_begin(json);
    json_member_boolean(json, "v1", features->cgroup_v1);
    json_member_boolean(json, "v2", features->cgroup_v2);
    json_member_boolean(json, "systemd", features->cgroup_systemd);
    json_member_boolean(json, "systemdUser", features->cgroup_systemd_user);
    json_member_boolean(json, "rdma", true);
    json_object_end(json);
}

static void seccomp_write(const struct oci_features *features, struct json_writer *json) {
    if (!features->seccomp) {
        enabled_write(json, "seccomp", false);
        return;
    }
    const char *const *architectures = features->seccomp_architectures;
    json_key(json, "seccomp");
    json_object_begin(json);
    json_member_boolean(json, "enabled", true);
    strings_write(json, "actions", oci_seccomp_actions);
    strings_write(json, "operators", oci_seccomp_operators);
    strings_write(json, "archs", architectures ? architectures : oci_seccomp_architectures);
    strings_write(json, "knownFlags", oci_seccomp_flags);
    strings_write(json, "supportedFlags", features->seccomp_flags);
    json_object_end(json);
}

static void linux_write(const struct oci_features *features, struct json_writer *json) {
    json_key(json, "linux");
    json_object_begin(json);
    strings_write(json, "namespaces", oci_namespace_types);
    strings_write(json, "capabilities",
                  features->capabilities ? features->capabilities : oci_capability_names);
    cgroup_write(features, json);
    seccomp_write(features, json);
    /* What the runtime knows, whatever this machine has (features-linux.md). */
    enabled_write(json, "apparmor", true);
    enabled_write(json, "selinux", true);
    json_key(json, "intelRdt");
    json_object_begin(json);
    json_member_boolean(json, "enabled", true);
    json_member_boolean(json, "schemata", true);
    json_object_end(json);
    json_key(json, "mountExtensions");
    json_object_begin(json);
    enabled_write(json, "idmap", features->id_mapped_mounts);
    json_object_end(json);
    enabled_write(json, "netDevices", true);
    json_object_end(json);
}

void oci_features_document(const struct oci_features *features, struct json_writer *json) {
    json_object_begin(json);
    json_member_string(json, "ociVersionMin", "1.0.0");
    json_member_string(json, "ociVersionMax", "1.2.0");
    strings_write(json, "hooks", oci_hook_names);
    strings_write(json, "mountOptions", features->mount_options);
    linux_write(features, json);
    /* A string: tools read it as one. */
    json_key(json, "annotations");
    json_object_begin(json);
    json_member_string(json, "org.opencontainers.runc.checkpoint.enabled", "false");
    json_object_end(json);
    strings_write(json, "potentiallyUnsafeConfigAnnotations", features->unsafe_annotations);
    json_object_end(json);
}
