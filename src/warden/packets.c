#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "egress/address.h"
#include "egress/names.h"
#include "policy/hosts.h"
#include "warden/observers.h"

/* One datagram holds one packet (a queue threshold of 1); the kernel never makes one larger than a page. */
#define DATAGRAM_SIZE 8192
/* As many in one turn as a burst of the rules' limit, so that the loop's other events wait a few milliseconds
 * at most. */
#define DATAGRAMS_A_TURN 64
#define COUNTERS_INTERVAL_MS 1000

struct packet_observer {
    bool bound;
    bool counters_closed;     /* the kernel does not let us read them */
    uint32_t next_sequence;   /* that the packet log owes us */
    uint64_t unshown;         /* denied - logged at the last look */
    uint64_t suppressed;      /* owed to the next record */
    int64_t counters_read_ms; /* when; 0 never */
    struct host_map *names;   /* of the policy's hosts; NULL until first needed, and where there are none */
    bool names_made;
};

static struct packet_observer *observer_of(struct warden_context *context) {
    if (context->packets == NULL)
        context->packets = memory_zeroed(sizeof *context->packets);
    return context->packets;
}

/* -- what to say -- */

static const char *protocol_name(int protocol, char room[24]) {
    switch (protocol) {
    case IPPROTO_TCP:
        return "tcp";
    case IPPROTO_UDP:
        return "udp";
    case IPPROTO_ICMP:
        return "icmp";
    case IPPROTO_ICMPV6:
        return "ipv6-icmp";
    case IPPROTO_IGMP:
        return "igmp";
    case IPPROTO_SCTP:
        return "sctp";
    case IPPROTO_UDPLITE:
        return "udplite";
    case IPPROTO_DCCP:
        return "dccp";
    default:
        snprintf(room, 24, "ip protocol %d", protocol);
        return room;
    }
}

static void append_process(struct text *message, const struct record_process *process) {
    if (process->name != NULL)
        text_format(message, "%s (pid %d)", process->name, (int)process->pid);
    else if (process->uid >= 0)
        text_format(message, "A process of uid %lld", (long long)process->uid);
    else
        text_append(message, "A process");
}

static struct host_map *names_make(const struct warden_plan *plan) {
    const struct policy_list lines = {.values = plan->hosts, .origins = plan->hosts_origins};
    struct host_map *names = NULL;
    /* Lines that create could read can be read here; without the map a record lacks a name. */
    error_ignore(host_map_make_after(&plan->names, &lines, &names));
    return names;
}

/* Of the addresses that stand for names: those of exact names follow from the policy, names below "*.name"
 * lines are learnt. NULL where there are none. */
static struct host_map *names_of(struct warden_context *context) {
    struct packet_observer *observer = observer_of(context);
    if (!observer->names_made && (context->plan->hosts.count > 0 || context->plan->names.count > 0))
        observer->names = names_make(context->plan);
    observer->names_made = true;
    return observer->names;
}

/* What was learnt stays true. */
void packets_change(struct warden_context *context) {
    struct packet_observer *observer = observer_of(context);
    struct host_map *old = observer->names;
    observer->names = NULL;
    observer->names_made = false;
    struct host_map *names = old == NULL ? NULL : names_of(context);
    for (size_t i = 0; names != NULL && i < host_map_learnt_count(old); i++) {
        struct host_entry entry = host_map_learnt(old, i);
        (void)host_map_import(names, entry.name, entry.slot);
    }
    host_map_free(old);
}

void packets_learn(struct warden_context *context, const char *name, uint16_t slot) {
    struct host_map *names = names_of(context);
    if (names != NULL)
        (void)host_map_import(names, name, slot); /* what no policy could have made is not taken */
}

static const char *name_of(struct warden_context *context, const struct denied_packet *packet) {
    struct host_map *names = names_of(context);
    return names == NULL ? NULL : host_map_name(names, packet->family, packet->destination);
}

