#include "container/init.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "container/container.h"
#include "container/fault.h"
#include "container/hooks.h"
#include "container/network.h"
#include "container/run_program.h"
#include "process/binary.h"
#include "process/keyring.h"
#include "process/scheduling.h"
#include "process/terminal.h"
#include "rootfs/attach.h"
#include "rootfs/decoys.h"
#include "rootfs/inside.h"
#include "rootfs/masks.h"
#include "rootfs/pivot.h"
#include "rootfs/rebind.h"
#include "rootfs/scratch.h"
#include "rootfs/store.h"
#include "rootfs/sysctl.h"
#include "sys/calls.h"
#include "warden/warden.h"

#define START_SOCKET "start.sock"
#define DECOYS_MAX 16

/* ---- the wall ---- */

static struct error *loopback_up(void) {
    fd_owned int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
        return error_system(errno, "bring up", "the loopback interface");
    return NULL;
}

/* Records of what is reached are a built-in observer: without it the container runs, and that is recorded. */
static struct error *observers_build(const struct init_plan *plan) {
    bool joined = false;
    struct wall_sockets sockets = WALL_SOCKETS_NONE;
    struct error *error = wall_observe(plan->network, &joined);
    if (error == NULL)
        error = wall_open_sockets(&sockets);
    if (error == NULL) {
        error = warden_give_sockets(plan->channel, &sockets);
        wall_close_sockets(&sockets);
        return error;
    }
    if (error->kind == ERROR_REFUSED || plan->hardened->reached_must)
        return error;
    memory_owned char *message =
        text_formatted("What is reached over the network is not recorded: %s", error->message);
    const struct warden_change change = {.reason = "mechanism.unavailable",
                                         .subject = "reached hosts",
                                         .message = message,
                                         .rule = "observe.network: true"};
    error_free(error);
    return warden_give_change(plan->channel, NULL, &change);
}

static struct error *wall_build(const struct init_plan *plan) {
    if (!plan->hardened->wall)
        return observers_build(plan);
    bool joined;
    return network_wall_build(plan->network, plan->brokered, plan->channel, &joined);
}

struct error *init_in_stage(void *data) {
    const struct init_plan *plan = data;
    if ((!plan->hardened->wall && !plan->hardened->reached_observed) ||
        !namespace_plan_joins(plan->namespaces, CLONE_NEWNET))
        return NULL;
    /* This process is in the namespace already: a delete that takes the wall down either sees it or is done.
     */
    fd_owned int lock = -1;
    TRY(container_lock_walls(plan->state_directory, &lock));
    return error_context(wall_build(plan), plan->hardened->wall ? "network wall" : "records of the network");
}

static struct error *network_prepare(const struct init_plan *plan) {
    if (!namespace_plan_has_new(plan->namespaces, CLONE_NEWNET))
        return NULL;
    if (plan->hardened->wall)
        return error_context(wall_build(plan), "network wall");
    TRY(loopback_up());
    return plan->hardened->reached_observed ? error_context(wall_build(plan), "records of the network")
                                            : NULL;
}

/* ---- the root file system ---- */

static struct error *scratch_prepare(const struct init_plan *plan, const struct rootfs *root, int staging) {
    const struct oci_user *user = &plan->hardened->config->process->user;
    for (size_t i = 0; i < plan->hardened->scratch_count; i++) {
        const struct scratch_place *place = &plan->hardened->scratch[i];
        bool everybody = strcmp(place->path, "/tmp") == 0 || strcmp(place->path, "/var/tmp") == 0;
        bool system = strcmp(place->path, "/run") == 0;
        struct scratch_request request = {
            .path = place->path,
            .tmpfs = place->kind == SCRATCH_TMPFS,
            .create = place->create,
            .mode = everybody ? 01777 : 0755,
            .uid = everybody || system ? 0 : user->uid,
            .gid = everybody || system ? 0 : user->gid,
        };
        TRY(error_context(scratch_mount(root, &request, staging), "scratch %s", place->path));
    }
    return NULL;
}

