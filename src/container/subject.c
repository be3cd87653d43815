#include "container/subject.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "container/process.h"
#include "record/reasons.h"

#define RUN_ID_ANNOTATION "dev.pinfold.run-id"
#define RUN_ID_MAX 128
#define MONITOR_BYTES_MAX (128 * 1024)

/* The first of these annotations that is there. */
static const char *first_annotation(const struct oci_config *config, const char *const *keys) {
    for (; *keys != NULL; keys++) {
        const char *value = string_map_get(&config->annotations, *keys);
        if (value != NULL && value[0] != '\0')
            return value;
    }
    return NULL;
}

static const char *const name_keys[] = {"io.kubernetes.cri.container-name", "io.kubernetes.container.name",
                                        "io.kubernetes.cri-o.Name", "io.podman.annotations.name", NULL};
static const char *const image_keys[] = {"io.kubernetes.cri.image-name", "io.kubernetes.cri-o.ImageName",
                                         "org.opencontainers.image.ref.name", NULL};
static const char *const digest_keys[] = {"io.kubernetes.cri-o.ImageRef",
                                          "org.opencontainers.image.base.digest", NULL};
static const char *const pod_keys[] = {"io.kubernetes.cri.sandbox-uid", "io.kubernetes.pod.uid", NULL};

/* Of the process, if it is a monitor of engines': `conmon ... -c ID ... -n NAME ...`. */
static char *name_by_monitor(pid_t pid, const char *id) {
    memory_owned char *path = text_formatted("/proc/%d/cmdline", (int)pid);
    text_owned struct text bytes = {0};
    struct error *error = file_read(AT_FDCWD, path, MONITOR_BYTES_MAX, &bytes);
    error_ignore(error); /* the id serves as the name */
    bool monitor = bytes.length > 0 && text_ends_with(bytes.data, "conmon"), ours = false;
    const char *name = NULL;
    for (size_t at = 0, next; monitor && at < bytes.length; at = next) {
        const char *word = bytes.data + at;
        next = at + strnlen(word, bytes.length - at) + 1;
        if (next >= bytes.length)
            break;
        ours = ours || (strcmp(word, "-c") == 0 && strcmp(bytes.data + next, id) == 0);
        if (name == NULL && strcmp(word, "-n") == 0)
            name = bytes.data + next;
    }
    return ours && name != NULL ? memory_copy_string(name) : NULL;
}

/* podman tells a runtime the id alone, and its monitor, which calls us, or the runtime that runs us as a
 * hook, the name. */
static char *monitor_container_name(const char *id) {
    char *name = name_by_monitor(getppid(), id);
    return name != NULL ? name : name_by_monitor(process_parent(getppid()), id);
}

/* As record_subject has it. */
static const char *journald_word(const struct policy *policy) {
    if (policy->log_journald == POLICY_SWITCH_OFF)
        return NULL;
    bool must = policy->log_journald == POLICY_SWITCH_ON &&
                !string_list_contains(&policy->best_effort.values, "log.journald");
    return must ? "true" : "auto";
}

static char *copy_or_null(const char *text) {
    return text ? memory_copy_string(text) : NULL;
}

void subject_make(const char *id, const struct prepared *prepared, const char *run_id,
                  struct record_subject *out) {
    const struct oci_config *config = prepared->config;
    char hostname[256] = "localhost";
    (void)!gethostname(hostname, sizeof hostname - 1);
    const char *name = first_annotation(config, name_keys);
    char *container_name = name ? memory_copy_string(name) : monitor_container_name(id);
    if (container_name == NULL)
        container_name = memory_copy_string(id);
    const char *digest = first_annotation(config, digest_keys);
    bool root = prepared->facts != NULL && prepared->facts->root;
    memory_owned char *home = prepared->facts == NULL ? facts_user_home(&root)
                              : prepared->facts->owner_home != NULL
                                  ? memory_copy_string(prepared->facts->owner_home)
                                  : NULL;
    *out = (struct record_subject){
        .container_id = memory_copy_string(id),
        .container_name = container_name,
        .image = copy_or_null(first_annotation(config, image_keys)),
        .image_digest = digest && text_starts_with(digest, "sha256:") ? memory_copy_string(digest) : NULL,
        .pod_uuid = copy_or_null(first_annotation(config, pod_keys)),
        .run_id = memory_copy_string(run_id),
        .hostname = memory_copy_string(hostname),
        .policy_name = memory_copy_string(prepared->policy->name),
        .policy_digest = copy_or_null(prepared->policy->digest),
        .log_path = record_log_path(id, root, home),
        .log_keep_ms = prepared->policy->log_keep.set ? prepared->policy->log_keep.value : 0,
        .log_total = prepared->policy->log_total.set ? prepared->policy->log_total.value : 0,
        .journald = copy_or_null(journald_word(prepared->policy)),
        .otlp_path = prepared->policy->log_otlp != NULL && prepared->policy->log_otlp[0] == '/'
                         ? memory_copy_string(prepared->policy->log_otlp)
                         : NULL,
    };
}

void subject_clear(struct record_subject *subject) {
    schema_clear(&record_subject_schema, subject);
}

struct error *run_id_make(const struct oci_config *config, char **out) {
    const char *given = string_map_get(&config->annotations, RUN_ID_ANNOTATION);
    if (given != NULL && given[0] != '\0') {
        if (strlen(given) > RUN_ID_MAX)
            return error_new(ERROR_INVALID, "annotations." RUN_ID_ANNOTATION ": at most %d bytes",
                             RUN_ID_MAX);
        *out = memory_copy_string(given);
        return NULL;
    }
    unsigned char bytes[16];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return error_system(errno, "getrandom", "a run id");
    struct text text = {0};
    for (size_t i = 0; i < sizeof bytes; i++)
        text_format(&text, "%02x", bytes[i]);
    *out = text_take(&text);
    return NULL;
}

void refusal_record(const char *id, const struct prepared *prepared, const struct error *error) {
    if (error->kind != ERROR_REFUSED || prepared->policy == NULL || prepared->config == NULL)
        return;
    memory_owned char *run_id = NULL;
    struct record_subject subject;
    struct error *failed = run_id_make(prepared->config, &run_id);
    if (failed != NULL) {
        error_ignore(failed); /* the refusal itself is what counts */
        return;
    }
    subject_make(id, prepared, run_id, &subject);
    struct record_log *log = NULL;
    failed = record_log_open(&subject, NULL, &log);
    if (failed == NULL) {
        struct record_event event = {.class_id = RECORD_FINDING,
                                     .activity_id = 1,
                                     .action = RECORD_DENIED,
                                     .reason = record_reason_of(error->message),
                                     .message = error->message,
                                     .subject = id,
                                     .rule_origin = prepared->policy->origin};
        failed = record_write(log, &event);
        record_log_close(log);
    }
    error_ignore(failed); /* the refusal stands whether or not it could be written down */
    subject_clear(&subject);
}
