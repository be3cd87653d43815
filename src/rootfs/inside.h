/* The directory in which a container sees its own denials (log.inside). */
#pragma once

#include "base/error.h"
#include "rootfs/paths.h"

/* Makes a directory with a README and an empty file in the store, binds it read-only at `place`, and gives a
 * descriptor of the file that can be appended to, for the warden. *out is -1 where the image has something
 * else at that place: then the container sees nothing, which takes nothing away from what is recorded. */
fallible inside_attach(const struct rootfs *root, int store, struct container_path place, int *out);
