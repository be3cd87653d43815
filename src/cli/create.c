#include <stdio.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/cli.h"
#include "cli/options.h"

struct creation_line {
    struct create_options create;
    const char *preserve_fds;
    bool detach;
    bool keep;
    bool help;
};

static struct error *creation_parse(const char *command, int argc, char **argv, struct creation_line *line) {
    *line = (struct creation_line){.create.bundle = "."};
    const struct option options[] = {
        {"bundle", 'b', OPTION_VALUE, &line->create.bundle, "the bundle's directory (.)"},
        {"config", 'f', OPTION_VALUE, &line->create.config, "the configuration (config.json in the bundle)"},
        {"pid-file", 0, OPTION_VALUE, &line->create.pid_file,
         "where to write the pid of the container's init"},
        {"console-socket", 0, OPTION_VALUE, &line->create.console_socket, "where to send the terminal"},
        {"preserve-fds", 0, OPTION_VALUE, &line->preserve_fds, "how many descriptors after 2 to pass on"},
        {"pidfd-socket", 0, OPTION_VALUE, &line->create.pidfd_socket, "where to send a pidfd of init"},
        {"no-pivot", 0, OPTION_FLAG, &line->create.no_pivot,
         "for a machine that runs from its initial ramdisk"},
        {"no-new-keyring", 0, OPTION_FLAG, &line->create.no_new_keyring, "keep the session keyring"},
        {"detach", 'd', OPTION_FLAG, &line->detach, "run: do not wait"},
        {"keep", 0, OPTION_FLAG, &line->keep, "run: do not delete at the end"},
        {"no-subreaper", 0, OPTION_IGNORED_FLAG, NULL, NULL},
        {NULL, 0, OPTION_FLAG, NULL, NULL},
    };
    int first;
    TRY(options_parse_anywhere(command, options, argc, argv, &first, &line->help));
    if (line->help) {
        memory_owned char *usage = text_formatted("pinfold %s [OPTIONS] ID", command);
        options_print(usage, options);
        return NULL;
    }
    TRY(cli_container_id(command, argc, argv, first, &line->create.id));
    TRY(cli_number("preserve-fds", line->preserve_fds, CLI_PRESERVE_MAX, &line->create.preserve_fds));
    cli_listen_descriptors(&line->create);
    return cli_reserve_descriptors(line->create.preserve_fds);
}

/* A message of create's begins with what failed, as callers show it alone. */
struct error *create_command(const struct global_options *global, int argc, char **argv, int *exit_status) {
    (void)exit_status;
    struct creation_line line;
    TRY(creation_parse("create", argc, argv, &line));
    if (line.help)
        return NULL;
    created_owned struct created created = {.pidfd = -1, .terminal = -1};
    return error_context(container_create(&global->runtime, &line.create, &created), "create failed");
}

static struct error *run(const struct global_options *global, struct creation_line *line, int *exit_status) {
    created_owned struct created created = {.pidfd = -1, .terminal = -1};
    line->create.attended = !line->detach && line->create.console_socket == NULL;
    TRY(container_create(&global->runtime, &line->create, &created));
    if (!line->detach)
        return cli_attend(&created, line->keep, exit_status);
    struct error *error = container_start(created.container, false);
    if (error != NULL)
        error_ignore(container_delete(created.container, true)); /* the first error says more */
    return error;
}

struct error *run_command(const struct global_options *global, int argc, char **argv, int *exit_status) {
    struct creation_line line;
    TRY(creation_parse("run", argc, argv, &line));
    if (line.help)
        return NULL;
    return error_context(run(global, &line, exit_status), "run failed");
}
