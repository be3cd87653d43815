/* egress/dns: questions from hostile bytes, and the answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>

#include "base/memory.h"
#include "base/text.h"
#include "egress/dns.h"

struct message {
    uint8_t bytes[4096];
    size_t length;
};

static void add(struct message *message, const void *bytes, size_t length) {
    assert_true(message->length + length <= sizeof message->bytes);
    memcpy(message->bytes + message->length, bytes, length);
    message->length += length;
}

#define ADD(message, literal) add(message, literal, sizeof literal - 1)

/* Id 0x1234, RD, and the numbers of records. */
static struct message begin(uint8_t questions, uint8_t answers, uint8_t authorities, uint8_t additional) {
    struct message message = {0};
    uint8_t header[12] = {0x12, 0x34, 0x01, 0, 0, questions, 0, answers, 0, authorities, 0, additional};
    add(&message, header, sizeof header);
    return message;
}

#define EXAMPLE "\7eXaMple\3ORG\0"
#define TYPE_A "\0\1\0\1"
/* 1,400 bytes, DO, no options */
#define OPT "\0\0\x29\x05\x78\0\0\x80\0\0\0"

static enum dns_verdict parse(const struct message *message, struct dns_query *query, enum dns_rcode *rcode) {
    /* On the heap and without slack, for the sanitizer. */
    memory_owned uint8_t *copy = memory_copy(message->bytes, message->length);
    return dns_query_parse(copy, message->length, query, rcode);
}

static struct dns_query parse_whole(const struct message *message) {
    struct dns_query query;
    enum dns_rcode rcode;
    assert_int_equal(parse(message, &query, &rcode), DNS_QUESTION);
    assert_int_equal(rcode, DNS_NOERROR);
    return query;
}

static struct dns_query ask(const char *name, size_t length, bool edns) {
    struct message message = begin(1, 0, 0, edns);
    add(&message, name, length);
    ADD(&message, TYPE_A);
    if (edns)
        ADD(&message, OPT);
    return parse_whole(&message);
}

static void test_plain_question(void **state) {
    (void)state;
    struct message message = begin(1, 0, 0, 0);
    ADD(&message, EXAMPLE TYPE_A);
    struct dns_query query = parse_whole(&message);
    assert_int_equal(query.id, 0x1234);
    assert_int_equal(query.type, DNS_TYPE_A);
    assert_int_equal(query.class, DNS_CLASS_IN);
    assert_true(query.recursion_desired);
    assert_false(query.checking_disabled);
    assert_false(query.edns);
    assert_int_equal(query.udp_size, 512);
    assert_int_equal(dns_udp_size(&query), 512);
    assert_string_equal(query.name, "eXaMple.ORG");
    assert_true(query.is_host);
    assert_string_equal(query.host, "example.org");
    assert_int_equal(query.question_length, 17);
    assert_memory_equal(query.question, EXAMPLE TYPE_A, 17);
}

static void test_edns_question(void **state) {
    (void)state;
    struct message message = begin(1, 0, 0, 1);
    /* A cookie and padding of 4: RFC 7873, 7830. */
    ADD(&message, EXAMPLE "\0\x41\0\1");
    ADD(&message, "\0\0\x29\x10\0\0\0\x80\0\0\x14\0\x0a\0\x08"
                  "cookie!!"
                  "\0\x0c\0\4\0\0\0\0");
    struct dns_query query = parse_whole(&message);
    assert_int_equal(query.type, DNS_TYPE_HTTPS);
    assert_true(query.edns);
    assert_true(query.dnssec_ok);
    assert_int_equal(query.udp_size, 4096);
    assert_int_equal(dns_udp_size(&query), DNS_ANSWER_MAX);
}

