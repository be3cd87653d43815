/* OCI seccomp documents to one kernel filter (config-linux.md, "Seccomp"). */
#pragma once

#include <linux/filter.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
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
 * one without is ERROR_INVALID, as is every word that the specification does not know. A listenerPath that is
 * not absolute means the runtime's own listener.
 *
 * Names that neither libseccomp nor this runtime knows are left out of the filter and, once each, appended to
 * *unknown (which may be NULL). A call whose number is above every one that the profile names (for that ABI)
 * gets ENOSYS where the default would deny or kill: the profile means the calls that were there when it was
 * written, and libc tries new ones (clone3, openat2, fchmodat2) and falls back on ENOSYS alone. Where the
 * default lets the call through (ALLOW, LOG) or asks a tracer, that decides. */
fallible seccomp_compile(const struct oci_seccomp *const *documents, size_t count,
                         struct string_list *unknown, struct seccomp_program *out);
void seccomp_program_free(struct seccomp_program *program);
/* Raw bytes for the state directory and back, so that exec need not compile again. */
fallible seccomp_program_save(const struct seccomp_program *program, int directory_fd, const char *name);
fallible seccomp_program_load_file(int directory_fd, const char *name, struct seccomp_program *out);
/* seccomp(2) on the calling thread; async-signal-safe on success. *listener is the notify descriptor or -1.
 * Flags that the kernel lacks (WAIT_KILLABLE_RECV before 5.19) are left out on EINVAL. */
fallible seccomp_install(const struct seccomp_program *program, int *listener);
/* The same for a program with a listener, which is given to `deliver` in a thread that the filter does not
 * hold: sendmsg may itself be a call that waits for the listener's owner (crun #1002). Returns when `deliver`
 * has, without a system call in between, and the listener is closed then. `deliver` cannot fail: what it
 * cannot send ends the process. TSYNC, which would reach that thread, is left out: there is no other one. */
fallible seccomp_install_delivered(const struct seccomp_program *program,
                                   void (*deliver)(int listener, void *data), void *data);
/* The filter for a process whose listener nobody will have: calls that notify fail with ENOSYS. */
void seccomp_program_forgo_listener(struct seccomp_program *program);
/* Whether the filter lets this call of the native ABI through whatever its arguments. */
bool seccomp_program_allows(const struct seccomp_program *program, int number);
/* What the filter answers this call of the native ABI: SECCOMP_RET_..., for `pinfold why`. */
uint32_t seccomp_program_verdict(const struct seccomp_program *program, int number,
                                 const uint64_t arguments[6]);
