/* Connections to allowed hosts: every address of a name is judged, and exactly the judged one is connected
 * to; the next one is tried beside it after 250 ms (RFC 8305). */
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/memory.h"
#include "broker/parts.h"
#include "egress/address.h"

#define STEP_MS 250
#define TOTAL_MS 10000
#define KEEPALIVE_SECONDS 60

struct attempt {
    struct source source;
    struct dial *dial;
    struct address address;
};

struct dial {
    struct broker *broker;
    dial_function done;
    void *data;
    const char *name; /* borrowed; NULL: an address of the policy, or an alias */
    uint16_t port;
    bool is_private;
    struct resolve_request *request;
    struct attempt attempts[RESOLVE_ADDRESSES_MAX];
    size_t count, next; /* attempts before `next` were begun */
    size_t running;
    struct timer step, total;
    struct address refused; /* the first that the name may not have */
    enum broker_reason denied;
    int number; /* of the last failure */
};

static void dial_free(struct dial *dial) {
    struct loop *loop = dial->broker->loop;
    if (dial->request != NULL)
        resolve_cancel(dial->request);
    for (size_t i = 0; i < dial->next; i++)
        loop_close(loop, &dial->attempts[i].source);
    timer_clear(loop, &dial->step);
    timer_clear(loop, &dial->total);
    loop_free_later(loop, dial);
}

void dial_cancel(struct dial *dial) {
    dial_free(dial);
}

static void finish(struct dial *dial, const struct dial_result *result) {
    dial_function done = dial->done;
    void *data = dial->data;
    dial_free(dial);
    done(data, result);
}

/* Has this network namespace no interface with an IPv4 address but loopback? (SIOCGIFCONF lists no others;
 * one that has IPv6 alone is seen by its route: then the failure has another errno.) */
static bool is_alone(void) {
    struct ifreq found[2] = {0};
    struct ifconf list = {.ifc_len = sizeof found, .ifc_req = found};
    fd_owned int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return fd >= 0 && ioctl(fd, SIOCGIFCONF, &list) == 0 &&
           (list.ifc_len == 0 || (list.ifc_len == sizeof found[0] && strcmp(found[0].ifr_name, "lo") == 0));
}

static void fail(struct dial *dial, const char *why) {
    /* With loopback alone the wall's own reset is all that comes back. */
    if (dial->broker->plan->uplink == BROKER_UPLINK_CONTAINER && dial->number == ECONNREFUSED && is_alone())
        why = "the container has no interface but loopback; network.uplink: host connects from the machine's "
              "network";
    struct dial_result result = {.fd = -1, .failure = why};
    if (dial->denied != BROKER_REASON_NONE) {
        result.denied = dial->denied;
        result.address = dial->refused;
    } else if (dial->count > 0) {
        result.address = dial->attempts[0].address;
    }
    finish(dial, &result);
}

/* What the socket of an attempt has to tell. */
static void attempt_ready(struct source *source, uint32_t events);

/* 0 when it goes on, or *connected; else an errno. */
static int attempt_begin(struct attempt *attempt, bool *connected) {
    struct dial *dial = attempt->dial;
    struct broker *broker = dial->broker;
    struct sockaddr_storage place = {0};
    socklen_t length;
    if (attempt->address.family == AF_INET) {
        struct sockaddr_in *ipv4 = (struct sockaddr_in *)&place;
        *ipv4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(dial->port)};
        memcpy(&ipv4->sin_addr, attempt->address.bytes, 4);
        length = sizeof *ipv4;
    } else {
        struct sockaddr_in6 *ipv6 = (struct sockaddr_in6 *)&place;
        *ipv6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(dial->port)};
        memcpy(&ipv6->sin6_addr, attempt->address.bytes, 16);
        length = sizeof *ipv6;
    }
    int fd = socket(attempt->address.family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
    if (fd < 0)
        return errno;
    attempt->source = (struct source){.fd = fd, .ready = attempt_ready};
    uint32_t mark = broker->sockets.mark;
    int on = 1, idle = KEEPALIVE_SECONDS;
    if (broker->plan->uplink == BROKER_UPLINK_CONTAINER && mark != 0 &&
        setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof mark) < 0)
        return errno;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    *connected = connect(fd, (struct sockaddr *)&place, length) == 0;
    /* Where no wire lies between, in a pod or on a bridge, the host's answer is there when the first call
     * returns, and the second one tells: a turn of the loop less. */
    if (!*connected && errno == EINPROGRESS)
        *connected = connect(fd, (struct sockaddr *)&place, length) == 0;
    if (*connected)
        return 0;
    if (errno != EALREADY)
        return errno;
    return loop_watch(broker->loop, &attempt->source, EPOLLOUT) ? 0 : ENOMEM;
}

