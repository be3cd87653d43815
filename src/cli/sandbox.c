#include "container/sandbox.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/cli.h"
#include "cli/options.h"

#define BUNDLE_ATTEMPTS 8

extern char **environ;

static struct error *workspace_resolve(const char *path, char **out) {
    *out = realpath(path, NULL);
    if (*out == NULL)
        return error_system(errno, "find", "workspace %s", path);
    struct stat status;
    if (stat(*out, &status) < 0 || !S_ISDIR(status.st_mode))
        return error_new(ERROR_INVALID, "--workspace: %s is not a directory", *out);
    return NULL;
}

/* NAME takes the caller's value, NAME=VALUE gives one. */
static struct error *environment_resolve(const struct string_list *wanted, struct string_list *out) {
    for (size_t i = 0; i < wanted->count; i++) {
        const char *item = wanted->items[i];
        if (strchr(item, '=') != NULL) {
            string_list_append(out, item);
            continue;
        }
        const char *value = getenv(item);
        if (value == NULL)
            return error_new(ERROR_USAGE, "sandbox --env: %s is not set", item);
        string_list_append_owned(out, text_formatted("%s=%s", item, value));
    }
    return NULL;
}

/* Bundles lie beside the containers' own directories; the name of their directory is no valid ID, so it is
 * never taken for a container. It is there while a sandbox is: whoever finds it gone makes it again. */
static struct error *bundle_make(const char *root, const char *bundle, const struct sandbox_request *request,
                                 const struct policy *policy) {
    memory_owned char *directory = text_formatted("%s/.sandboxes", root);
    if (mkdir(root, 0700) < 0 && errno != EEXIST)
        return error_system(errno, "mkdir", "%s", root);
    struct error *error = NULL;
    for (int attempt = 0; attempt < BUNDLE_ATTEMPTS; attempt++) {
        if (mkdir(directory, 0700) < 0 && errno != EEXIST)
            return error_system(errno, "mkdir", "%s", directory);
        error_free(error);
        error = sandbox_bundle_make(bundle, request, policy);
        if (error == NULL || error->number != ENOENT || access(directory, F_OK) == 0)
            break;
    }
    return error;
}

static void bundle_remove(const char *root, const char *bundle) {
    memory_owned char *directory = text_formatted("%s/.sandboxes", root);
    sandbox_bundle_remove(bundle);
    (void)!rmdir(directory); /* ENOTEMPTY: another sandbox's */
}

/* What was left out of the policy, which its user would otherwise learn from the log alone: a project's own
 * file that nobody has trusted. */
static void remarks_say(const struct policy *policy) {
    for (size_t i = 0; i < policy->remarks_count; i++)
        fprintf(stderr, "pinfold: %s\n", policy->remarks[i].message);
}

static struct error *run(const struct runtime_options *runtime, const char *id, const char *bundle,
                         const struct sandbox_request *request, int *exit_status) {
    struct policy *policy = NULL;
    TRY(container_policy(runtime, NULL, &policy));
    remarks_say(policy);
    struct error *error = bundle_make(runtime->root, bundle, request, policy);
    policy_free(policy);
    if (error == NULL) {
        struct create_options create = {.id = id, .bundle = bundle, .attended = true};
        created_owned struct created created = {.pidfd = -1, .terminal = -1};
        error = container_create(runtime, &create, &created);
        if (error == NULL)
            error = cli_attend(&created, false, exit_status);
    }
    bundle_remove(runtime->root, bundle);
    return error;
}

struct error *sandbox_command(const struct global_options *global, int argc, char **argv, int *exit_status) {
    struct runtime_options runtime = global->runtime;
    const char *workspace = ".", *given_id = NULL;
    string_list_owned struct string_list wanted = {0};
    bool help;
    int first;
    const struct option options[] = {
        {"workspace", 'w', OPTION_VALUE, &workspace, "the directory that the command works in (.), writable"},
        {"policy", 'p', OPTION_VALUE, &runtime.policy_given, "the policy"},
        {"env", 'e', OPTION_LIST, &wanted, "NAME or NAME=VALUE, one more variable to pass"},
        {"id", 0, OPTION_VALUE, &given_id, "the container's ID (sandbox-XXXXXXXX)"},
        {NULL, 0, OPTION_FLAG, NULL, NULL},
    };
    TRY(options_parse("sandbox", options, argc, argv, &first, &help));
    if (help) {
        options_print("pinfold sandbox [OPTIONS] [--] COMMAND...", options);
        return NULL;
    }
    if (first >= argc)
        return error_new(ERROR_USAGE, "sandbox: expected a command, as in: pinfold sandbox -- make test");
    memory_owned char *resolved = NULL;
    TRY(workspace_resolve(workspace, &resolved));
    runtime.workspace = resolved;
    runtime.sandbox = true;
    struct sandbox_request request = {.workspace = resolved,
                                      .caller_environment = environ,
                                      .terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)};
    for (int i = first; i < argc; i++)
        string_list_append(&request.command, argv[i]);
    TRY(environment_resolve(&wanted, &request.environment));
    uint32_t random = 0;
    (void)!getrandom(&random, sizeof random, 0);
    memory_owned char *id = given_id ? memory_copy_string(given_id) : text_formatted("sandbox-%08x", random);
    TRY(container_id_check(id));
    memory_owned char *bundle = text_formatted("%s/.sandboxes/%s", runtime.root, id);
    return run(&runtime, id, bundle, &request, exit_status);
}
