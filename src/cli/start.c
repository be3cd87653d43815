#include "cli/cli.h"
#include "cli/options.h"

struct error *start_command(const struct global_options *global, int argc, char **argv, int *exit_status) {
    (void)exit_status;
    container_owned struct container *container = NULL;
    TRY(cli_open(global, "start", argc, argv, CONTAINER_LOCKED, &container));
    struct error *error = container_start(container, false);
    /* runtime.md, "Lifecycle": such a container is stopped and destroyed. */
    if (error != NULL && container->poststart_failed)
        error_ignore(container_delete(container, true)); /* the first error says more */
    return error;
}