/* What is a question but no host: printable in `name`, nothing in `host`. */
static void test_names_that_are_no_hosts(void **state) {
    (void)state;
    static const struct {
        const char *what, *wire;
        size_t length;
        const char *name;
    } rows[] = {
        {"the root", "", 1, "."},
        {"NUL", "\5a\0bcd\4test", 12, "a\\000bcd.test"},
        {"a label with a dot is not two labels", "\013example.org", 13, "example\\046org"},
        {"backslash", "\2a\\\1b", 6, "a\\092.b"},
        {"controls and beyond ASCII", "\4\n\x7f\xff \1b", 8, "\\010\\127\\255\\032.b"},
        {"a wildcard", "\1*\4test", 8, "*.test"},
        {"an address",
         "\3"
         "169\3"
         "254\3"
         "169\3"
         "254",
         17, "169.254.169.254"},
        {"an empty-looking label", "\1-\1b", 5, "-.b"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct dns_query query = ask(rows[i].wire, rows[i].length, false);
        if (query.is_host || strcmp(query.name, rows[i].name) != 0 || query.host[0] != '\0')
            fail_msg("%s: name %s host %s", rows[i].what, query.name, query.host);
    }
}

/* 255 bytes on the wire, each one four characters. */
static void test_longest_name(void **state) {
    (void)state;
    char wire[256];
    text_owned struct text name = {0};
    memset(wire, 0xff, sizeof wire);
    wire[0] = wire[64] = wire[128] = 63;
    wire[192] = 61;
    wire[254] = 0;
    struct dns_query query = ask(wire, 255, true);
    for (int i = 0; i < 63 * 3 + 61; i++)
        text_format(&name, "%s\\255", i == 63 || i == 126 || i == 189 ? "." : "");
    assert_string_equal(query.name, text_string(&name));
    assert_int_equal(query.question_length, sizeof query.question);

    memset(wire, 'a', sizeof wire);
    wire[0] = wire[64] = wire[128] = 63;
    wire[192] = 61;
    wire[254] = 0;
    query = ask(wire, 255, true);
    assert_true(query.is_host);
    assert_int_equal(strlen(query.host), 253);
}

static void assert_refused(const char *what, const struct message *message, enum dns_verdict verdict,
                           enum dns_rcode rcode) {
    struct dns_query query;
    enum dns_rcode found;
    enum dns_verdict got = parse(message, &query, &found);
    if (got != verdict || (verdict == DNS_FAULTY && found != rcode))
        fail_msg("%s: verdict %d, code %d", what, got, found);
    if (verdict == DNS_FAULTY && query.id != 0x1234)
        fail_msg("%s: id %x", what, query.id);
    /* Whatever it was, the answer to it can be written. */
    uint8_t out[DNS_ANSWER_MAX];
    struct dns_answer answer = DNS_ANSWER(found);
    assert_in_range(dns_answer_write(&query, &answer, out, sizeof out), 12, sizeof out);
}

#define REFUSED(what, code, questions, answers, authorities, additional, rest)                               \
    do {                                                                                                     \
        struct message message = begin(questions, answers, authorities, additional);                         \
        ADD(&message, rest);                                                                                 \
        assert_refused(what, &message, DNS_FAULTY, code);                                                    \
    } while (0)

static void test_label_tricks(void **state) {
    (void)state;
    REFUSED("a pointer to itself (loop)", DNS_FORMERR, 1, 0, 0, 0, "\xc0\x0c" TYPE_A);
    REFUSED("a pointer back into the name (loop)", DNS_FORMERR, 1, 0, 0, 0, "\1a\xc0\x0c" TYPE_A);
    REFUSED("a pointer ahead", DNS_FORMERR, 1, 0, 0, 0, "\xc0\x12" TYPE_A EXAMPLE);
    REFUSED("a pointer into the header", DNS_FORMERR, 1, 0, 0, 0, "\4test\xc0\x00" TYPE_A);
    REFUSED("a pointer that is cut", DNS_FORMERR, 1, 0, 0, 0, "\4test\xc0");
    REFUSED("label type 01", DNS_FORMERR, 1, 0, 0, 0, "\x41\1aaaa\0" TYPE_A);
    REFUSED("label type 10", DNS_FORMERR, 1, 0, 0, 0, "\x80\1aaaa\0" TYPE_A);
    REFUSED("a label beyond the end", DNS_FORMERR, 1, 0, 0, 0,
            "\x20"
            "aaaa");
    REFUSED("a name without an end", DNS_FORMERR, 1, 0, 0, 0, "\4test");
    REFUSED("a name whose last byte is 0 but no end", DNS_FORMERR, 1, 0, 0, 0, "\4tes\0");
    REFUSED("no name", DNS_FORMERR, 1, 0, 0, 0, "");
    REFUSED("half a type", DNS_FORMERR, 1, 0, 0, 0, EXAMPLE "\0");
    REFUSED("no class", DNS_FORMERR, 1, 0, 0, 0, EXAMPLE "\0\1");

    struct message message = begin(1, 0, 0, 0);
    for (int i = 0; i < 128; i++) /* 257 bytes in labels of one */
        ADD(&message, "\1a");
    ADD(&message, "\0" TYPE_A);
    assert_refused("a name of 257 bytes", &message, DNS_FAULTY, DNS_FORMERR);
    message = begin(1, 0, 0, 0);
    for (int i = 0; i < 127; i++) /* 255 with the last one */
        ADD(&message, "\1a");
    ADD(&message, "\0" TYPE_A);
    struct dns_query query = parse_whole(&message);
    assert_int_equal(strlen(query.host), 253);
}

static void test_counts(void **state) {
    (void)state;
    REFUSED("no question", DNS_FORMERR, 0, 0, 0, 0, "");
    REFUSED("no question, with one behind it", DNS_FORMERR, 0, 0, 0, 0, EXAMPLE TYPE_A);
    REFUSED("two questions", DNS_FORMERR, 2, 0, 0, 0, EXAMPLE TYPE_A "\4evil\0" TYPE_A);
    REFUSED("an answer", DNS_FORMERR, 1, 1, 0, 0, EXAMPLE TYPE_A EXAMPLE TYPE_A "\0\0\0\0\0\0");
    REFUSED("an authority", DNS_FORMERR, 1, 0, 1, 0, EXAMPLE TYPE_A EXAMPLE TYPE_A "\0\0\0\0\0\0");
    REFUSED("two OPT records", DNS_FORMERR, 1, 0, 0, 2, EXAMPLE TYPE_A OPT OPT);
    REFUSED("an additional record that is not OPT", DNS_FORMERR, 1, 0, 0, 1,
            EXAMPLE TYPE_A "\0" TYPE_A "\0\0\0\0\0\0");
    REFUSED("an OPT record with a name", DNS_FORMERR, 1, 0, 0, 1, EXAMPLE TYPE_A "\1a" OPT);
    REFUSED("an OPT record that is not there", DNS_FORMERR, 1, 0, 0, 1, EXAMPLE TYPE_A);
    REFUSED("bytes at the end", DNS_FORMERR, 1, 0, 0, 0, EXAMPLE TYPE_A "x");
    REFUSED("an OPT record that was not announced", DNS_FORMERR, 1, 0, 0, 0, EXAMPLE TYPE_A OPT);
    REFUSED("options beyond the end", DNS_FORMERR, 1, 0, 0, 1,
            EXAMPLE TYPE_A "\0\0\x29\x05\x78\0\0\0\0\0\x10");
    REFUSED("an option beyond its record", DNS_FORMERR, 1, 0, 0, 1,
            EXAMPLE TYPE_A "\0\0\x29\x05\x78\0\0\0\0\0\4\0\x0a\0\1");
    REFUSED("half an option", DNS_FORMERR, 1, 0, 0, 1, EXAMPLE TYPE_A "\0\0\x29\x05\x78\0\0\0\0\0\2\0\x0a");
    REFUSED("EDNS version 1", DNS_BADVERS, 1, 0, 0, 1, EXAMPLE TYPE_A "\0\0\x29\x05\x78\0\1\0\0\0\0");
}

static void test_headers(void **state) {
    (void)state;
    struct message message = begin(1, 0, 0, 0);
    ADD(&message, EXAMPLE TYPE_A);
    message.bytes[2] = 0x81;
    assert_refused("an answer", &message, DNS_SILENCE, DNS_NOERROR);
    message.bytes[2] = 0x29;
    assert_refused("UPDATE", &message, DNS_FAULTY, DNS_NOTIMP);
    message.bytes[2] = 0x11;
    assert_refused("STATUS", &message, DNS_FAULTY, DNS_NOTIMP);
    message.bytes[2] = 0x21;
    assert_refused("NOTIFY", &message, DNS_FAULTY, DNS_NOTIMP);
    message.bytes[2] = 0x03;
    assert_refused("truncated", &message, DNS_FAULTY, DNS_FORMERR);
    message.bytes[2] = 0x01;
    message.bytes[3] = 0x10;
    assert_true(parse_whole(&message).checking_disabled);
    for (size_t length = 0; length < message.length; length++) {
        struct message cut = message;
        cut.length = length;
        assert_refused("cut", &cut, length < 12 ? DNS_SILENCE : DNS_FAULTY, DNS_FORMERR);
    }
}

static void test_reverse_names(void **state) {
    (void)state;
    static const struct {
        const char *name, *address;
    } rows[] = {
        {"4.3.2.1.in-addr.arpa", "1.2.3.4"},
        {"1.0.18.198.IN-ADDR.arpa", "198.18.0.1"},
        {"255.255.255.255.in-addr.arpa", "255.255.255.255"},
        {"1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.9.0.0.d.f.ip6.arpa", "fd00:9800::1"},
        {"1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.9.0.0.D.F.ip6.arpa", "fd00:9800::1"},
        {"3.2.1.in-addr.arpa", NULL},
        {"5.4.3.2.1.in-addr.arpa", NULL},
        {"256.3.2.1.in-addr.arpa", NULL},
        {"04.3.2.1.in-addr.arpa", NULL},
        {"0004.3.2.1.in-addr.arpa", NULL},
        {"4.3.2.1.in-addr.arpa.evil.test", NULL},
        {"4.3.2.1.ip6.arpa", NULL},
        {"in-addr.arpa", NULL},
        {"0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.9.0.0.d.f.ip6.arpa", NULL},
        {"g.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.9.0.0.d.f.ip6.arpa", NULL},
        {"100.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.9.0.0.d.f.ip6.arpa", NULL},
        {"example.org", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char wire[256];
        size_t used = 0;
        for (const char *label = rows[i].name; *label != '\0';) {
            size_t length = strcspn(label, ".");
            wire[used++] = (char)length;
            memcpy(wire + used, label, length);
            used += length;
            label += length + (label[length] == '.');
        }
        wire[used++] = '\0';
        struct dns_query query = ask(wire, used, false);
        int family = AF_UNSPEC;
        uint8_t address[16];
        char text[INET6_ADDRSTRLEN] = "none";
        if (dns_query_reverse(&query, &family, address))
            inet_ntop(family, address, text, sizeof text);
        if (strcmp(text, rows[i].address != NULL ? rows[i].address : "none") != 0)
            fail_msg("%s: %s", rows[i].name, text);
    }
}

static void assert_answer(const struct dns_query *query, const struct dns_answer *answer, size_t size,
                          const void *expected, size_t length) {
    memory_owned uint8_t *out = memory_zeroed(size);
    size_t written = dns_answer_write(query, answer, out, size);
    assert_int_equal(written, length);
    assert_memory_equal(out, expected, length);
}
#define ASSERT_ANSWER(query, answer, size, literal)                                                          \
    assert_answer(query, answer, size, literal, sizeof literal - 1)

static const uint8_t ipv4[4] = {198, 18, 0, 1};
static const uint8_t ipv6[16] = {0xfd, 0, 0x98, 0, [15] = 1};

/* Every answer repeats the question byte by byte: clients that vary the case look for it. */
static void test_answers(void **state) {
    (void)state;
    struct dns_query query = ask(EXAMPLE, 13, false);
    struct dns_answer answer = DNS_ANSWER(DNS_NOERROR);
    ASSERT_ANSWER(&query, &answer, 512, "\x12\x34\x81\x80\0\1\0\0\0\0\0\0" EXAMPLE TYPE_A);
    answer.ipv4 = ipv4;
    ASSERT_ANSWER(&query, &answer, 512,
                  "\x12\x34\x81\x80\0\1\0\1\0\0\0\0" EXAMPLE TYPE_A
                  "\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\xc6\x12\0\1");
    answer.ipv4 = NULL;
    answer.ipv6 = ipv6;
    ASSERT_ANSWER(&query, &answer, 512,
                  "\x12\x34\x81\x80\0\1\0\1\0\0\0\0" EXAMPLE TYPE_A
                  "\xc0\x0c\0\x1c\0\1\0\0\0\x3c\0\x10\xfd\0\x98\0\0\0\0\0\0\0\0\0\0\0\0\1");
    answer.ipv6 = NULL;
    answer.pointer = "a.example.org";
    ASSERT_ANSWER(&query, &answer, 512,
                  "\x12\x34\x81\x80\0\1\0\1\0\0\0\0" EXAMPLE TYPE_A
                  "\xc0\x0c\0\x0c\0\1\0\0\0\x3c\0\x0f\1a\7example\3org\0");
    answer = DNS_ANSWER(DNS_NXDOMAIN);
    answer.extended_error = DNS_EDE_BLOCKED;
    answer.error_text = "no";
    /* Without EDNS there is no place for the error. */
    ASSERT_ANSWER(&query, &answer, 512, "\x12\x34\x81\x83\0\1\0\0\0\0\0\0" EXAMPLE TYPE_A);
}

#define OPT_ANSWER "\0\0\x29\x04\xd0\0\0\x80\0"

static void test_extended_error(void **state) {
    (void)state;
    struct dns_query query = ask(EXAMPLE, 13, true);
    struct dns_answer answer = DNS_ANSWER(DNS_NXDOMAIN);
    ASSERT_ANSWER(&query, &answer, 512, "\x12\x34\x81\x83\0\1\0\0\0\0\0\1" EXAMPLE TYPE_A OPT_ANSWER "\0\0");
    answer.extended_error = DNS_EDE_BLOCKED;
    ASSERT_ANSWER(&query, &answer, 512,
                  "\x12\x34\x81\x83\0\1\0\0\0\0\0\1" EXAMPLE TYPE_A OPT_ANSWER "\0\6\0\x0f\0\2\0\x0f");
    answer.error_text = "not allowed";
    ASSERT_ANSWER(&query, &answer, 512,
                  "\x12\x34\x81\x83\0\1\0\0\0\0\0\1" EXAMPLE TYPE_A OPT_ANSWER
                  "\0\x11\0\x0f\0\x0d\0\x0fnot allowed");
    /* 12 + 17 + 11 + 6: the text goes first, then the error. */
    ASSERT_ANSWER(&query, &answer, 46,
                  "\x12\x34\x81\x83\0\1\0\0\0\0\0\1" EXAMPLE TYPE_A OPT_ANSWER "\0\6\0\x0f\0\2\0\x0f");
    ASSERT_ANSWER(&query, &answer, 45, "\x12\x34\x81\x83\0\1\0\0\0\0\0\1" EXAMPLE TYPE_A OPT_ANSWER "\0\0");
}

static void test_bad_version_is_told_in_opt(void **state) {
    (void)state;
    struct message message = begin(1, 0, 0, 1);
    ADD(&message, EXAMPLE TYPE_A "\0\0\x29\x05\x78\0\1\0\0\0\0");
    struct dns_query query;
    enum dns_rcode rcode;
    assert_int_equal(parse(&message, &query, &rcode), DNS_FAULTY);
    struct dns_answer answer = DNS_ANSWER(rcode);
    ASSERT_ANSWER(&query, &answer, 512,
                  "\x12\x34\x81\x80\0\1\0\0\0\0\0\1" EXAMPLE TYPE_A "\0\0\x29\x04\xd0\1\0\0\0\0\0");
}

static void test_answers_that_do_not_fit(void **state) {
    (void)state;
    struct dns_query query = ask(EXAMPLE, 13, false);
    struct dns_answer answer = DNS_ANSWER(DNS_NOERROR);
    answer.ipv4 = ipv4;
    ASSERT_ANSWER(&query, &answer, 44, "\x12\x34\x83\x80\0\1\0\0\0\0\0\0" EXAMPLE TYPE_A);
    ASSERT_ANSWER(&query, &answer, 28, "\x12\x34\x83\x80\0\0\0\0\0\0\0\0");
    uint8_t out[11];
    assert_int_equal(dns_answer_write(&query, &answer, out, sizeof out), 0);
    /* The longest question, with a name as long for an answer, has room over TCP and in what UDP may have. */
    char wire[255], name[254];
    memset(wire, 'a', sizeof wire);
    wire[0] = wire[64] = wire[128] = 63;
    wire[192] = 61;
    wire[254] = 0;
    memset(name, 'b', sizeof name);
    name[63] = name[127] = name[191] = '.';
    name[253] = '\0';
    query = ask(wire, sizeof wire, true);
    answer = DNS_ANSWER(DNS_NOERROR);
    answer.pointer = name;
    answer.extended_error = DNS_EDE_BLOCKED;
    char text[256];
    memset(text, 't', sizeof text);
    text[255] = '\0';
    answer.error_text = text;
    uint8_t large[DNS_ANSWER_MAX];
    assert_int_equal(dns_answer_write(&query, &answer, large, sizeof large),
                     12 + 259 + 12 + 255 + 11 + 6 + 255);
    assert_int_equal(large[2] & 2, 0);
}

/* Messages over TCP, cut at every place; two in one piece. */
static void test_stream(void **state) {
    (void)state;
    struct message message = begin(1, 0, 0, 0), both = {0};
    ADD(&message, EXAMPLE TYPE_A);
    uint8_t length[2] = {0, (uint8_t)message.length};
    for (int i = 0; i < 2; i++) {
        add(&both, length, 2);
        add(&both, message.bytes, message.length);
    }
    for (size_t piece = 1; piece <= both.length; piece++) {
        struct dns_stream stream = {0};
        int messages = 0;
        for (size_t at = 0; at < both.length;) {
            size_t left = both.length - at, used, found;
            enum dns_stream_verdict verdict =
                dns_stream_feed(&stream, both.bytes + at, left < piece ? left : piece, &used);
            at += used;
            assert_int_not_equal(verdict, DNS_STREAM_BAD);
            if (verdict == DNS_STREAM_MORE)
                continue;
            const uint8_t *bytes = dns_stream_message(&stream, &found);
            assert_non_null(bytes);
            assert_int_equal(found, message.length);
            assert_memory_equal(bytes, message.bytes, found);
            messages++;
        }
        assert_int_equal(messages, 2);
    }
}

static void test_stream_lengths(void **state) {
    (void)state;
    static const struct {
        const char bytes[2];
        enum dns_stream_verdict verdict;
    } rows[] = {{"\0\0", DNS_STREAM_BAD},      {"\0\x0b", DNS_STREAM_BAD},   {"\0\x0c", DNS_STREAM_MORE},
                {"\x04\xd0", DNS_STREAM_MORE}, {"\x04\xd1", DNS_STREAM_BAD}, {"\xff\xff", DNS_STREAM_BAD}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct dns_stream stream = {0};
        size_t used;
        assert_int_equal(dns_stream_feed(&stream, (const uint8_t *)rows[i].bytes, 2, &used), rows[i].verdict);
        if (rows[i].verdict == DNS_STREAM_BAD)
            assert_int_equal(dns_stream_feed(&stream, (const uint8_t *)"\0", 1, &used), DNS_STREAM_BAD);
    }
    /* The longest one. */
    struct dns_stream stream = {0};
    uint8_t bytes[2 + DNS_QUERY_MAX] = {DNS_QUERY_MAX >> 8, DNS_QUERY_MAX & 0xff};
    size_t used, length;
    assert_int_equal(dns_stream_feed(&stream, bytes, sizeof bytes, &used), DNS_STREAM_MESSAGE);
    assert_int_equal(used, sizeof bytes);
    assert_non_null(dns_stream_message(&stream, &length));
    assert_int_equal(length, DNS_QUERY_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_question),
        cmocka_unit_test(test_edns_question),
        cmocka_unit_test(test_names_that_are_no_hosts),
        cmocka_unit_test(test_longest_name),
        cmocka_unit_test(test_label_tricks),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_reverse_names),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_extended_error),
        cmocka_unit_test(test_bad_version_is_told_in_opt),
        cmocka_unit_test(test_answers_that_do_not_fit),
        cmocka_unit_test(test_stream),
        cmocka_unit_test(test_stream_lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
