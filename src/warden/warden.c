#include "warden/warden.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/memory.h"
#include "sys/calls.h"
#include "sys/scheduling.h"
#include "warden/executions.h"
#include "warden/launch.h"
#include "warden/observers.h"
#include "warden/protocol.h"
#include "warden/reading.h"

/* After init's end: what the kernel still holds for us is read, then we go, since an engine's monitor waits.
 */
#define HEAP_BYTES (64 * 1024) /* what it takes until it waits */
#define TURN_NS 100000         /* the shortest that the kernel takes */
#define GUARDIAN_PATIENCE_MS 150
#define HELD_UP_PATIENCE_MS 5000
#define REAP_PATIENCE_MS 100 /* a monitor had not had its turn after 50 */
#define CREATE_PATIENCE_MS 2000
#define LISTENERS_MAX 512
#define LISTENERS_STEP 8
#define CLIENTS_MAX 64
#define BIND_RETRY_MS 250
#define EVENTS_PER_TURN 64

/* What the loop waits for, before its clients and its listeners. */
enum { INIT, GUARDIAN, CHANNEL, LISTENING, PACKETS, DECOYS, FILES, BROKER, EXECUTIONS, FIXED };

/* The warden's exit status when it could not begin and has told init so. */
#define EXIT_NOT_BEGUN 3

struct attended {
    int listener;
    char exec_id[128];        /* "" for the container's own */
    struct readable readable; /* by the Landlock domain of who is below this listener */
};

struct warden {
    struct warden_plan *plan;
    struct warden_context context;
    int init;     /* pidfd */
    int guardian; /* pidfd */
    int channel;
    int listening;
    int clients[CLIENTS_MAX];
    size_t clients_count;
    struct attended *listeners; /* as many as were ever attended at once; LISTENERS_MAX at most */
    size_t listeners_count, listeners_room;
    struct pollfd *events; /* room for all that the loop waits for */
};

/* Reading processes of other owners and resolving their paths; ending init; rebinding the packet log. */
#define CAPABILITY(name) (UINT64_C(1) << (name))
static const uint64_t kept_capabilities = CAPABILITY(CAP_SYS_PTRACE) | CAPABILITY(CAP_DAC_READ_SEARCH) |
                                          CAPABILITY(CAP_KILL) | CAPABILITY(CAP_NET_ADMIN);

/* A record that cannot be written is counted by the log and said in the next one; there is nobody else to
 * tell. */
static void record_or_count(struct record_log *log, const struct record_event *event) {
    error_ignore(record_write(log, event));
}

void denial_record(struct warden_context *context, struct record_event *event) {
    event->action = RECORD_DENIED;
    event->rule_origin = context->policy_origin;
    record_or_count(context->log, event);
    if (context->on_denied != POLICY_DENIED_STOP || context->stopped)
        return;
    context->stopped = true;
    (void)!sys_pidfd_send_signal(context->init, SIGKILL); /* it fails only for what has ended */
}

static void record_change(struct warden *warden, const struct warden_change *change, const char *exec_id) {
    struct record_event event = {
        .class_id = RECORD_FINDING,
        .activity_id = 1,
        .action = RECORD_DENIED,
        .reason = change->reason,
        .message = change->message,
        .rule = change->rule,
        .rule_origin = warden->plan->policy_origin,
        .remedy = change->remedy,
        .subject = change->subject,
        .exec_id = exec_id && exec_id[0] ? exec_id : NULL,
    };
    if (change->reason != NULL && (text_starts_with(change->reason, "mechanism.") ||
                                   text_starts_with(change->reason, "namespace.added")))
        event.action = RECORD_OBSERVED;
    record_or_count(warden->context.log, &event);
}

/* OCSF 6002: 3 Start, 4 Stop; created is 99. */
static void record_lifecycle(struct warden *warden, int activity_id, const char *activity_name,
                             const char *reason, const char *message, const int *exit_code) {
    struct record_process init = {0};
    record_process_read((pid_t)warden->plan->init_pid, &init);
    struct record_event event = {
        .class_id = RECORD_LIFECYCLE,
        .activity_id = activity_id,
        .activity_name = activity_name,
        .action = RECORD_OBSERVED,
        .reason = reason,
        .message = message,
        .process = &init,
        .has_exit_code = exit_code != NULL,
        .exit_code = exit_code ? *exit_code : 0,
    };
    record_or_count(warden->context.log, &event);
    record_process_clear(&init);
}

