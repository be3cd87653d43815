#include "policy/document.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "policy/hosts.h"
#include "policy/keys.h"

#define QUOTED_MAX 100

void policy_document_free(struct policy_document *document) {
    if (document == NULL)
        return;
    for (enum policy_key key = 0; key < POLICY_KEY_COUNT; key++)
        free(document->positions[key]);
    policy_list_free(&document->extends);
    policy_free(document->values);
    free(document->name);
    free(document);
}

void policy_document_cleanup(struct policy_document **document) {
    policy_document_free(*document);
    *document = NULL;
}

static struct policy_document *document_new(const char *name) {
    struct policy_document *document = memory_zeroed(sizeof *document);
    document->name = memory_copy_string(name);
    document->values = memory_zeroed(sizeof *document->values);
    return document;
}

static char *position(const struct policy_document *document, const struct yaml_node *node) {
    return text_formatted("%s:%u:%u", document->name, node->line, node->column);
}

static struct error *wrong(const struct policy_document *document, const struct yaml_node *node,
                           const char *format, ...) __attribute__((format(printf, 3, 4), returns_nonnull));
static struct error *wrong(const struct policy_document *document, const struct yaml_node *node,
                           const char *format, ...) {
    text_owned struct text text = {0};
    va_list arguments;
    va_start(arguments, format);
    text_vformat(&text, format, arguments);
    va_end(arguments);
    return error_new(ERROR_INVALID, "%s:%u:%u: %s", document->name, node->line, node->column,
                     text_string(&text));
}

static const char *kind_of(const struct yaml_node *node) {
    return node->kind == YAML_MAP ? "a map" : node->kind == YAML_LIST ? "a list" : "a value";
}

/* --- unknown keys --- */

/* How many letters have to be changed (Levenshtein); words of the table are short. */
static unsigned distance(const char *one, const char *other) {
    enum { WORD_MAX = 64 };
    size_t length = strlen(other);
    unsigned row[WORD_MAX + 1];
    if (length > WORD_MAX || strlen(one) > WORD_MAX)
        return WORD_MAX;
    for (size_t j = 0; j <= length; j++)
        row[j] = (unsigned)j;
    for (size_t i = 0; one[i] != '\0'; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i + 1;
        for (size_t j = 0; j < length; j++) {
            unsigned replaced = diagonal + (one[i] != other[j]);
            unsigned shorter = row[j] < row[j + 1] ? row[j] + 1 : row[j + 1] + 1;
            diagonal = row[j + 1];
            row[j + 1] = replaced < shorter ? replaced : shorter;
        }
    }
    return row[length];
}

/* "filesystem." of "filesystem.writable"; "" for a key that is in no section. */
static size_t section_length(const char *name) {
    const char *point = strchr(name, '.');
    return point != NULL ? (size_t)(point - name) : 0;
}

static void consider(const char *word, const char *candidate, unsigned *best, char **out) {
    unsigned far = distance(word, candidate);
    if (far < *best) {
        *best = far;
        free(*out);
        *out = memory_copy_string(candidate);
    }
}

/* The known word that is meant, as far as one can tell: a near one of this section, or the same word in
 * another section. The caller frees it; NULL: none. */
static char *nearest(const char *section, const char *word) {
    char *best = NULL;
    unsigned limit = (unsigned)strlen(word) / 2 + 1;
    if (limit > 4)
        limit = 4;
    if (section[0] == '\0') {
        consider(word, "version", &limit, &best);
        consider(word, "extends", &limit, &best);
    }
    for (enum policy_key key = 0; key < POLICY_KEY_COUNT; key++) {
        const char *name = policy_keys[key].name;
        size_t length = section_length(name);
        if (section[0] == '\0') {
            memory_owned char *first =
                text_formatted("%.*s", (int)(length > 0 ? length : strlen(name)), name);
            consider(word, first, &limit, &best);
        } else if (length == strlen(section) && strncmp(name, section, length) == 0) {
            consider(word, name + length + 1, &limit, &best);
        }
    }
    for (enum policy_key key = 0; best == NULL && key < POLICY_KEY_COUNT; key++) {
        const char *name = policy_keys[key].name;
        if (strcmp(name + (section_length(name) > 0 ? section_length(name) + 1 : 0), word) == 0)
            best = memory_copy_string(name);
    }
    return best;
}

