/* String maps, and what walks a schema's table without reading or writing JSON: clear, free, copy. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "libocispec/schema_internal.h"

static struct key_value *map_find(const struct string_map *map, const char *key) {
    for (size_t i = 0; i < map->count; i++)
        if (strcmp(map->items[i].key, key) == 0)
            return &map->items[i];
    return NULL;
}

const char *string_map_get(const struct string_map *map, const char *key) {
    const struct key_value *item = map_find(map, key);
    return item ? item->value : NULL;
}

void string_map_set(struct string_map *map, const char *key, const char *value) {
    struct key_value *item = map_find(map, key);
    char *copy = memory_copy_string(value); /* first: `value` may be the one that is replaced */
    if (item != NULL) {
        free(item->value);
        item->value = copy;
        return;
    }
    map->items = memory_resize(map->items, map->count + 1, sizeof *map->items);
    map->items[map->count++] = (struct key_value){.key = memory_copy_string(key), .value = copy};
}

void string_map_free(struct string_map *map) {
    for (size_t i = 0; i < map->count; i++) {
        free(map->items[i].key);
        free(map->items[i].value);
    }
    free(map->items);
    *map = (struct string_map){0};
}

static void array_clear(const struct schema_field *field, void *object) {
    void *place = schema_member(field, object);
    char *items = schema_pointer_get(place);
    for (size_t i = 0; field->type != SCHEMA_UINT32S && i < schema_count_get(field, object); i++) {
        char *element = items + i * field->child->size;
        schema_clear(field->child, element);
        if (field->type == SCHEMA_NAMED)
            free(schema_name_get(element));
    }
    free(items);
    schema_pointer_set(place, NULL);
    schema_count_set(field, object, 0);
}

void schema_member_clear(const struct schema_field *field, void *object) {
    void *place = schema_member(field, object);
    switch (field->type) {
    case SCHEMA_STRING:
        free(schema_pointer_get(place));
        schema_pointer_set(place, NULL);
        break;
    case SCHEMA_BOOL:
        memset(place, 0, sizeof(bool));
        break;
    case SCHEMA_INT32:
    case SCHEMA_UINT32:
        memset(place, 0, sizeof(uint32_t));
        break;
    case SCHEMA_INT64:
    case SCHEMA_UINT64:
        memset(place, 0, sizeof(uint64_t));
        break;
    case SCHEMA_OPTIONAL_BOOL:
        memset(place, 0, sizeof(struct optional_bool));
        break;
    case SCHEMA_OPTIONAL_INT64:
        memset(place, 0, sizeof(struct optional_int64));
        break;
    case SCHEMA_OPTIONAL_UINT64:
        memset(place, 0, sizeof(struct optional_uint64));
        break;
    case SCHEMA_OPTIONAL_UINT32:
        memset(place, 0, sizeof(struct optional_uint32));
        break;
    case SCHEMA_STRINGS:
        string_list_free(place);
        break;
    case SCHEMA_MAP:
        string_map_free(place);
        break;
    case SCHEMA_OBJECT:
        schema_clear(field->child, place);
        break;
    case SCHEMA_POINTER:
        schema_free(field->child, schema_pointer_get(place));
        schema_pointer_set(place, NULL);
        break;
    case SCHEMA_UINT32S:
    case SCHEMA_OBJECTS:
    case SCHEMA_NAMED:
        array_clear(field, object);
        break;
    }
}

void schema_clear(const struct schema *schema, void *object) {
    for (size_t i = 0; i < schema->field_count; i++)
        schema_member_clear(&schema->fields[i], object);
}

void schema_free(const struct schema *schema, void *object) {
    if (object == NULL)
        return;
    schema_clear(schema, object);
    free(object);
}

static void members_copy(const struct schema *schema, const void *from, void *to);

static void *objects_copy(const struct schema *schema, const char *items, size_t count) {
    if (count == 0)
        return NULL;
    char *copies = memory_zeroed(count * schema->size);
    for (size_t i = 0; i < count; i++)
        members_copy(schema, items + i * schema->size, copies + i * schema->size);
    return copies;
}

/* Makes the members of `to` its own; `to` is still a bytewise copy of `from`, so plain values are there
 * already. */
