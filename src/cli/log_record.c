#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_tree.h>

#include "base/memory.h"
#include "cli/log_parts.h"

#define PATH(...)                                                                                            \
    (const char *[]) {                                                                                       \
        __VA_ARGS__, NULL                                                                                    \
    }

static const char *string_at(yajl_val tree, const char **path) {
    yajl_val value = tree ? yajl_tree_get(tree, path, yajl_t_string) : NULL;
    return value ? YAJL_GET_STRING(value) : NULL;
}

static int64_t integer_at(yajl_val tree, const char **path, int64_t absent) {
    yajl_val value = tree ? yajl_tree_get(tree, path, yajl_t_number) : NULL;
    return value && YAJL_IS_INTEGER(value) ? YAJL_GET_INTEGER(value) : absent;
}

static char *copy(const char *string) {
    return string && string[0] ? memory_copy_string(string) : NULL;
}

/* host:port, with brackets around an IPv6 address, and the protocol where it is not TCP. */
static char *destination(yajl_val tree) {
    const char *name = string_at(tree, PATH("dst_endpoint", "hostname"));
    const char *address = string_at(tree, PATH("dst_endpoint", "ip"));
    const char *protocol = string_at(tree, PATH("connection_info", "protocol_name"));
    int64_t port = integer_at(tree, PATH("dst_endpoint", "port"), 0);
    if (name == NULL)
        name = address ? address : string_at(tree, PATH("dst_endpoint", "name"));
    struct text text = {0};
    bool brackets = name != NULL && name == address && strchr(name, ':') != NULL && port != 0;
    text_format(&text, brackets ? "[%s]" : "%s", name ? name : "?");
    if (port != 0)
        text_format(&text, ":%" PRId64, port);
    if (protocol != NULL && strcmp(protocol, "tcp") != 0)
        text_format(&text, " (%s)", protocol);
    return text_take(&text);
}

static char *exit_text(int64_t code) {
    return code == INT64_MIN ? NULL : text_formatted("exit code %" PRId64, code);
}

static char *resource_name(yajl_val tree) {
    yajl_val list = yajl_tree_get(tree, PATH("resources"), yajl_t_array);
    if (list == NULL || YAJL_GET_ARRAY(list)->len == 0)
        return NULL;
    return copy(string_at(YAJL_GET_ARRAY(list)->values[0], PATH("name")));
}

/* What it was about, in one cell. */
static char *object_of(yajl_val tree, const struct log_record *record) {
    switch (record->class_id) {
    case 1001:
        return copy(string_at(tree, PATH("file", "path")));
    case 1007:
        if (record->activity_id == 2)
            return exit_text(integer_at(tree, PATH("exit_code"), INT64_MIN));
        if (record->activity_id != 99)
            return copy(string_at(tree, PATH("process", "cmd_line")));
        return text_formatted("%s()", record->activity ? record->activity : "?");
    case 4001:
    case 4002:
        return destination(tree);
    case 4003:
        return copy(string_at(tree, PATH("query", "hostname")));
    case 2004:
        return resource_name(tree);
    case 6002:
        return exit_text(integer_at(tree, PATH("unmapped", "exit_code"), INT64_MIN));
    case 5019:
        return copy(string_at(tree, PATH("policy", "name")));
    default:
        return copy(string_at(tree, PATH("message")));
    }
}

static void read_container(yajl_val tree, struct log_record *out) {
    yajl_val container = yajl_tree_get(tree, PATH("actor", "process", "container"), yajl_t_object);
    out->container_id = copy(string_at(container, PATH("uid")));
    out->container_name = copy(string_at(container, PATH("name")));
    out->image = copy(string_at(container, PATH("image", "name")));
}

bool log_record_parse(const char *line, size_t length, struct log_record *out) {
    *out = (struct log_record){0};
    memory_owned char *text = memory_zeroed(length + 1); /* yajl wants a NUL */
    memcpy(text, line, length);
    yajl_val tree = yajl_tree_parse(text, NULL, 0);
    if (tree == NULL || !YAJL_IS_OBJECT(tree)) {
        yajl_tree_free(tree);
        return false;
    }
    out->class_id = (int)integer_at(tree, PATH("class_uid"), 0);
    out->time_ms = integer_at(tree, PATH("time"), 0);
    out->activity_id = (int)integer_at(tree, PATH("activity_id"), 0);
    out->action_id = (int)integer_at(tree, PATH("action_id"), 0);
    out->pid = integer_at(tree, PATH("actor", "process", "pid"), 0);
    int64_t count = integer_at(tree, PATH("count"), 1);
    int64_t suppressed = integer_at(tree, PATH("unmapped", "suppressed"), 0);
    out->count = count < 0 ? 0 : (uint64_t)count;
    out->suppressed = suppressed < 0 ? 0 : (uint64_t)suppressed;
    out->activity = copy(string_at(tree, PATH("activity_name")));
    out->reason = copy(string_at(tree, PATH("status_detail")));
    out->process = copy(string_at(tree, PATH("actor", "process", "name")));
    out->remedy = copy(string_at(tree, PATH("unmapped", "remedy")));
    out->run = copy(string_at(tree, PATH("metadata", "correlation_uid")));
    out->policy = copy(string_at(tree, PATH("policy", "name")));
    out->policy_digest = copy(string_at(tree, PATH("policy", "uid")));
    out->message = copy(string_at(tree, PATH("message")));
    out->exec_id = copy(string_at(tree, PATH("unmapped", "exec_id")));
    read_container(tree, out);
    out->object = object_of(tree, out);
    yajl_tree_free(tree);
    return out->class_id != 0;
}

void log_record_clear(struct log_record *record) {
    free(record->activity);
    free(record->reason);
    free(record->message);
    free(record->process);
    free(record->object);
    free(record->remedy);
    free(record->run);
    free(record->container_id);
    free(record->container_name);
    free(record->image);
    free(record->policy);
    free(record->policy_digest);
    free(record->exec_id);
    *record = (struct log_record){0};
}

bool log_record_is_denial(const struct log_record *record) {
    return record->action_id == 2;
}

bool log_record_is_end(const struct log_record *record) {
    return record->class_id == 6002 && record->activity_id == 4;
}

bool log_record_is_execution(const struct log_record *record) {
    return record->class_id == 1007 && record->activity_id != 99;
}
