#include "cli/why.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "harden/parts.h"
#include "policy/match.h"

#define EXIT_DENIED 3

static void answer_clear(struct why_answer *answer) {
    free(answer->what);
    free(answer->rule);
    free(answer->origin);
    free(answer->remedy);
    free(answer->note);
}

/* --- a variable --- */

/* Which line lets it through, if one does. */
static bool granted(const struct policy *policy, const char *name, struct why_answer *answer) {
    if (policy->inherit_user_credentials) {
        answer->rule = memory_copy_string("credentials.inherit_user_credentials: true");
        answer->origin = memory_copy_string(policy_origin(policy, POLICY_CREDENTIALS_INHERIT));
        return true;
    }
    for (size_t i = 0; i < policy->environment.values.count; i++)
        if (match_name(policy->environment.values.items[i], name)) {
            answer->rule = text_formatted("credentials.environment: %s", policy->environment.values.items[i]);
            answer->origin = memory_copy_string(policy_list_origin(&policy->environment, i));
            return true;
        }
    return false;
}

static const char *value_in(const struct oci_config *config, const char *name) {
    size_t length = strlen(name);
    for (size_t i = 0; config->process != NULL && i < config->process->env.count; i++) {
        const char *item = config->process->env.items[i];
        if (strncmp(item, name, length) == 0 && item[length] == '=')
            return item + length + 1;
    }
    return NULL;
}

/* NAME, or NAME=VALUE: the value's shape counts too. Without one, the bundle's, else any. */
static struct error *why_variable(const struct prepared *prepared, const char *subject,
                                  struct why_answer *answer) {
    memory_owned char *name = text_formatted("%.*s", (int)strcspn(subject, "="), subject);
    const char *value =
        strchr(subject, '=') != NULL ? strchr(subject, '=') + 1 : value_in(prepared->config, name);
    if (name[0] == '\0')
        return error_new(ERROR_USAGE, "why: expected ENV=NAME");
    answer->what = text_formatted("the environment variable %s", name);
    const char *reason =
        harden_environment_reason(prepared->policy, name, value != NULL ? value : "some value");
    answer->allowed = reason == NULL;
    if (reason != NULL) {
        answer->rule = memory_copy_string("credentials.inherit_user_credentials: false");
        answer->origin = memory_copy_string(policy_origin(prepared->policy, POLICY_CREDENTIALS_INHERIT));
        answer->remedy = harden_remedy("credentials", "environment", name);
        answer->note = memory_copy_string(reason);
    } else if (!granted(prepared->policy, name, answer)) {
        answer->rule = memory_copy_string("no rule takes it out");
        if (value == NULL)
            answer->note =
                memory_copy_string("unless its value has the shape of a secret: ask with ENV=NAME=VALUE");
    }
    return NULL;
}

/* --- the container that is asked about --- */

/* None was named: one as engines make them, with a layer of its own and root as its user. */
static struct error *ordinary(const struct runtime_options *runtime, struct prepared *out) {
    static const char text[] =
        "{\"ociVersion\":\"1.0.2\",\"process\":{\"user\":{\"uid\":0,\"gid\":0},\"args\":[\"sh\"],\"cwd\":\"/"
        "\"},"
        "\"root\":{\"path\":\"rootfs\"},\"mounts\":["
        "{\"destination\":\"/proc\",\"type\":\"proc\",\"source\":\"proc\"},"
        "{\"destination\":\"/dev\",\"type\":\"tmpfs\",\"source\":\"tmpfs\"},"
        "{\"destination\":\"/sys\",\"type\":\"sysfs\",\"source\":\"sysfs\"}],"
        "\"linux\":{\"namespaces\":[{\"type\":\"network\"},{\"type\":\"mount\"},{\"type\":\"pid\"},"
        "{\"type\":\"ipc\"},{\"type\":\"uts\"},{\"type\":\"cgroup\"}]}}";
    *out = (struct prepared){0};
    TRY(oci_config_parse("an ordinary container", text, sizeof text - 1, &out->config));
    TRY(container_policy(runtime, NULL, &out->policy));
    struct facts *facts = memory_zeroed(sizeof *facts);
    out->facts = facts;
    facts->root_fd = -1;
    facts->root_is_mount = facts->has_landlock = facts->has_fanotify = true;
    facts->container_home = memory_copy_string("/root");
    facts->mounts_count = out->config->mounts_count;
    facts->mounts = memory_zeroed(facts->mounts_count * sizeof *facts->mounts);
    for (size_t i = 0; i < facts->mounts_count; i++)
        facts->mounts[i].source_fd = -1;
    facts->namespaces_count = out->config->linux_config->namespaces_count;
    facts->namespace_is_host = memory_zeroed(facts->namespaces_count * sizeof *facts->namespace_is_host);
    return harden(out->config, out->policy, facts, &out->hardened);
}

