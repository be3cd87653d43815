/* The wall, its warden and its broker, from outside of a container that another runtime has made. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/memory.h"
#include "container/network.h"
#include "container/subject.h"
#include "hooks/egress.h"
#include "policy/keys.h"
#include "process/namespaces.h"
#include "sys/calls.h"
#include "warden/warden.h"

/* All that is held until the set-up is done. */
struct set_up {
    struct prepared prepared; /* no facts */
    struct mount_fact *sources;
    struct string_list aliases;
    struct wall_network network;
    struct record_subject subject;
    int init;              /* pidfd */
    int channel[2];        /* the hook's end, as init has it under pinfold; the warden's */
    int broker_channel[2]; /* the warden's end, the keeper's; -1: no broker */
};

/* ---- what is read ---- */

static struct error *config_read(const char *bundle, struct oci_config **out) {
    memory_owned char *path = text_formatted("%s/config.json", bundle);
    text_owned struct text bytes = {0};
    TRY(file_read(AT_FDCWD, path, SCHEMA_BYTES_MAX, &bytes));
    TRY(oci_config_parse(path, text_string(&bytes), bytes.length, out));
    if ((*out)->process == NULL || (*out)->linux_config == NULL)
        return error_new(ERROR_INVALID, "%s: process and linux are required", path);
    return NULL;
}

/* The files that the engine mounted for the resolver, opened as network_broker_start wants them. */
static struct error *sources_open(struct set_up *set_up, const char *bundle) {
    fd_owned int directory = open(bundle, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return error_system(errno, "open", "%s", bundle);
    const struct oci_config *config = set_up->prepared.config;
    struct hardened *hardened = set_up->prepared.hardened;
    set_up->sources = memory_zeroed((config->mounts_count + 1) * sizeof *set_up->sources);
    hardened->mount_sources = memory_zeroed((config->mounts_count + 1) * sizeof *hardened->mount_sources);
    for (size_t i = 0; i < config->mounts_count; i++) {
        const struct oci_mount *mount = &config->mounts[i];
        struct mount_fact *fact = &set_up->sources[i];
        fact->source_fd = -1;
        if (mount->source == NULL || (strcmp(mount->destination, "/etc/resolv.conf") != 0 &&
                                      strcmp(mount->destination, "/etc/hosts") != 0))
            continue;
        fact->source_fd = openat(directory, mount->source, O_PATH | O_CLOEXEC);
        if (fact->source_fd >= 0 && fstat(fact->source_fd, &fact->status) == 0)
            hardened->mount_sources[i] = fact;
    }
    return NULL;
}

/* ---- what is judged ---- */

/* The namespace of this process, and that of the machine's first one where it may be looked at. */
static struct error *namespace_check(pid_t init) {
    char path[64];
    struct stat theirs, host;
    snprintf(path, sizeof path, "/proc/%d/ns/net", (int)init);
    if (stat(path, &theirs) < 0)
        return error_system(errno, "look at", "the container's network namespace");
    static const char *const hosts[] = {"/proc/self/ns/net", "/proc/1/ns/net"};
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++)
        if (stat(hosts[i], &host) == 0 && host.st_dev == theirs.st_dev && host.st_ino == theirs.st_ino)
            return error_new(
                ERROR_REFUSED,
                "namespace.host.refused: the container is in the host's network namespace, where "
                "no wall can stand; use the engine's default network or none");
    return NULL;
}

static bool is_held(enum policy_key key) {
    return (key >= POLICY_NETWORK_MODE && key <= POLICY_NETWORK_UPLINK) || key == POLICY_ON_DENIED_ACTION ||
           key == POLICY_OBSERVE_NETWORK;
}

/* The hook holds the network and nothing else: what a policy says of the rest is not in force, and a record
 * tells. NULL: it says nothing of the rest. */
static char *not_held(const struct policy *policy) {
    struct text names = {0};
    for (enum policy_key key = 0; key < POLICY_KEY_COUNT; key++)
        if (!is_held(key) && policy->origins[key] != NULL)
            text_format(&names, "%s%s", names.length > 0 ? ", " : "", policy_keys[key].name);
    return names.length > 0 ? text_take(&names) : NULL;
}

/* ---- what is made ---- */

static struct error *warden_begin(struct set_up *set_up, pid_t init) {
    const struct policy *policy = set_up->prepared.policy;
    struct warden_plan plan = {.subject = set_up->subject,
                               .policy_origin = policy->origin,
                               .on_denied = policy->on_denied_action,
                               .init_pid = init,
                               .network_unobserved = !policy->observe_network};
    if (set_up->broker_channel[0] >= 0) {
        plan.hosts = policy->allowed_hosts.values;
        plan.hosts_origins = policy->allowed_hosts.origins;
    }
    /* Only the array itself and what is said of the rest are this function's. */
    memory_owned struct warden_change *changes = memory_zeroed((policy->remarks_count + 1) * sizeof *changes);
    for (size_t i = 0; i < policy->remarks_count; i++) {
        const struct policy_remark *remark = &policy->remarks[i];
        changes[plan.changes_count++] = (struct warden_change){.reason = remark->reason,
                                                               .subject = remark->subject,
                                                               .message = remark->message,
                                                               .rule = remark->rule};
    }
    memory_owned char *keys = not_held(policy);
    memory_owned char *message =
        text_formatted("The hook holds the network alone; these lines of the policy are not in force: %s.",
                       keys != NULL ? keys : "");
    if (keys != NULL)
        changes[plan.changes_count++] = (struct warden_change){.reason = (char[]){"mechanism.unavailable"},
                                                               .subject = (char[]){"hook"},
                                                               .message = message,
                                                               .rule = keys};
    plan.changes = changes;
    pid_t pid;
    TRY(warden_spawn(&plan, set_up->channel[1], -1, set_up->init, set_up->broker_channel[0], -1, -1, &pid));
    fd_close(fd_take(&set_up->channel[1]));
    fd_close(fd_take(&set_up->broker_channel[0]));
    return NULL;
}

