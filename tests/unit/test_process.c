/* What processes of ours say to each other, and whom they take for whom. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "process/namespaces.h"
#include "sys/calls.h"

static void succeed(struct error *error) {
    if (error != NULL)
        fail_msg("%s", error->message);
}

/* --- the last word of a process --- */

/* A socket pair whose other end was left unread, with `error` as its last word, and closed. */
static int left_unread(const struct error *error) {
    int ours, theirs;
    succeed(fd_pair(&ours, &theirs));
    assert_int_equal(send(ours, "unread", 6, 0), 6);
    if (error != NULL)
        error_send(theirs, error);
    close(theirs);
    return ours;
}

static void what_was_said_comes_before_the_reset(void **state) {
    (void)state;
    struct error *word = error_new(ERROR_REFUSED, "the log cannot be opened");
    /* The kernel puts the reset first. */
    int socket = left_unread(word);
    char byte;
    assert_int_equal(recv(socket, &byte, 1, MSG_PEEK), -1);
    assert_int_equal(errno, ECONNRESET);
    close(socket);

    socket = left_unread(word);
    struct error *received = error_receive(socket);
    assert_non_null(received);
    assert_string_equal(received->message, "the log cannot be opened");
    assert_int_equal(received->kind, ERROR_REFUSED);
    error_free(received);
    error_free(word);
    close(socket);
}

static void a_reset_without_a_word_is_an_end(void **state) {
    (void)state;
    int socket = left_unread(NULL);
    struct error *received = error_receive(socket);
    assert_non_null(received);
    assert_int_equal(received->number, EPIPE);
    error_free(received);
    close(socket);
}

/* --- another's network namespace --- */

static fallible work_counted(void *data) {
    ++*(int *)data;
    return NULL;
}

static fallible rights_dropped(void *data) {
    (void)data;
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {0};
    return syscall(SYS_capset, &header, none) < 0 ? error_system(errno, "drop", "all capabilities") : NULL;
}

/* A process that waits, in a network namespace of its own where `apart`. */
static pid_t waiting_process(bool apart, int *pidfd) {
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t pid = sys_clone3(apart ? CLONE_NEWNET : 0, pidfd, -1);
    if (pid == 0) {
        (void)!write(ready[1], "x", 1);
        for (;;)
            pause();
    }
    assert_true(pid > 0);
    char byte;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static void process_end(pid_t pid) {
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* The number has become another's, which shares our namespace: here, ours. */
static void a_process_that_has_ended_shares_no_namespace(void **state) {
    (void)state;
    int pidfd, calls = 0;
    process_end(waiting_process(false, &pidfd));
    struct error *(*const ways[])(int, pid_t, struct error *(*)(void *), void *) = {namespace_run_in_network,
                                                                                    namespace_visit_network};
    for (size_t i = 0; i < 2; i++) {
        struct error *error = ways[i](pidfd, getpid(), work_counted, &calls);
        assert_non_null(error);
        assert_int_equal(error->kind, ERROR_NOT_RUNNING);
        error_free(error);
    }
    assert_int_equal(calls, 0);
    close(pidfd);
}

static void a_living_one_that_shares_ours_needs_no_visit(void **state) {
    (void)state;
    int pidfd, calls = 0;
    pid_t pid = waiting_process(false, &pidfd);
    succeed(namespace_run_in_network(pidfd, pid, work_counted, &calls));
    succeed(namespace_visit_network(pidfd, pid, work_counted, &calls));
    assert_int_equal(calls, 2);
    process_end(pid);
    close(pidfd);
}

static void who_cannot_come_back_says_so(void **state) {
    (void)state;
    if (geteuid() != 0)
        skip();
    int pidfd, ours, theirs;
    pid_t pid = waiting_process(true, &pidfd);
    succeed(fd_pair(&ours, &theirs));
    pid_t child = fork();
    if (child == 0) {
        error_send(theirs, namespace_visit_network(pidfd, pid, rights_dropped, NULL));
        _exit(0);
    }
    close(theirs);
    struct error *error = error_receive(ours);
    assert_non_null(error);
    assert_string_equal(error->message,
                        "leave the container's network namespace: not allowed by the system (EPERM)");
    error_free(error);
    assert_int_equal(waitpid(child, NULL, 0), child);
    process_end(pid);
    close(pidfd);
    close(ours);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_said_comes_before_the_reset),
        cmocka_unit_test(a_reset_without_a_word_is_an_end),
        cmocka_unit_test(a_process_that_has_ended_shares_no_namespace),
        cmocka_unit_test(a_living_one_that_shares_ours_needs_no_visit),
        cmocka_unit_test(who_cannot_come_back_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
