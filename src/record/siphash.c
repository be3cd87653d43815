#include "record/siphash.h"

#include <string.h>

static inline uint64_t rotate(uint64_t value, unsigned by) {
    return value << by | value >> (64 - by);
}

static inline void siphash_round(uint64_t v[4]) {
    v[0] += v[1];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[0] = rotate(v[0], 32);
    v[2] += v[3];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[2] = rotate(v[2], 32);
}

static void siphash_word(uint64_t v[4], uint64_t word) {
    v[3] ^= word;
    siphash_round(v);
    siphash_round(v);
    v[0] ^= word;
}

uint64_t siphash(const uint64_t key[2], const void *bytes, size_t length) {
    uint64_t v[4] = {key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d, key[0] ^ 0x6c7967656e657261,
                     key[1] ^ 0x7465646279746573};
    const unsigned char *next = bytes;
    size_t left = length;
    for (; left >= 8; left -= 8, next += 8) {
        uint64_t word;
        memcpy(&word, next, 8);
        siphash_word(v, word);
    }
    uint64_t last = (uint64_t)length << 56;
    memcpy(&last, next, left); /* little-endian, the only kind that pinfold is built for */
    siphash_word(v, last);
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++)
        siphash_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
