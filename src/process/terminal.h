/* Pseudo-terminals (config.md, "process.terminal"): made in the container's own devpts, handed to whoever
 * attends. */
#pragma once

#include <sys/types.h>

#include "base/error.h"
#include "libocispec/config.h"

/* Opens a new terminal; `pts` is the container's /dev/pts (O_PATH). The other end is opened from the
 * descriptor, not by its name, and given to the container's user. */
fallible terminal_open(int pts, const struct oci_process *process, int *leader, int *other);

/* Makes it the controlling terminal and standard input, output and error of the calling session leader. */
fallible terminal_take(int other);

/* Sends the terminal through the engine's console socket: one message, the name as payload, one descriptor.
 */
fallible terminal_send(int socket, int leader);

/* Connects to a console socket whose path may be longer than a socket address holds. */
fallible terminal_connect(const char *path, int *out);

/* Attends a terminal in the foreground until the process behind `pidfd` has ended and its output is drained:
 * copies standard input and output, follows the size of our own terminal, forwards signals. */
fallible terminal_attend(int leader, int pidfd);

/* The same without a terminal: only forwards signals. */
fallible signals_attend(int pidfd);

/* Standard streams that are not terminals are given to the container's user and group, so that it can open
 * /dev/stdout.
 */
void standard_streams_give(uid_t uid, gid_t gid);
