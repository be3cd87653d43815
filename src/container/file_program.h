/* The file observer's BPF program: one for all containers of the machine, loaded by the first that wants it
 * and gone with the last. It is pinned with its maps in a bpffs of pinfold's own that only root may enter; a
 * lock is held while it comes and goes. */
#pragma once

#include <stdint.h>

#include "base/error.h"

/* Where a container's events are. */
struct file_watch {
    int ring;   /* a BPF ring buffer of OBSERVE_RING_BYTES */
    int losses; /* a BPF array of one number, that can be mapped: events without room */
};
#define FILE_WATCH_NONE                                                                                      \
    { -1, -1 }

/* Tries: loads it where it is not there. An error says why it cannot be had. What is loaded is given back by
 * file_program_release, should no container come to use it. */
fallible file_program_try(void);
void file_program_release(void);
/* From here on it looks at the processes of this process namespace, by its inode. The caller closes both. */
fallible file_program_watch(uint64_t pid_namespace, struct file_watch *out);
/* The opposite; with the last one the program goes. */
void file_program_forget(uint64_t pid_namespace);
