#include <stdio.h>

#include "base/memory.h"
#include "cli/cli.h"
#include "cli/options.h"

struct error *state_command(const struct global_options *global, int argc, char **argv, int *exit_status) {
    (void)exit_status;
    container_owned struct container *container = NULL;
    TRY(cli_open(global, "state", argc, argv, CONTAINER_UNLOCKED, &container));
    memory_owned char *state = container_state_text(container, container_status(container));
    puts(state);
    return NULL;
}
