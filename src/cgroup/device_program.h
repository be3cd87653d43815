/* Device rules as a program of BPF_PROG_TYPE_CGROUP_DEVICE, which is how cgroup v2 knows them. Pure: text in,
 * instructions out. */
#pragma once

#include <linux/bpf.h>
#include <stddef.h>

#include "base/error.h"
#include "libocispec/config.h"

struct cgroup_device_program {
    struct bpf_insn *instructions;
    size_t count;
};

/* The program of the document's rules: everything is denied but the standard devices, then the rules in their
 * order; for each of read, write and mknod the last rule that covers it decides, and a request for several
 * needs all of them. Rules that deny or allow everything begin anew, as in v1, and what stood before them is
 * left out. ERROR_INVALID names the rule. */
fallible cgroup_device_program_make(const struct oci_device_cgroup *rules, size_t count,
                                    struct cgroup_device_program *out);
void cgroup_device_program_free(struct cgroup_device_program *program);
#define cgroup_device_program_owned __attribute__((cleanup(cgroup_device_program_free)))
