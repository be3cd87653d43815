/* Device rules as a program: run by a small interpreter against a plain reading of the rules, shown to the
 * kernel's verifier, and attached to a cgroup. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "cgroup/device_program.h"
#include "cgroup/internal.h"
#include "sys/bpf.h"

#define ANY                                                                                                  \
    { 0 }
#define NUMBER(n)                                                                                            \
    { .set = true, .value = (n) }

static void assert_no_error(struct error *error) {
    if (error != NULL)
        fail_msg("unexpected error: %s", error->message);
}

/* Every instruction that the compiler may emit, and no other. Jumps only go forwards, so it ends. */
static uint64_t interpret(const struct cgroup_device_program *program,
                          const struct bpf_cgroup_dev_ctx *context) {
    uint64_t registers[11] = {0};
    for (size_t at = 0; at < program->count; at++) {
        const struct bpf_insn *instruction = &program->instructions[at];
        uint64_t *target = &registers[instruction->dst_reg];
        uint32_t immediate = (uint32_t)instruction->imm;
        bool jump;
        assert_in_range(instruction->off, 0, INT16_MAX);
        switch (instruction->code) {
        case BPF_LDX | BPF_MEM | BPF_W: {
            uint32_t word;
            assert_int_equal(instruction->src_reg, BPF_REG_1);
            assert_in_range(instruction->off, 0, sizeof *context - sizeof word);
            memcpy(&word, (const char *)context + instruction->off, sizeof word);
            *target = word;
            continue;
        }
        case BPF_ALU64 | BPF_MOV | BPF_X:
            *target = registers[instruction->src_reg];
            continue;
        case BPF_ALU64 | BPF_MOV | BPF_K:
            *target = (uint64_t)(int64_t)instruction->imm;
            continue;
        case BPF_ALU | BPF_AND | BPF_K:
            *target = (uint32_t)*target & immediate;
            continue;
        case BPF_ALU | BPF_RSH | BPF_K:
            *target = (uint32_t)*target >> immediate;
            continue;
        case BPF_JMP | BPF_JNE | BPF_K:
            jump = *target != (uint64_t)(int64_t)instruction->imm;
            break;
        case BPF_JMP | BPF_EXIT:
            return registers[0];
        default:
            fail_msg("unexpected instruction %#x", instruction->code);
            return 2;
        }
        if (jump)
            at += (size_t)instruction->off;
    }
    fail_msg("the program has no end");
    return 2;
}

/* The plain reading: each of read, write and mknod for itself, the last rule that covers it. */
static bool reading_allows_one(const struct oci_device_cgroup *rules, size_t count, char type, int64_t major,
                               int64_t minor, char access) {
    bool allowed = false;
    bool standard = true; /* the standard devices are as allowed as they were at the beginning */
    for (size_t i = 0; i < count; i++) {
        const struct oci_device_cgroup *rule = &rules[i];
        bool any_type = rule->type == NULL || rule->type[0] == 'a';
        bool any_major = !rule->major.set || rule->major.value == -1;
        bool any_minor = !rule->minor.set || rule->minor.value == -1;
        bool all_access = rule->access == NULL || strlen(rule->access) == 3;
        if (any_type && any_major && any_minor && all_access) {
            allowed = rule->allow;
            standard = !rule->allow;
            continue;
        }
        if ((any_type || rule->type[0] == type) && (any_major || rule->major.value == major) &&
            (any_minor || rule->minor.value == minor) &&
            (rule->access == NULL || strchr(rule->access, access) != NULL)) {
            allowed = rule->allow;
            standard = false;
        }
    }
    if (!standard)
        return allowed;
    return access == 'm' ||
           (type == 'c' && ((major == 1 && (minor == 3 || minor == 5 || (minor >= 7 && minor <= 9))) ||
                            (major == 5 && (minor == 0 || minor == 2)) || major == 136));
}

static bool reading_allows(const struct oci_device_cgroup *rules, size_t count, char type, int64_t major,
                           int64_t minor, unsigned access) {
    return (!(access & BPF_DEVCG_ACC_READ) || reading_allows_one(rules, count, type, major, minor, 'r')) &&
           (!(access & BPF_DEVCG_ACC_WRITE) || reading_allows_one(rules, count, type, major, minor, 'w')) &&
           (!(access & BPF_DEVCG_ACC_MKNOD) || reading_allows_one(rules, count, type, major, minor, 'm'));
}

