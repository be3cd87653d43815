#include "process/namespaces.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "sys/calls.h"
#include "sys/procfs.h"

#define NS_GET_NSTYPE_IOCTL _IO(0xb7, 0x3)

static const struct {
    const char *type;
    const char *file; /* in /proc/PID/ns */
    int flag;
} namespace_types[NAMESPACES_MAX] = {
    /* The order of joining: all that root of the machine may join before it becomes root of a user namespace.
     */
    {"network", "net", CLONE_NEWNET},      {"ipc", "ipc", CLONE_NEWIPC},    {"uts", "uts", CLONE_NEWUTS},
    {"cgroup", "cgroup", CLONE_NEWCGROUP}, {"time", "time", CLONE_NEWTIME}, {"pid", "pid", CLONE_NEWPID},
    {"mount", "mnt", CLONE_NEWNS},         {"user", "user", CLONE_NEWUSER},
};

/* An absent namespace is the caller's (config-linux.md, "Namespaces"). Mounting there, and pivot_root(2),
 * which gives its new root to every process that had the old one, would change the machine's: so the mounts
 * are made elsewhere, and only the process goes back. */
static struct error *share_mounts(const struct oci_config *config, struct namespace_plan *plan) {
    /* The way back needs rights over the caller's namespace, which root of a user namespace has not. */
    if (geteuid() != 0 || oci_config_namespace(config, "user") != NULL)
        return error_new(ERROR_INVALID, "linux.namespaces: needs an entry of type \"mount\" %s",
                         geteuid() != 0 ? "where the runtime is not root" : "beside one of type \"user\"");
    plan->callers_mounts = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    if (plan->callers_mounts < 0)
        return error_system(errno, "open", "/proc/self/ns/mnt");
    plan->new_flags |= CLONE_NEWNS;
    return NULL;
}

static struct error *check_mount_namespace(const struct namespace_plan *plan) {
    struct stat own, other;
    bool apart = namespace_plan_has_new(plan, CLONE_NEWNS);
    for (size_t i = 0; i < plan->joined_count; i++)
        if (plan->joined[i].type == CLONE_NEWNS)
            apart = stat("/proc/self/ns/mnt", &own) == 0 && fstat(plan->joined[i].fd, &other) == 0 &&
                    own.st_ino != other.st_ino;
    if (apart)
        return NULL;
    return error_new(ERROR_INVALID, "linux.namespaces: expected an entry of type \"mount\" that is not the "
                                    "caller's own, or none: the container's mounts would be the machine's");
}

struct error *namespace_plan_make(const struct oci_config *config, struct namespace_plan *out) {
    *out = NAMESPACE_PLAN_NONE;
    for (size_t i = 0; i < NAMESPACES_MAX; i++) {
        const struct oci_namespace *namespace = oci_config_namespace(config, namespace_types[i].type);
        int flag = namespace_types[i].flag;
        if (namespace == NULL)
            continue;
        if (!oci_namespace_is_joined(namespace)) {
            if (flag == CLONE_NEWCGROUP)
                out->new_cgroup = true;
            else if (flag == CLONE_NEWTIME)
                out->new_time = true;
            else
                out->new_flags |= (uint64_t)flag;
            continue;
        }
        int fd = open(namespace->path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return error_system(errno, "open", "linux.namespaces %s: %s", namespace->type, namespace->path);
        out->joined[out->joined_count].fd = fd;
        out->joined[out->joined_count++].type = flag;
        if (ioctl(fd, NS_GET_NSTYPE_IOCTL) != flag)
            return error_new(ERROR_INVALID, "linux.namespaces: %s is not a %s namespace", namespace->path,
                             namespace->type);
    }
    if (oci_config_namespace(config, "mount") == NULL)
        TRY(share_mounts(config, out));
    return check_mount_namespace(out);
}

void namespace_plan_close(struct namespace_plan *plan) {
    for (size_t i = 0; i < plan->joined_count; i++)
        fd_close(plan->joined[i].fd);
    plan->joined_count = 0;
    fd_close(plan->callers_mounts);
    plan->callers_mounts = -1;
}

bool namespace_plan_has_new(const struct namespace_plan *plan, int type) {
    return (plan->new_flags & (uint64_t)type) != 0;
}

bool namespace_plan_joins(const struct namespace_plan *plan, int type) {
    for (size_t i = 0; i < plan->joined_count; i++)
        if (plan->joined[i].type == type)
            return true;
    return false;
}

/* Joins in order; one that is owned by the user namespace comes again after that was joined. */
static struct error *join_all(const struct namespace_plan *plan) {
    bool done[NAMESPACES_MAX] = {false};
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < plan->joined_count; i++) {
            if (done[i])
                continue;
            if (setns(plan->joined[i].fd, plan->joined[i].type) == 0)
                done[i] = true;
            else if (pass == 1 || errno != EPERM)
                return error_system(errno, "join", "a namespace (type 0x%x)", plan->joined[i].type);
        }
    }
    return NULL;
}

