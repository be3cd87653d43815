#include "cgroup/statistics.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "cgroup/internal.h"

#define NANOSECONDS 1000000000ULL

/* ---- numbers of files ---- */

static uint64_t number_parse(const char *text) {
    return text != NULL && strncmp(text, "max", 3) == 0 ? UINT64_MAX
                                                        : strtoull(text != NULL ? text : "0", NULL, 10);
}

static uint64_t number_read(const char *directory, const char *file) {
    memory_owned char *content = cgroup_file_read(directory, file);
    return number_parse(content);
}

/* The number after `key` and a blank in a file of such lines; 0 where there is none. */
static uint64_t keyed_number(const char *content, const char *key) {
    size_t length = strlen(key);
    for (const char *line = content; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) == 0 && line[length] == ' ')
            return number_parse(line + length + 1);
        if (*line == '\0')
            break;
    }
    return 0;
}

static void member_unsigned(struct json_writer *json, const char *key, uint64_t value) {
    json_key(json, key);
    json_unsigned(json, value);
}

static bool place_of(const struct cgroup *cgroup, const char *controller, struct cgroup_place *place) {
    struct error *error = cgroup_place_need(cgroup, "", controller, place);
    error_ignore(error); /* no controller, no numbers */
    return error == NULL;
}

/* ---- cpu ---- */

static void cpu_usage_v2(const char *stat, struct json_writer *json) {
    member_unsigned(json, "total", keyed_number(stat, "usage_usec") * 1000);
    member_unsigned(json, "kernel", keyed_number(stat, "system_usec") * 1000);
    member_unsigned(json, "user", keyed_number(stat, "user_usec") * 1000);
}

static void cpu_usage_v1(const char *directory, struct json_writer *json) {
    memory_owned char *stat = cgroup_file_read(directory, "cpuacct.stat");
    memory_owned char *each = cgroup_file_read(directory, "cpuacct.usage_percpu");
    uint64_t tick = NANOSECONDS / (uint64_t)sysconf(_SC_CLK_TCK);
    member_unsigned(json, "total", number_read(directory, "cpuacct.usage"));
    json_key(json, "percpu");
    json_array_begin(json);
    char *rest = each;
    for (char *word; rest != NULL && (word = strsep(&rest, " ")) != NULL;)
        if (word[0] != '\0')
            json_unsigned(json, number_parse(word));
    json_array_end(json);
    member_unsigned(json, "kernel", keyed_number(stat, "system") * tick);
    member_unsigned(json, "user", keyed_number(stat, "user") * tick);
}

static void cpu_write(const struct cgroup *cgroup, struct json_writer *json) {
    struct cgroup_place account = {0};
    struct cgroup_place cpu = {0};
    /* cpu.stat of v2 is there without the controller. */
    for (size_t i = 0; i < cgroup->count; i++)
        if (strcmp(cgroup->directories[i].controllers, "unified") == 0)
            account = cpu = (struct cgroup_place){cgroup->directories[i].path, true};
    for (size_t i = 0; i < cgroup->count; i++) {
        if (cgroup_word_in(cgroup->directories[i].controllers, ",", "cpuacct"))
            account = (struct cgroup_place){cgroup->directories[i].path, false};
        if (cgroup_word_in(cgroup->directories[i].controllers, ",", "cpu"))
            cpu = (struct cgroup_place){cgroup->directories[i].path, false};
    }
    memory_owned char *stat = cpu.directory == NULL ? NULL : cgroup_file_read(cpu.directory, "cpu.stat");
    json_key(json, "cpu");
    json_object_begin(json);
    json_key(json, "usage");
    json_object_begin(json);
    if (account.directory != NULL && account.unified)
        cpu_usage_v2(stat, json);
    else if (account.directory != NULL)
        cpu_usage_v1(account.directory, json);
    json_object_end(json);
    json_key(json, "throttling");
    json_object_begin(json);
    member_unsigned(json, "periods", keyed_number(stat, "nr_periods"));
    member_unsigned(json, "throttledPeriods", keyed_number(stat, "nr_throttled"));
    member_unsigned(json, "throttledTime",
                    cpu.unified ? keyed_number(stat, "throttled_usec") * 1000
                                : keyed_number(stat, "throttled_time"));
    json_object_end(json);
    json_object_end(json);
}

