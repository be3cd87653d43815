#include "policy/resolve.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "policy/files.h"
#include "policy/keys.h"
#include "policy/narrow.h"
#include "policy/settings.h"

#define EXTENDS_DEPTH_MAX 8
#define EXTENDS_FILES_MAX 64
#define NAME_MAX_BYTES 64
#define USER_DIRECTORY ".config/pinfold"

struct policy_places policy_places_default(const char *owner_home, bool root) {
    return (struct policy_places){.configuration = PINFOLD_CONFIGURATION_DIRECTORY,
                                  .installed = PINFOLD_POLICY_DIRECTORY,
                                  .owner_home = owner_home,
                                  .root = root};
}

/* A policy on its way through the documents. */
struct resolution {
    const struct policy_places *places;
    struct string_list pins;
    struct policy_file *files; /* all that were read */
    size_t files_count;
};

static void resolution_begin(const struct policy_places *places, struct resolution *resolution) {
    *resolution = (struct resolution){.places = places};
    string_list_append_owned(&resolution->pins, text_formatted("%s/trusted", places->configuration));
    if (places->owner_home != NULL)
        string_list_append_owned(&resolution->pins,
                                 text_formatted("%s/" USER_DIRECTORY "/trusted", places->owner_home));
}

static void resolution_end(struct resolution *resolution) {
    for (size_t i = 0; i < resolution->files_count; i++) {
        free(resolution->files[i].path);
        free(resolution->files[i].chain);
    }
    free(resolution->files);
    string_list_free(&resolution->pins);
}

static bool is_name(const char *given) {
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.";
    size_t length = strlen(given);
    return length > 0 && length <= NAME_MAX_BYTES && given[0] != '.' && given[0] != '-' &&
           strspn(given, allowed) == length && !text_ends_with(given, ".yaml") &&
           !text_ends_with(given, ".yml") && !text_ends_with(given, ".json");
}

static bool is_built_in(const char *name) {
    return strcmp(name, "agent") == 0 || strcmp(name, "unconfined") == 0;
}

/* The user's, the machine's, those that came with the program: the first one counts. */
static void directories_list(const struct policy_places *places, struct string_list *directories) {
    if (places->owner_home != NULL)
        string_list_append_owned(directories,
                                 text_formatted("%s/" USER_DIRECTORY "/policies", places->owner_home));
    string_list_append_owned(directories, text_formatted("%s/policies", places->configuration));
    string_list_append(directories, places->installed);
}

static struct error *unknown(const struct policy_places *places, const char *given) {
    string_list_owned struct string_list names = {0}, paths = {0};
    policy_names_list(places, &names, &paths);
    text_owned struct text known = {0};
    text_append(&known, "agent, unconfined");
    for (size_t i = 0; i < names.count; i++)
        if (!is_built_in(names.items[i]))
            text_format(&known, ", %s", names.items[i]);
    string_list_owned struct string_list directories = {0};
    text_owned struct text looked = {0};
    directories_list(places, &directories);
    for (size_t i = 0; i < directories.count; i++)
        text_format(&looked, "%s%s", i == 0 ? "" : ", ", directories.items[i]);
    return error_new(
        ERROR_INVALID,
        "policy \"%.200s\" is not known; the known policies are: %s (others are looked for in %s; a file is "
        "given by its path)",
        given, text_string(&known), text_string(&looked));
}

/* Reads the file that a name or a path means. `beside` is the file that extends it, or NULL. */
static struct error *find(struct resolution *resolution, const char *given, const char *beside,
                          struct policy_bytes *out) {
    const char *slash = beside != NULL ? strrchr(beside, '/') : NULL;
    int directory = slash != NULL ? (int)(slash - beside) : 0;
    if (!is_name(given)) {
        memory_owned char *path = beside != NULL && given[0] != '/'
                                      ? text_formatted("%.*s/%s", directory, beside, given)
                                      : memory_copy_string(given);
        TRY(policy_file_read(path, resolution->places, &resolution->pins, out));
        return out->missing ? error_new(ERROR_INVALID, "policy %s: there is no such file", path) : NULL;
    }
    string_list_owned struct string_list directories = {0};
    directories_list(resolution->places, &directories);
    /* Presets that extend each other, read from where they lie before they are installed. */
    if (beside != NULL)
        string_list_append_owned(&directories, text_formatted("%.*s", directory, beside));
    for (size_t i = 0; i < directories.count; i++) {
        memory_owned char *path = text_formatted("%s/%s.yaml", directories.items[i], given);
        TRY(policy_file_read(path, resolution->places, &resolution->pins, out));
        if (!out->missing)
            return NULL;
    }
    return unknown(resolution->places, given);
}

