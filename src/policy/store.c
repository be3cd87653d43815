#include "policy/store.h"

#include <string.h>

#include "base/memory.h"
#include "policy/keys.h"

#define FIRST_LINE "pinfold policy 1"

static void line_write(struct text *text, const char *name, const char *origin, const char *value) {
    text_format(text, "%s\t%s\t%s\n", name, origin != NULL ? origin : "", value);
}

void policy_store_write(const struct policy *policy, struct text *text) {
    text_append(text, FIRST_LINE "\n");
    line_write(text, "name", policy->origin, policy->name);
    line_write(text, "confined", NULL, policy->confined ? "true" : "false");
    for (enum policy_key key = 0; key < POLICY_KEY_COUNT; key++) {
        text_owned struct text value = {0};
        if (policy_keys[key].type != POLICY_TYPE_LIST)
            policy_value_write(policy, key, &value);
        line_write(text, policy_keys[key].name, policy->origins[key], text_string(&value));
        if (policy_keys[key].type != POLICY_TYPE_LIST)
            continue;
        const struct policy_list *list = policy_list_of(policy, key);
        for (size_t i = 0; i < list->values.count; i++)
            line_write(text, "-", policy_list_origin(list, i), list->values.items[i]);
    }
}

struct store_line {
    char *name;
    char *origin;
    char *value;
};

/* The next line, cut up in place; false at the end and for what is no line. */
static bool next_line(char **at, struct store_line *line) {
    char *end = *at != NULL ? strchr(*at, '\n') : NULL;
    if (end == NULL)
        return false;
    *end = '\0';
    line->name = strsep(at, "\t");
    line->origin = strsep(at, "\t");
    line->value = *at;
    *at = end + 1;
    return line->origin != NULL && line->value != NULL;
}

static struct error *broken(void) {
    return error_new(ERROR_INVALID, "the stored policy is damaged");
}

static struct error *line_read(struct policy *policy, const struct store_line *line, enum policy_key *list) {
    if (strcmp(line->name, "-") == 0) {
        if (*list == POLICY_KEY_COUNT)
            return broken();
        policy_list_append(policy_list_of(policy, *list), line->value, line->origin);
        return NULL;
    }
    enum policy_key key = policy_key_find(line->name);
    *list = POLICY_KEY_COUNT;
    if (key == POLICY_KEY_COUNT)
        return broken();
    if (line->origin[0] != '\0')
        memory_replace_string(&policy->origins[key], line->origin);
    if (policy_keys[key].type != POLICY_TYPE_LIST)
        return policy_value_read(policy, key, line->value, true);
    *list = key;
    return NULL;
}

static struct error *lines_read(char *bytes, struct policy *policy) {
    struct store_line line;
    char *at = bytes + strlen(FIRST_LINE "\n");
    if (!next_line(&at, &line) || strcmp(line.name, "name") != 0)
        return broken();
    policy->name = memory_copy_string(line.value);
    policy->origin = memory_copy_string(line.origin);
    if (!next_line(&at, &line) || strcmp(line.name, "confined") != 0)
        return broken();
    policy->confined = strcmp(line.value, "true") == 0;
    for (enum policy_key list = POLICY_KEY_COUNT; *at != '\0';) {
        if (!next_line(&at, &line))
            return broken();
        TRY(line_read(policy, &line, &list));
    }
    return NULL;
}

struct error *policy_store_read(const char *bytes, const char *digest, struct policy **out) {
    *out = NULL;
    if (!text_starts_with(bytes, FIRST_LINE "\n"))
        return broken();
    memory_owned char *copy = memory_copy_string(bytes);
    struct policy *policy = memory_zeroed(sizeof *policy);
    struct error *error = lines_read(copy, policy);
    if (error == NULL) {
        policy_digest_update(policy);
        if (digest != NULL && strcmp(policy->digest, digest) != 0)
            error = broken();
    }
    if (error != NULL)
        policy_free(policy);
    else
        *out = policy;
    return error;
}
