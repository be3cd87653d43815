/* The last steps before a container's program, shared by init and exec. */
#pragma once

#include "base/error.h"
#include "process/identity.h"
#include "process/seccomp.h"

struct program {
    struct oci_process *process;
    const struct capability_sets *sets;
    const struct seccomp_program *seccomp;
    int channel;         /* to the warden, -1: none */
    const char *exec_id; /* NULL for init */
    unsigned preserve_fds;
    bool allow_setgroups;
};

/* Loads the filter, hands its listener to the warden, drops what is left to drop, closes what is not the
 * container's, and becomes the program. Returns only with an error. */
fallible program_exec(const struct program *program, const char *command);
