#include "libocispec/features_document.h"

#include <stdio.h>

#include "cgroup/cgroup.h"
#include "cli/cli.h"
#include "libocispec/names.h"
#include "rootfs/mount_options.h"
#include "sys/calls.h"

struct error *features_command(const struct global_options *global, int argc, char **argv, int *exit_status) {
    (void)global;
    (void)exit_status;
    (void)argv;
    if (argc > 1)
        return error_new(ERROR_USAGE, "\"features\" takes no argument");
    string_list_owned struct string_list mount_options = {0};
    mount_options_known(&mount_options);
    /* What changes what a container may do; a name that ends with a dot stands for all that begin so. */
    static const char *const unsafe_annotations[] = {"dev.pinfold.", "org.systemd.property.",
                                                     "run.oci.keep_original_groups", NULL};
    string_list_owned struct string_list seccomp_flags = {0};
    for (size_t i = 0; oci_seccomp_flags[i] != NULL; i++)
        if (sys_seccomp_flag_supported(oci_seccomp_flags[i]))
            string_list_append(&seccomp_flags, oci_seccomp_flags[i]);
    struct oci_features features = {
        .mount_options = (const char *const *)mount_options.items,
        .cgroup_v1 = true,
        .cgroup_v2 = true,
        .cgroup_systemd = cgroup_systemd_is_built(),
        .cgroup_systemd_user = cgroup_systemd_is_built(),
        .seccomp = true,
        .id_mapped_mounts = true,
        .seccomp_flags = (const char *const *)seccomp_flags.items,
        .unsafe_annotations = unsafe_annotations,
    };
    json_owned struct json_writer json = {0};
    oci_features_document(&features, &json);
    puts(text_string(&json.text));
    return NULL;
}
