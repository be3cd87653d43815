#include "policy/path_glob.h"

#include <string.h>

#include "base/memory.h"

bool path_glob_is(const char *pattern) {
    return strpbrk(pattern, "*?[") != NULL;
}

bool path_glob_parse(const char *pattern, struct path_glob *out) {
    *out = (struct path_glob){0};
    while (*pattern != '\0') {
        pattern += strspn(pattern, "/");
        size_t length = strcspn(pattern, "/");
        if (length > 0 && out->names.count == PATH_GLOB_NAMES_MAX)
            return false;
        if (length > 0 && !(length == 1 && pattern[0] == '.'))
            string_list_append_owned(&out->names, text_formatted("%.*s", (int)length, pattern));
        pattern += length;
    }
    return true;
}

void path_glob_free(struct path_glob *glob) {
    string_list_free(&glob->names);
}

/* "[a-z]" at `pattern`: whether it holds the byte, and what follows it; NULL when it has no end, and then the
 * bracket is a plain one. */
static const char *class_end(const char *pattern, char byte, bool *holds) {
    const char *at = pattern + 1;
    bool inverted = *at == '!' || *at == '^';
    at += inverted;
    bool found = false;
    for (bool first = true; *at != '\0' && (*at != ']' || first); first = false) {
        unsigned char low = (unsigned char)*at++;
        unsigned char high = low;
        if (at[0] == '-' && at[1] != ']' && at[1] != '\0') {
            high = (unsigned char)at[1];
            at += 2;
        }
        found = found || ((unsigned char)byte >= low && (unsigned char)byte <= high);
    }
    if (*at != ']')
        return NULL;
    *holds = found != inverted;
    return at + 1;
}

/* One byte of the name against what the pattern has there; what follows in the pattern, or NULL. */
static const char *byte_match(const char *pattern, char byte) {
    bool holds = false;
    const char *end = *pattern == '[' ? class_end(pattern, byte, &holds) : NULL;
    if (end != NULL)
        return holds ? end : NULL;
    return *pattern == '?' || (*pattern == byte && byte != '\0') ? pattern + 1 : NULL;
}

static bool name_matches(const char *pattern, const char *name) {
    const char *star = NULL;
    const char *retry = NULL;
    while (*name != '\0') {
        const char *next = *pattern != '*' && *pattern != '\0' ? byte_match(pattern, *name) : NULL;
        if (*pattern == '*') {
            star = ++pattern;
            retry = name;
        } else if (next != NULL) {
            pattern = next;
            name++;
        } else if (star != NULL) {
            pattern = star;
            name = ++retry;
        } else {
            return false;
        }
    }
    return pattern[strspn(pattern, "*")] == '\0';
}

static bool is_any_depth(const struct path_glob *glob, size_t index) {
    return index < glob->names.count && strcmp(glob->names.items[index], "**") == 0;
}

/* Bit i: the names before i are matched. "**" may be none. */
static uint64_t closure(const struct path_glob *glob, uint64_t standing) {
    for (size_t i = 0; i < glob->names.count; i++)
        if ((standing >> i & 1) != 0 && is_any_depth(glob, i))
            standing |= UINT64_C(1) << (i + 1);
    return standing;
}

uint64_t path_glob_begin(const struct path_glob *glob) {
    return closure(glob, 1);
}

uint64_t path_glob_step(const struct path_glob *glob, uint64_t standing, const char *name) {
    uint64_t next = 0;
    for (size_t i = 0; i < glob->names.count; i++) {
        if ((standing >> i & 1) == 0)
            continue;
        if (is_any_depth(glob, i))
            next |= UINT64_C(1) << i;
        else if (name_matches(glob->names.items[i], name))
            next |= UINT64_C(1) << (i + 1);
    }
    return closure(glob, next);
}

bool path_glob_accepts(const struct path_glob *glob, uint64_t standing) {
    return (standing >> glob->names.count & 1) != 0;
}

const char *path_glob_only_name(const struct path_glob *glob, uint64_t standing) {
    if (standing == 0 || (standing & (standing - 1)) != 0)
        return NULL;
    size_t index = (size_t)__builtin_ctzll(standing);
    if (index >= glob->names.count || path_glob_is(glob->names.items[index]))
        return NULL;
    return glob->names.items[index];
}

bool path_glob_matches(const char *pattern, const char *path) {
    path_glob_owned struct path_glob glob = {0};
    if (!path_glob_parse(pattern, &glob))
        return false;
    uint64_t standing = path_glob_begin(&glob);
    while (*path != '\0' && standing != 0) {
        path += strspn(path, "/");
        size_t length = strcspn(path, "/");
        if (length == 0)
            break;
        memory_owned char *name = text_formatted("%.*s", (int)length, path);
        standing = path_glob_step(&glob, standing, name);
        path += length;
    }
    return path_glob_accepts(&glob, standing);
}
