/* The broker's DNS: questions from a workload, the answers to them, and the framing over TCP. The first byte
 * chooses the answer and the size of its buffer. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "egress/dns.h"

#define REQUIRE(condition)                                                                                   \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            abort();                                                                                         \
    } while (0)

static void name_check(const struct dns_query *query) {
    REQUIRE(memchr(query->name, '\0', sizeof query->name) != NULL);
    for (const char *byte = query->name; *byte != '\0'; byte++)
        REQUIRE(*byte > ' ' && *byte < 0x7f);
    char again[HOST_NAME_SIZE];
    if (query->is_host)
        REQUIRE(host_name_normalise(query->host, strlen(query->host), again) &&
                strcmp(again, query->host) == 0);
    else
        REQUIRE(query->host[0] == '\0');
}

static void answer_check(const struct dns_query *query, enum dns_rcode rcode, uint8_t choice) {
    static const uint8_t address[16] = {198, 18, 0, 1};
    struct dns_answer answer = DNS_ANSWER(rcode);
    answer.ipv4 = choice & 1 ? address : NULL;
    answer.ipv6 = choice & 2 ? address : NULL;
    answer.pointer = choice & 4 && query->is_host ? query->host : NULL;
    answer.extended_error = choice & 8 ? DNS_EDE_BLOCKED : DNS_EDE_NONE;
    answer.error_text = choice & 16 ? "not allowed by the policy" : NULL;
    size_t size = choice & 32 ? (size_t)(choice * 3) : dns_udp_size(query);
    uint8_t *out = malloc(size + 1);
    REQUIRE(out != NULL);
    size_t length = dns_answer_write(query, &answer, out, size);
    REQUIRE(length <= size && (length == 0 || length >= 12));
    /* An answer is never taken for a question. */
    struct dns_query back;
    REQUIRE(dns_query_parse(out, length, &back, &rcode) == DNS_SILENCE);
    free(out);
}

static void stream_check(const uint8_t *bytes, size_t length, size_t piece) {
    struct dns_stream stream = {0};
    size_t messages = 0;
    for (size_t at = 0; at < length;) {
        size_t left = length - at, used = 0, found;
        enum dns_stream_verdict verdict =
            dns_stream_feed(&stream, bytes + at, left < piece ? left : piece, &used);
        REQUIRE(used <= left);
        if (verdict == DNS_STREAM_BAD)
            break;
        REQUIRE(used > 0);
        at += used;
        if (verdict == DNS_STREAM_MESSAGE) {
            REQUIRE(dns_stream_message(&stream, &found) != NULL && found >= 12 && found <= DNS_QUERY_MAX);
            messages++;
        }
    }
    REQUIRE(messages <= length / 14);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    if (length < 1)
        return 0;
    /* A copy of its own, unaligned and without a byte of slack, so that a read past the end is seen. */
    uint8_t *copy = malloc(length);
    if (copy == NULL)
        return 0;
    memcpy(copy, bytes, length);
    struct dns_query query;
    enum dns_rcode rcode;
    enum dns_verdict verdict = dns_query_parse(copy + 1, length - 1, &query, &rcode);
    name_check(&query);
    REQUIRE((rcode == DNS_NOERROR) == (verdict == DNS_QUESTION));
    int family;
    uint8_t address[16];
    if (dns_query_reverse(&query, &family, address))
        REQUIRE(family == AF_INET || family == AF_INET6);
    if (verdict != DNS_SILENCE)
        answer_check(&query, rcode, copy[0]);
    stream_check(copy + 1, length - 1, 1u + copy[0]);
    free(copy);
    return 0;
}
