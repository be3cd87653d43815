/* A growing string. `struct text t = {0};` is empty; `text_owned struct text t = {0};` frees itself. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct text {
    char *data; /* NUL-terminated once anything was appended, else NULL */
    size_t length;
    size_t capacity;
};

void text_append(struct text *text, const char *string);
/* Room for `length` bytes at the end, to be written to by the caller; text_grown then says how many were. */
char *text_room(struct text *text, size_t length);
void text_grown(struct text *text, size_t length);
void text_append_bytes(struct text *text, const void *bytes, size_t length);
void text_format(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_vformat(struct text *text, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));
/* The string, never NULL; it is still the text's. */
const char *text_string(const struct text *text);
/* Hands the string over to the caller and leaves the text empty; never NULL. */
char *text_take(struct text *text);
void text_free(struct text *text);

#define text_owned __attribute__((cleanup(text_free)))

/* A formatted string that the caller frees. */
char *text_formatted(const char *format, ...) __attribute__((format(printf, 1, 2), returns_nonnull));

bool text_starts_with(const char *string, const char *prefix);
bool text_ends_with(const char *string, const char *suffix);

/* A list of strings, always followed by a NULL so that `items` serves as argv or envp; `items` is NULL when
 * the list is empty and was never appended to. */
struct string_list {
    char **items;
    size_t count;
};

void string_list_append(struct string_list *list, const char *string);
/* Takes over `string`. */
void string_list_append_owned(struct string_list *list, char *string);
/* Takes item `index` out, keeping the order. */
void string_list_remove(struct string_list *list, size_t index);
bool string_list_contains(const struct string_list *list, const char *string);
/* The same strings in the same order? */
bool string_list_equal(const struct string_list *one, const struct string_list *other);
void string_list_append_all(struct string_list *list, const struct string_list *more);
void string_list_free(struct string_list *list);
#define string_list_owned __attribute__((cleanup(string_list_free)))
