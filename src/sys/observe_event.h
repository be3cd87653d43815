/* What the BPF program of the file observer says of a denied call, and how its tables are laid out: shared by
 * the program, the helper that loads it and the warden that reads its events. No type of the C library, which
 * the program has none of. */
#pragma once

#include <linux/types.h>

/* Changes with anything below, and with the program: one version does not use what another has pinned. */
#define OBSERVE_VERSION "1"

#define OBSERVE_RING_BYTES (256 * 1024) /* of a container */
#define OBSERVE_PATH 512
#define OBSERVE_CALLS 512
#define OBSERVE_ABIS 2 /* that of the machine; that of 32 bits */

struct observe_event {
    __u32 process; /* the thread, as the process namespace above the container's counts */
    __u32 user;
    __s32 call;
    __s32 error; /* EPERM, EACCES, EROFS */
    __u32 abi;
    __u32 reserved;
    __u64 arguments[6];
    char name[16];
    char paths[2][OBSERVE_PATH]; /* as the call had them; "" for none, or one that could not be read */
};

/* A byte for each call: 0 for one that is not of files. Else WATCHED, and which arguments are paths. */
#define OBSERVE_WATCHED 0x80
#define OBSERVE_PATH_ARGUMENT(first, second) (OBSERVE_WATCHED | ((first) + 1) | ((second) + 1) << 3)

/* Where the kernel keeps what the program looks for, in bytes; found in its BTF when the program is loaded.
 */
struct observe_offsets {
    __u32 task_pid;     /* task_struct.thread_pid */
    __u32 task_status;  /* task_struct.thread_info.status */
    __u32 pid_level;    /* pid.level */
    __u32 pid_numbers;  /* pid.numbers */
    __u32 number_size;  /* of one of them */
    __u32 number_nr;    /* upid.nr */
    __u32 number_space; /* upid.ns */
    __u32 space_inode;  /* pid_namespace.ns.inum */
};
