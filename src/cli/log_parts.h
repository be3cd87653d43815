/* Between the parts of `pinfold log`; nobody else includes this. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/text.h"

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
    char *process;
    char *object;
    char *remedy;
    char *run;
    char *container_id;
    char *container_name;
    char *image;
    char *policy;
    char *policy_digest;
};
/* False for a line that is not a record (torn, foreign). Clears *out first; log_record_clear frees it. */
bool log_record_parse(const char *line, size_t length, struct log_record *out);
void log_record_clear(struct log_record *record);
bool log_record_is_denial(const struct log_record *record);
/* The container has ended. */
bool log_record_is_end(const struct log_record *record);

/* -- log_find.c: which file -- */

/* *path is the file of the container called `name` (id, unique prefix of an id, or name; the newest of a
 * name), or with NULL the newest file. `directory` NULL: the default ones. The caller frees *path. */
fallible log_find(const char *name, const char *directory, char **path);

/* -- log_table.c: for people -- */

struct log_table;
/* `summary`: one row for each reason and object, printed by log_table_finish, most frequent first. */
struct log_table *log_table_open(FILE *out, bool summary);
/* Takes the record's strings over. Rows are held back, and repeats merged, until log_table_flush. */
void log_table_add(struct log_table *table, struct log_record *record);
/* Prints the rows that were held back. */
void log_table_flush(struct log_table *table);
/* Flushes, and prints the totals. */
void log_table_finish(struct log_table *table);
void log_table_close(struct log_table *table);

/* Appends `string` as it can be shown on a terminal: control, formatting and invalid bytes become \x.. or
 * \u....; the text is a container's, and may try to drive the reader's terminal. Returns the columns it
 * takes. */
size_t log_show(const char *string, struct text *out);
