#include "process/landlock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "policy/match.h"
#include "rootfs/paths.h"
#include "sys/landlock.h"

#define READ (LANDLOCK_FS_EXECUTE | LANDLOCK_FS_READ_FILE | LANDLOCK_FS_READ_DIR)
/* REFER: to be moved or linked from one directory to another. Devices too, which the missing capability
 * denies with the errno that programs know; a whiteout of an overlay is one, and needs none. */
#define MAKE                                                                                                 \
    (LANDLOCK_FS_REMOVE_DIR | LANDLOCK_FS_REMOVE_FILE | LANDLOCK_FS_MAKE_DIR | LANDLOCK_FS_MAKE_REG |        \
     LANDLOCK_FS_MAKE_SOCK | LANDLOCK_FS_MAKE_FIFO | LANDLOCK_FS_MAKE_SYM | LANDLOCK_FS_MAKE_CHAR |          \
     LANDLOCK_FS_MAKE_BLOCK | LANDLOCK_FS_REFER)
/* TRUNCATE came with Linux 6.2; without it truncate(2) is not asked about. */
#define WRITE_ONLY (LANDLOCK_FS_WRITE_FILE)
#define OF_FILES (LANDLOCK_FS_EXECUTE | LANDLOCK_FS_WRITE_FILE | LANDLOCK_FS_READ_FILE | LANDLOCK_FS_TRUNCATE)

struct rules {
    const struct access_plan *plan;
    int ruleset;
    uint64_t handled;
    struct rootfs root;
    struct text *inodes; /* struct access_inode of each rule that lets read; NULL: nobody asks */
};

static int ruleset_make(uint64_t wanted, uint64_t *handled) {
    *handled = wanted | LANDLOCK_FS_TRUNCATE;
    int ruleset = sys_landlock_create(*handled);
    if (ruleset >= 0 || errno != EINVAL)
        return ruleset;
    *handled = wanted;
    return sys_landlock_create(*handled);
}

static struct error *inode_note(const struct rules *rules, int fd, uint64_t rights, const char *path) {
    struct statx status;
    if (rules->inodes == NULL || (rights & LANDLOCK_FS_READ_FILE) == 0)
        return NULL;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_INO, &status) < 0)
        return error_system(errno, "statx", "%s", path);
    const struct access_inode inode = {access_inode_device(status.stx_dev_major, status.stx_dev_minor),
                                       status.stx_ino};
    text_append_bytes(rules->inodes, (const char *)&inode, sizeof inode);
    return NULL;
}

static struct error *rule_add(const struct rules *rules, int fd, uint64_t rights, const char *path) {
    rights &= rules->handled;
    if (rights == 0 || sys_landlock_allow(rules->ruleset, fd, rights) == 0)
        return inode_note(rules, fd, rights, path);
    /* A file, which has fewer. */
    if (errno == EINVAL &&
        ((rights & OF_FILES) == 0 || sys_landlock_allow(rules->ruleset, fd, rights & OF_FILES) == 0))
        return inode_note(rules, fd, rights, path);
    return error_system(errno, "landlock_add_rule", "%s", path);
}

/* Where an image's symlink leads to another mount, its target is what the policy has to name: the image must
 * not choose which of the user's directories may be read. No matter where the target may be read anyhow. */
