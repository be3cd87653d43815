#include "container/file_program.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "sys/bpf.h"
#include "sys/calls.h"
#include "sys/helper.h"
#include "sys/observe_event.h"

#define HELPER "pinfold-observe"
#define PLACE "/run/pinfold-observer"
#define PROGRAMS PLACE "/bpf"
#define PINNED PROGRAMS "/" OBSERVE_VERSION
#define ATTEMPTS 16 /* to lock a directory that others remove */

struct pinned {
    int rings, losses, link;
};
#define PINNED_NONE                                                                                          \
    { -1, -1, -1 }

static void pinned_close(struct pinned *pinned) {
    fd_close(pinned->rings);
    fd_close(pinned->losses);
    fd_close(pinned->link);
}
#define pinned_owned __attribute__((cleanup(pinned_close)))

/* The lock is the directory itself, so that nothing is left of it. */
static fallible place_lock(int *out) {
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        struct stat status, now;
        if (mkdir(PLACE, 0700) < 0 && errno != EEXIST)
            return error_system(errno, "make", PLACE);
        fd_owned int place = open(PLACE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (place < 0 && errno == ENOENT)
            continue;
        if (place < 0 || fstat(place, &status) < 0)
            return error_system(errno, "open", PLACE);
        if (status.st_uid != 0 || (status.st_mode & 077) != 0)
            return error_new(ERROR_INVALID, PLACE " is not root's alone");
        if (flock(place, LOCK_EX) < 0)
            return error_system(errno, "lock", PLACE);
        if (stat(PLACE, &now) == 0 && now.st_ino == status.st_ino && now.st_dev == status.st_dev) {
            *out = fd_take(&place);
            return NULL;
        }
    }
    return error_system(EAGAIN, "lock", PLACE);
}

static bool is_bpffs(void) {
    struct statfs status;
    return statfs(PROGRAMS, &status) == 0 && (unsigned long)status.f_type == BPF_FS_MAGIC;
}

