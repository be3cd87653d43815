#include "base/json.h"

#include <inttypes.h>
#include <string.h>

#include "base/utf8.h"

void json_free(struct json_writer *json) {
    text_free(&json->text);
}

static void json_separate(struct json_writer *json) {
    if (json->comma)
        text_append(&json->text, ",");
    json->comma = true;
}

void json_object_begin(struct json_writer *json) {
    json_separate(json);
    text_append(&json->text, "{");
    json->comma = false;
}

void json_object_end(struct json_writer *json) {
    text_append(&json->text, "}");
    json->comma = true;
}

void json_array_begin(struct json_writer *json) {
    json_separate(json);
    text_append(&json->text, "[");
    json->comma = false;
}

void json_array_end(struct json_writer *json) {
    text_append(&json->text, "]");
    json->comma = true;
}

static void json_quote(struct text *text, const char *string, size_t length) {
    const unsigned char *bytes = (const unsigned char *)string;
    text_append(text, "\"");
    for (size_t i = 0; i < length;) {
        size_t plain = i; /* a run that needs no escape is appended at once */
        while (plain < length && bytes[plain] >= 0x20 && bytes[plain] < 0x7f && bytes[plain] != '"' &&
               bytes[plain] != '\\')
            plain++;
        if (plain > i) {
            text_append_bytes(text, bytes + i, plain - i);
            i = plain;
            continue;
        }
        unsigned char byte = bytes[i];
        size_t sequence = utf8_sequence(bytes + i, length - i, NULL);
        if (sequence == 0) {
            text_append(text, "\xef\xbf\xbd");
            i++;
            continue;
        }
        if (byte == '"' || byte == '\\') {
            char escaped[2] = {'\\', (char)byte};
            text_append_bytes(text, escaped, 2);
        } else if (byte == '\n') {
            text_append(text, "\\n");
        } else if (byte == '\t') {
            text_append(text, "\\t");
        } else if (byte < 0x20 || byte == 0x7f) {
            text_format(text, "\\u%04x", byte);
        } else {
            text_append_bytes(text, bytes + i, sequence);
        }
        i += sequence;
    }
    text_append(text, "\"");
}

void json_key(struct json_writer *json, const char *key) {
    json_separate(json);
    json_quote(&json->text, key, strlen(key));
    text_append(&json->text, ":");
    json->comma = false;
}

void json_string_bytes(struct json_writer *json, const char *bytes, size_t length) {
    json_separate(json);
    json_quote(&json->text, bytes, length);
}

void json_string(struct json_writer *json, const char *value) {
    if (value == NULL)
        json_null(json);
    else
        json_string_bytes(json, value, strlen(value));
}

void json_integer(struct json_writer *json, int64_t value) {
    json_separate(json);
    text_format(&json->text, "%" PRId64, value);
}

void json_unsigned(struct json_writer *json, uint64_t value) {
    json_separate(json);
    text_format(&json->text, "%" PRIu64, value);
}

void json_boolean(struct json_writer *json, bool value) {
    json_separate(json);
    text_append(&json->text, value ? "true" : "false");
}

void json_null(struct json_writer *json) {
    json_separate(json);
    text_append(&json->text, "null");
}

void json_member_string(struct json_writer *json, const char *key, const char *value) {
    json_key(json, key);
    json_string(json, value);
}

void json_member_string_optional(struct json_writer *json, const char *key, const char *value) {
    if (value != NULL && value[0] != '\0')
        json_member_string(json, key, value);
}

void json_member_integer(struct json_writer *json, const char *key, int64_t value) {
    json_key(json, key);
    json_integer(json, value);
}

void json_member_boolean(struct json_writer *json, const char *key, bool value) {
    json_key(json, key);
    json_boolean(json, value);
}
