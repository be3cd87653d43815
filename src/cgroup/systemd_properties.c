/* From annotations and resources to properties of a scope (systemd.resource-control(5),
 * org.freedesktop.systemd1(5)). */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "cgroup/gvariant.h"
#include "cgroup/systemd.h"
#include "libocispec/names.h"

#define ANNOTATION_PREFIX "org.systemd.property."
#define PROPERTY_NAME_MAX 64
#define USEC_PER_SECOND UINT64_C(1000000)
#define DEFAULT_PERIOD UINT64_C(100000)

static struct systemd_property *property_new(struct systemd_properties *properties, const char *name,
                                             const char *type) {
    properties->items =
        memory_resize(properties->items, properties->items_count + 1, sizeof *properties->items);
    struct systemd_property *property = &properties->items[properties->items_count++];
    *property = (struct systemd_property){.name = memory_copy_string(name), .type = memory_copy_string(type)};
    return property;
}

void systemd_property_add(struct systemd_properties *properties, const char *name, const char *type,
                          const char *value) {
    string_list_append(&property_new(properties, name, type)->values, value);
}

static void add_number(struct systemd_properties *properties, const char *name, uint64_t value) {
    memory_owned char *text = text_formatted("%" PRIu64, value);
    systemd_property_add(properties, name, "t", text);
}

/* ---- annotations ---- */

/* What makes the unit this container's. */
static const char *const reserved_names[] = {"Slice", "Delegate", "DelegateControllers", "DelegateSubgroup",
                                             "PIDs",  "PIDFDs",   "Controller",          "User",
                                             "Group", NULL};

static struct error *name_check(const char *name) {
    size_t length = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789");
    if (length == 0 || name[length] != '\0' || length > PROPERTY_NAME_MAX || name[0] < 'A' || name[0] > 'Z')
        return error_new(ERROR_INVALID,
                         "not the name of a unit's property; a word such as TimeoutStopUSec is");
    if (oci_name_index(reserved_names, name) >= 0)
        return error_new(ERROR_INVALID, "this property is the runtime's own to set");
    return NULL;
}

/* TimeoutStopSec is how a unit's file says it; the property is TimeoutStopUSec. */
static struct error *seconds_convert(struct systemd_property *property) {
    size_t length = strlen(property->name);
    if (length <= 3 || strcmp(property->name + length - 3, "Sec") != 0 ||
        (length > 4 && property->name[length - 4] == 'U'))
        return NULL;
    if (property->values.count != 1 || strchr("ynqiuxtd", property->type[0]) == NULL)
        return error_new(ERROR_INVALID, "expected a number of seconds");
    double seconds = strtod(property->values.items[0], NULL);
    if (!(seconds >= 0) || seconds > 1e12)
        return error_new(ERROR_INVALID, "%s is no number of seconds", property->values.items[0]);
    char *name = text_formatted("%.*sUSec", (int)(length - 3), property->name);
    free(property->name);
    property->name = name;
    free(property->type);
    property->type = memory_copy_string("t");
    string_list_free(&property->values);
    property->values = (struct string_list){0};
    string_list_append_owned(&property->values, text_formatted("%.0f", seconds * 1e6));
    return NULL;
}

static struct error *annotation_convert(const char *name, const char *value,
                                        struct systemd_properties *properties) {
    TRY(name_check(name));
    memory_owned char *type = NULL;
    struct string_list values;
    TRY(gvariant_parse(value != NULL ? value : "", &type, &values));
    struct systemd_property *property = property_new(properties, name, type);
    property->values = values;
    return seconds_convert(property);
}

struct error *systemd_properties_from_annotations(const struct string_map *annotations,
                                                  struct systemd_properties *properties) {
    for (size_t i = 0; i < annotations->count; i++) {
        const char *key = annotations->items[i].key;
        if (!text_starts_with(key, ANNOTATION_PREFIX))
            continue;
        struct error *error =
            annotation_convert(key + strlen(ANNOTATION_PREFIX), annotations->items[i].value, properties);
        if (error != NULL)
            return error_context(error, "annotations.%.100s", key);
    }
    return NULL;
}

