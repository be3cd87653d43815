/* Real-time budgets of cgroup v1 (Documentation/scheduler/sched-rt-group.rst): a new cgroup has none, so that
 * no process in it may be SCHED_FIFO or SCHED_RR, and those below one share what it has. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cgroup/internal.h"

#define PERIOD "cpu.rt_period_us"
#define RUNTIME "cpu.rt_runtime_us"
#define RATIO_SHIFT 20 /* as the kernel compares them: to_ratio() in kernel/sched/core.c */

static bool number_read(const char *directory, const char *file, int64_t *out) {
    memory_owned char *value = cgroup_file_read(directory, file);
    *out = value == NULL ? 0 : strtoll(value, NULL, 10);
    return value != NULL;
}

static uint64_t ratio_of(int64_t runtime, int64_t period) {
    if (runtime < 0 || period <= 0)
        return UINT64_C(1) << RATIO_SHIFT;
    return ((uint64_t)runtime << RATIO_SHIFT) / (uint64_t)period;
}

static uint64_t ratio_read(const char *directory) {
    int64_t runtime = 0, period = 0;
    return number_read(directory, RUNTIME, &runtime) && number_read(directory, PERIOD, &period)
               ? ratio_of(runtime, period)
               : 0;
}

/* What those beside `directory` have. */
static uint64_t ratio_beside(const char *parent, const char *directory) {
    uint64_t sum = 0;
    DIR *listing = opendir(parent);
    for (struct dirent *entry; listing != NULL && (entry = readdir(listing)) != NULL;) {
        memory_owned char *path = text_formatted("%s/%s", parent, entry->d_name);
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.' && strcmp(path, directory) != 0)
            sum += ratio_read(path);
    }
    if (listing != NULL)
        closedir(listing);
    return sum;
}

static bool is_own_parent(const char *path) {
    const char *name = strrchr(path, '/');
    return name != NULL && strcmp(name + 1, CGROUP_OWN_PARENT) == 0;
}

/* Rounded up, so that the kernel's own division finds room. */
static struct error *ratio_write(const char *directory, uint64_t ratio, int64_t period) {
    memory_owned char *value =
        text_formatted("%" PRIu64, ratio == 0 ? 0 : ((ratio * (uint64_t)period) >> RATIO_SHIFT) + 1);
    return cgroup_file_write(directory, RUNTIME, value);
}

struct error *cgroup_v1_realtime_room(const char *directory, int64_t runtime, uint64_t period) {
    memory_owned char *parent = cgroup_path_parent(directory);
    int64_t parent_period = 0;
    if (!is_own_parent(parent) || runtime <= 0 || !number_read(parent, PERIOD, &parent_period))
        return NULL;
    if (period == 0) {
        int64_t own = 0;
        (void)number_read(directory, PERIOD, &own);
        period = (uint64_t)own;
    }
    uint64_t needed = ratio_beside(parent, directory) + ratio_of(runtime, (int64_t)period);
    return ratio_read(parent) >= needed ? NULL : ratio_write(parent, needed, parent_period);
}

void cgroup_v1_realtime_return(const char *directory) {
    memory_owned char *parent = cgroup_path_parent(directory);
    int64_t runtime = 0, period = 0;
    if (!is_own_parent(parent) || !number_read(directory, RUNTIME, &runtime) || runtime == 0)
        return;
    /* Refused while a real-time process is in it: then it is tried again when that was killed. And the
     * parent's where another container has just taken of it: then that one's end returns it. */
    struct error *error = cgroup_file_write(directory, RUNTIME, "0");
    if (error == NULL && number_read(parent, PERIOD, &period))
        error = ratio_write(parent, ratio_beside(parent, directory), period);
    error_ignore(error);
}

void cgroup_allow_scheduler(const struct cgroup *cgroup, const struct oci_scheduler *scheduler) {
    static const int budgets[] = {500000, 200000, 50000, 10000}; /* microseconds of a second */
    struct cgroup_place place;
    int64_t runtime = 0;
    if (scheduler == NULL ||
        (strcmp(scheduler->policy, "SCHED_FIFO") != 0 && strcmp(scheduler->policy, "SCHED_RR") != 0) ||
        !cgroup_place_find(cgroup, "cpu", &place) || place.unified ||
        !number_read(place.directory, RUNTIME, &runtime) || runtime != 0)
        return;
    for (size_t i = 0; i < sizeof budgets / sizeof budgets[0]; i++) {
        memory_owned char *value = text_formatted("%d", budgets[i]);
        /* Beside other containers that come now, what was free a moment ago may be taken. */
        struct error *error = cgroup_v1_realtime_room(place.directory, budgets[i], 0);
        if (error == NULL)
            error = cgroup_file_write(place.directory, RUNTIME, value);
        if (error == NULL)
            return;
        error_ignore(error); /* scheduling_apply says what is wanting */
    }
}