static void keep_file(struct resolution *resolution, struct policy_bytes *bytes) {
    resolution->files =
        memory_resize(resolution->files, resolution->files_count + 1, sizeof *resolution->files);
    resolution->files[resolution->files_count] = bytes->file;
    bytes->file = (struct policy_file){0};
    resolution->files_count++;
}

struct extending {
    const struct extending *by;
    const char *path;
};

static struct error *document_complete(struct resolution *resolution, struct policy_bytes *bytes,
                                       const struct extending *by, struct policy_document **out);

static struct error *extend(struct resolution *resolution, const char *given, const char *origin,
                            const struct extending *by, struct policy_document *joined) {
    if (strcmp(given, "agent") == 0)
        return NULL; /* what everything begins with */
    if (strcmp(given, "unconfined") == 0)
        return error_new(ERROR_REFUSED,
                         "%s: extends: unconfined is for --policy and the name of a link alone", origin);
    struct policy_bytes bytes;
    TRY(error_context(find(resolution, given, by->path, &bytes), "%s: extends", origin));
    policy_document_owned struct policy_document *document = NULL;
    struct error *error = document_complete(resolution, &bytes, by, &document);
    policy_bytes_clear(&bytes);
    if (error != NULL)
        return error_context(error, "%s: extends", origin);
    policy_document_join(joined, document);
    return NULL;
}

/* The document in `bytes`, over all that it extends. */
static struct error *document_complete(struct resolution *resolution, struct policy_bytes *bytes,
                                       const struct extending *by, struct policy_document **out) {
    memory_owned char *path = memory_copy_string(bytes->file.path);
    const struct extending here = {.by = by, .path = path};
    int depth = 0;
    for (const struct extending *above = by; above != NULL; above = above->by, depth++)
        if (strcmp(above->path, path) == 0)
            return error_new(ERROR_INVALID, "%s extends itself", path);
    if (depth >= EXTENDS_DEPTH_MAX || resolution->files_count >= EXTENDS_FILES_MAX)
        return error_new(ERROR_INVALID, "%s: more policies extend each other than %s", path,
                         depth >= EXTENDS_DEPTH_MAX ? "8, one below the other" : "64");
    keep_file(resolution, bytes);
    policy_document_owned struct policy_document *own = NULL;
    TRY(policy_document_read(path, text_string(&bytes->text), bytes->text.length, &own));
    if (own->extends.values.count == 0) {
        *out = own;
        own = NULL;
        return NULL;
    }
    struct policy_document *joined = NULL;
    TRY(policy_document_read(path, "", 0, &joined));
    struct error *error = NULL;
    for (size_t i = 0; error == NULL && i < own->extends.values.count; i++)
        error = extend(resolution, own->extends.values.items[i], policy_list_origin(&own->extends, i), &here,
                       joined);
    if (error != NULL) {
        policy_document_free(joined);
        return error;
    }
    policy_document_join(joined, own);
    *out = joined;
    return NULL;
}

static struct error *load(struct resolution *resolution, const char *given, struct policy_document **out,
                          char **path) {
    struct policy_bytes bytes;
    TRY(find(resolution, given, NULL, &bytes));
    *path = memory_copy_string(bytes.file.path);
    struct error *error = document_complete(resolution, &bytes, NULL, out);
    policy_bytes_clear(&bytes);
    if (error != NULL) {
        free(*path);
        *path = NULL;
    }
    return error;
}

struct error *policy_load(const struct policy_places *places, const char *given, struct policy_document **out,
                          char **path) {
    struct resolution resolution;
    resolution_begin(places, &resolution);
    *path = NULL;
    struct error *error = load(&resolution, given, out, path);
    resolution_end(&resolution);
    return error;
}

