/* Which logs `pinfold log` reads. */
#include <dirent.h>
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
#include "cli/log_parts.h"
#include "facts/passwd.h"
#include "record/record.h"

/* Candidates of one directory. */
struct log_file {
    char *path;
    char *id;
    int64_t modified; /* ns */
};
struct log_files {
    struct log_file *items;
    size_t count;
};

static void files_free(struct log_files *files) {
    for (size_t i = 0; i < files->count; i++) {
        free(files->items[i].path);
        free(files->items[i].id);
    }
    free(files->items);
    *files = (struct log_files){0};
}

static int newest_first(const void *one, const void *two) {
    const struct log_file *a = one, *b = two;
    return a->modified > b->modified ? -1 : a->modified < b->modified;
}

/* The user whose containers these are: inside a rootless engine's user namespace, the one outside of it. */
static uid_t owner_uid(void) {
    text_owned struct text map = {0};
    unsigned long inside = 1, outside = 0;
    uid_t user = geteuid();
    error_owned error = file_read(AT_FDCWD, "/proc/self/uid_map", 65536, &map);
    if (error == NULL && user == 0 && sscanf(text_string(&map), "%lu %lu", &inside, &outside) == 2 &&
        inside == 0)
        return (uid_t)outside;
    return user;
}

static char *owner_home(uid_t uid) {
    text_owned struct text passwd = {0};
    error_owned error = file_read(AT_FDCWD, "/etc/passwd", PASSWD_BYTES_MAX, &passwd);
    char *home = error == NULL && passwd.length > 0 ? passwd_home(passwd.data, passwd.length, uid) : NULL;
    const char *named = getenv("HOME"); /* users of a directory service are not in the file */
    if (home == NULL && named != NULL && named[0] == '/')
        home = memory_copy_string(named);
    return home;
}

static void append_directory(struct string_list *directories, bool root, const char *home) {
    char *path = record_log_path("x", root, home);
    if (path != NULL)
        *strrchr(path, '/') = '\0';
    if (path != NULL)
        string_list_append_owned(directories, path);
}

/* A user's own, then the machine's, which members of `adm` may read. */
static void default_directories(struct string_list *directories) {
    uid_t uid = owner_uid();
    if (uid != 0) {
        memory_owned char *home = owner_home(uid);
        if (home != NULL)
            append_directory(directories, false, home);
    }
    append_directory(directories, true, NULL);
}

static struct error *list_directory(const char *directory, struct log_files *files) {
    DIR *stream = opendir(directory);
    if (stream == NULL)
        return errno == ENOENT ? NULL : error_system(errno, "open the log directory", "%s", directory);
    struct dirent *entry;
    while ((entry = readdir(stream)) != NULL) {
        struct stat status;
        size_t length = strlen(entry->d_name);
        if (!text_ends_with(entry->d_name, LOG_SUFFIX) || length == sizeof LOG_SUFFIX - 1 ||
            fstatat(dirfd(stream), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
            !S_ISREG(status.st_mode))
            continue;
        files->items = memory_resize(files->items, files->count + 1, sizeof *files->items);
        struct log_file *file = &files->items[files->count++];
        file->path = text_formatted("%s/%s", directory, entry->d_name);
        file->id = memory_copy_string(entry->d_name);
        file->id[length - (sizeof LOG_SUFFIX - 1)] = '\0';
        file->modified = (int64_t)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec;
    }
    closedir(stream);
    return NULL;
}

/* The container's name stands in each record: the first line is enough. */
static bool has_name(const char *path, const char *name) {
    fd_owned int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    char buffer[32768];
    ssize_t length = fd >= 0 ? read(fd, buffer, sizeof buffer) : -1;
    bool same = false;
    for (const char *line = buffer, *end = buffer + (length > 0 ? length : 0); line < end && !same;) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        struct log_record record;
        if (newline == NULL)
            break;
        bool read_one = log_record_parse(line, (size_t)(newline - line), &record);
        same = read_one && record.container_name != NULL && strcmp(record.container_name, name) == 0;
        log_record_clear(&record);
        if (read_one)
            break;
        line = newline + 1; /* a torn line says nothing about the others */
    }
    return same;
}

