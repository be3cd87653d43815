/* The text is an annotation, that is to say anybody's: bounded, no recursion, nothing is guessed. */
#include "cgroup/gvariant.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct cursor {
    const char *next;
    size_t items;
};

/* The types of the text format with their D-Bus letter; `@t 5` and `uint64 5` are the same. */
static const struct {
    const char *name;
    char letter;
} type_names[] = {{"boolean", 'b'}, {"byte", 'y'},  {"int16", 'n'},  {"uint16", 'q'}, {"int32", 'i'},
                  {"uint32", 'u'},  {"int64", 'x'}, {"uint64", 't'}, {"double", 'd'}, {"string", 's'}};

static const struct {
    char letter;
    int64_t lowest;
    uint64_t highest;
} ranges[] = {{'y', 0, UINT8_MAX},         {'n', INT16_MIN, INT16_MAX}, {'q', 0, UINT16_MAX},
              {'i', INT32_MIN, INT32_MAX}, {'u', 0, UINT32_MAX},        {'x', INT64_MIN, INT64_MAX},
              {'t', 0, UINT64_MAX}};

static struct error *unexpected(const struct cursor *cursor, const char *expected) {
    if (*cursor->next == '\0')
        return error_new(ERROR_INVALID, "the value ends where %s was expected", expected);
    size_t length = strcspn(cursor->next, " \t\r\n,[](){}");
    if (length == 0)
        length = 1;
    return error_new(ERROR_INVALID, "expected %s, found \"%.*s\"", expected, length > 40 ? 40 : (int)length,
                     cursor->next);
}

static void blanks_skip(struct cursor *cursor) {
    cursor->next += strspn(cursor->next, " \t\r\n");
}

static bool is_word_byte(char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
           byte == '_';
}

static bool word_take(struct cursor *cursor, const char *word) {
    size_t length = strlen(word);
    if (strncmp(cursor->next, word, length) != 0 || is_word_byte(cursor->next[length]))
        return false;
    cursor->next += length;
    return true;
}

/* A type before a value: *letter is it, or 0 where none stands. */
static bool type_take(struct cursor *cursor, char *letter) {
    *letter = 0;
    for (size_t i = 0; i < sizeof type_names / sizeof type_names[0]; i++) {
        char sign[3] = {'@', type_names[i].letter, '\0'};
        if (!word_take(cursor, type_names[i].name) && !word_take(cursor, sign))
            continue;
        *letter = type_names[i].letter;
        blanks_skip(cursor);
        return true;
    }
    return false;
}

/* ---- strings ---- */

static void code_point_append(struct text *text, uint32_t code) {
    char bytes[4];
    size_t length;
    if (code < 0x80) {
        bytes[0] = (char)code;
        length = 1;
    } else if (code < 0x800) {
        bytes[0] = (char)(0xc0 | code >> 6);
        bytes[1] = (char)(0x80 | (code & 0x3f));
        length = 2;
    } else if (code < 0x10000) {
        bytes[0] = (char)(0xe0 | code >> 12);
        bytes[1] = (char)(0x80 | (code >> 6 & 0x3f));
        bytes[2] = (char)(0x80 | (code & 0x3f));
        length = 3;
    } else {
        bytes[0] = (char)(0xf0 | code >> 18);
        bytes[1] = (char)(0x80 | (code >> 12 & 0x3f));
        bytes[2] = (char)(0x80 | (code >> 6 & 0x3f));
        bytes[3] = (char)(0x80 | (code & 0x3f));
        length = 4;
    }
    text_append_bytes(text, bytes, length);
}

static int hex_digit(char byte) {
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    if (byte >= 'a' && byte <= 'f')
        return byte - 'a' + 10;
    if (byte >= 'A' && byte <= 'F')
        return byte - 'A' + 10;
    return -1;
}

