/* egress/hello: the ClientHello, cut anywhere, and what hostile clients make of it. */
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
#include "egress/hello.h"

/* As OpenSSL 3 sent it for "Example.org", TLS 1.2 alone. */
// clang-format off
static const uint8_t captured[] = {
    0x16, 0x03, 0x01, 0x00, 0x97, 0x01, 0x00, 0x00, 0x93, 0x03, 0x03, 0x40, 0x1b, 0xd5, 0x3d, 0x09,
    0x50, 0x4d, 0x75, 0xcc, 0x91, 0xa2, 0xc2, 0x98, 0x73, 0xe5, 0x6c, 0x7f, 0x9f, 0x50, 0xa2, 0x99,
    0x99, 0x46, 0x9b, 0xd2, 0xfd, 0x3b, 0xf7, 0xe0, 0x10, 0xdd, 0x1b, 0x00, 0x00, 0x04, 0xc0, 0x2f,
    0x00, 0xff, 0x01, 0x00, 0x00, 0x66, 0x00, 0x00, 0x00, 0x10, 0x00, 0x0e, 0x00, 0x00, 0x0b, 0x45,
    0x78, 0x61, 0x6d, 0x70, 0x6c, 0x65, 0x2e, 0x6f, 0x72, 0x67, 0x00, 0x0b, 0x00, 0x04, 0x03, 0x00,
    0x01, 0x02, 0x00, 0x0a, 0x00, 0x0c, 0x00, 0x0a, 0x00, 0x1d, 0x00, 0x17, 0x00, 0x1e, 0x00, 0x19,
    0x00, 0x18, 0x00, 0x23, 0x00, 0x00, 0x00, 0x16, 0x00, 0x00, 0x00, 0x17, 0x00, 0x00, 0x00, 0x0d,
    0x00, 0x2a, 0x00, 0x28, 0x04, 0x03, 0x05, 0x03, 0x06, 0x03, 0x08, 0x07, 0x08, 0x08, 0x08, 0x09,
    0x08, 0x0a, 0x08, 0x0b, 0x08, 0x04, 0x08, 0x05, 0x08, 0x06, 0x04, 0x01, 0x05, 0x01, 0x06, 0x01,
    0x03, 0x03, 0x03, 0x01, 0x03, 0x02, 0x04, 0x02, 0x05, 0x02, 0x06, 0x02};
// clang-format on

static void put(struct text *text, const void *bytes, size_t length) {
    text_append_bytes(text, bytes, length);
}
#define PUT(text, literal) put(text, literal, sizeof literal - 1)

static void put_number(struct text *text, size_t value, size_t width) {
    while (width-- > 0) {
        uint8_t byte = (uint8_t)(value >> (8 * width));
        put(text, &byte, 1);
    }
}

/* A number of `width` bytes that says how long `part` is, and the part, which is freed. */
static void put_part(struct text *text, struct text part, size_t width) {
    put_number(text, part.length, width);
    put(text, text_string(&part), part.length);
    text_free(&part);
}

static struct text server_name_list(const char *name, size_t length) {
    struct text list = {0};
    PUT(&list, "\0");
    put_number(&list, length, 2);
    put(&list, name, length);
    return list;
}

static void put_server_names(struct text *extensions, struct text list) {
    struct text body = {0};
    put_part(&body, list, 2);
    PUT(extensions, "\0\0");
    put_part(extensions, body, 2);
}

static struct text extensions_with(const char *name, size_t length) {
    struct text extensions = {0};
    PUT(&extensions, "\x0a\x0a\0\0");         /* grease, empty */
    PUT(&extensions, "\0\x2b\0\5\4\3\4\3\3"); /* supported_versions */
    put_server_names(&extensions, server_name_list(name, length));
    PUT(&extensions, "\0\x10\0\5\0\3\2h2"); /* ALPN */
    return extensions;
}

/* The message with its header; the extensions are freed. */
static struct text message_with(struct text extensions) {
    struct text body = {0}, message = {0};
    PUT(&body, "\3\3"
               "0123456789abcdef0123456789abcdef"
               "\x20"
               "sessionsessionsessionsessionsess");
    PUT(&body, "\0\4\x13\1\x13\2"
               "\1\0");
    put_part(&body, extensions, 2);
    PUT(&message, "\1");
    put_part(&message, body, 3);
    return message;
}

