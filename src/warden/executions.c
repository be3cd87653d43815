#include "warden/executions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "sys/calls.h"
#include "warden/program.h"

/* Together with its listeners and clients the warden stays below the usual limit of 1,024 descriptors: where
 * it reached that, it could not look at anything any more. */
#define WATCHED_MAX 320
#define DESCRIPTOR_MAX 940
#define BYTES_MAX (1024 * 1024)
#define BUCKETS 256
#define ENDS_PER_TURN 64
/* When an attempt is looked at: most programs begin within the first, or have ended before. */
#define SETTLE_MS 20
#define SETTLE_MS_MAX 1000

/* A call of execve of which nobody knows yet what came of it. */
struct attempt {
    struct program program;
    struct image before;
    struct record_process parent;
    int64_t uid;
    int64_t time_ms; /* wall clock */
    int64_t due;     /* monotonic ms */
    int64_t delay;
};

/* A process that runs a program, or tries to. */
struct execution {
    pid_t pid;
    int pidfd;
    uint64_t begun; /* of the process, as in struct image */
    char *exec_id;
    struct attempt *attempt;       /* NULL: none is open */
    struct record_process process; /* as which it ran last; without a name: never */
    int64_t begun_ms;              /* since when it runs that */
    size_t bytes;
    struct execution *chain;
};

struct execution_observer {
    int events; /* an epoll descriptor of the pidfds */
    struct execution *buckets[BUCKETS];
    size_t count, bytes;
    int64_t due; /* of the attempt that is due first; INT64_MAX for none */
    bool said;   /* that this kernel does not tell exit codes */
};

/* --- the table --- */

static struct execution **place_of(struct execution_observer *observer, pid_t pid) {
    struct execution **place = &observer->buckets[(unsigned)pid % BUCKETS];
    while (*place != NULL && (*place)->pid != pid)
        place = &(*place)->chain;
    return place;
}

static size_t length_of(const char *string) {
    return string != NULL ? strlen(string) + 1 : 0;
}

static size_t process_bytes(const struct record_process *process) {
    return length_of(process->name) + length_of(process->executable) + length_of(process->command_line);
}

/* Keeps the account of what an entry holds. */
static void weigh(struct execution_observer *observer, struct execution *entry) {
    const struct attempt *attempt = entry->attempt;
    size_t bytes = sizeof *entry + length_of(entry->exec_id) + process_bytes(&entry->process);
    if (attempt != NULL)
        bytes += sizeof *attempt + length_of(attempt->program.path) + length_of(attempt->program.arguments) +
                 length_of(attempt->program.directory) + process_bytes(&attempt->parent);
    observer->bytes += bytes - entry->bytes;
    entry->bytes = bytes;
}

static void attempt_free(struct attempt *attempt) {
    if (attempt == NULL)
        return;
    program_clear(&attempt->program);
    record_process_clear(&attempt->parent);
    free(attempt);
}

static void entry_remove(struct execution_observer *observer, struct execution *entry) {
    *place_of(observer, entry->pid) = entry->chain;
    observer->count--;
    observer->bytes -= entry->bytes;
    fd_close(entry->pidfd); /* which takes it out of the epoll set: nobody else has it */
    attempt_free(entry->attempt);
    record_process_clear(&entry->process);
    free(entry->exec_id);
    free(entry);
}

/* NULL where one more cannot be watched. */
static struct execution *entry_add(struct execution_observer *observer, pid_t pid, uint64_t begun,
                                   const char *exec_id) {
    if (observer->count >= WATCHED_MAX || observer->bytes >= BYTES_MAX)
        return NULL;
    fd_owned int pidfd = sys_pidfd_open(pid, 0);
    if (pidfd < 0 || pidfd > DESCRIPTOR_MAX)
        return NULL;
    struct execution *entry = memory_zeroed(sizeof *entry);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = entry};
    if (epoll_ctl(observer->events, EPOLL_CTL_ADD, pidfd, &event) < 0) {
        free(entry);
        return NULL;
    }
    *entry = (struct execution){.pid = pid,
                                .pidfd = fd_take(&pidfd),
                                .begun = begun,
                                .exec_id = exec_id != NULL ? memory_copy_string(exec_id) : NULL,
                                .process = {.pid = pid, .uid = -1}};
    *place_of(observer, pid) = entry;
    observer->count++;
    return entry;
}

