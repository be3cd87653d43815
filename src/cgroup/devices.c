/* The devices controller of v1. The kernel keeps one behaviour (all denied or all allowed) and a list of
 * exceptions that it changes only where a rule equals one exactly, so "later rules win" is worked out here
 * and the result is written. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cgroup/internal.h"

enum { ACCESS_READ = 1, ACCESS_WRITE = 2, ACCESS_MKNOD = 4, ACCESS_ALL = 7 };

struct exception {
    char type;     /* b or c */
    int64_t major; /* -1: any */
    int64_t minor;
    unsigned access;
    bool base; /* ours, not the document's */
};
struct exceptions {
    bool allow_all; /* the exceptions are what is denied */
    struct exception *items;
    size_t count;
};

/* What every container has (config-linux.md, "Default Devices"; the terminal is a pts). A node may be made
 * for anything, which gives nothing while it cannot be opened. /dev/console is 5:1 only outside: inside it is
 * a pts. */
static const struct exception base_exceptions[] = {
    {'c', -1, -1, ACCESS_MKNOD, true}, {'b', -1, -1, ACCESS_MKNOD, true},
    {'c', 1, 3, ACCESS_ALL, true},    /* null */
    {'c', 1, 5, ACCESS_ALL, true},    /* zero */
    {'c', 1, 7, ACCESS_ALL, true},    /* full */
    {'c', 1, 8, ACCESS_ALL, true},    /* random */
    {'c', 1, 9, ACCESS_ALL, true},    /* urandom */
    {'c', 5, 0, ACCESS_ALL, true},    /* tty */
    {'c', 5, 2, ACCESS_ALL, true},    /* ptmx */
    {'c', 136, -1, ACCESS_ALL, true}, /* pts */
};

static void exceptions_reset(struct exceptions *list, bool allow_all) {
    list->allow_all = allow_all;
    list->count = 0;
    if (allow_all)
        return;
    size_t count = sizeof base_exceptions / sizeof base_exceptions[0];
    list->items = memory_resize(list->items, count, sizeof *list->items);
    memcpy(list->items, base_exceptions, sizeof base_exceptions);
    list->count = count;
}

static void exceptions_free(struct exceptions *list) {
    free(list->items);
}

static void exception_add(struct exceptions *list, struct exception rule) {
    for (size_t i = 0; i < list->count; i++) {
        struct exception *exception = &list->items[i];
        if (exception->type != rule.type || exception->major != rule.major || exception->minor != rule.minor)
            continue;
        exception->base = exception->base && (rule.access & ~exception->access) == 0;
        exception->access |= rule.access;
        return;
    }
    list->items = memory_resize(list->items, list->count + 1, sizeof *list->items);
    list->items[list->count++] = rule;
}

static bool number_covers(int64_t wide, int64_t narrow) {
    return wide == -1 || wide == narrow;
}

static bool number_meets(int64_t one, int64_t other) {
    return one == -1 || other == -1 || one == other;
}

/* Takes what `rule` covers out of the exceptions. False: it covers part of one, which the kernel's list
 * cannot say. */
static bool exception_take(struct exceptions *list, struct exception rule) {
    for (size_t i = 0; i < list->count;) {
        struct exception *exception = &list->items[i];
        unsigned common = exception->access & rule.access;
        if (exception->type != rule.type || common == 0 || !number_meets(exception->major, rule.major) ||
            !number_meets(exception->minor, rule.minor)) {
            i++;
            continue;
        }
        if (!number_covers(rule.major, exception->major) || !number_covers(rule.minor, exception->minor)) {
            /* Engines deny c 10:229 rwm after everything; that its node may still be made is harmless. */
            if (!exception->base || common != ACCESS_MKNOD)
                return false;
            i++;
            continue;
        }
        exception->access &= ~common;
        if (exception->access != 0) {
            i++;
            continue;
        }
        memmove(exception, exception + 1, (list->count - i - 1) * sizeof *exception);
        list->count--;
    }
    return true;
}

static bool access_parse(const char *text, unsigned *access) {
    *access = 0;
    if (text == NULL || text[0] == '\0')
        *access = ACCESS_ALL;
    for (; text != NULL && *text != '\0'; text++) {
        switch (*text) {
        case 'r':
            *access |= ACCESS_READ;
            break;
        case 'w':
            *access |= ACCESS_WRITE;
            break;
        case 'm':
            *access |= ACCESS_MKNOD;
            break;
        default:
            return false;
        }
    }
    return true;
}

