/* broker_spawn: a fresh image of this program, with a sealed plan and nothing else. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "broker/broker.h"
#include "broker/launch.h"
#include "sys/calls.h"

/* In the child: descriptors to their fixed numbers, nothing else open, no signal blocked or ignored. */
static int child_run(void *data) {
    const int *descriptors = data;
    int high[BROKER_FD_COUNT];
    for (int i = 0; i < BROKER_FD_COUNT; i++) {
        high[i] = fcntl(descriptors[i], F_DUPFD_CLOEXEC, 64);
        if (high[i] < 0)
            _exit(127);
    }
    int null_device = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null_device < 0)
        _exit(127);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (dup2(null_device, fd) < 0)
            _exit(127);
    for (int i = 0; i < BROKER_FD_COUNT; i++)
        if (dup2(high[i], BROKER_FD_FIRST + i) < 0)
            _exit(127);
    if (sys_close_range(BROKER_FD_END, ~0u, 0) < 0)
        _exit(127);
    sys_signals_reset();
    if (setsid() < 0 || chdir("/") < 0)
        _exit(127);
    static char *const arguments[] = {"pinfold", "broker", NULL};
    static char *const environment[] = {NULL};
    execve("/proc/self/exe", arguments, environment);
    _exit(127);
}

struct error *broker_spawn(const struct broker_plan *plan, int channel, int init_pidfd, pid_t *pid) {
    fd_owned int sealed = -1;
    TRY(broker_plan_seal(plan, &sealed));
    int descriptors[BROKER_FD_COUNT] = {sealed, channel, init_pidfd};
    fd_owned int pidfd = -1;
    *pid = sys_spawn(child_run, descriptors, &pidfd);
    return *pid < 0 ? error_system(errno, "fork", "the broker's keeper") : NULL;
}
