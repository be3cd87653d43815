/* What lies inside a mounted directory. The host's own files: trusted for being there, not for their names,
 * and bounded, because a project can be a million files. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "facts/places.h"
#include "facts/tables.h"
#include "policy/match.h"
#include "sys/calls.h"

#define SEARCH_DEPTH 4
#define SEARCH_ENTRIES 2000
#define CONTENT_BYTES 65536
#define SEARCH_NAMES 1024

/* Sockets by name, at the top of any mounted directory. */
static const char *const socket_names[] = {
    "docker.sock", "podman.sock", "containerd.sock", "crio.sock", "buildkitd.sock",   "libvirt-sock",
    "agent.sock",  "S.gpg-agent", "S.gpg-agent.ssh", "bus",       "system_bus_socket"};

/* A setting that names a token and is not a reference to a variable ("_authToken=${NPM_TOKEN}"). */
static bool line_holds_token(const char *line, size_t length) {
    static const char *const keys[] = {"_authToken",   "_auth",        "_password",
                                       "npmAuthToken", "npmAuthIdent", "token"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const char *key = memmem(line, length, keys[i], strlen(keys[i]));
        if (key == NULL)
            continue;
        const char *value = key + strlen(keys[i]);
        const char *end = line + length;
        while (value < end && strchr(" \t\"'=:", *value) != NULL && *value != '\0')
            value++;
        if (value > key + strlen(keys[i]) && value < end && *value != '$' && *value != '#')
            return true;
    }
    return false;
}

static bool content_holds_token(int path_fd) {
    struct stat status;
    if (fstat(path_fd, &status) != 0 || !S_ISREG(status.st_mode))
        return !S_ISDIR(status.st_mode);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", path_fd);
    fd_owned int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return true; /* What cannot be read cannot be called harmless. */
    memory_owned char *bytes = memory_zeroed(CONTENT_BYTES);
    ssize_t length;
    do
        length = read(fd, bytes, CONTENT_BYTES);
    while (length < 0 && errno == EINTR);
    if (length < 0 || length == CONTENT_BYTES)
        return true;
    const char *line = bytes;
    while (line < bytes + length) {
        const char *newline = memchr(line, '\n', (size_t)(bytes + length - line));
        const char *end = newline != NULL ? newline : bytes + length;
        if (line_holds_token(line, (size_t)(end - line)))
            return true;
        line = end + 1;
    }
    return false;
}

/* Does the pattern's sequence of components stand in the path? */
static bool stands_in(const char *path, const char *pattern) {
    size_t length = strlen(pattern);
    for (const char *at = path; (at = strstr(at, pattern)) != NULL; at++)
        if (at > path && at[-1] == '/' && (at[length] == '\0' || at[length] == '/'))
            return true;
    return false;
}

const char *search_credential_name(const struct mount_fact *fact) {
    for (size_t i = 0; i < credential_names_count; i++) {
        const struct credential_name *name = &credential_names[i];
        if (!stands_in(fact->real_path, name->path) || credential_is_harmless(name->path, fact->real_path))
            continue;
        if (name->by_content && (fact->source_fd < 0 || !content_holds_token(fact->source_fd)))
            continue;
        return name->path;
    }
    return NULL;
}

/* Follows symlinks on purpose: a link may lead to another place inside the same mounted directory, where the
 * container would find the file. What lies outside is not mounted. */
static void probe(struct mount_fact *fact, const struct credential_name *name, const char *relative) {
    fd_owned int fd = sys_openat2(fact->source_fd, relative, O_PATH | O_CLOEXEC, 0, RESOLVE_NO_MAGICLINKS);
    if (fd < 0)
        return;
    char link[64];
    char real[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, real, sizeof real - 1);
    if (length <= 0)
        return;
    real[length] = '\0';
    const char *rest = match_path_rest(real, fact->real_path);
    if (rest == NULL || rest[0] == '\0' || credential_is_harmless(name->path, real))
        return;
    if (name->by_content && !content_holds_token(fd))
        return;
    struct stat status;
    places_append(&fact->credentials, rest, fstat(fd, &status) == 0 && S_ISDIR(status.st_mode));
}

