/* container_create: from a bundle to an init that waits for start. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/memory.h"
#include "container/container.h"
#include "container/enforcement.h"
#include "container/fault.h"
#include "container/file_program.h"
#include "container/hooks.h"
#include "container/init.h"
#include "container/members.h"
#include "container/network.h"
#include "container/notify_socket.h"
#include "container/subject.h"
#include "egress/net_device.h"
#include "harden/seccomp.h"
#include "process/binary.h"
#include "process/lsm.h"
#include "process/scheduling.h"
#include "process/terminal.h"
#include "rootfs/attach.h"
#include "sys/calls.h"
#include "warden/warden.h"

/* What the heap comes to be with the agent policy. */
#define CREATE_HEAP_BYTES (240 * 1024)

/* All that a create holds until it is done; undone in one place. */
struct creation {
    const struct runtime_options *runtime;
    const struct create_options *options;
    struct memory_range heap;
    struct prepared prepared;
    struct container *container;
    struct namespace_plan namespaces;
    struct bind_source *sources;
    struct mount_set mounts;
    struct device_nodes nodes;  /* linux.devices for a user namespace */
    struct procfs procfs;       /* what init writes to */
    struct net_devices devices; /* moved into the container */
    struct seccomp_program seccomp;
    struct record_subject subject;
    struct wall_network network;
    char *root_path;
    unsigned listen_fds;   /* those that the container gets */
    int sync[2];           /* create's end, init's end */
    int channel[2];        /* init's end, the warden's end */
    int broker_channel[2]; /* the warden's end, the broker's keeper's; -1: no broker */
    int start_listening;
    int warden_listening;
    int guard;
    int console[2]; /* what init sends the terminal to; with an attended terminal also our end */
    bool allow_setgroups;
    pid_t pid;
    int pidfd;
    pid_t warden;
    pid_t broker; /* its keeper; 0: none */
};

static char *fd_path(int fd) {
    char link[64], target[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, target, sizeof target - 1);
    target[length < 0 ? 0 : length] = '\0';
    return memory_copy_string(target);
}

/* ---- before anything is made ---- */

/* The mount sources as facts/ opened them: what was judged is what is mounted. */
static struct bind_source *sources_of(const struct hardened *hardened) {
    struct bind_source *sources = memory_zeroed((hardened->config->mounts_count + 1) * sizeof *sources);
    for (size_t i = 0; i < hardened->config->mounts_count; i++) {
        const struct mount_fact *fact = hardened->mount_sources[i];
        if (fact != NULL)
            sources[i] = (struct bind_source){.judged = true,
                                              .fd = fact->source_fd,
                                              .open_errno = fact->open_errno,
                                              .path = fact->real_path,
                                              .device = fact->status.st_dev,
                                              .inode = fact->status.st_ino};
    }
    return sources;
}

static struct error *terminal_check(const struct creation *creation) {
    const struct create_options *options = creation->options;
    bool terminal = creation->prepared.hardened->config->process->terminal;
    if (terminal && options->console_socket == NULL && !options->attended)
        return error_new(ERROR_INVALID,
                         "process.terminal: true needs --console-socket, or `run` in the foreground");
    if (!terminal && options->console_socket != NULL)
        return error_new(ERROR_INVALID, "--console-socket: needs process.terminal: true");
    return NULL;
}

static struct error *compile_filters(struct creation *creation) {
    const struct hardened *hardened = creation->prepared.hardened;
    /* What the sandbox denies comes first, then the engine's profile; the observer sees what both let
     * through. */
    const struct oci_seccomp *documents[] = {hardened->denied, hardened->config->linux_config->seccomp,
                                             hardened->observed};
    string_list_owned struct string_list unknown = {0};
    TRY(error_context(seccomp_compile(documents, 3, &unknown, &creation->seccomp), "linux.seccomp"));
    if (unknown.count == 0)
        return NULL;
    const char *must_know =
        string_map_get(&creation->prepared.config->annotations, "run.oci.seccomp_fail_unknown_syscall");
    if (must_know != NULL && strcmp(must_know, "0") != 0)
        return error_new(ERROR_INVALID, "linux.seccomp.syscalls: unknown system call \"%s\"",
                         unknown.items[0]);
    /* A profile is written for many machines: the container starts without these rules (crun #156). */
    text_owned struct text names = {0};
    for (size_t i = 0; i < unknown.count; i++)
        text_format(&names, " %s", unknown.items[i]);
    fprintf(stderr, "pinfold: warning: linux.seccomp.syscalls: unknown system calls are ignored:%s\n",
            text_string(&names));
    return NULL;
}

