/* The rules of config-linux.md. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "libocispec/check.h"
#include "libocispec/names.h"

static const char *const propagations[] = {
    "shared", "rshared", "slave", "rslave", "private", "rprivate", "unbindable", "runbindable", NULL,
};
static const char *const personality_domains[] = {"LINUX", "LINUX32", NULL};
static const char *const device_types[] = {"c", "b", "u", "p", NULL};
static const char *const device_cgroup_types[] = {"a", "c", "b", NULL};

/* dev_t of the kernel has 12 and 20 bits; makedev() would cut more off, and name another device. */
enum { DEVICE_MAJOR_MAX = 0xfff, DEVICE_MINOR_MAX = 0xfffff };

static fallible check_range(const char *at, const char *key, int64_t value, int64_t low, int64_t high) {
    if (value >= low && value <= high)
        return NULL;
    return error_new(ERROR_INVALID, "%s%s: expected an integer between %lld and %lld, found %lld", at, key,
                     (long long)low, (long long)high, (long long)value);
}

static fallible check_namespaces(const struct oci_linux *part) {
    unsigned seen = 0;
    for (size_t i = 0; i < part->namespaces_count; i++) {
        const struct oci_namespace *entry = &part->namespaces[i];
        int type = oci_name_index(oci_namespace_types, entry->type);
        if (type < 0)
            return check_unexpected("a known namespace", entry->type, "linux.namespaces[%zu].type", i);
        if ((seen >> type & 1) != 0)
            return error_new(ERROR_INVALID, "linux.namespaces[%zu].type: %s is there twice", i, entry->type);
        seen |= 1u << type;
        if (oci_namespace_is_joined(entry) && entry->path[0] != '/')
            return check_unexpected("an absolute path", entry->path, "linux.namespaces[%zu].path", i);
    }
    return NULL;
}

/* The namespace that a sysctl belongs to, NULL for one of the whole host. */
static const char *sysctl_namespace(const char *path) {
    static const char *const ipc[] = {
        "kernel/msgmax", "kernel/msgmnb", "kernel/msgmni",          "kernel/auto_msgmni", "kernel/sem",
        "kernel/shmall", "kernel/shmmax", "kernel/shm_rmid_forced", "kernel/shmmni",      NULL,
    };
    if (text_starts_with(path, "net/"))
        return "network";
    if (text_starts_with(path, "fs/mqueue/") || oci_name_index(ipc, path) >= 0)
        return "ipc";
    if (strcmp(path, "kernel/domainname") == 0)
        return "uts";
    if (text_starts_with(path, "user/"))
        return "user";
    return NULL;
}

static fallible check_sysctl(const struct oci_config *config) {
    const struct string_map *sysctl = &config->linux_config->sysctl;
    for (size_t i = 0; i < sysctl->count; i++) {
        memory_owned char *key = check_quoted(sysctl->items[i].key);
        memory_owned char *path = oci_sysctl_path(sysctl->items[i].key);
        if (path == NULL)
            return error_new(ERROR_INVALID, "linux.sysctl[%s]: not a sysctl key", key);
        if (strcmp(path, "kernel/hostname") == 0)
            return error_new(ERROR_INVALID, "linux.sysctl[%s]: use the member hostname instead", key);
        const char *type = sysctl_namespace(path);
        if (type == NULL)
            return error_new(ERROR_INVALID,
                             "linux.sysctl[%s]: belongs to no namespace, it would change the host", key);
        if (oci_config_namespace(config, type) == NULL)
            return error_new(ERROR_INVALID,
                             "linux.sysctl[%s]: needs an entry of type \"%s\" in linux.namespaces", key,
                             type);
        if (strcmp(path, "kernel/domainname") == 0 && config->domainname != NULL &&
            strcmp(config->domainname, sysctl->items[i].value) != 0)
            return error_new(ERROR_INVALID, "linux.sysctl[%s]: says other than the member domainname", key);
    }
    return NULL;
}