/* The first line that is about the host, whatever its ports: -1 for none. */
static int line_about(const struct warden_context *context, const char *name,
                      const struct denied_packet *packet, struct policy_host *out) {
    for (size_t i = 0; i < context->plan->hosts.count; i++) {
        struct error *error = policy_host_read(context->plan->hosts.items[i], out);
        uint16_t port = error == NULL && out->ports_count > 0 ? out->ports[0] : 0;
        bool about = error == NULL && (name != NULL ? policy_host_matches_name(out, name, port)
                                                    : policy_host_matches_address(out, packet->family,
                                                                                  packet->destination, port));
        error_ignore(error); /* create has read it */
        if (about)
            return (int)i;
        policy_host_clear(out);
    }
    return -1;
}

/* A host that is allowed, at another port. False where it is not that. */
static bool explain_port(struct warden_context *context, const struct denied_packet *packet,
                         struct record_event *event, struct text *message, struct text *remedy) {
    struct policy_host host = {0};
    const char *name = name_of(context, packet);
    int line = packet->protocol == IPPROTO_TCP ? line_about(context, name, packet, &host) : -1;
    if (line < 0)
        return false;
    event->reason = "net.port.not_allowed";
    event->subject = name;
    event->rule = context->plan->hosts.items[line];
    text_format(message, "%s%s; network.allowed_hosts allows other ports of it",
                name != NULL ? ", which is " : "", name != NULL ? name : "");
    char digits[8];
    snprintf(digits, sizeof digits, "%u", packet->destination_port);
    struct error *full = policy_host_add_port(&host, digits);
    if (full == NULL) {
        memory_owned char *wider = policy_host_write(&host);
        text_format(remedy, "network: {allowed_hosts: [\"%s\"]}", wider);
    }
    error_ignore(full); /* no line can have more ports */
    policy_host_clear(&host);
    return true;
}

/* Fills reason, message and remedy. The strings belong to the two texts. */
static void explain(struct warden_context *context, const struct denied_packet *packet,
                    struct record_event *event, struct text *message, struct text *remedy) {
    char place[ADDRESS_TEXT_SIZE], room[24];
    enum address_kind kind = address_classify(packet->family, packet->destination);
    const char *protocol = protocol_name(packet->protocol, room);
    address_write(packet->family, packet->destination, packet->destination_port, place);
    append_process(message, event->process);
    bool tcp = packet->protocol == IPPROTO_TCP;
    bool name_query = packet_is_name_query(packet);
    if (tcp)
        text_format(message, " tried to connect to %s (tcp)", place);
    else if (packet->name[0] != '\0')
        text_format(message, " tried to resolve %s through %s (udp)", packet->name, place);
    else if (name_query)
        text_format(message, " tried to ask the name server %s (udp)", place);
    else
        text_format(message, " tried to send a packet to %s (%s)", place, protocol);

    if (kind == ADDRESS_METADATA) {
        event->reason = "net.address.metadata";
        text_append(message, ", a cloud metadata service, which gives out credentials");
    } else if (name_query) {
        event->reason = "dns.name.not_allowed";
        text_append(message, "; network.allowed_hosts does not name it");
        if (packet->name[0] != '\0') {
            event->class_id = RECORD_DNS;
            event->activity_id = 1; /* Query: there was no response */
            event->subject = packet->name;
            text_format(remedy, "network: {allowed_hosts: [\"%s\"]}", packet->name);
        }
    } else if (!tcp) {
        event->reason = "net.protocol.not_allowed";
        event->subject = name_of(context, packet);
        text_append(message, "; nothing but TCP can be allowed");
    } else if (explain_port(context, packet, event, message, remedy)) {
        ; /* said */
    } else if (name_of(context, packet) != NULL) {
        event->reason = "net.host.not_allowed";
        event->subject = name_of(context, packet);
        text_format(message, ", which is %s; network.allowed_hosts does not name it any more",
                    event->subject);
        text_format(remedy, "network: {allowed_hosts: [\"%s\"]}", event->subject);
    } else if (host_address_is_synthetic(packet->family, packet->destination)) {
        event->reason = "net.address.literal";
        text_append(message, ", an address that stands for no allowed host at this port");
    } else if (kind == ADDRESS_PRIVATE) {
        event->reason = "net.address.private";
        text_append(message, ", a private address; network.allowed_hosts does not name it");
        char plain[ADDRESS_TEXT_SIZE];
        address_write(packet->family, packet->destination, 0, plain);
        text_format(remedy, "network: {allowed_hosts: [{host: \"%s\", ports: [%u], private: true}]}", plain,
                    packet->destination_port);
    } else {
        event->reason = "net.address.literal";
        text_append(message, "; network.allowed_hosts does not name it");
        text_format(remedy, "network: {allowed_hosts: [\"%s\"]}", place);
    }
    event->message = text_string(message);
    event->remedy = remedy->length > 0 ? text_string(remedy) : NULL;
}

