/* The broker's plan: sealed as JSON, and what a resolver's files add to it. */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "broker/launch.h"
#include "libocispec/schema_table.h"
#include "sys/companion.h"

/* As many as glibc asks. */
#define NAMESERVERS_MAX 3
#define ENTRIES_MAX 4096
#define NAMES_OF_ENTRY_MAX 64

static const struct schema_field entry_fields[] = {
    STRING(REQUIRED, "address", broker_hosts_entry, address),
    STRINGS(REQUIRED, "names", broker_hosts_entry, names),
};
static const struct schema entry_schema = SCHEMA("hosts entry", broker_hosts_entry, entry_fields);

static const struct schema_field plan_fields[] = {
    STRINGS(REQUIRED, "hosts", broker_plan, hosts),
    INT64(REQUIRED, "uplink", broker_plan, uplink),
    STRINGS(OPTIONAL, "aliases", broker_plan, aliases),
    STRINGS(OPTIONAL, "nameservers", broker_plan, nameservers),
    STRINGS(OPTIONAL, "engineNameservers", broker_plan, engine_nameservers),
    OBJECTS(OPTIONAL, "entries", broker_plan, entries, broker_hosts_entry, entry_schema),
    INT64(OPTIONAL, "connectionsMax", broker_plan, connections_max),
    STRINGS(OPTIONAL, "names", broker_plan, names),
    INT64(OPTIONAL, "generation", broker_plan, generation),
};
static const struct schema plan_schema = SCHEMA("broker plan", broker_plan, plan_fields);

struct error *broker_plan_seal(const struct broker_plan *plan, int *out) {
    json_owned struct json_writer json = {0};
    schema_write(&plan_schema, plan, &json);
    return companion_plan_seal(text_string(&json.text), json.text.length, "the broker's plan", out);
}

struct error *broker_plan_map(int sealed, size_t length, struct broker_plan *out) {
    if (length == 0 || length > SCHEMA_BYTES_MAX)
        return error_new(ERROR_INVALID, "the broker's plan: %zu bytes", length);
    void *bytes = mmap(NULL, length, PROT_READ, MAP_PRIVATE, sealed, 0);
    if (bytes == MAP_FAILED)
        return error_system(errno, "map", "the broker's plan");
    void *read = NULL;
    struct error *error = schema_read(&plan_schema, "the broker's plan", bytes, length, &read);
    munmap(bytes, length);
    TRY(error);
    memory_owned struct broker_plan *plan = read;
    *out = *plan;
    return NULL;
}

struct error *broker_plan_read(int sealed, struct broker_plan *out) {
    text_owned struct text bytes = {0};
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", sealed);
    TRY(file_read(AT_FDCWD, path, SCHEMA_BYTES_MAX, &bytes));
    void *read = NULL;
    TRY(schema_read(&plan_schema, "the broker's plan", text_string(&bytes), bytes.length, &read));
    memory_owned struct broker_plan *plan = read;
    *out = *plan;
    return NULL;
}

void broker_plan_clear(struct broker_plan *plan) {
    string_list_free(&plan->hosts);
    string_list_free(&plan->aliases);
    string_list_free(&plan->nameservers);
    string_list_free(&plan->engine_nameservers);
    string_list_free(&plan->names);
    for (size_t i = 0; i < plan->entries_count; i++) {
        free(plan->entries[i].address);
        string_list_free(&plan->entries[i].names);
    }
    free(plan->entries);
    *plan = (struct broker_plan){0};
}

/* -- resolv.conf and hosts -- */

/* The next word of the line, cut out of it; NULL at the end and before a comment. */
static char *next_word(char **rest) {
    char *word = *rest + strspn(*rest, " \t\r\f\v");
    if (*word == '\0' || *word == '#' || *word == ';')
        return NULL;
    char *end = word + strcspn(word, " \t\r\f\v#;");
    bool comment = *end == '#' || *end == ';';
    *rest = *end == '\0' || comment ? end + strlen(end) : end + 1;
    *end = '\0';
    return word;
}

/* An address, without its scope. */
static bool is_address(const char *word) {
    char bare[INET6_ADDRSTRLEN];
    unsigned char bytes[16];
    size_t length = strcspn(word, "%");
    if (length >= sizeof bare)
        return false;
    memcpy(bare, word, length);
    bare[length] = '\0';
    return inet_pton(AF_INET, bare, bytes) == 1 || inet_pton(AF_INET6, bare, bytes) == 1;
}

/* Calls `each` for every line. A NUL ends the text, as for every reader of such a file. */
static void lines_each(struct broker_plan *plan, const char *text, size_t length,
                       void (*each)(struct broker_plan *plan, char *line)) {
    text_owned struct text copy = {0};
    text_append_bytes(&copy, text, strnlen(text, length));
    char *rest = copy.data, *line;
    while (rest != NULL && (line = strsep(&rest, "\n")) != NULL)
        each(plan, line);
}

static void resolver_line(struct broker_plan *plan, char *line) {
    char *keyword = next_word(&line);
    if (keyword == NULL || strcmp(keyword, "nameserver") != 0)
        return;
    char *address = next_word(&line);
    if (address == NULL || !is_address(address))
        return;
    struct string_list *servers =
        strcmp(address, BROKER_ENGINE_NAMESERVER) == 0 ? &plan->engine_nameservers : &plan->nameservers;
    if (servers->count < (servers == &plan->nameservers ? NAMESERVERS_MAX : 1))
        string_list_append(servers, address);
}

void broker_plan_read_resolver(struct broker_plan *plan, const char *text, size_t length) {
    lines_each(plan, text, length, resolver_line);
}

static void hosts_line(struct broker_plan *plan, char *line) {
    char *address = next_word(&line);
    if (address == NULL || !is_address(address) || plan->entries_count == ENTRIES_MAX)
        return;
    struct broker_hosts_entry entry = {.address = memory_copy_string(address)};
    for (char *name; entry.names.count < NAMES_OF_ENTRY_MAX && (name = next_word(&line)) != NULL;) {
        for (char *c = name; *c != '\0'; c++)
            *c = (char)tolower((unsigned char)*c);
        string_list_append(&entry.names, name);
    }
    plan->entries = memory_resize(plan->entries, plan->entries_count + 1, sizeof *plan->entries);
    plan->entries[plan->entries_count++] = entry;
}

void broker_plan_read_hosts(struct broker_plan *plan, const char *text, size_t length) {
    lines_each(plan, text, length, hosts_line);
}
