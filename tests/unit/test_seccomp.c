/* The filter: verdicts of the compiled instructions, by an interpreter of our own; the same compared with
 * libseccomp's generator; and what a real kernel says to a child. */
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

#define X32 0x40000000
#define ALLOW SECCOMP_RET_ALLOW
#define NOTIFY SECCOMP_RET_USER_NOTIF
#define DENY(number) (SECCOMP_RET_ERRNO | (number))

/* --- the machine --- */

/* Runs a filter as the kernel would. Ends the test on anything that the kernel's verifier refuses. */
static uint32_t verdict_of(const struct sock_filter *code, size_t count, const struct seccomp_data *data) {
    uint32_t a = 0;
    for (size_t pc = 0; pc < count; pc++) {
        const struct sock_filter *i = &code[pc];
        switch (i->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            assert_true(i->k % 4 == 0 && i->k < sizeof *data);
            memcpy(&a, (const char *)data + i->k, sizeof a);
            break;
        case BPF_ALU | BPF_AND | BPF_K:
            a &= i->k;
            break;
        case BPF_JMP | BPF_JA:
            pc += i->k;
            break;
        case BPF_JMP | BPF_JEQ | BPF_K:
            pc += a == i->k ? i->jt : i->jf;
            break;
        case BPF_JMP | BPF_JGT | BPF_K:
            pc += a > i->k ? i->jt : i->jf;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            pc += a >= i->k ? i->jt : i->jf;
            break;
        case BPF_JMP | BPF_JSET | BPF_K:
            pc += (a & i->k) != 0 ? i->jt : i->jf;
            break;
        case BPF_RET | BPF_K:
            return i->k;
        default:
            fail_msg("instruction %zu has code %#x", pc, i->code);
        }
    }
    fail_msg("the filter runs past its end");
    return 0;
}

static uint32_t verdict(const struct seccomp_program *program, uint32_t arch, int number, uint64_t a0,
                        uint64_t a1, uint64_t a2) {
    struct seccomp_data data = {.nr = number, .arch = arch, .args = {a0, a1, a2}};
    return verdict_of(program->instructions, program->count, &data);
}

static void succeed(struct error *error) {
    if (error != NULL)
        fail_msg("%s", error->message);
}