static void record_lost(struct record_log *log, const char *who) {
    memory_owned char *message = text_formatted(
        "The %s of this container was lost; the container was stopped, because nothing would have "
        "recorded what it did.",
        who);
    struct record_event event = {.class_id = RECORD_FINDING,
                                 .activity_id = 1,
                                 .action = RECORD_DENIED,
                                 .reason = "warden.lost",
                                 .message = message,
                                 .subject = who,
                                 .rule = "promise: denial records"};
    record_or_count(log, &event);
    error_ignore(record_log_flush(log, true)); /* counted by the log */
}

static void begin_watching(struct warden *warden) {
    memory_owned char *message = text_formatted("Policy %s is in force.", warden->plan->subject.policy_name);
    struct record_event policy = {.class_id = RECORD_POLICY,
                                  .activity_id = 1,
                                  .action = RECORD_OBSERVED,
                                  .reason = "policy.applied",
                                  .message = message,
                                  .rule_origin = warden->plan->policy_origin};
    record_or_count(warden->context.log, &policy);
    record_lifecycle(warden, 99, "Create", "container.created", "The container was created.", NULL);
    for (size_t i = 0; i < warden->plan->changes_count; i++)
        record_change(warden, &warden->plan->changes[i], NULL);
}

static void take_sockets(struct warden *warden, const struct warden_message *message, int *fds,
                         size_t count) {
    struct wall_sockets *wall = &warden->context.wall;
    int *const places[WARDEN_SOCKET_COUNT] = {&wall->packet_log, &wall->socket_diagnosis, &wall->reset_ipv4,
                                              &wall->reset_ipv6, &wall->rules};
    size_t next = 0;
    for (size_t i = 0; i < WARDEN_SOCKET_COUNT && next < count; i++) {
        if (!(message->present & (1u << i)))
            continue;
        fd_close(*places[i]);
        *places[i] = fd_take(&fds[next++]);
    }
    packets_bind(&warden->context);
}

/* Its keeper waits for them; a keeper that is gone already is noticed where its end is read. */
static void hand_on_broker_sockets(struct warden *warden, const struct warden_message *message, int *fds,
                                   size_t count) {
    struct broker_sockets sockets;
    broker_sockets_unpack(fds, count, message->present, &sockets);
    sockets.mark = message->mark;
    sockets.bound = message->bound != 0;
    if (warden->context.broker >= 0)
        error_ignore(broker_sockets_send(warden->context.broker, &sockets));
    broker_sockets_close(&sockets);
}

static void events_make_room(struct warden *warden) {
    size_t room = FIXED + CLIENTS_MAX + warden->listeners_room;
    warden->events = memory_resize(warden->events, room, sizeof *warden->events);
}

static struct error *take_listener(struct warden *warden, const struct warden_message *message, int *fds,
                                   size_t count) {
    if (count != 1 && count != 2)
        return error_new(ERROR_INVALID, "a listener message without a listener");
    struct readable readable = {0};
    if (count == 2)
        TRY(readable_read(fds[1], &readable));
    if (warden->listeners_count == LISTENERS_MAX)
        return error_new(ERROR_UNAVAILABLE, "more than %d processes of exec run at once in this container",
                         LISTENERS_MAX);
    if (warden->listeners_count == warden->listeners_room) {
        warden->listeners_room += LISTENERS_STEP;
        warden->listeners =
            memory_resize(warden->listeners, warden->listeners_room, sizeof *warden->listeners);
        events_make_room(warden);
    }
    struct attended *attended = &warden->listeners[warden->listeners_count++];
    attended->listener = fd_take(&fds[0]);
    attended->readable = readable;
    memcpy(attended->exec_id, message->exec_id, sizeof attended->exec_id);
    return NULL;
}

