#include "facts/look.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "policy/match.h"
#include "policy/path_glob.h"
#include "sys/calls.h"

/* In all of one container. A walk of so many takes a quarter of a second. */
#define ENTRIES_MAX 100000
#define DEPTH_MAX 100

/* --- globs --- */

struct search {
    const struct oci_config *config;
    struct glob_fact *fact;
    struct path_glob glob;
    size_t *left; /* entries that may still be looked at */
    bool is_root; /* of the container: mounts cover what it has at their places */
};

static void walk(struct search *search, int directory, const char *path, uint64_t standing, int depth);

static bool is_mount_point(const struct oci_config *config, const char *path) {
    for (size_t i = 0; i < config->mounts_count; i++) {
        memory_owned char *destination = match_path_clean(config->mounts[i].destination);
        if (strcmp(destination, path) == 0)
            return true;
    }
    return false;
}

static void visit(struct search *search, int directory, const char *path, const char *name,
                  bool maybe_directory, uint64_t standing, int depth) {
    uint64_t next = path_glob_step(&search->glob, standing, name);
    if (next == 0)
        return;
    memory_owned char *found = text_formatted("%s/%s", path, name);
    if (path_glob_accepts(&search->glob, next)) {
        if (search->fact->matches.count >= FACTS_MATCHES_MAX)
            search->fact->incomplete = true;
        else if (!string_list_contains(&search->fact->matches, found))
            string_list_append(&search->fact->matches, found);
        return; /* with all that is below */
    }
    if (!maybe_directory || (search->is_root && is_mount_point(search->config, found)))
        return;
    fd_owned int below = openat(directory, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (below >= 0)
        walk(search, below, found, next, depth + 1);
}

static void list(struct search *search, int directory, const char *path, uint64_t standing, int depth) {
    int opened = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = opened >= 0 ? fdopendir(opened) : NULL;
    if (stream == NULL) {
        fd_close(opened);
        search->fact->incomplete = true; /* may be readable to the container's root */
        return;
    }
    const struct dirent *entry;
    while (!search->fact->incomplete && (entry = readdir(stream)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if ((*search->left)-- == 0) {
            *search->left = 0;
            search->fact->incomplete = true;
            break;
        }
        visit(search, directory, path, entry->d_name, entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN,
              standing, depth);
    }
    closedir(stream);
}

static void walk(struct search *search, int directory, const char *path, uint64_t standing, int depth) {
    if (depth > DEPTH_MAX) {
        search->fact->incomplete = true;
        return;
    }
    const char *only = path_glob_only_name(&search->glob, standing);
    if (only == NULL) {
        list(search, directory, path, standing, depth);
        return;
    }
    if (faccessat(directory, only, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        visit(search, directory, path, only, true, standing, depth);
}

/* The glob as far as a mount's own path goes. */
static uint64_t standing_at(const struct path_glob *glob, const char *path) {
    uint64_t standing = path_glob_begin(glob);
    while (*path != '\0' && standing != 0) {
        path += strspn(path, "/");
        size_t length = strcspn(path, "/");
        if (length == 0)
            break;
        memory_owned char *name = text_formatted("%.*s", (int)length, path);
        standing = path_glob_step(glob, standing, name);
        path += length;
    }
    return standing;
}

static void search_mount(struct search *search, const struct oci_mount *mount,
                         const struct mount_fact *fact) {
    memory_owned char *destination = match_path_clean(mount->destination);
    uint64_t standing = standing_at(&search->glob, destination);
    if (standing == 0)
        return;
    if (path_glob_accepts(&search->glob, standing)) {
        if (!string_list_contains(&search->fact->matches, destination))
            string_list_append(&search->fact->matches, destination);
        return;
    }
    /* An overlay's content is that of its lower directory, which is judged by its path. */
    fd_owned int layer = fact->source_fd < 0 && fact->real_path != NULL
                             ? open(fact->real_path, O_PATH | O_DIRECTORY | O_CLOEXEC)
                             : -1;
    int source = layer >= 0 ? layer : fact->source_fd;
    if (source >= 0 && S_ISDIR(fact->status.st_mode))
        walk(search, source, destination, standing, 0);
}

static void search_for(const struct oci_config *config, const char *pattern, size_t *left,
                       struct facts *facts) {
    if (!path_glob_is(pattern) || facts_glob(facts, pattern) != NULL)
        return;
    facts->globs = memory_resize(facts->globs, facts->globs_count + 1, sizeof *facts->globs);
    struct glob_fact *fact = &facts->globs[facts->globs_count++];
    *fact = (struct glob_fact){.pattern = memory_copy_string(pattern)};
    struct search search = {.config = config, .fact = fact, .left = left};
    if (!path_glob_parse(pattern, &search.glob)) {
        fact->incomplete = true;
    } else {
        search.is_root = true;
        walk(&search, facts->root_fd, "", path_glob_begin(&search.glob), 0);
        search.is_root = false;
        for (size_t i = 0; i < config->mounts_count; i++)
            search_mount(&search, &config->mounts[i], &facts->mounts[i]);
    }
    path_glob_free(&search.glob);
}

/* One that is not absolute is looked for in each mounted directory. */
static void search_for_each(const struct oci_config *config, const struct policy_list *patterns, size_t *left,
                            struct facts *facts) {
    for (size_t i = 0; i < patterns->values.count; i++) {
        const char *pattern = patterns->values.items[i];
        if (!path_glob_is(pattern))
            continue;
        if (pattern[0] == '/')
            search_for(config, pattern, left, facts);
        for (size_t m = 0; pattern[0] != '/' && m < config->mounts_count; m++) {
            if (!facts_is_directory(&facts->mounts[m]))
                continue;
            memory_owned char *joined = facts_join(config->mounts[m].destination, pattern);
            search_for(config, joined, left, facts);
        }
    }
}

void look_for_globs(const struct oci_config *config, const struct policy *policy, struct facts *facts) {
    size_t left = ENTRIES_MAX;
    search_for_each(config, &policy->hidden, &left, facts);
    search_for_each(config, &policy->protected, &left, facts);
    search_for_each(config, &policy->readable, &left, facts);
}

/* --- protected names --- */

static void look_for_name(struct mount_fact *fact, const char *path) {
    struct protected_fact item = {.path = memory_copy_string(path)};
    fd_owned int directory = fcntl(fact->source_fd, F_DUPFD_CLOEXEC, 0);
    while (directory >= 0 && *path != '\0') {
        path += strspn(path, "/");
        size_t length = strcspn(path, "/");
        if (length == 0)
            break;
        memory_owned char *name = text_formatted("%.*s", (int)length, path);
        path += length;
        fd_owned int next = openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        struct stat status;
        if (next < 0 || fstat(next, &status) != 0)
            break;
        item.found++;
        item.mode = status.st_mode;
        if (!S_ISDIR(status.st_mode))
            break;
        fd_close(directory);
        directory = fd_take(&next);
    }
    fact->protected = memory_resize(fact->protected, fact->protected_count + 1, sizeof *fact->protected);
    fact->protected[fact->protected_count++] = item;
}

void look_for_protected(const struct policy *policy, struct mount_fact *fact) {
    if (fact->source_fd < 0 || !facts_is_directory(fact))
        return;
    for (size_t i = 0; i < policy->protected.values.count; i++) {
        const char *name = policy->protected.values.items[i];
        if (name[0] != '/' && name[0] != '\0' && !path_glob_is(name))
            look_for_name(fact, name);
    }
}

/* --- where a mount is --- */

static char *real_path_in(int root_fd, int fd) {
    char link[64], root[PATH_MAX], real[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", root_fd);
    ssize_t root_length = readlink(link, root, sizeof root - 1);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, real, sizeof real - 1);
    if (root_length <= 0 || length <= 0)
        return NULL;
    root[root_length] = '\0';
    real[length] = '\0';
    const char *rest = match_path_rest(real, root);
    return rest != NULL ? text_formatted("/%s", rest) : NULL;
}

char *look_for_place(int root_fd, const char *destination) {
    fd_owned int plain = sys_openat2(root_fd, destination, O_PATH, 0,
                                     RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS);
    if (plain >= 0 || errno != ELOOP)
        return NULL;
    memory_owned char *head = match_path_clean(destination);
    size_t length = strlen(head);
    /* The longest part that is there, and what is to be made below it. */
    for (;;) {
        fd_owned int fd = sys_openat2(root_fd, head, O_PATH, 0, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
        if (fd >= 0) {
            memory_owned char *clean = match_path_clean(destination);
            memory_owned char *real = real_path_in(root_fd, fd);
            memory_owned char *joined = real != NULL ? text_formatted("%s%s", real, clean + length) : NULL;
            return joined != NULL ? match_path_clean(joined) : NULL;
        }
        char *slash = strrchr(head, '/');
        if (slash == NULL || slash == head)
            return NULL;
        *slash = '\0';
        length = (size_t)(slash - head);
    }
}
