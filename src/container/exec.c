/* container_exec: another process in a running container, with the container's own restrictions. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/memory.h"
#include "container/changes.h"
#include "container/container.h"
#include "container/fault.h"
#include "container/run_program.h"
#include "process/binary.h"
#include "process/identity.h"
#include "process/keyring.h"
#include "process/lsm.h"
#include "process/namespaces.h"
#include "process/scheduling.h"
#include "process/seccomp.h"
#include "process/terminal.h"
#include "sys/calls.h"
#include "warden/warden.h"

struct execution {
    const struct exec_options *options;
    struct container *container;
    struct oci_config *config;
    struct oci_process *process; /* what runs */
    struct seccomp_program seccomp;
    struct capability_sets sets;
    char exec_id[32];
    int sync[2]; /* ours, the new process's */
    int channel; /* to the warden, -1: none */
    struct seccomp_agent agent;
    int console[2];
    struct procfs procfs; /* where a label is asked for */
    int guard;            /* process/binary.h, -1: none */
    int root;             /* of a container that has no mount namespace of its own, else -1 */
    pid_t pid;
    int pidfd;
};

/* ---- the document ---- */

static struct error *user_parse(const char *text, struct oci_user *user) {
    char *end;
    unsigned long uid = strtoul(text, &end, 10);
    if (end == text || (*end != '\0' && *end != ':') || uid >= UINT32_MAX)
        return error_new(ERROR_USAGE, "exec --user: expected UID or UID:GID in numbers, found \"%s\"", text);
    user->uid = (uint32_t)uid;
    if (*end == ':') {
        const char *group = end + 1;
        unsigned long gid = strtoul(group, &end, 10);
        if (end == group || *end != '\0' || gid >= UINT32_MAX)
            return error_new(ERROR_USAGE, "exec --user: expected UID or UID:GID in numbers, found \"%s\"",
                             text);
        user->gid = (uint32_t)gid;
    }
    return NULL;
}

static struct error *group_add(const char *text, struct oci_user *user) {
    char *end;
    unsigned long gid = strtoul(text, &end, 10);
    if (end == text || *end != '\0' || gid >= UINT32_MAX)
        return error_new(ERROR_USAGE, "exec --additional-gids: expected a number, found \"%s\"", text);
    user->additional_gids =
        memory_resize(user->additional_gids, user->additional_gids_count + 1, sizeof *user->additional_gids);
    user->additional_gids[user->additional_gids_count++] = (uint32_t)gid;
    return NULL;
}

/* Without a document: the container's own process with other arguments (crun #2082: its environment too). */
static struct error *process_from_options(struct execution *execution) {
    const struct exec_options *options = execution->options;
    struct oci_process *process = schema_copy(&oci_process_schema, execution->config->process);
    execution->process = process;
    if (options->args.count == 0)
        return error_new(ERROR_USAGE, "exec: expected a command, or --process FILE");
    string_list_free(&process->args);
    for (size_t i = 0; i < options->args.count; i++)
        string_list_append(&process->args, options->args.items[i]);
    for (size_t i = 0; i < options->env.count; i++)
        string_list_append(&process->env, options->env.items[i]);
    if (options->cwd != NULL)
        memory_replace_string(&process->cwd, options->cwd);
    if (options->user != NULL)
        TRY(user_parse(options->user, &process->user));
    for (size_t i = 0; i < options->additional_gids.count; i++)
        TRY(group_add(options->additional_gids.items[i], &process->user));
    process->terminal = options->tty;
    if (options->apparmor_profile != NULL)
        memory_replace_string(&process->apparmor_profile, options->apparmor_profile);
    if (options->selinux_label != NULL)
        memory_replace_string(&process->selinux_label, options->selinux_label);
    process->no_new_privileges = process->no_new_privileges || options->no_new_privileges;
    if (options->capabilities.count > 0 && process->capabilities == NULL)
        process->capabilities = memory_zeroed(sizeof *process->capabilities);
    for (size_t i = 0; i < options->capabilities.count; i++) {
        struct string_list *const sets[] = {&process->capabilities->bounding,
                                            &process->capabilities->effective,
                                            &process->capabilities->permitted};
        for (size_t set = 0; set < 3; set++)
            if (!string_list_contains(sets[set], options->capabilities.items[i]))
                string_list_append(sets[set], options->capabilities.items[i]);
    }
    return oci_process_check(process);
}

