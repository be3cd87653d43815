/* The file observer's program, at the end of every system call of the machine: whether a call of a container
 * that is looked at was denied. Compiled by clang for the bpf target. Without CO-RE, whose loading takes
 * longer than a container's start: the few places in the kernel's structures are given by who loads it. */
#include <linux/bpf.h>
#include <linux/ptrace.h>

#include <bpf/bpf_helpers.h>

#include "sys/observe_event.h"

#define LEVELS 32 /* MAX_PID_NS_LEVEL */
#define COMPAT 2  /* TS_COMPAT */
#define NO_PERMISSION 1
#define NO_ACCESS 13
#define READ_ONLY 30

char _license[] SEC("license") = "GPL";

const volatile struct observe_offsets offsets = {0};
const volatile unsigned char calls[OBSERVE_ABIS][OBSERVE_CALLS] = {0};

struct ring {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, OBSERVE_RING_BYTES);
};
struct count {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
};
/* By the inode of a process namespace: where its events go, and how many had no room there. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
    __uint(max_entries, 4096);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, __u32);
    __array(values, struct ring);
} rings SEC(".maps");
struct {
    __uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
    __uint(max_entries, 4096);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, __u32);
    __array(values, struct count);
} losses SEC(".maps");

#define READ(out, place) bpf_probe_read_kernel(out, sizeof *(out), (const void *)(place))

struct found {
    void *ring;
    __u32 space;   /* inode */
    __u32 process; /* in the namespace above */
};

/* The outermost namespace that is looked at: those within count for the container. */
static __always_inline int container_find(unsigned long task, struct found *out) {
    unsigned long pid = 0, space = 0;
    __u32 level = 0, inode = 0, above = 0;
    if (READ(&pid, task + offsets.task_pid) || pid == 0 || READ(&level, pid + offsets.pid_level))
        return 0;
    for (__u32 at = 0; at < LEVELS; at++) {
        if (at > level)
            break;
        unsigned long number = pid + offsets.pid_numbers + at * offsets.number_size;
        if (at > 0) {
            if (READ(&space, number + offsets.number_space) || READ(&inode, space + offsets.space_inode))
                break;
            out->ring = bpf_map_lookup_elem(&rings, &inode);
            if (out->ring) {
                out->space = inode;
                out->process = above;
                return 1;
            }
        }
        READ(&above, number + offsets.number_nr);
    }
    return 0;
}

static __always_inline void read_path(char *out, const __u64 arguments[6], __u32 argument) {
    __u64 address = 0;
    /* No variable index: the arguments lie on the stack. */
    switch (argument) {
    case 1:
        address = arguments[0];
        break;
    case 2:
        address = arguments[1];
        break;
    case 3:
        address = arguments[2];
        break;
    case 4:
        address = arguments[3];
        break;
    }
    if (argument == 0 || address == 0 ||
        bpf_probe_read_user_str(out, OBSERVE_PATH, (const void *)(unsigned long)address) < 0)
        out[0] = '\0';
}

SEC("raw_tracepoint/sys_exit")
int denied(struct bpf_raw_tracepoint_args *context) {
    const long result = (long)context->args[1];
    if (result != -NO_PERMISSION && result != -NO_ACCESS && result != -READ_ONLY)
        return 0;
    struct pt_regs registers;
    __u32 status = 0;
    const unsigned long task = bpf_get_current_task();
    if (READ(&registers, context->args[0]) || READ(&status, task + offsets.task_status))
        return 0;
    const __u32 abi = (status & COMPAT) != 0;
    const unsigned long call = registers.orig_rax & 0xbfffffff; /* x32 has most numbers of the machine's */
    if (call >= OBSERVE_CALLS)
        return 0;
    const unsigned char wanted = calls[abi & 1][call & (OBSERVE_CALLS - 1)];
    struct found found = {0};
    if (wanted == 0 || !container_find(task, &found))
        return 0;
    struct observe_event *event = bpf_ringbuf_reserve(found.ring, sizeof *event, 0);
    if (!event) {
        void *counts = bpf_map_lookup_elem(&losses, &found.space);
        const __u32 first = 0;
        __u64 *count = counts ? bpf_map_lookup_elem(counts, &first) : (void *)0;
        if (count)
            __sync_fetch_and_add(count, 1);
        return 0;
    }
    event->process = found.process;
    event->user = (__u32)bpf_get_current_uid_gid();
    event->call = (int)call;
    event->error = (int)-result;
    event->abi = abi;
    event->reserved = 0;
    if (abi) {
        event->arguments[0] = (__u32)registers.rbx;
        event->arguments[1] = (__u32)registers.rcx;
        event->arguments[2] = (__u32)registers.rdx;
        event->arguments[3] = (__u32)registers.rsi;
        event->arguments[4] = (__u32)registers.rdi;
        event->arguments[5] = (__u32)registers.rbp;
    } else {
        event->arguments[0] = registers.rdi;
        event->arguments[1] = registers.rsi;
        event->arguments[2] = registers.rdx;
        event->arguments[3] = registers.r10;
        event->arguments[4] = registers.r8;
        event->arguments[5] = registers.r9;
    }
    bpf_get_current_comm(event->name, sizeof event->name);
    read_path(event->paths[0], event->arguments, wanted & 7);
    read_path(event->paths[1], event->arguments, wanted >> 3 & 7);
    bpf_ringbuf_submit(event, 0);
    return 0;
}
