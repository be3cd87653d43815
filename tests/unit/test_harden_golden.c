/* Hardening of whole configurations, as engines write them: tests/unit/data/harden/NAME.json is the
 * config.json, NAME.facts what was seen of the machine, NAME.hardened what comes out of it.
 * `test_harden_golden --rewrite` writes the last ones anew; look at what `git diff` says before it is
 * committed.
 *
 * Lines of NAME.facts:
 *   policy NAME
 *   home PATH                    of the container's user; owner PATH: of the person who runs it
 *   root layer                   root.path is a mount of its own
 *   host-namespace TYPE          what linux.namespaces says of it is the host's
 *   keeps DESTINATION            a mount of the engine's that must not be lost
 *   mount DESTINATION WORD...    what its source is: file, socket, block, real:PATH, engine-made, volume,
 * incomplete, equals:PLACE, contains:PLACE, inside:PLACE, credential:NAME, has-socket:PATH,
 *                                has-credential:PATH, has-protected:NAME */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dirent.h>
#include <sys/sysmacros.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "harden/harden.h"
#include "libocispec/schema.h"

static bool rewrite;

struct golden {
    char *name;
    struct oci_config *config;
    struct policy *policy;
    struct facts facts;
    struct string_list keeps;
};

static char *data_path(const char *name, const char *suffix) {
    const char *tests = getenv("PINFOLD_TESTS");
    return text_formatted("%s/unit/data/harden/%s%s", tests != NULL ? tests : "tests", name, suffix);
}

static char *read_whole(const char *path) {
    struct text content = {0};
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return NULL;
    char room[4096];
    for (size_t length; (length = fread(room, 1, sizeof room, file)) > 0;)
        text_append_bytes(&content, room, length);
    fclose(file);
    return text_take(&content);
}

/* --- facts --- */

static const char *after(const char *word, const char *prefix) {
    return text_starts_with(word, prefix) ? word + strlen(prefix) : NULL;
}

static void mount_word(struct mount_fact *fact, const char *word) {
    static const struct {
        const char *prefix;
        enum place_relation relation;
    } relations[] = {{"equals:", PLACE_EQUALS}, {"contains:", PLACE_CONTAINS}, {"inside:", PLACE_INSIDE}};
    const char *value;
    for (size_t i = 0; i < sizeof relations / sizeof *relations; i++)
        if ((value = after(word, relations[i].prefix)) != NULL) {
            fact->place_relation = relations[i].relation;
            memory_replace_string(&fact->host_place, value);
            return;
        }
    if (strcmp(word, "file") == 0)
        fact->status.st_mode = S_IFREG | 0644;
    else if (strcmp(word, "socket") == 0)
        fact->status.st_mode = S_IFSOCK | 0666;
    else if (strcmp(word, "null") == 0) {
        fact->status.st_mode = S_IFCHR | 0666;
        fact->device_major = 1;
        fact->device_minor = 3;
    } else if (strcmp(word, "block") == 0) {
        fact->status.st_mode = S_IFBLK | 0660;
        fact->device_major = 8;
    } else if (strcmp(word, "engine-made") == 0)
        fact->engine_made = true;
    else if (strcmp(word, "volume") == 0)
        fact->engine_volume = true;
    else if (strcmp(word, "incomplete") == 0)
        fact->search_incomplete = true;
    else if ((value = after(word, "real:")) != NULL)
        memory_replace_string(&fact->real_path, value);
    else if (strcmp(word, "credential:.ssh") == 0)
        fact->credential = ".ssh";
    else if ((value = after(word, "has-protected:")) != NULL) {
        /* The default, with its two names */
        fact->protected = memory_zeroed(sizeof *fact->protected);
        *fact->protected =
            (struct protected_fact){.path = memory_copy_string(value), .found = 2, .mode = S_IFDIR | 0755};
        fact->protected_count = 1;
    } else if ((value = after(word, "has-socket:")) != NULL)
        string_list_append(&fact->control_sockets, value);
    else if ((value = after(word, "has-credential:")) != NULL)
        string_list_append(&fact->credentials, value);
    else
        fail_msg("unknown word \"%s\"", word);
}

