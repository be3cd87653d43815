#include "broker/inspect.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TLS_HANDSHAKE 0x16
#define TLS_MAJOR 0x03
/* Of a first line that may be HTTP's, at a port that need not be. Web servers take 8 KiB. */
#define METHOD_MAX 32
#define FIRST_LINE_MAX (16 * 1024)

/* What came: what is held, then the new bytes. */
struct stream {
    const uint8_t *held, *bytes;
    size_t held_length, length; /* length: of both */
};

static uint8_t stream_at(const struct stream *stream, size_t index) {
    return index < stream->held_length ? stream->held[index] : stream->bytes[index - stream->held_length];
}

static bool is_method_byte(uint8_t byte) {
    return (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') || byte == '-' || byte == '_';
}

/* Does the line that ends before `end` end with " HTTP/1.1" or another version? */
static bool names_http(const struct stream *stream, size_t end) {
    static const char version[] = " HTTP/";
    size_t length = sizeof version - 1;
    if (end > 0 && stream_at(stream, end - 1) == '\r')
        end--;
    if (end < length + 3)
        return false;
    for (size_t i = 0; i < length; i++)
        if (stream_at(stream, end - 3 - length + i) != (uint8_t)version[i])
            return false;
    return stream_at(stream, end - 2) == '.';
}

/* Can these letters become a method that web servers know? Other words are let go at once: there are
 * protocols whose first word has no end of line and is answered (JDWP's is "JDWP-Handshake"). */
static bool begins_method(const struct stream *stream) {
    static const char *const methods[] = {
        "GET",    "HEAD",     "POST",    "PUT",       "DELETE",      "CONNECT",    "OPTIONS",
        "TRACE",  "PATCH",    "PRI",     "PROPFIND",  "PROPPATCH",   "MKCOL",      "COPY",
        "MOVE",   "LOCK",     "UNLOCK",  "SEARCH",    "REPORT",      "BIND",       "REBIND",
        "UNBIND", "CHECKOUT", "CHECKIN", "MERGE",     "ACL",         "LINK",       "PURGE",
        "NOTIFY", "M-SEARCH", "QUERY",   "SUBSCRIBE", "UNSUBSCRIBE", "MKCALENDAR", "MKACTIVITY"};
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        size_t at = 0;
        while (at < stream->length && methods[i][at] == toupper(stream_at(stream, at)))
            at++;
        if (at == stream->length)
            return true;
    }
    return false;
}

/* A first line of the form METHOD TARGET HTTP/N.N. What can still become one is held; a line of another
 * protocol is let go with its end, or before. */
static enum inspect_verdict guess_http(const struct stream *stream) {
    size_t method = 0;
    while (method < stream->length && method <= METHOD_MAX && is_method_byte(stream_at(stream, method)))
        method++;
    if (method == stream->length)
        return begins_method(stream) ? INSPECT_HOLD : INSPECT_ENOUGH;
    if (method == 0 || method > METHOD_MAX || stream_at(stream, method) != ' ')
        return INSPECT_ENOUGH;
    /* What is held was looked at when it came: it has no line's end. */
    for (size_t i = method > stream->held_length ? method : stream->held_length; i < stream->length; i++) {
        uint8_t byte = stream_at(stream, i);
        if (byte == '\n')
            return names_http(stream, i) ? INSPECT_PASS : INSPECT_ENOUGH;
        if ((byte < ' ' && byte != '\r' && byte != '\t') || i == FIRST_LINE_MAX)
            return INSPECT_ENOUGH;
    }
    return INSPECT_HOLD;
}

/* Says whether to go on with what the first bytes are. */
static enum inspect_verdict decide(struct inspection *inspection, const uint8_t *bytes, size_t length) {
    const struct stream stream = {.held = (const uint8_t *)inspection->held.data,
                                  .bytes = bytes,
                                  .held_length = inspection->held.length,
                                  .length = inspection->held.length + length};
    bool may_be_tls = stream.length > 0 && stream_at(&stream, 0) == TLS_HANDSHAKE;
    if (stream.length == 0 || (stream.length == 1 && may_be_tls))
        return INSPECT_HOLD;
    if (may_be_tls && stream_at(&stream, 1) == TLS_MAJOR) {
        inspection->kind = INSPECT_TLS;
        return INSPECT_PASS;
    }
    enum inspect_verdict http = inspection->kind == INSPECT_HTTP_OR_TLS ? INSPECT_PASS : guess_http(&stream);
    if (http == INSPECT_PASS)
        inspection->kind = INSPECT_HTTP;
    return http;
}

static enum inspect_verdict deny(struct inspect_denial *denial, enum broker_reason reason,
                                 const char *fault) {
    *denial = (struct inspect_denial){reason, fault};
    return INSPECT_DENY;
}

static bool client_named(const struct inspection *inspection, const char *name) {
    if (inspection->kind == INSPECT_TLS)
        return inspection->hello.named && strcmp(inspection->hello.name, name) == 0;
    return http_host_is(&inspection->http, name, inspection->port);
}

/* Has the client named whom it connected to? */
static bool is_named(struct inspection *inspection) {
    if (client_named(inspection, inspection->name))
        return true;
    for (size_t i = 0; i < inspection->names_count; i++)
        if (client_named(inspection, inspection->names[i])) {
            inspection->name = inspection->names[i];
            return true;
        }
    return false;
}

