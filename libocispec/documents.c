/* The tables of the OCI documents (runtime-spec 1.2: config.md, config-linux.md, runtime.md), and the
 * functions of config.h that need no rule of their own. Required is what the specification calls REQUIRED and
 * a table can hold; process.user may be absent (root then, as everywhere), but when it is there it has both
 * numbers. */
#include <string.h>

#include "libocispec/config.h"
#include "libocispec/schema_table.h"

/* A column for each of: REQUIRED or OPTIONAL, key, structure, member, the child's structure and schema. */
static const struct schema_field console_size_fields[] = {
    UINT32(REQUIRED, "height", oci_console_size, height),
    UINT32(REQUIRED, "width", oci_console_size, width),
};
static const struct schema console_size_schema = SCHEMA("consoleSize", oci_console_size, console_size_fields);

static const struct schema_field user_fields[] = {
    UINT32(REQUIRED, "uid", oci_user, uid),
    UINT32(REQUIRED, "gid", oci_user, gid),
    OPTIONAL_UINT32("umask", oci_user, umask),
    UINT32S(OPTIONAL, "additionalGids", oci_user, additional_gids),
};
static const struct schema user_schema = SCHEMA("user", oci_user, user_fields);

static const struct schema_field capabilities_fields[] = {
    STRINGS(OPTIONAL, "bounding", oci_capabilities, bounding),
    STRINGS(OPTIONAL, "effective", oci_capabilities, effective),
    STRINGS(OPTIONAL, "inheritable", oci_capabilities, inheritable),
    STRINGS(OPTIONAL, "permitted", oci_capabilities, permitted),
    STRINGS(OPTIONAL, "ambient", oci_capabilities, ambient),
};
static const struct schema capabilities_schema =
    SCHEMA("capabilities", oci_capabilities, capabilities_fields);

static const struct schema_field rlimit_fields[] = {
    STRING(REQUIRED, "type", oci_rlimit, type),
    UINT64(REQUIRED, "hard", oci_rlimit, hard),
    UINT64(REQUIRED, "soft", oci_rlimit, soft),
};
static const struct schema rlimit_schema = SCHEMA("rlimit", oci_rlimit, rlimit_fields);

static const struct schema_field scheduler_fields[] = {
    STRING(REQUIRED, "policy", oci_scheduler, policy),
    INT32(OPTIONAL, "nice", oci_scheduler, nice),
    INT32(OPTIONAL, "priority", oci_scheduler, priority),
    STRINGS(OPTIONAL, "flags", oci_scheduler, flags),
    UINT64(OPTIONAL, "runtime", oci_scheduler, runtime),
    UINT64(OPTIONAL, "deadline", oci_scheduler, deadline),
    UINT64(OPTIONAL, "period", oci_scheduler, period),
};
static const struct schema scheduler_schema = SCHEMA("scheduler", oci_scheduler, scheduler_fields);

static const struct schema_field io_priority_fields[] = {
    STRING(REQUIRED, "class", oci_io_priority, class_name),
    INT32(OPTIONAL, "priority", oci_io_priority, priority),
};
static const struct schema io_priority_schema = SCHEMA("ioPriority", oci_io_priority, io_priority_fields);

static const struct schema_field cpu_affinity_fields[] = {
    STRING(OPTIONAL, "initial", oci_cpu_affinity, initial),
    STRING(OPTIONAL, "final", oci_cpu_affinity, final),
};
static const struct schema cpu_affinity_schema =
    SCHEMA("execCPUAffinity", oci_cpu_affinity, cpu_affinity_fields);

