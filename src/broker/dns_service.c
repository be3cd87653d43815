/* The name service of the sandbox: allowed names have the addresses of the map, all others do not exist.
 * Nothing is ever sent to another server here; names are resolved when something connects. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"
#include "broker/parts.h"
#include "egress/dns.h"

#define MESSAGES_A_TURN 64
/* The broker's time is the machine's, not the container's: what comes faster is not answered. */
#define RATE_PER_SECOND 4000
#define STREAMS_MAX 64
#define STREAM_IDLE_MS 10000
/* Denials that wait for the warden; more than that do not wait. */
#define WAITING_MAX 256
#define STREAM_BUFFER 2048
#define BREATH_MS 100

struct names_service {
    struct broker *broker;
    struct source udp[2], tcp[2];
    struct timer breath; /* no descriptor is left: accept again in a while */
    size_t streams, waiting;
    double tokens;
    int64_t filled_ms;
    enum { IPV6_UNKNOWN, IPV6_WORKS, IPV6_IS_GONE } ipv6;
};

struct client {
    struct sockaddr_storage place;
    socklen_t length;
};

/* A denial over UDP whose answer waits until the warden has seen who asked. */
struct waiting {
    struct names_service *service;
    struct held held;
    int fd;
    struct client client;
    size_t length;
    uint8_t bytes[DNS_ANSWER_MAX];
};

/* A connection that asks. While an answer waits, nothing is read from it. */
struct stream {
    struct names_service *service;
    struct source source;
    struct timer idle;
    struct client client;
    struct dns_stream reader;
    struct held held;
    uint8_t unread[STREAM_BUFFER];
    size_t unread_at, unread_length;
    size_t length;
    uint8_t bytes[2 + DNS_ANSWER_MAX];
};

enum outcome { SILENT, ANSWERED, DENIED };

/* -- what is answered -- */

static void learn(struct learnt_names *learnt, const struct host_entry *entry) {
    uint32_t count = learnt->count;
    if (count >= HOST_MAP_LEARNT_MAX)
        return;
    learnt->names[count].slot = entry->slot;
    report_string(learnt->names[count].name, sizeof learnt->names[count].name, entry->name);
    __atomic_store_n(&learnt->count, count + 1, __ATOMIC_RELEASE); /* whole, should we die here */
}

/* An allowed name with something behind it, as resolvers ask that have a search list. Returns where that
 * begins, or NULL. */
static const char *search_suffix(const struct broker *broker, const char *name) {
    char prefix[HOST_NAME_SIZE];
    report_string(prefix, sizeof prefix, name);
    for (char *dot; (dot = strrchr(prefix, '.')) != NULL;) {
        *dot = '\0';
        if (host_map_allows(broker->map, prefix))
            return name + (dot - prefix) + 1;
    }
    return NULL;
}

static bool is_loopback_name(const char *name) {
    return strcmp(name, "localhost") == 0 || text_ends_with(name, ".localhost");
}

/* What an address of a sandbox is called. */
static bool answer_reverse(const struct broker *broker, const struct dns_query *query,
                           struct dns_answer *answer) {
    int family;
    uint8_t address[16];
    static const uint8_t loopback_ipv6[16] = {[15] = 1};
    if (query->type != DNS_TYPE_PTR || !dns_query_reverse(query, &family, address))
        return false;
    const char *name = host_map_name(broker->map, family, address);
    bool loopback = family == AF_INET ? address[0] == 127 : memcmp(address, loopback_ipv6, 16) == 0;
    if (name == NULL && !loopback)
        return false;
    *answer = DNS_ANSWER(DNS_NOERROR);
    answer->pointer = loopback ? "localhost" : name;
    return true;
}

static void deny(const struct broker *broker, const struct dns_query *query, struct dns_answer *answer,
                 struct broker_report *report) {
    *answer = DNS_ANSWER(DNS_NXDOMAIN);
    answer->extended_error = DNS_EDE_BLOCKED;
    answer->error_text = "pinfold: network.allowed_hosts does not name it";
    report->reason = BROKER_REASON_NAME;
    const char *suffix = query->is_host ? search_suffix(broker, query->host) : NULL;
    if (suffix != NULL) {
        report_string(report->name, sizeof report->name, suffix);
        report_string(report->asked, sizeof report->asked, query->host);
        report->asked[suffix - query->host - 1] = '\0';
    } else {
        report_string(report->name, sizeof report->name, query->is_host ? query->host : query->name);
    }
}

/* Before the answer, so that the warden knows whom a denied connection to that address was for. */
static void tell_learnt(struct broker *broker, const struct host_entry *entry) {
    struct broker_report report = {.kind = BROKER_NAME_LEARNT, .service_port = entry->slot};
    report_string(report.name, sizeof report.name, entry->name);
    report_event(&broker->reports, &report, false);
}

