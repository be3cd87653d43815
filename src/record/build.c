/* An event becomes one OCSF 1.8 object. The order of a line: time, what (class, action, reason, message), who
 * (actor, device), why (policy, firewall_rule), the object of the class, `unmapped`, and `metadata` last,
 * because the sequence and whether something was cut are known last. Attributes that a class lacks stand
 * under `unmapped`. */
#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "record/internal.h"
#include "record/redact.h"

#define BODY_USUAL 2048

/* -- strings -- */

/* C0, DEL, C1 (one of them is CSI), and the controls that reorder text on a screen. */
static bool drives_terminal(uint32_t point) {
    return point < 0x20 || (point >= 0x7f && point <= 0x9f) || point == 0x61c || point == 0x200e ||
           point == 0x200f || (point >= 0x2028 && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
}

bool record_quote(struct text *out, const char *string, size_t length, size_t limit) {
    const unsigned char *bytes = (const unsigned char *)string;
    static const size_t mark_room = 40; /* " ...[4294967295 bytes more]" */
    size_t used = 0;
    text_append(out, "\"");
    for (size_t i = 0; i < length;) {
        uint32_t point = 0;
        size_t plain = i; /* a run that needs no escape is appended at once */
        while (plain < length && bytes[plain] >= 0x20 && bytes[plain] < 0x7f && bytes[plain] != '"' &&
               bytes[plain] != '\\')
            plain++;
        size_t run = plain - i;
        size_t room = limit - mark_room - used;
        bool fits_whole = length - i <= limit - used && plain == length;
        if (run > 0 && (run <= room || fits_whole)) {
            text_append_bytes(out, bytes + i, run);
            used += run;
            i = plain;
            continue;
        }
        char escape[16];
        size_t sequence = run > 0 ? 1 : utf8_sequence(bytes + i, length - i, &point);
        const char *piece = (const char *)bytes + i;
        size_t size = sequence;
        if (run > 0) {
            size = room; /* as much of the run as there is room for, then the mark */
        } else if (sequence == 0) {
            piece = "\xef\xbf\xbd";
            size = 3;
            sequence = 1;
        } else if (point == '"' || point == '\\') {
            size = (size_t)snprintf(escape, sizeof escape, "\\%c", (int)point);
            piece = escape;
        } else if (drives_terminal(point)) {
            size = (size_t)(point == '\n'   ? snprintf(escape, sizeof escape, "\\n")
                            : point == '\t' ? snprintf(escape, sizeof escape, "\\t")
                                            : snprintf(escape, sizeof escape, "\\u%04x", point));
            piece = escape;
        }
        if (run == 0 && size <= room) {
            text_append_bytes(out, piece, size);
            used += size;
            i += sequence;
            continue;
        }
        if (run > 0) {
            text_append_bytes(out, piece, size);
            i += size;
        }
        text_format(out, " ...[%zu bytes more]\"", length - i);
        return true;
    }
    text_append(out, "\"");
    return false;
}

struct builder {
    struct json_writer json;
    bool truncated;
};

/* The bytes of a key or constant, which need no escape: json_key looks at each of them, and a record has
 * fifty. */
static void key(struct builder *builder, const char *name) {
    struct text *text = &builder->json.text;
    if (builder->json.comma)
        text_append_bytes(text, ",\"", 2);
    else
        text_append_bytes(text, "\"", 1);
    text_append(text, name);
    text_append_bytes(text, "\":", 2);
    builder->json.comma = false;
}

static void member_constant(struct builder *builder, const char *name, const char *value) {
    struct text *text = &builder->json.text;
    key(builder, name);
    text_append_bytes(text, "\"", 1);
    text_append(text, value);
    text_append_bytes(text, "\"", 1);
    builder->json.comma = true;
}

static void value_bounded(struct builder *builder, const char *bytes, size_t length, size_t limit) {
    if (builder->json.comma)
        text_append(&builder->json.text, ",");
    builder->json.comma = true;
    builder->truncated |= record_quote(&builder->json.text, bytes, length, limit);
}

static void member(struct builder *builder, const char *name, const char *value, size_t limit) {
    if (value == NULL || value[0] == '\0')
        return;
    key(builder, name);
    value_bounded(builder, value, strlen(value), limit);
}

/* A string that may hold what a workload wrote: secrets of known shape are taken out. */
static void member_redacted(struct builder *builder, const char *name, const char *value, size_t limit) {
    if (value == NULL || value[0] == '\0')
        return;
    text_owned struct text clean = {0};
    size_t length = strlen(value);
    key(builder, name);
    if (redact_needed(value, length)) {
        redact_text(value, length, &clean);
        value_bounded(builder, clean.data, clean.length, limit);
    } else {
        value_bounded(builder, value, length, limit);
    }
}

static void member_integer(struct builder *builder, const char *name, int64_t value) {
    key(builder, name);
    json_integer(&builder->json, value);
}

static void member_raw(struct builder *builder, const char *name, const char *value) {
    if (value == NULL)
        return;
    key(builder, name);
    text_append(&builder->json.text, value);
    builder->json.comma = true;
}

static void open_object(struct builder *builder, const char *name) {
    if (name != NULL)
        key(builder, name);
    json_object_begin(&builder->json);
}

static void close_object(struct builder *builder) {
    json_object_end(&builder->json);
}

/* -- what all records share -- */

/* The first that is there and not empty. */
static const char *first_of(const char *one, const char *two, const char *three) {
    return one != NULL && one[0] != '\0' ? one : two != NULL && two[0] != '\0' ? two : three;
}

static bool is_uuid(const char *text) {
    static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    size_t i = 0;
    for (; form[i] != '\0'; i++)
        if (form[i] == 'x' ? !isxdigit((unsigned char)text[i]) : text[i] != '-')
            return false;
    return text[i] == '\0';
}

static void add_image(struct builder *builder, const struct record_subject *subject) {
    /* The uid is required by the schema; without a digest the name is all that identifies the image. */
    const char *uid = first_of(subject->image_digest, subject->image, NULL);
    if (uid == NULL)
        return;
    open_object(builder, "image");
    member(builder, "name", subject->image, RECORD_NAME_MAX);
    member(builder, "uid", uid, RECORD_NAME_MAX);
    close_object(builder);
}

static char *make_container(const struct record_subject *subject) {
    struct builder builder = {0};
    open_object(&builder, NULL);
    member(&builder, "uid", first_of(subject->container_id, "unknown", NULL), RECORD_NAME_MAX);
    member(&builder, "name", first_of(subject->container_name, subject->container_id, "unknown"),
           RECORD_NAME_MAX);
    add_image(&builder, subject);
    member(&builder, "runtime", first_of(subject->runtime, "pinfold", NULL), RECORD_NAME_MAX);
    if (subject->pod_uuid != NULL && is_uuid(subject->pod_uuid))
        member(&builder, "pod_uuid", subject->pod_uuid, RECORD_NAME_MAX);
    close_object(&builder);
    return text_take(&builder.json.text);
}

static char *make_device(const struct record_subject *subject) {
    struct builder builder = {0};
    open_object(&builder, NULL);
    member(&builder, "hostname", first_of(subject->hostname, "localhost", NULL), RECORD_NAME_MAX);
    member_integer(&builder, "type_id", 0); /* Unknown: a server, a laptop, a virtual machine */
    close_object(&builder);
    return text_take(&builder.json.text);
}

static char *make_policy(const struct record_subject *subject) {
    if (first_of(subject->policy_name, subject->policy_digest, NULL) == NULL)
        return NULL;
    struct builder builder = {0};
    open_object(&builder, NULL);
    member(&builder, "name", subject->policy_name, RECORD_NAME_MAX);
    member(&builder, "uid", subject->policy_digest, RECORD_NAME_MAX);
    json_member_boolean(&builder.json, "is_applied", true);
    close_object(&builder);
    return text_take(&builder.json.text);
}

static char *make_metadata(const struct record_subject *subject, char **correlation) {
    struct builder builder = {0};
    open_object(&builder, NULL);
    member_constant(&builder, "version", "1.8.0");
    key(&builder, "product");
    json_object_begin(&builder.json);
    member_constant(&builder, "name", "pinfold");
    member_constant(&builder, "vendor_name", "pinfold");
    member_constant(&builder, "version", PINFOLD_VERSION);
    json_object_end(&builder.json);
    key(&builder, "profiles");
    json_array_begin(&builder.json);
    json_string(&builder.json, "security_control");
    json_string(&builder.json, "host");
    json_string(&builder.json, "container");
    json_array_end(&builder.json);
    *correlation = NULL;
    if (subject->run_id != NULL && subject->run_id[0] != '\0') {
        size_t before = builder.json.text.length + 1; /* behind the comma */
        member(&builder, "correlation_uid", subject->run_id, RECORD_NAME_MAX);
        *correlation = memory_copy_string(builder.json.text.data + before);
    }
    return text_take(&builder.json.text); /* open: record_line closes it */
}

static char *make_application(const struct record_subject *subject) {
    struct builder builder = {0};
    open_object(&builder, NULL);
    member(&builder, "name", first_of(subject->container_name, subject->container_id, "unknown"),
           RECORD_NAME_MAX);
    member(&builder, "uid", subject->container_id, RECORD_NAME_MAX);
    close_object(&builder);
    return text_take(&builder.json.text);
}

static char *make_source_endpoint(const struct record_subject *subject) {
    struct builder builder = {0};
    const char *id = first_of(subject->container_id, "unknown", NULL);
    member(&builder, "uid", id, RECORD_NAME_MAX);
    member(&builder, "name", first_of(subject->container_name, id, NULL), RECORD_NAME_MAX);
    return text_take(&builder.json.text);
}

static char *make_run(const struct record_subject *subject) {
    struct text text = {0};
    const char *run = subject->run_id ? subject->run_id : "";
    (void)record_quote(&text, run, strlen(run), RECORD_NAME_MAX);
    text.data[text.length - 1] = '\0';
    char *bare = memory_copy_string(text.data + 1);
    text_free(&text);
    return bare;
}

void record_constants_make(const struct record_subject *subject, struct record_constants *out) {
    out->container = make_container(subject);
    out->device = make_device(subject);
    out->policy = make_policy(subject);
    out->metadata = make_metadata(subject, &out->correlation);
    out->application = make_application(subject);
    out->source_endpoint = make_source_endpoint(subject);
    out->run = make_run(subject);
}

void record_constants_clear(struct record_constants *constants) {
    free(constants->container);
    free(constants->device);
    free(constants->policy);
    free(constants->metadata);
    free(constants->correlation);
    free(constants->application);
    free(constants->source_endpoint);
    free(constants->run);
    *constants = (struct record_constants){0};
}

/* -- classes and captions -- */

static const char *const file_activities[] = {
    "Unknown", "Create",         "Read",         "Update",         "Delete",
    "Rename",  "Set Attributes", "Set Security", "Get Attributes", "Get Security",
    "Encrypt", "Decrypt",        "Mount",        "Unmount",        "Open"};
static const char *const process_activities[] = {"Unknown", "Launch", "Terminate",
                                                 "Open",    "Inject", "Set User ID"};
static const char *const network_activities[] = {"Unknown", "Open",   "Close",   "Reset",
                                                 "Fail",    "Refuse", "Traffic", "Listen"};
static const char *const http_activities[] = {"Unknown", "Connect", "Delete", "Get",   "Head",
                                              "Options", "Post",    "Put",    "Trace", "Patch"};
static const char *const dns_activities[] = {"Unknown", "Query", "Response", NULL, NULL, NULL, "Traffic"};
static const char *const finding_activities[] = {"Unknown", "Create", "Update", "Close"};
static const char *const lifecycle_activities[] = {"Unknown", "Install", "Remove",  "Start", "Stop",
                                                   "Restart", "Enable",  "Disable", "Update"};
static const char *const policy_activities[] = {"Unknown", "Log", "Collect"};

#define COUNTED(array) array, sizeof(array) / sizeof(array)[0]

static const struct class_row {
    int uid;
    int category;
    const char *name;
    const char *const *activities;
    size_t activity_count;
} classes[] = {
    [RECORD_FILE] = {1001, 1, "File System Activity", COUNTED(file_activities)},
    [RECORD_PROCESS] = {1007, 1, "Process Activity", COUNTED(process_activities)},
    [RECORD_NETWORK] = {4001, 4, "Network Activity", COUNTED(network_activities)},
    [RECORD_HTTP] = {4002, 4, "HTTP Activity", COUNTED(http_activities)},
    [RECORD_DNS] = {4003, 4, "DNS Activity", COUNTED(dns_activities)},
    [RECORD_FINDING] = {2004, 2, "Detection Finding", COUNTED(finding_activities)},
    [RECORD_LIFECYCLE] = {6002, 6, "Application Lifecycle", COUNTED(lifecycle_activities)},
    [RECORD_POLICY] = {5019, 5, "Device Config State Change", COUNTED(policy_activities)},
};

static int activity_checked(const struct class_row *row, int activity) {
    bool known = activity == 99 || (activity >= 0 && (size_t)activity < row->activity_count &&
                                    row->activities[activity] != NULL);
    return known ? activity : 0;
}

enum severity { INFORMATIONAL = 1, LOW = 2, MEDIUM = 3, HIGH = 4, CRITICAL = 5 };

/* How much a person should care. A sandbox that works denies often: a plain denial is Medium. What only a
 * search for credentials does is High; what the runtime took away by itself, before the workload ran, is Low.
 */
static int severity(const struct record_event *event) {
    static const struct {
        const char *prefix;
        int severity;
    } rows[] = {
        {"fs.decoy.", HIGH},
        {"net.address.metadata", HIGH},
        {"warden.lost", CRITICAL},
        {"probe.failed", HIGH},
        {"policy.ceiling.", HIGH},
        {"mechanism.unavailable", HIGH},
        {"mechanism.degraded", MEDIUM},
        {"log.", MEDIUM},
        {"limit.", MEDIUM},
        {"credential.", LOW},
        {"capability.", LOW},
        {"device.", LOW},
        {"policy.annotation.", LOW},
        {"namespace.added", INFORMATIONAL},
    };
    if (event->action == RECORD_ALLOWED)
        return INFORMATIONAL;
    if (event->reason != NULL)
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
            if (text_starts_with(event->reason, rows[i].prefix))
                return rows[i].severity;
    return event->action == RECORD_DENIED ? MEDIUM : INFORMATIONAL;
}

static void add_action(struct builder *builder, const struct record_event *event) {
    enum record_action action =
        event->action >= RECORD_ALLOWED && event->action <= RECORD_OBSERVED ? event->action : RECORD_OBSERVED;
    static const struct {
        const char *action;
        int disposition_id;
        const char *disposition;
    } rows[] = {[RECORD_ALLOWED] = {"Allowed", 1, "Allowed"},
                [RECORD_DENIED] = {"Denied", 2, "Blocked"},
                [RECORD_OBSERVED] = {"Observed", 17, "Logged"}};
    member_integer(builder, "action_id", action);
    member_constant(builder, "action", rows[action].action);
    member_integer(builder, "disposition_id", rows[action].disposition_id);
    member_constant(builder, "disposition", rows[action].disposition);
    /* The outcome of what the workload tried; a finding has a status of its own: New. */
    member_integer(builder, "status_id",
                   event->class_id == RECORD_FINDING || event->action != RECORD_DENIED ? 1 : 2);
    member(builder, "status_detail", event->reason, RECORD_NAME_MAX);
}

/* -- who -- */

static void add_file(struct builder *builder, const char *role, const char *path, int type_id) {
    const char *slash = strrchr(path, '/');
    const char *name = slash && slash[1] ? slash + 1 : path;
    open_object(builder, role);
    member_redacted(builder, "name", name, type_id == 8 ? RECORD_NAME_MAX : RECORD_STRING_MAX);
    member_redacted(builder, "path", path, type_id == 8 ? RECORD_STRING_MAX * 2 : RECORD_PATH_MAX);
    member_integer(builder, "type_id", type_id);
    close_object(builder);
}

static void add_process(struct builder *builder, const char *role, const char *container,
                        const struct record_process *process, const struct record_event *execution);

/* What is known of a process that was launched or has ended. */
static void add_execution(struct builder *builder, const struct record_event *event) {
    member_redacted(builder, "working_directory", event->directory, RECORD_STRING_MAX * 2);
    if (event->begun_ms != 0)
        member_integer(builder, "created_time", event->begun_ms);
    if (event->ended_ms != 0)
        member_integer(builder, "terminated_time", event->ended_ms);
    if (event->parent != NULL && event->parent->pid > 0)
        add_process(builder, "parent_process", NULL, event->parent, NULL);
}

/* The process object. Where it is not known (gone before it could be looked up), its uid says so: the schema
 * wants one of pid, uid, cpid, and a reader wants the container beside it. */
static void add_process(struct builder *builder, const char *role, const char *container,
                        const struct record_process *process, const struct record_event *execution) {
    bool known = process != NULL && process->pid > 0;
    open_object(builder, role);
    if (known)
        member_integer(builder, "pid", process->pid);
    else
        member_constant(builder, "uid", "unknown");
    if (process != NULL) {
        member_redacted(builder, "name", process->name, 64);
        if (process->command_line != NULL && process->command_line[0] != '\0') {
            text_owned struct text line = {0};
            redact_command_line(process->command_line, strlen(process->command_line), &line);
            member(builder, "cmd_line", text_string(&line), RECORD_COMMAND_LINE_MAX);
        }
        if (process->executable != NULL && process->executable[0] != '\0')
            add_file(builder, "file", process->executable, 8 /* Executable File */);
        if (process->uid >= 0) {
            char uid[24];
            snprintf(uid, sizeof uid, "%lld", (long long)process->uid);
            open_object(builder, "user");
            member_constant(builder, "uid", uid);
            close_object(builder);
        }
    }
    if (execution != NULL)
        add_execution(builder, execution);
    member_raw(builder, "container", container);
    close_object(builder);
}

static void add_actor(struct builder *builder, const struct record_constants *constants,
                      const struct record_event *event) {
    struct record_process runtime = {.pid = getpid(), .name = (char[]){"pinfold"}, .uid = -1};
    /* What the runtime did before or around the workload, it did itself. */
    bool own =
        event->process == NULL && (event->class_id == RECORD_FINDING || event->class_id == RECORD_LIFECYCLE ||
                                   event->class_id == RECORD_POLICY);
    open_object(builder, "actor");
    /* Who launched a program is the actor; of one that ended nobody knows more than itself. */
    const bool launch = event->class_id == RECORD_PROCESS && event->parent != NULL && event->parent->pid > 0;
    add_process(builder, "process", constants->container,
                own      ? &runtime
                : launch ? event->parent
                         : event->process,
                NULL);
    close_object(builder);
}

static void add_rule(struct builder *builder, const struct record_event *event) {
    if (event->rule == NULL || event->rule[0] == '\0')
        return;
    open_object(builder, "firewall_rule");
    member(builder, "name", event->rule, RECORD_STRING_MAX);
    member(builder, "desc", event->rule_origin, RECORD_STRING_MAX);
    close_object(builder);
}

/* -- the object of each class -- */

static int address_family(const char *address) {
    unsigned char bytes[16];
    if (address == NULL || strlen(address) > 40) /* ip_t has a length */
        return 0;
    return inet_pton(AF_INET, address, bytes) == 1 ? 4 : inet_pton(AF_INET6, address, bytes) == 1 ? 6 : 0;
}

static void add_address(struct builder *builder, const char *address, uint16_t port) {
    if (address_family(address) != 0)
        member_constant(builder, "ip", address);
    else /* not an address after all: the schema's form would refuse it */
        member_redacted(builder, "name", address, RECORD_NAME_MAX);
    if (port != 0)
        member_integer(builder, "port", port);
}

static void add_own_endpoint(struct builder *builder, const struct record_constants *constants) {
    text_append(&builder->json.text, constants->source_endpoint);
    builder->json.comma = true;
}

static void add_endpoints(struct builder *builder, const struct record_constants *constants,
                          const struct record_event *event) {
    bool named = event->class_id != RECORD_DNS && event->subject != NULL && event->subject[0] != '\0';
    bool addressed = event->address != NULL && event->address[0] != '\0';
    if (named || addressed) {
        open_object(builder, "dst_endpoint");
        if (event->inbound)
            add_own_endpoint(builder, constants);
        if (named)
            member_redacted(builder, "hostname", event->subject, RECORD_NAME_MAX);
        add_address(builder, addressed ? event->address : NULL, event->port);
        close_object(builder);
    }
    open_object(builder, "src_endpoint");
    if (!event->inbound)
        add_own_endpoint(builder, constants);
    if (address_family(event->source_address) != 0) /* a name is taken: the container's */
        member_constant(builder, "ip", event->source_address);
    if (event->source_port != 0)
        member_integer(builder, "port", event->source_port);
    close_object(builder);
    int version = address_family(event->address);
    if (event->protocol != NULL || event->protocol_number != 0 || version != 0) {
        open_object(builder, "connection_info");
        member_integer(builder, "direction_id", event->inbound ? 1 /* Inbound */ : 2 /* Outbound */);
        member(builder, "protocol_name", event->protocol, 64);
        if (event->protocol_number != 0)
            member_integer(builder, "protocol_num", event->protocol_number);
        if (version != 0)
            member_integer(builder, "protocol_ver_id", version);
        close_object(builder);
    }
}

/* What went over a connection. */
static void add_traffic(struct builder *builder, const struct record_event *event) {
    if (!event->has_traffic)
        return;
    open_object(builder, "traffic");
    member_integer(builder, "bytes", (int64_t)(event->bytes_in + event->bytes_out));
    member_integer(builder, "bytes_in", (int64_t)event->bytes_in);
    member_integer(builder, "bytes_out", (int64_t)event->bytes_out);
    close_object(builder);
    member_integer(builder, "duration", event->duration_ms);
}

/* The schema knows these; another one, which may be any word, stands in the message alone. */
static bool is_known_method(const char *method) {
    static const char *const methods[] = {"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS",
                                          "PATCH",   "POST",   "PUT", "TRACE"};
    for (size_t i = 0; method != NULL && i < sizeof methods / sizeof methods[0]; i++)
        if (strcmp(method, methods[i]) == 0)
            return true;
    return false;
}

/* The host that the request is for stands in its URL; its path is nobody's business. */
static void add_request(struct builder *builder, const struct record_event *event) {
    open_object(builder, "http_request");
    if (is_known_method(event->method))
        member_constant(builder, "http_method", event->method);
    if (event->asked != NULL && event->asked[0] != '\0') {
        memory_owned char *url =
            text_formatted("%s://%s/", event->scheme != NULL ? event->scheme : "http", event->asked);
        open_object(builder, "url");
        member_constant(builder, "scheme", event->scheme != NULL ? event->scheme : "http");
        member(builder, "hostname", event->asked, RECORD_NAME_MAX);
        member(builder, "url_string", url, RECORD_STRING_MAX);
        close_object(builder);
    }
    close_object(builder);
}

static void add_query(struct builder *builder, const struct record_event *event) {
    open_object(builder, "query");
    member_redacted(builder, "hostname", event->subject && event->subject[0] ? event->subject : ".",
                    RECORD_STRING_MAX * 2);
    close_object(builder);
    if (event->action == RECORD_DENIED) {
        member_integer(builder, "rcode_id", 3);
        member_constant(builder, "rcode", "NXDomain");
    }
}

static void add_finding(struct builder *builder, const struct record_constants *constants,
                        const struct record_event *event) {
    const char *reason = first_of(event->reason, "finding", NULL);
    text_owned struct text uid = {0};
    /* One finding for a reason and its subject in a run, however often it is reported. */
    text_format(&uid, "%s/%s/%s", constants->run, reason, event->subject ? event->subject : "");
    open_object(builder, "finding_info");
    member_redacted(builder, "uid", text_string(&uid), RECORD_STRING_MAX);
    member_redacted(builder, "title", first_of(event->message, reason, NULL), RECORD_STRING_MAX);
    key(builder, "types");
    json_array_begin(&builder->json);
    value_bounded(builder, reason, strlen(reason), RECORD_NAME_MAX);
    json_array_end(&builder->json);
    close_object(builder);
    if (event->subject != NULL && event->subject[0] != '\0') {
        key(builder, "resources");
        json_array_begin(&builder->json);
        open_object(builder, NULL);
        member_redacted(builder, "name", event->subject, RECORD_STRING_MAX * 2);
        close_object(builder);
        json_array_end(&builder->json);
    }
    if (event->remedy != NULL && event->remedy[0] != '\0') {
        open_object(builder, "remediation");
        member(builder, "desc", event->remedy, RECORD_STRING_MAX);
        close_object(builder);
    }
}

static void add_object(struct builder *builder, const struct record_constants *constants,
                       const struct record_event *event) {
    switch (event->class_id) {
    case RECORD_FILE:
        add_file(builder, "file", first_of(event->file_path, "unknown", NULL), 0);
        break;
    case RECORD_PROCESS:
        add_process(builder, "process", NULL, event->process, event); /* the actor has the container */
        if (event->has_exit_code)
            member_integer(builder, "exit_code", event->exit_code);
        break;
    case RECORD_NETWORK:
        add_endpoints(builder, constants, event);
        add_traffic(builder, event);
        break;
    case RECORD_HTTP:
        add_request(builder, event);
        add_endpoints(builder, constants, event);
        break;
    case RECORD_DNS:
        add_query(builder, event);
        add_endpoints(builder, constants, event);
        break;
    case RECORD_FINDING:
        add_finding(builder, constants, event);
        break;
    case RECORD_LIFECYCLE:
        member_raw(builder, "app", constants->application);
        break;
    case RECORD_POLICY:
        member_integer(builder, "state_id", 2);
        member_constant(builder, "state", "Enabled");
        break;
    }
}

static void open_unmapped(struct builder *builder, const struct record_event *event) {
    open_object(builder, "unmapped");
    member(builder, "remedy", event->remedy, RECORD_STRING_MAX);
    member(builder, "route", event->route, RECORD_NAME_MAX);
    member(builder, "previous_policy_digest", event->previous_policy, RECORD_NAME_MAX);
    member(builder, "exec_id", event->exec_id, RECORD_NAME_MAX);
    if (event->class_id != RECORD_PROCESS && event->has_exit_code)
        member_integer(builder, "exit_code", event->exit_code);
    if (event->signal != 0)
        member_integer(builder, "signal", event->signal);
    /* What the class has no attribute for. */
    if (event->class_id != RECORD_FILE)
        member_redacted(builder, "file_path", event->file_path, RECORD_STRING_MAX);
    if (event->class_id == RECORD_FILE || event->class_id == RECORD_PROCESS ||
        event->class_id == RECORD_LIFECYCLE || event->class_id == RECORD_POLICY)
        member_redacted(builder, "subject", event->subject, RECORD_STRING_MAX);
}

void record_body(const struct record_constants *constants, const struct record_event *event, struct text *out,
                 bool *truncated) {
    const struct class_row *row = &classes[event->class_id];
    int activity = activity_checked(row, event->activity_id);
    const char *activity_name = activity == 99 ? event->activity_name : row->activities[activity];
    struct builder builder = {.json = {.text = *out, .comma = true}};
    if (builder.json.text.data == NULL) /* one allocation for most records, where growing takes six */
        builder.json.text = (struct text){.data = memory_zeroed(BODY_USUAL), .capacity = BODY_USUAL};
    member_integer(&builder, "class_uid", row->uid);
    member_constant(&builder, "class_name", row->name);
    member_integer(&builder, "category_uid", row->category);
    member_integer(&builder, "activity_id", activity);
    member(&builder, "activity_name", first_of(activity_name, "Other", NULL), 64);
    member_integer(&builder, "type_uid", row->uid * 100 + activity);
    member_integer(&builder, "severity_id", severity(event));
    add_action(&builder, event);
    member_redacted(&builder, "message", event->message, RECORD_STRING_MAX * 2);
    add_actor(&builder, constants, event);
    member_raw(&builder, "device", constants->device);
    member_raw(&builder, "policy", constants->policy);
    add_rule(&builder, event);
    add_object(&builder, constants, event);
    open_unmapped(&builder, event);
    *out = builder.json.text;
    *truncated = builder.truncated;
}

void record_line(const struct record_constants *constants, const char *body, size_t length,
                 const struct record_stamp *stamp, struct text *out) {
    static const char empty[] = ",\"unmapped\":{";
    text_format(out, "{\"time\":%lld", (long long)stamp->time_ms);
    if (stamp->stands_for_none)
        text_append(out, ",\"count\":0");
    else if (stamp->count > 1)
        text_format(out, ",\"count\":%llu,\"start_time\":%lld,\"end_time\":%lld",
                    (unsigned long long)stamp->count, (long long)stamp->start_ms, (long long)stamp->end_ms);
    bool bare = body[length - 1] == '{';
    if (bare && stamp->suppressed == 0) {
        text_append_bytes(out, body, length - (sizeof empty - 1));
    } else {
        text_append_bytes(out, body, length);
        if (stamp->suppressed != 0)
            text_format(out, "%s\"suppressed\":%llu", bare ? "" : ",", (unsigned long long)stamp->suppressed);
        text_append(out, "}");
    }
    text_format(out, ",\"metadata\":%s%s,\"sequence\":%llu}}\n", constants->metadata,
                stamp->truncated ? ",\"is_truncated\":true" : "", (unsigned long long)stamp->sequence);
}
