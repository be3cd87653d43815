/* Programs that are run in the container: each is two records, of its start and of its end (OCSF 1007 Launch
 * and Terminate). The source of events is the notified execve, which tells an attempt and not a success: so
 * an attempt is kept until it shows what came of it. A process that asks again has failed before, unless it
 * has become another program meanwhile; what /proc shows of it decides, and where it has ended already, what
 * was seen of the file. Attempts of one PATH search are one start thereby. Ends come from a pidfd, which is
 * opened while the call waits. How many are watched is bounded; beyond, an end is counted in
 * `unmapped.suppressed` of the start.
 *
 * Another source (a BPF program on exec and exit) would tell both for sure; it would call what stands behind
 * an attempt, execution_begun and execution_ended in executions.c, which need the pid alone. */
#pragma once

#include <linux/seccomp.h>

#include "warden/observers.h"

/* Whether a notified call runs a program. */
bool executions_is_call(const char *call);
/* The process is about to run a program. To be called before its call is answered, and after whatever may
 * deny it; `exec_id` is NULL for the container's own processes. */
void executions_attempt(struct warden_context *context, const char *call, const struct seccomp_notif *request,
                        const char *exec_id);

/* Becomes readable when a process ends; -1 while none is watched. */
int executions_descriptor(const struct warden_context *context);
/* Milliseconds until executions_handle has something to do, -1 for nothing. */
int executions_timeout(const struct warden_context *context);
/* Records what has ended, and what has become of attempts. */
void executions_handle(struct warden_context *context);
/* Init has ended, and with it all processes. */
void executions_finish(struct warden_context *context);
