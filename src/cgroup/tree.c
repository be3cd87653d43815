/* A cgroup and those below it, walked by descriptors: a hostile container that may make cgroups can nest them
 * deeper than a path can be long. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "cgroup/internal.h"

void cgroup_pids_free(struct cgroup_pids *pids) {
    free(pids->items);
    *pids = (struct cgroup_pids){0};
}

void cgroup_tree_visit(int directory, void (*visit)(int directory, void *context), void *context) {
    int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = copy < 0 ? NULL : fdopendir(copy);
    if (stream == NULL)
        fd_close(copy);
    for (struct dirent *entry; stream != NULL && (entry = readdir(stream)) != NULL;) {
        if (entry->d_type != DT_DIR || strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        fd_owned int child =
            openat(directory, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (child >= 0)
            cgroup_tree_visit(child, visit, context);
    }
    if (stream != NULL)
        closedir(stream);
    visit(directory, context);
}

static void pids_visit(int directory, void *context) {
    struct cgroup_pids *pids = context;
    memory_owned char *content = cgroup_file_read_at(directory, "cgroup.procs");
    if (content == NULL && errno == EOPNOTSUPP) { /* a threaded v2 cgroup lists threads only */
        free(content);
        content = cgroup_file_read_at(directory, "cgroup.threads");
    }
    if (content == NULL)
        return;
    for (char *next = content; *next != '\0';) {
        char *end;
        long pid = strtol(next, &end, 10);
        if (end == next)
            break;
        pids->items = memory_resize(pids->items, pids->count + 1, sizeof *pids->items);
        pids->items[pids->count++] = (pid_t)pid;
        next = end;
        while (*next == '\n')
            next++;
    }
}

void cgroup_tree_pids(int directory, struct cgroup_pids *pids) {
    cgroup_tree_visit(directory, pids_visit, pids);
}

static int pid_compare(const void *left, const void *right) {
    pid_t a = *(const pid_t *)left;
    pid_t b = *(const pid_t *)right;
    return (a > b) - (a < b);
}

void cgroup_pids_sort(struct cgroup_pids *pids) {
    if (pids->count == 0)
        return;
    qsort(pids->items, pids->count, sizeof *pids->items, pid_compare);
    size_t kept = 1;
    for (size_t i = 1; i < pids->count; i++)
        if (pids->items[i] != pids->items[kept - 1])
            pids->items[kept++] = pids->items[i];
    pids->count = kept;
}

struct error *cgroup_processes(const struct cgroup *cgroup, pid_t **pids, size_t *count) {
    struct cgroup_pids found = {0};
    /* Every hierarchy: a process with rights over cgroups may have left one, hardly all. */
    for (size_t i = 0; i < cgroup->count; i++) {
        fd_owned int fd = open(cgroup->directories[i].path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0 && errno == ENOENT)
            continue;
        if (fd < 0) {
            cgroup_pids_free(&found);
            return error_system(errno, "open", "%s", cgroup->directories[i].path);
        }
        cgroup_tree_pids(fd, &found);
    }
    cgroup_pids_sort(&found);
    /* Processes outside of our pid namespace show as 0. */
    if (found.count > 0 && found.items[0] == 0) {
        memmove(found.items, found.items + 1, (found.count - 1) * sizeof *found.items);
        found.count--;
    }
    *pids = found.items;
    *count = found.count;
    return NULL;
}
