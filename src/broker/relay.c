/* Connections that the wall redirects here: whom they are for, whether the policy allows that, and their end.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>

#include "base/fd.h"
#include "base/memory.h"
#include "broker/relay.h"
#include "egress/address.h"

/* linux/netfilter_ipv4.h and netfilter_ipv6/ip6_tables.h, which collide with netinet/in.h. */
#define SO_ORIGINAL_DST 80
#define IP6T_SO_ORIGINAL_DST 80

#define ACCEPTS_A_TURN 64
#define BREATH_MS 100
#define FIRST_WORDS_MS 10000
#define DRAIN_MS 1000
#define KEEPALIVE_SECONDS 60
#define CONNECTIONS_MAX 4096

static int64_t now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static struct broker_report report_of(const struct connection *connection, enum broker_report_kind kind) {
    struct broker_report report = {.kind = kind,
                                   .line = connection->allowed.line,
                                   .generation = connection->generation,
                                   .family = (uint8_t)connection->family,
                                   .protocol = IPPROTO_TCP,
                                   .client_port = connection->client_port,
                                   .service_port = connection->port,
                                   .bytes_up = connection->bytes_up,
                                   .bytes_down = connection->bytes_down};
    memcpy(report.client, connection->client_address, sizeof report.client);
    memcpy(report.service, connection->service, sizeof report.service);
    if (connection->upstream_address.family != 0) {
        report.upstream_family = (uint8_t)connection->upstream_address.family;
        report.upstream_port = connection->port;
        memcpy(report.upstream, connection->upstream_address.bytes, sizeof report.upstream);
    }
    if (connection->name != NULL)
        report_string(report.name, sizeof report.name, connection->name);
    return report;
}

/* -- the end -- */

