#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "process/terminal.h"

struct error *cli_container_id(const char *command, int argc, char **argv, int first, const char **id) {
    if (argc - first != 1)
        return error_new(ERROR_USAGE, "\"%s\" requires exactly 1 argument, the container's ID", command);
    *id = argv[first];
    return NULL;
}

struct error *cli_number(const char *option, const char *value, unsigned maximum, unsigned *out) {
    *out = 0;
    if (value == NULL)
        return NULL;
    char *end;
    errno = 0;
    unsigned long number = strtoul(value, &end, 10);
    if (errno != 0 || end == value || *end != '\0' || number > maximum)
        return error_new(ERROR_USAGE, "--%s: expected a number from 0 to %u, found \"%s\"", option, maximum, value);
    *out = (unsigned)number;
    return NULL;
}

char *cli_absolute_path(const char *path) {
    if (path[0] == '/')
        return memory_copy_string(path);
    memory_owned char *here = getcwd(NULL, 0);
    return text_formatted("%s/%s", here ? here : "", path);
}

struct error *cli_reserve_descriptors(unsigned count) {
    for (unsigned fd = STDERR_FILENO + 1; fd <= STDERR_FILENO + count; fd++) {
        if (fcntl((int)fd, F_GETFD) >= 0)
            continue;
        int filler = open("/", O_PATH | O_CLOEXEC);
        if (filler < 0)
            return error_system(errno, "open", "/ to fill descriptor %u", fd);
        if ((unsigned)filler != fd) {
            int moved = dup3(filler, (int)fd, O_CLOEXEC);
            fd_close(filler);
            if (moved < 0)
                return error_system(errno, "fill", "descriptor %u", fd);
        }
    }
    return NULL;
}

struct error *cli_attend(const struct runtime_options *runtime, struct created *created, bool keep, int *exit_status) {
    struct error *error = container_start(created->container);
    if (error == NULL)
        error = created->terminal >= 0 ? terminal_attend(created->terminal, created->pidfd)
                                       : signals_attend(created->pidfd);
    if (error != NULL)
        error_ignore(container_kill(created->container, 9, false)); /* it may have ended by itself */
    int status = container_wait(created->pid);
    if (error == NULL)
        *exit_status = status;
    /* Our own child here: it is gone within 200 ms of init, and has then written its last record. */
    if (created->warden > 0)
        container_wait(created->warden);
    if (keep)
        return error;
    struct error *deleted = container_delete(runtime, created->container, true);
    if (error == NULL)
        return deleted;
    error_ignore(deleted); /* the first error says more */
    return error;
}
