#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "cli/log_parts.h"
#include "cli/options.h"
#include "container/process.h"
#include "facts/passwd.h"

struct pid_list {
    pid_t *items;
    size_t count;
};

static bool pids_contain(const struct pid_list *pids, long pid) {
    for (size_t i = 0; i < pids->count; i++)
        if (pids->items[i] == pid)
            return true;
    return false;
}

static void print_json(const struct pid_list *pids) {
    json_owned struct json_writer json = {0};
    json_array_begin(&json);
    for (size_t i = 0; i < pids->count; i++)
        json_integer(&json, pids->items[i]);
    json_array_end(&json);
    puts(text_string(&json.text));
}

/* ---- our own table, without options ---- */

static bool process_file(pid_t pid, const char *file, struct text *out) {
    memory_owned char *path = text_formatted("/proc/%d/%s", (int)pid, file);
    struct error *error = file_read(AT_FDCWD, path, 1 << 20, out);
    error_ignore(error); /* it ended while we looked */
    return error == NULL;
}

/* The arguments with blanks between them, or the name in brackets (a zombie has no more). What a container
 * chose never reaches a terminal as it is. */
static void command_append(pid_t pid, const char *name, struct text *row) {
    text_owned struct text bytes = {0};
    text_owned struct text command = {0};
    if (process_file(pid, "cmdline", &bytes) && bytes.length > 0) {
        for (size_t i = 0; i + 1 < bytes.length; i++)
            if (bytes.data[i] == '\0')
                bytes.data[i] = ' ';
        text_append_bytes(&command, bytes.data, bytes.length - (bytes.data[bytes.length - 1] == '\0'));
    } else {
        text_format(&command, "[%s]", name);
    }
    log_show(text_string(&command), row);
}

static void start_append(unsigned long long ticks, struct text *row) {
    struct timespec up, now;
    clock_gettime(CLOCK_BOOTTIME, &up);
    clock_gettime(CLOCK_REALTIME, &now);
    time_t start = now.tv_sec - up.tv_sec + (time_t)(ticks / (unsigned long long)sysconf(_SC_CLK_TCK));
    struct tm parts;
    char text[16];
    strftime(text, sizeof text, now.tv_sec - start < 86400 ? "%H:%M" : "%b%d", localtime_r(&start, &parts));
    text_format(row, "%-5s ", text);
}

/* The machine's name for a user where its passwd has one: no name service, which could hang. */
static char *user_name(const struct text *passwd, uid_t uid) {
    char *name = passwd_name(text_string(passwd), passwd->length, uid);
    return name != NULL ? name : text_formatted("%u", uid);
}

static void row_print(pid_t pid, const struct text *passwd) {
    text_owned struct text stat_bytes = {0};
    if (!process_file(pid, "stat", &stat_bytes))
        return;
    /* "PID (NAME) STATE PPID PGRP SESSION TTY ... UTIME STIME ... START": the name may hold anything. */
    char *open = strchr(stat_bytes.data, '(');
    char *close = strrchr(stat_bytes.data, ')');
    if (open == NULL || close == NULL)
        return;
    *close = '\0';
    char state;
    int parent, group, session, terminal;
    unsigned long user, system;
    unsigned long long start;
    if (sscanf(close + 1, " %c %d %d %d %d %*s %*s %*s %*s %*s %*s %lu %lu %*s %*s %*s %*s %*s %*s %llu",
               &state, &parent, &group, &session, &terminal, &user, &system, &start) != 8)
        return;
    struct stat status;
    memory_owned char *directory = text_formatted("/proc/%d", (int)pid);
    text_owned struct text row = {0};
    unsigned long seconds = (user + system) / (unsigned long)sysconf(_SC_CLK_TCK);
    memory_owned char *owner = user_name(passwd, stat(directory, &status) == 0 ? status.st_uid : 0);
    text_format(&row, "%-8s %7d %7d  0 ", owner, (int)pid, parent);
    start_append(start, &row);
    if (terminal == 0)
        text_append(&row, "?        ");
    else if (major((dev_t)terminal) >= 136 && major((dev_t)terminal) <= 143)
        text_format(&row, "pts/%-4u ", minor((dev_t)terminal));
    else
        text_format(&row, "%u:%-6u ", major((dev_t)terminal), minor((dev_t)terminal));
    text_format(&row, "%02lu:%02lu:%02lu ", seconds / 3600, seconds / 60 % 60, seconds % 60);
    command_append(pid, open + 1, &row);
    puts(text_string(&row));
}

static void print_table(const struct pid_list *pids) {
    text_owned struct text passwd = {0};
    error_ignore(file_read(AT_FDCWD, "/etc/passwd", PASSWD_BYTES_MAX, &passwd)); /* without it: numbers */
    puts("UID          PID    PPID  C STIME TTY          TIME CMD");
    for (size_t i = 0; i < pids->count; i++)
        row_print(pids->items[i], &passwd);
}

