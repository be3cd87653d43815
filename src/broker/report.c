/* Reports to the warden, and answers that wait for it. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "broker/parts.h"

/* The warden writes at most 200 denials a second. */
#define RATE_PER_SECOND 200
#define RATE_BURST 200
#define NOTED_PATIENCE_MS 100
#define SUPPRESSED_MS 1000
#define LAST_PATIENCE_MS 50

void report_string(char *out, size_t size, const char *string) {
    size_t length = strnlen(string, size - 1);
    memcpy(out, string, length);
    memset(out + length, 0, size - length);
}

static bool send_one(struct reports *reports, const struct broker_report *report, int patience_ms) {
    for (;;) {
        if (send(reports->channel.fd, report, sizeof *report, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
            return true;
        struct pollfd room = {.fd = reports->channel.fd, .events = POLLOUT};
        if (errno != EINTR && (errno != EAGAIN || patience_ms == 0 || poll(&room, 1, patience_ms) <= 0))
            return false;
    }
}

static uint32_t at_most_32_bits(uint64_t count) {
    return count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
}

static void tell_suppressed(struct timer *timer) {
    struct reports *reports = OWNER_OF(timer, struct reports, timer);
    struct broker_report report = {.kind = BROKER_SUPPRESSED,
                                   .count = at_most_32_bits(reports->suppressed),
                                   .untold = at_most_32_bits(reports->untold)};
    if (send_one(reports, &report, 0)) {
        reports->suppressed -= report.count;
        reports->untold -= report.untold;
    }
    if (reports->suppressed > 0 || reports->untold > 0)
        timer_set(reports->loop, timer, SUPPRESSED_MS, tell_suppressed);
}

static void suppress(struct reports *reports, const struct broker_report *report) {
    bool denied = report->kind == BROKER_NAME_DENIED || report->kind == BROKER_CONNECTION_DENIED ||
                  report->kind == BROKER_REQUEST_DENIED;
    if (denied)
        reports->suppressed++;
    else
        reports->untold++;
    if (reports->timer.place == 0)
        timer_set(reports->loop, &reports->timer, SUPPRESSED_MS, tell_suppressed);
}

static bool rate_allows(struct reports *reports) {
    int64_t now = loop_now_ms();
    reports->tokens += (double)(now - reports->filled_ms) * RATE_PER_SECOND / 1000;
    reports->filled_ms = now;
    if (reports->tokens > RATE_BURST)
        reports->tokens = RATE_BURST;
    if (reports->tokens < 1)
        return false;
    reports->tokens -= 1;
    return true;
}

void report_forget(struct reports *reports, struct held *held) {
    if (held->id == 0)
        return;
    for (struct held **place = &reports->held; *place != NULL; place = &(*place)->next)
        if (*place == held) {
            *place = held->next;
            break;
        }
    timer_clear(reports->loop, &held->timer);
    held->id = 0;
}

static void held_release(struct held *held) {
    report_forget(held->reports, held);
    held->release(held);
}

static void held_ring(struct timer *timer) {
    held_release(OWNER_OF(timer, struct held, timer));
}

void report_denial(struct reports *reports, struct broker_report *report, struct held *held,
                   void (*release)(struct held *held)) {
    if (++reports->last_id == 0)
        reports->last_id = 1;
    report->id = held != NULL ? reports->last_id : 0;
    bool sent = rate_allows(reports) && send_one(reports, report, 0);
    if (!sent)
        suppress(reports, report);
    if (held == NULL)
        return;
    *held = (struct held){.id = report->id, .release = release, .reports = reports};
    if (!sent) {
        held->id = 0;
        release(held);
        return;
    }
    held->next = reports->held;
    reports->held = held;
    timer_set(reports->loop, &held->timer, NOTED_PATIENCE_MS, held_ring);
}

void report_event(struct reports *reports, struct broker_report *report, bool last) {
    if (!send_one(reports, report, last ? LAST_PATIENCE_MS : 0))
        suppress(reports, report);
}

static void channel_ready(struct source *source, uint32_t events) {
    struct reports *reports = OWNER_OF(source, struct reports, channel);
    (void)events;
    for (;;) {
        struct broker_noted noted;
        ssize_t length = recv(source->fd, &noted, sizeof noted, MSG_DONTWAIT);
        if (length < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (length <= 0) {
            reports->ended(reports);
            return;
        }
        struct held *held = reports->held;
        while (held != NULL && (length != sizeof noted || held->id != noted.id))
            held = held->next;
        if (held != NULL)
            held_release(held);
    }
}

struct error *reports_begin(struct reports *reports, struct loop *loop, int channel) {
    reports->loop = loop;
    reports->channel = (struct source){.fd = channel, .ready = channel_ready};
    reports->tokens = RATE_BURST;
    reports->filled_ms = loop_now_ms();
    /* So that what the warden still has to say to an earlier broker means nothing to this one. */
    if (getrandom(&reports->last_id, sizeof reports->last_id, GRND_NONBLOCK) < 0)
        reports->last_id = (uint32_t)reports->filled_ms * 1000;
    if (!loop_watch(loop, &reports->channel, EPOLLIN))
        return error_system(errno, "epoll_ctl", "the warden's channel");
    return NULL;
}
