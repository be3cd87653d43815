/* System calls about processors, priorities and memory nodes that glibc 2.36 has no function for. Each
 * returns as the kernel does through syscall(2): -1 with errno on failure. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* struct sched_attr of include/uapi/linux/sched/types.h; libc's and the kernel's headers exclude each other.
 */
struct sys_sched_attributes {
    uint32_t size;
    uint32_t policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
    uint32_t utilization_min, utilization_max;
};

int sys_sched_setattr(pid_t pid, struct sys_sched_attributes *attributes);
/* Turns of this length on the processor for the calling thread: who is woken comes before those whose turns
 * are longer, and has no larger a share for it. Policy and nice value stay as they are. Linux 6.12; of no
 * effect before. */
int sys_sched_set_turn(uint64_t nanoseconds);
/* `words`: a bit for each processor, `bytes` long; what is beyond the machine's last one does not count. */
int sys_sched_setaffinity(pid_t pid, const unsigned long *words, size_t bytes);
/* `io_class`: 1 real time, 2 best effort, 3 idle. */
int sys_ioprio_set(pid_t pid, int io_class, int priority);
/* `mode` with its flags; `words` holds a bit for each of `bits` memory nodes. */
int sys_set_mempolicy(int mode, const unsigned long *words, unsigned long bits);