static fallible check_devices(const struct oci_linux *part) {
    for (size_t i = 0; i < part->devices_count; i++) {
        const struct oci_device *device = &part->devices[i];
        if (oci_name_index(device_types, device->type) < 0)
            return check_unexpected("c, b, u or p", device->type, "linux.devices[%zu].type", i);
        if (device->path == NULL || device->path[0] != '/')
            return check_unexpected("an absolute path", device->path, "linux.devices[%zu].path", i);
        if (strcmp(device->type, "p") == 0)
            continue;
        memory_owned char *at = text_formatted("linux.devices[%zu].", i);
        TRY(check_range(at, "major", device->major, 0, DEVICE_MAJOR_MAX));
        TRY(check_range(at, "minor", device->minor, 0, DEVICE_MINOR_MAX));
    }
    return NULL;
}

static fallible check_absolute(const char *key, const struct string_list *paths) {
    for (size_t i = 0; i < paths->count; i++)
        if (paths->items[i][0] != '/')
            return check_unexpected("an absolute path", paths->items[i], "linux.%s[%zu]", key, i);
    return NULL;
}

static fallible check_time_offsets(const struct oci_config *config) {
    enum { NANOSECONDS_MAX = 999999999 };
    const struct oci_time_offsets *offsets = config->linux_config->time_offsets;
    if (offsets == NULL)
        return NULL;
    if (oci_config_namespace(config, "time") == NULL)
        return error_new(ERROR_INVALID,
                         "linux.timeOffsets: needs an entry of type \"time\" in linux.namespaces");
    if (offsets->boottime != NULL)
        TRY(check_range("linux.timeOffsets.boottime.", "nanosecs", offsets->boottime->nanosecs, 0,
                        NANOSECONDS_MAX));
    if (offsets->monotonic != NULL)
        TRY(check_range("linux.timeOffsets.monotonic.", "nanosecs", offsets->monotonic->nanosecs, 0,
                        NANOSECONDS_MAX));
    return NULL;
}

static fallible check_personality(const struct oci_personality *personality) {
    if (personality == NULL)
        return NULL;
    if (oci_name_index(personality_domains, personality->domain) < 0)
        return check_unexpected("LINUX or LINUX32", personality->domain, "linux.personality.domain");
    if (personality->flags.count > 0)
        return error_new(ERROR_INVALID, "linux.personality.flags: must be empty");
    return NULL;
}

/* One line of a file of resctrl. */
static fallible check_schema_line(const char *key, const char *line, const char *start) {
    if (line == NULL)
        return NULL;
    if (strchr(line, '\n') != NULL)
        return error_new(ERROR_INVALID, "linux.intelRdt.%s: a line break is not allowed", key);
    if (start != NULL && !text_starts_with(line, start)) {
        memory_owned char *words = text_formatted("a schema that begins with %s", start);
        return check_unexpected(words, line, "linux.intelRdt.%s", key);
    }
    return NULL;
}

/* The class becomes a directory of the resctrl file system: a plain name that the kernel does not use itself;
 * "/" is the class that everybody is in who is in no other. */
static fallible check_intel_rdt(const struct oci_intel_rdt *rdt) {
    static const char *const taken[] = {".", "..", "info", "mon_groups", "mon_data", NULL};
    if (rdt == NULL)
        return NULL;
    const char *name = rdt->clos_id;
    if (name != NULL && strcmp(name, "/") != 0 &&
        (name[strcspn(name, "/\n")] != '\0' || oci_name_index(taken, name) >= 0))
        return check_unexpected("the name of a class of service", name, "linux.intelRdt.closID");
    for (size_t i = 0; i < rdt->schemata.count; i++)
        TRY(check_schema_line("schemata", rdt->schemata.items[i], NULL));
    TRY(check_schema_line("l3CacheSchema", rdt->l3_cache_schema, "L3"));
    return check_schema_line("memBwSchema", rdt->memory_bandwidth_schema, "MB:");
}

