#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "cgroup/internal.h"

/* "DIRECTORY/FILE", NUL-terminated, or an empty string when it is too long to exist. */
static void file_path(char *path, size_t size, const char *directory, const char *file) {
    size_t first = strlen(directory);
    size_t second = strlen(file);
    if (first + second + 2 > size) {
        path[0] = '\0';
        return;
    }
    memcpy(path, directory, first);
    path[first] = '/';
    memcpy(path + first + 1, file, second + 1);
}

struct error *cgroup_file_write(const char *directory, const char *file, const char *value) {
    char path[4096];
    file_path(path, sizeof path, directory, file);
    /* Never O_CREAT: in a directory that is not a cgroup after all this must fail. */
    fd_owned int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return error_system(errno, "open", "%s/%s", directory, file);
    ssize_t written;
    do
        written = write(fd, value, strlen(value)); /* one write: the kernel parses each on its own */
    while (written < 0 && errno == EINTR);
    if (written < 0)
        return error_system(errno, "write", "%s to %s", value, path);
    return NULL;
}

static char *read_open(int fd) {
    struct text text = {0};
    text_append(&text, "");
    for (;;) {
        char buffer[4096];
        ssize_t length = read(fd, buffer, sizeof buffer);
        if (length < 0 && errno == EINTR)
            continue;
        if (length < 0) {
            int saved = errno;
            text_free(&text);
            errno = saved;
            return NULL;
        }
        if (length == 0)
            break;
        text_append_bytes(&text, buffer, (size_t)length);
    }
    if (text.length > 0 && text.data[text.length - 1] == '\n')
        text.data[--text.length] = '\0';
    return text_take(&text);
}

char *cgroup_file_read(const char *directory, const char *file) {
    char path[4096];
    file_path(path, sizeof path, directory, file);
    fd_owned int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 ? NULL : read_open(fd);
}

char *cgroup_file_read_at(int directory, const char *file) {
    fd_owned int fd = openat(directory, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 ? NULL : read_open(fd);
}

bool cgroup_file_exists(const char *directory, const char *file) {
    char path[4096];
    file_path(path, sizeof path, directory, file);
    return access(path, F_OK) == 0;
}

bool cgroup_word_in(const char *words, const char *separators, const char *word) {
    size_t length = strlen(word);
    for (const char *next = words; *next != '\0';) {
        size_t span = strcspn(next, separators);
        if (span == length && memcmp(next, word, length) == 0)
            return true;
        next += span;
        next += strspn(next, separators);
    }
    return false;
}

char *cgroup_path_parent(const char *path) {
    char *parent = memory_copy_string(path);
    char *slash = strrchr(parent, '/');
    if (slash == NULL || slash == parent) {
        free(parent);
        return memory_copy_string("/");
    }
    *slash = '\0';
    return parent;
}

char *cgroup_path_existing(const char *path) {
    char *existing = memory_copy_string(path);
    while (access(existing, F_OK) < 0 && strcmp(existing, "/") != 0) {
        char *parent = cgroup_path_parent(existing);
        free(existing);
        existing = parent;
    }
    return existing;
}

bool cgroup_path_is_cgroup(const char *path, bool *unified) {
    fd_owned int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct statfs system;
    if (fd < 0 || fstatfs(fd, &system) < 0)
        return false;
    if (unified != NULL)
        *unified = system.f_type == CGROUP2_SUPER_MAGIC;
    return system.f_type == CGROUP_SUPER_MAGIC || system.f_type == CGROUP2_SUPER_MAGIC;
}

void cgroup_settings_add(struct cgroup_settings *settings, const char *field, const char *controller,
                         const char *file, char *value) {
    if (settings->count == sizeof settings->items / sizeof settings->items[0])
        abort(); /* a constant of the callers' code */
    settings->items[settings->count++] =
        (struct cgroup_setting){.field = field, .controller = controller, .file = file, .value = value};
}

struct error *cgroup_settings_write(struct cgroup_settings *settings, const char *directory) {
    for (;;) {
        bool progress = false;
        error_owned refused = NULL;
        for (size_t i = 0; i < settings->count; i++) {
            struct cgroup_setting *setting = &settings->items[i];
            if (setting->done)
                continue;
            struct error *error = cgroup_file_write(directory, setting->file, setting->value);
            if (error == NULL) {
                setting->done = true;
                progress = true;
                continue;
            }
            if (error->number == ENOENT) {
                error_free(error);
                return error_new(ERROR_UNAVAILABLE, "%s: the %s controller of this machine has no %s in %s",
                                 setting->field, setting->controller, setting->file, directory);
            }
            error = error_context(error, "%s", setting->field);
            if (error->number != EINVAL)
                return error;
            /* Perhaps refused only because a value that it depends on is still the old one. */
            if (refused == NULL)
                refused = error;
            else
                error_free(error);
        }
        if (refused == NULL)
            return NULL;
        if (!progress) {
            struct error *error = refused;
            refused = NULL;
            return error;
        }
    }
}

void cgroup_settings_free(struct cgroup_settings *settings) {
    for (size_t i = 0; i < settings->count; i++)
        free(settings->items[i].value);
    settings->count = 0;
}

struct error *cgroup_file_expect(const char *field, const char *directory, const char *file,
                                 uint64_t expected) {
    memory_owned char *content = cgroup_file_read(directory, file);
    if (content == NULL)
        return error_context(error_system(errno, "read", "%s/%s", directory, file), "%s", field);
    char *end = NULL;
    errno = 0;
    uint64_t number = strtoull(content, &end, 10);
    if (errno != 0 || end == content || *end != '\0' || number != expected)
        return error_new(ERROR_UNAVAILABLE, "%s: the kernel holds %s in %s/%s, where %" PRIu64 " was written",
                         field, content, directory, file, expected);
    return NULL;
}
