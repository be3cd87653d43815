/* Start, kill, delete. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/memory.h"
#include "container/container.h"
#include "container/fault.h"
#include "container/file_program.h"
#include "container/hooks.h"
#include "container/init.h"
#include "container/members.h"
#include "container/network.h"
#include "container/notify_socket.h"
#include "egress/egress.h"
#include "process/namespaces.h"
#include "sys/calls.h"
#include "warden/warden.h"

#define END_PATIENCE_MS 10000
#define STRAY_PATIENCE_MS 500
#define WARDEN_PATIENCE_MS 2000
#define KILL_PASSES_MAX 100
#define MEMBERS_AT_ONCE 16 /* each is a descriptor */

static struct error *wall_work(void *data) {
    return wall_complete(data);
}

/* The engine may have given the namespace its interfaces only now (podman with a user namespace, Docker). */
static struct error *wall_finish(const struct container *container, int init) {
    const struct container_state *state = container->state;
    struct wall_network network = {0};
    struct policy *policy = NULL;
    if (state->wall_opened) {
        TRY(container_stored_policy(container, &policy));
        network_wall_of_state(policy, state, &network);
    }
    struct error *error = namespace_visit_network(init, (pid_t)state->init.pid, wall_work, &network);
    network_wall_clear(&network);
    policy_free(policy);
    return error_context(error, "network wall");
}

static struct error *poststart_hooks(const struct container *container) {
    struct oci_config *config = NULL;
    if (container->state->no_hooks)
        return NULL;
    TRY(container_stored_config(container, &config));
    struct error *error = NULL;
    if (config->hooks != NULL) {
        memory_owned char *state = container_state_text(container, "running");
        struct hook_context context = {"poststart", state, container->state->bundle, environ, NULL, NULL};
        error = hooks_run(config->hooks->poststart, config->hooks->poststart_count, &context);
    }
    oci_config_free(config);
    return error;
}

static void warn(struct error *error) {
    if (error != NULL)
        fprintf(stderr, "pinfold: warning: %s\n", error->message);
    error_free(error);
}

