/* The filter: verdicts of the compiled instructions, by an interpreter of our own, and what a real kernel
 * says to a child. test_seccomp_meaning.c compares whole documents. */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "harden/seccomp.h"
#include "process/seccomp.h"
#include "seccomp_machine.h"

/* --- our own documents --- */
#if defined(__x86_64__)

static void denied_calls(void **state) {
    (void)state;
    struct policy policy = {.confined = true};
    struct oci_seccomp *denied = harden_seccomp_denied(&policy);
    struct seccomp_program program = compile(denied, NULL, NULL);
    assert_true(program.has_listener);
    assert_int_equal(program.flags, SECCOMP_FILTER_FLAG_NEW_LISTENER |
                                        SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV |
                                        SECCOMP_FILTER_FLAG_SPEC_ALLOW);

    static const struct {
        int number;
        uint64_t a0, a1, a2;
        uint32_t expected;
    } cases[] = {
        {SYS_read, 0, 0, 0, ALLOW},
        {SYS_mount, 0, 0, 0, NOTIFY},
        {SYS_umount2, 0, 0, 0, NOTIFY},
        {SYS_mount_setattr, 0, 0, 0, NOTIFY},
        {467 /* open_tree_attr: newer than libseccomp */, 0, 0, 0, NOTIFY},
        {468, 0, 0, 0, ALLOW},
        {SYS_chroot, 0, 0, 0, ALLOW},
        {SYS_clone, SIGCHLD, 0, 0, ALLOW},
        {SYS_clone, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SETTLS, 0, 0,
         ALLOW},
        {SYS_clone, SIGCHLD | CLONE_NEWUSER, 0, 0, NOTIFY},
        {SYS_clone, SIGCHLD | CLONE_NEWNET | CLONE_VM, 0, 0, NOTIFY},
        {SYS_clone, SIGCHLD | CLONE_NEWUSER | 1ULL << 40, 0, 0, NOTIFY},
        {SYS_unshare, CLONE_NEWNS, 0, 0, NOTIFY},
        {SYS_unshare, CLONE_NEWTIME, 0, 0, NOTIFY},
        {SYS_unshare, CLONE_FILES, 0, 0, ALLOW},
        {SYS_clone3, 0, 0, 0, DENY(ENOSYS)},
        {SYS_setns, 0, 0, 0, NOTIFY},
        {SYS_ptrace, 0, 0, 0, NOTIFY},
        {SYS_process_vm_readv, 0, 0, 0, NOTIFY},
        {SYS_pidfd_getfd, 0, 0, 0, NOTIFY},
        {SYS_bpf, 0, 0, 0, NOTIFY},
        {SYS_io_uring_setup, 0, 0, 0, NOTIFY},
        {SYS_io_uring_enter, 0, 0, 0, DENY(ENOSYS)},
        {SYS_name_to_handle_at, 0, 0, 0, ALLOW},
        {SYS_open_by_handle_at, 0, 0, 0, NOTIFY},
        {SYS_socket, AF_UNIX, 0, 0, ALLOW},
        {SYS_socket, AF_INET, SOCK_STREAM, 6, ALLOW},
        {SYS_socket, AF_INET6, 0, 0, ALLOW},
        {SYS_socket, AF_X25, 0, 0, NOTIFY},
        {SYS_socket, AF_PACKET, 0, 0, NOTIFY},
        {SYS_socket, AF_VSOCK, 0, 0, NOTIFY},
        {SYS_socket, AF_ALG, 0, 0, NOTIFY},
        {SYS_socket, (uint64_t)AF_ALG | 1ULL << 32, 0, 0, NOTIFY},
        {SYS_socket, (uint64_t)AF_X25 | 1ULL << 32, 0, 0, NOTIFY},
        {SYS_socketpair, AF_UNIX, 0, 0, ALLOW},
        {SYS_socketpair, AF_TIPC, 0, 0, NOTIFY},
        {SYS_socket, AF_NETLINK, SOCK_RAW, 0, ALLOW},
        {SYS_socket, AF_NETLINK, SOCK_RAW, 9, DENY(EINVAL)},
        {SYS_socket, AF_NETLINK, SOCK_RAW, 12, NOTIFY},
        {SYS_socket, AF_NETLINK, SOCK_RAW, 4, NOTIFY},
        {SYS_ioctl, 0, 0x5401, 0, ALLOW},
        {SYS_ioctl, 0, 0x5412, 0, NOTIFY},
        {SYS_ioctl, 0, 0xdead00005412, 0, NOTIFY},
        {SYS_ioctl, 0, 0x541C, 0, NOTIFY},
        {SYS_seccomp, 1, 0, 0, ALLOW},
        {SYS_seccomp, 1, 8, 0, DENY(EBUSY)},
        {SYS_seccomp, 1, 8 | 4 | 0x20, 0, DENY(EBUSY)},
        {SYS_seccomp, 2, 8, 0, ALLOW},
        {-1, 0, 0, 0, ALLOW},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t got =
            verdict(&program, AUDIT_ARCH_X86_64, cases[i].number, cases[i].a0, cases[i].a1, cases[i].a2);
        if (got != cases[i].expected)
            fail_msg("call %d (%#lx): %#x instead of %#x", cases[i].number, cases[i].a0, got,
                     cases[i].expected);
    }

    /* The same calls through the other two doors. */
    assert_int_equal(verdict(&program, AUDIT_ARCH_X86_64, X32 | SYS_mount, 0, 0, 0), NOTIFY);
    assert_int_equal(verdict(&program, AUDIT_ARCH_X86_64, X32 | 467, 0, 0, 0), NOTIFY);
    assert_int_equal(verdict(&program, AUDIT_ARCH_X86_64, X32 | SYS_socket, AF_ALG, 0, 0), NOTIFY);
    assert_int_equal(verdict(&program, AUDIT_ARCH_X86_64, X32 | SYS_socket, AF_INET, 0, 0), ALLOW);
    assert_int_equal(verdict(&program, AUDIT_ARCH_I386, 21 /* mount */, 0, 0, 0), NOTIFY);
    assert_int_equal(verdict(&program, AUDIT_ARCH_I386, 22 /* umount */, 0, 0, 0), NOTIFY);
    assert_int_equal(verdict(&program, AUDIT_ARCH_I386, 467, 0, 0, 0), NOTIFY);
    assert_int_equal(verdict(&program, AUDIT_ARCH_I386, 435 /* clone3 */, 0, 0, 0), DENY(ENOSYS));
    assert_int_equal(verdict(&program, AUDIT_ARCH_I386, 359 /* socket */, AF_ALG, 0, 0), NOTIFY);
    assert_int_equal(verdict(&program, AUDIT_ARCH_I386, 359 /* socket */, AF_INET, 0, 0), ALLOW);
    assert_int_equal(verdict(&program, AUDIT_ARCH_I386, 102 /* socketcall */, 1 /* socket */, 0, 0), NOTIFY);
    assert_int_equal(verdict(&program, AUDIT_ARCH_I386, 102 /* socketcall */, 8 /* socketpair */, 0, 0),
                     NOTIFY);
    assert_int_equal(verdict(&program, AUDIT_ARCH_I386, 102 /* socketcall */, 3 /* connect */, 0, 0), ALLOW);
    assert_int_equal(verdict(&program, AUDIT_ARCH_I386, 165 /* getresuid; mount of x86_64 */, 0, 0, 0),
                     ALLOW);
    assert_int_equal(verdict(&program, AUDIT_ARCH_AARCH64, 40, 0, 0, 0), SECCOMP_RET_KILL_THREAD);
    seccomp_program_free(&program);
    oci_seccomp_free(denied);
}