static struct error *decoys_prepare(const struct init_plan *plan, const struct rootfs *root, int store) {
    size_t count = plan->hardened->decoys_count;
    if (count > DECOYS_MAX)
        return error_new(ERROR_INVALID, "more than %d decoys", DECOYS_MAX);
    struct decoy_request requests[DECOYS_MAX];
    int sources[DECOYS_MAX];
    for (size_t i = 0; i < count; i++)
        requests[i] =
            (struct decoy_request){plan->hardened->decoys[i].path, plan->hardened->decoys[i].content};
    const struct oci_user *user = &plan->hardened->config->process->user;
    TRY(decoys_attach(root, requests, count, user->uid, user->gid, store, sources));
    struct error *error = count > 0 ? warden_give_decoys(plan->channel, sources, count) : NULL;
    for (size_t i = 0; i < count; i++)
        fd_close(sources[i]);
    return error;
}

static struct error *inside_prepare(const struct init_plan *plan, const struct rootfs *root, int store) {
    if (!plan->hardened->inside)
        return NULL;
    fd_owned int file = -1;
    TRY(inside_attach(root, store, (struct container_path){HARDEN_INSIDE_DIRECTORY}, &file));
    return file < 0 ? NULL : warden_give_inside(plan->channel, file);
}

/* What comes from a file system of the runtime's own. */
static struct error *own_files_prepare(const struct init_plan *plan, const struct rootfs *root, int staging) {
    if (plan->hardened->decoys_count == 0 && !plan->hardened->inside)
        return NULL;
    fd_owned int store = -1;
    TRY(store_open(staging, &store));
    TRY(decoys_prepare(plan, root, store));
    TRY(error_context(inside_prepare(plan, root, store), "log.inside"));
    return store_close(store);
}

static struct error *rebinds_prepare(const struct init_plan *plan, const struct rootfs *root) {
    for (size_t i = 0; i < plan->hardened->rebinds_count; i++) {
        const struct rebind *place = &plan->hardened->rebinds[i];
        const struct container_path path = {place->path};
        switch (place->kind) {
        case REBIND_FIXED:
            TRY(error_context(rebind_fixed(root, path), "filesystem.protected"));
            break;
        case REBIND_WRITABLE:
            TRY(error_context(rebind_writable(root, path), "filesystem.writable"));
            break;
        case REBIND_MADE:
            rebind_make_directory(root, path);
            break;
        }
    }
    return NULL;
}

/* runc and crun make it too, though the specification does not ask; it is made inside the root. */
static struct error *working_directory_make(const struct rootfs *root, const char *cwd) {
    fd_owned int directory = -1;
    struct error *error =
        rootfs_make_directory(root, (struct container_path){cwd}, 0755, (uid_t)-1, (gid_t)-1, &directory);
    if (error != NULL && (error->number == EROFS || error->number == EACCES || error->number == ENOTDIR)) {
        error_ignore(error); /* chdir will tell, with the right words */
        return NULL;
    }
    return error;
}

struct terminal_ends {
    int leader, other;
};