static struct error *unknown_key(const struct policy_document *document, const struct yaml_node *key,
                                 const char *section) {
    memory_owned char *near = nearest(section, key->scalar);
    memory_owned char *hint =
        near != NULL ? text_formatted("; did you mean \"%s\"?", near) : memory_copy_string("");
    return wrong(document, key, "unknown key \"%.*s\"%s%s%s", QUOTED_MAX, key->scalar,
                 section[0] != '\0' ? " in " : "", section, hint);
}

/* --- values --- */

static struct error *at_node(const struct policy_document *document, const struct yaml_node *node,
                             enum policy_key key, struct error *error) {
    return error_context(error, "%s:%u:%u: %s", document->name, node->line, node->column,
                         policy_keys[key].name);
}

static struct error *item_add(struct policy_document *document, const struct yaml_node *node,
                              enum policy_key key, const char *item) {
    memory_owned char *origin = position(document, node);
    struct policy_list *list = policy_list_of(document->values, key);
    if (strcmp(item, "@default") == 0) {
        policy_list_append(list, item, origin);
        return NULL;
    }
    bool out = item[0] == '!';
    memory_owned char *canonical = NULL;
    TRY(at_node(document, node, key, policy_item_read(key, item + out, &canonical)));
    memory_owned char *value = text_formatted("%s%s", out ? "!" : "", canonical);
    policy_list_append(list, value, origin);
    return NULL;
}

/* {host: NAME, ports: [443], private: true} */
static struct error *host_read(struct policy_document *document, const struct yaml_node *map,
                               struct policy_host *host) {
    const struct yaml_node *ports = NULL;
    bool is_private = false;
    for (size_t i = 0; i < map->count; i += 2) {
        const struct yaml_node *key = map->items[i], *value = map->items[i + 1];
        if (strcmp(key->scalar, "host") == 0) {
            if (value->kind != YAML_SCALAR)
                return wrong(document, value, "network.allowed_hosts: expected a host, found %s",
                             kind_of(value));
            policy_host_clear(host);
            TRY(at_node(document, value, POLICY_NETWORK_ALLOWED_HOSTS,
                        policy_host_read(value->scalar, host)));
        } else if (strcmp(key->scalar, "ports") == 0) {
            ports = value;
        } else if (strcmp(key->scalar, "private") == 0) {
            if (value->kind != YAML_SCALAR || !value->plain ||
                (strcmp(value->scalar, "true") != 0 && strcmp(value->scalar, "false") != 0))
                return wrong(document, value, "network.allowed_hosts: private: expected true or false");
            is_private = value->scalar[0] == 't';
        } else {
            return wrong(document, key,
                         "unknown key \"%.*s\" of an allowed host; known are host, ports and private",
                         QUOTED_MAX, key->scalar);
        }
    }
    if (host->ports_count == 0)
        return wrong(document, map, "network.allowed_hosts: an allowed host needs a \"host\"");
    host->is_private |= is_private;
    if (ports == NULL)
        return NULL;
    if (ports->kind != YAML_LIST || ports->count == 0)
        return wrong(document, ports, "network.allowed_hosts: ports: expected a list such as [443]");
    host->ports_count = 0;
    for (size_t i = 0; i < ports->count; i++) {
        if (ports->items[i]->kind != YAML_SCALAR)
            return wrong(document, ports->items[i], "network.allowed_hosts: ports: expected a port");
        TRY(at_node(document, ports->items[i], POLICY_NETWORK_ALLOWED_HOSTS,
                    policy_host_add_port(host, ports->items[i]->scalar)));
    }
    return NULL;
}

static struct error *item_read(struct policy_document *document, const struct yaml_node *node,
                               enum policy_key key) {
    if (node->kind == YAML_SCALAR && !policy_yaml_is_null(node))
        return item_add(document, node, key, node->scalar);
    if (node->kind == YAML_SCALAR && node->plain && strcmp(node->scalar, "~") == 0)
        return item_add(document, node, key, "~"); /* YAML's null, and the home that was meant */
    if (node->kind == YAML_MAP && key == POLICY_NETWORK_ALLOWED_HOSTS) {
        struct policy_host host = {0};
        struct error *error = host_read(document, node, &host);
        if (error == NULL) {
            memory_owned char *item = policy_host_write(&host);
            error = item_add(document, node, key, item);
        }
        policy_host_clear(&host);
        return error;
    }
    return wrong(document, node, "%s: expected an item, found %s", policy_keys[key].name,
                 policy_yaml_is_null(node) ? "nothing" : kind_of(node));
}

