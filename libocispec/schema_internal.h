/* What the reader, the writer and the common part of the schema share. Members are reached through memcpy'd
 * pointers, because a `struct oci_mount *` may not be read through a `void **` (strict aliasing). */
#pragma once

#include <stdint.h>
#include <string.h>

#include "libocispec/schema.h"

static inline void *schema_member(const struct schema_field *field, void *object) {
    return (char *)object + field->offset;
}

static inline const void *schema_member_const(const struct schema_field *field, const void *object) {
    return (const char *)object + field->offset;
}

static inline void *schema_pointer_get(const void *place) {
    void *pointer;
    memcpy(&pointer, place, sizeof pointer);
    return pointer;
}

static inline void schema_pointer_set(void *place, void *pointer) {
    memcpy(place, &pointer, sizeof pointer);
}

static inline size_t schema_count_get(const struct schema_field *field, const void *object) {
    size_t count;
    memcpy(&count, (const char *)object + field->count_offset, sizeof count);
    return count;
}

static inline void schema_count_set(const struct schema_field *field, void *object, size_t count) {
    memcpy((char *)object + field->count_offset, &count, sizeof count);
}

/* SCHEMA_NAMED: the key of an element is its first member. */
static inline char *schema_name_get(const void *element) {
    return schema_pointer_get(element);
}

/* Whether the member holds something that its absence would not say. */
bool schema_member_present(const struct schema_field *field, const void *object);
/* Frees what the member holds and makes it absent. */
void schema_member_clear(const struct schema_field *field, void *object);
