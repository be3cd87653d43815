/* The warden's plan as sealed bytes: two JSON documents with a NUL between them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "libocispec/schema_table.h"
#include "sys/companion.h"
#include "warden/launch.h"
#include "warden/warden.h"

static const struct schema_field change_fields[] = {
    STRING(OPTIONAL, "reason", warden_change, reason),   STRING(OPTIONAL, "subject", warden_change, subject),
    STRING(OPTIONAL, "message", warden_change, message), STRING(OPTIONAL, "rule", warden_change, rule),
    STRING(OPTIONAL, "remedy", warden_change, remedy),
};
static const struct schema change_schema = SCHEMA("change", warden_change, change_fields);

static const struct schema_field plan_fields[] = {
    OBJECT(REQUIRED, "subject", warden_plan, subject, record_subject, record_subject_schema),
    STRING(OPTIONAL, "policyOrigin", warden_plan, policy_origin),
    INT64(REQUIRED, "onDenied", warden_plan, on_denied),
    INT64(REQUIRED, "initPid", warden_plan, init_pid),
    BOOL(OPTIONAL, "mutationsJudged", warden_plan, mutations_judged),
    STRINGS(OPTIONAL, "decoys", warden_plan, decoys),
    STRINGS(OPTIONAL, "readable", warden_plan, readable),
    BOOL(OPTIONAL, "networkOpen", warden_plan, network_open),
    BOOL(OPTIONAL, "networkUnobserved", warden_plan, network_unobserved),
    BOOL(OPTIONAL, "executions", warden_plan, executions),
    STRINGS(OPTIONAL, "hosts", warden_plan, hosts),
    STRINGS(OPTIONAL, "hostsOrigins", warden_plan, hosts_origins),
    OBJECTS(OPTIONAL, "changes", warden_plan, changes, warden_change, change_schema),
};
static const struct schema plan_schema = SCHEMA("warden plan", warden_plan, plan_fields);

static const struct schema_field rules_fields[] = {
    POINTER(OPTIONAL, "denied", warden_rules, denied, oci_seccomp, oci_seccomp_schema),
    POINTER(OPTIONAL, "observed", warden_rules, observed, oci_seccomp, oci_seccomp_schema),
};
static const struct schema rules_schema = SCHEMA("warden rules", warden_rules, rules_fields);

struct error *warden_plan_seal(const struct warden_plan *plan, int *out) {
    json_owned struct json_writer json = {0};
    json_owned struct json_writer rules = {0};
    schema_write(&plan_schema, plan, &json);
    schema_write(&rules_schema, &plan->rules, &rules);
    text_append_bytes(&json.text, "", 1); /* JSON text has no NUL of its own */
    text_append(&json.text, text_string(&rules.text));
    return companion_plan_seal(text_string(&json.text), json.text.length, "the warden's plan", out);
}

struct error *warden_plan_read(int sealed, struct warden_plan *out) {
    text_owned struct text bytes = {0};
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", sealed);
    TRY(file_read(AT_FDCWD, path, SCHEMA_BYTES_MAX, &bytes));
    size_t length = strlen(text_string(&bytes));
    if (length >= bytes.length)
        return error_new(ERROR_INVALID, "the warden's plan has no rules");
    void *read = NULL;
    TRY(schema_read(&plan_schema, "the warden's plan", bytes.data, length, &read));
    memory_owned struct warden_plan *plan = read;
    *out = *plan;
    out->unread_rules = memory_copy_string(bytes.data + length + 1);
    return NULL;
}

/* ---- another policy ---- */

static const struct schema_field policy_fields[] = {
    STRING(REQUIRED, "name", warden_policy, name),
    STRING(OPTIONAL, "origin", warden_policy, origin),
    STRING(OPTIONAL, "digest", warden_policy, digest),
    STRINGS(OPTIONAL, "hosts", warden_policy, hosts),
    STRINGS(OPTIONAL, "hostsOrigins", warden_policy, hosts_origins),
    STRINGS(OPTIONAL, "names", warden_policy, names),
    INT64(OPTIONAL, "generation", warden_policy, generation),
};
static const struct schema policy_schema = SCHEMA("policy", warden_policy, policy_fields);

struct error *warden_policy_seal(const struct warden_policy *policy, int *out) {
    json_owned struct json_writer json = {0};
    schema_write(&policy_schema, policy, &json);
    return companion_plan_seal(text_string(&json.text), json.text.length, "the policy", out);
}

struct error *warden_policy_read(int sealed, struct warden_policy *out) {
    struct stat status;
    text_owned struct text bytes = {0};
    if (fstat(sealed, &status) < 0)
        return error_system(errno, "stat", "the policy");
    if (status.st_size <= 0 || status.st_size > SCHEMA_BYTES_MAX)
        return error_new(ERROR_INVALID, "the policy: %lld bytes", (long long)status.st_size);
    while (bytes.length < (size_t)status.st_size) {
        size_t rest = (size_t)status.st_size - bytes.length;
        ssize_t length = pread(sealed, text_room(&bytes, rest), rest, (off_t)bytes.length);
        if (length <= 0)
            return error_system(length < 0 ? errno : EPIPE, "read", "the policy");
        text_grown(&bytes, (size_t)length);
    }
    void *read = NULL;
    TRY(schema_read(&policy_schema, "the policy", text_string(&bytes), bytes.length, &read));
    memory_owned struct warden_policy *policy = read;
    *out = *policy;
    return NULL;
}

void warden_policy_clear(struct warden_policy *policy) {
    schema_clear(&policy_schema, policy);
}

struct error *warden_plan_rules(struct warden_plan *plan, const struct warden_rules **out) {
    *out = &plan->rules;
    memory_owned char *text = plan->unread_rules;
    if (text == NULL)
        return NULL;
    plan->unread_rules = NULL;
    void *read = NULL;
    TRY(schema_read(&rules_schema, "the warden's rules", text, strlen(text), &read));
    memory_owned struct warden_rules *rules = read;
    plan->rules = *rules;
    return NULL;
}
