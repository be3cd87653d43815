/* cgroup/ with the kernel's cgroups, only below /pinfold-unit-PID, which the test makes and removes. Skipped
 * where cgroups cannot be written. Every process in there is a child of this program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "cgroup/internal.h"
#include "sys/calls.h"

#define OPTIONAL(v)                                                                                          \
    { .set = true, .value = (v) }

static char top[64]; /* "/pinfold-unit-PID" */
static struct cgroup_hierarchies machine;
static char why_not[256];

static void assert_no_error(struct error *error) {
    if (error != NULL)
        fail_msg("unexpected error: %s", error->message);
}

static void assert_error(struct error *error, enum error_kind kind, const char *part) {
    assert_non_null(error);
    if (strstr(error->message, part) == NULL)
        fail_msg("\"%s\" lacks \"%s\"", error->message, part);
    assert_int_equal(error->kind, kind);
    error_free(error);
}

enum view { VIEW_MACHINE, VIEW_V1, VIEW_V2, VIEW_COUNT };
static const char *const view_names[VIEW_COUNT] = {"machine", "v1", "v2"};
static enum view view;
static char covered[128];  /* what we mounted over */
static char own_root[128]; /* the cgroup2 directory that was bound */

static void view_leave(void) {
    if (covered[0] != '\0')
        (void)umount2(covered, MNT_DETACH);
    if (own_root[0] != '\0' && rmdir(own_root) < 0)
        fprintf(stderr, "%s: %s\n", own_root, strerror(errno));
    covered[0] = own_root[0] = '\0';
}

static void view_enter(enum view wanted) {
    view_leave();
    view = wanted;
    why_not[0] = '\0';
    cgroup_hierarchies_free(&machine);
    assert_no_error(cgroup_hierarchies_read(&machine));
    const struct cgroup_hierarchy *last = machine.count == 0 ? NULL : &machine.items[machine.count - 1];
    if (wanted != VIEW_MACHINE && (last == NULL || !last->unified)) {
        snprintf(why_not, sizeof why_not, "no cgroup2 is mounted");
        return;
    }
    if (wanted == VIEW_V1) {
        if (cgroup_hierarchies_layout(&machine) != CGROUP_LAYOUT_HYBRID)
            snprintf(why_not, sizeof why_not, "this machine has no cgroup v1");
        else if (mount("pinfold-unit", last->mount_point, "tmpfs", 0, NULL) < 0)
            snprintf(why_not, sizeof why_not, "mount: %s", strerror(errno));
        else
            snprintf(covered, sizeof covered, "%s", last->mount_point);
    } else if (wanted == VIEW_V2) {
        snprintf(own_root, sizeof own_root, "%s%s-v2", last->mount_point, top);
        if (mkdir(own_root, 0755) < 0) {
            snprintf(why_not, sizeof why_not, "%s: %s", own_root, strerror(errno));
            own_root[0] = '\0';
        } else if (mount(own_root, CGROUP_BASE, NULL, MS_BIND, NULL) < 0) {
            snprintf(why_not, sizeof why_not, "mount: %s", strerror(errno));
        } else {
            snprintf(covered, sizeof covered, "%s", CGROUP_BASE);
        }
    }
    cgroup_hierarchies_free(&machine);
    assert_no_error(cgroup_hierarchies_read(&machine));
    if (machine.count == 0 && why_not[0] == '\0')
        snprintf(why_not, sizeof why_not, "no cgroup hierarchy is mounted");
    for (size_t i = 0; i < machine.count && why_not[0] == '\0'; i++) {
        memory_owned char *path = text_formatted("%s%s", machine.items[i].mount_point, top);
        if (mkdir(path, 0755) < 0 || rmdir(path) < 0)
            snprintf(why_not, sizeof why_not, "%s cannot be made: %s", path, strerror(errno));
    }
}

static int setup(void **state) {
    enum view wanted = *(const enum view *)*state;
    if (wanted != view || machine.count == 0)
        view_enter(wanted);
    return 0;
}