/* Whether an address of IPv6 leads anywhere. Docker takes IPv6 away from a container after `create` has made
 * the sockets, and a program that is told an address of it then says "Cannot assign requested address" of a
 * port that was refused. The socket itself knows, whatever namespace the broker is in: an empty datagram to
 * itself, at the first question (nobody asks before `start`, and no sandbox may write its sysctls). */
static bool has_ipv6(struct names_service *service) {
    struct sockaddr_in6 self = {
        .sin6_family = AF_INET6, .sin6_port = htons(BROKER_DNS_PORT), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = service->broker->sockets.names_udp_ipv6;
    if (service->ipv6 == IPV6_UNKNOWN) {
        bool sent =
            sendto(fd, "", 0, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&self, sizeof self) == 0;
        bool gone = !sent && (errno == EADDRNOTAVAIL || errno == ENETUNREACH || errno == EBADF);
        service->ipv6 = gone ? IPV6_IS_GONE : IPV6_WORKS;
    }
    return service->ipv6 == IPV6_WORKS && service->broker->sockets.relay_ipv6 >= 0;
}

static enum outcome decide(struct names_service *service, const struct dns_query *query,
                           struct dns_answer *answer, struct host_entry *entry,
                           struct broker_report *report) {
    static const uint8_t loopback_ipv4[4] = {127, 0, 0, 1}, loopback_ipv6[16] = {[15] = 1};
    struct broker *broker = service->broker;
    bool internet = query->class == DNS_CLASS_IN;
    bool ipv6 = internet && query->type == DNS_TYPE_AAAA && has_ipv6(service);
    *answer = DNS_ANSWER(DNS_NOERROR);
    if (internet && answer_reverse(broker, query, answer))
        return ANSWERED;
    if (query->is_host && is_loopback_name(query->host)) {
        answer->ipv4 = internet && query->type == DNS_TYPE_A ? loopback_ipv4 : NULL;
        answer->ipv6 = ipv6 ? loopback_ipv6 : NULL;
        return ANSWERED;
    }
    enum host_answer known = query->is_host ? host_map_learn(broker->map, query->host, entry) : HOST_DENIED;
    switch (known) {
    case HOST_DENIED:
        deny(broker, query, answer, report);
        return DENIED;
    case HOST_FULL:
        *answer = DNS_ANSWER(DNS_SERVFAIL);
        report->reason = BROKER_REASON_LIMIT;
        report_string(report->name, sizeof report->name, query->host);
        return DENIED;
    case HOST_LEARNT:
        learn(broker->learnt, entry);
        tell_learnt(broker, entry);
        break;
    case HOST_KNOWN:
        break;
    }
    answer->ipv4 = internet && query->type == DNS_TYPE_A ? entry->ipv4 : NULL;
    answer->ipv6 = ipv6 ? entry->ipv6 : NULL;
    return ANSWERED;
}

static bool rate_allows(struct names_service *service) {
    int64_t now = loop_now_ms();
    service->tokens += (double)(now - service->filled_ms) * RATE_PER_SECOND / 1000;
    service->filled_ms = now;
    if (service->tokens > RATE_PER_SECOND)
        service->tokens = RATE_PER_SECOND;
    if (service->tokens < 1)
        return false;
    service->tokens -= 1;
    return true;
}

/* Reads one question and writes its answer. */
static enum outcome answer_question(struct names_service *service, const struct client *client,
                                    const uint8_t *bytes, size_t length, bool udp, uint8_t *out,
                                    size_t *out_length, struct broker_report *report) {
    struct dns_query query;
    struct dns_answer answer;
    enum dns_rcode rcode;
    if (!rate_allows(service))
        return SILENT;
    enum outcome outcome = ANSWERED;
    struct host_entry entry = {0};
    switch (dns_query_parse(bytes, length, &query, &rcode)) {
    case DNS_SILENCE:
        return SILENT;
    case DNS_FAULTY:
        answer = DNS_ANSWER(rcode);
        break;
    case DNS_QUESTION:
        *report = (struct broker_report){.kind = BROKER_NAME_DENIED,
                                         .protocol = udp ? IPPROTO_UDP : IPPROTO_TCP,
                                         .query_type = query.type,
                                         .family = (uint8_t)client->place.ss_family};
        if (client->place.ss_family == AF_INET) {
            const struct sockaddr_in *ipv4 = (const struct sockaddr_in *)&client->place;
            memcpy(report->client, &ipv4->sin_addr, 4);
            report->client_port = ntohs(ipv4->sin_port);
        } else {
            const struct sockaddr_in6 *ipv6 = (const struct sockaddr_in6 *)&client->place;
            memcpy(report->client, &ipv6->sin6_addr, 16);
            report->client_port = ntohs(ipv6->sin6_port);
        }
        outcome = decide(service, &query, &answer, &entry, report);
        break;
    }
    *out_length = dns_answer_write(&query, &answer, out, udp ? dns_udp_size(&query) : DNS_ANSWER_MAX);
    return *out_length == 0 ? SILENT : outcome;
}

/* -- UDP -- */

static void send_datagram(int fd, const struct client *client, const uint8_t *bytes, size_t length) {
    /* What cannot be sent is asked for again. */
    (void)!sendto(fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *)&client->place,
                  client->length);
}

