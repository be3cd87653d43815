/* broker/: what it reads of files and answers, and what its filter lets through. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "broker/broker.h"
#include "broker/launch.h"
#include "broker/parts.h"

static void reads_resolver_and_hosts(void **state) {
    static const char resolver[] =
        "# one\nnameserver 192.0.2.1 ; two\nsearch x\nnameserver\nnameserver junk\n"
        "nameserver 2001:db8::1\nnameserver 192.0.2.2\nnameserver 192.0.2.3";
    static const char hosts[] = "192.0.2.9 One two # three\nno.address x\n::1 localhost\n192.0.2.8";
    broker_plan_owned struct broker_plan plan = {0};
    (void)state;
    broker_plan_read_resolver(&plan, resolver, sizeof resolver - 1);
    assert_int_equal(plan.nameservers.count, 3);
    assert_string_equal(plan.nameservers.items[0], "192.0.2.1");
    assert_string_equal(plan.nameservers.items[1], "2001:db8::1");
    assert_string_equal(plan.nameservers.items[2], "192.0.2.2");
    broker_plan_read_hosts(&plan, hosts, sizeof hosts - 1);
    assert_int_equal(plan.entries_count, 3);
    assert_string_equal(plan.entries[0].address, "192.0.2.9");
    assert_int_equal(plan.entries[0].names.count, 2);
    assert_string_equal(plan.entries[0].names.items[0], "one");
    assert_string_equal(plan.entries[1].address, "::1");
    assert_int_equal(plan.entries[2].names.count, 0);
}

/* Docker's own is asked apart, and takes no other one's place. */
static void tells_the_engines_own_nameserver_from_the_others(void **state) {
    static const char resolver[] = "nameserver 127.0.0.11\nnameserver 192.0.2.1\nnameserver 192.0.2.2\n"
                                   "nameserver fe80::1%eth0\nnameserver 127.0.0.11\n";
    broker_plan_owned struct broker_plan plan = {0};
    (void)state;
    broker_plan_read_resolver(&plan, resolver, sizeof resolver - 1);
    assert_int_equal(plan.engine_nameservers.count, 1);
    assert_string_equal(plan.engine_nameservers.items[0], "127.0.0.11");
    assert_int_equal(plan.nameservers.count, 3);
    assert_string_equal(plan.nameservers.items[0], "192.0.2.1");
    assert_string_equal(plan.nameservers.items[2], "fe80::1%eth0");
}

/* A question for x.y and two answers: a CNAME by a pointer, and an address. */
static const uint8_t answer[] = {
    0,    1,  0x81, 0x80, 0, 1, 0, 2, 0, 0,  0, 0, 1,    'x', 1, 'y', 0, 0, 1, 0, 1, /* question */
    0xc0, 12, 0,    5,    0, 1, 0, 0, 0, 60, 0, 2, 0xc0, 12,                         /* CNAME */
    0xc0, 12, 0,    1,    0, 1, 0, 0, 0, 90, 0, 4, 192,  0,   2, 7,                  /* A */
};

static void takes_addresses_of_an_answer(void **state) {
    struct address found[4];
    uint32_t ttl = 1000;
    (void)state;
    assert_int_equal(resolve_parse_answer(answer, sizeof answer, AF_INET, found, 4, &ttl), 1);
    assert_int_equal(found[0].family, AF_INET);
    assert_memory_equal(found[0].bytes, ((uint8_t[]){192, 0, 2, 7}), 4);
    assert_int_equal(ttl, 60); /* the alias's is the shorter one */
    assert_int_equal(resolve_parse_answer(answer, sizeof answer, AF_INET6, found, 4, &ttl), 0);
    assert_int_equal(resolve_parse_answer(answer, sizeof answer, AF_INET, found, 0, &ttl), 0);
}

