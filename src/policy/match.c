#include "policy/match.h"

#include <string.h>

#include "base/memory.h"

/* Not tolower(3): it depends on the locale, and a policy must not. */
static char fold(char byte) {
    return byte >= 'A' && byte <= 'Z' ? (char)(byte - 'A' + 'a') : byte;
}

bool match_name(const char *pattern, const char *name) {
    /* The last star is the only place to go back to, so hostile patterns and names stay at length times
     * length. */
    const char *star = NULL;
    const char *retry = NULL;
    while (*name != '\0') {
        if (*pattern == '*') {
            star = ++pattern;
            retry = name;
        } else if (*pattern != '\0' && (*pattern == '?' || fold(*pattern) == fold(*name))) {
            pattern++;
            name++;
        } else if (star != NULL) {
            pattern = star;
            name = ++retry;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

bool match_any_name(const struct string_list *patterns, const char *name) {
    for (size_t i = 0; i < patterns->count; i++)
        if (match_name(patterns->items[i], name))
            return true;
    return false;
}

const char *match_path_rest(const char *path, const char *place) {
    size_t length = strlen(place);
    while (length > 0 && place[length - 1] == '/')
        length--;
    if (strncmp(path, place, length) != 0)
        return NULL;
    if (path[length] == '\0')
        return path + length;
    if (path[length] != '/')
        return NULL;
    return path + length + strspn(path + length, "/");
}

bool match_path_within(const char *path, const char *place) {
    return match_path_rest(path, place) != NULL;
}

char *match_path_clean(const char *path) {
    char *clean = memory_zeroed(strlen(path) + 2);
    size_t length = 0;
    while (*path != '\0') {
        path += strspn(path, "/");
        size_t part = strcspn(path, "/");
        if (part == 2 && path[0] == '.' && path[1] == '.') {
            while (length > 0 && clean[--length] != '/')
                ;
        } else if (part > 0 && !(part == 1 && path[0] == '.')) {
            clean[length++] = '/';
            memcpy(clean + length, path, part);
            length += part;
        }
        path += part;
    }
    if (length == 0)
        clean[length++] = '/';
    clean[length] = '\0';
    return clean;
}