static void widened_by_the_policy(void **state) {
    (void)state;
    struct policy policy = {.confined = true, .ptrace = true};
    struct oci_seccomp *denied = harden_seccomp_denied(&policy);
    struct seccomp_program program = compile(denied, NULL, NULL);
    assert_int_equal(verdict(&program, AUDIT_ARCH_X86_64, SYS_ptrace, 0, 0, 0), ALLOW);
    assert_int_equal(verdict(&program, AUDIT_ARCH_X86_64, SYS_process_vm_writev, 0, 0, 0), ALLOW);
    assert_int_equal(verdict(&program, AUDIT_ARCH_X86_64, SYS_unshare, CLONE_NEWUSER, 0, 0), NOTIFY);
    seccomp_program_free(&program);
    oci_seccomp_free(denied);

    policy = (struct policy){.confined = true, .userns = true};
    denied = harden_seccomp_denied(&policy);
    program = compile(denied, NULL, NULL);
    assert_int_equal(verdict(&program, AUDIT_ARCH_X86_64, SYS_unshare, CLONE_NEWUSER, 0, 0), ALLOW);
    assert_int_equal(verdict(&program, AUDIT_ARCH_X86_64, SYS_clone, CLONE_NEWUSER, 0, 0), ALLOW);
    assert_int_equal(verdict(&program, AUDIT_ARCH_X86_64, SYS_clone3, 0, 0, 0), ALLOW);
    assert_int_equal(verdict(&program, AUDIT_ARCH_X86_64, SYS_ptrace, 0, 0, 0), NOTIFY);
    assert_int_equal(verdict(&program, AUDIT_ARCH_X86_64, SYS_mount, 0, 0, 0), NOTIFY);
    seccomp_program_free(&program);
    oci_seccomp_free(denied);

    policy = (struct policy){.confined = false};
    assert_null(harden_seccomp_denied(&policy));
    program = compile(NULL, NULL, NULL);
    assert_null(program.instructions);
    assert_false(program.has_listener);

    assert_non_null(harden_seccomp_reason("umount2"));
    assert_non_null(harden_seccomp_reason("socket"));
    assert_null(harden_seccomp_reason("read"));
    assert_null(harden_seccomp_reason("moun"));
    assert_null(harden_seccomp_reason(""));
}

