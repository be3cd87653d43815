/* Places inside mounts that are bound over themselves. A place that is missing is passed over. */
#pragma once

#include "base/error.h"
#include "rootfs/paths.h"

/* As it is, with everything below: a mount point can be neither moved nor removed, and so neither can what it
 * holds be put aside. */
fallible rebind_fixed(const struct rootfs *root, struct container_path path);
/* Writable, inside a mount that this runtime has made read-only. A symlink on the way is none of ours to
 * follow. */
fallible rebind_writable(const struct rootfs *root, struct container_path path);
/* Makes an empty directory, of the owner of the one that it is in; no error where that cannot be. */
void rebind_make_directory(const struct rootfs *root, struct container_path path);
