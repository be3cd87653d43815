/* The life of a container (runtime.md): create, start, kill, delete, exec. Each command is one function; the
 * command line is cli/'s business. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "cgroup/cgroup.h"
#include "container/state.h"
#include "facts/facts.h"
#include "harden/harden.h"
#include "policy/policy.h"

struct runtime_options {
    const char *root;          /* of the state directories */
    const char *policy_called; /* policy of the name that pinfold was called by, NULL: none */
    const char *policy_given;  /* --policy, a name or a file, NULL: none */
    const char *workspace;     /* whose own .pinfold.yaml counts if it was trusted, NULL: none */
    bool sandbox;              /* no engine: policy_request.sandbox */
    enum cgroup_manager cgroup_manager;
};

struct create_options {
    const char *id;
    const char *bundle;
    const char *config;         /* path of the configuration; NULL: config.json in the bundle */
    const char *pid_file;       /* NULL: none */
    const char *console_socket; /* NULL: none */
    bool attended; /* somebody of this process attends the terminal: its descriptor is given back */
    bool no_pivot;
    bool no_new_keyring;
    const char *pidfd_socket; /* where a pidfd of init is sent, NULL: none */
    unsigned preserve_fds;    /* in all, those of systemd's socket activation among them */
    unsigned listen_fds;      /* the first of them: LISTEN_FDS of the caller's environment */
    bool listen_fds_ours;     /* LISTEN_PID named this process */
};

/* A container that this process made or is about to explain: everything that was read, judged and decided. */
struct prepared {
    struct oci_config *config;
    struct policy *policy;
    struct facts *facts;
    struct hardened *hardened;
};

/* Reads config.json and the policy, looks at the machine, hardens. Makes nothing. */
fallible container_prepare(const struct runtime_options *runtime, const char *bundle, const char *config,
                           struct prepared *out);
/* The same for a container that is there, under the policy that it was created with. */
fallible container_prepare_again(const struct container *container, struct prepared *out);
/* And under this policy, which becomes *out's. */
fallible container_prepare_under(const struct container *container, struct policy *policy,
                                 struct prepared *out);
/* The effective policy of a container with these annotations (NULL: none). */
fallible container_policy(const struct runtime_options *runtime, const struct string_map *annotations,
                          struct policy **out);
/* Annotation run.oci.keep_original_groups (podman's --group-add keep-groups): the container has the
 * supplementary groups of the runtime's caller instead of its own. */
bool container_keeps_groups(const struct oci_config *hardened);
void prepared_clear(struct prepared *prepared);
#define prepared_owned __attribute__((cleanup(prepared_clear)))

struct created {
    struct container *container; /* locked */
    pid_t pid;
    int pidfd;
    int terminal; /* with options.attended and process.terminal, else -1 */
    pid_t warden; /* a child of this process, 0: none */
    pid_t broker; /* the same */
};
void created_clear(struct created *created);
#define created_owned __attribute__((cleanup(created_clear)))

/* runtime.md, "Create". On failure nothing is left of the container. */
fallible container_create(const struct runtime_options *runtime, const struct create_options *options,
                          struct created *out);
/* runtime.md, "Start". The container is locked by the caller. With NOTIFY_SOCKET in the environment it
 * returns when the container has said that it is ready, and no longer holds the lock meanwhile; `attended`:
 * at once, and a child of this process waits. */
fallible container_start(struct container *container, bool attended);
/* runtime.md, "Kill". */
fallible container_kill(const struct container *container, int signal, bool all);
/* Other limits, as far as the container's policy allows them; the stored configuration says them afterwards.
 * What `request` leaves out, and zeros, stay as they are. The two schemas, which may be NULL, are those of
 * linux.intelRdt. The container is locked by the caller. */
fallible container_update(struct container *container, struct oci_resources *request,
                          const char *l3_cache_schema, const char *memory_bandwidth_schema);
/* Another policy, runtime->policy_given, for a container that is there, with the trust of create (DESIGN.md
 * section 5): its network.allowed_hosts, and network.mode between allowlist and none. ERROR_REFUSED names any
 * other key that differs. Connections to what is still allowed go on, others are reset; names keep their
 * addresses; at no time is more let through than the one policy or the other does. The container is locked by
 * the caller. */
fallible container_update_policy(const struct runtime_options *runtime, struct container *container);
/* runtime.md, "Delete". `force`: kills it first, and what a create that was killed has left is removed too.
 */
fallible container_delete(struct container *container, bool force);

struct exec_options {
    const char *process; /* path of a process document; NULL: `args` in the container's own process */
    struct string_list args;
    const char *cwd;        /* NULL: the container's */
    struct string_list env; /* added */
    const char *user;       /* "uid[:gid]", NULL: the container's */
    struct string_list additional_gids;
    struct string_list capabilities;
    bool tty;
    bool detach;
    bool no_new_privileges;
    bool ignore_paused;           /* do not refuse: it runs when the container is resumed */
    const char *apparmor_profile; /* NULL: the container's */
    const char *selinux_label;    /* NULL: the container's */
    struct string_list cgroups;   /* sub-cgroups to join: cgroup_attach_below */
    const char *pid_file;
    const char *console_socket;
    const char *pidfd_socket;
    unsigned preserve_fds;
};
/* Runs a process in a running container. Attached: *exit_status is the command's. Errors before it runs are
 * the caller's to turn into 255. */
fallible container_exec(struct container *container, const struct exec_options *options, int *exit_status);
