/* Records as a table. A row stands for all repeats of the same (action, reason, object, process, run) among
 * the rows that were held back together; in a summary, of the same (action, reason, object) in the whole log.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/log_parts.h"

/* Rows held back at most: a log has no bound, memory has. */
#define ROWS_MAX 4096
#define BUCKETS 8192
#define REMEDIES_MAX 256
#define ENDINGS_MAX 256
#define WIDTH_DEFAULT 120

enum style { PLAIN, BOLD, DIM, RED, YELLOW };

struct row {
    struct log_record record;
    struct row *chain;
};

struct log_table {
    FILE *out;
    bool summary, several;
    bool colour;
    size_t width; /* of the output; 0: as wide as it takes (a pipe) */
    bool narrow;  /* no pids and no column of counts, so that something is left for the object */
    struct row *rows[ROWS_MAX];
    size_t count;
    struct row *buckets[BUCKETS];
    struct string_list remedies; /* already shown */
    struct string_list endings;  /* of a summary: how each container ended */
    char *run;                   /* of the last heading */
    bool any;
    size_t container_width, reason_width, process_width, count_width;
    uint64_t denials, suppressed, others;
    uint64_t unlisted; /* attempts of a summary's rows beyond the bound */
};

static void style(struct log_table *table, struct text *out, enum style style) {
    static const char *const codes[] = {"\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[33m"};
    if (table->colour)
        text_append(out, codes[style]);
}

static void pad(struct text *out, size_t used, size_t width) {
    for (; used < width; used++)
        text_append(out, " ");
}

static void print(struct log_table *table, struct text *line) {
    while (line->length > 0 && line->data[line->length - 1] == ' ')
        line->length--;
    if (line->length > 0)
        fwrite(line->data, 1, line->length, table->out);
    fputc('\n', table->out);
    line->length = 0;
}

/* -- cells -- */

/* When; and, where the day is not today's heading's, on which day. */
static void show_time(int64_t time_ms, const char *format, struct text *out) {
    time_t seconds = (time_t)(time_ms / 1000);
    struct tm local;
    char buffer[32] = "?";
    if (localtime_r(&seconds, &local) != NULL)
        strftime(buffer, sizeof buffer, format, &local);
    text_append(out, buffer);
}

static const char *what_of(const struct log_record *record) {
    if (record->class_id == 5019)
        return "policy";
    if (record->class_id == 6002) {
        if (record->activity_id == 3)
            return "started";
        if (log_record_is_end(record))
            return "ended";
        if (record->activity == NULL)
            return "lifecycle";
        return strcmp(record->activity, "Create") == 0 ? "created" : record->activity;
    }
    return record->action_id == 2 ? "denied" : record->action_id == 1 ? "allowed" : "observed";
}

static const char *reason_of(const struct log_record *record) {
    if (record->reason != NULL)
        return record->reason;
    return record->class_id == 6002 || record->class_id == 5019 || record->activity == NULL
               ? ""
               : record->activity;
}

/* "sh (4242)"; the runtime's own deeds need no process. */
static char *process_of(const struct log_table *table, const struct log_record *record) {
    if (record->class_id == 2004 || record->class_id == 6002 || record->class_id == 5019) {
        bool own = record->process != NULL && strcmp(record->process, "pinfold") == 0;
        if (own || record->process == NULL)
            return memory_copy_string("");
    }
    if (record->process == NULL && record->pid == 0)
        return memory_copy_string("?");
    if (record->process != NULL && (record->pid == 0 || table->narrow))
        return memory_copy_string(record->process);
    return text_formatted("%s (%" PRId64 ")", record->process ? record->process : "?", record->pid);
}

/* What people call it: the engine's name for it, else the beginning of its ID. */
static char *container_of(const struct log_record *record) {
    if (record->container_name != NULL)
        return memory_copy_string(record->container_name);
    return strndup(record->container_id ? record->container_id : "?", 24);
}

static size_t shown_width(const char *string) {
    text_owned struct text text = {0};
    return log_show(string, &text);
}

static size_t clamp(size_t value, size_t least, size_t most) {
    return value < least ? least : value > most ? most : value;
}

