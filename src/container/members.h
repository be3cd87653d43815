/* Which processes are a container's where its cgroup alone cannot say so: a cgroup that was there before,
 * into which others may have moved, or none at all. They are told by their mount namespace, which every
 * container has for itself, and whose id the kernel gives to no other (since Linux 6.11; before that it is
 * unknown). */
#pragma once

#include "base/error.h"
#include "container/state.h"

/* Notes in the state how members are told, once init has its namespaces. */
void members_note(struct container_state *state, const struct oci_config *config);
/* Whether a process that was found in the container's cgroup is another's. By its number: ask after it was
 * opened (members_is_foreign answers for whoever has the number now, a pidfd reaches only who had it then).
 */
bool members_is_foreign(const struct container_state *state, pid_t pid);
/* Ends what init has left in a process-id namespace that it shared, where there is no cgroup of the
 * container's own to end it by. */
fallible members_end(const struct container_state *state);
