/* The broker's reports: bounded, attributed, recorded. The broker reads hostile bytes, so nothing that it
 * says is believed further than into a record. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "broker/report.h"
#include "egress/address.h"
#include "egress/names.h"
#include "warden/observers.h"

/* Until the broker serves: its keeper is a fresh program, and two processors may be busy. */
#define READY_PATIENCE_MS 10000
#define REPORTS_A_TURN 64
/* For the last reports, of connections that ended with the container. */
#define FAREWELL_MS 100
/* Connections whose process is remembered until they end; of others the record of the end names none. */
#define REMEMBERED_MAX 4096
#define BUCKETS 64

/* Who opened a connection. Its socket may be gone when the connection ends. */
struct opener {
    struct opener *next;
    uint8_t family;
    uint16_t port;
    uint8_t address[16];
    struct record_process process;
};

struct broker_observer {
    struct opener *openers[BUCKETS];
    size_t count;
};

/* -- the beginning -- */

struct error *broker_await(struct warden_context *context) {
    if (context->broker < 0 || context->broker_ready)
        return NULL;
    struct pollfd event = {.fd = context->broker, .events = POLLIN};
    int ready;
    while ((ready = poll(&event, 1, READY_PATIENCE_MS)) < 0 && errno == EINTR)
        ;
    if (ready <= 0)
        return error_new(ERROR_UNAVAILABLE, "broker: it does not serve after %d seconds",
                         READY_PATIENCE_MS / 1000);
    struct broker_report report;
    ssize_t length = fd_receive_message(context->broker, &report, sizeof report);
    if (length != (ssize_t)sizeof report)
        return error_new(ERROR_UNAVAILABLE, "broker: it has ended before it served");
    report.text[sizeof report.text - 1] = '\0';
    if (report.kind != BROKER_READY)
        return error_new(ERROR_UNAVAILABLE, "broker: %s", report.text);
    context->broker_ready = true;
    return NULL;
}

/* -- who -- */

static struct denied_packet packet_of(const struct broker_report *report) {
    struct denied_packet packet = {.family = report->family,
                                   .protocol = report->protocol,
                                   .source_port = report->client_port,
                                   .destination_port = report->service_port,
                                   .uid = -1};
    memcpy(packet.source, report->client, sizeof packet.source);
    memcpy(packet.destination, report->service, sizeof packet.destination);
    return packet;
}

static struct opener **opener_place(struct broker_observer *observer, const struct broker_report *report) {
    struct opener **place = &observer->openers[report->client_port % BUCKETS];
    while (*place != NULL && ((*place)->port != report->client_port || (*place)->family != report->family ||
                              memcmp((*place)->address, report->client, sizeof report->client) != 0))
        place = &(*place)->next;
    return place;
}

static struct broker_observer *observer_of(struct warden_context *context) {
    if (context->brokered == NULL)
        context->brokered = memory_zeroed(sizeof *context->brokered);
    return context->brokered;
}

static void opener_forget(struct broker_observer *observer, struct opener **place) {
    struct opener *opener = *place;
    *place = opener->next;
    observer->count--;
    record_process_clear(&opener->process);
    free(opener);
}

static char *copy(const char *string) {
    return string != NULL ? memory_copy_string(string) : NULL;
}

static void opener_remember(struct broker_observer *observer, const struct broker_report *report,
                            const struct record_process *process) {
    struct opener **place = opener_place(observer, report);
    if (*place != NULL)
        opener_forget(observer, place);
    if (observer->count >= REMEMBERED_MAX)
        return;
    struct opener *opener = memory_zeroed(sizeof *opener);
    *opener = (struct opener){.next = *place,
                              .family = report->family,
                              .port = report->client_port,
                              .process = {.pid = process->pid,
                                          .name = copy(process->name),
                                          .executable = copy(process->executable),
                                          .command_line = copy(process->command_line),
                                          .uid = process->uid}};
    memcpy(opener->address, report->client, sizeof opener->address);
    *place = opener;
    observer->count++;
}

