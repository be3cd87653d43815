#include "broker/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"

#define EVENTS_A_TURN 64

struct loop {
    int epoll;
    bool ended;
    struct timer **heap; /* the first due first */
    size_t timers, timers_room;
    struct epoll_event events[EVENTS_A_TURN];
    int events_count;
    void **garbage;
    size_t garbage_count, garbage_room;
};

struct error *loop_make(struct loop **out) {
    struct loop *loop = memory_zeroed(sizeof *loop);
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (loop->epoll < 0) {
        free(loop);
        return error_system(errno, "epoll_create1", "for the broker");
    }
    *out = loop;
    return NULL;
}

int64_t loop_now_ms(void) {
    return clock_ms(CLOCK_MONOTONIC);
}

bool loop_watch(struct loop *loop, struct source *source, uint32_t events) {
    if (source->watched == events)
        return true;
    int operation = source->watched == 0 ? EPOLL_CTL_ADD : events == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
    struct epoll_event event = {.events = events, .data.ptr = source};
    if (epoll_ctl(loop->epoll, operation, source->fd, &event) < 0)
        return false;
    source->watched = events;
    return true;
}

static void events_drop(struct loop *loop, const struct source *source) {
    for (int i = 0; i < loop->events_count; i++)
        if (loop->events[i].data.ptr == source)
            loop->events[i].data.ptr = NULL;
}

void loop_forget(struct loop *loop, struct source *source) {
    (void)loop_watch(loop, source, 0);
    source->watched = 0;
    events_drop(loop, source);
}

void loop_close(struct loop *loop, struct source *source) {
    if (source->fd < 0)
        return;
    events_drop(loop, source);
    fd_close(source->fd); /* there is no copy of it: the kernel takes it out */
    source->fd = -1;
    source->watched = 0;
}

/* -- deadlines: a binary heap -- */

static void heap_put(struct loop *loop, size_t place, struct timer *timer) {
    loop->heap[place - 1] = timer;
    timer->place = place;
}

static void heap_settle(struct loop *loop, size_t place, struct timer *timer) {
    for (; place > 1 && loop->heap[place / 2 - 1]->due_ms > timer->due_ms; place /= 2)
        heap_put(loop, place, loop->heap[place / 2 - 1]);
    for (size_t child; (child = 2 * place) <= loop->timers; place = child) {
        if (child < loop->timers && loop->heap[child]->due_ms < loop->heap[child - 1]->due_ms)
            child++;
        if (loop->heap[child - 1]->due_ms >= timer->due_ms)
            break;
        heap_put(loop, place, loop->heap[child - 1]);
    }
    heap_put(loop, place, timer);
}

void timer_clear(struct loop *loop, struct timer *timer) {
    size_t place = timer->place;
    if (place == 0)
        return;
    timer->place = 0;
    struct timer *last = loop->heap[--loop->timers];
    if (last != timer)
        heap_settle(loop, place, last);
}

void timer_set(struct loop *loop, struct timer *timer, int64_t after_ms, void (*ring)(struct timer *timer)) {
    timer_clear(loop, timer);
    timer->due_ms = loop_now_ms() + after_ms;
    timer->ring = ring;
    if (loop->timers == loop->timers_room) {
        loop->timers_room += 64;
        loop->heap = memory_resize(loop->heap, loop->timers_room, sizeof(struct timer *));
    }
    loop->timers++;
    heap_settle(loop, loop->timers, timer);
}

static int timers_ring(struct loop *loop) {
    while (loop->timers > 0) {
        int64_t left = loop->heap[0]->due_ms - loop_now_ms();
        if (left > 0)
            return left > 60000 ? 60000 : (int)left;
        struct timer *timer = loop->heap[0];
        timer_clear(loop, timer);
        timer->ring(timer);
    }
    return -1;
}

/* -- turns -- */

void loop_free_later(struct loop *loop, void *pointer) {
    if (loop->garbage_count == loop->garbage_room) {
        loop->garbage_room += 64;
        loop->garbage = memory_resize(loop->garbage, loop->garbage_room, sizeof(void *));
    }
    loop->garbage[loop->garbage_count++] = pointer;
}

static void garbage_free(struct loop *loop) {
    while (loop->garbage_count > 0)
        free(loop->garbage[--loop->garbage_count]);
}

void loop_run(struct loop *loop) {
    while (!loop->ended) {
        int timeout = timers_ring(loop);
        garbage_free(loop);
        if (loop->ended)
            break;
        loop->events_count = epoll_wait(loop->epoll, loop->events, EVENTS_A_TURN, timeout);
        for (int i = 0; i < loop->events_count; i++) {
            struct source *source = loop->events[i].data.ptr;
            if (source != NULL) /* not closed by an event before it */
                source->ready(source, loop->events[i].events);
        }
        loop->events_count = 0;
    }
}

void loop_end(struct loop *loop) {
    loop->ended = true;
}

void loop_free(struct loop *loop) {
    garbage_free(loop);
    fd_close(loop->epoll);
    free(loop->heap);
    free(loop->garbage);
    free(loop);
}
