/* The file of a container's log: who may read it, how it is found again when somebody has taken it away, and
 * how it is kept small. */
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
#include "record/internal.h"

#define GROUPS_MAX (1024 * 1024)
#define OPEN_ATTEMPTS 4
#define ASIDE_MAX 16
/* All pieces of one container's log together: this part of log.total. */
#define SHARE_OF_TOTAL 16
#define PIECE_MIN (2 * RECORD_LINE_MAX)
/* Whoever writes a log holds a shared lock of this byte, far beyond its end: who tidies sees that it lives.
 */
#define ALIVE_BYTE ((off_t)1 << 62)

char *record_log_path(const char *container_id, bool root, const char *home) {
    if (container_id[0] == '\0' || container_id[0] == '.' || strchr(container_id, '/') != NULL)
        return NULL;
    if (root)
        return text_formatted("/var/log/pinfold/%s.jsonl", container_id);
    return text_formatted("%s/.local/state/pinfold/%s.jsonl", home ? home : "", container_id);
}

/* Up to `capacity` - 1 bytes of a small file, NUL-terminated; "" when it cannot be read. */
static void read_small(const char *path, char *buffer, size_t capacity) {
    buffer[0] = '\0';
    fd_owned int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    size_t length = 0;
    ssize_t got;
    while (length < capacity - 1 && (got = read(fd, buffer + length, capacity - 1 - length)) > 0)
        length += (size_t)got;
    buffer[length] = '\0';
}

/* Root of the machine, and not of a user namespace (rootless engines call the runtime as uid 0 of one). */
static bool is_machine_root(void) {
    if (geteuid() != 0)
        return false;
    char map[128];
    unsigned long inside = 1, outside = 1, count = 0;
    read_small("/proc/self/uid_map", map, sizeof map);
    return sscanf(map, "%lu %lu %lu", &inside, &outside, &count) == 3 && inside == 0 && outside == 0 &&
           count == 4294967295ul;
}

/* The gid of `adm`, or -1. By hand: getgrnam loads NSS modules, which a static binary cannot. */
static gid_t adm_group(void) {
    text_owned struct text groups = {0};
    error_ignore(
        file_read(AT_FDCWD, "/etc/group", GROUPS_MAX, &groups)); /* what was read is looked through */
    for (const char *line = text_string(&groups); line != NULL && *line != '\0';) {
        unsigned gid;
        if (text_starts_with(line, "adm:") && sscanf(line, "adm:%*[^:]:%u", &gid) == 1)
            return (gid_t)gid;
        line = strchr(line, '\n');
        if (line != NULL)
            line++;
    }
    return (gid_t)-1;
}

/* In a directory that pinfold has made a file is adm's from the beginning; in one that somebody else has
 * made, only where this process may give it away: create may, the warden may not. Else root alone reads it,
 * the safe side. */
static void give_to_adm(int fd) {
    struct stat status;
    gid_t group = fstat(fd, &status) == 0 && status.st_gid == 0 ? adm_group() : (gid_t)-1;
    if (group != (gid_t)-1)
        (void)!fchown(fd, (uid_t)-1, group);
}

/* Makes a directory and those above it. The last one is the log's: closed to others, and what is made in it
 * has its group, because the warden has no right to change that (and makes the file that follows a full one).
 */
static struct error *make_directories(const char *path, bool machine_root) {
    memory_owned char *directory = memory_copy_string(path);
    for (char *slash = directory + 1;; slash++) {
        bool end = *slash == '\0';
        if (*slash != '/' && !end)
            continue;
        *slash = '\0';
        mode_t mode = !machine_root ? 0700 : end ? 0750 : 0755;
        if (mkdir(directory, mode) == 0) {
            fd_owned int fd = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            gid_t group = end && machine_root ? adm_group() : (gid_t)-1;
            /* No group adm, a file system without owners, the warden, who may not: root alone enters, which
             * is the safe side. */
            if (group != (gid_t)-1 && fchown(fd, (uid_t)-1, group) == 0)
                mode |= S_ISGID;
            /* The caller's umask may be wider or narrower. */
            if (fchmod(fd, mode) < 0)
                return error_system(errno, "chmod", "%s", directory);
        } else if (errno != EEXIST) {
            return error_system(errno, "make the log directory", "%s", directory);
        }
        if (end)
            return NULL;
        *slash = '/';
    }
}