/* In memory of exactly their size, where a sanitizer sees a byte too many. */
static void answers_that_end_early_give_nothing(void **state) {
    uint32_t ttl = 1000;
    (void)state;
    for (size_t length = 0; length < sizeof answer; length++) {
        struct address found[4];
        uint8_t *cut = test_malloc(length + 1);
        memcpy(cut, answer, length);
        assert_int_equal(resolve_parse_answer(cut, length, AF_INET, found, 4, &ttl), 0);
        test_free(cut);
    }
    uint8_t failed[sizeof answer];
    struct address found[4];
    memcpy(failed, answer, sizeof answer);
    failed[3] |= 3; /* NXDOMAIN */
    assert_int_equal(resolve_parse_answer(failed, sizeof failed, AF_INET, found, 4, &ttl), 0);
}

static void writes_questions_and_knows_their_answers(void **state) {
    uint8_t question[RESOLVE_QUESTION_MAX];
    char longest[256] = "";
    (void)state;
    size_t length = resolve_write_question("x.y", 1, AF_INET, question);
    /* That of the answer above, but for the flags and the number of answers. */
    assert_int_equal(length, 21);
    assert_memory_equal(question, answer, 2);
    assert_memory_equal(question + 12, answer + 12, 9);
    assert_true(resolve_is_answer(answer, sizeof answer, question, length));
    for (size_t cut = 0; cut < length; cut++)
        assert_false(resolve_is_answer(answer, cut, question, length));
    assert_false(resolve_is_answer(question, length, question, length));
    for (size_t place = 0; place < length; place++) {
        uint8_t other[sizeof answer];
        memcpy(other, answer, sizeof answer);
        other[place] ^= 0x82; /* of the flags: neither an answer, or truncated; of the rest: another */
        if (place != 3 && (place < 6 || place >= 12))
            assert_false(resolve_is_answer(other, sizeof other, question, length));
    }
    length = resolve_write_question("x.y", 1, AF_INET6, question);
    assert_false(resolve_is_answer(answer, sizeof answer, question, length));
    for (size_t i = 0; i < 253; i++)
        longest[i] = i % 64 == 63 ? '.' : 'a';
    assert_int_equal(resolve_write_question(longest, 1, AF_INET, question), sizeof question);
    longest[253] = 'a';
    assert_int_equal(resolve_write_question(longest, 1, AF_INET, question), 0);
    assert_int_equal(resolve_write_question("x..y", 1, AF_INET, question), 0);
}

/* Calls that take a path, or make one of a descriptor: none is the broker's. */
static const struct {
    const char *name;
    long number;
} calls_of_files[] = {
    {"openat", SYS_openat},
    {"openat2", SYS_openat2},
    {"newfstatat", SYS_newfstatat},
    {"statx", SYS_statx},
    {"statfs", SYS_statfs},
    {"readlinkat", SYS_readlinkat},
    {"faccessat", SYS_faccessat},
    {"getdents64", SYS_getdents64},
    {"chdir", SYS_chdir},
    {"fchdir", SYS_fchdir},
    {"chroot", SYS_chroot},
    {"getcwd", SYS_getcwd},
    {"mkdirat", SYS_mkdirat},
    {"mknodat", SYS_mknodat},
    {"unlinkat", SYS_unlinkat},
    {"renameat2", SYS_renameat2},
    {"linkat", SYS_linkat},
    {"symlinkat", SYS_symlinkat},
    {"truncate", SYS_truncate},
    {"fchmodat", SYS_fchmodat},
    {"fchownat", SYS_fchownat},
    {"utimensat", SYS_utimensat},
    {"getxattr", SYS_getxattr},
    {"setxattr", SYS_setxattr},
    {"execve", SYS_execve},
    {"execveat", SYS_execveat},
    {"mount", SYS_mount},
    {"umount2", SYS_umount2},
    {"open_tree", SYS_open_tree},
    {"move_mount", SYS_move_mount},
    {"fsopen", SYS_fsopen},
    {"pivot_root", SYS_pivot_root},
    {"name_to_handle_at", SYS_name_to_handle_at},
    {"open_by_handle_at", SYS_open_by_handle_at},
    {"inotify_add_watch", SYS_inotify_add_watch},
    {"fanotify_mark", SYS_fanotify_mark},
#ifdef SYS_open
    {"open", SYS_open},
    {"stat", SYS_stat},
    {"lstat", SYS_lstat},
    {"access", SYS_access},
    {"creat", SYS_creat},
    {"readlink", SYS_readlink},
    {"unlink", SYS_unlink},
    {"rename", SYS_rename},
#endif
};