/* --- layers --- */

/* "npm" of "npm", "/etc/pinfold/policies/npm.yaml" and "./npm.yaml". */
static char *name_of(const char *given) {
    const char *slash = strrchr(given, '/');
    const char *name = slash != NULL ? slash + 1 : given;
    static const char *const endings[] = {".yaml", ".yml", ".json", NULL};
    size_t length = strlen(name);
    for (size_t i = 0; endings[i] != NULL; i++)
        if (text_ends_with(name, endings[i]) && length > strlen(endings[i]))
            return text_formatted("%.*s", (int)(length - strlen(endings[i])), name);
    return memory_copy_string(name);
}

/* Puts a named policy, or a file, over *policy. A built-in one replaces all that was there. */
static struct error *layer_named(struct resolution *resolution, const char *given, struct policy **policy) {
    if (is_built_in(given)) {
        struct policy *built_in = NULL;
        TRY(policy_select(given, &built_in));
        policy_free(*policy);
        *policy = built_in;
        return NULL;
    }
    policy_document_owned struct policy_document *document = NULL;
    memory_owned char *path = NULL;
    TRY(load(resolution, given, &document, &path));
    if (!(*policy)->confined) { /* the link said unconfined, the flag says what */
        policy_free(*policy);
        TRY(policy_select("agent", policy));
    }
    policy_document_apply(document, *policy);
    free((*policy)->name);
    (*policy)->name = name_of(given);
    memory_replace_string(&(*policy)->origin, path);
    return NULL;
}

/* A file that need not be there. */
static struct error *layer_optional(struct resolution *resolution, const char *path, struct policy *policy) {
    struct policy_bytes bytes;
    TRY(policy_file_read(path, resolution->places, &resolution->pins, &bytes));
    if (bytes.missing)
        return NULL;
    policy_document_owned struct policy_document *document = NULL;
    struct error *error = document_complete(resolution, &bytes, NULL, &document);
    policy_bytes_clear(&bytes);
    TRY(error);
    policy_document_apply(document, policy);
    memory_replace_string(&policy->origin, path);
    return NULL;
}

/* The project's own policy, if it was trusted as it stands. */
static struct error *layer_project(struct resolution *resolution, const char *workspace,
                                   struct policy *policy) {
    memory_owned char *path = text_formatted("%s/" POLICY_PROJECT_FILE, workspace);
    struct error *error = layer_optional(resolution, path, policy);
    if (error == NULL || error->kind != ERROR_REFUSED)
        return error;
    policy_remark(policy, "policy.annotation.ignored", POLICY_PROJECT_FILE, path, "%s", error->message);
    error_ignore(error); /* it counts for nothing, and the remark says so */
    return NULL;
}

static bool has_directory(const char *path) {
    return access(path, F_OK) == 0;
}

static struct error *layer_machine(struct resolution *resolution, struct policy *policy) {
    const struct policy_places *places = resolution->places;
    if (has_directory(places->configuration)) {
        memory_owned char *path = text_formatted("%s/policy.yaml", places->configuration);
        TRY(layer_optional(resolution, path, policy));
    }
    if (places->owner_home != NULL) {
        memory_owned char *path = text_formatted("%s/" USER_DIRECTORY "/policy.yaml", places->owner_home);
        TRY(layer_optional(resolution, path, policy));
    }
    return NULL;
}

/* --- annotations --- */

static struct error *annotated_policy(struct resolution *resolution, const struct policy_settings *settings,
                                      const char *name, struct policy **policy) {
    if (strcmp(name, (*policy)->name) == 0)
        return NULL;
    if (is_name(name) && !is_built_in(name) && string_list_contains(&settings->selectable, name))
        return layer_named(resolution, name, policy);
    policy_remark(*policy, "policy.annotation.ignored", POLICY_ANNOTATION "policy", "config.yaml: selectable",
                  "The annotation " POLICY_ANNOTATION "policy asks for the policy \"%.100s\", which is not "
                  "selectable.",
                  name);
    return NULL;
}

