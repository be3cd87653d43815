/* warden_spawn: the warden's program, a companion of the container. */
#include "base/fd.h"
#include "sys/companion.h"
#include "warden/launch.h"
#include "warden/warden.h"

struct error *warden_spawn(const struct warden_plan *plan, int init_channel, int listening, int init_pidfd,
                           int broker_channel, int ring, int losses, pid_t *pid) {
    fd_owned int sealed = -1;
    TRY(warden_plan_seal(plan, &sealed));
    const int descriptors[WARDEN_FD_COUNT] = {sealed,         init_channel, listening, init_pidfd,
                                              broker_channel, ring,         losses};
    return companion_spawn("warden", descriptors, WARDEN_FD_COUNT, "the warden", pid);
}
