/* egress/http: requests on a kept connection, cut anywhere, and the shapes by which requests are smuggled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/text.h"
#include "egress/http.h"

/* What came out of a stream: what may be forwarded, and what was asked. */
struct outcome {
    enum http_verdict verdict; /* the last one */
    enum http_fault fault;
    struct text forwarded; /* if every request is allowed */
    struct text requests;  /* "GET example.org 0;POST ..." */
    struct http_reader reader;
};

static void outcome_free(struct outcome *outcome) {
    text_free(&outcome->forwarded);
    text_free(&outcome->requests);
}

/* Feeds in pieces, each on the heap and without slack, as the broker does: holds, judges, forwards. */
static struct outcome run(const char *bytes, size_t length, size_t piece) {
    struct outcome outcome = {.verdict = HTTP_NEED_MORE};
    text_owned struct text held = {0};
    for (size_t at = 0; at < length && outcome.verdict != HTTP_BAD; at += piece) {
        size_t take = length - at < piece ? length - at : piece;
        memory_owned uint8_t *copy = memory_copy(bytes + at, take);
        for (size_t done = 0; done < take && outcome.verdict != HTTP_BAD;) {
            size_t used;
            outcome.verdict = http_feed(&outcome.reader, copy + done, take - done, &used);
            assert_true(used <= take - done);
            text_append_bytes(&held, copy + done, used);
            done += used;
            if (outcome.verdict == HTTP_NEED_MORE)
                assert_int_equal(done, take);
            if (outcome.verdict == HTTP_REQUEST)
                text_format(&outcome.requests, "%s %s %u;", outcome.reader.method,
                            outcome.reader.has_host ? outcome.reader.host : "-", outcome.reader.host_port);
            if (outcome.verdict == HTTP_REQUEST || outcome.verdict == HTTP_BODY) {
                assert_true(used > 0);
                text_append_bytes(&outcome.forwarded, text_string(&held), held.length);
                held.length = 0;
            }
        }
    }
    outcome.fault = outcome.reader.fault;
    if (outcome.verdict == HTTP_BAD) { /* and stays so */
        uint8_t byte = 'G';
        size_t used;
        assert_int_equal(http_feed(&outcome.reader, &byte, 1, &used), HTTP_BAD);
        assert_int_equal(used, 0);
    }
    return outcome;
}

static const size_t pieces[] = {1 << 20, 1, 2, 3, 5, 7, 11, 16, 100};
#define PIECES (sizeof pieces / sizeof pieces[0])

/* All of it may be forwarded, and is these requests, however it is cut. */
static void assert_good_bytes(const char *bytes, size_t length, const char *requests, const char *forwarded) {
    for (size_t i = 0; i < PIECES; i++) {
        struct outcome outcome = run(bytes, length, pieces[i]);
        if (outcome.fault != HTTP_FAULT_NONE || strcmp(text_string(&outcome.requests), requests) != 0 ||
            !http_is_between(&outcome.reader) || outcome.forwarded.length != length ||
            memcmp(outcome.forwarded.data, forwarded, length) != 0)
            fail_msg("in pieces of %zu: fault %d, requests \"%s\", forwarded %zu of %zu: %s", pieces[i],
                     outcome.fault, text_string(&outcome.requests), outcome.forwarded.length, length, bytes);
        outcome_free(&outcome);
    }
}
#define ASSERT_GOOD(literal, requests) assert_good_bytes(literal, sizeof literal - 1, requests, literal)

/* Refused with this fault, and of the bytes only the first `forwarded` may go out. */
static void assert_bad_bytes(const char *what, const char *bytes, size_t length, enum http_fault fault,
                             size_t forwarded) {
    for (size_t i = 0; i < PIECES; i++) {
        struct outcome outcome = run(bytes, length, pieces[i]);
        if (outcome.verdict != HTTP_BAD || outcome.fault != fault || outcome.forwarded.length != forwarded)
            fail_msg("%s, in pieces of %zu: verdict %d, fault %d (%s), forwarded %zu", what, pieces[i],
                     outcome.verdict, outcome.fault, http_fault_text(outcome.fault),
                     outcome.forwarded.length);
        outcome_free(&outcome);
    }
}
#define ASSERT_BAD(what, fault, literal) assert_bad_bytes(what, literal, sizeof literal - 1, fault, 0)
/* A good request before it is let through. */
#define FIRST "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"
#define ASSERT_BAD_LATER(what, fault, good, literal)                                                         \
    assert_bad_bytes(what, good literal, sizeof good + sizeof literal - 2, fault, sizeof good - 1)
#define HOST "Host: example.org\r\n"

