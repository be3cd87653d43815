/* Writable places in a read-only root. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "rootfs/paths.h"

/* Own layer: the directory or file is bound over itself. Else it is in memory, with the content copied up. A
 * directory that is missing is made when `create`, with `mode` and owner, else passed over. */
struct scratch_request {
    const char *path;
    bool tmpfs;
    bool create;
    mode_t mode;
    uid_t uid;
    gid_t gid;
};
/* `staging`: a directory where a file system may be mounted for a moment. */
fallible scratch_mount(const struct rootfs *root, const struct scratch_request *request, int staging);
