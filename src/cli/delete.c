#include "cli/cli.h"
#include "cli/options.h"

struct error *delete_command(const struct global_options *global, int argc, char **argv, int *exit_status) {
    (void)exit_status;
    bool force = false, help;
    int first;
    const char *id;
    const struct option options[] = {
        {"force", 'f', OPTION_FLAG, &force, "kill it first; what is missing is no error"},
        {NULL, 0, OPTION_FLAG, NULL, NULL}};
    TRY(options_parse("delete", options, argc, argv, &first, &help));
    if (help) {
        options_print("pinfold delete [--force] ID", options);
        return NULL;
    }
    TRY(cli_container_id("delete", argc, argv, first, &id));
    container_owned struct container *container = NULL;
    struct error *error = container_open(global->runtime.root, id, CONTAINER_LOCKED, &container);
    if (error != NULL && error->kind == ERROR_CONTAINER_MISSING && force) {
        error_ignore(error); /* podman calls this after a create that failed */
        return NULL;
    }
    TRY(error);
    return container_delete(container, force);
}
