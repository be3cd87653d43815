/* The root file system: read-only, with scratch places, and decoys. */
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "harden/decoys.h"
#include "harden/parts.h"
#include "policy/match.h"

/* Directories of the system: neither a home nor a working directory there becomes writable. With everything
 * below. */
static const char *const system_trees[] = {"/bin",
                                           "/sbin",
                                           "/lib",
                                           "/lib32",
                                           "/lib64",
                                           "/libx32",
                                           "/etc",
                                           "/boot",
                                           "/proc",
                                           "/sys",
                                           "/dev",
                                           "/usr/bin",
                                           "/usr/sbin",
                                           "/usr/lib",
                                           "/usr/lib32",
                                           "/usr/lib64",
                                           "/usr/libx32",
                                           "/usr/libexec",
                                           "/usr/include",
                                           "/usr/share",
                                           "/usr/games",
                                           "/usr/local/bin",
                                           "/usr/local/sbin",
                                           "/usr/local/lib",
                                           "/usr/local/lib64",
                                           "/usr/local/libexec",
                                           "/usr/local/include",
                                           "/usr/local/share",
                                           "/usr/local/etc",
                                           "/nonexistent",
                                           "/var/empty",
                                           "/lost+found"};

/* Only the directory itself: images keep homes and working directories below (/usr/src/app, /var/www,
 * /opt/app). */
static const char *const system_directories[] = {
    "/",          "/usr",      "/usr/local", "/usr/src",   "/usr/local/src",
    "/var",       "/var/lib",  "/var/log",   "/var/cache", "/var/spool",
    "/var/local", "/var/mail", "/var/opt",   "/var/lock",  "/var/backups",
    "/opt",       "/srv",      "/home",      "/mnt",       "/media"};

static bool is_system(const char *path) {
    for (size_t i = 0; i < sizeof system_trees / sizeof system_trees[0]; i++)
        if (match_path_within(path, system_trees[i]))
            return true;
    for (size_t i = 0; i < sizeof system_directories / sizeof system_directories[0]; i++)
        if (strcmp(path, system_directories[i]) == 0)
            return true;
    return false;
}

/* Did the engine mount something at the path or above it? What is there is then not the root's own. */
static bool is_mounted(const struct oci_config *config, const char *path) {
    for (size_t i = 0; i < config->mounts_count; i++) {
        memory_owned char *destination = match_path_clean(config->mounts[i].destination);
        if (match_path_within(path, destination))
            return true;
    }
    return false;
}

/* Takes over `path`. A place below another one is writable already. */
static void add_scratch(struct hardened *hardened, char *path, enum scratch_kind kind) {
    for (size_t i = 0; i < hardened->scratch_count; i++)
        if (match_path_within(path, hardened->scratch[i].path)) {
            free(path);
            return;
        }
    size_t kept = 0;
    for (size_t i = 0; i < hardened->scratch_count; i++) {
        if (match_path_within(hardened->scratch[i].path, path))
            free(hardened->scratch[i].path);
        else
            hardened->scratch[kept++] = hardened->scratch[i];
    }
    hardened->scratch = memory_resize(hardened->scratch, kept + 1, sizeof *hardened->scratch);
    hardened->scratch[kept] = (struct scratch_place){.path = path, .kind = kind, .create = true};
    hardened->scratch_count = kept + 1;
}

static void add_places(const struct string_list *items, const struct facts *facts, enum scratch_kind kind,
                       struct hardened *hardened) {
    for (size_t i = 0; i < items->count; i++) {
        /* "@mounts": what is mounted writable is so already */
        char *path = harden_line_path(hardened, facts, items->items[i]);
        bool by_name = items->items[i][0] != '/';
        if (path == NULL)
            continue;
        if ((by_name && is_system(path)) || strcmp(path, "/") == 0 || is_mounted(hardened->config, path))
            free(path);
        else
            add_scratch(hardened, path, kind);
    }
}

/* filesystem.readable by exact path: the real file of the image. */
static bool is_widened(const struct policy *policy, const char *path, const char *home) {
    for (size_t i = 0; i < policy->readable.values.count; i++) {
        const char *line = policy->readable.values.items[i];
        memory_owned char *expanded = line[0] == '~' && line[1] == '/'
                                          ? text_formatted("%s%s", home, line + 1)
                                          : memory_copy_string(line);
        memory_owned char *clean = match_path_clean(expanded);
        if (expanded[0] == '/' && strcmp(clean, path) == 0)
            return true;
    }
    return false;
}

static void add_decoys(const struct policy *policy, const char *home, struct hardened *hardened) {
    if (home == NULL)
        return;
    memory_owned char *clean = match_path_clean(home);
    if (is_system(clean))
        return;
    for (size_t i = 0; i < decoy_files_count; i++) {
        char *path = text_formatted("%s/%s", clean, decoy_files[i].path);
        if (is_mounted(hardened->config, path) || is_widened(policy, path, clean)) {
            free(path);
            continue;
        }
        hardened->decoys =
            memory_resize(hardened->decoys, hardened->decoys_count + 1, sizeof *hardened->decoys);
        hardened->decoys[hardened->decoys_count++] =
            (struct decoy){.path = path, .content = decoy_files[i].content};
    }
}

void harden_rootfs(const struct policy *policy, const struct facts *facts, struct hardened *hardened) {
    struct oci_root *root = hardened->config->root;
    if (root != NULL && policy->filesystem_default == POLICY_ACCESS_DENY) {
        /* With a read-only root of the engine's the layer is not the container's to write; a bare bundle's
         * root is the user's own directory. */
        enum scratch_kind kind = facts->root_is_mount && !root->readonly ? SCRATCH_OWN_LAYER : SCRATCH_TMPFS;
        add_places(&policy->scratch.values, facts, kind, hardened);
        add_places(&policy->writable.values, facts, kind, hardened);
        bool learning = harden_is_learning(policy);
        if (learning)
            harden_note(hardened, CHANGE_SET, "root.readonly", "/", NULL, "on_denied_action: log_only", NULL,
                        "the root file system stays as the engine gave it; what would be denied is recorded");
        else if (!root->readonly)
            harden_note(hardened, CHANGE_SET, "root.readonly", "/", NULL, "filesystem.default: deny",
                        "filesystem: {writable: [\"@default\", PATH]}", "the root file system is read-only");
        root->readonly |= !learning;
    }
    add_decoys(policy, "/root", hardened);
    memory_owned char *home = facts->container_home != NULL ? match_path_clean(facts->container_home) : NULL;
    if (home != NULL && strcmp(home, "/root") != 0)
        add_decoys(policy, home, hardened);
}
