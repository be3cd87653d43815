/* log.inside: the container's view of its own denials. */
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "harden/parts.h"
#include "policy/match.h"

#define VARIABLE "PINFOLD_DENIALS"
#define RULE "log.inside: true"

/* A directory for it may be made in the container's own layer and in its tmpfs, not in what is bound there:
 * that would leave it in a directory of the user's. */
static bool is_free(const struct hardened *hardened) {
    for (size_t i = 0; i < hardened->config->mounts_count; i++) {
        memory_owned char *destination = match_path_clean(hardened->config->mounts[i].destination);
        const struct mount_fact *fact = hardened->mount_sources[i];
        bool bound = fact != NULL && fact->bind;
        if (match_path_within(destination, HARDEN_INSIDE_DIRECTORY) ||
            (bound && match_path_within(HARDEN_INSIDE_DIRECTORY, destination)))
            return false;
    }
    return true;
}

static bool names_variable(const char *item) {
    return text_starts_with(item, VARIABLE "=");
}

const char *harden_inside_variable(const struct oci_process *process) {
    for (size_t i = 0; i < process->env.count; i++)
        if (names_variable(process->env.items[i]))
            return process->env.items[i];
    return NULL;
}

void harden_inside_set(struct oci_process *process, const char *item) {
    for (size_t i = process->env.count; i > 0; i--)
        if (names_variable(process->env.items[i - 1]))
            string_list_remove(&process->env, i - 1);
    string_list_append(&process->env, item);
}

void harden_inside(const struct policy *policy, struct hardened *hardened) {
    static const char item[] = VARIABLE "=" HARDEN_INSIDE_FILE;
    struct oci_process *process = hardened->config->process;
    if (!policy->log_inside || process == NULL || !is_free(hardened))
        return;
    hardened->inside = true;
    const char *given = harden_inside_variable(process);
    if (given != NULL && strcmp(given, item) == 0)
        return;
    harden_inside_set(process, item);
    harden_note(hardened, CHANGE_ADDED, "process.env", VARIABLE, NULL, RULE, NULL,
                "the container sees its own denials in " HARDEN_INSIDE_DIRECTORY);
}
