/* The log: which events are written at once, which are counted, and when the counts are written. Accounts are
 * exact: over a run, the sum of `count` (1 where absent) and `unmapped.suppressed` is the number of events.
 * Denials, programs that are run, and the rest (allowed, observed) have rate bounds and accounts of their
 * own, so that a fork storm cannot hide a denial, nor an allowed connection. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "record/coalesce.h"
#include "record/internal.h"

#define RATE_PER_SECOND 200
#define RATE_BURST 400
#define FLUSH_MS 1000
#define FLUSH_MS_MAX 64000
#define LINE_ROOM 512 /* for what record_line adds around a body, without metadata */

#define FIELD(member, is_required)                                                                           \
    {                                                                                                        \
        .key = #member, .type = SCHEMA_STRING, .required = is_required,                                      \
        .offset = offsetof(struct record_subject, member)                                                    \
    }
#define NUMBER(member)                                                                                       \
    { .key = #member, .type = SCHEMA_INT64, .offset = offsetof(struct record_subject, member) }
static const struct schema_field subject_fields[] = {
    FIELD(container_id, true),   FIELD(container_name, false), FIELD(image, false),
    FIELD(image_digest, false),  FIELD(pod_uuid, false),       FIELD(runtime, false),
    FIELD(run_id, false),        FIELD(hostname, false),       FIELD(policy_name, false),
    FIELD(policy_digest, false), FIELD(log_path, true),        NUMBER(log_keep_ms),
    NUMBER(log_total),           FIELD(journald, false),       FIELD(otlp_path, false),
};
const struct schema record_subject_schema = {
    .name = "record subject",
    .size = sizeof(struct record_subject),
    .fields = subject_fields,
    .field_count = sizeof subject_fields / sizeof subject_fields[0],
};

enum kind { DENIED, EXECUTED, OTHER, ACCOUNTS };

/* The rate bound and the account of one kind of event. */
struct account {
    double tokens;
    int64_t filled;      /* monotonic ms */
    uint64_t suppressed; /* not written and not kept for a key: goes into the next record of this kind */
    int64_t due;         /* monotonic ms at which a record of its own says so */
};

struct record_log {
    struct record_constants constants;
    struct record_sink sink;
    struct coalesce table;
    struct account accounts[ACCOUNTS];
    struct record_inside inside;
    uint64_t failed; /* lines that the file did not take since the last that it did */
    char *failure;   /* why the first of them was not */
    struct record_clock clock;
    struct record_feed feeds[RECORD_FEEDS];
};

static void keep_first(struct error **first, struct error *error);

struct error *record_log_open(const struct record_subject *subject, uint64_t *sequence,
                              struct record_log **out) {
    *out = NULL;
    struct record_log *log = memory_zeroed(sizeof *log);
    log->inside.fd = -1;
    record_constants_make(subject, &log->constants);
    struct error *error = record_sink_open(subject, sequence, &log->sink);
    struct error *unfed = record_feeds_open(subject, log->feeds);
    keep_first(&error, unfed);
    if (error != NULL) {
        record_feeds_close(log->feeds);
        record_sink_close(&log->sink);
        record_constants_clear(&log->constants);
        free(log);
        return error;
    }
    coalesce_open(&log->table);
    int64_t now = clock_ms(CLOCK_MONOTONIC);
    for (int kind = 0; kind < ACCOUNTS; kind++)
        log->accounts[kind] = (struct account){.tokens = RATE_BURST, .filled = now};
    *out = log;
    return NULL;
}

void record_log_change_policy(struct record_log *log, const struct record_subject *subject) {
    record_constants_clear(&log->constants);
    record_constants_make(subject, &log->constants);
}

void record_log_close(struct record_log *log) {
    if (log == NULL)
        return;
    coalesce_close(&log->table);
    fd_close(log->inside.fd);
    record_feeds_close(log->feeds);
    record_sink_close(&log->sink);
    record_constants_clear(&log->constants);
    free(log->failure);
    free(log);
}

void record_log_tidy(struct record_log *log) {
    record_tidy(log->sink.directory, log->sink.keep_ms, log->sink.total);
}

void record_log_show_inside(struct record_log *log, int file) {
    fd_close(log->inside.fd);
    log->inside = (struct record_inside){.fd = file};
}

/* -- rate -- */

/* What happens once, or must each be seen (a trace of processes), is not coalesced. */
static bool is_coalesced(const struct record_event *event) {
    if (event->class_id == RECORD_LIFECYCLE || event->class_id == RECORD_POLICY)
        return false;
    return event->class_id != RECORD_PROCESS || event->activity_id == 99 || event->action == RECORD_DENIED;
}

/* Of what is coalesced. */
static struct account *account_of(struct record_log *log, bool denied) {
    return &log->accounts[denied ? DENIED : OTHER];
}

static struct account *account_of_event(struct record_log *log, const struct record_event *event) {
    if (event->class_id == RECORD_PROCESS && !is_coalesced(event))
        return &log->accounts[EXECUTED];
    return account_of(log, event->action == RECORD_DENIED);
}

static bool take_token(struct account *account, int64_t now) {
    account->tokens += (double)(now - account->filled) * RATE_PER_SECOND / 1000;
    account->filled = now;
    if (account->tokens > RATE_BURST)
        account->tokens = RATE_BURST;
    if (account->tokens < 1)
        return false;
    account->tokens -= 1;
    return true;
}

static void suppress(struct account *account, uint64_t count, int64_t now) {
    if (count > 0 && account->suppressed == 0)
        account->due = now + FLUSH_MS;
    account->suppressed += count;
}

/* One report of a full disk is enough; what the later ones failed to write is counted all the same. */
static void keep_first(struct error **first, struct error *error) {
    if (*first == NULL)
        *first = error;
    else
        error_ignore(error);
}

/* -- one line -- */

struct line_parts {
    struct record_log *log;
    const char *body;
    size_t length;
    struct record_stamp stamp;
    struct text line; /* as it was made, for the other sinks */
};

static void make_line(uint64_t sequence, void *data, struct text *line) {
    struct line_parts *parts = data;
    parts->stamp.sequence = sequence;
    size_t before = line->length;
    record_line(&parts->log->constants, parts->body, parts->length, &parts->stamp, line);
    for (int i = 0; i < RECORD_FEEDS; i++)
        if (parts->log->feeds[i].fd >= 0) {
            text_append_bytes(&parts->line, line->data + before, line->length - before - 1);
            return;
        }
}

/* Appends to the file, and gives to the other sinks what was to be appended, whether or not it was. */
static struct error *line_write(struct line_parts *parts) {
    struct record_log *log = parts->log;
    struct error *error = record_sink_append(&log->sink, log->constants.correlation, make_line, parts);
    for (int i = 0; i < RECORD_FEEDS && parts->line.length > 0; i++)
        if (log->feeds[i].fd >= 0)
            log->feeds[i].failing = !record_feed_give(&log->feeds[i], i == RECORD_FEED_JOURNAL,
                                                      text_string(&parts->line), parts->line.length);
    text_free(&parts->line);
    return error;
}

/* A record about the log itself. It stands for no event, and is not owed when it cannot be written. */
static struct error *say(struct record_log *log, const char *reason, const char *subject,
                         const char *message) {
    struct record_event event = {.class_id = RECORD_FINDING,
                                 .activity_id = 1,
                                 .action = RECORD_OBSERVED,
                                 .reason = reason,
                                 .message = message,
                                 .subject = subject};
    struct line_parts parts = {.log = log,
                               .stamp = {.time_ms = clock_ms(CLOCK_REALTIME), .stands_for_none = true}};
    text_owned struct text body = {0};
    record_body(&log->constants, &event, &body, &parts.stamp.truncated);
    parts.body = body.data;
    parts.length = body.length;
    return line_write(&parts);
}

/* Which sinks did not take what stands in the file: at the first record that one does not take, and, with how
 * many they were, when it takes them again, or at the end. */
static void say_feeds(struct record_log *log, bool final) {
    for (int i = 0; i < RECORD_FEEDS; i++) {
        struct record_feed *feed = &log->feeds[i];
        bool begins = feed->failing && !feed->told;
        if (feed->lost == 0 || (!begins && feed->failing && !final))
            continue;
        uint64_t lost = feed->lost;
        memory_owned char *message = text_formatted(
            "%s did not take %llu records (%s)%s. They are in %s.", feed->name, (unsigned long long)lost,
            strerror(feed->number), begins ? "; what follows is counted" : "", log->sink.path);
        feed->told = feed->failing;
        struct error *error = say(log, "log.sink.failed", feed->name, message);
        if (error == NULL)
            feed->lost -= lost;
        error_ignore(error); /* said the next time */
    }
}

/* What happened to the file, once it can be said there. */
static void say_news(struct record_log *log) {
    struct record_sink *sink = &log->sink;
    if (sink->news != NULL) {
        memory_owned char *news = sink->news;
        sink->news = NULL;
        struct error *error = say(log, sink->news_reason, sink->path, news);
        if (error != NULL && sink->news == NULL)
            sink->news = memory_copy_string(news);
        error_ignore(error); /* said the next time */
    }
    if (log->failed == 0)
        return;
    memory_owned char *message =
        text_formatted("%llu records could not be written (%s). What they stood for is counted in the record "
                       "before this one.",
                       (unsigned long long)log->failed, log->failure);
    struct error *error = say(log, "log.lost", sink->path, message);
    if (error == NULL)
        log->failed = 0;
    error_ignore(error); /* said the next time */
}

/* Writes a body with its stamp and, with it, what the account owes. On failure both are owed again. */
static struct error *write_body(struct record_log *log, struct account *account, const char *body,
                                size_t length, struct record_stamp stamp, int64_t now) {
    struct line_parts parts = {.log = log, .body = body, .length = length, .stamp = stamp};
    parts.stamp.suppressed = account->suppressed;
    account->suppressed = 0;
    struct error *error = line_write(&parts);
    say_feeds(log, false);
    if (error == NULL) {
        say_news(log);
        return NULL;
    }
    suppress(account, parts.stamp.suppressed + (stamp.stands_for_none ? 0 : stamp.count), now);
    if (log->failed++ == 0) {
        free(log->failure);
        log->failure = memory_copy_string(error->message);
        error_ignore(say(log, "log.sink.failed", log->sink.path, log->failure)); /* to the other sinks */
    }
    return error;
}

static struct error *write_entry(struct record_log *log, struct coalesce_entry *entry, int64_t now) {
    struct record_stamp stamp = {.time_ms = entry->last_ms,
                                 .count = entry->owed,
                                 .start_ms = entry->first_ms,
                                 .end_ms = entry->last_ms,
                                 .truncated = entry->truncated};
    entry->owed = 0;
    return write_body(log, account_of(log, entry->denied), entry->body, entry->length, stamp, now);
}

/* -- events -- */

static struct error *write_single(struct record_log *log, struct account *account,
                                  const struct record_event *event, int64_t time_ms, int64_t now) {
    /* The runtime's own few; a workload cannot cause them at will. */
    bool bounded = event->class_id == RECORD_PROCESS;
    if (bounded && !take_token(account, now)) {
        suppress(account, 1, now);
        return NULL;
    }
    struct record_stamp stamp = {.time_ms = time_ms, .count = 1};
    text_owned struct text body = {0};
    record_body(&log->constants, event, &body, &stamp.truncated);
    return write_body(log, account, body.data, body.length, stamp, now);
}

/* Makes room for one more key. The oldest one's owed count is written, or, beyond the rate, suppressed. Under
 * a flood of ever new objects that would build a record for each only to throw it away: then there is no room
 * (false). */
static bool make_room(struct record_log *log, int64_t now, struct error **error) {
    while (coalesce_full(&log->table)) {
        struct coalesce_entry *oldest = log->table.oldest;
        if (oldest->owed > 0) {
            if (!take_token(account_of(log, oldest->denied), now))
                return false;
            keep_first(error, write_entry(log, oldest, now));
        }
        coalesce_remove(&log->table, oldest);
    }
    return true;
}

/* The order of records is that of their numbers; without this their times would seem to contradict it. */
static void say_clock(struct record_log *log) {
    int64_t step = record_clock_step(&log->clock, clock_ms(CLOCK_REALTIME), clock_ms(CLOCK_BOOTTIME));
    if (step == 0)
        return;
    memory_owned char *message =
        text_formatted("The machine's clock was set %s by %.1f seconds; metadata.sequence has the order.",
                       step < 0 ? "back" : "forward", (double)(step < 0 ? -step : step) / 1000);
    error_ignore(
        say(log, "log.clock.changed", "clock", message)); /* the file's failure is said when it ends */
}

struct error *record_write(struct record_log *log, const struct record_event *event) {
    say_clock(log);
    int64_t now = clock_ms(CLOCK_MONOTONIC);
    int64_t time_ms = event->time_ms != 0 ? event->time_ms : clock_ms(CLOCK_REALTIME);
    struct account *account = account_of_event(log, event);
    suppress(account, event->suppressed, now);
    if (!is_coalesced(event)) {
        /* The record of the container's end is the last one: whoever follows the log stops there. */
        struct error *owed = event->class_id == RECORD_LIFECYCLE && event->activity_id == 4
                                 ? record_log_flush(log, true)
                                 : NULL;
        keep_first(&owed, write_single(log, account, event, time_ms, now));
        return owed;
    }

    uint64_t hash = coalesce_hash(&log->table, event);
    struct coalesce_entry *entry = coalesce_find(&log->table, hash);
    struct error *error = NULL;
    bool fresh = entry == NULL;
    if (fresh) {
        if (!make_room(log, now, &error)) {
            suppress(account, 1, now);
            return error;
        }
        entry = coalesce_add(&log->table, hash);
        entry->denied = event->action == RECORD_DENIED;
        entry->delay_ms = FLUSH_MS;
    }
    entry->total++;
    entry->used = now;
    entry->last_ms = time_ms;
    if (entry->owed++ == 0) {
        entry->first_ms = time_ms;
        entry->due = now + entry->delay_ms;
    }
    bool power = (entry->total & (entry->total - 1)) == 0;
    bool write = power && take_token(account, now);
    if (write || fresh) {
        text_owned struct text body = {0};
        bool truncated = false;
        record_body(&log->constants, event, &body, &truncated);
        coalesce_keep(&log->table, entry, body.data, body.length, truncated);
    }
    if (!write)
        return error;
    if (event->action == RECORD_DENIED)
        record_inside_append(&log->inside, event, time_ms, entry->total);
    keep_first(&error, write_entry(log, entry, now));
    return error;
}

/* -- what is owed -- */

static int64_t account_due(const struct account *account, int64_t due) {
    return account->suppressed > 0 && account->due < due ? account->due : due;
}

int record_log_timeout(const struct record_log *log) {
    int64_t due = INT64_MAX;
    for (int kind = 0; kind < ACCOUNTS; kind++)
        due = account_due(&log->accounts[kind], due);
    for (const struct coalesce_entry *entry = log->table.newest; entry != NULL; entry = entry->older)
        if (entry->owed > 0 && entry->due < due)
            due = entry->due;
    if (due == INT64_MAX)
        return -1;
    int64_t left = due - clock_ms(CLOCK_MONOTONIC);
    return left < 0 ? 0 : left > FLUSH_MS_MAX ? FLUSH_MS_MAX : (int)left;
}

/* A record of its own for a suppressed count that no other record came to carry. It stands for no event
 * itself. */
static struct error *write_suppressed(struct record_log *log, enum kind kind, int64_t now) {
    static const struct {
        const char *words, *subject;
    } kinds[] = {[DENIED] = {"denied actions", "denials"},
                 [EXECUTED] = {"starts and ends of programs", "executions"},
                 [OTHER] = {"other events", "events"}};
    struct account *account = &log->accounts[kind];
    text_owned struct text message = {0};
    text_format(&message, "%llu %s were counted and not written one by one",
                (unsigned long long)account->suppressed, kinds[kind].words);
    struct record_event event = {.class_id = RECORD_FINDING,
                                 .activity_id = 1,
                                 .action = kind == DENIED ? RECORD_DENIED : RECORD_OBSERVED,
                                 .reason = "log.suppressed",
                                 .message = text_string(&message),
                                 .subject = kinds[kind].subject};
    struct record_stamp stamp = {.time_ms = clock_ms(CLOCK_REALTIME), .stands_for_none = true};
    text_owned struct text body = {0};
    record_body(&log->constants, &event, &body, &stamp.truncated);
    return write_body(log, account, body.data, body.length, stamp, now);
}

struct error *record_log_flush(struct record_log *log, bool final) {
    int64_t now = clock_ms(CLOCK_MONOTONIC);
    struct error *error = NULL;
    for (struct coalesce_entry *entry = log->table.oldest, *newer; entry != NULL; entry = newer) {
        newer = entry->newer;
        if (entry->owed == 0 && now - entry->used > COALESCE_QUIET_MS) {
            coalesce_remove(&log->table, entry);
            continue;
        }
        if (entry->owed == 0 || (!final && now < entry->due))
            continue;
        /* At the end everything is written: at most a table's worth, and nothing comes after it. */
        if (!final && !take_token(account_of(log, entry->denied), now)) {
            entry->due = now + FLUSH_MS;
            continue;
        }
        entry->delay_ms = entry->delay_ms * 2 > FLUSH_MS_MAX ? FLUSH_MS_MAX : entry->delay_ms * 2;
        keep_first(&error, write_entry(log, entry, now));
    }
    for (int kind = 0; kind < ACCOUNTS; kind++) {
        const struct account *account = &log->accounts[kind];
        if (account->suppressed > 0 && (final || now >= account->due))
            keep_first(&error, write_suppressed(log, (enum kind)kind, now));
    }
    if (final)
        say_feeds(log, true);
    return error;
}