/* What a document of exec leaves open is as the container has it: what confines the container confines every
 * process in it. */
static void process_inherit(struct oci_process *process, const struct oci_process *container) {
    struct oci_process *own = schema_copy(&oci_process_schema, container);
#define INHERIT(member)                                                                                      \
    do {                                                                                                     \
        if (process->member == NULL) {                                                                       \
            process->member = own->member;                                                                   \
            own->member = NULL;                                                                              \
        }                                                                                                    \
    } while (0)
    INHERIT(apparmor_profile);
    INHERIT(selinux_label);
    INHERIT(capabilities);
    INHERIT(scheduler);
    INHERIT(io_priority);
    INHERIT(exec_cpu_affinity);
#undef INHERIT
    if (process->rlimits_count == 0) {
        process->rlimits = own->rlimits;
        process->rlimits_count = own->rlimits_count;
        own->rlimits = NULL;
        own->rlimits_count = 0;
    }
    oci_process_free(own);
}

static struct error *process_read(struct execution *execution) {
    const char *path = execution->options->process;
    if (path == NULL)
        return process_from_options(execution);
    text_owned struct text bytes = {0};
    TRY(file_read(AT_FDCWD, path, SCHEMA_BYTES_MAX, &bytes));
    TRY(oci_process_parse("process", text_string(&bytes), bytes.length, &execution->process));
    execution->process->terminal = execution->process->terminal || execution->options->tty;
    process_inherit(execution->process, execution->config->process);
    return NULL;
}

/* The container's policy, as stored, holds for every exec; a wider request is cut and recorded. */
static struct error *process_harden(struct execution *execution) {
    const struct container_state *state = execution->container->state;
    if (!state->confined)
        return NULL;
    struct policy *policy = NULL;
    TRY(container_stored_policy(execution->container, &policy));
    struct hardened *changes = memory_zeroed(sizeof *changes);
    harden_process(execution->process, policy, changes);
    const char *inside = harden_inside_variable(execution->config->process);
    if (inside != NULL)
        harden_inside_set(execution->process, inside);
    struct error *error = warden_connect(execution->container->directory, &execution->channel);
    if (error == NULL)
        error =
            changes_record(execution->container->directory, execution->exec_id, changes, &execution->channel);
    hardened_free(changes);
    policy_free(policy);
    return error;
}

/* ---- the new process ---- */