static void expect_error(struct error *error, enum error_kind kind, const char *part) {
    assert_non_null(error);
    if (strstr(error->message, part) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", part, error->message);
    assert_int_equal(error->kind, kind);
    error_free(error);
}

/* --- documents by hand --- */

static struct oci_seccomp *document(const char *default_action) {
    struct oci_seccomp *result = memory_zeroed(sizeof *result);
    result->default_action = memory_copy_string(default_action);
    return result;
}

static struct oci_seccomp_rule *add(struct oci_seccomp *to, const char *name, const char *action, int error) {
    to->syscalls = memory_resize(to->syscalls, to->syscalls_count + 1, sizeof *to->syscalls);
    struct oci_seccomp_rule *rule = &to->syscalls[to->syscalls_count++];
    *rule = (struct oci_seccomp_rule){.action = memory_copy_string(action)};
    if (error != 0)
        rule->errno_return = (struct optional_uint32){true, (uint32_t)error};
    string_list_append(&rule->names, name);
    return rule;
}

static void when(struct oci_seccomp_rule *rule, uint32_t index, const char *op, uint64_t value,
                 uint64_t two) {
    rule->args = memory_resize(rule->args, rule->args_count + 1, sizeof *rule->args);
    rule->args[rule->args_count++] = (struct oci_seccomp_argument){
        .index = index, .value = value, .value_two = two, .op = memory_copy_string(op)};
}

static struct seccomp_program compile(const struct oci_seccomp *first, const struct oci_seccomp *second,
                                      const struct oci_seccomp *third) {
    struct seccomp_program program;
    succeed(seccomp_compile((const struct oci_seccomp *const[]){first, second, third}, 3, &program));
    return program;
}

static struct error *compile_error(const struct oci_seccomp *first, const struct oci_seccomp *second) {
    struct seccomp_program program;
    struct error *error = seccomp_compile((const struct oci_seccomp *const[]){first, second}, 2, &program);
    assert_null(program.instructions);
    return error;
}

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
    struct oci_seccomp *observed = harden_seccomp_observed();
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

/* --- against libseccomp's generator --- */

struct oracle {
    struct sock_filter code[65536];
    size_t count;
};

static const char *const operators[] = {"SCMP_CMP_NE", "SCMP_CMP_LT", "SCMP_CMP_LE",       "SCMP_CMP_EQ",
                                        "SCMP_CMP_GE", "SCMP_CMP_GT", "SCMP_CMP_MASKED_EQ"};

static uint32_t oracle_action(const char *name, const struct optional_uint32 *number) {
    if (strcmp(name, "SCMP_ACT_ALLOW") == 0)
        return SCMP_ACT_ALLOW;
    assert_string_equal(name, "SCMP_ACT_ERRNO");
    return SCMP_ACT_ERRNO(number->set ? number->value : EPERM);
}

static struct oracle *oracle_compile(const struct oci_seccomp *source) {
    uint32_t default_action = oracle_action(source->default_action, &source->default_errno_return);
    scmp_filter_ctx filter = seccomp_init(default_action);
    assert_non_null(filter);
    assert_int_equal(seccomp_arch_add(filter, SCMP_ARCH_X86), 0);
    assert_int_equal(seccomp_arch_add(filter, SCMP_ARCH_X32), 0);
    for (size_t i = 0; i < source->syscalls_count; i++) {
        const struct oci_seccomp_rule *rule = &source->syscalls[i];
        uint32_t action = oracle_action(rule->action, &rule->errno_return);
        if (action == default_action)
            continue;
        struct scmp_arg_cmp conditions[6];
        for (size_t k = 0; k < rule->args_count; k++) {
            conditions[k] = (struct scmp_arg_cmp){.arg = rule->args[k].index,
                                                  .datum_a = rule->args[k].value,
                                                  .datum_b = rule->args[k].value_two};
            /* in the order of enum scmp_compare, which begins at 1 */
            for (unsigned o = 0; o < sizeof operators / sizeof *operators; o++)
                if (strcmp(operators[o], rule->args[k].op) == 0)
                    conditions[k].op = (enum scmp_compare)(o + 1);
        }
        for (size_t k = 0; k < rule->names.count; k++) {
            int number = seccomp_syscall_resolve_name(rule->names.items[k]);
            if (number != __NR_SCMP_ERROR)
                assert_int_equal(
                    seccomp_rule_add_array(filter, action, number, (unsigned)rule->args_count, conditions),
                    0);
        }
    }
    struct oracle *oracle = memory_zeroed(sizeof *oracle);
    int file = memfd_create("oracle", MFD_CLOEXEC);
    assert_int_equal(seccomp_export_bpf(filter, file), 0);
    ssize_t length = pread(file, oracle->code, sizeof oracle->code, 0);
    assert_true(length > 0);
    oracle->count = (size_t)length / sizeof *oracle->code;
    close(file);
    seccomp_release(filter);
    return oracle;
}

static void same_verdict(const struct seccomp_program *program, const struct oracle *oracle,
                         const struct seccomp_data *data) {
    uint32_t ours = verdict_of(program->instructions, program->count, data);
    uint32_t theirs = verdict_of(oracle->code, oracle->count, data);
    if (ours != theirs)
        fail_msg("arch %#x call %d (%#llx, %#llx, %#llx): %#x, libseccomp says %#x", data->arch, data->nr,
                 data->args[0], data->args[1], data->args[2], ours, theirs);
}

/* The profile that podman writes: each number of each ABI, with arguments that its rules look at. */
static void podman_profile_as_libseccomp(void **state) {
    (void)state;
    const char *tests = getenv("PINFOLD_TESTS");
    char *path = text_formatted("%s/unit/data/podman-4.3-config.json", tests ? tests : "tests");
    struct text text = {0};
    succeed(file_read(AT_FDCWD, path, 1 << 20, &text));
    free(path);
    struct oci_config *config;
    succeed(oci_config_parse("config.json", text.data, text.length, &config));
    text_free(&text);
    const struct oci_seccomp *profile = config->linux_config->seccomp;
    assert_non_null(profile);
    struct seccomp_program program = compile(profile, NULL, NULL);
    assert_true(program.count < 1000);
    struct oracle *oracle = oracle_compile(profile);
    static const uint64_t values[] = {0, 8, 9, 16, 131072, 131080, UINT32_MAX, 1ULL << 32 | 8};
    for (uint32_t number = 0; number < 700; number++)
        for (size_t i = 0; i < sizeof values / sizeof *values; i++)
            for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
                struct seccomp_data data = {
                    .nr = (int)number, .arch = AUDIT_ARCH_X86_64, .args = {values[i], 0, values[k]}};
                same_verdict(&program, oracle, &data);
                data.nr |= X32;
                same_verdict(&program, oracle, &data);
                data.nr = (int)number;
                data.arch = AUDIT_ARCH_I386;
                data.args[0] &= UINT32_MAX;
                data.args[2] &= UINT32_MAX;
                /* libseccomp keeps the conditions of `socket` for socketcall, where they compare pointers. */
                if (number != 102)
                    same_verdict(&program, oracle, &data);
            }
    free(oracle);
    seccomp_program_free(&program);
    oci_config_free(config);
}