static void test_plain_requests(void **state) {
    (void)state;
    ASSERT_GOOD("GET / HTTP/1.1\r\n" HOST "\r\n", "GET example.org 0;");
    ASSERT_GOOD("GET /a?b=c%20d&e=/../:@ HTTP/1.1\r\nAccept: */*\r\nhOST:\tEXAMPLE.org. \t\r\nX:\r\nY: a\tb "
                "\xc3\xbc\r\n\r\n",
                "GET example.org 0;");
    ASSERT_GOOD("GET / HTTP/1.1\r\nHost:example.org:8080\r\n\r\n", "GET example.org 8080;");
    ASSERT_GOOD("GET / HTTP/1.1\r\nHost: example.org:65535\r\n\r\n", "GET example.org 65535;");
    ASSERT_GOOD("GET / HTTP/1.0\r\n\r\n", "GET - 0;");
    ASSERT_GOOD("GET / HTTP/1.0\r\n" HOST "\r\n", "GET example.org 0;");
    ASSERT_GOOD("OPTIONS * HTTP/1.1\r\n" HOST "\r\n", "OPTIONS example.org 0;");
    ASSERT_GOOD("M-SEARCH!#$%&'*+.^_`|~ / HTTP/1.1\r\n" HOST "\r\n", "M-SEARCH!#$%&'*+.^_`|~ example.org 0;");
    ASSERT_GOOD("GET //evil.test/ HTTP/1.1\r\n" HOST "\r\n", "GET example.org 0;"); /* a path */
    ASSERT_GOOD("\r\nGET / HTTP/1.1\r\n" HOST "\r\n", "GET example.org 0;");
}

static void test_absolute_form(void **state) {
    (void)state;
    ASSERT_GOOD("GET http://example.org/ HTTP/1.1\r\n" HOST "\r\n", "GET example.org 0;");
    ASSERT_GOOD("GET HTTP://EXAMPLE.ORG:80/ HTTP/1.1\r\n" HOST "\r\n", "GET example.org 0;");
    ASSERT_GOOD("GET http://example.org HTTP/1.1\r\n" HOST "\r\n", "GET example.org 0;");
    ASSERT_GOOD("GET http://example.org?q HTTP/1.1\r\nHost: example.org:80\r\n\r\n", "GET example.org 80;");
    ASSERT_BAD("absolute-form: another host", HTTP_FAULT_AUTHORITY,
               "GET http://evil.test/ HTTP/1.1\r\n" HOST "\r\n");
    ASSERT_BAD("absolute-form: another port", HTTP_FAULT_AUTHORITY,
               "GET http://example.org:81/ HTTP/1.1\r\n" HOST "\r\n");
    ASSERT_BAD("absolute-form: no Host", HTTP_FAULT_HOST, "GET http://example.org/ HTTP/1.1\r\n\r\n");
    ASSERT_BAD("absolute-form: no Host, HTTP/1.0", HTTP_FAULT_HOST,
               "GET http://example.org/ HTTP/1.0\r\n\r\n");
    ASSERT_BAD("absolute-form: userinfo", HTTP_FAULT_TARGET,
               "GET http://example.org@evil.test/ HTTP/1.1\r\n" HOST "\r\n");
    ASSERT_BAD("absolute-form: userinfo with a password", HTTP_FAULT_TARGET,
               "GET http://example.org:80@evil.test/ HTTP/1.1\r\n" HOST "\r\n");
    ASSERT_BAD("absolute-form: a backslash", HTTP_FAULT_TARGET,
               "GET http://evil.test\\@example.org/ HTTP/1.1\r\n" HOST "\r\n");
    ASSERT_BAD("absolute-form: a fragment", HTTP_FAULT_TARGET,
               "GET http://evil.test#example.org/ HTTP/1.1\r\n" HOST "\r\n");
    ASSERT_BAD("absolute-form: an address", HTTP_FAULT_TARGET,
               "GET http://127.0.0.1/ HTTP/1.1\r\n" HOST "\r\n");
    ASSERT_BAD("absolute-form: IPv6", HTTP_FAULT_TARGET, "GET http://[::1]/ HTTP/1.1\r\n" HOST "\r\n");
    ASSERT_BAD("absolute-form: no host", HTTP_FAULT_TARGET, "GET http:/// HTTP/1.1\r\n" HOST "\r\n");
    ASSERT_BAD("absolute-form: one slash", HTTP_FAULT_TARGET, "GET http:/evil.test HTTP/1.1\r\n" HOST "\r\n");
    ASSERT_BAD("absolute-form: a port of 0", HTTP_FAULT_TARGET,
               "GET http://example.org:0/ HTTP/1.1\r\n" HOST "\r\n");
    ASSERT_BAD("absolute-form: https", HTTP_FAULT_TARGET,
               "GET https://example.org/ HTTP/1.1\r\n" HOST "\r\n");
    ASSERT_BAD("absolute-form: another scheme", HTTP_FAULT_TARGET,
               "GET ftp://example.org/ HTTP/1.1\r\n" HOST "\r\n");
}

