/* What a container wrote, made fit for a terminal. */
#include <stdint.h>

#include "base/utf8.h"
#include "cli/log_parts.h"

/* The code point at `bytes`, its length in *length; UINT32_MAX and 1 for what is not UTF-8. */
static uint32_t decode(const unsigned char *bytes, size_t *length) {
    uint32_t point;
    *length = utf8_sequence(bytes, 4, &point); /* a NUL ends a sequence that is cut short */
    if (*length > 0)
        return point;
    *length = 1;
    return UINT32_MAX;
}

/* Controls, and what is invisible or changes the order of what is seen. */
static bool is_unsafe(uint32_t point) {
    return point < 0x20 || (point >= 0x7f && point <= 0x9f) || point == 0xad || point == 0x61c ||
           (point >= 0x200b && point <= 0x200f) || (point >= 0x2028 && point <= 0x202e) ||
           (point >= 0x2060 && point <= 0x206f) || point == 0xfeff || (point >= 0xfff9 && point <= 0xfffb) ||
           (point >= 0xe0000 && point <= 0xe0fff);
}

/* Columns of a code point: near enough without a locale. */
static size_t columns(uint32_t point) {
    if ((point >= 0x300 && point <= 0x36f) || (point >= 0x20d0 && point <= 0x20ff) ||
        (point >= 0xfe00 && point <= 0xfe0f))
        return 0;
    bool wide = (point >= 0x1100 && point <= 0x115f) || (point >= 0x2e80 && point <= 0xa4cf) ||
                (point >= 0xac00 && point <= 0xd7a3) || (point >= 0xf900 && point <= 0xfaff) ||
                (point >= 0xfe30 && point <= 0xfe6f) || (point >= 0xff00 && point <= 0xff60) ||
                (point >= 0xffe0 && point <= 0xffe6) || (point >= 0x1f300 && point <= 0x1faff) ||
                (point >= 0x20000 && point <= 0x3fffd);
    return wide ? 2 : 1;
}

size_t log_show(const char *string, struct text *out) {
    size_t used = 0;
    for (const unsigned char *at = (const unsigned char *)string; *at != '\0';) {
        size_t length;
        uint32_t point = decode(at, &length);
        size_t before = out->length;
        if (point != UINT32_MAX && !is_unsafe(point)) {
            text_append_bytes(out, at, length);
            used += columns(point);
        } else {
            if (point == UINT32_MAX || point < 0x80)
                text_format(out, "\\x%02x", *at);
            else if (point <= 0xffff)
                text_format(out, "\\u%04x", point);
            else
                text_format(out, "\\U%08x", point);
            used += out->length - before;
        }
        at += length;
    }
    return used;
}

/* The middle goes, since both the root of a path and its last name say something. */
size_t log_show_cell(const char *string, size_t limit, struct text *out) {
    text_owned struct text whole = {0};
    size_t width = log_show(string ? string : "", &whole);
    if (limit == 0 || width <= limit) {
        text_append_bytes(out, whole.data ? whole.data : "", whole.length);
        return width;
    }
    size_t head = (limit - 1) / 3, tail = limit - 1 - head;
    size_t used = 0, skipped = 0, length;
    const unsigned char *at = (const unsigned char *)whole.data;
    for (; *at != '\0'; at += length) {
        size_t next = columns(decode(at, &length));
        if (used + next > head)
            break;
        text_append_bytes(out, at, length);
        used += next;
    }
    text_append(out, "\xe2\x80\xa6");
    for (skipped = used; *at != '\0' && width - skipped > tail; at += length)
        skipped += columns(decode(at, &length));
    text_append(out, (const char *)at);
    return used + 1 + (width - skipped);
}
