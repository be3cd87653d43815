/* Values of policies as they are written: scalars and items of lists. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "libocispec/names.h"
#include "policy/hosts.h"
#include "policy/keys.h"

#define QUOTED_MAX 100

/* Mechanisms that best_effort may name besides keys; policy/gaps.c says which key needs which. */
static const char *const mechanisms[] = {"landlock", "seccomp", "fanotify", "cgroup", NULL};

char *policy_value_expected(enum policy_key key) {
    const struct policy_key_info *info = &policy_keys[key];
    struct text text = {0};
    switch (info->type) {
    case POLICY_TYPE_BOOL:
        return memory_copy_string("true or false");
    case POLICY_TYPE_WORD:
        for (size_t i = 0; info->words[i] != NULL; i++)
            text_format(&text, "%s%s",
                        i == 0                       ? ""
                        : info->words[i + 1] != NULL ? ", "
                                                     : " or ",
                        info->words[i]);
        return text_take(&text);
    case POLICY_TYPE_LIST:
        return memory_copy_string("a list");
    case POLICY_TYPE_DURATION:
        return memory_copy_string("a duration such as 90s, 10m, 2h or 30d, or null");
    case POLICY_TYPE_SIZE:
        return memory_copy_string("a size such as 512MiB or 2GiB, or null");
    case POLICY_TYPE_COUNT:
        return memory_copy_string("a number from 1, or null");
    case POLICY_TYPE_CPUS:
        return memory_copy_string("a number of processors such as 2 or 0.5, or null");
    default:
        return memory_copy_string("an absolute path, a URL that begins with http:// or https://, or null");
    }
}

static struct error *unexpected(enum policy_key key, const char *value) {
    memory_owned char *expected = policy_value_expected(key);
    return error_new(ERROR_INVALID, "expected %s, found \"%.*s\"", expected, QUOTED_MAX, value);
}

struct unit {
    const char *name;
    int64_t factor;
};
static const struct unit duration_units[] = {{"ms", 1},      {"s", 1000},     {"m", 60000},
                                             {"h", 3600000}, {"d", 86400000}, {NULL, 0}};
static const struct unit size_units[] = {
    {"", 1},      {"KiB", 1ll << 10}, {"MiB", 1ll << 20}, {"GiB", 1ll << 30},    {"TiB", 1ll << 40},
    {"kB", 1000}, {"MB", 1000000},    {"GB", 1000000000}, {"TB", 1000000000000}, {NULL, 0}};
static const struct unit count_units[] = {{"", 1}, {NULL, 0}};

/* "10", "10s": digits, then a unit; 0 and what does not fit are none. */
static bool number_read(const char *value, const struct unit *units, int64_t *out) {
    size_t digits = strspn(value, "0123456789");
    if (digits == 0 || digits > 18)
        return false;
    int64_t number = strtoll(value, NULL, 10);
    for (; units->name != NULL; units++)
        if (strcmp(units->name, value + digits) == 0)
            return number > 0 && !__builtin_mul_overflow(number, units->factor, out);
    return false;
}

/* "2", "0.5", "1.25": up to three digits behind the point. */
static bool cpus_read(const char *value, int64_t *out) {
    size_t whole = strspn(value, "0123456789");
    size_t part = value[whole] == '.' ? strspn(value + whole + 1, "0123456789") : 0;
    if (whole == 0 || whole > 6 || part > 3 || value[whole + (part > 0 ? part + 1 : 0)] != '\0')
        return false;
    *out = strtoll(value, NULL, 10) * 1000;
    int64_t factor = 100;
    for (size_t i = 0; i < part; i++, factor /= 10)
        *out += (value[whole + 1 + i] - '0') * factor;
    return *out > 0;
}

static bool is_null(const char *value, bool plain) {
    return plain && (value[0] == '\0' || strcmp(value, "~") == 0 || strcmp(value, "null") == 0);
}

static struct error *limit_read(struct policy *policy, enum policy_key key, const char *value, bool plain) {
    struct optional_int64 *number = policy_number_of(policy, key);
    *number = (struct optional_int64){0};
    if (is_null(value, plain))
        return NULL;
    enum policy_type type = policy_keys[key].type;
    number->set = type == POLICY_TYPE_CPUS       ? cpus_read(value, &number->value)
                  : type == POLICY_TYPE_DURATION ? number_read(value, duration_units, &number->value)
                  : type == POLICY_TYPE_SIZE     ? number_read(value, size_units, &number->value)
                                                 : number_read(value, count_units, &number->value);
    return number->set ? NULL : unexpected(key, value);
}

struct error *policy_value_read(struct policy *policy, enum policy_key key, const char *value, bool plain) {
    const struct policy_key_info *info = &policy_keys[key];
    void *place = (char *)policy + info->offset;
    switch (info->type) {
    case POLICY_TYPE_BOOL:
        if (!plain || (strcmp(value, "true") != 0 && strcmp(value, "false") != 0))
            return unexpected(key, value);
        *(bool *)place = value[0] == 't';
        return NULL;
    case POLICY_TYPE_WORD:
        for (unsigned i = 0; info->words[i] != NULL; i++)
            if (strcmp(info->words[i], value) == 0) {
                *(unsigned *)place = i;
                return NULL;
            }
        return unexpected(key, value);
    case POLICY_TYPE_TEXT:
        free(*(char **)place);
        *(char **)place = NULL;
        if (is_null(value, plain))
            return NULL;
        if (value[0] != '/' && !text_starts_with(value, "http://") && !text_starts_with(value, "https://"))
            return unexpected(key, value);
        *(char **)place = memory_copy_string(value);
        return NULL;
    default:
        return limit_read(policy, key, value, plain);
    }
}

