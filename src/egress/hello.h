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
    HELLO_FAULT_ANOTHER, /* the second ClientHello names another server */
    HELLO_FAULT_ANSWER   /* what the server says is not TLS */
};
/* The fault in words, for a record: "the connection does not begin as TLS does" ... */
const char *hello_fault_text(enum hello_fault fault);

/* {0} to begin with. What a caller reads stands first. */
struct hello {
    enum hello_fault fault;
    bool named;       /* false: no server_name */
    bool encrypted;   /* has encrypted_client_hello, in earnest or (most browsers, always) as grease */
    uint16_t version; /* legacy_version */
    char name[HOST_NAME_SIZE]; /* host_name_normalise'd; "" unless named */

    /* The reader's own. */
    uint8_t state;         /* the part of the message that comes next */
    uint8_t header_length; /* bytes of the record's header that were read */
    uint8_t record_type;
    uint8_t step;         /* bytes of a number that were read */
    uint16_t record_left; /* bytes of the record */
    uint16_t extension_type;
    uint8_t name_length;
    bool second; /* after a HelloRetryRequest */
    bool first_named;
    uint32_t taken;        /* bytes of the stream */
    uint32_t value;        /* of a number */
    uint32_t part_left;    /* bytes of the part */
    uint32_t message_left; /* bytes of the ClientHello */
    char first[HOST_NAME_SIZE];
};

enum hello_verdict {
    HELLO_NEED_MORE, /* all bytes are taken */
    HELLO_DONE,
    HELLO_RETRY, /* hello_answer_feed only */
    HELLO_BAD    /* `fault`: feed nothing more */
};
/* Takes the next bytes of the client's stream, at most to the end of the ClientHello; *used says how many.
 * HELLO_NEED_MORE: hold them, forward nothing. HELLO_DONE: `named` and `name` say which server it is for; if
 * it is the right one, what is held and the *used bytes may be forwarded. The rest is to be held, and no more
 * read, until hello_answer_feed has said so. */
enum hello_verdict hello_feed(struct hello *hello, const uint8_t *bytes, size_t length, size_t *used);

/* The server's answer, which is forwarded whatever this says of it. It has to be looked at because a server
 * may ask for the ClientHello again (HelloRetryRequest); the second one comes in the clear as well, and a
 * server need not compare its name with the first one's. HELLO_NEED_MORE: do not read from the client yet.
 * HELLO_DONE: from here on relay both ways, nothing can be seen any more. HELLO_RETRY: give the client's next
 * bytes to hello_feed as before, whose HELLO_DONE (it names the same server: else HELLO_BAD with
 * HELLO_FAULT_ANOTHER) then ends it all. HELLO_BAD: the server does not speak TLS. */
enum hello_verdict hello_answer_feed(struct hello *hello, const uint8_t *bytes, size_t length);

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