static struct error *terminal_prepare(struct execution *execution) {
    const struct oci_process *process = execution->process;
    if (!process->terminal) {
        standard_streams_give(process->user.uid, process->user.gid);
        return NULL;
    }
    fd_owned int pts = open("/dev/pts", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (pts < 0)
        return error_system(errno, "open", "/dev/pts of the container");
    fd_owned int leader = -1;
    fd_owned int other = -1;
    TRY(terminal_open(pts, process, &leader, &other));
    TRY(terminal_send(execution->console[0], leader));
    return terminal_take(other);
}

static struct error *become_program(struct execution *execution) {
    struct oci_process *process = execution->process;
    char go;
    if (recv(execution->sync[1], &go, 1, 0) != 1)
        _exit(1);
    TRY(identity_become_namespace_root(execution->config->linux_config, &process->user));
    const struct oci_cpu_affinity *affinity = process->exec_cpu_affinity;
    if (affinity == NULL || affinity->final == NULL)
        affinity_reset();
    if (setsid() < 0) /* not the caller's group: a signal to it is not for us (crun #1642) */
        return error_system(errno, "setsid", "of the new process");
    struct program program = {.process = process,
                              .linux_config = execution->config->linux_config,
                              .sets = &execution->sets,
                              .seccomp = &execution->seccomp,
                              .channel = execution->channel,
                              .agent = &execution->agent,
                              .report = execution->sync[1],
                              .exec_id = execution->exec_id,
                              .preserve_fds = execution->options->preserve_fds,
                              .access = execution->container->state->access,
                              .ruleset = -1,
                              .readable = -1};
    bool keep_groups = container_keeps_groups(execution->config);
    if (keep_groups)
        process->user.additional_gids_count = 0;
    program.allow_setgroups =
        !keep_groups && (program.linux_config->uid_mappings_count == 0 || geteuid() == 0);
    TRY(lsm_open(&execution->procfs, process, &program.labels));
    /* Not the caller's keys: the container's own keyring is a session's, which a newcomer is not in. */
    TRY(keyring_join(NULL, &execution->procfs, process));
    procfs_close(&execution->procfs); /* leads out of the root */
    TRY(terminal_prepare(execution));
    memory_owned char *command = NULL;
    TRY(program_prepare(&program, &command));
    fault_pause("exec-ready");
    return program_exec(&program, command);
}

static int execution_body(void *data) {
    struct execution *execution = data;
    /* First of all: from here on the container's processes may see this one. */
    struct error *error = binary_guard_enter(execution->guard);
    fd_close(fd_take(&execution->guard));
    fd_close(execution->sync[0]);
    fd_close(execution->console[1]);
    if (error == NULL && execution->root >= 0 && (fchdir(execution->root) < 0 || chroot(".") < 0))
        error = error_system(errno, "chroot", "to the container's root");
    fd_close(fd_take(&execution->root));
    if (error == NULL)
        error = become_program(execution);
    error_send(execution->sync[1], error);
    return 255;
}

/* ---- this side ---- */

static struct error *console_prepare(struct execution *execution) {
    const struct exec_options *options = execution->options;
    if (!execution->process->terminal)
        return options->console_socket == NULL
                   ? NULL
                   : error_new(ERROR_INVALID, "--console-socket: needs a process with terminal: true");
    if (options->console_socket != NULL)
        return terminal_connect(options->console_socket, &execution->console[0]);
    if (options->detach)
        return error_new(ERROR_INVALID, "process.terminal: true needs --console-socket with --detach");
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, execution->console) < 0)
        return error_system(errno, "make", "a socket pair");
    return NULL;
}

