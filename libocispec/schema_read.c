/* The reader: yajl's events against a schema's table, with a stack of frames. The path of a value exists only
 * as the stack and becomes text only for a message. No message holds a string value of the document: it may
 * be a secret of process.env. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#include "base/memory.h"
#include "libocispec/schema_internal.h"
#include "libocispec/schema_utf8.h"

enum frame_kind { FRAME_OBJECT, FRAME_MAP, FRAME_STRINGS, FRAME_UINT32S, FRAME_OBJECTS, FRAME_NAMED };

struct frame {
    enum frame_kind kind;
    const struct schema *schema;      /* FRAME_OBJECT: its table */
    const struct schema_field *field; /* FRAME_OBJECT: of the value that comes next, NULL for an unknown key;
                                       * else the member that this array or map is */
    void *object;  /* FRAME_OBJECT: the structure; else the structure that holds the member */
    uint64_t seen; /* FRAME_OBJECT: a bit for each field that has a value */
    size_t index;  /* arrays: of the element that is next or being read; maps: 1 after a key; FRAME_NAMED: the
                    * place of the element that is being read, plus 1 */
};

struct reader {
    const struct schema *schema;
    const char *document;
    struct frame frames[SCHEMA_DEPTH_MAX];
    size_t depth;
    size_t skipped; /* open containers within the value of an unknown key; they count towards the depth too */
    void *result;
    struct error *error;
};

/* Found values, for messages. */
static const char found_null[] = "null";
static const char found_boolean[] = "a boolean";
static const char found_number[] = "a number";
static const char found_string[] = "a string";
static const char found_object[] = "an object";
static const char found_array[] = "an array";

static const char *type_expected(enum schema_type type) {
    switch (type) {
    case SCHEMA_STRING:
        return "a string";
    case SCHEMA_BOOL:
    case SCHEMA_OPTIONAL_BOOL:
        return "true or false";
    case SCHEMA_INT32:
    case SCHEMA_INT64:
    case SCHEMA_UINT32:
    case SCHEMA_UINT64:
    case SCHEMA_OPTIONAL_INT64:
    case SCHEMA_OPTIONAL_UINT64:
    case SCHEMA_OPTIONAL_UINT32:
        return "an integer";
    case SCHEMA_STRINGS:
    case SCHEMA_UINT32S:
    case SCHEMA_OBJECTS:
        return "an array";
    case SCHEMA_MAP:
    case SCHEMA_OBJECT:
    case SCHEMA_POINTER:
    case SCHEMA_NAMED:
        return "an object";
    }
    return "something else";
}

/* Map keys come from image annotations: bounded, and quoted where they are not plain. */
static void path_append_key(struct text *path, const char *key) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    enum { KEY_SHOWN_MAX = 100 };
    size_t length = strlen(key);
    if (length > 0 && length <= KEY_SHOWN_MAX && strspn(key, plain) == length) {
        text_format(path, ".%s", key);
        return;
    }
    json_owned struct json_writer quoted = {0};
    json_string_bytes(&quoted, key, length < KEY_SHOWN_MAX ? length : KEY_SHOWN_MAX);
    text_format(path, "[%s%s]", text_string(&quoted.text), length > KEY_SHOWN_MAX ? "..." : "");
}

/* Element `index` of a member of type SCHEMA_NAMED. */
static char *named_element(const struct schema_field *field, const void *object, size_t index) {
    return (char *)schema_pointer_get(schema_member_const(field, object)) + index * field->child->size;
}

/* "linux.resources.pids.limit", "mounts[3].destination"; "" for the document itself. */
static char *reader_path(const struct reader *reader) {
    struct text path = {0};
    for (size_t i = 0; i < reader->depth; i++) {
        const struct frame *frame = &reader->frames[i];
        if (frame->kind == FRAME_OBJECT) {
            if (frame->field != NULL)
                text_format(&path, "%s%s", path.length > 0 ? "." : "", frame->field->key);
        } else if (frame->kind == FRAME_MAP) {
            const struct string_map *map = schema_member_const(frame->field, frame->object);
            if (frame->index > 0)
                path_append_key(&path, map->items[map->count - 1].key);
        } else if (frame->kind == FRAME_NAMED) {
            if (frame->index > 0)
                path_append_key(
                    &path, schema_name_get(named_element(frame->field, frame->object, frame->index - 1)));
        } else {
            text_format(&path, "[%zu]", frame->index);
        }
    }
    return text_take(&path);
}