/* One message of a connection; false when it is to be closed. */
static bool message_handle(struct warden *warden, int connection) {
    struct warden_message message;
    int fds[16];
    size_t count = 0;
    struct error *error = fd_receive(connection, &message, sizeof message, fds, 16, &count);
    if (error != NULL) {
        error_ignore(error); /* the other end is gone or talks nonsense */
        return false;
    }
    message.exec_id[sizeof message.exec_id - 1] = '\0';
    bool answer = true;
    switch (message.kind) {
    case WARDEN_SOCKETS:
        take_sockets(warden, &message, fds, count);
        answer = false;
        break;
    case WARDEN_BROKER_SOCKETS:
        hand_on_broker_sockets(warden, &message, fds, count);
        answer = false;
        break;
    case WARDEN_DECOYS:
        error = files_watch_decoys(fds, count, &warden->context.decoy_group);
        if (error != NULL) {
            /* A decoy without a tripwire still holds nothing of worth: a degraded second layer, said in a
             * record. */
            struct warden_change change = {.reason = "mechanism.degraded",
                                           .subject = "fanotify",
                                           .message = error->message,
                                           .rule = "decoys"};
            record_change(warden, &change, NULL);
            error_free(error);
            error = NULL;
        }
        answer = false;
        break;
    case WARDEN_INSIDE:
        warden->context.inside = count == 1;
        if (count == 1)
            record_log_show_inside(warden->context.log, fd_take(&fds[0]));
        answer = false;
        break;
    case WARDEN_WATCH:
        confine_capabilities(kept_capabilities); /* the decoys are marked: CAP_SYS_ADMIN has done its work */
        begin_watching(warden);
        error = broker_await(&warden->context);
        break;
    case WARDEN_LISTENER:
        error = take_listener(warden, &message, fds, count);
        break;
    case WARDEN_CHANGE: {
        struct warden_change change = {.reason = message.reason,
                                       .subject = message.subject,
                                       .message = message.message,
                                       .rule = message.rule,
                                       .remedy = message.remedy};
        record_change(warden, &change, message.exec_id);
        break;
    }
    case WARDEN_BROKER:
    case WARDEN_POLICY:
        if (count != 1)
            error = error_new(ERROR_INVALID, "a message without its descriptor");
        else
            error = message.kind == WARDEN_POLICY ? change_take(&warden->context, fds[0])
                                                  : change_broker(&warden->context, &fds[0]);
        break;
    case WARDEN_APPLIED:
        error = change_applied(&warden->context);
        break;
    case WARDEN_STARTED:
        record_lifecycle(warden, 3, NULL, "container.started", "The container was started.", NULL);
        break;
    default:
        error = error_new(ERROR_INVALID, "unknown message %u", message.kind);
    }
    for (size_t i = 0; i < count; i++)
        fd_close(fds[i]);
    if (answer)
        error_send(connection, error);
    error_free(error);
    return true;
}

static void client_accept(struct warden *warden) {
    int connection = accept4(warden->listening, NULL, NULL, SOCK_CLOEXEC);
    if (connection < 0)
        return;
    struct ucred peer = {0};
    socklen_t length = sizeof peer;
    bool ours = getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
                (peer.uid == geteuid() || peer.uid == 0);
    if (!ours || warden->clients_count == CLIENTS_MAX)
        fd_close(connection);
    else
        warden->clients[warden->clients_count++] = connection;
}

static void listener_handle(struct warden *warden, size_t index) {
    struct attended *attended = &warden->listeners[index];
    if (notify_handle(&warden->context, attended->listener, attended->exec_id[0] ? attended->exec_id : NULL,
                      &attended->readable))
        return;
    fd_close(attended->listener);
    readable_clear(&attended->readable);
    *attended = warden->listeners[--warden->listeners_count];
}

static bool is_readable(int fd) {
    struct pollfd event = {.fd = fd, .events = POLLIN};
    return fd >= 0 && poll(&event, 1, 0) > 0 && (event.revents & POLLIN);
}

