/* `pinfold events`: one JSON object a line: what the container uses, and that it ran out of memory. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/memory.h"
#include "cgroup/statistics.h"
#include "cli/cli.h"
#include "cli/options.h"

/* "5s", "500ms", "1m30s", or seconds alone. */
static struct error *interval_parse(const char *text, int *milliseconds) {
    static const struct {
        const char *unit;
        double milliseconds;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
    double total = 0;
    const char *next = text;
    bool valid = *next != '\0';
    while (valid && *next != '\0') {
        char *end;
        double number = strtod(next, &end);
        valid = end != next && number >= 0;
        size_t i = 0;
        size_t length = strspn(end, "mhs");
        while (i < 4 && !(strlen(units[i].unit) == length && strncmp(units[i].unit, end, length) == 0))
            i++;
        if (*end == '\0' && next == text)
            total = number * 1000;
        else if (i < 4)
            total += number * units[i].milliseconds;
        else
            valid = false;
        next = end + length;
    }
    if (!valid || !(total >= 1 && total <= 86400000.0))
        return error_new(ERROR_USAGE, "events --interval: expected a time such as 5s or 500ms, found \"%s\"",
                         text);
    *milliseconds = (int)total;
    return NULL;
}

/* "eth0: 1 2 3 ...": sixteen numbers after the name (proc_pid_net(5)). */
static void interfaces_write(pid_t pid, struct json_writer *json) {
    static const struct {
        const char *key;
        int column;
    } columns[] = {{"RxBytes", 0}, {"RxPackets", 1}, {"RxErrors", 2},  {"RxDropped", 3},
                   {"TxBytes", 8}, {"TxPackets", 9}, {"TxErrors", 10}, {"TxDropped", 11}};
    memory_owned char *path = text_formatted("/proc/%d/net/dev", (int)pid);
    text_owned struct text bytes = {0};
    error_ignore(
        file_read(AT_FDCWD, path, 1 << 20, &bytes)); /* the container has just ended: no interfaces */
    json_key(json, "network_interfaces");
    json_array_begin(json);
    memory_owned char *lines = memory_copy_string(text_string(&bytes));
    char *rest = lines;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        char *colon = strchr(line, ':');
        if (colon == NULL)
            continue;
        *colon = '\0';
        uint64_t numbers[16] = {0};
        char *next = colon + 1;
        for (size_t i = 0; i < 16; i++)
            numbers[i] = strtoull(next, &next, 10);
        json_object_begin(json);
        json_member_string(json, "Name", line + strspn(line, " "));
        for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
            json_key(json, columns[i].key);
            json_unsigned(json, numbers[columns[i].column]);
        }
        json_object_end(json);
    }
    json_array_end(json);
}

static struct error *print(const struct container *container, const char *type) {
    json_owned struct json_writer json = {0};
    json_object_begin(&json);
    json_member_string(&json, "type", type);
    json_member_string(&json, "id", container->id);
    if (strcmp(type, "stats") == 0) {
        json_key(&json, "data");
        json_object_begin(&json);
        cgroup_statistics_write(container->state->cgroup, &json);
        interfaces_write((pid_t)container->state->init.pid, &json);
        json_object_end(&json);
    }
    json_object_end(&json);
    if (puts(text_string(&json.text)) < 0 || fflush(stdout) != 0)
        return error_system(errno, "write", "the events to standard output");
    return NULL;
}

/* Until the container ends, or nobody reads any more. */
static struct error *follow(const struct container *container, int init, struct cgroup_oom_watch *watch,
                            int interval) {
    int64_t due = clock_ms(CLOCK_MONOTONIC);
    for (;;) {
        int64_t now = clock_ms(CLOCK_MONOTONIC);
        if (now >= due) {
            TRY(print(container, "stats"));
            due = now + interval;
        }
        /* Standard output: POLLERR tells of a reader that is gone. */
        struct pollfd watched[] = {
            {.fd = init, .events = POLLIN}, {.fd = watch->fd, .events = POLLIN}, {.fd = STDOUT_FILENO}};
        int ready = poll(watched, 3, (int)(due - now > 0 ? due - now : 0));
        if (ready < 0 && errno != EINTR)
            return error_system(errno, "wait", "for events");
        if (ready > 0 && watched[1].revents != 0)
            for (uint64_t news = cgroup_oom_watch_read(watch); news > 0; news--)
                TRY(print(container, "oom"));
        if (ready > 0 && (watched[0].revents != 0 || watched[2].revents & (POLLERR | POLLNVAL)))
            return NULL;
    }
}

struct error *events_command(const struct global_options *global, int argc, char **argv, int *exit_status) {
    (void)exit_status;
    bool once = false, help;
    int first, interval;
    const char *every = "5s", *id;
    const struct option options[] = {
        {"stats", 0, OPTION_FLAG, &once, "print what is used now, and end"},
        {"interval", 0, OPTION_VALUE, &every, "how often to print it (5s)"},
        {NULL, 0, OPTION_FLAG, NULL, NULL},
    };
    TRY(options_parse_anywhere("events", options, argc, argv, &first, &help));
    if (help) {
        options_print("pinfold events [OPTIONS] ID", options);
        return NULL;
    }
    TRY(cli_container_id("events", argc, argv, first, &id));
    TRY(interval_parse(every, &interval));
    container_owned struct container *container = NULL;
    TRY(container_open(global->runtime.root, id, CONTAINER_UNLOCKED, &container));
    if (container->state == NULL || container->state->cgroup == NULL)
        return error_known(ERROR_NOT_RUNNING, NULL);
    fd_owned int init = -1;
    TRY(container_open_init(container, &init));
    if (once)
        return print(container, "stats");
    struct cgroup_oom_watch watch = {.fd = -1};
    /* Without a memory controller there is no such news; the numbers are worth having alone. */
    error_ignore(cgroup_oom_watch_open(container->state->cgroup, &watch));
    struct error *error = follow(container, init, &watch, interval);
    cgroup_oom_watch_close(&watch);
    return error;
}
