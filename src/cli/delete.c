#include "cli/cli.h"
#include "cli/options.h"

struct deletion {
    const char *root;
    bool force;
};

static struct error *delete_one(const char *id, void *data) {
    const struct deletion *deletion = data;
    container_owned struct container *container = NULL;
    struct error *error =
        container_open(deletion->root, id, deletion->force ? CONTAINER_FORCED : CONTAINER_LOCKED, &container);
    if (error != NULL && error->kind == ERROR_CONTAINER_MISSING && deletion->force) {
        error_ignore(error); /* podman calls this after a create that failed */
        return NULL;
    }
    TRY(error);
    return container_delete(container, deletion->force);
}

struct error *delete_command(const struct global_options *global, int argc, char **argv, int *exit_status) {
    (void)exit_status;
    struct deletion deletion = {.root = global->runtime.root};
    bool pattern = false, help;
    int first;
    const char *id;
    const struct option options[] = {
        {"force", 'f', OPTION_FLAG, &deletion.force, "kill it first; what is missing is no error"},
        {"regex", 'r', OPTION_FLAG, &pattern, "ID is an extended regular expression"},
        {NULL, 0, OPTION_FLAG, NULL, NULL}};
    TRY(options_parse_anywhere("delete", options, argc, argv, &first, &help));
    if (help) {
        options_print("pinfold delete [--force] ID", options);
        return NULL;
    }
    TRY(cli_container_id("delete", argc, argv, first, &id));
    if (pattern)
        return cli_each_matching(deletion.root, id, delete_one, &deletion);
    return delete_one(id, &deletion);
}
