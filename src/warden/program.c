#include "warden/program.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"
#include "record/redact.h"
#include "warden/task.h"

#define X32_BIT 0x40000000
#define PAGE_BYTES 4096
#define ARGUMENTS_BYTES 4096 /* as much of argv as a record has room for */
#define ARGUMENTS_MAX 1024
#define POINTERS 32 /* that are read at once */

/* --- memory of the caller --- */

/* As much of `size` bytes as is there; 0 for none. `size` is two pages at most. */
static size_t read_some(pid_t pid, uint64_t address, void *out, size_t size) {
    /* One element for each page: a transfer ends before the first element that is not mapped whole. */
    struct iovec local = {out, size}, remote[3];
    size_t count = 0;
    for (size_t at = 0; at < size; count++) {
        size_t in_page = PAGE_BYTES - (address + at) % PAGE_BYTES;
        size_t length = in_page < size - at ? in_page : size - at;
        remote[count] = (struct iovec){(void *)(uintptr_t)(address + at), length};
        at += length;
    }
    ssize_t length = process_vm_readv(pid, &local, 1, remote, count, 0);
    return length > 0 ? (size_t)length : 0;
}

/* Strings of argv lie side by side as a rule: one transfer brings many. */
struct window {
    pid_t pid;
    uint64_t start;
    size_t length;
    char bytes[PAGE_BYTES];
};

/* Appends the string and its NUL, `room` bytes of it at most; false when it could not be read whole. */
static bool string_append(struct window *window, uint64_t address, size_t room, struct text *out) {
    while (room > 0) {
        if (address < window->start || address >= window->start + window->length) {
            window->start = address;
            window->length = read_some(window->pid, address, window->bytes, sizeof window->bytes);
            if (window->length == 0)
                break;
        }
        const char *from = window->bytes + (address - window->start);
        size_t left = window->length - (size_t)(address - window->start);
        const char *end = memchr(from, '\0', left);
        size_t length = end != NULL ? (size_t)(end - from) : left;
        if (length >= room) {
            text_append_bytes(out, from, room);
            break;
        }
        text_append_bytes(out, from, length);
        if (end != NULL) {
            text_append_bytes(out, "", 1);
            return true;
        }
        room -= length;
        address += length;
    }
    text_append_bytes(out, "", 1);
    return false;
}

static char *arguments_read(pid_t pid, uint64_t address, bool narrow) {
    struct window window = {.pid = pid};
    text_owned struct text bytes = {0};
    uint64_t wide[POINTERS];
    uint32_t half[POINTERS];
    const size_t size = narrow ? sizeof *half : sizeof *wide;
    bool more = true;
    for (size_t number = 0; more && number < ARGUMENTS_MAX; number += POINTERS) {
        size_t got =
            read_some(pid, address + number * size, narrow ? (void *)half : (void *)wide, POINTERS * size) /
            size;
        more = got == POINTERS;
        for (size_t i = 0; i < got; i++) {
            uint64_t pointer = narrow ? half[i] : wide[i];
            if (pointer == 0 || bytes.length >= ARGUMENTS_BYTES ||
                !string_append(&window, pointer, ARGUMENTS_BYTES - bytes.length, &bytes)) {
                more = false;
                break;
            }
        }
    }
    struct text line = {0};
    if (bytes.length > 0)
        redact_arguments(bytes.data, bytes.length, &line);
    return text_take(&line);
}

/* --- what is to be run --- */

static char *link_read(const char *link) {
    char target[PATH_MAX];
    ssize_t length = readlink(link, target, sizeof target - 1);
    target[length > 0 ? length : 0] = '\0';
    return memory_copy_string(target);
}

static char *descriptor_place(pid_t pid, int number) {
    char link[48];
    if (pid == 0)
        snprintf(link, sizeof link, "/proc/self/fd/%d", number);
    else
        snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)pid, number);
    return link_read(link);
}

static void name_take(struct program *program, const char *path) {
    const char *slash = strrchr(path, '/');
    snprintf(program->name, sizeof program->name, "%.*s", PROGRAM_NAME_MAX, slash != NULL ? slash + 1 : path);
}

/* The file. What it leads to from here is what the kernel will find, but for a workload that moves it in
 * between: so `runs` is a first opinion only. */