/* The kernel tells how init ended once its parent has reaped it, which engines' monitors do at once. */
static bool init_exit_status(const struct warden *warden, int *status) {
    if (sys_pidfd_exit_status(warden->init, status) == 0)
        return true;
    if (errno != EAGAIN)
        return false;
    struct pollfd reaped = {.fd = warden->init}; /* POLLHUP, which needs no asking */
    (void)!poll(&reaped, 1, REAP_PATIENCE_MS);
    return sys_pidfd_exit_status(warden->init, status) == 0;
}

/* Init has ended: what happened before is still to be read. */
static void finish(struct warden *warden) {
    for (int turn = 0; turn < EVENTS_PER_TURN && is_readable(warden->context.wall.packet_log); turn++)
        packets_handle(&warden->context);
    for (int turn = 0; turn < EVENTS_PER_TURN && is_readable(warden->context.decoy_group); turn++)
        files_handle(&warden->context);
    file_ring_finish(&warden->context);
    broker_farewell(&warden->context);
    packets_close(&warden->context);
    executions_finish(&warden->context);
    int status;
    if (init_exit_status(warden, &status)) {
        int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        memory_owned char *message = text_formatted(
            "The container %s with exit code %d.",
            warden->context.stopped ? "was stopped by its first denied action (on_denied_action: stop)"
                                    : "ended",
            code);
        record_lifecycle(warden, 4, NULL, "container.ended", message, &code);
    } else {
        record_lifecycle(warden, 4, NULL, "container.ended", "The container ended.", NULL);
    }
    error_ignore(record_log_flush(warden->context.log, true)); /* counted by the log */
    record_log_tidy(warden->context.log);
    record_log_close(warden->context.log);
}

static int loop_timeout(const struct warden *warden) {
    int timeout = record_log_timeout(warden->context.log);
    int executions = executions_timeout(&warden->context);
    if (executions >= 0 && (timeout < 0 || timeout > executions))
        timeout = executions;
    if (warden->context.wall.packet_log >= 0 && (timeout < 0 || timeout > BIND_RETRY_MS))
        timeout = BIND_RETRY_MS;
    return timeout;
}

static _Noreturn void loop(struct warden *warden) {
    events_make_room(warden);
    for (;;) {
        const int fixed[FIXED] = {
            [INIT] = warden->init,
            [GUARDIAN] = warden->guardian,
            [CHANNEL] = warden->channel,
            [LISTENING] = warden->listening,
            [PACKETS] = warden->context.wall.packet_log,
            [DECOYS] = warden->context.decoy_group,
            [FILES] = warden->context.file_ring != NULL ? WARDEN_FD_RING : -1,
            /* Its first word is for who waits for it: broker_await. */
            [BROKER] = warden->context.broker_ready ? warden->context.broker : -1,
            [EXECUTIONS] = executions_descriptor(&warden->context),
        };
        struct pollfd *events = warden->events;
        for (size_t i = 0; i < FIXED; i++)
            events[i] = (struct pollfd){.fd = fixed[i], .events = POLLIN};
        size_t clients = warden->clients_count, listeners = warden->listeners_count;
        for (size_t i = 0; i < clients; i++)
            events[FIXED + i] = (struct pollfd){.fd = warden->clients[i], .events = POLLIN};
        for (size_t i = 0; i < listeners; i++)
            events[FIXED + clients + i] =
                (struct pollfd){.fd = warden->listeners[i].listener, .events = POLLIN};
        if (poll(events, FIXED + clients + listeners, loop_timeout(warden)) < 0 && errno != EINTR)
            _exit(1); /* the guardian stops the container */
        const bool init_ended = events[INIT].revents != 0, called = events[LISTENING].revents != 0,
                   spoken_to = events[CHANNEL].revents != 0,
                   executed = events[EXECUTIONS].revents != 0; /* a new listener may move the events */
        if (events[GUARDIAN].revents != 0) {
            record_lost(warden->context.log, "guardian");
            (void)!sys_pidfd_send_signal(warden->init, SIGKILL);
            _exit(0);
        }
        /* Before the packets: the name of an address is told before anybody can connect to it. */
        if (events[BROKER].revents != 0)
            broker_handle(&warden->context);
        if (events[PACKETS].revents != 0)
            packets_handle(&warden->context);
        if (events[DECOYS].revents != 0)
            files_handle(&warden->context);
        if (events[FILES].revents != 0)
            file_ring_handle(&warden->context);
        /* From the last to the first: handling one may put the last in its place. */
        for (size_t i = listeners; i-- > 0;)
            if (events[FIXED + clients + i].revents != 0)
                listener_handle(warden, i);
        for (size_t i = clients; i-- > 0;) {
            if (warden->events[FIXED + i].revents == 0 || message_handle(warden, warden->clients[i]))
                continue;
            fd_close(warden->clients[i]);
            warden->clients[i] = warden->clients[--warden->clients_count];
        }
        if (called)
            client_accept(warden);
        if (spoken_to && !message_handle(warden, warden->channel)) {
            fd_close(warden->channel);
            warden->channel = -1; /* init has become the container's program */
        }
        packets_bind(&warden->context);
        if (executed || executions_timeout(&warden->context) == 0)
            executions_handle(&warden->context);
        error_ignore(record_log_flush(warden->context.log, false)); /* counted by the log */
        if (init_ended) {
            finish(warden);
            _exit(0);
        }
    }
}