/* ---- state, cgroup ---- */

static struct error *state_begin(struct creation *creation) {
    const struct prepared *prepared = &creation->prepared;
    const struct hardened *hardened = prepared->hardened;
    memory_owned char *run_id = NULL;
    TRY(run_id_make(prepared->config, &run_id));
    subject_make(creation->options->id, prepared, run_id, &creation->subject);
    struct container_state *state = memory_zeroed(sizeof *state);
    creation->container->state = state;
    state->pinfold_version = memory_copy_string(PINFOLD_VERSION);
    state->id = memory_copy_string(creation->options->id);
    state->bundle = memory_copy_string(prepared->facts->bundle);
    state->rootfs = memory_copy_string(creation->root_path);
    state->created = container_time_now();
    state->owner = geteuid() == 0 ? memory_copy_string("root") : text_formatted("%u", geteuid());
    state->status = memory_copy_string("creating");
    state->policy = memory_copy_string(prepared->policy->name);
    state->policy_digest = memory_copy_string(prepared->policy->digest);
    state->run_id = memory_copy_string(run_id);
    state->log_path = hardened->confined ? memory_copy_string(creation->subject.log_path) : NULL;
    state->confined = hardened->confined;
    state->wall = hardened->wall;
    state->observed = hardened->reached_observed;
    state->sandbox = creation->runtime->sandbox;
    network_aliases_read(prepared->policy, hardened, &state->host_aliases);
    network_wall_of(prepared->policy, &state->host_aliases, &creation->network);
    state->wall_opened = hardened->wall && network_has_openings(prepared->policy);
    state->no_hooks = hardened->config->hooks == NULL;
    if (hardened->access != NULL)
        state->access = schema_copy(&access_plan_schema, hardened->access);
    const struct oci_namespace *network = oci_config_namespace(hardened->config, "network");
    if (network != NULL && oci_namespace_is_joined(network)) {
        struct stat status;
        if (stat(network->path, &status) < 0)
            return error_system(errno, "stat", "linux.namespaces network: %s", network->path);
        state->network_path = memory_copy_string(network->path);
        state->network_inode = status.st_ino;
    }
    for (size_t i = 0; i < prepared->config->annotations.count; i++)
        string_map_set(&state->annotations, prepared->config->annotations.items[i].key,
                       prepared->config->annotations.items[i].value);
    const struct oci_seccomp *profile = hardened->config->linux_config->seccomp;
    if (harden_seccomp_has_agent(profile)) {
        state->seccomp_agent = memory_copy_string(profile->listener_path);
        if (profile->listener_metadata != NULL)
            state->seccomp_agent_metadata = memory_copy_string(profile->listener_metadata);
    }
    TRY(cgroup_plan(hardened->config->linux_config->cgroups_path, creation->options->id,
                    creation->runtime->cgroup_manager, geteuid() != 0 || !prepared->facts->initial_userns,
                    &state->cgroup));
    cgroup_intent(state->cgroup, &state->cgroups_created);
    const struct oci_intel_rdt *rdt = hardened->config->linux_config->intel_rdt;
    if (rdt != NULL)
        TRY(cgroup_rdt_intent(rdt, creation->options->id, &state->rdt_created));
    TRY(container_store_policy(creation->container, creation->prepared.policy));
    TRY(container_store_config(creation->container, hardened->config));
    TRY(network_resolver_store(creation->container->directory, hardened));
    TRY(seccomp_program_save(&creation->seccomp, creation->container->directory, "seccomp.bpf"));
    return container_save(creation->container);
}

/* systemd's socket activation: descriptors that reach the container only because a variable says so. Under a
 * confining policy the variable must name this very process (conmon and systemd see to that); one that merely
 * lingers in the environment hands nothing over. */
static struct error *listen_fds_apply(struct creation *creation) {
    const struct create_options *options = creation->options;
    struct string_list *environment = &creation->prepared.hardened->config->process->env;
    if (options->listen_fds == 0)
        return NULL;
    if (creation->prepared.hardened->confined && !options->listen_fds_ours) {
        fprintf(stderr, "pinfold: warning: LISTEN_FDS is for another process (LISTEN_PID); not passed on\n");
        return descriptors_withhold(options->listen_fds);
    }
    for (size_t i = 0; i < environment->count; i++)
        if (text_starts_with(environment->items[i], "LISTEN_FDS="))
            return NULL; /* the engine has written what the program is to see */
    creation->listen_fds = options->listen_fds;
    string_list_append_owned(environment, text_formatted("LISTEN_FDS=%u", options->listen_fds));
    const char *names = getenv("LISTEN_FDNAMES");
    if (names != NULL)
        string_list_append_owned(environment, text_formatted("LISTEN_FDNAMES=%s", names));
    return NULL;
}

