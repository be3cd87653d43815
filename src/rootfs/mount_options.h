/* Mount options of config.md to the kernel's attributes: the one place that computes mount flags. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "libocispec/config.h"

struct mount_options {
    bool bind;
    bool recursive; /* rbind */
    uint64_t set;   /* MOUNT_ATTR_* for the mount */
    uint64_t clear;
    uint64_t recursive_set; /* MOUNT_ATTR_* for the whole tree: rro, rnosuid, ... */
    uint64_t recursive_clear;
    uint64_t propagation; /* MS_SHARED, MS_SLAVE, MS_PRIVATE, MS_UNBINDABLE or 0 */
    bool propagation_recursive;
    bool copy_up;               /* tmpcopyup: the content under a tmpfs is copied into it */
    bool remount;               /* what is mounted there is changed */
    bool idmap;                 /* idmap or ridmap */
    bool idmap_recursive;       /* ridmap */
    const char *idmap_mappings; /* what follows "idmap=", borrowed from the mount; or NULL */
    const char *passed_over;    /* a file system's value with a bind mount, which is not applied; borrowed */
    struct string_list superblock; /* flags and key=value for fsconfig: "sync", "size=64k", "mode=755" */
};

/* Unknown words go to the file system, as mount(8) does; with a bind mount they are ERROR_INVALID, since a
 * bind has no file system to give them to; of one with a value ("size=1k") `passed_over` says so, and the
 * caller decides. Flags of every file system (sync, lazytime) are passed over with a
 * bind mount, as mount(2) does. `field` names the mount in messages. */
fallible mount_options_parse(const struct oci_mount *mount, const char *field, struct mount_options *out);
void mount_options_free(struct mount_options *options);

/* Appends the words that are understood, for `features`. */
void mount_options_known(struct string_list *out);
