/* The descriptors that the warden's program starts with. */
#pragma once

#include "base/error.h"
#include "sys/companion.h"
#include "warden/warden.h"

enum warden_fd {
    WARDEN_FD_FIRST = COMPANION_FD_FIRST,
    WARDEN_FD_PLAN = WARDEN_FD_FIRST,
    WARDEN_FD_CHANNEL,
    WARDEN_FD_LISTENING,
    WARDEN_FD_INIT,
    WARDEN_FD_BROKER, /* the warden's end of the channel with the broker's keeper; not open: none */
    WARDEN_FD_RING,   /* of the file observer's program, with the count of what had no room; not open: none */
    WARDEN_FD_LOSSES,
    WARDEN_FD_END
};
#define WARDEN_FD_COUNT (WARDEN_FD_END - WARDEN_FD_FIRST)

/* plan.c: the plan in a sealed file, from its beginning: warden_plan_read reads it. */
fallible warden_plan_seal(const struct warden_plan *plan, int *out);
fallible warden_policy_seal(const struct warden_policy *policy, int *out);
