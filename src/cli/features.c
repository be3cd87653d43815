#include "libocispec/features_document.h"

#include <stdio.h>

#include "cli/cli.h"
#include "rootfs/mount_options.h"

struct error *features_command(const struct global_options *global, int argc, char **argv, int *exit_status) {
    (void)global;
    (void)exit_status;
    (void)argv;
    if (argc > 1)
        return error_new(ERROR_USAGE, "\"features\" takes no argument");
    string_list_owned struct string_list mount_options = {0};
    mount_options_known(&mount_options);
    static const char *const unsafe_annotations[] = {"dev.pinfold.", NULL};
    static const char *const seccomp_flags[] = {"SECCOMP_FILTER_FLAG_TSYNC", "SECCOMP_FILTER_FLAG_LOG",
                                                "SECCOMP_FILTER_FLAG_SPEC_ALLOW", NULL};
    struct oci_features features = {
        .mount_options = (const char *const *)mount_options.items,
        .cgroup_v1 = true,
        .cgroup_v2 = true,
        .seccomp = true,
        .seccomp_flags = seccomp_flags,
        .unsafe_annotations = unsafe_annotations,
    };
    json_owned struct json_writer json = {0};
    oci_features_document(&features, &json);
    puts(text_string(&json.text));
    return NULL;
}