static void test_targets(void **state) {
    (void)state;
    ASSERT_BAD("authority-form", HTTP_FAULT_TARGET, "GET example.org:443 HTTP/1.1\r\n" HOST "\r\n");
    ASSERT_BAD("'*' with GET", HTTP_FAULT_TARGET, "GET * HTTP/1.1\r\n" HOST "\r\n");
    ASSERT_BAD("'*' with something behind it", HTTP_FAULT_TARGET, "OPTIONS *x HTTP/1.1\r\n" HOST "\r\n");
    ASSERT_BAD("a '@' first", HTTP_FAULT_TARGET, "GET @evil.test/ HTTP/1.1\r\n" HOST "\r\n");
    ASSERT_BAD("a backslash first", HTTP_FAULT_TARGET, "GET \\\\evil.test HTTP/1.1\r\n" HOST "\r\n");
    ASSERT_BAD("two blanks", HTTP_FAULT_TARGET, "GET  / HTTP/1.1\r\n" HOST "\r\n");
    ASSERT_BAD("no target", HTTP_FAULT_TARGET, "GET \r\n\r\n");
    ASSERT_BAD("a blank in the path", HTTP_FAULT_NOT_HTTP, "GET /a b HTTP/1.1\r\n" HOST "\r\n");
    ASSERT_BAD("a tab in the path", HTTP_FAULT_LINE, "GET /\ta HTTP/1.1\r\n" HOST "\r\n");
    ASSERT_BAD("NUL in the path", HTTP_FAULT_LINE, "GET /\0 HTTP/1.1\r\n" HOST "\r\n");
    ASSERT_BAD("DEL in the path", HTTP_FAULT_LINE, "GET /\x7f HTTP/1.1\r\n" HOST "\r\n");
}

static void test_not_http(void **state) {
    (void)state;
    ASSERT_BAD("TLS", HTTP_FAULT_NOT_HTTP, "\x16\3\1\2\0\1");
    ASSERT_BAD("NUL", HTTP_FAULT_NOT_HTTP, "\0GET / HTTP/1.1\r\n");
    ASSERT_BAD("SSH", HTTP_FAULT_NOT_HTTP, "SSH-2.0-x\r\n");
    ASSERT_BAD("HTTP/0.9", HTTP_FAULT_NOT_HTTP, "GET /\r\n");
    ASSERT_BAD("HTTP/0.9, bare LF", HTTP_FAULT_NOT_HTTP, "GET /\n");
    ASSERT_BAD("HTTP/1.2", HTTP_FAULT_NOT_HTTP, "GET / HTTP/1.2\r\n" HOST "\r\n");
    ASSERT_BAD("HTTP/2.0", HTTP_FAULT_NOT_HTTP, "GET / HTTP/2.0\r\n" HOST "\r\n");
    ASSERT_BAD("HTTP/01.1", HTTP_FAULT_NOT_HTTP, "GET / HTTP/01.1\r\n" HOST "\r\n");
    ASSERT_BAD("http/1.1", HTTP_FAULT_NOT_HTTP, "GET / http/1.1\r\n" HOST "\r\n");
    ASSERT_BAD("HTTP/1.10", HTTP_FAULT_LINE, "GET / HTTP/1.10\r\n" HOST "\r\n");
    ASSERT_BAD("a blank behind the version", HTTP_FAULT_LINE, "GET / HTTP/1.1 \r\n" HOST "\r\n");
    ASSERT_BAD("a blank first", HTTP_FAULT_NOT_HTTP, " GET / HTTP/1.1\r\n" HOST "\r\n");
    ASSERT_BAD("two empty lines first", HTTP_FAULT_NOT_HTTP, "\r\n\r\nGET / HTTP/1.1\r\n" HOST "\r\n");
    ASSERT_BAD("a bare LF first", HTTP_FAULT_NOT_HTTP, "\nGET / HTTP/1.1\r\n" HOST "\r\n");
    ASSERT_BAD("a bare CR first", HTTP_FAULT_LINE, "\rGET / HTTP/1.1\r\n" HOST "\r\n");
    ASSERT_BAD("a method that is no token", HTTP_FAULT_NOT_HTTP, "GE(T / HTTP/1.1\r\n" HOST "\r\n");
    ASSERT_BAD("a method of 24 bytes", HTTP_FAULT_NOT_HTTP,
               "ABCDEFGHIJKLMNOPQRSTUVWX / HTTP/1.1\r\n" HOST "\r\n");
    ASSERT_BAD("a tab behind the method", HTTP_FAULT_NOT_HTTP, "GET\t/ HTTP/1.1\r\n" HOST "\r\n");
}

