/* The descriptors that the keeper's program starts with, and its sealed plan. */
#pragma once

#include "base/error.h"
#include "broker/broker.h"
#include "sys/companion.h"

enum broker_fd {
    BROKER_FD_FIRST = COMPANION_FD_FIRST,
    BROKER_FD_PLAN = BROKER_FD_FIRST,
    BROKER_FD_CHANNEL,
    BROKER_FD_INIT,
    BROKER_FD_CONTROL, /* not open: none */
    BROKER_FD_END
};
#define BROKER_FD_COUNT (BROKER_FD_END - BROKER_FD_FIRST)

/* plan.c */
fallible broker_plan_seal(const struct broker_plan *plan, int *out);
fallible broker_plan_read(int sealed, struct broker_plan *out);
/* The same without opening anything: *out is to be cleared with broker_plan_clear. */
fallible broker_plan_map(int sealed, size_t length, struct broker_plan *out);

/* What goes to the keeper over its control socket, and from it to the broker, with the sealed plan; answered
 * by error_send. */
struct broker_change {
    uint64_t length; /* of the plan */
};