/* Whatever a test leaves after a failure, and a proof that nothing is left after a success. */
static int teardown(void **state) {
    (void)state;
    int left = 0;
    for (size_t i = 0; why_not[0] == '\0' && i < machine.count; i++) {
        memory_owned char *path = text_formatted("%s%s", machine.items[i].mount_point, top);
        if (access(path, F_OK) < 0)
            continue;
        left++;
        string_list_owned struct string_list list = {0};
        string_list_append(&list, path);
        struct error *error = cgroup_destroy(&list);
        if (error != NULL)
            fprintf(stderr, "%s\n", error->message);
        error_free(error);
    }
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
    return left == 0 ? 0 : -1;
}

#define NEEDS_CGROUPS()                                                                                      \
    do {                                                                                                     \
        if (why_not[0] != '\0') {                                                                            \
            print_message("skipped: %s\n", why_not);                                                         \
            skip();                                                                                          \
        }                                                                                                    \
    } while (0)

static struct cgroup *plan(const char *leaf) {
    memory_owned char *path = text_formatted("%s/%s", top, leaf);
    struct cgroup *cgroup;
    assert_no_error(cgroup_plan(path, "box", CGROUP_MANAGER_CGROUPFS, false, &cgroup));
    assert_int_equal(cgroup->count, machine.count);
    return cgroup;
}

/* Only the v1 part of a plan, as on a machine without cgroup2. */
static void without_v2(struct cgroup *cgroup) {
    struct cgroup_directory *last = &cgroup->directories[cgroup->count - 1];
    if (strcmp(last->controllers, "unified") != 0)
        return;
    free(last->controllers);
    free(last->path);
    cgroup->count--;
}

static const char *directory_of(const struct cgroup *cgroup, const char *controller) {
    for (size_t i = 0; i < cgroup->count; i++)
        if (cgroup_word_in(cgroup->directories[i].controllers, ",", controller))
            return cgroup->directories[i].path;
    return NULL;
}

/* A child that sleeps until it is killed. With a cgroup it first moves there by itself and makes children of
 * its own. */
static pid_t sleeper(const struct cgroup *cgroup, int grandchildren) {
    int ready[2];
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (cgroup != NULL && cgroup_attach_self(cgroup, false) != NULL)
            _exit(1);
        for (int i = 0; i < grandchildren; i++) {
            if (fork() != 0)
                continue;
            close(ready[1]);
            close(
                STDOUT_FILENO); /* a reader of the test's output must not wait for one that was not killed */
            close(STDERR_FILENO);
            for (;;)
                pause();
        }
        (void)!write(ready[1], "r", 1);
        for (;;)
            pause();
    }
    char byte;
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static void assert_members(const struct cgroup *cgroup, size_t expected) {
    pid_t *pids = NULL;
    size_t count = 0;
    assert_no_error(cgroup_processes(cgroup, &pids, &count));
    free(pids);
    assert_int_equal(count, expected);
}

static void assert_killed(pid_t pid) {
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
}

static void assert_lives(pid_t pid) {
    int status;
    assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
}

static void assert_gone(const struct string_list *created) {
    for (size_t i = 0; i < created->count; i++)
        assert_int_equal(access(created->items[i], F_OK), -1);
}

static void assert_value(const struct cgroup *cgroup, const char *controller, const char *file,
                         const char *expected) {
    const char *directory = directory_of(cgroup, controller);
    assert_non_null(directory);
    memory_owned char *content = cgroup_file_read(directory, file);
    assert_non_null(content);
    assert_string_equal(content, expected);
}

