/* The keeper: see broker.h. It reads the plan, the sockets' message and nothing else. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "broker/launch.h"
#include "broker/parts.h"
#include "sys/calls.h"

/* More deaths than this within the time, and it stays down: what kills it will kill the next one. */
#define DEATHS_MAX 3
#define DEATHS_WITHIN_MS 10000
#define BIND_RETRY_MS 250
/* After the container's end, for the last reports; the monitors of engines wait for us (200 ms). */
#define FAREWELL_MS 150
/* For the broker to put another plan in force, and for whoever brings one to say so. */
#define CHANGE_MS 3000
#define SEND_BUFFER (256 * 1024)

struct keeper {
    struct broker_plan plan;
    struct broker_sockets sockets;
    struct learnt_names *learnt;
    int own; /* pidfd */
    pid_t broker;
    int broker_pidfd;   /* -1: none runs */
    int broker_control; /* of the one that runs */
    int control;        /* where another policy is told; -1: nobody can */
    int64_t deaths[DEATHS_MAX];
    unsigned deaths_count;
    bool given_up;
};

static void tell(enum broker_report_kind kind, bool given_up, const char *text) {
    struct broker_report report = {.kind = kind, .given_up = given_up};
    report_string(report.text, sizeof report.text, text);
    (void)!send(BROKER_FD_CHANNEL, &report, sizeof report,
                MSG_NOSIGNAL | MSG_DONTWAIT); /* nobody else to tell */
}

/* Into the namespaces of init: both at once, since the kernel asks each time whether we may look into init,
 * which from inside its user namespace we may not. */
static struct error *enter(void) {
    if (setns(BROKER_FD_INIT, CLONE_NEWUSER | CLONE_NEWNET) == 0)
        return NULL;
    if (errno != EINVAL) /* its user namespace is ours already */
        return error_system(errno, "setns", "the container's user and network namespaces");
    if (setns(BROKER_FD_INIT, CLONE_NEWNET) < 0)
        return error_system(errno, "setns", "the container's network namespace");
    return NULL;
}

/* Forks the broker, and waits until it serves or says why it cannot. */
static struct error *broker_start(struct keeper *keeper) {
    fd_owned int here = -1, there = -1;
    TRY(fd_pair(&here, &there));
    fd_owned int control = -1;
    fd_close(fd_take(&keeper->broker_control));
    TRY(fd_pair(&keeper->broker_control, &control));
    pid_t pid = sys_clone3(0, &keeper->broker_pidfd, -1);
    if (pid == 0) {
        fd_close(here);
        fd_close(BROKER_FD_INIT);
        fd_close(BROKER_FD_PLAN);
        fd_close(keeper->control);
        fd_close(keeper->broker_control);
        broker_run(&keeper->plan, &keeper->sockets, keeper->learnt,
                   (struct broker_ends){BROKER_FD_CHANNEL, control, keeper->own, there});
    }
    if (pid < 0) {
        keeper->broker_pidfd = -1;
        return error_system(errno, "fork", "the broker");
    }
    keeper->broker = pid;
    fd_close(fd_take(&there));
    return error_receive(here);
}

static void broker_reap(struct keeper *keeper) {
    if (keeper->broker_pidfd < 0)
        return;
    (void)sys_pidfd_send_signal(keeper->broker_pidfd, SIGKILL);
    while (waitpid(keeper->broker, NULL, 0) < 0 && errno == EINTR)
        ;
    fd_close(fd_take(&keeper->broker_pidfd));
}

/* The sockets are silent first: a connect is refused at once, and nobody else can have the ports. */
static void broker_lost(struct keeper *keeper) {
    broker_sockets_silence(&keeper->sockets);
    broker_reap(keeper);
    int64_t now = loop_now_ms();
    unsigned recent = 0;
    for (unsigned i = 0; i < DEATHS_MAX; i++)
        recent += keeper->deaths[i] != 0 && now - keeper->deaths[i] < DEATHS_WITHIN_MS;
    keeper->deaths[keeper->deaths_count++ % DEATHS_MAX] = now;
    keeper->given_up = recent == DEATHS_MAX;
    struct error *error = keeper->given_up ? NULL : broker_start(keeper);
    if (error != NULL) {
        broker_sockets_silence(&keeper->sockets);
        broker_reap(keeper);
        keeper->given_up = true;
    }
    tell(BROKER_LOST, keeper->given_up, error != NULL ? error->message : "");
    error_free(error);
}

/* -- another policy -- */

/* Hands it to the broker that runs, if one does. */
static struct error *broker_tell(struct keeper *keeper, int sealed, const struct broker_change *change) {
    if (keeper->broker_pidfd < 0)
        return NULL;
    TRY(fd_send(keeper->broker_control, change, sizeof *change, &sealed, 1));
    struct pollfd event = {.fd = keeper->broker_control, .events = POLLIN};
    int ready;
    while ((ready = poll(&event, 1, CHANGE_MS)) < 0 && errno == EINTR)
        ;
    if (ready <= 0)
        return error_new(ERROR_UNAVAILABLE, "the broker does not take another policy");
    return error_receive(keeper->broker_control);
}

