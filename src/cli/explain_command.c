#include <stdio.h>

#include "cli/cli.h"
#include "cli/explain.h"
#include "cli/options.h"

struct error *explain_command(const struct global_options *global, int argc, char **argv, int *exit_status) {
    (void)exit_status;
    const char *bundle = ".", *config = NULL;
    bool json = false, help;
    int first;
    const struct option options[] = {
        {"bundle", 'b', OPTION_VALUE, &bundle, "the bundle's directory (.)"},
        {"config", 'f', OPTION_VALUE, &config, "the configuration (config.json in it)"},
        {"json", 0, OPTION_FLAG, &json, "as a JSON object"},
        {NULL, 0, OPTION_FLAG, NULL, NULL}};
    TRY(options_parse("explain", options, argc, argv, &first, &help));
    if (help) {
        options_print("pinfold explain [OPTIONS]", options);
        return NULL;
    }
    prepared_owned struct prepared prepared = {0};
    TRY(container_prepare(&global->runtime, bundle, config, &prepared));
    explain_print(prepared.hardened, prepared.policy, prepared.facts, json, stdout);
    return NULL;
}
