/* The one look at the machine that hardening needs (DESIGN.md invariant 2). What is opened here is what is executed
 * later: a mount source is opened once, O_PATH, judged by inode, and mounted from that same descriptor. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/error.h"
#include "libocispec/config.h"
#include "policy/policy.h"

struct mount_fact {
    int source_fd;   /* O_PATH|O_CLOEXEC for a bind mount whose source exists, else -1; symlinks are followed */
    int open_errno;  /* why source_fd is -1 for a bind mount */
    bool bind;       /* options hold bind or rbind, or the type is "bind" */
    struct stat status;
    char *real_path; /* of the source on the host, symlinks resolved */
    bool engine_made; /* resolv.conf, hosts, hostname, shm, .containerenv, secrets below the engine's own container directory */
    struct string_list control_sockets; /* paths of control sockets found inside a mounted directory, relative to it */
    struct string_list credentials;     /* credential files found inside a mounted directory, relative to it */
};

struct facts {
    bool root;               /* effective uid 0 in the initial user namespace */
    bool initial_userns;
    char *bundle;            /* real path */
    int root_fd;             /* O_PATH of root.path */
    bool root_is_mount;      /* root.path is a mount of its own (an engine's), not a directory of a bare bundle */
    char *container_home;    /* passwd home of process.user, from the image's /etc/passwd, NULL when none */
    char *owner_home;        /* home of the person who runs the runtime, from passwd, never from the environment */
    struct mount_fact *mounts; /* one for each config.mounts entry, in order */
    size_t mounts_count;
    bool has_fanotify;       /* permission events can be used (tried) */
    bool has_nftables;       /* nf_tables answers in a network namespace (tried at create, not here) */
};

/* Looks. `bundle` is the bundle's path. An error only for what no container can be made of (no root path). */
fallible facts_collect(const struct oci_config *config, const char *bundle, const struct policy *policy,
                       struct facts **out);
void facts_free(struct facts *facts);
