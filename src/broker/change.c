/* Another policy under a broker that runs: names keep their addresses, connections to what is still allowed
 * go on, the others are reset. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "broker/launch.h"
#include "broker/relay.h"

static void lines_clear(struct policy_host *lines, struct policy_list *list, struct host_map *map) {
    for (size_t i = 0; i < list->values.count; i++)
        policy_host_clear(&lines[i]);
    free(lines);
    policy_list_free(list);
    host_map_free(map);
}

/* The old plan stays in memory: inspections of connections name its aliases. */
static struct error *plan_put(struct broker *broker, const struct broker_plan *plan) {
    const struct broker_plan *old_plan = broker->plan;
    struct policy_host *lines = broker->lines;
    struct policy_list list = broker->list;
    struct host_map *map = broker->map;
    broker->plan = plan;
    broker->lines = NULL;
    broker->list = (struct policy_list){0};
    broker->map = NULL;
    struct error *error = broker_read_lines(broker);
    if (error != NULL) { /* whoever sent it has read it before; the keeper starts another broker */
        broker->plan = old_plan;
        broker->lines = lines;
        broker->list = list;
        broker->map = map;
        return error;
    }
    lines_clear(lines, &list, map);
    return NULL;
}

static struct error *change_take(struct broker *broker, int control) {
    struct broker_change change;
    fd_owned int sealed = -1;
    size_t count = 0;
    TRY(fd_receive(control, &change, sizeof change, &sealed, 1, &count));
    if (count != 1)
        return error_system(EPROTO, "receive", "a plan of the broker");
    struct broker_plan *plan = memory_zeroed(sizeof *plan);
    TRY(broker_plan_map(sealed, change.length, plan));
    plan->connections_max = broker->plan->connections_max;
    const struct string_list *servers = &broker->plan->nameservers;
    TRY(plan_put(broker, plan));
    if (!string_list_equal(servers, &plan->nameservers))
        TRY(resolver_set_servers(broker->resolver, &plan->nameservers));
    relay_judge_again(broker);
    return NULL;
}

/* The keeper's end is told by its pidfd. */
static void control_ready(struct source *source, uint32_t events) {
    struct broker *broker = OWNER_OF(source, struct broker, control);
    (void)events;
    struct error *error = change_take(broker, source->fd);
    if (error != NULL && error->number == EPIPE)
        loop_forget(broker->loop, source);
    else
        error_send(source->fd, error);
    error_free(error);
}

struct error *change_begin(struct broker *broker, int control) {
    broker->control = (struct source){.fd = control, .ready = control_ready};
    if (control >= 0 && !loop_watch(broker->loop, &broker->control, EPOLLIN))
        return error_system(errno, "epoll_ctl", "the keeper's socket");
    return NULL;
}

/* -- connections -- */

/* Whether the policy that is in force now allows what an earlier one did. */
static struct allowed judge(const struct connection *connection) {
    const struct broker *broker = connection->relay->broker;
    struct allowed allowed;
    if (!connection->is_literal) {
        allowed = broker_allows_name(broker, connection->name, connection->port);
    } else if (connection->name == NULL) {
        allowed = broker_allows_address(broker, connection->family, connection->service, connection->port);
    } else { /* an alias: whatever other names have the address, this one is what it was let through for */
        allowed = broker_allows_name(broker, connection->name, connection->port);
        allowed.is_private = true;
    }
    if (connection->dial != NULL && connection->allowed.is_private && !allowed.is_private)
        allowed.allowed = false; /* what it tries was judged with the old line */
    const char *name = connection->is_literal ? NULL : connection->name;
    if (allowed.allowed && connection->opened &&
        dial_judge(broker, name, &connection->upstream_address, allowed.is_private) != BROKER_REASON_NONE)
        allowed.allowed = false;
    return allowed;
}

void relay_judge_again(struct broker *broker) {
    struct connection *next;
    for (struct connection *connection = broker->relay->connections; connection != NULL; connection = next) {
        next = connection->next;
        if (connection->stage == STAGE_REFUSING || connection->stage == STAGE_DRAINING)
            continue;
        struct allowed allowed = judge(connection);
        if (allowed.allowed) {
            connection->allowed = allowed;
            connection->generation = (uint32_t)broker->plan->generation;
        } else if (connection->opened) {
            connection->withdrawn = true;
            connection_close(connection, true);
        } else {
            connection_deny(connection, BROKER_CONNECTION_DENIED, BROKER_REASON_NAME);
        }
    }
}
