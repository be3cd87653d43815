/* The descriptors that the warden's program starts with. */
#pragma once

enum warden_fd {
    WARDEN_FD_FIRST = 3,
    WARDEN_FD_PLAN = WARDEN_FD_FIRST,
    WARDEN_FD_CHANNEL,
    WARDEN_FD_LISTENING,
    WARDEN_FD_INIT,
    WARDEN_FD_END
};
#define WARDEN_FD_COUNT (WARDEN_FD_END - WARDEN_FD_FIRST)
