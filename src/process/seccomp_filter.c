#include "process/seccomp_filter.h"

#include <endian.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Placeholder for a jump to the end of a rule, which is known when its conditions are written. A rule has at
 * most six conditions of five instructions, and a group of rules so many more tests. */
#define FAIL 0xFF
#define GROUP_MAX 200

void filter_list_add(struct filter_list *list, struct filter_rule rule) {
    /* Grown by powers of two: a profile has some thousand entries. */
    if ((list->count & (list->count - 1)) == 0)
        list->rules = memory_resize(list->rules, list->count == 0 ? 1 : list->count * 2, sizeof *list->rules);
    rule.order = list->count;
    list->rules[list->count++] = rule;
}

void filter_list_free(struct filter_list *list) {
    free(list->rules);
    *list = (struct filter_list){0};
}

static void emit(struct seccomp_program *program, uint16_t code, uint32_t k, uint8_t jump_true,
                 uint8_t jump_false) {
    if ((program->count & (program->count - 1)) == 0)
        program->instructions =
            memory_resize(program->instructions, program->count == 0 ? 1 : program->count * 2,
                          sizeof *program->instructions);
    program->instructions[program->count++] =
        (struct sock_filter){.code = code, .jt = jump_true, .jf = jump_false, .k = k};
}

static void emit_jump(struct seccomp_program *program, uint16_t test, uint32_t k, uint8_t jump_true,
                      uint8_t jump_false) {
    emit(program, (uint16_t)(BPF_JMP | test | BPF_K), k, jump_true, jump_false);
}

