/* The ClientHello and the server's answer. The first byte chooses the size of the pieces, the second one
 * where the server's answer begins. However the stream is cut, the verdict is the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "egress/hello.h"

#define REQUIRE(condition)                                                                                   \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            abort();                                                                                         \
    } while (0)

static void name_check(const struct hello *hello) {
    char again[HOST_NAME_SIZE];
    REQUIRE(memchr(hello->name, '\0', sizeof hello->name) != NULL);
    if (hello->named)
        REQUIRE(host_name_normalise(hello->name, strlen(hello->name), again) &&
                strcmp(again, hello->name) == 0);
}

static enum hello_verdict feed(struct hello *hello, const uint8_t *bytes, size_t length, size_t piece,
                               size_t *all) {
    enum hello_verdict verdict = HELLO_NEED_MORE;
    *all = 0;
    while (*all < length && verdict == HELLO_NEED_MORE) {
        size_t take = length - *all < piece ? length - *all : piece, used;
        verdict = hello_feed(hello, bytes + *all, take, &used);
        REQUIRE(used <= take && (verdict != HELLO_NEED_MORE || used == take));
        *all += used;
    }
    REQUIRE(*all <= HELLO_MAX && verdict != HELLO_RETRY);
    REQUIRE((verdict == HELLO_BAD) == (hello->fault != HELLO_FAULT_NONE));
    if (verdict != HELLO_NEED_MORE)
        name_check(hello);
    return verdict;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    if (length < 2)
        return 0;
    /* A copy of its own, without a byte of slack, so that a read past the end is seen. */
    uint8_t *copy = malloc(length);
    if (copy == NULL)
        return 0;
    memcpy(copy, bytes, length);
    const uint8_t *stream = copy + 2;
    length -= 2;
    struct hello whole = {0}, cut = {0};
    size_t used, used_cut;
    enum hello_verdict verdict = feed(&whole, stream, length, length, &used);
    REQUIRE(feed(&cut, stream, length, 1u + copy[0], &used_cut) == verdict && whole.fault == cut.fault);
    REQUIRE(whole.named == cut.named && strcmp(whole.name, cut.name) == 0);
    /* After a fault it is of no meaning how much of the last piece was taken. */
    REQUIRE(verdict == HELLO_BAD || (used == used_cut && memcmp(&whole, &cut, sizeof whole) == 0));
    if (verdict == HELLO_DONE && used < length) {
        const uint8_t *rest = stream + used;
        size_t left = length - used, answer = left < copy[1] ? left : copy[1];
        verdict = hello_answer_feed(&whole, rest, answer);
        for (size_t i = 0; i < answer && hello_answer_feed(&cut, rest + i, 1) == HELLO_NEED_MORE; i++)
            ;
        REQUIRE(whole.fault == cut.fault && whole.second == cut.second);
        char first[HOST_NAME_SIZE];
        memcpy(first, whole.first, sizeof first);
        if (verdict == HELLO_RETRY &&
            feed(&whole, rest + answer, left - answer, 1u + copy[0], &used) == HELLO_DONE)
            REQUIRE(strcmp(whole.name, first) == 0);
    }
    uint8_t alert[HELLO_ALERT_SIZE];
    hello_alert_write(&whole, hello_alert_for(whole.fault), alert);
    free(copy);
    return 0;
}