/* What the caller's environment asks for; not stored, because it is nothing to a later exec. */
static struct error *callers_environment_apply(struct creation *creation) {
    struct oci_config *config = creation->prepared.hardened->config;
    if (container_keeps_groups(config))
        config->process->user.additional_gids_count = 0;
    TRY(listen_fds_apply(creation));
    TRY(notify_socket_offer(creation->container, creation->prepared.hardened));
    creation->sources = sources_of(creation->prepared.hardened);
    return NULL;
}

/* The built-in limit of processes degrades where this machine cannot hold it; one that was asked for does
 * not. */
static void default_limits_degrade(struct creation *creation) {
    const struct oci_resources *asked = creation->prepared.config->linux_config->resources;
    struct oci_resources *resources = creation->prepared.hardened->config->linux_config->resources;
    bool was_asked = asked != NULL && asked->pids != NULL && asked->pids->limit.set;
    if (was_asked || resources == NULL || resources->pids == NULL ||
        cgroup_has_controller(creation->container->state->cgroup, "pids"))
        return;
    resources->pids->limit.set = false;
    harden_note(creation->prepared.hardened, CHANGE_DEGRADED, "linux.resources.pids.limit", "pids",
                "mechanism.unavailable", "limits.pids: 1024", NULL,
                "No pids cgroup can be had here; the number of processes is not limited.");
}

static struct error *cgroup_prepare(struct creation *creation) {
    struct container_state *state = creation->container->state;
    default_limits_degrade(creation);
    struct string_list created = {0};
    struct error *error = cgroup_make(state->cgroup, &created);
    /* From here on only what was really made may be removed: where it failed, nothing was. */
    string_list_free(&state->cgroups_created);
    state->cgroups_created = created;
    TRY(error);
    fault_point("cgroup");
    TRY(cgroup_apply(state->cgroup, creation->prepared.hardened->config->linux_config->resources));
    cgroup_allow_scheduler(state->cgroup, creation->prepared.hardened->config->process->scheduler);
    fault_point("cgroup-limits");
    return NULL;
}

/* The systemd driver: the cgroup is made around init, which waits for its first word. */
static struct error *scope_prepare(struct creation *creation) {
    struct container_state *state = creation->container->state;
    const struct oci_config *config = creation->prepared.hardened->config;
    default_limits_degrade(creation);
    TRY(container_save(creation->container)); /* init, before it is moved anywhere */
    fault_point("recorded");
    TRY(cgroup_scope_start(state->cgroup, creation->options->id, creation->pid,
                           config->linux_config->resources, &config->annotations, &state->cgroups_created));
    fault_point("scope");
    TRY(container_save(creation->container));
    return cgroup_apply(state->cgroup, config->linux_config->resources);
}

static struct error *rdt_apply(struct creation *creation) {
    const struct oci_intel_rdt *rdt = creation->prepared.hardened->config->linux_config->intel_rdt;
    return rdt == NULL ? NULL
                       : cgroup_rdt_apply(rdt, creation->options->id,
                                          &creation->container->state->rdt_created, creation->pid);
}

/* The container's own directories of every hierarchy, for a mount of type cgroup. */
static struct error *cgroup_views(struct creation *creation) {
    const struct cgroup *cgroup = creation->container->state->cgroup;
    struct mount_set *mounts = &creation->mounts;
    for (size_t i = 0; i < cgroup->count; i++) {
        const char *path = cgroup->directories[i].path;
        fd_owned int directory = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (directory < 0)
            continue; /* a hierarchy where a rootless container has no directory */
        int tree = -1;
        TRY(mount_copy(directory, false, path, &tree));
        const char *name = text_starts_with(path, "/sys/fs/cgroup/") && !cgroup->unified
                               ? path + strlen("/sys/fs/cgroup/")
                               : "";
        memory_owned char *first = strndup(name, strcspn(name, "/"));
        mount_set_add_cgroup_view(mounts, first, tree);
    }
    return NULL;
}

