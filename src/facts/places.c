#include "facts/places.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "facts/tables.h"
#include "policy/match.h"

/* Every path is looked at once: the places share most of the directories above them. */
struct looked {
    char *path;
    dev_t device;
    ino_t inode;
    bool exists;
    bool socket;
    bool directory;
};

struct place {
    char *path;       /* as in the table, the home filled in */
    char *real;       /* symlinks resolved as far as it exists */
    const char *name; /* of a credential: its pattern */
    enum place_kind kind;
    struct looked at; /* the place itself; path unused */
};

struct places {
    struct place *items;
    size_t count;
    struct looked *looked;
    size_t looked_count;
};

static struct looked *look(struct places *places, const char *path) {
    for (size_t i = 0; i < places->looked_count; i++)
        if (strcmp(places->looked[i].path, path) == 0)
            return &places->looked[i];
    places->looked = memory_resize(places->looked, places->looked_count + 1, sizeof *places->looked);
    struct looked *looked = &places->looked[places->looked_count++];
    *looked = (struct looked){.path = memory_copy_string(path)};
    struct stat status;
    if (stat(path, &status) == 0) {
        looked->exists = true;
        looked->device = status.st_dev;
        looked->inode = status.st_ino;
        looked->socket = S_ISSOCK(status.st_mode);
        looked->directory = S_ISDIR(status.st_mode);
    }
    return looked;
}

/* The parent of a clean path, in place: "/a/b" to "/a" to "/" to false. */
static bool to_parent(char *path) {
    char *slash = strrchr(path, '/');
    if (path[1] == '\0')
        return false;
    slash[slash == path ? 1 : 0] = '\0';
    return true;
}

/* The real path, with what does not exist left as it is written: a directory that is made later must already
 * be protected (a container that can write ~/.config makes ~/.config/pinfold). */
static char *resolve(struct places *places, const char *path) {
    memory_owned char *existing = memory_copy_string(path);
    while (!look(places, existing)->exists)
        if (!to_parent(existing))
            return memory_copy_string(path);
    char real[PATH_MAX];
    if (realpath(existing, real) == NULL)
        return memory_copy_string(path);
    const char *rest = match_path_rest(path, existing);
    if (rest[0] == '\0')
        return memory_copy_string(real);
    return text_formatted("%s/%s", strcmp(real, "/") == 0 ? "" : real, rest);
}

/* Takes over `path`. A socket or credential that is not there needs no place: it cannot be mounted. */
static void add(struct places *places, char *path, enum place_kind kind, const char *name) {
    struct looked at = *look(places, path);
    if (!at.exists && kind >= PLACE_SOCKET) {
        free(path);
        return;
    }
    places->items = memory_resize(places->items, places->count + 1, sizeof *places->items);
    struct place *place = &places->items[places->count++];
    *place = (struct place){.path = path, .kind = kind, .name = name, .at = at};
    place->real = resolve(places, path);
}

static char *fill(const char *pattern, const char *home, uid_t uid) {
    if (pattern[0] == '~')
        return home != NULL ? text_formatted("%s%s", home, pattern + 1) : NULL;
    const char *mark = strstr(pattern, "UID");
    if (mark == NULL)
        return memory_copy_string(pattern);
    return text_formatted("%.*s%u%s", (int)(mark - pattern), pattern, uid, mark + 3);
}

static void add_credentials(struct places *places, const char *home) {
    for (size_t i = 0; i < credential_names_count; i++)
        if (!credential_names[i].by_content)
            add(places, text_formatted("%s/%s", home, credential_names[i].path), PLACE_CREDENTIAL,
                credential_names[i].path);
}

struct places *places_look(const char *home, uid_t uid, const struct string_list *homes,
                           const struct string_list *own) {
    struct places *places = memory_zeroed(sizeof *places);
    /* "/" as a home (services, `nobody`) would make every path lie in it. */
    memory_owned char *clean_home = home != NULL ? match_path_clean(home) : NULL;
    if (clean_home != NULL && strcmp(clean_home, "/") == 0) {
        free(clean_home);
        clean_home = NULL;
    }
    for (size_t i = 0; i < host_places_count; i++) {
        char *path = fill(host_places[i].path, clean_home, uid);
        if (path != NULL)
            add(places, path, host_places[i].kind, NULL);
    }
    for (size_t i = 0; i < own->count; i++)
        add(places, memory_copy_string(own->items[i]), PLACE_HOST, NULL);
    for (size_t i = 0; i < homes->count; i++) {
        char *path = match_path_clean(homes->items[i]);
        if (strcmp(path, "/") != 0)
            add(places, path, PLACE_HOST, NULL);
        else
            free(path);
    }
    for (size_t i = 0; i < host_sockets_count; i++) {
        char *path = fill(host_sockets[i], clean_home, uid);
        if (path != NULL)
            add(places, path, PLACE_SOCKET, NULL);
    }
    for (size_t i = 0; i < host_credentials_count; i++)
        add(places, memory_copy_string(host_credentials[i]), PLACE_CREDENTIAL, host_credentials[i]);
    if (clean_home != NULL)
        add_credentials(places, clean_home);
    if (clean_home == NULL || strcmp(clean_home, "/root") != 0)
        add_credentials(places, "/root");
    return places;
}

