#include "libocispec/schema_utf8.h"

#include <stdint.h>
#include <string.h>

#include "base/utf8.h"

bool schema_utf8_valid(const unsigned char *bytes, size_t length) {
    size_t i = 0;
    for (uint64_t eight; i + sizeof eight <= length; i += sizeof eight) { /* nearly every string is ASCII */
        memcpy(&eight, bytes + i, sizeof eight);
        if ((eight & UINT64_C(0x8080808080808080)) != 0)
            break;
    }
    while (i < length) {
        size_t sequence = utf8_sequence(bytes + i, length - i, NULL);
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
