#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "record/record.h"
#include "record/redact.h"

#define COMMAND_LINE_READ 4096

void record_process_clear(struct record_process *process) {
    free(process->name);
    free(process->executable);
    free(process->command_line);
    *process = (struct record_process){.uid = -1};
}

/* Up to `capacity` bytes of a file in the process's directory; 0 for none. */
static size_t read_entry(int directory, const char *name, char *buffer, size_t capacity) {
    fd_owned int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (fd < 0)
        return 0;
    size_t length = 0;
    while (length < capacity) {
        ssize_t got = read(fd, buffer + length, capacity - length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        length += (size_t)got;
    }
    return length;
}

/* The real uid of `status`. The kernel escapes newlines in the Name line, so a process cannot write a line of
 * its own. */
static int64_t status_uid(char *status) {
    const char *line = strstr(status, "\nUid:\t");
    return line ? (int64_t)strtoul(line + 6, NULL, 10) : -1;
}

/* What a process shows of itself it can also change (comm, argv); executable and uid it cannot. The reads do
 * not wait for the process: since 4.17 the kernel reads argv from anonymous memory only, so a FUSE or device
 * mapping put there cannot hold the reader (CVE-2018-1120); userfaultfd, which could, is not among the
 * allowed system calls. */
void record_process_read(pid_t pid, struct record_process *out) {
    *out = (struct record_process){.pid = pid, .uid = -1};
    if (pid <= 0)
        return;
    char path[32];
    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    /* One descriptor for all entries: a pid that is reused in between gives nothing instead of another's
     * names. */
    fd_owned int directory = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return;

    char buffer[COMMAND_LINE_READ + 1];
    size_t length = read_entry(directory, "comm", buffer, 64);
    if (length > 0 && buffer[length - 1] == '\n')
        length--;
    if (length > 0) {
        buffer[length] = '\0';
        out->name = memory_copy_string(buffer);
    }

    ssize_t link = readlinkat(directory, "exe", buffer, COMMAND_LINE_READ);
    if (link > 0) {
        buffer[link] = '\0';
        out->executable = memory_copy_string(buffer);
    }

    length = read_entry(directory, "cmdline", buffer, COMMAND_LINE_READ);
    if (length > 0) {
        struct text line = {0};
        buffer[length] = '\0';
        redact_arguments(buffer, length, &line);
        out->command_line = text_take(&line);
    }

    length = read_entry(directory, "status", buffer, COMMAND_LINE_READ);
    buffer[length] = '\0';
    out->uid = status_uid(buffer);
}
