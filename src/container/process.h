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

/* The identity of a living process. */
fallible process_identify(pid_t pid, struct process_identity *out);
/* Opens the very process; *pidfd is -1 when it has ended (a zombie has). */
void process_open(const struct process_identity *identity, int *pidfd);

/* Waits for a child of this process: 128 + signal, or its exit status. */
int process_wait(pid_t pid);

/* A pid file as callers read it: digits, no newline, replaced as a whole. */
fallible pid_file_write(const char *path, pid_t pid);