static struct error *plan_take(struct keeper *keeper, int sealed, const struct broker_change *change) {
    struct broker_plan plan;
    TRY(broker_plan_map(sealed, change->length, &plan));
    if (plan.uplink != keeper->plan.uplink) {
        broker_plan_clear(&plan);
        return error_new(ERROR_INVALID, "the broker's uplink cannot change");
    }
    plan.connections_max = keeper->plan.connections_max;
    broker_plan_clear(&keeper->plan);
    keeper->plan = plan;
    return NULL;
}

static struct error *change_apply(struct keeper *keeper, int sealed, const struct broker_change *change) {
    TRY(plan_take(keeper, sealed, change));
    struct error *error = broker_tell(keeper, sealed, change);
    if (error != NULL) {
        /* One that does not take it must not go on with the old one; the next one begins with this. */
        error_free(error);
        broker_lost(keeper);
    } else if (keeper->given_up && keeper->sockets.bound) {
        memset(keeper->deaths, 0, sizeof keeper->deaths);
        keeper->given_up = false;
        TRY(broker_start(keeper));
    }
    return keeper->given_up ? error_new(ERROR_UNAVAILABLE, "it cannot be started any more") : NULL;
}

/* Only who may enter the container's state directory comes this far. */
static void change_accept(struct keeper *keeper) {
    fd_owned int connection = accept4(keeper->control, NULL, NULL, SOCK_CLOEXEC);
    struct broker_change change;
    fd_owned int sealed = -1;
    size_t count = 0;
    struct pollfd event = {.fd = connection, .events = POLLIN};
    if (connection < 0 || poll(&event, 1, CHANGE_MS) <= 0)
        return;
    struct error *error = fd_receive(connection, &change, sizeof change, &sealed, 1, &count);
    if (error == NULL && count == 1)
        error = change_apply(keeper, sealed, &change);
    error_send(connection, error);
    error_free(error);
}

static struct error *prepare(struct keeper *keeper) {
    TRY(broker_plan_read(BROKER_FD_PLAN, &keeper->plan));
    keeper->own = sys_pidfd_open(getpid(), 0);
    keeper->learnt =
        mmap(NULL, sizeof *keeper->learnt, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (keeper->learnt == MAP_FAILED || keeper->own < 0)
        return error_system(errno, "prepare", "the broker's keeper");
    TRY(broker_sockets_receive(BROKER_FD_CHANNEL, &keeper->sockets));
    if (keeper->plan.uplink == BROKER_UPLINK_CONTAINER)
        TRY(enter());
    confine_keeper();
    return keeper->sockets.bound ? broker_start(keeper) : NULL;
}

/* Another container's broker had the ports of this namespace until now. */
static void try_ports(struct keeper *keeper) {
    struct error *error = broker_sockets_bind(&keeper->sockets);
    if (error == NULL && !keeper->sockets.bound)
        return;
    if (error == NULL)
        error = broker_start(keeper);
    if (error != NULL) {
        broker_reap(keeper);
        keeper->given_up = true;
        tell(BROKER_LOST, true, error->message);
        error_free(error);
    }
}

static _Noreturn void keep(struct keeper *keeper) {
    enum { WARDEN, INIT, BROKER, CONTROL, COUNT };
    for (;;) {
        /* The warden's messages are the broker's to read; only its end is ours to see. */
        struct pollfd events[COUNT] = {[WARDEN] = {.fd = BROKER_FD_CHANNEL, .events = POLLRDHUP},
                                       [INIT] = {.fd = BROKER_FD_INIT, .events = POLLIN},
                                       [BROKER] = {.fd = keeper->broker_pidfd, .events = POLLIN},
                                       [CONTROL] = {.fd = keeper->control, .events = POLLIN}};
        bool waits = !keeper->sockets.bound && !keeper->given_up;
        if (poll(events, COUNT, waits ? BIND_RETRY_MS : -1) < 0 && errno != EINTR)
            _exit(1);
        if (events[WARDEN].revents != 0 || events[INIT].revents != 0) {
            if (keeper->broker_pidfd >= 0)
                (void)!poll(&events[BROKER], 1, FAREWELL_MS);
            broker_reap(keeper);
            _exit(0);
        }
        if (events[BROKER].revents != 0)
            broker_lost(keeper);
        if (events[CONTROL].revents != 0)
            change_accept(keeper);
        if (waits && !keeper->sockets.bound)
            try_ports(keeper);
    }
}

int broker_main(void) {
    for (int fd = BROKER_FD_FIRST; fd < BROKER_FD_CONTROL; fd++)
        if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
            return 1;
    /* Before something else is opened at its number. */
    int control = fcntl(BROKER_FD_CONTROL, F_SETFD, FD_CLOEXEC) < 0 ? -1 : BROKER_FD_CONTROL;
    prctl(PR_SET_NAME, "pinfold-keeper");
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    int size = SEND_BUFFER;
    (void)setsockopt(BROKER_FD_CHANNEL, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    struct keeper *keeper = calloc(1, sizeof *keeper);
    if (keeper == NULL)
        return 1;
    keeper->broker_pidfd = keeper->broker_control = -1;
    keeper->control = control;
    keeper->sockets = BROKER_SOCKETS_NONE;
    struct error *error = prepare(keeper);
    if (error != NULL) {
        tell(BROKER_FAILED, true, error->message);
        broker_reap(keeper);
        return 1;
    }
    tell(BROKER_READY, false, "");
    keep(keeper);
}
