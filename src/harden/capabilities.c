#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "harden/parts.h"

/* With a wall these would undo it: raw sockets pass by the socket rules, NET_ADMIN rewrites them. Not even a
 * policy that lists them gets them while hosts are walled. */
static bool breaks_the_wall(const struct policy *policy, const char *name) {
    return policy->network_mode != POLICY_NETWORK_OPEN &&
           (strcmp(name, "CAP_NET_ADMIN") == 0 || strcmp(name, "CAP_NET_RAW") == 0);
}

static void cut(struct string_list *set, const struct policy *policy, struct string_list *dropped) {
    for (size_t i = set->count; i > 0; i--) {
        const char *name = set->items[i - 1];
        if (string_list_contains(&policy->capabilities.values, name) && !breaks_the_wall(policy, name))
            continue;
        if (!string_list_contains(dropped, name))
            string_list_append(dropped, name);
        string_list_remove(set, i - 1);
    }
}

void harden_capabilities(struct oci_process *process, const struct policy *policy,
                         struct hardened *hardened) {
    struct oci_capabilities *sets = process->capabilities;
    if (sets == NULL) /* config.md: no capabilities at all. */
        return;
    string_list_owned struct string_list dropped = {0};
    cut(&sets->bounding, policy, &dropped);
    cut(&sets->effective, policy, &dropped);
    cut(&sets->inheritable, policy, &dropped);
    cut(&sets->permitted, policy, &dropped);
    cut(&sets->ambient, policy, &dropped);
    if (dropped.count == 0)
        return;
    text_owned struct text names = {0};
    text_owned struct text remedy = {0};
    for (size_t i = dropped.count; i > 0; i--) {
        const char *name = dropped.items[i - 1];
        text_format(&names, "%s%s", names.length > 0 ? " " : "", name);
        if (!breaks_the_wall(policy, name))
            text_format(&remedy, ", %s", name);
    }
    memory_owned char *line =
        remedy.length > 0
            ? text_formatted("processes: {capabilities: [\"@default\"%s]}", text_string(&remedy))
            : NULL;
    harden_note(hardened, CHANGE_REMOVED, "process.capabilities", text_string(&names), "capability.dropped",
                "processes.capabilities: \"@default\"", line,
                "%zu %s that the policy does not give %s dropped", dropped.count,
                dropped.count == 1 ? "capability" : "capabilities", dropped.count == 1 ? "was" : "were");
}