bool search_dot_names(int directory, struct string_list *names) {
    int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd >= 0 ? fdopendir(fd) : NULL;
    if (stream == NULL) {
        fd_close(fd);
        return false;
    }
    int left = SEARCH_NAMES;
    const struct dirent *entry;
    while (left-- > 0 && (entry = readdir(stream)) != NULL)
        if (entry->d_name[0] == '.')
            string_list_append(names, entry->d_name);
    closedir(stream);
    if (left < 0)
        string_list_free(names);
    return left >= 0;
}

bool search_may_have(const struct string_list *names, const char *credential) {
    size_t length = strcspn(credential, "/");
    for (size_t i = 0; i < names->count; i++)
        if (strncmp(names->items[i], credential, length) == 0 && names->items[i][length] == '\0')
            return true;
    return false;
}

/* `names` NULL: they could not be listed, and each is tried. */
static void probe_name(struct mount_fact *fact, const struct credential_name *name,
                       const struct string_list *names) {
    if (names == NULL || search_may_have(names, name->path))
        probe(fact, name, name->path);
    /* The directory may be a part of a home: ".../.config" holds "gh/hosts.yml". */
    for (const char *slash = strchr(name->path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        size_t head = (size_t)(slash - name->path);
        size_t length = strlen(fact->real_path);
        if (length > head && fact->real_path[length - head - 1] == '/' &&
            strncmp(fact->real_path + length - head, name->path, head) == 0)
            probe(fact, name, slash + 1);
    }
}

struct walk {
    struct mount_fact *fact;
    int left; /* entries that may still be looked at */
};

/* Takes over `directory`. */
static void walk(struct walk *walk_state, int directory, const char *prefix, int depth) {
    DIR *stream = fdopendir(directory);
    if (stream == NULL) {
        fd_close(directory);
        return;
    }
    const struct dirent *entry;
    while ((entry = readdir(stream)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (walk_state->left-- <= 0) {
            walk_state->fact->search_incomplete = true;
            break;
        }
        unsigned char type = entry->d_type;
        struct stat status;
        if (type == DT_UNKNOWN && fstatat(dirfd(stream), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0)
            type = IFTODT(status.st_mode);
        if (type != DT_SOCK && (type != DT_DIR || depth <= 1))
            continue;
        memory_owned char *relative =
            text_formatted("%s%s%s", prefix, prefix[0] != '\0' ? "/" : "", entry->d_name);
        if (type == DT_SOCK) {
            places_append(&walk_state->fact->control_sockets, relative, false);
            continue;
        }
        int below = openat(dirfd(stream), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (below >= 0)
            walk(walk_state, below, relative, depth - 1);
    }
    closedir(stream);
}

/* How deep to walk: everywhere below /run; in /tmp only its first two levels, where ssh-agent and X keep
 * theirs and no project's files are counted. */
static int walk_depth(const char *real_path) {
    if (match_path_within(real_path, "/run"))
        return SEARCH_DEPTH;
    const char *rest = match_path_rest(real_path, "/tmp");
    if (rest == NULL)
        return 0;
    if (rest[0] == '\0')
        return 2;
    return strchr(rest, '/') == NULL ? 1 : 0;
}

void search_directory(struct mount_fact *fact) {
    if (fact->source_fd < 0 || !S_ISDIR(fact->status.st_mode))
        return;
    string_list_owned struct string_list names = {0};
    bool listed = search_dot_names(fact->source_fd, &names);
    for (size_t i = 0; i < credential_names_count; i++)
        probe_name(fact, &credential_names[i], listed ? &names : NULL);
    struct stat status;
    for (size_t i = 0; i < sizeof socket_names / sizeof socket_names[0]; i++)
        if (fstatat(fact->source_fd, socket_names[i], &status, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISSOCK(status.st_mode))
            places_append(&fact->control_sockets, socket_names[i], false);
    int depth = walk_depth(fact->real_path);
    if (depth == 0)
        return;
    int directory = openat(fact->source_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return;
    struct walk walk_state = {.fact = fact, .left = SEARCH_ENTRIES};
    walk(&walk_state, directory, "", depth);
    /* At depth 1 below /tmp only the project's own top was looked at; sockets there are told, the rest is its
     * own. */
    if (!match_path_within(fact->real_path, "/run"))
        fact->search_incomplete = false;
}