/* set_mempolicy(2) says EINVAL to all of these at once (and crun #2181 broke on missing nodes). */
static fallible check_memory_policy(const struct oci_memory_policy *policy) {
    if (policy == NULL)
        return NULL;
    const char *mode = policy->mode;
    if (oci_name_index(oci_memory_policy_modes, mode) < 0)
        return check_unexpected("a known memory policy", mode, "linux.memoryPolicy.mode");
    TRY(check_words("linux.memoryPolicy.", "flags", &policy->flags, oci_memory_policy_flags,
                    "a known memory policy flag"));
    if (policy->nodes != NULL && !oci_index_set_parse(policy->nodes, NULL))
        return check_unexpected("a list of memory nodes like 0-3,7", policy->nodes,
                                "linux.memoryPolicy.nodes");
    bool nowhere = strcmp(mode, "MPOL_DEFAULT") == 0 || strcmp(mode, "MPOL_LOCAL") == 0;
    if (nowhere && policy->nodes != NULL)
        return check_unexpected("none with this mode", policy->nodes, "linux.memoryPolicy.nodes");
    if (!nowhere && policy->nodes == NULL && strcmp(mode, "MPOL_PREFERRED") != 0)
        return error_new(ERROR_INVALID, "linux.memoryPolicy.nodes: expected memory nodes for %s", mode);
    if (policy->nodes == NULL && policy->flags.count > 0)
        return error_new(ERROR_INVALID, "linux.memoryPolicy.flags: expected none without nodes");
    if (string_list_contains(&policy->flags, "MPOL_F_STATIC_NODES") &&
        string_list_contains(&policy->flags, "MPOL_F_RELATIVE_NODES"))
        return error_new(ERROR_INVALID, "linux.memoryPolicy.flags: MPOL_F_STATIC_NODES and "
                                        "MPOL_F_RELATIVE_NODES exclude each other");
    return NULL;
}

/* What the kernel takes for the name of an interface (dev_valid_name). */
static bool interface_name_valid(const char *name) {
    enum { INTERFACE_NAME_MAX = 15 };
    size_t length = name == NULL ? 0 : strlen(name);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)name[i] <= ' ' || name[i] == 0x7f || name[i] == '/' || name[i] == ':')
            return false;
    return length > 0 && length <= INTERFACE_NAME_MAX && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* "lo" is in every network namespace already and stays in its own. */
static bool interface_name_movable(const char *name) {
    return interface_name_valid(name) && strcmp(name, "lo") != 0;
}

/* A name of which the kernel makes the rest: "eth%d". */
static bool is_name_template(const char *name) {
    size_t length = strlen(name);
    const char *sign = strchr(name, '%');
    return sign != NULL && length > 2 && sign == name + length - 2 && sign[1] == 'd';
}

static fallible check_net_devices(const struct oci_config *config) {
    const struct oci_linux *part = config->linux_config;
    if (part->net_devices_count > 0 && oci_config_namespace(config, "network") == NULL)
        return error_new(ERROR_INVALID,
                         "linux.netDevices: needs an entry of type \"network\" in linux.namespaces");
    for (size_t i = 0; i < part->net_devices_count; i++) {
        const struct oci_net_device *device = &part->net_devices[i];
        if (!interface_name_movable(device->device) || strchr(device->device, '%') != NULL)
            return check_unexpected("names of network interfaces other than lo as keys", device->device,
                                    "linux.netDevices");
        if (device->name == NULL)
            continue;
        if (!interface_name_movable(device->name) ||
            (strchr(device->name, '%') != NULL && !is_name_template(device->name)))
            return check_unexpected(
                "the name of a network interface other than lo (1 to 15 characters, %d at the end at most)",
                device->name, "linux.netDevices.%s.name", device->device);
    }
    for (size_t i = 0; i < part->net_devices_count; i++)
        for (size_t j = 0; j < i; j++) {
            const char *one = oci_net_device_target(&part->net_devices[i]);
            if (strcmp(one, oci_net_device_target(&part->net_devices[j])) == 0 && !is_name_template(one))
                return error_new(ERROR_INVALID,
                                 "linux.netDevices.%s.name: %s is the name of linux.netDevices.%s already",
                                 part->net_devices[i].device, one, part->net_devices[j].device);
        }
    return NULL;
}

