#include "container/network.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "egress/host_alias.h"
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

/* What cannot be read leaves the broker without names of that file: it says so when it cannot resolve. */
static bool file_read_into(struct broker_plan *plan, const char *path, resolver_reader reader) {
    fd_owned int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
        return false;
    text_owned struct text bytes = {0};
    while (bytes.length < RESOLVER_BYTES_MAX) {
        ssize_t length = read(fd, text_room(&bytes, BUFSIZ), BUFSIZ);
        if (length <= 0)
            break;
        text_grown(&bytes, (size_t)length);
    }
    reader(plan, text_string(&bytes), bytes.length);
    return true;
}

/* What the engine has mounted at this path; the last mount is the one that is seen. */
static bool mounted_read_into(struct broker_plan *plan, const struct hardened *hardened,
                              const char *destination, resolver_reader reader) {
    for (size_t i = hardened->config->mounts_count; i-- > 0;) {
        const struct mount_fact *fact = hardened->mount_sources[i];
        if (fact == NULL || fact->source_fd < 0 ||
            strcmp(hardened->config->mounts[i].destination, destination) != 0)
            continue;
        char path[64];
        snprintf(path, sizeof path, "/proc/self/fd/%d", fact->source_fd);
        return S_ISREG(fact->status.st_mode) && file_read_into(plan, path, reader);
    }
    return false;
}

void network_aliases_read(const struct policy *policy, const struct hardened *hardened,
                          struct string_list *out) {
    broker_plan_owned struct broker_plan mounted = {0};
    if (!network_has_broker(policy) ||
        !mounted_read_into(&mounted, hardened, "/etc/hosts", broker_plan_read_hosts))
        return;
    for (size_t i = 0; i < mounted.entries_count; i++)
        for (size_t k = 0; k < mounted.entries[i].names.count; k++)
            host_aliases_add(out, &policy->allowed_hosts, mounted.entries[i].address,
                             mounted.entries[i].names.items[k]);
}

static void plan_make(const struct policy *policy, const struct hardened *hardened,
                      const struct string_list *aliases, struct broker_plan *out) {
    static const struct {
        const char *path;
        resolver_reader reader;
    } files[] = {{"/etc/resolv.conf", broker_plan_read_resolver}, {"/etc/hosts", broker_plan_read_hosts}};
    bool host = policy->uplink == POLICY_UPLINK_HOST;
    *out = (struct broker_plan){.uplink = host ? BROKER_UPLINK_HOST : BROKER_UPLINK_CONTAINER};
    for (size_t i = 0; i < policy->allowed_hosts.values.count; i++)
        string_list_append(&out->hosts, policy->allowed_hosts.values.items[i]);
    for (size_t i = 0; i < aliases->count; i++)
        string_list_append(&out->aliases, aliases->items[i]);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (host || !mounted_read_into(out, hardened, files[i].path, files[i].reader))
            (void)file_read_into(out, files[i].path, files[i].reader);
}

struct error *network_broker_start(const struct policy *policy, const struct hardened *hardened,
                                   const struct string_list *aliases, int channel, int init_pidfd,
                                   pid_t *pid) {
    broker_plan_owned struct broker_plan plan;
    plan_make(policy, hardened, aliases, &plan);
    return broker_spawn(&plan, channel, init_pidfd, pid);
}
