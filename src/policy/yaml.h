/* YAML as a bounded tree of nodes that know where they stand. What a policy has no use for and a reader could
 * trip over is refused: anchors, aliases, tags, a second document, a key written twice, control characters.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define YAML_BYTES_MAX (256u * 1024)
#define YAML_DEPTH_MAX 12
#define YAML_NODES_MAX 20000

enum yaml_kind { YAML_SCALAR, YAML_LIST, YAML_MAP };

struct yaml_node {
    enum yaml_kind kind;
    unsigned line;   /* from 1 */
    unsigned column; /* from 1, in characters */
    bool plain;      /* a scalar without quotes: only such a one is null, true, or a number */
    char *scalar;
    struct yaml_node **items; /* of a list; of a map: key, value, key, value */
    size_t count;
};

/* Reads one document; NULL in *out for an empty one. `name` is the file's, for errors, which are
 * ERROR_INVALID and begin with NAME:LINE:COLUMN. The caller frees *out. */
fallible policy_yaml_read(const char *name, const char *bytes, size_t length, struct yaml_node **out);
void policy_yaml_free(struct yaml_node *node);
void policy_yaml_cleanup(struct yaml_node **node);
#define policy_yaml_owned __attribute__((cleanup(policy_yaml_cleanup)))

/* Is it null: nothing, `~` or `null`, unquoted? */
bool policy_yaml_is_null(const struct yaml_node *node);
