/* The OCI documents as C types: runtime-spec 1.2 and 1.3, config.md and config-linux.md (the Linux part).
 * Pointers and lists are owned by the document; see schema.h for absent values. */
#pragma once

#include "libocispec/schema.h"

struct oci_console_size {
    uint32_t height;
    uint32_t width;
};

struct oci_user {
    uint32_t uid;
    uint32_t gid;
    struct optional_uint32 umask;
    uint32_t *additional_gids;
    size_t additional_gids_count;
};

struct oci_capabilities {
    struct string_list bounding;
    struct string_list effective;
    struct string_list inheritable;
    struct string_list permitted;
    struct string_list ambient;
};

struct oci_rlimit {
    char *type;
    uint64_t hard;
    uint64_t soft;
};

struct oci_scheduler {
    char *policy;
    int32_t nice;
    int32_t priority;
    struct string_list flags;
    uint64_t runtime;
    uint64_t deadline;
    uint64_t period;
};

struct oci_io_priority {
    char *class_name; /* "class" */
    int32_t priority;
};

struct oci_cpu_affinity {
    char *initial;
    char *final;
};

/* config.md, "Process"; also the whole document that `exec --process` is given. */
struct oci_process {
    bool terminal;
    struct oci_console_size *console_size;
    struct oci_user user;
    struct string_list args;
    struct string_list env;
    char *cwd;
    struct oci_capabilities *capabilities;
    struct oci_rlimit *rlimits;
    size_t rlimits_count;
    bool no_new_privileges;
    struct optional_int64 oom_score_adj;
    char *apparmor_profile;
    char *selinux_label;
    struct oci_scheduler *scheduler;
    struct oci_io_priority *io_priority;
    struct oci_cpu_affinity *exec_cpu_affinity;
};

struct oci_root {
    char *path;
    bool readonly;
};

struct oci_id_mapping {
    uint32_t container_id;
    uint32_t host_id;
    uint32_t size;
};

struct oci_mount {
    char *destination;
    char *type;
    char *source;
    struct string_list options;
    struct oci_id_mapping *uid_mappings;
    size_t uid_mappings_count;
    struct oci_id_mapping *gid_mappings;
    size_t gid_mappings_count;
};

struct oci_hook {
    char *path;
    struct string_list args;
    struct string_list env;
    struct optional_int64 timeout;
};

struct oci_hooks {
    struct oci_hook *prestart;
    size_t prestart_count;
    struct oci_hook *create_runtime;
    size_t create_runtime_count;
    struct oci_hook *create_container;
    size_t create_container_count;
    struct oci_hook *start_container;
    size_t start_container_count;
    struct oci_hook *poststart;
    size_t poststart_count;
    struct oci_hook *poststop;
    size_t poststop_count;
};

struct oci_namespace {
    char *type; /* pid network mount ipc uts user cgroup time */
    char *path; /* NULL: a new one */
};

struct oci_device {
    char *type; /* c b u p */
    char *path;
    int64_t major;
    int64_t minor;
    struct optional_uint32 file_mode;
    struct optional_uint32 uid;
    struct optional_uint32 gid;
};

struct oci_device_cgroup {
    bool allow;
    char *type;
    struct optional_int64 major;
    struct optional_int64 minor;
    char *access;
};

struct oci_memory {
    struct optional_int64 limit;
    struct optional_int64 reservation;
    struct optional_int64 swap;
    struct optional_int64 kernel;
    struct optional_int64 kernel_tcp;
    struct optional_uint64 swappiness;
    struct optional_bool disable_oom_killer;
    struct optional_bool use_hierarchy;
    struct optional_bool check_before_update;
};

struct oci_cpu {
    struct optional_uint64 shares;
    struct optional_int64 quota;
    struct optional_uint64 burst;
    struct optional_uint64 period;
    struct optional_int64 realtime_runtime;
    struct optional_uint64 realtime_period;
    char *cpus;
    char *mems;
    struct optional_int64 idle;
};

struct oci_pids {
    struct optional_int64 limit;
};

struct oci_weight_device {
    int64_t major;
    int64_t minor;
    struct optional_uint32 weight;
    struct optional_uint32 leaf_weight;
};

struct oci_throttle_device {
    int64_t major;
    int64_t minor;
    uint64_t rate;
};

struct oci_block_io {
    struct optional_uint32 weight;
    struct optional_uint32 leaf_weight;
    struct oci_weight_device *weight_device;
    size_t weight_device_count;
    struct oci_throttle_device *throttle_read_bps_device;
    size_t throttle_read_bps_device_count;
    struct oci_throttle_device *throttle_write_bps_device;
    size_t throttle_write_bps_device_count;
    struct oci_throttle_device *throttle_read_iops_device;
    size_t throttle_read_iops_device_count;
    struct oci_throttle_device *throttle_write_iops_device;
    size_t throttle_write_iops_device_count;
};

struct oci_hugepage_limit {
    char *page_size;
    uint64_t limit;
};

struct oci_interface_priority {
    char *name;
    uint32_t priority;
};

struct oci_network {
    struct optional_uint32 class_id; /* "classID" */
    struct oci_interface_priority *priorities;
    size_t priorities_count;
};

struct oci_rdma {
    char *device; /* the key */
    struct optional_uint32 hca_handles;
    struct optional_uint32 hca_objects;
};

/* config-linux.md, "Control groups"; also the document that `update --resources` is given. */
struct oci_resources {
    struct oci_device_cgroup *devices;
    size_t devices_count;
    struct oci_memory *memory;
    struct oci_cpu *cpu;
    struct oci_pids *pids;
    struct oci_block_io *block_io;
    struct oci_hugepage_limit *hugepage_limits;
    size_t hugepage_limits_count;
    struct oci_network *network;
    struct oci_rdma *rdma;
    size_t rdma_count;
    struct string_map unified;
};

