/* Values in GVariant text format, as far as properties of a unit need it: booleans, integers, floating-point
 * numbers, strings, and arrays of one of these. */
#pragma once

#include "base/error.h"
#include "base/text.h"

#define GVARIANT_BYTES_MAX (16 * 1024)
#define GVARIANT_ITEMS_MAX 1024

/* Parses all of `text`. *type is the D-Bus type ("t", "as"), *values holds one item for a simple value, one
 * for each element of an array: decimal numbers, "true" or "false", plain strings. A number without a type is
 * an int32, as the format has it. ERROR_INVALID says what was expected, never at which address it failed. The
 * caller frees both. */
fallible gvariant_parse(const char *text, char **type, struct string_list *values);
