/* The other places that records go to, beside the file: the journal, and a file of OTLP/JSON. Neither is
 * waited for: what one does not take at once is counted, and said in the others. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "record/internal.h"

#define JOURNAL_SOCKET "/run/systemd/journal/socket"
#define SEVERITY_INFO 9 /* of OTLP */
#define SEVERITY_WARN 13
#define PRIORITY_WARNING 4 /* of syslog */
#define PRIORITY_INFO 6

bool record_has_journal(void) {
    return access(JOURNAL_SOCKET, W_OK) == 0;
}

/* ---- what is read of a line ---- */

/* The value of a string of the record as it stands in the line, escaped. A plain search is exact: inside a
 * string the quotes of a key would be escaped; and of the keys that are asked for none comes twice before. */
static const char *member_find(const char *line, const char *key, size_t *length) {
    memory_owned char *sought = text_formatted("\"%s\":\"", key);
    const char *value = strstr(line, sought);
    *length = 0;
    if (value == NULL)
        return "";
    value += strlen(sought);
    while (value[*length] != '"' && value[*length] != '\0')
        *length += value[*length] == '\\' && value[*length + 1] != '\0' ? 2 : 1;
    return value;
}

static int64_t number_find(const char *line, const char *key) {
    memory_owned char *sought = text_formatted("\"%s\":", key);
    const char *value = strstr(line, sought);
    return value == NULL ? 0 : strtoll(value + strlen(sought), NULL, 10);
}

static const char *action_word(int64_t action) {
    return action == RECORD_DENIED ? "denied" : action == RECORD_ALLOWED ? "allowed" : "observed";
}

/* ---- the journal: its native protocol, a datagram of fields ---- */

static void field_append(struct text *entry, const char *name, const char *value, size_t length) {
    text_append(entry, name);
    text_append(entry, "\n");
    unsigned char size[8];
    for (int i = 0; i < 8; i++)
        size[i] = (unsigned char)((uint64_t)length >> (8 * i));
    text_append_bytes(entry, size, sizeof size);
    text_append_bytes(entry, value, length);
    text_append(entry, "\n");
}

/* Of escaped text that a person reads only quotes and backslashes are written plainly: control characters
 * stay escaped, harmless on a terminal. */
static void message_append(struct text *entry, const char *value, size_t length) {
    text_owned struct text plain = {0};
    for (size_t i = 0; i < length; i++) {
        if (value[i] == '\\' && i + 1 < length && strchr("\"\\/", value[i + 1]) != NULL)
            i++;
        text_append_bytes(&plain, value + i, 1);
    }
    field_append(entry, "MESSAGE", text_string(&plain), plain.length);
}

static void journal_entry(const struct record_feed *feed, const char *line, size_t line_length,
                          struct text *entry) {
    size_t length;
    int64_t action = number_find(line, "action_id");
    text_append_bytes(entry, feed->fixed.data, feed->fixed.length);
    const char *message = member_find(line, "message", &length);
    message_append(entry, message, length);
    const char *reason = member_find(line, "status_detail", &length);
    field_append(entry, "PINFOLD_REASON", reason, length);
    text_format(entry, "PRIORITY=%d\nPINFOLD_ACTION=%s\nPINFOLD_SEQUENCE=%lld\n",
                action == RECORD_DENIED || strncmp(reason, "log.", 4) == 0 ? PRIORITY_WARNING : PRIORITY_INFO,
                action_word(action), (long long)number_find(line, "sequence"));
    field_append(entry, "PINFOLD_RECORD", line, line_length);
}

static void journal_fixed(const struct record_subject *subject, struct text *out) {
    text_append(out, "SYSLOG_IDENTIFIER=pinfold\n");
    field_append(out, "PINFOLD_CONTAINER_ID", subject->container_id, strlen(subject->container_id));
    if (subject->container_name != NULL)
        field_append(out, "PINFOLD_CONTAINER_NAME", subject->container_name, strlen(subject->container_name));
    if (subject->run_id != NULL)
        field_append(out, "PINFOLD_RUN", subject->run_id, strlen(subject->run_id));
}

/* By name each time: a journal that was restarted has another socket. */
static bool journal_send(const struct record_feed *feed, const struct text *entry) {
    static const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = JOURNAL_SOCKET};
    return sendto(feed->fd, entry->data, entry->length, MSG_DONTWAIT | MSG_NOSIGNAL,
                  (const struct sockaddr *)&address, sizeof address) == (ssize_t)entry->length;
}

static struct error *journal_open(const struct record_subject *subject, struct record_feed *feed) {
    if (subject->journald == NULL || (strcmp(subject->journald, "auto") == 0 && !record_has_journal()))
        return NULL;
    if (!record_has_journal())
        return error_new(ERROR_UNAVAILABLE, "log.journald: true needs the journal, and " JOURNAL_SOCKET
                                            " is not there; log.journald: auto does without it");
    feed->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (feed->fd < 0)
        return error_system(errno, "socket", "for the journal");
    feed->name = "journald";
    journal_fixed(subject, &feed->fixed);
    return NULL;
}

/* ---- OTLP/JSON: a line is a request that a collector takes ---- */