static uint64_t random_value(void) {
    static const uint64_t interesting[] = {0,          1,          2,          7,          8,
                                           0x7fffffff, 0x80000000, 0xffffffff, 1ULL << 32, (1ULL << 32) + 1,
                                           5ULL << 32, UINT64_MAX};
    return interesting[(size_t)rand() % (sizeof interesting / sizeof *interesting)];
}

static bool holds(const struct oci_seccomp_argument *condition, uint64_t argument, bool narrow) {
    uint64_t keep = narrow ? UINT32_MAX : UINT64_MAX;
    uint64_t value = condition->value & keep, two = condition->value_two & keep;
    const char *op = condition->op + strlen("SCMP_CMP_");
    argument &= keep;
    return strcmp(op, "NE") == 0   ? argument != value
           : strcmp(op, "LT") == 0 ? argument < value
           : strcmp(op, "LE") == 0 ? argument <= value
           : strcmp(op, "EQ") == 0 ? argument == value
           : strcmp(op, "GE") == 0 ? argument >= value
           : strcmp(op, "GT") == 0 ? argument > value
                                   : (argument & value) == two;
}

/* What the document says, by reading it. */
static uint32_t meaning(const struct oci_seccomp *source, const char *name, const uint64_t *arguments,
                        bool narrow) {
    uint32_t result = oracle_action(source->default_action, &source->default_errno_return);
    bool decided = false;
    for (size_t i = 0; i < source->syscalls_count; i++) {
        const struct oci_seccomp_rule *rule = &source->syscalls[i];
        if (strcmp(rule->names.items[0], name) != 0)
            continue;
        uint32_t action = oracle_action(rule->action, &rule->errno_return);
        if (rule->args_count == 0)
            return action;
        bool all = true;
        for (size_t k = 0; k < rule->args_count; k++)
            all &= holds(&rule->args[k], arguments[rule->args[k].index], narrow);
        if (all && !decided) {
            decided = true;
            result = action;
        }
    }
    return result;
}

static const char *const random_names[] = {"read",   "write",    "openat", "mount",  "clone",
                                           "ioctl",  "kill",     "prctl",  "fcntl",  "futex",
                                           "getpid", "fchmodat", "dup3",   "seccomp"};
