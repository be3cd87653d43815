#include "container/run_program.h"

#include <errno.h>
#include <linux/close_range.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "sys/calls.h"
#include "warden/warden.h"

/* Preserved descriptors follow the standard ones and came without close-on-exec; a hole among them (which
 * podman may leave) was filled by cli/ with one that closes. All after them close at execve. */
static void close_all_but(unsigned preserve) {
    (void)!sys_close_range(STDERR_FILENO + 1 + preserve, ~0u, CLOSE_RANGE_CLOEXEC);
}

static struct error *listener_give(const struct program *program, int listener) {
    if (program->agent->connection >= 0)
        return seccomp_agent_give(program->agent, listener);
    return warden_give_listener(program->channel, listener, program->exec_id);
}

/* From outside the filter, while the thread below it waits: there is nobody to return an error to. */
static void listener_deliver(int listener, void *data) {
    const struct program *program = data;
    struct error *error = listener_give(program, listener);
    if (error == NULL)
        return;
    error_send(program->report, error);
    _exit(127);
}

/* Whether the listener can be given away under the filter itself, which costs no thread: the warden asks for
 * none of these calls, but a profile can deny them. An agent of the user's may well hold them. */
static bool filter_lets_give(const struct program *program) {
    static const int calls[] = {SYS_sendmsg, SYS_recvfrom, SYS_close};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (!seccomp_program_allows(program->seccomp, calls[i]))
            return false;
    return program->agent->connection < 0;
}

static struct error *filter_load(const struct program *program) {
    if (program->seccomp->has_listener && !filter_lets_give(program))
        return seccomp_install_delivered(program->seccomp, listener_deliver, (void *)program);
    int listener = -1;
    TRY(seccomp_install(program->seccomp, &listener));
    if (listener < 0)
        return NULL;
    TRY(listener_give(program, listener));
    /* Any holder but the warden would make denied calls hang, should it die. */
    fd_close(listener);
    return NULL;
}

struct error *program_exec(const struct program *program, const char *command) {
    const struct oci_process *process = program->process;
    /* What needs no privilege comes before the filter, which may deny it. */
    sys_signals_reset();
    close_all_but(program->preserve_fds);
    /* Without no_new_privs a filter can only be loaded while CAP_SYS_ADMIN is held, so ids are changed under
     * it. */
    TRY(filter_load(program));
    if (!process->no_new_privileges)
        TRY(identity_assume(process, program->sets, program->allow_setgroups));
    execve(command, process->args.items, process->env.items);
    if (errno == ENOENT)
        return error_known(ERROR_COMMAND_MISSING, command);
    if (errno == EACCES)
        return error_known(ERROR_COMMAND_DENIED, command);
    return error_system(errno, "exec", "%s", command);
}