static void observed_calls(void **state) {
    (void)state;
    struct oci_seccomp *observed = harden_seccomp_observed(OBSERVED_MUTATIONS);
    struct seccomp_program program = compile(observed, NULL, NULL);
    static const struct {
        int number;
        uint64_t a0, a1, a2;
        uint32_t expected;
    } cases[] = {
        {SYS_open, 0, O_RDONLY | O_CLOEXEC, 0, ALLOW},
        {SYS_open, 0, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_NOFOLLOW | O_PATH, 0, ALLOW},
        {SYS_open, 0, O_WRONLY, 0, NOTIFY},
        {SYS_open, 0, O_RDWR, 0, NOTIFY},
        {SYS_open, 0, O_RDONLY | O_CREAT, 0, NOTIFY},
        {SYS_open, 0, O_RDONLY | O_TRUNC, 0, NOTIFY},
        {SYS_openat, O_RDWR, O_RDWR, O_RDONLY, ALLOW},
        {SYS_openat, 0, 0, O_WRONLY | O_APPEND, NOTIFY},
        {SYS_openat2, 0, 0, 0, NOTIFY},
        {SYS_utimensat, AT_FDCWD, 0, 0, ALLOW},
        {SYS_utimensat, AT_FDCWD, 4096, 0, NOTIFY},
        {SYS_utimensat, AT_FDCWD, 1ULL << 32, 0, NOTIFY},
        {SYS_fchmod, 0, 0, 0, ALLOW},
        {SYS_fchownat, 0, 0, 0, NOTIFY},
        {SYS_renameat2, 0, 0, 0, NOTIFY},
        {452 /* fchmodat2 */, 0, 0, 0, NOTIFY},
        {463 /* setxattrat */, 0, 0, 0, NOTIFY},
        {SYS_execve, 0, 0, 0, ALLOW},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t got =
            verdict(&program, AUDIT_ARCH_X86_64, cases[i].number, cases[i].a0, cases[i].a1, cases[i].a2);
        if (got != cases[i].expected)
            fail_msg("call %d: %#x instead of %#x", cases[i].number, got, cases[i].expected);
    }
    seccomp_program_free(&program);
    oci_seccomp_free(observed);
}

/* --- the chain --- */