static struct error *directory_open(const char *path, bool machine_root, int *out) {
    memory_owned char *directory = memory_copy_string(path);
    char *last = strrchr(directory, '/');
    last[last == directory] = '\0';
    for (int attempt = 0;; attempt++) {
        fd_owned int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct stat status;
        if (fd >= 0 && fstat(fd, &status) == 0) {
            /* One that an earlier version has made. */
            if (machine_root && status.st_uid == 0 && status.st_gid != 0 && !(status.st_mode & S_ISGID))
                (void)!fchmod(fd, (status.st_mode & 07777) | S_ISGID);
            *out = fd_take(&fd);
            return NULL;
        }
        if (errno != ENOENT || attempt == OPEN_ATTEMPTS)
            return error_system(errno, "open the log directory", "%s", directory);
        TRY(make_directories(directory, machine_root));
    }
}

/* A file that someone else put there in advance could be read, or taken away, by them. */
static struct error *file_judge(int fd, const char *path) {
    struct stat status;
    if (fstat(fd, &status) < 0)
        return error_system(errno, "stat", "%s", path);
    if (!S_ISREG(status.st_mode))
        return error_new(ERROR_INVALID, "log %s is not a regular file", path);
    if (status.st_uid != geteuid() && status.st_uid != 0)
        return error_new(ERROR_INVALID, "log %s belongs to uid %u, not to the runtime's", path,
                         status.st_uid);
    return NULL;
}

static struct error *file_open(int directory, const char *name, const char *path, bool machine_root,
                               int *out) {
    const int flags = O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    mode_t mode = machine_root ? 0640 : 0600;
    for (int attempt = 0;; attempt++) {
        fd_owned int fd = openat(directory, name, flags | O_CLOEXEC);
        bool made = false;
        if (fd < 0 && errno == ENOENT) {
            fd = openat(directory, name, flags | O_CLOEXEC | O_CREAT | O_EXCL, mode);
            made = fd >= 0;
        }
        if (fd < 0 && errno == EEXIST && attempt < OPEN_ATTEMPTS)
            continue; /* another writer was first */
        if (fd < 0)
            return error_system(errno, "open the log", "%s", path);
        if (made && fchmod(fd, mode) < 0) /* whatever the umask */
            return error_system(errno, "chmod", "%s", path);
        if (made && machine_root)
            give_to_adm(fd);
        TRY(file_judge(fd, path));
        struct flock alive = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = ALIVE_BYTE, .l_len = 1};
        (void)!fcntl(fd, F_OFD_SETLK, &alive); /* without it the file is tidied by its age alone */
        *out = fd_take(&fd);
        return NULL;
    }
}

bool record_file_is_written(int fd) {
    struct flock alive = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = ALIVE_BYTE, .l_len = 1};
    return fcntl(fd, F_OFD_GETLK, &alive) == 0 && alive.l_type != F_UNLCK;
}

int64_t record_piece_size(int64_t total) {
    int64_t size = total / SHARE_OF_TOTAL / (RECORD_PIECES + 1);
    return total <= 0 ? 0 : size < PIECE_MIN ? PIECE_MIN : size;
}

struct error *record_file_open(struct record_sink *sink) {
    bool machine_root = is_machine_root();
    fd_owned int directory = -1;
    fd_owned int fd = -1;
    TRY(directory_open(sink->path, machine_root, &directory));
    TRY(file_open(directory, sink->name, sink->path, machine_root, &fd));
    fd_close(sink->directory);
    fd_close(sink->fd);
    sink->directory = fd_take(&directory);
    sink->fd = fd_take(&fd);
    sink->seen = 0;
    sink->torn = false;
    return NULL;
}