/* The container runs, whatever becomes of the message. */
static void readiness_relay(const struct container *container, int listening, int init, bool attended) {
    pid_t pid = (pid_t)container->state->init.pid;
    if (listening < 0)
        return;
    if (!attended) {
        (void)!flock(container->directory, LOCK_UN); /* it may never be ready, and is to be deleted then */
        warn(notify_socket_relay(listening, init, pid));
        return;
    }
    pid_t child = fork();
    if (child != 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    struct error *error = notify_socket_relay(listening, init, pid);
    _exit(error == NULL ? 0 : 1);
}

/* Lets init go and notes that it went. A container of which nobody could tell that it runs is ended. */
static struct error *init_start(struct container *container, int init) {
    seccomp_agent_owned struct seccomp_agent agent;
    TRY(seccomp_agent_connect(container, &agent));
    TRY(seccomp_agent_describe(&agent, container, "creating", (pid_t)container->state->init.pid));
    TRY(init_release(container->directory, &agent));
    memory_replace_string(&container->state->status, "running");
    struct error *error = container_save(container);
    if (error == NULL) {
        error = poststart_hooks(container);
        container->poststart_failed = error != NULL;
    }
    if (error != NULL)
        (void)!sys_pidfd_send_signal(init, SIGKILL);
    return error;
}

struct error *container_start(struct container *container, bool attended) {
    if (container->state == NULL || strcmp(container->state->status, "creating") == 0)
        return error_known(ERROR_NOT_RUNNING, NULL);
    struct container_state *state = container->state;
    fd_owned int init = -1;
    TRY(container_open_init(container, &init)); /* stopped, if there is none */
    if (strcmp(state->status, "running") == 0)
        return error_known(ERROR_ALREADY_STARTED, NULL);
    fd_owned int readiness = -1;
    TRY(notify_socket_listen(container, &readiness));
    if (state->wall)
        TRY(wall_finish(container, init));
    TRY(error_context(network_resolver_refresh(container, init), "resolver"));
    if (state->confined) {
        fd_owned int channel = -1;
        TRY(warden_connect(container->directory, &channel));
        TRY(warden_started(channel));
    }
    TRY(init_start(container, init));
    readiness_relay(container, readiness, init, attended);
    return NULL;
}

/* A frozen process does not see SIGKILL before it is thawed (v1; v2 delivers it). */
static struct error *thaw_to_die(const struct container *container, int signal) {
    if (signal == SIGKILL && container->state->cgroup != NULL && cgroup_is_frozen(container->state->cgroup))
        return cgroup_freeze(container->state->cgroup, false);
    return NULL;
}

static bool pids_contain(const pid_t *pids, size_t count, pid_t pid) {
    for (size_t i = 0; i < count; i++)
        if (pids[i] == pid)
            return true;
    return false;
}

/* Processes of a cgroup, MEMBERS_AT_ONCE at most. A number may have become another process's since the cgroup
 * was read: each is opened first, and signalled if the cgroup, read once more, still has it and it is not
 * another's. */
static struct error *members_signal(const struct container_state *state, const pid_t *pids, size_t count,
                                    int signal) {
    int pidfds[MEMBERS_AT_ONCE];
    struct error *error = NULL;
    for (size_t i = 0; i < count; i++) {
        pidfds[i] = sys_pidfd_open(pids[i], 0);
        /* Others: it has ended (ESRCH, and EINVAL where its number is still a session's), or is a thread of a
         * threaded cgroup (EINVAL). */
        bool is_want = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
        if (pidfds[i] < 0 && is_want && error == NULL)
            error = error_system(errno, "open", "process %d of the container", (int)pids[i]);
    }
    memory_owned pid_t *now = NULL;
    size_t now_count = 0;
    struct error *unread = cgroup_processes(state->cgroup, &now, &now_count);
    for (size_t i = 0; i < count; i++) {
        if (pidfds[i] >= 0 && pids_contain(now, now_count, pids[i]) && !members_is_foreign(state, pids[i]) &&
            sys_pidfd_send_signal(pidfds[i], signal) < 0 && errno != ESRCH && error == NULL)
            error = error_system(errno, "kill", "process %d of the container", (int)pids[i]);
        fd_close(pidfds[i]);
    }
    if (error == NULL)
        return unread;
    error_ignore(unread);
    return error;
}

/* Each process gets the signal once; SIGKILL is repeated until nobody is there who has not got it: they may
 * fork meanwhile. */
static struct error *processes_signal(const struct container_state *state, int signal, size_t *signalled) {
    const struct cgroup *cgroup = state->cgroup;
    memory_owned pid_t *done = NULL;
    *signalled = 0;
    for (int pass = 0; pass < (signal == SIGKILL ? KILL_PASSES_MAX : 1); pass++) {
        memory_owned pid_t *pids = NULL;
        size_t count = 0, before = *signalled;
        TRY(cgroup_processes(cgroup, &pids, &count));
        done = memory_resize(done, before + count, sizeof *done);
        size_t due = before;
        for (size_t i = 0; i < count; i++)
            if (!pids_contain(done, before, pids[i]))
                done[due++] = pids[i];
        while (*signalled < due) {
            size_t some = due - *signalled < MEMBERS_AT_ONCE ? due - *signalled : MEMBERS_AT_ONCE;
            TRY(members_signal(state, done + *signalled, some, signal));
            *signalled += some;
        }
        if (due == before)
            break;
    }
    return NULL;
}

struct error *container_kill(const struct container *container, int signal, bool all) {
    if (all && container->state != NULL && container->state->cgroup != NULL) {
        size_t count = 0;
        TRY(processes_signal(container->state, signal, &count));
        if (count > 0 || container->state->cgroup->count > 0)
            return thaw_to_die(container, signal);
    }
    fd_owned int init = -1;
    TRY(container_open_init(container, &init));
    if (sys_pidfd_send_signal(init, signal) < 0) {
        if (errno == ESRCH)
            return error_known(ERROR_NOT_RUNNING, NULL);
        return error_system(errno, "send", "signal %d to the container", signal);
    }
    return thaw_to_die(container, signal);
}

static bool process_await_end(const struct process_identity *identity, int patience_ms) {
    fd_owned int pidfd = -1;
    process_open(identity, &pidfd);
    if (pidfd < 0)
        return true;
    struct pollfd end = {.fd = pidfd, .events = POLLIN};
    int ready;
    while ((ready = poll(&end, 1, patience_ms)) < 0 && errno == EINTR)
        ;
    return ready > 0;
}

static struct error *init_end(const struct container *container) {
    struct error *error = container_kill(container, SIGKILL, false);
    if (error != NULL && error->kind == ERROR_NOT_RUNNING) {
        error_ignore(error);
        return NULL;
    }
    TRY(error);
    if (process_await_end(&container->state->init, STRAY_PATIENCE_MS))
        return NULL;
    /* What an exec left in the container's process-id namespace is its caller's to reap, and init is held
     * until then; but it has nothing any more. */
    fd_owned int alive = -1;
    process_open_alive(&container->state->init, &alive);
    if (alive < 0)
        return NULL;
    if (container->state->cgroup != NULL)
        cgroup_thaw_stray(container->state->cgroup, (pid_t)container->state->init.pid);
    if (!process_await_end(&container->state->init, END_PATIENCE_MS))
        return error_new(ERROR_UNAVAILABLE, "the container's init does not end after SIGKILL");
    return NULL;
}

/* Warden and broker follow init; one that does not is ended, since a delete leaves nothing behind. */
static void follower_end(const struct process_identity *follower) {
    if (process_await_end(follower, WARDEN_PATIENCE_MS))
        return;
    fd_owned int alive = -1;
    process_open(follower, &alive);
    if (alive >= 0)
        (void)!sys_pidfd_send_signal(alive, SIGKILL);
}

/* ---- a network namespace that outlives the container ---- */

/* Whether any process is in the namespace: another container's, or one that has outlived its own. */
static bool has_processes(uint64_t network_inode) {
    DIR *proc = opendir("/proc");
    bool found = proc == NULL; /* cannot be known: the wall stays */
    struct dirent *entry;
    while (!found && (entry = readdir(proc)) != NULL) {
        char path[300];
        struct stat status;
        if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
            continue;
        snprintf(path, sizeof path, "/proc/%s/ns/net", entry->d_name);
        found = stat(path, &status) == 0 && status.st_ino == network_inode;
    }
    if (proc != NULL)
        closedir(proc);
    return found;
}

static struct error *wall_take_down(const struct container *container) {
    const struct container_state *state = container->state;
    if ((!state->wall && !state->observed) || state->network_path == NULL)
        return NULL;
    fd_owned int lock = -1;
    TRY(container_lock_walls(container->directory, &lock));
    if (has_processes(state->network_inode))
        return NULL;
    fault_pause("wall-unused");
    fd_owned int network = open(state->network_path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (network < 0 || fstat(network, &status) < 0 || status.st_ino != state->network_inode)
        return NULL; /* gone, or another by now */
    pid_t child = fork();
    if (child < 0)
        return error_system(errno, "fork", "a process for the container's network namespace");
    if (child == 0) {
        if (setns(network, CLONE_NEWNET) < 0)
            _exit(1);
        struct error *error = wall_remove();
        _exit(error == NULL ? 0 : 1);
    }
    int result = process_wait(child);
    if (result != 0)
        return error_new(ERROR_UNAVAILABLE, "the rules of the network wall could not be removed from %s",
                         state->network_path);
    return NULL;
}

static void poststop_hooks(const struct container *container) {
    struct oci_config *config = NULL;
    if (container->state->no_hooks)
        return;
    struct error *error = container_stored_config(container, &config);
    if (error == NULL && config->hooks != NULL) {
        memory_owned char *state = container_state_text(container, "stopped");
        struct hook_context context = {"poststop", state, container->state->bundle, environ, NULL, NULL};
        /* runtime.md: a failure is said, and the next one run. */
        for (size_t i = 0; i < config->hooks->poststop_count; i++)
            warn(hooks_run(&config->hooks->poststop[i], 1, &context));
    }
    warn(error);
    oci_config_free(config);
}

struct error *container_delete(struct container *container, bool force) {
    const char *status = container_status(container);
    bool stopped = strcmp(status, "stopped") == 0;
    /* A container that was created and not started has nothing that could be lost. */
    if (!force && !stopped && strcmp(status, "created") != 0)
        return error_new(ERROR_NOT_STOPPED, "cannot delete container %s that is not stopped: %s",
                         container->id, status);
    if (container->state != NULL) {
        TRY(init_end(container));
        follower_end(&container->state->warden);
        follower_end(&container->state->broker);
        if (container->state->files_namespace != 0)
            file_program_forget(container->state->files_namespace);
        TRY(cgroup_destroy(&container->state->cgroups_created));
        /* With its cgroup gone the unit goes by itself, too; a manager that cannot be asked has ended all of
         * its units. */
        if (container->state->cgroups_created.count > 0)
            warn(cgroup_scope_stop(container->state->cgroup));
        TRY(members_end(container->state));
        TRY(cgroup_rdt_remove(&container->state->rdt_created));
        TRY(wall_take_down(container));
        if (strcmp(container->state->status, "creating") != 0 || container->hooks_begun)
            poststop_hooks(container);
    }
    return container_remove_directory(container);
}
