/* filesystem.hidden and filesystem.protected: exceptions inside what may be read and written, which are
 * mounts. */
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "harden/parts.h"
#include "policy/match.h"
#include "policy/path_glob.h"

/* --- hidden --- */

static void hide(struct hardened *hardened, const char *path, const char *line) {
    struct string_list *masked = &harden_linux(hardened)->masked_paths;
    if (string_list_contains(masked, path))
        return;
    string_list_append(masked, path);
    harden_note(hardened, CHANGE_ADDED, "linux.maskedPaths", path, NULL, "filesystem.hidden", NULL,
                "%s is hidden (%s): a file reads empty, a directory is empty", path, line);
}

static fallible hide_matches(const struct policy *policy, const struct facts *facts, size_t index,
                             const char *pattern, struct hardened *hardened) {
    const struct glob_fact *glob = facts_glob(facts, pattern);
    if (glob == NULL)
        return NULL;
    if (glob->incomplete && !string_list_contains(&policy->best_effort.values, "filesystem.hidden"))
        return error_new(
            ERROR_REFUSED,
            "policy.glob.too_wide: filesystem.hidden: %s matches or searches more than is looked at (%s); "
            "name a directory, or to hide what was found: enforcement: {best_effort: "
            "[filesystem.hidden]}",
            pattern, policy_list_origin(&policy->hidden, index));
    if (glob->incomplete)
        harden_note(hardened, CHANGE_DEGRADED, "linux.maskedPaths", pattern, "mechanism.degraded",
                    "enforcement.best_effort", NULL,
                    "not all that %s matches is hidden: there is too much of it", pattern);
    for (size_t i = 0; i < glob->matches.count; i++)
        hide(hardened, glob->matches.items[i], pattern);
    return NULL;
}

static fallible hide_line(const struct policy *policy, const struct facts *facts, size_t index,
                          const char *line, struct hardened *hardened) {
    if (path_glob_is(line))
        return hide_matches(policy, facts, index, line, hardened);
    memory_owned char *path = match_path_clean(line);
    if (strcmp(path, "/") != 0)
        hide(hardened, path, line);
    return NULL;
}

fallible harden_hidden(const struct policy *policy, const struct facts *facts, struct hardened *hardened) {
    for (size_t i = 0; i < policy->hidden.values.count; i++) {
        const char *line = policy->hidden.values.items[i];
        memory_owned char *below_home = line[0] == '~' && line[1] == '/' && facts->container_home != NULL
                                            ? text_formatted("%s%s", facts->container_home, line + 1)
                                            : NULL;
        if (below_home != NULL || line[0] == '/')
            TRY(hide_line(policy, facts, i, below_home != NULL ? below_home : line, hardened));
    }
    return NULL;
}

/* --- protected --- */

/* What an empty directory of this name does no harm to: git makes it itself. */
static bool may_be_made(const char *name) {
    return text_ends_with(name, "/") || strcmp(name, ".git/hooks") == 0;
}

/* The first `count` names below the mount. */
static char *part_of(const char *destination, const char *name, size_t count) {
    const char *end = name + strspn(name, "/");
    for (size_t i = 0; i < count; i++) {
        end += strspn(end, "/");
        end += strcspn(end, "/");
    }
    memory_owned char *head = text_formatted("%.*s", (int)(end - name), name);
    return facts_join(destination, head);
}

static size_t names_in(const char *name) {
    size_t count = 0;
    for (name += strspn(name, "/"); *name != '\0'; name += strspn(name, "/")) {
        name += strcspn(name, "/");
        count++;
    }
    return count;
}

/* False for one that is so already. */
static bool make_protected(struct hardened *hardened, const char *path) {
    struct string_list *read_only = &harden_linux(hardened)->readonly_paths;
    if (string_list_contains(read_only, path))
        return false;
    string_list_append(read_only, path);
    harden_note(hardened, CHANGE_ADDED, "linux.readonlyPaths", path, NULL, "filesystem.protected", NULL,
                "%s is read-only: the host may run or believe what is there", path);
    return true;
}

/* A directory on the way to a protected place could be moved aside, and another one put in its place, if it
 * were not a mount point itself. */
static void fix_parents(struct hardened *hardened, const char *destination, const char *name, size_t count) {
    for (size_t i = 1; i <= count; i++) {
        memory_owned char *parent = part_of(destination, name, i);
        harden_add_rebind(hardened, parent, REBIND_FIXED);
    }
}