static const struct schema_field process_fields[] = {
    BOOL(OPTIONAL, "terminal", oci_process, terminal),
    POINTER(OPTIONAL, "consoleSize", oci_process, console_size, oci_console_size, console_size_schema),
    OBJECT(OPTIONAL, "user", oci_process, user, oci_user, user_schema),
    STRINGS(OPTIONAL, "args", oci_process, args),
    STRINGS(OPTIONAL, "env", oci_process, env),
    STRING(REQUIRED, "cwd", oci_process, cwd),
    POINTER(OPTIONAL, "capabilities", oci_process, capabilities, oci_capabilities, capabilities_schema),
    OBJECTS(OPTIONAL, "rlimits", oci_process, rlimits, oci_rlimit, rlimit_schema),
    BOOL(OPTIONAL, "noNewPrivileges", oci_process, no_new_privileges),
    OPTIONAL_INT64("oomScoreAdj", oci_process, oom_score_adj),
    STRING(OPTIONAL, "apparmorProfile", oci_process, apparmor_profile),
    STRING(OPTIONAL, "selinuxLabel", oci_process, selinux_label),
    POINTER(OPTIONAL, "scheduler", oci_process, scheduler, oci_scheduler, scheduler_schema),
    POINTER(OPTIONAL, "ioPriority", oci_process, io_priority, oci_io_priority, io_priority_schema),
    POINTER(OPTIONAL, "execCPUAffinity", oci_process, exec_cpu_affinity, oci_cpu_affinity,
            cpu_affinity_schema),
};
const struct schema oci_process_schema = SCHEMA("process", oci_process, process_fields);

static const struct schema_field root_fields[] = {
    STRING(REQUIRED, "path", oci_root, path),
    BOOL(OPTIONAL, "readonly", oci_root, readonly),
};
static const struct schema root_schema = SCHEMA("root", oci_root, root_fields);

static const struct schema_field id_mapping_fields[] = {
    UINT32(REQUIRED, "containerID", oci_id_mapping, container_id),
    UINT32(REQUIRED, "hostID", oci_id_mapping, host_id),
    UINT32(REQUIRED, "size", oci_id_mapping, size),
};
static const struct schema id_mapping_schema = SCHEMA("id mapping", oci_id_mapping, id_mapping_fields);

static const struct schema_field mount_fields[] = {
    STRING(REQUIRED, "destination", oci_mount, destination),
    STRING(OPTIONAL, "type", oci_mount, type),
    STRING(OPTIONAL, "source", oci_mount, source),
    STRINGS(OPTIONAL, "options", oci_mount, options),
    OBJECTS(OPTIONAL, "uidMappings", oci_mount, uid_mappings, oci_id_mapping, id_mapping_schema),
    OBJECTS(OPTIONAL, "gidMappings", oci_mount, gid_mappings, oci_id_mapping, id_mapping_schema),
};
static const struct schema mount_schema = SCHEMA("mount", oci_mount, mount_fields);

static const struct schema_field hook_fields[] = {
    STRING(REQUIRED, "path", oci_hook, path),
    STRINGS(OPTIONAL, "args", oci_hook, args),
    STRINGS(OPTIONAL, "env", oci_hook, env),
    OPTIONAL_INT64("timeout", oci_hook, timeout),
};
static const struct schema hook_schema = SCHEMA("hook", oci_hook, hook_fields);

static const struct schema_field hooks_fields[] = {
    OBJECTS(OPTIONAL, "prestart", oci_hooks, prestart, oci_hook, hook_schema),
    OBJECTS(OPTIONAL, "createRuntime", oci_hooks, create_runtime, oci_hook, hook_schema),
    OBJECTS(OPTIONAL, "createContainer", oci_hooks, create_container, oci_hook, hook_schema),
    OBJECTS(OPTIONAL, "startContainer", oci_hooks, start_container, oci_hook, hook_schema),
    OBJECTS(OPTIONAL, "poststart", oci_hooks, poststart, oci_hook, hook_schema),
    OBJECTS(OPTIONAL, "poststop", oci_hooks, poststop, oci_hook, hook_schema),
};
static const struct schema hooks_schema = SCHEMA("hooks", oci_hooks, hooks_fields);

static const struct schema_field namespace_fields[] = {
    STRING(REQUIRED, "type", oci_namespace, type),
    STRING(OPTIONAL, "path", oci_namespace, path),
};
static const struct schema namespace_schema = SCHEMA("namespace", oci_namespace, namespace_fields);

static const struct schema_field device_fields[] = {
    STRING(REQUIRED, "type", oci_device, type),
    STRING(REQUIRED, "path", oci_device, path),
    INT64(OPTIONAL, "major", oci_device, major),
    INT64(OPTIONAL, "minor", oci_device, minor),
    OPTIONAL_UINT32("fileMode", oci_device, file_mode),
    OPTIONAL_UINT32("uid", oci_device, uid),
    OPTIONAL_UINT32("gid", oci_device, gid),
};
static const struct schema device_schema = SCHEMA("device", oci_device, device_fields);