/* Nothing was denied: the first packet of a flow. Whether somebody answers is not known. */
static void record_let_out(struct warden_context *context, const struct denied_packet *packet,
                           struct record_event *event) {
    char place[ADDRESS_TEXT_SIZE];
    address_write(packet->family, packet->destination, packet->destination_port, place);
    text_owned struct text message = {0};
    append_process(&message, event->process);
    if (packet->protocol == IPPROTO_TCP)
        text_format(&message, " connected to %s", place);
    else
        text_format(&message, " sent a packet to %s (%s)", place, event->protocol);
    event->activity_id = 1;
    event->action = RECORD_ALLOWED;
    event->reason = "net.connection.opened";
    event->rule = "network.mode: open";
    event->rule_origin = context->policy_origin;
    event->message = text_string(&message);
    error_ignore(record_write(context->log, event)); /* counted by the log */
}

/* Whoever listens there, for a connection from outside: the socket that the packet would have come to. */
static void attribute_listener(struct warden_context *context, const struct denied_packet *packet,
                               struct record_process *out) {
    struct denied_packet answer = *packet;
    memcpy(answer.source, packet->destination, sizeof answer.source);
    memcpy(answer.destination, packet->source, sizeof answer.destination);
    answer.source_port = packet->destination_port;
    answer.destination_port = packet->source_port;
    attribute(context, &answer, out);
}

/* No action of the workload: it never ends the container (on_denied_action: stop), or anybody outside could.
 */
static void record_inbound(struct warden_context *context, const struct denied_packet *packet,
                           struct record_event *event) {
    char from[ADDRESS_TEXT_SIZE], to[ADDRESS_TEXT_SIZE];
    address_write(packet->family, packet->source, 0, from);
    address_write(packet->family, packet->destination, packet->destination_port, to);
    text_owned struct text message = {0};
    text_format(&message,
                packet->protocol == IPPROTO_TCP ? "%s tried to connect to %s" : "%s sent a packet to %s",
                from, to);
    text_format(&message, " (%s), where ", event->protocol);
    if (event->process->name != NULL)
        text_format(&message, "%s (pid %d) listens", event->process->name, (int)event->process->pid);
    else
        text_append(&message, "nobody is known to listen");
    event->inbound = true;
    event->action = RECORD_DENIED;
    event->reason = "net.inbound.not_allowed";
    event->rule = "network.inbound: deny";
    event->rule_origin = context->policy_origin;
    event->remedy = "network: {inbound: allow}";
    event->message = text_string(&message);
    error_ignore(record_write(context->log, event)); /* counted by the log */
}

/* -- one packet -- */

static void packet_handle(const struct denied_packet *packet, void *data) {
    struct warden_context *context = data;
    struct packet_observer *observer = context->packets;
    observer->bound = true;
    /* Modulo 2^32, as the kernel counts. */
    observer->suppressed += (uint32_t)(packet->log_sequence - observer->next_sequence);
    observer->next_sequence = packet->log_sequence + 1;

    /* The process first: the reset takes the socket away, and with it the only trace of who asked. */
    struct record_process process;
    if (packet->inbound)
        attribute_listener(context, packet, &process);
    else
        attribute(context, packet, &process);
    /* A reset that cannot be sent costs the workload a second, until its SYN comes again and the kernel
     * answers. */
    if (packet->held)
        error_ignore(packet_reset(&context->wall, packet));

    char destination[ADDRESS_TEXT_SIZE], source[ADDRESS_TEXT_SIZE], room[24];
    address_write(packet->family, packet->destination, 0, destination);
    address_write(packet->family, packet->source, 0, source);
    struct record_event event = {.class_id = RECORD_NETWORK,
                                 .activity_id = 5,
                                 .rule = context->plan->hosts.count > 0 ? "network.allowed_hosts"
                                                                        : "network.allowed_hosts: []",
                                 .process = &process,
                                 .address = destination,
                                 .port = packet->destination_port,
                                 .source_address = source,
                                 .source_port = packet->source_port,
                                 .protocol = protocol_name(packet->protocol, room),
                                 .protocol_number = packet->protocol,
                                 .suppressed = observer->suppressed};
    observer->suppressed = 0;
    if (packet->let_out) {
        record_let_out(context, packet, &event);
    } else if (packet->inbound) {
        record_inbound(context, packet, &event);
    } else {
        text_owned struct text message = {0}, remedy = {0};
        explain(context, packet, &event, &message, &remedy);
        denial_record(context, &event);
    }
    record_process_clear(&process);
}