static struct error *value_read(struct policy_document *document, const struct yaml_node *node,
                                enum policy_key key) {
    document->written[key] = true;
    free(document->positions[key]);
    document->positions[key] = position(document, node);
    if (policy_keys[key].type == POLICY_TYPE_LIST) {
        if (node->kind == YAML_LIST) {
            for (size_t i = 0; i < node->count; i++)
                TRY(item_read(document, node->items[i], key));
            return NULL;
        }
        if (node->kind == YAML_SCALAR && !policy_yaml_is_null(node)) /* "@default", and a list of one */
            return item_read(document, node, key);
        return wrong(document, node, "%s: expected a list, found %s", policy_keys[key].name,
                     node->kind == YAML_SCALAR ? "nothing" : kind_of(node));
    }
    if (node->kind != YAML_SCALAR) {
        memory_owned char *expected = policy_value_expected(key);
        return wrong(document, node, "%s: expected %s, found %s", policy_keys[key].name, expected,
                     kind_of(node));
    }
    return at_node(document, node, key, policy_value_read(document->values, key, node->scalar, node->plain));
}

static struct error *extends_read(struct policy_document *document, const struct yaml_node *node) {
    if (node->kind == YAML_MAP)
        return wrong(document, node, "extends: expected a list of policies, found a map");
    for (size_t i = 0; i < (node->kind == YAML_LIST ? node->count : 1); i++) {
        const struct yaml_node *item = node->kind == YAML_LIST ? node->items[i] : node;
        if (item->kind != YAML_SCALAR || item->scalar[0] == '\0')
            return wrong(document, item, "extends: expected the name or the file of a policy");
        memory_owned char *origin = position(document, item);
        policy_list_append(&document->extends, item->scalar, origin);
    }
    return NULL;
}

static bool is_section(const char *name) {
    size_t length = strlen(name);
    for (enum policy_key key = 0; key < POLICY_KEY_COUNT; key++)
        if (length > 0 && section_length(policy_keys[key].name) == length &&
            strncmp(policy_keys[key].name, name, length) == 0)
            return true;
    return false;
}

static struct error *section_read(struct policy_document *document, const char *section,
                                  const struct yaml_node *map) {
    if (map->kind == YAML_SCALAR && policy_yaml_is_null(map))
        return NULL; /* "network:" with nothing below it */
    if (map->kind != YAML_MAP)
        return wrong(document, map, "%s: expected keys and their values, found %s", section, kind_of(map));
    for (size_t i = 0; i < map->count; i += 2) {
        memory_owned char *name = text_formatted("%s.%s", section, map->items[i]->scalar);
        enum policy_key key = policy_key_find(name);
        if (key == POLICY_KEY_COUNT)
            return unknown_key(document, map->items[i], section);
        TRY(value_read(document, map->items[i + 1], key));
    }
    return NULL;
}

static struct error *root_read(struct policy_document *document, const struct yaml_node *root) {
    if (root->kind != YAML_MAP)
        return wrong(document, root, "expected a policy: keys and their values, found %s", kind_of(root));
    for (size_t i = 0; i < root->count; i += 2) {
        const struct yaml_node *key = root->items[i], *value = root->items[i + 1];
        if (strcmp(key->scalar, "version") == 0) {
            if (value->kind != YAML_SCALAR || strcmp(value->scalar, "1") != 0)
                return wrong(document, value, "version: expected 1, the only version there is");
        } else if (strcmp(key->scalar, "extends") == 0) {
            TRY(extends_read(document, value));
        } else if (is_section(key->scalar)) {
            TRY(section_read(document, key->scalar, value));
        } else if (strchr(key->scalar, '.') == NULL && policy_key_find(key->scalar) != POLICY_KEY_COUNT) {
            TRY(value_read(document, value, policy_key_find(key->scalar)));
        } else {
            return unknown_key(document, key, "");
        }
    }
    return NULL;
}

