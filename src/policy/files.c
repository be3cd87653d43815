#include "policy/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/memory.h"
#include "policy/match.h"
#include "policy/yaml.h"

#define CHAIN_MAX 128
#define OVERFLOW_UID 65534 /* /proc/sys/kernel/overflowuid, as every machine has it */
#define PINS_BYTES_MAX (1024 * 1024)
#define MOUNTS_BYTES_MAX (16u * 1024 * 1024) /* a node of hundreds of pods has some hundred KiB */

void policy_bytes_clear(struct policy_bytes *bytes) {
    text_free(&bytes->text);
    free(bytes->file.path);
    free(bytes->file.chain);
    *bytes = (struct policy_bytes){0};
}

static void chain_add(struct policy_file *file, const struct stat *status) {
    file->chain = memory_resize(file->chain, file->chain_count + 1, sizeof *file->chain);
    file->chain[file->chain_count++] =
        (struct policy_file_identity){.device = status->st_dev, .inode = status->st_ino};
}

/* The file and the directories above it, by inode: a mount of any of them shows the file to the container,
 * by whatever path it was mounted. */
static struct error *chain_make(const char *real_path, const struct stat *status, struct policy_file *file) {
    chain_add(file, status);
    memory_owned char *path = memory_copy_string(real_path);
    for (int i = 0; i < CHAIN_MAX; i++) {
        char *slash = strrchr(path, '/');
        if (slash == NULL || path[1] == '\0')
            return NULL;
        slash[slash == path] = '\0';
        struct stat above;
        if (stat(path, &above) < 0)
            return error_system(errno, "stat", "%s, a directory of policy %s", path, file->path);
        chain_add(file, &above);
    }
    return error_new(ERROR_REFUSED, "policy %s lies too deep", file->path);
}

/* --- the same file by another mount --- */

struct mount_line {
    int id;
    char *device; /* "8:1" */
    char *root;   /* what of the file system is mounted */
    char *point;
};

/* Spaces, tabs, newlines and backslashes are written as three octal digits. */
static char *unescape(char *text) {
    char *to = text;
    for (const char *from = text; *from != '\0';) {
        unsigned byte;
        if (from[0] == '\\' && sscanf(from + 1, "%3o", &byte) == 1 && byte < 256) {
            *to++ = (char)byte;
            from += 4;
        } else {
            *to++ = *from++;
        }
    }
    *to = '\0';
    return text;
}

/* "36 35 98:0 /root /point options ..." (proc_pid_mountinfo(5)); points into the line. */
static bool mount_line_parse(char *line, struct mount_line *out) {
    char *fields[5];
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if ((fields[i] = strsep(&line, " ")) == NULL)
            return false;
    *out = (struct mount_line){(int)strtol(fields[0], NULL, 10), fields[2], unescape(fields[3]),
                               unescape(fields[4])};
    return true;
}

static struct error *mount_of(int fd, int *out) {
    char path[64];
    text_owned struct text text = {0};
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    TRY(file_read(AT_FDCWD, path, 4096, &text));
    const char *line = strstr(text_string(&text), "mnt_id:");
    if (line == NULL)
        return error_new(ERROR_INVALID, "%s names no mount", path);
    *out = (int)strtol(line + strlen("mnt_id:"), NULL, 10);
    return NULL;
}

/* The path within its file system of what lies at `path` in this mount; the caller frees it. */
static char *inner_path(const struct mount_line *mount, const char *path) {
    const char *rest = match_path_rest(path, mount->point);
    if (rest == NULL)
        return NULL;
    memory_owned char *joined = text_formatted("%s/%s", mount->root, rest);
    return match_path_clean(joined);
}

/* A file that was named by a bind mount of a directory lies below other directories as well, in the mounts
 * that show more of its file system; each is one that a container could be given. */