struct error *check_linux(const struct oci_config *config) {
    const struct oci_linux *part = config->linux_config;
    if (part == NULL)
        return NULL;
    TRY(check_namespaces(part));
    TRY(check_id_mappings("linux.uidMappings", part->uid_mappings, part->uid_mappings_count));
    TRY(check_id_mappings("linux.gidMappings", part->gid_mappings, part->gid_mappings_count));
    TRY(check_sysctl(config));
    if (part->resources != NULL)
        TRY(check_resources("linux.resources.", part->resources));
    TRY(check_devices(part));
    if (part->seccomp != NULL)
        TRY(check_seccomp("linux.seccomp.", part->seccomp));
    if (part->rootfs_propagation != NULL && part->rootfs_propagation[0] != '\0' &&
        oci_name_index(propagations, part->rootfs_propagation) < 0)
        return check_unexpected("shared, slave, private or unbindable", part->rootfs_propagation,
                                "linux.rootfsPropagation");
    TRY(check_absolute("maskedPaths", &part->masked_paths));
    TRY(check_absolute("readonlyPaths", &part->readonly_paths));
    TRY(check_personality(part->personality));
    TRY(check_intel_rdt(part->intel_rdt));
    TRY(check_memory_policy(part->memory_policy));
    TRY(check_net_devices(config));
    return check_time_offsets(config);
}

/* --- resources
 * ----------------------------------------------------------------------------------------------- */

static fallible check_device_rules(const char *at, const struct oci_resources *resources) {
    for (size_t i = 0; i < resources->devices_count; i++) {
        const struct oci_device_cgroup *rule = &resources->devices[i];
        if (rule->type != NULL && rule->type[0] != '\0' &&
            oci_name_index(device_cgroup_types, rule->type) < 0)
            return check_unexpected("a, c or b", rule->type, "%sdevices[%zu].type", at, i);
        if (rule->access != NULL && rule->access[strspn(rule->access, "rwm")] != '\0')
            return check_unexpected("some of r, w and m", rule->access, "%sdevices[%zu].access", at, i);
        memory_owned char *inner = text_formatted("%sdevices[%zu].", at, i);
        if (rule->major.set) /* -1: all */
            TRY(check_range(inner, "major", rule->major.value, -1, DEVICE_MAJOR_MAX));
        if (rule->minor.set)
            TRY(check_range(inner, "minor", rule->minor.value, -1, DEVICE_MINOR_MAX));
    }
    return NULL;
}

static fallible check_memory(const char *at, const struct oci_memory *memory) {
    if (memory == NULL)
        return NULL;
    memory_owned char *inner = text_formatted("%smemory.", at);
    const struct {
        const char *key;
        const struct optional_int64 *value;
    } limits[] = {
        {"limit", &memory->limit},   {"reservation", &memory->reservation}, {"swap", &memory->swap},
        {"kernel", &memory->kernel}, {"kernelTCP", &memory->kernel_tcp},
    };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (limits[i].value->set && limits[i].value->value < -1)
            return error_new(ERROR_INVALID, "%s%s: expected -1 (unlimited) or more, found %lld", inner,
                             limits[i].key, (long long)limits[i].value->value);
    if (memory->swappiness.set && memory->swappiness.value > 100)
        return error_new(ERROR_INVALID, "%sswappiness: expected an integer between 0 and 100, found %llu",
                         inner, (unsigned long long)memory->swappiness.value);
    return NULL;
}

/* 0 stands for "not set" in what engines write. */
static fallible check_weight(const char *at, const char *key, struct optional_uint32 weight) {
    return weight.set && weight.value != 0 ? check_range(at, key, weight.value, 10, 1000) : NULL;
}

