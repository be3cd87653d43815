/* Secrets in text that ends up in a record: argv, URLs, headers. What is recognised is replaced by
 * "[redacted]", with the name that announced it kept ("--token [redacted]", "ghp_[redacted]",
 * "https://user:[redacted]@host/"), so that a reader still sees what was there. It is a second layer: values
 * of the container's environment never get here. Each function appends to `out`, takes any bytes, and gives
 * its own output unchanged (idempotent). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

/* Text of any kind: tokens of well-known shape and user information in URLs, nothing that depends on a name.
 */
void redact_text(const char *bytes, size_t length, struct text *out);
/* False when redact_text would certainly change nothing; a quick look, for the many strings that are short
 * names. */
bool redact_needed(const char *bytes, size_t length);
/* A command line whose arguments were joined by spaces, or a shell script: also options, assignments and
 * headers that announce a secret. A secret that itself holds spaces cannot be told from what follows it;
 * hence: */
void redact_command_line(const char *bytes, size_t length, struct text *out);
/* An argv as the kernel gives it, each argument ended by a NUL; appends the arguments joined by spaces. */
void redact_arguments(const char *bytes, size_t length, struct text *out);
