/* Questions to nameservers and their answers, as bytes: the answers are hostile. Pure. (Fuzzed.) */
#include <string.h>
#include <sys/socket.h>

#include "broker/answer.h"

#define HEADER_SIZE 12
#define LABEL_MAX_BYTES 63
#define CLASS_IN 1
#define FLAG_RESPONSE 0x80
#define FLAG_TRUNCATED 0x02
#define FLAG_RECURSION_DESIRED 0x01

/* The place behind a name, 0 when it does not end in time. */
static size_t name_end(const uint8_t *bytes, size_t length, size_t at) {
    while (at < length) {
        uint8_t label = bytes[at];
        if (label == 0)
            return at + 1;
        if ((label & 0xc0) == 0xc0)
            return at + 2 <= length ? at + 2 : 0;
        if ((label & 0xc0) != 0)
            return 0;
        at += 1u + label;
    }
    return 0;
}

static unsigned read_be16(const uint8_t *bytes) {
    return (unsigned)bytes[0] << 8 | bytes[1];
}

static size_t put_be16(uint8_t *bytes, unsigned value) {
    bytes[0] = (uint8_t)(value >> 8);
    bytes[1] = (uint8_t)value;
    return 2;
}

size_t resolve_parse_answer(const uint8_t *bytes, size_t length, int family, struct address *out,
                            size_t capacity, uint32_t *ttl) {
    if (length < HEADER_SIZE || (bytes[3] & 0x0f) != 0)
        return 0;
    size_t at = HEADER_SIZE, count = 0;
    for (unsigned questions = read_be16(bytes + 4); questions > 0; questions--) {
        at = name_end(bytes, length, at);
        if (at == 0 || length - at < 4)
            return 0;
        at += 4;
    }
    for (unsigned answers = read_be16(bytes + 6); answers > 0 && count < capacity; answers--) {
        at = name_end(bytes, length, at);
        if (at == 0 || length - at < 10)
            break;
        unsigned type = read_be16(bytes + at), class = read_be16(bytes + at + 2);
        size_t size = read_be16(bytes + at + 8);
        uint32_t lives = (uint32_t)read_be16(bytes + at + 4) << 16 | read_be16(bytes + at + 6);
        *ttl = lives < *ttl ? lives : *ttl;
        at += 10;
        if (size > length - at)
            break;
        if (class == CLASS_IN && ((type == RESOLVE_TYPE_A && family == AF_INET && size == 4) ||
                                  (type == RESOLVE_TYPE_AAAA && family == AF_INET6 && size == 16))) {
            out[count] = (struct address){.family = family};
            memcpy(out[count++].bytes, bytes + at, size);
        }
        at += size;
    }
    return count;
}

size_t resolve_write_question(const char *name, uint16_t id, int family, uint8_t out[RESOLVE_QUESTION_MAX]) {
    size_t at = put_be16(out, id);
    out[at++] = FLAG_RECURSION_DESIRED;
    out[at++] = 0;
    at += put_be16(out + at, 1);
    memset(out + at, 0, HEADER_SIZE - at);
    at = HEADER_SIZE;
    for (const char *label = name; *label != '\0';) {
        size_t length = strcspn(label, ".");
        if (length == 0 || length > LABEL_MAX_BYTES || at + 1 + length + 5 > RESOLVE_QUESTION_MAX)
            return 0;
        out[at++] = (uint8_t)length;
        memcpy(out + at, label, length);
        at += length;
        label += length + (label[length] == '.');
    }
    out[at++] = 0;
    at += put_be16(out + at, family == AF_INET ? RESOLVE_TYPE_A : RESOLVE_TYPE_AAAA);
    return at + put_be16(out + at, CLASS_IN);
}

bool resolve_is_answer(const uint8_t *bytes, size_t length, const uint8_t *question, size_t question_length) {
    return length >= question_length && question_length > HEADER_SIZE && memcmp(bytes, question, 2) == 0 &&
           (bytes[2] & (FLAG_RESPONSE | FLAG_TRUNCATED)) == FLAG_RESPONSE && read_be16(bytes + 4) == 1 &&
           memcmp(bytes + HEADER_SIZE, question + HEADER_SIZE, question_length - HEADER_SIZE) == 0;
}