/* ---- bit maps ---- */

/* The kernel's lists may have blanks and empty places, which a set has not. */
struct error *systemd_bitmap(const char *field, const char *list, struct string_list *bytes) {
    text_owned struct text plain = {0};
    memory_owned char *copy = memory_copy_string(list);
    char *rest = NULL;
    for (char *word = strtok_r(copy, ", \n", &rest); word != NULL; word = strtok_r(NULL, ", \n", &rest))
        text_format(&plain, "%s%s", plain.length > 0 ? "," : "", word);
    struct oci_index_set set = {0};
    if (plain.length > 0 && !oci_index_set_parse(text_string(&plain), &set))
        return error_new(ERROR_INVALID, "%s: \"%s\" is not allowed; numbers and ranges such as 0-3,8 are",
                         field, list);
    const size_t word_bytes = sizeof set.words[0];
    unsigned map[OCI_INDEX_COUNT / 8];
    size_t used = 0;
    for (size_t i = 0; i < OCI_INDEX_COUNT / 8; i++) {
        map[i] = set.words[i / word_bytes] >> (8 * (i % word_bytes)) & 0xff;
        if (map[i] != 0)
            used = i + 1;
    }
    for (size_t i = 0; i < used; i++)
        string_list_append_owned(bytes, text_formatted("%u", map[i]));
    return NULL;
}

static struct error *add_bitmap(struct systemd_properties *properties, const char *name, const char *field,
                                const char *list) {
    if (list == NULL || list[0] == '\0')
        return NULL;
    return systemd_bitmap(field, list, &property_new(properties, name, "ay")->values);
}

/* ---- resources ---- */

static struct error *add_limit(struct systemd_properties *properties, const char *name, const char *field,
                               int64_t value) {
    memory_owned char *checked = NULL;
    TRY(cgroup_limit_text(field, value, "max", &checked));
    add_number(properties, name, value == -1 ? UINT64_MAX : (uint64_t)value);
    return NULL;
}

static struct error *memory_properties(const struct oci_memory *memory,
                                       struct systemd_properties *properties) {
    if (cgroup_wanted(memory->limit))
        TRY(add_limit(properties, "MemoryMax", "linux.resources.memory.limit", memory->limit.value));
    if (cgroup_wanted(memory->reservation))
        TRY(add_limit(properties, "MemoryLow", "linux.resources.memory.reservation",
                      memory->reservation.value));
    memory_owned char *swap = NULL;
    TRY(cgroup_swap_beyond_limit(memory, &swap));
    if (swap != NULL)
        add_number(properties, "MemorySwapMax",
                   strcmp(swap, "max") == 0 ? UINT64_MAX : strtoull(swap, NULL, 10));
    return NULL;
}

/* cpu.max as it is now: a quota of UINT64_MAX is "max". */
static void quota_now(const char *directory, uint64_t *quota, uint64_t *period) {
    *quota = UINT64_MAX;
    *period = DEFAULT_PERIOD;
    memory_owned char *now = directory == NULL ? NULL : cgroup_file_read(directory, "cpu.max");
    char *blank = now == NULL ? NULL : strchr(now, ' ');
    if (blank == NULL)
        return;
    if (strncmp(now, "max", 3) != 0)
        *quota = strtoull(now, NULL, 10);
    *period = strtoull(blank + 1, NULL, 10);
}

static void add_quota(struct systemd_properties *properties, uint64_t quota, uint64_t period) {
    uint64_t per_second = UINT64_MAX;
    if (quota != UINT64_MAX && period != 0 && quota < UINT64_MAX / USEC_PER_SECOND) {
        per_second = quota * USEC_PER_SECOND / period;
        /* systemd keeps it as a whole percentage, and reads 0 % as none: rounded up. The cgroup's file gets
         * the exact value. */
        uint64_t percent = USEC_PER_SECOND / 100;
        per_second = (per_second + percent - 1) / percent * percent;
        if (per_second == 0)
            per_second = percent;
    }
    add_number(properties, "CPUQuotaPeriodUSec", period);
    add_number(properties, "CPUQuotaPerSecUSec", per_second);
}

