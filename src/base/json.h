/* JSON text, written. Strings may hold any bytes: what is not valid UTF-8 becomes U+FFFD, control bytes are
 * escaped, slashes are not (consumers compare bytes). Compact output, keys in the order written. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

struct json_writer {
    struct text text;
    bool comma; /* a comma is owed before the next key or element */
};

#define json_owned __attribute__((cleanup(json_free)))
void json_free(struct json_writer *json);

/* Values; inside an object each is preceded by json_key. */
void json_object_begin(struct json_writer *json);
void json_object_end(struct json_writer *json);
void json_array_begin(struct json_writer *json);
void json_array_end(struct json_writer *json);
void json_key(struct json_writer *json, const char *key);
void json_string(struct json_writer *json, const char *value); /* NULL writes null */
void json_string_bytes(struct json_writer *json, const char *bytes, size_t length);
void json_integer(struct json_writer *json, int64_t value);
void json_unsigned(struct json_writer *json, uint64_t value);
void json_boolean(struct json_writer *json, bool value);
void json_null(struct json_writer *json);

/* A key with its value; the _optional forms write nothing for NULL or "". */
void json_member_string(struct json_writer *json, const char *key, const char *value);
void json_member_string_optional(struct json_writer *json, const char *key, const char *value);
void json_member_integer(struct json_writer *json, const char *key, int64_t value);
void json_member_boolean(struct json_writer *json, const char *key, bool value);
