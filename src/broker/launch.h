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
    BROKER_FD_END
};
#define BROKER_FD_COUNT (BROKER_FD_END - BROKER_FD_FIRST)

/* plan.c */
fallible broker_plan_seal(const struct broker_plan *plan, int *out);
fallible broker_plan_read(int sealed, struct broker_plan *out);
