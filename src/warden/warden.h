/* The supervisor of a running container (DESIGN.md section 4): two processes of the same program. The warden
 * holds the listener of denied calls, the packet log and the decoys' tripwire, and writes the records. The
 * guardian, its parent, holds only descriptors of the two others: when the warden is lost it stops the
 * container within a second and records that. If the guardian is lost, the warden does the same. Neither
 * holds anything of the engine's, and both are gone within 200 ms of init. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "egress/broker_sockets.h"
#include "egress/egress.h"
#include "libocispec/config.h"
#include "record/record.h"

/* A change that hardening made, to be recorded. */
struct warden_change {
    char *reason;
    char *subject;
    char *message;
    char *rule;
    char *remedy;
};

/* What is asked of the warden by the container's filter. */
struct warden_rules {
    struct oci_seccomp *denied;
    struct oci_seccomp *observed;
};

/* What the warden is given, sealed: no environment value, no credential. */
struct warden_plan {
    struct record_subject subject;
    char *policy_origin;
    int64_t on_denied; /* enum policy_on_denied */
    int64_t init_pid;
    bool mutations_judged; /* a call that would change a file is judged, and recorded where it is denied */
    struct warden_rules rules;
    struct string_list decoys;
    struct string_list readable; /* the lines of filesystem.readable, where reading is restricted */
    struct warden_change *changes;
    size_t changes_count;
    bool network_open;        /* nothing is denied; what is reached is recorded */
    bool network_unobserved;  /* what is reached is not recorded */
    bool executions;          /* programs that are run are recorded */
    struct string_list hosts; /* the lines of network.allowed_hosts, and parallel to them where each stands */
    struct string_list hosts_origins;
    char *unread_rules;       /* as text, until they are asked for */
    struct string_list names; /* egress/names.h, host_names_remember: of earlier policies */
    int64_t generation;       /* how often the policy was changed */
};

/* What changes with a policy under a running container. */
struct warden_policy {
    char *name, *origin, *digest;
    struct string_list hosts, hosts_origins, names; /* as in the plan */
    int64_t generation;
};
void warden_policy_clear(struct warden_policy *policy);
#define warden_policy_owned __attribute__((cleanup(warden_policy_clear)))
/* Reads what warden_give_policy has sealed. */
fallible warden_policy_read(int sealed, struct warden_policy *out);

/* Reads a sealed plan. Its rules, which are four fifths of it, stay text until the first call is to be
 * judged: many a container makes none. */
fallible warden_plan_read(int sealed, struct warden_plan *out);
/* The plan's rules. Should they not be readable, that is said once, and there are none: every call which is
 * asked about is denied. */
fallible warden_plan_rules(struct warden_plan *plan, const struct warden_rules **out);

/* Starts it. `init_channel`: the warden's end of the socket pair whose other end init has; `listening`: the
 * socket that start and exec connect to, -1: nobody will; `init_pidfd`; `broker_channel`: the warden's end of
 * the socket pair whose other end the broker's keeper has, -1: no broker; `ring`, `losses`: as in struct
 * file_watch (container/file_program.h), -1: it does not look. The caller keeps its descriptors.
 * It reports through the channel: see warden_watch. */
fallible warden_spawn(const struct warden_plan *plan, int init_channel, int listening, int init_pidfd,
                      int broker_channel, int ring, int losses, pid_t *pid);

/* The program behind the hidden subcommand. */
int warden_main(void);

/* -- the other ends: init, start, exec -- */

/* Hands over the sockets of the container's network namespace, or the decoys' descriptors. */
fallible warden_give_sockets(int channel, const struct wall_sockets *sockets);
/* Those of the broker, which the warden hands on to its keeper: broker_sockets_receive, at the other end of
 * the broker channel. */
fallible warden_give_broker_sockets(int channel, const struct broker_sockets *sockets);
fallible warden_give_decoys(int channel, const int *decoys, size_t count);
/* The file in which the container sees its own denials; open for append. */
fallible warden_give_inside(int channel, int file);
/* Waits until the warden has everything and watches; where there is a broker, until it serves. */
fallible warden_watch(int channel);
/* Hands over a seccomp listener and waits until it is attended: only then may execve come. Only sendmsg,
 * recvmsg and recv are called, under the filter that was just loaded. `readable`: of landlock_prepare, -1:
 * none. */
fallible warden_give_listener(int channel, int listener, int readable, const char *exec_id);
/* Records a change of exec. */
fallible warden_give_change(int channel, const char *exec_id, const struct warden_change *change);
/* Says that the container was started; an error when nobody answers: no warden, no start. */
fallible warden_started(int channel);
/* Tells the warden of another policy, so that what is denied and allowed by it is told right; when it is in
 * force, warden_policy_applied has that recorded. */
fallible warden_give_policy(int channel, const struct warden_policy *policy);
fallible warden_policy_applied(int channel);
/* Gives it the channel to a broker that was started later and serves. */
fallible warden_give_broker(int channel, int broker);
/* Connects to the warden of the container whose state directory this is. */
fallible warden_connect(int state_directory, int *channel);
/* Makes the socket that the warden listens at. */
fallible warden_listen(int state_directory, int *listening);
