/* What a client says before anything of it goes to the host: is it for the name that it connected to? */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "broker/report.h"
#include "egress/hello.h"
#include "egress/http.h"

#define INSPECT_NAMES_MAX 8

enum inspect_kind {
    INSPECT_TLS,         /* port 443: nothing but TLS */
    INSPECT_HTTP,        /* every request's Host */
    INSPECT_HTTP_OR_TLS, /* port 80, until the first byte */
    INSPECT_ANYTHING /* another port, until its first bytes or its first line: what begins as TLS or HTTP does
                        is judged as such */
};

struct inspection {
    enum inspect_kind kind;
    const char *name; /* borrowed, as are the next: the one that the client named, once it has */
    const char *names[INSPECT_NAMES_MAX]; /* names that have the same address by the engine's hosts file */
    size_t names_count;
    uint16_t port;
    bool begun, passed; /* bytes have come; some were let through */
    bool awaits_answer; /* of the host: until then nothing is read from the client */
    struct text held;   /* bytes that came and may not be forwarded yet */
    union {
        struct hello hello;
        struct http_reader http;
    };
};

enum inspect_verdict {
    INSPECT_HOLD,   /* nothing new may be forwarded */
    INSPECT_PASS,   /* what is held, and then the first *pass bytes; the rest is to be held */
    INSPECT_ENOUGH, /* the same, and everything that comes after */
    INSPECT_DENY
};
/* What there is to say about a denial. */
struct inspect_denial {
    enum broker_reason reason;
    const char *fault; /* in words, or NULL: the name is another one */
};

/* Reads `length` more bytes, which may be changed (http.h). */
enum inspect_verdict inspect_feed(struct inspection *inspection, uint8_t *bytes, size_t length, size_t *pass,
                                  struct inspect_denial *denial);
/* What the host says, while inspection->awaits_answer; it is forwarded in any case. INSPECT_PASS: the client
 * is to say it again, what is held is to be fed anew. INSPECT_ENOUGH: what is held may go, and all that
 * comes. INSPECT_DENY: the host does not speak TLS, and nothing more goes to it. */
enum inspect_verdict inspect_answer(struct inspection *inspection, const uint8_t *bytes, size_t length);
/* Whether the client may end its stream here; if not, what is held is for nobody. */
bool inspect_may_end(const struct inspection *inspection);
/* The host that the client named; "" for none. */
const char *inspect_asked(const struct inspection *inspection);
/* What the client is told when it is refused, "" for nothing; returns the length. */
size_t inspect_refusal(const struct inspection *inspection, const struct inspect_denial *denial, char *out,
                       size_t size);
/* The first call replaces the name, the next ones add to it: the address stands for each of them. Borrowed.
 */
void inspect_expect(struct inspection *inspection, const char *name);
void inspect_free(struct inspection *inspection);