static struct error *chain_add_others(int fd, const char *real_path, const struct stat *status,
                                      struct policy_file *file) {
    text_owned struct text text = {0};
    int id;
    TRY(mount_of(fd, &id));
    TRY(file_read(AT_FDCWD, "/proc/self/mountinfo", MOUNTS_BYTES_MAX, &text));
    size_t count = 0;
    for (size_t i = 0; i < text.length; i++)
        count += text.data[i] == '\n';
    memory_owned struct mount_line *mounts = memory_zeroed((count + 1) * sizeof *mounts);
    const struct mount_line *own = NULL;
    size_t used = 0;
    char *rest = text.data;
    for (char *line; used < count && (line = strsep(&rest, "\n")) != NULL;)
        if (mount_line_parse(line, &mounts[used])) {
            own = mounts[used].id == id ? &mounts[used] : own;
            used++;
        }
    memory_owned char *inner = own != NULL ? inner_path(own, real_path) : NULL;
    if (inner == NULL)
        return error_new(ERROR_REFUSED, "policy %s is refused: its mount cannot be found", real_path);
    for (size_t i = 0; i < used; i++) {
        const char *below = match_path_rest(inner, mounts[i].root);
        if (&mounts[i] == own || below == NULL || strcmp(mounts[i].device, own->device) != 0)
            continue;
        memory_owned char *joined = text_formatted("%s/%s", mounts[i].point, below);
        memory_owned char *other = match_path_clean(joined);
        struct stat found;
        /* Not where another mount lies over it. */
        if (stat(other, &found) == 0 && found.st_dev == status->st_dev && found.st_ino == status->st_ino)
            TRY(chain_make(other, status, file));
    }
    return NULL;
}

/* Written by root, or by the user that we are, and by nobody else. A group of the user's own (Debian's and
 * Fedora's way) is nobody else. */
static struct error *writers_check(const char *path, const struct policy_places *places,
                                   const struct stat *status) {
    /* Seen from a user namespace, what is not mapped is nobody's; but in these directories it is root's. */
    bool overflow =
        !places->root && status->st_uid == OVERFLOW_UID &&
        (match_path_within(path, places->configuration) || match_path_within(path, places->installed));
    if (status->st_uid != 0 && status->st_uid != geteuid() && !overflow)
        return error_new(ERROR_REFUSED, "policy %s is refused: it belongs to uid %u, who may change it", path,
                         status->st_uid);
    bool own_group = status->st_gid == status->st_uid;
    if ((status->st_mode & S_IWOTH) != 0 || ((status->st_mode & S_IWGRP) != 0 && !own_group))
        return error_new(ERROR_REFUSED, "policy %s is refused: others can write it (mode %04o)", path,
                         status->st_mode & 07777);
    return NULL;
}

static bool is_project_file(const char *path) {
    const char *slash = strrchr(path, '/');
    return strcmp(slash != NULL ? slash + 1 : path, POLICY_PROJECT_FILE) == 0;
}

static struct error *open_regular(const char *path, int *out, struct stat *status) {
    *out = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (*out < 0)
        return error_system(errno, "open", "policy %s", path);
    if (fstat(*out, status) < 0)
        return error_system(errno, "stat", "policy %s", path);
    if (!S_ISREG(status->st_mode))
        return error_new(ERROR_REFUSED, "policy %s is refused: it is no regular file", path);
    return NULL;
}

static struct error *real_path_of(int fd, const char *path, char **out) {
    char link[64], real[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, real, sizeof real - 1);
    if (length <= 0 || real[0] != '/')
        return error_system(length < 0 ? errno : ENAMETOOLONG, "resolve", "policy %s", path);
    real[length] = '\0';
    *out = memory_copy_string(real);
    return NULL;
}

static char *pin_line(const char *real_path, const struct text *bytes) {
    memory_owned char *digest = policy_sha256(text_string(bytes), bytes->length);
    return text_formatted("%s %s\n", digest, real_path);
}