static struct error *cpu_properties(const struct oci_cpu *cpu, const char *directory,
                                    struct systemd_properties *properties) {
    if (cgroup_wanted_unsigned(cpu->shares))
        add_number(properties, "CPUWeight", cgroup_weight_from_shares(cpu->shares.value));
    if (cgroup_wanted(cpu->quota) || cgroup_wanted_unsigned(cpu->period)) {
        uint64_t quota, period;
        quota_now(directory, &quota, &period);
        if (cgroup_wanted(cpu->quota)) {
            memory_owned char *checked = NULL;
            TRY(cgroup_limit_text("linux.resources.cpu.quota", cpu->quota.value, "max", &checked));
            quota = cpu->quota.value == -1 ? UINT64_MAX : (uint64_t)cpu->quota.value;
        }
        if (cgroup_wanted_unsigned(cpu->period))
            period = cpu->period.value;
        add_quota(properties, quota, period);
    }
    TRY(add_bitmap(properties, "AllowedCPUs", "linux.resources.cpu.cpus", cpu->cpus));
    return add_bitmap(properties, "AllowedMemoryNodes", "linux.resources.cpu.mems", cpu->mems);
}

/* ---- linux.resources.unified: those files that a property stands for ---- */

static bool number_or_max(const char *value, uint64_t *number) {
    if (strcmp(value, "max") == 0) {
        *number = UINT64_MAX;
        return true;
    }
    char *end = NULL;
    errno = 0;
    *number = strtoull(value, &end, 10);
    return value[0] >= '0' && value[0] <= '9' && errno == 0 && *end == '\0';
}

static struct error *unified_property(const char *key, const char *value,
                                      struct systemd_properties *properties) {
    static const struct {
        const char *file;
        const char *property;
    } numbers[] = {{"memory.max", "MemoryMax"},          {"memory.high", "MemoryHigh"},
                   {"memory.low", "MemoryLow"},          {"memory.min", "MemoryMin"},
                   {"memory.swap.max", "MemorySwapMax"}, {"pids.max", "TasksMax"},
                   {"cpu.weight", "CPUWeight"},          {"io.weight", "IOWeight"}};
    memory_owned char *field = text_formatted("linux.resources.unified.%s", key);
    uint64_t number;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (strcmp(key, numbers[i].file) != 0)
            continue;
        const char *digits = text_starts_with(value, "default ") ? value + strlen("default ") : value;
        /* What is no plain number is the kernel's to judge, when the file is written. */
        if (number_or_max(digits, &number))
            add_number(properties, numbers[i].property,
                       number == 0 && strcmp(key, "pids.max") == 0 ? 1 : number);
        return NULL;
    }
    if (strcmp(key, "cpuset.cpus") == 0)
        return add_bitmap(properties, "AllowedCPUs", field, value);
    if (strcmp(key, "cpuset.mems") == 0)
        return add_bitmap(properties, "AllowedMemoryNodes", field, value);
    if (strcmp(key, "cpu.max") == 0) {
        memory_owned char *quota = memory_copy_string(value);
        uint64_t period = DEFAULT_PERIOD;
        char *blank = strchr(quota, ' ');
        if (blank != NULL)
            *blank++ = '\0';
        if (number_or_max(quota, &number) && (blank == NULL || number_or_max(blank, &period)))
            add_quota(properties, number, period);
    }
    return NULL;
}

/* ---- devices ---- */

