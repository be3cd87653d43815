#include "facts/places.h"

#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "facts/tables.h"
#include "policy/match.h"

/* Every path is looked at once, from "/" down: the places share most of the directories above them, and what
 * lies below a missing directory costs no call. */
struct node {
    char *path;
    char *real; /* NULL: the path itself */
    uint32_t hash;
    int parent; /* index, -1 for "/" */
    bool exists;
    mode_t mode;
    dev_t device;
    ino_t inode;
};

struct place {
    char *path;       /* as in the table, the home filled in */
    const char *name; /* of a credential: its pattern */
    enum place_kind kind;
    int node;      /* of the path */
    int real_node; /* of the real path: what lies above it */
};

struct places {
    struct place *items;
    size_t count;
    struct node *nodes;
    size_t nodes_count;
};

static uint32_t hash_of(const char *path) { /* FNV-1a */
    uint32_t hash = 2166136261u;
    for (; *path != '\0'; path++)
        hash = (hash ^ (unsigned char)*path) * 16777619u;
    return hash;
}

static const char *real_of(const struct node *node) {
    return node->real != NULL ? node->real : node->path;
}

/* Where a symlink leads; NULL when that cannot be told. */
static char *follow(const char *path) {
    fd_owned int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    char link[64];
    char real[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, real, sizeof real - 1);
    if (length <= 0 || real[0] != '/')
        return NULL;
    real[length] = '\0';
    return memory_copy_string(real);
}

static void look_at(struct node *node) {
    struct stat status;
    node->exists = lstat(node->path, &status) == 0;
    if (!node->exists)
        return;
    if (S_ISLNK(status.st_mode)) {
        node->exists = stat(node->path, &status) == 0;
        free(node->real);
        node->real = follow(node->path);
    }
    node->device = status.st_dev;
    node->inode = status.st_ino;
    node->mode = status.st_mode;
}

/* The index of a clean path's node. Where the parent does not exist the name is kept as it is written: a
 * directory that is made later must already be protected (a container that can write ~/.config makes
 * ~/.config/pinfold). */
static int look(struct places *places, const char *path) {
    uint32_t hash = hash_of(path);
    for (size_t i = 0; i < places->nodes_count; i++)
        if (places->nodes[i].hash == hash && strcmp(places->nodes[i].path, path) == 0)
            return (int)i;
    struct node node = {.path = memory_copy_string(path), .hash = hash, .parent = -1};
    const char *slash = strrchr(path, '/');
    if (path[1] != '\0') {
        memory_owned char *above =
            slash == path ? memory_copy_string("/") : text_formatted("%.*s", (int)(slash - path), path);
        node.parent = look(places, above);
        const struct node *parent = &places->nodes[node.parent];
        if (parent->real != NULL)
            node.real =
                text_formatted("%s/%s", strcmp(parent->real, "/") == 0 ? "" : parent->real, slash + 1);
        node.exists = parent->exists;
    } else {
        node.exists = true;
    }
    if (node.exists)
        look_at(&node);
    places->nodes = memory_resize(places->nodes, places->nodes_count + 1, sizeof *places->nodes);
    places->nodes[places->nodes_count] = node;
    return (int)places->nodes_count++;
}

