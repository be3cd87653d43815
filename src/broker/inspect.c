#include "broker/inspect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TLS_HANDSHAKE 0x16
#define TLS_MAJOR 0x03

/* Says whether to go on with what the first bytes are. */
static enum inspect_verdict decide(struct inspection *inspection, const uint8_t *bytes, size_t length) {
    uint8_t first[2];
    size_t have = 0;
    for (size_t i = 0; have < 2 && i < inspection->held.length; i++)
        first[have++] = (uint8_t)inspection->held.data[i];
    for (size_t i = 0; have < 2 && i < length; i++)
        first[have++] = bytes[i];
    if (have == 0 || (have == 1 && first[0] == TLS_HANDSHAKE))
        return INSPECT_HOLD;
    if (first[0] == TLS_HANDSHAKE && first[1] == TLS_MAJOR)
        inspection->kind = INSPECT_TLS;
    else if (inspection->kind == INSPECT_HTTP_OR_TLS)
        inspection->kind = INSPECT_HTTP;
    else
        return INSPECT_ENOUGH;
    return INSPECT_PASS;
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
    if (inspection->kind == INSPECT_HTTP_OR_TLS || inspection->kind == INSPECT_ANYTHING_OR_TLS) {
        enum inspect_verdict verdict = decide(inspection, bytes, length);
        if (verdict == INSPECT_ENOUGH)
            *pass = length;
        if (verdict != INSPECT_PASS)
            return verdict;
        size_t of_held = 0; /* at most one byte is held so far, with which nothing is whole */
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
    return inspection->kind == INSPECT_ANYTHING_OR_TLS || inspection->held.length == 0;
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