static void waiting_release(struct held *held) {
    struct waiting *waiting = OWNER_OF(held, struct waiting, held);
    send_datagram(waiting->fd, &waiting->client, waiting->bytes, waiting->length);
    waiting->service->waiting--;
    loop_free_later(waiting->service->broker->loop, waiting);
}

static void handle_datagram(struct names_service *service, int fd, const struct client *client,
                            const uint8_t *bytes, size_t length) {
    struct broker_report report;
    uint8_t answer[DNS_ANSWER_MAX];
    size_t answer_length = 0;
    enum outcome outcome =
        answer_question(service, client, bytes, length, true, answer, &answer_length, &report);
    if (outcome == ANSWERED || (outcome == DENIED && service->waiting >= WAITING_MAX))
        send_datagram(fd, client, answer, answer_length);
    if (outcome == DENIED && service->waiting >= WAITING_MAX)
        report_denial(&service->broker->reports, &report, NULL, NULL);
    if (outcome != DENIED || service->waiting >= WAITING_MAX)
        return;
    struct waiting *waiting = memory_zeroed(sizeof *waiting);
    *waiting = (struct waiting){.service = service, .fd = fd, .client = *client, .length = answer_length};
    memcpy(waiting->bytes, answer, answer_length);
    service->waiting++;
    report_denial(&service->broker->reports, &report, &waiting->held, waiting_release);
}

static void udp_read(struct names_service *service, int fd) {
    for (int i = 0; i < MESSAGES_A_TURN; i++) {
        uint8_t bytes[DNS_QUERY_MAX + 1];
        struct client client = {.length = sizeof client.place};
        ssize_t length =
            recvfrom(fd, bytes, sizeof bytes, MSG_DONTWAIT, (struct sockaddr *)&client.place, &client.length);
        if (length < 0 && errno == EINTR)
            continue;
        if (length < 0)
            return;
        handle_datagram(service, fd, &client, bytes, (size_t)length);
    }
}

static void udp_ipv4_ready(struct source *source, uint32_t events) {
    (void)events;
    udp_read(OWNER_OF(source, struct names_service, udp[0]), source->fd);
}

static void udp_ipv6_ready(struct source *source, uint32_t events) {
    (void)events;
    udp_read(OWNER_OF(source, struct names_service, udp[1]), source->fd);
}

/* -- TCP -- */

static void stream_close(struct stream *stream) {
    struct broker *broker = stream->service->broker;
    report_forget(&broker->reports, &stream->held);
    timer_clear(broker->loop, &stream->idle);
    loop_close(broker->loop, &stream->source);
    stream->service->streams--;
    loop_free_later(broker->loop, stream);
}

static void idle_ring(struct timer *timer) {
    stream_close(OWNER_OF(timer, struct stream, idle));
}

/* An answer is much smaller than a socket's buffer; a client that does not read until that is full is let go.
 */
static bool stream_send(struct stream *stream) {
    stream->bytes[0] = (uint8_t)(stream->length >> 8);
    stream->bytes[1] = (uint8_t)stream->length;
    size_t length = 2 + stream->length;
    return send(stream->source.fd, stream->bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)length;
}

static void go_on_ring(struct timer *timer);

/* Not from here: the answer may have been released while its question was still at hand. */
static void stream_release(struct held *held) {
    struct stream *stream = OWNER_OF(held, struct stream, held);
    if (stream_send(stream))
        timer_set(stream->service->broker->loop, &stream->idle, 0, go_on_ring);
    else
        timer_set(stream->service->broker->loop, &stream->idle, 0, idle_ring);
}

