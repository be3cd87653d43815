#include <fcntl.h>
#include <stdio.h>

#include "cli/cli.h"
#include "cli/options.h"

static struct error *run(const struct global_options *global, int argc, char **argv, int *exit_status) {
    struct exec_options exec = {0};
    const char *preserve_fds = NULL;
    bool help;
    int first;
    const struct option options[] = {
        {"process", 'p', OPTION_VALUE, &exec.process, "a file with the process document"},
        {"cwd", 0, OPTION_VALUE, &exec.cwd, "working directory"},
        {"env", 'e', OPTION_LIST, &exec.env, "NAME=VALUE, one more variable"},
        {"user", 'u', OPTION_VALUE, &exec.user, "UID[:GID]"},
        {"cap", 'c', OPTION_LIST, &exec.capabilities, "one more capability"},
        {"tty", 't', OPTION_FLAG, &exec.tty, "give it a terminal"},
        {"detach", 'd', OPTION_FLAG, &exec.detach, "do not wait"},
        {"pid-file", 0, OPTION_VALUE, &exec.pid_file, "where to write the pid"},
        {"console-socket", 0, OPTION_VALUE, &exec.console_socket, "where to send the terminal"},
        {"pidfd-socket", 0, OPTION_VALUE, &exec.pidfd_socket, "where to send a pidfd of the process"},
        {"no-new-privs", 0, OPTION_FLAG, &exec.no_new_privileges, "set no_new_privs"},
        {"preserve-fds", 0, OPTION_VALUE, &preserve_fds, "how many descriptors after 2 to pass on"},
        {"additional-gids", 'g', OPTION_LIST, &exec.additional_gids, "one more group, a number"},
        {"ignore-paused", 0, OPTION_FLAG, &exec.ignore_paused, "run when the container is resumed"},
        {"apparmor", 0, OPTION_VALUE, &exec.apparmor_profile, "another AppArmor profile"},
        {"cgroup", 0, OPTION_LIST, &exec.cgroups, "[CONTROLLER,...:]PATH, a sub-cgroup to join"},
        {"process-label", 0, OPTION_VALUE, &exec.selinux_label, "another SELinux label"},
        {NULL, 0, OPTION_FLAG, NULL, NULL},
    };
    TRY(options_parse("exec", options, argc, argv, &first, &help));
    if (help) {
        options_print("pinfold exec [OPTIONS] ID [COMMAND...]", options);
        return NULL;
    }
    if (argc - first < 1)
        return error_new(ERROR_USAGE,
                         "\"exec\" requires the container's ID and a command, or --process FILE");
    const char *id = argv[first];
    for (int i = first + 1; i < argc; i++)
        string_list_append(&exec.args, argv[i]);
    TRY(cli_number("preserve-fds", preserve_fds, CLI_PRESERVE_MAX, &exec.preserve_fds));
    TRY(cli_reserve_descriptors(exec.preserve_fds));
    container_owned struct container *container = NULL;
    TRY(container_open(global->runtime.root, id, CONTAINER_UNLOCKED, &container));
    return container_exec(container, &exec, exit_status);
}

/* 255 where the command did not run: CRI-O hands the status on as the command's own. */
struct error *exec_command(const struct global_options *global, int argc, char **argv, int *exit_status) {
    struct error *error = run(global, argc, argv, exit_status);
    if (error != NULL)
        *exit_status = 255;
    return error_context(error, "exec failed");
}