static fallible check_throttle(const char *at, const char *key, const struct oci_throttle_device *devices,
                               size_t count) {
    for (size_t i = 0; i < count; i++) {
        memory_owned char *inner = text_formatted("%s%s[%zu].", at, key, i);
        TRY(check_range(inner, "major", devices[i].major, 0, DEVICE_MAJOR_MAX));
        TRY(check_range(inner, "minor", devices[i].minor, 0, DEVICE_MINOR_MAX));
    }
    return NULL;
}

static fallible check_block_io(const char *at, const struct oci_block_io *block) {
    if (block == NULL)
        return NULL;
    memory_owned char *inner = text_formatted("%sblockIO.", at);
    TRY(check_weight(inner, "weight", block->weight));
    TRY(check_weight(inner, "leafWeight", block->leaf_weight));
    for (size_t i = 0; i < block->weight_device_count; i++) {
        const struct oci_weight_device *device = &block->weight_device[i];
        memory_owned char *element = text_formatted("%sweightDevice[%zu].", inner, i);
        TRY(check_range(element, "major", device->major, 0, DEVICE_MAJOR_MAX));
        TRY(check_range(element, "minor", device->minor, 0, DEVICE_MINOR_MAX));
        TRY(check_weight(element, "weight", device->weight));
        TRY(check_weight(element, "leafWeight", device->leaf_weight));
    }
    TRY(check_throttle(inner, "throttleReadBpsDevice", block->throttle_read_bps_device,
                       block->throttle_read_bps_device_count));
    TRY(check_throttle(inner, "throttleWriteBpsDevice", block->throttle_write_bps_device,
                       block->throttle_write_bps_device_count));
    TRY(check_throttle(inner, "throttleReadIOPSDevice", block->throttle_read_iops_device,
                       block->throttle_read_iops_device_count));
    return check_throttle(inner, "throttleWriteIOPSDevice", block->throttle_write_iops_device,
                          block->throttle_write_iops_device_count);
}

/* "64KB", "2MB", "1GB": it becomes part of a file's name (hugetlb.2MB.max), so it is nothing else. */
static bool page_size_valid(const char *size) {
    size_t digits = strspn(size, "0123456789");
    const char *unit = size + digits;
    return digits > 0 && size[0] != '0' &&
           (strcmp(unit, "KB") == 0 || strcmp(unit, "MB") == 0 || strcmp(unit, "GB") == 0);
}

/* A file of the cgroup directory itself. */
static bool unified_key_valid(const char *key) {
    return key[0] != '\0' && strchr(key, '/') == NULL && strcmp(key, ".") != 0 && strcmp(key, "..") != 0;
}

static fallible check_network(const char *at, const struct oci_network *network) {
    for (size_t i = 0; network != NULL && i < network->priorities_count; i++) {
        const char *name = network->priorities[i].name;
        if (!interface_name_valid(name))
            return check_unexpected("the name of a network interface", name, "%snetwork.priorities[%zu].name",
                                    at, i);
    }
    return NULL;
}

/* The name stands before the limits in one line of rdma.max. */
static fallible check_rdma(const char *at, const struct oci_resources *resources) {
    for (size_t i = 0; i < resources->rdma_count; i++) {
        const char *device = resources->rdma[i].device;
        if (device[0] == '\0' || device[strcspn(device, " \t\n")] != '\0')
            return check_unexpected("names of RDMA devices as keys", device, "%srdma", at);
    }
    return NULL;
}

struct error *check_resources(const char *at, const struct oci_resources *resources) {
    TRY(check_device_rules(at, resources));
    TRY(check_memory(at, resources->memory));
    if (resources->cpu != NULL && resources->cpu->idle.set) {
        memory_owned char *inner = text_formatted("%scpu.", at);
        TRY(check_range(inner, "idle", resources->cpu->idle.value, 0, 1));
    }
    TRY(check_block_io(at, resources->block_io));
    for (size_t i = 0; i < resources->hugepage_limits_count; i++)
        if (resources->hugepage_limits[i].page_size == NULL ||
            !page_size_valid(resources->hugepage_limits[i].page_size))
            return check_unexpected("a size like 2MB", resources->hugepage_limits[i].page_size,
                                    "%shugepageLimits[%zu].pageSize", at, i);
    TRY(check_network(at, resources->network));
    TRY(check_rdma(at, resources));
    for (size_t i = 0; i < resources->unified.count; i++)
        if (!unified_key_valid(resources->unified.items[i].key))
            return check_unexpected("names of cgroup files as keys", resources->unified.items[i].key,
                                    "%sunified", at);
    return NULL;
}

