/* The last steps before a container's program, shared by init and exec. */
#pragma once

#include "base/error.h"
#include "container/seccomp_agent.h"
#include "policy/access_plan.h"
#include "process/identity.h"
#include "process/lsm.h"
#include "process/seccomp.h"

struct program {
    struct oci_process *process;
    const struct oci_linux *linux_config;
    const struct capability_sets *sets;
    const struct seccomp_program *seccomp;
    const char *home; /* of process.user; NULL: as the /etc/passwd that it sees has it */
    struct lsm_attributes labels;
    const struct access_plan *access; /* for Landlock; NULL: it is not used */
    int ruleset;                      /* made from it by program_prepare; -1 before, and without */
    int readable;                     /* what those rules let read, for the warden; the same */
    int channel;                      /* to the warden, -1: none */
    const struct seccomp_agent *agent;
    int report;          /* where an error is sent by whoever cannot return it */
    const char *exec_id; /* NULL for init */
    unsigned preserve_fds;
    bool allow_setgroups;
};

/* Inside the container's root, in its cgroup: the rules of Landlock, personality, memory policy, environment,
 * working directory, identity where no_new_privs lets it be assumed before the filter, and the command.
 * *command is the path that program_exec is to be given; the caller frees it. */
fallible program_prepare(struct program *program, char **command);

/* For a hook that runs a file of the container's: what the program will be confined by, in a process of its
 * own. Calls that an agent of the user's would have decided are denied with ENOSYS. */
fallible program_confine(void *program);

/* Restricts itself by Landlock, loads the filter, hands its listener to the seccomp agent or the warden,
 * drops what is left to drop, and becomes the program, which gets no descriptor that is not its own. Returns
 * only with an error. */
fallible program_exec(struct program *program, const char *command);