/* Those that are not about the policy; "egress" is what hooks/ runs for under another runtime. */
static bool is_other_annotation(const char *name) {
    return strcmp(name, "run-id") == 0 || strcmp(name, "policy") == 0 || strcmp(name, "egress") == 0;
}

static struct error *annotation_apply(const struct policy_settings *settings, const char *annotation,
                                      const char *value, struct policy *policy) {
    enum policy_key key = policy_key_find(annotation + strlen(POLICY_ANNOTATION));
    if (key == POLICY_KEY_COUNT)
        return error_new(ERROR_INVALID,
                         "annotation %.200s: there is no such key of a policy (pinfold policy schema lists "
                         "them)",
                         annotation);
    memory_owned char *origin = text_formatted("annotation %s", annotation);
    policy_document_owned struct policy_document *document = NULL;
    TRY(policy_document_read_value(origin, key, value, &document));
    if (settings->annotations_full)
        policy_document_apply(document, policy);
    else
        policy_narrow(policy, document, annotation);
    return NULL;
}

static struct error *layer_annotations(struct resolution *resolution, const struct string_map *annotations,
                                       struct policy **policy) {
    bool any = false;
    for (size_t i = 0; i < annotations->count; i++)
        any = any || text_starts_with(annotations->items[i].key, POLICY_ANNOTATION);
    if (!any || !(*policy)->confined)
        return NULL;
    policy_settings_owned struct policy_settings settings = {0};
    TRY(policy_settings_read(resolution->places, &settings));
    const char *name = string_map_get(annotations, POLICY_ANNOTATION "policy");
    if (name != NULL)
        TRY(annotated_policy(resolution, &settings, name, policy));
    for (size_t i = 0; i < annotations->count; i++) {
        const char *key = annotations->items[i].key;
        if (text_starts_with(key, POLICY_ANNOTATION) && !is_other_annotation(key + strlen(POLICY_ANNOTATION)))
            TRY(annotation_apply(&settings, key, annotations->items[i].value, *policy));
    }
    return NULL;
}

/* --- all together --- */

static struct error *ceiling_check(struct resolution *resolution, const struct policy *policy) {
    const char *configuration = resolution->places->configuration;
    if (!has_directory(configuration))
        return NULL;
    memory_owned char *path = text_formatted("%s/ceiling.yaml", configuration);
    struct policy_bytes bytes;
    TRY(policy_file_read(path, resolution->places, NULL, &bytes));
    if (bytes.missing)
        return NULL;
    policy_document_owned struct policy_document *ceiling = NULL;
    struct error *error = document_complete(resolution, &bytes, NULL, &ceiling);
    policy_bytes_clear(&bytes);
    TRY(error);
    return policy_ceiling_check(policy, ceiling);
}

static void finish(struct resolution *resolution, struct policy *policy) {
    if (string_list_contains(&policy->writable.values, "/")) {
        policy->filesystem_default = POLICY_ACCESS_ALLOW;
        memory_replace_string(&policy->origins[POLICY_FILESYSTEM_DEFAULT],
                              policy_origin(policy, POLICY_FILESYSTEM_WRITABLE));
    }
    if (!policy->confined)
        return;
    policy->files = resolution->files;
    policy->files_count = resolution->files_count;
    resolution->files = NULL;
    resolution->files_count = 0;
    policy_digest_update(policy);
}

static void uplink_default(struct policy *policy) {
    if (policy->uplink != POLICY_UPLINK_AUTO || policy->allowed_hosts.values.count == 0 ||
        policy->origins[POLICY_NETWORK_UPLINK] != NULL)
        return;
    policy->uplink = POLICY_UPLINK_HOST;
    memory_replace_string(&policy->origins[POLICY_NETWORK_UPLINK], "pinfold sandbox");
}

/* The file of an origin "FILE:LINE:COLUMN"; 0 for an origin that is none. */
static size_t origin_file_length(const char *origin) {
    size_t length = strlen(origin);
    for (int part = 0; part < 2; part++) {
        size_t digits = 0;
        while (digits < length && isdigit((unsigned char)origin[length - 1 - digits]))
            digits++;
        if (digits == 0 || digits + 1 >= length || origin[length - 1 - digits] != ':')
            return 0;
        length -= digits + 1;
    }
    return length;
}

