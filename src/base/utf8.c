#include "base/utf8.h"

size_t utf8_sequence(const unsigned char *bytes, size_t left, uint32_t *point) {
    unsigned char first = bytes[0];
    size_t length = first < 0x80   ? 1
                    : first < 0xc2 ? 0
                    : first < 0xe0 ? 2
                    : first < 0xf0 ? 3
                    : first < 0xf5 ? 4
                                   : 0;
    if (length == 0 || length > left)
        return 0;
    uint32_t value = length == 1 ? first : first & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
        value = value << 6 | (bytes[i] & 0x3f);
    }
    if ((length == 3 && value < 0x800) || (value >= 0xd800 && value <= 0xdfff) ||
        (length == 4 && value < 0x10000) || value > 0x10ffff)
        return 0;
    if (point != NULL)
        *point = value;
    return length;
}
