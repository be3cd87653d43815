/* From a compiled program to a loaded one, and the way of its listener out of it. */
#include <errno.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <seccomp.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "process/seccomp.h"

/* Room for `deliver`, whose errors are formatted; pthread's default of 8 MiB could meet a memory limit. */
#define COURIER_STACK_BYTES (256 * 1024)

static fallible install(const struct seccomp_program *program, unsigned flags, int *listener) {
    struct sock_fprog filter = {.len = (unsigned short)program->count, .filter = program->instructions};
    /* libseccomp 2.5.4 answers a second load with the first listener and does not know WAIT_KILLABLE_RECV. */
    long result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter);
    if (result < 0 && errno == EINVAL && (flags & SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV) != 0) {
        flags &= ~SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
        result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter);
    }
    if (result < 0)
        return error_system(errno, "install", "the seccomp filter%s",
                            errno == EBUSY ? " (this process is already below a seccomp listener)" : "");
    if (program->has_listener)
        *listener = (int)result;
    else if (result > 0)
        return error_system(ESRCH, "install", "the seccomp filter in thread %ld", result);
    return NULL;
}

fallible seccomp_install(const struct seccomp_program *program, int *listener) {
    *listener = -1;
    return program->instructions == NULL ? NULL : install(program, program->flags, listener);
}

/* --- delivered from outside --- */

enum delivery_stage { DELIVERY_WAITS, DELIVERY_DUE, DELIVERY_CANCELLED, DELIVERY_DONE };

struct delivery {
    atomic_int stage;
    int listener;
    void (*deliver)(int listener, void *data);
    void *data;
};

static void *courier_run(void *data) {
    struct delivery *delivery = data;
    const struct timespec moment = {.tv_nsec = 50000};
    int stage;
    /* Polled: to wake a waiter is a system call, which the filter could hold. */
    while ((stage = atomic_load(&delivery->stage)) == DELIVERY_WAITS)
        nanosleep(&moment, NULL);
    if (stage == DELIVERY_DUE) {
        delivery->deliver(delivery->listener, delivery->data);
        fd_close(delivery->listener); /* descriptors are shared: closed for the filtered thread, too */
        atomic_store(&delivery->stage, DELIVERY_DONE);
    }
    return NULL;
}

static fallible courier_begin(struct delivery *delivery, pthread_t *courier) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, COURIER_STACK_BYTES);
    int number = pthread_create(courier, &attributes, courier_run, delivery);
    pthread_attr_destroy(&attributes);
    return number == 0 ? NULL : error_system(number, "begin", "a thread for the seccomp listener");
}

fallible seccomp_install_delivered(const struct seccomp_program *program,
                                   void (*deliver)(int listener, void *data), void *data) {
    struct delivery delivery = {.listener = -1, .deliver = deliver, .data = data};
    pthread_t courier;
    TRY(courier_begin(&delivery, &courier));
    unsigned flags =
        program->flags & ~(unsigned)(SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_TSYNC_ESRCH);
    struct error *error = install(program, flags, &delivery.listener);
    if (error != NULL) {
        atomic_store(&delivery.stage, DELIVERY_CANCELLED);
        pthread_join(courier, NULL);
        return error;
    }
    atomic_store(&delivery.stage, DELIVERY_DUE);
    while (atomic_load(&delivery.stage) != DELIVERY_DONE)
        continue; /* the time of one sendmsg; to sleep is a system call */
    return NULL;
}

/* --- a look into the program --- */

static bool load_word(uint32_t offset, int number, const uint64_t *arguments, uint32_t *value) {
    struct seccomp_data data = {.nr = number, .arch = seccomp_arch_native()};
    if (offset > sizeof data - sizeof *value ||
        (offset >= offsetof(struct seccomp_data, instruction_pointer) && arguments == NULL))
        return false; /* it depends on an argument */
    if (arguments != NULL)
        memcpy(data.args, arguments, sizeof data.args);
    memcpy(value, (const char *)&data + offset, sizeof *value);
    return true;
}

/* What the filter answers a call of the native ABI; false where that depends on arguments and there are none.
 */
static bool run(const struct seccomp_program *program, int number, const uint64_t *arguments,
                uint32_t *action) {
    uint32_t value = 0;
    for (size_t at = 0; at < program->count; at++) {
        const struct sock_filter *instruction = &program->instructions[at];
        uint32_t k = instruction->k;
        bool jump;
        switch (instruction->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            if (!load_word(k, number, arguments, &value))
                return false;
            continue;
        case BPF_ALU | BPF_AND | BPF_K:
            value &= k;
            continue;
        case BPF_JMP | BPF_JA:
            at += k;
            continue;
        case BPF_JMP | BPF_JEQ | BPF_K:
            jump = value == k;
            break;
        case BPF_JMP | BPF_JGT | BPF_K:
            jump = value > k;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            jump = value >= k;
            break;
        case BPF_JMP | BPF_JSET | BPF_K:
            jump = (value & k) != 0;
            break;
        default: /* filter_append writes no other instruction */
            *action = k;
            return instruction->code == (BPF_RET | BPF_K);
        }
        at += jump ? instruction->jt : instruction->jf;
    }
    return false;
}

bool seccomp_program_allows(const struct seccomp_program *program, int number) {
    uint32_t action = SECCOMP_RET_KILL_PROCESS;
    return program->instructions == NULL ||
           (run(program, number, NULL, &action) && action == SECCOMP_RET_ALLOW);
}

uint32_t seccomp_program_verdict(const struct seccomp_program *program, int number,
                                 const uint64_t arguments[6]) {
    uint32_t action = SECCOMP_RET_KILL_PROCESS;
    if (program->instructions == NULL)
        return SECCOMP_RET_ALLOW;
    return run(program, number, arguments, &action) ? action : SECCOMP_RET_KILL_PROCESS;
}
