/* Decoys: fake keys at well-known places. A tripwire, not a wall: whoever opens one gets nothing that is
 * worth anything, and gives himself away. */
#pragma once

#include "base/error.h"
#include "rootfs/paths.h"

struct decoy_request {
    const char *path;
    const char *content;
};

/* Makes the files in the store, read-only for everybody, and binds each at its place; directories that are
 * missing are made for the owner, with mode 0700. `sources` (room for `count`) receives an O_RDONLY
 * descriptor of each, for the tripwire; the caller closes them. */
fallible decoys_attach(const struct rootfs *root, const struct decoy_request *requests, size_t count,
                       uid_t uid, gid_t gid, int store, int *sources);
