/* Operations that a sandbox denies, one a process, for tests/bats/observe_matrix.bats. Static. As "run
 * NAME..." it starts each one as a program of that name, whose records carry it, and prints "NAME RESULT": an
 * errno's name or "done". An operation acts on its own directory /m/NAME, which is read-only and has a file
 * `old`, on /w, which is writable, or on what its name says. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

static const char *here; /* "/m/NAME" */

/* "/m/NAME/" and what follows; good until the next but one. */
static const char *mine(const char *name) {
    static char paths[2][256];
    static int turn;
    turn = !turn;
    snprintf(paths[turn], sizeof paths[turn], "%s/%s", here, name);
    return paths[turn];
}
static int directory(const char *path) {
    return open(path, O_PATH | O_DIRECTORY);
}
static const char *decoy(void) {
    const char *path = getenv("DECOY");
    return path != NULL ? path : "/nowhere";
}
/* The decoy's directory; its own name. */
static const char *decoy_directory(void) {
    static char path[256];
    snprintf(path, sizeof path, "%s", decoy());
    *strrchr(path, '/') = '\0';
    return path;
}
static const char *decoy_name(void) {
    return strrchr(decoy(), '/') + 1;
}
static int open_how(int at, const char *path, unsigned long long flags) {
    struct open_how how = {.flags = flags, .mode = (flags & O_CREAT) != 0 ? 0644 : 0};
    return (int)syscall(SYS_openat2, at, path, &how, sizeof how);
}

/* --- read-only places --- */

static int open_write(void) {
    return open(mine("old"), O_WRONLY);
}
static int open_create(void) {
    return open(mine("new"), O_WRONLY | O_CREAT, 0644);
}
static int call_creat(void) {
    return creat(mine("new"), 0644);
}
static int open_truncate(void) {
    return open(mine("old"), O_RDONLY | O_TRUNC);
}
static int open_tmpfile(void) {
    return open(here, O_WRONLY | O_TMPFILE, 0600);
}
static int call_mkdir(void) {
    return mkdir(mine("new"), 0755);
}
static int call_mkdirat(void) {
    return mkdirat(directory(here), "new", 0755);
}
static int call_mknod(void) {
    return mknod(mine("new"), S_IFIFO | 0600, 0);
}
static int call_unlink(void) {
    return unlink(mine("old"));
}
static int call_rmdir(void) {
    return rmdir(mine("empty"));
}
static int call_unlinkat(void) {
    return unlinkat(directory(here), "empty", AT_REMOVEDIR);
}
static int call_rename(void) {
    return rename(mine("old"), mine("new"));
}
static int call_renameat2(void) {
    return (int)syscall(SYS_renameat2, directory(here), "old", directory(here), "empty", 2);
}
static int call_chmod(void) {
    return chmod(mine("old"), 0600);
}
static int call_fchmodat2(void) {
    return (int)syscall(SYS_fchmodat2, directory(here), "old", 0600, 0);
}
static int call_fchmod(void) {
    return fchmod(open(mine("old"), O_RDONLY), 0600);
}
static int call_lchown(void) {
    return lchown(mine("old"), getuid(), getgid());
}
static int call_truncate(void) {
    return truncate(mine("old"), 0);
}
static int call_link(void) {
    return link(mine("old"), mine("new"));
}
static int call_linkat(void) {
    return linkat(directory(here), "old", directory(here), "new", 0);
}
static int call_symlink(void) {
    return symlink("anywhere", mine("new"));
}
static int call_utimensat(void) {
    return utimensat(AT_FDCWD, mine("old"), NULL, 0);
}
static int call_utimes(void) {
    return utimes(mine("old"), NULL);
}
static int call_futimens(void) {
    return futimens(open(mine("old"), O_RDONLY), NULL);
}
static int call_setxattr(void) {
    return setxattr(mine("old"), "user.a", "b", 1, 0);
}
static int call_removexattr(void) {
    return lremovexattr(mine("old"), "user.a");
}
static int call_openat2(void) {
    return open_how(AT_FDCWD, mine("new"), O_WRONLY | O_CREAT);
}
static int openat2_beneath(void) {
    struct open_how how = {.flags = O_WRONLY, .resolve = RESOLVE_BENEATH};
    return (int)syscall(SYS_openat2, directory(here), "old", &how, sizeof how);
}
/* /w/NAME is a symlink to /m/NAME/old: only the last component tells. */
static int by_symlink(void) {
    return open("/w/by-symlink", O_WRONLY);
}
static int by_dots(void) {
    return open("/w/../m/by-dots/old", O_WRONLY);
}
static int by_dirfd(void) {
    return openat(directory(here), "new", O_WRONLY | O_CREAT, 0644);
}
static int by_cwd(void) {
    return chdir(here) < 0 ? -1 : open("old", O_WRONLY);
}
static int by_proc_self(void) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", open(mine("old"), O_RDONLY));
    return open(path, O_WRONLY);
}
static int by_proc_cwd(void) {
    return chdir(here) < 0 ? -1 : open("/proc/self/cwd/new", O_WRONLY | O_CREAT, 0644);
}
static int by_io_uring(void) {
    char parameters[120] = {0};
    return (int)syscall(SYS_io_uring_setup, 1, parameters);
}