/* ---- memory ---- */

static void memory_entry_write(struct json_writer *json, const char *key, uint64_t limit, uint64_t usage,
                               uint64_t most, uint64_t failures) {
    json_key(json, key);
    json_object_begin(json);
    member_unsigned(json, "limit", limit);
    member_unsigned(json, "usage", usage);
    member_unsigned(json, "max", most);
    member_unsigned(json, "failcnt", failures);
    json_object_end(json);
}

static void memory_entry_v1(struct json_writer *json, const char *key, const char *directory,
                            const char *prefix) {
    static const char *const files[] = {"limit_in_bytes", "usage_in_bytes", "max_usage_in_bytes", "failcnt"};
    uint64_t values[4];
    for (size_t i = 0; i < 4; i++) {
        char file[64];
        snprintf(file, sizeof file, "%s.%s", prefix, files[i]);
        values[i] = number_read(directory, file);
    }
    memory_entry_write(json, key, values[0], values[1], values[2], values[3]);
}

static uint64_t sum_or_unlimited(uint64_t one, uint64_t other) {
    uint64_t sum;
    return __builtin_add_overflow(one, other, &sum) ? UINT64_MAX : sum;
}

static void memory_write(const struct cgroup *cgroup, struct json_writer *json) {
    struct cgroup_place place;
    json_key(json, "memory");
    json_object_begin(json);
    if (place_of(cgroup, "memory", &place)) {
        memory_owned char *stat = cgroup_file_read(place.directory, "memory.stat");
        member_unsigned(json, "cache", keyed_number(stat, place.unified ? "file" : "cache"));
        if (place.unified) {
            memory_owned char *events = cgroup_file_read(place.directory, "memory.events");
            uint64_t usage = number_read(place.directory, "memory.current");
            uint64_t limit = number_read(place.directory, "memory.max");
            memory_entry_write(json, "usage", limit, usage, number_read(place.directory, "memory.peak"),
                               keyed_number(events, "max"));
            /* Callers know swap as v1 does: memory and swap together. */
            memory_entry_write(json, "swap",
                               sum_or_unlimited(limit, number_read(place.directory, "memory.swap.max")),
                               usage + number_read(place.directory, "memory.swap.current"), 0, 0);
        } else {
            memory_entry_v1(json, "usage", place.directory, "memory");
            memory_entry_v1(json, "swap", place.directory, "memory.memsw");
            memory_entry_v1(json, "kernel", place.directory, "memory.kmem");
            memory_entry_v1(json, "kernelTCP", place.directory, "memory.kmem.tcp");
        }
        json_key(json, "raw");
        json_object_begin(json);
        char *rest = stat;
        for (char *line; rest != NULL && (line = strsep(&rest, "\n")) != NULL;) {
            char *value = strchr(line, ' ');
            if (value == NULL)
                continue;
            *value = '\0';
            member_unsigned(json, line, number_parse(value + 1));
        }
        json_object_end(json);
    }
    json_object_end(json);
}

/* ---- pids, block I/O, huge pages ---- */

static void pids_write(const struct cgroup *cgroup, struct json_writer *json) {
    struct cgroup_place place;
    json_key(json, "pids");
    json_object_begin(json);
    if (place_of(cgroup, "pids", &place)) {
        uint64_t limit = number_read(place.directory, "pids.max");
        member_unsigned(json, "current", number_read(place.directory, "pids.current"));
        member_unsigned(json, "limit", limit == UINT64_MAX ? 0 : limit);
    }
    json_object_end(json);
}