/* Records of at most `size` bytes; the message is freed. */
static struct text records(struct text message, size_t size) {
    struct text stream = {0};
    for (size_t at = 0; at < message.length; at += size) {
        size_t left = message.length - at, take = left < size ? left : size;
        PUT(&stream, "\x16\3\1");
        put_number(&stream, take, 2);
        put(&stream, message.data + at, take);
    }
    text_free(&message);
    return stream;
}

static struct text hello_for(const char *name, size_t length) {
    return records(message_with(extensions_with(name, length)), 16384);
}

/* Feeds in pieces, each on the heap and without slack, for the sanitizer. */
static enum hello_verdict feed(struct hello *hello, const char *bytes, size_t length, size_t piece,
                               size_t *all) {
    enum hello_verdict verdict = HELLO_NEED_MORE;
    *all = 0;
    while (*all < length && verdict == HELLO_NEED_MORE) {
        size_t take = length - *all < piece ? length - *all : piece, used;
        memory_owned uint8_t *copy = memory_copy(bytes + *all, take);
        verdict = hello_feed(hello, copy, take, &used);
        assert_true(used <= take);
        if (verdict == HELLO_NEED_MORE)
            assert_int_equal(used, take);
        *all += used;
    }
    return verdict;
}

/* In one piece, byte by byte and in pieces between: always the same. The stream is freed. */
static void assert_stream(const char *what, struct text stream, enum hello_verdict verdict,
                          enum hello_fault fault, const char *name) {
    static const size_t pieces[] = {65536 * 2, 1, 2, 3, 5, 7, 100, 1000};
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        struct hello hello = {0};
        size_t used;
        enum hello_verdict got = feed(&hello, text_string(&stream), stream.length, pieces[i], &used);
        if (got != verdict || hello.fault != fault || hello.named != (name != NULL) ||
            strcmp(hello.name, name != NULL ? name : "") != 0)
            fail_msg("%s, in pieces of %zu: verdict %d, fault %d, name \"%s\"", what, pieces[i], got,
                     hello.fault, hello.name);
        if (verdict == HELLO_DONE)
            assert_int_equal(used, stream.length);
        if (verdict == HELLO_BAD) /* and stays so */
            assert_int_equal(hello_feed(&hello, (const uint8_t *)"x", 1, &used), HELLO_BAD);
    }
    text_free(&stream);
}

static void test_captured(void **state) {
    (void)state;
    struct text stream = {0};
    put(&stream, captured, sizeof captured);
    assert_stream("captured", stream, HELLO_DONE, HELLO_FAULT_NONE, "example.org");
}

static void test_versions(void **state) {
    (void)state;
    static const struct {
        const char record[2], message[2];
        enum hello_fault fault;
    } rows[] = {{"\3\1", "\3\1", HELLO_FAULT_NONE},    {"\3\1", "\3\2", HELLO_FAULT_NONE},
                {"\3\1", "\3\3", HELLO_FAULT_NONE},    {"\3\3", "\3\3", HELLO_FAULT_NONE},
                {"\3\0", "\3\1", HELLO_FAULT_NONE},    {"\3\4", "\3\4", HELLO_FAULT_NONE},
                {"\3\0", "\3\0", HELLO_FAULT_NOT_TLS}, {"\2\0", "\3\3", HELLO_FAULT_NOT_TLS},
                {"\3\5", "\3\3", HELLO_FAULT_NOT_TLS}, {"\3\1", "\xfe\xff", HELLO_FAULT_NOT_TLS},
                {"\3\1", "\3\5", HELLO_FAULT_NOT_TLS}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct text stream = hello_for("example.org", 11);
        memcpy(stream.data + 1, rows[i].record, 2);
        memcpy(stream.data + 9, rows[i].message, 2);
        bool good = rows[i].fault == HELLO_FAULT_NONE;
        assert_stream("version", stream, good ? HELLO_DONE : HELLO_BAD, rows[i].fault,
                      good ? "example.org" : NULL);
    }
}

