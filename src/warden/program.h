/* What a call of execve asks for, and what /proc says of the process that made it. Strings are the
 * workload's: bounded, and without the secrets that argv shows. */
#pragma once

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PROGRAM_NAME_MAX 15 /* of the kernel's: TASK_COMM_LEN */

struct program {
    char *path;      /* of the file, as seen in the container; as written where it leads to none */
    char *arguments; /* argv joined by spaces */
    char *directory; /* the working directory, as seen in the container */
    char name[PROGRAM_NAME_MAX + 1]; /* what the kernel will call the process */
    bool runs;                       /* nothing was seen that would make the call fail */
};

/* Reads what the thread `pid` asks for by `call`, which is execve or execveat. */
void program_read(const char *call, const struct seccomp_data *data, pid_t pid, struct program *out);
void program_clear(struct program *program);

/* One process at one moment. */
struct image {
    char name[64];
    char state; /* R, S, Z, ... */
    pid_t parent;
    uint64_t begun; /* in the kernel's ticks; with the pid it names one process for good */
    /* Where its stack and its arguments begin: elsewhere after each execve, and 0 for whoever may not look.
     */
    uint64_t stack, arguments;
    int wait_status; /* of a process that has ended (Z), as far as one may look */
};

/* False when there is no such process. */
bool image_read(pid_t pid, struct image *out);
/* Whether the process has become another program in between. */
bool image_differs(const struct image *before, const struct image *now);

/* The path of what a process executes, as seen in the container; "" where nobody may look. The caller frees
 * it. */
char *image_path(pid_t pid);

/* The process that a thread belongs to, and its real uid; false when it is gone. */
bool thread_read(pid_t thread, pid_t *process, int64_t *uid);
