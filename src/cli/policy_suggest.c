/* `pinfold policy suggest`: what a run was denied, as the lines that would have let it pass. */
#include "cli/policy_suggest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/log_parts.h"
#include "cli/options.h"
#include "policy/document.h"
#include "policy/keys.h"
#include "policy/match.h"
#include "policy/store.h"

/* One item of a list, or the value of a key. */
struct suggested_line {
    enum policy_key key;
    char *item;
    char *reason;
    uint64_t count;
};

struct suggestion {
    struct suggested_line *lines;
    size_t count;
    struct suggested_line *others; /* denials that no line is suggested for; `item` is the object */
    size_t others_count;
    char *run, *policy, *container;
};

static void lines_free(struct suggested_line *lines, size_t count) {
    for (size_t i = 0; i < count; i++) {
        free(lines[i].item);
        free(lines[i].reason);
    }
    free(lines);
}

static void suggestion_clear(struct suggestion *suggestion) {
    lines_free(suggestion->lines, suggestion->count);
    lines_free(suggestion->others, suggestion->others_count);
    free(suggestion->run);
    free(suggestion->policy);
    free(suggestion->container);
}
#define suggestion_owned __attribute__((cleanup(suggestion_clear)))

static void count_in(struct suggested_line **lines, size_t *lines_count, enum policy_key key,
                     const char *item, const struct log_record *record) {
    for (size_t i = 0; i < *lines_count; i++) {
        struct suggested_line *line = &(*lines)[i];
        if (line->key == key && strcmp(line->item, item) == 0 && strcmp(line->reason, record->reason) == 0) {
            line->count += record->count;
            return;
        }
    }
    *lines = memory_resize(*lines, *lines_count + 1, sizeof **lines);
    (*lines)[(*lines_count)++] = (struct suggested_line){.key = key,
                                                         .item = memory_copy_string(item),
                                                         .reason = memory_copy_string(record->reason),
                                                         .count = record->count};
}

/* Takes what the remedy writes into the lines. The log is the runtime's own, and yet it is read like any
 * policy. */
static bool take_remedy(struct suggestion *suggestion, const struct log_record *record) {
    policy_document_owned struct policy_document *document = NULL;
    error_owned error = policy_document_read("a record", record->remedy, strlen(record->remedy), &document);
    if (error != NULL)
        return false;
    for (enum policy_key key = 0; key < POLICY_KEY_COUNT; key++) {
        if (!document->written[key])
            continue;
        if (policy_keys[key].type != POLICY_TYPE_LIST) {
            text_owned struct text value = {0};
            policy_value_write(document->values, key, &value);
            count_in(&suggestion->lines, &suggestion->count, key, text_string(&value), record);
            continue;
        }
        const struct string_list *items = &policy_list_of(document->values, key)->values;
        for (size_t i = 0; i < items->count; i++)
            /* What may be read is said in full: the default is everything. */
            if (items->items[i][0] != '@' || key == POLICY_FILESYSTEM_READABLE)
                count_in(&suggestion->lines, &suggestion->count, key, items->items[i], record);
    }
    return true;
}

/* What the workload did, not what was taken from it before it began: it has run without that. Not a fake key
 * either: who opens one has no use for it. */
static bool is_action(const struct log_record *record) {
    static const char *const begins[] = {"fs.write.", "fs.read.", "syscall.", "net.", "dns.", "limit."};
    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++)
        if (text_starts_with(record->reason, begins[i]))
            return true;
    return false;
}

static bool is_denial(const struct log_record *record) {
    /* A learning run lets it pass and says "observed". */
    enum { ACTION_OBSERVED = 3 };
    return record->reason != NULL && (log_record_is_denial(record) || record->action_id == ACTION_OBSERVED) &&
           (is_action(record) || text_starts_with(record->reason, "fs.decoy."));
}

static void take_record(struct suggestion *suggestion, const struct log_record *record) {
    if (record->policy != NULL)
        memory_replace_string(&suggestion->policy, record->policy);
    if (record->run != NULL)
        memory_replace_string(&suggestion->run, record->run);
    if (record->container_id != NULL)
        memory_replace_string(&suggestion->container, record->container_id);
    if (!is_denial(record))
        return;
    if (record->remedy == NULL || !is_action(record) || !take_remedy(suggestion, record))
        count_in(&suggestion->others, &suggestion->others_count, POLICY_KEY_COUNT,
                 record->object != NULL     ? record->object
                 : record->activity != NULL ? record->activity
                                            : "",
                 record);
}

static struct error *records_take(struct log_reader *reader, const char *run, struct suggestion *out) {
    for (;;) {
        struct log_record record;
        const char *line;
        size_t length;
        TRY(log_reader_next(reader, &record, &line, &length));
        if (line == NULL)
            return NULL;
        if (run == NULL || (record.run != NULL && strcmp(record.run, run) == 0))
            take_record(out, &record);
        log_record_clear(&record);
    }
}

