#include <fcntl.h>
#include <string.h>

#include "base/file.h"
#include "cli/cli.h"
#include "cli/options.h"

struct error *update_command(const struct global_options *global, int argc, char **argv, int *exit_status) {
    (void)exit_status;
    bool help;
    int first;
    const char *resources = NULL, *id;
    const struct option options[] = {{"resources", 'r', OPTION_VALUE, &resources,
                                      "a file with the resources document, - for standard input"},
                                     {NULL, 0, OPTION_FLAG, NULL, NULL}};
    TRY(options_parse("update", options, argc, argv, &first, &help));
    if (help) {
        options_print("pinfold update --resources FILE ID", options);
        return NULL;
    }
    TRY(cli_container_id("update", argc, argv, first, &id));
    if (resources == NULL)
        return error_new(ERROR_USAGE, "update: needs --resources FILE");
    container_owned struct container *container = NULL;
    TRY(container_open(global->runtime.root, id, CONTAINER_LOCKED, &container));
    if (strcmp(container_status(container), "stopped") == 0)
        return error_known(ERROR_NOT_RUNNING, NULL);
    text_owned struct text bytes = {0};
    TRY(file_read(AT_FDCWD, strcmp(resources, "-") == 0 ? "/proc/self/fd/0" : resources, SCHEMA_BYTES_MAX,
                  &bytes));
    struct oci_resources *parsed = NULL;
    TRY(oci_resources_parse("resources", text_string(&bytes), bytes.length, &parsed));
    struct error *error = cgroup_apply(container->state->cgroup, parsed);
    oci_resources_free(parsed);
    return error;
}