static void mount_line(struct golden *golden, const char *destination, char **words) {
    size_t found = 0;
    for (size_t i = 0; i < golden->config->mounts_count; i++) {
        if (strcmp(golden->config->mounts[i].destination, destination) != 0)
            continue;
        found++;
        char *copy = memory_copy_string(*words != NULL ? *words : ""), *rest = copy;
        for (char *word; (word = strsep(&rest, " ")) != NULL;)
            if (word[0] != '\0')
                mount_word(&golden->facts.mounts[i], word);
        free(copy);
    }
    if (found == 0)
        fail_msg("%s: no mount at %s", golden->name, destination);
}

static void fact_line(struct golden *golden, char *line) {
    char *key = strsep(&line, " ");
    char *value = line != NULL ? strsep(&line, " ") : NULL;
    if (key[0] == '\0' || key[0] == '#')
        return;
    assert_non_null(value);
    const struct oci_linux *linux_config = golden->config->linux_config;
    if (strcmp(key, "policy") == 0)
        assert_null(policy_select(value, &golden->policy));
    else if (strcmp(key, "home") == 0)
        golden->facts.container_home = memory_copy_string(value);
    else if (strcmp(key, "owner") == 0)
        golden->facts.owner_home = memory_copy_string(value);
    else if (strcmp(key, "root") == 0)
        golden->facts.root_is_mount = strcmp(value, "layer") == 0;
    else if (strcmp(key, "keeps") == 0)
        string_list_append(&golden->keeps, value);
    else if (strcmp(key, "mount") == 0)
        mount_line(golden, value, &line);
    else if (strcmp(key, "host-namespace") == 0) {
        for (size_t i = 0; i < linux_config->namespaces_count; i++)
            if (strcmp(linux_config->namespaces[i].type, value) == 0)
                golden->facts.namespace_is_host[i] = true;
    } else
        fail_msg("%s: unknown line \"%s\"", golden->name, key);
}

/* What is so of every source that no line speaks of: a directory of its own path. What hardening itself
 * mounts is the null device. */
static void facts_default(struct facts *facts, const struct oci_config *config) {
    facts->root_fd = -1;
    facts->has_landlock = true;
    facts->mounts_count = config->mounts_count;
    facts->mounts = memory_zeroed((config->mounts_count + 1) * sizeof *facts->mounts);
    for (size_t i = 0; i < config->mounts_count; i++) {
        const struct oci_mount *mount = &config->mounts[i];
        struct mount_fact *fact = &facts->mounts[i];
        fact->source_fd = -1;
        fact->bind = string_list_contains(&mount->options, "bind") ||
                     string_list_contains(&mount->options, "rbind") ||
                     (mount->type != NULL && strcmp(mount->type, "bind") == 0);
        if (!fact->bind)
            continue;
        fact->real_path = memory_copy_string(mount->source);
        fact->status.st_mode = S_IFDIR | 0755;
        if (strcmp(mount->source, "/dev/null") == 0)
            mount_word(fact, "null");
    }
    if (config->linux_config != NULL)
        facts->namespaces_count = config->linux_config->namespaces_count;
    facts->namespace_is_host = memory_zeroed(facts->namespaces_count + 1);
}

static void facts_drop(struct facts *facts) {
    for (size_t i = 0; i < facts->mounts_count; i++) {
        free(facts->mounts[i].real_path);
        free(facts->mounts[i].host_place);
        string_list_free(&facts->mounts[i].control_sockets);
        string_list_free(&facts->mounts[i].credentials);
        for (size_t k = 0; k < facts->mounts[i].protected_count; k++)
            free(facts->mounts[i].protected[k].path);
        free(facts->mounts[i].protected);
    }
    free(facts->mounts);
    free(facts->namespace_is_host);
}

static struct oci_config *parse(const char *name, const char *text) {
    struct oci_config *config = NULL;
    struct error *error = oci_config_parse(name, text, strlen(text), &config);
    if (error != NULL)
        fail_msg("%s: %s", name, error->message);
    return config;
}

static void read_facts(struct golden *golden) {
    memory_owned char *path = data_path(golden->name, ".facts");
    memory_owned char *facts = read_whole(path);
    char *rest = facts;
    for (char *line; rest != NULL && (line = strsep(&rest, "\n")) != NULL;)
        fact_line(golden, line);
    if (golden->policy == NULL)
        assert_null(policy_select("agent", &golden->policy));
}

static struct golden golden_open(const char *name) {
    struct golden golden = {.name = memory_copy_string(name)};
    memory_owned char *path = data_path(name, ".json");
    memory_owned char *text = read_whole(path);
    assert_non_null(text);
    golden.config = parse(name, text);
    facts_default(&golden.facts, golden.config);
    read_facts(&golden);
    return golden;
}