/* --- seccomp
 * ------------------------------------------------------------------------------------------------- */

/* The kernel clamps an errno to 4095 (MAX_ERRNO), and libseccomp keeps 16 bits: 65536 would become 0,
 * "success". */
enum { SECCOMP_ERRNO_MAX = 4095 };

static fallible check_action(const char *at, const char *action_key, const char *action,
                             const char *errno_key, struct optional_uint32 number) {
    if (oci_name_index(oci_seccomp_actions, action) < 0)
        return check_unexpected("a known seccomp action", action, "%s%s", at, action_key);
    if (!number.set)
        return NULL;
    bool takes_errno =
        strcmp(action, "SCMP_ACT_ERRNO") == 0 || strcmp(action, "SCMP_ACT_TRACE") == 0 ||
        strcmp(action, "SCMP_ACT_NOTIFY") == 0; /* of our own documents: the errno that is answered */
    if (!takes_errno)
        return error_new(ERROR_INVALID, "%s%s: %s takes no errno", at, errno_key, action);
    int64_t most =
        strcmp(action, "SCMP_ACT_TRACE") == 0 ? UINT16_MAX : SECCOMP_ERRNO_MAX; /* for the tracer: any */
    return check_range(at, errno_key, number.value, 0, most);
}

static fallible check_rule(const char *at, const struct oci_seccomp_rule *rule) {
    enum { ARGUMENT_INDEX_MAX = 5 };
    if (rule->names.count == 0)
        return error_new(ERROR_INVALID, "%snames: must not be empty", at);
    TRY(check_action(at, "action", rule->action, "errnoRet", rule->errno_return));
    for (size_t i = 0; i < rule->args_count; i++) {
        const struct oci_seccomp_argument *argument = &rule->args[i];
        if (argument->index > ARGUMENT_INDEX_MAX)
            return error_new(ERROR_INVALID,
                             "%sargs[%zu].index: expected an integer between 0 and %d, found %u", at, i,
                             ARGUMENT_INDEX_MAX, argument->index);
        if (oci_name_index(oci_seccomp_operators, argument->op) < 0)
            return check_unexpected("a known seccomp operator", argument->op, "%sargs[%zu].op", at, i);
    }
    return NULL;
}

struct error *check_seccomp(const char *at, const struct oci_seccomp *seccomp) {
    TRY(check_action(at, "defaultAction", seccomp->default_action, "defaultErrnoRet",
                     seccomp->default_errno_return));
    TRY(check_words(at, "architectures", &seccomp->architectures, oci_seccomp_architectures,
                    "a known seccomp architecture"));
    TRY(check_words(at, "flags", &seccomp->flags, oci_seccomp_flags, "a known seccomp flag"));
    if (seccomp->listener_metadata != NULL && seccomp->listener_metadata[0] != '\0' &&
        (seccomp->listener_path == NULL || seccomp->listener_path[0] == '\0'))
        return error_new(ERROR_INVALID, "%slistenerMetadata: needs listenerPath", at);
    if (seccomp->listener_path != NULL && seccomp->listener_path[0] != '\0' &&
        seccomp->listener_path[0] != '/')
        return check_unexpected("an absolute path", seccomp->listener_path, "%slistenerPath", at);
    for (size_t i = 0; i < seccomp->syscalls_count; i++) {
        memory_owned char *inner = text_formatted("%ssyscalls[%zu].", at, i);
        TRY(check_rule(inner, &seccomp->syscalls[i]));
    }
    return NULL;
}
