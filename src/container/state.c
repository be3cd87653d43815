#include "container/state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/memory.h"
#include "container/notify_socket.h"
#include "libocispec/schema_table.h"
#include "policy/store.h"
#include "sys/calls.h"

#define STATE_FILE "state.json"
#define POLICY_FILE "policy"
#define ID_MAX 255

static const struct schema_field identity_fields[] = {
    INT64(REQUIRED, "pid", process_identity, pid),
    UINT64(REQUIRED, "startTime", process_identity, start_time),
};
static const struct schema identity_schema = SCHEMA("process identity", process_identity, identity_fields);

static const struct schema_field state_fields[] = {
    STRING(REQUIRED, "pinfoldVersion", container_state, pinfold_version),
    STRING(REQUIRED, "id", container_state, id),
    STRING(REQUIRED, "bundle", container_state, bundle),
    STRING(OPTIONAL, "rootfs", container_state, rootfs),
    STRING(OPTIONAL, "created", container_state, created),
    STRING(OPTIONAL, "owner", container_state, owner),
    STRING(REQUIRED, "status", container_state, status),
    OBJECT(OPTIONAL, "init", container_state, init, process_identity, identity_schema),
    OBJECT(OPTIONAL, "warden", container_state, warden, process_identity, identity_schema),
    OBJECT(OPTIONAL, "broker", container_state, broker, process_identity, identity_schema),
    STRING(OPTIONAL, "policy", container_state, policy),
    STRING(OPTIONAL, "policyDigest", container_state, policy_digest),
    STRING(OPTIONAL, "policyFile", container_state, policy_file),
    INT64(OPTIONAL, "policyGeneration", container_state, policy_generation),
    STRINGS(OPTIONAL, "hostNames", container_state, host_names),
    BOOL(OPTIONAL, "brokered", container_state, brokered),
    BOOL(OPTIONAL, "sandbox", container_state, sandbox),
    STRING(OPTIONAL, "runId", container_state, run_id),
    STRING(OPTIONAL, "logPath", container_state, log_path),
    BOOL(OPTIONAL, "confined", container_state, confined),
    BOOL(OPTIONAL, "wall", container_state, wall),
    BOOL(OPTIONAL, "observed", container_state, observed),
    STRINGS(OPTIONAL, "hostAliases", container_state, host_aliases),
    BOOL(OPTIONAL, "wallOpened", container_state, wall_opened),
    BOOL(OPTIONAL, "noHooks", container_state, no_hooks),
    STRING(OPTIONAL, "networkPath", container_state, network_path),
    UINT64(OPTIONAL, "networkInode", container_state, network_inode),
    UINT64(OPTIONAL, "filesNamespace", container_state, files_namespace),
    POINTER(OPTIONAL, "cgroup", container_state, cgroup, cgroup, cgroup_schema),
    STRINGS(OPTIONAL, "cgroupsCreated", container_state, cgroups_created),
    STRINGS(OPTIONAL, "rdtCreated", container_state, rdt_created),
    UINT64(OPTIONAL, "mountNamespace", container_state, mount_namespace),
    BOOL(OPTIONAL, "sharesMounts", container_state, shares_mounts),
    POINTER(OPTIONAL, "access", container_state, access, access_plan, access_plan_schema),
    MAP(OPTIONAL, "annotations", container_state, annotations),
    STRING(OPTIONAL, "seccompAgent", container_state, seccomp_agent),
    STRING(OPTIONAL, "seccompAgentMetadata", container_state, seccomp_agent_metadata),
};
const struct schema container_state_schema = SCHEMA("state.json", container_state, state_fields);

struct error *container_id_check(const char *id) {
    size_t length = strlen(id);
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-.";
    if (length == 0 || length > ID_MAX || id[0] == '.' || strspn(id, allowed) != length)
        return error_known(ERROR_ID_FORMAT, NULL);
    return NULL;
}

