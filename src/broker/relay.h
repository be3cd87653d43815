/* One relayed connection: relay.c begins and ends it, flow.c moves its bytes. */
#pragma once

#include "base/text.h"
#include "broker/inspect.h"
#include "broker/parts.h"

/* Bytes that the other side did not take at once; there is memory only while there are any. */
struct pending {
    char *bytes;
    size_t offset, length;
};

enum stage {
    STAGE_CHECKING, /* what the client says is read and held */
    STAGE_DIALLING, /* what it says waits for the host */
    STAGE_RELAYING,
    STAGE_REFUSING, /* the warden looks at the process */
    STAGE_DRAINING  /* the client was told why; it is to read that before the connection goes */
};

struct connection {
    struct relay *relay;
    struct connection *next, *previous;
    enum stage stage;
    struct source client, upstream;
    struct pending to_client, to_upstream;
    bool client_ended, upstream_ended; /* said its last word */
    bool upstream_shut, client_shut;   /* was told so of the other one */
    struct timer timer;
    struct inspection *inspection; /* NULL: nothing is judged, or not any more */
    struct inspect_denial denial;
    struct dial *dial;
    char *name;      /* NULL: an address of the policy */
    bool is_literal; /* the service is dialled as it is: an address of the policy, or an alias of the name */
    int family;
    uint8_t client_address[16], service[16];
    uint16_t client_port, port;
    struct allowed allowed;
    uint32_t generation; /* of the plan that allowed it */
    bool withdrawn;      /* a later one does not */
    struct held held;
    bool speaks; /* tells the client why */
    bool opened;
    struct address upstream_address;
    uint64_t bytes_up, bytes_down;
    int64_t opened_us;
    size_t kept; /* bytes of it that the relay's sum has */
};

struct relay {
    struct broker *broker;
    struct source listening[2];
    struct timer breath; /* no descriptor is left: accept again in a while */
    struct connection *connections;
    size_t count;
    size_t kept; /* bytes that wait in all connections, for the other side or to be judged */
};

/* What may wait: each connection has its bound, some 100 KiB, but there may be thousands of them, and the
 * broker is not in the container's memory cgroup. */
#define RELAY_KEPT_MAX (64u * 1024 * 1024)

/* flow.c */
void flow_client_ready(struct source *source, uint32_t events);
void flow_upstream_ready(struct source *source, uint32_t events);
/* The host is connected: what waits for it goes, and both sides are watched. */
void flow_begin(struct connection *connection);
/* Watches the client for what it says first. */
bool flow_listen(struct connection *connection);

/* relay.c */
void connection_dial(struct connection *connection);
void connection_deny(struct connection *connection, enum broker_report_kind kind, enum broker_reason reason);
/* `reset`: the client is to notice that something went wrong. */
void connection_close(struct connection *connection, bool reset);