/* The name cut between records at every byte. */
static void test_name_split_over_records(void **state) {
    (void)state;
    for (size_t size = 1; size < 200; size++)
        assert_stream("split", records(message_with(extensions_with("example.org", 11)), size), HELLO_DONE,
                      HELLO_FAULT_NONE, "example.org");
}

static void test_names(void **state) {
    (void)state;
    char longest[254], longer[255];
    memset(longest, 'a', sizeof longest);
    longest[63] = longest[127] = longest[191] = '.';
    longest[253] = '\0';
    snprintf(longer, sizeof longer, "%sb", longest);
    struct {
        const char *what, *given;
        size_t length;
        const char *expected;
    } rows[] = {
        {"case", "EXAMPLE.org", 11, "example.org"},
        {"an A-label", "xn--bcher-kva.test", 18, "xn--bcher-kva.test"},
        {"the longest", longest, 253, longest},
        {"one byte longer", longer, 254, NULL},
        {"NUL at the end", "example.org", 12, NULL},
        {"NUL inside", "example.org\0.evil.test", 22, NULL},
        {"NUL first", "\0example.org", 12, NULL},
        {"a last dot", "example.org.", 12, NULL},
        {"a dot", ".", 1, NULL},
        {"an IPv4 address", "169.254.169.254", 15, NULL},
        {"an IPv6 address", "fd00::1", 7, NULL},
        {"an IPv6 address in brackets", "[fd00::1]", 9, NULL},
        {"a number", "2852039166", 10, NULL},
        {"a port", "example.org:443", 15, NULL},
        {"a line feed", "example.org\n", 12, NULL},
        {"a blank", "example.org ", 12, NULL},
        {"UTF-8",
         "b\xc3\xbc"
         "cher.test",
         12, NULL},
        {"a wildcard", "*.example.org", 13, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_stream(rows[i].what, hello_for(rows[i].given, rows[i].length),
                      rows[i].expected != NULL ? HELLO_DONE : HELLO_BAD,
                      rows[i].expected != NULL ? HELLO_FAULT_NONE : HELLO_FAULT_NAME, rows[i].expected);
    assert_stream("an empty name", hello_for("", 0), HELLO_BAD, HELLO_FAULT_MALFORMED, NULL);
}

static void test_no_name(void **state) {
    (void)state;
    struct text extensions = {0};
    PUT(&extensions, "\0\x10\0\5\0\3\2h2");
    assert_stream("no server_name", records(message_with(extensions), 16384), HELLO_DONE, HELLO_FAULT_NONE,
                  NULL);
    assert_stream("an empty list of extensions", records(message_with((struct text){0}), 16384), HELLO_DONE,
                  HELLO_FAULT_NONE, NULL);
    struct text message = message_with((struct text){0});
    message.length -= 2; /* no list of extensions at all */
    message.data[3] = (char)(message.data[3] - 2);
    assert_stream("no extensions", records(message, 16384), HELLO_DONE, HELLO_FAULT_NONE, NULL);
}

static void test_two_names(void **state) {
    (void)state;
    struct text list = server_name_list("example.org", 11), extensions = {0};
    struct text second = server_name_list("evil.test", 9);
    put(&list, second.data, second.length);
    text_free(&second);
    put_server_names(&extensions, list);
    assert_stream("two names in the list", records(message_with(extensions), 16384), HELLO_BAD,
                  HELLO_FAULT_NAME, NULL);

    extensions = extensions_with("example.org", 11);
    put_server_names(&extensions, server_name_list("evil.test", 9));
    assert_stream("two server_name extensions", records(message_with(extensions), 16384), HELLO_BAD,
                  HELLO_FAULT_NAME, "example.org");

    list = server_name_list("example.org", 11);
    list.data[0] = 1;
    extensions = (struct text){0};
    put_server_names(&extensions, list);
    assert_stream("another kind of name", records(message_with(extensions), 16384), HELLO_BAD,
                  HELLO_FAULT_NAME, NULL);
}

static void test_encrypted(void **state) {
    (void)state;
    struct text extensions = extensions_with("cover.test", 10);
    PUT(&extensions, "\xfe\x0d\0\3abc");
    struct text stream = records(message_with(extensions), 16384);
    struct hello hello = {0};
    size_t used;
    assert_int_equal(feed(&hello, stream.data, stream.length, 1, &used), HELLO_DONE);
    assert_true(hello.encrypted);
    assert_string_equal(hello.name, "cover.test"); /* the outer one: what the rule is held against */
    text_free(&stream);
}

static struct text bytes_of(const char *bytes, size_t length) {
    struct text text = {0};
    put(&text, bytes, length);
    return text;
}
#define BYTES(literal) bytes_of(literal, sizeof literal - 1)

static void test_not_tls(void **state) {
    (void)state;
    assert_stream("HTTP", BYTES("GET / HTTP/1.1\r\n\r\n"), HELLO_BAD, HELLO_FAULT_NOT_TLS, NULL);
    assert_stream("SSH", BYTES("SSH-2.0-x\r\n"), HELLO_BAD, HELLO_FAULT_NOT_TLS, NULL);
    assert_stream("an SSL 2 ClientHello", BYTES("\x80\x2e\1\0\2\0\x15\0\0\0\x10"), HELLO_BAD,
                  HELLO_FAULT_NOT_TLS, NULL);
    assert_stream("an alert", BYTES("\x15\3\1\0\2\1\0"), HELLO_BAD, HELLO_FAULT_NOT_TLS, NULL);
    assert_stream("application data", BYTES("\x17\3\3\0\1x"), HELLO_BAD, HELLO_FAULT_NOT_TLS, NULL);
    assert_stream("a change of ciphers first", BYTES("\x14\3\1\0\1\1"), HELLO_BAD, HELLO_FAULT_NOT_TLS, NULL);
    assert_stream("one byte of TLS", BYTES("\x16"), HELLO_NEED_MORE, HELLO_FAULT_NONE, NULL);
    assert_stream("nothing", BYTES(""), HELLO_NEED_MORE, HELLO_FAULT_NONE, NULL);
}

static void test_records_malformed(void **state) {
    (void)state;
    assert_stream("an empty record", BYTES("\x16\3\1\0\0"), HELLO_BAD, HELLO_FAULT_MALFORMED, NULL);
    assert_stream("a record of 16,385 bytes", BYTES("\x16\3\1\x40\1\1"), HELLO_BAD, HELLO_FAULT_MALFORMED,
                  NULL);
    assert_stream("a ServerHello", BYTES("\x16\3\1\0\4\2\0\0\0"), HELLO_BAD, HELLO_FAULT_MALFORMED, NULL);
    assert_stream("a HelloRequest first", BYTES("\x16\3\1\0\4\0\0\0\0"), HELLO_BAD, HELLO_FAULT_MALFORMED,
                  NULL);

    static const char between[][7] = {"\x17\3\1\0\1x", "\x14\3\1\0\1\1", "\x15\3\1\0\2\1", "\x16\3\1\0\0"};
    for (size_t i = 0; i < 4; i++) {
        struct text stream = records(message_with(extensions_with("example.org", 11)), 50), mixed = {0};
        put(&mixed, stream.data, 55);
        put(&mixed, between[i], i == 3 ? 5 : 6);
        put(&mixed, stream.data + 55, stream.length - 55);
        text_free(&stream);
        assert_stream("another record between", mixed, HELLO_BAD, HELLO_FAULT_MALFORMED, NULL);
    }

    struct text message = message_with(extensions_with("example.org", 11));
    PUT(&message, "\1");
    assert_stream("a byte behind the ClientHello in its record", records(message, 16384), HELLO_BAD,
                  HELLO_FAULT_MALFORMED, "example.org");
    message = message_with(extensions_with("example.org", 11));
    struct text second = message_with(extensions_with("evil.test", 9));
    put(&message, second.data, second.length);
    text_free(&second);
    assert_stream("two ClientHellos in one record", records(message, 16384), HELLO_BAD, HELLO_FAULT_MALFORMED,
                  "example.org");
}

/* Every length in the message made one more and one less: no reader may take it, nor read past the end. */
static void test_lengths_that_do_not_agree(void **state) {
    (void)state;
    static const struct {
        const char *what;
        size_t at;
        enum hello_fault fault_more, fault_less;
    } rows[] = {
        /* in the message: type 1, length 3, version 2, random 32, session 1 + 32, ciphers 2 + 4, compression
           1 + 1 */
        {"session", 38, HELLO_FAULT_MALFORMED, HELLO_FAULT_MALFORMED},
        {"ciphers", 72, HELLO_FAULT_MALFORMED, HELLO_FAULT_MALFORMED},
        {"compression", 77, HELLO_FAULT_MALFORMED, HELLO_FAULT_MALFORMED},
        {"extensions", 80, HELLO_FAULT_MALFORMED, HELLO_FAULT_MALFORMED},
        {"an extension", 84, HELLO_FAULT_MALFORMED, HELLO_FAULT_MALFORMED},
        {"server_name", 97, HELLO_FAULT_MALFORMED, HELLO_FAULT_MALFORMED},
        {"the list", 99, HELLO_FAULT_MALFORMED, HELLO_FAULT_MALFORMED},
        {"the name", 102, HELLO_FAULT_MALFORMED, HELLO_FAULT_NAME},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int change = -1; change <= 1; change += 2) {
            struct text message = message_with(extensions_with("example.org", 11));
            if (rows[i].at == 84 && change < 0) { /* it was 0 */
                text_free(&message);
                continue;
            }
            message.data[rows[i].at] = (char)(message.data[rows[i].at] + change);
            struct text stream = records(message, 16384);
            struct hello hello = {0};
            size_t used;
            enum hello_verdict verdict = feed(&hello, stream.data, stream.length, 16384, &used);
            enum hello_fault fault = change > 0 ? rows[i].fault_more : rows[i].fault_less;
            if (verdict != HELLO_BAD || (hello.fault != fault && hello.fault != HELLO_FAULT_MALFORMED))
                fail_msg("%s%+d: verdict %d, fault %d, name \"%s\"", rows[i].what, change, verdict,
                         hello.fault, hello.name);
            text_free(&stream);
        }
    }
}

/* Cut anywhere it is not whole. */
static void test_cut(void **state) {
    (void)state;
    struct text stream = hello_for("example.org", 11);
    for (size_t length = 0; length < stream.length; length++) {
        struct hello hello = {0};
        size_t used;
        assert_int_equal(feed(&hello, stream.data, length, 16384, &used), HELLO_NEED_MORE);
    }
    text_free(&stream);
}

/* A ClientHello that fills the bound, in records of 16 KiB, byte by byte. */
static void test_64_kib(void **state) {
    (void)state;
    size_t message = 65536 - 4 * 5 - 4; /* four records */
    for (int more = 0; more <= 1; more++) {
        struct text extensions = {0}, padding = {0};
        size_t fixed = message_with(extensions_with("example.org", 11)).length;
        size_t length = message + 4 - fixed - 4 + (size_t)more;
        for (size_t i = 0; i < length; i++)
            PUT(&padding, "\0");
        PUT(&extensions, "\0\x15");
        put_part(&extensions, padding, 2);
        struct text rest = extensions_with("example.org", 11);
        put(&extensions, rest.data, rest.length);
        text_free(&rest);
        struct text stream = records(message_with(extensions), 16384);
        assert_int_equal(stream.length, 65536 + more);
        if (more == 0)
            assert_stream("64 KiB", stream, HELLO_DONE, HELLO_FAULT_NONE, "example.org");
        else
            assert_stream("a byte more", stream, HELLO_BAD, HELLO_FAULT_TOO_LONG, "example.org");
    }
    assert_stream("a message that is said to be longer", BYTES("\x16\3\1\x40\0\1\1\0\0"), HELLO_BAD,
                  HELLO_FAULT_TOO_LONG, NULL);
    /* Six bytes on the wire for each one. */
    struct text large = {0}, padding = {0};
    for (size_t i = 0; i < 20000; i++)
        PUT(&padding, "\0");
    PUT(&large, "\0\x15");
    put_part(&large, padding, 2);
    assert_stream("records of one byte", records(message_with(large), 1), HELLO_BAD, HELLO_FAULT_TOO_LONG,
                  NULL);
}

/* -- the server's answer -- */

#define RETRY_RANDOM                                                                                         \
    "\xcf\x21\xad\x74\xe5\x9a\x61\x11\xbe\x1d\x8c\x02\x1e\x65\xb8\x91"                                       \
    "\xc2\xa2\x11\x16\x7a\xbb\x8c\x5e\x07\x9e\x09\xe2\xc8\xa8\x33\x9c"
#define SERVER_HELLO(random) "\x16\3\3\0\x2a\2\0\0\x26\3\3" random "\0\x13\1\0"
#define RETRY SERVER_HELLO(RETRY_RANDOM)
#define PLAIN_RANDOM "0123456789abcdef0123456789abcdef"

static void begin(struct hello *hello) {
    struct text stream = hello_for("example.org", 11);
    size_t used;
    assert_int_equal(feed(hello, stream.data, stream.length, 16384, &used), HELLO_DONE);
    text_free(&stream);
}

static void assert_server(const char *what, const char *bytes, size_t length, enum hello_verdict verdict) {
    for (size_t piece = 1; piece <= length; piece++) {
        struct hello hello = {0};
        enum hello_verdict got = HELLO_NEED_MORE;
        begin(&hello);
        for (size_t at = 0; at < length && got == HELLO_NEED_MORE; at += piece) {
            size_t take = length - at < piece ? length - at : piece;
            memory_owned uint8_t *copy = memory_copy(bytes + at, take);
            got = hello_answer_feed(&hello, copy, take);
        }
        if (got != verdict || hello.fault != (verdict == HELLO_BAD ? HELLO_FAULT_ANSWER : HELLO_FAULT_NONE))
            fail_msg("%s, in pieces of %zu: verdict %d, fault %d", what, piece, got, hello.fault);
    }
}
#define ASSERT_SERVER(what, literal, verdict) assert_server(what, literal, sizeof literal - 1, verdict)

static void test_server_answers(void **state) {
    (void)state;
    ASSERT_SERVER("a ServerHello", SERVER_HELLO(PLAIN_RANDOM), HELLO_DONE);
    ASSERT_SERVER("half of one", "\x16\3\3\0\x2a\2\0\0\x26\3\3", HELLO_NEED_MORE);
    ASSERT_SERVER("a HelloRetryRequest", RETRY, HELLO_RETRY);
    ASSERT_SERVER("one split over records",
                  "\x16\3\3\0\5\2\0\0\x26\3\x16\3\3\0\x25\3" RETRY_RANDOM "\0\x13\1\0", HELLO_RETRY);
    ASSERT_SERVER("a random that ends otherwise",
                  "\x16\3\3\0\x2a\2\0\0\x26\3\3"
                  "\xcf\x21\xad\x74\xe5\x9a\x61\x11\xbe\x1d\x8c\x02\x1e\x65\xb8\x91"
                  "\xc2\xa2\x11\x16\x7a\xbb\x8c\x5e\x07\x9e\x09\xe2\xc8\xa8\x33\x9d",
                  HELLO_DONE);
    ASSERT_SERVER("a warning, then a HelloRetryRequest", "\x15\3\3\0\2\1\x70" RETRY, HELLO_RETRY);
    ASSERT_SERVER("a fatal alert", "\x15\3\3\0\2\2\x28", HELLO_NEED_MORE);
    ASSERT_SERVER("HTTP", "HTTP/1.1 400 Bad Request\r\n", HELLO_BAD);
    ASSERT_SERVER("application data", "\x17\3\3\0\1x", HELLO_BAD);
    ASSERT_SERVER("another message", "\x16\3\3\0\4\0\0\0\0", HELLO_BAD);
    ASSERT_SERVER("an empty record", "\x16\3\3\0\0", HELLO_BAD);
}

/* What the client says after a HelloRetryRequest; the stream is freed. */
static void assert_second(const char *what, struct text stream, enum hello_verdict verdict,
                          enum hello_fault fault) {
    static const size_t pieces[] = {65536, 1, 3, 17};
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        struct hello hello = {0};
        size_t used;
        begin(&hello);
        assert_int_equal(hello_answer_feed(&hello, (const uint8_t *)RETRY, sizeof RETRY - 1), HELLO_RETRY);
        enum hello_verdict got = feed(&hello, stream.data, stream.length, pieces[i], &used);
        if (got != verdict || hello.fault != fault)
            fail_msg("%s: verdict %d, fault %d, name \"%s\"", what, got, hello.fault, hello.name);
    }
    text_free(&stream);
}