static void earlier_documents_are_final(void **state) {
    (void)state;
    struct oci_seccomp *first = document("SCMP_ACT_ALLOW"), *second = document("SCMP_ACT_ERRNO"),
                       *third = document("SCMP_ACT_ALLOW");
    add(first, "mount", "SCMP_ACT_ERRNO", EBADF);
    when(add(first, "socket", "SCMP_ACT_ERRNO", EAFNOSUPPORT), 0, "SCMP_CMP_EQ", 40, 0);
    add(second, "mount", "SCMP_ACT_ALLOW", 0);
    add(second, "read", "SCMP_ACT_ALLOW", 0);
    add(second, "write", "SCMP_ACT_ALLOW", 0);
    add(second, "socket", "SCMP_ACT_ALLOW", 0);
    add(second, "openat", "SCMP_ACT_LOG", 0);
    add(third, "write", "SCMP_ACT_TRACE", 7);
    add(third, "fork", "SCMP_ACT_KILL_PROCESS", 0);
    struct seccomp_program program = compile(first, second, third);
    assert_false(program.has_listener);
    assert_int_equal(program.flags, SECCOMP_FILTER_FLAG_SPEC_ALLOW);
    assert_int_equal(verdict(&program, AUDIT_ARCH_X86_64, SYS_mount, 0, 0, 0), DENY(EBADF));
    assert_int_equal(verdict(&program, AUDIT_ARCH_X86_64, SYS_read, 0, 0, 0), ALLOW);
    assert_int_equal(verdict(&program, AUDIT_ARCH_X86_64, SYS_write, 0, 0, 0), SECCOMP_RET_TRACE | 7);
    assert_int_equal(verdict(&program, AUDIT_ARCH_X86_64, SYS_fork, 0, 0, 0), DENY(EPERM));
    assert_int_equal(verdict(&program, AUDIT_ARCH_X86_64, SYS_socket, 40, 0, 0), DENY(EAFNOSUPPORT));
    assert_int_equal(verdict(&program, AUDIT_ARCH_X86_64, SYS_socket, 2, 0, 0), ALLOW);
    assert_int_equal(verdict(&program, AUDIT_ARCH_X86_64, SYS_openat, 0, 0, 0), SECCOMP_RET_LOG);
    /* newer than the second document, whose highest call is openat */
    assert_int_equal(verdict(&program, AUDIT_ARCH_X86_64, SYS_openat2, 0, 0, 0), DENY(ENOSYS));
    assert_int_equal(verdict(&program, AUDIT_ARCH_X86_64, SYS_openat + 1, 0, 0, 0), DENY(ENOSYS));
    assert_int_equal(verdict(&program, AUDIT_ARCH_X86_64, SYS_openat - 1, 0, 0, 0), DENY(EPERM));
    assert_int_equal(verdict(&program, AUDIT_ARCH_X86_64, -1, 0, 0, 0), DENY(EPERM));
    /* an empty list of architectures: the native one */
    assert_int_equal(verdict(&program, AUDIT_ARCH_X86_64, X32 | SYS_read, 0, 0, 0), SECCOMP_RET_KILL_THREAD);
    assert_int_equal(verdict(&program, AUDIT_ARCH_I386, 3, 0, 0, 0), SECCOMP_RET_KILL_THREAD);
    seccomp_program_free(&program);
    oci_seccomp_free(first);
    oci_seccomp_free(second);
    oci_seccomp_free(third);
}

/* What is newer than the profile is ENOSYS exactly where the default would deny it. */
static void newer_than_the_profile(void **state) {
    (void)state;
    static const struct {
        const char *action;
        uint32_t older, newer;
    } cases[] = {
        {"SCMP_ACT_ERRNO", DENY(EPERM), DENY(ENOSYS)},
        {"SCMP_ACT_KILL", SECCOMP_RET_KILL_THREAD, DENY(ENOSYS)},
        {"SCMP_ACT_KILL_THREAD", SECCOMP_RET_KILL_THREAD, DENY(ENOSYS)},
        {"SCMP_ACT_KILL_PROCESS", SECCOMP_RET_KILL_PROCESS, DENY(ENOSYS)},
        {"SCMP_ACT_TRAP", SECCOMP_RET_TRAP, DENY(ENOSYS)},
        {"SCMP_ACT_TRACE", SECCOMP_RET_TRACE | EPERM, SECCOMP_RET_TRACE | EPERM},
        {"SCMP_ACT_LOG", SECCOMP_RET_LOG, SECCOMP_RET_LOG},
        {"SCMP_ACT_ALLOW", ALLOW, ALLOW},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct oci_seccomp *profile = document(cases[i].action);
        string_list_append(&profile->architectures, "SCMP_ARCH_X86");
        string_list_append(&profile->architectures, "SCMP_ARCH_X32");
        add(profile, "pidfd_send_signal", "SCMP_ACT_ERRNO", EBADF); /* 424 in every ABI */
        add(profile, "a_call_of_the_year_2040", "SCMP_ACT_ERRNO", EBADF);
        struct seccomp_program program = compile(NULL, profile, NULL);
        static const uint32_t abis[] = {AUDIT_ARCH_X86_64, AUDIT_ARCH_I386, AUDIT_ARCH_X86_64};
        for (int abi = 0; abi < 3; abi++) {
            int mark = abi == 2 ? X32 : 0;
            assert_int_equal(verdict(&program, abis[abi], mark | 424, 0, 0, 0), DENY(EBADF));
            assert_int_equal(verdict(&program, abis[abi], mark | 165, 0, 0, 0), cases[i].older);
            assert_int_equal(verdict(&program, abis[abi], mark | 435, 0, 0, 0), cases[i].newer);
            assert_int_equal(verdict(&program, abis[abi], mark | 9999, 0, 0, 0), cases[i].newer);
            assert_int_equal(verdict(&program, abis[abi], -1, 0, 0, 0), cases[i].older);
        }
        seccomp_program_free(&program);
        oci_seccomp_free(profile);
    }
}