static void file_read_by_name(struct task *task, int directory, int path_argument, uint64_t flags,
                              struct program *out) {
    char path[PATH_MAX];
    if (!task_read_path(task, path_argument, path))
        return;
    name_take(out, path);
    fd_owned int file = task_resolve(task, directory, path, flags, 0);
    struct stat status;
    if (file < 0) {
        out->runs = errno != ENOENT && errno != ENOTDIR && errno != EACCES && errno != ENAMETOOLONG;
        out->path = memory_copy_string(path);
        return;
    }
    out->runs = fstat(file, &status) == 0 && S_ISREG(status.st_mode) && (status.st_mode & 0111) != 0;
    out->path = descriptor_place(0, file);
}

/* execveat with AT_EMPTY_PATH: the file is a descriptor of the caller's. */
static void file_read_by_descriptor(const struct task *task, struct program *out) {
    out->path = descriptor_place(task->pid, (int)task->data->args[0]);
    out->runs = true;
    name_take(out, out->path);
}

static bool is_narrow(const struct seccomp_data *data) {
    return (data->arch & __AUDIT_ARCH_64BIT) == 0 ||
           (data->arch == AUDIT_ARCH_X86_64 && data->nr >= 0 && (data->nr & X32_BIT) != 0);
}

void program_read(const char *call, const struct seccomp_data *data, pid_t pid, struct program *out) {
    char link[32];
    *out = (struct program){0};
    struct task task = {.pid = pid, .data = data, .root = -1};
    const bool at = strcmp(call, "execveat") == 0;
    const uint64_t flags = at ? data->args[4] : 0;
    if ((flags & AT_EMPTY_PATH) != 0)
        file_read_by_descriptor(&task, out);
    else
        file_read_by_name(&task, at ? 0 : NONE, at ? 1 : 0,
                          (flags & AT_SYMLINK_NOFOLLOW) != 0 ? O_NOFOLLOW : 0, out);
    fd_close(task.root);
    out->arguments = arguments_read(pid, data->args[at ? 2 : 1], is_narrow(data));
    snprintf(link, sizeof link, "/proc/%d/cwd", (int)pid);
    out->directory = link_read(link);
}

void program_clear(struct program *program) {
    free(program->path);
    free(program->arguments);
    free(program->directory);
    *program = (struct program){0};
}

/* --- processes --- */

/* A file of /proc/PID as a string; false when the process is gone. */
static bool entry_read(pid_t pid, const char *name, char *out, size_t size) {
    char path[48];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    fd_owned int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd >= 0 ? read(fd, out, size - 1) : -1;
    out[length > 0 ? length : 0] = '\0';
    return length > 0;
}

bool image_read(pid_t pid, struct image *out) {
    /* proc(5), /proc/PID/stat; the second field is the name, in brackets, and may hold anything. */
    enum { STATE = 3, PARENT = 4, BEGUN = 22, STACK = 28, ARGUMENTS = 48, WAIT_STATUS = 52 };
    char text[1024];
    *out = (struct image){0};
    if (!entry_read(pid, "stat", text, sizeof text))
        return false;
    char *open_bracket = strchr(text, '('), *end = strrchr(text, ')');
    if (open_bracket == NULL || end == NULL || end[1] != ' ')
        return false;
    *end = '\0';
    snprintf(out->name, sizeof out->name, "%s", open_bracket + 1);
    const char *at = end + 2;
    out->state = *at;
    for (int field = STATE; field <= WAIT_STATUS && at != NULL; field++) {
        const uint64_t value = field == STATE ? 0 : strtoull(at, NULL, 10);
        if (field == PARENT)
            out->parent = (pid_t)value;
        else if (field == BEGUN)
            out->begun = value;
        else if (field == STACK)
            out->stack = value;
        else if (field == ARGUMENTS)
            out->arguments = value;
        else if (field == WAIT_STATUS)
            out->wait_status = (int)value;
        at = strchr(at, ' ');
        at = at != NULL ? at + 1 : NULL;
    }
    return true;
}

char *image_path(pid_t pid) {
    char link[32];
    snprintf(link, sizeof link, "/proc/%d/exe", (int)pid);
    return link_read(link);
}

bool image_differs(const struct image *before, const struct image *now) {
    return before->stack != now->stack || before->arguments != now->arguments ||
           strcmp(before->name, now->name) != 0;
}

bool thread_read(pid_t thread, pid_t *process, int64_t *uid) {
    char text[512];
    int number;
    unsigned user;
    if (!entry_read(thread, "status", text, sizeof text))
        return false;
    /* The kernel escapes newlines of the name. */
    const char *group = strstr(text, "\nTgid:"), *users = strstr(text, "\nUid:");
    if (group == NULL || users == NULL || sscanf(group, "\nTgid: %d", &number) != 1 ||
        sscanf(users, "\nUid: %u", &user) != 1)
        return false;
    *process = number;
    *uid = user;
    return true;
}
