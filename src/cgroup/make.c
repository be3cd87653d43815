/* Directories: making, naming beforehand what will be made, and putting processes in. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "cgroup/systemd.h"

static bool is_unified(const struct cgroup_directory *directory) {
    return strcmp(directory->controllers, "unified") == 0;
}

/* The deepest directory at or above `path` that exists; the caller frees it. Those that do not are appended
 * to `absent`, from the top down. */
static char *existing_above(const char *path, struct string_list *absent) {
    string_list_owned struct string_list upwards = {0};
    char *existing = memory_copy_string(path);
    while (strcmp(existing, "/") != 0 && access(existing, F_OK) < 0) {
        char *parent = cgroup_path_parent(existing);
        string_list_append_owned(&upwards, existing);
        existing = parent;
    }
    for (size_t i = upwards.count; i > 0; i--)
        string_list_append(absent, upwards.items[i - 1]);
    return existing;
}

void cgroup_intent(const struct cgroup *cgroup, struct string_list *would_create) {
    for (size_t i = 0; i < cgroup->count; i++) {
        string_list_owned struct string_list absent = {0};
        free(existing_above(cgroup->directories[i].path, &absent));
        for (size_t j = 0; j < absent.count; j++)
            if (!string_list_contains(would_create, absent.items[j]))
                string_list_append(would_create, absent.items[j]);
    }
}

/* A leaf that is there already is joined only if nobody is in it: limits and the final kill would hit its
 * processes too. */
static struct error *leaf_check_empty(const char *path) {
    fd_owned int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return error_system(errno, "open", "%s", path);
    cgroup_pids_owned struct cgroup_pids pids = {0};
    cgroup_tree_pids(fd, &pids);
    if (pids.count > 0)
        return error_new(
            ERROR_INVALID,
            "linux.cgroupsPath: cgroup is not empty: %zu process(es) are in %s; a path that no other "
            "container uses is allowed",
            pids.count, path);
    memory_owned char *v1 = cgroup_file_read_at(fd, "freezer.state");
    memory_owned char *v2 = cgroup_file_read_at(fd, "cgroup.freeze");
    if ((v1 != NULL && strcmp(v1, "THAWED") != 0) || (v2 != NULL && strcmp(v2, "1") == 0))
        return error_new(ERROR_INVALID,
                         "linux.cgroupsPath: %s exists and is frozen; no process could start in it", path);
    return NULL;
}

static struct error *directory_make(const struct cgroup_directory *directory, struct string_list *created) {
    /* A parent may be removed by another container's end between our two calls, so a few attempts. */
    for (int attempt = 0;; attempt++) {
        string_list_owned struct string_list absent = {0};
        memory_owned char *existing = existing_above(directory->path, &absent);
        bool cpuset = cgroup_word_in(directory->controllers, ",", "cpuset");
        if (absent.count == 0) {
            TRY(leaf_check_empty(directory->path));
            return cpuset ? cgroup_v1_cpuset_fill(directory->path) : NULL;
        }
        if (!cgroup_path_is_cgroup(existing, NULL))
            return error_new(ERROR_UNAVAILABLE,
                             "%s is not in a cgroup file system, so that %s cannot be made", existing,
                             directory->path);
        bool again = false;
        for (size_t i = 0; i < absent.count && !again; i++) {
            bool leaf = i + 1 == absent.count;
            if (mkdir(absent.items[i], 0755) == 0) {
                string_list_append(created, absent.items[i]);
            } else if (errno == EEXIST) {
                again = leaf;
            } else if (errno == ENOENT && attempt < 10) {
                again = true;
            } else {
                return error_system(errno, "mkdir", "%s (linux.cgroupsPath)", absent.items[i]);
            }
        }
        if (!again)
            return cpuset ? cgroup_v1_cpuset_fill(directory->path) : NULL;
    }
}

struct error *cgroup_make(const struct cgroup *cgroup, struct string_list *created) {
    struct error *error = NULL;
    for (size_t i = 0; i < cgroup->count && error == NULL; i++) {
        error = directory_make(&cgroup->directories[i], created);
        if (error == NULL && cgroup->unified) {
            memory_owned char *top = cgroup_unified_top(cgroup->directories[i].path);
            cgroup_unified_enable(top, cgroup->directories[i].path, NULL);
        }
    }
    if (error != NULL) {
        /* The first error is the one to tell; what cannot be removed is empty and harmless. */
        for (size_t i = created->count; i > 0; i--)
            (void)rmdir(created->items[i - 1]);
        string_list_free(created);
        *created = (struct string_list){0};
    }
    return error;
}

