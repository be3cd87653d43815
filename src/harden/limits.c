#include <inttypes.h>

#include "base/memory.h"
#include "base/text.h"
#include "harden/parts.h"

void harden_limits(const struct policy *policy, struct hardened *hardened) {
    if (!policy->pids.set)
        return;
    struct oci_linux *linux_config = harden_linux(hardened);
    if (linux_config->resources == NULL)
        linux_config->resources = memory_zeroed(sizeof *linux_config->resources);
    struct oci_resources *resources = linux_config->resources;
    if (resources->pids == NULL)
        resources->pids = memory_zeroed(sizeof *resources->pids);
    struct optional_int64 *limit = &resources->pids->limit;
    /* Engines write 0 and -1 for "no limit". */
    if (limit->set && limit->value > 0 && limit->value <= policy->pids.value)
        return;
    memory_owned char *remedy = limit->set && limit->value > 0
                                    ? text_formatted("limits: {pids: %" PRId64 "}", limit->value)
                                    : memory_copy_string("limits: {pids: null}");
    harden_note(hardened, CHANGE_SET, "linux.resources.pids.limit", "pids", NULL, "limits.pids", remedy,
                "at most %" PRId64 " processes and threads", policy->pids.value);
    *limit = policy->pids;
}