static void go_on(struct dial *dial);

static void step_ring(struct timer *timer) {
    go_on(OWNER_OF(timer, struct dial, step));
}

static void total_ring(struct timer *timer) {
    fail(OWNER_OF(timer, struct dial, total), "it did not answer in 10 seconds");
}

static void succeed(struct dial *dial, struct attempt *attempt) {
    struct dial_result result = {.fd = attempt->source.fd, .address = attempt->address};
    loop_forget(dial->broker->loop, &attempt->source);
    attempt->source.fd = -1;
    finish(dial, &result);
}

/* Begins the next attempt that can be begun. */
static void go_on(struct dial *dial) {
    while (dial->next < dial->count) {
        struct attempt *attempt = &dial->attempts[dial->next++];
        bool connected = false;
        int number = attempt_begin(attempt, &connected);
        if (connected) {
            succeed(dial, attempt);
            return;
        }
        if (number == 0) {
            dial->running++;
            if (dial->next < dial->count)
                timer_set(dial->broker->loop, &dial->step, STEP_MS, step_ring);
            return;
        }
        dial->number = number;
        loop_close(dial->broker->loop, &attempt->source);
    }
    if (dial->running == 0)
        fail(dial, dial->number != 0 ? strerrordesc_np(dial->number) : "it has no address");
}

static void attempt_ready(struct source *source, uint32_t events) {
    struct attempt *attempt = OWNER_OF(source, struct attempt, source);
    struct dial *dial = attempt->dial;
    struct loop *loop = dial->broker->loop;
    int number = 0;
    socklen_t length = sizeof number;
    (void)events;
    if (getsockopt(source->fd, SOL_SOCKET, SO_ERROR, &number, &length) < 0)
        number = errno;
    if (number != 0) {
        dial->number = number;
        dial->running--;
        loop_close(loop, source);
        timer_clear(loop, &dial->step);
        go_on(dial);
        return;
    }
    succeed(dial, attempt);
}

/* Whether the broker may connect to it for a name that is allowed. What is always refused (multicast, this
 * network, the addresses that names stand for) no line opens. */
enum broker_reason dial_judge(const struct broker *broker, const char *name, const struct address *address,
                              bool is_private) {
    if (host_address_is_synthetic(address->family, address->bytes) ||
        !policy_address_is_reachable(address->family, address->bytes, true))
        return BROKER_REASON_PRIVATE;
    enum address_kind kind = address_classify(address->family, address->bytes);
    if (kind == ADDRESS_PUBLIC || is_private ||
        (name != NULL && broker_is_alias(broker, name, address->family, address->bytes)))
        return BROKER_REASON_NONE;
    return kind == ADDRESS_METADATA ? BROKER_REASON_METADATA : BROKER_REASON_PRIVATE;
}

/* An IPv6 address, an IPv4 address, the next of each (RFC 8305 section 4). */
static void resolved(void *data, const struct address *addresses, size_t count, const char *failure) {
    struct dial *dial = data;
    dial->request = NULL;
    size_t next[2] = {0, 0};
    const int families[2] = {AF_INET6, AF_INET};
    for (unsigned turn = 0; next[0] < count || next[1] < count; turn++) {
        size_t *place = &next[turn % 2];
        while (*place < count && addresses[*place].family != families[turn % 2])
            (*place)++;
        if (*place == count)
            continue;
        const struct address *address = &addresses[(*place)++];
        enum broker_reason reason = dial_judge(dial->broker, dial->name, address, dial->is_private);
        if (reason == BROKER_REASON_NONE) {
            dial->attempts[dial->count++] =
                (struct attempt){.source = {.fd = -1}, .dial = dial, .address = *address};
        } else if (dial->denied == BROKER_REASON_NONE) {
            dial->denied = reason;
            dial->refused = *address;
        }
    }
    if (dial->count == 0) {
        fail(dial, failure != NULL ? failure : "it has no address");
        return;
    }
    dial->denied = BROKER_REASON_NONE; /* the others are tried; if they fail, it is not for the policy */
    go_on(dial);
}

void dial_begin(struct broker *broker, const char *name, const struct address *address, uint16_t port,
                bool is_private, dial_function done, void *data, struct dial **out) {
    struct dial *dial = memory_zeroed(sizeof *dial);
    *dial = (struct dial){
        .broker = broker, .done = done, .data = data, .name = name, .port = port, .is_private = is_private};
    *out = dial; /* before it can call back; whoever is called back forgets it */
    timer_set(broker->loop, &dial->total, TOTAL_MS, total_ring);
    if (name == NULL)
        resolved(dial, address, 1, NULL);
    else
        resolve_begin(broker->resolver, name, resolved, dial, &dial->request);
}