/* Answers what has come, one question after the other. */
static void stream_go_on(struct stream *stream) {
    struct names_service *service = stream->service;
    while (stream->unread_at < stream->unread_length) {
        size_t used = 0, length;
        enum dns_stream_verdict verdict = dns_stream_feed(&stream->reader, stream->unread + stream->unread_at,
                                                          stream->unread_length - stream->unread_at, &used);
        stream->unread_at += used;
        if (verdict == DNS_STREAM_MORE)
            break;
        if (verdict == DNS_STREAM_BAD) {
            stream_close(stream);
            return;
        }
        const uint8_t *message = dns_stream_message(&stream->reader, &length);
        struct broker_report report;
        enum outcome outcome = answer_question(service, &stream->client, message, length, false,
                                               stream->bytes + 2, &stream->length, &report);
        if (outcome == DENIED) {
            relay_find_service(stream->source.fd, report.family, report.service, &report.service_port);
            (void)loop_watch(service->broker->loop, &stream->source, 0);
            timer_clear(service->broker->loop, &stream->idle);
            report_denial(&service->broker->reports, &report, &stream->held, stream_release);
            return;
        }
        if (outcome == SILENT || !stream_send(stream)) {
            stream_close(stream);
            return;
        }
    }
    timer_set(service->broker->loop, &stream->idle, STREAM_IDLE_MS, idle_ring);
    if (!loop_watch(service->broker->loop, &stream->source, EPOLLIN))
        stream_close(stream);
}

static void go_on_ring(struct timer *timer) {
    stream_go_on(OWNER_OF(timer, struct stream, idle));
}

static void stream_ready(struct source *source, uint32_t events) {
    struct stream *stream = OWNER_OF(source, struct stream, source);
    (void)events;
    ssize_t length = recv(source->fd, stream->unread, sizeof stream->unread, MSG_DONTWAIT);
    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (length <= 0) {
        stream_close(stream);
        return;
    }
    stream->unread_at = 0;
    stream->unread_length = (size_t)length;
    stream_go_on(stream);
}

static void breath_ring(struct timer *timer) {
    struct names_service *service = OWNER_OF(timer, struct names_service, breath);
    for (size_t i = 0; i < 2; i++)
        if (service->tcp[i].fd >= 0)
            (void)loop_watch(service->broker->loop, &service->tcp[i], EPOLLIN);
}

static void accept_streams(struct names_service *service, int listening) {
    for (int i = 0; i < MESSAGES_A_TURN; i++) {
        struct client client = {.length = sizeof client.place};
        int fd = accept4(listening, (struct sockaddr *)&client.place, &client.length,
                         SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
            /* The one that waits would wake us again and again. */
            for (size_t k = 0; k < 2; k++)
                if (service->tcp[k].fd >= 0)
                    (void)loop_watch(service->broker->loop, &service->tcp[k], 0);
            timer_set(service->broker->loop, &service->breath, BREATH_MS, breath_ring);
        }
        if (fd < 0)
            return;
        if (service->streams >= STREAMS_MAX) {
            fd_close(fd);
            continue;
        }
        struct stream *stream = memory_zeroed(sizeof *stream);
        stream->service = service;
        stream->source = (struct source){.fd = fd, .ready = stream_ready};
        stream->client = client;
        service->streams++;
        timer_set(service->broker->loop, &stream->idle, STREAM_IDLE_MS, idle_ring);
        if (!loop_watch(service->broker->loop, &stream->source, EPOLLIN))
            stream_close(stream);
    }
}

static void tcp_ipv4_ready(struct source *source, uint32_t events) {
    (void)events;
    accept_streams(OWNER_OF(source, struct names_service, tcp[0]), source->fd);
}

static void tcp_ipv6_ready(struct source *source, uint32_t events) {
    (void)events;
    accept_streams(OWNER_OF(source, struct names_service, tcp[1]), source->fd);
}

struct error *names_service_begin(struct broker *broker) {
    struct names_service *service = memory_zeroed(sizeof *service);
    const struct broker_sockets *sockets = &broker->sockets;
    service->broker = broker;
    service->filled_ms = loop_now_ms();
    service->tokens = RATE_PER_SECOND;
    broker->names = service;
    service->udp[0] = (struct source){.fd = sockets->names_udp_ipv4, .ready = udp_ipv4_ready};
    service->udp[1] = (struct source){.fd = sockets->names_udp_ipv6, .ready = udp_ipv6_ready};
    service->tcp[0] = (struct source){.fd = sockets->names_tcp_ipv4, .ready = tcp_ipv4_ready};
    service->tcp[1] = (struct source){.fd = sockets->names_tcp_ipv6, .ready = tcp_ipv6_ready};
    for (size_t i = 0; i < 2; i++) {
        if (service->udp[i].fd >= 0 && !loop_watch(broker->loop, &service->udp[i], EPOLLIN))
            return error_system(errno, "epoll_ctl", "the name service's socket");
        if (service->tcp[i].fd >= 0 && !loop_watch(broker->loop, &service->tcp[i], EPOLLIN))
            return error_system(errno, "epoll_ctl", "the name service's socket");
    }
    return NULL;
}
