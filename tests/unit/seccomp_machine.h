/* What the seccomp tests share: an interpreter of filters, and documents by hand. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <linux/seccomp.h>

#include "base/error.h"
#include "base/memory.h"
#include "process/seccomp.h"

#define X32 0x40000000
#define ALLOW SECCOMP_RET_ALLOW
#define NOTIFY SECCOMP_RET_USER_NOTIF
#define DENY(number) (SECCOMP_RET_ERRNO | (number))

/* --- the machine --- */

/* Runs a filter as the kernel would. Ends the test on anything that the kernel's verifier refuses. */
static inline uint32_t verdict_of(const struct sock_filter *code, size_t count,
                                  const struct seccomp_data *data) {
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

static inline uint32_t verdict(const struct seccomp_program *program, uint32_t arch, int number, uint64_t a0,
                               uint64_t a1, uint64_t a2) {
    struct seccomp_data data = {.nr = number, .arch = arch, .args = {a0, a1, a2}};
    return verdict_of(program->instructions, program->count, &data);
}

static inline void succeed(struct error *error) {
    if (error != NULL)
        fail_msg("%s", error->message);
}

static inline void expect_error(struct error *error, enum error_kind kind, const char *part) {
    assert_non_null(error);
    if (strstr(error->message, part) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", part, error->message);
    assert_int_equal(error->kind, kind);
    error_free(error);
}

/* --- documents by hand --- */

static inline struct oci_seccomp *document(const char *default_action) {
    struct oci_seccomp *result = memory_zeroed(sizeof *result);
    result->default_action = memory_copy_string(default_action);
    return result;
}

static inline struct oci_seccomp_rule *add(struct oci_seccomp *to, const char *name, const char *action,
                                           int error) {
    to->syscalls = memory_resize(to->syscalls, to->syscalls_count + 1, sizeof *to->syscalls);
    struct oci_seccomp_rule *rule = &to->syscalls[to->syscalls_count++];
    *rule = (struct oci_seccomp_rule){.action = memory_copy_string(action)};
    if (error != 0)
        rule->errno_return = (struct optional_uint32){true, (uint32_t)error};
    string_list_append(&rule->names, name);
    return rule;
}

static inline void when(struct oci_seccomp_rule *rule, uint32_t index, const char *op, uint64_t value,
                        uint64_t two) {
    rule->args = memory_resize(rule->args, rule->args_count + 1, sizeof *rule->args);
    rule->args[rule->args_count++] = (struct oci_seccomp_argument){
        .index = index, .value = value, .value_two = two, .op = memory_copy_string(op)};
}

static inline struct seccomp_program
compile(const struct oci_seccomp *first, const struct oci_seccomp *second, const struct oci_seccomp *third) {
    struct seccomp_program program;
    succeed(seccomp_compile((const struct oci_seccomp *const[]){first, second, third}, 3, NULL, &program));
    return program;
}

static inline struct error *compile_error(const struct oci_seccomp *first, const struct oci_seccomp *second) {
    struct seccomp_program program;
    struct error *error =
        seccomp_compile((const struct oci_seccomp *const[]){first, second}, 2, NULL, &program);
    assert_null(program.instructions);
    return error;
}
