/* The one place that kills by cgroup and removes cgroups. Each directory is looked at before it is touched:
 * it must be a cgroup, and so must its parent, in the same hierarchy: then it is not a root. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "cgroup/internal.h"

#define DESTROY_WAIT_MS 2000

struct target {
    const char *path;
    const char *name; /* within the path */
    int parent;
    int directory;
    bool gone;
};
struct targets {
    struct target *items;
    size_t count;
};

static void targets_free(struct targets *targets) {
    for (size_t i = 0; i < targets->count; i++) {
        fd_close(targets->items[i].parent);
        fd_close(targets->items[i].directory);
    }
    free(targets->items);
}

static bool path_is_plain(const char *path) {
    return path[0] == '/' && path[1] != '\0' && !text_ends_with(path, "/") && strstr(path, "/../") == NULL &&
           !text_ends_with(path, "/..") && strstr(path, "/./") == NULL && !text_ends_with(path, "/.");
}

/* Opens the parent and compares. target->gone: there is nothing of that name. */
static struct error *target_open(const char *path, struct target *target) {
    *target = (struct target){.path = path, .parent = -1, .directory = -1};
    if (!path_is_plain(path))
        return error_new(ERROR_INVALID, "%s is not the path of a container's cgroup", path);
    target->name = strrchr(path, '/') + 1;
    memory_owned char *parent = cgroup_path_parent(path);
    target->parent = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (target->parent < 0 && errno != ENOENT)
        return error_system(errno, "open", "%s", parent);
    struct stat above;
    struct stat here;
    if (target->parent < 0 || fstatat(target->parent, target->name, &here, AT_SYMLINK_NOFOLLOW) < 0) {
        target->gone = true;
        return NULL;
    }
    struct statfs system;
    if (fstat(target->parent, &above) < 0 || fstatfs(target->parent, &system) < 0)
        return error_system(errno, "stat", "%s", parent);
    bool cgroup = system.f_type == CGROUP_SUPER_MAGIC || system.f_type == CGROUP2_SUPER_MAGIC;
    if (!cgroup || here.st_dev != above.st_dev || here.st_ino == above.st_ino || !S_ISDIR(here.st_mode))
        return error_new(ERROR_REFUSED, "%s is not below the root of a cgroup hierarchy; it is not touched",
                         path);
    return NULL;
}

static bool remove_once(int parent, const char *name) {
    return unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT;
}

/* Sub-cgroups first. False: something is still in use. */
static bool tree_remove(int parent, const char *name) {
    if (remove_once(parent, name))
        return true;
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    if (stream == NULL) {
        fd_close(fd);
        return false;
    }
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;)
        if (entry->d_type == DT_DIR && strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            (void)tree_remove(dirfd(stream), entry->d_name);
    closedir(stream);
    return remove_once(parent, name);
}

static void file_write_at(int directory, const char *file, const char *value) {
    fd_owned int fd = openat(directory, file, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0) /* the file is absent in most hierarchies; whether it worked is seen by what is left */
        (void)!write(fd, value, strlen(value));
}

static void thaw_visit(int directory, void *context) {
    (void)context;
    file_write_at(directory, "freezer.state", "THAWED");
}

/* SIGKILL for each process, by a descriptor that was opened before the process was seen in the cgroup a
 * second time: a pid that was given to another process in between is not hit. */
static void kill_each(int directory) {
    cgroup_pids_owned struct cgroup_pids before = {0};
    cgroup_pids_owned struct cgroup_pids after = {0};
    cgroup_tree_pids(directory, &before);
    cgroup_pids_sort(&before);
    int *descriptors = memory_zeroed((before.count + 1) * sizeof *descriptors);
    for (size_t i = 0; i < before.count; i++)
        descriptors[i] =
            before.items[i] > 1 && before.items[i] != getpid() ? pidfd_open(before.items[i], 0) : -1;
    cgroup_tree_pids(directory, &after);
    cgroup_pids_sort(&after);
    for (size_t i = 0, j = 0; i < before.count; i++) {
        while (j < after.count && after.items[j] < before.items[i])
            j++;
        if (descriptors[i] >= 0 && j < after.count && after.items[j] == before.items[i])
            (void)pidfd_send_signal(descriptors[i], SIGKILL, NULL, 0); /* ESRCH: it is gone by itself */
        fd_close(descriptors[i]);
    }
    free(descriptors);
}