static bool shows_cgroups(const struct oci_config *config) {
    for (size_t i = 0; i < config->mounts_count; i++)
        if (config->mounts[i].type != NULL && text_starts_with(config->mounts[i].type, "cgroup"))
            return true;
    return false;
}

/* What init writes to /proc goes through a handle that was opened outside: in the container, other mounts may
 * hide the right file, and a user namespace may make no procfs beside one that is masked. */
static struct error *procfs_prepare(struct creation *creation) {
    const struct oci_linux *linux_config = creation->prepared.hardened->config->linux_config;
    if (linux_config->sysctl.count == 0 && !creation->namespaces.new_time &&
        !lsm_wants_procfs(creation->prepared.hardened->config->process))
        return NULL;
    return procfs_open(PROCFS_WHOLE, &creation->procfs);
}

/* ---- processes ---- */

static struct error *pairs_open(struct creation *creation) {
    TRY(fd_pair(&creation->sync[0], &creation->sync[1]));
    if (creation->prepared.hardened->confined)
        TRY(fd_pair(&creation->channel[0], &creation->channel[1]));
    if (creation->prepared.hardened->wall && network_has_broker(creation->prepared.policy))
        TRY(fd_pair(&creation->broker_channel[0], &creation->broker_channel[1]));
    const struct create_options *options = creation->options;
    if (options->console_socket != NULL)
        return terminal_connect(options->console_socket, &creation->console[0]);
    if (creation->prepared.hardened->config->process->terminal &&
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, creation->console) < 0)
        return error_system(errno, "make", "a socket pair");
    return NULL;
}

/* CLONE_INTO_CGROUP is refused where moving there works: a threaded parent, a cgroup with controllers below
 * it, and EAGAIN for a limit of 0 processes, which counts births alone. */
static bool is_refused_birth(int number) {
    return number == EAGAIN || number == EBUSY || number == EOPNOTSUPP || number == EACCES ||
           number == EINVAL;
}

/* Init has this process's memory, environment and descriptors (the root of the machine is one step above
 * root.path) until it becomes the container's program. In a process namespace that another container is in
 * already, and for a command that is executed before start, it must not be looked into (CVE-2016-9962). For
 * an unprivileged owner that would keep himself out, too: he could neither map ids nor start. */