static void program_check(const struct oci_device_cgroup *rules, size_t count, const char *what) {
    static const int64_t numbers[] = {0, 1, 2, 3, 5, 8, 9, 10, 136, 229, 4095};
    cgroup_device_program_owned struct cgroup_device_program program;
    assert_no_error(cgroup_device_program_make(rules, count, &program));
    for (size_t kind = 0; kind < 2; kind++)
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
            for (size_t j = 0; j < sizeof numbers / sizeof *numbers; j++)
                for (unsigned access = 1; access <= 7; access++) {
                    struct bpf_cgroup_dev_ctx context = {
                        .access_type = access << 16 | (kind == 0 ? BPF_DEVCG_DEV_BLOCK : BPF_DEVCG_DEV_CHAR),
                        .major = (uint32_t)numbers[i],
                        .minor = (uint32_t)numbers[j]};
                    char type = kind == 0 ? 'b' : 'c';
                    bool wanted = reading_allows(rules, count, type, numbers[i], numbers[j], access);
                    if (interpret(&program, &context) != wanted)
                        fail_msg("%s: %c %d:%d access %u is %s", what, type, (int)numbers[i], (int)numbers[j],
                                 access, wanted ? "denied" : "allowed");
                }
}

static void no_rules_allow_the_standard_devices(void **state) {
    (void)state;
    program_check(NULL, 0, "no rules");
    cgroup_device_program_owned struct cgroup_device_program program;
    assert_no_error(cgroup_device_program_make(NULL, 0, &program));
    struct bpf_cgroup_dev_ctx null = {.access_type = (BPF_DEVCG_ACC_READ | BPF_DEVCG_ACC_WRITE) << 16 |
                                                     BPF_DEVCG_DEV_CHAR,
                                      .major = 1,
                                      .minor = 3};
    assert_int_equal(interpret(&program, &null), 1);
    struct bpf_cgroup_dev_ctx disk = {
        .access_type = BPF_DEVCG_ACC_READ << 16 | BPF_DEVCG_DEV_BLOCK, .major = 8, .minor = 0};
    assert_int_equal(interpret(&program, &disk), 0);
}

static void rules_of_engines(void **state) {
    (void)state;
    char a[] = "a", b[] = "b", c[] = "c", rwm[] = "rwm", rw[] = "rw", m[] = "m", r[] = "r", w[] = "w";
    struct oci_device_cgroup podman[] = {
        {.access = rwm},
        {.allow = true, .type = c, .major = NUMBER(10), .minor = NUMBER(229), .access = rw},
        {.allow = true, .type = b, .major = NUMBER(8), .access = r}};
    program_check(podman, 3, "podman");
    struct oci_device_cgroup docker[] = {
        {.access = rwm},
        {.allow = true, .type = c, .major = NUMBER(-1), .minor = NUMBER(-1), .access = m},
        {.allow = true, .type = c, .major = NUMBER(1), .minor = NUMBER(3), .access = rwm},
        {.type = c, .major = NUMBER(10), .minor = NUMBER(229), .access = rwm}};
    program_check(docker, 4, "docker");
    struct oci_device_cgroup privileged[] = {{.allow = true, .type = a, .access = rwm}};
    program_check(privileged, 1, "privileged");
    struct oci_device_cgroup all_but_disks[] = {{.allow = true, .access = rwm},
                                                {.type = b, .major = NUMBER(8), .access = rw}};
    program_check(all_but_disks, 2, "all but disks");
    /* v1 cannot say this one. */
    struct oci_device_cgroup all_but_one[] = {
        {.access = rwm},
        {.allow = true, .type = c, .major = NUMBER(10), .access = rw},
        {.type = c, .major = NUMBER(10), .minor = NUMBER(5), .access = rw}};
    program_check(all_but_one, 3, "all but one");
    /* Two rules together allow what is asked. */
    struct oci_device_cgroup halves[] = {
        {.access = rwm},
        {.allow = true, .type = b, .major = NUMBER(8), .minor = NUMBER(0), .access = r},
        {.allow = true, .type = b, .major = NUMBER(8), .minor = NUMBER(0), .access = w}};
    program_check(halves, 3, "halves");
    struct oci_device_cgroup standard_denied[] = {
        {.access = rwm}, {.type = c, .major = NUMBER(1), .minor = NUMBER(8), .access = w}};
    program_check(standard_denied, 2, "a standard device denied");
}