void places_free(struct places *places) {
    if (places == NULL)
        return;
    for (size_t i = 0; i < places->count; i++) {
        free(places->items[i].path);
        free(places->items[i].real);
    }
    for (size_t i = 0; i < places->looked_count; i++)
        free(places->looked[i].path);
    free(places->items);
    free(places->looked);
    free(places);
}

static bool same(const struct looked *looked, const struct stat *status) {
    return looked->exists && looked->device == status->st_dev && looked->inode == status->st_ino;
}

/* Is the source a directory above the place? The rest of the place's path below it, or NULL. */
static const char *rest_below(struct places *places, const struct place *place, const struct stat *status) {
    if (!S_ISDIR(status->st_mode))
        return NULL;
    memory_owned char *above = memory_copy_string(place->real);
    while (to_parent(above))
        if (same(look(places, above), status))
            return match_path_rest(place->real, above);
    return NULL;
}

/* Does the source lie inside the place, by the inodes of the directories above the source? */
static bool lies_inside(struct places *places, const struct place *place, const char *real_path) {
    if (match_path_within(real_path, place->real))
        return true;
    if (!place->at.exists)
        return false;
    memory_owned char *above = memory_copy_string(real_path);
    while (to_parent(above)) {
        const struct looked *looked = look(places, above);
        if (looked->exists && looked->device == place->at.device && looked->inode == place->at.inode)
            return true;
    }
    return false;
}

static bool in_relation(struct places *places, const struct place *place, const struct mount_fact *fact,
                        enum place_relation relation) {
    switch (relation) {
    case PLACE_EQUALS:
        return same(&place->at, &fact->status) || strcmp(place->real, fact->real_path) == 0;
    case PLACE_INSIDE:
        return place->kind != PLACE_HOST && lies_inside(places, place, fact->real_path);
    case PLACE_CONTAINS:
        return match_path_within(place->real, fact->real_path) ||
               rest_below(places, place, &fact->status) != NULL;
    case PLACE_NONE:
        break;
    }
    return false;
}

/* A directory right below /home is somebody's, also where passwd does not know him (LDAP). */
static bool is_home(struct places *places, const struct mount_fact *fact) {
    memory_owned char *above = memory_copy_string(fact->real_path);
    struct stat home;
    const struct looked *looked = look(places, "/home");
    if (!S_ISDIR(fact->status.st_mode) || !to_parent(above) || !looked->exists)
        return false;
    home.st_dev = looked->device;
    home.st_ino = looked->inode;
    return same(look(places, above), &home);
}

/* The plainest relation is the one to tell: that it is /etc, before that it holds /etc/pinfold. */
static void judge_place(struct places *places, struct mount_fact *fact) {
    static const enum place_relation order[] = {PLACE_EQUALS, PLACE_INSIDE, PLACE_CONTAINS};
    for (size_t o = 0; o < sizeof order / sizeof order[0]; o++)
        for (size_t i = 0; i < places->count && places->items[i].kind < PLACE_SOCKET; i++)
            if (in_relation(places, &places->items[i], fact, order[o])) {
                fact->place_relation = order[o];
                fact->host_place = memory_copy_string(places->items[i].path);
                return;
            }
    if (is_home(places, fact)) {
        fact->place_relation = PLACE_EQUALS;
        fact->host_place = memory_copy_string(fact->real_path);
    }
}

void places_append(struct string_list *list, const char *path, bool directory) {
    memory_owned char *item = text_formatted("%s%s", path, directory ? "/" : "");
    if (!string_list_contains(list, item))
        string_list_append(list, item);
}

