/* The one look at the machine that hardening needs (DESIGN.md invariant 2). What is opened here is what is
 * executed later: a mount source is opened once, O_PATH, judged by inode, and mounted from that same
 * descriptor. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/error.h"
#include "libocispec/config.h"
#include "policy/policy.h"

/* How a mount's source lies to a place of the host that no container gets ("/etc", the engines' state). */
enum place_relation {
    PLACE_NONE,
    PLACE_EQUALS,   /* the same inode, whatever its path */
    PLACE_CONTAINS, /* the place lies below the source */
    PLACE_INSIDE    /* the source lies below a place of which every part is protected */
};

/* A name of filesystem.protected in a mounted directory. */
struct protected_fact {
    char *path;   /* as the policy has it, relative to the mount */
    size_t found; /* how many of its names are there, one below the other; a symlink ends it */
    mode_t mode;  /* of the last that is there */
};

struct mount_fact {
    int source_fd; /* O_PATH|O_CLOEXEC for a bind mount whose source exists, else -1; symlinks are followed */
    int open_errno; /* why source_fd is -1 for a bind mount */
    bool bind;      /* options hold bind or rbind, or the type is "bind" */
    struct stat status;
    unsigned device_major; /* of status.st_rdev */
    unsigned device_minor;
    char *real_path;  /* of the source on the host, symlinks resolved; for an overlay the lower directory that
                         counts */
    bool engine_made; /* resolv.conf, hosts, hostname, shm, .containerenv, secrets below the engine's own
                         container directory */
    bool engine_volume; /* data of an engine's volume, or of a pod's volume below kubelet's directory */
    enum place_relation place_relation;
    char *host_place;       /* that place, or NULL */
    const char *credential; /* the well-known credential that the source is or lies in: ".ssh"; or NULL */
    bool search_incomplete; /* more entries than are looked at: sockets inside may have been missed */
    struct string_list
        control_sockets; /* paths of control sockets found inside a mounted directory, relative to it */
    struct string_list credentials; /* the same for credentials; one that is a directory ends with a slash */
    char *place; /* where it will be in the container, when symlinks of the image lead elsewhere; or NULL */
    struct protected_fact *protected;
    size_t protected_count;
};

/* What a glob of the policy matches in the container. */
#define FACTS_MATCHES_MAX 500
struct glob_fact {
    char *pattern;
    struct string_list matches; /* as the container sees them; nothing below a match is mentioned */
    bool incomplete;            /* there is more than is looked at */
};

struct facts {
    bool root; /* effective uid 0 in the initial user namespace */
    bool initial_userns;
    char *bundle;       /* real path */
    int root_fd;        /* O_PATH of root.path */
    bool root_is_mount; /* root.path is a mount of its own (an engine's), not a directory of a bare bundle */
    char *container_home; /* passwd home of process.user, from the image's /etc/passwd, NULL when none */
    char *owner_home; /* home of the person who runs the runtime, from passwd, never from the environment */
    uid_t owner_uid;  /* that person's uid in the parent user namespace */
    struct mount_fact *mounts; /* one for each config.mounts entry, in order */
    size_t mounts_count;
    bool *namespace_is_host; /* one for each config.linux.namespaces entry: its path is the runtime's or
                                init's own */
    size_t namespaces_count;
    struct glob_fact *globs;
    size_t globs_count;
    bool has_landlock;     /* Landlock can be used: tried, with the right that came in Linux 5.19 */
    bool has_fanotify;     /* permission events can be used (tried) */
    bool has_file_program; /* the file observer's BPF program can be had: tried, where a policy wants it */
    bool has_nftables;     /* nf_tables answers in a network namespace (tried at create, not here) */
};

/* Looks. `bundle` is the bundle's path. An error only for what no container can be made of (no root path).
 * Under an unconfined policy the sources are opened and nothing else of the host is looked at. */
fallible facts_collect(const struct oci_config *config, const char *bundle, const struct policy *policy,
                       struct facts **out);
void facts_free(struct facts *facts);

/* What was found for a glob; NULL for one that nobody looked for. */
const struct glob_fact *facts_glob(const struct facts *facts, const char *pattern);
/* A mounted directory of the user's or the engine's: what relative names of a policy are relative to. */
bool facts_is_directory(const struct mount_fact *fact);
/* A relative name of the policy in a mounted directory, as the globs are called; the caller frees it. */
char *facts_join(const char *destination, const char *name);
/* The home of the person who runs the runtime, as facts.owner_home, but only where that is not the machine's
 * root: then NULL, and *root is true. For what has to be known before a policy is. The caller frees it. */
char *facts_user_home(bool *root);
