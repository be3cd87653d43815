/* A policy file inside a writable mount of the container would be the container's own to write, for the next
 * time. By inode: a bind of a bind, a symlink and a directory above are all the same place. */
#include "base/text.h"
#include "harden/parts.h"

static bool is_in(const struct policy_file *file, const struct stat *place) {
    for (size_t i = 0; i < file->chain_count; i++)
        if (file->chain[i].device == place->st_dev && file->chain[i].inode == place->st_ino)
            return true;
    return false;
}

static bool is_writable(const struct oci_mount *mount) {
    return !string_list_contains(&mount->options, "ro") && !string_list_contains(&mount->options, "rro");
}

fallible harden_policy_files(const struct policy *policy, const struct facts *facts,
                             const struct hardened *hardened) {
    for (size_t f = 0; f < policy->files_count; f++) {
        const struct policy_file *file = &policy->files[f];
        for (size_t i = 0; !file->pinned && i < facts->mounts_count; i++) {
            const struct oci_mount *mount = &hardened->config->mounts[i];
            if (facts->mounts[i].source_fd < 0 || !is_writable(mount) ||
                !is_in(file, &facts->mounts[i].status))
                continue;
            return error_new(ERROR_REFUSED,
                             "policy.file.writable: the policy %s lies inside the mount at %s, which the "
                             "container can write to; keep it elsewhere, or mount that place read-only",
                             file->path, mount->destination);
        }
    }
    return NULL;
}
