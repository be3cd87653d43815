/* log.inside: a denial as the container may read it. Short, for a program that reads text: no process, no
 * policy file, nothing of the machine. */
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "record/internal.h"

#define FILE_MAX (256 * 1024) /* of a tmpfs that the warden's cgroup pays for */
#define MESSAGE_MAX 512
#define OBJECT_MAX 1024

static void put(struct text *line, const char *name, const char *value, size_t limit) {
    if (value == NULL)
        return;
    text_format(line, ",\"%s\":", name);
    (void)record_quote(line, value, strlen(value), limit);
}

/* What was asked for. */
static void put_object(struct text *line, const struct record_event *event) {
    text_owned struct text object = {0};
    if (event->file_path != NULL)
        text_append(&object, event->file_path);
    else if (event->subject != NULL || event->address != NULL)
        text_append(&object, event->subject != NULL ? event->subject : event->address);
    else if (event->activity_name != NULL)
        text_append(&object, event->activity_name);
    if (object.length > 0 && event->port != 0)
        text_format(&object, " port %u", event->port);
    put(line, "object", text_string(&object), OBJECT_MAX);
}

static void put_time(struct text *line, int64_t time_ms) {
    time_t seconds = (time_t)(time_ms / 1000);
    struct tm parts;
    char room[32];
    if (gmtime_r(&seconds, &parts) == NULL || strftime(room, sizeof room, "%Y-%m-%dT%H:%M:%S", &parts) == 0)
        return;
    text_format(line, "\"time\":\"%s.%03dZ\"", room, (int)(time_ms % 1000));
}

static void line_make(const struct record_event *event, int64_t time_ms, uint64_t count, struct text *line) {
    text_append(line, "{");
    put_time(line, time_ms);
    put(line, "reason", event->reason, MESSAGE_MAX);
    put_object(line, event);
    /* What hardening has changed is told in words for the person who started it: with paths of the machine.
     */
    if (event->class_id != RECORD_FINDING)
        put(line, "message", event->message, MESSAGE_MAX);
    put(line, "remedy", event->remedy, MESSAGE_MAX);
    if (count > 1)
        text_format(line, ",\"count\":%llu", (unsigned long long)count);
    text_append(line, "}\n");
}

void record_inside_append(struct record_inside *inside, const struct record_event *event, int64_t time_ms,
                          uint64_t count) {
    if (inside->fd < 0)
        return;
    text_owned struct text line = {0};
    line_make(event, time_ms, count, &line);
    if (inside->length + line.length > FILE_MAX) {
        if (ftruncate(inside->fd, 0) < 0)
            return;
        static const char note[] = "{\"message\":\"Earlier denials were left out: this file was full.\"}\n";
        ssize_t noted = write(inside->fd, note, sizeof note - 1);
        inside->length = noted > 0 ? (size_t)noted : 0;
    }
    ssize_t written = write(inside->fd, line.data, line.length);
    if (written > 0)
        inside->length += (size_t)written;
}
