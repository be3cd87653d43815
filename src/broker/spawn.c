/* broker_spawn: the keeper, a companion of the container. */
#include "base/fd.h"
#include "broker/broker.h"
#include "broker/launch.h"
#include "sys/companion.h"

struct error *broker_spawn(const struct broker_plan *plan, int channel, int init_pidfd, int control,
                           pid_t *pid) {
    fd_owned int sealed = -1;
    TRY(broker_plan_seal(plan, &sealed));
    const int descriptors[BROKER_FD_COUNT] = {sealed, channel, init_pidfd, control};
    return companion_spawn("broker", descriptors, BROKER_FD_COUNT, "the broker's keeper", pid);
}
