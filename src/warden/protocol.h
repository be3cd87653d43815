/* Messages between the warden and init, start, exec: one fixed structure over SOCK_SEQPACKET, answered by
 * error_send. */
#pragma once

#include <stdint.h>

enum warden_message_kind {
    WARDEN_SOCKETS = 1,
    WARDEN_DECOYS,
    WARDEN_WATCH,
    WARDEN_LISTENER,
    WARDEN_CHANGE,
    WARDEN_STARTED,
    WARDEN_BROKER_SOCKETS,
    WARDEN_INSIDE,
    WARDEN_BROKER, /* the channel to a keeper that was started later, whose broker serves */
    WARDEN_POLICY, /* a sealed struct warden_policy: what is about to be put in force */
    WARDEN_APPLIED /* it is */
};

#define WARDEN_SOCKET_COUNT 5
#define WARDEN_SOCKET_NAME "warden.sock"

struct warden_message {
    uint32_t kind;
    uint32_t present; /* WARDEN_SOCKETS, WARDEN_BROKER_SOCKETS: bit N is set where the Nth exists */
    uint32_t mark;    /* WARDEN_BROKER_SOCKETS: as in struct broker_sockets */
    uint32_t bound;
    char exec_id[128];
    char reason[64];
    char subject[256];
    char message[1024];
    char rule[256];
    char remedy[256];
};