/* -- what is said -- */

static const struct {
    const char *code;
    const char *words; /* after "PROCESS tried to connect to PLACE" */
} reasons[BROKER_REASON_COUNT] = {
    [BROKER_REASON_NONE] = {"net.host.not_allowed", ", which is not allowed"},
    [BROKER_REASON_NAME] = {"net.host.not_allowed", "; network.allowed_hosts does not name it"},
    [BROKER_REASON_PORT] = {"net.port.not_allowed", "; network.allowed_hosts names it with other ports"},
    [BROKER_REASON_LITERAL] = {"net.address.literal", "; network.allowed_hosts does not name it"},
    [BROKER_REASON_PRIVATE] = {"net.address.private",
                               ", a private address; network.allowed_hosts does not say that it may be one"},
    [BROKER_REASON_METADATA] = {"net.address.metadata",
                                ", a cloud metadata service, which gives out credentials"},
    [BROKER_REASON_SNI] = {"net.sni.mismatch", ""},
    [BROKER_REASON_HOST] = {"net.http.host_mismatch", ""},
    [BROKER_REASON_PROTOCOL] = {"net.protocol.not_allowed", ""},
    [BROKER_REASON_LIMIT] = {"limit.connections", ", and has more connections or names than it may have"},
};

static void append_process(struct text *message, const struct record_process *process) {
    if (process->name != NULL)
        text_format(message, "%s (pid %d)", process->name, (int)process->pid);
    else
        text_append(message, "A process");
}

static void append_place(struct text *message, const struct broker_report *report) {
    if (report->name[0] != '\0')
        text_format(message, "%s:%u", report->name, report->service_port);
    else {
        char place[ADDRESS_TEXT_SIZE];
        address_write(report->family, report->service, report->service_port, place);
        text_append(message, place);
    }
}

static void explain_connection(const struct broker_report *report, struct text *message,
                               struct text *remedy) {
    text_append(message, " tried to connect to ");
    append_place(message, report);
    if (report->upstream_family != 0) {
        char address[ADDRESS_TEXT_SIZE];
        address_write(report->upstream_family, report->upstream, 0, address);
        text_format(message, ", which is at %s", address);
    }
    text_append(message, reasons[report->reason].words);
    bool named = report->name[0] != '\0';
    if (named && report->reason == BROKER_REASON_PORT)
        text_format(remedy, "network: {allowed_hosts: [\"%s:%u\"]}", report->name, report->service_port);
    if (named && (report->reason == BROKER_REASON_PRIVATE || report->reason == BROKER_REASON_METADATA))
        text_format(remedy, "network: {allowed_hosts: [{host: \"%s\", ports: [%u], private: true}]}",
                    report->name, report->service_port);
}

static void explain_request(const struct broker_report *report, struct text *message) {
    text_format(message, " connected to ");
    append_place(message, report);
    if (report->text[0] != '\0')
        text_format(message, ", and what it sent is refused: %s", report->text);
    else if (report->reason == BROKER_REASON_SNI)
        text_format(message, ", and named %s in TLS", report->asked[0] ? report->asked : "no server");
    else
        text_format(message, ", and sent a request for %s", report->asked[0] ? report->asked : "no host");
}

/* -- records -- */

/* What a record of any connection has. The strings are the caller's room. */
struct places {
    char service[ADDRESS_TEXT_SIZE], client[ADDRESS_TEXT_SIZE], upstream[ADDRESS_TEXT_SIZE];
};

static struct record_event event_of(const struct broker_report *report, struct places *places,
                                    const struct record_process *process) {
    address_write(report->family, report->client, 0, places->client);
    address_write(report->family, report->service, 0, places->service);
    if (report->upstream_family != 0)
        address_write(report->upstream_family, report->upstream, 0, places->upstream);
    return (struct record_event){.class_id = RECORD_NETWORK,
                                 .process = process,
                                 .subject = report->name,
                                 .address = report->upstream_family != 0 ? places->upstream : places->service,
                                 .port = report->service_port,
                                 .source_address = places->client,
                                 .source_port = report->client_port,
                                 .protocol = report->protocol == IPPROTO_UDP ? "udp" : "tcp",
                                 .protocol_number = report->protocol};
}

