/* Which repeats belong together, and what is still owed for them. Bounded in entries and in bytes. Internal
 * to record/. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/record.h"

#define COALESCE_ENTRIES 1024
#define COALESCE_BYTES (1024 * 1024)
/* An entry that was quiet for so long is forgotten: the next event is a first one again. */
#define COALESCE_QUIET_MS 60000

struct coalesce_entry {
    uint64_t hash;
    struct coalesce_entry *chain;         /* same bucket */
    struct coalesce_entry *older, *newer; /* by last use */
    bool denied;
    uint64_t total;    /* events so far */
    uint64_t owed;     /* of them not yet written */
    int64_t first_ms;  /* wall clock of the first owed event */
    int64_t last_ms;   /* and of the last one */
    int64_t due;       /* monotonic ms at which what is owed is written; meaningful while owed */
    int64_t used;      /* monotonic ms of the last event */
    unsigned delay_ms; /* until the next due: doubles while the repeats go on */
    char *body;        /* of the last record that was made for this key */
    size_t length;
    bool truncated;
};

struct coalesce {
    uint64_t key[2];
    struct coalesce_entry *buckets[COALESCE_ENTRIES];
    struct coalesce_entry *oldest, *newest;
    size_t count;
    size_t bytes;
};

void coalesce_open(struct coalesce *table);
void coalesce_close(struct coalesce *table);
/* (class, activity, action, reason, object, exec, executable): what makes two events the same to a reader. */
uint64_t coalesce_hash(const struct coalesce *table, const struct record_event *event);
/* The entry, made the newest, or NULL. */
struct coalesce_entry *coalesce_find(struct coalesce *table, uint64_t hash);
/* A new entry; the caller has made room (coalesce_full). */
struct coalesce_entry *coalesce_add(struct coalesce *table, uint64_t hash);
bool coalesce_full(const struct coalesce *table);
/* Keeps a copy of the body in the entry. */
void coalesce_keep(struct coalesce *table, struct coalesce_entry *entry, const char *body, size_t length,
                   bool truncated);
void coalesce_remove(struct coalesce *table, struct coalesce_entry *entry);