/* ---- taken away while it was written ---- */

static void happened(struct record_sink *sink, const char *reason, char *sentence) {
    if (sink->news != NULL) { /* the first cause explains the others */
        free(sentence);
        return;
    }
    sink->news_reason = reason;
    sink->news = sentence;
}

/* What is no log is neither written to nor destroyed: it gets another name. */
static bool move_aside(struct record_sink *sink) {
    for (int i = 0; i < ASIDE_MAX; i++) {
        memory_owned char *aside = text_formatted("%s.foreign-%d", sink->name, i);
        if (renameat2(sink->directory, sink->name, sink->directory, aside, RENAME_NOREPLACE) == 0) {
            happened(sink, "log.replaced",
                     text_formatted("Something that is no log of this user's was in the place of %s; it is "
                                    "called %s now, and a new log was begun.",
                                    sink->path, aside));
            return true;
        }
        if (errno != EEXIST)
            return false;
    }
    return false;
}

/* A symbolic link, a directory, a socket, or what file_judge refuses. */
static bool is_obstacle(const struct error *error) {
    return error->kind != ERROR_SYSTEM || error->number == ELOOP || error->number == EISDIR ||
           error->number == ENXIO;
}

bool record_file_look(struct record_sink *sink) {
    struct stat named, own;
    if (sink->fd < 0 || fstat(sink->fd, &own) < 0)
        return false;
    if (fstatat(AT_FDCWD, sink->path, &named, AT_SYMLINK_NOFOLLOW) == 0 && named.st_ino == own.st_ino &&
        named.st_dev == own.st_dev)
        return false;
    struct error *error = record_file_open(sink);
    if (error != NULL && is_obstacle(error) && move_aside(sink)) {
        error_free(error);
        error = record_file_open(sink);
    }
    if (error == NULL && own.st_nlink == 0)
        happened(sink, "log.lost",
                 text_formatted("The log %s was removed while this container was running; the records in it, "
                                "up to sequence %llu, are gone, and a new log was begun.",
                                sink->path, (unsigned long long)sink->highest));
    bool other = error == NULL;
    error_ignore(error); /* tried again at the next record; what is written until then is counted as lost */
    return other;
}

/* ---- rotation ---- */

/* The numbered file is a log of ours, or there is none. */
static bool is_replaceable(const struct record_sink *sink, const char *name, bool *exists) {
    struct stat status;
    *exists = fstatat(sink->directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0;
    return *exists ? S_ISREG(status.st_mode) && (status.st_uid == geteuid() || status.st_uid == 0)
                   : errno == ENOENT;
}

static char *piece_name(const struct record_sink *sink, int piece) {
    return piece == 0 ? memory_copy_string(sink->name) : text_formatted("%s.%d", sink->name, piece);
}

void record_file_rotate(struct record_sink *sink) {
    for (int piece = RECORD_PIECES; piece > 0; piece--) {
        memory_owned char *newer = piece_name(sink, piece - 1);
        memory_owned char *older = piece_name(sink, piece);
        bool exists, newer_exists;
        if (!is_replaceable(sink, older, &exists) || !is_replaceable(sink, newer, &newer_exists))
            return; /* something of somebody's: the file grows */
        if (!newer_exists)
            continue;
        if (renameat(sink->directory, newer, sink->directory, older) < 0)
            return;
        if (exists) /* only the oldest one is still there: the others have moved on */
            happened(sink, "log.removed",
                     text_formatted("The oldest records of this container were removed (%s): its log has "
                                    "reached its share of log.total.",
                                    older));
    }
    error_ignore(record_file_open(sink)); /* else the next look finds that it is gone */
}