static void measure(struct log_table *table) {
    size_t container = 0, reason = 0, process = 0;
    uint64_t most = 0;
    for (size_t i = 0; i < table->count; i++) {
        const struct log_record *record = &table->rows[i]->record;
        memory_owned char *name = process_of(table, record);
        size_t width = shown_width(reason_of(record));
        reason = width > reason ? width : reason;
        width = shown_width(name);
        process = width > process ? width : process;
        most = record->count > most ? record->count : most;
        memory_owned char *whose = container_of(record);
        width = shown_width(whose);
        container = width > container ? width : container;
    }
    /* Widths only grow, so that what --follow adds stays below its heading. */
    size_t digits = (size_t)snprintf(NULL, 0, "%" PRIu64, most);
    reason = clamp(reason, sizeof "REASON" - 1, table->narrow ? 22 : 30);
    process = clamp(process, sizeof "PROCESS" - 1, table->narrow ? 10 : 26);
    digits = clamp(digits, sizeof "COUNT" - 1, 20);
    container = clamp(container, sizeof "CONTAINER" - 1, table->narrow ? 12 : 24);
    table->container_width = container > table->container_width ? container : table->container_width;
    table->reason_width = reason > table->reason_width ? reason : table->reason_width;
    table->process_width = process > table->process_width ? process : table->process_width;
    table->count_width = digits > table->count_width ? digits : table->count_width;
}

/* -- rows -- */

#define WHAT_WIDTH 8
#define TIME_WIDTH 8
#define GAP 2

static void remedy_line(struct log_table *table, const struct log_record *record, size_t indent) {
    if (record->remedy == NULL || string_list_contains(&table->remedies, record->remedy))
        return;
    if (table->remedies.count < REMEDIES_MAX)
        string_list_append(&table->remedies, record->remedy);
    text_owned struct text line = {0};
    pad(&line, 0, indent);
    style(table, &line, DIM);
    text_append(&line, "allow with  ");
    log_show_cell(record->remedy, 0, &line); /* whole: it is there to be copied */
    style(table, &line, PLAIN);
    print(table, &line);
}

static void column_names(struct log_table *table, struct text *line) {
    style(table, line, DIM);
    text_format(line, "%-*s  ", TIME_WIDTH, "TIME");
    if (table->several)
        text_format(line, "%-*s  ", (int)table->container_width, "CONTAINER");
    text_format(line, "%-*s  %-*s  %-*s  ", WHAT_WIDTH, "WHAT", (int)table->reason_width, "REASON",
                (int)table->process_width, "PROCESS");
    if (!table->narrow)
        text_format(line, "%*s  ", (int)table->count_width, "COUNT");
    text_append(line, "OBJECT");
    style(table, line, PLAIN);
    print(table, line);
}

/* Whose records follow; with several containers, whose they are stands in each row. */
static void heading(struct log_table *table, const struct log_record *record) {
    if (table->several) {
        text_owned struct text names = {0};
        if (!table->any)
            column_names(table, &names);
        table->any = true;
        return;
    }
    bool same =
        table->any && (record->run == NULL ? table->run == NULL
                                           : table->run != NULL && strcmp(record->run, table->run) == 0);
    if (same)
        return;
    text_owned struct text line = {0};
    if (table->any)
        print(table, &line);
    table->any = true;
    free(table->run);
    table->run = record->run ? memory_copy_string(record->run) : NULL;
    style(table, &line, BOLD);
    log_show_cell(record->container_name ? record->container_name : "container", 48, &line);
    style(table, &line, PLAIN);
    const char *id = record->container_id;
    if (id != NULL && (record->container_name == NULL || strcmp(id, record->container_name) != 0)) {
        memory_owned char *start = strndup(id, 12);
        text_append(&line, "  ");
        log_show_cell(start, 0, &line);
    }
    struct {
        const char *label, *value;
    } parts[] = {{"image", record->image}, {"policy", record->policy}, {"run", record->run}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (parts[i].value == NULL)
            continue;
        text_format(&line, "  %s ", parts[i].label);
        log_show_cell(parts[i].value, 48, &line);
    }
    text_append(&line, "  ");
    show_time(record->time_ms, "%Y-%m-%d", &line);
    print(table, &line);
    column_names(table, &line);
}

static void container_cell(const struct log_table *table, const struct log_record *record,
                           struct text *line) {
    if (!table->several)
        return;
    memory_owned char *name = container_of(record);
    pad(line, log_show_cell(name, table->container_width, line), table->container_width + GAP);
}

static void what_cell(struct log_table *table, const struct log_record *record, struct text *line) {
    bool plain = record->class_id == 6002 || record->class_id == 5019;
    style(table, line, plain ? DIM : record->action_id == 2 ? RED : record->action_id == 3 ? YELLOW : PLAIN);
    size_t used = log_show_cell(what_of(record), WHAT_WIDTH, line);
    style(table, line, PLAIN);
    pad(line, used, WHAT_WIDTH + GAP);
}

/* The room that is left for the last column. */
static size_t object_room(const struct log_table *table, size_t used) {
    if (table->width == 0)
        return 0;
    return table->width > used + 12 ? table->width - used : 12;
}

