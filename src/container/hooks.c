#include "container/hooks.h"

#include <errno.h>
#include <limits.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "sys/calls.h"

/* The state as a file: a hook that does not read it costs nothing and gets nobody a broken pipe (crun #1551).
 */
static struct error *state_file(const char *state_json, int *out) {
    fd_owned int file = memfd_create("state", MFD_CLOEXEC);
    if (file < 0)
        return error_system(errno, "memfd_create", "the state for hooks");
    TRY(fd_write_all(file, state_json, strlen(state_json), "the state for hooks"));
    if (lseek(file, 0, SEEK_SET) < 0)
        return error_system(errno, "rewind", "the state for hooks");
    *out = fd_take(&file);
    return NULL;
}

static _Noreturn void hook_exec(const struct oci_hook *hook, const struct hook_context *context, int state) {
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    sys_signals_reset();
    (void)!setpgid(0, 0); /* a timeout ends its children too */
    if (context->directory != NULL)
        (void)!chdir(context->directory);
    /* Nothing of ours and nothing of the engine's but the standard streams. */
    if (dup2(state, STDIN_FILENO) < 0 || sys_close_range(STDERR_FILENO + 1, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
        _exit(127);
    struct error *error = context->confine == NULL ? NULL : context->confine(context->data);
    if (error != NULL) {
        fprintf(stderr, "pinfold: hook %s: %s\n", hook->path, error->message);
        _exit(126);
    }
    char *const fallback_arguments[] = {hook->path, NULL};
    char *const empty[] = {NULL};
    char *const *fallback_environment = context->environment ? context->environment : empty;
    execve(hook->path, hook->args.count ? hook->args.items : fallback_arguments,
           hook->env.count ? hook->env.items : fallback_environment);
    _exit(errno == ENOENT ? 127 : 126);
}

static int timeout_ms(const struct oci_hook *hook) {
    if (!hook->timeout.set)
        return -1;
    return hook->timeout.value > INT_MAX / 1000 ? INT_MAX : (int)hook->timeout.value * 1000;
}

static struct error *hook_run(const struct oci_hook *hook, const struct hook_context *context) {
    fd_owned int state = -1;
    TRY(state_file(context->state, &state));
    fd_owned int pidfd = -1;
    pid_t pid = sys_clone3(0, &pidfd, -1);
    if (pid == 0)
        hook_exec(hook, context, state);
    if (pid < 0)
        return error_system(errno, "fork", "hook %s", hook->path);
    struct pollfd end = {.fd = pidfd, .events = POLLIN};
    int ready;
    do
        ready = poll(&end, 1, timeout_ms(hook));
    while (ready < 0 && errno == EINTR);
    if (ready == 0) {
        (void)!sys_pidfd_send_signal(pidfd, SIGKILL); /* also where it has no group of its own yet */
        (void)!kill(-pid, SIGKILL);                   /* not reaped: the number is still its own */
    }
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return error_system(errno, "wait for", "%s", hook->path);
    if (ready == 0)
        return error_new(ERROR_INVALID, "%s ran longer than its timeout of %lld s", hook->path,
                         (long long)hook->timeout.value);
    if (WIFSIGNALED(status))
        return error_new(ERROR_INVALID, "%s was ended by signal %d", hook->path, WTERMSIG(status));
    if (WEXITSTATUS(status) != 0)
        return error_new(ERROR_INVALID, "%s ended with exit status %d", hook->path, WEXITSTATUS(status));
    return NULL;
}

struct error *hooks_run(const struct oci_hook *hooks, size_t count, const struct hook_context *context) {
    for (size_t i = 0; i < count; i++)
        TRY(error_context(hook_run(&hooks[i], context), "hooks.%s[%zu]", context->point, i));
    return NULL;
}
