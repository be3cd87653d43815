/* The seccomp observer against the kernel: the same calls are made once without and once with it, and must
 * fail in the same way; what fails with EROFS, and every denied call, leaves one record. Needs root, for
 * mounts of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/memory.h"
#include "harden/seccomp.h"
#include "notify_tree.h"
#include "process/seccomp.h"
#include "sys/syscalls.h"
#include "warden/observers.h"

#define OPERATIONS_MAX 128
#define NOBODY 65534

struct operation {
    const char *name;
    long number;
    long arguments[6];
    int expected;     /* errno, or 0; -1: whatever the kernel says */
    const char *path; /* of the record, NULL for none */
    int activity;
};

struct results {
    int errors[OPERATIONS_MAX];
};

static void succeed(struct error *error) {
    if (error != NULL)
        fail_msg("%s", error->message);
}

/* --- a container process and its warden --- */

static void perform(const char *tree, const struct operation *operations, size_t count, bool root,
                    struct results *results) {
    if (chroot(tree) != 0 || chdir("/rw") != 0)
        _exit(10);
    /* 100: a directory's descriptor for the ...at calls */
    int directory = open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0 || dup2(directory, 100) != 100)
        _exit(11);
    if (!root && (setgid(NOBODY) != 0 || setuid(NOBODY) != 0 || prctl(PR_SET_DUMPABLE, 1) != 0))
        _exit(12);
    for (size_t i = 0; i < count; i++) {
        const long *a = operations[i].arguments;
        errno = 0;
        long result = syscall(operations[i].number, a[0], a[1], a[2], a[3], a[4], a[5]);
        results->errors[i] = result == -1 ? errno : 0;
    }
}

