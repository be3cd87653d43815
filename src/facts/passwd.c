#include "facts/passwd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"

#define PASSWD_PEOPLE_MAX 32
#define FIRST_PERSON 1000
#define NOBODY 65534

/* passwd(5) */
enum passwd_field { FIELD_NAME = 0, FIELD_UID = 2, FIELD_HOME = 5 };

/* The colon-separated field `index` of a line, or false. */
static bool field(const char *line, size_t length, int index, const char **start, size_t *size) {
    const char *end = line + length;
    for (; index > 0; index--) {
        line = memchr(line, ':', (size_t)(end - line));
        if (line == NULL)
            return false;
        line++;
    }
    const char *colon = memchr(line, ':', (size_t)(end - line));
    *start = line;
    *size = (size_t)((colon != NULL ? colon : end) - line);
    return true;
}

/* Digits only: strtoul would take "-1", blanks and wrap around. */
static bool parse_uid(const char *digits, size_t size, uid_t *uid) {
    unsigned long long value = 0;
    if (size == 0 || size > 10)
        return false;
    for (size_t i = 0; i < size; i++) {
        if (digits[i] < '0' || digits[i] > '9')
            return false;
        value = value * 10 + (unsigned)(digits[i] - '0');
    }
    if (value > 4294967294u)
        return false;
    *uid = (uid_t)value;
    return true;
}

/* The next line with a uid and the field `wanted`; false at the end. */
static bool next_entry(const char **at, const char *end, enum passwd_field wanted, uid_t *uid,
                       const char **value, size_t *value_size) {
    while (*at < end) {
        const char *line = *at;
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        size_t size = (size_t)((newline != NULL ? newline : end) - line);
        const char *digits;
        size_t digits_size;
        *at = line + size + 1;
        if (field(line, size, FIELD_UID, &digits, &digits_size) && parse_uid(digits, digits_size, uid) &&
            field(line, size, wanted, value, value_size))
            return true;
    }
    return false;
}

/* A copy of an absolute path, NULL for anything else. */
static char *copy_home(const char *home, size_t size) {
    if (size == 0 || home[0] != '/' || memchr(home, '\0', size) != NULL)
        return NULL;
    char *copy = memory_zeroed(size + 1);
    memcpy(copy, home, size);
    return copy;
}

char *passwd_home(const char *bytes, size_t length, uid_t uid) {
    const char *end = bytes + length;
    const char *home;
    size_t size;
    uid_t found;
    while (next_entry(&bytes, end, FIELD_HOME, &found, &home, &size))
        if (found == uid)
            return copy_home(home, size);
    return NULL;
}

char *passwd_name(const char *bytes, size_t length, uid_t uid) {
    const char *end = bytes + length;
    const char *name;
    size_t size;
    uid_t found;
    while (next_entry(&bytes, end, FIELD_NAME, &found, &name, &size))
        if (found == uid && size > 0)
            return strndup(name, size);
    return NULL;
}

void passwd_people(const char *bytes, size_t length, struct string_list *homes) {
    const char *end = bytes + length;
    const char *home;
    size_t size;
    uid_t uid;
    while (homes->count < PASSWD_PEOPLE_MAX && next_entry(&bytes, end, FIELD_HOME, &uid, &home, &size)) {
        if (uid < FIRST_PERSON || uid == NOBODY)
            continue;
        memory_owned char *copy = copy_home(home, size);
        if (copy != NULL && !string_list_contains(homes, copy))
            string_list_append(homes, copy);
    }
}

char *passwd_read(int path_fd, size_t *length) {
    struct stat status;
    if (fstat(path_fd, &status) != 0 || !S_ISREG(status.st_mode))
        return NULL;
    /* The descriptor is O_PATH and known to be a regular file; only now is it opened for reading. */
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", path_fd);
    fd_owned int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    return fd < 0 ? NULL : passwd_read_opened(fd, length);
}

char *passwd_read_opened(int fd, size_t *length) {
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
        return NULL;
    size_t wanted = status.st_size < PASSWD_BYTES_MAX ? (size_t)status.st_size : PASSWD_BYTES_MAX;
    char *bytes = memory_zeroed(wanted + 1);
    *length = 0;
    while (*length < wanted) {
        ssize_t count = read(fd, bytes + *length, wanted - *length);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            break;
        *length += (size_t)count;
    }
    return bytes;
}