struct stage_report {
    int failed;
    pid_t pid;
};

static _Noreturn void stage_run(const struct namespace_plan *plan, int cgroup_fd,
                                fallible (*in_stage)(void *data), process_body body, void *data, int socket) {
    struct error *error = join_all(plan);
    if (error == NULL && in_stage != NULL)
        error = in_stage(data);
    struct stage_report report = {.failed = error != NULL};
    if (error == NULL) {
        int unused = -1;
        report.pid = sys_clone3(plan->new_flags | CLONE_PARENT, &unused, cgroup_fd);
        if (report.pid == 0)
            _exit(body(data));
        if (report.pid < 0) {
            error = error_system(errno, "clone", "the container's init");
            report.failed = 1;
        }
    }
    (void)!send(socket, &report, sizeof report, MSG_NOSIGNAL);
    if (report.failed)
        error_send(socket, error);
    _exit(0);
}

struct error *namespace_clone(const struct namespace_plan *plan, int cgroup_fd,
                              fallible (*in_stage)(void *data), process_body body, void *data, pid_t *pid,
                              int *pidfd) {
    if (plan->joined_count == 0) {
        *pid = sys_clone3(plan->new_flags, pidfd, cgroup_fd);
        if (*pid == 0)
            _exit(body(data));
        if (*pid < 0)
            return error_system(errno, "clone", "the container's init");
        return NULL;
    }
    fd_owned int ours = -1;
    fd_owned int theirs = -1;
    TRY(fd_pair(&ours, &theirs));
    fd_owned int stage_pidfd = -1;
    pid_t stage = sys_clone3(0, &stage_pidfd, -1);
    if (stage == 0)
        stage_run(plan, cgroup_fd, in_stage, body, data, theirs);
    if (stage < 0)
        return error_system(errno, "fork", "the process that joins namespaces");
    fd_close(fd_take(&theirs));
    struct stage_report report;
    ssize_t length = fd_receive_message(ours, &report, sizeof report);
    struct error *error = NULL;
    if (length != (ssize_t)sizeof report)
        error = error_system(EPIPE, "receive", "the answer of the process that joins namespaces");
    else if (report.failed)
        error = error_receive(ours);
    while (waitpid(stage, NULL, 0) < 0 && errno == EINTR)
        ;
    if (error != NULL)
        return error;
    *pid = report.pid;
    *pidfd = sys_pidfd_open(*pid, 0); /* our own child, not yet waited for: the pid cannot have been reused */
    if (*pidfd < 0)
        return error_system(errno, "pidfd_open", "the container's init");
    return NULL;
}

static bool same_namespace(const char *file, pid_t target) {
    struct stat own, other;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/ns/%s", file);
    if (stat(path, &own) < 0)
        return true;
    snprintf(path, sizeof path, "/proc/%d/ns/%s", (int)target, file);
    /* Cannot be looked at: then it is not said to be ours, and joining it tells. */
    return stat(path, &other) == 0 && own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

/* The namespaces of a process that are not ours, as a plan that joins them. */
static struct error *plan_of_process(pid_t target, struct namespace_plan *out) {
    *out = NAMESPACE_PLAN_NONE;
    for (size_t i = 0; i < NAMESPACES_MAX; i++) {
        if (same_namespace(namespace_types[i].file, target))
            continue;
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/ns/%s", (int)target, namespace_types[i].file);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return error_known(ERROR_NOT_RUNNING, NULL);
        out->joined[out->joined_count].fd = fd;
        out->joined[out->joined_count++].type = namespace_types[i].flag;
    }
    return NULL;
}

struct error *namespace_open_root(int target_pidfd, pid_t target, int *out) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/root", (int)target);
    *out = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    /* Opened by number: it is the target's if that still lives now. */
    if (*out < 0 || sys_pidfd_send_signal(target_pidfd, 0) < 0)
        return error_known(ERROR_NOT_RUNNING, NULL);
    return NULL;
}