static struct error *missing(const char *name, const struct string_list *directories) {
    text_owned struct text searched = {0};
    for (size_t i = 0; i < directories->count; i++)
        text_format(&searched, "%s%s", i > 0 ? " and " : "", directories->items[i]);
    if (name == NULL)
        return error_new(ERROR_INVALID, "no container has a log in %s", text_string(&searched));
    text_owned struct text shown = {0};
    log_show(name, &shown);
    return error_new(ERROR_INVALID, "container does not exist: no log of \"%s\" in %s", text_string(&shown),
                     text_string(&searched));
}

static struct error *ambiguous(const char *name, const struct log_files *files) {
    text_owned struct text ids = {0};
    size_t shown = 0, matches = 0;
    for (size_t i = 0; i < files->count; i++)
        if (text_starts_with(files->items[i].id, name) && ++matches && shown < 5 && ++shown)
            text_format(&ids, "%s%s", shown > 1 ? ", " : "", files->items[i].id);
    return error_new(ERROR_INVALID, "\"%s\" is the beginning of %zu container IDs: %s%s", name, matches,
                     text_string(&ids), matches > shown ? ", ..." : "");
}

static struct error *choose(const char *name, const struct log_files *files,
                            const struct string_list *directories, const struct log_file **out) {
    size_t prefixes = 0;
    const struct log_file *found = NULL;
    if (name[0] == '\0')
        return error_new(ERROR_USAGE,
                         "log: expected a container's ID, the beginning of one, a name, or a file; "
                         "found \"\"");
    for (size_t i = 0; found == NULL && i < files->count; i++)
        if (strcmp(files->items[i].id, name) == 0)
            found = &files->items[i];
    /* A name before a prefix: it is what the user gave the container. */
    for (size_t i = 0; found == NULL && i < files->count; i++)
        if (has_name(files->items[i].path, name))
            found = &files->items[i];
    if (found == NULL) {
        for (size_t i = 0; i < files->count; i++)
            if (text_starts_with(files->items[i].id, name) && ++prefixes)
                found = &files->items[i];
        if (prefixes > 1)
            return ambiguous(name, files);
    }
    if (found == NULL)
        return missing(name, directories);
    *out = found;
    return NULL;
}

/* A container's ID has no slash, and no file is called like a container by accident: `./ID.jsonl` is always a
 * file. */
static bool is_path(const char *name) {
    return strcmp(name, "-") == 0 || strchr(name, '/') != NULL ||
           (text_ends_with(name, LOG_SUFFIX) && access(name, F_OK) == 0);
}

static void append_once(struct string_list *paths, const char *path) {
    if (!string_list_contains(paths, path))
        string_list_append(paths, path);
}

static struct error *choose_each(const struct log_choice *choice, const struct log_files *files,
                                 const struct string_list *directories, struct string_list *paths) {
    if (choice->which != LOG_NAMED && files->count == 0)
        return missing(NULL, directories);
    if (choice->which == LOG_LAST)
        append_once(paths, files->items[0].path);
    for (size_t i = 0; choice->which == LOG_ALL && i < files->count; i++)
        append_once(paths, files->items[i].path);
    for (size_t i = 0; i < choice->names.count; i++) {
        const char *name = choice->names.items[i];
        const struct log_file *found = NULL;
        if (!is_path(name))
            TRY(choose(name, files, directories, &found));
        append_once(paths, found ? found->path : name);
    }
    return NULL;
}

struct error *log_find(const struct log_choice *choice, struct string_list *paths) {
    string_list_owned struct string_list directories = {0};
    if (choice->directory != NULL)
        string_list_append(&directories, choice->directory);
    else
        default_directories(&directories);
    struct log_files files = {0};
    struct error *unreadable = NULL;
    for (size_t i = 0; i < directories.count; i++) {
        struct error *error = list_directory(directories.items[i], &files);
        if (unreadable == NULL)
            unreadable = error;
        else
            error_free(error);
    }
    if (files.count > 1)
        qsort(files.items, files.count, sizeof *files.items, newest_first);
    struct error *error = choose_each(choice, &files, &directories, paths);
    files_free(&files);
    /* A directory that may not be read matters only when the others have not what was asked for. */
    if (error != NULL && error->kind == ERROR_INVALID && unreadable != NULL) {
        error_free(error);
        return unreadable;
    }
    error_free(unreadable);
    return error;
}
