/* The document that `features` prints (runtime-spec features.md). What other modules know comes in as lists;
 * what libocispec itself knows (hooks, namespaces, seccomp words) is taken from names.h. */
#pragma once

#include <stdbool.h>

#include "base/json.h"

/* Lists are closed by NULL; a NULL list is left out. */
struct oci_features {
    const char *const *mount_options;
    const char *const *capabilities; /* NULL: all of names.h */
    bool cgroup_v1;
    bool cgroup_v2;
    bool cgroup_systemd;
    bool cgroup_systemd_user;
    bool seccomp;                             /* else only "enabled": false */
    const char *const *seccomp_architectures; /* NULL: all of names.h */
    const char *const *seccomp_flags;         /* those that this kernel takes */
    bool id_mapped_mounts;
    const char *const
        *unsafe_annotations; /* keys that change what the runtime does, "dev.pinfold." for a prefix */
};

void oci_features_document(const struct oci_features *features, struct json_writer *json);