struct error *namespace_clone_beside(int target_pidfd, pid_t target, process_body body, void *data,
                                     pid_t *pid, int *pidfd) {
    struct namespace_plan plan;
    struct error *error = plan_of_process(target, &plan);
    /* The descriptors were opened by number: they are the target's if it still lives now. */
    if (error == NULL && sys_pidfd_send_signal(target_pidfd, 0) < 0)
        error = error_known(ERROR_NOT_RUNNING, NULL);
    if (error == NULL)
        error = namespace_clone(&plan, -1, NULL, body, data, pid, pidfd);
    namespace_plan_close(&plan);
    return error;
}

struct network_work {
    int target_pidfd;
    int sync;
    fallible (*work)(void *data);
    void *data;
};

/* There and back: a third of what a process of its own costs. False, and nothing done, for who may not enter
 * directly (an unprivileged owner has to become root of the user namespace first) or could not come back: a
 * user namespace's root (rootless podman) has no rights over the machine's network namespace. */
static bool network_visit(const struct network_work *run, struct error **error) {
    fd_owned int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (home < 0 || setns(home, CLONE_NEWNET) < 0 || setns(run->target_pidfd, CLONE_NEWNET) < 0)
        return false;
    *error = run->work(run->data);
    if (setns(home, CLONE_NEWNET) < 0) {
        int number = errno;
        error_free(*error);
        *error = error_system(number, "leave", "the container's network namespace");
    }
    return true;
}

static int network_body(void *data) {
    const struct network_work *run = data;
    struct error *error = NULL;
    /* Directly first: the user namespace may be this process's own, which cannot be joined. */
    if (setns(run->target_pidfd, CLONE_NEWNET) < 0 &&
        (setns(run->target_pidfd, CLONE_NEWUSER) < 0 || setns(run->target_pidfd, CLONE_NEWNET) < 0))
        error = error_system(errno, "join", "the container's network namespace");
    if (error == NULL)
        error = run->work(run->data);
    error_send(run->sync, error);
    error_free(error);
    return 0;
}

/* Of a living process: only then was the number still its own when the namespaces were compared. */
static struct error *network_is_shared(int target_pidfd, pid_t target, bool *shared) {
    *shared = same_namespace("net", target);
    if (*shared && sys_pidfd_send_signal(target_pidfd, 0) < 0)
        return error_known(ERROR_NOT_RUNNING, NULL);
    return NULL;
}

struct error *namespace_visit_network(int target_pidfd, pid_t target, fallible (*work)(void *data),
                                      void *data) {
    const struct network_work visit = {target_pidfd, -1, work, data};
    struct error *error = NULL;
    bool shared = false;
    TRY(network_is_shared(target_pidfd, target, &shared));
    if (!shared && geteuid() == 0 && network_visit(&visit, &error))
        return error;
    return namespace_run_in_network(target_pidfd, target, work, data);
}

struct error *namespace_run_in_network(int target_pidfd, pid_t target, fallible (*work)(void *data),
                                       void *data) {
    struct network_work run = {target_pidfd, -1, work, data};
    struct error *error = NULL;
    bool shared = false;
    TRY(network_is_shared(target_pidfd, target, &shared));
    if (shared)
        return work(data);
    fd_owned int ours = -1;
    fd_owned int theirs = -1;
    TRY(fd_pair(&ours, &theirs));
    run.sync = theirs;
    /* A change of user namespace marks the memory undumpable, which must not be ours. */
    fd_owned int pidfd = -1;
    pid_t child = sys_clone3(0, &pidfd, -1);
    if (child == 0)
        _exit(network_body(&run));
    if (child < 0)
        return error_system(errno, "fork", "a process for the container's network namespace");
    fd_close(fd_take(&theirs));
    error = error_receive(ours);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    return error;
}

static struct error *map_by_helper(const char *helper, pid_t pid, const struct oci_id_mapping *mappings,
                                   size_t count) {
    string_list_owned struct string_list arguments = {0};
    string_list_append(&arguments, helper);
    string_list_append_owned(&arguments, text_formatted("%d", (int)pid));
    for (size_t i = 0; i < count; i++) {
        string_list_append_owned(&arguments, text_formatted("%u", mappings[i].container_id));
        string_list_append_owned(&arguments, text_formatted("%u", mappings[i].host_id));
        string_list_append_owned(&arguments, text_formatted("%u", mappings[i].size));
    }
    pid_t child = fork();
    if (child < 0)
        return error_system(errno, "fork", "%s", helper);
    if (child == 0) {
        static char *const environment[] = {NULL};
        static const char *const directories[] = {"/usr/bin", "/usr/local/bin", "/bin"};
        for (size_t i = 0; i < sizeof directories / sizeof directories[0]; i++) {
            char path[64];
            snprintf(path, sizeof path, "%s/%s", directories[i], helper);
            execve(path, arguments.items, environment);
        }
        _exit(127);
    }
    int status = -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (status != 0)
        return error_new(
            ERROR_UNAVAILABLE,
            "%s could not map the ids of linux.%cidMappings (is it installed, and are they in /etc/sub%cid?)",
            helper, helper[3], helper[3]);
    return NULL;
}

