/* The runtime's own program file, kept from the container (CVE-2019-5736).
 *
 * What init or a process of exec is, until its execve, is this program: inside the container, /proc/self/exe
 * leads to its file. A command, a "#!" line or an ELF interpreter of that name executes it there, and who
 * opens /proc/PID/exe of that process holds the file of the machine, to write to it as root once nobody
 * executes it any more.
 *
 * Executing a read-only copy or clone first costs a second execve, here as much as all else that starts a
 * container. Instead the process in the container changes over, right after it was made, to a clone of the
 * file's mount that is read-only: its segments are mapped again from there (the same pages of the same file),
 * and the kernel is told that this is its executable (prctl PR_SET_MM_MAP, which refuses while anything is
 * mapped from the old one). What the container can get hold of then is a file on a read-only mount that is in
 * no namespace, so that nobody can make it writable: EROFS. */
#pragma once

#include "base/error.h"

/* Before the process is made: opens this program's file on a read-only mount of its own. *fd is -1 where
 * there is nothing to guard: the mount is read-only as it is, or the file is root's and we are not. */
fallible binary_guard_open(int *fd);

/* In the new process, before it does anything else: changes over. Does not close `fd`; -1: nothing to do. */
fallible binary_guard_enter(int fd);

/* At the very start of a command that enters containers, with main's arguments. Where a process cannot change
 * over (a kernel without CONFIG_CHECKPOINT_RESTORE, an ordinary user), this program executes itself again
 * from such a clone, or from a sealed copy where it may not make one. Returns when there is no need to. */
fallible binary_execute_guarded(char *const *arguments);
