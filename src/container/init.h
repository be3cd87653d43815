/* The container's init until it becomes the container's program: everything that happens inside its
 * namespaces. */
#pragma once

#include <stdbool.h>

#include "cgroup/cgroup.h"
#include "container/seccomp_agent.h"
#include "container/state.h"
#include "egress/egress.h"
#include "facts/facts.h"
#include "harden/harden.h"
#include "process/identity.h"
#include "process/namespaces.h"
#include "process/seccomp.h"
#include "rootfs/dev.h"
#include "rootfs/mounts.h"
#include "sys/procfs.h"

/* What `create` made ready, by fork the child's as well. */
struct init_plan {
    const char *id;
    const struct hardened *hardened;
    const struct facts *facts;
    const struct namespace_plan *namespaces;
    const struct cgroup *cgroup;
    const struct seccomp_program *seccomp;
    const struct wall_network *network;
    bool brokered;                     /* there is a broker, which waits for its sockets */
    const char *root_path;             /* real path of root.path */
    const struct container *container; /* for the state that hooks inside read */
    struct procfs procfs;              /* create's, whole; none where nothing of it is needed */
    struct mount_set *mounts;
    const struct device_nodes *nodes;
    const struct bind_source *sources; /* parallel to config.mounts */
    bool reopen_sources;               /* mount sources are copied by init: the runtime is unprivileged */
    bool cgroup_view;                  /* so is the view of the cgroup, for a mount of type cgroup */
    bool born_in_unified;
    bool no_pivot;
    bool new_keyring;
    unsigned preserve_fds;
    unsigned listen_fds;   /* the first of them are systemd's; 0: the program is not told */
    int sync;              /* init's end of the socket pair with create */
    int create_sync;       /* create's end, closed by init */
    int channel;           /* init's end of the warden's channel, -1: no warden */
    int warden_channel;    /* the warden's end, closed by init */
    int broker_channel[2]; /* of warden and keeper, closed by init */
    int state_directory;   /* closed by init: it carries create's lock */
    int start_listening;   /* where `start` connects */
    int guard;             /* this program's file on a read-only mount (process/binary.h), -1: none */
    int console;           /* where the terminal is sent, -1: none */
};

/* init tells create how far it is; create answers when it may go on. */
enum init_stage {
    INIT_HOOKS = 1, /* namespaces and mounts are there: prestart and createRuntime hooks are due */
    INIT_READY,     /* waits for start */
    INIT_FAILED     /* an error follows */
};
/* The first one carries a detached view of the container's cgroup where the cgroup is made around init. */
struct init_go {
    int allow_setgroups;
};

/* In the process that joins namespaces: raises the wall in a network namespace that is joined. `data` is the
 * plan. */
fallible init_in_stage(void *data);
/* The body of init; `data` is the plan. Returns an exit status only on failure. */
int init_run(void *data);

/* Connects to the init of a created container, whose state directory this is, releases it, and waits until it
 * has become the container's program or says why not. `agent`: connected and described, or none; init gives
 * it the listener. ERROR_ALREADY_STARTED where nobody waits. */
fallible init_release(int state_directory, const struct seccomp_agent *agent);
fallible init_listen(int state_directory, int *listening);