static struct error *records_read(const char *path, const char *run, struct suggestion *out) {
    struct log_reader *reader;
    TRY(log_reader_open(path, &reader));
    struct error *error = records_take(reader, run, out);
    log_reader_close(reader);
    return error;
}

/* A directory that is writable makes what is below it so. */
static bool is_contained(const struct suggestion *suggestion, const struct suggested_line *line) {
    if (line->key != POLICY_FILESYSTEM_WRITABLE)
        return false;
    for (size_t i = 0; i < suggestion->count; i++) {
        const struct suggested_line *other = &suggestion->lines[i];
        if (other != line && other->key == line->key && strcmp(other->item, line->item) != 0 &&
            match_path_within(line->item, other->item))
            return true;
    }
    return false;
}

static char *comment_of(const struct suggested_line *line) {
    return line->count > 1 ? text_formatted("%s, %llu times", line->reason, (unsigned long long)line->count)
                           : memory_copy_string(line->reason);
}

/* The policy holds nothing but what is suggested. */
static void policy_fill(const struct suggestion *suggestion, struct policy *policy, bool *written) {
    struct policy *agent = NULL;
    error_ignore(policy_select("agent", &agent)); /* it is built in */
    for (size_t i = 0; i < suggestion->count; i++) {
        const struct suggested_line *line = &suggestion->lines[i];
        memory_owned char *comment = comment_of(line);
        if (is_contained(suggestion, line))
            continue;
        if (policy_keys[line->key].type != POLICY_TYPE_LIST) {
            error_ignore(policy_value_read(policy, line->key, line->item, true)); /* as it was read */
            free(policy->origins[line->key]);
            policy->origins[line->key] = memory_copy_string(comment);
        } else {
            struct policy_list *list = policy_list_of(policy, line->key);
            if (list->values.count == 0 && policy_list_of(agent, line->key)->values.count > 0 &&
                line->key != POLICY_FILESYSTEM_READABLE)
                policy_list_append(list, "@default", "a list replaces the default one");
            policy_list_append(list, line->item, comment);
        }
        written[line->key] = true;
    }
    policy_free(agent);
}

static void suggestion_write(const struct suggestion *suggestion, struct text *text) {
    text_owned struct text container = {0}, run = {0};
    log_show(suggestion->container != NULL ? suggestion->container : "?", &container);
    log_show(suggestion->run != NULL ? suggestion->run : "?", &run);
    text_format(text, "# What container %s was denied (run %s), as the lines that allow it.\n",
                text_string(&container), text_string(&run));
    text_append(text,
                "# Each line widens the sandbox: take out what the workload should not have.\nversion: 1\n");
    const char *policy = suggestion->policy;
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    if (policy != NULL && strcmp(policy, "agent") != 0 && strspn(policy, plain) == strlen(policy))
        text_format(text, "extends: [%s]\n", policy);
    struct policy *suggested = memory_zeroed(sizeof *suggested);
    bool written[POLICY_KEY_COUNT] = {false};
    policy_fill(suggestion, suggested, written);
    policy_keys_show(suggested, written, text);
    policy_free(suggested);
    for (size_t i = 0; i < suggestion->others_count; i++) {
        const struct suggested_line *other = &suggestion->others[i];
        memory_owned char *comment = comment_of(other);
        text_owned struct text object = {0};
        log_show(other->item, &object);
        text_format(text, "# no line suggested for %s: %s\n", text_string(&object), comment);
    }
}

struct error *policy_suggest_command(int argc, char **argv) {
    const char *run = NULL, *directory = NULL;
    bool last = false, help;
    int first;
    const struct option table[] = {
        {"last", 'l', OPTION_FLAG, &last, "the newest log"},
        {"run", 0, OPTION_VALUE, &run, "only records of this run id"},
        {"log-dir", 0, OPTION_VALUE, &directory, "where the logs are"},
        {NULL, 0, OPTION_FLAG, NULL, NULL},
    };
    TRY(options_parse("policy suggest", table, argc, argv, &first, &help));
    if (help) {
        options_print("pinfold policy suggest (ID | PREFIX | NAME | --last) [OPTIONS]", table);
        return NULL;
    }
    if ((argc - first == 1) == last || argc - first > 1)
        return error_new(ERROR_USAGE, "policy suggest: expected a container or --last");
    struct log_choice choice = {.which = last ? LOG_LAST : LOG_NAMED, .directory = directory};
    string_list_owned struct string_list paths = {0};
    if (!last)
        string_list_append(&choice.names, argv[first]);
    struct error *error = log_find(&choice, &paths);
    string_list_free(&choice.names);
    TRY(error);
    suggestion_owned struct suggestion suggestion = {0};
    TRY(records_read(paths.items[0], run, &suggestion));
    text_owned struct text text = {0};
    suggestion_write(&suggestion, &text);
    fputs(text_string(&text), stdout);
    return NULL;
}