static struct error *secrecy_begin(void) {
    if (geteuid() == 0 && !fault_without("secrecy") && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return error_system(errno, "clear", "PR_SET_DUMPABLE");
    return NULL;
}

static struct error *init_clone(struct creation *creation) {
    const struct prepared *prepared = &creation->prepared;
    TRY(secrecy_begin());
    bool unprivileged = geteuid() != 0;
    fd_owned int born_in = cgroup_open_unified(creation->container->state->cgroup);
    struct init_plan plan = {
        .id = creation->options->id,
        .hardened = prepared->hardened,
        .facts = prepared->facts,
        .namespaces = &creation->namespaces,
        .cgroup = creation->container->state->cgroup,
        .seccomp = &creation->seccomp,
        .network = &creation->network,
        .brokered = creation->broker_channel[1] >= 0,
        .root_path = creation->root_path,
        .container = creation->container,
        .mounts = &creation->mounts,
        .nodes = &creation->nodes,
        .procfs = creation->procfs,
        .sources = creation->sources,
        .reopen_sources = unprivileged,
        .cgroup_view = unprivileged && shows_cgroups(prepared->hardened->config),
        .born_in_unified = born_in >= 0,
        .no_pivot = creation->options->no_pivot,
        .new_keyring = !creation->options->no_new_keyring,
        .preserve_fds = creation->options->preserve_fds,
        .listen_fds = creation->listen_fds,
        .sync = creation->sync[1],
        .create_sync = creation->sync[0],
        .channel = creation->channel[0],
        .warden_channel = creation->channel[1],
        .broker_channel = {creation->broker_channel[0], creation->broker_channel[1]},
        .state_directory = creation->container->directory,
        .start_listening = creation->start_listening,
        .console = creation->console[0],
        .guard = creation->guard,
    };
    struct error *error = namespace_clone(&creation->namespaces, born_in, init_in_stage, init_run, &plan,
                                          &creation->pid, &creation->pidfd);
    if (error != NULL && born_in >= 0 && is_refused_birth(error->number)) {
        error_free(error);
        plan.born_in_unified = false;
        error = namespace_clone(&creation->namespaces, -1, init_in_stage, init_run, &plan, &creation->pid,
                                &creation->pidfd);
    }
    TRY(error);
    fault_point("clone");
    fd_close(fd_take(&creation->sync[1]));
    return process_identify(creation->pid, &creation->container->state->init);
}

/* Beside init and the warden: its sockets come from init, by way of the warden. */
static struct error *broker_begin(struct creation *creation) {
    const struct prepared *prepared = &creation->prepared;
    if (creation->broker_channel[1] < 0)
        return NULL;
    TRY(network_broker_start(prepared->policy, prepared->hardened, &creation->container->state->host_aliases,
                             creation->broker_channel[1], creation->pidfd, creation->container->directory,
                             &creation->broker));
    fd_close(fd_take(&creation->broker_channel[1]));
    return process_identify(creation->broker, &creation->container->state->broker);
}

/* Before init becomes the container's program. */
static struct error *files_watch(struct creation *creation, struct file_watch *out) {
    if (creation->prepared.hardened->files_observer != FILES_BY_BPF)
        return NULL;
    char path[64];
    struct stat status;
    snprintf(path, sizeof path, "/proc/%d/ns/pid", (int)creation->pid);
    if (stat(path, &status) < 0)
        return error_system(errno, "stat", "%s", path);
    /* First the intent: whoever finds the state after a kill undoes what may be there. */
    creation->container->state->files_namespace = status.st_ino;
    TRY(container_save(creation->container));
    return file_program_watch(status.st_ino, out);
}

static struct error *warden_begin(struct creation *creation) {
    const struct hardened *hardened = creation->prepared.hardened;
    if (!hardened->confined)
        return NULL;
    /* Borrowed from the creation; only the arrays themselves are this function's. */
    struct warden_plan plan = {.subject = creation->subject,
                               .policy_origin = creation->prepared.policy->origin,
                               .on_denied = creation->prepared.policy->on_denied_action,
                               .init_pid = creation->pid,
                               .executions = hardened->executions_observed,
                               .network_open = hardened->reached_observed,
                               .network_unobserved = !creation->prepared.policy->observe_network,
                               .mutations_judged = hardened->files_observer == FILES_BY_SECCOMP,
                               .rules = {.denied = hardened->denied, .observed = hardened->observed}};
    if (creation->broker_channel[0] >= 0) {
        plan.hosts = creation->prepared.policy->allowed_hosts.values;
        plan.hosts_origins = creation->prepared.policy->allowed_hosts.origins;
    }
    struct file_watch files = FILE_WATCH_NONE;
    TRY(files_watch(creation, &files));
    fd_owned int ring = files.ring;
    fd_owned int losses = files.losses;
    string_list_owned struct string_list decoys = {0};
    for (size_t i = 0; i < hardened->decoys_count; i++)
        string_list_append(&decoys, hardened->decoys[i].path);
    plan.decoys = decoys;
    if (hardened->access != NULL && hardened->access->reads)
        plan.readable = creation->prepared.policy->readable.values;
    memory_owned struct warden_change *changes =
        memory_zeroed((hardened->changes_count + 1) * sizeof *changes);
    for (size_t i = 0; i < hardened->changes_count; i++) {
        const struct change *change = &hardened->changes[i];
        if (change->reason != NULL)
            changes[plan.changes_count++] = (struct warden_change){.reason = change->reason,
                                                                   .subject = change->subject,
                                                                   .message = change->message,
                                                                   .rule = change->rule,
                                                                   .remedy = change->remedy};
    }
    plan.changes = changes;
    TRY(warden_spawn(&plan, creation->channel[1], creation->warden_listening, creation->pidfd,
                     creation->broker_channel[0], ring, losses, &creation->warden));
    fault_point("warden");
    for (int i = 0; i < 2; i++)
        fd_close(fd_take(&creation->channel[i]));
    fd_close(fd_take(&creation->broker_channel[0]));
    fd_close(fd_take(&creation->warden_listening));
    return process_identify(creation->warden, &creation->container->state->warden);
}

/* Init is gone without a word: the kernel has killed it. */
static struct error *init_ended(const struct creation *creation) {
    const struct oci_resources *resources = creation->prepared.hardened->config->linux_config->resources;
    if (resources != NULL && resources->memory != NULL && resources->memory->limit.set &&
        resources->memory->limit.value > 0)
        return error_new(ERROR_UNAVAILABLE,
                         "the container's init ended before it was ready; linux.resources.memory.limit, %lld "
                         "bytes, may be too small for it",
                         (long long)resources->memory->limit.value);
    return error_new(ERROR_UNAVAILABLE, "the container's init ended before it was ready");
}

/* Waits for init's next word; its error, if it sends one. */
static struct error *init_await(struct creation *creation, enum init_stage expected) {
    int stage = 0;
    ssize_t length = fd_receive_message(creation->sync[0], &stage, sizeof stage);
    if (length == (ssize_t)sizeof stage && stage == INIT_FAILED) {
        struct error *error = error_receive(creation->sync[0]);
        return error ? error : error_system(EPROTO, "create", "the container's init");
    }
    if (length != (ssize_t)sizeof stage || stage != (int)expected)
        return init_ended(creation);
    return NULL;
}

static struct error *init_go(struct creation *creation) {
    bool keep = container_keeps_groups(creation->prepared.hardened->config);
    struct init_go go = {.allow_setgroups = creation->allow_setgroups && !keep};
    struct mount_set *mounts = &creation->mounts;
    fd_owned int view = -1;
    /* Made after init's birth, so that it has none of its own. */
    if (creation->container->state->cgroup->scope != NULL && mounts->cgroup_views_count == 1)
        view = fd_take(&mounts->cgroup_views[0].tree);
    struct error *error = fd_send(creation->sync[0], &go, sizeof go, &view, view >= 0 ? 1 : 0);
    if (error == NULL || error->number != EPIPE)
        return error_context(error, "tell the container's init to go on");
    error_free(error);
    return init_await(creation, INIT_FAILED); /* it has ended, and said why */
}

static struct error *init_adjust(struct creation *creation) {
    const struct oci_config *config = creation->prepared.hardened->config;
    const struct oci_process *process = config->process;
    TRY(rlimits_apply(creation->pid, process));
    TRY(oom_score_apply(creation->pid, process));
    creation->allow_setgroups = true;
    if (namespace_plan_has_new(&creation->namespaces, CLONE_NEWUSER))
        TRY(namespace_map_ids(creation->pid, config->linux_config, &creation->allow_setgroups));
    return NULL;
}

/* What `explain ID` shows. Nothing reads it to decide anything. */
static struct error *enforcement_store(const struct creation *creation) {
    const struct prepared *prepared = &creation->prepared;
    if (!prepared->hardened->confined)
        return NULL;
    struct enforcement *enforcement = enforcement_make(prepared->hardened, prepared->policy, prepared->facts);
    json_owned struct json_writer json = {0};
    schema_write(&enforcement_schema, enforcement, &json);
    enforcement_free(enforcement);
    /* New, and read by nobody before create has ended: a third of what replacing a file costs. */
    fd_owned int file = openat(creation->container->directory, ENFORCEMENT_FILE,
                               O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0)
        return error_system(errno, "write", "%s/" ENFORCEMENT_FILE, creation->container->path);
    return fd_write_all(file, json.text.data, json.text.length, ENFORCEMENT_FILE);
}

static struct error *hooks_outside(struct creation *creation) {
    const struct oci_hooks *hooks = creation->prepared.hardened->config->hooks;
    if (hooks == NULL)
        return NULL;
    creation->container->hooks_begun = true;
    /* runtime.md, "State": created is "after step 2", and these are steps 3 and 4. */
    memory_owned char *state = container_state_text(creation->container, "created");
    struct hook_context context = {"prestart", state, creation->prepared.facts->bundle, environ, NULL, NULL};
    TRY(hooks_run(hooks->prestart, hooks->prestart_count, &context));
    context.point = "createRuntime";
    return hooks_run(hooks->create_runtime, hooks->create_runtime_count, &context);
}

/* ---- linux.netDevices ---- */

static struct error *network_devices_check(const struct creation *creation) {
    const struct oci_linux *linux_config = creation->prepared.hardened->config->linux_config;
    int joined = -1;
    for (size_t i = 0; i < creation->namespaces.joined_count; i++)
        if (creation->namespaces.joined[i].type == CLONE_NEWNET)
            joined = creation->namespaces.joined[i].fd;
    return net_devices_check(linux_config->net_devices, linux_config->net_devices_count, joined);
}

/* In the container's network namespace: what leads there is sent to create. */
static struct error *network_access_send(void *data) {
    const int *socket = data;
    struct network_access access = NETWORK_ACCESS_NONE;
    TRY(network_access_open(&access));
    int fds[] = {access.rtnetlink, access.namespace};
    struct error *error = fd_send(*socket, "", 1, fds, 2);
    network_access_close(&access);
    return error;
}

/* After the wall stands (init has raised it) and before the first hook sees the container. */
static struct error *network_devices_move(struct creation *creation) {
    const struct oci_linux *linux_config = creation->prepared.hardened->config->linux_config;
    if (linux_config->net_devices_count == 0)
        return NULL;
    fd_owned int ours = -1;
    fd_owned int theirs = -1;
    TRY(fd_pair(&ours, &theirs));
    TRY(error_context(namespace_run_in_network(creation->pidfd, creation->pid, network_access_send, &theirs),
                      "linux.netDevices"));
    char byte;
    int fds[2];
    size_t count = 0;
    TRY(fd_receive(ours, &byte, 1, fds, 2, &count));
    if (count != 2)
        return error_system(EPROTO, "receive", "what leads to the container's network namespace");
    TRY(net_devices_move(linux_config->net_devices, linux_config->net_devices_count,
                         (struct network_access){fds[0], fds[1]}, &creation->devices));
    return NULL;
}

static struct error *terminal_fetch(struct creation *creation, int *terminal) {
    if (creation->console[1] < 0)
        return NULL;
    char name[sizeof "/dev/ptmx" - 1];
    size_t count = 0;
    TRY(fd_receive(creation->console[1], name, sizeof name, terminal, 1, &count));
    return NULL;
}

/* Init and the warden come to about 40, cleaning up after them to a dozen. Better not begun than not undone.
 */
static struct error *descriptors_check(void) {
    enum { DESCRIPTORS_MIN = 64 };
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < DESCRIPTORS_MIN)
        return error_new(
            ERROR_UNAVAILABLE,
            "Too many open files: RLIMIT_NOFILE lets this process have %llu, to create a container "
            "takes %d",
            (unsigned long long)limit.rlim_cur, DESCRIPTORS_MIN);
    return NULL;
}

