/* Between the parts of `pinfold log`; nobody else includes this. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/text.h"

#define LOG_SUFFIX ".jsonl"

/* -- log_record.c: a line becomes a record -- */

/* What the table shows of a record. Strings are owned; NULL where the record has none. */
struct log_record {
    int64_t time_ms;
    int class_id;
    int activity_id;
    int action_id;
    int64_t pid;    /* 0: unknown */
    uint64_t count; /* attempts it stands for; 1 where the record does not say */
    uint64_t suppressed;
    char *activity;
    char *reason;
    char *message; /* one sentence */
    char *process;
    char *object;
    char *remedy;
    char *run;
    char *container_id;
    char *container_name;
    char *image;
    char *policy;
    char *policy_digest;
    char *exec_id;
};
/* False for a line that is not a record (torn, foreign). Clears *out first; log_record_clear frees it. */
bool log_record_parse(const char *line, size_t length, struct log_record *out);
void log_record_clear(struct log_record *record);
bool log_record_is_denial(const struct log_record *record);
/* The container has ended. */
bool log_record_is_end(const struct log_record *record);
/* A program was run, or its end. */
bool log_record_is_execution(const struct log_record *record);

/* -- log_find.c: which logs -- */

struct log_choice {
    enum { LOG_NAMED, LOG_LAST, LOG_ALL } which;
    /* IDs, unique prefixes of one, names (of which the newest counts), and files: "-", what has a slash, and
     * a file
     * *.jsonl of the working directory. */
    struct string_list names;
    const char *directory; /* NULL: the default ones */
};
/* Appends the path of each log that was chosen, and "-" for the standard input; each one once. */
fallible log_find(const struct log_choice *choice, struct string_list *paths);

/* -- log_read.c: the lines of one log -- */

/* A log is all its files: what was rotated to PATH.1, PATH.2, ... is read first, the oldest before the
 * others, and a rotation while one reads loses nothing. */
struct log_reader;
fallible log_reader_open(const char *path, struct log_reader **reader);
void log_reader_close(struct log_reader *reader);
const char *log_reader_path(const struct log_reader *reader);
/* The next line that is a record, without its end, the reader's until the next call; *line is NULL where
 * there is none yet. The caller clears *record. */
fallible log_reader_next(struct log_reader *reader, struct log_record *record, const char **line,
                         size_t *length);
/* The same for a last line that has no end. */
void log_reader_rest(struct log_reader *reader, struct log_record *record, const char **line, size_t *length);
/* Lines so far that are not records. */
uint64_t log_reader_unreadable(const struct log_reader *reader);

/* -- log_table.c: for people -- */

struct log_layout {
    bool summary; /* one row for each reason and object, printed by log_table_finish, most frequent first */
    bool several; /* of several containers: a column says of which */
};
struct log_table;
struct log_table *log_table_open(FILE *out, struct log_layout layout);
/* Takes the record's strings over. Rows are held back, and repeats merged, until log_table_flush. */
void log_table_add(struct log_table *table, struct log_record *record);
/* Prints the rows that were held back. */
void log_table_flush(struct log_table *table);
/* Flushes, and prints the totals. */
void log_table_finish(struct log_table *table);
void log_table_close(struct log_table *table);

/* -- log_show.c: text on a terminal -- */

/* Appends `string` as it can be shown on a terminal: control, formatting and invalid bytes become \x.. or
 * \u....; the text is a container's, and may try to drive the reader's terminal. Returns the columns it
 * takes. */
size_t log_show(const char *string, struct text *out);
/* The same as a cell of at most `limit` columns (0: no limit); a longer one loses its middle. */
size_t log_show_cell(const char *string, size_t limit, struct text *out);
