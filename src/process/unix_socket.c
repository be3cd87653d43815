#include "process/unix_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/fd.h"

struct error *unix_socket_connect(const char *path, int type, unsigned patience_seconds, const char *what,
                                  int *out) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t length = sizeof address;
    fd_owned int place = -1;
    if (path[0] == '@') {
        size_t name = strlen(path);
        if (name > sizeof address.sun_path)
            return error_new(ERROR_INVALID, "%s %s: longer than the %zu bytes of an abstract address", what,
                             path, sizeof address.sun_path);
        memcpy(address.sun_path + 1, path + 1, name - 1);
        length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + name);
    } else {
        /* sun_path holds 108 bytes; through /proc/self/fd any path fits. */
        place = open(path, O_PATH | O_CLOEXEC);
        if (place < 0)
            return error_system(errno, "open", "%s %s", what, path);
        snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d", place);
    }
    fd_owned int connection = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    if (connection < 0)
        return error_system(errno, "make", "a socket");
    struct timeval patience = {.tv_sec = patience_seconds};
    if (patience_seconds > 0 &&
        setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) < 0)
        return error_system(errno, "set", "a time limit for %s %s", what, path);
    if (connect(connection, (struct sockaddr *)&address, length) < 0)
        return error_system(errno, "connect", "to %s %s", what, path);
    *out = fd_take(&connection);
    return NULL;
}