static ino_t pid_namespace_of(pid_t pid) {
    char path[64];
    struct stat status;
    snprintf(path, sizeof path, "/proc/%d/ns/pid", (int)pid);
    return stat(path, &status) < 0 ? 0 : status.st_ino;
}

static struct error *prepare(uint64_t *sequence, struct warden_plan *plan, struct record_log **log) {
    TRY(warden_plan_read(WARDEN_FD_PLAN, plan));
    return record_log_open(&plan->subject, sequence, log);
}

static _Noreturn void warden_run(uint64_t *sequence, int guardian, int listening, int broker, bool rings) {
    prctl(PR_SET_NAME, "pinfold-warden");
    /* What it answers (a held connection, a notified call) is a program of the workload that waits. Measured
     * on a busy machine: a denied connect, p50, 1.0 -> 0.5 ms. */
    (void)sys_sched_set_turn(TURN_NS);
    (void)memory_populate(HEAP_BYTES);
    struct warden *warden = memory_zeroed(sizeof *warden);
    struct warden_plan *plan = memory_zeroed(sizeof *plan);
    struct record_log *log = NULL;
    struct error *error = prepare(sequence, plan, &log);
    struct file_ring *ring = NULL;
    if (error == NULL && rings)
        error = file_ring_open(WARDEN_FD_RING, WARDEN_FD_LOSSES, &ring);
    confine_capabilities(kept_capabilities | CAPABILITY(CAP_SYS_ADMIN));
    if (error == NULL)
        error = confine_calls();
    if (error != NULL) {
        error_send(WARDEN_FD_CHANNEL, error); /* init waits for our answer, and create for init's */
        _exit(EXIT_NOT_BEGUN);
    }
    *warden = (struct warden){
        .plan = plan,
        .init = WARDEN_FD_INIT,
        .guardian = guardian,
        .channel = WARDEN_FD_CHANNEL,
        .listening = listening,
        .context = {.log = log,
                    .policy_origin = plan->policy_origin,
                    .plan = plan,
                    .wall = WALL_SOCKETS_NONE,
                    .on_denied = (enum policy_on_denied)plan->on_denied,
                    .init = WARDEN_FD_INIT,
                    .init_pid = (pid_t)plan->init_pid,
                    .pid_namespace = pid_namespace_of((pid_t)plan->init_pid),
                    .decoy_group = -1,
                    .file_ring = ring,
                    .decoy_paths = plan->decoys,
                    .broker = broker},
    };
    loop(warden);
}

/* The plan is sealed, and was read once already by the warden; the log may have been rotated since. */
static void guardian_record(uint64_t *sequence) {
    struct warden_plan plan = {0};
    struct record_log *log = NULL;
    struct error *error = prepare(sequence, &plan, &log);
    if (error == NULL)
        record_lost(log, "warden");
    error_ignore(error); /* there is nobody left to tell; the container is stopped */
}

