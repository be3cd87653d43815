/* What a container's processes may read and write, as a document: harden decides it, process/landlock
 * enforces it in init and in every exec, the state keeps it between them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "libocispec/schema.h"

/* Paths are absolute and clean, as the container sees them. What is not mentioned is denied. */
struct access_plan {
    bool reads;                        /* false: everything may be read, and only writing is restricted */
    bool image;                        /* the root may be read, apart from `unreadable` */
    struct string_list unreadable;     /* mounts that are no part of the image */
    struct string_list readable;       /* may be read and executed, with everything below */
    struct string_list writable;       /* also changed in every way */
    struct string_list writable_files; /* read, and existing files below are written to: /proc, /dev */
};
extern const struct schema access_plan_schema;

/* A file or directory at which a rule lets reading begin, as the kernel knows it. */
struct access_inode {
    uint64_t device; /* access_inode_device */
    uint64_t inode;
};
static inline uint64_t access_inode_device(uint32_t major, uint32_t minor) {
    return (uint64_t)major << 32 | minor;
}

/* May a file with this real path be read? Pure: what the rules say of paths. */
bool access_plan_lets_read(const struct access_plan *plan, const char *path);
/* The same for writing. */
bool access_plan_lets_write(const struct access_plan *plan, const char *path);
void access_plan_free(struct access_plan *plan);
