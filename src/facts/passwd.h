/* passwd by hand: the binary is static, and the container's file is hostile text. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/text.h"

#define PASSWD_BYTES_MAX (1024 * 1024)

/* The home of the first line with this uid, or NULL. Lines that are not passwd lines are passed over; a home
 * that is not an absolute path counts as none. The caller frees it. */
char *passwd_home(const char *bytes, size_t length, uid_t uid);
/* The name of the first line with this uid, or NULL; the caller frees it. */
char *passwd_name(const char *bytes, size_t length, uid_t uid);
/* Reads a regular file through an O_PATH descriptor, at most PASSWD_BYTES_MAX bytes; NULL for anything else
 * (a FIFO, a device, a directory: never opened). The caller frees it. */
char *passwd_read(int path_fd, size_t *length);
/* The same through a descriptor that is open for reading, which was opened with O_NONBLOCK. */
char *passwd_read_opened(int fd, size_t *length);
/* The homes of people (uid 1000 and up, not `nobody`), at most a few dozen. A daemon that runs as root starts
 * containers for all of them, so that its own home says little. */
void passwd_people(const char *bytes, size_t length, struct string_list *homes);
