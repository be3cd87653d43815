#include "container/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "process/unix_socket.h"
#include "sys/calls.h"

#define PF_EXITING 0x4u /* field 9 of /proc/PID/stat: exit(2) has begun (include/linux/sched.h) */

struct process_stat {
    char state;
    pid_t parent;
    unsigned flags;
    uint64_t start_time;
};

/* From /proc/PID/stat; the name in it may hold anything, so what counts begins after the last parenthesis. */
static bool process_stat_read(pid_t pid, struct process_stat *out) {
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
    field += 2;
    out->state = *field;
    for (int number = 3; number < 22; number++) {
        if (number == 4)
            out->parent = (pid_t)strtol(field, NULL, 10);
        if (number == 9)
            out->flags = (unsigned)strtoul(field, NULL, 10);
        field = strchr(field, ' ');
        if (field == NULL)
            return false;
        field++;
    }
    out->start_time = strtoull(field, NULL, 10);
    return true;
}

pid_t process_parent(pid_t pid) {
    struct process_stat stat;
    return process_stat_read(pid, &stat) ? stat.parent : 0;
}

struct error *process_identify(pid_t pid, struct process_identity *out) {
    struct process_stat stat;
    if (!process_stat_read(pid, &stat))
        return error_system(ESRCH, "look at", "process %d", (int)pid);
    out->pid = pid;
    out->start_time = stat.start_time;
    return NULL;
}

/* Looked at after it was opened: if the start time is right now, the descriptor is the right process's. */
static int identity_open(const struct process_identity *identity, struct process_stat *stat) {
    if (identity->pid <= 0)
        return -1;
    fd_owned int fd = sys_pidfd_open((pid_t)identity->pid, 0);
    if (fd < 0 || !process_stat_read((pid_t)identity->pid, stat) || stat->start_time != identity->start_time)
        return -1;
    /* A leader may be a zombie while other threads of its process run on; a pidfd knows. */
    struct pollfd end = {.fd = fd, .events = POLLIN};
    if (stat->state == 'X' || poll(&end, 1, 0) > 0)
        return -1;
    return fd_take(&fd);
}

void process_open(const struct process_identity *identity, int *pidfd) {
    struct process_stat stat;
    *pidfd = identity_open(identity, &stat);
}

void process_open_alive(const struct process_identity *identity, int *pidfd) {
    struct process_stat stat;
    *pidfd = identity_open(identity, &stat);
    if (*pidfd >= 0 && (stat.flags & PF_EXITING) != 0 && stat.state != 'Z')
        fd_close(fd_take(pidfd));
}

struct error *pid_file_write(const char *path, pid_t pid) {
    memory_owned char *digits = text_formatted("%d", (int)pid);
    return error_context(file_replace(AT_FDCWD, path, digits, strlen(digits), 0644), "--pid-file");
}

struct error *pidfd_send(const char *path, int pidfd) {
    static const char name[] = "pidfd";
    fd_owned int connection = -1;
    TRY(unix_socket_connect(path, SOCK_STREAM, 0, "pidfd socket", &connection));
    return error_context(fd_send(connection, name, sizeof name - 1, &pidfd, 1), "pidfd socket %s", path);
}

struct error *descriptors_withhold(unsigned count) {
    fd_owned int nowhere = eventfd(0, EFD_CLOEXEC);
    if (nowhere < 0)
        return error_system(errno, "open", "a descriptor");
    for (unsigned fd = STDERR_FILENO + 1; fd <= STDERR_FILENO + count; fd++)
        if (dup3(nowhere, (int)fd, O_CLOEXEC) < 0)
            return error_system(errno, "replace", "descriptor %u", fd);
    return NULL;
}

int process_wait(pid_t pid) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return 255; /* no child of ours: not known how it ended, so never a success */
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
