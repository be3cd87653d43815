/* The thread whose call is judged: what it wrote down, and what its names stand for. Everything is looked at
 * through /proc/PID and with O_PATH descriptors, so that nothing is changed or waited for. */
#pragma once

#include <limits.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#define NONE (-1) /* of a call's arguments */

struct task {
    pid_t pid;
    const struct seccomp_data *data;
    int root; /* O_PATH, -1 until it is needed; the caller closes it */
    bool learning;
    const char *const
        *recorded;      /* two paths as the call had them when it was denied, NULL: read its memory */
    int recorded_first; /* the argument that the first one was */
    bool creates;       /* that a file is not there is usual */
};

bool task_read_memory(const struct task *task, uint64_t address, void *out, size_t size);
/* A path, NUL-terminated; false for "" and for what is too long or not there. */
bool task_read_path(const struct task *task, int argument, char out[PATH_MAX]);
/* The task's root, opened when it is first asked for; -1 when that cannot be had. */
int task_root(struct task *task);
/* What the descriptor stands for that `argument` is, O_PATH; the working directory for NONE and AT_FDCWD. */
int task_base(const struct task *task, int argument);
/* The text of a descriptor's place, as seen from the task's root. */
bool task_place_of(struct task *task, int fd, char out[PATH_MAX]);

/* What `path` names for the task: O_PATH, the caller closes it; -1 with errno. `directory` is the argument
 * that it begins at or NONE, `flags` O_NOFOLLOW or O_DIRECTORY, `how` what openat2 was asked for
 * (RESOLVE_...). */
int task_resolve(struct task *task, int directory, const char *path, uint64_t flags, uint64_t how);

/* A path cut in two: the directory, opened, and the last name. */
struct name {
    int parent;
    char last[NAME_MAX + 1];
    bool slash; /* the path ended with one */
};

/* False (errno is kept) for a last name that is "." or "..", or none; the parent is the caller's to close. */
bool task_resolve_parent(struct task *task, int directory, const char *path, uint64_t how, struct name *out);

/* Whether the mode bits alone keep the task from what `bit` (S_IROTH, S_IWOTH, S_IXOTH) is for: the kernel
 * looks at them before the mount and before Landlock, so its answer is EACCES. Access control lists and other
 * modules are not looked at. True also where nothing can be read of the task. */
bool task_mode_denies(const struct task *task, const struct stat *file, mode_t bit);
/* Whether the kernel refuses the task, with EACCES, one of `bits` (as above, a sum) for the file or directory
 * that `fd` stands for, by its owner and mode. False in doubt: an access control list, or a task that cannot
 * be read. */
bool task_is_refused(const struct task *task, int fd, mode_t bits);
/* Whether the task is neither the file's owner nor has the capability for what only an owner may do: EPERM.
 * False in doubt. */
bool task_is_stranger(const struct task *task, int fd, int capability);
