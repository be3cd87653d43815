/* What passes between the warden and the broker: fixed structures over SOCK_SEQPACKET. The warden believes
 * nothing of a report but what it can check, and nothing in it can allow anything. */
#pragma once

#include <stdint.h>

#include "base/error.h"

/* -- from the warden -- */

/* First the sockets (broker_sockets_send); then only that a report is taken care of, and the process may get
 * its answer. */
struct broker_noted {
    uint32_t id;
};

/* -- from the broker and its keeper -- */

enum broker_report_kind {
    BROKER_READY = 1,         /* serves */
    BROKER_FAILED,            /* cannot begin: `text` says why */
    BROKER_LOST,              /* the broker has ended and is started again, or `given_up` */
    BROKER_NAME_DENIED,       /* a name that is not allowed was asked for */
    BROKER_CONNECTION_DENIED, /* before any byte of it went anywhere */
    BROKER_REQUEST_DENIED,    /* by the host that it names: of TLS (SNI) or HTTP */
    BROKER_OPENED,            /* connected to the host */
    BROKER_CLOSED,            /* `reason` BROKER_REASON_NAME: because another policy was put in force */
    BROKER_CONNECT_FAILED,    /* the host is allowed, and did not answer: nothing was denied */
    BROKER_NAME_LEARNT, /* `name`, below a "*.name" line, has the address with the slot service_port (names.h)
                         */
    BROKER_SUPPRESSED   /* what was not reported one by one */
};

enum broker_reason {
    BROKER_REASON_NONE,
    BROKER_REASON_NAME,     /* dns.name.not_allowed, net.host.not_allowed */
    BROKER_REASON_PORT,     /* net.port.not_allowed */
    BROKER_REASON_LITERAL,  /* net.address.literal */
    BROKER_REASON_PRIVATE,  /* net.address.private: what the name resolves to */
    BROKER_REASON_METADATA, /* net.address.metadata */
    BROKER_REASON_SNI,      /* net.sni.mismatch */
    BROKER_REASON_HOST,     /* net.http.host_mismatch */
    BROKER_REASON_PROTOCOL, /* net.protocol.not_allowed: what cannot be judged */
    BROKER_REASON_LIMIT,    /* too many connections or names at once */
    BROKER_REASON_COUNT
};

struct broker_report {
    uint32_t kind;
    uint32_t id;         /* to be answered by BROKER_NOTED; 0: by nothing */
    uint32_t reason;     /* enum broker_reason */
    uint32_t line;       /* of network.allowed_hosts that decided, counted from 1; 0: none */
    uint32_t generation; /* of the plan whose line that is */
    uint32_t count;      /* BROKER_SUPPRESSED: of denials */
    uint32_t untold;     /* BROKER_SUPPRESSED: of what became of allowed connections */
    uint8_t family;      /* of client and service: AF_INET, AF_INET6 */
    uint8_t protocol;
    uint8_t upstream_family; /* 0: none */
    uint8_t given_up;        /* BROKER_LOST */
    /* The client's end, and where it meant to go: network order, ports in host order. */
    uint8_t client[16], service[16], upstream[16];
    uint16_t client_port, service_port, upstream_port, query_type;
    uint64_t bytes_up, bytes_down, duration_us; /* BROKER_CLOSED */
    char name[256];                             /* the name that the service stands for */
    char asked[256]; /* BROKER_REQUEST_DENIED: the host that the request names; "" for none */
    char method[24]; /* BROKER_REQUEST_DENIED over HTTP */
    char text[256];  /* BROKER_FAILED, BROKER_CONNECT_FAILED: why */
};