void connection_close(struct connection *connection, bool reset) {
    struct relay *relay = connection->relay;
    struct broker *broker = relay->broker;
    if (connection->opened) {
        struct broker_report report = report_of(connection, BROKER_CLOSED);
        report.duration_us = (uint64_t)(now_us() - connection->opened_us);
        report.reason = connection->withdrawn ? BROKER_REASON_NAME : BROKER_REASON_NONE;
        report_event(&broker->reports, &report, false);
    }
    if (connection->dial != NULL)
        dial_cancel(connection->dial);
    report_forget(&broker->reports, &connection->held);
    timer_clear(broker->loop, &connection->timer);
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    if (reset && connection->client.fd >= 0)
        (void)setsockopt(connection->client.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    if (reset && connection->upstream.fd >= 0)
        (void)setsockopt(connection->upstream.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    loop_close(broker->loop, &connection->client);
    loop_close(broker->loop, &connection->upstream);
    free(connection->to_client.bytes);
    free(connection->to_upstream.bytes);
    inspect_free(connection->inspection);
    free(connection->name);
    if (connection->previous != NULL)
        connection->previous->next = connection->next;
    else
        relay->connections = connection->next;
    if (connection->next != NULL)
        connection->next->previous = connection->previous;
    relay->count--;
    relay->kept -= connection->kept;
    loop_free_later(broker->loop, connection);
}

static void close_ring(struct timer *timer) {
    connection_close(OWNER_OF(timer, struct connection, timer), true);
}

/* The warden has seen the process: now it gets its answer. */
static void refuse(struct held *held) {
    struct connection *connection = OWNER_OF(held, struct connection, held);
    struct loop *loop = connection->relay->broker->loop;
    char words[HTTP_REFUSAL_SIZE];
    /* In the middle of an answer of the host's, words of ours would be taken for its. */
    bool midway = connection->to_client.length > 0;
    size_t length = connection->inspection == NULL || midway || !connection->speaks
                        ? 0
                        : inspect_refusal(connection->inspection, &connection->denial, words, sizeof words);
    if (length == 0 || send(connection->client.fd, words, length, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ||
        shutdown(connection->client.fd, SHUT_WR) < 0) {
        connection_close(connection, true);
        return;
    }
    connection->stage = STAGE_DRAINING;
    timer_set(loop, &connection->timer, DRAIN_MS, close_ring);
    if (!loop_watch(loop, &connection->client, EPOLLIN))
        connection_close(connection, true);
}

void connection_deny(struct connection *connection, enum broker_report_kind kind, enum broker_reason reason) {
    struct broker *broker = connection->relay->broker;
    connection->stage = STAGE_REFUSING;
    timer_clear(broker->loop, &connection->timer);
    (void)loop_watch(broker->loop, &connection->client, 0);
    struct broker_report report = report_of(connection, kind);
    report.reason = reason;
    if (connection->inspection != NULL) {
        report_string(report.asked, sizeof report.asked, inspect_asked(connection->inspection));
        if (connection->inspection->kind == INSPECT_HTTP)
            report_string(report.method, sizeof report.method, connection->inspection->http.method);
        report_string(report.text, sizeof report.text,
                      connection->denial.fault != NULL ? connection->denial.fault : "");
    }
    if (connection->dial != NULL)
        dial_cancel(connection->dial);
    connection->dial = NULL;
    connection->speaks = kind == BROKER_REQUEST_DENIED;
    /* Nothing more goes to the host, and what it has sent is not waited for. */
    loop_close(broker->loop, &connection->upstream);
    report_denial(&broker->reports, &report, &connection->held, refuse);
}

/* -- the host -- */

static void dialled(void *data, const struct dial_result *result) {
    struct connection *connection = data;
    struct broker *broker = connection->relay->broker;
    connection->dial = NULL;
    connection->upstream_address = result->address;
    if (result->denied != BROKER_REASON_NONE) {
        connection_deny(connection, BROKER_CONNECTION_DENIED, result->denied);
        return;
    }
    if (result->fd < 0) {
        struct broker_report report = report_of(connection, BROKER_CONNECT_FAILED);
        report_string(report.text, sizeof report.text, result->failure);
        connection->stage = STAGE_REFUSING;
        report_denial(&broker->reports, &report, &connection->held, refuse);
        return;
    }
    connection->upstream = (struct source){.fd = result->fd, .ready = flow_upstream_ready};
    connection->opened = true;
    connection->opened_us = now_us();
    /* Before the first bytes go. Told after them, the warden would want a processor just when the host's
     * answer does: 0.3 ms later here, on two. */
    struct broker_report report = report_of(connection, BROKER_OPENED);
    report_event(&broker->reports, &report, false);
    flow_begin(connection);
}

void connection_dial(struct connection *connection) {
    struct broker *broker = connection->relay->broker;
    struct address own = {.family = connection->family};
    memcpy(own.bytes, connection->service, sizeof own.bytes);
    if (connection->inspection != NULL && strcmp(connection->inspection->name, connection->name) != 0)
        memory_replace_string(&connection->name, connection->inspection->name); /* an alias of both */
    connection->stage = STAGE_DIALLING;
    timer_clear(broker->loop, &connection->timer);
    (void)loop_watch(broker->loop, &connection->client, 0);
    dial_begin(broker, connection->is_literal ? NULL : connection->name, &own, connection->port,
               connection->allowed.is_private, dialled, connection, &connection->dial);
}

/* -- the beginning -- */

static void socket_address(const struct sockaddr_storage *place, int *family, uint8_t address[16],
                           uint16_t *port) {
    *family = place->ss_family;
    if (place->ss_family == AF_INET) {
        const struct sockaddr_in *ipv4 = (const struct sockaddr_in *)place;
        memcpy(address, &ipv4->sin_addr, 4);
        *port = ntohs(ipv4->sin_port);
    } else {
        const struct sockaddr_in6 *ipv6 = (const struct sockaddr_in6 *)place;
        memcpy(address, &ipv6->sin6_addr, 16);
        *port = ntohs(ipv6->sin6_port);
    }
}

/* Where the client meant to go. One that connected to the port itself has gone where it meant to. */
void relay_find_service(int fd, int family, uint8_t address[16], uint16_t *port) {
    struct sockaddr_storage place = {0};
    socklen_t length = sizeof place;
    int level = family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6;
    if (getsockopt(fd, level, family == AF_INET ? SO_ORIGINAL_DST : IP6T_SO_ORIGINAL_DST, &place, &length) <
        0) {
        length = sizeof place;
        (void)getsockname(fd, (struct sockaddr *)&place, &length);
    }
    socket_address(&place, &family, address, port);
}

static enum broker_reason reason_of_address(int family, const uint8_t *address) {
    switch (address_classify(family, address)) {
    case ADDRESS_METADATA:
        return BROKER_REASON_METADATA;
    case ADDRESS_PRIVATE:
        return host_address_is_synthetic(family, address) ? BROKER_REASON_LITERAL : BROKER_REASON_PRIVATE;
    default:
        return BROKER_REASON_LITERAL;
    }
}

static void inspection_begin(struct connection *connection) {
    if (connection->name == NULL)
        return; /* an address has no name to be held to */
    struct inspection *inspection = memory_zeroed(sizeof *inspection);
    inspection->kind = connection->port == 443  ? INSPECT_TLS
                       : connection->port == 80 ? INSPECT_HTTP_OR_TLS
                                                : INSPECT_ANYTHING;
    inspection->name = connection->name;
    inspection->port = connection->port;
    connection->inspection = inspection;
}

/* Judges again what the rules have let through: they may be those of an earlier policy. */
static void connection_begin(struct connection *connection) {
    struct broker *broker = connection->relay->broker;
    relay_find_service(connection->client.fd, connection->family, connection->service, &connection->port);
    const char *name = host_map_name(broker->map, connection->family, connection->service);
    const char *names[INSPECT_NAMES_MAX];
    size_t names_count = 0;
    connection->generation = (uint32_t)broker->plan->generation;
    if (name != NULL) {
        connection->name = memory_copy_string(name);
        connection->allowed = broker_allows_name(broker, name, connection->port);
    } else if (!host_address_is_synthetic(connection->family, connection->service)) {
        connection->allowed =
            broker_allows_address(broker, connection->family, connection->service, connection->port);
        connection->is_literal = true;
        if (!connection->allowed.allowed)
            connection->allowed =
                broker_allows_alias(broker, connection->family, connection->service, connection->port, names,
                                    INSPECT_NAMES_MAX, &names_count);
        if (names_count > 0)
            connection->name = memory_copy_string(name = names[0]);
    }
    if (!connection->allowed.allowed) {
        connection_deny(connection, BROKER_CONNECTION_DENIED,
                        name == NULL ? reason_of_address(connection->family, connection->service)
                        : host_map_allows(broker->map, name) ? BROKER_REASON_PORT
                                                             : BROKER_REASON_NAME);
        return;
    }
    int64_t most = broker->plan->connections_max > 0 ? broker->plan->connections_max : CONNECTIONS_MAX;
    if ((int64_t)connection->relay->count > most) {
        connection_deny(connection, BROKER_CONNECTION_DENIED, BROKER_REASON_LIMIT);
        return;
    }
    inspection_begin(connection);
    for (size_t i = 0; connection->inspection != NULL && i < names_count; i++)
        inspect_expect(connection->inspection, names[i]);
    if (connection->inspection == NULL || connection->inspection->kind == INSPECT_ANYTHING) {
        connection_dial(connection); /* many a host of another port speaks first */
        return;
    }
    timer_set(broker->loop, &connection->timer, FIRST_WORDS_MS, close_ring);
    /* Its first words are often there already. */
    flow_client_ready(&connection->client, EPOLLIN);
}

static void breath_ring(struct timer *timer) {
    struct relay *relay = OWNER_OF(timer, struct relay, breath);
    for (size_t i = 0; i < 2; i++)
        if (relay->listening[i].fd >= 0)
            (void)loop_watch(relay->broker->loop, &relay->listening[i], EPOLLIN);
}

/* False when nobody waits any more. */
static bool accept_one(struct relay *relay, int listening) {
    struct sockaddr_storage client = {0};
    socklen_t length = sizeof client;
    int fd = accept4(listening, (struct sockaddr *)&client, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
        /* The one that waits would wake us again and again. */
        for (size_t i = 0; i < 2; i++)
            if (relay->listening[i].fd >= 0)
                (void)loop_watch(relay->broker->loop, &relay->listening[i], 0);
        timer_set(relay->broker->loop, &relay->breath, BREATH_MS, breath_ring);
        return false;
    }
    if (fd < 0)
        return errno != EAGAIN && errno != EINVAL; /* ECONNABORTED: the next one */
    struct connection *connection = memory_zeroed(sizeof *connection);
    connection->relay = relay;
    connection->client = (struct source){.fd = fd, .ready = flow_client_ready};
    connection->upstream.fd = -1;
    socket_address(&client, &connection->family, connection->client_address, &connection->client_port);
    connection->next = relay->connections;
    if (relay->connections != NULL)
        relay->connections->previous = connection;
    relay->connections = connection;
    relay->count++;
    connection_begin(connection);
    return true;
}

static void accept_all(struct relay *relay, int listening) {
    for (int i = 0; i < ACCEPTS_A_TURN && accept_one(relay, listening); i++)
        ;
}

static void ipv4_ready(struct source *source, uint32_t events) {
    (void)events;
    accept_all(OWNER_OF(source, struct relay, listening[0]), source->fd);
}

static void ipv6_ready(struct source *source, uint32_t events) {
    (void)events;
    accept_all(OWNER_OF(source, struct relay, listening[1]), source->fd);
}

struct error *relay_begin(struct broker *broker) {
    struct relay *relay = memory_zeroed(sizeof *relay);
    const int fds[2] = {broker->sockets.relay_ipv4, broker->sockets.relay_ipv6};
    relay->broker = broker;
    broker->relay = relay;
    for (size_t i = 0; i < 2; i++) {
        /* Connections inherit them. */
        int on = 1, idle = KEEPALIVE_SECONDS;
        (void)setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        (void)setsockopt(fds[i], SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
        (void)setsockopt(fds[i], IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
        relay->listening[i] = (struct source){.fd = fds[i], .ready = i == 0 ? ipv4_ready : ipv6_ready};
        if (fds[i] >= 0 && !loop_watch(broker->loop, &relay->listening[i], EPOLLIN))
            return error_system(errno, "epoll_ctl", "the relay's socket");
    }
    return NULL;
}

void relay_end(struct broker *broker) {
    for (struct connection *connection = broker->relay->connections; connection != NULL;
         connection = connection->next) {
        if (!connection->opened)
            continue;
        struct broker_report report = report_of(connection, BROKER_CLOSED);
        report.duration_us = (uint64_t)(now_us() - connection->opened_us);
        report_event(&broker->reports, &report, true);
    }
}
