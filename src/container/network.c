#include "container/network.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/memory.h"
#include "container/container.h"
#include "egress/host_alias.h"
#include "egress/names.h"
#include "process/namespaces.h"
#include "sys/calls.h"
#include "warden/warden.h"

/* Of a resolv.conf or a hosts file; what comes after is not read. */
#define RESOLVER_BYTES_MAX (256 * 1024)

bool network_has_broker(const struct policy *policy) {
    return policy->confined && policy->network_mode == POLICY_NETWORK_ALLOWLIST &&
           policy->allowed_hosts.values.count > 0;
}

bool network_has_openings(const struct policy *policy) {
    return network_has_broker(policy) || policy->inbound == POLICY_ACCESS_DENY;
}

void network_wall_of(const struct policy *policy, const struct string_list *aliases,
                     struct wall_network *out) {
    *out = (struct wall_network){.digest = policy_network_digest(policy),
                                 .allowed_hosts = network_has_broker(policy) ? &policy->allowed_hosts : NULL,
                                 .aliases = aliases,
                                 .uplink_elsewhere = policy->uplink == POLICY_UPLINK_HOST,
                                 .inbound_denied = policy->inbound == POLICY_ACCESS_DENY,
                                 .open = policy->network_mode == POLICY_NETWORK_OPEN};
}

/* Whoever joins has nothing but his policy: where addresses do not follow from that alone, he cannot. */
static char *digest_with_names(char *digest, const struct policy *policy, const struct string_list *names) {
    string_list_owned struct string_list own = {0};
    struct error *error =
        network_has_broker(policy) ? host_names_remember(&own, &policy->allowed_hosts) : NULL;
    bool follow = error == NULL && string_list_equal(&own, names);
    error_ignore(error); /* then they do not follow */
    if (follow || names->count == 0)
        return digest;
    text_owned struct text lines = {0};
    text_format(&lines, "%s\n", digest);
    for (size_t i = 0; i < names->count; i++)
        text_format(&lines, "%s\n", names->items[i]);
    free(digest);
    return policy_sha256(text_string(&lines), lines.length);
}

void network_wall_of_state(const struct policy *policy, const struct container_state *state,
                           struct wall_network *out) {
    network_wall_of(policy, &state->host_aliases, out);
    out->changed = state->policy_generation > 0;
    out->brokered = state->brokered;
    out->names = &state->host_names;
    if (out->changed)
        out->digest = digest_with_names((char *)(uintptr_t)out->digest, policy, &state->host_names);
}

void network_wall_clear(struct wall_network *network) {
    free((char *)(uintptr_t)network->digest);
    *network = (struct wall_network){0};
}

struct error *network_wall_build(const struct wall_network *network, bool brokered, int channel,
                                 bool *joined) {
    uint32_t mark = 0;
    TRY(wall_raise(network, joined, &mark));
    struct wall_sockets sockets;
    TRY(wall_open_sockets(&sockets));
    struct error *error = warden_give_sockets(channel, &sockets);
    wall_close_sockets(&sockets);
    if (error != NULL || !brokered)
        return error;
    struct broker_sockets broker;
    TRY(broker_sockets_open(mark, &broker));
    error = warden_give_broker_sockets(channel, &broker);
    broker_sockets_close(&broker);
    return error;
}

/* ---- the resolver ---- */

typedef void (*resolver_reader)(struct broker_plan *plan, const char *text, size_t length);

static bool text_read(int fd, struct text *out) {
    struct stat status;
    if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
        return false;
    while (out->length < RESOLVER_BYTES_MAX) {
        ssize_t length = read(fd, text_room(out, BUFSIZ), BUFSIZ);
        if (length <= 0)
            break;
        text_grown(out, (size_t)length);
    }
    return true;
}

/* What cannot be read leaves the broker without names of that file: it says so when it cannot resolve. */
static bool file_read_into(struct broker_plan *plan, const char *path, resolver_reader reader) {
    fd_owned int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    text_owned struct text bytes = {0};
    if (fd < 0 || !text_read(fd, &bytes))
        return false;
    reader(plan, text_string(&bytes), bytes.length);
    return true;
}

/* What the engine has mounted at this path, -1: nothing, or no file; the last mount is the one that is seen.
 */
static int mounted_open(const struct hardened *hardened, const char *destination) {
    for (size_t i = hardened->config->mounts_count; i-- > 0;) {
        const struct mount_fact *fact = hardened->mount_sources[i];
        if (fact == NULL || fact->source_fd < 0 ||
            strcmp(hardened->config->mounts[i].destination, destination) != 0)
            continue;
        char path[64];
        snprintf(path, sizeof path, "/proc/self/fd/%d", fact->source_fd);
        return S_ISREG(fact->status.st_mode) ? open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
    }
    return -1;
}

