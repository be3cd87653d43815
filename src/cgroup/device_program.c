#include "cgroup/device_program.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cgroup/internal.h"

/* The context (struct bpf_cgroup_dev_ctx) holds the kind of device in the low half of its first word, what is
 * asked in the high half, and the two numbers. They live here while the table is tried: */
enum {
    RESULT = BPF_REG_0,
    CONTEXT = BPF_REG_1,
    TYPE = BPF_REG_2,
    ASKED = BPF_REG_3,
    MAJOR = BPF_REG_4,
    MINOR = BPF_REG_5
};

/* A jump over one major number's part of the table has 15 bits. */
enum { RULES_MAX = 4096, INSTRUCTIONS_MAX = 100000 };
/* A number that no rule names. */
enum { OTHER = -2 };

/* What is left of the document: rules that count, the standard devices first among them. */
struct rules {
    struct cgroup_device_rule *items;
    size_t count;
    unsigned beginning; /* what is allowed before the first of them */
};

static void emit(struct cgroup_device_program *program, unsigned code, unsigned target, unsigned source,
                 int offset, int32_t immediate) {
    if ((program->count & (program->count - 1)) == 0) /* doubled at each power of two */
        program->instructions = memory_resize(
            program->instructions, program->count == 0 ? 1 : 2 * program->count, sizeof(struct bpf_insn));
    program->instructions[program->count++] = (struct bpf_insn){.code = (uint8_t)code,
                                                                .dst_reg = (uint8_t)target & 0xf,
                                                                .src_reg = (uint8_t)source & 0xf,
                                                                .off = (int16_t)offset,
                                                                .imm = immediate};
}

