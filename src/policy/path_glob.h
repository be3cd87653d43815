/* Globs of paths, by whole components: `*` is any part of one name (also one that begins with a dot), `?` one
 * byte,
 * `[a-z]` one of these; `**` as a name of its own is any number of directories, also none. Letters count as
 * they are. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

#define PATH_GLOB_NAMES_MAX 60

struct path_glob {
    struct string_list names;
};

/* Is there anything but plain text in it? */
bool path_glob_is(const char *pattern);
/* False for one with more than PATH_GLOB_NAMES_MAX names. The caller frees it either way. */
bool path_glob_parse(const char *pattern, struct path_glob *out);
void path_glob_free(struct path_glob *glob);
#define path_glob_owned __attribute__((cleanup(path_glob_free)))

/* For a walk: where a path stands in the glob at "/", and after one more name. 0: nothing below can match. */
uint64_t path_glob_begin(const struct path_glob *glob);
uint64_t path_glob_step(const struct path_glob *glob, uint64_t standing, const char *name);
/* Does the path that led here match? */
bool path_glob_accepts(const struct path_glob *glob, uint64_t standing);
/* The only name that can follow, or NULL: then a directory need not be listed. */
const char *path_glob_only_name(const struct path_glob *glob, uint64_t standing);

bool path_glob_matches(const char *pattern, const char *path);