static enum inspect_verdict feed_tls(struct inspection *inspection, const uint8_t *bytes, size_t length,
                                     size_t *pass, struct inspect_denial *denial) {
    struct hello *hello = &inspection->hello;
    size_t used = 0;
    if (inspection->awaits_answer)
        return INSPECT_HOLD;
    enum hello_verdict said = hello_feed(hello, bytes, length, &used);
    if (said == HELLO_BAD)
        return deny(denial, hello->fault == HELLO_FAULT_NOT_TLS ? BROKER_REASON_PROTOCOL : BROKER_REASON_SNI,
                    hello_fault_text(hello->fault));
    if (said != HELLO_DONE)
        return INSPECT_HOLD;
    if (!is_named(inspection))
        return deny(denial, BROKER_REASON_SNI, NULL);
    bool second = inspection->passed;
    inspection->passed = true;
    inspection->awaits_answer = !second;
    *pass = second ? length : used;
    return second ? INSPECT_ENOUGH : INSPECT_PASS;
}

enum inspect_verdict inspect_answer(struct inspection *inspection, const uint8_t *bytes, size_t length) {
    if (inspection->kind != INSPECT_TLS || !inspection->awaits_answer)
        return INSPECT_HOLD;
    switch (hello_answer_feed(&inspection->hello, bytes, length)) {
    case HELLO_DONE:
        inspection->awaits_answer = false;
        return INSPECT_ENOUGH;
    case HELLO_RETRY:
        inspection->awaits_answer = false;
        return INSPECT_PASS;
    case HELLO_NEED_MORE:
        return INSPECT_HOLD;
    case HELLO_BAD:
        break;
    }
    return INSPECT_DENY;
}

static enum inspect_verdict feed_http(struct inspection *inspection, uint8_t *bytes, size_t length,
                                      size_t *pass, struct inspect_denial *denial) {
    struct http_reader *http = &inspection->http;
    enum inspect_verdict verdict = INSPECT_HOLD;
    for (size_t at = 0; at < length;) {
        size_t used = 0;
        enum http_verdict said = http_feed(http, bytes + at, length - at, &used);
        at += used;
        if (said == HTTP_BAD)
            return deny(denial,
                        http->fault == HTTP_FAULT_HOST || http->fault == HTTP_FAULT_AUTHORITY
                            ? BROKER_REASON_HOST
                            : BROKER_REASON_PROTOCOL,
                        http_fault_text(http->fault));
        if (said == HTTP_NEED_MORE)
            return verdict;
        if (said == HTTP_REQUEST && !is_named(inspection))
            return deny(denial, BROKER_REASON_HOST, NULL);
        inspection->passed = true;
        *pass = at;
        verdict = INSPECT_PASS;
    }
    return verdict;
}

static enum inspect_verdict feed(struct inspection *inspection, uint8_t *bytes, size_t length, size_t *pass,
                                 struct inspect_denial *denial) {
    return inspection->kind == INSPECT_TLS ? feed_tls(inspection, bytes, length, pass, denial)
                                           : feed_http(inspection, bytes, length, pass, denial);
}

enum inspect_verdict inspect_feed(struct inspection *inspection, uint8_t *bytes, size_t length, size_t *pass,
                                  struct inspect_denial *denial) {
    *pass = 0;
    if (length == 0)
        return INSPECT_HOLD;
    inspection->begun = true;
    if (inspection->kind == INSPECT_HTTP_OR_TLS || inspection->kind == INSPECT_ANYTHING) {
        enum inspect_verdict verdict = decide(inspection, bytes, length);
        if (verdict == INSPECT_ENOUGH)
            *pass = length;
        if (verdict != INSPECT_PASS)
            return verdict;
        size_t of_held = 0; /* no whole line is held so far, nor a whole record */
        verdict = inspection->held.length == 0 ? INSPECT_HOLD
                                               : feed(inspection, (uint8_t *)inspection->held.data,
                                                      inspection->held.length, &of_held, denial);
        if (verdict == INSPECT_DENY)
            return verdict;
    }
    return feed(inspection, bytes, length, pass, denial);
}

bool inspect_may_end(const struct inspection *inspection) {
    if (inspection->kind == INSPECT_HTTP)
        return http_is_between(&inspection->http);
    return inspection->kind == INSPECT_ANYTHING || inspection->held.length == 0;
}

const char *inspect_asked(const struct inspection *inspection) {
    if (inspection->kind == INSPECT_TLS)
        return inspection->hello.name;
    return inspection->kind == INSPECT_HTTP ? inspection->http.host : "";
}

size_t inspect_refusal(const struct inspection *inspection, const struct inspect_denial *denial, char *out,
                       size_t size) {
    if (inspection->kind == INSPECT_TLS && !inspection->passed) {
        if (size < HELLO_ALERT_SIZE || inspection->hello.fault == HELLO_FAULT_NOT_TLS)
            return 0;
        hello_alert_write(&inspection->hello, hello_alert_for(inspection->hello.fault), (uint8_t *)out);
        return HELLO_ALERT_SIZE;
    }
    if (inspection->kind != INSPECT_HTTP)
        return 0;
    char text[512];
    if (denial->fault != NULL)
        snprintf(text, sizeof text, "pinfold: this request is refused: %s.", denial->fault);
    else
        snprintf(text, sizeof text,
                 "pinfold: this connection was made to %s, and the request is for %s: refused.",
                 inspection->name, inspection->http.has_host ? inspection->http.host : "no host");
    return http_refusal_write(text, out, size);
}

void inspect_expect(struct inspection *inspection, const char *name) {
    if (inspection->names_count == 0)
        inspection->name = name;
    if (inspection->names_count < INSPECT_NAMES_MAX)
        inspection->names[inspection->names_count++] = name;
}

void inspect_free(struct inspection *inspection) {
    if (inspection == NULL)
        return;
    text_free(&inspection->held);
    free(inspection);
}
