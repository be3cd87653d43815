/* What the runtime and its helper for systemd say to each other: one JSON document a message over a
 * SOCK_SEQPACKET socket, which is the helper's standard input. The runtime is static and Debian has no static
 * libsystemd, so the bus is spoken by a dynamic program that is started only for a container of the systemd
 * driver. */
#pragma once

#include "libocispec/schema.h"

#define SYSTEMD_HELPER "pinfold-systemd"
#define SYSTEMD_MESSAGE_MAX (128 * 1024)

/* A property of a unit, typed as on D-Bus. */
struct systemd_property {
    char *name;
    char *type;                /* a D-Bus type: one of b y n q i u x t d s, an array of one, or a(ss) */
    struct string_list values; /* numbers in decimal, booleans as true and false; for a(ss) flattened pairs */
};
struct systemd_properties {
    struct systemd_property *items;
    size_t items_count;
};
void systemd_properties_clear(struct systemd_properties *properties);
#define systemd_properties_owned __attribute__((cleanup(systemd_properties_clear)))

#define SYSTEMD_START "start"   /* unit, slice, description, pid, properties: makes the scope */
#define SYSTEMD_STOP "stop"     /* unit */
#define SYSTEMD_SET "set"       /* unit, properties */
#define SYSTEMD_ATTACH "attach" /* unit, pid */

struct systemd_request {
    char *operation;
    struct string_list addresses; /* of the bus, the first that can be reached is used */
    char *unit;
    char *slice;
    char *description;
    uint32_t pid;
    struct systemd_properties properties;
};
extern const struct schema systemd_request_schema;

/* An empty `error` is success. */
struct systemd_reply {
    char *error;
    char *error_name; /* "org.freedesktop.systemd1.UnitExists" */
};
extern const struct schema systemd_reply_schema;