static const struct schema_field device_cgroup_fields[] = {
    BOOL(REQUIRED, "allow", oci_device_cgroup, allow),     STRING(OPTIONAL, "type", oci_device_cgroup, type),
    OPTIONAL_INT64("major", oci_device_cgroup, major),     OPTIONAL_INT64("minor", oci_device_cgroup, minor),
    STRING(OPTIONAL, "access", oci_device_cgroup, access),
};
static const struct schema device_cgroup_schema = SCHEMA("device", oci_device_cgroup, device_cgroup_fields);

static const struct schema_field memory_fields[] = {
    OPTIONAL_INT64("limit", oci_memory, limit),
    OPTIONAL_INT64("reservation", oci_memory, reservation),
    OPTIONAL_INT64("swap", oci_memory, swap),
    OPTIONAL_INT64("kernel", oci_memory, kernel),
    OPTIONAL_INT64("kernelTCP", oci_memory, kernel_tcp),
    OPTIONAL_UINT64("swappiness", oci_memory, swappiness),
    OPTIONAL_BOOL("disableOOMKiller", oci_memory, disable_oom_killer),
    OPTIONAL_BOOL("useHierarchy", oci_memory, use_hierarchy),
    OPTIONAL_BOOL("checkBeforeUpdate", oci_memory, check_before_update),
};
static const struct schema memory_schema = SCHEMA("memory", oci_memory, memory_fields);

static const struct schema_field cpu_fields[] = {
    OPTIONAL_UINT64("shares", oci_cpu, shares),
    OPTIONAL_INT64("quota", oci_cpu, quota),
    OPTIONAL_UINT64("burst", oci_cpu, burst),
    OPTIONAL_UINT64("period", oci_cpu, period),
    OPTIONAL_INT64("realtimeRuntime", oci_cpu, realtime_runtime),
    OPTIONAL_UINT64("realtimePeriod", oci_cpu, realtime_period),
    STRING(OPTIONAL, "cpus", oci_cpu, cpus),
    STRING(OPTIONAL, "mems", oci_cpu, mems),
    OPTIONAL_INT64("idle", oci_cpu, idle),
};
static const struct schema cpu_schema = SCHEMA("cpu", oci_cpu, cpu_fields);

static const struct schema_field pids_fields[] = {
    OPTIONAL_INT64("limit", oci_pids, limit),
};
static const struct schema pids_schema = SCHEMA("pids", oci_pids, pids_fields);

static const struct schema_field weight_device_fields[] = {
    INT64(REQUIRED, "major", oci_weight_device, major),
    INT64(REQUIRED, "minor", oci_weight_device, minor),
    OPTIONAL_UINT32("weight", oci_weight_device, weight),
    OPTIONAL_UINT32("leafWeight", oci_weight_device, leaf_weight),
};
static const struct schema weight_device_schema =
    SCHEMA("weightDevice", oci_weight_device, weight_device_fields);

static const struct schema_field throttle_device_fields[] = {
    INT64(REQUIRED, "major", oci_throttle_device, major),
    INT64(REQUIRED, "minor", oci_throttle_device, minor),
    UINT64(REQUIRED, "rate", oci_throttle_device, rate),
};
static const struct schema throttle_device_schema =
    SCHEMA("throttle device", oci_throttle_device, throttle_device_fields);

static const struct schema_field block_io_fields[] = {
    OPTIONAL_UINT32("weight", oci_block_io, weight),
    OPTIONAL_UINT32("leafWeight", oci_block_io, leaf_weight),
    OBJECTS(OPTIONAL, "weightDevice", oci_block_io, weight_device, oci_weight_device, weight_device_schema),
    OBJECTS(OPTIONAL, "throttleReadBpsDevice", oci_block_io, throttle_read_bps_device, oci_throttle_device,
            throttle_device_schema),
    OBJECTS(OPTIONAL, "throttleWriteBpsDevice", oci_block_io, throttle_write_bps_device, oci_throttle_device,
            throttle_device_schema),
    OBJECTS(OPTIONAL, "throttleReadIOPSDevice", oci_block_io, throttle_read_iops_device, oci_throttle_device,
            throttle_device_schema),
    OBJECTS(OPTIONAL, "throttleWriteIOPSDevice", oci_block_io, throttle_write_iops_device,
            oci_throttle_device, throttle_device_schema),
};
static const struct schema block_io_schema = SCHEMA("blockIO", oci_block_io, block_io_fields);

