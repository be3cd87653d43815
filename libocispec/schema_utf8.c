#include "libocispec/schema_utf8.h"

#include <stdint.h>
#include <string.h>

/* Length of the valid sequence at `bytes`, 0 if there is none. */
static size_t sequence_length(const unsigned char *bytes, size_t left) {
    unsigned char first = bytes[0];
    if (first < 0x80)
        return 1;
    size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || length > left)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
    bool outside = (first == 0xe0 && bytes[1] < 0xa0)     /* overlong */
                   || (first == 0xed && bytes[1] > 0x9f)  /* a surrogate */
                   || (first == 0xf0 && bytes[1] < 0x90)  /* overlong */
                   || (first == 0xf4 && bytes[1] > 0x8f); /* beyond U+10FFFF */
    return outside ? 0 : length;
}

bool schema_utf8_valid(const unsigned char *bytes, size_t length) {
    size_t i = 0;
    for (uint64_t eight; i + sizeof eight <= length; i += sizeof eight) { /* nearly every string is ASCII */
        memcpy(&eight, bytes + i, sizeof eight);
        if ((eight & UINT64_C(0x8080808080808080)) != 0)
            break;
    }
    while (i < length) {
        size_t sequence = sequence_length(bytes + i, length - i);
        if (sequence == 0)
            return false;
        i += sequence;
    }
    return true;
}

static int hexadecimal_digit(char digit) {
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    char lower = (char)(digit | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* The code unit of the escape that begins at `bytes` ("\uXXXX"), or -1. */
static int escape_unit(const char *bytes, size_t left) {
    if (left < 6 || bytes[0] != '\\' || bytes[1] != 'u')
        return -1;
    int unit = 0;
    for (size_t i = 2; i < 6; i++) {
        int digit = hexadecimal_digit(bytes[i]);
        if (digit < 0)
            return -1;
        unit = unit * 16 + digit;
    }
    return unit;
}

bool schema_escapes_valid(const char *bytes, size_t length, size_t *offset) {
    for (size_t at = 0; at < length;) {
        const char *backslash = memchr(bytes + at, '\\', length - at);
        if (backslash == NULL)
            break;
        at = (size_t)(backslash - bytes);
        *offset = at;
        int unit = escape_unit(backslash, length - at);
        if (unit >= 0xdc00 && unit <= 0xdfff)
            return false;
        if (unit >= 0xd800 && unit <= 0xdbff) {
            int low = escape_unit(backslash + 6, length - at - 6);
            if (low < 0xdc00 || low > 0xdfff)
                return false;
            at += 6;
        }
        at += 2; /* past the backslash and what it escapes, which may be a backslash */
    }
    return true;
}
