#include "record/coalesce.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/memory.h"
#include "base/text.h"
#include "record/siphash.h"

void coalesce_open(struct coalesce *table) {
    *table = (struct coalesce){0};
    /* Without randomness at early boot a workload could at worst merge two of its own keys. */
    (void)!getrandom(table->key, sizeof table->key, GRND_NONBLOCK);
}

void coalesce_close(struct coalesce *table) {
    while (table->oldest != NULL)
        coalesce_remove(table, table->oldest);
}

static void key_string(struct text *key, const char *string) {
    if (string != NULL)
        text_append(key, string);
    text_append_bytes(key, "", 1); /* the NUL keeps the parts apart */
}

uint64_t coalesce_hash(const struct coalesce *table, const struct record_event *event) {
    text_owned struct text key = {0};
    int numbers[6] = {(int)event->class_id,   event->activity_id,
                      (int)event->action,     event->port,
                      event->protocol_number, event->has_traffic ? event->source_port : 0};
    text_append_bytes(&key, numbers, sizeof numbers);
    key_string(&key, event->reason);
    key_string(&key, event->activity_name);
    key_string(&key, event->file_path);
    key_string(&key, event->subject);
    key_string(&key, event->address);
    key_string(&key, event->inbound ? event->source_address : NULL);
    key_string(&key, event->exec_id);
    key_string(&key, event->method);
    key_string(&key, event->asked);
    if (event->process != NULL)
        key_string(&key, event->process->executable ? event->process->executable : event->process->name);
    return siphash(table->key, key.data, key.length);
}

static void unlink_use(struct coalesce *table, struct coalesce_entry *entry) {
    *(entry->older ? &entry->older->newer : &table->oldest) = entry->newer;
    *(entry->newer ? &entry->newer->older : &table->newest) = entry->older;
    entry->older = entry->newer = NULL;
}

static void link_newest(struct coalesce *table, struct coalesce_entry *entry) {
    entry->older = table->newest;
    *(table->newest ? &table->newest->newer : &table->oldest) = entry;
    table->newest = entry;
}

struct coalesce_entry *coalesce_find(struct coalesce *table, uint64_t hash) {
    struct coalesce_entry *entry = table->buckets[hash % COALESCE_ENTRIES];
    while (entry != NULL && entry->hash != hash)
        entry = entry->chain;
    if (entry != NULL && entry != table->newest) {
        unlink_use(table, entry);
        link_newest(table, entry);
    }
    return entry;
}

bool coalesce_full(const struct coalesce *table) {
    return table->count >= COALESCE_ENTRIES || table->bytes >= COALESCE_BYTES;
}

struct coalesce_entry *coalesce_add(struct coalesce *table, uint64_t hash) {
    struct coalesce_entry *entry = memory_zeroed(sizeof *entry);
    entry->hash = hash;
    entry->chain = table->buckets[hash % COALESCE_ENTRIES];
    table->buckets[hash % COALESCE_ENTRIES] = entry;
    table->count++;
    table->bytes += sizeof *entry;
    link_newest(table, entry);
    return entry;
}

void coalesce_keep(struct coalesce *table, struct coalesce_entry *entry, const char *body, size_t length,
                   bool truncated) {
    table->bytes += length - entry->length;
    free(entry->body);
    entry->body = memory_copy(body, length);
    entry->length = length;
    entry->truncated = truncated;
}

void coalesce_remove(struct coalesce *table, struct coalesce_entry *entry) {
    struct coalesce_entry **link = &table->buckets[entry->hash % COALESCE_ENTRIES];
    while (*link != entry)
        link = &(*link)->chain;
    *link = entry->chain;
    unlink_use(table, entry);
    table->count--;
    table->bytes -= sizeof *entry + entry->length;
    free(entry->body);
    free(entry);
}