/* The policy's line that the broker names, as the policy has it, and where it stands. The caller frees it. */
static char *rule_of(const struct warden_context *context, const struct broker_report *report,
                     const char **origin) {
    const struct warden_plan *plan = context->plan;
    bool now = report->generation == (uint32_t)plan->generation;
    bool before = !now && report->generation == (uint32_t)context->earlier.generation;
    const struct string_list *hosts = now ? &plan->hosts : &context->earlier.hosts;
    const struct string_list *origins = now ? &plan->hosts_origins : &context->earlier.hosts_origins;
    if (report->line == 0 || report->line > hosts->count || !(now || before))
        return NULL;
    size_t index = report->line - 1;
    *origin = index < origins->count ? origins->items[index] : NULL;
    return text_formatted("network.allowed_hosts: %s", hosts->items[index]);
}

static int activity_of_method(const char *method) {
    static const char *const methods[] = {"CONNECT", "DELETE", "GET",   "HEAD", "OPTIONS",
                                          "POST",    "PUT",    "TRACE", "PATCH"};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (strcmp(method, methods[i]) == 0)
            return (int)i + 1;
    return 99;
}

static void record_name(struct warden_context *context, const struct broker_report *report,
                        struct record_event *event) {
    text_owned struct text message = {0}, remedy = {0};
    append_process(&message, event->process);
    event->class_id = RECORD_DNS;
    event->activity_id = 2;
    event->reason = "dns.name.not_allowed";
    event->rule = "network.allowed_hosts";
    event->address = NULL;
    event->port = 53;
    if (report->reason == BROKER_REASON_LIMIT) {
        event->reason = reasons[BROKER_REASON_LIMIT].code;
        text_format(&message, " asked for %s; no more names below a \"*.\" line can have an address",
                    report->name);
    } else if (report->asked[0] != '\0') {
        text_format(&message, " asked for %s below the search suffix %s, where it is not", report->asked,
                    report->name);
    } else {
        text_format(&message, " asked for %s; network.allowed_hosts does not name it", report->name);
        char normal[HOST_NAME_SIZE];
        if (host_name_normalise(report->name, strlen(report->name), normal))
            text_format(&remedy, "network: {allowed_hosts: [\"%s\"]}", normal);
    }
    event->message = text_string(&message);
    event->remedy = remedy.length > 0 ? text_string(&remedy) : NULL;
    denial_record(context, event);
}

static void record_denied(struct warden_context *context, const struct broker_report *report,
                          struct record_event *event) {
    text_owned struct text message = {0}, remedy = {0};
    append_process(&message, event->process);
    event->reason = reasons[report->reason].code;
    event->rule = "network.allowed_hosts";
    event->activity_id = 5;
    if (report->kind == BROKER_REQUEST_DENIED) {
        char asked[HOST_NAME_SIZE];
        bool http = report->method[0] != '\0';
        bool valid = host_name_normalise(report->asked, strlen(report->asked), asked);
        event->class_id = RECORD_HTTP;
        event->method = http ? report->method : NULL;
        event->activity_id = http ? activity_of_method(report->method) : 99;
        event->activity_name = http ? report->method : "TLS";
        event->scheme = http ? "http" : "https";
        event->asked = valid ? report->asked : NULL;
        explain_request(report, &message);
        event->message = text_string(&message);
        denial_record(context, event);
        return;
    }
    explain_connection(report, &message, &remedy);
    event->message = text_string(&message);
    event->remedy = remedy.length > 0 ? text_string(&remedy) : NULL;
    denial_record(context, event);
}

