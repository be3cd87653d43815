/* /proc, for what the runtime writes there and for the links that it follows: the only way to do either.
 * Whoever writes through a path "/proc/..." may be writing to a file of the image, or to another file of
 * procfs that was mounted over the right one (CVE-2019-16884, CVE-2019-19921, CVE-2023-28642,
 * CVE-2025-52881). */
#pragma once

#include <sys/types.h>

#include "base/error.h"

/* The root of a procfs that nobody else can have mounted over. A type of its own, so that no other directory
 * is taken for one. */
struct procfs {
    int fd; /* O_PATH; -1: none */
};
#define PROCFS_NONE ((struct procfs){-1})

enum procfs_part {
    PROCFS_PROCESSES, /* only the directories of processes: a descriptor that leaked would show no more */
    PROCFS_WHOLE      /* with /proc/sys */
};

/* Opens one in the process namespace of the caller: a new, detached one where the caller may make it (fsopen;
 * here 17 us, and 35 to close it), else this mount namespace's /proc, after its type and root inode were
 * verified. What is mounted below that one is refused at each use. Whose "self" and whose sysctls are meant
 * is told by the process that uses it, not by the one that opened it: create's handle serves init. */
fallible procfs_open(enum procfs_part part, struct procfs *out);
void procfs_close(struct procfs *procfs);
#define procfs_owned __attribute__((cleanup(procfs_close)))

/* Opens "self/attr/exec", "sys/kernel/sem", ...: no symlink but "self" and "thread-self" is followed, no
 * mount is crossed, and the file must be one of procfs. The caller closes *out. */
fallible procfs_open_file(const struct procfs *procfs, const char *path, int flags, int *out);

/* The same, and writes `value` in one call. */
fallible procfs_write(const struct procfs *procfs, const char *path, const char *value);
/* That of process `pid` in the process namespace of the handle: procfs_write_process(p, 12, "uid_map",
 * lines). */
fallible procfs_write_process(const struct procfs *procfs, pid_t pid, const char *file, const char *value);

/* Opens what the namespace link /proc/PID/ns/NAME of a process stands for, O_RDONLY. */
fallible procfs_open_namespace(const struct procfs *procfs, pid_t pid, const char *name, int *out);
