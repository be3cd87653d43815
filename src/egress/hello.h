/* The client's first words on a TLS connection (RFC 8446 section 4.1.2, RFC 5246 7.4.1.2, RFC 6066 section
 * 3): which server it names. Reads the stream as it comes, byte by byte if need be, and keeps of it no more
 * than the name. Pure, allocates nothing. (Fuzzed.) */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "egress/names.h"

#define HELLO_MAX 65536 /* bytes on the wire, record headers and all; what a caller may have to hold */

enum hello_fault {
    HELLO_FAULT_NONE,
    HELLO_FAULT_NOT_TLS,   /* does not begin as TLS does (SSL 2 and 3 included) */
    HELLO_FAULT_MALFORMED, /* TLS, but no ClientHello, or one whose lengths do not agree */
    HELLO_FAULT_TOO_LONG,
    HELLO_FAULT_NAME, /* server_name: two names, another kind of name, or bytes that are no host name: NUL, a
                         last dot, an address */
    HELLO_FAULT_ANOTHER /* hello_watch: a second ClientHello that names another server */
};
/* The fault in words, for a record: "the ClientHello names two servers" ... */
const char *hello_fault_text(enum hello_fault fault);

/* {0} to begin with. What a caller reads stands first. */
struct hello {
    enum hello_fault fault;
    bool named;       /* false: no server_name */
    bool encrypted;   /* has encrypted_client_hello, in earnest or (most browsers, always) as grease */
    uint16_t version; /* legacy_version */
    char name[HOST_NAME_SIZE]; /* host_name_normalise'd; "" unless named */

    /* The reader's own. */
    uint8_t state, step;
    bool second;     /* this is the second one */
    bool ciphertext; /* what is not a ClientHello now is ciphertext: no fault */
    bool plain;      /* nothing of the stream can be a ClientHello any more */
    uint8_t record_type;
    uint16_t record_left;
    uint32_t taken, message_left, part_left, inner_left, value;
    uint16_t extension_type, name_length;
    char first[HOST_NAME_SIZE];
    bool first_named;
};

enum hello_verdict {
    HELLO_NEED_MORE, /* all bytes are taken: hold them */
    HELLO_DONE,      /* the ClientHello is whole: `named`, `name` */
    HELLO_BAD        /* `fault` */
};
/* Takes the next bytes of the stream, at most to the end of the ClientHello; *used says how many. After
 * HELLO_DONE everything held and those *used bytes may be forwarded if the name is right, and the rest goes
 * to hello_watch. After HELLO_BAD nothing more is to be fed. */
enum hello_verdict hello_feed(struct hello *hello, const uint8_t *bytes, size_t length, size_t *used);

/* A server may answer a ClientHello with a HelloRetryRequest, and takes the name of the second one, which
 * comes in the clear as well, without comparing: every byte of the client's goes through here for the life of
 * the connection (records are skipped by their headers, or at once when no second one can come any more).
 * *used bytes are taken. HELLO_DONE: what is held and these may be forwarded. HELLO_NEED_MORE: within what
 * may be a second ClientHello: hold them (HELLO_MAX). HELLO_BAD: it names another server. Call again with the
 * rest. */
enum hello_verdict hello_watch(struct hello *hello, const uint8_t *bytes, size_t length, size_t *used);

/* TLS alerts, RFC 8446 section 6. */
enum hello_alert {
    HELLO_ALERT_ACCESS_DENIED = 49,
    HELLO_ALERT_DECODE_ERROR = 50,
    HELLO_ALERT_UNRECOGNIZED_NAME = 112
};
#define HELLO_ALERT_SIZE 7
/* The fatal alert that the client is sent before the close, in the record version that it understands. */
void hello_alert_write(const struct hello *hello, enum hello_alert alert, uint8_t out[HELLO_ALERT_SIZE]);
/* The alert that says best what was wrong: for a fault, or (HELLO_FAULT_NONE) for a name that is not allowed.
 */
enum hello_alert hello_alert_for(enum hello_fault fault);