/* runtime-spec, "seccomp": `flags` is what is given to seccomp(2); the default is for who gives none. */
static void no_flag_is_not_the_default(void **state) {
    (void)state;
    static const struct {
        const char *member;
        unsigned flags;
    } rows[] = {{"", SECCOMP_FILTER_FLAG_SPEC_ALLOW},
                {",\"flags\":[]", 0},
                {",\"flags\":[\"SECCOMP_FILTER_FLAG_LOG\"]", SECCOMP_FILTER_FLAG_LOG}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *text = text_formatted(
            "{\"ociVersion\":\"1.2.0\",\"root\":{\"path\":\"r\"},\"linux\":{\"seccomp\":{\"defaultAction\":"
            "\"SCMP_ACT_ALLOW\"%s}}}",
            rows[i].member);
        struct oci_config *config = NULL;
        succeed(oci_config_parse("config.json", text, strlen(text), &config));
        const struct oci_seccomp *copy = schema_copy(&oci_seccomp_schema, config->linux_config->seccomp);
        struct seccomp_program program;
        succeed(seccomp_compile((const struct oci_seccomp *const[]){copy}, 1, NULL, &program));
        assert_int_equal(program.flags, rows[i].flags);
        seccomp_program_free(&program);
        schema_free(&oci_seccomp_schema, (void *)copy);
        oci_config_free(config);
        free(text);
    }
}

static void unknown_names_and_allowed_calls(void **state) {
    (void)state;
    struct oci_seccomp *profile = document("SCMP_ACT_ALLOW");
    add(profile, "a_call_of_the_year_2040", "SCMP_ACT_ERRNO", 0);
    add(profile, "sendmsg", "SCMP_ACT_ERRNO", 0);
    add(profile, "a_call_of_the_year_2040", "SCMP_ACT_ERRNO", EBADF);
    add(profile, "open_tree_attr", "SCMP_ACT_ERRNO", 0); /* newer than libseccomp, but known here */
    add(profile, "socketcall", "SCMP_ACT_ERRNO", 0);     /* of another ABI */
    when(add(profile, "close", "SCMP_ACT_ERRNO", 0), 0, "SCMP_CMP_EQ", 7, 0);
    struct seccomp_program program;
    struct string_list unknown = {0};
    succeed(seccomp_compile((const struct oci_seccomp *const[]){profile}, 1, &unknown, &program));
    assert_int_equal(unknown.count, 1);
    assert_string_equal(unknown.items[0], "a_call_of_the_year_2040");
    assert_true(seccomp_program_allows(&program, SYS_read));
    assert_false(seccomp_program_allows(&program, SYS_sendmsg));
    assert_false(seccomp_program_allows(&program, SYS_close)); /* not whatever the argument */
    assert_false(seccomp_program_allows(&program, 467));
    string_list_free(&unknown);
    seccomp_program_free(&program);
    assert_true(seccomp_program_allows(&program, SYS_read)); /* no filter */
    oci_seccomp_free(profile);
}