/* In a v2 cgroup whose processes moved into sub-cgroups of their own (an init system does that), the "no
 * internal processes" rule refuses newcomers; they go where the container's oldest process is. */
struct oldest {
    pid_t pid;
    int directory;
};
static void oldest_visit(int directory, void *context) {
    struct oldest *oldest = context;
    memory_owned char *content = cgroup_file_read_at(directory, "cgroup.procs");
    if (content == NULL)
        return;
    for (char *next = content; *next != '\0';) {
        char *end;
        long pid = strtol(next, &end, 10);
        if (end == next)
            break;
        if (pid > 0 && (oldest->pid == 0 || pid < oldest->pid)) {
            fd_close(oldest->directory);
            oldest->directory = fcntl(directory, F_DUPFD_CLOEXEC, 3);
            oldest->pid = (pid_t)pid;
        }
        next = end;
        while (*next == '\n')
            next++;
    }
}

static struct error *attach_in_oldest(const char *path, const char *pid) {
    fd_owned int top = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (top < 0)
        return error_system(errno, "open", "%s", path);
    struct oldest oldest = {.directory = -1};
    cgroup_tree_visit(top, oldest_visit, &oldest);
    fd_owned int directory = oldest.directory;
    if (directory < 0)
        return error_system(EBUSY, "write", "%s to %s/cgroup.procs", pid, path);
    fd_owned int procs = openat(directory, "cgroup.procs", O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (procs < 0)
        return error_system(errno, "open", "cgroup.procs below %s", path);
    return fd_write_all(procs, pid, strlen(pid), "cgroup.procs");
}

/* Below a threaded cgroup, or beside one, a new one is "domain invalid" until it is made threaded, from the
 * top down (cgroup-v2.rst, "Threads"). */
static void make_threaded(const char *path) {
    memory_owned char *type = cgroup_file_read(path, "cgroup.type");
    if (type == NULL || strcmp(type, "domain invalid") != 0)
        return;
    memory_owned char *parent = cgroup_path_parent(path);
    make_threaded(parent);
    error_ignore(cgroup_file_write(path, "cgroup.type", "threaded")); /* the next write tells */
}

static struct error *directory_attach(const struct cgroup_directory *directory, pid_t pid, const char *file) {
    char number[16];
    snprintf(number, sizeof number, "%d", (int)pid);
    struct error *error = cgroup_file_write(directory->path, file, number);
    if (error != NULL && is_unified(directory) && error->number == EBUSY) {
        error_free(error);
        error = attach_in_oldest(directory->path, number);
    } else if (error != NULL && is_unified(directory) && error->number == EOPNOTSUPP) {
        make_threaded(directory->path);
        error_free(error);
        error = cgroup_file_write(directory->path, file, number);
    }
    return error_context(error, "join the %s cgroup", directory->controllers);
}

struct error *cgroup_attach(const struct cgroup *cgroup, pid_t pid) {
    if (pid <= 0)
        return error_new(ERROR_INVALID, "process id %d cannot be put into a cgroup", (int)pid);
    for (size_t i = 0; i < cgroup->count; i++) {
        struct error *error = directory_attach(&cgroup->directories[i], pid, "cgroup.procs");
        /* A user may not move a process out of a login session's cgroup; their systemd may have it moved. */
        if (error != NULL && cgroup->scope != NULL && (error->number == EACCES || error->number == EPERM)) {
            error_free(error);
            error = systemd_attach(cgroup, pid);
        }
        TRY(error);
    }
    return NULL;
}

struct error *cgroup_attach_self(const struct cgroup *cgroup, bool born_in_unified) {
    if (cgroup->scope != NULL)
        return NULL; /* systemd has put it there */
    for (size_t i = 0; i < cgroup->count; i++) {
        const struct cgroup_directory *directory = &cgroup->directories[i];
        if (is_unified(directory) && born_in_unified)
            continue;
        TRY(directory_attach(directory, 0, is_unified(directory) ? "cgroup.procs" : "tasks"));
    }
    return NULL;
}

int cgroup_open_unified(const struct cgroup *cgroup) {
    if (cgroup->scope != NULL)
        return -1; /* it is made around init */
    for (size_t i = 0; i < cgroup->count; i++)
        if (is_unified(&cgroup->directories[i]))
            return open(cgroup->directories[i].path, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return -1;
}