static struct error *creation_run(struct creation *creation, struct created *out) {
    const struct create_options *options = creation->options;
    TRY(container_id_check(options->id));
    TRY(descriptors_check());
    creation->heap = memory_populate(CREATE_HEAP_BYTES);
    TRY(container_prepare(creation->runtime, options->bundle, options->config, &creation->prepared));
    TRY(terminal_check(creation));
    TRY(compile_filters(creation));
    TRY(namespace_plan_make(creation->prepared.hardened->config, &creation->namespaces));
    TRY(network_devices_check(creation));
    creation->root_path = fd_path(creation->prepared.facts->root_fd);
    TRY(container_make(creation->runtime->root, options->id, &creation->container));
    fault_point("directory");
    TRY(state_begin(creation));
    fault_point("state");
    TRY(callers_environment_apply(creation));
    bool scope = creation->container->state->cgroup->scope != NULL;
    bool views = geteuid() == 0 && shows_cgroups(creation->prepared.hardened->config);
    if (!scope)
        TRY(cgroup_prepare(creation));
    if (geteuid() == 0)
        TRY(mount_set_prepare(creation->prepared.hardened->config, creation->sources, false,
                              creation->prepared.hardened->confined, &creation->mounts));
    /* Not in a sandbox: there the machine's own node vouches for what is at a path that a policy allows. */
    if (geteuid() == 0 && !creation->prepared.hardened->confined)
        TRY(device_nodes_make(creation->prepared.hardened->config, &creation->nodes));
    if (views && !scope)
        TRY(cgroup_views(creation));
    TRY(procfs_prepare(creation));
    TRY(init_listen(creation->container->directory, &creation->start_listening));
    if (creation->prepared.hardened->confined)
        TRY(warden_listen(creation->container->directory, &creation->warden_listening));
    TRY(pairs_open(creation));

