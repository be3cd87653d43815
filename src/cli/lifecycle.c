/* start, state, kill, delete, list, ps, pause, resume, update: small commands over container/. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "cli/options.h"

static const struct option no_options[] = {{NULL, 0, OPTION_FLAG, NULL, NULL}};

/* For the commands that take nothing but an ID. */
static struct error *open_only(const struct global_options *global, const char *command, int argc, char **argv,
                               enum container_lock lock, struct container **out) {
    int first;
    bool help;
    const char *id;
    TRY(options_parse(command, no_options, argc, argv, &first, &help));
    if (help) {
        printf("usage: pinfold %s ID\n", command);
        exit(0);
    }
    TRY(cli_container_id(command, argc, argv, first, &id));
    return container_open(global->runtime.root, id, lock, out);
}

struct error *start_command(const struct global_options *global, int argc, char **argv, int *exit_status) {
    (void)exit_status;
    container_owned struct container *container = NULL;
    TRY(open_only(global, "start", argc, argv, CONTAINER_LOCKED, &container));
    return container_start(container);
}

struct error *state_command(const struct global_options *global, int argc, char **argv, int *exit_status) {
    (void)exit_status;
    container_owned struct container *container = NULL;
    TRY(open_only(global, "state", argc, argv, CONTAINER_UNLOCKED, &container));
    memory_owned char *state = container_state_text(container, container_status(container));
    puts(state);
    return NULL;
}

/* "9", "KILL", "SIGKILL", "RTMIN+3". */
static struct error *signal_parse(const char *word, int *out) {
    if (isdigit((unsigned char)word[0])) {
        char *end;
        long number = strtol(word, &end, 10);
        if (*end != '\0' || number < 0 || number >= NSIG)
            return error_new(ERROR_USAGE, "kill: unknown signal \"%s\"", word);
        *out = (int)number;
        return NULL;
    }
    const char *name = strncasecmp(word, "SIG", 3) == 0 ? word + 3 : word;
    for (int number = 1; number < SIGRTMIN; number++) {
        const char *known = sigabbrev_np(number);
        if (known != NULL && strcasecmp(known, name) == 0) {
            *out = number;
            return NULL;
        }
    }
    bool minimum = strncasecmp(name, "RTMIN", 5) == 0, maximum = strncasecmp(name, "RTMAX", 5) == 0;
    if (minimum || maximum) {
        int number = (minimum ? SIGRTMIN : SIGRTMAX) + (name[5] ? atoi(name + 5) : 0);
        if (number >= SIGRTMIN && number <= SIGRTMAX) {
            *out = number;
            return NULL;
        }
    }
    return error_new(ERROR_USAGE, "kill: unknown signal \"%s\"", word);
}

struct error *kill_command(const struct global_options *global, int argc, char **argv, int *exit_status) {
    (void)exit_status;
    bool all = false, help;
    int first, signal = SIGTERM;
    const struct option options[] = {{"all", 'a', OPTION_FLAG, &all, "every process of the container"},
                                     {NULL, 0, OPTION_FLAG, NULL, NULL}};
    TRY(options_parse("kill", options, argc, argv, &first, &help));
    if (help) {
        options_print("pinfold kill [--all] ID [SIGNAL]", options);
        return NULL;
    }
    if (argc - first < 1 || argc - first > 2)
        return error_new(ERROR_USAGE, "\"kill\" requires the container's ID and at most a signal");
    if (argc - first == 2)
        TRY(signal_parse(argv[first + 1], &signal));
    container_owned struct container *container = NULL;
    TRY(container_open(global->runtime.root, argv[first], CONTAINER_UNLOCKED, &container));
    return container_kill(container, signal, all);
}

struct error *delete_command(const struct global_options *global, int argc, char **argv, int *exit_status) {
    (void)exit_status;
    bool force = false, help;
    int first;
    const char *id;
    const struct option options[] = {{"force", 'f', OPTION_FLAG, &force, "kill it first; what is missing is no error"},
                                     {NULL, 0, OPTION_FLAG, NULL, NULL}};
    TRY(options_parse("delete", options, argc, argv, &first, &help));
    if (help) {
        options_print("pinfold delete [--force] ID", options);
        return NULL;
    }
    TRY(cli_container_id("delete", argc, argv, first, &id));
    container_owned struct container *container = NULL;
    struct error *error = container_open(global->runtime.root, id, CONTAINER_LOCKED, &container);
    if (error != NULL && error->kind == ERROR_CONTAINER_MISSING && force) {
        error_ignore(error); /* podman calls this after a create that failed */
        return NULL;
    }
    TRY(error);
    return container_delete(&global->runtime, container, force);
}

static void list_row(const struct container *container, const char *status) {
    const struct container_state *state = container->state;
    printf("%-30s %-8lld %-10s %-40s %s\n", container->id,
           state && strcmp(status, "stopped") != 0 ? (long long)state->init.pid : 0LL, status,
           state && state->bundle ? state->bundle : "", state && state->created ? state->created : "");
}