void places_judge(struct places *places, struct mount_fact *fact) {
    judge_place(places, fact);
    for (size_t i = 0; i < places->count; i++) {
        const struct place *place = &places->items[i];
        if (place->kind < PLACE_SOCKET)
            continue;
        const char *rest = rest_below(places, place, &fact->status);
        if (place->kind == PLACE_SOCKET) {
            if (rest != NULL && place->at.socket)
                places_append(&fact->control_sockets, rest, false);
            continue;
        }
        if (fact->credential == NULL &&
            (same(&place->at, &fact->status) || lies_inside(places, place, fact->real_path)) &&
            !credential_is_harmless(place->name, fact->real_path))
            fact->credential = place->name;
        else if (rest != NULL)
            places_append(&fact->credentials, rest, place->at.directory);
    }
}

/* --- paths of engines --- */

static bool is_id(const char *component, size_t length) {
    if (length < 12)
        return false;
    return strspn(component, "0123456789abcdef") >= length;
}

static bool is_one_of(const char *component, size_t length, const char *const *names) {
    for (; *names != NULL; names++)
        if (strlen(*names) == length && memcmp(*names, component, length) == 0)
            return true;
    return false;
}

/* A component, its length, and what follows; false at the end. */
static bool next_component(const char **path, const char **component, size_t *length) {
    *component = *path + strspn(*path, "/");
    *length = strcspn(*component, "/");
    *path = *component + *length;
    return *length > 0;
}

static bool ends_with_part(const char *component, size_t length, const char *tail) {
    size_t size = strlen(tail);
    return length >= size && memcmp(component + length - size, tail, size) == 0;
}

/* The path after ".../containers/ID/", ".../vfs-containers/ID/userdata/", ".../sandboxes/ID/" or a pod's
 * directory of kubelet ".../pods/UID/"; NULL when the path has no such form. */
static const char *rest_in_container_directory(const char *path, bool *pod) {
    const char *component;
    size_t length;
    bool below = false;
    bool pods = false;
    while (next_component(&path, &component, &length)) {
        if (pods && length == 36 && strspn(component, "0123456789abcdef-") >= length) {
            *pod = true;
            return path + strspn(path, "/");
        }
        if (below && is_id(component, length)) {
            const char *after = path;
            if (next_component(&after, &component, &length) &&
                is_one_of(component, length, (const char *const[]){"userdata", NULL}))
                path = after;
            *pod = false;
            return path + strspn(path, "/");
        }
        below =
            ends_with_part(component, length, "containers") || ends_with_part(component, length, "sandboxes");
        pods = is_one_of(component, length, (const char *const[]){"pods", NULL});
    }
    return NULL;
}

/* What engines mount from a container's own directory. Not config.json, logs, attach sockets or the lower
 * layers. */
static const char *const engine_files[] = {"resolv.conf", "hosts", "hostname",  "shm",      ".containerenv",
                                           "secrets",     "run",   "mounts",    "passwd",   "group",
                                           "etc-hosts",   "mtab",  "localtime", "timezone", "notify",
                                           "overlay",     NULL};

bool places_engine_made(const char *path, const char *bundle) {
    bool pod;
    const char *rest = rest_in_container_directory(path, &pod);
    const char *component;
    size_t length;
    if (rest != NULL && next_component(&rest, &component, &length) &&
        is_one_of(component, length, engine_files))
        return true;
    const char *own = match_path_rest(path, bundle);
    if (own == NULL || strcmp(bundle, "/") == 0)
        return false;
    return next_component(&own, &component, &length) && is_one_of(component, length, engine_files);
}

bool places_engine_volume(const char *path) {
    static const char *const pod_parts[] = {"volumes", "volume-subpaths", "containers", NULL};
    bool pod;
    const char *rest = rest_in_container_directory(path, &pod);
    const char *component;
    size_t length;
    if (rest != NULL && next_component(&rest, &component, &length)) {
        if (pod)
            return is_one_of(component, length, pod_parts) && next_component(&rest, &component, &length);
        /* containerd's CRI keeps the data of an image's VOLUMEs beside the container's files. */
        if (is_one_of(component, length, (const char *const[]){"volumes", NULL}))
            return next_component(&rest, &component, &length);
    }
    /* .../volumes/NAME/_data of Docker, podman and nerdctl. */
    const char *volumes = path;
    while ((volumes = strstr(volumes, "/volumes/")) != NULL) {
        volumes += strlen("/volumes/");
        const char *at = volumes;
        if (next_component(&at, &component, &length) && next_component(&at, &component, &length) &&
            is_one_of(component, length, (const char *const[]){"_data", NULL}))
            return true;
    }
    return false;
}