struct error *policy_document_read(const char *name, const char *bytes, size_t length,
                                   struct policy_document **out) {
    *out = NULL;
    policy_yaml_owned struct yaml_node *root = NULL;
    TRY(policy_yaml_read(name, bytes, length, &root));
    struct policy_document *document = document_new(name);
    struct error *error = root != NULL && !policy_yaml_is_null(root) ? root_read(document, root) : NULL;
    if (error != NULL)
        policy_document_free(document);
    else
        *out = document;
    return error;
}

struct error *policy_document_read_value(const char *origin, enum policy_key key, const char *value,
                                         struct policy_document **out) {
    *out = NULL;
    policy_yaml_owned struct yaml_node *node = NULL;
    TRY(policy_yaml_read(origin, value, strlen(value), &node));
    if (node == NULL)
        return error_new(ERROR_INVALID, "%s: expected a value, found nothing", origin);
    struct policy_document *document = document_new(origin);
    struct error *error = value_read(document, node, key);
    if (error != NULL)
        policy_document_free(document);
    else
        *out = document;
    return error;
}

/* --- putting documents together --- */

static void scalar_copy(const struct policy *from, enum policy_key key, struct policy *to) {
    text_owned struct text value = {0};
    policy_value_write(from, key, &value);
    /* What was written by policy_value_write is read back by policy_value_read. */
    error_ignore(policy_value_read(to, key, text_string(&value), true));
}

void policy_document_join(struct policy_document *document, const struct policy_document *over) {
    for (enum policy_key key = 0; key < POLICY_KEY_COUNT; key++) {
        if (!over->written[key])
            continue;
        document->written[key] = true;
        memory_replace_string(&document->positions[key], over->positions[key]);
        if (policy_keys[key].type != POLICY_TYPE_LIST) {
            scalar_copy(over->values, key, document->values);
            continue;
        }
        const struct policy_list *list = policy_list_of(over->values, key);
        for (size_t i = 0; i < list->values.count; i++)
            policy_list_append(policy_list_of(document->values, key), list->values.items[i],
                               policy_list_origin(list, i));
    }
}

static void item_remove(struct policy_list *list, const char *value) {
    for (size_t i = list->values.count; i > 0; i--)
        if (strcmp(list->values.items[i - 1], value) == 0)
            policy_list_remove(list, i - 1);
}

static void item_put(struct policy_list *list, const char *value, const char *origin) {
    if (!string_list_contains(&list->values, value))
        policy_list_append(list, value, origin);
}

static void default_put(enum policy_key key, const char *origin, struct policy_list *list) {
    struct policy *agent = NULL;
    error_ignore(policy_select("agent", &agent)); /* it is built in */
    const struct policy_list *items = policy_list_of(agent, key);
    memory_owned char *words = text_formatted("%s @default", origin);
    for (size_t i = 0; i < items->values.count; i++)
        item_put(list, items->values.items[i], words);
    policy_free(agent);
}

static bool only_takes_out(const struct string_list *items) {
    for (size_t i = 0; i < items->count; i++)
        if (items->items[i][0] != '!')
            return false;
    return items->count > 0;
}

static void list_apply(const struct policy_list *written, enum policy_key key, struct policy_list *list) {
    if (!only_takes_out(&written->values)) {
        policy_list_free(list);
        *list = (struct policy_list){0};
    }
    for (size_t i = 0; i < written->values.count; i++) {
        const char *item = written->values.items[i], *origin = policy_list_origin(written, i);
        if (strcmp(item, "@default") == 0)
            default_put(key, origin, list);
        else if (item[0] == '!')
            item_remove(list, item + 1);
        else
            item_put(list, item, origin);
    }
}

void policy_document_apply_key(const struct policy_document *document, enum policy_key key,
                               struct policy *policy) {
    if (!document->written[key])
        return;
    memory_replace_string(&policy->origins[key], document->positions[key]);
    if (policy_keys[key].type == POLICY_TYPE_LIST)
        list_apply(policy_list_of(document->values, key), key, policy_list_of(policy, key));
    else
        scalar_copy(document->values, key, policy);
}

void policy_document_apply(const struct policy_document *document, struct policy *policy) {
    for (enum policy_key key = 0; key < POLICY_KEY_COUNT; key++)
        policy_document_apply_key(document, key, policy);
}
