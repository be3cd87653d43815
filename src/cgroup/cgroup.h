/* cgroups: v1, v2 and the hybrid layout, by the file system (config-linux.md, "Control groups"). */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/text.h"
#include "libocispec/config.h"

enum cgroup_manager { CGROUP_MANAGER_CGROUPFS, CGROUP_MANAGER_SYSTEMD, CGROUP_MANAGER_DISABLED };

struct cgroup_directory {
    char *controllers; /* "cpu,cpuacct", "unified" for v2, "name=systemd" */
    char *path;        /* absolute, below a cgroup mount */
};

/* The transient unit of the systemd driver. */
struct systemd_scope {
    char *unit; /* "libpod-ID.scope" */
    char *slice;
    bool user_manager;       /* the user's systemd, not the machine's */
    char *runtime_directory; /* of the user: where their systemd is reached */
    char *bus_address;       /* DBUS_SESSION_BUS_ADDRESS, or NULL */
};

/* Where a container's cgroups are: decided by cgroup_plan before anything is made, so that the state file can
 * hold the intent. */
struct cgroup {
    bool unified;        /* pure v2 */
    bool rootless;       /* hierarchies may be missing because the user cannot write there */
    char *relative_path; /* below each mount point, "/parent/id" */
    struct cgroup_directory *directories;
    size_t count;
    struct systemd_scope *scope; /* NULL: not the systemd driver */
};

/* Plans; touches nothing. cgroupsPath NULL or "": "/pinfold/ID" below the caller's own cgroup; absolute:
 * below the mount points; relative: below the caller's own cgroup (in v2 beside it, because a cgroup with
 * processes cannot give controllers to those below it); "/", "." and any ".." component: ERROR_INVALID, so
 * that no path ever resolves to a root. `rootless` skips hierarchies where the directory cannot be made; with
 * the systemd driver it means the user's own systemd. */
fallible cgroup_plan(const char *cgroups_path, const char *container_id, enum cgroup_manager manager,
                     bool rootless, struct cgroup **out);
/* The systemd driver. Its cgroup is made by systemd around a process: cgroup_scope_start takes the place of
 * cgroup_make and cgroup_attach_self, when init is there and waits. `annotations` may hold
 * org.systemd.property.NAME, which are set too. The directory that systemd chose replaces the planned one,
 * and *created holds it; where a unit of that name exists, it is emptied: what was intended is another's. */
fallible cgroup_scope_start(struct cgroup *cgroup, const char *container_id, pid_t pid,
                            const struct oci_resources *resources, const struct string_map *annotations,
                            struct string_list *created);
/* Stops the unit and makes systemd forget that it failed (crun #1138); nothing for another driver, and none
 * of that name is fine. After cgroup_destroy, which has killed what was in it. */
fallible cgroup_scope_stop(const struct cgroup *cgroup);
/* Whether the helper of the systemd driver is there. */
bool cgroup_systemd_is_built(void);
/* Makes the directories (parents too); *created lists those that did not exist before, deepest last: only
 * these may be removed later. On failure what was made is removed again and *created is empty:
 * an intent that was noted is to be forgotten then, because its leaf may be another container's by now. */
fallible cgroup_make(const struct cgroup *cgroup, struct string_list *created);
fallible cgroup_attach(const struct cgroup *cgroup, pid_t pid);
/* The same for the calling process, which must have a single thread. A process that moves itself through v1's
 * `tasks` does not take the kernel's lock over all forks and exits, whose first writer in a while waits 1 ms
 * [measured]. The v2 directory is skipped if the process was cloned into it with CLONE_INTO_CGROUP. */
fallible cgroup_attach_self(const struct cgroup *cgroup, bool born_in_unified);
/* Moves a process of the container into a sub-cgroup: `place` is "PATH" or "CONTROLLER[,CONTROLLER]:PATH",
 * below the container's own cgroup; ".." is refused. With controllers the path must exist in each of their
 * hierarchies, without in one of them at least. */
fallible cgroup_attach_below(const struct cgroup *cgroup, const char *place, pid_t pid);
/* A descriptor of the v2 directory for clone3(CLONE_INTO_CGROUP); -1 where there is none. The caller closes
 * it. */