static void make_attach_and_destroy(void **state) {
    (void)state;
    NEEDS_CGROUPS();
    struct cgroup *cgroup = plan("box");
    string_list_owned struct string_list intent = {0};
    cgroup_intent(cgroup, &intent);
    string_list_owned struct string_list created = {0};
    assert_no_error(cgroup_make(cgroup, &created));
    /* A parent and a leaf in each hierarchy, as was announced. */
    assert_int_equal(created.count, 2 * machine.count);
    assert_int_equal(intent.count, created.count);
    for (size_t i = 0; i < created.count; i++)
        assert_string_equal(intent.items[i], created.items[i]);
    string_list_owned struct string_list none = {0};
    cgroup_intent(cgroup, &none);
    assert_int_equal(none.count, 0);

    pid_t pid = sleeper(NULL, 0);
    assert_no_error(cgroup_attach(cgroup, pid));
    pid_t *pids = NULL;
    size_t count = 0;
    assert_no_error(cgroup_processes(cgroup, &pids, &count));
    assert_int_equal(count, 1);
    assert_int_equal(pids[0], pid);
    free(pids);
    /* The kernel says the same: the containerd shim reads this file right after create. */
    memory_owned char *proc = text_formatted("/proc/%d", (int)pid);
    memory_owned char *lines = cgroup_file_read(proc, "cgroup");
    memory_owned char *ending = text_formatted("%s/box", top);
    size_t found = 0;
    for (const char *next = lines; (next = strstr(next, ending)) != NULL; next++)
        found++;
    assert_int_equal(found, machine.count);

    assert_no_error(cgroup_destroy(&created));
    assert_killed(pid);
    assert_gone(&created);
    assert_no_error(cgroup_destroy(&created)); /* missing is fine */
    assert_no_error(cgroup_processes(cgroup, &pids, &count));
    assert_int_equal(count, 0);
    free(pids);
    cgroup_free(cgroup);
}

static void self_attach_and_birth_in_v2(void **state) {
    (void)state;
    NEEDS_CGROUPS();
    struct cgroup *cgroup = plan("box");
    string_list_owned struct string_list created = {0};
    assert_no_error(cgroup_make(cgroup, &created));
    for (int born = 0; born < 2; born++) {
        fd_owned int unified = born ? cgroup_open_unified(cgroup) : -1;
        if (born && unified < 0)
            break;
        int pidfd = -1;
        pid_t pid = sys_clone3(CLONE_PIDFD | (born ? CLONE_INTO_CGROUP : 0), &pidfd, unified);
        assert_true(pid >= 0);
        if (pid == 0) {
            struct error *error = cgroup_attach_self(cgroup, born != 0);
            memory_owned char *lines = cgroup_file_read("/proc/self", "cgroup");
            memory_owned char *ending = text_formatted("%s/box", top);
            size_t found = 0;
            for (const char *next = lines; (next = strstr(next, ending)) != NULL; next++)
                found++;
            _exit(error != NULL ? 1 : found == machine.count ? 0 : 2);
        }
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        fd_close(pidfd);
        assert_int_equal(status, 0);
    }
    assert_no_error(cgroup_destroy(&created));
    assert_gone(&created);
    cgroup_free(cgroup);
}

static void existing_leaf_is_joined_only_if_empty(void **state) {
    (void)state;
    NEEDS_CGROUPS();
    struct cgroup *cgroup = plan("box");
    string_list_owned struct string_list first = {0};
    assert_no_error(cgroup_make(cgroup, &first));
    string_list_owned struct string_list second = {0};
    assert_no_error(cgroup_make(cgroup, &second));
    assert_int_equal(second.count, 0);
    assert_no_error(cgroup_freeze(cgroup, true));
    assert_error(cgroup_make(cgroup, &second), ERROR_INVALID, "is frozen");
    assert_no_error(cgroup_freeze(cgroup, false));

    pid_t pid = sleeper(NULL, 0);
    memory_owned char *number = text_formatted("%d", (int)pid);
    /* In the last hierarchy only, so that everything before it must be taken back. */
    assert_no_error(cgroup_file_write(cgroup->directories[cgroup->count - 1].path, "cgroup.procs", number));
    for (size_t i = 0; i + 1 < cgroup->count; i++)
        assert_int_equal(rmdir(cgroup->directories[i].path), 0);
    assert_error(cgroup_make(cgroup, &second), ERROR_INVALID, "cgroup is not empty");
    assert_int_equal(second.count, 0);
    for (size_t i = 0; i + 1 < cgroup->count; i++)
        assert_int_equal(access(cgroup->directories[i].path, F_OK), -1);
    assert_lives(pid);
    assert_no_error(cgroup_destroy(&first));
    assert_killed(pid);
    assert_gone(&first);
    cgroup_free(cgroup);
}