/* --- permissions: /w/secret has mode 0, /w/closed too and holds a file, /w/others is another's --- */

static int secret_read(void) {
    return open("/w/secret", O_RDONLY);
}
static int secret_write(void) {
    return open("/w/secret", O_WRONLY);
}
static int secret_dirfd(void) {
    return openat(directory("/w"), "secret", O_RDONLY);
}
static int secret_cwd(void) {
    return chdir("/w") < 0 ? -1 : open("secret", O_RDONLY);
}
static int secret_symlink(void) {
    return open("/w/to-secret", O_RDONLY);
}
static int secret_openat2(void) {
    return open_how(AT_FDCWD, "/w/secret", O_RDONLY);
}
static int secret_exec(void) {
    return execl("/w/plain", "/w/plain", NULL);
}
static int secret_truncate(void) {
    return truncate("/w/secret", 0);
}
static int closed_below(void) {
    return open("/w/closed/file", O_RDONLY);
}
static int closed_create(void) {
    return open("/w/fixed/new", O_WRONLY | O_CREAT, 0644);
}
static int closed_unlink(void) {
    return unlink("/w/fixed/old");
}
static int closed_mkdir(void) {
    return mkdir("/w/fixed/new", 0755);
}
static int others_chmod(void) {
    return chmod("/w/others", 0644);
}
static int others_utimes(void) {
    const struct timespec times[2] = {{1, 0}, {1, 0}};
    return utimensat(AT_FDCWD, "/w/others", times, 0);
}

/* --- decoys and what is hidden --- */

static int decoy_open(void) {
    return open(decoy(), O_RDONLY);
}
static int decoy_dirfd(void) {
    return openat(directory(decoy_directory()), decoy_name(), O_RDONLY);
}
static int decoy_cwd(void) {
    return chdir(decoy_directory()) < 0 ? -1 : open(decoy_name(), O_RDONLY);
}
static int decoy_symlink(void) {
    (void)!symlink(decoy(), "/w/to-decoy");
    return open("/w/to-decoy", O_RDONLY);
}
static int decoy_openat2(void) {
    return open_how(AT_FDCWD, decoy(), O_RDONLY);
}
static int decoy_proc_root(void) {
    char path[300];
    snprintf(path, sizeof path, "/proc/self/root%s", decoy());
    return open(path, O_RDONLY);
}
static int decoy_write(void) {
    return open(decoy(), O_WRONLY);
}
static int decoy_link(void) {
    return link(decoy(), "/w/linked");
}
static int decoy_stat(void) {
    struct stat status;
    return stat(decoy(), &status);
}
static int decoy_path(void) {
    return open(decoy(), O_PATH);
}
static int absent(void) {
    return open("/m/absent/none", O_RDONLY);
}
static int masked_file(void) {
    return open("/proc/timer_list", O_RDONLY);
}
static int masked_dir(void) {
    return open("/proc/scsi/scsi", O_RDONLY);
}

/* --- system calls --- */

static int call_mount(void) {
    return mount("none", "/w", "tmpfs", 0, NULL);
}
static int call_ptrace(void) {
    return (int)ptrace(PTRACE_ATTACH, getppid(), 0, 0);
}
static int call_bpf(void) {
    union bpf_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    return (int)syscall(SYS_bpf, BPF_MAP_CREATE, &attributes, sizeof attributes);
}

