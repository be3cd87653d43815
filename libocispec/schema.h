/* One table describes each JSON document as a C structure; reader, writer, copy and free all walk that table.
 * The reader is an event reader (yajl), bounded in size and depth; unknown keys are ignored, as the runtime
 * specification asks ("Extensibility"); a wrong type or a value out of range is an error that names its JSON
 * path, for example `linux.resources.pids.limit: expected an integer, found a string`. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

#define SCHEMA_BYTES_MAX (16u * 1024 * 1024)
#define SCHEMA_DEPTH_MAX 64
#define SCHEMA_NAMED_MAX 256

struct optional_bool {
    bool set;
    bool value;
};
struct optional_int64 {
    bool set;
    int64_t value;
};
struct optional_uint64 {
    bool set;
    uint64_t value;
};
struct optional_uint32 {
    bool set;
    uint32_t value;
};

struct key_value {
    char *key;
    char *value;
};
/* A JSON object of strings, in the document's order; a repeated key keeps its last value. */
struct string_map {
    struct key_value *items;
    size_t count;
};
/* The value of `key`, or NULL. */
const char *string_map_get(const struct string_map *map, const char *key);
void string_map_set(struct string_map *map, const char *key, const char *value);
void string_map_free(struct string_map *map);

enum schema_type {
    SCHEMA_STRING,          /* char *, NULL when absent; "" is read as absent unless the field is required */
    SCHEMA_BOOL,            /* bool */
    SCHEMA_INT32,           /* int32_t */
    SCHEMA_INT64,           /* int64_t */
    SCHEMA_UINT32,          /* uint32_t */
    SCHEMA_UINT64,          /* uint64_t */
    SCHEMA_OPTIONAL_BOOL,   /* struct optional_bool */
    SCHEMA_OPTIONAL_INT64,  /* struct optional_int64 */
    SCHEMA_OPTIONAL_UINT64, /* struct optional_uint64 */
    SCHEMA_OPTIONAL_UINT32, /* struct optional_uint32 */
    SCHEMA_STRINGS,         /* struct string_list */
    SCHEMA_UINT32S,         /* uint32_t *, with a size_t count */
    SCHEMA_MAP,             /* struct string_map */
    SCHEMA_OBJECT,          /* an embedded structure */
    SCHEMA_POINTER,         /* a pointer to a structure, NULL when absent or null */
    SCHEMA_OBJECTS,         /* a pointer to an array of structures, with a size_t count */
    SCHEMA_NAMED            /* the same from a JSON object of objects: each structure begins with a char * for
                             * its key, which its table does not name; at most SCHEMA_NAMED_MAX */
};

struct schema_field {
    const char *key;
    enum schema_type type;
    bool required;
    size_t offset;
    size_t count_offset;        /* of the size_t count, for the array types */
    const struct schema *child; /* for the object types */
};

struct schema {
    const char *name; /* of the document or object, for messages about its root */
    size_t size;      /* of the C structure */
    const struct schema_field *fields;
    size_t field_count; /* at most 64 */
};

/* Reads `length` bytes of JSON. `document` names the file in messages. *out is the caller's, to be given to
 * schema_free; it is NULL on error. */
fallible schema_read(const struct schema *schema, const char *document, const char *bytes, size_t length,
                     void **out);
/* Writes compact JSON; members that are absent, empty or zero and not required are left out. */
void schema_write(const struct schema *schema, const void *object, struct json_writer *json);
/* A deep copy, to be given to schema_free. */
void *schema_copy(const struct schema *schema, const void *object);
/* Members of `over` that are there take the place of those of `base`: pointed-to structures member by member,
 * maps key by key, arrays as a whole. Plain numbers count as there when they are not zero. */
void schema_merge(const struct schema *schema, void *base, const void *over);
/* Makes one member absent. */
void schema_forget(const struct schema *schema, const char *key, void *object);
/* Frees the members and the structure itself; NULL is fine. */
void schema_free(const struct schema *schema, void *object);
/* Frees the members only, for an embedded structure. */
void schema_clear(const struct schema *schema, void *object);
