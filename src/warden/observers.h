/* What the warden's loop (warden.c) and its observers share: each observer turns kernel events into record
 * events. No observer decides an allow: it denies what the plan says, or lets the kernel decide (DESIGN.md
 * invariant 3). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "egress/egress.h"
#include "libocispec/config.h"
#include "policy/policy.h"
#include "record/record.h"
#include "warden/warden.h"

#define ATTRIBUTED_PIDS 8

struct warden_context {
    struct record_log *log;
    const char *policy_origin; /* for record_event.rule_origin */
    struct warden_plan *plan;  /* for warden_plan_rules */
    struct wall_sockets wall;  /* -1 where there is no wall */
    enum policy_on_denied on_denied;
    bool inside;  /* the container sees its own denials */
    bool stopped; /* by the first denial */
    int init;     /* pidfd, the loop's */
    pid_t init_pid;
    ino_t pid_namespace;                   /* inode of init's pid namespace: which processes are ours */
    pid_t attributed[ATTRIBUTED_PIDS];     /* which used the network before, the latest first; 0 for none */
    struct packet_observer *packets;       /* packets.c's own; NULL at first, freed by packets_close */
    int decoy_group;                       /* fanotify descriptor or -1 */
    struct string_list decoy_paths;        /* container paths, for messages */
    struct execution_observer *executions; /* executions.c's own; NULL at first */
    struct file_ring *file_ring;           /* NULL: no program looks */
    uint64_t files_lost;                   /* denied file calls that had no room there, in no record yet */
    int broker;                            /* the channel to its keeper, or -1 */
    struct broker_observer *brokered;      /* broker.c's own; NULL at first */
    bool broker_ready;                     /* it has said that it serves */
    struct warden_policy earlier;          /* whose lines reports of the broker may still mean */
    struct warden_policy next;             /* that is to be put in force; its lists are the plan's already */
};

/* warden.c: records a denied action of the workload; with `on_denied_action: stop` it was the last one. */
void denial_record(struct warden_context *context, struct record_event *event);

/* notify.c: one pending notification of a seccomp listener. `exec_id` is NULL for the container's own;
 * `readable`: what may be read, NULL or empty where that is not restricted.
 * Returns false when the listener has no more tasks (close it). */
struct readable;
bool notify_handle(struct warden_context *context, int listener, const char *exec_id,
                   const struct readable *readable);

/* file_denials.c: records a denied access to a file, whichever observer saw it. */
struct mutation;
void file_denial_record(struct warden_context *context, const struct mutation *mutation,
                        const struct record_process *process, const char *exec_id);

/* file_ring.c: what the file observer's program has seen. Open maps both descriptors; finish reads what is
 * left, and says what was not seen. */
struct file_ring;
fallible file_ring_open(int ring, int losses, struct file_ring **out);
void file_ring_handle(struct warden_context *context);
void file_ring_finish(struct warden_context *context);

/* files.c: events of the decoys' group: denies opens of decoys and records them. */
void files_handle(struct warden_context *context);
/* files.c: a permission group with one mark for each decoy descriptor (O_RDONLY), in the order of
 * decoy_paths. Without the privilege for that a group that only notices opens: they are recorded as observed,
 * without a process. *out -1 with an error when neither can be had. */
fallible files_watch_decoys(const int *decoys, size_t count, int *out);

/* attribute.c: the process whose socket sent the packet, as far as it can be told: without one at least its
 * uid, if the packet has that. */
void attribute(struct warden_context *context, const struct denied_packet *packet,
               struct record_process *out);

/* packets.c: messages of the packet log: attributes the process, records, answers a held SYN with a reset. */
void packets_handle(struct warden_context *context);
/* packets.c: the plan has other hosts now. */
void packets_change(struct warden_context *context);
/* packets.c: a name below a "*.name" line has an address now. */
void packets_learn(struct warden_context *context, const char *name, uint16_t slot);
/* packets.c: (re)binds the log group where another container of the namespace held it. Cheap when bound. */
void packets_bind(struct warden_context *context);
/* packets.c: records what the kernel counted and never showed (log.suppressed), and frees context->packets.
 */
void packets_close(struct warden_context *context);

/* broker.c: waits until the broker has said that it serves, or why it cannot. */
fallible broker_await(struct warden_context *context);

/* broker.c: its reports. */
void broker_handle(struct warden_context *context);
/* broker.c: init has ended: bids it farewell, and waits a little for its last reports. */
void broker_farewell(struct warden_context *context);

/* change.c: another policy: takes what a sealed one says into the plan, and records that it is in force. */
fallible change_take(struct warden_context *context, int sealed);
fallible change_applied(struct warden_context *context);
/* change.c: the channel to a broker that was started later. */
fallible change_broker(struct warden_context *context, int *broker);

/* confine.c: what hostile bytes could make of the warden. From here on only the calls that it needs. */
fallible confine_calls(void);
/* Drops all capabilities that are not in `keep`. */
void confine_capabilities(uint64_t keep);