static const struct {
    const char *name;
    int (*run)(void);
} operations[] = {
    {"open-write", open_write},
    {"open-create", open_create},
    {"creat", call_creat},
    {"open-truncate", open_truncate},
    {"open-tmpfile", open_tmpfile},
    {"mkdir", call_mkdir},
    {"mkdirat", call_mkdirat},
    {"mknod", call_mknod},
    {"unlink", call_unlink},
    {"rmdir", call_rmdir},
    {"unlinkat", call_unlinkat},
    {"rename", call_rename},
    {"renameat2", call_renameat2},
    {"chmod", call_chmod},
    {"fchmodat2", call_fchmodat2},
    {"fchmod", call_fchmod},
    {"lchown", call_lchown},
    {"truncate", call_truncate},
    {"link", call_link},
    {"linkat", call_linkat},
    {"symlink", call_symlink},
    {"utimensat", call_utimensat},
    {"utimes", call_utimes},
    {"futimens", call_futimens},
    {"setxattr", call_setxattr},
    {"lremovexattr", call_removexattr},
    {"openat2", call_openat2},
    {"openat2-beneath", openat2_beneath},
    {"by-symlink", by_symlink},
    {"by-dots", by_dots},
    {"by-dirfd", by_dirfd},
    {"by-cwd", by_cwd},
    {"by-proc-self", by_proc_self},
    {"by-proc-cwd", by_proc_cwd},
    {"by-io-uring", by_io_uring},
    {"secret-read", secret_read},
    {"secret-write", secret_write},
    {"secret-dirfd", secret_dirfd},
    {"secret-cwd", secret_cwd},
    {"secret-symlink", secret_symlink},
    {"secret-openat2", secret_openat2},
    {"secret-exec", secret_exec},
    {"secret-truncate", secret_truncate},
    {"closed-below", closed_below},
    {"closed-create", closed_create},
    {"closed-unlink", closed_unlink},
    {"closed-mkdir", closed_mkdir},
    {"others-chmod", others_chmod},
    {"others-utimes", others_utimes},
    {"decoy-open", decoy_open},
    {"decoy-dirfd", decoy_dirfd},
    {"decoy-cwd", decoy_cwd},
    {"decoy-symlink", decoy_symlink},
    {"decoy-openat2", decoy_openat2},
    {"decoy-proc-root", decoy_proc_root},
    {"decoy-write", decoy_write},
    {"decoy-link", decoy_link},
    {"decoy-stat", decoy_stat},
    {"decoy-path", decoy_path},
    {"absent", absent},
    {"masked-file", masked_file},
    {"masked-dir", masked_dir},
    {"mount", call_mount},
    {"ptrace", call_ptrace},
    {"bpf", call_bpf},
};
#define COUNT (sizeof operations / sizeof *operations)

static int run(const char *name) {
    char path[256];
    snprintf(path, sizeof path, "/m/%s", name);
    here = path;
    for (size_t i = 0; i < COUNT; i++)
        if (strcmp(operations[i].name, name) == 0) {
            errno = 0;
            const int result = operations[i].run();
            printf("%s %s\n", name, result >= 0 ? "done" : strerrorname_np(errno));
            return 0;
        }
    printf("%s unknown\n", name);
    return 1;
}

/* The programs stay until everything before this one's denial is recorded, which the container's own view
 * shows: an observer that tells of denials after the fact looks at who has made them. */
static void wait_for_records(void) {
    static char text[1 << 20];
    (void)!open("/m/last/old", O_WRONLY);
    for (int turn = 0; turn < 3000; turn++) {
        const int file = open("/run/pinfold/denials.jsonl", O_RDONLY);
        const ssize_t length = file < 0 ? 0 : read(file, text, sizeof text - 1);
        close(file);
        if (file < 0)
            return;
        text[length > 0 ? length : 0] = '\0';
        if (strstr(text, "/m/last/old") != NULL)
            return;
        usleep(10000);
    }
}

int main(int argc, char **argv) {
    const char *slash = strrchr(argv[0], '/');
    const char *name = slash != NULL ? slash + 1 : argv[0];
    if (strcmp(name, "run") != 0) {
        const int status = run(name);
        char byte;
        fflush(stdout);
        close(STDOUT_FILENO); /* done, for who waits for it */
        return read(STDIN_FILENO, &byte, 1) < 0 ? 2 : status;
    }
    int until[2]; /* closed: all may go */
    if (pipe2(until, O_CLOEXEC) < 0)
        return 3;
    for (int i = 1; i < argc; i++) {
        char path[256];
        snprintf(path, sizeof path, "/m/bin/%s", argv[i]);
        int out[2];
        if (pipe2(out, O_CLOEXEC) < 0)
            return 3;
        const pid_t child = fork();
        if (child == 0) {
            dup2(until[0], STDIN_FILENO);
            dup2(out[1], STDOUT_FILENO);
            execl(path, path, NULL);
            _exit(127);
        }
        close(out[1]);
        char text[256];
        for (ssize_t length; (length = read(out[0], text, sizeof text)) > 0;)
            (void)!write(STDOUT_FILENO, text, (size_t)length);
        close(out[0]);
    }
    wait_for_records();
    close(until[1]);
    while (wait(NULL) > 0)
        continue;
    return 0;
}