static void golden_close(struct golden *golden) {
    facts_drop(&golden->facts);
    free(golden->facts.container_home);
    free(golden->facts.owner_home);
    string_list_free(&golden->keeps);
    oci_config_free(golden->config);
    policy_free(golden->policy);
    free(golden->name);
}

/* --- results --- */

/* Compact JSON with a line for each member and element of the outer four levels, so that a difference can be
 * read. */
static void spread(struct text *out, const char *json) {
    int depth = 0;
    bool string = false;
    for (; *json != '\0'; json++) {
        if (*json == '"' || (string && *json == '\\')) {
            if (*json == '\\')
                text_append_bytes(out, json++, 1);
            else
                string = !string;
            text_append_bytes(out, json, 1);
            continue;
        }
        bool opens = *json == '{' || *json == '[', closes = *json == '}' || *json == ']';
        if (!string && closes && depth-- <= 4)
            text_format(out, "\n%*s", 2 * depth, "");
        text_append_bytes(out, json, 1);
        if (!string && opens)
            depth++;
        if (!string && (opens || *json == ',') && depth <= 4)
            text_format(out, "\n%*s", 2 * depth, "");
    }
    text_append(out, "\n");
}

static char *config_text(const struct oci_config *config) {
    struct json_writer json = {0};
    schema_write(&oci_config_schema, config, &json);
    return text_take(&json.text);
}

static const char *or_dash(const char *text) {
    return text != NULL ? text : "-";
}

static void changes_write(struct text *out, const struct hardened *hardened) {
    static const char *const kinds[] = {[CHANGE_REMOVED] = "removed",
                                        [CHANGE_ADDED] = "added",
                                        [CHANGE_SET] = "set",
                                        [CHANGE_DEGRADED] = "degraded"};
    for (size_t i = 0; i < hardened->changes_count; i++) {
        const struct change *change = &hardened->changes[i];
        text_format(out, "%s %s: %s\n", kinds[change->kind], or_dash(change->field),
                    or_dash(change->subject));
        text_format(out, "    %s\n    %s | %s | %s\n", change->message, or_dash(change->reason),
                    or_dash(change->rule), or_dash(change->remedy));
    }
    for (size_t i = 0; i < hardened->scratch_count; i++)
        text_format(out, "scratch %s: %s\n", hardened->scratch[i].path,
                    hardened->scratch[i].kind == SCRATCH_OWN_LAYER ? "layer" : "tmpfs");
    for (size_t i = 0; i < hardened->decoys_count; i++)
        text_format(out, "decoy %s\n", hardened->decoys[i].path);
    static const char *const rebinds[] = {
        [REBIND_FIXED] = "fixed", [REBIND_WRITABLE] = "writable", [REBIND_MADE] = "made"};
    for (size_t i = 0; i < hardened->rebinds_count; i++)
        text_format(out, "rebind %s: %s\n", hardened->rebinds[i].path, rebinds[hardened->rebinds[i].kind]);
    if (hardened->access != NULL) {
        json_owned struct json_writer json = {0};
        schema_write(&access_plan_schema, hardened->access, &json);
        text_format(out, "access: %s\n", text_string(&json.text));
    }
    text_format(out, "wall: %s\n", hardened->wall ? "yes" : "no");
}

/* All that hardening says. *hardened is NULL where it refused. */
static char *golden_text(const struct golden *golden, struct hardened **hardened) {
    struct text out = {0};
    error_owned error = harden(golden->config, golden->policy, &golden->facts, hardened);
    if (error != NULL) {
        text_format(&out, "%s\n", error->message);
        return text_take(&out);
    }
    changes_write(&out, *hardened);
    memory_owned char *config = config_text((*hardened)->config);
    spread(&out, config);
    return text_take(&out);
}

