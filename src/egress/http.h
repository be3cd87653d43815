/* The requests of an HTTP/1 connection (RFC 9110, 9112): whom each is for, and where it ends. Reads the
 * client's stream as it comes, keep-alive and pipelined, and is stricter than any server: what two servers
 * could read in two ways is refused, so that nobody after us sees a request that was not judged here. Pure,
 * allocates nothing. (Fuzzed.) */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "egress/names.h"

#define HTTP_HEAD_MAX 65536 /* bytes of a head, or of the trailers; what a caller may have to hold */
#define HTTP_METHOD_SIZE 24

enum http_fault {
    HTTP_FAULT_NONE,
    HTTP_FAULT_NOT_HTTP,  /* does not begin with a method, a target and HTTP/1.0 or HTTP/1.1 */
    HTTP_FAULT_HTTP2,     /* the preface of HTTP/2 */
    HTTP_FAULT_CONNECT,   /* a method that makes a tunnel */
    HTTP_FAULT_UPGRADE,   /* to anything but h2c, which is made harmless instead (below) */
    HTTP_FAULT_TARGET,    /* neither "/...", "http://host/..." nor, for OPTIONS, "*" */
    HTTP_FAULT_HOST,      /* none (HTTP/1.1), two, userinfo, a port that is none, what is no host name */
    HTTP_FAULT_AUTHORITY, /* the target's host is not the one of Host */
    HTTP_FAULT_FRAMING, /* Content-Length and Transfer-Encoding: both, twice, or another value than digits and
                           "chunked"; a chunk's size that is no number */
    HTTP_FAULT_LINE, /* a bare CR or LF, NUL or another control byte, a folded line, a blank before the colon,
                        an empty field name */
    HTTP_FAULT_TOO_LONG
};
/* The fault in words, for the record and the 403. */
const char *http_fault_text(enum http_fault fault);

/* {0} to begin with. What a caller reads stands first; of the request whose head was read last, and after a
 * fault as far as it was read. */
struct http_reader {
    enum http_fault fault;
    uint32_t requests;             /* whole heads so far */
    char method[HTTP_METHOD_SIZE]; /* "GET" */
    bool has_host;                 /* HTTP/1.0 may come without */
    uint16_t host_port;            /* 0: not given */
    char host[HOST_NAME_SIZE]; /* host_name_normalise'd; after HTTP_FAULT_HOST what was given, made printable
                                */

    /* The reader's own. */
    uint8_t state, field;
    uint8_t name_length; /* of `method`, `host` or `authority` */
    uint8_t port_digits; /* 0: no colon yet; else one more than there are */
    uint8_t word_length; /* of `word` */
    uint8_t minor;       /* of HTTP/1.x */
    bool blank_after;    /* a blank after what there is of the value */
    bool value_begun;    /* something but blanks */
    bool has_length, has_coding, has_authority, trailers, skipped;
    uint16_t authority_port;
    uint32_t taken;                 /* bytes of this head, of the trailers, of a chunk's line */
    uint64_t body_left;             /* of a body or a chunk */
    char word[24];                  /* a field's name, a short value, a scheme */
    char authority[HOST_NAME_SIZE]; /* of an absolute-form target */
};

enum http_verdict {
    HTTP_NEED_MORE, /* all bytes are taken: hold them */
    HTTP_REQUEST,   /* a head is whole: judge it (http_host_is). If it is right, what is held and the *used
                       bytes may   be forwarded; go on with the rest. If not, nothing of it */
    HTTP_BODY,      /* what is held and the *used bytes belong to the request that was judged: forward them */
    HTTP_BAD        /* `fault`: nothing that is held may be forwarded, nothing more is to be fed */
};
/* Takes the next bytes of the client's stream; *used says how many. Call again with the rest. The value of
 * "Upgrade: h2c", which Java's client sends with its first request, is overwritten in place with '-', which
 * no server knows: so `bytes` is not const, and what is to be held is what stands there after the call. */
enum http_verdict http_feed(struct http_reader *reader, uint8_t *bytes, size_t length, size_t *used);
/* Is the client between two requests, with nothing held? (An end of its stream is clean here only.) */
bool http_is_between(const struct http_reader *reader);

/* Is the request for this host? False without a Host. `port` is the connection's; a Host without a port means
 * 80. */
bool http_host_is(const struct http_reader *reader, const char *name, uint16_t port);

/* Writes a whole 403 answer (Connection: close) with one line of text, and returns its length, at most
 * `size`. */
#define HTTP_REFUSAL_SIZE 768
size_t http_refusal_write(const char *text, char *out, size_t size);
