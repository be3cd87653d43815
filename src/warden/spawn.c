/* warden_spawn: a fresh image of this program, with a sealed plan and nothing else. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "sys/calls.h"
#include "warden/launch.h"
#include "warden/warden.h"

/* In the child: descriptors to their fixed numbers, nothing else open, no signal blocked or ignored. */
static int child_run(void *data) {
    const int *descriptors = data;
    int high[WARDEN_FD_COUNT];
    for (int i = 0; i < WARDEN_FD_COUNT; i++) {
        high[i] = descriptors[i] < 0 ? -1 : fcntl(descriptors[i], F_DUPFD_CLOEXEC, 64);
        if (high[i] < 0 && descriptors[i] >= 0)
            _exit(127);
    }
    int null_device = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null_device < 0)
        _exit(127);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (dup2(null_device, fd) < 0)
            _exit(127);
    for (int i = 0; i < WARDEN_FD_COUNT; i++) {
        if (high[i] < 0)
            fd_close(WARDEN_FD_FIRST + i);
        else if (dup2(high[i], WARDEN_FD_FIRST + i) < 0)
            _exit(127);
    }
    if (sys_close_range(WARDEN_FD_FIRST + WARDEN_FD_COUNT, ~0u, 0) < 0)
        _exit(127);
    /* What the engine blocked or ignored is not for us (a hook-started process once could not be ended by
     * SIGTERM). */
    sys_signals_reset();
    if (setsid() < 0 || chdir("/") < 0)
        _exit(127);
    static char *const arguments[] = {"pinfold", "warden", NULL};
    static char *const environment[] = {NULL};
    execve("/proc/self/exe", arguments, environment);
    _exit(127);
}

struct error *warden_spawn(const struct warden_plan *plan, int init_channel, int listening, int init_pidfd,
                           int broker_channel, pid_t *pid) {
    fd_owned int sealed = -1;
    TRY(warden_plan_seal(plan, &sealed));
    int descriptors[WARDEN_FD_COUNT] = {sealed, init_channel, listening, init_pidfd, broker_channel};
    fd_owned int pidfd = -1;
    *pid = sys_spawn(child_run, descriptors, &pidfd);
    if (*pid < 0)
        return error_system(errno, "fork", "the warden");
    return NULL;
}
