/* The broker proper: what it knows, and its end. */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "broker/parts.h"
#include "egress/host_alias.h"
#include "policy/match_host.h"
#include "sys/scheduling.h"

#define TURN_NS 100000 /* the shortest that the kernel takes */

struct allowed broker_allows_name(const struct broker *broker, const char *name, uint16_t port) {
    struct allowed allowed = {0};
    for (size_t i = 0; i < broker->plan->hosts.count; i++) {
        if (!policy_host_matches_name(&broker->lines[i], name, port))
            continue;
        if (!allowed.allowed)
            allowed.line = (uint32_t)i + 1;
        allowed.allowed = true;
        allowed.is_private |= broker->lines[i].is_private;
    }
    return allowed;
}

struct allowed broker_allows_address(const struct broker *broker, int family, const uint8_t *address,
                                     uint16_t port) {
    struct policy_host asked = {
        .kind = POLICY_HOST_RANGE, .family = (unsigned char)family, .prefix = family == AF_INET ? 32 : 128};
    memcpy(asked.address, address, family == AF_INET ? 4 : 16);
    struct allowed allowed = {0};
    size_t line = 0;
    error_ignore(
        match_host(&broker->list, &asked, port, &allowed.allowed, &line)); /* not read: not allowed */
    if (allowed.allowed) {
        allowed.line = (uint32_t)line + 1;
        allowed.is_private = broker->lines[line].is_private;
    }
    return allowed;
}

struct allowed broker_allows_alias(const struct broker *broker, int family, const uint8_t *address,
                                   uint16_t port, const char **names, size_t room, size_t *count) {
    const struct string_list *aliases = &broker->plan->aliases;
    struct allowed first = {0};
    *count = 0;
    for (size_t i = 0; i < aliases->count && *count < room; i++) {
        struct host_alias alias;
        if (!host_alias_read(aliases->items[i], &alias) || alias.family != family ||
            memcmp(alias.address, address, family == AF_INET ? 4 : 16) != 0)
            continue;
        struct allowed allowed = broker_allows_name(broker, alias.name, port);
        if (allowed.allowed && !first.allowed) {
            first = allowed;
            *count = 0; /* one that is not allowed counts for nothing now */
        }
        if (allowed.allowed || *count == 0)
            names[(*count)++] = alias.name;
    }
    first.is_private = true;
    return first;
}

bool broker_is_alias(const struct broker *broker, const char *name, int family, const uint8_t *address) {
    const struct string_list *aliases = &broker->plan->aliases;
    struct host_alias alias;
    for (size_t i = 0; i < aliases->count; i++)
        if (host_alias_read(aliases->items[i], &alias) && strcmp(alias.name, name) == 0 &&
            alias.family == family && memcmp(alias.address, address, family == AF_INET ? 4 : 16) == 0)
            return true;
    return false;
}

struct error *broker_read_lines(struct broker *broker) {
    const struct string_list *hosts = &broker->plan->hosts;
    broker->lines = memory_zeroed((hosts->count + 1) * sizeof *broker->lines);
    for (size_t i = 0; i < hosts->count; i++) {
        TRY(policy_host_read(hosts->items[i], &broker->lines[i]));
        policy_list_append(&broker->list, hosts->items[i], "");
    }
    TRY(host_map_make_after(&broker->plan->names, &broker->list, &broker->map));
    uint32_t count = broker->learnt->count;
    for (uint32_t i = 0; i < count && i < HOST_MAP_LEARNT_MAX; i++) {
        char name[HOST_NAME_SIZE];
        memcpy(name, broker->learnt->names[i].name, sizeof name);
        name[sizeof name - 1] = '\0';
        if (!host_map_import(broker->map, name, broker->learnt->names[i].slot))
            break; /* what follows was learnt after it */
    }
    broker->learnt->count = (uint32_t)host_map_learnt_count(broker->map);
    return NULL;
}

static void warden_ended(struct reports *reports) {
    loop_end(reports->loop);
}

static void keeper_ended(struct source *source, uint32_t events) {
    (void)source;
    (void)events;
    _exit(0);
}

static struct error *begin(struct broker *broker, const struct broker_ends *ends) {
    TRY(broker_read_lines(broker));
    TRY(loop_make(&broker->loop));
    /* Before it is confined: c-ares looks for its defaults and for random numbers in files. */
    TRY(resolver_make(broker, &broker->resolver));
    TRY(reports_begin(&broker->reports, broker->loop, ends->channel));
    broker->reports.ended = warden_ended;
    broker->keeper = (struct source){.fd = ends->keeper_pidfd, .ready = keeper_ended};
    (void)loop_watch(broker->loop, &broker->keeper, EPOLLIN); /* the parent-death signal comes as well */
    TRY(change_begin(broker, ends->control));
    TRY(names_service_begin(broker));
    TRY(relay_begin(broker));
    TRY(broker_sockets_listen(&broker->sockets));
    return confine_broker(broker->plan->uplink == BROKER_UPLINK_CONTAINER);
}

_Noreturn void broker_run(const struct broker_plan *plan, const struct broker_sockets *sockets,
                          struct learnt_names *learnt, struct broker_ends ends) {
    prctl(PR_SET_NAME, "pinfold-broker");
    /* Both sides of a connection wait for it: on a busy machine a first byte comes a quarter earlier. */
    (void)sys_sched_set_turn(TURN_NS);
    struct broker *broker = memory_zeroed(sizeof *broker);
    broker->plan = plan;
    broker->sockets = *sockets;
    broker->learnt = learnt;
    struct error *error = begin(broker, &ends);
    error_send(ends.ready, error);
    if (error != NULL)
        _exit(1);
    close(ends.ready);
    loop_run(broker->loop);
    relay_end(broker);
    _exit(0);
}