int cgroup_open_unified(const struct cgroup *cgroup);
/* Appends what cgroup_make would create now, parents first: the intent to write into the state file before
 * the deed. cgroup_destroy takes this list as well as the one of cgroup_make. */
void cgroup_intent(const struct cgroup *cgroup, struct string_list *would_create);
/* Whether a controller, by its v1 name ("memory", "cpu", "cpuset", "pids", "blkio", "hugetlb", "devices"),
 * can be used for this cgroup; before cgroup_make too. For built-in default limits, which degrade with a
 * record where it cannot. */
bool cgroup_has_controller(const struct cgroup *cgroup, const char *controller);
/* Writes limits; NULL: nothing. A limit whose controller is absent is an error (ERROR_UNAVAILABLE) that names
 * field and controller. Zero is "not set", except for pids.limit (runtime-spec 1.3). Device rules: without
 * any, nothing is touched; else everything is denied but the standard devices, and the rules are applied in
 * their order: by the devices controller of v1, or by a BPF program on the v2 cgroup. Where a rootless caller
 * has no devices controller they are not applied: a user namespace can neither make a device nor mount one.
 */
fallible cgroup_apply(const struct cgroup *cgroup, const struct oci_resources *resources);
/* After cgroup_apply, for a process that is to be SCHED_FIFO or SCHED_RR: a v1 cgroup without a real-time
 * budget gets one, half of each second or less, where there is one to have. scheduling_apply says what it
 * lacks. */
void cgroup_allow_scheduler(const struct cgroup *cgroup, const struct oci_scheduler *scheduler);
/* cgroup_apply for a container that runs: with the systemd driver its unit is told first. */
fallible cgroup_update(const struct cgroup *cgroup, const struct oci_resources *resources);
/* Process ids of the container (all threads' groups, sub-groups too). The caller frees *pids. */
fallible cgroup_processes(const struct cgroup *cgroup, pid_t **pids, size_t *count);
/* Kills what is left (cgroup.kill, or SIGKILL each until empty) and removes the directories named in
 * `created`, with their sub-directories, retrying EBUSY for at most 2 seconds. Missing is fine. Never touches
 * a directory that is a cgroup root, and refuses, before anything is killed, where this process itself or
 * process 1 is inside. A directory of the list that lies above another one of the list is a shared parent: it
 * is removed if empty, nothing in it is killed. */
fallible cgroup_destroy(const struct string_list *created);
/* Freezes or thaws (v1 freezer, v2 cgroup.freeze) and waits until it is so. */
fallible cgroup_freeze(const struct cgroup *cgroup, bool frozen);
/* Whether the container is frozen; false when it cannot be known (a cgroup that vanished). */
bool cgroup_is_frozen(const struct cgroup *cgroup);
/* For a process of the container that does not end after SIGKILL: somebody may have moved it into a frozen v1
 * cgroup of their own. That cgroup is not ours to thaw; the process is taken back into the container's, which
 * thaws it. `pid` must be known to be the container's still. */
void cgroup_thaw_stray(const struct cgroup *cgroup, pid_t pid);
void cgroup_free(struct cgroup *cgroup);

/* linux.intelRdt. First the intent: what will be made, checked against what is there (ERROR_UNAVAILABLE
 * without resctrl, ERROR_INVALID where a class that exists says otherwise); then the deed, with the
 * container's init. `id` names the class where closID does not. */
fallible cgroup_rdt_intent(const struct oci_intel_rdt *rdt, const char *id, struct string_list *would_create);
fallible cgroup_rdt_apply(const struct oci_intel_rdt *rdt, const char *id, const struct string_list *create,
                          pid_t pid);
/* Writes the schemata anew. */
fallible cgroup_rdt_update(const struct oci_intel_rdt *rdt, const char *id);
/* Removes what was made; missing is fine. */
fallible cgroup_rdt_remove(const struct string_list *created);

/* Which hierarchies this machine has, for `features` and error messages. */
enum cgroup_layout { CGROUP_LAYOUT_NONE, CGROUP_LAYOUT_V1, CGROUP_LAYOUT_HYBRID, CGROUP_LAYOUT_V2 };
enum cgroup_layout cgroup_layout(void);
extern const struct schema cgroup_schema; /* for the state file */
