#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/why.h"
#include "harden/parts.h"
#include "policy/match.h"
#include "policy/path_glob.h"

/* By the same text that the hardening decides by: symbolic links of the image are not followed. */

static const char *within_any(const struct string_list *places, const char *path) {
    for (size_t i = 0; i < places->count; i++)
        if (match_path_within(path, places->items[i]))
            return places->items[i];
    return NULL;
}

/* The mount that the path lies on: the last one counts. */
static const struct oci_mount *mount_of(const struct oci_config *config, const char *path) {
    for (size_t i = config->mounts_count; i > 0; i--) {
        memory_owned char *destination = match_path_clean(config->mounts[i - 1].destination);
        if (match_path_within(path, destination))
            return &config->mounts[i - 1];
    }
    return NULL;
}

/* Which line made the place writable? */
static void scratch_line(const struct prepared *prepared, const char *place, struct why_answer *answer) {
    static const enum policy_key keys[] = {POLICY_FILESYSTEM_SCRATCH, POLICY_FILESYSTEM_WRITABLE};
    const struct policy *policy = prepared->policy;
    const struct policy_list *lists[] = {&policy->scratch, &policy->writable};
    const char *home = prepared->facts->container_home, *cwd = prepared->hardened->config->process->cwd;
    for (size_t list = 0; list < 2; list++)
        for (size_t i = 0; i < lists[list]->values.count; i++) {
            const char *item = lists[list]->values.items[i];
            const char *meant = strcmp(item, "~") == 0 ? home : strcmp(item, "@cwd") == 0 ? cwd : item;
            if (meant == NULL || meant[0] != '/')
                continue;
            memory_owned char *clean = match_path_clean(meant);
            if (strcmp(clean, place) != 0)
                continue;
            answer->rule = text_formatted(
                "filesystem.%s: %s", keys[list] == POLICY_FILESYSTEM_SCRATCH ? "scratch" : "writable", item);
            answer->origin = memory_copy_string(policy_list_origin(lists[list], i));
            return;
        }
    answer->rule = text_formatted("filesystem.writable: %s", place);
}

static bool is_reopened(const struct hardened *hardened, const char *path) {
    for (size_t i = 0; i < hardened->rebinds_count; i++)
        if (hardened->rebinds[i].kind == REBIND_WRITABLE &&
            match_path_within(path, hardened->rebinds[i].path))
            return true;
    return false;
}

static void on_mount(const struct hardened *hardened, const struct oci_mount *mount, const char *path,
                     bool reads, struct why_answer *answer) {
    if (!reads && is_reopened(hardened, path)) {
        answer->allowed = true;
        answer->rule = memory_copy_string("filesystem.writable");
        return;
    }
    answer->allowed = reads || !harden_mount_is_read_only(mount);
    answer->rule = text_formatted("mounts of config.json: %s is mounted %s", mount->destination,
                                  harden_mount_is_read_only(mount) ? "read-only" : "writable");
}

/* What is masked and read-only: files of the kernel, and filesystem.protected. */
static bool on_covered(const struct hardened *hardened, const char *path, bool reads,
                       struct why_answer *answer) {
    const struct oci_linux *linux_config = hardened->config->linux_config;
    const char *place = within_any(&linux_config->masked_paths, path);
    if (place != NULL) {
        answer->rule = text_formatted("linux.maskedPaths: %s", place);
        answer->note = memory_copy_string("it is there, and empty");
        return true;
    }
    place = reads ? NULL : within_any(&linux_config->readonly_paths, path);
    for (size_t i = 0; place != NULL && i < hardened->changes_count; i++)
        if (hardened->changes[i].subject != NULL && strcmp(hardened->changes[i].subject, place) == 0)
            answer->rule = text_formatted("%s: %s", hardened->changes[i].rule, place);
    if (place != NULL && answer->rule == NULL)
        answer->rule = text_formatted("linux.readonlyPaths: %s", place);
    return place != NULL;
}