/* A later or narrower `none` closes what others have listed; a file that says both at once does not say what
 * is meant. */
static struct error *none_check(const struct policy *policy) {
    const char *mode = policy_origin(policy, POLICY_NETWORK_MODE);
    size_t length = origin_file_length(mode);
    for (size_t i = 0;
         policy->network_mode == POLICY_NETWORK_NONE && length > 0 && i < policy->allowed_hosts.values.count;
         i++) {
        const char *origin = policy_list_origin(&policy->allowed_hosts, i);
        if (origin_file_length(origin) == length && strncmp(origin, mode, length) == 0)
            return error_new(
                ERROR_INVALID,
                "%s: network.mode: none lets nothing out, and %s allows %s; leave one of them out, or write "
                "mode: allowlist",
                mode, origin, policy->allowed_hosts.values.items[i]);
    }
    return NULL;
}

static struct error *resolve(struct resolution *resolution, const struct policy_request *request,
                             struct policy **policy) {
    TRY(policy_select("agent", policy));
    TRY(layer_machine(resolution, *policy));
    if (request->workspace != NULL)
        TRY(layer_project(resolution, request->workspace, *policy));
    if (request->called != NULL && request->called[0] != '\0') {
        if (!is_name(request->called))
            return unknown(resolution->places, request->called);
        TRY(layer_named(resolution, request->called, policy));
    }
    if (request->given != NULL && request->given[0] != '\0')
        TRY(layer_named(resolution, request->given, policy));
    if (request->annotations != NULL)
        TRY(layer_annotations(resolution, request->annotations, policy));
    TRY(none_check(*policy));
    if (request->sandbox)
        uplink_default(*policy);
    finish(resolution, *policy);
    return ceiling_check(resolution, *policy);
}

struct error *policy_resolve(const struct policy_request *request, struct policy **out) {
    *out = NULL;
    struct resolution resolution;
    resolution_begin(&request->places, &resolution);
    struct policy *policy = NULL;
    struct error *error = resolve(&resolution, request, &policy);
    resolution_end(&resolution);
    if (error != NULL && !text_starts_with(error->message, POLICY_CEILING_EXCEEDED ":"))
        policy_free(policy);
    else
        *out = policy;
    return error;
}

static int is_policy_entry(const struct dirent *entry) {
    return entry->d_name[0] != '.' && text_ends_with(entry->d_name, ".yaml");
}

void policy_names_list(const struct policy_places *places, struct string_list *names,
                       struct string_list *paths) {
    string_list_owned struct string_list directories = {0};
    directories_list(places, &directories);
    for (size_t d = 0; d < directories.count; d++) {
        struct dirent **entries = NULL;
        int count = scandir(directories.items[d], &entries, is_policy_entry, alphasort);
        for (int i = 0; i < count; i++) {
            memory_owned char *name = name_of(entries[i]->d_name);
            if (is_name(name)) {
                string_list_append(names, name);
                string_list_append_owned(paths,
                                         text_formatted("%s/%s", directories.items[d], entries[i]->d_name));
            }
            free(entries[i]);
        }
        free(entries);
    }
}

struct error *policy_trust(const struct policy_places *places, const char *file, char **pinned) {
    /* What would not be read later is not worth trusting. */
    policy_document_owned struct policy_document *document = NULL;
    text_owned struct text bytes = {0};
    TRY(file_read(AT_FDCWD, file, YAML_BYTES_MAX, &bytes));
    TRY(policy_document_read(file, text_string(&bytes), bytes.length, &document));
    memory_owned char *directory = places->owner_home != NULL
                                       ? text_formatted("%s/" USER_DIRECTORY, places->owner_home)
                                       : memory_copy_string(places->configuration);
    for (char *slash = strchr(directory + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)!mkdir(directory, 0755);
        *slash = '/';
    }
    if (mkdir(directory, 0755) < 0 && errno != EEXIST)
        return error_system(errno, "mkdir", "%s", directory);
    *pinned = text_formatted("%s/trusted", directory);
    return policy_file_pin(file, *pinned);
}
