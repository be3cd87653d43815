/* What yajl does not look at: it takes overlong forms and surrogates for UTF-8, turns a lone high surrogate
 * escape into "?", and joins one with whatever escape follows it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Whether the bytes are UTF-8 as RFC 3629 has it. */
bool schema_utf8_valid(const unsigned char *bytes, size_t length);
/* Whether each \u escape of a surrogate in this JSON text is half of a pair; else *offset is the place. */
bool schema_escapes_valid(const char *bytes, size_t length, size_t *offset);