/* What the rules denied above their rate, since the last look. */
static void counters_look(struct warden_context *context, bool now) {
    struct packet_observer *observer = context->packets;
    int64_t time = clock_ms(CLOCK_MONOTONIC);
    if (observer->counters_closed || context->wall.rules < 0 ||
        (!now && observer->counters_read_ms != 0 && time - observer->counters_read_ms < COUNTERS_INTERVAL_MS))
        return;
    uint64_t denied = 0, logged = 0;
    struct error *error =
        wall_counters_read(context->wall.rules, context->plan->network_open, &denied, &logged);
    if (error != NULL) {
        observer->counters_closed = true;
        error_free(error);
        return;
    }
    uint64_t unshown = denied > logged ? denied - logged : 0;
    /* Counters restart where the table was made anew. */
    observer->suppressed += unshown >= observer->unshown ? unshown - observer->unshown : unshown;
    observer->unshown = unshown;
    observer->counters_read_ms = time;
}

void packets_bind(struct warden_context *context) {
    struct packet_observer *observer = observer_of(context);
    if (observer->bound || context->wall.packet_log < 0)
        return;
    /* What was denied unseen until now was another warden's to tell. */
    counters_look(context, true);
    observer->suppressed = 0;
    error_ignore(
        packet_log_bind(context->wall.packet_log, &observer->bound)); /* tried again at the next call */
}

void packets_handle(struct warden_context *context) {
    observer_of(context);
    counters_look(context, false);
    for (int i = 0; i < DATAGRAMS_A_TURN; i++) {
        uint8_t bytes[DATAGRAM_SIZE];
        struct sockaddr_nl sender = {0};
        socklen_t sender_length = sizeof sender;
        ssize_t length = recvfrom(context->wall.packet_log, bytes, sizeof bytes, MSG_DONTWAIT,
                                  (struct sockaddr *)&sender, &sender_length);
        /* ENOBUFS: the queue was full; the gap in the sequence says how many were lost. */
        if (length < 0 && (errno == EINTR || errno == ENOBUFS))
            continue;
        if (length <= 0)
            return;
        if (sender.nl_pid != 0) /* not from the kernel */
            continue;
        unsigned malformed = 0; /* leaves a gap in the sequence too */
        packet_log_parse(bytes, (size_t)length, packet_handle, context, &malformed);
    }
}

void packets_close(struct warden_context *context) {
    struct packet_observer *observer = context->packets;
    if (observer == NULL)
        return;
    if (observer->bound)
        counters_look(context, true);
    if (observer->suppressed > 0 && context->log != NULL) {
        text_owned struct text message = {0};
        bool open = context->plan->network_open;
        text_format(&message,
                    "%llu further attempts to reach the network were %s faster than they could be recorded",
                    (unsigned long long)observer->suppressed, open ? "made" : "denied");
        struct record_event event = {.class_id = RECORD_FINDING,
                                     .activity_id = 1,
                                     .action = open ? RECORD_OBSERVED : RECORD_DENIED,
                                     .reason = "log.suppressed",
                                     .message = text_string(&message),
                                     .rule = open ? "network.mode: open" : "network.allowed_hosts: []",
                                     .rule_origin = context->policy_origin,
                                     .subject = "network",
                                     .suppressed = observer->suppressed};
        error_ignore(record_write(context->log, &event));
    }
    host_map_free(observer->names);
    free(observer);
    context->packets = NULL;
}
