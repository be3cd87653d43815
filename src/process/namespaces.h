/* New and joined namespaces of config-linux.md, and the process that lives in them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "libocispec/config.h"
#include "sys/procfs.h"

#define NAMESPACES_MAX 8

struct namespace_plan {
    uint64_t new_flags; /* CLONE_NEW*; the cgroup namespace apart */
    bool new_cgroup; /* unshared by init itself, after it was moved to its cgroup: its root is where it then
                        is */
    bool new_time; /* made by init itself (namespace_enter_time): offsets are written before anybody is in it
                    */
    struct {
        int fd;
        int type; /* CLONE_NEW* */
    } joined[NAMESPACES_MAX];
    size_t joined_count;
    /* config.json has none of type "mount": init begins in a new one, the root is put together there, and
     * then init goes back to its caller's with it (rootfs_take_away). -1: it stays in what it has. */
    int callers_mounts;
};

#define NAMESPACE_PLAN_NONE ((struct namespace_plan){.callers_mounts = -1})

/* Opens the namespaces that are joined; a path that is no namespace of its type is ERROR_INVALID. After an
 * error, too, namespace_plan_close is due. */
fallible namespace_plan_make(const struct oci_config *config, struct namespace_plan *out);
void namespace_plan_close(struct namespace_plan *plan);
bool namespace_plan_has_new(const struct namespace_plan *plan, int type);
bool namespace_plan_joins(const struct namespace_plan *plan, int type);

/* What runs in a process that was made here; returns an exit status. */
typedef int (*process_body)(void *data);

/* Makes the container's init: it runs body(data) in all its namespaces, a child of the caller. Where
 * namespaces are joined, a stage process joins them (those owned outside first, then the user namespace, then
 * what that one owns), runs `in_stage` (may be NULL; an error of it is returned here) and makes init with
 * CLONE_PARENT. `cgroup_fd`: the v2 cgroup to be born in, or -1. */
fallible namespace_clone(const struct namespace_plan *plan, int cgroup_fd, fallible (*in_stage)(void *data),
                         process_body body, void *data, pid_t *pid, int *pidfd);

/* The root directory of a process that has one of its own in its caller's mount namespace, for exec: of a
 * process that still lives. The caller closes it. */
fallible namespace_open_root(int target_pidfd, pid_t target, int *out);

/* Joins the namespaces of a running process, all that differ from ours, and makes a child there as
 * namespace_clone does: for exec. */
fallible namespace_clone_beside(int target_pidfd, pid_t target, process_body body, void *data, pid_t *pid,
                                int *pidfd);

/* Runs `work` in the network namespace of a process and returns its error: a child of ours goes there. A
 * process that has ended is ERROR_NOT_RUNNING. */
fallible namespace_run_in_network(int target_pidfd, pid_t target, fallible (*work)(void *data), void *data);
/* The same, and quicker: this process goes there itself and comes back, where it may. For a caller that does
 * nothing but end where there is an error: it may be that of coming back. */
fallible namespace_visit_network(int target_pidfd, pid_t target, fallible (*work)(void *data), void *data);

/* Writes uid_map and gid_map of `pid`: directly, or with newuidmap and newgidmap where an unprivileged user
 * asks for more than itself. *allow_setgroups: whether the namespace lets setgroups be called. */
fallible namespace_map_ids(pid_t pid, const struct oci_linux *linux_config, bool *allow_setgroups);

/* Makes a time namespace with these offsets (NULL: none) for the calling process, which has one thread, and
 * enters it (time_namespaces(7)). To be called before the process changes its ids: the kernel lets only the
 * owner of /proc/self write there. */
fallible namespace_enter_time(const struct oci_time_offsets *offsets, const struct procfs *procfs);
