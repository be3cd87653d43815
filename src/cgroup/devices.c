/* The devices controller of v1, and the device program of v2. The kernel keeps one behaviour (all denied or
 * all allowed) and a list of exceptions that it changes only where a rule equals one exactly, so "later rules
 * win" is worked out here and the result is written. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/memory.h"
#include "cgroup/device_program.h"
#include "cgroup/internal.h"
#include "sys/bpf.h"

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

static void exceptions_reset(struct exceptions *list, bool allow_all) {
    list->allow_all = allow_all;
    list->count = 0;
    if (allow_all)
        return;
    list->items = memory_resize(list->items, cgroup_device_standard_count, sizeof *list->items);
    for (; list->count < cgroup_device_standard_count; list->count++) {
        const struct cgroup_device_rule *rule = &cgroup_device_standard[list->count];
        list->items[list->count] = (struct exception){.type = rule->type,
                                                      .major = rule->major,
                                                      .minor = rule->minor,
                                                      .access = rule->access,
                                                      .base = true};
    }
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
            if (!exception->base || common != CGROUP_DEVICE_MKNOD)
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

static struct error *rule_apply(struct exceptions *list, const struct oci_device_cgroup *document,
                                size_t index) {
    struct cgroup_device_rule rule;
    TRY(cgroup_device_rule_parse(document, index, &rule));
    if (cgroup_device_rule_covers_all(&rule)) {
        exceptions_reset(list, rule.allow);
        return NULL;
    }
    for (const char *each = "bc"; *each != '\0'; each++) {
        if (rule.type != 'a' && rule.type != *each)
            continue;
        struct exception exception = {
            .type = *each, .major = rule.major, .minor = rule.minor, .access = rule.access};
        if (rule.allow != list->allow_all)
            exception_add(list, exception);
        else if (!exception_take(list, exception))
            return error_new(
                ERROR_UNAVAILABLE,
                "linux.resources.devices[%zu]: cgroup v1 cannot take one device out of a range that an "
                "earlier rule %s",
                index, rule.allow ? "denied" : "allowed");
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
    text_format(&line, "%s%s%s", exception->access & CGROUP_DEVICE_READ ? "r" : "",
                exception->access & CGROUP_DEVICE_WRITE ? "w" : "",
                exception->access & CGROUP_DEVICE_MKNOD ? "m" : "");
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

/* ---- v2 ---- */

#define PROGRAM_NAME "pinfold_devices" /* by which an update finds what it replaces */
/* The kernel allows as many of one kind in a cgroup. */
#define PROGRAMS_MAX 64

/* The error of a bpf command; what is missing is a thing of the machine, not of the document. */
static struct error *program_error(const char *operation, const char *directory) {
    int number = errno;
    return error_context(error_system(number, operation, "the device program of %s", directory),
                         "linux.resources.devices");
}

struct error *cgroup_v2_devices(const char *directory, const struct oci_device_cgroup *rules, size_t count) {
    cgroup_device_program_owned struct cgroup_device_program program = {0};
    TRY(cgroup_device_program_make(rules, count, &program));
    fd_owned int cgroup = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (cgroup < 0)
        return program_error("open", directory);
    fd_owned int loaded = sys_bpf_device_load(program.instructions, program.count, PROGRAM_NAME);
    struct bpf_prog_info wanted;
    if (loaded < 0 || sys_bpf_program_info(loaded, &wanted) < 0)
        return program_error("load", directory);
    uint32_t ids[PROGRAMS_MAX];
    int attached = sys_bpf_device_query(cgroup, ids, PROGRAMS_MAX);
    if (attached < 0)
        return program_error("look for", directory);
    /* First the new one, then the old ones out: while both are there a device needs both, so that at no time
     * more is open than either says. An update that was killed in between is put right by the next. */
    bool there = false;
    int old[PROGRAMS_MAX];
    size_t old_count = 0;
    for (int i = 0; i < attached && i < PROGRAMS_MAX; i++) {
        fd_owned int other = sys_bpf_program_open(ids[i]);
        struct bpf_prog_info info;
        if (other < 0 || sys_bpf_program_info(other, &info) < 0 || strcmp(info.name, PROGRAM_NAME) != 0)
            continue; /* the service manager's, or somebody else's */
        if (!there && memcmp(info.tag, wanted.tag, sizeof info.tag) == 0)
            there = true;
        else
            old[old_count++] = fd_take(&other);
    }
    struct error *error = NULL;
    if (!there && sys_bpf_device_attach(cgroup, loaded) < 0)
        error = program_error("attach", directory);
    for (size_t i = 0; i < old_count; i++) {
        if (error == NULL && sys_bpf_device_detach(cgroup, old[i]) < 0 && errno != ENOENT)
            error = program_error("replace", directory);
        fd_close(old[i]);
    }
    return error;
}
