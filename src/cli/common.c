#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "process/terminal.h"

struct error *cli_container_id(const char *command, int argc, char **argv, int first, const char **id) {
    if (argc - first != 1)
        return error_new(ERROR_USAGE, "\"%s\" requires exactly 1 argument, the container's ID", command);
    *id = argv[first];
    return NULL;
}

struct error *cli_open(const struct global_options *global, const char *command, int argc, char **argv,
                       enum container_lock lock, struct container **out) {
    static const struct option no_options[] = {{NULL, 0, OPTION_FLAG, NULL, NULL}};
    int first;
    bool help;
    const char *id;
    TRY(options_parse_anywhere(command, no_options, argc, argv, &first, &help));
    if (help) {
        printf("usage: pinfold %s ID\n", command);
        exit(0);
    }
    TRY(cli_container_id(command, argc, argv, first, &id));
    return container_open(global->runtime.root, id, lock, out);
}

struct error *cli_number(const char *option, const char *value, unsigned maximum, unsigned *out) {
    *out = 0;
    if (value == NULL)
        return NULL;
    char *end;
    errno = 0;
    unsigned long number = strtoul(value, &end, 10);
    if (errno != 0 || end == value || *end != '\0' || number > maximum)
        return error_new(ERROR_USAGE, "--%s: expected a number from 0 to %u, found \"%s\"", option, maximum,
                         value);
    *out = (unsigned)number;
    return NULL;
}

struct error *cli_each_matching(const char *root, const char *pattern,
                                struct error *(*each)(const char *id, void *data), void *data) {
    regex_t regex;
    if (regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB) != 0)
        return error_new(ERROR_USAGE, "--regex: not an extended regular expression: \"%s\"", pattern);
    struct dirent **entries = NULL;
    int count = scandir(root, &entries, NULL, alphasort);
    struct error *error = NULL;
    for (int i = 0; i < count; i++) {
        const char *id = entries[i]->d_name;
        if (error == NULL && id[0] != '.' && regexec(&regex, id, 0, NULL, 0) == 0)
            error = each(id, data);
        free(entries[i]);
    }
    free(entries);
    regfree(&regex);
    return error;
}

void cli_listen_descriptors(struct create_options *create) {
    const char *count = getenv("LISTEN_FDS"), *pid = getenv("LISTEN_PID");
    struct error *error = cli_number("LISTEN_FDS", count, CLI_PRESERVE_MAX, &create->listen_fds);
    create->listen_fds_ours = pid != NULL && strtol(pid, NULL, 10) == getpid();
    /* What is no number, or was for another process, is no business of ours. */
    if (error != NULL || (pid != NULL && pid[0] != '\0' && !create->listen_fds_ours))
        create->listen_fds = 0;
    error_ignore(error);
    create->preserve_fds += create->listen_fds;
}

struct error *cli_reserve_descriptors(unsigned count) {
    for (unsigned fd = STDERR_FILENO + 1; fd <= STDERR_FILENO + count; fd++) {
        if (fcntl((int)fd, F_GETFD) >= 0)
            continue;
        /* Something that leads nowhere, in case anybody looks into the process before it closes. */
        int filler = eventfd(0, EFD_CLOEXEC);
        if (filler < 0)
            return error_system(errno, "open", "something to fill descriptor %u with", fd);
        if ((unsigned)filler != fd) {
            int moved = dup3(filler, (int)fd, O_CLOEXEC);
            fd_close(filler);
            if (moved < 0)
                return error_system(errno, "fill", "descriptor %u", fd);
        }
    }
    return NULL;
}

struct error *cli_attend(struct created *created, bool keep, int *exit_status) {
    struct error *error = container_start(created->container, true);
    if (error == NULL)
        error = created->terminal >= 0 ? terminal_attend(created->terminal, created->pidfd)
                                       : signals_attend(created->pidfd);
    if (error != NULL)
        error_ignore(container_kill(created->container, 9, false)); /* it may have ended by itself */
    int status = process_wait(created->pid);
    if (error == NULL)
        *exit_status = status;
    /* Our own child here: it is gone within 200 ms of init, and has then written its last record. */
    if (created->warden > 0)
        process_wait(created->warden);
    if (created->broker > 0)
        process_wait(created->broker);
    if (keep)
        return error;
    struct error *deleted = container_delete(created->container, true);
    if (error == NULL)
        return deleted;
    error_ignore(deleted); /* the first error says more */
    return error;
}
