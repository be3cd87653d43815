#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "harden/parts.h"
#include "policy/match.h"

/* Is something else mounted over the place, below the mount that is covered? Then what lies under it is out
 * of reach, and what is mounted was judged by itself. */
static bool is_mounted_over(const struct oci_config *config, size_t index, const char *below,
                            const char *path) {
    for (size_t i = index + 1; i < config->mounts_count; i++) {
        memory_owned char *destination = match_path_clean(config->mounts[i].destination);
        if (match_path_within(path, destination) && match_path_within(destination, below))
            return true;
    }
    return false;
}

/* A file is covered by the host's /dev/null, a directory by an empty file system. Both read-only: an agent
 * sees an empty file, not an error that looks like a bug. */
static void cover(struct hardened *hardened, size_t index, const char *relative, const char *reason,
                  const char *what) {
    static const char *const file_options[] = {"bind", "ro", "nosuid", "noexec", NULL};
    static const char *const directory_options[] = {"ro",        "nosuid",  "nodev", "noexec",
                                                    "mode=0555", "size=4k", NULL};
    memory_owned char *below = match_path_clean(hardened->config->mounts[index].destination);
    bool directory = text_ends_with(relative, "/");
    memory_owned char *joined = text_formatted("%s/%s", below, relative);
    memory_owned char *path = match_path_clean(joined);
    if (is_mounted_over(hardened->config, index, below, path))
        return;
    if (directory)
        harden_add_mount(hardened, path, "tmpfs", "tmpfs", directory_options);
    else
        harden_add_mount(hardened, path, "bind", "/dev/null", file_options);
    memory_owned char *remedy = harden_remedy("credentials", "mounts", path);
    harden_note(hardened, CHANGE_ADDED, "mounts", path, reason, "credentials.mounts", remedy,
                "%s inside the mounted directory %s is covered", what, below);
}

static bool is_granted(const struct policy *policy, const struct mount_fact *fact, const char *destination,
                       const char *relative) {
    memory_owned char *in_container = text_formatted("%s/%s", destination, relative);
    memory_owned char *on_host = text_formatted("%s/%s", fact->real_path, relative);
    memory_owned char *container_path = match_path_clean(in_container);
    memory_owned char *host_path = match_path_clean(on_host);
    for (size_t i = 0; i < policy->credential_mounts.values.count; i++) {
        const char *place = policy->credential_mounts.values.items[i];
        if (match_path_within(container_path, place) || match_path_within(host_path, place))
            return true;
    }
    return false;
}

void harden_cover(const struct policy *policy, const struct mount_fact *fact, size_t index,
                  struct hardened *hardened) {
    memory_owned char *destination = memory_copy_string(hardened->config->mounts[index].destination);
    for (size_t i = 0; i < fact->control_sockets.count; i++)
        if (!is_granted(policy, fact, destination, fact->control_sockets.items[i]))
            cover(hardened, index, fact->control_sockets.items[i], "mount.socket.refused",
                  "a control socket");
    for (size_t i = 0; !policy->inherit_user_credentials && i < fact->credentials.count; i++)
        if (!is_granted(policy, fact, destination, fact->credentials.items[i]))
            cover(hardened, index, fact->credentials.items[i], "credential.mount.removed", "a credential");
}