/* --- records --- */

static void launch_record(struct warden_context *context, const struct attempt *attempt,
                          const struct record_process *process, const char *exec_id, uint64_t suppressed) {
    memory_owned char *message =
        text_formatted("The program %s was started.", process->executable ? process->executable : "?");
    const struct record_event event = {
        .class_id = RECORD_PROCESS,
        .activity_id = 1,
        .action = RECORD_OBSERVED,
        .reason = "process.launched",
        .message = message,
        .process = process,
        .parent = &attempt->parent,
        .directory = attempt->program.directory,
        .begun_ms = attempt->time_ms,
        .time_ms = attempt->time_ms,
        .exec_id = exec_id,
        .suppressed = suppressed,
    };
    error_ignore(record_write(context->log, &event)); /* counted by the log */
}

static struct record_process process_of(const struct attempt *attempt, pid_t pid, const struct image *now) {
    const struct program *program = &attempt->program;
    return (struct record_process){
        .pid = pid,
        .name = memory_copy_string(now != NULL && now->state != 'Z' ? now->name : program->name),
        .executable = program->path != NULL ? memory_copy_string(program->path) : NULL,
        .command_line = program->arguments != NULL ? memory_copy_string(program->arguments) : NULL,
        .uid = attempt->uid,
    };
}

/* The process runs what it has tried to; `now` is what was seen of it since, NULL for nothing. */
static void execution_begun(struct warden_context *context, struct execution *entry,
                            const struct image *now) {
    record_process_clear(&entry->process);
    entry->process = process_of(entry->attempt, entry->pid, now);
    if (now != NULL && now->state != 'Z') {
        /* The kernel's word, where a symlink may have been turned. */
        char *executable = image_path(entry->pid);
        if (executable[0] != '\0') {
            free(entry->process.executable);
            entry->process.executable = executable;
        } else {
            free(executable);
        }
    }
    entry->begun_ms = entry->attempt->time_ms;
    launch_record(context, entry->attempt, &entry->process, entry->exec_id, 0);
}

static void say_exit_codes_missing(struct warden_context *context) {
    struct execution_observer *observer = context->executions;
    if (observer->said)
        return;
    observer->said = true;
    const struct record_event event = {
        .class_id = RECORD_FINDING,
        .activity_id = 1,
        .action = RECORD_OBSERVED,
        .reason = "mechanism.degraded",
        .message = "This kernel does not tell how a process ended (Linux 6.15 does): ends of programs are "
                   "recorded without an exit code.",
        .rule = "observe.processes: true",
        .rule_origin = context->policy_origin,
        .subject = "exit codes",
    };
    error_ignore(record_write(context->log, &event)); /* counted by the log */
}

/* The process has ended; `status` is a wait status, NULL where that cannot be told. */
static void execution_ended(struct warden_context *context, struct execution *entry, const int *status) {
    if (entry->process.name == NULL)
        return; /* it has never become a program of its own */
    const char *executable = entry->process.executable != NULL ? entry->process.executable : "?";
    const bool killed = status != NULL && WIFSIGNALED(*status);
    const int code = status == NULL ? 0 : killed ? WTERMSIG(*status) : WEXITSTATUS(*status);
    memory_owned char *message =
        status == NULL ? text_formatted("The program %s ended.", executable)
        : killed       ? text_formatted("The program %s was ended by signal %d.", executable, code)
                       : text_formatted("The program %s ended with exit code %d.", executable, code);
    const int64_t now = clock_ms(CLOCK_REALTIME);
    const struct record_event event = {
        .class_id = RECORD_PROCESS,
        .activity_id = 2,
        .action = RECORD_OBSERVED,
        .reason = "process.ended",
        .message = message,
        .process = &entry->process,
        .begun_ms = entry->begun_ms,
        .ended_ms = now,
        .time_ms = now,
        .exec_id = entry->exec_id,
        .has_exit_code = status != NULL,
        .exit_code = killed ? 128 + code : code,
        .signal = killed ? code : 0,
    };
    error_ignore(record_write(context->log, &event)); /* counted by the log */
    if (status == NULL)
        say_exit_codes_missing(context);
}

