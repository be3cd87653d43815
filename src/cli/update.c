#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "cli/options.h"

/* The flags that set a number, and where in the resources it goes. */
enum number_kind { NUMBER_SIGNED, NUMBER_UNSIGNED, NUMBER_WEIGHT, NUMBER_BYTES };
struct number_flag {
    const char *name;
    enum number_kind kind;
    void *target; /* struct optional_... */
    const char *value;
};

/* "512m", "1g", "4096", "-1". */
static struct error *bytes_parse(const char *flag, const char *value, int64_t *out) {
    static const char units[] = "bkmgtp";
    char *end;
    errno = 0;
    long long number = strtoll(value, &end, 10);
    bool valid = errno == 0 && end != value && number >= -1;
    if (valid && *end != '\0') {
        const char *unit = strchr(units, tolower((unsigned char)*end));
        bool rest = end[1] == '\0' || (unit != NULL && unit != units &&
                                       (strcasecmp(end + 1, "b") == 0 || strcasecmp(end + 1, "ib") == 0));
        valid = unit != NULL && rest && number >= 0 &&
                !__builtin_mul_overflow(number, 1LL << (10 * (unit - units)), &number);
    }
    if (!valid)
        return error_new(ERROR_USAGE,
                         "update --%s: expected -1 or a number of bytes such as 512m, found \"%s\"", flag,
                         value);
    *out = number;
    return NULL;
}

static struct error *number_set(const struct number_flag *flag) {
    if (flag->value == NULL)
        return NULL;
    if (flag->kind == NUMBER_BYTES) {
        struct optional_int64 *number = flag->target;
        number->set = true;
        return bytes_parse(flag->name, flag->value, &number->value);
    }
    char *end;
    errno = 0;
    bool negative = flag->value[strspn(flag->value, " ")] == '-';
    if (flag->kind == NUMBER_SIGNED)
        *(struct optional_int64 *)flag->target =
            (struct optional_int64){.set = true, .value = strtoll(flag->value, &end, 10)};
    else if (flag->kind == NUMBER_UNSIGNED)
        *(struct optional_uint64 *)flag->target =
            (struct optional_uint64){.set = true, .value = strtoull(flag->value, &end, 10)};
    else
        *(struct optional_uint32 *)flag->target =
            (struct optional_uint32){.set = true, .value = (uint32_t)strtoul(flag->value, &end, 10)};
    if (errno != 0 || end == flag->value || *end != '\0' || (negative && flag->kind != NUMBER_SIGNED))
        return error_new(ERROR_USAGE, "update --%s: expected a number, found \"%s\"", flag->name,
                         flag->value);
    return NULL;
}

static struct error *document_read(const char *path, struct oci_resources **out) {
    text_owned struct text bytes = {0};
    if (path == NULL) {
        *out = memory_zeroed(sizeof **out);
        return NULL;
    }
    TRY(file_read(AT_FDCWD, strcmp(path, "-") == 0 ? "/proc/self/fd/0" : path, SCHEMA_BYTES_MAX, &bytes));
    return oci_resources_parse("resources", text_string(&bytes), bytes.length, out);
}

/* A structure that no flag has filled is not asked for. */
static void *filled(const void *structure, size_t size) {
    static const char zeros[sizeof(struct oci_cpu) + sizeof(struct oci_memory) + sizeof(struct oci_block_io)];
    return memcmp(structure, zeros, size) == 0 ? NULL : memory_copy(structure, size);
}

static struct error *update(const struct global_options *global, const char *id,
                            struct oci_resources *resources, const char *l3_cache, const char *bandwidth) {
    container_owned struct container *container = NULL;
    TRY(container_open(global->runtime.root, id, CONTAINER_LOCKED, &container));
    return container_update(container, resources, l3_cache, bandwidth);
}

static struct error *update_policy(const struct global_options *global, const char *id, const char *policy) {
    struct runtime_options runtime = global->runtime;
    runtime.policy_given = policy;
    container_owned struct container *container = NULL;
    TRY(container_open(runtime.root, id, CONTAINER_LOCKED, &container));
    return container_update_policy(&runtime, container);
}

