#include "policy/settings.h"

#include <string.h>

#include "base/memory.h"
#include "policy/yaml.h"

static struct error *wrong(const char *path, const struct yaml_node *node, const char *what) {
    return error_new(ERROR_INVALID, "%s:%u:%u: %s", path, node->line, node->column, what);
}

static struct error *selectable_read(const char *path, const struct yaml_node *node,
                                     struct policy_settings *out) {
    if (node->kind != YAML_LIST)
        return wrong(path, node, "selectable: expected a list of policies");
    for (size_t i = 0; i < node->count; i++) {
        if (node->items[i]->kind != YAML_SCALAR)
            return wrong(path, node->items[i], "selectable: expected the name of a policy");
        string_list_append(&out->selectable, node->items[i]->scalar);
    }
    return NULL;
}

static struct error *root_read(const char *path, const struct yaml_node *root, struct policy_settings *out) {
    if (root->kind != YAML_MAP)
        return wrong(path, root, "expected keys and their values");
    for (size_t i = 0; i < root->count; i += 2) {
        const struct yaml_node *key = root->items[i], *value = root->items[i + 1];
        if (strcmp(key->scalar, "version") == 0) {
            if (value->kind != YAML_SCALAR || strcmp(value->scalar, "1") != 0)
                return wrong(path, value, "version: expected 1, the only version there is");
        } else if (strcmp(key->scalar, "selectable") == 0) {
            TRY(selectable_read(path, value, out));
        } else if (strcmp(key->scalar, "annotations") == 0) {
            if (value->kind != YAML_SCALAR ||
                (strcmp(value->scalar, "full") != 0 && strcmp(value->scalar, "narrow") != 0))
                return wrong(path, value, "annotations: expected narrow or full");
            out->annotations_full = strcmp(value->scalar, "full") == 0;
        } else {
            return wrong(path, key, "unknown key; known are version, selectable and annotations");
        }
    }
    return NULL;
}

struct error *policy_settings_read(const struct policy_places *places, struct policy_settings *out) {
    *out = (struct policy_settings){0};
    memory_owned char *path = text_formatted("%s/config.yaml", places->configuration);
    struct policy_bytes bytes;
    TRY(policy_file_read(path, places, NULL, &bytes));
    policy_yaml_owned struct yaml_node *root = NULL;
    struct error *error =
        bytes.missing ? NULL : policy_yaml_read(path, text_string(&bytes.text), bytes.text.length, &root);
    policy_bytes_clear(&bytes);
    if (error == NULL && root != NULL && !policy_yaml_is_null(root))
        error = root_read(path, root, out);
    return error;
}

void policy_settings_clear(struct policy_settings *settings) {
    string_list_free(&settings->selectable);
}
