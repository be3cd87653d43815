/* What can stand in status_detail. A code is never renamed, and never means something else: people filter by
 * it. */
#pragma once

#include <stddef.h>

struct record_reason {
    const char *code;
    const char *meaning; /* for people; words between ` are code */
};

/* All of them, in the order in which they are told; the table is the program's. */
const struct record_reason *record_reasons(size_t *count);

/* The code that a refusal's message has, "where: CODE: sentence"; "policy.refused" where it has none. */
const char *record_reason_of(const char *message);