/* A record that cannot be written is counted by the log. */
static void record_allowed(struct warden_context *context, const struct broker_report *report,
                           struct record_event *event) {
    if (context->plan->network_unobserved)
        return;
    text_owned struct text message = {0};
    memory_owned char *rule = rule_of(context, report, &event->rule_origin);
    event->rule = rule;
    append_process(&message, event->process);
    event->action = RECORD_ALLOWED;
    switch (report->kind) {
    case BROKER_OPENED:
        event->activity_id = 1;
        event->reason = "net.connection.opened";
        text_append(&message, " connected to ");
        append_place(&message, report);
        break;
    case BROKER_CLOSED:
        event->activity_id = 2;
        event->reason = "net.connection.closed";
        event->has_traffic = true;
        event->bytes_in = report->bytes_down > INT64_MAX / 2 ? INT64_MAX / 2 : report->bytes_down;
        event->bytes_out = report->bytes_up > INT64_MAX / 2 ? INT64_MAX / 2 : report->bytes_up;
        event->duration_ms = (int64_t)(report->duration_us / 1000);
        text_append(&message, " was connected to ");
        append_place(&message, report);
        text_format(&message, ": %llu bytes sent, %llu received", (unsigned long long)report->bytes_up,
                    (unsigned long long)report->bytes_down);
        if (report->reason != BROKER_REASON_NONE)
            text_append(&message,
                        "; it was closed because the policy that was put in force does not allow it");
        break;
    default:
        event->activity_id = 4;
        event->reason = "net.connection.failed";
        text_append(&message, " could not be connected to ");
        append_place(&message, report);
        text_format(&message, ", which is allowed: %s", report->text);
    }
    event->message = text_string(&message);
    error_ignore(record_write(context->log, event));
}

static void record_lost(struct warden_context *context, const struct broker_report *report) {
    memory_owned char *message =
        text_formatted("The broker of this container's network was lost%s%s%s.",
                       report->given_up ? ", and is not started again" : "; another one serves",
                       report->text[0] != '\0' ? ": " : "", report->text);
    struct record_event event = {.class_id = RECORD_FINDING,
                                 .activity_id = 1,
                                 .action = RECORD_OBSERVED,
                                 .reason = "broker.lost",
                                 .message = message,
                                 .subject = "broker",
                                 .rule = "network.allowed_hosts"};
    error_ignore(record_write(context->log, &event));
}

static void record_untold(struct warden_context *context, uint32_t count) {
    memory_owned char *message = text_formatted(
        "%u beginnings, ends or failures of allowed connections came faster than they could be recorded",
        count);
    struct record_event event = {.class_id = RECORD_FINDING,
                                 .activity_id = 1,
                                 .action = RECORD_OBSERVED,
                                 .reason = "log.suppressed",
                                 .message = message,
                                 .rule = "network.allowed_hosts",
                                 .rule_origin = context->policy_origin,
                                 .subject = "allowed connections"};
    error_ignore(record_write(context->log, &event));
}

static void record_suppressed(struct warden_context *context, const struct broker_report *report) {
    if (report->untold > 0)
        record_untold(context, report->untold);
    if (report->count == 0)
        return;
    memory_owned char *message = text_formatted(
        "%u further attempts to reach the network were denied faster than they could be recorded",
        report->count);
    struct record_event event = {.class_id = RECORD_FINDING,
                                 .activity_id = 1,
                                 .action = RECORD_DENIED,
                                 .reason = "log.suppressed",
                                 .message = message,
                                 .rule = "network.allowed_hosts",
                                 .rule_origin = context->policy_origin,
                                 .subject = "network",
                                 .suppressed = report->count};
    error_ignore(record_write(context->log, &event));
}

/* -- one report -- */

