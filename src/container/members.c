#include "container/members.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "sys/calls.h"

enum { PASSES_MAX = 100 };

/* 0 where it cannot be known: the process has ended, or the kernel is older. */
static uint64_t mount_namespace_of(pid_t pid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/ns/mnt", (int)pid);
    fd_owned int fd = open(path, O_RDONLY | O_CLOEXEC);
    uint64_t id = 0;
    return fd >= 0 && sys_mount_namespace_id(fd, &id) == 0 ? id : 0;
}

/* The number of a namespace is used again after its end, so it counts only while its holder lives. */
static bool same_mount_namespace(pid_t one, pid_t other) {
    char path[64];
    struct stat first, second;
    snprintf(path, sizeof path, "/proc/%d/ns/mnt", (int)one);
    if (stat(path, &first) < 0)
        return false;
    snprintf(path, sizeof path, "/proc/%d/ns/mnt", (int)other);
    return stat(path, &second) == 0 && first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

static bool cgroups_are_ours(const struct container_state *state) {
    for (size_t i = 0; i < state->cgroup->count; i++)
        if (!string_list_contains(&state->cgroups_created, state->cgroup->directories[i].path))
            return false;
    return true;
}

void members_note(struct container_state *state, const struct oci_config *config) {
    const struct oci_namespace *pids = oci_config_namespace(config, "pid");
    bool own_pids = pids != NULL && !oci_namespace_is_joined(pids);
    state->shares_mounts = oci_config_namespace(config, "mount") == NULL;
    if (!state->shares_mounts && (!own_pids || !cgroups_are_ours(state)))
        state->mount_namespace = mount_namespace_of((pid_t)state->init.pid);
}

bool members_is_foreign(const struct container_state *state, pid_t pid) {
    if (cgroups_are_ours(state))
        return false;
    fd_owned int init = -1;
    process_open(&state->init, &init);
    if (init >= 0 && pid == state->init.pid)
        return false;
    if (state->shares_mounts)
        return true; /* the machine's own processes are in that namespace */
    if (state->mount_namespace != 0)
        return mount_namespace_of(pid) != state->mount_namespace;
    return init < 0 || !same_mount_namespace((pid_t)state->init.pid, pid);
}

/* One look at all processes; how many were the container's. Opened first and judged then: a number that was
 * given to another process meanwhile is not hit. */
static size_t members_kill(uint64_t mount_namespace) {
    size_t count = 0;
    DIR *proc = opendir("/proc");
    for (struct dirent *entry; proc != NULL && (entry = readdir(proc)) != NULL;) {
        char *end;
        long pid = strtol(entry->d_name, &end, 10);
        if (*end != '\0' || pid <= 1 || mount_namespace_of((pid_t)pid) != mount_namespace)
            continue;
        fd_owned int pidfd = sys_pidfd_open((pid_t)pid, 0);
        if (pidfd < 0 || mount_namespace_of((pid_t)pid) != mount_namespace)
            continue;
        count++;
        (void)!sys_pidfd_send_signal(pidfd, SIGKILL); /* ESRCH: it has ended by itself */
    }
    if (proc != NULL)
        closedir(proc);
    return count;
}

struct error *members_end(const struct container_state *state) {
    if (state->mount_namespace == 0 || state->mount_namespace == mount_namespace_of(getpid()) ||
        state->cgroups_created.count > 0)
        return NULL;
    /* Those that fork meanwhile have children for the next look. A zombie has no namespace any more. */
    for (int pass = 0; pass < PASSES_MAX; pass++) {
        if (members_kill(state->mount_namespace) == 0)
            return NULL;
        nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
    }
    return error_system(EBUSY, "kill", "what the container's init has left behind");
}