static struct error *root_prepare(const struct init_plan *plan, struct rootfs *root,
                                  struct terminal_ends *terminal) {
    const struct oci_config *config = plan->hardened->config;
    fd_owned int staging = open(plan->facts->bundle, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (staging < 0)
        return error_system(errno, "open", "bundle %s", plan->facts->bundle);
    struct stat judged;
    if (fstat(plan->facts->root_fd, &judged) < 0)
        return error_system(errno, "stat", "root.path %s", config->root->path);
    if (plan->reopen_sources)
        TRY(mount_set_prepare(config, plan->sources, true, plan->hardened->confined, plan->mounts));
    TRY(rootfs_enter(plan->root_path, &judged, config, root));
    if (plan->hardened->confined)
        TRY(rootfs_forbid_devices(root));
    TRY(scratch_prepare(plan, root, staging));
    TRY(mount_set_attach(root, config, plan->mounts));
    TRY(devices_make(root, config, plan->nodes));
    TRY(working_directory_make(root, config->process->cwd));
    TRY(own_files_prepare(plan, root, staging));
    if (config->process->terminal) {
        fd_owned int pts = -1;
        TRY(rootfs_open(root, (struct container_path){"/dev/pts"}, O_PATH | O_DIRECTORY, &pts));
        TRY(terminal_open(pts, config->process, &terminal->leader, &terminal->other));
        TRY(console_bind(root, terminal->other));
    }
    TRY(mount_set_complete(config, plan->mounts));
    TRY(rebinds_prepare(plan, root));
    return masks_attach(root, config->linux_config, staging);
}

/* ---- identity and command ---- */

static struct error *names_set(const struct oci_config *config) {
    if (config->hostname != NULL && sethostname(config->hostname, strlen(config->hostname)) < 0)
        return error_system(errno, "sethostname", "%s", config->hostname);
    if (config->domainname != NULL && setdomainname(config->domainname, strlen(config->domainname)) < 0)
        return error_system(errno, "setdomainname", "%s", config->domainname);
    return NULL;
}

/* The container ends with create as long as create is not done; the kernel forgets this at a change of ids.
 */
static void die_with_create(bool on) {
    prctl(PR_SET_PDEATHSIG, on ? SIGKILL : 0, 0, 0, 0);
}

static struct error *stage_report(const struct init_plan *plan, int stage, struct init_go *go) {
    if (send(plan->sync, &stage, sizeof stage, MSG_NOSIGNAL) < 0)
        return error_system(errno, "report", "to create");
    if (go != NULL && recv(plan->sync, go, sizeof *go, 0) != (ssize_t)sizeof *go)
        _exit(1); /* create is gone, or gave up and has said why */
    return NULL;
}

/* Closes what init has from create and needs no more, above all what leads out of the root: whoever shares
 * the process namespace could go through /proc/PID/fd. What is preserved for the program, and what is to
 * close at its execve, stays. */
static void descriptors_close(const struct init_plan *plan, const struct program *program) {
    int keep[] = {plan->sync,
                  plan->channel,
                  plan->start_listening,
                  plan->console,
                  program->labels.apparmor,
                  program->labels.selinux};
    size_t count = sizeof keep / sizeof keep[0];
    unsigned from = STDERR_FILENO + 1 + plan->preserve_fds;
    for (;;) {
        unsigned next = ~0u; /* the lowest that is kept at or above `from` */
        for (size_t i = 0; i < count; i++)
            if (keep[i] >= 0 && (unsigned)keep[i] >= from && (unsigned)keep[i] < next)
                next = (unsigned)keep[i];
        if (next > from)
            (void)!sys_close_range(from, next == ~0u ? ~0u : next - 1, 0);
        if (next == ~0u)
            return;
        from = next + 1;
    }
}

/* What hooks in the container read: the pid is the one that they can see (runtime.md, "State"). */
static char *inside_state(const struct init_plan *plan, const char *status) {
    plan->container->state->init.pid = getpid(); /* this process's own copy */
    return container_state_text(plan->container, status);
}

/* sd_listen_fds(3) compares LISTEN_PID with the reader's own pid. */
static void listen_pid_complete(const struct init_plan *plan, struct oci_process *process) {
    if (plan->listen_fds > 0)
        string_list_append_owned(&process->env, text_formatted("LISTEN_PID=%d", (int)getpid()));
}

/* What is decided before start and used after it. */
struct readiness {
    struct program program;
    struct capability_sets sets;
    char *command;
};

/* The first word of create's. */
static void go_await(const struct init_plan *plan, struct init_go *go) {
    int view = -1;
    size_t count = 0;
    struct error *error = fd_receive(plan->sync, go, sizeof *go, &view, 1, &count);
    if (error != NULL)
        _exit(1); /* create is gone, or gave up and has said why */
    if (count == 1)
        mount_set_add_cgroup_view(plan->mounts, "", view);
}

/* The container's cgroup as the root of a cgroup2 of its own, where create had no rights to copy the
 * machine's. None without a cgroup or a cgroup namespace that is the container's own: more than its own would
 * be seen (CVE-2023-25809). */
static struct error *cgroup_view_make(const struct init_plan *plan) {
    if (!plan->cgroup_view || !plan->namespaces->new_cgroup || plan->cgroup == NULL ||
        !plan->cgroup->unified || plan->cgroup->count == 0)
        return NULL;
    fd_owned int view = -1;
    struct error *error = mount_new("cgroup2", "cgroup", NULL, 0, &view);
    if (error != NULL && (error->number == EPERM || error->number == EACCES)) {
        /* A security module may refuse it to a user namespace. Then a copy of the container's own directory,
         * as the machine's mount shows it. */
        error_free(error);
        const char *path = plan->cgroup->directories[0].path;
        fd_owned int directory = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (directory < 0)
            return error_system(errno, "open", "%s", path);
        error = mount_copy(directory, false, path, &view);
    }
    TRY(error_context(error, "the view of the container's cgroup"));
    mount_set_add_cgroup_view(plan->mounts, "", fd_take(&view));
    return NULL;
}

static struct error *prepare(const struct init_plan *plan, struct readiness *ready) {
    const struct oci_config *config = plan->hardened->config;
    struct oci_process *process = config->process;
    struct program *program = &ready->program;
    struct init_go go;
    die_with_create(true);
    TRY(lsm_open(&plan->procfs, process, &program->labels));
    go_await(plan, &go);
    if (plan->cgroup != NULL)
        TRY(cgroup_attach_self(plan->cgroup, plan->born_in_unified));
    if (plan->namespaces->new_time)
        TRY(namespace_enter_time(config->linux_config->time_offsets, &plan->procfs));
    if (namespace_plan_has_new(plan->namespaces, CLONE_NEWUSER))
        TRY(identity_become_namespace_root(config->linux_config, &process->user));
    die_with_create(true);
    if (plan->namespaces->new_cgroup && unshare(CLONE_NEWCGROUP) < 0)
        return error_system(errno, "unshare", "the cgroup namespace");
    TRY(cgroup_view_make(plan));
    affinity_reset();
    if (setsid() < 0)
        return error_system(errno, "setsid", "of the container's init");
    memory_owned char *keyring = text_formatted("_ses.%s", plan->id);
    if (plan->new_keyring)
        TRY(keyring_join(keyring, &plan->procfs, process));
    TRY(network_prepare(plan));

    struct rootfs root = {-1};
    struct terminal_ends terminal = {-1, -1};
    TRY(root_prepare(plan, &root, &terminal));
    TRY(stage_report(plan, INIT_HOOKS, &go));
    if (config->hooks != NULL && config->hooks->create_container_count > 0) {
        memory_owned char *state = inside_state(plan, "created");
        struct hook_context context = {"createContainer", state, plan->facts->bundle, NULL, NULL, NULL};
        TRY(hooks_run(config->hooks->create_container, config->hooks->create_container_count, &context));
    }
    if (config->root->readonly)
        TRY(rootfs_make_readonly(&root));
    bool shares_mounts = plan->namespaces->callers_mounts >= 0;
    if (shares_mounts)
        TRY(rootfs_take_away(&root, plan->namespaces->callers_mounts, config));
    else
        TRY(rootfs_pivot(&root, plan->no_pivot));
    fd_close(root.fd);
    TRY(names_set(config));
    TRY(sysctl_apply(config->linux_config, &plan->procfs));
    if (!shares_mounts)
        TRY(rootfs_propagate(config));
    if (terminal.leader >= 0) {
        if (plan->console >= 0)
            TRY(terminal_send(plan->console, terminal.leader));
        TRY(terminal_take(terminal.other));
        fd_close(terminal.leader);
        fd_close(terminal.other);
    } else {
        standard_streams_give(process->user.uid, process->user.gid);
    }
    listen_pid_complete(plan, process);
    capability_sets_from(process->capabilities, &ready->sets);
    program->process = process;
    program->linux_config = config->linux_config;
    program->sets = &ready->sets;
    program->seccomp = plan->seccomp;
    program->home = plan->facts->container_home;
    program->channel = plan->channel;
    program->preserve_fds = plan->preserve_fds;
    program->access = plan->hardened->access;
    program->allow_setgroups = go.allow_setgroups != 0;
    descriptors_close(plan, program);
    TRY(program_prepare(program, &ready->command));
    if (plan->channel >= 0)
        TRY(warden_watch(plan->channel));
    die_with_create(false);
    return stage_report(plan, INIT_READY, NULL);
}

/* ---- start ---- */

static struct error *become_program(const struct init_plan *plan, struct readiness *ready,
                                    const struct seccomp_agent *agent, int connection) {
    const struct oci_config *config = plan->hardened->config;
    ready->program.agent = agent;
    ready->program.report = connection;
    if (config->hooks != NULL && config->hooks->start_container_count > 0) {
        memory_owned char *state = inside_state(plan, "created");
        /* A file of the container's: it gets no more than the program. */
        struct hook_context context = {"startContainer",           state,           NULL,
                                       config->process->env.items, program_confine, &ready->program};
        TRY(hooks_run(config->hooks->start_container, config->hooks->start_container_count, &context));
    }
    return program_exec(&ready->program, ready->command);
}

/* The caller's environment stays where /proc/PID/environ shows it; nothing here needs it. */
static void environment_wipe(void) {
    for (char **variable = environ; *variable != NULL; variable++)
        explicit_bzero(*variable, strlen(*variable));
    static char *none[] = {NULL};
    environ = none;
}

/* A byte, and with it what leads to the seccomp agent where the container has one. */
static bool go_receive(int connection, struct seccomp_agent *agent) {
    char byte;
    int fds[2];
    size_t count = 0;
    struct error *error = fd_receive(connection, &byte, 1, fds, 2, &count);
    if (count == 2)
        *agent = (struct seccomp_agent){.connection = fds[0], .document = fds[1]};
    bool received = error == NULL;
    error_free(error); /* whoever connected is gone */
    return received;
}

/* What init takes of the heap by itself. */
#define INIT_HEAP_BYTES (96 * 1024)

int init_run(void *data) {
    const struct init_plan *plan = data;
    /* First of all: from here on others may see this process. */
    struct error *error = fault_fail("guard");
    if (error == NULL)
        error = binary_guard_enter(plan->guard);
    (void)memory_populate(INIT_HEAP_BYTES);
    fd_close(plan->guard);
    environment_wipe();
    fd_close(plan->create_sync);
    fd_close(plan->warden_channel);
    for (int i = 0; i < 2; i++)
        fd_close(plan->broker_channel[i]);
    fd_close(plan->state_directory);
    struct readiness ready = {
        .program.labels = LSM_ATTRIBUTES_NONE, .program.ruleset = -1, .program.readable = -1};
    if (error == NULL)
        error = prepare(plan, &ready);
    if (error != NULL) {
        error_ignore(stage_report(plan, INIT_FAILED, NULL)); /* create is gone: nobody to tell */
        error_send(plan->sync, error);
        return 1;
    }
    fd_close(plan->sync);
    int connection = -1;
    struct seccomp_agent agent = SECCOMP_AGENT_NONE;
    /* A `start` that was killed before it said go has started nothing: the next one may. */
    for (;;) {
        connection = accept4(plan->start_listening, NULL, NULL, SOCK_CLOEXEC);
        if (connection >= 0 && go_receive(connection, &agent))
            break;
        fd_close(connection);
    }
    /* On success execve closes the connection, which tells start. */
    error = become_program(plan, &ready, &agent, connection);
    error_send(connection, error);
    return error->kind == ERROR_COMMAND_DENIED ? 126 : 127;
}

static void start_address(int directory, struct sockaddr_un *address) {
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(address->sun_path, sizeof address->sun_path, "/proc/self/fd/%d/" START_SOCKET, directory);
}

struct error *init_listen(int state_directory, int *listening) {
    struct sockaddr_un address;
    start_address(state_directory, &address);
    fd_owned int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (listener < 0)
        return error_system(errno, "make", "a socket");
    if (bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, 1) < 0)
        return error_system(errno, "listen", "at " START_SOCKET);
    *listening = fd_take(&listener);
    return NULL;
}

struct error *init_release(int state_directory, const struct seccomp_agent *agent) {
    struct sockaddr_un address;
    start_address(state_directory, &address);
    fd_owned int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (connection < 0)
        return error_system(errno, "make", "a socket");
    if (connect(connection, (struct sockaddr *)&address, sizeof address) < 0)
        return error_known(errno == ECONNREFUSED ? ERROR_NOT_RUNNING : ERROR_ALREADY_STARTED, NULL);
    char byte = 1;
    const int fds[] = {agent->connection, agent->document};
    struct error *error = fd_send(connection, &byte, 1, fds, agent->connection >= 0 ? 2 : 0);
    if (error != NULL) {
        error_free(error);
        return error_known(ERROR_NOT_RUNNING, NULL);
    }
    (void)!unlinkat(state_directory, START_SOCKET, 0);
    /* Nothing and the end: execve closed it. An init that was killed looks the same; its end is for the
     * waiter. */
    error = error_receive(connection);
    if (error != NULL && error->number == EPIPE && error->kind == ERROR_SYSTEM) {
        error_ignore(error);
        return NULL;
    }
    return error;
}