/* --- items of lists --- */

static bool is_word_of(const char *item, const char *const *words) {
    for (; *words != NULL; words++)
        if (strcmp(*words, item) == 0)
            return true;
    return false;
}

static bool has_parent_step(const char *path) {
    for (const char *part = path; part != NULL; part = strchr(part, '/')) {
        part += *part == '/';
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0'))
            return true;
    }
    return false;
}

/* Without "//", "/./" and a slash at the end. */
static char *path_clean(const char *path) {
    struct text text = {0};
    if (path[0] == '/')
        text_append(&text, "/");
    for (const char *part = path; *part != '\0';) {
        size_t length = strcspn(part, "/");
        if (length > 0 && !(length == 1 && part[0] == '.')) {
            if (text.length > 0 && text.data[text.length - 1] != '/')
                text_append(&text, "/");
            text_append_bytes(&text, part, length);
        }
        part += length;
        part += *part == '/';
    }
    return text_take(&text);
}

struct place_kind {
    const char *const *words;
    bool relative; /* to each writable place */
    bool glob;
    const char *expected;
};

static struct error *path_read(const struct place_kind *kind, const char *item, char **out) {
    if (is_word_of(item, kind->words)) {
        *out = memory_copy_string(item);
        return NULL;
    }
    bool home = text_starts_with(item, "~/");
    if ((item[0] != '/' && !home && !kind->relative) || item[0] == '\0' || item[0] == '@' ||
        (item[0] == '~' && !home))
        return error_new(ERROR_INVALID, "expected %s, found \"%.*s\"", kind->expected, QUOTED_MAX, item);
    if (has_parent_step(item))
        return error_new(ERROR_INVALID, "expected a path without \"..\", found \"%.*s\"", QUOTED_MAX, item);
    if (!kind->glob && strpbrk(item, "*?") != NULL)
        return error_new(ERROR_INVALID, "expected a path, found the glob \"%.*s\"", QUOTED_MAX, item);
    *out = path_clean(item);
    if ((*out)[0] != '\0')
        return NULL;
    free(*out);
    *out = NULL;
    return error_new(ERROR_INVALID, "expected %s, found \"%.*s\"", kind->expected, QUOTED_MAX, item);
}

static struct error *place_read(enum policy_item kind, const char *item, char **out) {
    static const char *const readable_words[] = {"@image", "@mounts", "@cwd", "~", NULL};
    static const char *const writable_words[] = {"@mounts", "@cwd", "~", NULL};
    static const char *const home_word[] = {"~", NULL};
    static const char *const no_words[] = {NULL};
    static const struct place_kind kinds[] = {
        [POLICY_ITEM_READABLE] = {readable_words, false, true,
                                  "@image, @mounts, @cwd, ~ or an absolute path or glob"},
        [POLICY_ITEM_WRITABLE] = {writable_words, false, false, "@mounts, @cwd, ~ or an absolute path"},
        [POLICY_ITEM_SCRATCH] = {home_word, false, false, "~ or an absolute path"},
        [POLICY_ITEM_HIDDEN] = {no_words, false, true,
                                "an absolute path or glob, or one that begins with ~/"},
        [POLICY_ITEM_PROTECTED] = {no_words, true, true, "a path or glob"},
        [POLICY_ITEM_MOUNT] = {no_words, false, false, "an absolute path, or one that begins with ~/"},
    };
    return path_read(&kinds[kind], item, out);
}

static struct error *host_read(const char *item, char **out) {
    struct policy_host host;
    struct error *error = policy_host_read(item, &host);
    if (error == NULL)
        error = policy_host_check(&host);
    if (error == NULL)
        *out = policy_host_write(&host);
    policy_host_clear(&host);
    return error;
}

static struct error *variable_read(const char *item, char **out) {
    if (item[0] == '\0' || strchr(item, '=') != NULL)
        return error_new(ERROR_INVALID, "expected the name of a variable or a glob, without its value");
    *out = memory_copy_string(item);
    return NULL;
}

static struct error *capability_read(const char *item, char **out) {
    char *name = text_formatted("%s%s", strncasecmp(item, "CAP_", 4) == 0 ? "" : "CAP_", item);
    for (char *byte = name; *byte != '\0'; byte++)
        if (*byte >= 'a' && *byte <= 'z')
            *byte = (char)(*byte - 'a' + 'A');
    if (oci_capability_number(name) >= 0) {
        *out = name;
        return NULL;
    }
    free(name);
    return error_new(ERROR_INVALID, "expected a capability such as CAP_NET_RAW, found \"%.*s\"", QUOTED_MAX,
                     item);
}

static struct error *mechanism_read(const char *item, char **out) {
    if (policy_key_find(item) == POLICY_KEY_COUNT && !is_word_of(item, mechanisms))
        return error_new(ERROR_INVALID,
                         "expected the name of a key such as limits.time, or landlock, seccomp, fanotify or "
                         "cgroup, found \"%.*s\"",
                         QUOTED_MAX, item);
    *out = memory_copy_string(item);
    return NULL;
}

struct error *policy_item_read(enum policy_key key, const char *item, char **out) {
    *out = NULL;
    switch (policy_keys[key].item) {
    case POLICY_ITEM_HOST:
        return host_read(item, out);
    case POLICY_ITEM_VARIABLE:
        return variable_read(item, out);
    case POLICY_ITEM_CAPABILITY:
        return capability_read(item, out);
    case POLICY_ITEM_MECHANISM:
        return mechanism_read(item, out);
    default:
        return place_read(policy_keys[key].item, item, out);
    }
}
