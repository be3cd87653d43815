/* What the parts of the broker share. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "broker/answer.h"
#include "broker/broker.h"
#include "broker/loop.h"
#include "broker/report.h"
#include "egress/broker_sockets.h"
#include "egress/names.h"
#include "policy/hosts.h"
#include "policy/policy.h"

#define RELAY_BUFFER (64 * 1024)

/* Names below "*.name" that have an address, in memory that the keeper and the broker share: the next broker
 * gives the same answers. It is read with suspicion (host_map_import). */
struct learnt_names {
    uint32_t count;
    struct {
        uint16_t slot;
        char name[HOST_NAME_SIZE];
    } names[HOST_MAP_LEARNT_MAX];
};

/* -- report.c: what the warden is told -- */

/* An answer that waits until the warden has looked at the process that is to get it. */
struct held {
    uint32_t id; /* 0: not held */
    struct reports *reports;
    struct held *next;
    struct timer timer;
    void (*release)(struct held *held);
};

struct reports {
    struct loop *loop;
    struct source channel;
    uint32_t last_id;
    struct held *held;
    double tokens;
    int64_t filled_ms;
    uint64_t suppressed, untold; /* denials, and what became of allowed connections */
    struct timer timer;
    void (*ended)(struct reports *reports); /* the warden is gone or bids us farewell */
};
fallible reports_begin(struct reports *reports, struct loop *loop, int channel);
/* Sends it, if the rate allows. With `held`: release is called when the warden has noted it, after 100 ms, or
 * at once when nothing was sent; `*held` stays the caller's and must live until then or report_forget. */
void report_denial(struct reports *reports, struct broker_report *report, struct held *held,
                   void (*release)(struct held *held));
void report_forget(struct reports *reports, struct held *held);
/* Of what was allowed. `last` waits a little for room. */
void report_event(struct reports *reports, struct broker_report *report, bool last);
void report_string(char *out, size_t size, const char *string);

/* -- the policy's lines, read once -- */

struct allowed {
    bool allowed;
    bool is_private; /* a line says so: the name may be at a private address */
    uint32_t line;   /* the first, counted from 1 */
};

struct broker {
    const struct broker_plan *plan; /* change.c */
    struct policy_host *lines;      /* as many as plan->hosts */
    struct policy_list list;        /* the same as text, for match_host */
    struct host_map *map;
    struct learnt_names *learnt;
    struct broker_sockets sockets;
    struct loop *loop;
    struct reports reports;
    struct source keeper, control;
    struct resolver *resolver;
    struct names_service *names;
    struct relay *relay;
    uint8_t buffer[RELAY_BUFFER]; /* of whoever reads now */
};

/* What leads out of the broker: to the warden, to its keeper, which tells of other policies, the keeper's
 * pidfd, and where it says that it serves. */
struct broker_ends {
    int channel, control, keeper_pidfd, ready;
};
/* broker.c: the child's program; does not return. */
_Noreturn void broker_run(const struct broker_plan *plan, const struct broker_sockets *sockets,
                          struct learnt_names *learnt, struct broker_ends ends);
/* Reads the plan's hosts into lines, list and map. */
fallible broker_read_lines(struct broker *broker);
struct allowed broker_allows_name(const struct broker *broker, const char *name, uint16_t port);
/* The line that allows an address because it is an alias of allowed names (egress/host_alias.h), which are
 * the plan's and at most `room`. The engine's user wrote it, so it may be private. With none that is allowed
 * at this port, one is given all the same. *count 0: it is no alias. */
struct allowed broker_allows_alias(const struct broker *broker, int family, const uint8_t *address,
                                   uint16_t port, const char **names, size_t room, size_t *count);
/* Whether the name may be at this address, which may be private, because the engine's user wrote so. */
bool broker_is_alias(const struct broker *broker, const char *name, int family, const uint8_t *address);
struct allowed broker_allows_address(const struct broker *broker, int family, const uint8_t *address,
                                     uint16_t port);

/* confine.c */
fallible confine_broker(bool marks);
/* For the keeper, which starts brokers. */
void confine_keeper(void);
/* The calls that the broker's filter lets through. */
const char *const *confine_broker_calls(unsigned *count);
/* The families of sockets that it may make. */
const int *confine_broker_families(unsigned *count);

/* -- resolve.c -- */

#define RESOLVE_ADDRESSES_MAX 16
/* `count` 0: `failure` says why. The addresses are not judged. */
typedef void (*resolve_function)(void *data, const struct address *addresses, size_t count,
                                 const char *failure);
struct resolver;
struct resolve_request;
fallible resolver_make(struct broker *broker, struct resolver **out);
/* Other nameservers from now on; an error while questions are under way. */
fallible resolver_set_servers(struct resolver *resolver, const struct string_list *addresses);
/* Calls back once, perhaps before it returns; *out is NULL then. */
void resolve_begin(struct resolver *resolver, const char *name, resolve_function done, void *data,
                   struct resolve_request **out);
/* It will not call back. */
void resolve_cancel(struct resolve_request *request);
/* -- dial.c -- */

struct dial;
/* `fd` -1: `failure` says why, and `denied` whether because no address was one that the name may have. */
struct dial_result {
    int fd;
    struct address address; /* connected to, or the first that was refused */
    enum broker_reason denied;
    const char *failure;
};
typedef void (*dial_function)(void *data, const struct dial_result *result);
/* Connects to a name, or (NULL) to the address. Calls back once, perhaps before it returns; *out is NULL
 * then. */
void dial_begin(struct broker *broker, const char *name, const struct address *address, uint16_t port,
                bool is_private, dial_function done, void *data, struct dial **out);
void dial_cancel(struct dial *dial);
/* Whether the broker may be connected to an address for a name (NULL: for a line of the policy that is an
 * address) that is allowed. */
enum broker_reason dial_judge(const struct broker *broker, const char *name, const struct address *address,
                              bool is_private);

/* -- dns_service.c, relay.c -- */

/* relay.c: where the client of a redirected TCP connection meant to go. */
void relay_find_service(int fd, int family, uint8_t address[16], uint16_t *port);

fallible names_service_begin(struct broker *broker);
fallible relay_begin(struct broker *broker);
/* Reports every connection that is still open as closed. */
void relay_end(struct broker *broker);
/* Ends every connection that the policy, which has changed, does not allow. */
void relay_judge_again(struct broker *broker);

/* change.c: watches for other plans from the keeper. */
fallible change_begin(struct broker *broker, int control);