static void attribute_append(struct text *out, const char *key, const char *value) {
    if (value == NULL)
        return;
    text_format(out, "%s{\"key\":\"%s\",\"value\":{\"stringValue\":",
                out->length > 0 && out->data[out->length - 1] == '}' ? "," : "", key);
    (void)record_quote(out, value, strlen(value), RECORD_STRING_MAX);
    text_append(out, "}}");
}

static void otlp_fixed(const struct record_subject *subject, struct text *out) {
    text_append(out, "{\"resourceLogs\":[{\"resource\":{\"attributes\":[");
    attribute_append(out, "service.name", "pinfold");
    attribute_append(out, "service.version", PINFOLD_VERSION);
    attribute_append(out, "host.name", subject->hostname);
    attribute_append(out, "container.id", subject->container_id);
    attribute_append(out, "container.name", subject->container_name);
    attribute_append(out, "container.image.name", subject->image);
    text_append(out,
                "]},\"scopeLogs\":[{\"scope\":{\"name\":\"pinfold\",\"version\":\"" PINFOLD_VERSION "\"},"
                "\"logRecords\":[");
}

static void otlp_entry(const struct record_feed *feed, const char *line, size_t line_length,
                       struct text *entry) {
    size_t length, reason_length, run_length;
    int64_t action = number_find(line, "action_id");
    const char *message = member_find(line, "message", &length);
    const char *reason = member_find(line, "status_detail", &reason_length);
    const char *run = member_find(line, "correlation_uid", &run_length);
    bool warns = action == RECORD_DENIED || strncmp(reason, "log.", 4) == 0;
    text_append_bytes(entry, feed->fixed.data, feed->fixed.length);
    text_format(entry,
                "{\"timeUnixNano\":\"%lld000000\",\"observedTimeUnixNano\":\"%lld000000\","
                "\"severityNumber\":%d,\"severityText\":\"%s\",\"body\":{\"stringValue\":\"%.*s\"},",
                (long long)number_find(line, "time"), (long long)clock_ms(CLOCK_REALTIME),
                warns ? SEVERITY_WARN : SEVERITY_INFO, warns ? "WARN" : "INFO", (int)length, message);
    text_format(entry,
                "\"attributes\":[{\"key\":\"pinfold.reason\",\"value\":{\"stringValue\":\"%.*s\"}},"
                "{\"key\":\"pinfold.action\",\"value\":{\"stringValue\":\"%s\"}},"
                "{\"key\":\"pinfold.run\",\"value\":{\"stringValue\":\"%.*s\"}},"
                "{\"key\":\"pinfold.sequence\",\"value\":{\"intValue\":\"%lld\"}},"
                "{\"key\":\"ocsf.raw\",\"value\":{\"stringValue\":",
                (int)reason_length, reason, action_word(action), (int)run_length, run,
                (long long)number_find(line, "sequence"));
    (void)record_quote(entry, line, line_length, (size_t)2 * RECORD_LINE_MAX);
    text_append(entry, "}}]}]}]}]}\n");
}

static struct error *otlp_open(const struct record_subject *subject, struct record_feed *feed) {
    if (subject->otlp_path == NULL)
        return NULL;
    fd_owned int fd =
        open(subject->otlp_path,
             O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0640);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) < 0)
        return error_system(errno, "open", "log.otlp: %s", subject->otlp_path);
    if (!S_ISREG(status.st_mode))
        return error_new(ERROR_INVALID, "log.otlp: %s is not a regular file", subject->otlp_path);
    feed->fd = fd_take(&fd);
    feed->name = subject->otlp_path;
    otlp_fixed(subject, &feed->fixed);
    return NULL;
}

/* Several containers may share the file: a line is one write, and what found no room is taken back. */
static bool otlp_write(const struct record_feed *feed, const struct text *entry) {
    ssize_t written = write(feed->fd, entry->data, entry->length);
    if (written == (ssize_t)entry->length)
        return true;
    if (written >= 0)
        errno = ENOSPC;
    return false;
}

/* ---- both ---- */

struct error *record_feeds_open(const struct record_subject *subject, struct record_feed *feeds) {
    for (int i = 0; i < RECORD_FEEDS; i++)
        feeds[i] = (struct record_feed){.fd = -1};
    TRY(journal_open(subject, &feeds[RECORD_FEED_JOURNAL]));
    return otlp_open(subject, &feeds[RECORD_FEED_OTLP]);
}

bool record_feed_give(struct record_feed *feed, bool journal, const char *line, size_t length) {
    text_owned struct text entry = {0};
    if (journal)
        journal_entry(feed, line, length, &entry);
    else
        otlp_entry(feed, line, length, &entry);
    if (journal ? journal_send(feed, &entry) : otlp_write(feed, &entry))
        return true;
    feed->number = errno;
    feed->lost++;
    return false;
}

void record_feeds_close(struct record_feed *feeds) {
    for (int i = 0; i < RECORD_FEEDS; i++) {
        fd_close(feeds[i].fd);
        feeds[i].fd = -1;
        text_free(&feeds[i].fixed);
    }
}