static struct error *map_write(const struct procfs *procfs, pid_t pid, const char *file,
                               const struct oci_id_mapping *mappings, size_t count) {
    memory_owned char *lines = oci_id_map_lines(mappings, count);
    if (strlen(lines) >= (size_t)sysconf(_SC_PAGESIZE)) /* user_namespaces(7); it says EINVAL and no more */
        return error_new(
            ERROR_INVALID,
            "linux.%s: expected mappings that take less than %ld bytes in /proc/PID/%s, found %zu",
            file[0] == 'u' ? "uidMappings" : "gidMappings", sysconf(_SC_PAGESIZE), file, strlen(lines));
    return procfs_write_process(procfs, pid, file, lines);
}

static bool is_own_id_alone(const struct oci_id_mapping *mappings, size_t count, unsigned id) {
    return count == 1 && mappings[0].size == 1 && mappings[0].host_id == id;
}

struct error *namespace_map_ids(pid_t pid, const struct oci_linux *linux_config, bool *allow_setgroups) {
    const struct oci_id_mapping *uids = linux_config->uid_mappings, *gids = linux_config->gid_mappings;
    size_t uid_count = linux_config->uid_mappings_count, gid_count = linux_config->gid_mappings_count;
    if (uid_count == 0 || gid_count == 0)
        return error_new(ERROR_INVALID, "linux.%s: a new user namespace needs mappings",
                         uid_count ? "gidMappings" : "uidMappings");
    *allow_setgroups = true;
    procfs_owned struct procfs procfs = PROCFS_NONE;
    TRY(procfs_open(PROCFS_PROCESSES, &procfs));
    if (geteuid() != 0) {
        if (is_own_id_alone(uids, uid_count, geteuid()) && is_own_id_alone(gids, gid_count, getegid())) {
            /* The kernel lets a user map its own group only where setgroups is out (CVE-2014-8989). */
            TRY(procfs_write_process(&procfs, pid, "setgroups", "deny"));
            *allow_setgroups = false;
        } else {
            TRY(map_by_helper("newuidmap", pid, uids, uid_count));
            return map_by_helper("newgidmap", pid, gids, gid_count);
        }
    }
    TRY(map_write(&procfs, pid, "gid_map", gids, gid_count));
    return map_write(&procfs, pid, "uid_map", uids, uid_count);
}

static void offset_line(struct text *lines, const char *clock, const struct oci_time_offset *offset) {
    if (offset != NULL)
        text_format(lines, "%s %lld %u\n", clock, (long long)offset->secs, offset->nanosecs);
}

struct error *namespace_enter_time(const struct oci_time_offsets *offsets, const struct procfs *procfs) {
    if (unshare(CLONE_NEWTIME) < 0)
        return errno == EINVAL
                   ? error_new(ERROR_UNAVAILABLE, "linux.namespaces time: this kernel has no time namespaces")
                   : error_system(errno, "unshare", "the time namespace");
    text_owned struct text lines = {0};
    if (offsets != NULL) {
        offset_line(&lines, "monotonic", offsets->monotonic);
        offset_line(&lines, "boottime", offsets->boottime);
    }
    if (lines.length > 0) {
        struct error *error = procfs_write(procfs, "self/timens_offsets", text_string(&lines));
        if (error != NULL && error->number == ERANGE) {
            error_free(error);
            return error_new(ERROR_INVALID,
                             "linux.timeOffsets: expected offsets that leave each clock between "
                             "0 and 146 years, found one that does not");
        }
        TRY(error_context(error, "linux.timeOffsets"));
    }
    /* What was made is for the children; this process goes there too, so that it needs none. */
    fd_owned int directory = -1;
    TRY(procfs_open_file(procfs, "self/ns", O_PATH | O_DIRECTORY, &directory));
    fd_owned int namespace = openat(directory, "time_for_children", O_RDONLY | O_CLOEXEC);
    if (namespace < 0 || setns(namespace, CLONE_NEWTIME) < 0)
        return error_system(errno, "enter", "the time namespace");
    return NULL;
}
