/* pinfold-egress-hook [--policy NAME|FILE]: an OCI hook (config.md, "POSIX-platform Hooks") of the stage
 * createRuntime, which gives containers of crun, runc and others pinfold's network wall. The container's
 * state comes on standard input; an exit status other than 0 makes the runtime fail the container. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "broker/broker.h"
#include "cli/options.h"
#include "hooks/egress.h"
#include "warden/warden.h"

static struct error *state_read(struct oci_state **out) {
    text_owned struct text bytes = {0};
    ssize_t length;
    while ((length = read(STDIN_FILENO, text_room(&bytes, BUFSIZ), BUFSIZ)) > 0) {
        text_grown(&bytes, (size_t)length);
        if (bytes.length > SCHEMA_BYTES_MAX)
            return error_new(ERROR_INVALID, "the container's state: too long");
    }
    if (length < 0)
        return error_system(errno, "read", "the container's state");
    void *state = NULL;
    TRY(schema_read(&oci_state_schema, "the container's state", text_string(&bytes), bytes.length, &state));
    *out = state;
    return NULL;
}

static struct error *run(int argc, char **argv) {
    const char *policy = NULL;
    bool help = false;
    int first;
    const struct option options[] = {
        {"policy", 0, OPTION_VALUE, &policy, "the policy, a name or a file (what /etc/pinfold says)"},
        {NULL, 0, OPTION_FLAG, NULL, NULL},
    };
    TRY(options_parse(argv[0], options, argc, argv, &first, &help));
    if (help) {
        options_print("pinfold-egress-hook [--policy NAME|FILE], with a container's state on standard input",
                      options);
        return NULL;
    }
    if (first < argc)
        return error_new(ERROR_USAGE, "unknown word \"%s\"", argv[first]);
    struct oci_state *state = NULL;
    TRY(state_read(&state));
    struct error *error = egress_set_up(state, policy);
    schema_free(&oci_state_schema, state);
    return error;
}

/* crun gives its hooks /dev/null for standard error, and then says no more than "exit code: 1": the words go
 * where its own do, which is what engines show. */
static void say(const char *message) {
    struct stat own, null_device;
    bool lost = fstat(STDERR_FILENO, &own) < 0 ||
                (stat("/dev/null", &null_device) == 0 && own.st_dev == null_device.st_dev &&
                 own.st_ino == null_device.st_ino);
    memory_owned char *path = text_formatted("/proc/%d/fd/%d", (int)getppid(), STDERR_FILENO);
    fd_owned int runtimes = lost ? open(path, O_WRONLY | O_APPEND | O_NOCTTY | O_NONBLOCK | O_CLOEXEC) : -1;
    dprintf(runtimes >= 0 ? runtimes : STDERR_FILENO, "pinfold-egress-hook: %s\n", message);
}

int main(int argc, char **argv) {
    memory_tune();
    signal(SIGCHLD, SIG_DFL); /* else children would be reaped unseen */
    /* What stays beside the container is this program again: sys/companion.h. */
    if (argc == 2 && strcmp(argv[1], "warden") == 0)
        return warden_main();
    if (argc == 2 && strcmp(argv[1], "broker") == 0)
        return broker_main();
    error_owned error = run(argc, argv);
    if (error == NULL)
        return 0;
    say(error->message);
    return 1;
}
