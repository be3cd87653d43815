#include "cli/explain.h"

#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"

#define WIDTH 100

static const char *const kind_words[] = {[CHANGE_REMOVED] = "removed",
                                         [CHANGE_ADDED] = "added",
                                         [CHANGE_SET] = "set",
                                         [CHANGE_DEGRADED] = "degraded"};
static const char *const network_words[] = {
    [POLICY_NETWORK_NONE] = "none", [POLICY_NETWORK_ALLOWLIST] = "allowlist", [POLICY_NETWORK_OPEN] = "open"};
static const char *const scratch_words[] = {[SCRATCH_OWN_LAYER] = "layer", [SCRATCH_TMPFS] = "tmpfs"};

/* Does the filter answer this rule by itself or with the warden, other than by letting the call pass? */
static bool denies(const struct oci_seccomp_rule *rule) {
    return rule->action != NULL && strcmp(rule->action, "SCMP_ACT_ALLOW") != 0;
}

/* The names of the calls that are denied, each once; those of which only some forms are denied ("socket" with
 * a family, "clone" with a flag) end with a star. */
static void collect_calls(const struct oci_seccomp *denied, struct string_list *calls) {
    for (size_t i = 0; denied != NULL && i < denied->syscalls_count; i++) {
        const struct oci_seccomp_rule *rule = &denied->syscalls[i];
        for (size_t n = 0; denies(rule) && n < rule->names.count; n++) {
            memory_owned char *name =
                text_formatted("%s%s", rule->names.items[n], rule->args_count > 0 ? "*" : "");
            if (!string_list_contains(calls, name))
                string_list_append(calls, name);
        }
    }
}

/* --- for a person --- */

static void print_safe(FILE *out, const char *string) {
    for (; *string != '\0'; string++) {
        unsigned char byte = (unsigned char)*string;
        if (byte < 0x20 || byte == 0x7f)
            fprintf(out, "\\x%02x", byte);
        else
            fputc(byte, out);
    }
}

/* Words, broken at the width, each line behind `indent` blanks. */
static void print_wrapped(FILE *out, const char *string, int indent) {
    int column = 0;
    while (*string != '\0') {
        size_t length = strcspn(string, " ");
        memory_owned char *word = text_formatted("%.*s", (int)length, string);
        if (column > 0 && column + 1 + (int)length > WIDTH) {
            fputc('\n', out);
            column = 0;
        }
        int blanks = column == 0 ? indent : 1;
        fprintf(out, "%*s", blanks, "");
        print_safe(out, word);
        column += blanks + (int)length;
        string += length;
        string += strspn(string, " ");
    }
    fputc('\n', out);
}

static void print_list(FILE *out, const struct string_list *list, int indent) {
    text_owned struct text joined = {0};
    for (size_t i = 0; i < list->count; i++)
        text_format(&joined, "%s%s", i > 0 ? " " : "", list->items[i]);
    print_wrapped(out, text_string(&joined), indent);
}

static void print_change(FILE *out, const struct change *change) {
    fprintf(out, "  %-8s ", kind_words[change->kind]);
    print_safe(out, change->field != NULL ? change->field : "");
    if (change->subject != NULL && strlen(change->subject) <= 60) {
        fputc(' ', out);
        print_safe(out, change->subject);
        fputc('\n', out);
    } else {
        fputc('\n', out);
        if (change->subject != NULL)
            print_wrapped(out, change->subject, 11);
    }
    print_wrapped(out, change->message, 11);
    if (change->reason != NULL)
        fprintf(out, "           recorded as %s\n", change->reason);
    if (change->remedy != NULL) {
        fputs("           allow with  ", out);
        print_safe(out, change->remedy);
        fputc('\n', out);
    }
}

static void print_changes(FILE *out, const struct hardened *hardened) {
    if (hardened->changes_count == 0) {
        fputs("\nNothing changes in config.json.\n", out);
        return;
    }
    fprintf(out, "\nChanges in config.json: %zu\n", hardened->changes_count);
    for (size_t i = 0; i < hardened->changes_count; i++)
        print_change(out, &hardened->changes[i]);
}

static void print_places(FILE *out, const struct hardened *hardened) {
    if (hardened->config->root == NULL || !hardened->config->root->readonly)
        fputs("\nThe root file system is writable.\n", out);
    else if (hardened->scratch_count > 0)
        fputs("\nWritable, private, gone with the container\n", out);
    for (size_t i = 0; i < hardened->scratch_count; i++) {
        fputs("  ", out);
        print_safe(out, hardened->scratch[i].path);
        fprintf(out, "  (%s)\n",
                hardened->scratch[i].kind == SCRATCH_OWN_LAYER
                    ? "the container's own layer"
                    : "in memory, with the image's content copied up");
    }
    if (hardened->decoys_count > 0)
        fputs("\nDecoys: fake keys; opening one is recorded\n", out);
    for (size_t i = 0; i < hardened->decoys_count; i++) {
        fputs("  ", out);
        print_safe(out, hardened->decoys[i].path);
        fputc('\n', out);
    }
}

