#include "cli/explain.h"

#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"

#define WIDTH 100

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

static void print_change(FILE *out, const struct enforcement_change *change) {
    fprintf(out, "  %-8s ", change->kind);
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
    if (change->message != NULL)
        print_wrapped(out, change->message, 11);
    if (change->rule != NULL) {
        fputs("           because of  ", out);
        print_safe(out, change->rule);
        fputc('\n', out);
    }
    if (change->reason != NULL)
        fprintf(out, "           recorded as %s\n", change->reason);
    if (change->remedy != NULL) {
        fputs("           allow with  ", out);
        print_safe(out, change->remedy);
        fputc('\n', out);
    }
}

static void print_changes(FILE *out, const struct enforcement *enforcement) {
    if (enforcement->changes_count == 0) {
        fputs("\nNothing changes in config.json.\n", out);
        return;
    }
    fprintf(out, "\nChanges in config.json: %zu\n", enforcement->changes_count);
    for (size_t i = 0; i < enforcement->changes_count; i++)
        print_change(out, &enforcement->changes[i]);
}

static void print_lines(FILE *out, const struct enforcement *enforcement) {
    fputs("\nThe policy's lines, and where each was written\n", out);
    for (size_t i = 0; i < enforcement->lines_count; i++) {
        const struct enforcement_line *line = &enforcement->lines[i];
        text_owned struct text both = {0};
        text_format(&both, "%s: %s", line->key, line->value != NULL ? line->value : "");
        int pad = 58 - (int)both.length;
        fputs("  ", out);
        print_safe(out, text_string(&both));
        fprintf(out, "%*s  ", pad > 0 ? pad : 0, "");
        print_safe(out, line->origin != NULL ? line->origin : "?");
        fputc('\n', out);
    }
}

static void print_mechanisms(FILE *out, const struct enforcement *enforcement) {
    fputs("\nWhat holds it\n", out);
    for (size_t i = 0; i < enforcement->mechanisms_count; i++) {
        const struct enforcement_mechanism *mechanism = &enforcement->mechanisms[i];
        fprintf(out, "  %-12s ", mechanism->state);
        print_safe(out, mechanism->name);
        fputc('\n', out);
        if (mechanism->how != NULL)
            print_wrapped(out, mechanism->how, 15);
    }
}

static void print_places(FILE *out, const char *title, const struct enforcement_place *places, size_t count) {
    if (count > 0)
        fprintf(out, "\n%s\n", title);
    for (size_t i = 0; i < count; i++) {
        const char *kind = places[i].kind;
        if (kind == NULL)
            kind = "";
        else if (strcmp(kind, "layer") == 0)
            kind = "the container's own layer";
        else if (strcmp(kind, "tmpfs") == 0)
            kind = "in memory, with the image's content copied up";
        fputs("  ", out);
        print_safe(out, places[i].path);
        fputs("  (", out);
        print_safe(out, kind);
        fputs(")\n", out);
    }
}

static void print_files(FILE *out, const struct enforcement *enforcement) {
    print_places(out, "Writable, private, gone with the container", enforcement->scratch,
                 enforcement->scratch_count);
    print_places(out, "Stays when the container is gone: writable, and the host's", enforcement->persistent,
                 enforcement->persistent_count);
    if (enforcement->decoys.count > 0)
        fputs("\nDecoys: fake keys; opening one is recorded\n", out);
    for (size_t i = 0; i < enforcement->decoys.count; i++) {
        fputs("  ", out);
        print_safe(out, enforcement->decoys.items[i]);
        fputc('\n', out);
    }
}

static void print_hooks(FILE *out, const struct enforcement *enforcement) {
    if (enforcement->hooks_count > 0)
        fputs("\nRuns outside of the sandbox: the engine's hooks\n", out);
    for (size_t i = 0; i < enforcement->hooks_count; i++) {
        fprintf(out, "  %-16s ", enforcement->hooks[i].kind);
        print_safe(out, enforcement->hooks[i].path != NULL ? enforcement->hooks[i].path : "?");
        fputc('\n', out);
    }
}

static void print_network(FILE *out, const struct enforcement_network *network) {
    if (!network->wall)
        fputs("\nNetwork: open; no wall\n", out);
    else if (strcmp(network->mode, "none") == 0)
        fputs("\nNetwork: walled (none); every connection out is denied and recorded\n", out);
    else
        fputs("\nNetwork: walled (allowlist); every connection to a host that is not listed is denied and "
              "recorded\n",
              out);
}

static void print_person(FILE *out, const struct enforcement *enforcement) {
    const struct enforcement_policy *policy = &enforcement->policy;
    fputs("Policy ", out);
    print_safe(out, policy->name);
    fprintf(out, " (%s), digest %.12s\nBundle ", policy->origin != NULL ? policy->origin : "?",
            policy->digest != NULL ? policy->digest : "?");
    print_safe(out, enforcement->bundle != NULL ? enforcement->bundle : "?");
    fputc('\n', out);
    if (!enforcement->confined) {
        fputs("\nThis policy confines nothing: config.json is executed as it stands.\n", out);
        return;
    }
    print_changes(out, enforcement);
    print_mechanisms(out, enforcement);
    if (enforcement->unlimited.count > 0) {
        fputs("\nWithout a limit\n", out);
        print_list(out, &enforcement->unlimited, 2);
    }
    print_files(out, enforcement);
    print_hooks(out, enforcement);
    print_network(out, &enforcement->network);
    const struct string_list *calls = &enforcement->denied_calls;
    fprintf(out, "\nDenied system calls: %zu%s\n", calls->count,
            calls->count > 0 ? " (*: some of their forms), whatever the engine's profile says" : "");
    print_list(out, calls, 2);
    print_lines(out, enforcement);
}

void explain_print(const struct enforcement *enforcement, bool json, FILE *out) {
    if (!json) {
        print_person(out, enforcement);
        return;
    }
    json_owned struct json_writer writer = {0};
    schema_write(&enforcement_schema, enforcement, &writer);
    fprintf(out, "%s\n", text_string(&writer.text));
}
