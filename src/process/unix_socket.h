/* Sockets that callers name by a path. */
#pragma once

#include "base/error.h"

/* Connects to the socket at `path`, which may be longer than a socket address holds, or begin with "@" for
 * the abstract name space (systemd's notation). `type` is SOCK_STREAM or SOCK_DGRAM; `what` names it in
 * messages. The caller closes *out. `patience_seconds`: how long connecting, and each sending, may wait for
 * the other side; 0: for ever. */
fallible unix_socket_connect(const char *path, int type, unsigned patience_seconds, const char *what,
                             int *out);