static void test_tunnels(void **state) {
    (void)state;
    ASSERT_BAD("CONNECT", HTTP_FAULT_CONNECT, "CONNECT evil.test:443 HTTP/1.1\r\nHost: example.org\r\n\r\n");
    ASSERT_BAD("connect", HTTP_FAULT_CONNECT, "connect example.org:80 HTTP/1.1\r\n" HOST "\r\n");
    ASSERT_BAD_LATER("CONNECT later", HTTP_FAULT_CONNECT, FIRST,
                     "CONNECT evil.test:443 HTTP/1.1\r\n" HOST "\r\n");
    ASSERT_GOOD("CONNECTS / HTTP/1.1\r\n" HOST "\r\n", "CONNECTS example.org 0;");
    ASSERT_BAD("the preface of HTTP/2", HTTP_FAULT_HTTP2, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    ASSERT_BAD_LATER("the preface later", HTTP_FAULT_HTTP2, FIRST, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    ASSERT_BAD("websocket", HTTP_FAULT_UPGRADE,
               "GET / HTTP/1.1\r\n" HOST "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    ASSERT_BAD("TLS", HTTP_FAULT_UPGRADE, "GET / HTTP/1.1\r\n" HOST "Upgrade: TLS/1.0\r\n\r\n");
    ASSERT_BAD("h2c and another", HTTP_FAULT_UPGRADE, "GET / HTTP/1.1\r\n" HOST "Upgrade: h2c,foo/2\r\n\r\n");
    ASSERT_BAD("h2c and another, with a blank", HTTP_FAULT_UPGRADE,
               "GET / HTTP/1.1\r\n" HOST "Upgrade: h2c foo\r\n\r\n");
    ASSERT_BAD("a long one", HTTP_FAULT_UPGRADE,
               "GET / HTTP/1.1\r\n" HOST "Upgrade: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n\r\n");
    ASSERT_BAD("an empty one", HTTP_FAULT_UPGRADE, "GET / HTTP/1.1\r\n" HOST "Upgrade:\r\n\r\n");
}

/* The server never sees that it was asked. */
static void test_h2c_is_made_harmless(void **state) {
    (void)state;
    static const char given[] =
        "GET / HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\n" HOST
        "HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\nUpgrade: h2C\r\nuPGRADE:\th2c \r\n\r\n";
    static const char expected[] =
        "GET / HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\n" HOST
        "HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\nUpgrade: ---\r\nuPGRADE:\t--- \r\n\r\n";
    assert_good_bytes(given, sizeof given - 1, "GET example.org 0;", expected);
}

static void test_hosts(void **state) {
    (void)state;
#define ASSERT_HOST(what, value)                                                                             \
    ASSERT_BAD("Host: " what, HTTP_FAULT_HOST, "GET / HTTP/1.1\r\nHost:" value "\r\n\r\n")
    ASSERT_BAD("no Host", HTTP_FAULT_HOST, "GET / HTTP/1.1\r\n\r\n");
    ASSERT_BAD("two Hosts", HTTP_FAULT_HOST, "GET / HTTP/1.1\r\n" HOST "Host: evil.test\r\n\r\n");
    ASSERT_BAD("the same Host twice", HTTP_FAULT_HOST, "GET / HTTP/1.1\r\n" HOST HOST "\r\n");
    ASSERT_HOST("empty", "");
    ASSERT_HOST("blank", "  ");
    ASSERT_HOST("userinfo", " user@example.org");
    ASSERT_HOST("userinfo with a password", " example.org:80@evil.test");
    ASSERT_HOST("an empty port", " example.org:");
    ASSERT_HOST("port 0", " example.org:0");
    ASSERT_HOST("a port with a leading zero", " example.org:080");
    ASSERT_HOST("a port beyond 65535", " example.org:65536");
    ASSERT_HOST("a port that wraps", " example.org:4294967376");
    ASSERT_HOST("a port that is no number", " example.org:http");
    ASSERT_HOST("a signed port", " example.org:+80");
    ASSERT_HOST("two ports", " example.org:80:80");
    ASSERT_HOST("a blank before the port", " example.org :80");
    ASSERT_HOST("a blank behind the colon", " example.org: 80");
    ASSERT_HOST("two names", " example.org, evil.test");
    ASSERT_HOST("two names, no comma", " example.org evil.test");
    ASSERT_HOST("a path", " example.org/evil");
    ASSERT_HOST("a scheme", " http://example.org");
    ASSERT_HOST("a query", " evil.test?example.org");
    ASSERT_HOST("a fragment", " evil.test#example.org");
    ASSERT_HOST("a backslash", " evil.test\\example.org");
    ASSERT_HOST("an address", " 169.254.169.254");
    ASSERT_HOST("an address as one number", " 2852039166");
    ASSERT_HOST("IPv6", " [fd00:ec2::254]");
    ASSERT_HOST("IPv6 with a port", " [::1]:80");
    ASSERT_HOST("UTF-8", " \xc3\xbc.test");
    ASSERT_HOST("percent", " example%2eorg");
    ASSERT_HOST("two last dots", " example.org..");
    ASSERT_HOST("quotes", " \"example.org\"");
    ASSERT_BAD("Host: NUL", HTTP_FAULT_LINE, "GET / HTTP/1.1\r\nHost: example.org\0\r\n\r\n");
    ASSERT_BAD("Host: NUL and another", HTTP_FAULT_LINE,
               "GET / HTTP/1.1\r\nHost: example.org\0.evil.test\r\n\r\n");

    text_owned struct text long_one = {0};
    text_append(&long_one, "GET / HTTP/1.1\r\nHost: ");
    for (int i = 0; i < 400; i++)
        text_append(&long_one, "a");
    text_append(&long_one, "\r\n\r\n");
    assert_bad_bytes("Host: 400 bytes", long_one.data, long_one.length, HTTP_FAULT_HOST, 0);

    /* What was given is there for the record. */
    struct outcome outcome = run("GET / HTTP/1.1\r\nHost: u@\xff"
                                 "evil\r\n",
                                 31, 64);
    assert_int_equal(outcome.fault, HTTP_FAULT_HOST);
    assert_string_equal(outcome.reader.host, "u@?evil");
    assert_string_equal(outcome.reader.method, "GET");
    outcome_free(&outcome);
}

static void test_lines(void **state) {
    (void)state;
#define ASSERT_LINE(what, rest) ASSERT_BAD(what, HTTP_FAULT_LINE, "GET / HTTP/1.1\r\n" HOST rest)
    ASSERT_LINE("obs-fold with a blank", "X: a\r\n b\r\n\r\n");
    ASSERT_LINE("obs-fold with a tab", "X: a\r\n\tHost: evil.test\r\n\r\n");
    ASSERT_LINE("a blank before the colon", "Transfer-Encoding : chunked\r\n\r\n");
    ASSERT_LINE("a tab before the colon", "Transfer-Encoding\t: chunked\r\n\r\n");
    ASSERT_LINE("a vertical tab before the colon", "Transfer-Encoding\v: chunked\r\n\r\n");
    ASSERT_LINE("NUL in a field's name", "Transfer-\0Encoding: chunked\r\n\r\n");
    ASSERT_LINE("an empty field name", ": x\r\n\r\n");
    ASSERT_LINE("no colon", "Host\r\n\r\n");
    ASSERT_LINE("a bare LF in a value", "X: a\nHost: evil.test\r\n\r\n");
    ASSERT_LINE("a bare LF ends a line", "X: a\n\r\n");
    ASSERT_LINE("a bare LF ends the head", "X: a\r\n\n");
    ASSERT_LINE("a bare CR in a value", "X: a\rHost: evil.test\r\n\r\n");
    ASSERT_LINE("a bare CR in a blank line", "\rX: a\r\n\r\n");
    ASSERT_LINE("CR CR LF", "X: a\r\r\n\r\n");
    ASSERT_LINE("NUL in a value", "X: a\0b\r\n\r\n");
    ASSERT_LINE("ESC in a value", "X: a\x1b[2J\r\n\r\n");
    ASSERT_LINE("DEL in a value", "X: a\x7f\r\n\r\n");
    ASSERT_LINE("UTF-8 in a name", "H\xc3\xb6st: x\r\n\r\n");
    ASSERT_LINE("a '(' in a name", "X(y): x\r\n\r\n");
    ASSERT_BAD("a bare LF behind the request line", HTTP_FAULT_LINE, "GET / HTTP/1.1\n" HOST "\r\n");
    ASSERT_BAD("a bare CR behind the request line", HTTP_FAULT_LINE, "GET / HTTP/1.1\r" HOST "\r\n");
    ASSERT_BAD("a first field that is folded", HTTP_FAULT_LINE,
               "GET / HTTP/1.1\r\n Host: example.org\r\n\r\n");
}

static void test_bodies(void **state) {
    (void)state;
    ASSERT_GOOD("POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello", "POST example.org 0;");
    ASSERT_GOOD("POST / HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n", "POST example.org 0;");
    ASSERT_GOOD("POST / HTTP/1.0\r\n" HOST "content-LENGTH:5\t\r\n\r\nhello", "POST example.org 0;");
    ASSERT_GOOD("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                "POST example.org 0;");
    ASSERT_GOOD("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding:\tCHUNKED \r\n\r\n"
                "5\r\nhello\r\n00A;x=\"y\";z\r\n0123456789\r\n000\r\n\r\n",
                "POST example.org 0;");
    ASSERT_GOOD("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
                "1\r\n\n\r\n0\r\nX-Sum: abc\r\nY: d\r\n\r\n",
                "POST example.org 0;");
    /* What looks like a request is a body here, and for the server. */
    ASSERT_GOOD("POST / HTTP/1.1\r\n" HOST "Content-Length: 39\r\n\r\n"
                "GET / HTTP/1.1\r\nHost: evil.test\r\nX: y\r\n" FIRST,
                "POST example.org 0;GET example.org 0;");
}

static void test_pipelined(void **state) {
    (void)state;
    ASSERT_GOOD(FIRST FIRST "\r\n" FIRST, "GET example.org 0;GET example.org 0;GET example.org 0;");
    ASSERT_GOOD("POST /a HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc"
                "GET / HTTP/1.1\r\nHost: evil.test:8080\r\n\r\n"
                "PUT /b HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nT: u\r\n\r\n"
                "HEAD / HTTP/1.0\r\n\r\n"
                "GET http://third.test/ HTTP/1.1\r\nHost: third.test\r\n\r\n",
                "POST example.org 0;GET evil.test 8080;PUT example.org 0;HEAD - 0;GET third.test 0;");
}

/* The second request is seen whole before a byte of it is let through. */
static void test_nothing_unjudged_is_forwarded(void **state) {
    (void)state;
    static const char stream[] = "POST / HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc"
                                 "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\nx";
    size_t first = strlen("POST / HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc");
    for (size_t piece = 1; piece < sizeof stream; piece++) {
        struct http_reader reader = {0};
        size_t held = 0, forwarded = 0;
        bool denied = false;
        memory_owned uint8_t *copy = memory_copy(stream, sizeof stream - 1);
        for (size_t at = 0; at < sizeof stream - 1 && !denied;) {
            size_t left = sizeof stream - 1 - at, used;
            enum http_verdict verdict = http_feed(&reader, copy + at, left < piece ? left : piece, &used);
            at += used;
            held += used;
            assert_int_not_equal(verdict, HTTP_BAD);
            denied = verdict == HTTP_REQUEST && !http_host_is(&reader, "example.org", 80);
            if (verdict != HTTP_NEED_MORE && !denied) {
                forwarded += held;
                held = 0;
            }
        }
        assert_true(denied);
        assert_int_equal(forwarded, first);
        assert_string_equal(reader.host, "evil.test");
        assert_int_equal(reader.requests, 2);
    }
}

static void test_framing(void **state) {
    (void)state;
#define ASSERT_FRAMING(what, rest) ASSERT_BAD(what, HTTP_FAULT_FRAMING, "POST / HTTP/1.1\r\n" HOST rest)
    ASSERT_FRAMING("CL.TE", "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG");
    ASSERT_FRAMING("TE.CL",
                   "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n8\r\nSMUGGLED\r\n0\r\n\r\n");
    ASSERT_FRAMING("TE.TE", "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n");
    ASSERT_FRAMING("TE twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n");
    ASSERT_FRAMING("two Content-Lengths", "Content-Length: 5\r\nContent-Length: 6\r\n\r\n");
    ASSERT_FRAMING("the same Content-Length twice", "Content-Length: 5\r\nContent-Length: 5\r\n\r\n");
    ASSERT_FRAMING("a list of lengths", "Content-Length: 5, 5\r\n\r\n");
    ASSERT_FRAMING("two lengths", "Content-Length: 5 6\r\n\r\n");
    ASSERT_FRAMING("a signed length", "Content-Length: +5\r\n\r\n");
    ASSERT_FRAMING("a negative length", "Content-Length: -1\r\n\r\n");
    ASSERT_FRAMING("a hexadecimal length", "Content-Length: 0x5\r\n\r\n");
    ASSERT_FRAMING("an underscore in a length", "Content-Length: 1_0\r\n\r\n");
    ASSERT_FRAMING("a length in quotes", "Content-Length: \"5\"\r\n\r\n");
    ASSERT_FRAMING("an empty length", "Content-Length:\r\n\r\n");
    ASSERT_FRAMING("a length beyond 2^64", "Content-Length: 18446744073709551621\r\n\r\n");
    ASSERT_FRAMING("a length of 19 digits", "Content-Length: 0000000000000000005\r\n\r\n");
    ASSERT_FRAMING("Content_Length", "Content_Length: 5\r\n\r\n");
    ASSERT_FRAMING("Transfer_Encoding", "Transfer_Encoding: chunked\r\n\r\n");
    ASSERT_FRAMING("xchunked", "Transfer-Encoding: xchunked\r\n\r\n");
    ASSERT_FRAMING("chunkedx", "Transfer-Encoding: chunkedx\r\n\r\n");
    ASSERT_FRAMING("identity", "Transfer-Encoding: identity\r\n\r\n");
    ASSERT_FRAMING("gzip, chunked", "Transfer-Encoding: gzip, chunked\r\n\r\n");
    ASSERT_FRAMING("chunked, identity", "Transfer-Encoding: chunked, identity\r\n\r\n");
    ASSERT_FRAMING("chunked with a parameter", "Transfer-Encoding: chunked;q=1\r\n\r\n");
    ASSERT_FRAMING("chunked in quotes", "Transfer-Encoding: \"chunked\"\r\n\r\n");
    ASSERT_FRAMING("an empty coding", "Transfer-Encoding:\r\n\r\n");
    ASSERT_FRAMING("a folded coding", "Transfer-Encoding:\r\n chunked\r\n\r\n");
    ASSERT_FRAMING("a folded length", "Content-Length:\r\n 5\r\n\r\n");
    ASSERT_FRAMING("a long coding", "Transfer-Encoding: chunked                         chunked\r\n\r\n");
    ASSERT_BAD("chunked with HTTP/1.0", HTTP_FAULT_FRAMING,
               "POST / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
}

#define CHUNKED "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"

static void test_chunks(void **state) {
    (void)state;
#define ASSERT_CHUNK(what, fault, rest) ASSERT_BAD_LATER(what, fault, CHUNKED, rest)
    ASSERT_CHUNK("no size", HTTP_FAULT_FRAMING, "\r\n");
    ASSERT_CHUNK("an extension without a size", HTTP_FAULT_FRAMING, ";x\r\n");
    ASSERT_CHUNK("a size that is no number", HTTP_FAULT_FRAMING, "g\r\n");
    ASSERT_CHUNK("a signed size", HTTP_FAULT_FRAMING, "+5\r\n");
    ASSERT_CHUNK("a negative size", HTTP_FAULT_FRAMING, "-5\r\n");
    ASSERT_CHUNK("0x", HTTP_FAULT_FRAMING, "0x5\r\n");
    ASSERT_CHUNK("an underscore", HTTP_FAULT_FRAMING, "1_0\r\n");
    ASSERT_CHUNK("a blank before", HTTP_FAULT_FRAMING, " 5\r\n");
    ASSERT_CHUNK("a blank behind", HTTP_FAULT_FRAMING, "5 \r\n");
    ASSERT_CHUNK("a size of 16 digits", HTTP_FAULT_FRAMING, "0000000000000005\r\n");
    ASSERT_CHUNK("a size that wraps", HTTP_FAULT_FRAMING, "10000000000000005\r\n");
    ASSERT_CHUNK("a bare LF behind the size", HTTP_FAULT_FRAMING, "5\nhello\r\n");
    ASSERT_CHUNK("a bare LF in an extension (TERM.EXT)", HTTP_FAULT_LINE, "5;\nx\r\n");
    ASSERT_CHUNK("a bare CR in an extension", HTTP_FAULT_LINE, "5;\rx\r\n");
    ASSERT_CHUNK("NUL in an extension", HTTP_FAULT_LINE, "5;\0\r\n");
    ASSERT_BAD_LATER("data without its CR LF", HTTP_FAULT_FRAMING, CHUNKED "5\r\nhello", "0\r\n\r\n");
    ASSERT_BAD_LATER("data with a bare LF", HTTP_FAULT_FRAMING, CHUNKED "5\r\nhello", "\n0\r\n\r\n");
    ASSERT_BAD_LATER("data with a bare CR", HTTP_FAULT_LINE, CHUNKED "5\r\nhello", "\r0\r\n\r\n");
    ASSERT_BAD_LATER("data that is longer", HTTP_FAULT_FRAMING, CHUNKED "5\r\nhello", "world\r\n");
    ASSERT_CHUNK("a bare LF for the last line", HTTP_FAULT_LINE, "0\r\n\n");
    ASSERT_CHUNK("a Host among the trailers", HTTP_FAULT_FRAMING, "0\r\nHost: evil.test\r\n\r\n");
    ASSERT_CHUNK("a Content-Length among the trailers", HTTP_FAULT_FRAMING, "0\r\nContent-Length: 5\r\n\r\n");
    ASSERT_CHUNK("a Transfer-Encoding among the trailers", HTTP_FAULT_FRAMING,
                 "0\r\nTransfer-Encoding: chunked\r\n\r\n");
    ASSERT_CHUNK("a folded trailer", HTTP_FAULT_LINE, "0\r\nX: a\r\n b\r\n\r\n");
    ASSERT_CHUNK("a request where trailers are", HTTP_FAULT_LINE,
                 "0\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n");
}

/* The request after one whose body ends where we say. */
static void test_after_bodies(void **state) {
    (void)state;
    ASSERT_BAD_LATER("rest of a longer body", HTTP_FAULT_NOT_HTTP,
                     "POST / HTTP/1.1\r\n" HOST "Content-Length: 4\r\n\r\nabcd", " / HTTP/1.1\r\n");
    ASSERT_BAD_LATER("a request behind the last chunk", HTTP_FAULT_CONNECT, CHUNKED "0\r\n\r\n",
                     "CONNECT evil.test:443 HTTP/1.1\r\n");
}

static void test_too_long(void **state) {
    (void)state;
    text_owned struct text head = {0};
    text_append(&head, "GET / HTTP/1.1\r\n" HOST "X: ");
    while (head.length < HTTP_HEAD_MAX - 4)
        text_append(&head, "a");
    text_append(&head, "\r\n\r\n");
    assert_int_equal(head.length, HTTP_HEAD_MAX);
    assert_good_bytes(head.data, head.length, "GET example.org 0;", head.data);
    head.length -= 4;
    text_append(&head, "a\r\n\r\n");
    for (size_t i = 0; i < PIECES; i++) {
        struct outcome outcome = run(head.data, head.length, pieces[i]);
        assert_int_equal(outcome.forwarded.length, 0);
        assert_true(outcome.fault == HTTP_FAULT_TOO_LONG);
        outcome_free(&outcome);
    }
    /* Many small fields, a long target, a long method. */
    head.length = 0;
    text_append(&head, "GET / HTTP/1.1\r\n" HOST);
    while (head.length < HTTP_HEAD_MAX)
        text_append(&head, "a:b\r\n");
    assert_bad_bytes("many fields", head.data, head.length, HTTP_FAULT_TOO_LONG, 0);
    head.length = 0;
    text_append(&head, "GET /");
    while (head.length <= HTTP_HEAD_MAX)
        text_append(&head, "a");
    assert_bad_bytes("a long target", head.data, head.length, HTTP_FAULT_TOO_LONG, 0);
    head.length = 0;
    text_append(&head, CHUNKED "5;");
    while (head.length < 8000)
        text_append(&head, "a");
    assert_bad_bytes("a long extension", head.data, head.length, HTTP_FAULT_TOO_LONG, strlen(CHUNKED));
    head.length = 0;
    text_append(&head, CHUNKED "0\r\n");
    while (head.length < HTTP_HEAD_MAX + 200)
        text_append(&head, "a: b\r\n");
    assert_bad_bytes("many trailers", head.data, head.length, HTTP_FAULT_TOO_LONG, strlen(CHUNKED));
}

/* A body of any length, and requests without end, need no memory and are counted right. */
static void test_long_streams(void **state) {
    (void)state;
    struct http_reader reader = {0};
    size_t used;
    char head[] = "POST / HTTP/1.1\r\n" HOST "Content-Length: 999999999999999999\r\n\r\n";
    assert_int_equal(http_feed(&reader, (uint8_t *)head, sizeof head - 1, &used), HTTP_REQUEST);
    memory_owned uint8_t *data = memory_zeroed(1 << 20);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(http_feed(&reader, data, 1 << 20, &used), HTTP_BODY);
        assert_int_equal(used, 1 << 20);
    }
    assert_false(http_is_between(&reader));
    reader = (struct http_reader){0};
    for (int i = 1; i <= 10000; i++) {
        char request[] = FIRST;
        assert_int_equal(http_feed(&reader, (uint8_t *)request, sizeof request - 1, &used), HTTP_REQUEST);
        assert_int_equal(reader.requests, i);
        assert_true(http_is_between(&reader));
    }
}

static void test_host_is(void **state) {
    (void)state;
    static const struct {
        const char *request, *name;
        uint16_t port;
        bool expected;
    } rows[] = {
        {"GET / HTTP/1.1\r\nHost: Example.Org.\r\n\r\n", "example.org", 80, true},
        {"GET / HTTP/1.1\r\nHost: example.org:80\r\n\r\n", "example.org", 80, true},
        {"GET / HTTP/1.1\r\nHost: example.org:8080\r\n\r\n", "example.org", 80, false},
        {"GET / HTTP/1.1\r\nHost: example.org:8080\r\n\r\n", "example.org", 8080, true},
        {"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n", "example.org", 8080, false},
        {"GET / HTTP/1.1\r\nHost: www.example.org\r\n\r\n", "example.org", 80, false},
        {"GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", "example.org", 80, false},
        {"GET / HTTP/1.0\r\n\r\n", "example.org", 80, false},
        {"GET / HTTP/1.0\r\n\r\n", "", 80, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct outcome outcome = run(rows[i].request, strlen(rows[i].request), 1000);
        assert_int_equal(outcome.verdict, HTTP_REQUEST);
        if (http_host_is(&outcome.reader, rows[i].name, rows[i].port) != rows[i].expected)
            fail_msg("%s", rows[i].request);
        outcome_free(&outcome);
    }
    struct http_reader none = {0};
    assert_false(http_host_is(&none, "", 80));
}

static void test_refusal(void **state) {
    (void)state;
    char out[HTTP_REFUSAL_SIZE];
    size_t length = http_refusal_write("no", out, sizeof out);
    assert_int_equal(length, strlen(out));
    assert_string_equal(out, "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain; charset=utf-8\r\n"
                             "Content-Length: 3\r\nCache-Control: no-store\r\nConnection: close\r\n\r\nno\n");
    char text[2000];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    length = http_refusal_write(text, out, sizeof out);
    assert_true(length > HTTP_REFUSAL_SIZE / 2 && length < sizeof out);
    assert_non_null(strstr(out, "Content-Length: 385\r\n"));
    assert_int_equal(http_refusal_write("no", out, 10), 0);
    for (enum http_fault fault = HTTP_FAULT_NONE; fault <= HTTP_FAULT_TOO_LONG; fault++)
        assert_true(strlen(http_fault_text(fault)) > 5);
}

/* What a kept connection costs. */
static void test_size(void **state) {
    (void)state;
    assert_true(sizeof(struct http_reader) <= 640);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_requests),
        cmocka_unit_test(test_absolute_form),
        cmocka_unit_test(test_targets),
        cmocka_unit_test(test_not_http),
        cmocka_unit_test(test_tunnels),
        cmocka_unit_test(test_h2c_is_made_harmless),
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_pipelined),
        cmocka_unit_test(test_nothing_unjudged_is_forwarded),
        cmocka_unit_test(test_framing),
        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_after_bodies),
        cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_long_streams),
        cmocka_unit_test(test_host_is),
        cmocka_unit_test(test_refusal),
        cmocka_unit_test(test_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
