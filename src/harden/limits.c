#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "harden/parts.h"

/* A file of the pids controller by its name would be written last, and undo the limit. */
static void unified_cut(struct hardened *hardened, struct oci_resources *resources) {
    struct string_map *unified = &resources->unified;
    for (size_t i = 0; i < unified->count; i++) {
        if (strcmp(unified->items[i].key, "pids.max") != 0)
            continue;
        harden_note(hardened, CHANGE_REMOVED, "linux.resources.unified", "pids.max", NULL, "limits.pids",
                    "limits: {pids: null}", "the number of processes is the policy's to limit");
        free(unified->items[i].key);
        free(unified->items[i].value);
        memmove(&unified->items[i], &unified->items[i + 1],
                (unified->count - i - 1) * sizeof *unified->items);
        unified->count--;
        return;
    }
}

void harden_limits(const struct policy *policy, struct hardened *hardened) {
    if (!policy->pids.set)
        return;
    struct oci_linux *linux_config = harden_linux(hardened);
    if (linux_config->resources == NULL)
        linux_config->resources = memory_zeroed(sizeof *linux_config->resources);
    struct oci_resources *resources = linux_config->resources;
    if (resources->pids == NULL)
        resources->pids = memory_zeroed(sizeof *resources->pids);
    unified_cut(hardened, resources);
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
