/* Processes of a container, as other commands find them again. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* A process that cannot be mistaken for another one that got its number: the start time goes with it. */
struct process_identity {
    int64_t pid;
    uint64_t start_time; /* field 22 of /proc/PID/stat, clock ticks since boot */
};

/* The parent of a process; 0 when that cannot be told. */
pid_t process_parent(pid_t pid);
/* The identity of a living process. */
fallible process_identify(pid_t pid, struct process_identity *out);
/* Opens the very process; *pidfd is -1 when it has ended: a zombie has, one that is on its way through
 * exit(2) has not. To wait for the end of. */
void process_open(const struct process_identity *identity, int *pidfd);
/* Opens it if it still runs: one that exits holds on to its pid for milliseconds while its namespaces are
 * torn down, and can be neither joined nor started any more. */
void process_open_alive(const struct process_identity *identity, int *pidfd);

/* Sends a descriptor of a process to the socket at `path` (--pidfd-socket), as one message. */
fallible pidfd_send(const char *path, int pidfd);

/* Replaces the descriptors 3 to 2 + `count` by ones that lead nowhere and close at execve. */
fallible descriptors_withhold(unsigned count);

/* Waits for a child of this process: 128 + signal, or its exit status. */
int process_wait(pid_t pid);

/* A pid file as callers read it: digits, no newline, replaced as a whole. The path is the caller's: nothing
 * here changes the working directory before. */
fallible pid_file_write(const char *path, pid_t pid);