    TRY(binary_guard_open(&creation->guard));
    TRY(init_clone(creation));
    memory_populate_again(&creation->heap);
    if (scope)
        TRY(scope_prepare(creation));
    if (scope && views)
        TRY(cgroup_views(creation));
    TRY(rdt_apply(creation));
    TRY(init_adjust(creation));
    fault_pause("go");
    TRY(init_go(creation));
    fault_point("go");
    /* Beside init, which makes the mounts meanwhile. */
    TRY(warden_begin(creation));
    TRY(broker_begin(creation));
    /* Hooks may ask for the state. And after them init does not end with its create any more: from there on
     * only who knows its number, and the warden's, finds them, where no cgroup holds them. */
    TRY(container_save(creation->container));
    fault_point("begun");
    TRY(init_await(creation, INIT_HOOKS));
    TRY(network_devices_move(creation));
    TRY(hooks_outside(creation));
    fault_point("hooks");
    TRY(init_go(creation));
    TRY(enforcement_store(creation)); /* while init is at work */
    TRY(init_await(creation, INIT_READY));
    members_note(creation->container->state, creation->prepared.hardened->config);
    TRY(scheduling_apply(creation->pid, creation->prepared.hardened->config->process));
    fault_point("ready");
    TRY(terminal_fetch(creation, &out->terminal));
    if (options->pidfd_socket != NULL)
        TRY(pidfd_send(options->pidfd_socket, creation->pidfd));
    memory_replace_string(&creation->container->state->status, "created");
    TRY(container_save(creation->container));
    fault_point("saved");
    if (options->pid_file != NULL)
        TRY(pid_file_write(options->pid_file, creation->pid));
    fault_point("pid-file");
    return NULL;
}