static void shared_parent_is_spared(void **state) {
    (void)state;
    NEEDS_CGROUPS();
    struct cgroup *one = plan("one");
    struct cgroup *two = plan("two");
    string_list_owned struct string_list created_one = {0};
    string_list_owned struct string_list created_two = {0};
    assert_no_error(cgroup_make(one, &created_one)); /* and the parent */
    assert_no_error(cgroup_make(two, &created_two));
    assert_int_equal(created_two.count, machine.count);
    pid_t first = sleeper(one, 1);
    pid_t second = sleeper(NULL, 0);
    assert_members(one, 2);
    assert_no_error(cgroup_attach(two, second));
    assert_no_error(cgroup_destroy(&created_one));
    assert_killed(first);
    assert_lives(second);
    for (size_t i = 0; i < two->count; i++)
        assert_int_equal(access(two->directories[i].path, F_OK), 0);
    assert_no_error(cgroup_destroy(&created_two));
    assert_killed(second);
    assert_no_error(cgroup_destroy(&created_one)); /* now the parent is empty */
    assert_gone(&created_one);
    cgroup_free(one);
    cgroup_free(two);
}

static void intent_alone_cleans_up(void **state) {
    (void)state;
    NEEDS_CGROUPS();
    struct cgroup *cgroup = plan("box");
    string_list_owned struct string_list intent = {0};
    cgroup_intent(cgroup, &intent);
    string_list_owned struct string_list created = {0};
    assert_no_error(cgroup_make(cgroup, &created));
    /* As if the process had been killed half way. */
    for (size_t i = 0; i < cgroup->count; i += 2)
        assert_int_equal(rmdir(cgroup->directories[i].path), 0);
    assert_no_error(cgroup_destroy(&intent));
    assert_gone(&intent);
    cgroup_free(cgroup);
}

static void sub_cgroups_go_first(void **state) {
    (void)state;
    NEEDS_CGROUPS();
    struct cgroup *cgroup = plan("box");
    string_list_owned struct string_list created = {0};
    assert_no_error(cgroup_make(cgroup, &created));
    pid_t pid = sleeper(NULL, 0);
    memory_owned char *number = text_formatted("%d", (int)pid);
    for (size_t i = 0; i < cgroup->count; i++) {
        text_owned struct text path = {0};
        text_append(&path, cgroup->directories[i].path);
        for (int depth = 0; depth < 5; depth++) {
            text_format(&path, "/level%d", depth);
            assert_int_equal(mkdir(path.data, 0755), 0);
        }
        if (!cgroup_word_in(cgroup->directories[i].controllers, ",", "cpuset"))
            assert_no_error(cgroup_file_write(path.data, "cgroup.procs", number));
    }
    pid_t *pids = NULL;
    size_t count = 0;
    assert_no_error(cgroup_processes(cgroup, &pids, &count));
    assert_int_equal(count, 1);
    free(pids);
    assert_no_error(cgroup_destroy(&created));
    assert_killed(pid);
    assert_gone(&created);
    cgroup_free(cgroup);
}

