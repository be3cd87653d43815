/* Denied file calls that the file observer's program has seen (helpers/observe.bpf.c). They are told after
 * the fact: what a path stands for is looked up while the caller, with luck, is still there. */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/bpf.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "policy/match.h"
#include "sys/observe_event.h"
#include "sys/syscalls.h"
#include "warden/mutation.h"
#include "warden/observers.h"

#define EVENTS_PER_TURN 64 /* so that other observers get theirs */

#if defined(__x86_64__)
#define MACHINE AUDIT_ARCH_X86_64
#define MACHINE_32 AUDIT_ARCH_I386
#else
#define MACHINE AUDIT_ARCH_AARCH64
#define MACHINE_32 AUDIT_ARCH_ARM
#endif

struct file_ring {
    _Atomic unsigned long *read_to;          /* ours */
    const _Atomic unsigned long *written_to; /* the kernel's */
    const char *bytes;                       /* mapped twice in a row, so that no event is cut */
    const _Atomic uint64_t *losses;
    uint64_t told; /* of them */
};

struct error *file_ring_open(int ring, int losses, struct file_ring **out) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *ours = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, ring, 0);
    const char *theirs = mmap(NULL, page + 2 * OBSERVE_RING_BYTES, PROT_READ, MAP_SHARED, ring, (off_t)page);
    void *count = mmap(NULL, page, PROT_READ, MAP_SHARED, losses, 0);
    if (ours == MAP_FAILED || theirs == MAP_FAILED || count == MAP_FAILED)
        return error_system(errno, "map", "the file observer's ring");
    struct file_ring *made = memory_zeroed(sizeof *made);
    *made = (struct file_ring){
        .read_to = ours, .written_to = (const void *)theirs, .bytes = theirs + page, .losses = count};
    *out = made;
    return NULL;
}

/* The decoys' tripwire has denied it, and recorded it. Hardly anything else denies reading with EPERM: of a
 * relative path whose caller is gone that is what it was. */
static bool is_of_decoy(const struct warden_context *context, const struct mutation *denied) {
    return denied->error == EPERM && denied->activity_id == 2 &&
           (denied->path[0] != '/' || string_list_contains(&context->decoy_paths, denied->path));
}

/* Whose root and working directory the paths are looked up in. Init has the same root, as a rule. */
static pid_t looked_up_for(const struct warden_context *context, const struct observe_event *event,
                           bool gone) {
    const char *path = event->paths[0];
    return gone && path[0] == '/' && !match_path_within(path, "/proc") ? context->init_pid
                                                                       : (pid_t)event->process;
}

static void event_tell(struct warden_context *context, const struct observe_event *event) {
    struct seccomp_data data = {.nr = event->call, .arch = event->abi == 0 ? MACHINE : MACHINE_32};
    memcpy(data.args, event->arguments, sizeof data.args);
    char call[64];
    syscall_name(data.arch, data.nr, call, sizeof call);
    const char *const paths[2] = {event->paths[0], event->paths[1]};
    struct mutation denied;
    struct record_process process;
    record_process_read((pid_t)event->process, &process);
    const pid_t pid = looked_up_for(context, event, process.name == NULL);
    if (!mutation_describe(call, &data, pid, event->error, paths, &denied) || is_of_decoy(context, &denied)) {
        record_process_clear(&process);
        return;
    }
    /* Of one that is gone the program has seen so much. */
    if (process.name == NULL) {
        process.name = text_formatted("%.*s", (int)sizeof event->name, event->name);
        process.pid = (pid_t)event->process;
    }
    file_denial_record(context, &denied, &process, NULL);
    record_process_clear(&process);
}

static void losses_look(struct warden_context *context) {
    struct file_ring *ring = context->file_ring;
    const uint64_t losses = atomic_load_explicit(ring->losses, memory_order_relaxed);
    context->files_lost += losses - ring->told;
    ring->told = losses;
}

/* False when there is nothing more. */
static bool event_next(struct warden_context *context) {
    struct file_ring *ring = context->file_ring;
    const unsigned long at = atomic_load_explicit(ring->read_to, memory_order_relaxed);
    if (at >= atomic_load_explicit(ring->written_to, memory_order_acquire))
        return false;
    const char *place = ring->bytes + (at & (OBSERVE_RING_BYTES - 1));
    const uint32_t head = atomic_load_explicit((const _Atomic uint32_t *)place, memory_order_acquire);
    if ((head & BPF_RINGBUF_BUSY_BIT) != 0)
        return false;
    const uint32_t length = head & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
    losses_look(context);
    if ((head & BPF_RINGBUF_DISCARD_BIT) == 0 && length == sizeof(struct observe_event))
        event_tell(context, (const struct observe_event *)(place + BPF_RINGBUF_HDR_SZ));
    atomic_store_explicit(ring->read_to, at + ((length + BPF_RINGBUF_HDR_SZ + 7) & ~7UL),
                          memory_order_release);
    return true;
}

void file_ring_handle(struct warden_context *context) {
    for (int turn = 0; turn < EVENTS_PER_TURN && event_next(context); turn++)
        continue;
}

void file_ring_finish(struct warden_context *context) {
    if (context->file_ring == NULL)
        return;
    while (event_next(context))
        continue;
    losses_look(context);
    if (context->files_lost == 0)
        return;
    memory_owned char *message =
        text_formatted("%llu further file accesses were denied faster than they could be recorded.",
                       (unsigned long long)context->files_lost);
    const struct record_event event = {.class_id = RECORD_FINDING,
                                       .activity_id = 1,
                                       .action = RECORD_DENIED,
                                       .reason = "log.suppressed",
                                       .message = message,
                                       .rule = "observe.files",
                                       .rule_origin = context->policy_origin,
                                       .subject = "files",
                                       .suppressed = context->files_lost};
    context->files_lost = 0;
    error_ignore(record_write(context->log, &event)); /* counted by the log */
}
