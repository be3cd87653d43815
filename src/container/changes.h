/* What hardening has taken away after create, in an exec or an update, on its way to the records. */
#pragma once

#include "base/error.h"
#include "harden/harden.h"

/* Gives each change that has a reason to the warden of the container with this state directory. `exec_id` may
 * be NULL. *channel: to the warden; where it is -1 and something is to be said, it is opened, and the caller
 * closes it. */
fallible changes_record(int directory, const char *exec_id, const struct hardened *hardened, int *channel);