static struct error *rule_apply(struct exceptions *list, const struct oci_device_cgroup *rule, size_t index) {
    const char *type = rule->type == NULL || rule->type[0] == '\0' ? "a" : rule->type;
    if (strlen(type) != 1 || strchr("abc", type[0]) == NULL)
        return error_new(ERROR_INVALID,
                         "linux.resources.devices[%zu].type: \"%s\" is not allowed; a, b or c is", index,
                         type);
    unsigned access;
    if (!access_parse(rule->access, &access))
        return error_new(ERROR_INVALID,
                         "linux.resources.devices[%zu].access: \"%s\" is not allowed; letters of rwm are",
                         index, rule->access);
    int64_t major = rule->major.set ? rule->major.value : -1;
    int64_t minor = rule->minor.set ? rule->minor.value : -1;
    if (major < -1 || minor < -1 || major > UINT32_MAX || minor > UINT32_MAX)
        return error_new(ERROR_INVALID,
                         "linux.resources.devices[%zu]: %" PRId64 ":%" PRId64
                         " is not allowed; device numbers, or -1 for any, are",
                         index, major, minor);
    if (type[0] == 'a' && major == -1 && minor == -1 && access == ACCESS_ALL) {
        exceptions_reset(list, rule->allow);
        return NULL;
    }
    for (const char *each = type[0] == 'a' ? "bc" : type; *each != '\0'; each++) {
        struct exception exception = {.type = *each, .major = major, .minor = minor, .access = access};
        if (rule->allow != list->allow_all)
            exception_add(list, exception);
        else if (!exception_take(list, exception))
            return error_new(
                ERROR_UNAVAILABLE,
                "linux.resources.devices[%zu]: cgroup v1 cannot take one device out of a range that an "
                "earlier rule %s",
                index, rule->allow ? "denied" : "allowed");
    }
    return NULL;
}

static char *exception_line(const struct exception *exception) {
    struct text line = {0};
    text_format(&line, "%c ", exception->type);
    if (exception->major == -1)
        text_append(&line, "*:");
    else
        text_format(&line, "%" PRId64 ":", exception->major);
    if (exception->minor == -1)
        text_append(&line, "* ");
    else
        text_format(&line, "%" PRId64 " ", exception->minor);
    text_format(&line, "%s%s%s", exception->access & ACCESS_READ ? "r" : "",
                exception->access & ACCESS_WRITE ? "w" : "", exception->access & ACCESS_MKNOD ? "m" : "");
    return text_take(&line);
}

struct error *cgroup_devices_lines(const struct oci_device_cgroup *rules, size_t count, bool *allow_all,
                                   struct string_list *lines, size_t *base_lines) {
    __attribute__((cleanup(exceptions_free))) struct exceptions list = {0};
    exceptions_reset(&list, false);
    for (size_t i = 0; i < count; i++)
        TRY(rule_apply(&list, &rules[i], i));
    *allow_all = list.allow_all;
    *base_lines = 0;
    /* Ours first, so that their number is enough to tell them from the document's. */
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < list.count; i++) {
            if (list.items[i].base != (pass == 0))
                continue;
            string_list_append_owned(lines, exception_line(&list.items[i]));
            *base_lines += pass == 0;
        }
    }
    return NULL;
}

/* devices.list shows the exceptions only while everything else is denied. */
static bool list_is(const char *current, const struct string_list *lines) {
    size_t count = 0;
    for (const char *next = current; *next != '\0'; count++) {
        size_t length = strcspn(next, "\n");
        next += length;
        if (*next == '\n')
            next++;
    }
    if (count != lines->count)
        return false;
    for (size_t i = 0; i < lines->count; i++)
        if (!cgroup_word_in(current, "\n", lines->items[i]))
            return false;
    return true;
}

struct error *cgroup_v1_devices(const char *directory, const struct oci_device_cgroup *rules, size_t count) {
    bool allow_all = false;
    size_t base_lines = 0;
    string_list_owned struct string_list lines = {0};
    TRY(cgroup_devices_lines(rules, count, &allow_all, &lines, &base_lines));
    memory_owned char *current = cgroup_file_read(directory, "devices.list");
    if (current == NULL)
        return error_system(errno, "read", "%s/devices.list (linux.resources.devices)", directory);
    if (!allow_all && list_is(current, &lines))
        return NULL; /* an update with the same rules: nothing is closed even for a moment */
    TRY(error_context(cgroup_file_write(directory, allow_all ? "devices.allow" : "devices.deny", "a"),
                      "linux.resources.devices"));
    for (size_t i = 0; i < lines.count; i++) {
        struct error *error =
            cgroup_file_write(directory, allow_all ? "devices.deny" : "devices.allow", lines.items[i]);
        if (error != NULL && error->number == EPERM && i < base_lines) {
            error_ignore(
                error); /* a parent denies it: then less than the standard devices is what there is */
            continue;
        }
        TRY(error_context(error, "linux.resources.devices"));
    }
    return NULL;
}