/* --- what has become of an attempt --- */

/* Of a process that is there. False where it cannot be told yet. */
static bool has_settled(const struct attempt *attempt, const struct image *now, bool *ran) {
    *ran = image_differs(&attempt->before, now);
    return *ran || !attempt->program.runs || attempt->delay >= SETTLE_MS_MAX;
}

/* Of one that has ended; `now` is NULL where nothing of it is left to be seen. */
static bool has_run(const struct attempt *attempt, const struct image *now) {
    const bool told = now != NULL && strcmp(attempt->program.name, attempt->before.name) != 0;
    if (told && strcmp(now->name, attempt->program.name) == 0)
        return true;
    if (told && strcmp(now->name, attempt->before.name) == 0)
        return false;
    return attempt->program.runs;
}

static void attempt_close(struct warden_context *context, struct execution *entry, bool ran,
                          const struct image *now) {
    if (ran)
        execution_begun(context, entry, now);
    attempt_free(entry->attempt);
    entry->attempt = NULL;
    weigh(context->executions, entry);
}

/* The end of a process: how, as far as that can be told. Until it is reaped /proc has it, then the pidfd. */
static void entry_end(struct warden_context *context, struct execution *entry) {
    struct image now;
    int status = 0;
    bool told = sys_pidfd_exit_status(entry->pidfd, &status) == 0, seen = false;
    if (!told) {
        seen = image_read(entry->pid, &now) && now.begun == entry->begun && now.state == 'Z';
        if (seen)
            status = now.wait_status;
        told = seen || sys_pidfd_exit_status(entry->pidfd, &status) == 0; /* reaped in between */
    }
    if (entry->attempt != NULL)
        attempt_close(context, entry, has_run(entry->attempt, seen ? &now : NULL), seen ? &now : NULL);
    execution_ended(context, entry, told ? &status : NULL);
    entry_remove(context->executions, entry);
}

static void settle_due(struct warden_context *context) {
    struct execution_observer *observer = context->executions;
    const int64_t now = clock_ms(CLOCK_MONOTONIC);
    if (now < observer->due)
        return;
    observer->due = INT64_MAX;
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct execution *entry = observer->buckets[i]; entry != NULL; entry = entry->chain) {
            struct attempt *attempt = entry->attempt;
            struct image image;
            bool ran;
            if (attempt == NULL)
                continue;
            if (attempt->due <= now) {
                /* What is gone, or going, is told by its pidfd. */
                if (image_read(entry->pid, &image) && image.begun == entry->begun && image.state != 'Z' &&
                    has_settled(attempt, &image, &ran)) {
                    attempt_close(context, entry, ran, &image);
                    continue;
                }
                attempt->delay *= 2;
                attempt->due = now + attempt->delay;
            }
            if (attempt->due < observer->due)
                observer->due = attempt->due;
        }
}

/* --- attempts --- */

/* Whoever called fork: its parent has run a program that we know, as a rule. */
static void parent_read(struct execution_observer *observer, pid_t pid, struct record_process *out) {
    *out = (struct record_process){.pid = pid, .uid = -1};
    const struct execution *entry = *place_of(observer, pid);
    if (entry != NULL && entry->process.name != NULL) {
        out->name = memory_copy_string(entry->process.name);
        if (entry->process.executable != NULL)
            out->executable = memory_copy_string(entry->process.executable);
        return;
    }
    struct image image;
    if (pid <= 0 || !image_read(pid, &image))
        return;
    out->name = memory_copy_string(image.name);
    out->executable = image_path(pid);
}

