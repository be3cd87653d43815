/* A policy for people, and its schema for editors. */
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "libocispec/names.h"
#include "policy/hosts.h"
#include "policy/keys.h"
#include "policy/store.h"

#define COMMENT_COLUMN 50

static void line_show(struct text *text, const char *line, const char *origin) {
    text_format(text, "%-*s # %s\n", COMMENT_COLUMN, line, origin);
}

/* A host as the document writes it: what "name:443,8443 private" stands for. */
static void host_show(const char *item, struct text *text) {
    struct policy_host host;
    struct error *error = policy_host_read(item, &host);
    bool simple = error != NULL || (!host.is_private && strchr(item, ',') == NULL);
    error_ignore(error); /* it is one of ours */
    json_owned struct json_writer quoted = {0};
    if (!simple) {
        struct policy_host bare = host;
        bare.is_private = false;
        bare.ports_count = 2; /* the default ones, which are not written */
        bare.ports[0] = 80;
        bare.ports[1] = 443;
        memory_owned char *name = policy_host_write(&bare);
        json_string(&quoted, name);
        text_format(text, "{host: %s, ports: [", text_string(&quoted.text));
        for (size_t i = 0; i < host.ports_count; i++)
            text_format(text, "%s%u", i > 0 ? ", " : "", host.ports[i]);
        text_append(text, host.is_private ? "], private: true}" : "]}");
    } else {
        json_string(&quoted, item);
        text_append(text, text_string(&quoted.text));
    }
    policy_host_clear(&host);
}

static void item_show(enum policy_key key, const char *item, struct text *text) {
    json_owned struct json_writer quoted = {0};
    if (policy_keys[key].item == POLICY_ITEM_HOST) {
        host_show(item, text);
    } else if (policy_keys[key].item == POLICY_ITEM_CAPABILITY ||
               policy_keys[key].item == POLICY_ITEM_MECHANISM) {
        text_append(text, item);
    } else {
        json_string(&quoted, item);
        text_append(text, text_string(&quoted.text));
    }
}

static void list_show(const struct policy *policy, enum policy_key key, const char *name, int indent,
                      struct text *text) {
    const struct policy_list *list = policy_list_of(policy, key);
    memory_owned char *head =
        text_formatted("%*s%s:%s", indent, "", name, list->values.count == 0 ? " []" : "");
    if (list->values.count > 0) {
        text_format(text, "%s\n", head);
    } else {
        line_show(text, head, policy_origin(policy, key));
    }
    for (size_t i = 0; i < list->values.count; i++) {
        text_owned struct text line = {0};
        text_format(&line, "%*s- ", indent + 2, "");
        item_show(key, list->values.items[i], &line);
        line_show(text, text_string(&line), policy_list_origin(list, i));
    }
}

static void keys_show(const struct policy *policy, const bool *written, struct text *text) {
    const char *section = "";
    for (enum policy_key key = 0; key < POLICY_KEY_COUNT; key++) {
        if (written != NULL && !written[key])
            continue;
        const char *name = policy_keys[key].name, *point = strchr(name, '.');
        size_t length = point != NULL ? (size_t)(point - name) : 0;
        if (point != NULL && strncmp(section, name, length + 1) != 0)
            text_format(text, "%.*s:\n", (int)length, name);
        section = name;
        const char *word = point != NULL ? point + 1 : name;
        int indent = point != NULL ? 2 : 0;
        if (policy_keys[key].type == POLICY_TYPE_LIST) {
            list_show(policy, key, word, indent, text);
            continue;
        }
        text_owned struct text line = {0};
        text_format(&line, "%*s%s: ", indent, "", word);
        policy_value_write(policy, key, &line);
        line_show(text, text_string(&line), policy_origin(policy, key));
    }
}

void policy_show(const struct policy *policy, struct text *text) {
    text_format(text, "# Policy %s, from %s\n# digest %s\nversion: 1\n", policy->name, policy->origin,
                policy->digest);
    keys_show(policy, NULL, text);
}

void policy_keys_show(const struct policy *policy, const bool written[POLICY_KEY_COUNT], struct text *text) {
    keys_show(policy, written, text);
}

/* --- JSON Schema --- */

static void words_schema(struct json_writer *json, const char *const *words) {
    json_key(json, "enum");
    json_array_begin(json);
    for (; *words != NULL; words++)
        /* true and false among words are booleans to a reader of YAML */
        if (strcmp(*words, "true") == 0 || strcmp(*words, "false") == 0)
            json_boolean(json, (*words)[0] == 't');
        else
            json_string(json, *words);
    json_array_end(json);
}

static void types_schema(struct json_writer *json, const char *one, const char *other) {
    json_key(json, "type");
    json_array_begin(json);
    json_string(json, one);
    if (other != NULL)
        json_string(json, other);
    json_string(json, "null");
    json_array_end(json);
}