static void filter_has_no_way_out(void **state) {
    static const char *const never[] = {
        "fork",        "vfork", "clone",          "clone3",           "ptrace",       "kill",      "tgkill",
        "listen",      "bind",  "setns",          "unshare",          "prctl",        "capset",    "setuid",
        "pidfd_getfd", "bpf",   "io_uring_setup", "process_vm_readv", "memfd_create", "socketpair"};
    unsigned count, families_count;
    const char *const *calls = confine_broker_calls(&count);
    const int *families = confine_broker_families(&families_count);
    (void)state;
    print_message("the broker may call:");
    for (unsigned i = 0; i < count; i++) {
        print_message(" %s", calls[i]);
        for (size_t n = 0; n < sizeof never / sizeof *never; n++)
            assert_string_not_equal(calls[i], never[n]);
        for (size_t n = 0; n < sizeof calls_of_files / sizeof *calls_of_files; n++)
            assert_string_not_equal(calls[i], calls_of_files[n].name);
    }
    print_message("\nand make sockets of the families:");
    for (unsigned i = 0; i < families_count; i++) {
        print_message(" %d", families[i]);
        assert_true(families[i] == AF_INET || families[i] == AF_INET6 || families[i] == AF_NETLINK);
    }
    print_message("\n");
}

/* In a child of its own, with the filter in place: which of the calls is not refused, counted from 1; 0:
 * none. The same files are there before. */
static int confined_child(void) {
    if (open("/proc/self/status", O_RDONLY | O_CLOEXEC) < 0)
        return 200;
    struct error *error = confine_broker(false);
    if (error != NULL)
        return 201;
    int result = 0;
    for (size_t i = 0; result == 0 && i < sizeof calls_of_files / sizeof *calls_of_files; i++) {
        errno = 0;
        /* As open takes them, as openat does; a call that were let through would say EFAULT or EBADF. */
        long first = syscall(calls_of_files[i].number, "/proc/self/status", 0L, 0L, 0L, 0L);
        long second = first < 0 && errno == EPERM
                          ? syscall(calls_of_files[i].number, AT_FDCWD, "/proc/self/status", 0L, 0L, 0L)
                          : 0;
        if (first >= 0 || second >= 0 || errno != EPERM)
            result = (int)i + 1;
    }
    static const int families[] = {AF_UNIX, AF_PACKET, AF_VSOCK, AF_ALG};
    for (size_t i = 0; result == 0 && i < sizeof families / sizeof *families; i++)
        if (socket(families[i], SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0 || errno != EPERM)
            result = 150 + (int)i;
    if (result == 0 && socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0) < 0)
        result = 202;
    return result;
}

static void confined_it_reaches_no_file(void **state) {
    int status = -1;
    (void)state;
    pid_t child = fork();
    assert_true(child >= 0);
    while (child == 0) /* not _exit, before which a sanitizer makes a call that is refused */
        syscall(SYS_exit_group, confined_child());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) > 0 &&
        (size_t)WEXITSTATUS(status) <= sizeof calls_of_files / sizeof *calls_of_files)
        print_message("not refused: %s\n", calls_of_files[WEXITSTATUS(status) - 1].name);
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_resolver_and_hosts),
        cmocka_unit_test(takes_addresses_of_an_answer),
        cmocka_unit_test(answers_that_end_early_give_nothing),
        cmocka_unit_test(tells_the_engines_own_nameserver_from_the_others),
        cmocka_unit_test(writes_questions_and_knows_their_answers),
        cmocka_unit_test(filter_has_no_way_out),
        cmocka_unit_test(confined_it_reaches_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