static void destroy_refuses_while_we_are_inside(void **state) {
    (void)state;
    NEEDS_CGROUPS();
    struct cgroup *cgroup = plan("box");
    string_list_owned struct string_list created = {0};
    assert_no_error(cgroup_make(cgroup, &created));
    pid_t bystander = sleeper(NULL, 0);
    assert_no_error(cgroup_attach(cgroup, bystander));
    pid_t pid = fork();
    if (pid == 0) {
        struct error *error = cgroup_attach(cgroup, getpid());
        if (error != NULL)
            _exit(1);
        error = cgroup_destroy(&created);
        _exit(error != NULL && error->kind == ERROR_REFUSED &&
                      strstr(error->message, "is to remove it") != NULL
                  ? 0
                  : 2);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_lives(bystander);
    assert_no_error(cgroup_destroy(&created));
    assert_killed(bystander);
    cgroup_free(cgroup);
}

static void destroy_refuses_roots(void **state) {
    (void)state;
    NEEDS_CGROUPS();
    for (size_t i = 0; i < machine.count; i++) {
        string_list_owned struct string_list list = {0};
        string_list_append(&list, machine.items[i].mount_point);
        assert_error(cgroup_destroy(&list), ERROR_REFUSED, "is not touched");
        assert_int_equal(access(machine.items[i].mount_point, F_OK), 0);
    }
}

static void frozen_cgroup_is_destroyed(void **state) {
    (void)state;
    NEEDS_CGROUPS();
    for (int v1_only = 0; v1_only < 2; v1_only++) {
        struct cgroup *cgroup = plan("box");
        if (v1_only)
            without_v2(cgroup);
        if (v1_only && directory_of(cgroup, "freezer") == NULL) {
            cgroup_free(cgroup);
            break;
        }
        string_list_owned struct string_list created = {0};
        assert_no_error(cgroup_make(cgroup, &created));
        pid_t pid = sleeper(cgroup, 3);
        assert_members(cgroup, 4);
        assert_false(cgroup_is_frozen(cgroup));
        assert_no_error(cgroup_freeze(cgroup, true));
        assert_true(cgroup_is_frozen(cgroup));
        assert_no_error(cgroup_freeze(cgroup, false));
        assert_false(cgroup_is_frozen(cgroup));
        assert_no_error(cgroup_freeze(cgroup, true));
        assert_no_error(cgroup_destroy(&created));
        assert_killed(pid);
        assert_false(cgroup_is_frozen(cgroup));
        assert_gone(&created);
        cgroup_free(cgroup);
    }
}

/* Without cgroup.kill: each process is killed by itself, and the forks keep coming. */
static void fork_bomb_is_killed_without_cgroup_kill(void **state) {
    (void)state;
    NEEDS_CGROUPS();
    struct cgroup *cgroup = plan("box");
    without_v2(cgroup);
    if (directory_of(cgroup, "pids") == NULL || directory_of(cgroup, "freezer") == NULL) {
        cgroup_free(cgroup);
        print_message("skipped: no pids and freezer controllers of v1\n");
        skip();
    }
    string_list_owned struct string_list created = {0};
    assert_no_error(cgroup_make(cgroup, &created));
    struct oci_pids pids = {.limit = OPTIONAL(64)};
    struct oci_resources resources = {.pids = &pids};
    assert_no_error(cgroup_apply(cgroup, &resources));
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (cgroup_attach_self(cgroup, false) != NULL)
            _exit(1);
        signal(SIGCHLD, SIG_IGN);
        for (;;)
            if (fork() == 0 && getpid() % 3 == 0)
                _exit(0);
    }
    struct timespec pause = {.tv_nsec = 100000000};
    nanosleep(&pause, NULL);
    assert_value(cgroup, "pids", "pids.max", "64");
    assert_no_error(cgroup_destroy(&created));
    assert_killed(pid);
    assert_gone(&created);
    cgroup_free(cgroup);
}

