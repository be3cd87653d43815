#include "container/run_program.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "facts/passwd.h"
#include "process/command.h"
#include "process/landlock.h"
#include "process/scheduling.h"
#include "sys/calls.h"
#include "warden/warden.h"

/* Preserved descriptors follow the standard ones and came without close-on-exec; a hole among them (which
 * podman may leave) was filled by cli/ with one that closes. All after them close at execve. */
static void close_all_but(unsigned preserve) {
    (void)!sys_close_range(STDERR_FILENO + 1 + preserve, ~0u, CLOSE_RANGE_CLOEXEC);
}

/* The image's own text, read as root: a regular file, bounded, and nothing that can make us wait. */
static char *home_look_up(uid_t uid) {
    fd_owned int fd = open("/etc/passwd", O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    size_t length = 0;
    memory_owned char *bytes = fd >= 0 ? passwd_read_opened(fd, &length) : NULL;
    return bytes != NULL ? passwd_home(bytes, length, uid) : NULL;
}

static void environment_complete(const struct program *program) {
    struct oci_process *process = program->process;
    memory_owned char *found =
        program->home == NULL && command_lacks_home(&process->env) ? home_look_up(process->user.uid) : NULL;
    command_complete_environment(&process->env, program->home ? program->home : found);
}

struct error *program_prepare(struct program *program, char **command) {
    struct oci_process *process = program->process;
    /* While nothing keeps this process from what its program may not reach. */
    if (program->access != NULL)
        TRY(error_context(
            landlock_prepare(program->access, program->preserve_fds, &program->ruleset, &program->readable),
            "Landlock"));
    TRY(personality_apply(program->linux_config));
    TRY(memory_policy_apply(program->linux_config));
    environment_complete(program);
    /* A directory that only root may enter is the program's all the same, as everywhere; one that only the
     * user may enter (a FUSE mount, crun #793) is tried again as the user. */
    struct error *error = command_enter_directory(process->cwd);
    bool again = error != NULL && (error->number == EACCES || error->number == EPERM);
    if (error != NULL && !again)
        return error;
    error_ignore(error);
    /* Without no_new_privs a filter can only be loaded while CAP_SYS_ADMIN is held, so ids are changed under
     * it, in program_exec. */
    if (process->no_new_privileges)
        TRY(identity_assume(process, program->sets, program->allow_setgroups));
    if (again)
        TRY(command_enter_directory(process->cwd));
    TRY(command_verify_directory());
    return command_find(process, command);
}

static size_t strings_size(const struct string_list *list) {
    size_t size = 0;
    for (size_t i = 0; i < list->count; i++)
        size += strlen(list->items[i]) + 1 + sizeof(char *);
    return size;
}

static struct error *execve_error(int number, const struct oci_process *process, const char *command) {
    switch (number) {
    case ENOENT:
        /* It was found: what is missing is what the kernel looks for then. */
        return error_known(access(command, F_OK) == 0 ? ERROR_COMMAND_INTERPRETER : ERROR_COMMAND_MISSING,
                           command);
    case EACCES:
    case EPERM:
        return error_known(ERROR_COMMAND_DENIED, command);
    case ENOEXEC:
        return error_known(ERROR_COMMAND_FORMAT, command);
    case E2BIG:
        return error_system(
            E2BIG, "exec",
            "\"%s\": process.args (%zu bytes) and process.env (%zu bytes in %zu variables) are "
            "more than this system lets a program have (a quarter of RLIMIT_STACK, 128 KiB a "
            "string)",
            command, strings_size(&process->args), strings_size(&process->env), process->env.count);
    default:
        return error_system(number, "exec", "\"%s\"", command);
    }
}

static struct error *listener_give(const struct program *program, int listener) {
    if (program->agent->connection >= 0)
        return seccomp_agent_give(program->agent, listener);
    return warden_give_listener(program->channel, listener, program->readable, program->exec_id);
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

struct error *program_confine(void *data) {
    struct program program = *(struct program *)data;
    struct seccomp_program filter = *program.seccomp;
    if (program.agent->connection >= 0)
        seccomp_program_forgo_listener(&filter);
    program.seccomp = &filter;
    TRY(landlock_restrict(program.ruleset));
    TRY(filter_load(&program));
    return program.process->no_new_privileges
               ? NULL
               : identity_assume(program.process, program.sets, program.allow_setgroups);
}

struct error *program_exec(struct program *program, const char *command) {
    const struct oci_process *process = program->process;
    TRY(lsm_apply(&program->labels, process));
    /* What needs no privilege comes before the filter, which may deny it. */
    sys_signals_reset();
    close_all_but(program->preserve_fds);
    TRY(landlock_restrict(program->ruleset));
    /* Without no_new_privs a filter can only be loaded while CAP_SYS_ADMIN is held, so ids are changed under
     * it. */
    TRY(filter_load(program));
    if (!process->no_new_privileges)
        TRY(identity_assume(process, program->sets, program->allow_setgroups));
    execve(command, process->args.items, process->env.items);
    return execve_error(errno, process, command);
}
