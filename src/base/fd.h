/* File descriptors: owned by a scope, close-on-exec from birth, and a close that never loses an errno. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

/* Closes and keeps errno; -1 is fine. */
void fd_close(int fd);
void fd_cleanup(int *fd);
/* `fd_owned int fd = open(...);` closes when it leaves its scope; -1 is "none". */
#define fd_owned __attribute__((cleanup(fd_cleanup)))
/* Hands the descriptor over: returns it and leaves -1. */
int fd_take(int *fd);

/* Two connected sockets whose messages keep their bounds. */
fallible fd_pair(int *one, int *other);

/* Writes all of it; EINTR and short writes are handled. */
fallible fd_write_all(int fd, const void *bytes, size_t length, const char *subject);

/* recv(2) of one message. A peer that closed without reading all that it was sent is ECONNRESET, once, before
 * what the peer itself has said; that comes first here. 0 for one that closed without a word, -1 with errno.
 */
ssize_t fd_receive_message(int socket, void *message, size_t size);
/* Sends `count` descriptors (at most 16) with `length` (1 or more) bytes of payload as one message. */
fallible fd_send(int socket, const void *payload, size_t length, const int *fds, size_t count);
/* Receives one message of exactly `length` bytes and up to `capacity` descriptors (CLOEXEC); *count says how
 * many came. A peer that closed is ERROR_SYSTEM with EPIPE. */
fallible fd_receive(int socket, void *payload, size_t length, int *fds, size_t capacity, size_t *count);