static void count_cell(const struct log_table *table, uint64_t count, struct text *line) {
    if (table->narrow)
        return;
    if (count == 1 && !table->summary)
        pad(line, 0, table->count_width);
    else
        text_format(line, "%*" PRIu64, (int)table->count_width, count);
    text_append(line, "  ");
}

/* The last column, with the count in front where it has no column of its own. */
static void object_cell(const struct log_table *table, const struct log_record *record, size_t used,
                        struct text *line) {
    size_t room = object_room(table, used);
    if (table->narrow && record->count != 1) {
        size_t before = line->length;
        text_format(line, "%" PRIu64 "x ", record->count);
        room -= line->length - before < room ? line->length - before : room - 1;
    }
    log_show_cell(record->object, room, line);
}

static void print_row(struct log_table *table, const struct log_record *record) {
    text_owned struct text line = {0};
    heading(table, record);
    show_time(record->time_ms, "%H:%M:%S", &line);
    pad(&line, TIME_WIDTH, TIME_WIDTH + GAP);
    container_cell(table, record, &line);
    what_cell(table, record, &line);
    size_t used = log_show_cell(reason_of(record), table->reason_width, &line);
    pad(&line, used, table->reason_width + GAP);
    memory_owned char *process = process_of(table, record);
    used = log_show_cell(process, table->process_width, &line);
    pad(&line, used, table->process_width + GAP);
    count_cell(table, record->count, &line);
    used = TIME_WIDTH + WHAT_WIDTH + table->reason_width + table->process_width + 4 * GAP;
    used += table->narrow ? 0 : table->count_width + GAP;
    used += table->several ? table->container_width + GAP : 0;
    object_cell(table, record, used, &line);
    print(table, &line);
    remedy_line(table, record, TIME_WIDTH + WHAT_WIDTH + 2 * GAP);
}

static int most_first(const void *one, const void *two) {
    const struct row *const *a = one, *const *b = two;
    uint64_t x = (*a)->record.count, y = (*b)->record.count;
    if (x != y)
        return x > y ? -1 : 1;
    return (*a)->record.time_ms < (*b)->record.time_ms ? -1 : (*a)->record.time_ms > (*b)->record.time_ms;
}

static void print_summary(struct log_table *table) {
    text_owned struct text line = {0};
    if (table->count > 1)
        qsort(table->rows, table->count, sizeof table->rows[0], most_first);
    style(table, &line, DIM);
    text_format(&line, "%*s  ", (int)table->count_width, "COUNT");
    if (table->several)
        text_format(&line, "%-*s  ", (int)table->container_width, "CONTAINER");
    text_format(&line, "%-*s  %-*s  %s", WHAT_WIDTH, "WHAT", (int)table->reason_width, "REASON", "OBJECT");
    style(table, &line, PLAIN);
    print(table, &line);
    for (size_t i = 0; i < table->count; i++) {
        const struct log_record *record = &table->rows[i]->record;
        count_cell(table, record->count, &line);
        container_cell(table, record, &line);
        what_cell(table, record, &line);
        size_t used = log_show_cell(reason_of(record), table->reason_width, &line);
        pad(&line, used, table->reason_width + GAP);
        used = table->count_width + WHAT_WIDTH + table->reason_width + 3 * GAP;
        used += table->several ? table->container_width + GAP : 0;
        object_cell(table, record, used, &line);
        print(table, &line);
        remedy_line(table, record, table->count_width + GAP + WHAT_WIDTH + GAP);
    }
    if (table->unlisted > 0)
        fprintf(table->out, "%" PRIu64 " more of other reasons and objects\n", table->unlisted);
    if (table->endings.count > 0 && (table->count > 0 || table->unlisted > 0))
        print(table, &line);
    for (size_t i = 0; i < table->endings.count; i++) {
        log_show_cell(table->endings.items[i], 0, &line);
        print(table, &line);
    }
}

/* -- the table -- */

static size_t output_width(FILE *out) {
    const char *named = getenv("COLUMNS");
    unsigned long value = named ? strtoul(named, NULL, 10) : 0;
    if (value >= 20 && value < 10000)
        return value;
    struct winsize size;
    if (!isatty(fileno(out)))
        return 0;
    if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col >= 20)
        return size.ws_col;
    return WIDTH_DEFAULT;
}

