#include "container/run_program.h"

#include <errno.h>
#include <linux/close_range.h>
#include <unistd.h>

#include "base/fd.h"
#include "sys/calls.h"
#include "warden/warden.h"

/* Preserved descriptors follow the standard ones and came without close-on-exec; a hole among them (which
 * podman may leave) was filled by cli/ with one that closes. All after them close at execve. */
static void close_all_but(unsigned preserve) {
    (void)!sys_close_range(STDERR_FILENO + 1 + preserve, ~0u, CLOSE_RANGE_CLOEXEC);
}

struct error *program_exec(const struct program *program, const char *command) {
    const struct oci_process *process = program->process;
    /* Without no_new_privs a filter can only be loaded while CAP_SYS_ADMIN is held, so ids are changed under
     * it. */
    int listener = -1;
    TRY(seccomp_install(program->seccomp, &listener));
    if (listener >= 0) {
        TRY(warden_give_listener(program->channel, listener, program->exec_id));
        /* Any holder but the warden would make denied calls hang, should it die. */
        fd_close(listener);
    }
    if (!process->no_new_privileges)
        TRY(identity_assume(process, program->sets, program->allow_setgroups));
    sys_signals_reset();
    close_all_but(program->preserve_fds);
    execve(command, process->args.items, process->env.items);
    if (errno == ENOENT)
        return error_known(ERROR_COMMAND_MISSING, command);
    if (errno == EACCES)
        return error_known(ERROR_COMMAND_DENIED, command);
    return error_system(errno, "exec", "%s", command);
}