/* Does one of the lists hold the line? A list that others can write holds nothing. */
static bool is_pinned(const char *real_path, const struct policy_places *places, const struct text *bytes,
                      const struct string_list *pins) {
    memory_owned char *line = pin_line(real_path, bytes);
    for (size_t i = 0; pins != NULL && i < pins->count; i++) {
        struct stat status;
        text_owned struct text list = {0};
        fd_owned int fd = -1;
        struct error *error = open_regular(pins->items[i], &fd, &status);
        if (error == NULL)
            error = writers_check(pins->items[i], places, &status);
        if (error == NULL)
            error = file_read(AT_FDCWD, pins->items[i], PINS_BYTES_MAX, &list);
        bool usable = error == NULL;
        error_ignore(error); /* not there, or not to be believed: nothing is pinned by it */
        const char *found = usable ? strstr(text_string(&list), line) : NULL;
        if (found != NULL && (found == list.data || found[-1] == '\n'))
            return true;
    }
    return false;
}

static struct error *bytes_read(int fd, const char *path, struct text *out) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    return error_context(file_read(AT_FDCWD, link, YAML_BYTES_MAX, out), "policy %s", path);
}

static struct error *read_into(const char *path, const struct policy_places *places,
                               const struct string_list *pins, struct policy_bytes *out) {
    fd_owned int fd = -1;
    struct stat status;
    TRY(open_regular(path, &fd, &status));
    memory_owned char *real = NULL;
    TRY(real_path_of(fd, path, &real));
    for (const char *byte = real; *byte != '\0'; byte++)
        if ((unsigned char)*byte < 0x20 || *byte == 0x7f)
            return error_new(ERROR_REFUSED, "a policy is refused whose path holds control characters");
    TRY(bytes_read(fd, path, &out->text));
    out->file.path = memory_copy_string(real);
    if (is_project_file(real)) {
        if (!is_pinned(real, places, &out->text, pins))
            return error_new(
                ERROR_REFUSED,
                "policy %s is refused: a project's own policy counts only as it stood when it was "
                "trusted; read it, then: pinfold policy trust %s",
                real, real);
        out->file.pinned = true;
    } else {
        TRY(writers_check(real, places, &status));
    }
    TRY(chain_make(real, &status, &out->file));
    return chain_add_others(fd, real, &status, &out->file);
}

struct error *policy_file_read(const char *path, const struct policy_places *places,
                               const struct string_list *pins, struct policy_bytes *out) {
    *out = (struct policy_bytes){0};
    struct error *error = read_into(path, places, pins, out);
    if (error == NULL)
        return NULL;
    policy_bytes_clear(out);
    if (error->number == ENOENT || error->number == ENOTDIR) {
        error_ignore(error);
        out->missing = true;
        return NULL;
    }
    return error;
}

struct error *policy_file_pin(const char *path, const char *pins) {
    fd_owned int fd = -1;
    struct stat status;
    TRY(open_regular(path, &fd, &status));
    memory_owned char *real = NULL;
    TRY(real_path_of(fd, path, &real));
    if (strchr(real, '\n') != NULL)
        return error_new(ERROR_REFUSED, "a policy is refused whose path holds control characters");
    text_owned struct text bytes = {0}, list = {0};
    TRY(bytes_read(fd, path, &bytes));
    struct error *error = file_read(AT_FDCWD, pins, PINS_BYTES_MAX, &list);
    if (error != NULL && error->number != ENOENT)
        return error;
    error_ignore(error);
    /* The content that was trusted before counts no more. */
    text_owned struct text kept = {0};
    for (const char *line = text_string(&list); *line != '\0';) {
        size_t length = strcspn(line, "\n");
        const char *blank = memchr(line, ' ', length);
        bool same = blank != NULL && (size_t)(line + length - blank - 1) == strlen(real) &&
                    strncmp(blank + 1, real, strlen(real)) == 0;
        if (!same && length > 0)
            text_format(&kept, "%.*s\n", (int)length, line);
        line += length + (line[length] == '\n');
    }
    memory_owned char *line = pin_line(real, &bytes);
    text_append(&kept, line);
    return file_replace(AT_FDCWD, pins, kept.data, kept.length, 0600);
}