/* ---- the machine's ps, with the options that were given ---- */

static struct error *ps_run(char **options, int count, struct text *out) {
    static const char *const places[] = {"/usr/bin/ps", "/bin/ps"};
    const char *program = access(places[0], X_OK) == 0 ? places[0] : places[1];
    if (access(program, X_OK) < 0)
        return error_new(ERROR_UNAVAILABLE, "ps: options are for the ps of this machine, and %s is not there",
                         places[0]);
    memory_owned char **arguments = memory_zeroed(((size_t)count + 2) * sizeof *arguments);
    arguments[0] = (char *)"ps";
    for (int i = 0; i < count; i++)
        arguments[i + 1] = options[i];
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_system(errno, "make", "a pipe");
    pid_t child = fork();
    if (child == 0) {
        char *const environment[] = {(char *)"PATH=/usr/bin:/bin", (char *)"COLUMNS=4096", NULL};
        if (dup2(ends[1], STDOUT_FILENO) >= 0)
            execve(program, arguments, environment);
        _exit(127);
    }
    fd_owned int from = ends[0];
    fd_close(ends[1]);
    if (child < 0)
        return error_system(errno, "fork", "ps");
    char bytes[4096];
    ssize_t length;
    while ((length = read(from, bytes, sizeof bytes)) > 0 || (length < 0 && errno == EINTR))
        if (length > 0)
            text_append_bytes(out, bytes, (size_t)length);
    int result = process_wait(child);
    if (result != 0)
        return error_new(ERROR_INVALID, "ps: %s ended with status %d", program, result);
    return NULL;
}

/* Which column of the first line is PID. */
static int pid_column(const char *line) {
    memory_owned char *copy = memory_copy_string(line);
    char *rest = copy;
    int column = 0;
    for (char *word; (word = strsep(&rest, " \t")) != NULL;) {
        if (word[0] == '\0')
            continue;
        if (strcmp(word, "PID") == 0)
            return column;
        column++;
    }
    return -1;
}

static long column_number(const char *line, int column) {
    for (int i = 0;; i++) {
        line += strspn(line, " \t");
        if (*line == '\0')
            return -1;
        if (i == column)
            return strtol(line, NULL, 10);
        line += strcspn(line, " \t");
    }
}

static struct error *print_filtered(const struct pid_list *pids, char **options, int count) {
    text_owned struct text out = {0};
    TRY(ps_run(options, count, &out));
    memory_owned char *lines = memory_copy_string(text_string(&out));
    char *rest = lines;
    char *line = strsep(&rest, "\n");
    int column = pid_column(line);
    if (column < 0)
        return error_new(ERROR_INVALID,
                         "ps: the options give no column PID, by which the container's are found");
    puts(line);
    while ((line = strsep(&rest, "\n")) != NULL)
        if (pids_contain(pids, column_number(line, column)))
            puts(line);
    return NULL;
}

struct error *ps_command(const struct global_options *global, int argc, char **argv, int *exit_status) {
    (void)exit_status;
    bool help;
    int first;
    const char *format = "table";
    const struct option options[] = {{"format", 'f', OPTION_VALUE, &format, "table or json"},
                                     {NULL, 0, OPTION_FLAG, NULL, NULL}};
    TRY(options_parse("ps", options, argc, argv, &first, &help));
    if (help) {
        options_print("pinfold ps [--format FORMAT] ID [OPTIONS OF PS...]", options);
        return NULL;
    }
    if (argc - first < 1)
        return error_new(ERROR_USAGE, "\"ps\" requires the container's ID, and takes options of ps after it");
    bool as_json = strcmp(format, "json") == 0;
    if (!as_json && strcmp(format, "table") != 0)
        return error_new(ERROR_USAGE, "ps --format: expected table or json, found \"%s\"", format);
    container_owned struct container *container = NULL;
    TRY(container_open(global->runtime.root, argv[first], CONTAINER_UNLOCKED, &container));
    if (container->state == NULL || container->state->cgroup == NULL)
        return error_known(ERROR_NOT_RUNNING, NULL);
    memory_owned pid_t *found = NULL;
    struct pid_list pids = {0};
    TRY(cgroup_processes(container->state->cgroup, &found, &pids.count));
    pid_t alone = (pid_t)container->state->init.pid;
    pids.items = found;
    if (pids.count == 0 && strcmp(container_status(container), "stopped") != 0) { /* no cgroup to ask */
        pids.items = &alone;
        pids.count = 1;
    }
    if (as_json)
        print_json(&pids);
    else if (argc - first > 1)
        return print_filtered(&pids, argv + first + 1, argc - first - 1);
    else
        print_table(&pids);
    return NULL;
}
