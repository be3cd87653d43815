/* Records of denied accesses to files. */
#include <errno.h>

#include "base/json.h"
#include "base/text.h"
#include "warden/mutation.h"
#include "warden/observers.h"

static void record_read_only(struct warden_context *context, const struct mutation *mutation,
                             struct record_event *event) {
    text_owned struct text message = {0};
    text_format(
        &message,
        mutation->let_through
            ? "The attempt at %s %s was let through (on_denied_action: log_only): it lies on a %s that "
              "is read-only otherwise."
            : "The attempt at %s %s was denied: it lies on a %s that is read-only.",
        mutation->doing, mutation->path, mutation->on_root_mount ? "root file system" : "mount");
    /* A JSON string is a YAML string too, whatever the workload put into the name. */
    json_owned struct json_writer remedy = {0};
    text_append(&remedy.text, "filesystem: {writable: [\"@default\", ");
    json_string(&remedy, mutation->place);
    text_append(&remedy.text, "]}");
    event->reason = "fs.write.read_only";
    event->message = text_string(&message);
    /* Another mount is read-only because the engine was asked for that, or the policy protects it: no line
     * makes it writable by itself. */
    if (mutation->on_root_mount) {
        event->rule = "filesystem.default: deny";
        event->remedy = text_string(&remedy.text);
    }
    if (!mutation->let_through) {
        denial_record(context, event);
        return;
    }
    event->action = RECORD_OBSERVED;
    event->rule_origin = context->policy_origin;
    error_ignore(record_write(context->log, event)); /* counted in the next record */
}

/* Not by the policy: none stops for it, and no line of one would allow it. */
static void record_refused(struct warden_context *context, const struct mutation *mutation,
                           struct record_event *event) {
    text_owned struct text message = {0};
    text_format(
        &message,
        mutation->error == EPERM
            ? "The attempt at %s %s was denied: only its owner may do that."
            : "The attempt at %s %s was denied: its owner and mode, or those of a directory above it, "
              "do not let this process.",
        mutation->doing, mutation->path);
    event->reason = "fs.permission.denied";
    event->message = text_string(&message);
    event->action = RECORD_DENIED;
    error_ignore(record_write(context->log, event)); /* counted in the next record */
}

void file_denial_record(struct warden_context *context, const struct mutation *mutation,
                        const struct record_process *process, const char *exec_id) {
    struct record_event event = {
        .class_id = RECORD_FILE,
        .activity_id = mutation->activity_id,
        .file_path = mutation->path,
        .process = process,
        .exec_id = exec_id,
        .suppressed = context->files_lost,
    };
    context->files_lost = 0;
    if (mutation->error == EROFS)
        record_read_only(context, mutation, &event);
    else
        record_refused(context, mutation, &event);
}
