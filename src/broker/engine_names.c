/* The engine's own name server, which knows the containers of its network: Docker's, at 127.0.0.11. c-ares
 * does not ask it: a channel of c-ares's own costs each broker 100 KB and opens files, and here are two
 * questions over loopback, to a server that comes with `start`. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/memory.h"
#include "broker/engine_names.h"
#include "egress/routes.h"

#define PORT_DNS 53
/* It asks on for what it does not know, and so the broker (engine_names.h): twice through this loop. */
#define PATIENCE_MS 1000
#define ANSWER_MAX 1232

/* Is it one of a network that the container is in? The server says nothing else of its own knowledge, so that
 * whatever else comes is somebody's who took its place: a workload, when the engine has ended, by binding the
 * port to which the engine's rules still lead. And the addresses that the broker itself gives names, which
 * come back from a server that asked on, are none of these. */
static bool is_of_the_network(const struct address *address) {
    bool neighbour = false;
    struct error *error = routes_is_neighbour(address->family, address->bytes, &neighbour);
    error_ignore(error); /* no route to it */
    return neighbour && !host_address_is_synthetic(address->family, address->bytes);
}

static void question_end(struct engine_question *question) {
    struct loop *loop = question->broker->loop;
    timer_clear(loop, &question->patience);
    loop_close(loop, &question->source);
}

static void finish(struct engine_question *question) {
    question_end(question);
    question->done(question, question->addresses, question->count);
}

static void patience_ring(struct timer *timer) {
    finish(OWNER_OF(timer, struct engine_question, patience));
}

static void take_answer(struct engine_question *question, const uint8_t *bytes, size_t length) {
    static const int families[2] = {AF_INET6, AF_INET};
    for (size_t i = 0; i < 2; i++) {
        if (question->lengths[i] == 0 ||
            !resolve_is_answer(bytes, length, question->bytes[i], question->lengths[i]))
            continue;
        question->lengths[i] = 0;
        uint32_t ttl = UINT32_MAX; /* it costs nothing to ask again */
        struct address found[RESOLVE_ADDRESSES_MAX];
        size_t count = resolve_parse_answer(bytes, length, families[i], found, RESOLVE_ADDRESSES_MAX, &ttl);
        for (size_t k = 0; k < count && question->count < RESOLVE_ADDRESSES_MAX; k++)
            if (is_of_the_network(&found[k]))
                question->addresses[question->count++] = found[k];
    }
}

static void answer_ready(struct source *source, uint32_t events) {
    struct engine_question *question = OWNER_OF(source, struct engine_question, source);
    uint8_t bytes[ANSWER_MAX];
    (void)events;
    ssize_t length = recv(source->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (length >= 0)
        take_answer(question, bytes, (size_t)length);
    /* An error (ECONNREFUSED): there is no such server any more. */
    if (length < 0 || (question->lengths[0] == 0 && question->lengths[1] == 0))
        finish(question);
}

static bool ask(struct engine_question *question, const char *name) {
    static const int families[2] = {AF_INET6, AF_INET};
    uint16_t ids[2];
    if (getrandom(ids, sizeof ids, GRND_NONBLOCK) != sizeof ids)
        return false;
    for (size_t i = 0; i < 2; i++) {
        question->lengths[i] = resolve_write_question(name, ids[i], families[i], question->bytes[i]);
        if (question->lengths[i] == 0 || send(question->source.fd, question->bytes[i], question->lengths[i],
                                              MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
            return false;
    }
    return true;
}

bool engine_names_ask(struct engine_question *question, struct broker *broker, const char *name,
                      engine_function done) {
    const struct string_list *servers = &broker->plan->engine_nameservers;
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons(PORT_DNS)};
    if (servers->count == 0 || broker->plan->uplink != BROKER_UPLINK_CONTAINER ||
        inet_pton(AF_INET, servers->items[0], &place.sin_addr) != 1)
        return false;
    *question = (struct engine_question){.broker = broker, .done = done};
    question->source = (struct source){.fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0),
                                       .ready = answer_ready};
    int fd = question->source.fd;
    uint32_t mark = broker->sockets.mark;
    if (fd < 0 || (mark != 0 && setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof mark) < 0) ||
        connect(fd, (struct sockaddr *)&place, sizeof place) < 0 || !ask(question, name) ||
        !loop_watch(broker->loop, &question->source, EPOLLIN)) {
        loop_close(broker->loop, &question->source);
        return false;
    }
    timer_set(broker->loop, &question->patience, PATIENCE_MS, patience_ring);
    return true;
}

void engine_names_cancel(struct engine_question *question) {
    question_end(question);
}
