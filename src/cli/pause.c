#include <string.h>

#include "cli/cli.h"
#include "cli/options.h"

static struct error *freeze(const struct global_options *global, const char *command, int argc, char **argv,
                            bool frozen) {
    container_owned struct container *container = NULL;
    TRY(cli_open(global, command, argc, argv, CONTAINER_LOCKED, &container));
    const char *status = container_status(container);
    const char *needed = frozen ? "running" : "paused";
    if (strcmp(status, "stopped") == 0)
        return error_known(ERROR_NOT_RUNNING, NULL);
    if (strcmp(status, needed) != 0)
        return error_new(ERROR_INVALID, "cannot %s a container that is %s: expected %s", command, status,
                         needed);
    return cgroup_freeze(container->state->cgroup, frozen);
}

struct error *pause_command(const struct global_options *global, int argc, char **argv, int *exit_status) {
    (void)exit_status;
    return freeze(global, "pause", argc, argv, true);
}

struct error *resume_command(const struct global_options *global, int argc, char **argv, int *exit_status) {
    (void)exit_status;
    return freeze(global, "resume", argc, argv, false);
}