static struct error *clone_and_release(struct execution *execution) {
    const struct container_state *state = execution->container->state;
    fd_owned int init = -1;
    struct error *error = container_open_init(execution->container, &init);
    if (error != NULL) {
        error_free(error);
        return error_known(ERROR_EXEC_STOPPED, NULL);
    }
    TRY(fd_pair(&execution->sync[0], &execution->sync[1]));
    /* Before it joins, nobody inside may look into this process (CVE-2016-9962). */
    if (!fault_without("secrecy") && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return error_system(errno, "clear", "PR_SET_DUMPABLE");
    const struct oci_cpu_affinity *affinity = execution->process->exec_cpu_affinity;
    if (affinity != NULL && affinity->initial != NULL)
        TRY(affinity_set(0, affinity->initial, "process.execCPUAffinity.initial"));
    if (lsm_wants_procfs(execution->process))
        TRY(procfs_open(PROCFS_PROCESSES, &execution->procfs));
    TRY(binary_guard_open(&execution->guard));
    if (oci_config_namespace(execution->config, "mount") == NULL)
        TRY(namespace_open_root(init, (pid_t)state->init.pid, &execution->root));
    TRY(namespace_clone_beside(init, (pid_t)state->init.pid, execution_body, execution, &execution->pid,
                               &execution->pidfd));
    fd_close(fd_take(&execution->sync[1]));
    fd_close(fd_take(&execution->console[0]));
    TRY(cgroup_attach(state->cgroup, execution->pid));
    for (size_t i = 0; i < execution->options->cgroups.count; i++)
        TRY(cgroup_attach_below(state->cgroup, execution->options->cgroups.items[i], execution->pid));
    TRY(rlimits_apply(execution->pid, execution->process));
    TRY(oom_score_apply(execution->pid, execution->process));
    if (affinity != NULL && affinity->final != NULL)
        TRY(affinity_set(execution->pid, affinity->final, "process.execCPUAffinity.final"));
    TRY(scheduling_apply(execution->pid, execution->process));
    TRY(seccomp_agent_describe(&execution->agent, execution->container, "running", execution->pid));
    char go = 1;
    if (send(execution->sync[0], &go, 1, MSG_NOSIGNAL) != 1)
        return error_known(ERROR_EXEC_STOPPED, NULL);
    /* Nothing and the end: execve has closed it. */
    error = error_receive(execution->sync[0]);
    if (error != NULL && error->kind == ERROR_SYSTEM && error->number == EPIPE) {
        error_ignore(error);
        return NULL;
    }
    return error;
}

/* Namespaces of an init that is going down cannot be joined any more, with one errno or another; what matters
 * is that it goes. */
static struct error *stopped_meanwhile(const struct execution *execution, struct error *error) {
    fd_owned int init = -1;
    if (error->kind != ERROR_SYSTEM)
        return error;
    struct error *gone = container_open_init(execution->container, &init);
    if (gone == NULL)
        return error;
    error_ignore(error); /* the consequence */
    return gone;
}

/* The command runs: now whoever asked is told. A process that nobody could find again is ended. */
static struct error *process_announce(const struct execution *execution) {
    if (execution->options->pidfd_socket != NULL)
        TRY(pidfd_send(execution->options->pidfd_socket, execution->pidfd));
    if (execution->options->pid_file != NULL)
        TRY(pid_file_write(execution->options->pid_file, execution->pid));
    return NULL;
}

static struct error *attend(struct execution *execution, int *exit_status) {
    struct error *error = NULL;
    if (execution->console[1] >= 0) {
        fd_owned int terminal = -1;
        char name[sizeof "/dev/ptmx" - 1];
        size_t count = 0;
        TRY(fd_receive(execution->console[1], name, sizeof name, &terminal, 1, &count));
        error = terminal_attend(terminal, execution->pidfd);
    } else {
        error = signals_attend(execution->pidfd);
    }
    *exit_status = process_wait(execution->pid);
    return error;
}

static struct error *execution_run(struct execution *execution, int *exit_status) {
    struct container *container = execution->container;
    const char *status = container_status(container);
    if (container->state == NULL || strcmp(status, "stopped") == 0 || strcmp(status, "creating") == 0)
        return error_known(ERROR_EXEC_STOPPED, NULL);
    if (strcmp(status, "paused") == 0 && !execution->options->ignore_paused)
        return error_new(ERROR_INVALID, "cannot exec in a paused container");
    TRY(container_stored_config(container, &execution->config));
    TRY(process_read(execution));
    TRY(process_harden(execution));
    TRY(lsm_check(execution->process, NULL));
    TRY(console_prepare(execution));
    TRY(seccomp_program_load_file(container->directory, "seccomp.bpf", &execution->seccomp));
    TRY(seccomp_agent_connect(container, &execution->agent));
    capability_sets_from(execution->process->capabilities, &execution->sets);
    struct error *error = clone_and_release(execution);
    if (error != NULL)
        error = stopped_meanwhile(execution, error);
    else
        error = process_announce(execution);
    if (error != NULL) {
        if (execution->pidfd >= 0) {
            (void)!sys_pidfd_send_signal(execution->pidfd, SIGKILL);
            process_wait(execution->pid);
        }
        return error;
    }
    *exit_status = 0;
    return execution->options->detach ? NULL : attend(execution, exit_status);
}

struct error *container_exec(struct container *container, const struct exec_options *options,
                             int *exit_status) {
    struct execution execution = {.options = options,
                                  .container = container,
                                  .sync = {-1, -1},
                                  .channel = -1,
                                  .agent = SECCOMP_AGENT_NONE,
                                  .console = {-1, -1},
                                  .procfs = PROCFS_NONE,
                                  .guard = -1,
                                  .root = -1,
                                  .pidfd = -1};
    uint32_t random = 0;
    (void)!getrandom(&random, sizeof random, 0);
    snprintf(execution.exec_id, sizeof execution.exec_id, "exec-%08x", random);
    struct error *error = execution_run(&execution, exit_status);
    oci_config_free(execution.config);
    oci_process_free(execution.process);
    seccomp_program_free(&execution.seccomp);
    for (int i = 0; i < 2; i++) {
        fd_close(execution.sync[i]);
        fd_close(execution.console[i]);
    }
    procfs_close(&execution.procfs);
    fd_close(execution.guard);
    fd_close(execution.root);
    fd_close(execution.channel);
    seccomp_agent_close(&execution.agent);
    fd_close(execution.pidfd);
    return error;
}
