/* The bytes of a connection, both ways. They go through one buffer of the process; what the other side does
 * not take is kept with the connection, and then nothing more is read until it is gone. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/memory.h"
#include "broker/relay.h"

/* So that one connection does not hold up the others. */
#define READS_A_TURN 4
/* A client that has said its last word is not watched, and its death not seen, until the host says something.
 */
#define HALF_CLOSED_MS (10 * 60 * 1000)

static struct loop *loop_of(const struct connection *connection) {
    return connection->relay->broker->loop;
}

static void pending_add(struct pending *pending, const void *bytes, size_t length) {
    if (length == 0)
        return;
    if (pending->offset > 0) {
        memmove(pending->bytes, pending->bytes + pending->offset, pending->length);
        pending->offset = 0;
    }
    pending->bytes = memory_resize(pending->bytes, pending->length + length, 1);
    memcpy(pending->bytes + pending->length, bytes, length);
    pending->length += length;
}

/* False when the other side is gone. */
static bool pending_flush(struct pending *pending, int fd) {
    while (pending->length > 0) {
        ssize_t sent =
            send(fd, pending->bytes + pending->offset, pending->length, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return errno == EAGAIN;
        pending->offset += (size_t)sent;
        pending->length -= (size_t)sent;
    }
    free(pending->bytes);
    *pending = (struct pending){0};
    return true;
}

/* Sends what can be sent, and keeps the rest. */
static bool forward(struct pending *pending, int fd, const void *bytes, size_t length) {
    const char *rest = bytes;
    while (fd >= 0 && pending->length == 0 && length > 0) {
        ssize_t sent = send(fd, rest, length, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno != EAGAIN)
            return false;
        if (sent < 0)
            break;
        rest += sent;
        length -= (size_t)sent;
    }
    pending_add(pending, rest, length);
    return true;
}

static void half_closed_ring(struct timer *timer) {
    connection_close(OWNER_OF(timer, struct connection, timer), true);
}

/* False when that makes the sum of all connections too large: then this one, which has just kept more, is
 * over. */
static bool account(struct connection *connection) {
    struct relay *relay = connection->relay;
    size_t kept = connection->to_client.length + connection->to_upstream.length +
                  (connection->inspection == NULL ? 0 : connection->inspection->held.length);
    bool more = kept > connection->kept;
    relay->kept += kept - connection->kept;
    connection->kept = kept;
    if (!more || relay->kept <= RELAY_KEPT_MAX)
        return true;
    connection_deny(connection, BROKER_CONNECTION_DENIED, BROKER_REASON_LIMIT);
    return false;
}

/* Watches both sides for what they can do now. A side that can do nothing is not watched at all: its end
 * would be reported again and again. False when the connection is over. */
static bool settle(struct connection *connection) {
    struct loop *loop = loop_of(connection);
    bool relaying = connection->stage == STAGE_RELAYING;
    if (!account(connection))
        return false;
    if (relaying && connection->client_ended && !connection->upstream_shut &&
        connection->to_upstream.length == 0) {
        connection->upstream_shut = true;
        (void)shutdown(connection->upstream.fd, SHUT_WR);
    }
    if (relaying && connection->upstream_ended && !connection->client_shut &&
        connection->to_client.length == 0) {
        connection->client_shut = true;
        (void)shutdown(connection->client.fd, SHUT_WR);
    }
    if (relaying && connection->client_ended) /* anew with each word of the host's */
        timer_set(loop, &connection->timer, HALF_CLOSED_MS, half_closed_ring);
    if (connection->upstream_shut && connection->client_shut) {
        connection_close(connection, false);
        return false;
    }
    bool read_client = !connection->client_ended && connection->to_upstream.length == 0 &&
                       (connection->inspection == NULL || !connection->inspection->awaits_answer);
    uint32_t client =
        (read_client ? (uint32_t)EPOLLIN : 0) | (connection->to_client.length > 0 ? (uint32_t)EPOLLOUT : 0);
    bool watched = loop_watch(loop, &connection->client, client);
    if (relaying) {
        bool read_upstream = !connection->upstream_ended && connection->to_client.length == 0;
        uint32_t upstream = (read_upstream ? (uint32_t)EPOLLIN : 0) |
                            (connection->to_upstream.length > 0 ? (uint32_t)EPOLLOUT : 0);
        watched = watched && loop_watch(loop, &connection->upstream, upstream);
    }
    if (!watched)
        connection_close(connection, true);
    return watched;
}

/* -- from the client -- */

/* Judges what came; what may go goes. False when the connection is not as it was. */
static bool client_said(struct connection *connection, uint8_t *bytes, size_t length) {
    struct inspection *inspection = connection->inspection;
    if (inspection == NULL) {
        connection->bytes_up += length;
        bool sent = forward(&connection->to_upstream, connection->upstream.fd, bytes, length);
        if (!sent)
            connection_close(connection, true);
        return sent;
    }
    size_t pass = 0;
    enum inspect_verdict verdict = inspect_feed(inspection, bytes, length, &pass, &connection->denial);
    if (verdict == INSPECT_DENY) {
        connection_deny(connection, BROKER_REQUEST_DENIED, connection->denial.reason);
        return false;
    }
    if (verdict != INSPECT_HOLD) {
        connection->bytes_up += inspection->held.length + pass;
        if (!forward(&connection->to_upstream, connection->upstream.fd, inspection->held.data,
                     inspection->held.length) ||
            !forward(&connection->to_upstream, connection->upstream.fd, bytes, pass)) {
            connection_close(connection, true);
            return false;
        }
        text_free(&inspection->held);
    }
    text_append_bytes(&inspection->held, bytes + pass, length - pass);
    if (verdict == INSPECT_ENOUGH) {
        inspect_free(inspection);
        connection->inspection = NULL;
    }
    if (verdict != INSPECT_HOLD && connection->stage == STAGE_CHECKING) {
        connection_dial(connection);
        return false; /* it may have failed at once; else flow goes on when it is connected */
    }
    return true;
}

/* The client said its last word. False when that ends the connection. */
static bool client_said_all(struct connection *connection) {
    struct inspection *inspection = connection->inspection;
    connection->client_ended = true;
    if (inspection == NULL)
        return true;
    if (connection->stage == STAGE_CHECKING || !inspect_may_end(inspection)) {
        connection_close(connection, inspection->begun);
        return false;
    }
    connection->bytes_up += inspection->held.length;
    bool sent = forward(&connection->to_upstream, connection->upstream.fd, inspection->held.data,
                        inspection->held.length);
    text_free(&inspection->held);
    if (!sent)
        connection_close(connection, true);
    return sent;
}

static void read_client(struct connection *connection) {
    struct broker *broker = connection->relay->broker;
    for (int i = 0; i < READS_A_TURN && connection->to_upstream.length == 0; i++) {
        if (connection->inspection != NULL && connection->inspection->awaits_answer)
            break;
        ssize_t length = recv(connection->client.fd, broker->buffer, sizeof broker->buffer, MSG_DONTWAIT);
        if (length < 0 && errno == EINTR)
            continue;
        if (length < 0 && errno == EAGAIN)
            break;
        if (length < 0) {
            connection_close(connection, true);
            return;
        }
        if (length == 0) {
            if (!client_said_all(connection))
                return;
            break;
        }
        if (!client_said(connection, broker->buffer, (size_t)length))
            return;
        if ((size_t)length < sizeof broker->buffer) /* there is no more now */
            break;
    }
    settle(connection);
}

/* What the client still says is thrown away, so that its end comes before ours: a close with bytes unread is
 * a reset, and the client would lose what it was told. */
static void drain(struct connection *connection) {
    struct broker *broker = connection->relay->broker;
    ssize_t length = recv(connection->client.fd, broker->buffer, sizeof broker->buffer, MSG_DONTWAIT);
    if (length == 0 || (length < 0 && errno != EAGAIN && errno != EINTR))
        connection_close(connection, false);
}

void flow_client_ready(struct source *source, uint32_t events) {
    struct connection *connection = OWNER_OF(source, struct connection, client);
    if (connection->stage == STAGE_DRAINING) {
        drain(connection);
        return;
    }
    if (!pending_flush(&connection->to_client, source->fd)) {
        connection_close(connection, true);
        return;
    }
    if (!connection->client_ended && (events & (EPOLLIN | EPOLLERR | EPOLLHUP)))
        read_client(connection);
    else
        settle(connection);
}

bool flow_listen(struct connection *connection) {
    return settle(connection);
}

/* -- from the host -- */

/* While the host's answer to the ClientHello is awaited. False when the connection is over. */
static bool host_answered(struct connection *connection, const uint8_t *bytes, size_t length) {
    struct inspection *inspection = connection->inspection;
    struct text held = {0};
    bool goes_on = true;
    switch (inspect_answer(inspection, bytes, length)) {
    case INSPECT_HOLD:
        break;
    case INSPECT_DENY:
        connection_close(connection, false);
        return false;
    case INSPECT_PASS:
        held = inspection->held;
        inspection->held = (struct text){0};
        goes_on = held.length == 0 || client_said(connection, (uint8_t *)held.data, held.length);
        break;
    case INSPECT_ENOUGH:
        held = inspection->held;
        inspection->held = (struct text){0};
        inspect_free(inspection);
        connection->inspection = NULL;
        goes_on = held.length == 0 || client_said(connection, (uint8_t *)held.data, held.length);
        break;
    }
    text_free(&held);
    return goes_on;
}

void flow_upstream_ready(struct source *source, uint32_t events) {
    struct connection *connection = OWNER_OF(source, struct connection, upstream);
    struct broker *broker = connection->relay->broker;
    if (!pending_flush(&connection->to_upstream, source->fd)) {
        connection_close(connection, true);
        return;
    }
    bool readable = !connection->upstream_ended && (events & (EPOLLIN | EPOLLERR | EPOLLHUP));
    for (int i = 0; readable && i < READS_A_TURN && connection->to_client.length == 0; i++) {
        ssize_t length = recv(source->fd, broker->buffer, sizeof broker->buffer, MSG_DONTWAIT);
        if (length < 0 && errno == EINTR)
            continue;
        if (length < 0 && errno == EAGAIN)
            break;
        if (length > 0)
            connection->bytes_down += (uint64_t)length;
        if (length < 0 ||
            !forward(&connection->to_client, connection->client.fd, broker->buffer, (size_t)length)) {
            connection_close(connection, true);
            return;
        }
        connection->upstream_ended = length == 0;
        if (connection->inspection != NULL && connection->inspection->awaits_answer && length > 0 &&
            !host_answered(connection, broker->buffer, (size_t)length))
            return;
        if ((size_t)length < sizeof broker->buffer)
            break;
    }
    settle(connection);
}

void flow_begin(struct connection *connection) {
    connection->stage = STAGE_RELAYING;
    if (!pending_flush(&connection->to_upstream, connection->upstream.fd))
        connection_close(connection, true);
    else if (connection->client_ended)
        settle(connection);
    else
        read_client(connection); /* its first words are often there already */
}
