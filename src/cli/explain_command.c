#include <stdio.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/explain.h"
#include "cli/options.h"
#include "container/enforcement.h"

/* Of a container that is there: what create has left. */
static struct error *stored(const struct global_options *global, const char *id, struct enforcement **out) {
    container_owned struct container *container = NULL;
    TRY(container_open(global->runtime.root, id, CONTAINER_UNLOCKED, &container));
    text_owned struct text bytes = {0};
    struct error *error = file_read(container->directory, ENFORCEMENT_FILE, SCHEMA_BYTES_MAX, &bytes);
    if (error != NULL && container->state != NULL && !container->state->confined) {
        error_free(error);
        return error_new(ERROR_INVALID,
                         "container %s: policy %s confines nothing, so there is nothing to explain", id,
                         container->state->policy != NULL ? container->state->policy : "unconfined");
    }
    TRY(error);
    void *document = NULL;
    TRY(schema_read(&enforcement_schema, ENFORCEMENT_FILE, text_string(&bytes), bytes.length, &document));
    *out = document;
    return NULL;
}

static struct error *prospective(const struct global_options *global, const char *bundle, const char *config,
                                 bool with_config, struct enforcement **out) {
    prepared_owned struct prepared prepared = {0};
    TRY(container_prepare(&global->runtime, bundle, config, &prepared));
    *out = enforcement_make(prepared.hardened, prepared.policy, prepared.facts);
    if (with_config)
        (*out)->config = oci_config_copy(prepared.hardened->config);
    return NULL;
}

struct error *explain_command(const struct global_options *global, int argc, char **argv, int *exit_status) {
    (void)exit_status;
    const char *bundle = NULL, *config = NULL, *policy = NULL;
    bool json = false, help;
    int first;
    const struct option options[] = {
        {"bundle", 'b', OPTION_VALUE, &bundle, "the bundle's directory (.)"},
        {"config", 'f', OPTION_VALUE, &config, "the configuration (config.json in it)"},
        {"policy", 0, OPTION_VALUE, &policy, "another policy than the usual one"},
        {"json", 0, OPTION_FLAG, &json, "as a JSON object"},
        {NULL, 0, OPTION_FLAG, NULL, NULL}};
    TRY(options_parse("explain", options, argc, argv, &first, &help));
    if (help) {
        options_print("pinfold explain [OPTIONS] [ID]", options);
        return NULL;
    }
    struct global_options with = *global;
    if (policy != NULL)
        with.runtime.policy_given = policy;
    struct enforcement *enforcement = NULL;
    if (first < argc && (bundle != NULL || config != NULL || policy != NULL))
        return error_new(ERROR_USAGE, "explain: a container's ID, or a bundle and a policy, not both");
    if (first < argc) {
        const char *id;
        TRY(cli_container_id("explain", argc, argv, first, &id));
        TRY(stored(&with, id, &enforcement));
    } else {
        TRY(prospective(&with, bundle != NULL ? bundle : ".", config, json, &enforcement));
    }
    explain_print(enforcement, json, stdout);
    enforcement_free(enforcement);
    return NULL;
}
