/* UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing beyond U+10FFFF. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Length in bytes of the valid sequence at `bytes`, of which `left` (at least 1) may be read; 0 if it is
 * none. *point (may be NULL) receives the code point. */
size_t utf8_sequence(const unsigned char *bytes, size_t left, uint32_t *point);