#define RANDOM_NAMES (sizeof random_names / sizeof *random_names)

static struct oci_seccomp *random_document(bool all_doors) {
    struct oci_seccomp *source = document(rand() % 2 ? "SCMP_ACT_ERRNO" : "SCMP_ACT_ALLOW");
    source->default_errno_return = (struct optional_uint32){true, ENOSYS};
    string_list_append(&source->architectures, "SCMP_ARCH_X86_64");
    if (all_doors) {
        string_list_append(&source->architectures, "SCMP_ARCH_X86");
        string_list_append(&source->architectures, "SCMP_ARCH_X32");
    }
    for (size_t n = 0; n < RANDOM_NAMES; n++)
        for (int i = rand() % 5; i > 0; i--) {
            const char *action = rand() % 2 ? "SCMP_ACT_ERRNO" : "SCMP_ACT_ALLOW";
            if (strcmp(action, source->default_action) == 0 && strcmp(action, "SCMP_ACT_ALLOW") == 0)
                continue; /* says nothing */
            struct oci_seccomp_rule *rule = add(source, random_names[n], action, 1 + rand() % 30);
            for (uint32_t index = 0; index < 3; index++) {
                if (rand() % 2)
                    continue;
                const char *op = operators[(size_t)rand() % 7];
                uint64_t value = random_value(), two = random_value();
                when(rule, index, op, value, strcmp(op, "SCMP_CMP_MASKED_EQ") == 0 ? two & value : two);
            }
        }
    return source;
}

/* Chains of documents at random, against their meaning. (Not against libseccomp: 2.5.4 itself gets some of
 * these wrong, for example LE on one argument in one rule and on another in a second one.) */
static void random_documents(void **state) {
    (void)state;
    static const struct {
        uint32_t token, arch;
    } doors[] = {{SCMP_ARCH_X86_64, AUDIT_ARCH_X86_64},
                 {SCMP_ARCH_X32, AUDIT_ARCH_X86_64},
                 {SCMP_ARCH_X86, AUDIT_ARCH_I386}};
    srand(20240607);
    for (int round = 0; round < 600; round++) {
        bool all_doors[3] = {rand() % 4 != 0, rand() % 4 != 0, rand() % 4 != 0};
        struct oci_seccomp *sources[3];
        for (int i = 0; i < 3; i++)
            sources[i] = random_document(all_doors[i]);
        struct seccomp_program program = compile(sources[0], sources[1], sources[2]);
        for (size_t n = 0; n < RANDOM_NAMES * 60; n++) {
            const char *name = random_names[n % RANDOM_NAMES];
            uint64_t a[3] = {random_value(), random_value(), random_value()};
            for (size_t door = 0; door < 3; door++) {
                int number = seccomp_syscall_resolve_name_arch(doors[door].token, name);
                uint32_t got = verdict(&program, doors[door].arch, number, a[0], a[1], a[2]),
                         expected = ALLOW;
                for (int i = 0; i < 3 && expected == ALLOW; i++)
                    expected = door != 0 && !all_doors[i] ? SECCOMP_RET_KILL_THREAD
                                                          : meaning(sources[i], name, a, door != 0);
                if (got != expected)
                    fail_msg("round %d: %s(%#lx, %#lx, %#lx) by door %zu: %#x instead of %#x", round, name,
                             a[0], a[1], a[2], door, got, expected);
            }
        }
        seccomp_program_free(&program);
        for (int i = 0; i < 3; i++)
            oci_seccomp_free(sources[i]);
    }
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
        cmocka_unit_test(rules_of_profiles),
        cmocka_unit_test(wrong_documents),
        cmocka_unit_test(podman_profile_as_libseccomp),
        cmocka_unit_test(random_documents),

#endif
        cmocka_unit_test(saved_and_loaded),
        cmocka_unit_test(installed_without_listener),
        cmocka_unit_test(installed_with_listener),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
