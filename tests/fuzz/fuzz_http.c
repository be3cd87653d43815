/* Requests of a workload. The first byte chooses the size of the pieces: however the stream is cut, the same
 * bytes are let through and the verdict is the same. A head that is let through is looked at again, line by
 * line, by the most lenient of servers: it must not find another Host, nor another end. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "egress/http.h"

#define REQUIRE(condition)                                                                                   \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            abort();                                                                                         \
    } while (0)

struct outcome {
    struct http_reader reader;
    enum http_verdict verdict;
    size_t cleared; /* bytes that may be forwarded */
    size_t taken;
};

static bool has_prefix(const uint8_t *line, size_t length, const char *prefix) {
    return length >= strlen(prefix) && strncasecmp((const char *)line, prefix, strlen(prefix)) == 0;
}

static void head_check(const uint8_t *head, size_t length, const struct http_reader *reader) {
    unsigned hosts = 0, lengths = 0, codings = 0;
    size_t line = 0;
    for (size_t i = 0; i < length; i++) {
        REQUIRE(head[i] != '\0' && (head[i] != '\n' || (i > 0 && head[i - 1] == '\r')));
        REQUIRE(head[i] != '\r' || (i + 1 < length && head[i + 1] == '\n'));
        if (head[i] != '\n')
            continue;
        size_t size = i - 1 - line;
        REQUIRE(size > 0 || line == 0 || i == length - 1); /* the blank line is the end */
        hosts += has_prefix(head + line, size, "host:");
        lengths += has_prefix(head + line, size, "content-length:");
        codings += has_prefix(head + line, size, "transfer-encoding:");
        REQUIRE(!has_prefix(head + line, size, "upgrade: h2c"));
        REQUIRE(size == 0 || (head[line] != ' ' && head[line] != '\t'));
        line = i + 1;
    }
    REQUIRE(length >= 4 && memcmp(head + length - 4, "\r\n\r\n", 4) == 0 && length <= HTTP_HEAD_MAX);
    REQUIRE(hosts == reader->has_host && lengths + codings <= 1);
    char again[HOST_NAME_SIZE];
    if (reader->has_host)
        REQUIRE(host_name_normalise(reader->host, strlen(reader->host), again) &&
                strcmp(again, reader->host) == 0);
    REQUIRE(!http_host_is(reader, "", 80));
}

static struct outcome feed(uint8_t *bytes, size_t length, size_t piece) {
    struct outcome outcome = {.verdict = HTTP_NEED_MORE};
    size_t rounds = 0;
    while (outcome.taken < length && outcome.verdict != HTTP_BAD) {
        size_t left = length - outcome.taken, take = left < piece ? left : piece, used;
        outcome.verdict = http_feed(&outcome.reader, bytes + outcome.taken, take, &used);
        REQUIRE(used <= take && ++rounds <= length + 1);
        outcome.taken += used;
        REQUIRE(outcome.verdict != HTTP_NEED_MORE || used == take);
        if (outcome.verdict == HTTP_REQUEST)
            head_check(bytes + outcome.cleared, outcome.taken - outcome.cleared, &outcome.reader);
        if (outcome.verdict == HTTP_REQUEST || outcome.verdict == HTTP_BODY) {
            REQUIRE(used > 0);
            outcome.cleared = outcome.taken;
        }
    }
    REQUIRE(outcome.taken - outcome.cleared <= HTTP_HEAD_MAX);
    REQUIRE((outcome.verdict == HTTP_BAD) == (outcome.reader.fault != HTTP_FAULT_NONE));
    REQUIRE(memchr(outcome.reader.method, '\0', HTTP_METHOD_SIZE) != NULL);
    REQUIRE(memchr(outcome.reader.host, '\0', HOST_NAME_SIZE) != NULL);
    for (const char *byte = outcome.reader.host; *byte != '\0'; byte++)
        REQUIRE(*byte > ' ' && *byte < 0x7f);
    return outcome;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    if (length < 1)
        return 0;
    /* Copies of their own, without a byte of slack, so that a read past the end is seen. */
    uint8_t *whole = malloc(length), *cut = malloc(length);
    if (whole != NULL && cut != NULL) {
        memcpy(whole, bytes, length);
        memcpy(cut, bytes, length);
        struct outcome one = feed(whole + 1, length - 1, length);
        struct outcome other = feed(cut + 1, length - 1, 1u + bytes[0] % 64);
        REQUIRE(one.cleared == other.cleared && one.taken == other.taken);
        REQUIRE(memcmp(&one.reader, &other.reader, sizeof one.reader) == 0);
        REQUIRE(memcmp(whole + 1, cut + 1, length - 1) == 0);
    }
    free(whole);
    free(cut);
    return 0;
}
