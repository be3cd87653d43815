/* pinfold policy SUBCOMMAND. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

static const struct {
    const char *name;
    command_function run;
    const char *help;
} subcommands[] = {
    {"generate", policy_generate_command,
     "print the policy for the registry of this machine's npm, pip, ..."},
};

#define SUBCOMMAND_COUNT (sizeof subcommands / sizeof subcommands[0])

struct error *policy_command(const struct global_options *global, int argc, char **argv, int *exit_status) {
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        puts("usage: pinfold policy COMMAND ...\n\ncommands:");
        for (size_t i = 0; i < SUBCOMMAND_COUNT; i++)
            printf("  %-10s %s\n", subcommands[i].name, subcommands[i].help);
        *exit_status = argc < 2;
        return NULL;
    }
    for (size_t i = 0; i < SUBCOMMAND_COUNT; i++)
        if (strcmp(subcommands[i].name, argv[1]) == 0)
            return subcommands[i].run(global, argc - 1, argv + 1, exit_status);
    return error_new(ERROR_USAGE, "unknown command \"policy %s\" (see pinfold policy --help)", argv[1]);
}