static const struct schema_field hugepage_limit_fields[] = {
    STRING(REQUIRED, "pageSize", oci_hugepage_limit, page_size),
    UINT64(REQUIRED, "limit", oci_hugepage_limit, limit),
};
static const struct schema hugepage_limit_schema =
    SCHEMA("hugepage limit", oci_hugepage_limit, hugepage_limit_fields);

static const struct schema_field interface_priority_fields[] = {
    STRING(REQUIRED, "name", oci_interface_priority, name),
    UINT32(REQUIRED, "priority", oci_interface_priority, priority),
};
static const struct schema interface_priority_schema =
    SCHEMA("interface priority", oci_interface_priority, interface_priority_fields);

static const struct schema_field network_fields[] = {
    OPTIONAL_UINT32("classID", oci_network, class_id),
    OBJECTS(OPTIONAL, "priorities", oci_network, priorities, oci_interface_priority,
            interface_priority_schema),
};
static const struct schema network_schema = SCHEMA("network", oci_network, network_fields);

static const struct schema_field rdma_fields[] = {
    OPTIONAL_UINT32("hcaHandles", oci_rdma, hca_handles),
    OPTIONAL_UINT32("hcaObjects", oci_rdma, hca_objects),
};
static const struct schema rdma_schema = SCHEMA("rdma device", oci_rdma, rdma_fields);

static const struct schema_field resources_fields[] = {
    OBJECTS(OPTIONAL, "devices", oci_resources, devices, oci_device_cgroup, device_cgroup_schema),
    POINTER(OPTIONAL, "memory", oci_resources, memory, oci_memory, memory_schema),
    POINTER(OPTIONAL, "cpu", oci_resources, cpu, oci_cpu, cpu_schema),
    POINTER(OPTIONAL, "pids", oci_resources, pids, oci_pids, pids_schema),
    POINTER(OPTIONAL, "blockIO", oci_resources, block_io, oci_block_io, block_io_schema),
    OBJECTS(OPTIONAL, "hugepageLimits", oci_resources, hugepage_limits, oci_hugepage_limit,
            hugepage_limit_schema),
    POINTER(OPTIONAL, "network", oci_resources, network, oci_network, network_schema),
    NAMED(OPTIONAL, "rdma", oci_resources, rdma, oci_rdma, rdma_schema),
    MAP(OPTIONAL, "unified", oci_resources, unified),
};
const struct schema oci_resources_schema = SCHEMA("resources", oci_resources, resources_fields);

static const struct schema_field seccomp_argument_fields[] = {
    UINT32(REQUIRED, "index", oci_seccomp_argument, index),
    UINT64(REQUIRED, "value", oci_seccomp_argument, value),
    UINT64(OPTIONAL, "valueTwo", oci_seccomp_argument, value_two),
    STRING(REQUIRED, "op", oci_seccomp_argument, op),
};
static const struct schema seccomp_argument_schema =
    SCHEMA("seccomp argument", oci_seccomp_argument, seccomp_argument_fields);

static const struct schema_field seccomp_rule_fields[] = {
    STRINGS(REQUIRED, "names", oci_seccomp_rule, names),
    STRING(REQUIRED, "action", oci_seccomp_rule, action),
    OPTIONAL_UINT32("errnoRet", oci_seccomp_rule, errno_return),
    OBJECTS(OPTIONAL, "args", oci_seccomp_rule, args, oci_seccomp_argument, seccomp_argument_schema),
};
static const struct schema seccomp_rule_schema =
    SCHEMA("seccomp rule", oci_seccomp_rule, seccomp_rule_fields);

