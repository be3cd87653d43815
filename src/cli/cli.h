/* What the subcommands share. */
#pragma once

#include "base/error.h"
#include "container/container.h"

struct global_options {
    struct runtime_options runtime;
    const char *log; /* file for errors, beside standard error */
    bool log_json;
};

/* A subcommand: argv[0] is its name. *exit_status is 0 unless it says otherwise. */
typedef fallible (*command_function)(const struct global_options *global, int argc, char **argv,
                                     int *exit_status);

fallible create_command(const struct global_options *global, int argc, char **argv, int *exit_status);
fallible run_command(const struct global_options *global, int argc, char **argv, int *exit_status);
fallible start_command(const struct global_options *global, int argc, char **argv, int *exit_status);
fallible state_command(const struct global_options *global, int argc, char **argv, int *exit_status);
fallible kill_command(const struct global_options *global, int argc, char **argv, int *exit_status);
fallible delete_command(const struct global_options *global, int argc, char **argv, int *exit_status);
fallible exec_command(const struct global_options *global, int argc, char **argv, int *exit_status);
fallible list_command(const struct global_options *global, int argc, char **argv, int *exit_status);
fallible ps_command(const struct global_options *global, int argc, char **argv, int *exit_status);
fallible pause_command(const struct global_options *global, int argc, char **argv, int *exit_status);
fallible resume_command(const struct global_options *global, int argc, char **argv, int *exit_status);
fallible events_command(const struct global_options *global, int argc, char **argv, int *exit_status);
fallible update_command(const struct global_options *global, int argc, char **argv, int *exit_status);
fallible checkpoint_command(const struct global_options *global, int argc, char **argv, int *exit_status);
fallible restore_command(const struct global_options *global, int argc, char **argv, int *exit_status);
fallible spec_command(const struct global_options *global, int argc, char **argv, int *exit_status);
fallible features_command(const struct global_options *global, int argc, char **argv, int *exit_status);
fallible policy_command(const struct global_options *global, int argc, char **argv, int *exit_status);
fallible policy_generate_command(const struct global_options *global, int argc, char **argv,
                                 int *exit_status);
fallible explain_command(const struct global_options *global, int argc, char **argv, int *exit_status);
fallible why_command(const struct global_options *global, int argc, char **argv, int *exit_status);
fallible sandbox_command(const struct global_options *global, int argc, char **argv, int *exit_status);

/* Exactly one word, the container's ID, is left at `first`. */
fallible cli_container_id(const char *command, int argc, char **argv, int first, const char **id);
/* A number from an option's value. */
fallible cli_number(const char *option, const char *value, unsigned maximum, unsigned *out);
/* The container of a command that takes nothing but its ID; prints the usage and ends for --help. */
fallible cli_open(const struct global_options *global, const char *command, int argc, char **argv,
                  enum container_lock lock, struct container **out);
/* Runs a container that was created in the foreground until it ends, deletes it, and gives its exit status.
 */
fallible cli_attend(struct created *created, bool keep, int *exit_status);
/* Calls `each` for every container whose ID matches the extended regular expression; the first error ends it.
 */
fallible cli_each_matching(const char *root, const char *pattern,
                           fallible (*each)(const char *id, void *data), void *data);

#define CLI_PRESERVE_MAX 1024

/* Adds the descriptors of systemd's socket activation (LISTEN_FDS, sd_listen_fds(3)) that the environment
 * offers to this process. */
void cli_listen_descriptors(struct create_options *create);
/* Fills holes among the descriptors that a caller wants preserved, so that none of ours lands there. */
fallible cli_reserve_descriptors(unsigned count);
