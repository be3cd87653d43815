/* The last steps before a container's program, shared by init and exec. */
#pragma once

#include "base/error.h"
#include "container/seccomp_agent.h"
#include "process/identity.h"
#include "process/seccomp.h"

struct program {
    struct oci_process *process;
    const struct capability_sets *sets;
    const struct seccomp_program *seccomp;
    int channel; /* to the warden, -1: none */
    const struct seccomp_agent *agent;
    int report;          /* where an error is sent by whoever cannot return it */
    const char *exec_id; /* NULL for init */
    unsigned preserve_fds;
    bool allow_setgroups;
};

/* Loads the filter, hands its listener to the seccomp agent or the warden, drops what is left to drop, and
 * becomes the program, which gets no descriptor that is not its own. Returns only with an error. */
fallible program_exec(const struct program *program, const char *command);