/* After the backslash. */
static struct error *escape_take(struct cursor *cursor, struct text *out) {
    static const char letters[] = "abfnrtv";
    static const char meanings[] = "\a\b\f\n\r\t\v";
    char byte = *cursor->next;
    if (byte == '\0')
        return unexpected(cursor, "the rest of an escape");
    cursor->next++;
    const char *letter = strchr(letters, byte);
    if (letter != NULL) {
        text_append_bytes(out, &meanings[letter - letters], 1);
        return NULL;
    }
    if (byte != 'u' && byte != 'U') {
        if (byte != '\n') /* a line that goes on */
            text_append_bytes(out, &byte, 1);
        return NULL;
    }
    uint32_t code = 0;
    for (int digits = byte == 'u' ? 4 : 8; digits > 0; digits--) {
        int value = hex_digit(*cursor->next);
        if (value < 0 || code > 0xfffffff)
            return unexpected(cursor, "a hexadecimal digit");
        code = code << 4 | (uint32_t)value;
        cursor->next++;
    }
    if (code == 0 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return error_new(ERROR_INVALID, "\\%c%0*x is no character of a string", byte, byte == 'u' ? 4 : 8,
                         code);
    code_point_append(out, code);
    return NULL;
}

static struct error *string_take(struct cursor *cursor, char **out) {
    text_owned struct text text = {0};
    text_append(&text, "");
    char quote = *cursor->next++;
    while (*cursor->next != quote) {
        if (*cursor->next == '\0')
            return error_new(ERROR_INVALID, "the string has no closing %c", quote);
        if (*cursor->next == '\\') {
            cursor->next++;
            TRY(escape_take(cursor, &text));
        } else {
            text_append_bytes(&text, cursor->next++, 1);
        }
    }
    cursor->next++;
    *out = text_take(&text);
    return NULL;
}

/* ---- numbers ---- */

static struct error *integer_read(const char *word, char letter, char **out) {
    bool negative = word[0] == '-';
    const char *digits = word + (word[0] == '-' || word[0] == '+');
    char *end = NULL;
    errno = 0;
    uint64_t number = digits[0] >= '0' && digits[0] <= '9' ? strtoull(digits, &end, 0) : 0;
    if (end == NULL || *end != '\0')
        return error_new(ERROR_INVALID, "\"%s\" is no number", word);
    bool fits = false;
    for (size_t i = 0; errno == 0 && i < sizeof ranges / sizeof ranges[0]; i++)
        if (ranges[i].letter == letter)
            fits =
                negative ? number <= (uint64_t)0 - (uint64_t)ranges[i].lowest : number <= ranges[i].highest;
    if (!fits)
        return error_new(ERROR_INVALID, "%s is out of the range of its type, %c", word, letter);
    *out = text_formatted("%s%" PRIu64, negative && number != 0 ? "-" : "", number);
    return NULL;
}

static struct error *double_read(const char *word, char **out) {
    char *end = NULL;
    double number = strtod(word, &end);
    if (end == word || *end != '\0' || !isfinite(number))
        return error_new(ERROR_INVALID, "\"%s\" is no number", word);
    *out = text_formatted("%.17g", number);
    return NULL;
}

static struct error *number_take(struct cursor *cursor, char *letter, char **out) {
    size_t length = strspn(cursor->next, "+-.0123456789abcdefABCDEFxX");
    if (length == 0 || length > 40 || is_word_byte(cursor->next[length]))
        return unexpected(cursor, "a boolean, a number, a string or an array of these");
    char word[41];
    memcpy(word, cursor->next, length);
    word[length] = '\0';
    bool hexadecimal = strpbrk(word, "xX") != NULL;
    bool fraction = strchr(word, '.') != NULL || (!hexadecimal && strpbrk(word, "eE") != NULL);
    if (*letter == 0)
        *letter = fraction ? 'd' : 'i';
    TRY(*letter == 'd' ? double_read(word, out) : integer_read(word, *letter, out));
    cursor->next += length;
    return NULL;
}

/* ---- values ---- */

/* *letter is the type that is wanted, 0: any; it is the one that was found afterwards. */
static struct error *simple_take(struct cursor *cursor, char *letter, char **out) {
    char given;
    if (type_take(cursor, &given)) {
        if (*letter != 0 && given != *letter)
            return error_new(ERROR_INVALID, "the elements of an array must be of one type");
        *letter = given;
    }
    char byte = *cursor->next;
    char found = byte == '\'' || byte == '"' ? 's' : 0;
    bool is_true = word_take(cursor, "true");
    if (is_true || word_take(cursor, "false"))
        found = 'b';
    if (found != 0) {
        if (*letter != 0 && *letter != found)
            return error_new(ERROR_INVALID, "a value of type %c was expected, found one of type %c", *letter,
                             found);
        *letter = found;
        if (found == 's')
            return string_take(cursor, out);
        *out = memory_copy_string(is_true ? "true" : "false");
        return NULL;
    }
    if (*letter == 's' || *letter == 'b')
        return unexpected(cursor, *letter == 's' ? "a string in quotes" : "true or false");
    return number_take(cursor, letter, out);
}

static struct error *array_take(struct cursor *cursor, char *letter, struct string_list *values) {
    cursor->next++;
    blanks_skip(cursor);
    if (*cursor->next == ']') {
        cursor->next++;
        if (*letter == 0)
            return error_new(ERROR_INVALID, "an empty array needs its type before it, such as @as []");
        return NULL;
    }
    for (;;) {
        if (++cursor->items > GVARIANT_ITEMS_MAX)
            return error_new(ERROR_INVALID, "more than %d elements", GVARIANT_ITEMS_MAX);
        char *value = NULL;
        TRY(simple_take(cursor, letter, &value));
        string_list_append_owned(values, value);
        blanks_skip(cursor);
        if (*cursor->next == ']') {
            cursor->next++;
            return NULL;
        }
        if (*cursor->next != ',')
            return unexpected(cursor, ", or ] in an array");
        cursor->next++;
        blanks_skip(cursor);
    }
}

struct error *gvariant_parse(const char *text, char **type, struct string_list *values) {
    *type = NULL;
    *values = (struct string_list){0};
    if (strlen(text) > GVARIANT_BYTES_MAX)
        return error_new(ERROR_INVALID, "the value is longer than %d bytes", GVARIANT_BYTES_MAX);
    struct cursor cursor = {.next = text};
    blanks_skip(&cursor);
    char letter = 0;
    bool array = false;
    for (size_t i = 0; i < sizeof type_names / sizeof type_names[0] && !array; i++) {
        char sign[4] = {'@', 'a', type_names[i].letter, '\0'};
        array = word_take(&cursor, sign);
        letter = array ? type_names[i].letter : 0;
    }
    blanks_skip(&cursor);
    struct error *error = NULL;
    if (array && *cursor.next != '[') {
        error = unexpected(&cursor, "[");
    } else if (*cursor.next == '[') {
        array = true;
        error = array_take(&cursor, &letter, values);
    } else {
        char *value = NULL;
        error = simple_take(&cursor, &letter, &value);
        if (value != NULL)
            string_list_append_owned(values, value);
    }
    blanks_skip(&cursor);
    if (error == NULL && *cursor.next != '\0')
        error = unexpected(&cursor, "the end of the value");
    if (error != NULL) {
        string_list_free(values);
        *values = (struct string_list){0};
        return error;
    }
    *type = text_formatted("%s%c", array ? "a" : "", letter);
    return NULL;
}
