#include <ctype.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/cli.h"
#include "cli/options.h"

/* "9", "KILL", "SIGKILL", "RTMIN+3". */
static struct error *signal_parse(const char *word, int *out) {
    if (isdigit((unsigned char)word[0])) {
        char *end;
        long number = strtol(word, &end, 10);
        if (*end != '\0' || number < 0 || number >= NSIG)
            return error_new(ERROR_USAGE, "kill: unknown signal \"%s\"", word);
        *out = (int)number;
        return NULL;
    }
    const char *name = strncasecmp(word, "SIG", 3) == 0 ? word + 3 : word;
    for (int number = 1; number < SIGRTMIN; number++) {
        const char *known = sigabbrev_np(number);
        if (known != NULL && strcasecmp(known, name) == 0) {
            *out = number;
            return NULL;
        }
    }
    bool minimum = strncasecmp(name, "RTMIN", 5) == 0, maximum = strncasecmp(name, "RTMAX", 5) == 0;
    if (minimum || maximum) {
        int number = (minimum ? SIGRTMIN : SIGRTMAX) + (int)strtol(name + 5, NULL, 10);
        if (number >= SIGRTMIN && number <= SIGRTMAX) {
            *out = number;
            return NULL;
        }
    }
    return error_new(ERROR_USAGE, "kill: unknown signal \"%s\"", word);
}

struct killing {
    const char *root;
    int signal;
    bool all;
};

static struct error *kill_one(const char *id, void *data) {
    const struct killing *killing = data;
    container_owned struct container *container = NULL;
    TRY(container_open(killing->root, id, CONTAINER_UNLOCKED, &container));
    return container_kill(container, killing->signal, killing->all);
}

struct error *kill_command(const struct global_options *global, int argc, char **argv, int *exit_status) {
    (void)exit_status;
    struct killing killing = {.root = global->runtime.root, .signal = SIGTERM};
    bool pattern = false, help;
    int first;
    const struct option options[] = {
        {"all", 'a', OPTION_FLAG, &killing.all, "every process of the container"},
        {"regex", 'r', OPTION_FLAG, &pattern, "ID is an extended regular expression"},
        {NULL, 0, OPTION_FLAG, NULL, NULL}};
    TRY(options_parse("kill", options, argc, argv, &first, &help));
    if (help) {
        options_print("pinfold kill [--all] ID [SIGNAL]", options);
        return NULL;
    }
    if (argc - first < 1 || argc - first > 2)
        return error_new(ERROR_USAGE, "\"kill\" requires the container's ID and at most a signal");
    if (argc - first == 2)
        TRY(signal_parse(argv[first + 1], &killing.signal));
    if (pattern)
        return cli_each_matching(killing.root, argv[first], kill_one, &killing);
    return kill_one(argv[first], &killing);
}
