/* What a nameserver answers the broker. The first byte chooses how many addresses there is room for, and the
 * family; the second how long the question is that the rest is held against. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "broker/answer.h"

#define REQUIRE(condition)                                                                                   \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            abort();                                                                                         \
    } while (0)
#define ROOM_MAX 16

static void addresses_check(const uint8_t *message, size_t length, uint8_t choice) {
    int family = choice & 1 ? AF_INET6 : AF_INET;
    size_t room = (choice >> 1) % (ROOM_MAX + 1), size = family == AF_INET ? 4 : 16;
    /* Without an address of slack. */
    struct address *found = malloc(room * sizeof *found + 1);
    REQUIRE(found != NULL);
    uint32_t ttl = 1000;
    size_t count = resolve_parse_answer(message, length, family, found, room, &ttl);
    REQUIRE(count <= room && ttl <= 1000);
    for (size_t i = 0; i < count; i++)
        REQUIRE(found[i].family == family && memmem(message, length, found[i].bytes, size) != NULL);
    if (count > 0)
        REQUIRE(length >= 12 + 5 + 10 + size - 4 && (message[3] & 0x0f) == 0);
    /* With less room the first ones are the same. */
    struct address fewer[ROOM_MAX];
    uint32_t ttl_of_fewer = 1000;
    size_t less = resolve_parse_answer(message, length, family, fewer, room / 2, &ttl_of_fewer);
    REQUIRE(less == (count < room / 2 ? count : room / 2) && ttl_of_fewer >= ttl);
    for (size_t i = 0; i < less; i++)
        REQUIRE(memcmp(fewer[i].bytes, found[i].bytes, size) == 0);
    free(found);
}

/* The message as an answer to a question for `name`, and to the one that it begins with itself. */
static void question_check(const uint8_t *message, size_t length, const char *name, uint8_t choice) {
    uint8_t question[RESOLVE_QUESTION_MAX];
    size_t size = resolve_write_question(name, 0x1234, choice & 1 ? AF_INET6 : AF_INET, question);
    REQUIRE(size == 0 || (size >= 17 && size <= sizeof question));
    if (size == 0)
        return;
    if (resolve_is_answer(message, length, question, size))
        REQUIRE(length >= size && message[0] == 0x12 && message[1] == 0x34);
    /* No question is an answer, not even to itself. */
    REQUIRE(!resolve_is_answer(question, size, question, size));
    question[2] |= 0x80;
    REQUIRE(resolve_is_answer(question, size, question, size));
    uint32_t ttl = 1000;
    struct address none;
    REQUIRE(resolve_parse_answer(question, size, AF_INET, &none, 1, &ttl) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    if (length < 2)
        return 0;
    /* A copy of its own, unaligned and without a byte of slack, so that a read past the end is seen. */
    uint8_t *copy = malloc(length);
    if (copy == NULL)
        return 0;
    memcpy(copy, bytes, length);
    const uint8_t *message = copy + 2;
    addresses_check(message, length - 2, copy[0]);
    char name[256] = {0};
    memcpy(name, message, length - 2 < copy[1] ? length - 2 : copy[1]);
    question_check(message, length - 2, name, copy[0]);
    question_check(message, length - 2, "x.y", copy[0]);
    free(copy);
    return 0;
}