static struct text after(const char *before, size_t length, struct text stream) {
    struct text whole = {0};
    put(&whole, before, length);
    put(&whole, stream.data, stream.length);
    text_free(&stream);
    return whole;
}

static void test_second_hello(void **state) {
    (void)state;
    assert_second("the same name", hello_for("example.org", 11), HELLO_DONE, HELLO_FAULT_NONE);
    assert_second("the same name, in capitals", hello_for("EXAMPLE.ORG", 11), HELLO_DONE, HELLO_FAULT_NONE);
    assert_second("another name", hello_for("evil.test", 9), HELLO_BAD, HELLO_FAULT_ANOTHER);
    assert_second("no name", records(message_with((struct text){0}), 16384), HELLO_BAD, HELLO_FAULT_ANOTHER);
    assert_second("a change of ciphers before", after("\x14\3\3\0\1\1", 6, hello_for("example.org", 11)),
                  HELLO_DONE, HELLO_FAULT_NONE);
    assert_second("another name behind a change of ciphers",
                  after("\x14\3\3\0\1\1", 6, hello_for("evil.test", 9)), HELLO_BAD, HELLO_FAULT_ANOTHER);
    assert_second("another name behind early data",
                  after("\x17\3\3\0\3abc\x14\3\3\0\1\1", 14, hello_for("evil.test", 9)), HELLO_BAD,
                  HELLO_FAULT_ANOTHER);
    assert_second("another name, split over records",
                  records(message_with(extensions_with("evil.test", 9)), 3), HELLO_BAD, HELLO_FAULT_ANOTHER);
    assert_second("another message", BYTES("\x16\3\3\0\4\x10\0\0\0"), HELLO_BAD, HELLO_FAULT_MALFORMED);
    assert_second("an alert", BYTES("\x15\3\3\0\2\2\0"), HELLO_BAD, HELLO_FAULT_MALFORMED);
    assert_second("nothing yet", BYTES("\x14\3\3\0\1\1"), HELLO_NEED_MORE, HELLO_FAULT_NONE);
}

