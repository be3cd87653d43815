/* The filter's verdicts for whole documents: podman's profile against libseccomp's own generator, and chains
 * of random ones against a plain reading of them. */
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

#if defined(__x86_64__)

/* --- against libseccomp's generator --- */

struct oracle {
    struct sock_filter code[65536];
    size_t count;
};

static const char *const operators[] = {"SCMP_CMP_NE", "SCMP_CMP_LT", "SCMP_CMP_LE",       "SCMP_CMP_EQ",
                                        "SCMP_CMP_GE", "SCMP_CMP_GT", "SCMP_CMP_MASKED_EQ"};

static uint32_t oracle_action(const char *name, const struct optional_uint32 *number) {
    uint32_t value = number->set ? number->value : EPERM;
    return strcmp(name, "SCMP_ACT_ALLOW") == 0          ? SECCOMP_RET_ALLOW
           : strcmp(name, "SCMP_ACT_LOG") == 0          ? SECCOMP_RET_LOG
           : strcmp(name, "SCMP_ACT_TRAP") == 0         ? SECCOMP_RET_TRAP
           : strcmp(name, "SCMP_ACT_KILL_PROCESS") == 0 ? SECCOMP_RET_KILL_PROCESS
           : strcmp(name, "SCMP_ACT_TRACE") == 0        ? SECCOMP_RET_TRACE | value
                                                        : SECCOMP_RET_ERRNO | value;
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
    /* Mostly these two, so that chains are asked to their end. */
    static const char *const actions[] = {"SCMP_ACT_ERRNO", "SCMP_ACT_ALLOW",       "SCMP_ACT_ERRNO",
                                          "SCMP_ACT_ALLOW", "SCMP_ACT_LOG",         "SCMP_ACT_TRAP",
                                          "SCMP_ACT_TRACE", "SCMP_ACT_KILL_PROCESS"};
    struct oci_seccomp *source = document(actions[(size_t)rand() % 5]);
    source->default_errno_return = (struct optional_uint32){true, ENOSYS};
    string_list_append(&source->architectures, "SCMP_ARCH_X86_64");
    if (all_doors) {
        string_list_append(&source->architectures, "SCMP_ARCH_X86");
        string_list_append(&source->architectures, "SCMP_ARCH_X32");
    }
    for (size_t n = 0; n < RANDOM_NAMES; n++)
        for (int i = rand() % 5; i > 0; i--) {
            const char *action = actions[(size_t)rand() % 8];
            if (strcmp(action, source->default_action) == 0 && strcmp(action, "SCMP_ACT_ERRNO") != 0)
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

int main(void) {
    const struct CMUnitTest tests[] = {
#if defined(__x86_64__)
        cmocka_unit_test(podman_profile_as_libseccomp),
        cmocka_unit_test(random_documents),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