struct log_table *log_table_open(FILE *out, struct log_layout layout) {
    struct log_table *table = memory_zeroed(sizeof *table);
    const char *no_colour = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");
    table->out = out;
    table->summary = layout.summary;
    table->several = layout.several;
    table->width = output_width(out);
    table->narrow = table->width != 0 && table->width < 100 && !layout.summary;
    table->colour = isatty(fileno(out)) && (no_colour == NULL || no_colour[0] == '\0') && terminal != NULL &&
                    strcmp(terminal, "dumb") != 0;
    return table;
}

static bool same_string(const char *one, const char *two) {
    return one == NULL || two == NULL ? one == two : strcmp(one, two) == 0;
}

static bool same_row(const struct log_table *table, const struct log_record *one,
                     const struct log_record *two) {
    if (one->action_id != two->action_id || one->class_id != two->class_id ||
        !same_string(one->reason, two->reason) || !same_string(one->object, two->object))
        return false;
    if (table->several && !same_string(one->container_id, two->container_id))
        return false;
    return table->summary || (one->activity_id == two->activity_id &&
                              same_string(one->process, two->process) && same_string(one->run, two->run));
}

/* FNV-1a: objects that collide on purpose make this slower within ROWS_MAX, no more. */
static size_t bucket_of(const struct log_record *record) {
    uint64_t hash = 0xcbf29ce484222325;
    const char *strings[] = {record->reason, record->object};
    for (size_t i = 0; i < 2; i++)
        for (const char *at = strings[i] ? strings[i] : ""; *at != '\0'; at++)
            hash = (hash ^ (unsigned char)*at) * 0x100000001b3;
    return hash % BUCKETS;
}

void log_table_flush(struct log_table *table) {
    measure(table);
    if (table->summary)
        print_summary(table);
    for (size_t i = 0; i < table->count; i++) {
        if (!table->summary)
            print_row(table, &table->rows[i]->record);
        log_record_clear(&table->rows[i]->record);
        free(table->rows[i]);
    }
    table->count = 0;
    memset(table->buckets, 0, sizeof table->buckets);
    fflush(table->out);
}

static bool is_event(const struct log_record *record) {
    return record->class_id != 6002 && record->class_id != 5019;
}

static void add_ending(struct log_table *table, const struct log_record *record) {
    text_owned struct text line = {0};
    memory_owned char *name = container_of(record);
    if (table->endings.count == ENDINGS_MAX)
        string_list_remove(&table->endings, 0); /* the last ones are of interest */
    show_time(record->time_ms, "%Y-%m-%d %H:%M:%S", &line);
    text_format(&line, "  %s: %s", name, record->message ? record->message : "ended");
    string_list_append(&table->endings, text_string(&line));
}

void log_table_add(struct log_table *table, struct log_record *record) {
    if (log_record_is_denial(record))
        table->denials += record->count;
    else if (is_event(record))
        table->others += record->count;
    table->suppressed += record->suppressed;
    size_t bucket = bucket_of(record);
    if (is_event(record))
        for (struct row *row = table->buckets[bucket]; row != NULL; row = row->chain)
            if (same_row(table, &row->record, record)) {
                row->record.count += record->count;
                if (row->record.remedy == NULL) {
                    row->record.remedy = record->remedy;
                    record->remedy = NULL;
                }
                log_record_clear(record);
                return;
            }
    if (table->summary && log_record_is_end(record))
        add_ending(table, record);
    if (table->summary && (!is_event(record) || table->count == ROWS_MAX)) {
        table->unlisted += is_event(record) ? record->count : 0;
        log_record_clear(record);
        return;
    }
    if (table->count == ROWS_MAX)
        log_table_flush(table);
    struct row *row = memory_zeroed(sizeof *row);
    row->record = *record;
    row->chain = table->buckets[bucket];
    table->buckets[bucket] = row;
    table->rows[table->count++] = row;
    *record = (struct log_record){0};
}

void log_table_finish(struct log_table *table) {
    log_table_flush(table);
    text_owned struct text line = {0};
    if (table->any || table->summary)
        print(table, &line);
    style(table, &line, BOLD);
    text_format(&line, table->denials == 0 ? "nothing denied" : "%" PRIu64 " denied", table->denials);
    style(table, &line, PLAIN);
    if (table->others > 0)
        text_format(&line, ", %" PRIu64 " allowed or observed", table->others);
    if (table->suppressed > 0)
        text_format(&line, ", %" PRIu64 " more counted but not written one by one", table->suppressed);
    print(table, &line);
    fflush(table->out);
}

void log_table_close(struct log_table *table) {
    for (size_t i = 0; i < table->count; i++) {
        log_record_clear(&table->rows[i]->record);
        free(table->rows[i]);
    }
    string_list_free(&table->remedies);
    string_list_free(&table->endings);
    free(table->run);
    free(table);
}
