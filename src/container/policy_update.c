/* container_update_policy: another policy for a container that is there. What lies outside of the container
 * can change: the network's hosts. What the container was made of (mounts, environment, the seccomp filter,
 * Landlock) cannot. In this order, so that whoever is killed on the way leaves what both policies allow, or
 * one of the two, and the next update puts everything right:
 *
 *   names and addresses into the state; a broker where there is none; the warden's lists;
 *   the wall, which lets through what it should let through; the broker, which ends what it should not;
 *   the stored policy, and the record */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/memory.h"
#include "broker/report.h"
#include "container/container.h"
#include "container/enforcement.h"
#include "container/fault.h"
#include "container/network.h"
#include "egress/egress.h"
#include "egress/names.h"
#include "policy/gaps.h"
#include "policy/keys.h"
#include "process/namespaces.h"
#include "warden/warden.h"

#define READY_PATIENCE_MS 10000

struct policy_update {
    struct container *container;
    struct policy *old;
    struct prepared prepared; /* under the new one */
    struct broker_plan plan;
    struct wall_network network;
    int init;   /* pidfd */
    int warden; /* channel */
};

/* ---- whether it may be ---- */

static bool can_change(enum policy_key key) {
    return key == POLICY_NETWORK_ALLOWED_HOSTS;
}

/* allowlist and none are one wall, with and without hosts. */
static bool mode_can_change(const struct policy *old, const struct policy *policy) {
    return old->network_mode != POLICY_NETWORK_OPEN && policy->network_mode != POLICY_NETWORK_OPEN;
}

static void value_write(const struct policy *policy, enum policy_key key, struct text *out) {
    if (policy_keys[key].type != POLICY_TYPE_LIST) {
        policy_value_write(policy, key, out);
        return;
    }
    const struct string_list *values = &policy_list_of(policy, key)->values;
    text_append(out, "[");
    for (size_t i = 0; i < values->count; i++)
        text_format(out, "%s%s", i > 0 ? ", " : "", values->items[i]);
    text_append(out, "]");
}

static struct error *keys_check(const struct policy_update *update, const struct policy *policy) {
    const struct policy *old = update->old;
    if (!policy->confined)
        return error_new(
            ERROR_REFUSED,
            "container %s: policy unconfined cannot be put in force while a container runs; that "
            "needs a new container",
            update->container->id);
    text_owned struct text found = {0};
    for (enum policy_key key = 0; key < POLICY_KEY_COUNT; key++) {
        text_owned struct text before = {0}, after = {0};
        value_write(old, key, &before);
        value_write(policy, key, &after);
        if (strcmp(text_string(&before), text_string(&after)) == 0 || can_change(key) ||
            (key == POLICY_NETWORK_MODE && mode_can_change(old, policy)))
            continue;
        text_format(&found, "%s%s: %s (written in %s; in force is %s)", found.length > 0 ? "; " : "",
                    policy_keys[key].name, text_string(&after), policy_origin(policy, key),
                    text_string(&before));
    }
    if (found.length == 0)
        return NULL;
    return error_new(ERROR_REFUSED,
                     "container %s: while a container runs, only network.allowed_hosts can change, and "
                     "network.mode between allowlist and none; this needs a new container: %s",
                     update->container->id, text_string(&found));
}

static ino_t network_of(const struct container_state *state) {
    char path[64];
    struct stat status;
    snprintf(path, sizeof path, "/proc/%d/ns/net", (int)state->init.pid);
    return stat(path, &status) == 0 ? status.st_ino : 0;
}

/* One that is being created is known by the inode that it is about to join. */
static bool is_in_network(const struct container *other, ino_t network) {
    const struct container_state *state = other->state;
    return state != NULL && state->wall && strcmp(container_status(other), "stopped") != 0 &&
           (state->network_inode == network || network_of(state) == network);
}

/* A namespace has one wall: another policy would be the other containers' as well. Who joins it meanwhile
 * waits for the lock of the walls, which the caller has. */
static struct error *sharing_check(const char *root, const struct container *container) {
    ino_t network = network_of(container->state);
    struct error *error = NULL;
    DIR *directory = opendir(root);
    if (directory == NULL)
        return error_system(errno, "read", "%s", root);
    for (struct dirent *entry; error == NULL && (entry = readdir(directory)) != NULL;) {
        container_owned struct container *other = NULL;
        if (strcmp(entry->d_name, container->id) == 0)
            continue;
        struct error *unread = container_open(root, entry->d_name, CONTAINER_UNLOCKED, &other);
        error_ignore(unread); /* no container, or not any more */
        if (unread == NULL && is_in_network(other, network))
            error = error_new(ERROR_REFUSED,
                              "net.namespace.shared: container %s shares its network namespace with "
                              "container %s; the policy "
                              "of a namespace can change only while it has one container",
                              container->id, other->id);
    }
    closedir(directory);
    return error;
}