static void print_network(FILE *out, const struct hardened *hardened, const struct policy *policy) {
    if (!hardened->wall)
        fputs("\nNetwork: open; no wall\n", out);
    else if (policy->network_mode == POLICY_NETWORK_NONE)
        fputs("\nNetwork: walled (none); every connection out is denied and recorded\n", out);
    else
        fputs("\nNetwork: walled (allowlist); every connection to a host that is not listed is denied and "
              "recorded\n",
              out);
}

static void print_person(FILE *out, const struct hardened *hardened, const struct policy *policy,
                         const struct facts *facts) {
    fputs("Policy ", out);
    print_safe(out, policy->name);
    fprintf(out, " (%s), digest %.12s\nBundle ", policy->origin, policy->digest);
    print_safe(out, facts->bundle != NULL ? facts->bundle : "?");
    fputc('\n', out);
    if (!hardened->confined) {
        fputs("\nThis policy confines nothing: config.json is executed as it stands.\n", out);
        return;
    }
    print_changes(out, hardened);
    print_places(out, hardened);
    print_network(out, hardened, policy);
    string_list_owned struct string_list calls = {0};
    collect_calls(hardened->denied, &calls);
    fprintf(out, "\nDenied system calls: %zu%s\n", calls.count,
            calls.count > 0 ? " (*: some of their forms), whatever the engine's profile says" : "");
    print_list(out, &calls, 2);
    if (facts->has_fanotify)
        return;
    fputs("\nThis user cannot have file permission events: an opened decoy is observed, not denied.\n", out);
}

/* --- for a program --- */

static void write_changes(struct json_writer *json, const struct hardened *hardened) {
    json_key(json, "changes");
    json_array_begin(json);
    for (size_t i = 0; i < hardened->changes_count; i++) {
        const struct change *change = &hardened->changes[i];
        json_object_begin(json);
        json_member_string(json, "kind", kind_words[change->kind]);
        json_member_string_optional(json, "field", change->field);
        json_member_string_optional(json, "subject", change->subject);
        json_member_string_optional(json, "reason", change->reason);
        json_member_string_optional(json, "message", change->message);
        json_member_string_optional(json, "rule", change->rule);
        json_member_string_optional(json, "remedy", change->remedy);
        json_object_end(json);
    }
    json_array_end(json);
}

static void write_places(struct json_writer *json, const struct hardened *hardened) {
    json_key(json, "scratch");
    json_array_begin(json);
    for (size_t i = 0; i < hardened->scratch_count; i++) {
        json_object_begin(json);
        json_member_string(json, "path", hardened->scratch[i].path);
        json_member_string(json, "kind", scratch_words[hardened->scratch[i].kind]);
        json_object_end(json);
    }
    json_array_end(json);
    json_key(json, "decoys");
    json_array_begin(json);
    for (size_t i = 0; i < hardened->decoys_count; i++)
        json_string(json, hardened->decoys[i].path);
    json_array_end(json);
}

static void print_json(FILE *out, const struct hardened *hardened, const struct policy *policy,
                       const struct facts *facts) {
    json_owned struct json_writer json = {0};
    json_object_begin(&json);
    json_key(&json, "policy");
    json_object_begin(&json);
    json_member_string(&json, "name", policy->name);
    json_member_string(&json, "origin", policy->origin);
    json_member_string(&json, "digest", policy->digest);
    json_object_end(&json);
    json_member_string_optional(&json, "bundle", facts->bundle);
    json_member_boolean(&json, "confined", hardened->confined);
    json_key(&json, "network");
    json_object_begin(&json);
    json_member_string(&json, "mode", network_words[policy->network_mode]);
    json_member_boolean(&json, "wall", hardened->wall);
    json_object_end(&json);
    write_changes(&json, hardened);
    write_places(&json, hardened);
    string_list_owned struct string_list calls = {0};
    collect_calls(hardened->denied, &calls);
    json_key(&json, "denied_calls");
    json_array_begin(&json);
    for (size_t i = 0; i < calls.count; i++)
        json_string(&json, calls.items[i]);
    json_array_end(&json);
    json_member_boolean(&json, "decoys_deny", hardened->confined && facts->has_fanotify);
    json_key(&json, "config");
    schema_write(&oci_config_schema, hardened->config, &json);
    json_object_end(&json);
    fprintf(out, "%s\n", text_string(&json.text));
}

void explain_print(const struct hardened *hardened, const struct policy *policy, const struct facts *facts,
                   bool json, FILE *out) {
    if (json)
        print_json(out, hardened, policy, facts);
    else
        print_person(out, hardened, policy, facts);
}
