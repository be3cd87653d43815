/* Small whole files. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/text.h"

/* Reads a regular file (or, for procfs and pipes, whatever comes) of at most `limit` bytes; a larger one is
 * ERROR_INVALID. `directory` may be AT_FDCWD. The bytes are appended to *out. */
fallible file_read(int directory, const char *path, size_t limit, struct text *out);

/* Writes a file so that a reader sees the old or the new content, never a part: temporary name, then rename.
 * A leftover of an earlier attempt is no obstacle. */
fallible file_replace(int directory, const char *path, const void *bytes, size_t length, mode_t mode);

/* Opens an existing file that takes one write (procfs, cgroupfs) and writes it in one call. */
fallible file_write_once(int directory, const char *path, const char *value);
