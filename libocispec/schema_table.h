/* Rows of a schema's table, for whoever defines one: REQUIRED or OPTIONAL, the JSON key, the structure and
 * its member. A row whose type is not the member's does not compile. */
#pragma once

#include <stddef.h>

#include "libocispec/schema.h"

#define REQUIRED true
#define OPTIONAL false

#define SCHEMA_SAME_TYPE(structure, member, ctype)                                                           \
    __builtin_types_compatible_p(__typeof__(((struct structure *)0)->member), ctype)
/* The offset; an array of negative size if the member's type is another. */
#define SCHEMA_OFFSET(structure, member, ctype)                                                              \
    (offsetof(struct structure, member) +                                                                    \
     0 * sizeof(char[SCHEMA_SAME_TYPE(structure, member, ctype) ? 1 : -1]))

#define SCHEMA_ROW(kind, need, json_key, structure, member, ctype)                                           \
    {                                                                                                        \
        .key = (json_key), .type = (kind), .required = (need),                                               \
        .offset = SCHEMA_OFFSET(structure, member, ctype)                                                    \
    }

#define STRING(need, key, structure, member) SCHEMA_ROW(SCHEMA_STRING, need, key, structure, member, char *)
#define BOOL(need, key, structure, member) SCHEMA_ROW(SCHEMA_BOOL, need, key, structure, member, bool)
#define INT32(need, key, structure, member) SCHEMA_ROW(SCHEMA_INT32, need, key, structure, member, int32_t)
#define INT64(need, key, structure, member) SCHEMA_ROW(SCHEMA_INT64, need, key, structure, member, int64_t)
#define UINT32(need, key, structure, member) SCHEMA_ROW(SCHEMA_UINT32, need, key, structure, member, uint32_t)
#define UINT64(need, key, structure, member) SCHEMA_ROW(SCHEMA_UINT64, need, key, structure, member, uint64_t)
#define OPTIONAL_BOOL(key, structure, member)                                                                \
    SCHEMA_ROW(SCHEMA_OPTIONAL_BOOL, OPTIONAL, key, structure, member, struct optional_bool)
#define OPTIONAL_INT64(key, structure, member)                                                               \
    SCHEMA_ROW(SCHEMA_OPTIONAL_INT64, OPTIONAL, key, structure, member, struct optional_int64)
#define OPTIONAL_UINT64(key, structure, member)                                                              \
    SCHEMA_ROW(SCHEMA_OPTIONAL_UINT64, OPTIONAL, key, structure, member, struct optional_uint64)
#define OPTIONAL_UINT32(key, structure, member)                                                              \
    SCHEMA_ROW(SCHEMA_OPTIONAL_UINT32, OPTIONAL, key, structure, member, struct optional_uint32)
#define STRINGS(need, key, structure, member)                                                                \
    SCHEMA_ROW(SCHEMA_STRINGS, need, key, structure, member, struct string_list)
#define MAP(need, key, structure, member)                                                                    \
    SCHEMA_ROW(SCHEMA_MAP, need, key, structure, member, struct string_map)
/* uint32_t *member with size_t member_count */
#define UINT32S(need, json_key, structure, member)                                                           \
    {                                                                                                        \
        .key = (json_key), .type = SCHEMA_UINT32S, .required = (need),                                       \
        .offset = SCHEMA_OFFSET(structure, member, uint32_t *),                                              \
        .count_offset = SCHEMA_OFFSET(structure, member##_count, size_t)                                     \
    }
/* struct element member */
#define OBJECT(need, json_key, structure, member, element, schema)                                           \
    {                                                                                                        \
        .key = (json_key), .type = SCHEMA_OBJECT, .required = (need),                                        \
        .offset = SCHEMA_OFFSET(structure, member, struct element), .child = &(schema)                       \
    }
/* struct element *member */
#define POINTER(need, json_key, structure, member, element, schema)                                          \
    {                                                                                                        \
        .key = (json_key), .type = SCHEMA_POINTER, .required = (need),                                       \
        .offset = SCHEMA_OFFSET(structure, member, struct element *), .child = &(schema)                     \
    }
/* struct element *member with size_t member_count */
#define OBJECTS(need, json_key, structure, member, element, schema)                                          \
    {                                                                                                        \
        .key = (json_key), .type = SCHEMA_OBJECTS, .required = (need),                                       \
        .offset = SCHEMA_OFFSET(structure, member, struct element *),                                        \
        .count_offset = SCHEMA_OFFSET(structure, member##_count, size_t), .child = &(schema)                 \
    }
/* struct element *member with size_t member_count, whose first member is the `char *` of its key */
#define NAMED(need, json_key, structure, member, element, schema)                                            \
    {                                                                                                        \
        .key = (json_key), .type = SCHEMA_NAMED, .required = (need),                                         \
        .offset = SCHEMA_OFFSET(structure, member, struct element *),                                        \
        .count_offset = SCHEMA_OFFSET(structure, member##_count, size_t), .child = &(schema)                 \
    }

/* The schema of `struct structure` over the array `rows`. */
#define SCHEMA(document_name, structure, rows)                                                               \
    {                                                                                                        \
        .name = (document_name), .size = sizeof(struct structure), .fields = (rows),                         \
        .field_count = sizeof(rows) / sizeof *(rows)                                                         \
    }
