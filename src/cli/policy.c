/* pinfold policy check | show | list | trust | schema; generate and suggest have files of their own */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/policy_suggest.h"
#include "facts/facts.h"
#include "policy/check.h"
#include "policy/resolve.h"
#include "policy/store.h"

/* What the command line names besides the policy: --policy before the command serves as well. */
struct policy_line {
    const struct global_options *global;
    const char *argument; /* NULL: none */
    bool strict;
    struct policy_places places;
};

static struct error *effective(const struct policy_line *line, struct policy **out) {
    struct runtime_options runtime = line->global->runtime;
    if (line->argument != NULL)
        runtime.policy_given = line->argument;
    return container_policy(&runtime, NULL, out);
}

static void print(const char *text) {
    /* Paths of files may hold anything but control characters; what is written in a policy holds none. */
    fputs(text, stdout);
}

static struct error *check(const struct policy_line *line, int *exit_status) {
    struct policy *policy = NULL;
    TRY(effective(line, &policy));
    string_list_owned struct string_list warnings = {0};
    policy_check(policy, &warnings);
    for (size_t i = 0; i < warnings.count; i++)
        printf("%s\n", warnings.items[i]);
    if (warnings.count == 0)
        printf("policy %s (%s): valid, nothing to warn of\n", policy->name, policy->origin);
    else
        printf("policy %s (%s): valid, %zu warning%s\n", policy->name, policy->origin, warnings.count,
               warnings.count == 1 ? "" : "s");
    if (line->strict && warnings.count > 0)
        *exit_status = 1;
    policy_free(policy);
    return NULL;
}

static struct error *show(const struct policy_line *line, int *exit_status) {
    (void)exit_status;
    struct policy *policy = NULL;
    TRY(effective(line, &policy));
    text_owned struct text text = {0};
    policy_show(policy, &text);
    print(text_string(&text));
    policy_free(policy);
    return NULL;
}

static struct error *list(const struct policy_line *line, int *exit_status) {
    (void)exit_status;
    string_list_owned struct string_list names = {0}, paths = {0}, seen = {0};
    policy_names_list(&line->places, &names, &paths);
    printf("%-14s %s\n%-14s %s\n", "agent", "built in: what a container gets that is told nothing else",
           "unconfined", "built in: a plain runtime");
    string_list_append(&seen, "agent");
    string_list_append(&seen, "unconfined");
    for (size_t i = 0; i < names.count; i++) {
        bool hidden = string_list_contains(&seen, names.items[i]);
        printf("%-14s %s%s\n", names.items[i], paths.items[i],
               hidden ? " (not used: the name is taken)" : "");
        if (!hidden)
            string_list_append(&seen, names.items[i]);
    }
    return NULL;
}

static struct error *trust(const struct policy_line *line, int *exit_status) {
    (void)exit_status;
    if (line->argument == NULL)
        return error_new(ERROR_USAGE,
                         "policy trust: expected a file, as in: pinfold policy trust .pinfold.yaml");
    memory_owned char *pins = NULL;
    TRY(policy_trust(&line->places, line->argument, &pins));
    printf("%s counts as it stands now (%s)\n", line->argument, pins);
    return NULL;
}

static struct error *schema(const struct policy_line *line, int *exit_status) {
    (void)line, (void)exit_status;
    text_owned struct text text = {0};
    policy_schema_write(&text);
    print(text_string(&text));
    print("\n");
    return NULL;
}

static const struct {
    const char *name;
    struct error *(*run)(const struct policy_line *line, int *exit_status);
    const char *help;
} actions[] = {
    {"check", check, "[--strict] [NAME|FILE]  is it valid, and what is wider in it than it looks?"},
    {"show", show, "[NAME|FILE]             the effective policy, with the origin of every line"},
    {"list", list, "                        the policies that can be named"},
    {"trust", trust, "FILE                    let a project's .pinfold.yaml count as it stands now"},
    {"schema", schema, "                        the JSON Schema of a policy, for editors"},
};
#define ACTION_COUNT (sizeof actions / sizeof actions[0])

static void usage(void) {
    puts("usage: pinfold policy ACTION ...\n");
    for (size_t i = 0; i < ACTION_COUNT; i++)
        printf("  %-8s %s\n", actions[i].name, actions[i].help);
    puts("  generate MANAGER ...             the policy for the registry of this machine's npm, pip, ...");
    puts("  suggest  (ID | --last)           the lines that would have let a run pass");
}

struct error *policy_command(const struct global_options *global, int argc, char **argv, int *exit_status) {
    if (argc > 1 && strcmp(argv[1], "generate") == 0)
        return policy_generate_command(global, argc - 1, argv + 1, exit_status);
    if (argc > 1 && strcmp(argv[1], "suggest") == 0)
        return policy_suggest_command(argc - 1, argv + 1);
    struct policy_line line = {.global = global};
    const struct option options[] = {
        {"strict", 0, OPTION_FLAG, &line.strict, "check: warnings make the exit status 1"},
        {NULL, 0, OPTION_FLAG, NULL, NULL},
    };
    bool help;
    int first;
    TRY(options_parse_anywhere("policy", options, argc, argv, &first, &help));
    if (help || first >= argc) {
        usage();
        *exit_status = help ? 0 : 1;
        return NULL;
    }
    if (argc - first > 2)
        return error_new(ERROR_USAGE, "policy %s: expected one policy, found \"%s\" too", argv[first],
                         argv[first + 2]);
    line.argument = argc - first == 2 ? argv[first + 1] : NULL;
    bool root;
    memory_owned char *home = facts_user_home(&root);
    line.places = policy_places_default(home, root);
    for (size_t i = 0; i < ACTION_COUNT; i++)
        if (strcmp(actions[i].name, argv[first]) == 0)
            return actions[i].run(&line, exit_status);
    return error_new(ERROR_USAGE,
                     "policy: expected check, show, list, generate, suggest, trust or schema, found \"%s\"",
                     argv[first]);
}
