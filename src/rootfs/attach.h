/* Detached mounts: made, given their attributes, then attached at a descriptor, never at a path that is
 * looked up again. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "rootfs/paths.h"

/* A detached copy of the mount at `source` (O_PATH), with everything below it when `recursive`. Its
 * propagation is private: a copy would otherwise stay a peer of the host's mount (crun #2059). */
fallible mount_copy(int source, bool recursive, const char *subject, int *out);

/* A detached mount of a new file system. `superblock`: flags and key=value, may be NULL. */
fallible mount_new(const char *type, const char *source, const struct string_list *superblock,
                   uint64_t attributes, int *out);

/* Changes the options of the tmpfs that is mounted at `mount`, for all of its mounts. */
fallible mount_reconfigure(int mount, const struct string_list *superblock, const char *subject);
/* Sets and clears attributes of a mount, or of its whole tree. In a user namespace the kernel locks flags of
 * mounts that came from outside; those stay when clearing them is refused. */
fallible mount_change(int mount, bool recursive, uint64_t set, uint64_t clear, const char *subject);

/* MS_SHARED, MS_SLAVE, MS_PRIVATE or MS_UNBINDABLE. */
fallible mount_propagate(int mount, bool recursive, uint64_t propagation, const char *subject);

fallible mount_attach(int mount, int target, const char *subject);

/* Takes an attached mount away from its place; what was copied from it stays. */
fallible mount_detach(int mount, const char *subject);