static void compare(const struct golden *golden, const char *found) {
    memory_owned char *path = data_path(golden->name, ".hardened");
    memory_owned char *wanted = read_whole(path);
    if (rewrite) {
        FILE *file = fopen(path, "we");
        assert_non_null(file);
        fputs(found, file);
        fclose(file);
        return;
    }
    if (wanted != NULL && strcmp(found, wanted) == 0)
        return;
    size_t same = 0;
    while (wanted != NULL && found[same] != '\0' && found[same] == wanted[same])
        same++;
    while (same > 0 && found[same - 1] != '\n')
        same--;
    fail_msg("%s: found \"%.*s\", wanted \"%.*s\"; if that is right: test_harden_golden --rewrite",
             golden->name, (int)strcspn(found + same, "\n"), found + same,
             wanted != NULL ? (int)strcspn(wanted + same, "\n") : 9,
             wanted != NULL ? wanted + same : "(no file)");
}

static bool has_mount(const struct oci_config *config, const char *destination) {
    for (size_t i = 0; i < config->mounts_count; i++)
        if (strcmp(config->mounts[i].destination, destination) == 0)
            return true;
    return false;
}

/* The facts of a configuration that was hardened: those of the same mounts, and of the covers. */
static void hardened_again(const struct golden *golden, const struct hardened *hardened) {
    memory_owned char *once = config_text(hardened->config);
    struct golden again = {.name = memory_copy_string(golden->name)};
    again.config = parse(golden->name, once);
    facts_default(&again.facts, again.config);
    for (size_t i = 0; i < hardened->config->mounts_count; i++) {
        const struct mount_fact *source = hardened->mount_sources[i];
        struct mount_fact *fact = &again.facts.mounts[i];
        if (source == NULL || !fact->bind)
            continue;
        free(fact->real_path);
        struct string_list none = {0};
        *fact = *source;
        fact->real_path = source->real_path != NULL ? memory_copy_string(source->real_path) : NULL;
        fact->host_place = source->host_place != NULL ? memory_copy_string(source->host_place) : NULL;
        fact->control_sockets = fact->credentials = none;
        for (size_t k = 0; k < source->control_sockets.count; k++)
            string_list_append(&fact->control_sockets, source->control_sockets.items[k]);
        for (size_t k = 0; k < source->credentials.count; k++)
            string_list_append(&fact->credentials, source->credentials.items[k]);
    }
    again.facts.root_is_mount = golden->facts.root_is_mount;
    again.facts.container_home =
        golden->facts.container_home != NULL ? memory_copy_string(golden->facts.container_home) : NULL;
    assert_null(policy_select(golden->policy->name, &again.policy));
    struct hardened *twice = NULL;
    struct error *error = harden(again.config, again.policy, &again.facts, &twice);
    if (error != NULL)
        fail_msg("%s: hardened again: %s", golden->name, error->message);
    memory_owned char *text = config_text(twice->config);
    assert_string_equal(once, text);
    for (size_t i = 0; i < twice->changes_count; i++)
        if (twice->changes[i].kind != CHANGE_DEGRADED)
            fail_msg("%s: hardened again: %s", golden->name, twice->changes[i].message);
    hardened_free(twice);
    golden_close(&again);
}

static void check(const char *name) {
    struct golden golden = golden_open(name);
    struct hardened *first = NULL, *second = NULL;
    memory_owned char *before = config_text(golden.config);
    memory_owned char *one = golden_text(&golden, &first);
    memory_owned char *two = golden_text(&golden, &second);
    memory_owned char *afterwards = config_text(golden.config);
    assert_string_equal(one, two);
    assert_string_equal(before, afterwards);
    compare(&golden, one);
    for (size_t i = 0; first != NULL && i < golden.keeps.count; i++)
        if (!has_mount(first->config, golden.keeps.items[i]))
            fail_msg("%s: the mount at %s is lost", name, golden.keeps.items[i]);
    if (first != NULL)
        hardened_again(&golden, first);
    hardened_free(first);
    hardened_free(second);
    golden_close(&golden);
}

static int is_configuration(const struct dirent *entry) {
    return text_ends_with(entry->d_name, ".json");
}

static void all_are_as_they_were(void **state) {
    (void)state;
    memory_owned char *directory = data_path("", "");
    struct dirent **entries = NULL;
    int count = scandir(directory, &entries, is_configuration, alphasort);
    assert_true(count >= 10);
    for (int i = 0; i < count; i++) {
        memory_owned char *name = memory_copy_string(entries[i]->d_name);
        name[strlen(name) - strlen(".json")] = '\0';
        check(name);
        free(entries[i]);
    }
    free(entries);
}

int main(int argc, char **argv) {
    rewrite = argc > 1 && strcmp(argv[1], "--rewrite") == 0;
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_are_as_they_were)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
