/* What the files of cgroup/ share. Nothing outside of this directory includes it, except the unit tests. */
#pragma once

#include "cgroup/cgroup.h"

#define CGROUP_BASE "/sys/fs/cgroup"
/* Where containers are that name no place: made by this runtime and for nobody else. */
#define CGROUP_OWN_PARENT "pinfold"

/* ---- files.c: single files of a cgroup ---- */

/* Writes `value` to an existing file. The error keeps the errno; the message names value and file. */
fallible cgroup_file_write(const char *directory, const char *file, const char *value);
/* The content without its last newline, which the caller frees; NULL with errno when it cannot be read. */
char *cgroup_file_read(const char *directory, const char *file);
char *cgroup_file_read_at(int directory, const char *file);
bool cgroup_file_exists(const char *directory, const char *file);
/* Whether `word` is one of the words of `words`, which are separated by any of `separators`. */
bool cgroup_word_in(const char *words, const char *separators, const char *word);
/* The directory part of an absolute path, which the caller frees; "/" at the top. */
char *cgroup_path_parent(const char *path);
/* The deepest directory at or above `path` that exists; the caller frees it. */
char *cgroup_path_existing(const char *path);
/* Whether statfs says cgroup or cgroup2. *unified, which may be NULL, says which. Symbolic links are not
 * followed at the end. */
bool cgroup_path_is_cgroup(const char *path, bool *unified);

/* One value for one file. Several that depend on each other (a period and its quota) are written by
 * cgroup_settings_write in whichever order the kernel takes: one that it refuses with EINVAL is tried again
 * after the others. */
struct cgroup_setting {
    const char *field;      /* "linux.resources.cpu.quota" */
    const char *controller; /* for the message when the file is missing */
    const char *file;
    char *value; /* owned */
    bool done;
};
struct cgroup_settings {
    struct cgroup_setting items[16];
    size_t count;
};
/* Takes over `value`. */
void cgroup_settings_add(struct cgroup_settings *settings, const char *field, const char *controller,
                         const char *file, char *value);
fallible cgroup_settings_write(struct cgroup_settings *settings, const char *directory);
void cgroup_settings_free(struct cgroup_settings *settings);
#define cgroup_settings_owned __attribute__((cleanup(cgroup_settings_free)))
/* Reads a number back; "max" and what is not a number never equal it. */
fallible cgroup_file_expect(const char *field, const char *directory, const char *file, uint64_t expected);

/* ---- layout.c: the hierarchies that are mounted and visible ---- */

struct cgroup_hierarchy {
    bool unified;
    char *controllers; /* as in /proc/self/cgroup; "unified" for v2 */
    char *mount_point;
    char *own; /* the caller's own cgroup, as a path: the mount point or below it */
};
struct cgroup_hierarchies {
    struct cgroup_hierarchy *items; /* v1 first */
    size_t count;
};
/* From the texts of /proc/self/mountinfo and /proc/self/cgroup; only mounts at or below `base` count, and
 * only those that no later mount covers. */
void cgroup_hierarchies_parse(const char *base, const char *mountinfo, const char *own_cgroups,
                              struct cgroup_hierarchies *out);
fallible cgroup_hierarchies_read(struct cgroup_hierarchies *out);
void cgroup_hierarchies_free(struct cgroup_hierarchies *hierarchies);
#define cgroup_hierarchies_owned __attribute__((cleanup(cgroup_hierarchies_free)))
enum cgroup_layout cgroup_hierarchies_layout(const struct cgroup_hierarchies *hierarchies);

/* ---- plan.c ---- */

fallible cgroup_plan_in(const struct cgroup_hierarchies *hierarchies, const char *cgroups_path,
                        const char *container_id, bool rootless, struct cgroup **out);

/* ---- v2.c ---- */

/* Enables the controllers in cgroup.subtree_control of `top` and each directory down to the parent of `leaf`.
 * `wanted` NULL: all that there are. What the kernel refuses (a parent with processes, a threaded parent, no
 * permission) is left: whoever needs the controller finds it missing and says so. */
void cgroup_unified_enable(const char *top, const char *leaf, const char *wanted);
/* The mount's root directory above `path`; a copy of `path` where that is no cgroup2. The caller frees it. */
char *cgroup_unified_top(const char *path);
/* Whether the controller works in this directory. */
bool cgroup_unified_has(const char *directory, const char *controller);

/* What the document asks to be refused (checkBeforeUpdate). */
fallible cgroup_v2_memory_check(const char *directory, const struct oci_memory *memory);
fallible cgroup_v2_memory(const char *directory, const struct oci_memory *memory);
fallible cgroup_v2_cpu(const char *directory, const struct oci_cpu *cpu);
fallible cgroup_v2_unified(const char *directory, const struct string_map *unified);

/* ---- v1.c ---- */

fallible cgroup_v1_memory(const char *directory, const struct oci_memory *memory);
fallible cgroup_v1_cpu(const char *directory, const struct oci_cpu *cpu);
/* Copies cpus and mems from the parents into this cpuset and those above it, where they are empty. Those of
 * others too: nobody can be in an empty one, so that nothing of theirs changes but that it can be used. */
fallible cgroup_v1_cpuset_fill(const char *directory);

/* ---- realtime.c ---- */

