/* The writer: one walk over the table. */
#include <string.h>

#include "libocispec/schema_internal.h"

static void members_write(const struct schema *schema, const void *object, struct json_writer *json);

static void array_write(const struct schema_field *field, const void *object, struct json_writer *json) {
    const char *items = schema_pointer_get(schema_member_const(field, object));
    size_t count = schema_count_get(field, object);
    json_array_begin(json);
    for (size_t i = 0; i < count; i++) {
        if (field->type == SCHEMA_UINT32S)
            json_unsigned(json, ((const uint32_t *)(const void *)items)[i]);
        else
            schema_write(field->child, items + i * field->child->size, json);
    }
    json_array_end(json);
}

static void named_write(const struct schema_field *field, const void *object, struct json_writer *json) {
    const char *items = schema_pointer_get(schema_member_const(field, object));
    size_t count = schema_count_get(field, object);
    json_object_begin(json);
    for (size_t i = 0; i < count; i++) {
        const char *element = items + i * field->child->size;
        json_key(json, schema_name_get(element));
        schema_write(field->child, element, json);
    }
    json_object_end(json);
}

static void value_write(const struct schema_field *field, const void *object, struct json_writer *json) {
    const void *place = schema_member_const(field, object);
    switch (field->type) {
    case SCHEMA_STRING: {
        const char *string = schema_pointer_get(place);
        json_string(json, string ? string : "");
        break;
    }
    case SCHEMA_BOOL:
        json_boolean(json, *(const bool *)place);
        break;
    case SCHEMA_INT32:
        json_integer(json, *(const int32_t *)place);
        break;
    case SCHEMA_INT64:
        json_integer(json, *(const int64_t *)place);
        break;
    case SCHEMA_UINT32:
        json_unsigned(json, *(const uint32_t *)place);
        break;
    case SCHEMA_UINT64:
        json_unsigned(json, *(const uint64_t *)place);
        break;
    case SCHEMA_OPTIONAL_BOOL:
        json_boolean(json, ((const struct optional_bool *)place)->value);
        break;
    case SCHEMA_OPTIONAL_INT64:
        json_integer(json, ((const struct optional_int64 *)place)->value);
        break;
    case SCHEMA_OPTIONAL_UINT64:
        json_unsigned(json, ((const struct optional_uint64 *)place)->value);
        break;
    case SCHEMA_OPTIONAL_UINT32:
        json_unsigned(json, ((const struct optional_uint32 *)place)->value);
        break;
    case SCHEMA_STRINGS: {
        const struct string_list *list = place;
        json_array_begin(json);
        for (size_t i = 0; i < list->count; i++)
            json_string(json, list->items[i]);
        json_array_end(json);
        break;
    }
    case SCHEMA_MAP: {
        const struct string_map *map = place;
        json_object_begin(json);
        for (size_t i = 0; i < map->count; i++)
            json_member_string(json, map->items[i].key, map->items[i].value);
        json_object_end(json);
        break;
    }
    case SCHEMA_OBJECT:
        schema_write(field->child, place, json);
        break;
    case SCHEMA_POINTER: {
        const void *child = schema_pointer_get(place);
        if (child != NULL)
            schema_write(field->child, child, json);
        else
            json_null(json);
        break;
    }
    case SCHEMA_UINT32S:
    case SCHEMA_OBJECTS:
        array_write(field, object, json);
        break;
    case SCHEMA_NAMED:
        named_write(field, object, json);
        break;
    }
}

bool schema_member_present(const struct schema_field *field, const void *object) {
    const void *place = schema_member_const(field, object);
    switch (field->type) {
    case SCHEMA_STRING: {
        const char *string = schema_pointer_get(place);
        return string != NULL && string[0] != '\0';
    }
    case SCHEMA_BOOL:
        return *(const bool *)place;
    case SCHEMA_INT32:
    case SCHEMA_UINT32:
        return *(const uint32_t *)place != 0;
    case SCHEMA_INT64:
    case SCHEMA_UINT64:
        return *(const uint64_t *)place != 0;
    case SCHEMA_OPTIONAL_BOOL:
        return ((const struct optional_bool *)place)->set;
    case SCHEMA_OPTIONAL_INT64:
        return ((const struct optional_int64 *)place)->set;
    case SCHEMA_OPTIONAL_UINT64:
        return ((const struct optional_uint64 *)place)->set;
    case SCHEMA_OPTIONAL_UINT32:
        return ((const struct optional_uint32 *)place)->set;
    case SCHEMA_STRINGS:
        return ((const struct string_list *)place)->count > 0;
    case SCHEMA_MAP:
        return ((const struct string_map *)place)->count > 0;
    case SCHEMA_OBJECT:
        for (size_t i = 0; i < field->child->field_count; i++)
            if (field->child->fields[i].required || schema_member_present(&field->child->fields[i], place))
                return true;
        return false;
    case SCHEMA_POINTER: /* {} is not the same as absent: an empty seccomp or capabilities object says
                            something */
        return schema_pointer_get(place) != NULL;
    case SCHEMA_UINT32S:
    case SCHEMA_OBJECTS:
    case SCHEMA_NAMED:
        return schema_count_get(field, object) > 0;
    }
    return false;
}

static void members_write(const struct schema *schema, const void *object, struct json_writer *json) {
    for (size_t i = 0; i < schema->field_count; i++) {
        const struct schema_field *field = &schema->fields[i];
        if (!field->required && !schema_member_present(field, object))
            continue;
        json_key(json, field->key);
        value_write(field, object, json);
    }
}

void schema_write(const struct schema *schema, const void *object, struct json_writer *json) {
    json_object_begin(json);
    members_write(schema, object, json);
    json_object_end(json);
}
