/* Judges a system call that would change a file by its name: would the kernel answer EROFS, or EACCES or
 * EPERM by the file's owner and mode? Looks through /proc/PID with O_PATH descriptors only, so that it
 * neither changes nor waits for anything. The judgement is for the record: what the mount denies it denies by
 * itself, and whatever is in doubt is left to the kernel.
 */
#pragma once

#include <limits.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <sys/types.h>

struct mutation {
    int error;            /* EROFS, EACCES, EPERM: what the kernel says, or we in its place */
    int activity_id;      /* of OCSF 1001: 1 Create, 3 Update, 4 Delete, 5 Rename */
    const char *doing;    /* "writing to", "creating", ...: a static string */
    char path[PATH_MAX];  /* the file, as seen in the container */
    char place[PATH_MAX]; /* what would have to be writable: the file, or the directory that holds the name */
    bool let_through;     /* the root mount is writable, and would not be with another policy */
    bool of_owner;        /* chown or chmod */
    bool on_root_mount; /* the root file system is read-only, not another mount: the policy can say otherwise
                         */
};

/* True when `call` with these arguments, made by the thread `pid`, fails with out->error; `learning`:
 * or would fail if the root mount were read-only. */
bool mutation_judge(const char *call, const struct seccomp_data *data, pid_t pid, bool learning,
                    struct mutation *out);

/* What `call` was about, which the kernel has denied with `error`: for a record after the fact. `paths`: two,
 * as the call had them, "" for none. Of a caller that is gone what can be told: a relative path stays one.
 * False for a call that is not of files. */
bool mutation_describe(const char *call, const struct seccomp_data *data, pid_t pid, int error,
                       const char *const paths[2], struct mutation *out);
