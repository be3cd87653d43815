/* A small tmpfs of the runtime's own, whose files and directories are bound into the root one by one: what
 * the container gets is a read-only copy of the mount, what the runtime holds open can be written. */
#pragma once

#include "base/error.h"

/* Mounts it on `staging`, a directory of the runtime, for the time that it is copied from. */
fallible store_open(int staging, int *out);
fallible store_close(int store);