/* Keeps an error for the value that is being read; returns yajl's "stop". */
static int reader_fail(struct reader *reader, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int reader_fail(struct reader *reader, const char *format, ...) {
    memory_owned char *path = reader_path(reader);
    text_owned struct text text = {0};
    va_list arguments;
    va_start(arguments, format);
    text_vformat(&text, format, arguments);
    va_end(arguments);
    reader->error = error_new(ERROR_INVALID, "%s: %s%s%s", reader->document, path, path[0] ? ": " : "",
                              text_string(&text));
    return 0;
}

static struct frame *reader_top(struct reader *reader) {
    return reader->depth > 0 ? &reader->frames[reader->depth - 1] : NULL;
}

static const char *reader_expected(struct reader *reader) {
    const struct frame *top = reader_top(reader);
    if (top == NULL || top->kind == FRAME_OBJECTS || top->kind == FRAME_NAMED)
        return "an object";
    if (top->kind == FRAME_MAP || top->kind == FRAME_STRINGS)
        return "a string";
    if (top->kind == FRAME_UINT32S)
        return "an integer";
    return type_expected(top->field->type);
}

static int reader_fail_type(struct reader *reader, const char *found) {
    return reader_fail(reader, "expected %s, found %s", reader_expected(reader), found);
}

/* Whether the value that comes now belongs to an unknown key. */
static bool reader_ignores(const struct reader *reader) {
    if (reader->skipped > 0)
        return true;
    const struct frame *top = reader->depth > 0 ? &reader->frames[reader->depth - 1] : NULL;
    return top != NULL && top->kind == FRAME_OBJECT && top->field == NULL;
}

static void frame_mark(struct frame *frame, bool present) {
    uint64_t bit = UINT64_C(1) << (frame->field - frame->schema->fields);
    frame->seen = present ? frame->seen | bit : frame->seen & ~bit;
}

/* Array capacity is not stored: it is doubled whenever the count is a power of two. The first allocation has
 * two places, so that a string list always has one left for its closing NULL. */
static void *array_grow(void *items, size_t count, size_t size) {
    if ((count & (count - 1)) != 0)
        return items;
    return memory_resize(items, count < 1 ? 2 : 2 * count + 1, size);
}

static void list_append(struct string_list *list, char *string) {
    list->items = array_grow(list->items, list->count, sizeof *list->items);
    list->items[list->count++] = string;
    list->items[list->count] = NULL;
}

/* A member that is null is as one that is not there. */
static void named_remove(struct frame *frame) {
    const struct schema_field *field = frame->field;
    size_t last = schema_count_get(field, frame->object) - 1;
    char *element = named_element(field, frame->object, frame->index - 1);
    free(schema_name_get(element));
    memmove(element, element + field->child->size, (last - (frame->index - 1)) * field->child->size);
    schema_count_set(field, frame->object, last);
    frame->index = 0;
}

/* The element of this key: a new one, or (a repeated key keeps its last value) the one that is there,
 * emptied. */
static int named_begin(struct reader *reader, struct frame *frame, char *name) {
    const struct schema_field *field = frame->field;
    size_t size = field->child->size;
    size_t count = schema_count_get(field, frame->object);
    for (size_t i = 0; i < count; i++) {
        char *element = named_element(field, frame->object, i);
        if (strcmp(schema_name_get(element), name) != 0)
            continue;
        free(name);
        schema_clear(field->child, element);
        frame->index = i + 1;
        return 1;
    }
    if (count >= SCHEMA_NAMED_MAX) {
        free(name);
        return reader_fail(reader, "more than %d members", SCHEMA_NAMED_MAX);
    }
    void *place = schema_member(field, frame->object);
    char *items = array_grow(schema_pointer_get(place), count, size);
    schema_pointer_set(place, items);
    memset(items + count * size, 0, size);
    schema_pointer_set(items + count * size, name);
    schema_count_set(field, frame->object, count + 1);
    frame->index = count + 1;
    return 1;
}

/* --- null, booleans, strings, numbers
 * ------------------------------------------------------------------------ */

static int event_null(void *context) {
    struct reader *reader = context;
    if (reader_ignores(reader))
        return 1;
    struct frame *top = reader_top(reader);
    if (top != NULL && top->kind == FRAME_NAMED) {
        named_remove(top);
        return 1;
    }
    if (top == NULL || (top->kind != FRAME_OBJECT && top->kind != FRAME_MAP))
        return reader_fail_type(reader, found_null);
    if (top->kind == FRAME_OBJECT) { /* null is like absent, and undoes an earlier value of the same key */
        schema_member_clear(top->field, top->object);
        frame_mark(top, false);
    }
    return 1; /* in a map the item's value stays NULL, and map_settle takes it out */
}

static int event_boolean(void *context, int value) {
    struct reader *reader = context;
    if (reader_ignores(reader))
        return 1;
    struct frame *top = reader_top(reader);
    if (top == NULL || top->kind != FRAME_OBJECT)
        return reader_fail_type(reader, found_boolean);
    void *place = schema_member(top->field, top->object);
    if (top->field->type == SCHEMA_BOOL)
        *(bool *)place = value != 0;
    else if (top->field->type == SCHEMA_OPTIONAL_BOOL)
        *(struct optional_bool *)place = (struct optional_bool){.set = true, .value = value != 0};
    else
        return reader_fail_type(reader, found_boolean);
    frame_mark(top, true);
    return 1;
}

/* A copy of a string of the document, NULL after an error. */
static char *string_take(struct reader *reader, const unsigned char *bytes, size_t length) {
    if (memchr(bytes, '\0', length) != NULL) {
        reader_fail(reader, "a NUL (\\u0000) within a string");
        return NULL;
    }
    if (!schema_utf8_valid(bytes, length)) {
        reader_fail(reader, "not valid UTF-8");
        return NULL;
    }
    char *string = memory_resize(NULL, length + 1, 1);
    memcpy(string, bytes, length);
    string[length] = '\0';
    return string;
}

static int event_string(void *context, const unsigned char *bytes, size_t length) {
    struct reader *reader = context;
    if (reader_ignores(reader))
        return 1;
    struct frame *top = reader_top(reader);
    if (top == NULL || top->kind == FRAME_UINT32S || top->kind == FRAME_OBJECTS || top->kind == FRAME_NAMED ||
        (top->kind == FRAME_OBJECT && top->field->type != SCHEMA_STRING))
        return reader_fail_type(reader, found_string);
    char *string = string_take(reader, bytes, length);
    if (string == NULL)
        return 0;
    if (top->kind == FRAME_MAP) {
        struct string_map *map = schema_member(top->field, top->object);
        map->items[map->count - 1].value = string;
    } else if (top->kind == FRAME_STRINGS) {
        list_append(schema_member(top->field, top->object), string);
        top->index++;
    } else {
        schema_member_clear(top->field, top->object);
        frame_mark(top, true);
        if (length == 0 && !top->field->required) { /* "" says no more than absence: what an omitempty would
                                                     * have left out, e.g. a namespace's path */
            free(string);
            return 1;
        }
        schema_pointer_set(schema_member(top->field, top->object), string);
    }
    return 1;
}

struct integer_range {
    int64_t low;
    uint64_t high;
};

static struct integer_range type_range(enum schema_type type) {
    switch (type) {
    case SCHEMA_INT32:
        return (struct integer_range){INT32_MIN, INT32_MAX};
    case SCHEMA_INT64:
    case SCHEMA_OPTIONAL_INT64:
        return (struct integer_range){INT64_MIN, INT64_MAX};
    case SCHEMA_UINT64:
    case SCHEMA_OPTIONAL_UINT64:
        return (struct integer_range){0, UINT64_MAX};
    default:
        return (struct integer_range){0, UINT32_MAX};
    }
}

/* The exact value of -?[0-9]+ within the range, as the bits of a two's complement 64-bit integer. */
static bool integer_parse(const char *digits, size_t length, struct integer_range range, uint64_t *bits) {
    bool negative = length > 0 && digits[0] == '-';
    uint64_t magnitude = 0;
    if (length == (size_t)negative)
        return false;
    for (size_t i = negative; i < length; i++) {
        if (digits[i] < '0' || digits[i] > '9')
            return false; /* a fraction or an exponent */
        if (__builtin_mul_overflow(magnitude, 10, &magnitude) ||
            __builtin_add_overflow(magnitude, (uint64_t)(digits[i] - '0'), &magnitude))
            return false;
    }
    if (negative ? magnitude > -(uint64_t)range.low : magnitude > range.high)
        return false;
    *bits = negative ? -magnitude : magnitude;
    return true;
}

static void integer_store(const struct schema_field *field, void *place, uint64_t bits) {
    switch (field->type) {
    case SCHEMA_INT32:
        *(int32_t *)place = (int32_t)bits;
        break;
    case SCHEMA_INT64:
        *(int64_t *)place = (int64_t)bits;
        break;
    case SCHEMA_UINT32:
        *(uint32_t *)place = (uint32_t)bits;
        break;
    case SCHEMA_UINT64:
        *(uint64_t *)place = bits;
        break;
    case SCHEMA_OPTIONAL_INT64:
        *(struct optional_int64 *)place = (struct optional_int64){.set = true, .value = (int64_t)bits};
        break;
    case SCHEMA_OPTIONAL_UINT64:
        *(struct optional_uint64 *)place = (struct optional_uint64){.set = true, .value = bits};
        break;
    case SCHEMA_OPTIONAL_UINT32:
        *(struct optional_uint32 *)place = (struct optional_uint32){.set = true, .value = (uint32_t)bits};
        break;
    default:
        break;
    }
}

static bool type_is_integer(enum schema_type type) {
    return (type >= SCHEMA_INT32 && type <= SCHEMA_UINT64) ||
           (type >= SCHEMA_OPTIONAL_INT64 && type <= SCHEMA_OPTIONAL_UINT32);
}

static int event_number(void *context, const char *digits, size_t length) {
    struct reader *reader = context;
    if (reader_ignores(reader))
        return 1;
    struct frame *top = reader_top(reader);
    if (top == NULL || (top->kind != FRAME_OBJECT && top->kind != FRAME_UINT32S) ||
        (top->kind == FRAME_OBJECT && !type_is_integer(top->field->type)))
        return reader_fail_type(reader, found_number);
    struct integer_range range = type_range(top->field->type); /* UINT32S: that of uint32_t */
    uint64_t bits;
    if (!integer_parse(digits, length, range, &bits)) {
        enum { DIGITS_SHOWN_MAX = 40 };
        bool cut = length > DIGITS_SHOWN_MAX;
        return reader_fail(reader, "expected an integer between %" PRId64 " and %" PRIu64 ", found %.*s%s",
                           range.low, range.high, cut ? DIGITS_SHOWN_MAX : (int)length, digits,
                           cut ? "..." : "");
    }
    void *place = schema_member(top->field, top->object);
    if (top->kind == FRAME_UINT32S) {
        uint32_t *items = array_grow(schema_pointer_get(place), top->index, sizeof *items);
        items[top->index++] = (uint32_t)bits;
        schema_pointer_set(place, items);
        schema_count_set(top->field, top->object, top->index);
        return 1;
    }
    integer_store(top->field, place, bits);
    frame_mark(top, true);
    return 1;
}

/* --- objects and arrays
 * -------------------------------------------------------------------------------------- */

/* One more open container; false (with an error) beyond the bound. */
static bool reader_deepens(struct reader *reader) {
    if (reader->depth + reader->skipped < SCHEMA_DEPTH_MAX)
        return true;
    reader_fail(reader, "nested deeper than %d levels", SCHEMA_DEPTH_MAX);
    return false;
}

static void reader_push(struct reader *reader, struct frame frame) {
    reader->frames[reader->depth++] = frame;
}

static int event_object_begin(void *context) {
    struct reader *reader = context;
    if (!reader_deepens(reader))
        return 0;
    if (reader_ignores(reader)) {
        reader->skipped++;
        return 1;
    }
    struct frame *top = reader_top(reader);
    if (top == NULL) {
        reader->result = memory_zeroed(reader->schema->size);
        reader_push(reader,
                    (struct frame){.kind = FRAME_OBJECT, .schema = reader->schema, .object = reader->result});
        return 1;
    }
    if (top->kind != FRAME_OBJECT && top->kind != FRAME_OBJECTS && top->kind != FRAME_NAMED)
        return reader_fail_type(reader, found_object);
    const struct schema_field *field = top->field;
    void *place = schema_member(field, top->object);
    if (top->kind == FRAME_OBJECTS) {
        char *items = array_grow(schema_pointer_get(place), top->index, field->child->size);
        char *element = items + top->index * field->child->size;
        memset(element, 0, field->child->size);
        schema_pointer_set(place, items);
        schema_count_set(field, top->object, top->index + 1);
        reader_push(reader, (struct frame){.kind = FRAME_OBJECT, .schema = field->child, .object = element});
        return 1;
    }
    if (top->kind == FRAME_NAMED) {
        reader_push(reader, (struct frame){.kind = FRAME_OBJECT,
                                           .schema = field->child,
                                           .object = named_element(field, top->object, top->index - 1)});
        return 1;
    }
    if (field->type != SCHEMA_MAP && field->type != SCHEMA_OBJECT && field->type != SCHEMA_POINTER &&
        field->type != SCHEMA_NAMED)
        return reader_fail_type(reader, found_object);
    schema_member_clear(field, top->object);
    frame_mark(top, true);
    if (field->type == SCHEMA_MAP) {
        reader_push(reader, (struct frame){.kind = FRAME_MAP, .field = field, .object = top->object});
        return 1;
    }
    if (field->type == SCHEMA_NAMED) {
        reader_push(reader, (struct frame){.kind = FRAME_NAMED, .field = field, .object = top->object});
        return 1;
    }
    if (field->type == SCHEMA_POINTER) {
        void *child = memory_zeroed(field->child->size);
        schema_pointer_set(place, child);
        place = child;
    }
    reader_push(reader, (struct frame){.kind = FRAME_OBJECT, .schema = field->child, .object = place});
    return 1;
}

static int event_key(void *context, const unsigned char *key, size_t length) {
    struct reader *reader = context;
    if (reader->skipped > 0)
        return 1;
    struct frame *top = reader_top(reader);
    if (top->kind == FRAME_NAMED) {
        top->index = 0;
        char *name = string_take(reader, key, length);
        return name == NULL ? 0 : named_begin(reader, top, name);
    }
    if (top->kind == FRAME_MAP) {
        struct string_map *map = schema_member(top->field, top->object);
        top->index = 0;
        char *copy = string_take(reader, key, length);
        if (copy == NULL)
            return 0;
        top->index = 1;
        map->items = array_grow(map->items, map->count, sizeof *map->items);
        map->items[map->count++] = (struct key_value){.key = copy};
        return 1;
    }
    top->field = NULL;
    for (size_t i = 0; i < top->schema->field_count; i++) {
        const char *candidate = top->schema->fields[i].key;
        /* A key of JSON may hold a NUL, behind which strncmp does not look. */
        if (strlen(candidate) == length && memcmp(candidate, key, length) == 0) {
            top->field = &top->schema->fields[i];
            break;
        }
    }
    return 1;
}

static int compare_items(const void *left, const void *right) {
    const struct key_value *a = *(const struct key_value *const *)left;
    const struct key_value *b = *(const struct key_value *const *)right;
    int order = strcmp(a->key, b->key);
    return order != 0 ? order : (a > b) - (a < b);
}

/* Of a repeated key only the first place with the last value stays; null values go. Sorted rather than
 * searched: the annotations come from the image, and 16 MiB of keys would make a search at each of them take
 * minutes. */
static void map_settle(struct string_map *map) {
    if (map->count == 0)
        return;
    memory_owned struct key_value **sorted = memory_resize(NULL, map->count, sizeof *sorted);
    for (size_t i = 0; i < map->count; i++)
        sorted[i] = &map->items[i];
    qsort(sorted, map->count, sizeof *sorted, compare_items);
    struct key_value *first = sorted[0];
    for (size_t i = 1; i < map->count; i++) {
        if (strcmp(first->key, sorted[i]->key) != 0) {
            first = sorted[i];
            continue;
        }
        free(first->value);
        first->value = sorted[i]->value;
        sorted[i]->value = NULL;
    }
    size_t kept = 0;
    for (size_t i = 0; i < map->count; i++) {
        if (map->items[i].value == NULL)
            free(map->items[i].key);
        else
            map->items[kept++] = map->items[i];
    }
    map->count = kept;
}

static int event_object_end(void *context) {
    struct reader *reader = context;
    if (reader->skipped > 0) {
        reader->skipped--;
        return 1;
    }
    struct frame *top = reader_top(reader);
    if (top->kind == FRAME_MAP) {
        map_settle(schema_member(top->field, top->object));
    } else if (top->kind == FRAME_OBJECT) {
        for (size_t i = 0; i < top->schema->field_count; i++) {
            top->field = &top->schema->fields[i];
            if (top->field->required && (top->seen >> i & 1) == 0)
                return reader_fail(reader, "required, but missing");
        }
    }
    reader->depth--;
    struct frame *parent = reader_top(reader);
    if (parent != NULL && parent->kind == FRAME_OBJECTS)
        parent->index++;
    return 1;
}

static int event_array_begin(void *context) {
    struct reader *reader = context;
    if (!reader_deepens(reader))
        return 0;
    if (reader_ignores(reader)) {
        reader->skipped++;
        return 1;
    }
    struct frame *top = reader_top(reader);
    if (top == NULL || top->kind != FRAME_OBJECT)
        return reader_fail_type(reader, found_array);
    const struct schema_field *field = top->field;
    if (field->type != SCHEMA_STRINGS && field->type != SCHEMA_UINT32S && field->type != SCHEMA_OBJECTS)
        return reader_fail_type(reader, found_array);
    schema_member_clear(field, top->object);
    frame_mark(top, true);
    enum frame_kind kind = field->type == SCHEMA_STRINGS   ? FRAME_STRINGS
                           : field->type == SCHEMA_UINT32S ? FRAME_UINT32S
                                                           : FRAME_OBJECTS;
    reader_push(reader, (struct frame){.kind = kind, .field = field, .object = top->object});
    return 1;
}

static int event_array_end(void *context) {
    struct reader *reader = context;
    if (reader->skipped > 0) {
        reader->skipped--;
        return 1;
    }
    const struct frame *array = &reader->frames[--reader->depth];
    struct string_list *list = schema_member(array->field, array->object);
    if (array->kind == FRAME_STRINGS && list->items == NULL)
        list->items = memory_zeroed(sizeof *list->items); /* [] is there, and empty */
    return 1;
}

/* --- the document
 * -------------------------------------------------------------------------------------------- */

static const yajl_callbacks reader_callbacks = {
    .yajl_null = event_null,
    .yajl_boolean = event_boolean,
    .yajl_number = event_number,
    .yajl_string = event_string,
    .yajl_start_map = event_object_begin,
    .yajl_map_key = event_key,
    .yajl_end_map = event_object_end,
    .yajl_start_array = event_array_begin,
    .yajl_end_array = event_array_end,
};

static void *parser_malloc(void *context, size_t size) {
    (void)context;
    return memory_resize(NULL, size, 1);
}

static void *parser_realloc(void *context, void *pointer, size_t size) {
    (void)context;
    return memory_resize(pointer, size, 1);
}

static void parser_free(void *context, void *pointer) {
    (void)context;
    free(pointer);
}

/* yajl's message without the excerpt of the document, which could be an environment value. */
static struct error *parser_error(yajl_handle parser, const char *document, size_t offset) {
    unsigned char *message = yajl_get_error(parser, 0, NULL, 0);
    const char *words = message ? (const char *)message : "parse error";
    struct error *error =
        error_new(ERROR_INVALID, "%s: byte %zu: %.*s", document, offset, (int)strcspn(words, "\n"), words);
    if (message != NULL)
        yajl_free_error(parser, message);
    return error;
}

static struct error *reader_run(struct reader *reader, const char *bytes, size_t length) {
    yajl_alloc_funcs allocation = {parser_malloc, parser_realloc, parser_free, NULL};
    yajl_handle parser = yajl_alloc(&reader_callbacks, &allocation, reader);
    struct error *error = NULL;
    size_t offset = length;
    yajl_status status = yajl_parse(parser, (const unsigned char *)bytes, length);
    if (status == yajl_status_ok)
        status = yajl_complete_parse(parser);
    else
        offset = yajl_get_bytes_consumed(parser);
    if (reader->error != NULL)
        error = reader->error;
    else if (status != yajl_status_ok)
        error = parser_error(parser, reader->document, offset);
    else if (reader->result == NULL || reader->depth != 0)
        error =
            error_new(ERROR_INVALID, "%s: byte %zu: parse error: premature EOF", reader->document, length);
    yajl_free(parser);
    return error;
}

struct error *schema_read(const struct schema *schema, const char *document, const char *bytes, size_t length,
                          void **out) {
    *out = NULL;
    if (length > SCHEMA_BYTES_MAX)
        return error_new(ERROR_INVALID, "%s: %zu bytes, but at most %u are read", document, length,
                         SCHEMA_BYTES_MAX);
    size_t offset;
    if (!schema_escapes_valid(bytes, length, &offset))
        return error_new(ERROR_INVALID, "%s: byte %zu: a \\u escape of half a surrogate pair", document,
                         offset);
    memory_owned struct reader *reader = memory_zeroed(sizeof *reader);
    reader->schema = schema;
    reader->document = document;
    struct error *error = reader_run(reader, bytes, length);
    if (error != NULL) {
        schema_free(schema, reader->result);
        return error;
    }
    *out = reader->result;
    return NULL;
}
