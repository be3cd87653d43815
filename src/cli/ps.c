#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "cli/options.h"

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