/* Whether it would go on if the machine let it: it waits for a processor or a disk, or was stopped. Of 200
 * containers that ended at once on two processors, one warden had not had its turn within the patience. One
 * that sleeps waits for somebody, and may do so for ever. */
static bool is_held_up(pid_t warden) {
    char path[32], stat[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)warden);
    fd_owned int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, stat, sizeof stat - 1);
    if (length <= 0)
        return false;
    stat[length] = '\0';
    const char *name_end = strrchr(stat, ')');
    return name_end != NULL && name_end[1] == ' ' && strchr("RDT", name_end[2]) != NULL;
}

static _Noreturn void guardian_run(uint64_t *sequence, pid_t warden, int warden_pidfd) {
    prctl(PR_SET_NAME, "pinfold-guard");
    struct pollfd events[2] = {{.fd = warden_pidfd, .events = POLLIN},
                               {.fd = WARDEN_FD_INIT, .events = POLLIN}};
    while (poll(events, 2, -1) < 0 && errno == EINTR)
        ;
    if (events[1].revents != 0) {
        /* Init ended first, as it should: the warden writes its last record. */
        for (int waited = 0; waited < HELD_UP_PATIENCE_MS; waited += GUARDIAN_PATIENCE_MS)
            if (poll(events, 1, GUARDIAN_PATIENCE_MS) > 0 || !is_held_up(warden))
                break;
        kill(warden, SIGKILL);
        waitpid(warden, NULL, 0);
        _exit(0);
    }
    int status = 0;
    waitpid(warden, &status, 0);
    /* What it says of itself, whoever it has become, is believed only if init ends as well: has ended
     * already, or is ended by create, which a warden that could not begin has told. */
    bool told = WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == EXIT_NOT_BEGUN);
    if (!told || poll(&events[1], 1, CREATE_PATIENCE_MS) <= 0) {
        /* First the container, then the record. */
        (void)!sys_pidfd_send_signal(WARDEN_FD_INIT, SIGKILL);
        guardian_record(sequence);
    }
    _exit(0);
}

int warden_main(void) {
    /* Before something else is opened at the numbers of those that there may not be. */
    bool given[WARDEN_FD_END] = {0};
    for (int fd = WARDEN_FD_FIRST; fd < WARDEN_FD_END; fd++)
        given[fd] = fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
    if (!given[WARDEN_FD_PLAN] || !given[WARDEN_FD_CHANNEL] || !given[WARDEN_FD_INIT])
        return 1;
    int broker = given[WARDEN_FD_BROKER] ? WARDEN_FD_BROKER : -1;
    int listening = given[WARDEN_FD_LISTENING] ? WARDEN_FD_LISTENING : -1;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    /* One counter for both processes, so that a sequence never repeats. */
    uint64_t *sequence =
        mmap(NULL, sizeof *sequence, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int guardian = sys_pidfd_open(getpid(), 0);
    int warden_pidfd = -1;
    /* Before anything is read: the less memory there is, the less is copied, page by page, when one of the
     * two writes to it. */
    pid_t warden = sequence == MAP_FAILED || guardian < 0 ? -1 : sys_clone3(0, &warden_pidfd, -1);
    if (warden == 0)
        warden_run(sequence, guardian, listening, broker, given[WARDEN_FD_RING] && given[WARDEN_FD_LOSSES]);
    if (warden < 0) {
        error_send(WARDEN_FD_CHANNEL, error_system(errno, "fork", "the warden"));
        return 1;
    }
    /* It reads nothing that a container has written, only waits, ends processes, and at a loss reads the plan
     * again: a filter of system calls would cost more than it could protect. */
    confine_capabilities(CAPABILITY(CAP_KILL));
    /* What only the warden needs; a listener that somebody else still held would make denied calls hang. */
    fd_close(guardian);
    fd_close(WARDEN_FD_CHANNEL);
    fd_close(listening);
    fd_close(broker);
    guardian_run(sequence, warden, warden_pidfd);
}
