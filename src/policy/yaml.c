#include "policy/yaml.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/memory.h"
#include "base/text.h"

struct reader {
    yaml_parser_t parser;
    const char *name;
    size_t nodes;
};

static struct error *wrong(const struct reader *reader, yaml_mark_t mark, const char *what) {
    return error_new(ERROR_INVALID, "%s:%zu:%zu: %s", reader->name, mark.line + 1, mark.column + 1, what);
}

void policy_yaml_free(struct yaml_node *node) {
    if (node == NULL)
        return;
    for (size_t i = 0; i < node->count; i++)
        policy_yaml_free(node->items[i]);
    free(node->items);
    free(node->scalar);
    free(node);
}

void policy_yaml_cleanup(struct yaml_node **node) {
    policy_yaml_free(*node);
    *node = NULL;
}

bool policy_yaml_is_null(const struct yaml_node *node) {
    return node->kind == YAML_SCALAR && node->plain &&
           (strcmp(node->scalar, "") == 0 || strcmp(node->scalar, "~") == 0 ||
            strcmp(node->scalar, "null") == 0);
}

static struct error *next_event(struct reader *reader, yaml_event_t *event) {
    if (yaml_parser_parse(&reader->parser, event))
        return NULL;
    const yaml_parser_t *parser = &reader->parser;
    if (parser->error == YAML_MEMORY_ERROR)
        return error_new(ERROR_INVALID, "%s: not enough memory to read it", reader->name);
    if (parser->error == YAML_READER_ERROR)
        return error_new(ERROR_INVALID, "%s: byte %zu: %s (a policy is UTF-8)", reader->name,
                         parser->problem_offset, parser->problem);
    const char *problem = parser->problem != NULL ? parser->problem : "this is not YAML";
    if (parser->context == NULL)
        return wrong(reader, parser->problem_mark, problem);
    memory_owned char *words = text_formatted("%s, %s", parser->context, problem);
    return wrong(reader, parser->problem_mark, words);
}

static struct error *scalar_check(const struct reader *reader, const yaml_event_t *event) {
    const char *value = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)value[i] < 0x20 || value[i] == 0x7f)
            return wrong(reader, event->start_mark, "a value of a policy holds no control characters");
    return NULL;
}

static struct error *decoration_check(const struct reader *reader, const yaml_event_t *event,
                                      const yaml_char_t *anchor, const yaml_char_t *tag) {
    if (anchor != NULL)
        return wrong(reader, event->start_mark, "anchors (&name) are not used in policies");
    if (tag != NULL)
        return wrong(reader, event->start_mark, "tags (!name) are not used in policies; quote \"!x\"");
    return NULL;
}

static struct error *node_make(struct reader *reader, const yaml_event_t *event, unsigned depth,
                               struct yaml_node **out) {
    if (++reader->nodes > YAML_NODES_MAX)
        return wrong(reader, event->start_mark, "more values than a policy may have");
    if (depth > YAML_DEPTH_MAX)
        return wrong(reader, event->start_mark, "nested deeper than a policy may be");
    struct yaml_node *node = memory_zeroed(sizeof *node);
    *out = node;
    node->line = (unsigned)event->start_mark.line + 1;
    node->column = (unsigned)event->start_mark.column + 1;
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        TRY(decoration_check(reader, event, event->data.scalar.anchor, event->data.scalar.tag));
        TRY(scalar_check(reader, event));
        node->kind = YAML_SCALAR;
        node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
        node->scalar = memory_copy_string((const char *)event->data.scalar.value);
        return NULL;
    case YAML_SEQUENCE_START_EVENT:
        node->kind = YAML_LIST;
        return decoration_check(reader, event, event->data.sequence_start.anchor,
                                event->data.sequence_start.tag);
    case YAML_MAPPING_START_EVENT:
        node->kind = YAML_MAP;
        return decoration_check(reader, event, event->data.mapping_start.anchor,
                                event->data.mapping_start.tag);
    case YAML_ALIAS_EVENT:
        return wrong(reader, event->start_mark,
                     "aliases (*name) are not used in policies; quote a name that begins with a star");
    default:
        return wrong(reader, event->start_mark, "expected a value");
    }
}

