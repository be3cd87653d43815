/* The broker (DESIGN.md sections 4 and 7): answers names, and connects for a container to the hosts that its
 * policy allows. Two processes of one program: the keeper, which reads no hostile byte, enters the
 * container's network namespace and starts its child again when that is lost; and the child, the broker
 * proper, which does all the rest without a privilege, a file or another program. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "libocispec/schema.h"

enum broker_uplink {
    BROKER_UPLINK_CONTAINER, /* it dials from the container's network namespace; with lo alone there is no
                                uplink */
    BROKER_UPLINK_HOST       /* it dials from the runtime's */
};

/* An entry of a hosts file. */
struct broker_hosts_entry {
    char *address;
    struct string_list names;
};

/* Docker's own name server, in each container of a user network. */
#define BROKER_ENGINE_NAMESERVER "127.0.0.11"

/* What the broker is given, sealed: nothing of it is secret. */
struct broker_plan {
    struct string_list hosts;       /* the lines of network.allowed_hosts, as policy/hosts.h writes them */
    int64_t uplink;                 /* enum broker_uplink */
    struct string_list aliases;     /* egress/host_alias.h: addresses of these hosts that the engine wrote */
    struct string_list nameservers; /* addresses, perhaps with a scope: "fe80::1%eth0" */
    struct string_list engine_nameservers; /* BROKER_ENGINE_NAMESERVER, or none: broker/engine_names.h */
    struct broker_hosts_entry *entries; /* of the hosts file that the engine mounted, or the runtime's own */
    size_t entries_count;
    int64_t connections_max;  /* 0: 4096 */
    struct string_list names; /* egress/names.h, host_names_remember: of earlier policies, or none */
    int64_t generation;       /* how often the policy was changed */
};

/* Adds what a resolv.conf or a hosts file says: its text, which the container's image or the engine wrote.
 * What cannot be read is left out, as every resolver does; bounded. */
void broker_plan_read_resolver(struct broker_plan *plan, const char *text, size_t length);
void broker_plan_read_hosts(struct broker_plan *plan, const char *text, size_t length);
void broker_plan_clear(struct broker_plan *plan);
#define broker_plan_owned __attribute__((cleanup(broker_plan_clear)))

/* Makes the socket in a container's state directory at which its keeper is told of another policy. */
fallible broker_listen(int state_directory, int *listening);
/* Starts the keeper: a fresh image of this program with the sealed plan, no environment, no signal blocked.
 * `channel` is one end of a fd_pair whose other end warden_spawn is given: over it come the sockets, and the
 * reports go (broker/report.h). When the other end closes or init ends, keeper and broker end. The caller
 * keeps its descriptors. Whether the broker can serve comes back by warden_watch. `control`: of
 * broker_listen. */
fallible broker_spawn(const struct broker_plan *plan, int channel, int init_pidfd, int control, pid_t *pid);
/* Gives the keeper of a container another plan, of which its hosts, aliases and names count, and waits until
 * it is in force: connections to what it does not allow are reset, those to what it allows go on. Without a
 * broker that could be told, the next one that is started has it. */
fallible broker_give_plan(int state_directory, const struct broker_plan *plan);

/* The program behind the hidden subcommand. */
int broker_main(void);