static bool mounted_read_into(struct broker_plan *plan, const struct hardened *hardened,
                              const char *destination, resolver_reader reader) {
    fd_owned int fd = mounted_open(hardened, destination);
    text_owned struct text bytes = {0};
    if (fd < 0 || !text_read(fd, &bytes))
        return false;
    reader(plan, text_string(&bytes), bytes.length);
    return true;
}

/* A name of the policy's hosts may have an address by the engine's hosts file. */
static void aliases_add(const struct policy *policy, struct broker_plan *mounted, struct string_list *out) {
    for (size_t i = 0; network_has_broker(policy) && i < mounted->entries_count; i++)
        for (size_t k = 0; k < mounted->entries[i].names.count; k++)
            host_aliases_add(out, &policy->allowed_hosts, mounted->entries[i].address,
                             mounted->entries[i].names.items[k]);
}

void network_aliases_read(const struct policy *policy, const struct hardened *hardened,
                          struct string_list *out) {
    broker_plan_owned struct broker_plan mounted = {0};
    if (!network_has_broker(policy) ||
        !mounted_read_into(&mounted, hardened, "/etc/hosts", broker_plan_read_hosts))
        return;
    aliases_add(policy, &mounted, out);
}

static const struct resolver_file {
    const char *path, *kept; /* where its text is kept, in the state directory */
    resolver_reader reader;
} files[] = {{"/etc/resolv.conf", "resolv.conf", broker_plan_read_resolver},
             {"/etc/hosts", "hosts", broker_plan_read_hosts}};

/* Of the runtime's own file. Where it runs in a container of Docker's itself, Docker's name server is to it,
 * and to a broker that dials from there, one like others; in the container's namespace it is not that one. */
static void own_read_into(struct broker_plan *plan, const struct resolver_file *file) {
    struct string_list engine = plan->engine_nameservers;
    plan->engine_nameservers = (struct string_list){0};
    (void)file_read_into(plan, file->path, file->reader);
    if (plan->uplink == BROKER_UPLINK_HOST)
        string_list_append_all(&plan->nameservers, &plan->engine_nameservers);
    string_list_free(&plan->engine_nameservers);
    plan->engine_nameservers = engine;
}

/* Docker's name server alone, as the second container of a network namespace finds it at create, knows
 * nobody but the containers. */
static void servers_complete(struct broker_plan *plan) {
    if (plan->nameservers.count == 0 && plan->engine_nameservers.count > 0)
        own_read_into(plan, &files[0]);
}

static void plan_begin(const struct policy *policy, struct broker_plan *out) {
    bool host = policy->uplink == POLICY_UPLINK_HOST;
    *out = (struct broker_plan){.uplink = host ? BROKER_UPLINK_HOST : BROKER_UPLINK_CONTAINER};
    if (network_has_broker(policy))
        string_list_append_all(&out->hosts, &policy->allowed_hosts.values);
}

static void plan_make(const struct policy *policy, const struct hardened *hardened,
                      const struct string_list *aliases, struct broker_plan *out) {
    bool host = policy->uplink == POLICY_UPLINK_HOST;
    plan_begin(policy, out);
    string_list_append_all(&out->aliases, aliases);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (host || !mounted_read_into(out, hardened, files[i].path, files[i].reader))
            own_read_into(out, &files[i]);
    servers_complete(out);
}

struct error *network_broker_start(const struct policy *policy, const struct hardened *hardened,
                                   const struct string_list *aliases, int channel, int init_pidfd,
                                   int state_directory, pid_t *pid) {
    broker_plan_owned struct broker_plan plan;
    plan_make(policy, hardened, aliases, &plan);
    fd_owned int control = -1;
    if (state_directory >= 0)
        TRY(broker_listen(state_directory, &control));
    return broker_spawn(&plan, channel, init_pidfd, control, pid);
}

/* ---- what engines write between create and start ---- */