static void protect_name(struct hardened *hardened, const char *destination,
                         const struct protected_fact *fact) {
    const size_t names = names_in(fact->path);
    const bool whole = fact->found == names;
    const bool directory = fact->found == 0 || S_ISDIR(fact->mode);
    memory_owned char *wanted = facts_join(destination, fact->path);
    if (names == 0 || strcmp(wanted, destination) == 0)
        return;
    if (fact->found > 0 && S_ISLNK(fact->mode)) {
        /* What it leads to is protected, and the link can be replaced by something else. */
        memory_owned char *link = part_of(destination, fact->path, fact->found);
        if (make_protected(hardened, wanted))
            harden_note(hardened, CHANGE_DEGRADED, "linux.readonlyPaths", wanted, NULL,
                        "filesystem.protected", NULL,
                        "%s is a symbolic link, which the container can replace", link);
        return;
    }
    if (whole || !directory) {
        /* A file on the way (the .git of a worktree says where the repository is) stands for what is below
         * it. */
        memory_owned char *there = part_of(destination, fact->path, fact->found);
        fix_parents(hardened, destination, fact->path, fact->found - 1);
        make_protected(hardened, there);
        return;
    }
    if (fact->found > 0 && fact->found == names - 1 && may_be_made(fact->path)) {
        fix_parents(hardened, destination, fact->path, fact->found);
        harden_add_rebind(hardened, wanted, REBIND_MADE);
        make_protected(hardened, wanted);
        return;
    }
    /* Else it is not there at all, and what the container makes is not protected: an empty file or directory
     * in its place would be more of a surprise to the tools than it is worth (docs/policy.md). */
}

static fallible protect_matches(const struct policy *policy, const struct facts *facts, size_t index,
                                const char *destination, const char *pattern, struct hardened *hardened) {
    const struct glob_fact *glob = facts_glob(facts, pattern);
    if (glob == NULL)
        return NULL;
    if (glob->incomplete && !string_list_contains(&policy->best_effort.values, "filesystem.protected"))
        return error_new(
            ERROR_REFUSED,
            "policy.glob.too_wide: filesystem.protected: %s matches or searches more than is looked at "
            "(%s); name a directory, or to protect what was found: enforcement: {best_effort: "
            "[filesystem.protected]}",
            pattern, policy_list_origin(&policy->protected, index));
    for (size_t i = 0; i < glob->matches.count; i++) {
        const char *rest = match_path_rest(glob->matches.items[i], destination);
        if (rest == NULL || rest[0] == '\0')
            continue;
        fix_parents(hardened, destination, rest, names_in(rest) - 1);
        make_protected(hardened, glob->matches.items[i]);
    }
    return NULL;
}

static fallible protect_in_mount(const struct policy *policy, const struct facts *facts, size_t mount,
                                 struct hardened *hardened) {
    const struct mount_fact *fact = hardened->mount_sources[mount];
    memory_owned char *destination = match_path_clean(hardened->config->mounts[mount].destination);
    for (size_t i = 0; i < fact->protected_count; i++)
        protect_name(hardened, destination, &fact->protected[i]);
    for (size_t i = 0; i < policy->protected.values.count; i++) {
        const char *line = policy->protected.values.items[i];
        if (!path_glob_is(line))
            continue;
        memory_owned char *joined = line[0] == '/' ? memory_copy_string(line) : facts_join(destination, line);
        TRY(protect_matches(policy, facts, i, destination, joined, hardened));
    }
    return NULL;
}

fallible harden_protected(const struct policy *policy, const struct facts *facts, struct hardened *hardened) {
    const size_t mounts = hardened->config->mounts_count;
    for (size_t m = 0; m < mounts; m++) {
        const struct mount_fact *fact = hardened->mount_sources[m];
        if (fact != NULL && facts_is_directory(fact) &&
            !harden_mount_is_read_only(&hardened->config->mounts[m]))
            TRY(protect_in_mount(policy, facts, m, hardened));
    }
    for (size_t i = 0; i < policy->protected.values.count; i++) {
        const char *line = policy->protected.values.items[i];
        if (line[0] != '/' || path_glob_is(line))
            continue;
        memory_owned char *path = match_path_clean(line);
        for (size_t m = 0; m < mounts; m++) {
            memory_owned char *destination = match_path_clean(hardened->config->mounts[m].destination);
            const char *rest = match_path_rest(path, destination);
            if (rest != NULL && rest[0] != '\0' && hardened->mount_sources[m] != NULL &&
                facts_is_directory(hardened->mount_sources[m]))
                fix_parents(hardened, destination, rest, names_in(rest) - 1);
        }
        make_protected(hardened, path);
    }
    return NULL;
}