static void limits_are_written_and_read_back(void **state) {
    (void)state;
    NEEDS_CGROUPS();
    struct cgroup *cgroup = plan("box");
    if (directory_of(cgroup, "memory") == NULL || directory_of(cgroup, "pids") == NULL ||
        directory_of(cgroup, "cpu") == NULL || directory_of(cgroup, "cpuset") == NULL ||
        directory_of(cgroup, "devices") == NULL) {
        cgroup_free(cgroup);
        print_message("skipped: the v1 controllers are not all mounted\n");
        skip();
    }
    string_list_owned struct string_list created = {0};
    assert_no_error(cgroup_make(cgroup, &created));
    memory_owned char *cpus = cgroup_file_read(directory_of(cgroup, "cpuset"), "cpuset.cpus");
    assert_string_not_equal(cpus, ""); /* copied from the parent */

    struct oci_memory memory = {.limit = OPTIONAL(64 * 1024 * 1024 + 123),
                                .swap = OPTIONAL(128 * 1024 * 1024),
                                .reservation = OPTIONAL(32 * 1024 * 1024)};
    struct oci_cpu cpu = {.shares = OPTIONAL(512),
                          .quota = OPTIONAL(20000),
                          .period = OPTIONAL(50000),
                          .burst = OPTIONAL(10000),
                          .cpus = (char *)"0",
                          .mems = (char *)"0"};
    struct oci_pids pids = {.limit = OPTIONAL(2048)};
    struct oci_device_cgroup rules[] = {{.access = (char *)"rwm"},
                                        {.allow = true,
                                         .type = (char *)"c",
                                         .major = OPTIONAL(10),
                                         .minor = OPTIONAL(229),
                                         .access = (char *)"rw"}};
    struct oci_resources resources = {
        .memory = &memory, .cpu = &cpu, .pids = &pids, .devices = rules, .devices_count = 2};
    assert_no_error(cgroup_apply(cgroup, &resources));
    assert_value(cgroup, "memory", "memory.limit_in_bytes", "67108864");
    assert_value(cgroup, "memory", "memory.soft_limit_in_bytes", "33554432");
    assert_value(cgroup, "memory", "memory.memsw.limit_in_bytes", "134217728");
    assert_value(cgroup, "cpu", "cpu.shares", "512");
    assert_value(cgroup, "cpu", "cpu.cfs_quota_us", "20000");
    assert_value(cgroup, "cpu", "cpu.cfs_period_us", "50000");
    assert_value(cgroup, "cpu", "cpu.cfs_burst_us", "10000");
    assert_value(cgroup, "cpuset", "cpuset.cpus", "0");
    assert_value(cgroup, "pids", "pids.max", "2048");
    memory_owned char *list = cgroup_file_read(directory_of(cgroup, "devices"), "devices.list");
    assert_true(cgroup_word_in(list, "\n", "c 10:229 rw"));
    assert_true(cgroup_word_in(list, "\n", "c *:* m"));
    assert_true(cgroup_word_in(list, "\n", "c 1:3 rwm"));
    assert_false(cgroup_word_in(list, "\n", "a *:* rwm"));

    /* Up past the old memsw, down again below it, and to unlimited: each needs another order of the two
     * writes. */
    memory.limit.value = 256 * 1024 * 1024;
    memory.swap.value = 256 * 1024 * 1024;
    assert_no_error(cgroup_apply(cgroup, &resources));
    assert_value(cgroup, "memory", "memory.memsw.limit_in_bytes", "268435456");
    memory.limit.value = 16 * 1024 * 1024;
    memory.swap.value = 16 * 1024 * 1024;
    assert_no_error(cgroup_apply(cgroup, &resources));
    assert_value(cgroup, "memory", "memory.memsw.limit_in_bytes", "16777216");
    memory.limit.value = -1;
    memory.swap = (struct optional_int64){0};
    /* A smaller period needs the smaller quota first (and a burst not above it). */
    cpu.period.value = 5000;
    cpu.quota.value = 2000;
    cpu.burst.value = 0;
    pids.limit.value = 0;
    assert_no_error(cgroup_apply(cgroup, &resources));
    assert_value(cgroup, "memory", "memory.limit_in_bytes", "9223372036854771712");
    assert_value(cgroup, "memory", "memory.memsw.limit_in_bytes", "9223372036854771712");
    assert_value(cgroup, "cpu", "cpu.cfs_period_us", "5000");
    assert_value(cgroup, "pids", "pids.max", "0");

    /* An update without device rules leaves them alone; zeros change nothing. */
    struct oci_cpu zeros = {.shares = OPTIONAL(0), .quota = OPTIONAL(0), .period = OPTIONAL(0)};
    struct oci_pids unlimited = {.limit = OPTIONAL(-1)};
    struct oci_resources update = {.cpu = &zeros, .pids = &unlimited};
    assert_no_error(cgroup_apply(cgroup, &update));
    assert_value(cgroup, "cpu", "cpu.shares", "512");
    assert_value(cgroup, "pids", "pids.max", "max");
    assert_value(cgroup, "devices", "devices.list", list);

    struct oci_device_cgroup privileged = {.allow = true, .access = (char *)"rwm"};
    struct oci_resources open = {.devices = &privileged, .devices_count = 1};
    assert_no_error(cgroup_apply(cgroup, &open));
    assert_value(cgroup, "devices", "devices.list", "a *:* rwm");

    cpu.cpus = (char *)"4000";
    assert_error(cgroup_apply(cgroup, &resources), ERROR_SYSTEM, "linux.resources.cpu.cpus");
    cpu.cpus = NULL;
    cpu.quota.value = 1;
    assert_error(cgroup_apply(cgroup, &resources), ERROR_SYSTEM, "linux.resources.cpu.quota");
    assert_no_error(cgroup_destroy(&created));
    cgroup_free(cgroup);
}

