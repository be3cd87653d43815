/* The command line as engines use it: `--x v` and `--x=v`, long options with one dash too, repeats (the last
 * wins), short ones alone or together; options end at the first word that is none, so that a command's own
 * are not eaten.
 */
#pragma once

#include "base/error.h"
#include "base/text.h"

enum option_kind {
    OPTION_FLAG,  /* bool *; --x=false clears it */
    OPTION_VALUE, /* const char ** */
    OPTION_LIST,  /* struct string_list *, one more with each use */
    OPTION_IGNORED_FLAG,
    OPTION_IGNORED_VALUE
};

struct option {
    const char *name; /* without dashes */
    char letter;      /* 0: none */
    enum option_kind kind;
    void *target;
    const char *help; /* NULL: accepted for callers, not shown */
};

/* Parses from argv[1]; *first is the index of the first word that is no option. The list ends with a NULL
 * name.
 * --help and -h set *help. */
fallible options_parse(const char *command, const struct option *options, int argc, char **argv, int *first,
                       bool *help);
/* The same for a command that runs none of the caller's: options may follow its words, as runc and crun have
 * it; the words are moved to the end of argv. */
fallible options_parse_anywhere(const char *command, const struct option *options, int argc, char **argv,
                                int *first, bool *help);
void options_print(const char *usage, const struct option *options);