/* Sees to it that CGROUP_OWN_PARENT, where `directory` is in it, has room for this real-time budget beside
 * those of the others there. A parent that somebody else made has what its administrator gave it. `period` 0:
 * the one that the cgroup has. */
fallible cgroup_v1_realtime_room(const char *directory, int64_t runtime, uint64_t period);

/* Before `directory` is removed, when nobody runs in it any more: its budget is the machine's again, and
 * CGROUP_OWN_PARENT keeps what the others in it have. Later the kernel would still count it for a while. */
void cgroup_v1_realtime_return(const char *directory);

/* ---- block.c ---- */

fallible cgroup_v1_block_io(const char *directory, const struct oci_block_io *block_io);
fallible cgroup_v2_block_io(const char *directory, const struct oci_block_io *block_io);
/* Whether there is anything to write. */
bool cgroup_block_io_wanted(const struct oci_block_io *block_io);

/* ---- device_rules.c ---- */

enum { CGROUP_DEVICE_READ = 1, CGROUP_DEVICE_WRITE = 2, CGROUP_DEVICE_MKNOD = 4, CGROUP_DEVICE_ALL = 7 };
struct cgroup_device_rule {
    bool allow;
    char type;     /* a, b or c */
    int64_t major; /* -1: any */
    int64_t minor;
    unsigned access;
};
/* What every container may open (config-linux.md, "Default Devices"; the terminal is a pts). */
extern const struct cgroup_device_rule cgroup_device_standard[];
extern const size_t cgroup_device_standard_count;
/* Checks a rule; absent numbers and kinds are "any", an absent access is all. */
fallible cgroup_device_rule_parse(const struct oci_device_cgroup *rule, size_t index,
                                  struct cgroup_device_rule *out);
/* Such a rule begins the list anew. */
bool cgroup_device_rule_covers_all(const struct cgroup_device_rule *rule);

/* ---- devices.c ---- */

/* Puts our device program in the place of an earlier one of ours; other programs stay. The errno is that of
 * bpf(2): EPERM without the right to load one. */
fallible cgroup_v2_devices(const char *directory, const struct oci_device_cgroup *rules, size_t count);
fallible cgroup_v1_devices(const char *directory, const struct oci_device_cgroup *rules, size_t count);
/* The lines that make devices.list equal to the rules; *allow_all: the lines are what is denied. For v1 and
 * the tests. */
fallible cgroup_devices_lines(const struct oci_device_cgroup *rules, size_t count, bool *allow_all,
                              struct string_list *lines, size_t *base_lines);

/* ---- intel_rdt.c ---- */

fallible cgroup_rdt_intent_in(const char *mount, const struct oci_intel_rdt *rdt, const char *id,
                              struct string_list *would_create);
fallible cgroup_rdt_apply_in(const char *mount, const struct oci_intel_rdt *rdt, const char *id,
                             const struct string_list *create, pid_t pid);

/* ---- interfaces.c ---- */

fallible cgroup_apply_network(const struct cgroup *cgroup, const struct oci_network *network);
fallible cgroup_apply_rdma(const struct cgroup *cgroup, const struct oci_rdma *devices, size_t count);

/* ---- place.c ---- */

/* Which of our directories has a controller. */
struct cgroup_place {
    const char *directory; /* the cgroup's */
    bool unified;
};
/* The directory of v2, or NULL. */
const struct cgroup_directory *cgroup_unified_directory(const struct cgroup *cgroup);
/* `controller` by its v1 name. */
bool cgroup_place_find(const struct cgroup *cgroup, const char *controller, struct cgroup_place *place);
/* ERROR_UNAVAILABLE names field and controller, and says why it cannot be had. `controller` by its v1 name.
 */
fallible cgroup_place_need(const struct cgroup *cgroup, const char *field, const char *controller,
                           struct cgroup_place *place);

/* ---- values.c ---- */

/* cpu.shares [2..262144] to cpu.weight [1..10000], 1024 to 100; 0 stays 0 (unset). */
uint64_t cgroup_weight_from_shares(uint64_t shares);
/* blkio.weight [10..1000] to io.weight [1..10000]. */
uint64_t cgroup_io_weight(uint64_t weight);
/* The value of memory.swap.max: "max", or what swap allows beyond the memory limit. NULL in *out: unset. The
 * caller frees it. Also the check for v1: swap below the limit, or without one, is an error. */
fallible cgroup_swap_beyond_limit(const struct oci_memory *memory, char **out);
/* Set and not zero: engines write zero for "not set". */
bool cgroup_wanted(struct optional_int64 number);
bool cgroup_wanted_unsigned(struct optional_uint64 number);
/* -1 as `unlimited`; lower is an error that names the field. */
fallible cgroup_limit_text(const char *field, int64_t value, const char *unlimited, char **out);

/* ---- tree.c: a cgroup and those below it ---- */

struct cgroup_pids {
    pid_t *items;
    size_t count;
};
void cgroup_pids_free(struct cgroup_pids *pids);
#define cgroup_pids_owned __attribute__((cleanup(cgroup_pids_free)))
/* Appends the process ids of the cgroup and of those below it. A cgroup that vanished has none. */
void cgroup_tree_pids(int directory, struct cgroup_pids *pids);
void cgroup_pids_sort(struct cgroup_pids *pids);
/* Calls `visit` for the cgroup (last) and each below it, with its descriptor. */
void cgroup_tree_visit(int directory, void (*visit)(int directory, void *context), void *context);
