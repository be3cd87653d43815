/* What a container uses, in the shape that callers of `events` read, and the news that it ran out of memory.
 */
#pragma once

#include "base/json.h"
#include "cgroup/cgroup.h"

/* Writes the members cpu, memory, pids, blkio and hugetlb. What cannot be read is left out or zero: a cgroup
 * may vanish at any time. "No limit" is 18446744073709551615 (v2) or what v1's files say, for pids 0. */
void cgroup_statistics_write(const struct cgroup *cgroup, struct json_writer *json);

struct cgroup_oom_watch {
    int fd; /* readable when something happened; -1: nothing to watch */
    bool unified;
    char *directory;
    uint64_t seen;
};
/* ERROR_UNAVAILABLE where there is no memory controller. The caller closes it. */
fallible cgroup_oom_watch_open(const struct cgroup *cgroup, struct cgroup_oom_watch *out);
/* Takes the news from a readable descriptor: how often memory ran out since the last time. */
uint64_t cgroup_oom_watch_read(struct cgroup_oom_watch *watch);
void cgroup_oom_watch_close(struct cgroup_oom_watch *watch);