static struct error *broker_begin(struct set_up *set_up) {
    if (set_up->broker_channel[1] < 0)
        return NULL;
    pid_t pid;
    TRY(network_broker_start(set_up->prepared.policy, set_up->prepared.hardened, &set_up->aliases,
                             set_up->broker_channel[1], set_up->init, -1, &pid));
    fd_close(fd_take(&set_up->broker_channel[1]));
    return NULL;
}

/* In a process that has entered the container's network namespace. */
static struct error *wall_work(void *data) {
    const struct set_up *set_up = data;
    bool joined = true;
    struct error *error = network_wall_build(&set_up->network, network_has_broker(set_up->prepared.policy),
                                             set_up->channel[0], &joined);
    if (error == NULL)
        error = wall_complete_early(&set_up->network);
    if (error == NULL)
        error = warden_watch(set_up->channel[0]); /* until the broker serves */
    if (error != NULL && !joined)
        error_ignore(wall_remove()); /* a namespace of the engine's may outlive the container */
    return error;
}

static struct error *run(struct set_up *set_up, const struct oci_state *state, const char *policy_given) {
    struct prepared *prepared = &set_up->prepared;
    pid_t init = (pid_t)state->pid;
    const struct runtime_options options = {.policy_given = policy_given};
    TRY(container_id_check(state->id));
    if (init <= 0 || (set_up->init = sys_pidfd_open(init, 0)) < 0)
        return error_system(init <= 0 ? EINVAL : errno, "open", "process %d, the container's", (int)init);
    TRY(config_read(state->bundle, &prepared->config));
    TRY(container_policy(&options, &prepared->config->annotations, &prepared->policy));
    const struct policy *policy = prepared->policy;
    if (!policy->confined || policy->network_mode == POLICY_NETWORK_OPEN)
        return NULL; /* whoever is trusted with the policy wants no wall */
    TRY(egress_judge(prepared->config));
    TRY(namespace_check(init));

    prepared->hardened = memory_zeroed(sizeof *prepared->hardened);
    prepared->hardened->config = prepared->config;
    TRY(sources_open(set_up, state->bundle));
    network_aliases_read(policy, prepared->hardened, &set_up->aliases);
    network_wall_of(policy, &set_up->aliases, &set_up->network);
    memory_owned char *run_id = NULL;
    TRY(run_id_make(prepared->config, &run_id));
    subject_make(state->id, prepared, run_id, &set_up->subject);
    struct record_process runtime = {0};
    record_process_read(getppid(), &runtime);
    set_up->subject.runtime = runtime.name;
    runtime.name = NULL;
    record_process_clear(&runtime);

    TRY(fd_pair(&set_up->channel[0], &set_up->channel[1]));
    if (network_has_broker(policy))
        TRY(fd_pair(&set_up->broker_channel[0], &set_up->broker_channel[1]));
    TRY(warden_begin(set_up, init));
    TRY(broker_begin(set_up));
    return error_context(namespace_run_in_network(set_up->init, init, wall_work, set_up), "network wall");
}

static void clear(struct set_up *set_up) {
    size_t mounts = set_up->prepared.config != NULL ? set_up->prepared.config->mounts_count : 0;
    for (size_t i = 0; set_up->sources != NULL && i < mounts; i++)
        fd_close(set_up->sources[i].source_fd);
    free(set_up->sources);
    if (set_up->prepared.hardened != NULL) {
        free((void *)set_up->prepared.hardened->mount_sources);
        free(set_up->prepared.hardened);
        set_up->prepared.hardened = NULL;
    }
    network_wall_clear(&set_up->network);
    subject_clear(&set_up->subject);
    string_list_free(&set_up->aliases);
    prepared_clear(&set_up->prepared);
    for (int i = 0; i < 2; i++) {
        fd_close(set_up->channel[i]);
        fd_close(set_up->broker_channel[i]);
    }
    fd_close(set_up->init);
}

struct error *egress_set_up(const struct oci_state *state, const char *policy_given) {
    struct set_up set_up = {.init = -1, .channel = {-1, -1}, .broker_channel = {-1, -1}};
    struct error *error = run(&set_up, state, policy_given);
    if (error != NULL)
        refusal_record(state->id, &set_up.prepared, error);
    clear(&set_up);
    return error;
}