/* Takes over `path`. A socket or credential that is not there needs no place: it cannot be mounted. */
static void add(struct places *places, char *path, enum place_kind kind, const char *name) {
    int node = look(places, path);
    if (!places->nodes[node].exists && kind >= PLACE_SOCKET) {
        free(path);
        return;
    }
    struct place place = {.path = path, .kind = kind, .name = name, .node = node};
    memory_owned char *real = memory_copy_string(real_of(&places->nodes[node]));
    place.real_node = look(places, real);
    places->items = memory_resize(places->items, places->count + 1, sizeof *places->items);
    places->items[places->count++] = place;
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
    string_list_owned struct string_list names = {0};
    fd_owned int directory = open(home, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return;
    bool listed = search_dot_names(directory, &names);
    for (size_t i = 0; i < credential_names_count; i++)
        if (!credential_names[i].by_content && (!listed || search_may_have(&names, credential_names[i].path)))
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
    for (size_t i = 0; i < places->count; i++)
        free(places->items[i].path);
    for (size_t i = 0; i < places->nodes_count; i++) {
        free(places->nodes[i].path);
        free(places->nodes[i].real);
    }
    free(places->items);
    free(places->nodes);
    free(places);
}

static const struct node *node_of(const struct places *places, const struct place *place) {
    return &places->nodes[place->node];
}

/* The clean real path; names that were never there included. */
static const char *real_path_of(const struct places *places, const struct place *place) {
    return places->nodes[place->real_node].path;
}

static bool same(const struct node *node, const struct stat *status) {
    return node->exists && node->device == status->st_dev && node->inode == status->st_ino;
}

/* Is the source a directory above the place? The rest of the place's path below it, or NULL. */
static const char *rest_below(const struct places *places, const struct place *place,
                              const struct stat *status) {
    if (!S_ISDIR(status->st_mode))
        return NULL;
    for (int i = places->nodes[place->real_node].parent; i >= 0; i = places->nodes[i].parent)
        if (same(&places->nodes[i], status))
            return match_path_rest(real_path_of(places, place), places->nodes[i].path);
    return NULL;
}

/* Does the source lie inside the place, by the inodes of the directories above the source? */
static bool lies_inside(const struct places *places, const struct place *place, int source) {
    if (match_path_within(places->nodes[source].path, real_path_of(places, place)))
        return true;
    const struct node *node = node_of(places, place);
    for (int i = places->nodes[source].parent; node->exists && i >= 0; i = places->nodes[i].parent)
        if (places->nodes[i].exists && places->nodes[i].device == node->device &&
            places->nodes[i].inode == node->inode)
            return true;
    return false;
}

static bool in_relation(const struct places *places, const struct place *place, const struct mount_fact *fact,
                        int source, enum place_relation relation) {
    switch (relation) {
    case PLACE_EQUALS:
        return same(node_of(places, place), &fact->status) ||
               strcmp(real_path_of(places, place), fact->real_path) == 0;
    case PLACE_INSIDE:
        return place->kind != PLACE_HOST && lies_inside(places, place, source);
    case PLACE_CONTAINS:
        return match_path_within(real_path_of(places, place), fact->real_path) ||
               rest_below(places, place, &fact->status) != NULL;
    case PLACE_NONE:
        break;
    }
    return false;
}

/* A directory right below /home is somebody's, also where passwd does not know him (LDAP). */
static bool is_home(struct places *places, const struct mount_fact *fact, int source) {
    const struct node *home = &places->nodes[look(places, "/home")];
    int parent = places->nodes[source].parent;
    return S_ISDIR(fact->status.st_mode) && parent >= 0 && home->exists && places->nodes[parent].exists &&
           places->nodes[parent].device == home->device && places->nodes[parent].inode == home->inode;
}

/* The plainest relation is the one to tell: that it is /etc, before that it holds /etc/pinfold. */
static void judge_place(struct places *places, struct mount_fact *fact, int source) {
    static const enum place_relation order[] = {PLACE_EQUALS, PLACE_INSIDE, PLACE_CONTAINS};
    for (size_t o = 0; o < sizeof order / sizeof order[0]; o++)
        for (size_t i = 0; i < places->count && places->items[i].kind < PLACE_SOCKET; i++)
            if (in_relation(places, &places->items[i], fact, source, order[o])) {
                fact->place_relation = order[o];
                fact->host_place = memory_copy_string(places->items[i].path);
                return;
            }
    if (is_home(places, fact, source)) {
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
    int source = look(places, fact->real_path);
    judge_place(places, fact, source);
    for (size_t i = 0; i < places->count; i++) {
        const struct place *place = &places->items[i];
        if (place->kind < PLACE_SOCKET)
            continue;
        const struct node *node = node_of(places, place);
        const char *rest = rest_below(places, place, &fact->status);
        if (place->kind == PLACE_SOCKET) {
            if (rest != NULL && S_ISSOCK(node->mode))
                places_append(&fact->control_sockets, rest, false);
            continue;
        }
        if (fact->credential == NULL && (same(node, &fact->status) || lies_inside(places, place, source)) &&
            !credential_is_harmless(place->name, fact->real_path))
            fact->credential = place->name;
        else if (rest != NULL)
            places_append(&fact->credentials, rest, S_ISDIR(node->mode));
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
        /* A UUID, or for static pods a plain hash. */
        if (pods && length >= 12 && strspn(component, "0123456789abcdef-") >= length) {
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