static void block_entry_write(struct json_writer *json, const char *device, const char *operation,
                              uint64_t value) {
    unsigned major, minor;
    if (sscanf(device, "%u:%u", &major, &minor) != 2)
        return;
    json_object_begin(json);
    json_member_integer(json, "major", major);
    json_member_integer(json, "minor", minor);
    json_member_string(json, "op", operation);
    member_unsigned(json, "value", value);
    json_object_end(json);
}

/* "8:0 Read 4096" a line. */
static void block_list_v1(struct json_writer *json, const char *key, const char *directory,
                          const char *file) {
    memory_owned char *content = cgroup_file_read(directory, file);
    json_key(json, key);
    json_array_begin(json);
    char *rest = content;
    for (char *line; rest != NULL && (line = strsep(&rest, "\n")) != NULL;) {
        char *device = strsep(&line, " ");
        char *operation = strsep(&line, " ");
        if (operation != NULL && line != NULL) /* not the total of all */
            block_entry_write(json, device, operation, number_parse(line));
    }
    json_array_end(json);
}

/* "8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6" a line. */
static void block_list_v2(struct json_writer *json, const char *key, const char *directory,
                          const char *const names[2][2]) {
    memory_owned char *content = cgroup_file_read(directory, "io.stat");
    json_key(json, key);
    json_array_begin(json);
    char *rest = content;
    for (char *line; rest != NULL && (line = strsep(&rest, "\n")) != NULL;) {
        char *device = strsep(&line, " ");
        for (char *word; line != NULL && (word = strsep(&line, " ")) != NULL;)
            for (size_t i = 0; i < 2; i++) {
                size_t length = strlen(names[i][0]);
                if (strncmp(word, names[i][0], length) == 0 && word[length] == '=')
                    block_entry_write(json, device, names[i][1], number_parse(word + length + 1));
            }
    }
    json_array_end(json);
}

static void block_write(const struct cgroup *cgroup, struct json_writer *json) {
    static const char *const bytes[2][2] = {{"rbytes", "Read"}, {"wbytes", "Write"}};
    static const char *const operations[2][2] = {{"rios", "Read"}, {"wios", "Write"}};
    struct cgroup_place place;
    json_key(json, "blkio");
    json_object_begin(json);
    if (place_of(cgroup, "blkio", &place) && place.unified) {
        block_list_v2(json, "ioServiceBytesRecursive", place.directory, bytes);
        block_list_v2(json, "ioServicedRecursive", place.directory, operations);
    } else if (place_of(cgroup, "blkio", &place)) {
        bool bfq = cgroup_file_exists(place.directory, "blkio.bfq.io_service_bytes_recursive");
        /* The throttling layer counts whatever the scheduler is. */
        bool throttle = cgroup_file_exists(place.directory, "blkio.throttle.io_service_bytes_recursive");
        block_list_v1(json, "ioServiceBytesRecursive", place.directory,
                      throttle || !bfq ? "blkio.throttle.io_service_bytes_recursive"
                                       : "blkio.bfq.io_service_bytes_recursive");
        block_list_v1(json, "ioServicedRecursive", place.directory,
                      throttle || !bfq ? "blkio.throttle.io_serviced_recursive"
                                       : "blkio.bfq.io_serviced_recursive");
    }
    json_object_end(json);
}

/* hugetlb.2MB.current of v2, hugetlb.2MB.usage_in_bytes of v1: the sizes are told by the files that there
 * are. */
