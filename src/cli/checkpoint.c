/* checkpoint and restore: parsed, so that podman's and CRI-O's probes get the answers that they look for, and
 * refused. */
#include "cli/cli.h"
#include "cli/options.h"

static fallible refuse(const char *command, int argc, char **argv) {
    const struct option options[] = {
        {"image-path", 0, OPTION_IGNORED_VALUE, NULL, NULL},
        {"work-path", 0, OPTION_IGNORED_VALUE, NULL, NULL},
        {"parent-path", 0, OPTION_IGNORED_VALUE, NULL, NULL},
        {"leave-running", 0, OPTION_IGNORED_FLAG, NULL, NULL},
        {"tcp-established", 0, OPTION_IGNORED_FLAG, NULL, NULL},
        {"tcp-close", 0, OPTION_IGNORED_FLAG, NULL, NULL},
        {"ext-unix-sk", 0, OPTION_IGNORED_FLAG, NULL, NULL},
        {"shell-job", 0, OPTION_IGNORED_FLAG, NULL, NULL},
        {"file-locks", 0, OPTION_IGNORED_FLAG, NULL, NULL},
        {"pre-dump", 0, OPTION_IGNORED_FLAG, NULL, NULL},
        {"lazy-pages", 0, OPTION_IGNORED_FLAG, NULL, NULL},
        {"page-server", 0, OPTION_IGNORED_VALUE, NULL, NULL},
        {"status-fd", 0, OPTION_IGNORED_VALUE, NULL, NULL},
        {"manage-cgroups-mode", 0, OPTION_IGNORED_VALUE, NULL, NULL},
        {"empty-ns", 0, OPTION_IGNORED_VALUE, NULL, NULL},
        {"lsm-profile", 0, OPTION_IGNORED_VALUE, NULL, NULL},
        {"lsm-mount-context", 0, OPTION_IGNORED_VALUE, NULL, NULL},
        {"link-remap", 0, OPTION_IGNORED_FLAG, NULL, NULL},
        {"auto-dedup", 0, OPTION_IGNORED_FLAG, NULL, NULL},
        {"network-lock", 0, OPTION_IGNORED_VALUE, NULL, NULL},
        {"no-new-keyring", 0, OPTION_IGNORED_FLAG, NULL, NULL},
        {"preserve-fds", 0, OPTION_IGNORED_VALUE, NULL, NULL},
        {"pidfd-socket", 0, OPTION_IGNORED_VALUE, NULL, NULL},
        {"bundle", 'b', OPTION_IGNORED_VALUE, NULL, NULL},
        {"pid-file", 0, OPTION_IGNORED_VALUE, NULL, NULL},
        {"console-socket", 0, OPTION_IGNORED_VALUE, NULL, NULL},
        {"detach", 'd', OPTION_IGNORED_FLAG, NULL, NULL},
        {"no-pivot", 0, OPTION_IGNORED_FLAG, NULL, NULL},
        {"no-subreaper", 0, OPTION_IGNORED_FLAG, NULL, NULL},
        {NULL, 0, OPTION_FLAG, NULL, NULL},
    };
    int first;
    bool help;
    TRY(options_parse(command, options, argc, argv, &first, &help));
    if (help) {
        options_print("pinfold checkpoint|restore ID: not supported", options);
        return NULL;
    }
    return error_new(ERROR_UNAVAILABLE, "%s: not supported by this runtime", command);
}

struct error *checkpoint_command(const struct global_options *global, int argc, char **argv,
                                 int *exit_status) {
    (void)global;
    (void)exit_status;
    return refuse("checkpoint", argc, argv);
}

struct error *restore_command(const struct global_options *global, int argc, char **argv, int *exit_status) {
    (void)global;
    (void)exit_status;
    return refuse("restore", argc, argv);
}