static void by_mounts(const struct prepared *prepared, const char *path, bool reads,
                      struct why_answer *answer) {
    const struct hardened *hardened = prepared->hardened;
    for (size_t i = 0; i < hardened->decoys_count; i++)
        if (strcmp(path, hardened->decoys[i].path) == 0) {
            answer->rule = memory_copy_string("built-in: decoys");
            answer->note = memory_copy_string("a fake key stands there; opening it is recorded");
            return;
        }
    if (on_covered(hardened, path, reads, answer))
        return;
    const struct oci_mount *mount = mount_of(hardened->config, path);
    if (mount != NULL) {
        on_mount(hardened, mount, path, reads, answer);
        return;
    }
    if (reads || !hardened->config->root->readonly) {
        answer->allowed = true;
        answer->rule = memory_copy_string(reads ? "filesystem.readable: @image"
                                          : prepared->policy->on_denied_action == POLICY_DENIED_LOG_ONLY
                                              ? "on_denied_action: log_only"
                                              : "filesystem.default: allow");
        return;
    }
    for (size_t i = 0; i < hardened->scratch_count; i++)
        if (match_path_within(path, hardened->scratch[i].path)) {
            answer->allowed = true;
            scratch_line(prepared, hardened->scratch[i].path, answer);
            answer->note = memory_copy_string("it is gone with the container");
            return;
        }
    answer->rule = memory_copy_string("filesystem.default: deny");
    answer->origin = memory_copy_string(policy_origin(prepared->policy, POLICY_FILESYSTEM_DEFAULT));
    /* A JSON string is a YAML string too. */
    json_owned struct json_writer remedy = {0};
    text_append(&remedy.text, "filesystem: {writable: [\"@default\", ");
    json_string(&remedy, path);
    answer->remedy = text_formatted("%s]}", text_string(&remedy.text));
}

/* Landlock, behind the mounts: what they let through it may not. */
static void by_access_plan(const struct prepared *prepared, const char *path, bool reads,
                           struct why_answer *answer) {
    const struct access_plan *plan = prepared->hardened->access;
    if (plan == NULL || !answer->allowed ||
        (reads ? access_plan_lets_read(plan, path) : access_plan_lets_write(plan, path)))
        return;
    enum policy_key key = reads ? POLICY_FILESYSTEM_READABLE : POLICY_FILESYSTEM_WRITABLE;
    answer->allowed = false;
    free(answer->origin);
    answer->origin = memory_copy_string(policy_origin(prepared->policy, key));
    memory_replace_string(&answer->rule, reads ? "filesystem.readable does not name it"
                                               : "filesystem.writable does not name it");
}

/* Without a root file system nobody knows what a glob of filesystem.hidden finds there: what is asked about
 * is taken to be there. */
static void by_hidden_globs(const struct prepared *prepared, const char *path, struct why_answer *answer) {
    const struct policy_list *hidden = &prepared->policy->hidden;
    if (prepared->facts->root_fd >= 0)
        return;
    for (memory_owned char *place = memory_copy_string(path); place[0] != '\0'; *strrchr(place, '/') = '\0')
        for (size_t i = 0; i < hidden->values.count; i++) {
            if (!path_glob_is(hidden->values.items[i]) || !path_glob_matches(hidden->values.items[i], place))
                continue;
            answer->allowed = false;
            memory_replace_string(&answer->origin, policy_list_origin(hidden, i));
            free(answer->rule);
            answer->rule = text_formatted("filesystem.hidden: %s", hidden->values.items[i]);
            memory_replace_string(&answer->note, "what is there when the container is made is empty");
            free(answer->remedy);
            answer->remedy = NULL;
            return;
        }
}

struct error *why_path(const struct prepared *prepared, const char *given, bool reads,
                       struct why_answer *answer) {
    memory_owned char *path = match_path_clean(given);
    answer->what = text_formatted("%s %s", reads ? "reading" : "writing to", path);
    by_mounts(prepared, path, reads, answer);
    by_access_plan(prepared, path, reads, answer);
    by_hidden_globs(prepared, path, answer);
    return NULL;
}