static void missing_controllers_are_errors(void **state) {
    (void)state;
    NEEDS_CGROUPS();
    struct cgroup *cgroup = plan("box");
    without_v2(cgroup);
    if (cgroup->count == 0) {
        cgroup_free(cgroup);
        print_message("skipped: no v1 hierarchy\n");
        skip();
    }
    string_list_owned struct string_list created = {0};
    assert_no_error(cgroup_make(cgroup, &created));
    struct key_value entry = {(char *)"memory.high", (char *)"1"};
    struct oci_resources unified = {.unified = {.items = &entry, .count = 1}};
    assert_error(cgroup_apply(cgroup, &unified), ERROR_UNAVAILABLE,
                 "linux.resources.unified.memory.high needs cgroup v2");
    if (directory_of(cgroup, "hugetlb") == NULL) {
        struct oci_hugepage_limit pages = {.page_size = (char *)"2MB", .limit = 1};
        struct oci_resources resources = {.hugepage_limits = &pages, .hugepage_limits_count = 1};
        assert_false(cgroup_has_controller(cgroup, "hugetlb"));
        assert_error(cgroup_apply(cgroup, &resources), ERROR_UNAVAILABLE,
                     "linux.resources.hugepageLimits[0] needs the hugetlb controller");
    }
    assert_no_error(cgroup_destroy(&created));
    cgroup_free(cgroup);
}

/* Below a threaded v2 cgroup a new one takes no process until it is made threaded too. */
static void threaded_parent_is_joined(void **state) {
    (void)state;
    NEEDS_CGROUPS();
    if (view != VIEW_V2) {
        print_message("skipped: only of v2\n");
        skip();
    }
    memory_owned char *parent = text_formatted("%s%s", machine.items[0].mount_point, top);
    memory_owned char *thread = text_formatted("%s/thread", parent);
    assert_int_equal(mkdir(parent, 0755) | mkdir(thread, 0755), 0);
    assert_no_error(cgroup_file_write(thread, "cgroup.type", "threaded"));
    pid_t pid = sleeper(NULL, 0);
    memory_owned char *number = text_formatted("%d", (int)pid);
    assert_no_error(cgroup_file_write(parent, "cgroup.procs", number));

    struct cgroup *cgroup = plan("box");
    string_list_owned struct string_list created = {0};
    assert_no_error(cgroup_make(cgroup, &created));
    assert_int_equal(created.count, 1);
    assert_value(cgroup, "unified", "cgroup.type", "domain invalid");
    assert_no_error(cgroup_attach(cgroup, pid));
    assert_value(cgroup, "unified", "cgroup.type", "threaded");
    assert_members(cgroup, 1);
    assert_no_error(cgroup_destroy(&created));
    assert_killed(pid);
    assert_gone(&created);
    assert_int_equal(rmdir(thread), 0);
    assert_int_equal(rmdir(parent), 0);
    cgroup_free(cgroup);
}