static void emit_answer(struct cgroup_device_program *program, bool allow) {
    emit(program, BPF_ALU64 | BPF_MOV | BPF_K, RESULT, 0, 0, allow);
    emit(program, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

static void emit_beginning(struct cgroup_device_program *program) {
    emit(program, BPF_LDX | BPF_MEM | BPF_W, TYPE, CONTEXT, offsetof(struct bpf_cgroup_dev_ctx, access_type),
         0);
    emit(program, BPF_ALU64 | BPF_MOV | BPF_X, ASKED, TYPE, 0, 0);
    emit(program, BPF_ALU | BPF_AND | BPF_K, TYPE, 0, 0, 0xffff);
    emit(program, BPF_ALU | BPF_RSH | BPF_K, ASKED, 0, 0, 16);
    emit(program, BPF_LDX | BPF_MEM | BPF_W, MAJOR, CONTEXT, offsetof(struct bpf_cgroup_dev_ctx, major), 0);
    emit(program, BPF_LDX | BPF_MEM | BPF_W, MINOR, CONTEXT, offsetof(struct bpf_cgroup_dev_ctx, minor), 0);
}

static int32_t kernel_access(unsigned access) {
    return (access & CGROUP_DEVICE_MKNOD ? BPF_DEVCG_ACC_MKNOD : 0) |
           (access & CGROUP_DEVICE_READ ? BPF_DEVCG_ACC_READ : 0) |
           (access & CGROUP_DEVICE_WRITE ? BPF_DEVCG_ACC_WRITE : 0);
}

/* Ends the program: allowed is what is within `access`. */
static void emit_decision(struct cgroup_device_program *program, unsigned access) {
    if (access != 0 && access != CGROUP_DEVICE_ALL) {
        emit(program, BPF_ALU | BPF_AND | BPF_K, ASKED, 0, 0, ~kernel_access(access));
        emit(program, BPF_JMP | BPF_JNE | BPF_K, ASKED, 0, 2, 0);
        emit_answer(program, true);
        access = 0;
    }
    emit_answer(program, access != 0);
}

static size_t emit_jump_unless(struct cgroup_device_program *program, unsigned place, int64_t number) {
    emit(program, BPF_JMP | BPF_JNE | BPF_K, place, 0, 0, (int32_t)number);
    return program->count - 1;
}

static void jump_to_here(struct cgroup_device_program *program, size_t jump) {
    program->instructions[jump].off = (int16_t)(program->count - jump - 1);
}

/* What the rules allow a device of this kind and these numbers, of which OTHER stands for all that no rule
 * names. */
static unsigned rules_allow(const struct rules *rules, char type, int64_t major, int64_t minor) {
    unsigned access = rules->beginning;
    for (size_t i = 0; i < rules->count; i++) {
        const struct cgroup_device_rule *rule = &rules->items[i];
        if ((rule->type != 'a' && rule->type != type) || (rule->major != -1 && rule->major != major) ||
            (rule->minor != -1 && rule->minor != minor))
            continue;
        access = rule->allow ? access | rule->access : access & ~rule->access;
    }
    return access;
}

struct numbers {
    int64_t *items;
    size_t count;
};

static void numbers_free(struct numbers *numbers) {
    free(numbers->items);
}
#define numbers_owned __attribute__((cleanup(numbers_free)))

static int number_compare(const void *left, const void *right) {
    int64_t a = *(const int64_t *)left;
    int64_t b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static void numbers_settle(struct numbers *numbers) {
    if (numbers->count == 0)
        return;
    qsort(numbers->items, numbers->count, sizeof *numbers->items, number_compare);
    size_t kept = 1;
    for (size_t i = 1; i < numbers->count; i++)
        if (numbers->items[i] != numbers->items[kept - 1])
            numbers->items[kept++] = numbers->items[i];
    numbers->count = kept;
}

/* The major numbers that rules for this kind name. */
static void majors_of(const struct rules *rules, char type, struct numbers *out) {
    out->items = memory_zeroed((rules->count + 1) * sizeof *out->items);
    for (size_t i = 0; i < rules->count; i++)
        if ((rules->items[i].type == 'a' || rules->items[i].type == type) && rules->items[i].major >= 0)
            out->items[out->count++] = rules->items[i].major;
    numbers_settle(out);
}

/* The minor numbers that rules name which cover this major number. */
static void minors_of(const struct rules *rules, char type, int64_t major, struct numbers *out) {
    out->items = memory_zeroed((rules->count + 1) * sizeof *out->items);
    for (size_t i = 0; i < rules->count; i++) {
        const struct cgroup_device_rule *rule = &rules->items[i];
        if ((rule->type == 'a' || rule->type == type) && (rule->major == -1 || rule->major == major) &&
            rule->minor >= 0)
            out->items[out->count++] = rule->minor;
    }
    numbers_settle(out);
}

/* All minor numbers of a major one; ends with a decision, so that the verifier, which follows each branch to
 * its end, has no more to look at than there are rows. */
static void emit_minors(struct cgroup_device_program *program, const struct rules *rules, char type,
                        int64_t major) {
    numbers_owned struct numbers minors = {0};
    minors_of(rules, type, major, &minors);
    unsigned others = rules_allow(rules, type, major, OTHER);
    for (size_t i = 0; i < minors.count; i++) {
        unsigned access = rules_allow(rules, type, major, minors.items[i]);
        if (access == others)
            continue;
        size_t jump = emit_jump_unless(program, MINOR, minors.items[i]);
        emit_decision(program, access);
        jump_to_here(program, jump);
    }
    emit_decision(program, others);
}

static fallible emit_type(struct cgroup_device_program *program, const struct rules *rules, char type) {
    numbers_owned struct numbers majors = {0};
    majors_of(rules, type, &majors);
    for (size_t i = 0; i < majors.count; i++) {
        size_t jump = emit_jump_unless(program, MAJOR, majors.items[i]);
        emit_minors(program, rules, type, majors.items[i]);
        jump_to_here(program, jump);
        /* Major numbers times minor numbers of rules for any major: nobody writes so many. */
        if (program->count > INSTRUCTIONS_MAX)
            return error_new(ERROR_INVALID, "linux.resources.devices: too many rules for cgroup v2");
    }
    emit_minors(program, rules, type, OTHER);
    return NULL;
}

/* Anew at each rule that covers everything, as in v1; what stood before it is left out. */
static void rules_begin(struct rules *rules, bool allow_all) {
    rules->beginning = allow_all ? CGROUP_DEVICE_ALL : 0;
    rules->count = allow_all ? 0 : cgroup_device_standard_count;
    memcpy(rules->items, cgroup_device_standard, rules->count * sizeof *rules->items);
}

struct error *cgroup_device_program_make(const struct oci_device_cgroup *document, size_t count,
                                         struct cgroup_device_program *out) {
    *out = (struct cgroup_device_program){0};
    if (count > RULES_MAX)
        return error_new(
            ERROR_INVALID,
            "linux.resources.devices: %zu rules are there; with cgroup v2, %d at most are allowed", count,
            RULES_MAX);
    memory_owned struct cgroup_device_rule *items =
        memory_zeroed((cgroup_device_standard_count + count) * sizeof *items);
    struct rules rules = {.items = items};
    rules_begin(&rules, false);
    for (size_t i = 0; i < count; i++) {
        struct cgroup_device_rule rule;
        TRY(cgroup_device_rule_parse(&document[i], i, &rule));
        if (cgroup_device_rule_covers_all(&rule))
            rules_begin(&rules, rule.allow);
        else
            rules.items[rules.count++] = rule;
    }
    emit_beginning(out);
    /* The part of block devices, which is the shorter one as a rule, must fit into a jump. */
    size_t jump = emit_jump_unless(out, TYPE, BPF_DEVCG_DEV_BLOCK);
    struct error *error = emit_type(out, &rules, 'b');
    if (error == NULL && out->count - jump > INT16_MAX)
        error = error_new(ERROR_INVALID, "linux.resources.devices: too many rules for block devices");
    jump_to_here(out, jump);
    if (error == NULL)
        error = emit_type(out, &rules, 'c');
    if (error != NULL)
        cgroup_device_program_free(out);
    return error;
}

void cgroup_device_program_free(struct cgroup_device_program *program) {
    free(program->instructions);
    *program = (struct cgroup_device_program){0};
}