static struct error *judge_foreign(const struct rules *rules, const char *path) {
    fd_owned int place = -1;
    struct error *error = rootfs_open(&rules->root, (struct container_path){path}, O_PATH, &place);
    if (error != NULL) {
        error_ignore(error); /* leads nowhere */
        return NULL;
    }
    char link[64], real[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", place);
    ssize_t length = readlink(link, real, sizeof real - 1);
    real[length < 0 ? 0 : length] = '\0';
    if (length > 0 && access_plan_lets_read(rules->plan, real))
        return NULL;
    return error_new(ERROR_INVALID,
                     "filesystem.readable: %s is a symbolic link to %s, which is on another mount; name that",
                     path, real);
}

/* *out stays -1 where there is nothing to open. */
static struct error *place_open(const struct rules *rules, const char *path, bool follow, int *out) {
    struct error *error = rootfs_open_plain(&rules->root, (struct container_path){path}, O_PATH, out);
    if (error != NULL && error->number == ELOOP && follow) {
        error_ignore(error);
        error = rootfs_open_same_mount(&rules->root, (struct container_path){path}, O_PATH, out);
        if (error != NULL && error->number == EXDEV) {
            error_ignore(error);
            return judge_foreign(rules, path);
        }
    }
    if (error != NULL && (error->number == ENOENT || error->number == ENOTDIR || error->number == ELOOP ||
                          error->number == EACCES)) {
        error_ignore(error); /* not there, or nobody gets there: nothing to allow */
        return NULL;
    }
    return error;
}

static struct error *places_allow(const struct rules *rules, const struct string_list *places, bool follow,
                                  uint64_t rights) {
    for (size_t i = 0; i < places->count; i++) {
        fd_owned int place = -1;
        TRY(place_open(rules, places->items[i], follow, &place));
        if (place >= 0)
            TRY(rule_add(rules, place, rights, places->items[i]));
    }
    return NULL;
}

static bool is_above(const struct string_list *places, const char *path) {
    for (size_t i = 0; i < places->count; i++)
        if (match_path_within(places->items[i], path))
            return true;
    return false;
}

static void directory_close(DIR **directory) {
    if (*directory != NULL)
        closedir(*directory);
}

/* Each entry of a directory, but for what leads to an unreadable mount: a rule on the directory would hold
 * for the mount too. */
static struct error *image_allow(const struct rules *rules, const char *path) {
    fd_owned int opened = -1;
    if (!is_above(&rules->plan->unreadable, path)) {
        TRY(rootfs_open_plain(&rules->root, (struct container_path){path}, O_PATH | O_NOFOLLOW, &opened));
        return rule_add(rules, opened, READ, path);
    }
    if (string_list_contains(&rules->plan->unreadable, path))
        return NULL;
    TRY(rootfs_open_plain(&rules->root, (struct container_path){path}, O_RDONLY | O_DIRECTORY, &opened));
    __attribute__((cleanup(directory_close))) DIR *directory = fdopendir(opened);
    if (directory == NULL)
        return error_system(errno, "read", "directory %s", path);
    opened = -1;
    const struct dirent *entry;
    while ((errno = 0, entry = readdir(directory)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 || entry->d_type == DT_LNK)
            continue; /* nobody is asked about a symlink */
        memory_owned char *below = text_formatted("%s/%s", strcmp(path, "/") == 0 ? "" : path, entry->d_name);
        TRY(image_allow(rules, below));
    }
    return errno == 0 ? NULL : error_system(errno, "read", "directory %s", path);
}

/* What the program is given open may be a file of the machine's (a shell's redirection), which no rule of a
 * path reaches; /dev/stdout opens it again. */
static struct error *descriptors_allow(const struct rules *rules, unsigned preserve_fds) {
    for (unsigned fd = 0; fd <= STDERR_FILENO + preserve_fds; fd++) {
        int flags = fcntl((int)fd, F_GETFL);
        if (flags < 0)
            continue;
        uint64_t rights = (flags & O_ACCMODE) == O_RDONLY ? LANDLOCK_FS_READ_FILE
                          : (flags & O_ACCMODE) == O_WRONLY
                              ? WRITE_ONLY | LANDLOCK_FS_TRUNCATE
                              : LANDLOCK_FS_READ_FILE | WRITE_ONLY | LANDLOCK_FS_TRUNCATE;
        rights &= rules->handled;
        /* EBADFD: a pipe or a socket, which are not asked about. */
        if (rights != 0 && sys_landlock_allow(rules->ruleset, (int)fd, rights) < 0 && errno != EBADFD &&
            errno != EINVAL)
            return error_system(errno, "landlock_add_rule", "descriptor %u", fd);
        TRY(inode_note(rules, (int)fd, rights, "a descriptor"));
    }
    return NULL;
}

/* Sealed: while init waits for its start, who shares its process namespace could write to it. */
static struct error *inodes_seal(const struct text *inodes, int *out) {
    fd_owned int memory = memfd_create("pinfold-readable", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (memory < 0)
        return error_system(errno, "memfd_create", "the rules of Landlock");
    TRY(fd_write_all(memory, inodes->data, inodes->length, "the rules of Landlock"));
    if (fcntl(memory, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
        return error_system(errno, "seal", "the rules of Landlock");
    *out = fd_take(&memory);
    return NULL;
}

struct error *landlock_prepare(const struct access_plan *plan, unsigned preserve_fds, int *ruleset,
                               int *readable) {
    text_owned struct text inodes = {0};
    struct rules rules = {.plan = plan, .inodes = plan->reads ? &inodes : NULL};
    fd_owned int made =
        ruleset_make(LANDLOCK_FS_WRITE_FILE | MAKE | (plan->reads ? READ : 0), &rules.handled);
    if (made < 0)
        return error_system(errno, "landlock_create_ruleset", "of the container");
    fd_owned int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return error_system(errno, "open", "/");
    rules.ruleset = made;
    rules.root.fd = root;
    const uint64_t files = READ | WRITE_ONLY | LANDLOCK_FS_TRUNCATE;
    TRY(places_allow(&rules, &plan->writable, false, files | MAKE));
    TRY(places_allow(&rules, &plan->writable_files, false, files));
    if (plan->reads)
        TRY(places_allow(&rules, &plan->readable, true, READ));
    if (plan->reads && plan->image)
        TRY(image_allow(&rules, "/"));
    TRY(descriptors_allow(&rules, preserve_fds));
    if (plan->reads)
        TRY(inodes_seal(&inodes, readable));
    *ruleset = fd_take(&made);
    return NULL;
}

struct error *landlock_restrict(int ruleset) {
    if (ruleset >= 0 && sys_landlock_restrict(ruleset) < 0)
        return error_system(errno, "landlock_restrict_self", "of the container");
    return NULL;
}