static void test_alerts(void **state) {
    (void)state;
    struct hello hello = {0};
    uint8_t out[HELLO_ALERT_SIZE];
    hello_alert_write(&hello, HELLO_ALERT_UNRECOGNIZED_NAME, out);
    assert_memory_equal(out, "\x15\3\3\0\2\2\x70", 7);
    hello.version = 0x0301;
    hello_alert_write(&hello, HELLO_ALERT_DECODE_ERROR, out);
    assert_memory_equal(out, "\x15\3\1\0\2\2\x32", 7);
    assert_int_equal(hello_alert_for(HELLO_FAULT_NONE), HELLO_ALERT_UNRECOGNIZED_NAME);
    assert_int_equal(hello_alert_for(HELLO_FAULT_NAME), HELLO_ALERT_UNRECOGNIZED_NAME);
    assert_int_equal(hello_alert_for(HELLO_FAULT_TOO_LONG), HELLO_ALERT_DECODE_ERROR);
    for (enum hello_fault fault = HELLO_FAULT_NONE; fault <= HELLO_FAULT_ANSWER; fault++)
        assert_true(strlen(hello_fault_text(fault)) > 5);
}

/* What a connection that waits costs. */
static void test_size(void **state) {
    (void)state;
    assert_true(sizeof(struct hello) <= 600);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_captured),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_name_split_over_records),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_no_name),
        cmocka_unit_test(test_two_names),
        cmocka_unit_test(test_encrypted),
        cmocka_unit_test(test_not_tls),
        cmocka_unit_test(test_records_malformed),
        cmocka_unit_test(test_lengths_that_do_not_agree),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_64_kib),
        cmocka_unit_test(test_server_answers),
        cmocka_unit_test(test_second_hello),
        cmocka_unit_test(test_alerts),
        cmocka_unit_test(test_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