static fallible place_prepare(void) {
    if (mkdir(PROGRAMS, 0700) < 0 && errno != EEXIST)
        return error_system(errno, "make", PROGRAMS);
    if (!is_bpffs() && mount("pinfold", PROGRAMS, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700") < 0)
        return error_system(errno, "mount", "a bpffs at " PROGRAMS);
    if (mkdir(PINNED, 0700) < 0 && errno != EEXIST)
        return error_system(errno, "make", PINNED);
    return NULL;
}

/* Another version's programs may lie beside ours. */
static void place_remove(void) {
    static const char *const files[] = {PINNED "/link", PINNED "/losses", PINNED "/rings"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        (void)!unlink(files[i]);
    if (rmdir(PINNED) < 0 && errno != ENOENT)
        return;
    if (is_bpffs() && umount2(PROGRAMS, UMOUNT_NOFOLLOW) < 0)
        return; /* in use */
    if (rmdir(PROGRAMS) == 0 || errno == ENOENT)
        (void)!rmdir(PLACE);
}

static bool pinned_open(struct pinned *out) {
    out->rings = sys_bpf_pinned_open(PINNED "/rings");
    out->losses = sys_bpf_pinned_open(PINNED "/losses");
    out->link = sys_bpf_pinned_open(PINNED "/link");
    return out->rings >= 0 && out->losses >= 0 && out->link >= 0;
}

struct launch {
    int helper, directory, words;
};

static int helper_run(void *data) {
    const struct launch *launch = data;
    int helper = fcntl(launch->helper, F_DUPFD_CLOEXEC, 16);
    int directory = fcntl(launch->directory, F_DUPFD_CLOEXEC, 16);
    int words = fcntl(launch->words, F_DUPFD_CLOEXEC, 16);
    if (helper < 0 || directory < 0 || words < 0 || dup2(directory, STDIN_FILENO) < 0 ||
        dup2(words, STDOUT_FILENO) < 0 || dup2(words, STDERR_FILENO) < 0 || dup3(helper, 3, O_CLOEXEC) < 0 ||
        sys_close_range(4, ~0u, 0) < 0)
        _exit(127);
    sys_signals_reset();
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    static char *const arguments[] = {HELPER, NULL};
    static char *const environment[] = {NULL};
    fexecve(3, arguments, environment);
    _exit(127);
}

static fallible program_load(void) {
    fd_owned int helper = sys_helper_open(HELPER);
    if (helper < 0)
        return error_new(ERROR_UNAVAILABLE, "the helper " HELPER " is not there (it is built where clang and "
                                            "libbpf are)");
    fd_owned int directory = open(PINNED, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int words[2];
    if (directory < 0)
        return error_system(errno, "open", PINNED);
    if (pipe2(words, O_CLOEXEC) < 0)
        return error_system(errno, "make", "a pipe");
    fd_owned int ours = words[0];
    fd_owned int theirs = words[1];
    struct launch launch = {helper, directory, theirs};
    int pidfd = -1;
    pid_t pid = sys_spawn(helper_run, &launch, &pidfd);
    if (pid < 0)
        return error_system(errno, "fork", HELPER);
    fd_close(fd_take(&theirs));
    fd_close(pidfd);
    char said[512] = "";
    size_t length = 0;
    ssize_t part;
    while (length < sizeof said - 1 && (part = read(ours, said + length, sizeof said - 1 - length)) > 0)
        length += (size_t)part;
    said[length] = '\0';
    said[strcspn(said, "\n")] = '\0';
    int status;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return error_new(ERROR_UNAVAILABLE, HELPER ": %s", said[0] != '\0' ? said : "ended without a word");
    return NULL;
}

/* Under the lock. */
static fallible program_have(struct pinned *out) {
    TRY(place_prepare());
    if (pinned_open(out))
        return NULL;
    pinned_close(out);
    *out = (struct pinned)PINNED_NONE;
    /* What a helper that was killed has left. */
    (void)!unlink(PINNED "/rings");
    (void)!unlink(PINNED "/losses");
    (void)!unlink(PINNED "/link");
    TRY(program_load());
    return pinned_open(out) ? NULL : error_system(errno, "open", PINNED);
}

struct error *file_program_try(void) {
    fd_owned int lock = -1;
    TRY(place_lock(&lock));
    pinned_owned struct pinned pinned = PINNED_NONE;
    struct error *error = program_have(&pinned);
    if (error != NULL)
        place_remove();
    return error;
}

struct error *file_program_watch(uint64_t pid_namespace, struct file_watch *out) {
    *out = (struct file_watch)FILE_WATCH_NONE;
    fd_owned int lock = -1;
    TRY(place_lock(&lock));
    pinned_owned struct pinned pinned = PINNED_NONE;
    TRY(program_have(&pinned));
    fd_owned int ring = sys_bpf_map_create(BPF_MAP_TYPE_RINGBUF, 0, 0, OBSERVE_RING_BYTES, 0);
    fd_owned int losses =
        sys_bpf_map_create(BPF_MAP_TYPE_ARRAY, sizeof(uint32_t), sizeof(uint64_t), 1, BPF_F_MMAPABLE);
    const uint32_t key = (uint32_t)pid_namespace;
    if (ring < 0 || losses < 0 || sys_bpf_map_set(pinned.losses, &key, &losses) < 0 ||
        sys_bpf_map_set(pinned.rings, &key, &ring) < 0)
        return error_system(errno, "make", "a BPF map for the file observer");
    out->ring = fd_take(&ring);
    out->losses = fd_take(&losses);
    return NULL;
}

static void release(const uint32_t *key) {
    fd_owned int lock = -1;
    struct error *error = place_lock(&lock);
    if (error != NULL) {
        error_ignore(error); /* what stays is found by the next container */
        return;
    }
    pinned_owned struct pinned pinned = PINNED_NONE;
    bool there = pinned_open(&pinned);
    uint32_t next;
    if (key != NULL && pinned.rings >= 0) {
        (void)!sys_bpf_map_remove(pinned.rings, key);
        (void)!sys_bpf_map_remove(pinned.losses, key);
    }
    if (!there || (sys_bpf_map_next(pinned.rings, NULL, &next) < 0 && errno == ENOENT))
        place_remove();
}

void file_program_forget(uint64_t pid_namespace) {
    const uint32_t key = (uint32_t)pid_namespace;
    release(&key);
}

void file_program_release(void) {
    release(NULL);
}
