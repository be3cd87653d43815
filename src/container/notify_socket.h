/* Readiness (sd_notify(3)): a container whose runtime was called with NOTIFY_SOCKET gets a socket of its own
 * at /run/notify/notify.sock, and `start` says to the caller's that it is ready, and nothing else that the
 * container said.
 *
 * Under a confining policy too: the caller's environment asked for it, not the image; no byte of the
 * container's leaves by it, and descriptors that it sends are dropped by the kernel. */
#pragma once

#include "base/error.h"
#include "container/state.h"
#include "harden/harden.h"

/* In the container's state directory. */
#define NOTIFY_DIRECTORY "notify"
#define NOTIFY_SOCKET_NAME "notify.sock"

/* In create, with NOTIFY_SOCKET in the caller's environment: makes the directory, adds its mount and the
 * variable to what is executed. Leaves alone a configuration that has either already: the engine attends to
 * it. */
fallible notify_socket_offer(const struct container *container, struct hardened *hardened);

/* In start, before the container's program runs: listens. *listening is -1 where the caller, or create, had
 * no NOTIFY_SOCKET. The caller closes it. */
fallible notify_socket_listen(const struct container *container, int *listening);
/* After it: waits for READY=1, sends that and MAINPID=`pid` to the caller's NOTIFY_SOCKET, and does not
 * return before that was read (at most 30 s), because a service manager looks the sender up (runc #3291).
 * Returns as well when the container ends. */
fallible notify_socket_relay(int listening, int init_pidfd, pid_t pid);
