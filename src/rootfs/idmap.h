/* Id-mapped mounts (config.md, "Mounts": uidMappings, gidMappings, idmap and ridmap; mount_setattr(2)). */
#pragma once

#include "base/error.h"
#include "libocispec/config.h"
#include "rootfs/mount_options.h"

/* Maps the owners of a detached tree, the whole of it with "ridmap". The mappings are those of the mount,
 * those in the option ("idmap=uids=0-100000-65536;gids=0-100000-65536", which podman passes on), or those of
 * the container's user namespace; ERROR_INVALID where there is none of these. Without such an option or
 * mapping nothing is done. */
fallible idmap_apply(const struct oci_config *config, const struct oci_mount *mount,
                     const struct mount_options *options, int tree);