static void emit_load(struct seccomp_program *program, size_t offset) {
    emit(program, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

void filter_append_return(struct seccomp_program *program, uint32_t action) {
    emit(program, BPF_RET | BPF_K, action, 0, 0);
}

/* --- conditions: an argument has 64 bits, the machine of the filter 32 --- */

static void emit_load_half(struct seccomp_program *program, unsigned argument, bool high) {
    bool second = __BYTE_ORDER == __LITTLE_ENDIAN ? high : !high;
    emit_load(program, offsetof(struct seccomp_data, args) + argument * sizeof(uint64_t) +
                           (second ? sizeof(uint32_t) : 0));
}

static void emit_masked(struct seccomp_program *program, unsigned argument, bool high, uint32_t mask,
                        uint32_t value) {
    emit_load_half(program, argument, high);
    if (mask != UINT32_MAX)
        emit(program, BPF_ALU | BPF_AND | BPF_K, mask, 0, 0);
    emit_jump(program, BPF_JEQ, value, 0, FAIL);
}

/* "Above" and "below" with their "or equal" forms: the upper halves decide unless they are equal. */
static void emit_ordered(struct seccomp_program *program, const struct scmp_arg_cmp *condition, bool narrow) {
    uint32_t high = (uint32_t)(condition->datum_a >> 32), low = (uint32_t)condition->datum_a;
    bool above = condition->op == SCMP_CMP_GT || condition->op == SCMP_CMP_GE;
    if (!narrow) {
        emit_load_half(program, condition->arg, true);
        if (above) {
            emit_jump(program, BPF_JGT, high, 3, 0);
            emit_jump(program, BPF_JEQ, high, 0, FAIL);
        } else {
            emit_jump(program, BPF_JGT, high, FAIL, 0);
            emit_jump(program, BPF_JEQ, high, 0, 2);
        }
    }
    emit_load_half(program, condition->arg, false);
    if (above)
        emit_jump(program, condition->op == SCMP_CMP_GT ? BPF_JGT : BPF_JGE, low, 0, FAIL);
    else
        emit_jump(program, condition->op == SCMP_CMP_LE ? BPF_JGT : BPF_JGE, low, FAIL, 0);
}

static void emit_condition(struct seccomp_program *program, const struct scmp_arg_cmp *condition,
                           bool narrow) {
    uint32_t high = (uint32_t)(condition->datum_a >> 32), low = (uint32_t)condition->datum_a;
    switch (condition->op) {
    case SCMP_CMP_MASKED_EQ:
        /* datum_a is the mask, datum_b what must be left of the argument; bits beyond the mask do not count.
         */
        if (!narrow && high != 0)
            emit_masked(program, condition->arg, true, high, (uint32_t)(condition->datum_b >> 32) & high);
        emit_masked(program, condition->arg, false, low, (uint32_t)condition->datum_b & low);
        break;
    case SCMP_CMP_EQ:
        if (!narrow)
            emit_masked(program, condition->arg, true, UINT32_MAX, high);
        emit_masked(program, condition->arg, false, UINT32_MAX, low);
        break;
    case SCMP_CMP_NE:
        if (!narrow) {
            emit_load_half(program, condition->arg, true);
            emit_jump(program, BPF_JEQ, high, 0, 2);
        }
        emit_load_half(program, condition->arg, false);
        emit_jump(program, BPF_JEQ, low, FAIL, 0);
        break;
    default:
        emit_ordered(program, condition, narrow);
        break;
    }
}

/* Points the placeholders from `start` on to the end of what is written. */
static void resolve_fails(struct seccomp_program *program, size_t start) {
    for (size_t i = start; i < program->count; i++) {
        struct sock_filter *instruction = &program->instructions[i];
        if (BPF_CLASS(instruction->code) != BPF_JMP)
            continue;
        uint8_t distance = (uint8_t)(program->count - i - 1);
        if (instruction->jt == FAIL)
            instruction->jt = distance;
        if (instruction->jf == FAIL)
            instruction->jf = distance;
    }
}

/* A last condition that one comparison of the lower half decides: the jump for it, 0 for any other. */
static uint16_t simple_test(const struct filter_rule *rule) {
    const struct scmp_arg_cmp *last = &rule->conditions[rule->count - 1];
    uint32_t mask = (uint32_t)last->datum_a, value = (uint32_t)last->datum_b;
    if (last->op == SCMP_CMP_EQ && rule->narrow)
        return BPF_JEQ;
    if (last->op != SCMP_CMP_MASKED_EQ || (!rule->narrow && last->datum_a >> 32 != 0))
        return 0;
    if (mask == UINT32_MAX)
        return BPF_JEQ;
    return mask != 0 && (mask & (mask - 1)) == 0 && value == mask ? BPF_JSET : 0;
}

static bool same_condition(const struct scmp_arg_cmp *left, const struct scmp_arg_cmp *right) {
    return left->arg == right->arg && left->op == right->op && left->datum_a == right->datum_a &&
           left->datum_b == right->datum_b;
}

/* How many rules from the first one on differ in the value of their last, simple condition alone: "one of
 * these families", "any of these flags". */
static size_t group_size(const struct filter_rule *rules, size_t count) {
    if (simple_test(&rules[0]) == 0)
        return 1;
    size_t size = 1;
    for (; size < count && size < GROUP_MAX; size++) {
        const struct filter_rule *rule = &rules[size];
        if (rule->count != rules->count || rule->action != rules->action || rule->narrow != rules->narrow ||
            simple_test(rule) == 0 ||
            rule->conditions[rule->count - 1].arg != rules->conditions[rules->count - 1].arg)
            break;
        bool same = true;
        for (size_t i = 0; i + 1 < rule->count; i++)
            same = same && same_condition(&rule->conditions[i], &rules->conditions[i]);
        if (!same)
            break;
    }
    return size;
}

/* Writes a group as one rule with one load of the argument; returns how many rules it took. The kernel's time
 * to load a filter grows with its length (0.25 us for each instruction here). */
static size_t emit_rules(struct seccomp_program *program, const struct filter_rule *rules, size_t count) {
    size_t start = program->count, size = group_size(rules, count);
    const struct scmp_arg_cmp *last = &rules->conditions[rules->count - 1];
    for (size_t i = 0; i + 1 < rules->count; i++)
        emit_condition(program, &rules->conditions[i], rules->narrow);
    if (size == 1) {
        emit_condition(program, last, rules->narrow);
    } else {
        emit_load_half(program, last->arg, false);
        for (size_t i = 0; i < size; i++) {
            last = &rules[i].conditions[rules[i].count - 1];
            uint32_t value = (uint32_t)(last->op == SCMP_CMP_EQ ? last->datum_a : last->datum_b);
            bool is_last = i + 1 == size;
            emit_jump(program, simple_test(&rules[i]), value, (uint8_t)(size - i - 1), is_last ? FAIL : 0);
        }
    }
    filter_append_return(program, rules->action);
    resolve_fails(program, start);
    return size;
}

/* --- spans: numbers with one verdict --- */

/* What one layer says: `count` conditional rules, then `action`. */
struct stage {
    uint32_t action;
    const struct filter_rule *rules;
    size_t count;
};

/* Numbers from `start` up to the next span. ALLOW in a stage asks the next one. */
struct span {
    uint32_t start;
    size_t stages_count;
    struct stage stages[FILTER_LAYERS_MAX];
};

struct spans {
    struct span *items;
    size_t count;
    size_t capacity;
};

static bool span_is(const struct span *span, uint32_t action) {
    return span->stages_count == 1 && span->stages[0].count == 0 && span->stages[0].action == action;
}

static void spans_add(struct spans *spans, const struct span *span) {
    if (spans->count > 0 && spans->items[spans->count - 1].start == span->start)
        spans->count--; /* the last one was empty */
    const struct span *last = spans->count > 0 ? &spans->items[spans->count - 1] : NULL;
    if (last != NULL && span_is(span, span->stages[0].action) && span_is(last, span->stages[0].action))
        return; /* goes on */
    /* Grown by powers of two. Joined neighbours leave some hundred of the thousands that a profile could
     * have. */
    if (spans->count == spans->capacity) {
        spans->capacity = spans->capacity == 0 ? 64 : 2 * spans->capacity;
        spans->items = memory_resize(spans->items, spans->capacity, sizeof *spans->items);
    }
    spans->items[spans->count++] = *span;
}

static void spans_add_stage(struct spans *spans, uint32_t start, struct stage stage) {
    spans_add(spans, &(struct span){.start = start, .stages_count = 1, .stages = {stage}});
}

static int compare_rules(const void *left, const void *right) {
    const struct filter_rule *a = left, *b = right;
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

/* The rules from `next` on for one number as a stage; moves `next` behind them. */
static struct stage stage_build(const struct filter_list *rules, size_t *next, uint32_t otherwise) {
    struct stage stage = {.action = otherwise, .rules = &rules->rules[*next]};
    const struct filter_rule *unconditional = NULL;
    uint32_t number = stage.rules->number;
    for (; *next < rules->count && rules->rules[*next].number == number; (*next)++, stage.count++)
        if (unconditional == NULL && rules->rules[*next].count == 0)
            unconditional = &rules->rules[*next];
    if (unconditional != NULL)
        stage = (struct stage){.action = unconditional->action};
    return stage;
}

static struct spans layer_spans(struct filter_layer *layer) {
    struct filter_list *rules = &layer->rules;
    if (rules->count > 0)
        qsort(rules->rules, rules->count, sizeof *rules->rules, compare_rules);
    struct spans spans = {0};
    size_t next = 0;
    for (size_t range = 0; range < layer->ranges_count; range++) {
        uint32_t otherwise = layer->ranges[range].default_action;
        uint32_t last = range + 1 < layer->ranges_count ? layer->ranges[range + 1].start - 1 : UINT32_MAX;
        spans_add_stage(&spans, layer->ranges[range].start, (struct stage){.action = otherwise});
        while (next < rules->count && rules->rules[next].number <= last) {
            uint32_t number = rules->rules[next].number;
            spans_add_stage(&spans, number, stage_build(rules, &next, otherwise));
            if (number < last)
                spans_add_stage(&spans, number + 1, (struct stage){.action = otherwise});
        }
    }
    return spans;
}

static bool stage_may_allow(const struct stage *stage) {
    bool allow = stage->action == SECCOMP_RET_ALLOW;
    for (size_t i = 0; i < stage->count; i++)
        allow = allow || stage->rules[i].action == SECCOMP_RET_ALLOW;
    return allow;
}

/* Adds what the next layer says where the layers so far allow. */
static struct spans spans_join(struct spans first, struct spans second) {
    struct spans joined = {0};
    for (size_t i = 0, k = 0; i < first.count && k < second.count;) {
        struct span span = first.items[i];
        const struct span *other = &second.items[k];
        if (span_is(&span, SECCOMP_RET_ALLOW))
            span = *other;
        else if (stage_may_allow(&span.stages[span.stages_count - 1]) && !span_is(other, SECCOMP_RET_ALLOW))
            span.stages[span.stages_count++] = other->stages[0];
        span.start = first.items[i].start > other->start ? first.items[i].start : other->start;
        spans_add(&joined, &span);
        uint64_t end = i + 1 < first.count ? first.items[i + 1].start : 1ULL << 32;
        uint64_t other_end = k + 1 < second.count ? second.items[k + 1].start : 1ULL << 32;
        i += end <= other_end;
        k += other_end <= end;
    }
    free(first.items);
    free(second.items);
    return joined;
}

/* --- the tree --- */

static void emit_leaf(struct seccomp_program *program, const struct span *span) {
    for (size_t i = 0; i < span->stages_count; i++) {
        const struct stage *stage = &span->stages[i];
        bool is_last = i + 1 == span->stages_count;
        size_t start = program->count;
        for (size_t k = 0; k < stage->count;)
            k += emit_rules(program, &stage->rules[k], stage->count - k);
        if (is_last || stage->action != SECCOMP_RET_ALLOW)
            filter_append_return(program, stage->action);
        for (size_t k = start; !is_last && k < program->count; k++) {
            struct sock_filter *instruction = &program->instructions[k];
            if (instruction->code == (BPF_RET | BPF_K) && instruction->k == SECCOMP_RET_ALLOW)
                *instruction =
                    (struct sock_filter){.code = BPF_JMP | BPF_JA, .k = (uint32_t)(program->count - k - 1)};
        }
    }
}

static void emit_tree(struct seccomp_program *program, const struct span *spans, size_t count) {
    if (count == 1) {
        emit_leaf(program, spans);
        return;
    }
    size_t half = count / 2, jump = program->count;
    emit_jump(program, BPF_JGE, spans[half].start, 0, 0);
    emit_tree(program, spans, half);
    size_t distance = program->count - jump - 1;
    if (distance <= UINT8_MAX) {
        program->instructions[jump].jt = (uint8_t)distance;
    } else {
        /* A conditional jump reaches 255 instructions, an unconditional one all. */
        emit(program, BPF_JMP | BPF_JA, 0, 0, 0);
        memmove(&program->instructions[jump + 2], &program->instructions[jump + 1],
                distance * sizeof *program->instructions);
        program->instructions[jump].jf = 1;
        program->instructions[jump + 1] =
            (struct sock_filter){.code = BPF_JMP | BPF_JA, .k = (uint32_t)distance};
    }
    emit_tree(program, spans + half, count - half);
}

void filter_append(struct seccomp_program *program, uint32_t audit_arch, struct filter_layer *layers,
                   size_t count) {
    struct spans spans = layer_spans(&layers[0]);
    for (size_t i = 1; i < count; i++)
        spans = spans_join(spans, layer_spans(&layers[i]));
    emit_load(program, offsetof(struct seccomp_data, arch));
    emit_jump(program, BPF_JEQ, audit_arch, 1, 0);
    size_t jump = program->count;
    emit(program, BPF_JMP | BPF_JA, 0, 0, 0);
    emit_load(program, offsetof(struct seccomp_data, nr));
    emit_tree(program, spans.items, spans.count);
    program->instructions[jump].k = (uint32_t)(program->count - jump - 1);
    free(spans.items);
}
