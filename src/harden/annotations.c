#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "harden/parts.h"

#define PREFIX "org.systemd.property."
#define REASON "policy.annotation.ignored"

/* How long systemd waits, and with which signal, when it stops what delete has left: podman sets them. Every
 * other property could come from the image, whose annotations podman hands on, and a unit's properties reach
 * far: Conflicts= stops any service of the machine, OnFailure= starts one, MemoryMax= lifts a limit. */
static bool is_harmless(const char *property) {
    static const char *const harmless[] = {"KillSignal", "TimeoutStopUSec", "TimeoutStopSec", NULL};
    for (size_t i = 0; harmless[i] != NULL; i++)
        if (strcmp(property, harmless[i]) == 0)
            return true;
    return false;
}

static void unit_properties_remove(struct hardened *hardened) {
    struct string_map *annotations = &hardened->config->annotations;
    size_t kept = 0;
    for (size_t i = 0; i < annotations->count; i++) {
        struct key_value item = annotations->items[i];
        if (!text_starts_with(item.key, PREFIX) || is_harmless(item.key + strlen(PREFIX))) {
            annotations->items[kept++] = item;
            continue;
        }
        harden_note(hardened, CHANGE_REMOVED, "annotations", item.key, REASON,
                    "built-in: properties of systemd units", NULL,
                    "The annotation %.200s was removed: a property of a systemd unit reaches beyond the "
                    "container, and an image may have set it.",
                    item.key);
        free(item.key);
        free(item.value);
    }
    annotations->count = kept;
}

/* Annotations come from the image as well: what they can only widen counts for nothing. */
void harden_annotations(const struct policy *policy, struct hardened *hardened) {
    for (size_t i = 0; i < policy->remarks_count; i++) {
        const struct policy_remark *remark = &policy->remarks[i];
        bool ignored = strcmp(remark->reason, REASON) == 0;
        harden_note(hardened, ignored ? CHANGE_REMOVED : CHANGE_DEGRADED, ignored ? "annotations" : "policy",
                    remark->subject, remark->reason, remark->rule, NULL, "%s", remark->message);
    }
    static const char keep_groups[] = "run.oci.keep_original_groups";
    unit_properties_remove(hardened);
    const char *keeps = string_map_get(&hardened->config->annotations, keep_groups);
    if (keeps == NULL || strcmp(keeps, "0") == 0)
        return;
    string_map_set(&hardened->config->annotations, keep_groups, "0");
    harden_note(hardened, CHANGE_REMOVED, "annotations", keep_groups, REASON,
                "built-in: an annotation only narrows", NULL,
                "The container does not keep the groups of its caller.");
}