struct error *update_command(const struct global_options *global, int argc, char **argv, int *exit_status) {
    (void)exit_status;
    bool help;
    int first;
    const char *path = NULL, *id, *cpus = NULL, *mems = NULL, *l3_cache = NULL, *bandwidth = NULL;
    struct oci_memory memory = {0};
    struct oci_cpu cpu = {0};
    struct oci_pids pids = {0};
    struct oci_block_io block = {0};
    struct number_flag numbers[] = {
        {"memory", NUMBER_BYTES, &memory.limit, NULL},
        {"memory-reservation", NUMBER_BYTES, &memory.reservation, NULL},
        {"memory-swap", NUMBER_BYTES, &memory.swap, NULL},
        {"kernel-memory", NUMBER_BYTES, &memory.kernel, NULL},
        {"kernel-memory-tcp", NUMBER_BYTES, &memory.kernel_tcp, NULL},
        {"cpu-share", NUMBER_UNSIGNED, &cpu.shares, NULL},
        {"cpu-period", NUMBER_UNSIGNED, &cpu.period, NULL},
        {"cpu-quota", NUMBER_SIGNED, &cpu.quota, NULL},
        {"cpu-burst", NUMBER_UNSIGNED, &cpu.burst, NULL},
        {"cpu-rt-period", NUMBER_UNSIGNED, &cpu.realtime_period, NULL},
        {"cpu-rt-runtime", NUMBER_SIGNED, &cpu.realtime_runtime, NULL},
        {"cpu-idle", NUMBER_SIGNED, &cpu.idle, NULL},
        {"pids-limit", NUMBER_SIGNED, &pids.limit, NULL},
        {"blkio-weight", NUMBER_WEIGHT, &block.weight, NULL},
    };
    enum { NUMBERS = sizeof numbers / sizeof *numbers };
    const char *policy = NULL;
    struct option options[NUMBERS + 8] = {
        {"resources", 'r', OPTION_VALUE, &path, "a file with the resources document, - for standard input"},
        {"cpuset-cpus", 0, OPTION_VALUE, &cpus, "CPUs, such as 0-3,7"},
        {"cpuset-mems", 0, OPTION_VALUE, &mems, "memory nodes"},
        {"l3-cache-schema", 0, OPTION_VALUE, &l3_cache, "Intel RDT: L3:0=f;1=f0"},
        {"mem-bw-schema", 0, OPTION_VALUE, &bandwidth, "Intel RDT: MB:0=20;1=70"},
        {"policy", 0, OPTION_VALUE, &policy, "another policy: its network.allowed_hosts, at once"},
    };
    for (size_t i = 0; i < NUMBERS; i++)
        options[6 + i] = (struct option){
            numbers[i].name, 0, OPTION_VALUE, &numbers[i].value,
            numbers[i].kind == NUMBER_BYTES ? "bytes, such as 512m; -1: unlimited" : "a number"};
    TRY(options_parse_anywhere("update", options, argc, argv, &first, &help));
    if (help) {
        options_print("pinfold update [OPTIONS] ID", options);
        return NULL;
    }
    TRY(cli_container_id("update", argc, argv, first, &id));
    if (policy != NULL) {
        bool limited = path != NULL || cpus != NULL || mems != NULL || l3_cache != NULL || bandwidth != NULL;
        for (size_t i = 0; i < NUMBERS; i++)
            limited = limited || numbers[i].value != NULL;
        if (limited)
            return error_new(ERROR_USAGE, "update: a policy, or limits, not both at once");
        return update_policy(global, id, policy);
    }
    for (size_t i = 0; i < NUMBERS; i++)
        TRY(number_set(&numbers[i]));
    struct oci_resources *resources = NULL;
    TRY(document_read(path, &resources));
    /* The flags over the document. */
    struct oci_resources flags = {.memory = filled(&memory, sizeof memory),
                                  .pids = filled(&pids, sizeof pids),
                                  .block_io = filled(&block, sizeof block)};
    cpu.cpus = cpus != NULL ? memory_copy_string(cpus) : NULL;
    cpu.mems = mems != NULL ? memory_copy_string(mems) : NULL;
    flags.cpu = filled(&cpu, sizeof cpu);
    oci_resources_merge(resources, &flags);
    schema_clear(&oci_resources_schema, &flags);
    struct error *error = oci_resources_check(resources);
    if (error == NULL)
        error = update(global, id, resources, l3_cache, bandwidth);
    oci_resources_free(resources);
    return error;
}
