/* A system call in words, as far as its arguments say what it was for. Pure: memory of the caller is not
 * read. */
#pragma once

#include <linux/seccomp.h>

#include "base/text.h"

/* Appends "The system call socket for AF_VSOCK (40)"; `call` is its name. */
void describe_call(struct text *out, const char *call, const struct seccomp_data *data);
