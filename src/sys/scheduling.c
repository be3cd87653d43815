#include "sys/scheduling.h"

#include <sys/syscall.h>
#include <unistd.h>

#define IOPRIO_WHO_PROCESS 1
#define IOPRIO_CLASS_SHIFT 13

int sys_sched_setattr(pid_t pid, struct sys_sched_attributes *attributes) {
    attributes->size = sizeof *attributes;
    return (int)syscall(SYS_sched_setattr, pid, attributes, 0);
}

int sys_sched_set_turn(uint64_t nanoseconds) {
    struct sys_sched_attributes attributes = {0};
    if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) < 0)
        return -1;
    attributes.runtime = nanoseconds;
    attributes.deadline = attributes.period = 0;
    return sys_sched_setattr(0, &attributes);
}

int sys_sched_setaffinity(pid_t pid, const unsigned long *words, size_t bytes) {
    return (int)syscall(SYS_sched_setaffinity, pid, bytes, words);
}

int sys_ioprio_set(pid_t pid, int io_class, int priority) {
    return (int)syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, pid, io_class << IOPRIO_CLASS_SHIFT | priority);
}

int sys_set_mempolicy(int mode, const unsigned long *words, unsigned long bits) {
    return (int)syscall(SYS_set_mempolicy, mode, words, bits);
}