/* The same order as at create, with another --policy. */
static struct error *policy_resolve_again(const struct runtime_options *runtime,
                                          const struct policy_update *update, struct policy **out) {
    const struct container_state *state = update->container->state;
    struct runtime_options again = *runtime;
    struct oci_config *config = NULL;
    again.workspace = NULL;
    again.sandbox = state->sandbox;
    if (state->sandbox) {
        TRY(container_stored_config(update->container, &config));
        again.workspace = config->process->cwd;
    }
    struct error *error = container_policy(&again, &state->annotations, out);
    oci_config_free(config);
    return error;
}

static struct error *judge(const struct runtime_options *runtime, struct policy_update *update) {
    struct policy *policy = NULL;
    TRY(container_stored_policy(update->container, &update->old));
    TRY(policy_resolve_again(runtime, update, &policy));
    struct error *error = keys_check(update, policy);
    if (error == NULL)
        error = policy_gaps_check(policy);
    if (error != NULL) {
        policy_free(policy);
        return error;
    }
    return container_prepare_under(update->container, policy, &update->prepared);
}

/* ---- a broker that was not there ---- */

static bool broker_lives(const struct container_state *state) {
    fd_owned int keeper = -1;
    process_open_alive(&state->broker, &keeper);
    return keeper >= 0;
}

/* In the container's network namespace: the sockets go to the keeper, as init's do by way of the warden. */
static struct error *sockets_make(void *data) {
    const int *channel = data;
    uint32_t mark = 0;
    struct broker_sockets sockets;
    TRY(wall_mark_read(&mark));
    TRY(broker_sockets_open(mark, &sockets));
    struct error *error =
        sockets.bound
            ? broker_sockets_send(*channel, &sockets)
            : error_new(ERROR_UNAVAILABLE,
                        "ports %d and %d of loopback, which the broker needs, are taken by a process "
                        "of the container; it needs a new container",
                        BROKER_DNS_PORT, BROKER_RELAY_PORT);
    broker_sockets_close(&sockets);
    return error;
}

static struct error *broker_await_ready(int channel) {
    struct pollfd event = {.fd = channel, .events = POLLIN};
    int ready;
    while ((ready = poll(&event, 1, READY_PATIENCE_MS)) < 0 && errno == EINTR)
        ;
    struct broker_report report = {.kind = BROKER_FAILED, .text = "it does not serve"};
    if (ready > 0 && fd_receive_message(channel, &report, sizeof report) != (ssize_t)sizeof report)
        return error_new(ERROR_UNAVAILABLE, "broker: it has ended before it served");
    report.text[sizeof report.text - 1] = '\0';
    return report.kind == BROKER_READY ? NULL : error_new(ERROR_UNAVAILABLE, "broker: %s", report.text);
}

/* A keeper ends with its channel: until the warden has that, it is this process's. */
static struct error *broker_start(struct policy_update *update) {
    struct container_state *state = update->container->state;
    fd_owned int ours = -1;
    fd_owned int theirs = -1;
    fd_owned int control = -1;
    pid_t keeper = 0;
    TRY(fd_pair(&ours, &theirs));
    TRY(broker_listen(update->container->directory, &control));
    TRY(broker_spawn(&update->plan, theirs, update->init, control, &keeper));
    fd_close(fd_take(&theirs));
    TRY(process_identify(keeper, &state->broker));
    state->brokered = true;
    state->wall_opened = true;
    TRY(container_save(update->container));
    fault_point("update-keeper");
    TRY(error_context(namespace_run_in_network(update->init, (pid_t)state->init.pid, sockets_make, &ours),
                      "broker"));
    TRY(broker_await_ready(ours));
    return warden_give_broker(update->warden, ours);
}

/* ---- in force ---- */

static struct error *wall_work(void *data) {
    return wall_change(data);
}

/* Before anything can have an address by it. */
static struct error *names_remember(struct policy_update *update) {
    struct container_state *state = update->container->state;
    const struct policy *policy = update->prepared.policy;
    if (state->policy_generation == 0 && network_has_broker(update->old)) {
        state->brokered = true;
        TRY(host_names_remember(&state->host_names, &update->old->allowed_hosts));
    }
    if (network_has_broker(policy))
        TRY(host_names_remember(&state->host_names, &policy->allowed_hosts));
    state->policy_generation++;
    state->wall_opened = true;
    TRY(network_plan_again(update->container->directory, policy, &update->plan));
    update->plan.generation = state->policy_generation;
    string_list_append_all(&update->plan.names, &state->host_names);
    string_list_free(&state->host_aliases);
    string_list_append_all(&state->host_aliases, &update->plan.aliases);
    return container_save(update->container);
}

