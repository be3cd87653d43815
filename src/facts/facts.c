#include "facts/facts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/memory.h"
#include "facts/look.h"
#include "facts/passwd.h"
#include "facts/places.h"
#include "policy/match.h"
#include "rootfs/paths.h"
#include "sys/calls.h"
#include "sys/landlock.h"

/* include/linux/proc_ns.h, PROC_USER_INIT_INO: an identity map alone does not make a namespace the first one,
 * a nested one can have it too (crun #2150). */
#define INITIAL_USER_NAMESPACE 0xEFFFFFFDu

/* 340 lines of the kernel's three columns. */
#define UID_MAP_BYTES_MAX (340 * 33 + 1)

/* The path of an open descriptor as the kernel has it now, or NULL. */
static char *path_of(int fd) {
    char link[64];
    char path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0 || path[0] != '/')
        return NULL;
    path[length] = '\0';
    return memory_copy_string(path);
}

/* --- who runs the runtime --- */

static void look_at_user(struct facts *facts, struct string_list *homes) {
    uid_t uid = geteuid();
    bool whole = false;
    facts->owner_uid = uid;
    text_owned struct text map = {0};
    struct error *error = file_read(AT_FDCWD, "/proc/self/uid_map", UID_MAP_BYTES_MAX, &map);
    error_ignore(error); /* Without user namespaces there is no map, and the uid is what it is. */
    const char *line = text_string(&map);
    unsigned inside;
    unsigned outside;
    unsigned size;
    int used;
    while (sscanf(line, "%u %u %u%n", &inside, &outside, &size, &used) == 3) {
        if (uid >= inside && uid - inside < size)
            facts->owner_uid = outside + (uid - inside);
        whole = inside == 0 && outside == 0 && size == UINT_MAX;
        line += used;
    }
    struct stat status;
    facts->initial_userns =
        whole && stat("/proc/self/ns/user", &status) == 0 && status.st_ino == INITIAL_USER_NAMESPACE;
    facts->root = uid == 0 && facts->initial_userns;

    fd_owned int fd = open("/etc/passwd", O_PATH | O_CLOEXEC);
    size_t length;
    memory_owned char *bytes = fd >= 0 ? passwd_read(fd, &length) : NULL;
    if (bytes != NULL)
        facts->owner_home = passwd_home(bytes, length, facts->owner_uid);
    /* People whom a directory service knows and passwd does not: for a runtime that a person starts, not an
     * engine, HOME serves where it is the person's own directory. */
    const char *claimed = getenv("HOME");
    if (facts->owner_home == NULL && uid != 0 && claimed != NULL && claimed[0] == '/' &&
        stat(claimed, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid())
        facts->owner_home = memory_copy_string(claimed);
    if (bytes != NULL)
        passwd_people(bytes, length, homes);
}

char *facts_user_home(bool *root) {
    struct stat status;
    *root =
        geteuid() == 0 && stat("/proc/self/ns/user", &status) == 0 && status.st_ino == INITIAL_USER_NAMESPACE;
    if (*root)
        return NULL;
    struct facts facts = {0};
    string_list_owned struct string_list homes = {0};
    look_at_user(&facts, &homes);
    *root = facts.root;
    return facts.owner_home;
}

/* --- the root --- */

static fallible look_at_root(const struct oci_config *config, int bundle_fd, struct facts *facts) {
    if (config->root == NULL || config->root->path == NULL || config->root->path[0] == '\0')
        return error_new(ERROR_INVALID, "root.path: a path to the root file system is required");
    facts->root_fd = openat(bundle_fd, config->root->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (facts->root_fd < 0)
        return error_system(errno, "open", "root.path \"%s\"", config->root->path);
    struct statx here;
    struct statx above;
    if (statx(facts->root_fd, "", AT_EMPTY_PATH, STATX_INO, &here) != 0)
        return error_system(errno, "statx", "root.path \"%s\"", config->root->path);
    if ((here.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0)
        facts->root_is_mount = (here.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
    else /* Before Linux 5.8: a bind mount within one file system is not seen; a tmpfs is what comes of it. */
        facts->root_is_mount =
            statx(facts->root_fd, "..", 0, STATX_INO, &above) == 0 &&
            (here.stx_dev_major != above.stx_dev_major || here.stx_dev_minor != above.stx_dev_minor);
    return NULL;
}

/* The passwd that the container will see: a file that the engine mounts over it, else the image's. */
static void look_at_container_home(const struct oci_config *config, struct facts *facts) {
    if (config->process == NULL)
        return;
    fd_owned int image = -1;
    int passwd = -1;
    for (size_t i = 0; i < config->mounts_count; i++) {
        memory_owned char *destination = match_path_clean(config->mounts[i].destination);
        if (strcmp(destination, "/etc/passwd") == 0 && facts->mounts[i].source_fd >= 0)
            passwd = facts->mounts[i].source_fd;
    }
    if (passwd < 0) {
        const struct rootfs root = {.fd = facts->root_fd};
        struct error *error =
            rootfs_open(&root, (struct container_path){"/etc/passwd"}, O_PATH | O_CLOEXEC, &image);
        if (error != NULL) {
            error_ignore(error); /* An image without a passwd has no homes. */
            return;
        }
        passwd = image;
    }
    size_t length;
    memory_owned char *bytes = passwd_read(passwd, &length);
    if (bytes != NULL)
        facts->container_home = passwd_home(bytes, length, config->process->user.uid);
}

/* --- mounts --- */

static bool is_bind(const struct oci_mount *mount) {
    return string_list_contains(&mount->options, "bind") || string_list_contains(&mount->options, "rbind") ||
           (mount->type != NULL && strcmp(mount->type, "bind") == 0);
}

static void open_source(const struct oci_mount *mount, int bundle_fd, struct mount_fact *fact) {
    if (mount->source == NULL || mount->source[0] == '\0') {
        fact->open_errno = ENOENT;
        return;
    }
    fact->source_fd = openat(bundle_fd, mount->source, O_PATH | O_CLOEXEC);
    if (fact->source_fd < 0 || fstat(fact->source_fd, &fact->status) != 0) {
        fact->open_errno = errno;
        fd_close(fd_take(&fact->source_fd));
        return;
    }
    fact->device_major = major(fact->status.st_rdev);
    fact->device_minor = minor(fact->status.st_rdev);
    fact->real_path = path_of(fact->source_fd);
    if (fact->real_path == NULL) { /* Longer than a path can be told: nothing can be judged by it. */
        fact->open_errno = ENAMETOOLONG;
        fd_close(fd_take(&fact->source_fd));
    }
}

/* The table is looked at when the first mount needs it: most containers have only the engine's own. */
struct judge {
    struct places *places;
    const struct facts *facts;
    struct string_list own;          /* the bundle and the root */
    const struct string_list *homes; /* of the people in the host's passwd */
};

static void judge_fact(struct judge *judge, struct mount_fact *fact) {
    fact->engine_made = places_engine_made(fact->real_path, judge->facts->bundle);
    fact->engine_volume = places_engine_volume(fact->real_path);
    if (fact->engine_made)
        return;
    if (judge->places == NULL)
        judge->places =
            places_look(judge->facts->owner_home, judge->facts->owner_uid, judge->homes, &judge->own);
    fact->credential = search_credential_name(fact);
    places_judge(judge->places, fact);
    if (fact->place_relation != PLACE_EQUALS && fact->place_relation != PLACE_CONTAINS &&
        fact->credential == NULL)
        search_directory(fact);
}

/* The next directory of lowerdir=A:B:C, where `\:` is a colon of a name. The caller frees it; NULL at the
 * end. */
static char *next_lower(const char **at) {
    if (**at == '\0')
        return NULL;
    char *name = memory_zeroed(strlen(*at) + 1);
    size_t length = 0;
    while (**at != '\0' && **at != ':') {
        if (**at == '\\' && (*at)[1] != '\0')
            (*at)++;
        name[length++] = *(*at)++;
    }
    if (**at == ':')
        (*at)++;
    return name;
}

static void move_all(struct string_list *to, struct string_list *from) {
    for (size_t i = 0; i < from->count; i++)
        string_list_append_owned(to, from->items[i]);
    free(from->items);
    *from = (struct string_list){0};
}

/* Adds one layer's judgement to that of the whole overlay; takes over what the layer holds. */
static void merge_layer(struct mount_fact *fact, struct mount_fact *layer) {
    bool worse = (layer->place_relation != PLACE_NONE && fact->place_relation == PLACE_NONE) ||
                 (layer->credential != NULL && fact->credential == NULL);
    if (fact->real_path == NULL || worse) {
        free(fact->real_path);
        fact->real_path = layer->real_path;
        fact->status = layer->status;
        fact->engine_made = layer->engine_made;
        fact->engine_volume = layer->engine_volume;
    } else {
        free(layer->real_path);
    }
    if (fact->place_relation == PLACE_NONE) {
        fact->place_relation = layer->place_relation;
        fact->host_place = layer->host_place;
    } else {
        free(layer->host_place);
    }
    if (fact->credential == NULL)
        fact->credential = layer->credential;
    fact->search_incomplete |= layer->search_incomplete;
    move_all(&fact->control_sockets, &layer->control_sockets);
    move_all(&fact->credentials, &layer->credentials);
}

static void judge_layers(struct judge *judge, const char *names, int bundle_fd, struct mount_fact *fact) {
    char *name;
    while ((name = next_lower(&names)) != NULL) {
        const struct oci_mount source = {.source = name};
        struct mount_fact layer = {.source_fd = -1};
        open_source(&source, bundle_fd, &layer);
        free(name);
        if (layer.source_fd < 0)
            continue;
        judge_fact(judge, &layer);
        fd_close(fd_take(&layer.source_fd)); /* The kernel opens the layers itself, by their names. */
        merge_layer(fact, &layer);
    }
}

/* podman's `-v DIR:/place:O` is an overlay with DIR as lower directory: what it shows is judged like a bind
 * mount. */
static void judge_overlay(struct judge *judge, const struct oci_mount *mount, int bundle_fd,
                          struct mount_fact *fact) {
    static const char *const keys[] = {"lowerdir=", "upperdir="};
    for (size_t i = 0; i < mount->options.count; i++)
        for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++)
            if (text_starts_with(mount->options.items[i], keys[k]))
                judge_layers(judge, mount->options.items[i] + strlen(keys[k]), bundle_fd, fact);
}

static void look_at_mounts(const struct oci_config *config, int bundle_fd, const struct policy *policy,
                           const struct string_list *homes, struct facts *facts) {
    facts->mounts_count = config->mounts_count;
    facts->mounts = memory_zeroed((config->mounts_count + 1) * sizeof *facts->mounts);
    struct judge judge = {.facts = facts, .homes = homes};
    string_list_append(&judge.own, facts->bundle);
    char *root = path_of(facts->root_fd);
    if (root != NULL)
        string_list_append_owned(&judge.own, root);
    for (size_t i = 0; i < config->mounts_count; i++) {
        struct mount_fact *fact = &facts->mounts[i];
        fact->source_fd = -1;
        fact->bind = is_bind(&config->mounts[i]);
        if (fact->bind)
            open_source(&config->mounts[i], bundle_fd, fact);
        if (!policy->confined)
            continue;
        if (fact->source_fd >= 0)
            judge_fact(&judge, fact);
        else if (config->mounts[i].type != NULL && strcmp(config->mounts[i].type, "overlay") == 0)
            judge_overlay(&judge, &config->mounts[i], bundle_fd, fact);
        if (facts_is_directory(fact)) {
            look_for_protected(policy, fact);
            fact->place = look_for_place(facts->root_fd, config->mounts[i].destination);
        }
    }
    places_free(judge.places);
    string_list_free(&judge.own);
}

/* --- namespaces --- */

static bool same_namespace(const char *path, const char *process, const char *file) {
    char own[64];
    struct stat given;
    struct stat host;
    snprintf(own, sizeof own, "/proc/%s/ns/%s", process, file);
    return stat(path, &given) == 0 && stat(own, &host) == 0 && given.st_dev == host.st_dev &&
           given.st_ino == host.st_ino;
}

static void look_at_namespaces(const struct oci_config *config, struct facts *facts) {
    static const struct {
        const char *type;
        const char *file;
    } files[] = {{"pid", "pid"}, {"network", "net"}, {"mount", "mnt"},     {"ipc", "ipc"},
                 {"uts", "uts"}, {"user", "user"},   {"cgroup", "cgroup"}, {"time", "time"}};
    const struct oci_linux *linux_config = config->linux_config;
    if (linux_config == NULL)
        return;
    facts->namespaces_count = linux_config->namespaces_count;
    facts->namespace_is_host = memory_zeroed((facts->namespaces_count + 1) * sizeof(bool));
    for (size_t i = 0; i < facts->namespaces_count; i++) {
        const struct oci_namespace *namespace = &linux_config->namespaces[i];
        if (!oci_namespace_is_joined(namespace))
            continue;
        for (size_t f = 0; f < sizeof files / sizeof files[0]; f++)
            if (strcmp(namespace->type, files[f].type) == 0)
                facts->namespace_is_host[i] = same_namespace(namespace->path, "self", files[f].file) ||
                                              same_namespace(namespace->path, "1", files[f].file);
    }
}

/* Tried, never guessed from a version (DESIGN.md section 8): CAP_SYS_ADMIN in the initial user namespace, a
 * kernel with CONFIG_FANOTIFY_ACCESS_PERMISSIONS, and one of the 128 groups that a uid may have. */
static bool try_fanotify(void) {
    fd_owned int group = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC | FAN_NONBLOCK, O_RDONLY | O_CLOEXEC);
    return group >= 0;
}

/* The same: an old kernel, one without it or with it switched off, and a filter around the runtime all fail
 * here. Without REFER every rename into another directory would fail, which nothing survives. */
static bool try_landlock(void) {
    fd_owned int ruleset = sys_landlock_create(LANDLOCK_FS_WRITE_FILE | LANDLOCK_FS_REFER);
    return ruleset >= 0;
}

const struct glob_fact *facts_glob(const struct facts *facts, const char *pattern) {
    for (size_t i = 0; i < facts->globs_count; i++)
        if (strcmp(facts->globs[i].pattern, pattern) == 0)
            return &facts->globs[i];
    return NULL;
}

bool facts_is_directory(const struct mount_fact *fact) {
    return fact->real_path != NULL && S_ISDIR(fact->status.st_mode) && !fact->engine_made;
}

char *facts_join(const char *destination, const char *name) {
    memory_owned char *joined = text_formatted("%s/%s", destination, name);
    return match_path_clean(joined);
}

fallible facts_collect(const struct oci_config *config, const char *bundle, const struct policy *policy,
                       struct facts **out) {
    *out = NULL;
    fd_owned int bundle_fd = open(bundle, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (bundle_fd < 0)
        return error_system(errno, "open", "bundle \"%s\"", bundle);
    struct facts *facts = memory_zeroed(sizeof *facts);
    facts->root_fd = -1;
    facts->bundle = path_of(bundle_fd);
    if (facts->bundle == NULL)
        facts->bundle = memory_copy_string(bundle);
    struct error *error = look_at_root(config, bundle_fd, facts);
    if (error != NULL) {
        facts_free(facts);
        return error;
    }
    string_list_owned struct string_list homes = {0};
    look_at_user(facts, &homes);
    look_at_mounts(config, bundle_fd, policy, &homes, facts);
    look_at_container_home(config, facts);
    if (policy->confined) {
        look_at_namespaces(config, facts);
        facts->has_fanotify = try_fanotify();
        facts->has_landlock = try_landlock();
        look_for_globs(config, policy, facts);
    }
    *out = facts;
    return NULL;
}

void facts_free(struct facts *facts) {
    if (facts == NULL)
        return;
    for (size_t i = 0; i < facts->mounts_count; i++) {
        fd_close(facts->mounts[i].source_fd);
        free(facts->mounts[i].real_path);
        free(facts->mounts[i].host_place);
        string_list_free(&facts->mounts[i].control_sockets);
        string_list_free(&facts->mounts[i].credentials);
        free(facts->mounts[i].place);
        for (size_t k = 0; k < facts->mounts[i].protected_count; k++)
            free(facts->mounts[i].protected[k].path);
        free(facts->mounts[i].protected);
    }
    for (size_t i = 0; i < facts->globs_count; i++) {
        free(facts->globs[i].pattern);
        string_list_free(&facts->globs[i].matches);
    }
    free(facts->globs);
    free(facts->mounts);
    free(facts->namespace_is_host);
    fd_close(facts->root_fd);
    free(facts->bundle);
    free(facts->container_home);
    free(facts->owner_home);
    free(facts);
}
