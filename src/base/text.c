#include "base/text.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"

static void text_reserve(struct text *text, size_t more) {
    size_t needed = text->length + more + 1;
    if (needed <= text->capacity)
        return;
    size_t capacity = text->capacity ? text->capacity : 64;
    while (capacity < needed)
        capacity *= 2;
    text->data = memory_resize(text->data, capacity, 1);
    text->capacity = capacity;
}

char *text_room(struct text *text, size_t length) {
    text_reserve(text, length);
    text->data[text->length] = '\0';
    return text->data + text->length;
}

void text_grown(struct text *text, size_t length) {
    text->length += length;
    text->data[text->length] = '\0';
}

void text_append_bytes(struct text *text, const void *bytes, size_t length) {
    text_reserve(text, length);
    if (length > 0)
        memcpy(text->data + text->length, bytes, length);
    text->length += length;
    text->data[text->length] = '\0';
}

void text_append(struct text *text, const char *string) {
    text_append_bytes(text, string, strlen(string));
}

void text_vformat(struct text *text, const char *format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    if (length > 0) {
        text_reserve(text, (size_t)length);
        vsnprintf(text->data + text->length, (size_t)length + 1, format, again);
        text->length += (size_t)length;
    }
    va_end(again);
}

void text_format(struct text *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    text_vformat(text, format, arguments);
    va_end(arguments);
}

const char *text_string(const struct text *text) {
    return text->data ? text->data : "";
}

char *text_take(struct text *text) {
    char *data = text->data ? text->data : memory_copy_string("");
    *text = (struct text){0};
    return data;
}

void text_free(struct text *text) {
    free(text->data);
    *text = (struct text){0};
}

char *text_formatted(const char *format, ...) {
    struct text text = {0};
    va_list arguments;
    va_start(arguments, format);
    text_vformat(&text, format, arguments);
    va_end(arguments);
    return text_take(&text);
}

bool text_starts_with(const char *string, const char *prefix) {
    return strncmp(string, prefix, strlen(prefix)) == 0;
}

bool text_ends_with(const char *string, const char *suffix) {
    size_t length = strlen(string);
    size_t tail = strlen(suffix);
    return length >= tail && strcmp(string + length - tail, suffix) == 0;
}

void string_list_append_owned(struct string_list *list, char *string) {
    list->items = memory_resize(list->items, list->count + 2, sizeof *list->items);
    list->items[list->count++] = string;
    list->items[list->count] = NULL;
}

void string_list_append(struct string_list *list, const char *string) {
    string_list_append_owned(list, memory_copy_string(string));
}

void string_list_remove(struct string_list *list, size_t index) {
    free(list->items[index]);
    memmove(list->items + index, list->items + index + 1, (list->count - index) * sizeof *list->items);
    list->count--;
}

bool string_list_contains(const struct string_list *list, const char *string) {
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i], string) == 0)
            return true;
    return false;
}

bool string_list_equal(const struct string_list *one, const struct string_list *other) {
    bool equal = one->count == other->count;
    for (size_t i = 0; equal && i < one->count; i++)
        equal = strcmp(one->items[i], other->items[i]) == 0;
    return equal;
}

void string_list_append_all(struct string_list *list, const struct string_list *more) {
    for (size_t i = 0; i < more->count; i++)
        string_list_append(list, more->items[i]);
}

void string_list_free(struct string_list *list) {
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
    *list = (struct string_list){0};
}