/* The file as the container sees it, if it is one that was mounted there: the image's own is never read. */
static bool seen_read(int root, const char *path, struct text *out) {
    fd_owned int fd = sys_openat2(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0,
                                  RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
    struct statx status;
    return fd >= 0 && statx(fd, "", AT_EMPTY_PATH, STATX_TYPE, &status) == 0 &&
           (status.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0 && text_read(fd, out);
}

/* What the file says by now; false where that is nothing new, or does not count. A server at loopback is
 * reached from the container's namespace, and there the wall turns what it asks on back to the broker: so the
 * servers that were there at create stay, and Docker's own is asked before them. */
static bool text_merge(const struct resolver_file *file, const struct text *seen, const struct text *kept,
                       struct text *out) {
    static const char engine[] = "nameserver " BROKER_ENGINE_NAMESERVER "\n";
    broker_plan_owned struct broker_plan now = {0}, before = {0};
    if (strcmp(text_string(seen), text_string(kept)) == 0)
        return false;
    if (file->reader == broker_plan_read_resolver) {
        broker_plan_read_resolver(&now, text_string(seen), seen->length);
        broker_plan_read_resolver(&before, text_string(kept), kept->length);
    }
    bool leads_back = now.engine_nameservers.count > 0;
    for (size_t i = 0; i < now.nameservers.count; i++)
        leads_back = leads_back || text_starts_with(now.nameservers.items[i], "127.");
    if (!leads_back)
        text_append_bytes(out, text_string(seen), seen->length);
    else if (now.engine_nameservers.count > before.engine_nameservers.count)
        text_format(out, "%s%s", engine, text_string(kept));
    else
        return false;
    return true;
}

/* Keeps the text if it is another one by now. */
static struct error *kept_refresh(const struct container *container, int root,
                                  const struct resolver_file *file, bool *changed) {
    text_owned struct text kept = {0}, seen = {0}, merged = {0};
    struct error *error = file_read(container->directory, file->kept, RESOLVER_BYTES_MAX * 2, &kept);
    if (error != NULL && error->number == ENOENT) {
        error_ignore(error); /* nothing was mounted: the runtime's own counts */
        return NULL;
    }
    TRY(error);
    if (!seen_read(root, file->path, &seen) || !text_merge(file, &seen, &kept, &merged))
        return NULL;
    *changed = true;
    return file_replace(container->directory, file->kept, text_string(&merged), merged.length, 0600);
}

struct error *network_resolver_refresh(const struct container *container, int init) {
    const struct container_state *state = container->state;
    bool changed = false;
    if (state->broker.pid == 0)
        return NULL;
    fd_owned int root = -1;
    struct error *unseen = namespace_open_root(init, (pid_t)state->init.pid, &root);
    if (unseen != NULL) {
        error_ignore(unseen); /* what was there at create counts */
        return NULL;
    }
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        TRY(kept_refresh(container, root, &files[i], &changed));
    if (!changed)
        return NULL;
    struct policy *policy = NULL;
    TRY(container_stored_policy(container, &policy));
    broker_plan_owned struct broker_plan plan = {0};
    struct error *error = network_plan_again(container->directory, policy, &plan);
    policy_free(policy);
    TRY(error);
    /* Addresses of the hosts file are in the wall, which has them as they were at create. */
    string_list_free(&plan.aliases);
    string_list_append_all(&plan.aliases, &state->host_aliases);
    string_list_append_all(&plan.names, &state->host_names);
    plan.generation = state->policy_generation;
    return broker_give_plan(container->directory, &plan);
}

/* ---- another policy, later ---- */

struct error *network_resolver_store(int state_directory, const struct hardened *hardened) {
    for (size_t i = 0; hardened->wall && i < sizeof files / sizeof files[0]; i++) {
        fd_owned int fd = mounted_open(hardened, files[i].path);
        text_owned struct text bytes = {0};
        if (fd >= 0 && text_read(fd, &bytes))
            TRY(file_replace(state_directory, files[i].kept, text_string(&bytes), bytes.length, 0600));
    }
    return NULL;
}

struct error *network_plan_again(int state_directory, const struct policy *policy, struct broker_plan *out) {
    bool host = policy->uplink == POLICY_UPLINK_HOST;
    plan_begin(policy, out);
    broker_plan_owned struct broker_plan mounted = {0};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        text_owned struct text kept = {0};
        struct error *error = file_read(state_directory, files[i].kept, RESOLVER_BYTES_MAX * 2, &kept);
        bool missing = error != NULL && error->number == ENOENT;
        if (error != NULL && !missing)
            return error;
        error_ignore(error);
        if (!missing)
            files[i].reader(&mounted, text_string(&kept), kept.length);
        if (missing || host)
            own_read_into(out, &files[i]);
        else
            files[i].reader(out, text_string(&kept), kept.length);
    }
    servers_complete(out);
    aliases_add(policy, &mounted, &out->aliases);
    return NULL;
}
