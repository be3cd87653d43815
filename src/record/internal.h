/* Between the parts of record/; nobody else includes this. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "record/record.h"

/* No line is longer, so that each is one write(2); the parts below add up to less (test_record). */
#define RECORD_LINE_MAX 16384
/* Most bytes of JSON text that one string may become. Longer ones are cut and marked. */
#define RECORD_COMMAND_LINE_MAX 3072
#define RECORD_PATH_MAX 3072
#define RECORD_STRING_MAX 512
#define RECORD_NAME_MAX 256

/* -- build.c: an event becomes OCSF JSON -- */

/* What all records of a log have in common, made once, as JSON text. */
struct record_constants {
    char *container;       /* the object of actor.process.container */
    char *device;          /* the object */
    char *policy;          /* the object, NULL when there is none */
    char *metadata;        /* the object without its closing brace */
    char *correlation;     /* "correlation_uid":"..." as it stands in metadata, NULL without a run id */
    char *application;     /* of the lifecycle class */
    char *source_endpoint; /* members that name the container as an endpoint */
    char *run;             /* the run id's JSON text without quotes, for uids */
};
void record_constants_make(const struct record_subject *subject, struct record_constants *out);
void record_constants_clear(struct record_constants *constants);

/* What changes from one writing of a body to the next. */
struct record_stamp {
    uint64_t sequence;
    int64_t time_ms;
    uint64_t count;       /* 1: left out */
    bool stands_for_none; /* writes "count":0 */
    int64_t start_ms, end_ms;
    uint64_t suppressed; /* 0: left out */
    bool truncated;
};
/* Appends the body: the record from "class_uid" to inside "unmapped", which is last and still open.
 * *truncated is set when a string was cut. */
void record_body(const struct record_constants *constants, const struct record_event *event, struct text *out,
                 bool *truncated);
/* Appends the whole line with its newline. */
void record_line(const struct record_constants *constants, const char *body, size_t length,
                 const struct record_stamp *stamp, struct text *out);

/* json.c-like quoting with a bound: appends a JSON string (with its quotes) of at most `limit` bytes between
 * them. Invalid UTF-8 becomes U+FFFD; C0, DEL, C1 and bidirectional controls are written as \u escapes, so
 * that `cat` of a log cannot drive a terminal. Returns true when the string was cut; it then ends with a
 * mark. */
bool record_quote(struct text *out, const char *bytes, size_t length, size_t limit);

/* -- sink.c: writing to the file -- */

struct record_sink {
    int directory; /* that the file is in, as it was found last */
    int fd;
    bool torn;        /* the last line was cut short (disk full): start the next with a newline */
    const char *path; /* the subject's */
    const char *name; /* its last component */
    int64_t keep_ms;  /* log.keep, 0: for ever */
    int64_t total;    /* log.total, 0: without a bound */
    int64_t piece;    /* bytes beyond which the file is rotated, 0: never */
    char *news;       /* what happened to the file, to be said in a record of its own; or NULL */
    const char *news_reason;
    uint64_t *shared;      /* the shared counter, or NULL */
    uint64_t highest;      /* own counter: highest sequence of the run that is known */
    int64_t seen;          /* size of the file at the last look under the lock */
    int64_t lock_hopeless; /* CLOCK_MONOTONIC ms until which a lock is not waited for */
};
fallible record_sink_open(const struct record_subject *subject, uint64_t *shared, struct record_sink *out);
/* Gives `make` the next sequence and appends what it makes as one write, under the file's lock, so that the
 * sequence rises in the file whoever else writes. */
fallible record_sink_append(struct record_sink *sink, const char *correlation,
                            void (*make)(uint64_t sequence, void *data, struct text *line), void *data);
void record_sink_close(struct record_sink *sink);

/* -- file.c: the file itself -- */

/* A log's older pieces are NAME.1, NAME.2, ...; the highest number is the oldest. */
#define RECORD_PIECES 3

/* Opens, or makes, the file at sink->path in the place of what was open; its directory too. ERROR_INVALID:
 * something else is there. */
fallible record_file_open(struct record_sink *sink);
/* Whether the log is another file than before: what was open has been renamed or removed, and is open no
 * more. What happened is in sink->news where something may be missing. */
bool record_file_look(struct record_sink *sink);
/* Makes the file the newest of the older pieces, and begins another one. Under its lock. */
void record_file_rotate(struct record_sink *sink);
/* Whether somebody has the file open as record_file_open does. */
bool record_file_is_written(int fd);
/* How large a file may become, of log.total; 0: without a bound. */
int64_t record_piece_size(int64_t total);

/* -- tidy.c -- */

/* ID.jsonl (*current), or an older piece, ID.jsonl.N. */
bool record_is_log_name(const char *name, bool *current);
/* Removes logs of the directory that are older than `keep_ms`, and of others the oldest until all together
 * are no more than `total`; 0: no such bound. Only regular files of this user's that are called as logs are,
 * and whose containers are gone. At most once in five minutes. */
void record_tidy(int directory, int64_t keep_ms, int64_t total);

/* -- feed.c: the journal and OTLP/JSON -- */

enum { RECORD_FEED_JOURNAL, RECORD_FEED_OTLP, RECORD_FEEDS };
struct record_feed {
    int fd; /* -1: none */
    const char *name;
    struct text fixed; /* what all its entries have in common */
    uint64_t lost;     /* records that it did not take, and that no record has told of yet */
    int number;        /* errno of the last of them */
    bool failing;      /* the last one was not taken */
    bool told;         /* a record has told of that */
};
/* Those that the subject asks for. ERROR_UNAVAILABLE: the journal must be there, and is not. */
fallible record_feeds_open(const struct record_subject *subject, struct record_feed *feeds);
/* Whether it has taken the line (without its newline), at once. */
bool record_feed_give(struct record_feed *feed, bool journal, const char *line, size_t length);
void record_feeds_close(struct record_feed *feeds);

/* -- inside.c: the container's own view of its denials -- */

struct record_inside {
    int fd; /* -1: none */
    size_t length;
};
/* `count`: how often this was denied so far. */
void record_inside_append(struct record_inside *inside, const struct record_event *event, int64_t time_ms,
                          uint64_t count);

/* -- time -- */
/* The wall clock against one that nobody can set. */
struct record_clock {
    int64_t wall, steady; /* at the last look; 0: none yet */
};
/* By how much the wall clock was set since the last look, 0 for what it drifts. */
int64_t record_clock_step(struct record_clock *clock, int64_t wall, int64_t steady);
