/* DNS as the broker speaks it (RFC 1035, 6891, 7766, 8914): reads one question from hostile bytes and writes
 * the answer. Pure, allocates nothing. (Fuzzed.) */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "egress/names.h"

#define DNS_QUERY_MAX                                                                                        \
    1232 /* a question with every option that clients send; also the most over UDP (RFC 9715) */
#define DNS_ANSWER_MAX 1232     /* what dns_answer_write needs at the most */
#define DNS_NAME_TEXT_SIZE 1024 /* 255 bytes, each as \DDD, and NUL */

enum dns_type {
    DNS_TYPE_A = 1,
    DNS_TYPE_PTR = 12,
    DNS_TYPE_AAAA = 28,
    DNS_TYPE_OPT = 41,
    DNS_TYPE_SVCB = 64,
    DNS_TYPE_HTTPS = 65,
    DNS_TYPE_ANY = 255
};
#define DNS_CLASS_IN 1

enum dns_rcode {
    DNS_NOERROR = 0, /* with no record: NODATA */
    DNS_FORMERR = 1,
    DNS_SERVFAIL = 2,
    DNS_NXDOMAIN = 3,
    DNS_NOTIMP = 4,
    DNS_REFUSED = 5,
    DNS_BADVERS = 16 /* EDNS only */
};

/* Extended DNS Errors, RFC 8914. */
#define DNS_EDE_NONE (-1)
#define DNS_EDE_BLOCKED 15
#define DNS_EDE_PROHIBITED 18

/* One question. */
struct dns_query {
    uint16_t id;
    uint16_t type, class;
    bool recursion_desired, checking_disabled;
    bool edns;         /* has an OPT record */
    bool dnssec_ok;    /* its DO bit, which an answer repeats */
    uint16_t udp_size; /* what the client takes over UDP: 512 without EDNS */

    /* The name as it was asked, case and all: clients compare it (draft-vixie-dnsext-dns0x20). */
    uint8_t question[255 + 4]; /* name, type, class */
    uint16_t question_length;  /* 0: there was none that could be read */
    char
        name[DNS_NAME_TEXT_SIZE]; /* printable, without the last dot, other bytes as \DDD; "." for the root */
    bool is_host;                 /* host_name_normalise took it */
    char host[HOST_NAME_SIZE];    /* then this is it, else "" */
};

enum dns_verdict {
    DNS_QUESTION, /* *query is whole */
    DNS_FAULTY,   /* answer *rcode, with what there is of *query; nothing of it may be believed but its id */
    DNS_SILENCE   /* no answer: too short for one, or itself an answer (two servers would talk for ever) */
};

/* Reads one message of `length` bytes, never past them. Refused with FORMERR: other than one question,
 * records in the answer or authority section, any additional record but one OPT, a compression pointer (there
 * is nothing before a question's name that it could mean), a label longer than 63 or of a reserved type, a
 * name beyond 255 bytes, options that do not fill the OPT record, bytes after the end. NOTIMP: any opcode but
 * QUERY. BADVERS: EDNS beyond version 0. */
enum dns_verdict dns_query_parse(const void *bytes, size_t length, struct dns_query *query,
                                 enum dns_rcode *rcode);

/* The address that a PTR question is about ("4.3.2.1.in-addr.arpa", 32 nibbles below ip6.arpa); false: none.
 */
bool dns_query_reverse(const struct dns_query *query, int *family, uint8_t address[16]);

/* What is answered: at most one record. */
struct dns_answer {
    enum dns_rcode rcode;
    uint32_t ttl;           /* of the record, seconds */
    const uint8_t *ipv4;    /* 4 bytes: an A record; or NULL */
    const uint8_t *ipv6;    /* 16 bytes: an AAAA record; or NULL */
    const char *pointer;    /* a host name: a PTR record; or NULL */
    int extended_error;     /* DNS_EDE_NONE, DNS_EDE_BLOCKED, ...: told to clients that have EDNS */
    const char *error_text; /* with it, UTF-8; NULL: none */
};
#define DNS_ANSWER(code) ((struct dns_answer){.rcode = (code), .ttl = 60, .extended_error = DNS_EDE_NONE})

/* Writes the answer, at most `size` bytes (DNS_ANSWER_MAX, less for UDP: dns_udp_size), and returns its
 * length. What does not fit is left out: first the error's text, then the error, then the record, with TC
 * set, whereupon the client comes again over TCP. 0 when not even the header fits. */
size_t dns_answer_write(const struct dns_query *query, const struct dns_answer *answer, uint8_t *out,
                        size_t size);
/* The most that goes back over UDP: what the client says, within 512 and DNS_ANSWER_MAX. */
size_t dns_udp_size(const struct dns_query *query);

/* DNS over TCP (RFC 7766): messages with two bytes of length before each, cut anywhere, one after the other.
 * {0} to begin with; one for each connection that speaks DNS. */
struct dns_stream {
    uint16_t have;
    uint8_t bytes[2 + DNS_QUERY_MAX];
};

enum dns_stream_verdict {
    DNS_STREAM_MORE,    /* all bytes are taken */
    DNS_STREAM_MESSAGE, /* a whole message: dns_stream_message, until the next feed */
    DNS_STREAM_BAD      /* a length that no question has: close */
};
/* Takes bytes up to the end of a message; *used says how many. Call again with the rest. */
enum dns_stream_verdict dns_stream_feed(struct dns_stream *stream, const uint8_t *bytes, size_t length,
                                        size_t *used);
const uint8_t *dns_stream_message(const struct dns_stream *stream, size_t *length);
