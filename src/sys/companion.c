#include "sys/companion.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "sys/calls.h"

struct launch {
    const char *subcommand;
    const int *descriptors;
    size_t count;
};

/* In the child, which borrows the caller's memory. */
static int child_run(void *data) {
    const struct launch *launch = data;
    int high[COMPANION_FDS_MAX];
    for (size_t i = 0; i < launch->count; i++) {
        int fd = launch->descriptors[i];
        high[i] = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 64);
        if (high[i] < 0 && fd >= 0)
            _exit(127);
    }
    int null_device = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null_device < 0)
        _exit(127);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (dup2(null_device, fd) < 0)
            _exit(127);
    for (size_t i = 0; i < launch->count; i++) {
        if (high[i] < 0)
            fd_close(COMPANION_FD_FIRST + (int)i);
        else if (dup2(high[i], COMPANION_FD_FIRST + (int)i) < 0)
            _exit(127);
    }
    if (sys_close_range(COMPANION_FD_FIRST + (unsigned)launch->count, ~0u, 0) < 0)
        _exit(127);
    /* What the engine blocked or ignored is not for us (a hook-started process once could not be ended by
     * SIGTERM). */
    sys_signals_reset();
    if (setsid() < 0 || chdir("/") < 0)
        _exit(127);
    char *const arguments[] = {(char[]){"pinfold"}, (char *)(uintptr_t)launch->subcommand, NULL};
    static char *const environment[] = {NULL};
    execve("/proc/self/exe", arguments, environment);
    _exit(127);
}

struct error *companion_spawn(const char *subcommand, const int *descriptors, size_t count, const char *what,
                              pid_t *pid) {
    struct launch launch = {subcommand, descriptors, count};
    fd_owned int pidfd = -1;
    *pid = count > COMPANION_FDS_MAX ? (errno = E2BIG, -1) : sys_spawn(child_run, &launch, &pidfd);
    return *pid < 0 ? error_system(errno, "fork", "%s", what) : NULL;
}

struct error *companion_plan_seal(const void *bytes, size_t length, const char *what, int *out) {
    fd_owned int memory = memfd_create("pinfold-plan", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (memory < 0)
        return error_system(errno, "memfd_create", "%s", what);
    TRY(fd_write_all(memory, bytes, length, what));
    if (fcntl(memory, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
        return error_system(errno, "seal", "%s", what);
    if (lseek(memory, 0, SEEK_SET) < 0)
        return error_system(errno, "rewind", "%s", what);
    *out = fd_take(&memory);
    return NULL;
}
