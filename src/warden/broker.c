/* The broker's reports: attributed, checked, recorded. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "broker/report.h"
#include "warden/observers.h"

/* Until the broker serves: its keeper is a fresh program, and two processors may be busy. */
#define READY_PATIENCE_MS 10000

struct error *broker_await(struct warden_context *context) {
    if (context->broker < 0 || context->broker_ready)
        return NULL;
    struct pollfd event = {.fd = context->broker, .events = POLLIN};
    int ready;
    while ((ready = poll(&event, 1, READY_PATIENCE_MS)) < 0 && errno == EINTR)
        ;
    if (ready <= 0)
        return error_new(ERROR_UNAVAILABLE, "broker: it does not serve after %d seconds",
                         READY_PATIENCE_MS / 1000);
    struct broker_report report;
    ssize_t length = fd_receive_message(context->broker, &report, sizeof report);
    if (length != (ssize_t)sizeof report)
        return error_new(ERROR_UNAVAILABLE, "broker: it has ended before it served");
    report.text[sizeof report.text - 1] = '\0';
    if (report.kind != BROKER_READY)
        return error_new(ERROR_UNAVAILABLE, "broker: %s", report.text);
    context->broker_ready = true;
    return NULL;
}