static const struct schema_field seccomp_fields[] = {
    STRING(REQUIRED, "defaultAction", oci_seccomp, default_action),
    OPTIONAL_UINT32("defaultErrnoRet", oci_seccomp, default_errno_return),
    STRINGS(OPTIONAL, "architectures", oci_seccomp, architectures),
    STRINGS(OPTIONAL, "flags", oci_seccomp, flags),
    STRING(OPTIONAL, "listenerPath", oci_seccomp, listener_path),
    STRING(OPTIONAL, "listenerMetadata", oci_seccomp, listener_metadata),
    OBJECTS(OPTIONAL, "syscalls", oci_seccomp, syscalls, oci_seccomp_rule, seccomp_rule_schema),
};
const struct schema oci_seccomp_schema = SCHEMA("seccomp", oci_seccomp, seccomp_fields);

static const struct schema_field personality_fields[] = {
    STRING(REQUIRED, "domain", oci_personality, domain),
    STRINGS(OPTIONAL, "flags", oci_personality, flags),
};
static const struct schema personality_schema = SCHEMA("personality", oci_personality, personality_fields);

static const struct schema_field memory_policy_fields[] = {
    STRING(REQUIRED, "mode", oci_memory_policy, mode),
    STRING(OPTIONAL, "nodes", oci_memory_policy, nodes),
    STRINGS(OPTIONAL, "flags", oci_memory_policy, flags),
};
static const struct schema memory_policy_schema =
    SCHEMA("memoryPolicy", oci_memory_policy, memory_policy_fields);

static const struct schema_field time_offset_fields[] = {
    INT64(OPTIONAL, "secs", oci_time_offset, secs),
    UINT32(OPTIONAL, "nanosecs", oci_time_offset, nanosecs),
};
static const struct schema time_offset_schema = SCHEMA("time offset", oci_time_offset, time_offset_fields);

static const struct schema_field time_offsets_fields[] = {
    POINTER(OPTIONAL, "boottime", oci_time_offsets, boottime, oci_time_offset, time_offset_schema),
    POINTER(OPTIONAL, "monotonic", oci_time_offsets, monotonic, oci_time_offset, time_offset_schema),
};
static const struct schema time_offsets_schema = SCHEMA("timeOffsets", oci_time_offsets, time_offsets_fields);

static const struct schema_field intel_rdt_fields[] = {
    STRING(OPTIONAL, "closID", oci_intel_rdt, clos_id),
    STRINGS(OPTIONAL, "schemata", oci_intel_rdt, schemata),
    STRING(OPTIONAL, "l3CacheSchema", oci_intel_rdt, l3_cache_schema),
    STRING(OPTIONAL, "memBwSchema", oci_intel_rdt, memory_bandwidth_schema),
    BOOL(OPTIONAL, "enableCMT", oci_intel_rdt, enable_cmt),
    BOOL(OPTIONAL, "enableMBM", oci_intel_rdt, enable_mbm),
    BOOL(OPTIONAL, "enableMonitoring", oci_intel_rdt, enable_monitoring),
};
static const struct schema intel_rdt_schema = SCHEMA("intelRdt", oci_intel_rdt, intel_rdt_fields);

static const struct schema_field net_device_fields[] = {
    STRING(OPTIONAL, "name", oci_net_device, name),
};
static const struct schema net_device_schema = SCHEMA("network device", oci_net_device, net_device_fields);

static const struct schema_field linux_fields[] = {
    OBJECTS(OPTIONAL, "uidMappings", oci_linux, uid_mappings, oci_id_mapping, id_mapping_schema),
    OBJECTS(OPTIONAL, "gidMappings", oci_linux, gid_mappings, oci_id_mapping, id_mapping_schema),
    MAP(OPTIONAL, "sysctl", oci_linux, sysctl),
    POINTER(OPTIONAL, "resources", oci_linux, resources, oci_resources, oci_resources_schema),
    STRING(OPTIONAL, "cgroupsPath", oci_linux, cgroups_path),
    OBJECTS(OPTIONAL, "namespaces", oci_linux, namespaces, oci_namespace, namespace_schema),
    OBJECTS(OPTIONAL, "devices", oci_linux, devices, oci_device, device_schema),
    POINTER(OPTIONAL, "seccomp", oci_linux, seccomp, oci_seccomp, oci_seccomp_schema),
    STRING(OPTIONAL, "rootfsPropagation", oci_linux, rootfs_propagation),
    STRINGS(OPTIONAL, "maskedPaths", oci_linux, masked_paths),
    STRINGS(OPTIONAL, "readonlyPaths", oci_linux, readonly_paths),
    STRING(OPTIONAL, "mountLabel", oci_linux, mount_label),
    POINTER(OPTIONAL, "personality", oci_linux, personality, oci_personality, personality_schema),
    POINTER(OPTIONAL, "memoryPolicy", oci_linux, memory_policy, oci_memory_policy, memory_policy_schema),
    POINTER(OPTIONAL, "timeOffsets", oci_linux, time_offsets, oci_time_offsets, time_offsets_schema),
    NAMED(OPTIONAL, "netDevices", oci_linux, net_devices, oci_net_device, net_device_schema),
    POINTER(OPTIONAL, "intelRdt", oci_linux, intel_rdt, oci_intel_rdt, intel_rdt_schema),
};
static const struct schema linux_schema = SCHEMA("linux", oci_linux, linux_fields);

