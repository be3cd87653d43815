/* The other end of the keeper's control socket. */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "broker/broker.h"
#include "broker/launch.h"

#define CONTROL_SOCKET "broker.sock"
/* A keeper waits for its broker, and starts another one if it has to. */
#define PATIENCE_SECONDS 20

static void address_in(int directory, struct sockaddr_un *address) {
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(address->sun_path, sizeof address->sun_path, "/proc/self/fd/%d/" CONTROL_SOCKET, directory);
}

struct error *broker_listen(int state_directory, int *listening) {
    struct sockaddr_un address;
    address_in(state_directory, &address);
    (void)!unlinkat(state_directory, CONTROL_SOCKET, 0); /* of a keeper that was lost */
    fd_owned int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (listener < 0)
        return error_system(errno, "make", "a socket");
    if (bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, 4) < 0)
        return error_system(errno, "listen", "at " CONTROL_SOCKET);
    *listening = fd_take(&listener);
    return NULL;
}

struct error *broker_give_plan(int state_directory, const struct broker_plan *plan) {
    struct sockaddr_un address;
    address_in(state_directory, &address);
    fd_owned int sealed = -1;
    TRY(broker_plan_seal(plan, &sealed));
    struct stat status;
    if (fstat(sealed, &status) < 0)
        return error_system(errno, "stat", "the broker's plan");
    fd_owned int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (connection < 0)
        return error_system(errno, "make", "a socket");
    const struct timeval patience = {.tv_sec = PATIENCE_SECONDS};
    if (setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0)
        return error_system(errno, "set", "a time limit for the broker's answer");
    if (connect(connection, (struct sockaddr *)&address, sizeof address) < 0)
        return error_system(errno, "connect", "to the broker's keeper");
    const struct broker_change change = {.length = (uint64_t)status.st_size};
    TRY(error_context(fd_send(connection, &change, sizeof change, &sealed, 1), "the broker's keeper"));
    return error_context(error_receive(connection), "broker");
}