static void handle_connection(struct warden_context *context, const struct broker_report *report) {
    struct broker_observer *observer = observer_of(context);
    struct record_process process = {.uid = -1};
    struct opener **known = opener_place(observer, report);
    bool ended = report->kind == BROKER_CLOSED && *known != NULL;
    const struct denied_packet packet = packet_of(report);
    if (!ended)
        attribute(context, &packet, &process);
    struct places places;
    struct record_event event = event_of(report, &places, ended ? &(*known)->process : &process);
    switch (report->kind) {
    case BROKER_NAME_DENIED:
        record_name(context, report, &event);
        break;
    case BROKER_CONNECTION_DENIED:
    case BROKER_REQUEST_DENIED:
        record_denied(context, report, &event);
        break;
    case BROKER_OPENED:
        opener_remember(observer, report, &process);
        record_allowed(context, report, &event);
        break;
    default:
        record_allowed(context, report, &event);
    }
    if (ended)
        opener_forget(observer, known);
    record_process_clear(&process);
}

static void report_handle(struct warden_context *context, struct broker_report *report) {
    report->name[sizeof report->name - 1] = '\0';
    report->asked[sizeof report->asked - 1] = '\0';
    report->method[sizeof report->method - 1] = '\0';
    report->text[sizeof report->text - 1] = '\0';
    bool sane = report->reason < BROKER_REASON_COUNT &&
                (report->family == AF_INET || report->family == AF_INET6) &&
                (report->protocol == IPPROTO_TCP || report->protocol == IPPROTO_UDP) &&
                (report->upstream_family == 0 || report->upstream_family == AF_INET ||
                 report->upstream_family == AF_INET6);
    switch (report->kind) {
    case BROKER_READY:
        context->broker_ready = true;
        break;
    case BROKER_FAILED:
        report->given_up = 1;
        record_lost(context, report);
        break;
    case BROKER_LOST:
        record_lost(context, report);
        break;
    case BROKER_NAME_LEARNT:
        packets_learn(context, report->name, report->service_port);
        break;
    case BROKER_SUPPRESSED:
        record_suppressed(context, report);
        break;
    case BROKER_NAME_DENIED:
    case BROKER_CONNECTION_DENIED:
    case BROKER_REQUEST_DENIED:
    case BROKER_OPENED:
    case BROKER_CLOSED:
    case BROKER_CONNECT_FAILED:
        if (sane)
            handle_connection(context, report);
        break;
    default: /* nonsense */
        break;
    }
    const struct broker_noted noted = {.id = report->id};
    if (report->id != 0) /* not noted in time costs the process 100 ms */
        (void)!send(context->broker, &noted, sizeof noted, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* False when there is no report now; *ended when there will be none any more. */
static bool report_read(struct warden_context *context, bool *ended) {
    struct broker_report report;
    ssize_t length = recv(context->broker, &report, sizeof report, MSG_DONTWAIT);
    if (length < 0 && errno == EINTR)
        return true;
    if (length < 0 && errno == EAGAIN)
        return false;
    *ended = length <= 0;
    if (length == (ssize_t)sizeof report)
        report_handle(context, &report);
    return !*ended;
}

void broker_handle(struct warden_context *context) {
    bool ended = false;
    for (int i = 0; i < REPORTS_A_TURN && report_read(context, &ended); i++)
        ;
    if (!ended)
        return;
    const struct broker_report lost = {.given_up = 1, .text = "its keeper has ended"};
    record_lost(context, &lost);
    fd_close(context->broker);
    context->broker = -1;
}

void broker_farewell(struct warden_context *context) {
    if (context->broker < 0 || shutdown(context->broker, SHUT_WR) < 0)
        return;
    int64_t until = clock_ms(CLOCK_MONOTONIC) + FAREWELL_MS;
    for (bool ended = false; !ended;) {
        struct pollfd event = {.fd = context->broker, .events = POLLIN};
        int64_t left = until - clock_ms(CLOCK_MONOTONIC);
        if (left <= 0 || poll(&event, 1, (int)left) <= 0)
            break;
        (void)report_read(context, &ended);
    }
    fd_close(context->broker);
    context->broker = -1;
}
