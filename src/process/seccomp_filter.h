/* From rules to instructions: the filter of one ABI as a binary tree over ranges of system call numbers.
 *
 * Why not libseccomp's generator: for podman's default profile it takes 11 ms here (18 ms for its tree), more
 * than everything else in a container's start, and writes 1144 instructions. Names and architectures still
 * come from libseccomp's tables, and a unit test compares the verdicts for that profile. */
#pragma once

#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "process/seccomp.h"

struct filter_rule {
    uint32_t number;
    uint32_t action;                       /* SECCOMP_RET_... */
    const struct scmp_arg_cmp *conditions; /* all must hold; borrowed */
    size_t count;
    bool narrow;  /* an ABI of 32-bit arguments: the upper half is not looked at */
    size_t order; /* set by filter_list_add */
};

struct filter_list {
    struct filter_rule *rules;
    size_t count;
};
void filter_list_add(struct filter_list *list, struct filter_rule rule);
void filter_list_free(struct filter_list *list);

/* A range of numbers with a default of its own, for example those of x32 beside those of x86_64. */
struct filter_range {
    uint32_t start; /* the range ends where the next one starts */
    uint32_t default_action;
};

/* What one document says about one audit architecture. A call that a rule without conditions names gets the
 * action of the first such rule (as libseccomp has it); else the first rule whose conditions hold decides,
 * else the default of the number's range. `ranges` is in ascending order and begins at 0. */
struct filter_layer {
    struct filter_list rules;
    struct filter_range ranges[6];
    size_t ranges_count;
};
#define FILTER_LAYERS_MAX 4

/* Appends the code for calls of `audit_arch`; for others it jumps over it. A layer's verdict is final unless
 * it is ALLOW; then the next layer is asked. The layers are joined here, into one tree, and not by running
 * one program after the other: the kernel runs a filter once for each call of each ABI when it loads it (half
 * of what loading costs). The rules of the layers are sorted in place. */
void filter_append(struct seccomp_program *program, uint32_t audit_arch, struct filter_layer *layers,
                   size_t count);

/* Appends `return action`. */
void filter_append_return(struct seccomp_program *program, uint32_t action);
