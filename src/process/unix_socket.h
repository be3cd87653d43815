/* Sockets that callers name by a path. */
#pragma once

#include "base/error.h"

/* Connects to the socket at `path`, which may be longer than a socket address holds, or begin with "@" for
 * the abstract name space (systemd's notation). `type` is SOCK_STREAM or SOCK_DGRAM; `what` names it in
 * messages. The caller closes *out. */
fallible unix_socket_connect(const char *path, int type, const char *what, int *out);
