/* OCI seccomp documents to one kernel filter (config-linux.md, "Seccomp"). */
#pragma once

#include <linux/filter.h>
#include <stddef.h>

#include "base/error.h"
#include "libocispec/config.h"

struct seccomp_program {
    struct sock_filter *instructions; /* NULL: no filter at all */
    size_t count;
    unsigned flags;    /* for seccomp(2) */
    bool has_listener; /* some rule notifies: load returns a listener descriptor */
};

/* Compiles each document (NULLs are skipped) and joins them to one program: a verdict other than ALLOW is
 * final, ALLOW goes on to the next document. So what the first denies is never widened by the second, and the
 * observer (last) only sees what all others allow. Joined because one listener can be had for a chain of
 * filters, and an ERRNO of a separate filter would win over the notification that the record needs. For the
 * same reason all documents that notify must name the same listenerPath (ERROR_UNAVAILABLE otherwise), and
 * one without is ERROR_INVALID, as is every word that the specification does not know. Calls that the machine
 * does not know are ignored; calls newer than a profile get ENOSYS where its default is another errno. */
fallible seccomp_compile(const struct oci_seccomp *const *documents, size_t count,
                         struct seccomp_program *out);
void seccomp_program_free(struct seccomp_program *program);
/* Raw bytes for the state directory and back, so that exec need not compile again. */
fallible seccomp_program_save(const struct seccomp_program *program, int directory_fd, const char *name);
fallible seccomp_program_load_file(int directory_fd, const char *name, struct seccomp_program *out);
/* seccomp(2) on the calling thread; async-signal-safe on success. *listener is the notify descriptor or -1.
 * Flags that the kernel lacks (WAIT_KILLABLE_RECV before 5.19) are left out on EINVAL. */
fallible seccomp_install(const struct seccomp_program *program, int *listener);