/* An agent of the user's has the one listener: the denied calls stay denied, by the filter alone. */
static void denied_beside_an_agent(void **state) {
    (void)state;
    struct policy policy = {.confined = true};
    struct oci_seccomp *profile = document("SCMP_ACT_ALLOW");
    profile->listener_path = memory_copy_string("/run/agent.sock");
    assert_false(harden_seccomp_has_agent(profile));
    add(profile, "mkdir", "SCMP_ACT_NOTIFY", 0);
    add(profile, "mount", "SCMP_ACT_NOTIFY", 0);
    add(profile, "socket", "SCMP_ACT_NOTIFY", 0);
    assert_true(harden_seccomp_has_agent(profile));
    assert_false(harden_seccomp_has_agent(NULL));
    struct oci_seccomp *denied = harden_seccomp_denied_silently(&policy);
    struct seccomp_program program = compile(denied, profile, NULL);
    assert_true(program.has_listener);
    /* no WAIT_KILLABLE_RECV: that agent has not asked for it */
    assert_int_equal(program.flags, SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_SPEC_ALLOW);
    assert_int_equal(verdict(&program, AUDIT_ARCH_X86_64, SYS_mkdir, 0, 0, 0), NOTIFY);
    assert_int_equal(verdict(&program, AUDIT_ARCH_X86_64, SYS_mount, 0, 0, 0), DENY(EPERM));
    assert_int_equal(verdict(&program, AUDIT_ARCH_X86_64, SYS_unshare, CLONE_NEWUSER, 0, 0), DENY(EPERM));
    assert_int_equal(verdict(&program, AUDIT_ARCH_X86_64, SYS_socket, AF_ALG, 0, 0), DENY(EAFNOSUPPORT));
    assert_int_equal(verdict(&program, AUDIT_ARCH_X86_64, SYS_socket, AF_INET, 0, 0), NOTIFY);
    assert_int_equal(verdict(&program, AUDIT_ARCH_X86_64, SYS_seccomp, 1, 8, 0), DENY(EBUSY));
    seccomp_program_free(&program);
    string_list_append(&profile->flags, "SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV");
    program = compile(denied, profile, NULL);
    assert_int_equal(program.flags,
                     SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
    seccomp_program_free(&program);
    oci_seccomp_free(denied);
    oci_seccomp_free(profile);
}

static void rules_of_profiles(void **state) {
    (void)state;
    struct oci_seccomp *profile = document("SCMP_ACT_ERRNO");
    profile->default_errno_return = (struct optional_uint32){true, ENOTTY};
    /* one argument twice: alternatives */
    struct oci_seccomp_rule *rule = add(profile, "personality", "SCMP_ACT_ALLOW", 0);
    when(rule, 0, "SCMP_CMP_EQ", 0, 0);
    when(rule, 0, "SCMP_CMP_EQ", 8, 0);
    /* different arguments: both */
    rule = add(profile, "kill", "SCMP_ACT_ALLOW", 0);
    when(rule, 0, "SCMP_CMP_GE", 1ULL << 33, 0);
    when(rule, 1, "SCMP_CMP_LE", 9, 0);
    /* equal to the default: says nothing, not even over the next one */
    add(profile, "read", "SCMP_ACT_ERRNO", ENOTTY);
    add(profile, "read", "SCMP_ACT_ALLOW", 0);
    /* a rule without conditions wins over one with */
    when(add(profile, "write", "SCMP_ACT_ERRNO", EBADF), 0, "SCMP_CMP_EQ", 2, 0);
    add(profile, "write", "SCMP_ACT_ALLOW", 0);
    /* of no machine */
    add(profile, "a_call_of_the_year_2040", "SCMP_ACT_ALLOW", 0);
    add(profile, "open", "SCMP_ACT_TRAP", 0);
    add(profile, "close", "SCMP_ACT_KILL", 0);
    add(profile, "fork", "SCMP_ACT_KILL_PROCESS", 0);
    add(profile, "vfork", "SCMP_ACT_TRACE", 0);
    static const char *const architectures[] = {"SCMP_ARCH_AARCH64", "SCMP_ARCH_X86_64", "SCMP_ARCH_X86"};
    for (size_t i = 0; i < 3; i++)
        string_list_append(&profile->architectures, architectures[i]);
    string_list_append(&profile->flags, "SECCOMP_FILTER_FLAG_LOG");
    struct seccomp_program program = compile(NULL, profile, NULL);
    assert_int_equal(program.flags, SECCOMP_FILTER_FLAG_LOG);
    assert_int_equal(verdict(&program, AUDIT_ARCH_X86_64, SYS_personality, 8, 0, 0), ALLOW);
    assert_int_equal(verdict(&program, AUDIT_ARCH_X86_64, SYS_personality, 0, 0, 0), ALLOW);
    assert_int_equal(verdict(&program, AUDIT_ARCH_X86_64, SYS_personality, 4, 0, 0), DENY(ENOTTY));
    assert_int_equal(verdict(&program, AUDIT_ARCH_X86_64, SYS_kill, 1ULL << 33, 9, 0), ALLOW);
    assert_int_equal(verdict(&program, AUDIT_ARCH_X86_64, SYS_kill, 1ULL << 33, 10, 0), DENY(ENOTTY));
    assert_int_equal(verdict(&program, AUDIT_ARCH_X86_64, SYS_kill, (1ULL << 33) - 1, 9, 0), DENY(ENOTTY));
    assert_int_equal(verdict(&program, AUDIT_ARCH_X86_64, SYS_read, 0, 0, 0), ALLOW);
    assert_int_equal(verdict(&program, AUDIT_ARCH_X86_64, SYS_write, 2, 0, 0), ALLOW);
    assert_int_equal(verdict(&program, AUDIT_ARCH_X86_64, SYS_open, 0, 0, 0), SECCOMP_RET_TRAP);
    assert_int_equal(verdict(&program, AUDIT_ARCH_X86_64, SYS_close, 0, 0, 0), SECCOMP_RET_KILL_THREAD);
    assert_int_equal(verdict(&program, AUDIT_ARCH_X86_64, SYS_fork, 0, 0, 0), SECCOMP_RET_KILL_PROCESS);
    assert_int_equal(verdict(&program, AUDIT_ARCH_X86_64, SYS_vfork, 0, 0, 0), SECCOMP_RET_TRACE | EPERM);
    assert_int_equal(verdict(&program, AUDIT_ARCH_I386, 3 /* read */, 0, 0, 0), ALLOW);
    assert_int_equal(verdict(&program, AUDIT_ARCH_AARCH64, 63 /* read */, 0, 0, 0), SECCOMP_RET_KILL_THREAD);
    seccomp_program_free(&program);
    oci_seccomp_free(profile);
}

static void refuse(struct oci_seccomp *bad, const char *part) {
    expect_error(compile_error(bad, NULL), ERROR_INVALID, part);
    oci_seccomp_free(bad);
}

static void wrong_documents(void **state) {
    (void)state;
    struct oci_seccomp *bad = document("SCMP_ACT_MAYBE");
    refuse(bad, "SCMP_ACT_MAYBE");
    bad = document("SCMP_ACT_NOTIFY");
    refuse(bad, "defaultAction");
    bad = document("SCMP_ACT_ALLOW");
    add(bad, "mount", "SCMP_ACT_NOTIFY", 0);
    expect_error(compile_error(bad, NULL), ERROR_INVALID, "listenerPath");
    bad->listener_path = memory_copy_string("/run/agent.sock");
    struct policy policy = {.confined = true};
    struct oci_seccomp *denied = harden_seccomp_denied(&policy);
    expect_error(compile_error(denied, bad), ERROR_UNAVAILABLE, "/run/agent.sock");
    oci_seccomp_free(denied);
    oci_seccomp_free(bad);
    bad = document("SCMP_ACT_ALLOW");
    when(add(bad, "mount", "SCMP_ACT_ERRNO", 1), 6, "SCMP_CMP_EQ", 0, 0);
    expect_error(compile_error(bad, NULL), ERROR_INVALID, "index 6");
    bad->syscalls[0].args[0].index = 0;
    free(bad->syscalls[0].args[0].op);
    bad->syscalls[0].args[0].op = memory_copy_string("SCMP_CMP_LIKE");
    refuse(bad, "SCMP_CMP_LIKE");
    bad = document("SCMP_ACT_ALLOW");
    add(bad, "mount", "SCMP_ACT_ERRNO", 70000);
    refuse(bad, "70000");
    bad = document("SCMP_ACT_ALLOW");
    string_list_append(&bad->flags, "SECCOMP_FILTER_FLAG_FAST");
    refuse(bad, "SECCOMP_FILTER_FLAG_FAST");
    bad = document("SCMP_ACT_ALLOW");
    string_list_append(&bad->architectures, "SCMP_ARCH_Z80");
    refuse(bad, "SCMP_ARCH_Z80");
    /* more instructions than the kernel takes */
    bad = document("SCMP_ACT_ALLOW");
    for (int i = 0; i < 1000; i++)
        when(add(bad, "socket", "SCMP_ACT_ERRNO", 1), 0, "SCMP_CMP_EQ", (uint64_t)i, 0);
    refuse(bad, "4096");
}

#endif

/* --- the file and the kernel --- */

static void saved_and_loaded(void **state) {
    (void)state;
    char directory[] = "/tmp/pinfold-seccomp-XXXXXX";
    assert_non_null(mkdtemp(directory));
    int fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct policy policy = {.confined = true};
    struct oci_seccomp *denied = harden_seccomp_denied(&policy);
    struct seccomp_program program = compile(denied, NULL, NULL), loaded;
    succeed(seccomp_program_save(&program, fd, "seccomp"));
    succeed(seccomp_program_load_file(fd, "seccomp", &loaded));
    assert_int_equal(loaded.count, program.count);
    assert_int_equal(loaded.flags, program.flags);
    assert_true(loaded.has_listener);
    assert_memory_equal(loaded.instructions, program.instructions,
                        program.count * sizeof *program.instructions);
    seccomp_program_free(&loaded);

    int file = openat(fd, "seccomp", O_RDWR | O_CLOEXEC);
    struct stat status;
    assert_int_equal(fstat(file, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    assert_int_equal(ftruncate(file, status.st_size - 1), 0);
    expect_error(seccomp_program_load_file(fd, "seccomp", &loaded), ERROR_INVALID,
                 "not a saved seccomp filter");
    assert_int_equal(ftruncate(file, 5), 0);
    expect_error(seccomp_program_load_file(fd, "seccomp", &loaded), ERROR_INVALID, "too short");
    close(file);

    /* No filter at all is kept too. */
    seccomp_program_free(&program);
    succeed(seccomp_program_save(&program, fd, "seccomp"));
    succeed(seccomp_program_load_file(fd, "seccomp", &loaded));
    assert_null(loaded.instructions);
    int listener = 7;
    succeed(seccomp_install(&loaded, &listener));
    assert_int_equal(listener, -1);
    assert_int_equal(unlinkat(fd, "seccomp", 0), 0);
    assert_int_equal(rmdir(directory), 0);
    close(fd);
    oci_seccomp_free(denied);
}

/* Runs `body` in a child under the filter of `documents`; the child's exit status is what it returns. */
static int in_child(const struct oci_seccomp *first, const struct oci_seccomp *second,
                    int (*body)(int listener)) {
    struct seccomp_program program = compile(first, second, NULL);
    pid_t pid = fork();
    if (pid == 0) {
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
            _exit(100);
        int listener;
        struct error *error = seccomp_install(&program, &listener);
        _exit(error != NULL ? 101 : body(listener));
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    seccomp_program_free(&program);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

#define EXPECT(step, call, number)                                                                           \
    do {                                                                                                     \
        errno = 0;                                                                                           \
        if ((call) != -1 || errno != (number))                                                               \
            return step;                                                                                     \
    } while (0)

static int without_listener(int listener) {
    if (listener != -1)
        return 1;
    EXPECT(2, syscall(SYS_mount, NULL, NULL, NULL, 0, NULL), EBADF);
    EXPECT(3, socket(AF_NETLINK, SOCK_RAW, 9), EINVAL);
    int socket_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return socket_fd >= 0 ? 0 : 4;
}

static void installed_without_listener(void **state) {
    (void)state;
    struct oci_seccomp *first = document("SCMP_ACT_ALLOW"), *second = document("SCMP_ACT_ALLOW");
    add(first, "mount", "SCMP_ACT_ERRNO", EBADF);
    struct oci_seccomp_rule *rule = add(second, "socket", "SCMP_ACT_ERRNO", EINVAL);
    when(rule, 0, "SCMP_CMP_EQ", AF_NETLINK, 0);
    when(rule, 2, "SCMP_CMP_EQ", 9, 0);
    assert_int_equal(in_child(first, second, without_listener), 0);
    oci_seccomp_free(first);
    oci_seccomp_free(second);
}

/* Nobody reads the listener: closed, all that would be asked is ENOSYS, and the workload cannot put one
 * of its own in its place. */
static int with_listener(int listener) {
    if (listener < 0)
        return 1;
    if ((fcntl(listener, F_GETFD) & FD_CLOEXEC) == 0)
        return 2;
    struct sock_filter ask_all = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    struct sock_fprog filter = {1, &ask_all};
    EXPECT(3, syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter),
           EBUSY);
    close(listener);
    EXPECT(4, syscall(SYS_mount, NULL, NULL, NULL, 0, NULL), ENOSYS);
    EXPECT(5, syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter),
           EBUSY);
    EXPECT(6, syscall(SYS_clone3, NULL, 0), ENOSYS);
    EXPECT(7, syscall(SYS_io_uring_enter, 0, 0, 0, 0, NULL, 0), ENOSYS);
    return 0;
}

static void installed_with_listener(void **state) {
    (void)state;
    struct policy policy = {.confined = true};
    struct oci_seccomp *denied = harden_seccomp_denied(&policy);
    int status = in_child(denied, NULL, with_listener);
    if (status == 101) {
        print_message("[  SKIPPED ] this kernel or an outer filter gives no listener\n");
        skip();
    }
    assert_int_equal(status, 0);
    oci_seccomp_free(denied);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#if defined(__x86_64__)
        cmocka_unit_test(denied_calls),
        cmocka_unit_test(widened_by_the_policy),
        cmocka_unit_test(observed_calls),
        cmocka_unit_test(earlier_documents_are_final),
        cmocka_unit_test(newer_than_the_profile),
        cmocka_unit_test(no_flag_is_not_the_default),
        cmocka_unit_test(unknown_names_and_allowed_calls),
        cmocka_unit_test(denied_beside_an_agent),
        cmocka_unit_test(rules_of_profiles),
        cmocka_unit_test(wrong_documents),

#endif
        cmocka_unit_test(saved_and_loaded),
        cmocka_unit_test(installed_without_listener),
        cmocka_unit_test(installed_with_listener),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