static struct error *root_open(const char *root, bool make, int *out) {
    if (make) {
        memory_owned char *path = memory_copy_string(root);
        for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
            *slash = '\0';
            if (mkdir(path, 0755) < 0 && errno != EEXIST)
                return error_system(errno, "mkdir", "%s", path);
            *slash = '/';
        }
        /* The sticky bit keeps what tidies $XDG_RUNTIME_DIR up away from it (XDG base directories). */
        if (mkdir(path, 01700) < 0 && errno != EEXIST)
            return error_system(errno, "mkdir", "%s", path);
    }
    *out = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*out < 0)
        return error_system(errno, "open", "state directory %s", root);
    return NULL;
}

static struct container *container_new(const char *root, const char *id, int directory) {
    struct container *container = memory_zeroed(sizeof *container);
    container->id = memory_copy_string(id);
    container->path = text_formatted("%s/%s", root, id);
    container->directory = directory;
    return container;
}

/* Opens ROOT/ID and, where asked, waits for its lock. While we waited the container may have been deleted,
 * and another one of this name made: then *directory is -1, and the caller tries again. */
static struct error *directory_open(int parent, const char *root, const char *id, enum container_lock lock,
                                    int *out) {
    fd_owned int directory = openat(parent, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (directory < 0 && errno == ENOENT)
        return error_known(ERROR_CONTAINER_MISSING, NULL);
    if (directory < 0)
        return error_system(errno, "open", "%s/%s", root, id);
    struct stat locked, named;
    if (lock != CONTAINER_UNLOCKED) {
        while (flock(directory, LOCK_EX) < 0)
            if (errno != EINTR)
                return error_system(errno, "lock", "%s/%s", root, id);
        if (fstat(directory, &locked) < 0)
            return error_system(errno, "stat", "%s/%s", root, id);
        if (fstatat(parent, id, &named, AT_SYMLINK_NOFOLLOW) < 0 || named.st_ino != locked.st_ino)
            return NULL;
    }
    *out = fd_take(&directory);
    return NULL;
}

struct error *container_make(const char *root, const char *id, struct container **out) {
    TRY(container_id_check(id));
    fd_owned int parent = -1;
    fd_owned int directory = -1;
    TRY(root_open(root, true, &parent));
    /* Between mkdir and the lock somebody may look at it (list, state) or delete it. */
    while (directory < 0) {
        if (mkdirat(parent, id, 0700) < 0) {
            if (errno == EEXIST)
                return error_known(ERROR_CONTAINER_EXISTS, NULL);
            return error_system(errno, "mkdir", "%s/%s", root, id);
        }
        struct error *error = directory_open(parent, root, id, CONTAINER_LOCKED, &directory);
        if (error != NULL && error->kind == ERROR_CONTAINER_MISSING)
            error_ignore(error); /* deleted meanwhile; made again */
        else if (error != NULL) {
            (void)!unlinkat(parent, id, AT_REMOVEDIR); /* not if it is another's by now: that has files */
            return error;
        }
    }
    /* Deleted before we had the lock, and made by another create, which is done by now. */
    if (faccessat(directory, STATE_FILE, F_OK, 0) == 0)
        return error_known(ERROR_CONTAINER_EXISTS, NULL);
    *out = container_new(root, id, fd_take(&directory));
    return NULL;
}

struct error *container_lock_walls(int directory, int *lock) {
    fd_owned int root = openat(directory, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return error_system(errno, "open", "the directory of the containers' states");
    while (flock(root, LOCK_EX) < 0)
        if (errno != EINTR)
            return error_system(errno, "lock", "the directory of the containers' states");
    *lock = fd_take(&root);
    return NULL;
}

/* state NULL where there is no state file: create was killed before it wrote any, or is about to. */
static struct error *state_read(struct container *container) {
    text_owned struct text bytes = {0};
    struct error *error = file_read(container->directory, STATE_FILE, SCHEMA_BYTES_MAX, &bytes);
    if (error != NULL && error->number == ENOENT) {
        error_ignore(error);
        return NULL;
    }
    TRY(error);
    void *state = NULL;
    TRY(schema_read(&container_state_schema, STATE_FILE, text_string(&bytes), bytes.length, &state));
    container->state = state;
    return NULL;
}

struct error *container_open(const char *root, const char *id, enum container_lock lock,
                             struct container **out) {
    TRY(container_id_check(id));
    fd_owned int parent = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent < 0 && errno == ENOENT)
        return error_known(ERROR_CONTAINER_MISSING, NULL);
    if (parent < 0)
        return error_system(errno, "open", "state directory %s", root);
    fd_owned int directory = -1;
    while (directory < 0)
        TRY(directory_open(parent, root, id, lock, &directory));
    struct container *container = container_new(root, id, fd_take(&directory));
    struct error *error = state_read(container);
    if (error != NULL && lock == CONTAINER_FORCED) {
        fprintf(stderr,
                "pinfold: warning: container %s: %s; what it made outside its directory is not known\n", id,
                error->message);
        error_ignore(error);
        error = NULL;
    }
    if (error != NULL) {
        container_close(container);
        return error_context(error, "container %s", id);
    }
    *out = container;
    return NULL;
}

static struct error *document_store(const struct container *container, const char *file,
                                    const struct schema *schema, const void *document) {
    json_owned struct json_writer json = {0};
    schema_write(schema, document, &json);
    return file_replace(container->directory, file, text_string(&json.text), json.text.length, 0600);
}

struct error *container_save(const struct container *container) {
    return document_store(container, STATE_FILE, &container_state_schema, container->state);
}

struct error *container_remove_directory(const struct container *container) {
    int duplicate = openat(container->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = duplicate < 0 ? NULL : fdopendir(duplicate);
    if (directory == NULL)
        return error_system(errno, "read", "%s", container->path);
    /* Flat, but for the directory of the notification socket. */
    (void)!unlinkat(container->directory, NOTIFY_DIRECTORY "/" NOTIFY_SOCKET_NAME, 0);
    (void)!unlinkat(container->directory, NOTIFY_DIRECTORY, AT_REMOVEDIR);
    struct dirent *entry;
    while ((entry = readdir(directory)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            (void)!unlinkat(container->directory, entry->d_name, 0);
    closedir(directory);
    if (rmdir(container->path) < 0 && errno != ENOENT)
        return error_system(errno, "rmdir", "%s", container->path);
    return NULL;
}

void container_close(struct container *container) {
    if (container == NULL)
        return;
    fd_close(container->directory);
    free(container->id);
    free(container->path);
    schema_free(&container_state_schema, container->state);
    free(container);
}

void container_cleanup(struct container **container) {
    container_close(*container);
    *container = NULL;
}

struct error *container_open_init(const struct container *container, int *pidfd) {
    *pidfd = -1;
    if (container->state != NULL)
        process_open_alive(&container->state->init, pidfd);
    return *pidfd < 0 ? error_known(ERROR_NOT_RUNNING, NULL) : NULL;
}

struct error *container_store_config(const struct container *container, const struct oci_config *config) {
    return document_store(container, "config.json", &oci_config_schema, config);
}

struct error *container_stored_config(const struct container *container, struct oci_config **out) {
    text_owned struct text bytes = {0};
    TRY(file_read(container->directory, "config.json", SCHEMA_BYTES_MAX, &bytes));
    return oci_config_parse("the stored config.json", text_string(&bytes), bytes.length, out);
}

char *container_time_now(void) {
    struct timespec now;
    struct tm parts;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    char text[64];
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
    return text_formatted("%s.%09ldZ", text, now.tv_nsec);
}

static bool is_built_in(const struct policy *policy) {
    for (enum policy_key key = 0; key < POLICY_KEY_COUNT; key++)
        if (policy->origins[key] != NULL)
            return false;
    return text_starts_with(policy->origin, "built-in ");
}

struct error *container_store_policy(const struct container *container, const struct policy *policy) {
    if (is_built_in(policy))
        return NULL;
    text_owned struct text text = {0};
    policy_store_write(policy, &text);
    return file_replace(container->directory, POLICY_FILE, text.data, text.length, 0600);
}

static void policies_forget(const struct container *container, const char *one, const char *other) {
    int duplicate = openat(container->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = duplicate < 0 ? NULL : fdopendir(duplicate);
    struct dirent *entry;
    while (directory != NULL && (entry = readdir(directory)) != NULL)
        if (text_starts_with(entry->d_name, POLICY_FILE) && strcmp(entry->d_name, one) != 0 &&
            strcmp(entry->d_name, other) != 0)
            (void)!unlinkat(container->directory, entry->d_name, 0); /* else the container's delete does */
    if (directory != NULL)
        closedir(directory);
}

static const char *policy_file_of(const struct container *container) {
    return container->state->policy_file != NULL ? container->state->policy_file : POLICY_FILE;
}

struct error *container_store_other_policy(struct container *container, const struct policy *policy) {
    text_owned struct text text = {0};
    policy_store_write(policy, &text);
    memory_owned char *file =
        text_formatted(POLICY_FILE "-%lld", (long long)container->state->policy_generation);
    TRY(file_replace(container->directory, file, text.data, text.length, 0600));
    policies_forget(container, file, policy_file_of(container));
    memory_replace_string(&container->state->policy_file, file);
    return NULL;
}

struct error *container_stored_policy(const struct container *container, struct policy **out) {
    text_owned struct text bytes = {0};
    struct error *error =
        file_read(container->directory, policy_file_of(container), SCHEMA_BYTES_MAX, &bytes);
    if (error == NULL)
        return error_context(policy_store_read(text_string(&bytes), container->state->policy_digest, out),
                             "container %s", container->id);
    if (error->number != ENOENT || container->state->policy_file != NULL)
        return error;
    error_ignore(error); /* a built-in one */
    return policy_select(container->state->policy, out);
}

/* Whether a `create` of this container is at work: it holds the lock for as long. */
static bool is_being_created(const struct container *container) {
    fd_owned int again = openat(container->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (again < 0 || flock(again, LOCK_SH | LOCK_NB) == 0)
        return false;
    return errno == EWOULDBLOCK;
}

const char *container_status(const struct container *container) {
    const struct container_state *state = container->state;
    if (state == NULL || strcmp(state->status, "creating") == 0)
        return is_being_created(container) ? "creating" : "stopped";
    fd_owned int init = -1;
    process_open_alive(&state->init, &init);
    if (init < 0)
        return "stopped";
    if (strcmp(state->status, "running") == 0 && state->cgroup != NULL && cgroup_is_frozen(state->cgroup))
        return "paused";
    return state->status;
}

void container_state_write(const struct container *container, const char *status, struct json_writer *json) {
    const struct container_state *state = container->state;
    bool alive = strcmp(status, "stopped") != 0;
    json_object_begin(json);
    json_member_string(json, "ociVersion", CONTAINER_STATE_VERSION);
    json_member_string(json, "id", container->id);
    /* 0 once stopped: the number may be another's by now. Before the status, as runc and crun have it. */
    json_member_integer(json, "pid", alive && state ? state->init.pid : 0);
    json_member_string(json, "status", status);
    json_member_string(json, "bundle", state ? state->bundle : "");
    json_member_string_optional(json, "rootfs", state ? state->rootfs : NULL);
    json_member_string_optional(json, "created", state ? state->created : NULL);
    json_member_string_optional(json, "owner", state ? state->owner : NULL);
    json_key(json, "annotations");
    json_object_begin(json);
    for (size_t i = 0; state != NULL && i < state->annotations.count; i++)
        json_member_string(json, state->annotations.items[i].key, state->annotations.items[i].value);
    json_object_end(json);
    json_object_end(json);
}

char *container_state_text(const struct container *container, const char *status) {
    struct json_writer json = {0};
    container_state_write(container, status, &json);
    return text_take(&json.text);
}