static struct error *warden_tell(struct policy_update *update) {
    const struct policy *policy = update->prepared.policy;
    /* Borrowed, for the call. */
    struct warden_policy told = {.name = policy->name,
                                 .origin = policy->origin,
                                 .digest = policy->digest,
                                 .names = update->container->state->host_names,
                                 .generation = update->container->state->policy_generation};
    if (network_has_broker(policy)) {
        told.hosts = policy->allowed_hosts.values;
        told.hosts_origins = policy->allowed_hosts.origins;
    }
    return warden_give_policy(update->warden, &told);
}

static struct error *enforcement_update(const struct policy_update *update) {
    const struct container *container = update->container;
    text_owned struct text bytes = {0};
    TRY(file_read(container->directory, ENFORCEMENT_FILE, SCHEMA_BYTES_MAX, &bytes));
    void *document = NULL;
    TRY(schema_read(&enforcement_schema, ENFORCEMENT_FILE, text_string(&bytes), bytes.length, &document));
    enforcement_change_policy(document, update->prepared.policy, container->state->brokered);
    json_owned struct json_writer json = {0};
    schema_write(&enforcement_schema, document, &json);
    enforcement_free(document);
    return file_replace(container->directory, ENFORCEMENT_FILE, text_string(&json.text), json.text.length,
                        0600);
}

/* The file first, then the state that names it: a reader has the one policy or the other. */
static struct error *policy_store(struct policy_update *update) {
    struct container_state *state = update->container->state;
    const struct policy *policy = update->prepared.policy;
    TRY(container_store_other_policy(update->container, policy));
    memory_replace_string(&state->policy, policy->name);
    memory_replace_string(&state->policy_digest, policy->digest);
    TRY(container_save(update->container));
    return enforcement_update(update);
}

/* Annotations that counted for nothing. */
static struct error *remarks_record(const struct policy_update *update) {
    const struct policy *policy = update->prepared.policy;
    for (size_t i = 0; i < policy->remarks_count; i++) {
        const struct policy_remark *remark = &policy->remarks[i];
        const struct warden_change change = {.reason = remark->reason,
                                             .subject = remark->subject,
                                             .message = remark->message,
                                             .rule = remark->rule};
        TRY(warden_give_change(update->warden, NULL, &change));
    }
    return NULL;
}

static struct error *put_in_force(struct policy_update *update) {
    struct container_state *state = update->container->state;
    TRY(names_remember(update));
    fault_point("update-names");
    bool wanted = state->brokered || network_has_broker(update->prepared.policy);
    bool started = wanted && !broker_lives(state);
    if (started)
        TRY(broker_start(update));
    fault_point("update-broker");
    TRY(warden_tell(update));
    fault_point("update-warden");
    network_wall_of_state(update->prepared.policy, state, &update->network);
    TRY(error_context(
        namespace_run_in_network(update->init, (pid_t)state->init.pid, wall_work, &update->network),
        "network wall"));
    fault_point("update-wall");
    if (wanted && !started)
        TRY(broker_give_plan(update->container->directory, &update->plan));
    fault_point("update-told");
    return NULL;
}

static struct error *run(const struct runtime_options *runtime, struct policy_update *update) {
    struct container *container = update->container;
    const char *status = container_status(container);
    if (container->state == NULL || strcmp(status, "stopped") == 0 || strcmp(status, "creating") == 0)
        return error_known(ERROR_NOT_RUNNING, NULL);
    if (!container->state->confined)
        return error_new(ERROR_REFUSED,
                         "container %s: policy %s confines nothing, which cannot change while it runs; that "
                         "needs a new container",
                         container->id, container->state->policy);
    TRY(judge(runtime, update));
    TRY(container_open_init(container, &update->init));
    TRY(warden_connect(container->directory, &update->warden));
    fd_owned int lock = -1;
    if (container->state->wall) {
        TRY(container_lock_walls(container->directory, &lock));
        TRY(sharing_check(runtime->root, container));
        TRY(put_in_force(update));
    } else { /* network.mode: open, before and after */
        container->state->policy_generation++;
        TRY(warden_tell(update));
    }
    TRY(policy_store(update));
    fault_point("update-stored");
    TRY(warden_policy_applied(update->warden));
    return remarks_record(update);
}

struct error *container_update_policy(const struct runtime_options *runtime, struct container *container) {
    struct policy_update update = {.container = container, .init = -1, .warden = -1};
    struct error *error = run(runtime, &update);
    policy_free(update.old);
    prepared_clear(&update.prepared);
    broker_plan_clear(&update.plan);
    network_wall_clear(&update.network);
    fd_close(update.init);
    fd_close(update.warden);
    return error;
}