static uint32_t random_next(uint32_t *state) {
    *state = *state * 1664525 + 1013904223;
    return *state >> 16;
}

static void any_rules(void **state) {
    (void)state;
    static char *const types[] = {NULL, (char *)"a", (char *)"b", (char *)"c"};
    static char *const accesses[] = {NULL,         (char *)"r",  (char *)"w",  (char *)"m",
                                     (char *)"rw", (char *)"rm", (char *)"wm", (char *)"rwm"};
    static const int64_t numbers[] = {-1, 1, 3, 5, 8, 10, 136};
    uint32_t seed = 7;
    for (int round = 0; round < 400; round++) {
        struct oci_device_cgroup rules[8];
        size_t count = random_next(&seed) % 9;
        for (size_t i = 0; i < count; i++)
            rules[i] = (struct oci_device_cgroup){
                .allow = random_next(&seed) % 2,
                .type = types[random_next(&seed) % 4],
                .major = {.set = random_next(&seed) % 4 != 0, .value = numbers[random_next(&seed) % 7]},
                .minor = {.set = random_next(&seed) % 4 != 0, .value = numbers[random_next(&seed) % 7]},
                .access = accesses[random_next(&seed) % 8]};
        program_check(rules, count, "at random");
    }
}

/* The verifier takes a list as long as is allowed. */
static void verifier_takes_it(void **state) {
    (void)state;
    char c[] = "c", rw[] = "rw", rwm[] = "rwm";
    enum { MANY = 4096 };
    struct oci_device_cgroup rules[MANY] = {{.access = rwm}};
    for (int64_t i = 1; i < MANY; i++)
        rules[i] = (struct oci_device_cgroup){
            .allow = i % 3 != 0, .type = c, .major = NUMBER(i % 300), .minor = NUMBER(i), .access = rw};
    const size_t counts[] = {0, 1, 2, MANY};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        cgroup_device_program_owned struct cgroup_device_program program;
        assert_no_error(cgroup_device_program_make(rules, counts[i], &program));
        fd_owned int loaded = sys_bpf_device_load(program.instructions, program.count, "pinfold_unit");
        if (loaded < 0 && (errno == EPERM || errno == ENOSYS))
            skip();
        assert_in_range(loaded, 0, INT32_MAX);
        struct bpf_prog_info info;
        assert_int_equal(sys_bpf_program_info(loaded, &info), 0);
        assert_string_equal(info.name, "pinfold_unit");
    }
    struct cgroup_device_program none;
    error_owned error = cgroup_device_program_make(rules, MANY + 1, &none);
    assert_non_null(error);
    assert_non_null(strstr(error->message, "4096 at most are allowed"));
    /* Nothing follows a rule that covers everything: the verifier would refuse what cannot be reached. */
    struct oci_device_cgroup everything[] = {{.access = rwm}, {.allow = true, .access = rwm}};
    cgroup_device_program_owned struct cgroup_device_program program;
    assert_no_error(cgroup_device_program_make(everything, 2, &program));
    assert_int_equal(program.count, 11);
    fd_owned int loaded = sys_bpf_device_load(program.instructions, program.count, "pinfold_unit");
    assert_in_range(loaded, 0, INT32_MAX);
}

/* ---- in force, in a cgroup2 directory of our own ---- */

/* 1: it could be opened, 0: EPERM, -1: anything else; by a process in the cgroup. */
static int opens(const char *directory, const char *path, int flags) {
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (cgroup_file_write(directory, "cgroup.procs", "0") != NULL)
            _exit(3);
        int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK);
        _exit(fd >= 0 ? 1 : errno == EPERM ? 0 : 2);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) && WEXITSTATUS(status) <= 1 ? WEXITSTATUS(status) : -1;
}

static int programs(int cgroup, uint32_t *first) {
    uint32_t ids[8];
    int count = sys_bpf_device_query(cgroup, ids, 8);
    assert_in_range(count, 0, 8);
    *first = ids[0];
    return count;
}

static char directory[256];