static void host_item_schema(struct json_writer *json) {
    json_key(json, "oneOf");
    json_array_begin(json);
    json_object_begin(json);
    json_member_string(json, "type", "string");
    json_object_end(json);
    json_object_begin(json);
    json_member_string(json, "type", "object");
    json_member_boolean(json, "additionalProperties", false);
    json_key(json, "required");
    json_array_begin(json);
    json_string(json, "host");
    json_array_end(json);
    json_key(json, "properties");
    json_object_begin(json);
    json_key(json, "host");
    json_object_begin(json);
    json_member_string(json, "type", "string");
    json_object_end(json);
    json_key(json, "ports");
    json_object_begin(json);
    json_member_string(json, "type", "array");
    json_key(json, "items");
    json_object_begin(json);
    json_member_string(json, "type", "integer");
    json_member_integer(json, "minimum", 1);
    json_member_integer(json, "maximum", 65535);
    json_object_end(json);
    json_object_end(json);
    json_key(json, "private");
    json_object_begin(json);
    json_member_string(json, "type", "boolean");
    json_object_end(json);
    json_object_end(json);
    json_object_end(json);
    json_array_end(json);
}

static void list_schema(struct json_writer *json, enum policy_key key) {
    json_key(json, "type");
    json_array_begin(json);
    json_string(json, "array");
    json_string(json, "string");
    json_array_end(json);
    json_key(json, "items");
    json_object_begin(json);
    if (policy_keys[key].item == POLICY_ITEM_HOST)
        host_item_schema(json);
    else
        json_member_string(json, "type", "string");
    json_object_end(json);
}

static void value_schema(struct json_writer *json, enum policy_key key, const struct policy *agent) {
    const struct policy_key_info *info = &policy_keys[key];
    json_key(json, strchr(info->name, '.') != NULL ? strchr(info->name, '.') + 1 : info->name);
    json_object_begin(json);
    text_owned struct text description = {0};
    text_append(&description, info->help);
    if (info->type != POLICY_TYPE_LIST) {
        text_append(&description, " (default: ");
        policy_value_write(agent, key, &description);
        text_append(&description, ")");
    }
    json_member_string(json, "description", text_string(&description));
    switch (info->type) {
    case POLICY_TYPE_BOOL:
        json_member_string(json, "type", "boolean");
        break;
    case POLICY_TYPE_WORD:
        words_schema(json, info->words);
        break;
    case POLICY_TYPE_LIST:
        list_schema(json, key);
        break;
    case POLICY_TYPE_COUNT:
        types_schema(json, "integer", NULL);
        break;
    case POLICY_TYPE_CPUS:
        types_schema(json, "number", NULL);
        break;
    case POLICY_TYPE_SIZE:
        types_schema(json, "string", "integer");
        break;
    default:
        types_schema(json, "string", NULL);
    }
    json_object_end(json);
}

static void object_begin(struct json_writer *json) {
    json_object_begin(json);
    json_member_string(json, "type", "object");
    json_member_boolean(json, "additionalProperties", false);
    json_key(json, "properties");
    json_object_begin(json);
}

void policy_schema_write(struct text *text) {
    struct json_writer json = {0};
    struct policy *agent = NULL;
    error_ignore(policy_select("agent", &agent)); /* it is built in */
    json_object_begin(&json);
    json_member_string(&json, "$schema", "https://json-schema.org/draft/2020-12/schema");
    json_member_string(&json, "title", "pinfold policy");
    json_member_string(&json, "type", "object");
    json_member_boolean(&json, "additionalProperties", false);
    json_key(&json, "properties");
    json_object_begin(&json);
    json_key(&json, "version");
    json_object_begin(&json);
    json_member_integer(&json, "const", 1);
    json_object_end(&json);
    json_key(&json, "extends");
    json_object_begin(&json);
    json_member_string(&json, "description", "presets and files that this policy begins with");
    json_key(&json, "type");
    json_array_begin(&json);
    json_string(&json, "array");
    json_string(&json, "string");
    json_array_end(&json);
    json_key(&json, "items");
    json_object_begin(&json);
    json_member_string(&json, "type", "string");
    json_object_end(&json);
    json_object_end(&json);
    const char *section = "";
    for (enum policy_key key = 0; key < POLICY_KEY_COUNT; key++) {
        const char *name = policy_keys[key].name, *point = strchr(name, '.');
        size_t length = point != NULL ? (size_t)(point - name) : 0;
        bool same = point != NULL && strncmp(section, name, length + 1) == 0;
        if (!same && strchr(section, '.') != NULL) {
            json_object_end(&json);
            json_object_end(&json);
        }
        if (!same && point != NULL) {
            memory_owned char *word = text_formatted("%.*s", (int)length, name);
            json_key(&json, word);
            object_begin(&json);
        }
        value_schema(&json, key, agent);
        section = name;
    }
    if (strchr(section, '.') != NULL) {
        json_object_end(&json);
        json_object_end(&json);
    }
    json_object_end(&json);
    json_object_end(&json);
    policy_free(agent);
    text_append(text, text_string(&json.text));
    json_free(&json);
}