static void member_copy(const struct schema_field *field, const void *from, void *to) {
    const void *source = schema_member_const(field, from);
    void *target = schema_member(field, to);
    switch (field->type) {
    case SCHEMA_STRING: {
        const char *string = schema_pointer_get(source);
        schema_pointer_set(target, string ? memory_copy_string(string) : NULL);
        break;
    }
    case SCHEMA_STRINGS: {
        const struct string_list *list = source;
        struct string_list copy = {0};
        if (list->items != NULL)
            copy.items = memory_zeroed((list->count + 1) * sizeof *copy.items);
        for (; copy.count < list->count; copy.count++)
            copy.items[copy.count] = memory_copy_string(list->items[copy.count]);
        memcpy(target, &copy, sizeof copy);
        break;
    }
    case SCHEMA_MAP: {
        const struct string_map *map = source;
        struct string_map copy = {0};
        if (map->count > 0)
            copy.items = memory_zeroed(map->count * sizeof *copy.items);
        for (; copy.count < map->count; copy.count++) {
            copy.items[copy.count].key = memory_copy_string(map->items[copy.count].key);
            copy.items[copy.count].value = memory_copy_string(map->items[copy.count].value);
        }
        memcpy(target, &copy, sizeof copy);
        break;
    }
    case SCHEMA_UINT32S: {
        size_t count = schema_count_get(field, from);
        const uint32_t *items = schema_pointer_get(source);
        schema_pointer_set(target, count ? memory_copy(items, count * sizeof *items) : NULL);
        break;
    }
    case SCHEMA_OBJECT:
        members_copy(field->child, source, target);
        break;
    case SCHEMA_POINTER:
        schema_pointer_set(target, schema_copy(field->child, schema_pointer_get(source)));
        break;
    case SCHEMA_OBJECTS:
        schema_pointer_set(
            target, objects_copy(field->child, schema_pointer_get(source), schema_count_get(field, from)));
        break;
    case SCHEMA_NAMED: {
        size_t count = schema_count_get(field, from);
        char *copies = objects_copy(field->child, schema_pointer_get(source), count);
        for (size_t i = 0; i < count; i++) {
            char *element = copies + i * field->child->size;
            schema_pointer_set(element, memory_copy_string(schema_name_get(element)));
        }
        schema_pointer_set(target, copies);
        break;
    }
    default:
        break;
    }
}

static void members_copy(const struct schema *schema, const void *from, void *to) {
    memcpy(to, from, schema->size);
    for (size_t i = 0; i < schema->field_count; i++)
        member_copy(&schema->fields[i], from, to);
}

void *schema_copy(const struct schema *schema, const void *object) {
    if (object == NULL)
        return NULL;
    void *copy = memory_zeroed(schema->size);
    members_copy(schema, object, copy);
    return copy;
}

static size_t member_size(const struct schema_field *field) {
    switch (field->type) {
    case SCHEMA_BOOL:
        return sizeof(bool);
    case SCHEMA_INT32:
    case SCHEMA_UINT32:
        return sizeof(uint32_t);
    case SCHEMA_INT64:
    case SCHEMA_UINT64:
        return sizeof(uint64_t);
    case SCHEMA_OPTIONAL_BOOL:
        return sizeof(struct optional_bool);
    case SCHEMA_OPTIONAL_INT64:
        return sizeof(struct optional_int64);
    case SCHEMA_OPTIONAL_UINT64:
        return sizeof(struct optional_uint64);
    case SCHEMA_OPTIONAL_UINT32:
        return sizeof(struct optional_uint32);
    case SCHEMA_STRINGS:
        return sizeof(struct string_list);
    case SCHEMA_MAP:
        return sizeof(struct string_map);
    case SCHEMA_OBJECT:
        return field->child->size;
    case SCHEMA_STRING:
    case SCHEMA_POINTER:
    case SCHEMA_UINT32S:
    case SCHEMA_OBJECTS:
    case SCHEMA_NAMED:
        return sizeof(void *);
    }
    return 0;
}

static void member_merge(const struct schema_field *field, void *base, const void *over) {
    void *target = schema_member(field, base);
    const void *source = schema_member_const(field, over);
    if (field->type == SCHEMA_MAP) {
        const struct string_map *map = source;
        for (size_t i = 0; i < map->count; i++)
            string_map_set(target, map->items[i].key, map->items[i].value);
    } else if (field->type == SCHEMA_OBJECT) {
        schema_merge(field->child, target, source);
    } else if (field->type == SCHEMA_POINTER && schema_pointer_get(target) != NULL) {
        schema_merge(field->child, schema_pointer_get(target), schema_pointer_get(source));
    } else {
        schema_member_clear(field, base);
        memcpy(target, source, member_size(field));
        if (field->type == SCHEMA_UINT32S || field->type == SCHEMA_OBJECTS || field->type == SCHEMA_NAMED)
            schema_count_set(field, base, schema_count_get(field, over));
        member_copy(field, over, base);
    }
}

void schema_merge(const struct schema *schema, void *base, const void *over) {
    for (size_t i = 0; i < schema->field_count; i++)
        if (schema_member_present(&schema->fields[i], over))
            member_merge(&schema->fields[i], base, over);
}

void schema_forget(const struct schema *schema, const char *key, void *object) {
    for (size_t i = 0; i < schema->field_count; i++)
        if (strcmp(schema->fields[i].key, key) == 0)
            schema_member_clear(&schema->fields[i], object);
}