static struct error *targets_check_self(const struct targets *targets) {
    for (size_t i = 0; i < targets->count; i++) {
        cgroup_pids_owned struct cgroup_pids pids = {0};
        cgroup_tree_pids(targets->items[i].directory, &pids);
        for (size_t j = 0; j < pids.count; j++)
            if (pids.items[j] == getpid() || pids.items[j] == 1)
                return error_new(
                    ERROR_REFUSED,
                    "the cgroup %s holds process %d, %s; nothing in it is killed and it is not removed",
                    targets->items[i].path, (int)pids.items[j],
                    pids.items[j] == 1 ? "the machine's first" : "the one that is to remove it");
    }
    return NULL;
}

static void targets_kill(const struct targets *targets, bool freeze_first) {
    for (size_t i = 0; i < targets->count; i++)
        if (!targets->items[i].gone)
            file_write_at(targets->items[i].directory, "cgroup.kill", "1");
    /* Something that forks faster than it can be listed: stop it, then kill; v1 lets frozen tasks die when
     * they thaw. */
    for (size_t i = 0; freeze_first && i < targets->count; i++)
        if (!targets->items[i].gone)
            file_write_at(targets->items[i].directory, "freezer.state", "FROZEN");
    for (size_t i = 0; i < targets->count; i++)
        if (!targets->items[i].gone)
            kill_each(targets->items[i].directory);
    for (size_t i = 0; i < targets->count; i++)
        if (!targets->items[i].gone)
            cgroup_tree_visit(targets->items[i].directory, thaw_visit, NULL);
}

static struct error *targets_destroy(struct targets *targets) {
    TRY(targets_check_self(targets));
    long pause_us = 200;
    long waited_us = 0;
    for (int round = 0;; round++) {
        targets_kill(targets, round >= 8);
        size_t left = 0;
        const struct target *last = NULL;
        for (size_t i = 0; i < targets->count; i++) {
            struct target *target = &targets->items[i];
            if (!target->gone)
                cgroup_v1_realtime_return(target->path);
            if (!target->gone && !(target->gone = tree_remove(target->parent, target->name))) {
                left++;
                last = target;
            }
        }
        if (left == 0)
            return NULL;
        if (waited_us >= DESTROY_WAIT_MS * 1000L) {
            cgroup_pids_owned struct cgroup_pids pids = {0};
            cgroup_tree_pids(last->directory, &pids);
            return error_system(EBUSY, "rmdir", "%s, which still holds %zu process(es) %d ms after SIGKILL",
                                last->path, pids.count, DESTROY_WAIT_MS);
        }
        struct timespec pause = {.tv_nsec = pause_us * 1000};
        nanosleep(&pause, NULL);
        waited_us += pause_us;
        pause_us = pause_us * 2 > 20000 ? 20000 : pause_us * 2;
    }
}

static bool is_parent_of_another(const struct string_list *list, size_t index) {
    size_t length = strlen(list->items[index]);
    for (size_t i = 0; i < list->count; i++)
        if (strncmp(list->items[i], list->items[index], length) == 0 && list->items[i][length] == '/')
            return true;
    return false;
}

struct error *cgroup_destroy(const struct string_list *created) {
    __attribute__((cleanup(targets_free))) struct targets targets = {0};
    targets.items = memory_zeroed((created->count + 1) * sizeof *targets.items);
    /* All of them are looked at before the first is touched. */
    for (size_t i = 0; i < created->count; i++) {
        if (is_parent_of_another(created, i))
            continue;
        struct target *target = &targets.items[targets.count++];
        TRY(target_open(created->items[i], target));
    }
    size_t kept = 0;
    for (size_t i = 0; i < targets.count; i++) {
        struct target *target = &targets.items[i];
        /* The common case: the container has ended and nothing is left to kill. */
        if (!target->gone)
            cgroup_v1_realtime_return(target->path);
        bool gone = target->gone || remove_once(target->parent, target->name);
        if (!gone) {
            target->directory =
                openat(target->parent, target->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
            gone = target->directory < 0 && errno == ENOENT;
            if (!gone && target->directory < 0)
                return error_system(errno, "open", "%s", target->path);
        }
        if (gone) {
            fd_close(target->parent);
            target->parent = -1;
        } else {
            struct target moved = *target;
            target->parent = -1;
            target->directory = -1;
            targets.items[kept++] = moved;
        }
    }
    targets.count = kept;
    if (kept > 0)
        TRY(targets_destroy(&targets));
    for (size_t i = created->count; i > 0; i--) {
        if (!is_parent_of_another(created, i - 1))
            continue;
        struct target parent;
        struct error *error = target_open(created->items[i - 1], &parent);
        if (error == NULL && !parent.gone)
            (void)remove_once(parent.parent, parent.name); /* EBUSY: another container lives below it */
        fd_close(parent.parent);
        TRY(error);
    }
    return NULL;
}