/* A container that is there: its bundle, under the policy that it was created with. */
static struct error *of_container(const struct runtime_options *runtime, const char *id,
                                  struct prepared *out) {
    container_owned struct container *container = NULL;
    TRY(container_open(runtime->root, id, CONTAINER_UNLOCKED, &container));
    if (container->state == NULL)
        return error_new(ERROR_INVALID, "container %s has no state: its create was killed", id);
    return container_prepare_again(container, out);
}

/* --- the answer --- */

static void print_answer(const struct why_answer *answer) {
    printf("%s: %s\n  by %s", answer->allowed ? "allow" : "deny", answer->what, answer->rule);
    if (answer->origin != NULL && answer->origin[0] != '\0')
        printf(" (%s)", answer->origin);
    putchar('\n');
    if (answer->note != NULL)
        printf("  %s\n", answer->note);
    if (answer->remedy != NULL)
        printf("  allow with  %s\n", answer->remedy);
}

static void print_answer_json(const struct why_answer *answer) {
    json_owned struct json_writer json = {0};
    json_object_begin(&json);
    json_member_boolean(&json, "allowed", answer->allowed);
    json_member_string(&json, "what", answer->what);
    json_member_string_optional(&json, "rule", answer->rule);
    json_member_string_optional(&json, "origin", answer->origin);
    json_member_string_optional(&json, "note", answer->note);
    json_member_string_optional(&json, "remedy", answer->remedy);
    json_object_end(&json);
    puts(text_string(&json.text));
}

static struct error *answer_one(const struct prepared *prepared, const char *subject, bool reads,
                                struct why_answer *answer) {
    if (!prepared->hardened->confined) {
        answer->allowed = true;
        answer->what = memory_copy_string(subject);
        answer->rule = text_formatted("policy %s, which confines nothing", prepared->policy->name);
        return NULL;
    }
    if (text_starts_with(subject, "ENV="))
        return why_variable(prepared, subject + strlen("ENV="), answer);
    if (subject[0] == '/')
        return why_path(prepared, subject, reads, answer);
    if (why_is_call(subject))
        return why_call(prepared, subject, answer);
    return why_host(prepared, subject, answer);
}

static void usage(const struct option *options) {
    options_print("pinfold why [OPTIONS] HOST[:PORT]|PATH|SYSCALL[(ARGUMENT, ...)]|ENV=NAME[=VALUE]...",
                  options);
    puts("\nWithout a bundle or a container it is about one as engines make them. Of several questions each "
         "is "
         "answered.\nExit status: 0 all are allowed, 3 one is denied, 1 an error.");
}

struct error *why_command(const struct global_options *global, int argc, char **argv, int *exit_status) {
    const char *bundle = NULL, *policy = NULL, *id = NULL;
    bool json = false, reads = false, help;
    int first;
    const struct option options[] = {
        {"bundle", 'b', OPTION_VALUE, &bundle, "a bundle's directory"},
        {"container", 'c', OPTION_VALUE, &id, "a container's ID, under the policy that it was created with"},
        {"policy", 0, OPTION_VALUE, &policy, "another policy than the usual one"},
        {"read", 'r', OPTION_FLAG, &reads, "reading a PATH (writing)"},
        {"json", 0, OPTION_FLAG, &json, "as JSON objects"},
        {NULL, 0, OPTION_FLAG, NULL, NULL}};
    TRY(options_parse("why", options, argc, argv, &first, &help));
    if (help) {
        usage(options);
        return NULL;
    }
    if (first >= argc)
        return error_new(ERROR_USAGE,
                         "why: expected HOST[:PORT], PATH, SYSCALL or ENV=NAME (see pinfold why --help)");
    if (id != NULL && (bundle != NULL || policy != NULL))
        return error_new(ERROR_USAGE, "why: a container, or a bundle and a policy, not both");
    struct runtime_options runtime = global->runtime;
    if (policy != NULL)
        runtime.policy_given = policy;
    prepared_owned struct prepared prepared = {0};
    if (id != NULL)
        TRY(of_container(&runtime, id, &prepared));
    else if (bundle != NULL)
        TRY(container_prepare(&runtime, bundle, NULL, &prepared));
    else
        TRY(ordinary(&runtime, &prepared));
    for (int i = first; i < argc; i++) {
        struct why_answer answer = {0};
        struct error *error = answer_one(&prepared, argv[i], reads, &answer);
        if (error == NULL) {
            (json ? print_answer_json : print_answer)(&answer);
            if (!answer.allowed)
                *exit_status = EXIT_DENIED;
        }
        answer_clear(&answer);
        TRY(error);
    }
    return NULL;
}