struct oci_seccomp_argument {
    uint32_t index;
    uint64_t value;
    uint64_t value_two;
    char *op; /* SCMP_CMP_NE LT LE EQ GE GT MASKED_EQ */
};

struct oci_seccomp_rule {
    struct string_list names;
    char *action;
    struct optional_uint32 errno_return; /* "errnoRet" */
    struct oci_seccomp_argument *args;
    size_t args_count;
};

struct oci_seccomp {
    char *default_action;
    struct optional_uint32 default_errno_return; /* "defaultErrnoRet" */
    struct string_list architectures;
    struct string_list flags;
    char *listener_path;
    char *listener_metadata;
    struct oci_seccomp_rule *syscalls;
    size_t syscalls_count;
};

struct oci_personality {
    char *domain;
    struct string_list flags;
};

/* runtime-spec 1.3 */
struct oci_memory_policy {
    char *mode;
    char *nodes; /* NULL: none */
    struct string_list flags;
};

struct oci_time_offset {
    int64_t secs;
    uint32_t nanosecs;
};

struct oci_time_offsets {
    struct oci_time_offset *boottime;
    struct oci_time_offset *monotonic;
};

/* config-linux.md, "IntelRdt". */
struct oci_intel_rdt {
    char *clos_id;
    struct string_list schemata;
    char *l3_cache_schema;
    char *memory_bandwidth_schema; /* "memBwSchema" */
    bool enable_cmt;               /* until 1.2 */
    bool enable_mbm;
    bool enable_monitoring; /* since 1.3 */
};

/* config-linux.md, "Network Devices" (since 1.3). */
struct oci_net_device {
    char *device; /* the key: its name in the runtime's network namespace */
    char *name;   /* inside, NULL: the same */
};

struct oci_linux {
    struct oci_id_mapping *uid_mappings;
    size_t uid_mappings_count;
    struct oci_id_mapping *gid_mappings;
    size_t gid_mappings_count;
    struct string_map sysctl;
    struct oci_resources *resources;
    char *cgroups_path;
    struct oci_namespace *namespaces;
    size_t namespaces_count;
    struct oci_device *devices;
    size_t devices_count;
    struct oci_seccomp *seccomp;
    char *rootfs_propagation;
    struct string_list masked_paths;
    struct string_list readonly_paths;
    char *mount_label;
    struct oci_personality *personality;
    struct oci_memory_policy *memory_policy;
    struct oci_time_offsets *time_offsets;
    struct oci_net_device *net_devices;
    size_t net_devices_count;
    struct oci_intel_rdt *intel_rdt;
};

struct oci_config {
    char *oci_version;
    struct oci_root *root;
    struct oci_process *process;
    char *hostname;
    char *domainname;
    struct oci_mount *mounts;
    size_t mounts_count;
    struct oci_hooks *hooks;
    struct string_map annotations;
    struct oci_linux *linux_config; /* "linux": the bare word is a macro of gnu17 */
};

/* runtime.md, "State". */
struct oci_state {
    char *oci_version;
    char *id;
    char *status;
    int64_t pid;
    char *bundle;
    struct string_map annotations;
};

extern const struct schema oci_config_schema;
extern const struct schema oci_process_schema;
extern const struct schema oci_resources_schema;
extern const struct schema oci_seccomp_schema;
extern const struct schema oci_state_schema;

/* schema_read with the rules that a table cannot say: process.cwd absolute, args not empty, no duplicate
 * namespaces, no duplicate rlimits, env entries of the form NAME=VALUE, known capability and rlimit names,
 * mappings of size > 0, and so on. Each error names the field and the value allowed. *out is freed with
 * oci_config_free. */
fallible oci_config_parse(const char *document, const char *bytes, size_t length, struct oci_config **out);
fallible oci_process_parse(const char *document, const char *bytes, size_t length, struct oci_process **out);
fallible oci_resources_parse(const char *document, const char *bytes, size_t length,
                             struct oci_resources **out);

/* The checks alone, for a document that was changed after it was read. */
fallible oci_config_check(const struct oci_config *config);
fallible oci_process_check(const struct oci_process *process);
fallible oci_resources_check(const struct oci_resources *resources);

/* Makes `base` say what `over` asks for: `update`. Lists of limits are merged by their device, size or name;
 * device rules are replaced as a whole. */
void oci_resources_merge(struct oci_resources *base, const struct oci_resources *over);

struct oci_config *oci_config_copy(const struct oci_config *config);
void oci_config_free(struct oci_config *config);
void oci_process_free(struct oci_process *process);
void oci_resources_free(struct oci_resources *resources);
void oci_seccomp_free(struct oci_seccomp *seccomp);

/* The namespace entry of this type ("pid", "network", ...), or NULL. */
const struct oci_namespace *oci_config_namespace(const struct oci_config *config, const char *type);
/* Whether the entry names an existing namespace to join; without a path a new one is made. */
bool oci_namespace_is_joined(const struct oci_namespace *entry);
/* The name that a network device has in the container. */
const char *oci_net_device_target(const struct oci_net_device *device);
/* Mappings as the lines of /proc/PID/uid_map; the caller frees them. */
char *oci_id_map_lines(const struct oci_id_mapping *mappings, size_t count);
/* An id of the container's user namespace as the machine knows it. False where it is not mapped. */
bool oci_id_map_translate(const struct oci_id_mapping *mappings, size_t count, uint32_t *id);