static struct error *key_check(const struct reader *reader, const struct yaml_node *map) {
    const struct yaml_node *key = map->items[map->count - 1];
    yaml_mark_t mark = {.line = key->line - 1, .column = key->column - 1};
    if (key->kind != YAML_SCALAR)
        return wrong(reader, mark, "a key is a word");
    for (size_t i = 0; i + 1 < map->count; i += 2) {
        if (strcmp(map->items[i]->scalar, key->scalar) != 0)
            continue;
        memory_owned char *words = text_formatted("key \"%.80s\" is written twice, the first time in line %u",
                                                  key->scalar, map->items[i]->line);
        return wrong(reader, mark, words);
    }
    return NULL;
}

static struct error *node_read(struct reader *reader, const yaml_event_t *first, unsigned depth,
                               struct yaml_node **out);

/* The nodes up to the end of a list or a map. */
static struct error *children_read(struct reader *reader, struct yaml_node *node, unsigned depth) {
    yaml_event_type_t end = node->kind == YAML_LIST ? YAML_SEQUENCE_END_EVENT : YAML_MAPPING_END_EVENT;
    for (;;) {
        yaml_event_t event;
        TRY(next_event(reader, &event));
        if (event.type == end) {
            yaml_event_delete(&event);
            return NULL;
        }
        node->items = memory_resize(node->items, node->count + 1, sizeof(struct yaml_node *));
        node->items[node->count] = NULL;
        struct error *error = node_read(reader, &event, depth + 1, &node->items[node->count]);
        yaml_event_delete(&event);
        node->count++;
        TRY(error);
        if (node->kind == YAML_MAP && node->count % 2 == 1)
            TRY(key_check(reader, node));
    }
}

static struct error *node_read(struct reader *reader, const yaml_event_t *first, unsigned depth,
                               struct yaml_node **out) {
    TRY(node_make(reader, first, depth, out));
    return (*out)->kind == YAML_SCALAR ? NULL : children_read(reader, *out, depth);
}

/* `first` is cleared whatever happens. */
static struct error *document_read(struct reader *reader, yaml_event_t *first, struct yaml_node **out) {
    yaml_event_type_t type = first->type;
    struct error *error = NULL;
    if (type == YAML_DOCUMENT_START_EVENT) {
        yaml_event_delete(first);
        TRY(next_event(reader, first));
        error = node_read(reader, first, 1, out);
    }
    yaml_event_delete(first);
    if (error != NULL || type == YAML_STREAM_END_EVENT)
        return error;
    TRY(next_event(reader, first)); /* the document's end */
    yaml_event_delete(first);
    TRY(next_event(reader, first));
    if (first->type != YAML_STREAM_END_EVENT)
        error = wrong(reader, first->start_mark, "a policy is one document: no second one after ---");
    yaml_event_delete(first);
    return error;
}

struct error *policy_yaml_read(const char *name, const char *bytes, size_t length, struct yaml_node **out) {
    *out = NULL;
    if (length > YAML_BYTES_MAX)
        return error_new(ERROR_INVALID, "%s: larger than the %u bytes allowed", name, YAML_BYTES_MAX);
    struct reader reader = {.name = name};
    if (!yaml_parser_initialize(&reader.parser))
        return error_new(ERROR_INVALID, "%s: not enough memory to read it", name);
    yaml_parser_set_encoding(&reader.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&reader.parser, (const unsigned char *)bytes, length);
    yaml_event_t event;
    struct error *error = next_event(&reader, &event); /* the stream's start */
    if (error == NULL) {
        yaml_event_delete(&event);
        error = next_event(&reader, &event);
    }
    if (error == NULL)
        error = document_read(&reader, &event, out);
    yaml_parser_delete(&reader.parser);
    if (error != NULL)
        policy_yaml_cleanup(out);
    return error;
}
