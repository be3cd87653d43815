/* What a policy's network section comes to for one container. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "broker/broker.h"
#include "container/container.h"
#include "container/state.h"
#include "egress/egress.h"
#include "facts/facts.h"
#include "harden/harden.h"
#include "policy/policy.h"

/* What the hosts file that the engine mounted says of the policy's hosts (egress/host_alias.h). */
void network_aliases_read(const struct policy *policy, const struct hardened *hardened,
                          struct string_list *out);
/* The section as the wall has it; `policy` and `aliases` must outlive it. network_wall_clear frees what it
 * holds. */
void network_wall_of(const struct policy *policy, const struct string_list *aliases,
                     struct wall_network *out);
/* The same for a container that is there, whose policy may have been changed. */
void network_wall_of_state(const struct policy *policy, const struct container_state *state,
                           struct wall_network *out);
void network_wall_clear(struct wall_network *network);
#define network_wall_owned __attribute__((cleanup(network_wall_clear)))

/* In the container's network namespace: raises the wall and hands the sockets of the warden and, where
 * `brokered`, of the broker to the warden over init's channel. *joined as of wall_raise. */
fallible network_wall_build(const struct wall_network *network, bool brokered, int channel, bool *joined);

/* Are there hosts that something may connect to? Then there is a broker. */
bool network_has_broker(const struct policy *policy);
/* Starts the broker's keeper: broker_spawn. Its resolver is the one that the engine gave the container:
 * resolv.conf and hosts as they are mounted; where it mounted none, and where the broker dials from the
 * runtime's own namespace, the runtime's own. The image's are never read. `state_directory`: where another
 * policy can reach it; -1: it never changes. */
fallible network_broker_start(const struct policy *policy, const struct hardened *hardened,
                              const struct string_list *aliases, int channel, int init_pidfd,
                              int state_directory, pid_t *pid);
/* Keeps what the engine has mounted as resolv.conf and hosts, as it is before the workload runs, which may be
 * able to write to it: for a policy that comes later. Nothing is kept where nothing is mounted. */
fallible network_resolver_store(int state_directory, const struct hardened *hardened);
/* At `start`: podman 5 writes these files when pasta has made the network, after create. If they have
 * changed, the broker is told before the workload runs. A server at 127.* does not count; Docker's own is
 * asked before those of create. `init`: its pidfd. */
fallible network_resolver_refresh(const struct container *container, int init);
/* The broker's plan of a container that is there, under this policy, from what was kept. out->names and
 * out->generation are the caller's to set. */
fallible network_plan_again(int state_directory, const struct policy *policy, struct broker_plan *out);
/* Does the wall of this policy differ from the one that lets nothing out and every answer in? */
bool network_has_openings(const struct policy *policy);
