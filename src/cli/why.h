/* `pinfold why`: one question, answered by what enforces it. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "container/container.h"

struct why_answer {
    bool allowed;
    char *what;   /* "writing to /etc/passwd" */
    char *rule;   /* the line, or what built-in rule it is */
    char *origin; /* where that line was written, or NULL */
    char *remedy; /* the line that would allow it, or NULL */
    char *note;   /* one more sentence, or NULL */
};

/* why_call.c: NAME or NAME(ARGUMENT, ...). False for what is no system call. */
bool why_is_call(const char *subject);
fallible why_call(const struct prepared *prepared, const char *subject, struct why_answer *answer);
/* why_path.c: reading (or writing) a path of the container. */
fallible why_path(const struct prepared *prepared, const char *path, bool reads, struct why_answer *answer);
/* why_host.c: a name or an address, with a port or those of the web. */
fallible why_host(const struct prepared *prepared, const char *subject, struct why_answer *answer);