static const struct schema_field config_fields[] = {
    STRING(REQUIRED, "ociVersion", oci_config, oci_version),
    POINTER(OPTIONAL, "root", oci_config, root, oci_root, root_schema),
    POINTER(OPTIONAL, "process", oci_config, process, oci_process, oci_process_schema),
    STRING(OPTIONAL, "hostname", oci_config, hostname),
    STRING(OPTIONAL, "domainname", oci_config, domainname),
    OBJECTS(OPTIONAL, "mounts", oci_config, mounts, oci_mount, mount_schema),
    POINTER(OPTIONAL, "hooks", oci_config, hooks, oci_hooks, hooks_schema),
    MAP(OPTIONAL, "annotations", oci_config, annotations),
    POINTER(OPTIONAL, "linux", oci_config, linux_config, oci_linux, linux_schema),
};
const struct schema oci_config_schema = SCHEMA("config.json", oci_config, config_fields);

static const struct schema_field state_fields[] = {
    STRING(REQUIRED, "ociVersion", oci_state, oci_version),
    STRING(REQUIRED, "id", oci_state, id),
    STRING(REQUIRED, "status", oci_state, status),
    INT64(OPTIONAL, "pid", oci_state, pid),
    STRING(REQUIRED, "bundle", oci_state, bundle),
    MAP(OPTIONAL, "annotations", oci_state, annotations),
};
const struct schema oci_state_schema = SCHEMA("state", oci_state, state_fields);

struct oci_config *oci_config_copy(const struct oci_config *config) {
    return schema_copy(&oci_config_schema, config);
}

void oci_config_free(struct oci_config *config) {
    schema_free(&oci_config_schema, config);
}

void oci_process_free(struct oci_process *process) {
    schema_free(&oci_process_schema, process);
}

void oci_resources_free(struct oci_resources *resources) {
    schema_free(&oci_resources_schema, resources);
}

void oci_seccomp_free(struct oci_seccomp *seccomp) {
    schema_free(&oci_seccomp_schema, seccomp);
}

bool oci_namespace_is_joined(const struct oci_namespace *entry) {
    return entry->path != NULL && entry->path[0] != '\0'; /* "" as runc takes it, in documents made by hand */
}

const struct oci_namespace *oci_config_namespace(const struct oci_config *config, const char *type) {
    const struct oci_linux *part = config->linux_config;
    for (size_t i = 0; part != NULL && i < part->namespaces_count; i++)
        if (strcmp(part->namespaces[i].type, type) == 0)
            return &part->namespaces[i];
    return NULL;
}

const char *oci_net_device_target(const struct oci_net_device *device) {
    return device->name != NULL ? device->name : device->device;
}

char *oci_id_map_lines(const struct oci_id_mapping *mappings, size_t count) {
    struct text lines = {0};
    for (size_t i = 0; i < count; i++) /* unsigned: 4294967294 is an id (crun #209) */
        text_format(&lines, "%u %u %u\n", mappings[i].container_id, mappings[i].host_id, mappings[i].size);
    return text_take(&lines);
}

bool oci_id_map_translate(const struct oci_id_mapping *mappings, size_t count, uint32_t *id) {
    for (size_t i = 0; i < count; i++)
        if (*id >= mappings[i].container_id && *id - mappings[i].container_id < mappings[i].size) {
            *id = mappings[i].host_id + (*id - mappings[i].container_id);
            return true;
        }
    return false;
}
