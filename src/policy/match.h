/* Matchers of policies: names with globs, and paths by whole components. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

/* Does `name` match the glob? `*` stands for any bytes, `?` for one; letters match without their case (ASCII,
 * no locale). */
bool match_name(const char *pattern, const char *name);
bool match_any_name(const struct string_list *patterns, const char *name);

/* Is `path` the place itself or something below it? Both absolute and clean; "/" holds everything. */
bool match_path_within(const char *path, const char *place);
/* The part of `path` below `place` without its slash, "" for the place itself, NULL when it is not within. */
const char *match_path_rest(const char *path, const char *place);

/* An absolute path without `//`, `.`, `..` and trailing slash, by its text alone ("..": one component up,
 * never above
 * "/"). The caller frees it. */
char *match_path_clean(const char *path);
