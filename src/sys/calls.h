/* Raw system calls that glibc 2.36 lacks or whose headers collide; each returns as the kernel does through
 * syscall(2): -1 with errno on failure. The only place with kernel-header conditionals. */
#pragma once

#include <linux/mount.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* clone3 without a stack of its own: the child goes on here, as after fork. `cgroup_fd` -1: none. *pidfd
 * receives a descriptor of the child in the parent. */
pid_t sys_clone3(uint64_t flags, int *pidfd, int cgroup_fd);

/* Runs body(data) in a child that borrows this process's memory, on a stack of its own, and waits until it
 * executes another program or ends: a fork without the copy of page tables (here 2 ms of CPU against 0.05).
 * The child has its own descriptors, signal dispositions, directory and namespaces; what it writes to memory
 * stays. */
pid_t sys_spawn(int (*body)(void *data), void *data, int *pidfd);

/* A lookup with ".." that may not leave its directory is EAGAIN when anything anywhere on the machine is
 * renamed or mounted meanwhile (crun #725): it is tried again, about 5 ms long, then EAGAIN is the answer. */
int sys_openat2(int directory, const char *path, uint64_t flags, uint64_t mode, uint64_t resolve);

int sys_open_tree(int directory, const char *path, unsigned flags);
int sys_move_mount(int from_directory, const char *from, int to_directory, const char *to, unsigned flags);
int sys_fsopen(const char *type, unsigned flags);
int sys_fspick(int directory, const char *path, unsigned flags);
int sys_fsconfig(int fs, unsigned command, const char *key, const void *value, int auxiliary);
int sys_fsmount(int fs, unsigned flags, unsigned attributes);
int sys_mount_setattr(int directory, const char *path, unsigned flags, const struct mount_attr *attributes);
int sys_pivot_root(const char *new_root, const char *put_old);

int sys_pidfd_open(pid_t pid, unsigned flags);
int sys_pidfd_send_signal(int pidfd, int signal);
/* Every signal to its default and none blocked, those two included that glibc keeps for itself (32 and 33)
 * and lets nobody change: a caller may have left them ignored. */
void sys_signals_reset(void);

/* From here on this process and its children can make only the named calls; every other one fails with EPERM,
 * and one of another ABI ends the process. A name that this machine's ABI lacks is left out. Needs
 * no_new_privs. At most 120. With `families` (at most 8) sockets are made of these alone. */
int sys_seccomp_only(const char *const *names, unsigned count, const int *families, unsigned families_count);

/* Of this process's capabilities those in `keep` stay, and of these the ones in `use` are in effect; none is
 * inherited. */
int sys_capabilities_set(uint64_t keep, uint64_t use);

/* Whether this kernel takes a seccomp flag, by its name in the runtime specification. */
bool sys_seccomp_flag_supported(const char *name);

/* The id of a mount namespace, which no other one ever has: -1 with ENOTTY where the kernel (before 6.11) has
 * none. */
int sys_mount_namespace_id(int fd, uint64_t *id);

int sys_close_range(unsigned first, unsigned last, unsigned flags);
int sys_keyctl_join_session(const char *name);

/* How the process behind a pidfd ended, as a wait status. -1 with ENOSYS where the kernel (before 6.15)
 * cannot say, EAGAIN while it runs. */
int sys_pidfd_exit_status(int pidfd, int *wait_status);

#ifndef MOUNT_ATTR_NOSYMFOLLOW
#define MOUNT_ATTR_NOSYMFOLLOW 0x00200000
#endif
#ifndef CLONE_INTO_CGROUP
#define CLONE_INTO_CGROUP 0x200000000ULL
#endif
#ifndef CLONE_CLEAR_SIGHAND
#define CLONE_CLEAR_SIGHAND 0x100000000ULL
#endif
#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

int sys_execveat(int directory, const char *path, char *const *arguments, char *const *environment,
                 int flags);
/* A memory file that may be sealed and executed; a machine may forbid the latter (vm.memfd_noexec). */
int sys_memfd_executable(const char *name);