/* A major number by the name that /proc/devices has for it. */
static char *driver_name(char type, unsigned long major) {
    memory_owned char *devices = cgroup_file_read("/proc", "devices");
    if (devices == NULL)
        return NULL;
    bool block = false;
    char *rest = devices;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        if (text_starts_with(line, "Block"))
            block = true;
        unsigned long number;
        char name[64];
        if (block == (type == 'b') && sscanf(line, "%lu %63s", &number, name) == 2 && number == major)
            return memory_copy_string(name);
    }
    return NULL;
}

/* "c 1:3 rwm" as systemd's ("/dev/char/1:3", "rwm"). */
static bool device_allow(const char *line, struct string_list *pairs) {
    char type = line[0];
    const char *word = type == 'b' ? "block" : "char";
    const char *colon = strchr(line, ':');
    const char *blank = colon == NULL ? NULL : strchr(colon, ' ');
    if (blank == NULL)
        return false;
    bool any_major = line[2] == '*';
    bool any_minor = colon[1] == '*';
    if (any_major && !any_minor)
        return false;
    if (any_major) {
        string_list_append_owned(pairs, text_formatted("%s-*", word));
    } else if (any_minor) {
        memory_owned char *name = driver_name(type, strtoul(line + 2, NULL, 10));
        if (name == NULL)
            return false;
        string_list_append_owned(pairs, text_formatted("%s-%s", word, name));
    } else {
        string_list_append_owned(pairs,
                                 text_formatted("/dev/%s/%.*s", word, (int)(blank - line - 2), line + 2));
    }
    string_list_append(pairs, blank + 1);
    return true;
}

/* Only where the rules come down to "nothing but these": what systemd cannot say exactly stays with the
 * program that the runtime itself attaches. */
static void device_properties(const struct oci_resources *resources, struct systemd_properties *properties) {
    if (resources->devices_count == 0)
        return;
    bool allow_all = false;
    size_t base_lines;
    string_list_owned struct string_list lines = {0};
    string_list_owned struct string_list pairs = {0};
    struct error *error =
        cgroup_devices_lines(resources->devices, resources->devices_count, &allow_all, &lines, &base_lines);
    bool expressible = error == NULL && !allow_all;
    error_ignore(error); /* wrong rules are told when they are applied */
    for (size_t i = 0; expressible && i < lines.count; i++)
        expressible = device_allow(lines.items[i], &pairs);
    if (!expressible) {
        systemd_property_add(properties, "DevicePolicy", "s", "auto");
        (void)property_new(properties, "DeviceAllow", "a(ss)"); /* empty: forgets what was there */
        return;
    }
    systemd_property_add(properties, "DevicePolicy", "s", "strict");
    (void)property_new(properties, "DeviceAllow", "a(ss)");
    property_new(properties, "DeviceAllow", "a(ss)")->values = pairs;
    pairs = (struct string_list){0};
}

struct error *systemd_properties_from_resources(const struct oci_resources *resources, const char *directory,
                                                bool devices, struct systemd_properties *properties) {
    if (resources == NULL)
        return NULL;
    if (resources->memory != NULL)
        TRY(memory_properties(resources->memory, properties));
    if (resources->cpu != NULL)
        TRY(cpu_properties(resources->cpu, directory, properties));
    if (resources->pids != NULL && resources->pids->limit.set) {
        /* 0 is a real limit (config-linux.md), which systemd has no word for (runc #4949). */
        int64_t limit = resources->pids->limit.value;
        TRY(add_limit(properties, "TasksMax", "linux.resources.pids.limit", limit == 0 ? 1 : limit));
    }
    if (resources->block_io != NULL && resources->block_io->weight.set &&
        resources->block_io->weight.value != 0)
        add_number(properties, "IOWeight", cgroup_io_weight(resources->block_io->weight.value));
    if (devices)
        device_properties(resources, properties);
    for (size_t i = 0; i < resources->unified.count; i++)
        if (resources->unified.items[i].value != NULL)
            TRY(unified_property(resources->unified.items[i].key, resources->unified.items[i].value,
                                 properties));
    return NULL;
}