static void hugepages_write(const struct cgroup *cgroup, struct json_writer *json) {
    struct cgroup_place place;
    json_key(json, "hugetlb");
    json_object_begin(json);
    DIR *files = place_of(cgroup, "hugetlb", &place) ? opendir(place.directory) : NULL;
    const char *ending = files != NULL && place.unified ? ".current" : ".usage_in_bytes";
    for (struct dirent *entry; files != NULL && (entry = readdir(files)) != NULL;) {
        if (!text_starts_with(entry->d_name, "hugetlb.") || !text_ends_with(entry->d_name, ending) ||
            strstr(entry->d_name, ".rsvd.") != NULL)
            continue;
        memory_owned char *size = memory_copy_string(entry->d_name + strlen("hugetlb."));
        size[strlen(size) - strlen(ending)] = '\0';
        memory_owned char *most = text_formatted("hugetlb.%s.max_usage_in_bytes", size);
        memory_owned char *failures =
            text_formatted("hugetlb.%s.%s", size, place.unified ? "events" : "failcnt");
        memory_owned char *failed = cgroup_file_read(place.directory, failures);
        json_key(json, size);
        json_object_begin(json);
        member_unsigned(json, "usage", number_read(place.directory, entry->d_name));
        member_unsigned(json, "max", place.unified ? 0 : number_read(place.directory, most));
        member_unsigned(json, "failcnt", place.unified ? keyed_number(failed, "max") : number_parse(failed));
        json_object_end(json);
    }
    if (files != NULL)
        closedir(files);
    json_object_end(json);
}

void cgroup_statistics_write(const struct cgroup *cgroup, struct json_writer *json) {
    cpu_write(cgroup, json);
    memory_write(cgroup, json);
    pids_write(cgroup, json);
    block_write(cgroup, json);
    hugepages_write(cgroup, json);
}

/* ---- out of memory ---- */

static uint64_t kills_read(const struct cgroup_oom_watch *watch) {
    memory_owned char *content =
        cgroup_file_read(watch->directory, watch->unified ? "memory.events" : "memory.oom_control");
    return keyed_number(content, "oom_kill");
}

static struct error *watch_v1(struct cgroup_oom_watch *watch) {
    memory_owned char *path = text_formatted("%s/memory.oom_control", watch->directory);
    fd_owned int control = open(path, O_RDONLY | O_CLOEXEC);
    if (control < 0)
        return error_system(errno, "open", "%s", path);
    watch->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (watch->fd < 0)
        return error_system(errno, "make", "an event descriptor");
    memory_owned char *line = text_formatted("%d %d", watch->fd, control);
    return cgroup_file_write(watch->directory, "cgroup.event_control", line);
}

static struct error *watch_v2(struct cgroup_oom_watch *watch) {
    memory_owned char *path = text_formatted("%s/memory.events", watch->directory);
    watch->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (watch->fd < 0 || inotify_add_watch(watch->fd, path, IN_MODIFY) < 0)
        return error_system(errno, "watch", "%s", path);
    return NULL;
}

struct error *cgroup_oom_watch_open(const struct cgroup *cgroup, struct cgroup_oom_watch *out) {
    *out = (struct cgroup_oom_watch){.fd = -1};
    struct cgroup_place place;
    TRY(cgroup_place_need(cgroup, "the news of memory running out", "memory", &place));
    out->unified = place.unified;
    out->directory = memory_copy_string(place.directory);
    out->seen = kills_read(out);
    struct error *error = place.unified ? watch_v2(out) : watch_v1(out);
    if (error != NULL)
        cgroup_oom_watch_close(out);
    return error;
}

uint64_t cgroup_oom_watch_read(struct cgroup_oom_watch *watch) {
    char bytes[4096];
    ssize_t length = read(watch->fd, bytes, sizeof bytes);
    if (length <= 0)
        return 0;
    uint64_t now = kills_read(watch);
    if (now > watch->seen) {
        uint64_t news = now - watch->seen;
        watch->seen = now;
        return news;
    }
    /* v1 tells of the lack of memory before it kills, and of the end of the cgroup, whose file is gone then.
     */
    return !watch->unified && cgroup_file_exists(watch->directory, "memory.oom_control") ? 1 : 0;
}

void cgroup_oom_watch_close(struct cgroup_oom_watch *watch) {
    fd_close(fd_take(&watch->fd));
    free(watch->directory);
    watch->directory = NULL;
}
