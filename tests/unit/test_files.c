/* Decoys under a fanotify permission group: opens are denied and recorded, by whatever way they come. Needs
 * root. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/memory.h"
#include "warden/observers.h"

struct trap {
    struct warden_context context;
    struct record_subject subject;
    char directory[64]; /* a tmpfs: the decoys are mounted over files of another one */
    char *decoys[2];
    char *plain;
};

static void succeed(struct error *error) {
    if (error != NULL)
        fail_msg("%s", error->message);
}

static char *make_file(const char *directory, const char *name) {
    char *path = text_formatted("%s/%s", directory, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0444);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "fake\n", 5), 5);
    close(fd);
    return path;
}

static ino_t own_pid_namespace(void) {
    struct stat status;
    assert_int_equal(stat("/proc/self/ns/pid", &status), 0);
    return status.st_ino;
}

static bool trap_open(struct trap *trap) {
    *trap = (struct trap){.directory = "/tmp/pinfold-files-XXXXXX"};
    assert_non_null(mkdtemp(trap->directory));
    assert_int_equal(mount("test", trap->directory, "tmpfs", 0, "mode=755"), 0);
    trap->decoys[0] = make_file(trap->directory, "id_rsa");
    trap->decoys[1] = make_file(trap->directory, "credentials");
    trap->plain = make_file(trap->directory, "plain");
    trap->subject = (struct record_subject){.container_id = (char *)"c1",
                                            .container_name = (char *)"c1",
                                            .run_id = (char *)"run-1",
                                            .hostname = (char *)"host",
                                            .policy_name = (char *)"agent",
                                            .policy_digest = (char *)"00",
                                            .log_path = text_formatted("%s/log", trap->directory)};
    trap->context = (struct warden_context){.policy_origin = "built-in agent",
                                            .on_denied = POLICY_DENIED_BLOCK_AND_LOG,
                                            /* this process's own: the children stand for the container */
                                            .pid_namespace = own_pid_namespace(),
                                            .decoy_group = -1};
    succeed(record_log_open(&trap->subject, NULL, &trap->context.log));
    int fds[2];
    for (int i = 0; i < 2; i++) {
        string_list_append(&trap->context.decoy_paths, trap->decoys[i]);
        fds[i] = open(trap->decoys[i], O_RDONLY | O_CLOEXEC);
        assert_true(fds[i] >= 0);
    }
    struct error *error = files_watch_decoys(fds, 2, &trap->context.decoy_group);
    close(fds[0]);
    close(fds[1]);
    if (error != NULL)
        print_message("%s\n", error->message);
    bool usable = error == NULL;
    error_free(error);
    return usable;
}

/* Lets a child run and answers for it; gives back its exit status. */
static int trap_watch(struct trap *trap, int (*body)(struct trap *)) {
    int pair[2];
    assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(pair[0]);
        close(trap->context.decoy_group);
        _exit(body(trap));
    }
    close(pair[1]);
    for (;;) {
        struct pollfd ready[2] = {{.fd = trap->context.decoy_group, .events = POLLIN}, {.fd = pair[0]}};
        assert_true(poll(ready, 2, 10000) > 0);
        if ((ready[0].revents & POLLIN) != 0)
            files_handle(&trap->context);
        else if (ready[1].revents != 0)
            break;
    }
    close(pair[0]);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Returns the log's text. */
static char *trap_close(struct trap *trap) {
    fd_close(trap->context.decoy_group);
    error_ignore(record_log_flush(trap->context.log, true));
    record_log_close(trap->context.log);
    struct text text = {0};
    succeed(file_read(AT_FDCWD, trap->subject.log_path, 1 << 20, &text));
    string_list_free(&trap->context.decoy_paths);
    free(trap->subject.log_path);
    free(trap->decoys[0]);
    free(trap->decoys[1]);
    free(trap->plain);
    umount2(trap->directory, MNT_DETACH);
    rmdir(trap->directory);
    return text.data != NULL ? text_take(&text) : memory_copy_string("");
}

static size_t lines_with(const char *log, const char *part) {
    size_t count = 0;
    for (const char *at = log; (at = strstr(at, part)) != NULL; at += strlen(part))
        count++;
    return count;
}

static bool opens(const char *path, int *number) {
    errno = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    *number = errno;
    close(fd);
    return fd >= 0;
}

static int open_all(struct trap *trap) {
    int number;
    if (opens(trap->decoys[0], &number) || number != EPERM)
        return 1;
    if (!opens(trap->plain, &number))
        return 2;
    /* by another name, and without reading */
    char *link = text_formatted("%s/link", trap->directory);
    if (symlink(trap->decoys[1], link) != 0 || opens(link, &number) || number != EPERM)
        return 3;
    struct stat status;
    if (stat(trap->decoys[0], &status) != 0)
        return 4;
    free(link);
    return 0;
}

