/* Judges a system call that would open a file for reading, or execute it: does a rule of Landlock let it? The
 * rules are those of the caller's own domain, by the inodes that the kernel has them by, and looked for in
 * the kernel's way: at the file and at each directory above it. So hard links, symlinks and mounts need no
 * thought here. What is in doubt is left to the kernel. */
#pragma once

#include "policy/access_plan.h"
#include "warden/mutation.h"

/* The inodes below which a domain may read, sorted. Without any, nothing is judged. */
struct readable {
    struct access_inode *items;
    size_t count;
};

/* Reads what landlock_prepare wrote; ERROR_INVALID for anything else. */
fallible readable_read(int fd, struct readable *out);
void readable_clear(struct readable *readable);

/* True when `call` with these arguments, made by the thread `pid`, fails with EACCES for out->path, and would
 * not without Landlock. */
bool reading_judge(const char *call, const struct seccomp_data *data, pid_t pid,
                   const struct readable *readable, struct mutation *out);
