/* Decoys: opening one is denied and recorded while the warden lives. They are tripwires and no walls: the
 * kernel lets every open through when the group's owner is gone, which is why their content is fake.
 * Permission events need CAP_SYS_ADMIN of the machine; without, inotify on the same inodes tells that a decoy
 * was opened, but not by whom: recorded as observed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "warden/observers.h"

/* Notices opens without a privilege. The descriptors' inodes get the watches 1, 2, ... */
static fallible watch_unprivileged(const int *decoys, size_t count, int *out) {
    fd_owned int group = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (group < 0)
        return error_system(errno, "inotify_init", "for decoys");
    for (size_t i = 0; i < count; i++) {
        char link[32];
        snprintf(link, sizeof link, "/proc/self/fd/%d", decoys[i]);
        if (inotify_add_watch(group, link, IN_OPEN) < 0)
            return error_system(errno, "inotify_add_watch", "decoy %zu", i);
    }
    *out = fd_take(&group);
    return NULL;
}

fallible files_watch_decoys(const int *decoys, size_t count, int *out) {
    *out = -1;
    fd_owned int group =
        fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC | FAN_NONBLOCK, O_RDONLY | O_CLOEXEC | O_LARGEFILE);
    if (group < 0 && errno == EPERM)
        return watch_unprivileged(decoys, count, out);
    if (group < 0)
        return error_system(errno, "fanotify_init", "a group for decoys");
    for (size_t i = 0; i < count; i++)
        if (fanotify_mark(group, FAN_MARK_ADD, FAN_OPEN_PERM, decoys[i], NULL) < 0)
            return error_system(errno, "fanotify_mark", "decoy %zu", i);
    *out = fd_take(&group);
    return NULL;
}

/* The decoy's name for people: its path in the container. */
static void decoy_path(const struct warden_context *context, int fd, char *out, size_t size) {
    char link[32];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    /* From another mount namespace the kernel shows the path from that namespace's root. */
    ssize_t length = readlink(link, out, size - 1);
    out[length > 0 ? length : 0] = '\0';
    if (string_list_contains(&context->decoy_paths, out))
        return;
    /* A mount that was taken away, or a root of its own: the name at the end tells. */
    const char *slash = strrchr(out, '/');
    for (size_t i = 0; slash != NULL && i < context->decoy_paths.count; i++)
        if (text_ends_with(context->decoy_paths.items[i], slash)) {
            snprintf(out, size, "%s", context->decoy_paths.items[i]);
            return;
        }
}

static ino_t pid_namespace_of(const char *process) {
    char path[48];
    struct stat status;
    snprintf(path, sizeof path, "/proc/%s/ns/pid", process);
    return stat(path, &status) == 0 ? status.st_ino : 0;
}

/* The machine's own processes open what they like: a backup, an engine that copies out of the container. They
 * live in the warden's pid namespace; what does not, or cannot be told, is the container's. */
static bool is_of_the_machine(const struct warden_context *context, pid_t pid) {
    if (pid == getpid())
        return true;
    char number[16];
    snprintf(number, sizeof number, "%d", (int)pid);
    ino_t ours = pid_namespace_of("self");
    return ours != 0 && ours != context->pid_namespace && pid != 0 && pid_namespace_of(number) == ours;
}

/* `process` is NULL where the kernel does not say who it was; then the open went through. */
static void record_opened(struct warden_context *context, const char *path,
                          const struct record_process *process) {
    text_owned struct text message = {0};
    if (process != NULL)
        text_format(&message,
                    "Opening %s was denied: a fake key stands there, and nothing here needs a real one.",
                    path);
    else
        text_format(&message, "The fake key %s was opened.", path);
    json_owned struct json_writer remedy = {0};
    text_append(&remedy.text, "filesystem: {readable: [\"@default\", ");
    json_string(&remedy, path);
    text_append(&remedy.text, "]}");
    struct record_event record = {
        .class_id = RECORD_FILE,
        .activity_id = 14,
        .action = RECORD_OBSERVED,
        .reason = "fs.decoy.opened",
        .message = text_string(&message),
        .rule = "filesystem.readable: default",
        .rule_origin = context->policy_origin,
        .remedy = text_string(&remedy.text),
        .process = process,
        .file_path = path,
    };
    if (process != NULL)
        denial_record(context, &record);
    else
        error_ignore(record_write(context->log, &record)); /* counted in the next record */
}

static void permission_event(struct warden_context *context, const struct fanotify_event_metadata *event) {
    bool allowed = is_of_the_machine(context, event->pid);
    if (!allowed) {
        char path[4096];
        decoy_path(context, event->fd, path, sizeof path);
        struct record_process process;
        record_process_read(event->pid, &process);
        record_opened(context, path, &process);
        record_process_clear(&process);
    }
    struct fanotify_response response = {.fd = event->fd, .response = allowed ? FAN_ALLOW : FAN_DENY};
    /* It fails only for an event that is no longer pending. */
    if (write(context->decoy_group, &response, sizeof response) < 0)
        errno = 0;
}

static void permission_events(struct warden_context *context, const char *buffer, ssize_t length) {
    const struct fanotify_event_metadata *event = (const void *)buffer;
    for (; FAN_EVENT_OK(event, length); event = FAN_EVENT_NEXT(event, length)) {
        if (event->vers != FANOTIFY_METADATA_VERSION)
            return;
        if (event->fd < 0)
            continue; /* an overflow: no call waits for it */
        if ((event->mask & FAN_OPEN_PERM) != 0)
            permission_event(context, event);
        fd_close(event->fd);
    }
}

static void unprivileged_events(struct warden_context *context, const char *buffer, ssize_t length) {
    const struct inotify_event *event;
    for (ssize_t at = 0; at + (ssize_t)sizeof *event <= length; at += (ssize_t)(sizeof *event + event->len)) {
        event = (const void *)(buffer + at);
        if ((event->mask & IN_OPEN) != 0 && event->wd >= 1 && (size_t)event->wd <= context->decoy_paths.count)
            record_opened(context, context->decoy_paths.items[event->wd - 1], NULL);
    }
}

static bool is_inotify(int group) {
    char link[32], target[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", group);
    ssize_t length = readlink(link, target, sizeof target);
    return length > 0 && memmem(target, (size_t)length, "inotify", strlen("inotify")) != NULL &&
           memmem(target, (size_t)length, "fanotify", strlen("fanotify")) == NULL;
}

void files_handle(struct warden_context *context) {
    /* One buffer for each call, so that other observers get their turn. */
    _Alignas(struct fanotify_event_metadata) char buffer[4096];
    ssize_t length = read(context->decoy_group, buffer, sizeof buffer);
    if (length <= 0)
        return;
    if (is_inotify(context->decoy_group))
        unprivileged_events(context, buffer, length);
    else
        permission_events(context, buffer, length);
}
