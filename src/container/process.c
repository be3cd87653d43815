#include "container/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "sys/calls.h"

/* State and start time from /proc/PID/stat; the name in it may hold anything, so what counts begins after the
 * last parenthesis. */
static bool process_stat(pid_t pid, char *state, uint64_t *start_time) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    text_owned struct text bytes = {0};
    struct error *error = file_read(AT_FDCWD, path, 4096, &bytes);
    if (error != NULL) {
        error_ignore(error); /* gone */
        return false;
    }
    const char *field = strrchr(text_string(&bytes), ')');
    if (field == NULL || field[1] != ' ')
        return false;
    *state = field[2];
    field += 2;
    for (int number = 3; number < 22 && field != NULL; number++) {
        field = strchr(field, ' ');
        if (field != NULL)
            field++;
    }
    if (field == NULL)
        return false;
    *start_time = strtoull(field, NULL, 10);
    return true;
}

struct error *process_identify(pid_t pid, struct process_identity *out) {
    char state;
    if (!process_stat(pid, &state, &out->start_time))
        return error_system(ESRCH, "look at", "process %d", (int)pid);
    out->pid = pid;
    return NULL;
}

void process_open(const struct process_identity *identity, int *pidfd) {
    *pidfd = -1;
    if (identity->pid <= 0)
        return;
    fd_owned int fd = sys_pidfd_open((pid_t)identity->pid, 0);
    if (fd < 0)
        return;
    /* Looked at after it was opened: if the start time is right now, the descriptor is the right process's.
     */
    char state;
    uint64_t start_time;
    if (process_stat((pid_t)identity->pid, &state, &start_time) && start_time == identity->start_time &&
        state != 'Z' && state != 'X')
        *pidfd = fd_take(&fd);
}

struct error *pid_file_write(const char *path, pid_t pid) {
    memory_owned char *digits = text_formatted("%d", (int)pid);
    return error_context(file_replace(AT_FDCWD, path, digits, strlen(digits), 0644), "--pid-file");
}

int process_wait(pid_t pid) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return 0;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
