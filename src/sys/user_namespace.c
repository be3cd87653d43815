#include "sys/user_namespace.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "sys/calls.h"
#include "sys/procfs.h"

static struct error *namespace_take(pid_t pid, const char *uid_map, const char *gid_map, int *out) {
    procfs_owned struct procfs procfs = PROCFS_NONE;
    TRY(procfs_open(PROCFS_PROCESSES, &procfs));
    TRY(procfs_write_process(&procfs, pid, "gid_map", gid_map));
    TRY(procfs_write_process(&procfs, pid, "uid_map", uid_map));
    return procfs_open_namespace(&procfs, pid, "user", out);
}

struct error *user_namespace_make(const char *uid_map, const char *gid_map, int *out) {
    fd_owned int ours = -1;
    fd_owned int theirs = -1;
    TRY(fd_pair(&ours, &theirs));
    fd_owned int pidfd = -1;
    pid_t pid = sys_clone3(CLONE_NEWUSER, &pidfd, -1);
    if (pid == 0) {
        /* Nothing but to be there; the end of the parent is the end of this. */
        char byte;
        close(ours);
        (void)!read(theirs, &byte, sizeof byte);
        _exit(0);
    }
    if (pid < 0)
        return error_system(errno, "clone", "the process of a user namespace");
    fd_close(fd_take(&theirs));
    struct error *error = namespace_take(pid, uid_map, gid_map, out);
    fd_close(fd_take(&ours));
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return error;
}
