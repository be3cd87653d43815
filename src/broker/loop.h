/* The broker's loop: descriptors and deadlines. One thread, nothing in it waits for anything else. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct loop;

/* A descriptor that the loop watches; a member of what it belongs to. {.fd = -1} to begin with. */
struct source {
    int fd;
    uint32_t watched; /* EPOLLIN, EPOLLOUT; 0: not at all */
    void (*ready)(struct source *source, uint32_t events);
};
/* A deadline; a member of what it belongs to. {0} to begin with. */
struct timer {
    int64_t due_ms;
    size_t place; /* in the heap, from 1; 0: not set */
    void (*ring)(struct timer *timer);
};
#define OWNER_OF(member_pointer, type, member) ((type *)((char *)(member_pointer)-offsetof(type, member)))

fallible loop_make(struct loop **out);
int64_t loop_now_ms(void);
/* Watches for these events; 0 takes the descriptor out, so that not even its end is noticed. False when the
 * kernel has no room. */
bool loop_watch(struct loop *loop, struct source *source, uint32_t events);
/* Takes it out, and leaves it open. */
void loop_forget(struct loop *loop, struct source *source);
/* Takes it out and closes it; no other process may have it too. Events that were read already are not
 * delivered. */
void loop_close(struct loop *loop, struct source *source);
void timer_set(struct loop *loop, struct timer *timer, int64_t after_ms, void (*ring)(struct timer *timer));
void timer_clear(struct loop *loop, struct timer *timer);
/* Frees memory when nothing of this turn can mean it any more. */
void loop_free_later(struct loop *loop, void *pointer);
/* Turns until loop_end. */
void loop_run(struct loop *loop);
void loop_end(struct loop *loop);
void loop_free(struct loop *loop);