/* A user without delegation gets no cgroup; what a limit would have needed one for is said. */
static void rootless_without_delegation(void **state) {
    (void)state;
    NEEDS_CGROUPS();
    if (geteuid() != 0) {
        print_message("skipped: not root\n");
        skip();
    }
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0)
            _exit(1);
        struct cgroup *cgroup;
        struct error *error = cgroup_plan(top, "box", CGROUP_MANAGER_CGROUPFS, true, &cgroup);
        if (error != NULL || cgroup->count != 0 || !cgroup->rootless)
            _exit(2);
        struct oci_device_cgroup rule = {.access = (char *)"rwm"};
        struct oci_resources devices = {.devices = &rule, .devices_count = 1};
        if (cgroup_apply(cgroup, &devices) != NULL)
            _exit(3);
        struct oci_memory memory = {.limit = OPTIONAL(4096 * 4096)};
        struct oci_resources limit = {.memory = &memory};
        error = cgroup_apply(cgroup, &limit);
        if (error == NULL || error->kind != ERROR_UNAVAILABLE ||
            strstr(error->message, "linux.resources.memory.limit needs the memory controller") == NULL)
            _exit(4);
        if (cgroup_has_controller(cgroup, "memory"))
            _exit(5);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    struct cgroup *cgroup = plan("box"); /* nothing made: what root could have */
    assert_int_equal(cgroup_has_controller(cgroup, "memory"), directory_of(cgroup, "memory") != NULL);
    cgroup_free(cgroup);
}

static void layout_is_what_was_set_up(void **state) {
    (void)state;
    NEEDS_CGROUPS();
    assert_int_equal(cgroup_layout(), cgroup_hierarchies_layout(&machine));
    struct cgroup *cgroup = plan("box");
    if (view == VIEW_V1)
        assert_int_equal(cgroup_layout(), CGROUP_LAYOUT_V1);
    if (view == VIEW_V2) {
        assert_int_equal(cgroup_layout(), CGROUP_LAYOUT_V2);
        assert_int_equal(cgroup->count, 1);
    }
    assert_int_equal(cgroup->unified, cgroup_layout() == CGROUP_LAYOUT_V2);
    cgroup_free(cgroup);
}

static int group_setup(void **state) {
    (void)state;
    snprintf(top, sizeof top, "/pinfold-unit-%d", (int)getpid());
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        print_message("no mount namespace of our own: %s\n", strerror(errno));
    return 0;
}

static int group_teardown(void **state) {
    (void)state;
    view_leave();
    cgroup_hierarchies_free(&machine);
    return 0;
}

int main(void) {
    static const struct {
        const char *name;
        CMUnitTestFunction function;
    } list[] = {
#define LIVE(test) {#test, test}
        LIVE(layout_is_what_was_set_up),
        LIVE(make_attach_and_destroy),
        LIVE(self_attach_and_birth_in_v2),
        LIVE(existing_leaf_is_joined_only_if_empty),
        LIVE(shared_parent_is_spared),
        LIVE(intent_alone_cleans_up),
        LIVE(sub_cgroups_go_first),
        LIVE(destroy_refuses_while_we_are_inside),
        LIVE(destroy_refuses_roots),
        LIVE(frozen_cgroup_is_destroyed),
        LIVE(fork_bomb_is_killed_without_cgroup_kill),
        LIVE(limits_are_written_and_read_back),
        LIVE(missing_controllers_are_errors),
        LIVE(threaded_parent_is_joined),
        LIVE(rootless_without_delegation),
    };
    enum { TESTS = sizeof list / sizeof list[0] };
    static enum view views[VIEW_COUNT] = {VIEW_MACHINE, VIEW_V1, VIEW_V2};
    struct CMUnitTest tests[TESTS * VIEW_COUNT];
    static char names[TESTS * VIEW_COUNT][80];
    for (size_t i = 0; i < TESTS * VIEW_COUNT; i++) {
        snprintf(names[i], sizeof names[i], "%s: %s", view_names[i / TESTS], list[i % TESTS].name);
        tests[i] = (struct CMUnitTest){.name = names[i],
                                       .test_func = list[i % TESTS].function,
                                       .setup_func = setup,
                                       .teardown_func = teardown,
                                       .initial_state = &views[i / TESTS]};
    }
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
