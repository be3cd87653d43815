/* The ends of the warden's sockets that init, start and exec hold. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "warden/launch.h"
#include "warden/protocol.h"
#include "warden/warden.h"

/* A warden that could not begin has said why before it closed the channel; its words say more than "reset".
 */
static struct error *say(int channel, const struct warden_message *message, const int *fds, size_t count) {
    struct error *error = fd_send(channel, message, sizeof *message, fds, count);
    if (error == NULL)
        return NULL;
    struct error *reason = error_receive(channel);
    if (reason == NULL || reason->number == EPIPE || reason->number == ECONNRESET) {
        error_free(reason);
        return error_context(error, "warden");
    }
    error_free(error);
    return error_context(reason, "warden");
}

struct error *warden_give_sockets(int channel, const struct wall_sockets *sockets) {
    const int all[WARDEN_SOCKET_COUNT] = {sockets->packet_log, sockets->socket_diagnosis, sockets->reset_ipv4,
                                          sockets->reset_ipv6, sockets->rules};
    struct warden_message message = {.kind = WARDEN_SOCKETS};
    int present[WARDEN_SOCKET_COUNT];
    size_t count = 0;
    for (size_t i = 0; i < WARDEN_SOCKET_COUNT; i++) {
        if (all[i] < 0)
            continue;
        message.present |= 1u << i;
        present[count++] = all[i];
    }
    return say(channel, &message, present, count);
}

struct error *warden_give_broker_sockets(int channel, const struct broker_sockets *sockets) {
    struct warden_message message = {
        .kind = WARDEN_BROKER_SOCKETS, .mark = sockets->mark, .bound = sockets->bound};
    int fds[BROKER_SOCKET_COUNT];
    size_t count = broker_sockets_pack(sockets, fds, &message.present);
    return say(channel, &message, fds, count);
}

struct error *warden_give_decoys(int channel, const int *decoys, size_t count) {
    struct warden_message message = {.kind = WARDEN_DECOYS};
    return say(channel, &message, decoys, count);
}

struct error *warden_give_inside(int channel, int file) {
    struct warden_message message = {.kind = WARDEN_INSIDE};
    return say(channel, &message, &file, 1);
}

struct error *warden_watch(int channel) {
    struct warden_message message = {.kind = WARDEN_WATCH};
    TRY(say(channel, &message, NULL, 0));
    return error_context(error_receive(channel), "warden");
}

struct error *warden_give_listener(int channel, int listener, int readable, const char *exec_id) {
    struct warden_message message = {.kind = WARDEN_LISTENER};
    snprintf(message.exec_id, sizeof message.exec_id, "%s", exec_id ? exec_id : "");
    const int fds[] = {listener, readable};
    TRY(error_context(say(channel, &message, fds, readable >= 0 ? 2 : 1), "seccomp listener"));
    return error_context(error_receive(channel), "warden");
}

struct error *warden_give_change(int channel, const char *exec_id, const struct warden_change *change) {
    struct warden_message message = {.kind = WARDEN_CHANGE};
    snprintf(message.exec_id, sizeof message.exec_id, "%s", exec_id ? exec_id : "");
    snprintf(message.reason, sizeof message.reason, "%s", change->reason ? change->reason : "");
    snprintf(message.subject, sizeof message.subject, "%s", change->subject ? change->subject : "");
    snprintf(message.message, sizeof message.message, "%s", change->message ? change->message : "");
    snprintf(message.rule, sizeof message.rule, "%s", change->rule ? change->rule : "");
    snprintf(message.remedy, sizeof message.remedy, "%s", change->remedy ? change->remedy : "");
    TRY(say(channel, &message, NULL, 0));
    return error_context(error_receive(channel), "warden");
}

struct error *warden_started(int channel) {
    struct warden_message message = {.kind = WARDEN_STARTED};
    TRY(say(channel, &message, NULL, 0));
    return error_context(error_receive(channel), "warden");
}

static struct error *ask(int channel, enum warden_message_kind kind, int fd) {
    struct warden_message message = {.kind = kind};
    TRY(say(channel, &message, &fd, fd >= 0 ? 1 : 0));
    return error_context(error_receive(channel), "warden");
}

struct error *warden_give_policy(int channel, const struct warden_policy *policy) {
    fd_owned int sealed = -1;
    TRY(warden_policy_seal(policy, &sealed));
    return ask(channel, WARDEN_POLICY, sealed);
}

struct error *warden_policy_applied(int channel) {
    return ask(channel, WARDEN_APPLIED, -1);
}

struct error *warden_give_broker(int channel, int broker) {
    return ask(channel, WARDEN_BROKER, broker);
}

/* A socket address holds 108 bytes, a state directory's path may be longer. */
static void address_in(int directory, struct sockaddr_un *address) {
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(address->sun_path, sizeof address->sun_path, "/proc/self/fd/%d/" WARDEN_SOCKET_NAME, directory);
}

struct error *warden_connect(int state_directory, int *channel) {
    struct sockaddr_un address;
    address_in(state_directory, &address);
    fd_owned int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (connection < 0)
        return error_system(errno, "make", "a socket");
    /* A warden that hangs is as bad as none. */
    struct timeval patience = {.tv_sec = 5};
    if (setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0)
        return error_system(errno, "set", "a time limit for the warden's answer");
    if (connect(connection, (struct sockaddr *)&address, sizeof address) < 0)
        return error_new(ERROR_UNAVAILABLE, "warden.lost: the warden of this container does not answer (%s)",
                         strerrorname_np(errno));
    *channel = fd_take(&connection);
    return NULL;
}

struct error *warden_listen(int state_directory, int *listening) {
    struct sockaddr_un address;
    address_in(state_directory, &address);
    fd_owned int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (listener < 0)
        return error_system(errno, "make", "a socket");
    if (bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, 64) < 0)
        return error_system(errno, "listen", "at " WARDEN_SOCKET_NAME);
    *listening = fd_take(&listener);
    return NULL;
}