static void creation_clear(struct creation *creation) {
    prepared_clear(&creation->prepared);
    namespace_plan_close(&creation->namespaces);
    free(creation->sources);
    mount_set_free(&creation->mounts);
    device_nodes_free(&creation->nodes);
    procfs_close(&creation->procfs);
    net_devices_free(&creation->devices);
    seccomp_program_free(&creation->seccomp);
    subject_clear(&creation->subject);
    network_wall_clear(&creation->network);
    free(creation->root_path);
    for (int i = 0; i < 2; i++) {
        fd_close(creation->sync[i]);
        fd_close(creation->channel[i]);
        fd_close(creation->broker_channel[i]);
        fd_close(creation->console[i]);
    }
    fd_close(creation->guard);
    fd_close(creation->start_listening);
    fd_close(creation->warden_listening);
}

static void creation_undo(struct creation *creation) {
    /* Before the namespace goes with init, and virtual devices with the namespace. */
    struct error *stranded = net_devices_return(&creation->devices);
    if (stranded != NULL)
        fprintf(stderr, "pinfold: cleaning up after a failed create: %s\n", stranded->message);
    error_free(stranded);
    if (creation->pidfd >= 0) {
        (void)!sys_pidfd_send_signal(creation->pidfd, SIGKILL);
        process_wait(creation->pid);
    }
    /* Before anything is opened to clean up: want of descriptors may be why we are here. */
    creation_clear(creation);
    if (creation->container == NULL)
        return;
    /* The warden goes by itself when init is gone; container_delete waits for it. */
    struct error *error = container_delete(creation->container, true);
    if (error != NULL)
        fprintf(stderr, "pinfold: cleaning up after a failed create: %s\n", error->message);
    error_free(error);
    if (creation->warden > 0)
        process_wait(creation->warden);
    if (creation->broker > 0)
        process_wait(creation->broker);
}

struct error *container_create(const struct runtime_options *runtime, const struct create_options *options,
                               struct created *out) {
    struct creation creation = {.runtime = runtime,
                                .options = options,
                                .sync = {-1, -1},
                                .channel = {-1, -1},
                                .broker_channel = {-1, -1},
                                .console = {-1, -1},
                                .guard = -1,
                                .start_listening = -1,
                                .warden_listening = -1,
                                .procfs = PROCFS_NONE,
                                .devices = NET_DEVICES_NONE,
                                .namespaces = NAMESPACE_PLAN_NONE,
                                .pidfd = -1};
    *out = (struct created){.pidfd = -1, .terminal = -1};
    struct error *error = creation_run(&creation, out);
    if (error != NULL) {
        refusal_record(options->id, &creation.prepared, error);
        /* EEXIST leaves creation.container NULL: what is there is another's. */
        creation_undo(&creation);
        fd_close(creation.pidfd);
        fd_close(fd_take(&out->terminal));
        container_close(creation.container);
    } else {
        out->container = creation.container;
        out->pid = creation.pid;
        out->pidfd = creation.pidfd;
        out->warden = creation.warden;
        out->broker = creation.broker;
        creation_clear(&creation);
    }
    return error;
}

void created_clear(struct created *created) {
    container_close(created->container);
    fd_close(created->pidfd);
    fd_close(created->terminal);
    *created = (struct created){.pidfd = -1, .terminal = -1};
}