static void control_run(const char *tree, const struct operation *operations, size_t count, bool root,
                        struct results *results) {
    pid_t pid = fork();
    if (pid == 0) {
        perform(tree, operations, count, root, results);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

struct watch {
    struct warden_context context;
    struct warden_plan plan;
    struct record_subject subject;
    char directory[64];
};

static void watch_open(struct watch *watch, const struct policy *policy) {
    *watch = (struct watch){.directory = "/tmp/pinfold-notify-XXXXXX"};
    assert_non_null(mkdtemp(watch->directory));
    char *log = text_formatted("%s/log", watch->directory);
    watch->subject = (struct record_subject){.container_id = (char *)"c1",
                                             .container_name = (char *)"c1",
                                             .run_id = (char *)"run-1",
                                             .hostname = (char *)"host",
                                             .policy_name = (char *)"agent",
                                             .policy_digest = (char *)"00",
                                             .log_path = log};
    watch->plan.mutations_judged = true;
    watch->plan.rules =
        (struct warden_rules){harden_seccomp_denied(policy), harden_seccomp_observed(OBSERVED_MUTATIONS)};
    watch->context = (struct warden_context){.policy_origin = "built-in agent",
                                             .plan = &watch->plan,
                                             .on_denied = POLICY_DENIED_BLOCK_AND_LOG,
                                             .decoy_group = -1};
    succeed(record_log_open(&watch->subject, NULL, &watch->context.log));
}

/* Closes, and returns the log's text. */
static char *watch_close(struct watch *watch) {
    error_ignore(record_log_flush(watch->context.log, true));
    record_log_close(watch->context.log);
    struct text text = {0};
    succeed(file_read(AT_FDCWD, watch->subject.log_path, 1 << 22, &text));
    unlink(watch->subject.log_path);
    rmdir(watch->directory);
    free(watch->subject.log_path);
    oci_seccomp_free(watch->plan.rules.denied);
    oci_seccomp_free(watch->plan.rules.observed);
    return text_take(&text);
}

/* Runs `body` in a child under the filter, and the observer here until the child is gone. */
static int watched_run(struct watch *watch, void (*body)(void *), void *argument) {
    struct seccomp_program program;
    const struct oci_seccomp *const documents[] = {watch->plan.rules.denied, NULL,
                                                   watch->plan.rules.observed};
    succeed(seccomp_compile(documents, 3, NULL, &program));
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    pid_t pid = fork();
    if (pid == 0) {
        int listener;
        close(pair[0]);
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || seccomp_install(&program, &listener) != NULL)
            _exit(77);
        if (fd_send(pair[1], "l", 1, &listener, 1) != NULL)
            _exit(78);
        close(listener);
        close(pair[1]);
        body(argument);
        _exit(0);
    }
    seccomp_program_free(&program);
    close(pair[1]);
    char byte;
    int listener = -1;
    size_t count = 0;
    struct error *error = fd_receive(pair[0], &byte, 1, &listener, 1, &count);
    if (error == NULL) {
        struct pollfd ready = {.fd = listener, .events = POLLIN};
        while (poll(&ready, 1, 10000) > 0 && notify_handle(&watch->context, listener, "exec-7", NULL))
            continue;
        close(listener);
    }
    error_free(error);
    close(pair[0]);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool usable(void) {
    return geteuid() == 0;
}

/* --- mutating file calls --- */

struct run {
    const char *tree;
    const struct operation *operations;
    size_t count;
    bool root;
    struct results *results;
};

static void run_body(void *argument) {
    const struct run *run = argument;
    perform(run->tree, run->operations, run->count, run->root, run->results);
}

static size_t lines_with(const char *log, const char *part) {
    size_t count = 0;
    for (const char *at = log; (at = strstr(at, part)) != NULL; at += strlen(part))
        count++;
    return count;
}

/* The record for a path: its line, copied. */
static char *record_of(const char *log, const char *path) {
    char *part = text_formatted("\"path\":\"%s\"", path), *found = NULL;
    for (const char *line = log; *line != '\0' && found == NULL;) {
        size_t length = strcspn(line, "\n");
        char *copy = text_formatted("%.*s", (int)length, line);
        const char *file = strstr(copy, "\"file\":{");
        for (const char *at = file; at != NULL && found == NULL; at = strstr(at + 1, part))
            if (strncmp(at, part, strlen(part)) == 0)
                found = memory_copy_string(copy);
        free(copy);
        line += length + (line[length] == '\n');
    }
    free(part);
    return found;
}

static void compare_runs(const struct operation *operations, size_t count, bool root) {
    assert_true(count <= OPERATIONS_MAX);
    char directory[] = "/tmp/pinfold-tree-XXXXXX";
    assert_non_null(mkdtemp(directory));
    struct results *shared =
        mmap(NULL, 2 * sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);

    tree_make(directory);
    control_run(directory, operations, count, root, &shared[0]);
    tree_remove(directory);

    tree_make(directory);
    struct watch watch;
    struct policy policy = {.confined = true};
    watch_open(&watch, &policy);
    struct run run = {directory, operations, count, root, &shared[1]};
    int status = watched_run(&watch, run_body, &run);
    tree_remove(directory);
    char *log = watch_close(&watch);
    rmdir(directory);
    if (status == 77)
        skip();
    assert_int_equal(status, 0);

    bool failed = false;
    size_t records = 0;
    for (size_t i = 0; i < count; i++) {
        const struct operation *operation = &operations[i];
        int kernel = shared[0].errors[i], observed = shared[1].errors[i];
        if (kernel != observed || (operation->expected >= 0 && kernel != operation->expected)) {
            print_error("%s: the kernel says %s, with the observer %s, expected %s\n", operation->name,
                        strerrorname_np(kernel), strerrorname_np(observed),
                        strerrorname_np(operation->expected));
            failed = true;
        }
        if (operation->path == NULL)
            continue;
        records++;
        char *line = record_of(log, operation->path);
        char *activity = text_formatted("\"activity_id\":%d,", operation->activity);
        const char *reason =
            operation->expected == EROFS ? "\"fs.write.read_only\"" : "\"fs.permission.denied\"";
        if (line == NULL || strstr(line, activity) == NULL || strstr(line, reason) == NULL ||
            strstr(line, "\"exec-7\"") == NULL) {
            print_error("%s: the record for %s: %s\n", operation->name, operation->path,
                        line ? line : "none");
            failed = true;
        }
        free(line);
        free(activity);
    }
    size_t all = lines_with(log, "\"fs.write.read_only\"") + lines_with(log, "\"fs.permission.denied\"");
    if (all != records) {
        print_error("%zu records instead of %zu:\n%s\n", all, records, log);
        failed = true;
    }
    free(log);
    munmap(shared, 2 * sizeof *shared);
    assert_false(failed);
}

#define P(text) (long)(text)
#define HERE (long)AT_FDCWD

static void as_root(void **state) {
    (void)state;
    if (!usable())
        skip();
    static struct open_how write_how = {.flags = O_WRONLY},
                           beneath_how = {.flags = O_WRONLY, .resolve = RESOLVE_BENEATH},
                           create_how = {.flags = O_WRONLY | O_CREAT, .mode = 0600},
                           in_root_how = {
                               .flags = O_WRONLY | O_CREAT, .mode = 0600, .resolve = RESOLVE_IN_ROOT};
    static const struct timespec omit[2] = {{0, UTIME_OMIT}, {0, UTIME_OMIT}}, wrong[2] = {{0, -5}, {0, 0}};
    const struct operation operations[] = {
        {"open for writing", SYS_open, {P("/etc/open"), O_WRONLY}, EROFS, "/etc/open", 3},
        {"openat, append",
         SYS_openat,
         {HERE, P("/etc/../full/file"), O_WRONLY | O_APPEND},
         EROFS,
         "/full/file",
         3},
        {"openat from a descriptor", SYS_openat, {100, P("passwd"), O_RDWR}, EROFS, "/etc/passwd", 3},
        {"through a symlink", SYS_openat, {HERE, P("/etc/link"), O_RDWR | O_TRUNC}, EROFS, "/etc/linked", 3},
        {"open to read", SYS_openat, {HERE, P("/etc/passwd"), O_RDONLY}, 0, NULL, 0},
        {"O_CREAT on what is there",
         SYS_openat,
         {HERE, P("/etc/passwd"), O_RDONLY | O_CREAT, 0600},
         0,
         NULL,
         0},
        {"O_CREAT on what is missing",
         SYS_openat,
         {HERE, P("/etc/new-1"), O_RDONLY | O_CREAT, 0600},
         EROFS,
         "/etc/new-1",
         1},
        {"O_EXCL on what is there",
         SYS_openat,
         {HERE, P("/etc/open"), O_RDWR | O_CREAT | O_EXCL, 0600},
         EEXIST,
         NULL,
         0},
        {"O_EXCL on what is missing",
         SYS_openat,
         {100, P("new-2"), O_RDWR | O_CREAT | O_EXCL, 0600},
         EROFS,
         "/etc/new-2",
         1},
        {"O_EXCL on a symlink",
         SYS_openat,
         {100, P("dangling"), O_RDWR | O_CREAT | O_EXCL, 0600},
         EEXIST,
         NULL,
         0},
        {"a dangling symlink",
         SYS_openat,
         {100, P("dangling"), O_RDWR | O_CREAT, 0600},
         EROFS,
         "/etc/behind-dangling",
         1},
        {"a dangling symlink, no O_CREAT", SYS_openat, {100, P("dangling"), O_RDWR}, ENOENT, NULL, 0},
        {"a dangling symlink to a writable place",
         SYS_openat,
         {100, P("to-rw"), O_RDWR | O_CREAT, 0600},
         0,
         NULL,
         0},
        {"a dangling symlink, relative and out",
         SYS_openat,
         {HERE, P("missing"), O_RDWR | O_CREAT, 0600},
         EROFS,
         "/etc/behind-missing",
         1},
        {"up and out of the directory",
         SYS_openat,
         {HERE, P("../dir/new-3"), O_WRONLY | O_CREAT, 0600},
         EROFS,
         "/dir/new-3",
         1},
        {"a symlink up and out", SYS_openat, {HERE, P("up"), O_WRONLY}, EROFS, "/etc/upward", 3},
        {"an absolute symlink", SYS_openat, {HERE, P("absolute"), O_WRONLY}, EROFS, "/etc/far", 3},
        {"O_NOFOLLOW on a symlink",
         SYS_openat,
         {HERE, P("/etc/link"), O_WRONLY | O_NOFOLLOW},
         ELOOP,
         NULL,
         0},
        {"a symlink to itself", SYS_openat, {HERE, P("/dir/loop"), O_WRONLY | O_CREAT, 0600}, ELOOP, NULL, 0},
        {"in a missing directory",
         SYS_openat,
         {HERE, P("/none/new"), O_WRONLY | O_CREAT, 0600},
         ENOENT,
         NULL,
         0},
        {"below a file",
         SYS_openat,
         {HERE, P("/etc/passwd/new"), O_WRONLY | O_CREAT, 0600},
         ENOTDIR,
         NULL,
         0},
        {"a directory", SYS_openat, {HERE, P("/etc"), O_WRONLY}, EISDIR, NULL, 0},
        {"a slash at the end",
         SYS_openat,
         {HERE, P("/etc/new-4/"), O_WRONLY | O_CREAT, 0600},
         EISDIR,
         NULL,
         0},
        {"a slash after a file", SYS_openat, {HERE, P("/etc/passwd/"), O_WRONLY}, ENOTDIR, NULL, 0},
        {"no path", SYS_openat, {HERE, P(""), O_WRONLY}, ENOENT, NULL, 0},
        {"a wrong address", SYS_openat, {HERE, 8, O_WRONLY}, EFAULT, NULL, 0},
        {"a wrong descriptor", SYS_openat, {99, P("new"), O_WRONLY | O_CREAT, 0600}, EBADF, NULL, 0},
        {"a device", SYS_openat, {HERE, P("/etc/null"), O_WRONLY | O_CREAT | O_TRUNC, 0600}, -1, NULL, 0},
        {"a pipe", SYS_openat, {HERE, P("/etc/fifo"), O_RDWR | O_NONBLOCK}, 0, NULL, 0},
        {"a pipe without a reader", SYS_openat, {HERE, P("/etc/fifo"), O_WRONLY | O_NONBLOCK}, -1, NULL, 0},
        {"O_PATH", SYS_openat, {HERE, P("/etc/open"), O_PATH | O_RDWR}, 0, NULL, 0},
        {"O_TRUNC alone", SYS_openat, {HERE, P("/other/file"), O_RDONLY | O_TRUNC}, EROFS, "/other/file", 3},
        {"O_TMPFILE", SYS_openat, {HERE, P("/dir"), O_TMPFILE | O_RDWR, 0600}, EROFS, "/dir", 1},
        {"O_TMPFILE in a writable place", SYS_openat, {HERE, P("/rw"), O_TMPFILE | O_RDWR, 0600}, 0, NULL, 0},
        {"a read-only file in a writable place",
         SYS_openat,
         {HERE, P("protected"), O_RDWR | O_CREAT, 0600},
         EROFS,
         "/rw/protected",
         3},
        {"a new file in a writable place", SYS_openat, {HERE, P("new"), O_RDWR | O_CREAT, 0600}, 0, NULL, 0},
        {"openat2",
         SYS_openat2,
         {HERE, P("/etc/new-5"), P(&create_how), sizeof create_how},
         EROFS,
         "/etc/new-5",
         1},
        {"openat2 for writing", SYS_openat2, {HERE, P("file"), P(&write_how), sizeof write_how}, 0, NULL, 0},
        {"openat2 beneath",
         SYS_openat2,
         {HERE, P("../etc/open"), P(&beneath_how), sizeof beneath_how},
         EXDEV,
         NULL,
         0},
        {"openat2 in root",
         SYS_openat2,
         {100, P("/new-6"), P(&in_root_how), sizeof in_root_how},
         EROFS,
         "/etc/new-6",
         1},
        {"creat", SYS_creat, {P("/new-7"), 0600}, EROFS, "/new-7", 1},

        {"mkdir", SYS_mkdir, {P("/etc/new-8"), 0700}, EROFS, "/etc/new-8", 1},
        {"mkdir with a slash", SYS_mkdirat, {100, P("new-9/"), 0700}, EROFS, "/etc/new-9", 1},
        {"mkdir of what is there", SYS_mkdirat, {HERE, P("/etc"), 0700}, EEXIST, NULL, 0},
        {"mkdir of /", SYS_mkdirat, {HERE, P("/"), 0700}, EEXIST, NULL, 0},
        {"mkdir of ..", SYS_mkdirat, {HERE, P("/etc/.."), 0700}, EEXIST, NULL, 0},
        {"mkdir -p", SYS_mkdirat, {HERE, P("/rw/sub"), 0700}, EEXIST, NULL, 0},
        {"mknod", SYS_mknodat, {HERE, P("/etc/new-10"), S_IFIFO | 0600, 0}, EROFS, "/etc/new-10", 1},
        {"mknod of a directory", SYS_mknodat, {HERE, P("/etc/new-11"), S_IFDIR | 0600, 0}, -1, NULL, 0},
        {"mknod with a slash", SYS_mknodat, {HERE, P("/etc/new-11/"), S_IFREG | 0600, 0}, ENOENT, NULL, 0},
        {"symlink", SYS_symlink, {P("x"), P("/etc/new-12")}, EROFS, "/etc/new-12", 1},
        {"symlinkat", SYS_symlinkat, {P("x"), 100, P("new-13")}, EROFS, "/etc/new-13", 1},
        {"symlink on what is there", SYS_symlinkat, {P("x"), 100, P("open")}, EEXIST, NULL, 0},
        {"link", SYS_link, {P("/etc/passwd"), P("/etc/new-14")}, EROFS, "/etc/new-14", 1},
        {"linkat across mounts", SYS_linkat, {HERE, P("file"), 100, P("new-15"), 0}, EROFS, "/etc/new-15", 1},
        {"link of what is missing", SYS_linkat, {HERE, P("none"), 100, P("new-16"), 0}, ENOENT, NULL, 0},
        {"unlink", SYS_unlink, {P("/etc/unlinked")}, EROFS, "/etc/unlinked", 4},
        {"unlink of what is missing", SYS_unlinkat, {100, P("never"), 0}, EROFS, "/etc/never", 4},
        {"unlink of ..", SYS_unlinkat, {100, P(".."), 0}, EISDIR, NULL, 0},
        {"unlink in a writable place", SYS_unlinkat, {HERE, P("new"), 0}, 0, NULL, 0},
        {"unlink of a symlink", SYS_unlinkat, {HERE, P("absolute"), 0}, 0, NULL, 0},
        {"rmdir", SYS_rmdir, {P("/removed/")}, EROFS, "/removed", 4},
        {"unlinkat AT_REMOVEDIR", SYS_unlinkat, {HERE, P("/full"), AT_REMOVEDIR}, EROFS, "/full", 4},
        {"unlinkat with a wrong flag", SYS_unlinkat, {HERE, P("/full"), 1}, EINVAL, NULL, 0},
        {"rename", SYS_rename, {P("/etc/a"), P("/etc/b")}, EROFS, "/etc/a", 5},
        {"renameat2", SYS_renameat2, {100, P("c"), HERE, P("/dir/c"), 1}, EROFS, "/etc/c", 5},
        {"rename out of the mount", SYS_rename, {P("/etc/passwd"), P("/rw/passwd")}, EXDEV, NULL, 0},
        {"rename into the mount", SYS_rename, {P("/rw/file"), P("/etc/passwd")}, EXDEV, NULL, 0},
        {"renameat2 with a wrong flag",
         SYS_renameat2,
         {HERE, P("/etc/a"), HERE, P("/etc/b"), 64},
         EINVAL,
         NULL,
         0},
        {"rename in a writable place", SYS_rename, {P("file"), P("file-2")}, 0, NULL, 0},

        {"chmod", SYS_chmod, {P("/changed"), 0700}, EROFS, "/changed", 3},
        {"chmod of a device", SYS_chmod, {P("/etc/null"), 0600}, EROFS, "/etc/null", 3},
        {"chmod of what is missing", SYS_fchmodat, {HERE, P("/etc/none"), 0700}, ENOENT, NULL, 0},
        {"fchmodat2", 452, {HERE, P("/etc/fifo"), 0700, 0}, EROFS, "/etc/fifo", 3},
        {"fchmodat2 with a wrong flag", 452, {HERE, P("/etc/fifo"), 0700, 1}, EINVAL, NULL, 0},
        {"lchown", SYS_lchown, {P("/etc/link"), 0, 0}, EROFS, "/etc/link", 3},
        {"chown", SYS_chown, {P("/"), 0, 0}, EROFS, "/", 3},
        {"fchownat of nothing", SYS_fchownat, {100, P(""), 0, 0, AT_EMPTY_PATH}, EROFS, NULL, 0},
        {"utimensat", SYS_utimensat, {100, P("to-rw"), 0, AT_SYMLINK_NOFOLLOW}, EROFS, "/etc/to-rw", 3},
        {"utimensat that omits both", SYS_utimensat, {100, P("open"), P(omit), 0}, 0, NULL, 0},
        {"utimensat with a wrong time", SYS_utimensat, {100, P("open"), P(wrong), 0}, EINVAL, NULL, 0},
        {"truncate", SYS_truncate, {P("/rw/cut"), 0}, EROFS, "/rw/cut", 3},
        {"truncate of a directory", SYS_truncate, {P("/etc"), 0}, EISDIR, NULL, 0},
        {"setxattr", SYS_setxattr, {P("/etc"), P("user.a"), P("b"), 1, 0}, EROFS, "/etc", 3},
        {"lremovexattr", SYS_lremovexattr, {P("/etc/dangling"), P("user.a")}, EROFS, "/etc/dangling", 3},
    };
    compare_runs(operations, sizeof operations / sizeof *operations, true);
}

/* For a user whom the mode bits stop first: the kernel says EACCES, and there is nothing to record about
 * mounts. */
static void as_nobody(void **state) {
    (void)state;
    if (!usable())
        skip();
    static const struct timespec times[2] = {{1, 0}, {1, 0}};
    const struct operation operations[] = {
        {"not its file", SYS_openat, {HERE, P("/etc/far"), O_WRONLY}, EACCES, "/etc/far", 3},
        {"not its file, O_TRUNC",
         SYS_openat,
         {HERE, P("/etc/passwd"), O_WRONLY | O_TRUNC},
         EROFS,
         "/etc/passwd",
         3},
        {"everybody's file", SYS_openat, {HERE, P("/etc/open"), O_WRONLY}, EROFS, "/etc/open", 3},
        {"truncate of what is not its", SYS_truncate, {P("/full/file"), 0}, EACCES, "/full/file", 3},
        {"truncate", SYS_truncate, {P("/other/file"), 0}, EROFS, "/other/file", 3},
        {"a new file", SYS_openat, {HERE, P("/new"), O_WRONLY | O_CREAT, 0600}, EROFS, "/new", 1},
        {"a new file where it may", SYS_openat, {HERE, P("new"), O_WRONLY | O_CREAT, 0600}, 0, NULL, 0},
        {"chmod of what is not its", SYS_chmod, {P("/dir"), 0700}, EROFS, "/dir", 3},
        {"unlink", SYS_unlinkat, {100, P("null"), 0}, EROFS, "/etc/null", 4},
        {"create where it may not", SYS_creat, {P("/rw/closed/new-1"), 0600}, EACCES, "/rw/closed/new-1", 1},
        {"mkdir where it may not", SYS_mkdir, {P("/rw/closed/new-2"), 0700}, EACCES, "/rw/closed/new-2", 1},
        {"mkdir of what is there", SYS_mkdir, {P("/rw/closed/file"), 0700}, EEXIST, NULL, 0},
        {"symlink where it may not",
         SYS_symlink,
         {P("a"), P("/rw/closed/new-3")},
         EACCES,
         "/rw/closed/new-3",
         1},
        {"unlink where it may not", SYS_unlink, {P("/rw/closed/file-1")}, EACCES, "/rw/closed/file-1", 4},
        {"unlink of nothing", SYS_unlink, {P("/rw/closed/none")}, ENOENT, NULL, 0},
        {"rename where it may not",
         SYS_rename,
         {P("/rw/closed/file-2"), P("/rw/closed/new-4")},
         EACCES,
         "/rw/closed/file-2",
         5},
        {"rename of nothing", SYS_rename, {P("/rw/closed/none"), P("/rw/closed/new-5")}, ENOENT, NULL, 0},
        {"write to another's", SYS_open, {P("/rw/closed/file-3"), O_WRONLY}, EACCES, "/rw/closed/file-3", 3},
        {"read and truncate another's",
         SYS_open,
         {P("/rw/closed/file-4"), O_RDONLY | O_TRUNC},
         EACCES,
         "/rw/closed/file-4",
         3},
        {"chmod of another's", SYS_chmod, {P("/rw/closed/file-5"), 0600}, EPERM, "/rw/closed/file-5", 3},
        {"chown of another's", SYS_lchown, {P("/rw/closed/file-6"), 0, 0}, EPERM, "/rw/closed/file-6", 3},
        {"times of another's",
         SYS_utimensat,
         {HERE, P("/rw/closed/file-7"), P(&times), 0},
         EPERM,
         "/rw/closed/file-7",
         3},
        {"another's touched",
         SYS_utimensat,
         {HERE, P("/rw/closed/file-8"), 0, 0},
         EACCES,
         "/rw/closed/file-8",
         3},
        {"another's touched, the old way",
         SYS_utimes,
         {P("/rw/closed/file-9"), 0},
         EACCES,
         "/rw/closed/file-9",
         3},
        {"another's that is writable, touched", SYS_utimensat, {HERE, P("/rw/open"), 0, 0}, 0, NULL, 0},
        {"an attribute of another's",
         SYS_setxattr,
         {P("/rw/closed/file"), P("user.a"), P("b"), 1, 0},
         EACCES,
         "/rw/closed/file",
         3},
    };
    compare_runs(operations, sizeof operations / sizeof *operations, false);
}

/* What the record says to a person and to a machine. */
static void texts_of_a_file(void **state) {
    (void)state;
    if (!usable())
        skip();
    const struct operation operations[] = {
        {"root", SYS_openat, {HERE, P("/etc/a\"b"), O_WRONLY | O_CREAT, 0600}, EROFS, NULL, 0},
        {"other", SYS_mkdirat, {HERE, P("/other/new"), 0600}, EROFS, NULL, 0},
    };
    char directory[] = "/tmp/pinfold-tree-XXXXXX";
    assert_non_null(mkdtemp(directory));
    tree_make(directory);
    /* As a container has it: its root is a mount, not a directory of one. */
    struct watch watch;
    struct policy policy = {.confined = true};
    watch_open(&watch, &policy);
    struct results results = {0};
    struct run run = {directory, operations, 2, true, &results};
    int status = watched_run(&watch, run_body, &run);
    tree_remove(directory);
    rmdir(directory);
    char *log = watch_close(&watch);
    if (status == 77)
        skip();
    assert_int_equal(lines_with(log, "\n"), 2);
    char *second = strchr(log, '\n') + 1;
    second[-1] = '\0';
    static const char *const parts[] = {
        "\"remedy\":\"filesystem: {writable: [\\\"@default\\\", \\\"/etc\\\"]}\"",
        "\"message\":\"The attempt at creating /etc/a\\\"b was denied: it lies on a root file system that is "
        "read-only.\"",
        "filesystem.default: deny",
        "built-in agent",
        "\"class_uid\":1001",
        "\"action_id\":2",
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(log, parts[i]) == NULL)
            fail_msg("%s is not in %s", parts[i], log);
    assert_null(strstr(second, "remedy"));
    assert_null(strstr(second, "filesystem.default"));
    assert_non_null(strstr(second, "it lies on a mount that is read-only"));
    free(log);
}

/* --- denied calls --- */

struct denied_case {
    const char *name; /* of the record; NULL: answered by the filter */
    long number;
    long arguments[6];
    int expected;
};
static const struct denied_case denied_cases[] = {
    {"mount", SYS_mount, {0}, EPERM},
    {"umount2", SYS_umount2, {0}, EPERM},
    {"open_tree_attr", 467, {0}, EPERM},
    {"unshare", SYS_unshare, {CLONE_NEWUSER}, EPERM},
    {"clone", SYS_clone, {CLONE_NEWUSER | SIGCHLD}, EPERM},
    {NULL, SYS_clone3, {0}, ENOSYS},
    {"setns", SYS_setns, {-1, 0}, EPERM},
    {"ptrace", SYS_ptrace, {0}, EPERM},
    {"process_vm_readv", SYS_process_vm_readv, {0}, EPERM},
    {"bpf", SYS_bpf, {0}, EPERM},
    {"keyctl", SYS_keyctl, {0}, EPERM},
    {"io_uring_setup", SYS_io_uring_setup, {0}, ENOSYS},
    {NULL, SYS_io_uring_enter, {0}, ENOSYS},
    {"socket", SYS_socket, {AF_ALG, SOCK_SEQPACKET, 0}, EAFNOSUPPORT},
    {NULL, SYS_socket, {AF_NETLINK, SOCK_RAW, 9}, EINVAL},
    {"socket", SYS_socket, {AF_NETLINK, SOCK_RAW, 16}, EPROTONOSUPPORT},
    {"socketpair", SYS_socketpair, {AF_TIPC, SOCK_STREAM, 0, 0}, EAFNOSUPPORT},
    {"ioctl", SYS_ioctl, {0, TIOCSTI}, EPERM},
    {NULL, SYS_seccomp, {1, 8, 0}, EBUSY},
    {NULL, SYS_getpid, {0}, 0},
    {NULL, SYS_unshare, {CLONE_FILES}, 0},
};
#define DENIED_COUNT (sizeof denied_cases / sizeof *denied_cases)

static void denied_body(void *argument) {
    struct results *results = argument;
    for (size_t i = 0; i < DENIED_COUNT; i++) {
        const long *a = denied_cases[i].arguments;
        errno = 0;
        long result = syscall(denied_cases[i].number, a[0], a[1], a[2], a[3], a[4], a[5]);
        results->errors[i] = result == -1 ? errno : 0;
    }
#if defined(__x86_64__)
    /* mount by the 32-bit door; a kernel without one answers with a signal */
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGSEGV, SIG_DFL);
        long result = 21;
        __asm__ volatile("int $0x80" : "+a"(result) : "b"(0), "c"(0), "d"(0), "S"(0), "D"(0) : "memory");
        _exit((int)-result);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    results->errors[DENIED_COUNT] = WIFEXITED(status) ? WEXITSTATUS(status) : ENOSYS;
#endif
}

static void denied_calls(void **state) {
    (void)state;
    struct results *results =
        mmap(NULL, sizeof *results, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct watch watch;
    struct policy policy = {.confined = true};
    watch_open(&watch, &policy);
    /* Rules that cannot be read are said once. (A warden has none then and denies all; here are the test's.)
     */
    watch.plan.unread_rules = memory_copy_string("{\"denied\": [");
    int status = watched_run(&watch, denied_body, results);
    char *log = watch_close(&watch);
    if (status == 77)
        skip();
    assert_int_equal(status, 0);
    assert_int_equal(lines_with(log, "\"status_detail\":\"mechanism.unavailable\""), 1);
    size_t records = 0;
    for (size_t i = 0; i < DENIED_COUNT; i++) {
        if (results->errors[i] != denied_cases[i].expected)
            fail_msg("case %zu (call %ld): %s", i, denied_cases[i].number,
                     strerrorname_np(results->errors[i]));
        if (denied_cases[i].name == NULL)
            continue;
        records++;
        char *part = text_formatted("\"activity_name\":\"%s\"", denied_cases[i].name);
        if (strstr(log, part) == NULL)
            fail_msg("no record for %s", denied_cases[i].name);
        free(part);
    }
#if defined(__x86_64__)
    if (results->errors[DENIED_COUNT] != ENOSYS) { /* a kernel without 32-bit programs */
        assert_int_equal(results->errors[DENIED_COUNT], EPERM);
        records++;
    }
#endif
    /* Repeats of (reason, subject, object) are written at 1, 2, 4: mount came twice, and so did socket. */
    assert_int_equal(lines_with(log, "\"syscall.not_allowed\""), records);
    assert_non_null(strstr(log, "processes: {userns: true}"));
    assert_non_null(strstr(log, "socket for AF_ALG (38) was denied"));
    assert_int_equal(lines_with(log, "\"class_uid\":1007"), records);
    free(log);
    munmap(results, sizeof *results);
}

static void killed_body(void *argument) {
    (void)argument;
    /* Two threads' worth of trouble: a child that is killed while its call may be pending. */
    for (int i = 0; i < 20; i++) {
        pid_t pid = fork();
        if (pid == 0)
            for (;;)
                syscall(SYS_mount, NULL, NULL, NULL, 0, NULL);
        usleep(500);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
}

/* A caller that dies meanwhile is no error, and the listener goes on. */
static void callers_that_die(void **state) {
    (void)state;
    struct watch watch;
    struct policy policy = {.confined = true};
    watch_open(&watch, &policy);
    int status = watched_run(&watch, killed_body, NULL);
    char *log = watch_close(&watch);
    if (status == 77)
        skip();
    assert_int_equal(status, 0);
    assert_true(lines_with(log, "\n") > 0);
    free(log);
}

#if defined(__x86_64__)
static void names_of_numbers(void **state) {
    (void)state;
    static const struct {
        uint32_t arch;
        int number;
        const char *name;
    } cases[] = {
        {AUDIT_ARCH_X86_64, SYS_mount, "mount"},
        {AUDIT_ARCH_X86_64, 0x40000000 | SYS_mount, "mount"},
        {AUDIT_ARCH_I386, 22, "umount"},
        {AUDIT_ARCH_I386, 359, "socket"},
        {AUDIT_ARCH_X86_64, 467, "open_tree_attr"},
        {AUDIT_ARCH_X86_64, 0x40000000 | 467, "open_tree_attr"},
        {AUDIT_ARCH_X86_64, 9999, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[64];
        syscall_name(cases[i].arch, cases[i].number, name, sizeof name);
        assert_string_equal(name, cases[i].name);
    }
}
#endif

int main(void) {
    /* Mounts of its own. */
    if (geteuid() == 0 &&
        (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)) {
        perror("unshare");
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_root),
        cmocka_unit_test(as_nobody),
        cmocka_unit_test(texts_of_a_file),
        cmocka_unit_test(denied_calls),
        cmocka_unit_test(callers_that_die),
#if defined(__x86_64__)
        cmocka_unit_test(names_of_numbers),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