static int directory_setup(void **state) {
    (void)state;
    cgroup_hierarchies_owned struct cgroup_hierarchies machine;
    error_ignore(cgroup_hierarchies_read(&machine));
    directory[0] = '\0';
    for (size_t i = 0; i < machine.count; i++)
        if (machine.items[i].unified)
            snprintf(directory, sizeof directory, "%s/pinfold-unit-devices-%d", machine.items[i].mount_point,
                     (int)getpid());
    if (directory[0] != '\0' && mkdir(directory, 0755) < 0)
        directory[0] = '\0';
    return 0;
}

static int directory_teardown(void **state) {
    (void)state;
    return directory[0] == '\0' ? 0 : rmdir(directory);
}

static void program_is_in_force(void **state) {
    (void)state;
    if (directory[0] == '\0' || opens(directory, "/dev/kmsg", O_RDONLY) != 1) {
        print_message("skipped: no cgroup2 that we may write to, or no /dev/kmsg\n");
        skip();
    }
    struct oci_device_cgroup rules[] = {
        {.access = (char *)"rwm"},
        {.allow = true, .type = (char *)"c", .major = NUMBER(1), .minor = NUMBER(11), .access = (char *)"w"}};
    fd_owned int cgroup = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_no_error(cgroup_v2_devices(directory, rules, 1));
    assert_int_equal(opens(directory, "/dev/kmsg", O_RDONLY), 0);
    assert_int_equal(opens(directory, "/dev/null", O_RDWR), 1);
    assert_int_equal(opens(directory, "/dev/zero", O_RDWR), 1);
    uint32_t first, again;
    assert_int_equal(programs(cgroup, &first), 1);

    /* The same rules again change nothing; others take the place of the first. */
    assert_no_error(cgroup_v2_devices(directory, rules, 1));
    assert_int_equal(programs(cgroup, &again), 1);
    assert_int_equal(first, again);
    assert_no_error(cgroup_v2_devices(directory, rules, 2));
    assert_int_equal(programs(cgroup, &again), 1);
    assert_int_not_equal(first, again);
    assert_int_equal(opens(directory, "/dev/kmsg", O_WRONLY), 1);
    assert_int_equal(opens(directory, "/dev/kmsg", O_RDONLY), 0);
    assert_int_equal(opens(directory, "/dev/kmsg", O_RDWR), 0);

    /* Somebody else's program stays, and denies. */
    cgroup_device_program_owned struct cgroup_device_program program;
    assert_no_error(cgroup_device_program_make(rules, 1, &program));
    fd_owned int other = sys_bpf_device_load(program.instructions, program.count, "another");
    assert_int_equal(sys_bpf_device_attach(cgroup, other), 0);
    rules[0].allow = true;
    assert_no_error(cgroup_v2_devices(directory, rules, 1));
    assert_int_equal(programs(cgroup, &again), 2);
    assert_int_equal(opens(directory, "/dev/kmsg", O_RDONLY), 0);
    assert_int_equal(sys_bpf_device_detach(cgroup, other), 0);
    assert_int_equal(opens(directory, "/dev/kmsg", O_RDONLY), 1);
}

static void bad_rules_are_named(void **state) {
    (void)state;
    char x[] = "x", rwz[] = "rwz";
    const struct {
        struct oci_device_cgroup rule;
        const char *part;
    } bad[] = {
        {{.type = x}, "linux.resources.devices[0].type: \"x\""},
        {{.access = rwz}, "linux.resources.devices[0].access: \"rwz\""},
        {{.major = NUMBER(-2)}, "linux.resources.devices[0]: -2:-1"},
        {{.minor = NUMBER(INT64_MAX)}, "linux.resources.devices[0]: -1:9223372036854775807"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct cgroup_device_program program;
        error_owned error = cgroup_device_program_make(&bad[i].rule, 1, &program);
        assert_non_null(error);
        assert_non_null(strstr(error->message, bad[i].part));
        assert_null(program.instructions);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_rules_allow_the_standard_devices),
        cmocka_unit_test(rules_of_engines),
        cmocka_unit_test(any_rules),
        cmocka_unit_test(verifier_takes_it),
        cmocka_unit_test(bad_rules_are_named),
        cmocka_unit_test_setup_teardown(program_is_in_force, directory_setup, directory_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
