#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"

#define FIRST_READ 4096

struct error *file_read(int directory, const char *path, size_t limit, struct text *out) {
    fd_owned int fd = openat(directory, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return error_system(errno, "open", "%s", path);
    /* Straight into the text: a buffer on the stack costs a page fault for each of its pages, read or not. */
    for (size_t total = 0;;) {
        size_t room = total < FIRST_READ ? FIRST_READ : total;
        ssize_t length = read(fd, text_room(out, room), room);
        if (length < 0 && errno == EINTR)
            continue;
        if (length < 0)
            return error_system(errno, "read", "%s", path);
        if (length == 0)
            return NULL;
        total += (size_t)length;
        if (total > limit)
            return error_new(ERROR_INVALID, "%s: larger than the %zu bytes allowed", path, limit);
        text_grown(out, (size_t)length);
    }
}

static struct error *file_make(int directory, const char *path, const void *bytes, size_t length,
                               mode_t mode) {
    fd_owned int fd = openat(directory, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0)
        return error_system(errno, "create", "%s", path);
    return fd_write_all(fd, bytes, length, path);
}

struct error *file_replace(int directory, const char *path, const void *bytes, size_t length, mode_t mode) {
    memory_owned char *temporary = text_formatted("%s.%d.new", path, (int)getpid());
    struct error *error = file_make(directory, temporary, bytes, length, mode);
    if (error != NULL && error->number == EEXIST && unlinkat(directory, temporary, 0) == 0) {
        error_free(error);
        error = file_make(directory, temporary, bytes, length, mode);
    }
    if (error == NULL && renameat(directory, temporary, directory, path) < 0)
        error = error_system(errno, "rename", "%s", path);
    if (error != NULL)
        (void)!unlinkat(directory, temporary, 0);
    return error;
}

struct error *file_write_once(int directory, const char *path, const char *value) {
    fd_owned int fd = openat(directory, path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return error_system(errno, "open", "%s", path);
    ssize_t written;
    do
        written = write(fd, value, strlen(value));
    while (written < 0 && errno == EINTR);
    if (written < 0)
        return error_system(errno, "write", "%s to %s", value, path);
    return NULL;
}