static void opens_are_denied_and_recorded(void **state) {
    (void)state;
    struct trap trap;
    if (geteuid() != 0 || !trap_open(&trap))
        skip();
    int status = trap_watch(&trap, open_all);
    int number;
    /* this process is the warden */
    assert_true(opens(trap.plain, &number));
    char *paths[2] = {memory_copy_string(trap.decoys[0]), memory_copy_string(trap.decoys[1])};
    char *log = trap_close(&trap);
    assert_int_equal(status, 0);
    assert_int_equal(lines_with(log, "\"fs.decoy.opened\""), 2);
    assert_int_equal(lines_with(log, "\"activity_id\":14,"), 2);
    assert_int_equal(lines_with(log, "\"class_uid\":1001"), 2);
    assert_int_equal(lines_with(log, "\"action_id\":2"), 2);
    for (int i = 0; i < 2; i++) {
        char *part =
            text_formatted("\"remedy\":\"filesystem: {readable: [\\\"@default\\\", \\\"%s\\\"]}\"", paths[i]);
        assert_int_equal(lines_with(log, part), 1);
        free(part);
        part = text_formatted("\"path\":\"%s\"", paths[i]);
        assert_int_equal(lines_with(log, part), 1);
        free(part);
        free(paths[i]);
    }
    free(log);
}

static int open_first(struct trap *trap) {
    int number;
    return opens(trap->decoys[0], &number) ? 20 : number;
}

/* A process of the machine, which lives in the warden's pid namespace while the container does not. */
static void the_machine_is_let_through(void **state) {
    (void)state;
    struct trap trap;
    if (geteuid() != 0 || !trap_open(&trap))
        skip();
    trap.context.pid_namespace = 1; /* of no process */
    int status = trap_watch(&trap, open_first);
    char *log = trap_close(&trap);
    assert_int_equal(status, 20);
    assert_string_equal(log, "");
    free(log);
}

static int open_in_a_pid_namespace(struct trap *trap) {
    if (unshare(CLONE_NEWPID) != 0)
        return 30;
    pid_t pid = fork();
    if (pid == 0)
        _exit(open_first(trap));
    int status;
    waitpid(pid, &status, 0);
    return WEXITSTATUS(status);
}

/* As a container is: in a pid namespace that is not the warden's. */
static void another_pid_namespace_is_denied(void **state) {
    (void)state;
    struct trap trap;
    if (geteuid() != 0 || !trap_open(&trap))
        skip();
    trap.context.pid_namespace = 1;
    int status = trap_watch(&trap, open_in_a_pid_namespace);
    char *log = trap_close(&trap);
    if (status == 30)
        skip();
    assert_int_equal(status, EPERM);
    assert_int_equal(lines_with(log, "\"fs.decoy.opened\""), 1);
    free(log);
}

static int open_in_a_root(struct trap *trap) {
    /* The decoy seen by another path, as through a bind mount into a container's root. */
    char *root = text_formatted("%s/root", trap->directory);
    if (mkdir(root, 0755) != 0 || chroot(trap->directory) != 0 || chdir("/") != 0)
        return 31;
    free(root);
    int number;
    return opens("/id_rsa", &number) ? 20 : number;
}

static void the_path_is_the_containers(void **state) {
    (void)state;
    struct trap trap;
    if (geteuid() != 0 || !trap_open(&trap))
        skip();
    string_list_free(&trap.context.decoy_paths);
    string_list_append(&trap.context.decoy_paths, "/home/agent/.ssh/id_rsa");
    int status = trap_watch(&trap, open_in_a_root);
    char *log = trap_close(&trap);
    assert_int_equal(status, EPERM);
    assert_int_equal(lines_with(log, "\"path\":\"/home/agent/.ssh/id_rsa\""), 1);
    free(log);
}

/* Without CAP_SYS_ADMIN of the machine: noticed, not denied, and without a name. */
static void watched_without_privilege(void **state) {
    (void)state;
    struct trap trap;
    if (geteuid() != 0)
        skip();
    /* The warden's side in a child of another uid; the log is opened as root before. */
    bool usable = trap_open(&trap);
    fd_close(trap.context.decoy_group);
    if (!usable)
        skip();
    pid_t pid = fork();
    if (pid == 0) {
        int fds[2] = {open(trap.decoys[0], O_RDONLY | O_CLOEXEC), open(trap.decoys[1], O_RDONLY | O_CLOEXEC)};
        if (setgid(65534) != 0 || setuid(65534) != 0)
            _exit(40);
        struct error *error = files_watch_decoys(fds, 2, &trap.context.decoy_group);
        int number;
        if (error != NULL || !opens(trap.decoys[1], &number) || !opens(trap.plain, &number))
            _exit(41);
        files_handle(&trap.context);
        files_handle(&trap.context); /* nothing more: does not wait */
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    trap.context.decoy_group = -1;
    char *path = memory_copy_string(trap.decoys[1]), *log = trap_close(&trap);
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(lines_with(log, "\"fs.decoy.opened\""), 1);
    assert_int_equal(lines_with(log, "\"action_id\":3"), 1);
    char *part = text_formatted("\"path\":\"%s\"", path);
    assert_int_equal(lines_with(log, part), 1);
    free(part);
    free(path);
    free(log);
}

static void what_cannot_be_watched(void **state) {
    (void)state;
    if (geteuid() != 0)
        skip();
    int group = 5, wrong = -1;
    struct error *error = files_watch_decoys(&wrong, 1, &group);
    assert_non_null(error);
    assert_int_equal(error->number, EBADF);
    assert_int_equal(group, -1);
    error_free(error);
}

int main(void) {
    if (geteuid() == 0 &&
        (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)) {
        perror("unshare");
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opens_are_denied_and_recorded),   cmocka_unit_test(the_machine_is_let_through),
        cmocka_unit_test(another_pid_namespace_is_denied), cmocka_unit_test(the_path_is_the_containers),
        cmocka_unit_test(watched_without_privilege),       cmocka_unit_test(what_cannot_be_watched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
