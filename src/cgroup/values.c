/* From the document's numbers to the kernel's. */
#include <inttypes.h>
#include <math.h>

#include "base/memory.h"
#include "cgroup/internal.h"

uint64_t cgroup_weight_from_shares(uint64_t shares) {
    if (shares == 0)
        return 0;
    if (shares <= 2)
        return 1;
    if (shares >= 262144)
        return 10000;
    /* Through (2, 1), (1024, 100) and (262144, 10000) on logarithmic scales: both defaults meet. The linear
     * form that was used everywhere before made 1024 shares weight 39. */
    double logarithm = log2((double)shares);
    double exponent = (logarithm * logarithm + 125 * logarithm) / 612.0 - 7.0 / 34.0;
    return (uint64_t)ceil(pow(10, exponent) - 1e-9);
}

uint64_t cgroup_io_weight(uint64_t weight) {
    if (weight == 0)
        return 0;
    if (weight <= 10)
        return 1;
    if (weight >= 1000)
        return 10000;
    return 1 + (weight - 10) * 9999 / 990;
}

bool cgroup_wanted(struct optional_int64 number) {
    return number.set && number.value != 0;
}

bool cgroup_wanted_unsigned(struct optional_uint64 number) {
    return number.set && number.value != 0;
}

struct error *cgroup_limit_text(const char *field, int64_t value, const char *unlimited, char **out) {
    if (value < -1)
        return error_new(ERROR_INVALID,
                         "%s: %" PRId64 " is not allowed; -1 (unlimited) or a positive number is", field,
                         value);
    *out = value == -1 ? memory_copy_string(unlimited) : text_formatted("%" PRId64, value);
    return NULL;
}

struct error *cgroup_swap_beyond_limit(const struct oci_memory *memory, char **out) {
    *out = NULL;
    if (!cgroup_wanted(memory->swap)) {
        /* Unlimited memory under the old limit of memory and swap together would not be unlimited. */
        if (memory->limit.set && memory->limit.value == -1)
            *out = memory_copy_string("max");
        return NULL;
    }
    int64_t swap = memory->swap.value;
    int64_t limit = memory->limit.set ? memory->limit.value : 0;
    if (swap < -1)
        return error_new(ERROR_INVALID,
                         "linux.resources.memory.swap: %" PRId64
                         " is not allowed; -1 (unlimited) or a number of bytes, "
                         "memory and swap together, is",
                         swap);
    if (swap == -1) {
        *out = memory_copy_string("max");
        return NULL;
    }
    if (limit <= 0)
        return error_new(ERROR_INVALID,
                         "linux.resources.memory.swap: %" PRId64
                         " is memory and swap together and needs linux.resources.memory.limit beside it",
                         swap);
    if (swap < limit)
        return error_new(ERROR_INVALID,
                         "linux.resources.memory.swap: %" PRId64
                         " is memory and swap together and must not be below "
                         "linux.resources.memory.limit, %" PRId64 "; -1 is unlimited",
                         swap, limit);
    *out = text_formatted("%" PRId64, swap - limit);
    return NULL;
}
