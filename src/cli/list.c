#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/cli.h"
#include "cli/options.h"

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
    TRY(options_parse_anywhere("list", options, argc, argv, &first, &help));
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
        struct error *error =
            entries[i]->d_name[0] == '.'
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