static struct execution_observer *observer_of(struct warden_context *context) {
    if (context->executions != NULL)
        return context->executions;
    struct execution_observer *observer = memory_zeroed(sizeof *observer);
    observer->due = INT64_MAX;
    observer->events = epoll_create1(EPOLL_CLOEXEC);
    context->executions = observer;
    return observer;
}

/* The process's entry, if it has one; an earlier process of the same number has ended. What the process asked
 * for before is decided by what it is now. */
static struct execution *entry_find(struct warden_context *context, pid_t pid, const struct image *now) {
    struct execution *entry = *place_of(context->executions, pid);
    if (entry != NULL && entry->begun != now->begun) {
        entry_end(context, entry);
        return NULL;
    }
    if (entry != NULL && entry->attempt != NULL)
        attempt_close(context, entry, image_differs(&entry->attempt->before, now), now);
    return entry;
}

bool executions_is_call(const char *call) {
    return strcmp(call, "execve") == 0 || strcmp(call, "execveat") == 0;
}

void executions_attempt(struct warden_context *context, const char *call, const struct seccomp_notif *request,
                        const char *exec_id) {
    struct execution_observer *observer = observer_of(context);
    struct attempt *attempt = memory_zeroed(sizeof *attempt);
    pid_t pid;
    if (!thread_read((pid_t)request->pid, &pid, &attempt->uid) || !image_read(pid, &attempt->before)) {
        free(attempt);
        return;
    }
    program_read(call, &request->data, (pid_t)request->pid, &attempt->program);
    attempt->time_ms = clock_ms(CLOCK_REALTIME);
    attempt->delay = SETTLE_MS;
    attempt->due = clock_ms(CLOCK_MONOTONIC) + SETTLE_MS;
    struct execution *entry = entry_find(context, pid, &attempt->before);
    parent_read(observer, attempt->before.parent, &attempt->parent);
    if (entry == NULL)
        entry = entry_add(observer, pid, attempt->before.begun, exec_id);
    if (entry == NULL) {
        /* Beyond what is watched: its end will not be seen, and is counted here. */
        if (attempt->program.runs) {
            struct record_process process = process_of(attempt, pid, NULL);
            launch_record(context, attempt, &process, exec_id, 1);
            record_process_clear(&process);
        }
        attempt_free(attempt);
        return;
    }
    entry->attempt = attempt;
    weigh(observer, entry);
    if (attempt->due < observer->due)
        observer->due = attempt->due;
}

/* --- the loop --- */

int executions_descriptor(const struct warden_context *context) {
    return context->executions != NULL ? context->executions->events : -1;
}

int executions_timeout(const struct warden_context *context) {
    if (context->executions == NULL || context->executions->due == INT64_MAX)
        return -1;
    const int64_t left = context->executions->due - clock_ms(CLOCK_MONOTONIC);
    return left > 0 ? (int)left : 0;
}

void executions_handle(struct warden_context *context) {
    struct epoll_event events[ENDS_PER_TURN];
    if (context->executions == NULL)
        return;
    int count = epoll_wait(context->executions->events, events, ENDS_PER_TURN, 0);
    for (int i = 0; i < count; i++)
        entry_end(context, events[i].data.ptr);
    settle_due(context);
}

void executions_finish(struct warden_context *context) {
    struct execution_observer *observer = context->executions;
    if (observer == NULL)
        return;
    for (int turn = 0; turn <= WATCHED_MAX / ENDS_PER_TURN; turn++)
        executions_handle(context);
    /* What lives on shares the pid namespace of another container. */
    for (size_t i = 0; i < BUCKETS; i++)
        while (observer->buckets[i] != NULL) {
            struct execution *entry = observer->buckets[i];
            struct image now;
            if (entry->attempt != NULL && image_read(entry->pid, &now) && now.begun == entry->begun)
                attempt_close(context, entry, image_differs(&entry->attempt->before, &now), &now);
            entry_remove(observer, entry);
        }
    fd_close(observer->events);
    free(observer);
    context->executions = NULL;
}