struct error *list_command(const struct global_options *global, int argc, char **argv, int *exit_status) {
    (void)exit_status;
    bool quiet = false, help;
    int first;
    const char *format = "table";
    const struct option options[] = {{"quiet", 'q', OPTION_FLAG, &quiet, "IDs only"},
                                     {"format", 'f', OPTION_VALUE, &format, "table or json"},
                                     {NULL, 0, OPTION_FLAG, NULL, NULL}};
    TRY(options_parse("list", options, argc, argv, &first, &help));
    if (help) {
        options_print("pinfold list [OPTIONS]", options);
        return NULL;
    }
    bool as_json = strcmp(format, "json") == 0;
    if (!as_json && strcmp(format, "table") != 0)
        return error_new(ERROR_USAGE, "list --format: expected table or json, found \"%s\"", format);
    if (!as_json && !quiet)
        printf("%-30s %-8s %-10s %-40s %s\n", "ID", "PID", "STATUS", "BUNDLE", "CREATED");
    json_owned struct json_writer json = {0};
    json_array_begin(&json);
    struct dirent **entries = NULL;
    int count = scandir(global->runtime.root, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        container_owned struct container *container = NULL;
        struct error *error = entries[i]->d_name[0] == '.'
                                  ? error_known(ERROR_ID_FORMAT, NULL)
                                  : container_open(global->runtime.root, entries[i]->d_name, CONTAINER_UNLOCKED, &container);
        free(entries[i]);
        if (error != NULL) {
            error_ignore(error); /* removed meanwhile, or not a container's */
            continue;
        }
        const char *status = container_status(container);
        if (as_json)
            container_state_write(container, status, &json);
        else if (quiet)
            puts(container->id);
        else
            list_row(container, status);
    }
    free(entries);
    json_array_end(&json);
    if (as_json)
        puts(text_string(&json.text));
    return NULL;
}

struct error *ps_command(const struct global_options *global, int argc, char **argv, int *exit_status) {
    (void)exit_status;
    bool help;
    int first;
    const char *format = "table";
    const struct option options[] = {{"format", 'f', OPTION_VALUE, &format, "table or json"},
                                     {NULL, 0, OPTION_FLAG, NULL, NULL}};
    TRY(options_parse("ps", options, argc, argv, &first, &help));
    if (help || argc - first < 1)
        return error_new(ERROR_USAGE, "usage: pinfold ps [--format json|table] ID");
    container_owned struct container *container = NULL;
    TRY(container_open(global->runtime.root, argv[first], CONTAINER_UNLOCKED, &container));
    if (container->state == NULL || container->state->cgroup == NULL)
        return error_known(ERROR_NOT_RUNNING, NULL);
    memory_owned pid_t *pids = NULL;
    size_t count = 0;
    TRY(cgroup_processes(container->state->cgroup, &pids, &count));
    if (strcmp(format, "json") == 0) {
        json_owned struct json_writer json = {0};
        json_array_begin(&json);
        for (size_t i = 0; i < count; i++)
            json_integer(&json, pids[i]);
        json_array_end(&json);
        puts(text_string(&json.text));
        return NULL;
    }
    puts("PID");
    for (size_t i = 0; i < count; i++)
        printf("%d\n", (int)pids[i]);
    return NULL;
}

static struct error *freeze(const struct global_options *global, const char *command, int argc, char **argv,
                            bool frozen) {
    container_owned struct container *container = NULL;
    TRY(open_only(global, command, argc, argv, CONTAINER_LOCKED, &container));
    const char *status = container_status(container);
    const char *needed = frozen ? "running" : "paused";
    if (strcmp(status, needed) != 0 && !(frozen && strcmp(status, "created") == 0))
        return error_new(ERROR_INVALID, "cannot %s a container that is %s: expected %s", command, status, needed);
    return cgroup_freeze(container->state->cgroup, frozen);
}

struct error *pause_command(const struct global_options *global, int argc, char **argv, int *exit_status) {
    (void)exit_status;
    return freeze(global, "pause", argc, argv, true);
}

struct error *resume_command(const struct global_options *global, int argc, char **argv, int *exit_status) {
    (void)exit_status;
    return freeze(global, "resume", argc, argv, false);
}

struct error *update_command(const struct global_options *global, int argc, char **argv, int *exit_status) {
    (void)exit_status;
    bool help;
    int first;
    const char *resources = NULL, *id;
    const struct option options[] = {
        {"resources", 'r', OPTION_VALUE, &resources, "a file with the resources document, - for standard input"},
        {NULL, 0, OPTION_FLAG, NULL, NULL}};
    TRY(options_parse("update", options, argc, argv, &first, &help));
    if (help) {
        options_print("pinfold update --resources FILE ID", options);
        return NULL;
    }
    TRY(cli_container_id("update", argc, argv, first, &id));
    if (resources == NULL)
        return error_new(ERROR_USAGE, "update: needs --resources FILE");
    container_owned struct container *container = NULL;
    TRY(container_open(global->runtime.root, id, CONTAINER_LOCKED, &container));
    if (strcmp(container_status(container), "stopped") == 0)
        return error_known(ERROR_NOT_RUNNING, NULL);
    text_owned struct text bytes = {0};
    TRY(file_read(AT_FDCWD, strcmp(resources, "-") == 0 ? "/proc/self/fd/0" : resources, SCHEMA_BYTES_MAX, &bytes));
    struct oci_resources *parsed = NULL;
    TRY(oci_resources_parse("resources", text_string(&bytes), bytes.length, &parsed));
    struct error *error = cgroup_apply(container->state->cgroup, parsed);
    oci_resources_free(parsed);
    return error;
}
