/* Finding, starting and asking the helper that speaks to systemd. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "cgroup/systemd.h"
#include "sys/calls.h"
#include "sys/helper.h"

/* Longer than the helper's own patience with systemd, so that its words arrive. */
#define REPLY_PATIENCE_SECONDS 100

bool cgroup_systemd_is_built(void) {
    fd_owned int helper = sys_helper_open(SYSTEMD_HELPER);
    return helper >= 0;
}

struct launch {
    int helper;
    int socket;
};

/* In the child. Standard error stays: a missing library is said there. */
static int helper_run(void *data) {
    const struct launch *launch = data;
    int helper = fcntl(launch->helper, F_DUPFD_CLOEXEC, 16);
    int socket_high = fcntl(launch->socket, F_DUPFD_CLOEXEC, 16);
    int null_device = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (helper < 0 || socket_high < 0 || null_device < 0 || dup2(socket_high, STDIN_FILENO) < 0 ||
        dup2(null_device, STDOUT_FILENO) < 0 || dup3(helper, 3, O_CLOEXEC) < 0)
        _exit(127);
    if (sys_close_range(4, ~0u, 0) < 0)
        _exit(127);
    sys_signals_reset();
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    static char *const arguments[] = {SYSTEMD_HELPER, NULL};
    static char *const environment[] = {NULL};
    fexecve(3, arguments, environment);
    _exit(127);
}

static struct error *reply_receive(int socket, char **error_name) {
    struct timeval patience = {.tv_sec = REPLY_PATIENCE_SECONDS};
    if (setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0)
        return error_system(errno, "set", "a time limit for " SYSTEMD_HELPER);
    memory_owned char *bytes = memory_zeroed(SYSTEMD_MESSAGE_MAX);
    ssize_t length;
    do
        length = recv(socket, bytes, SYSTEMD_MESSAGE_MAX, 0);
    while (length < 0 && errno == EINTR);
    if (length <= 0)
        return error_new(ERROR_UNAVAILABLE, "the helper " SYSTEMD_HELPER " ended without an answer");
    void *document;
    TRY(schema_read(&systemd_reply_schema, "the answer of " SYSTEMD_HELPER, bytes, (size_t)length,
                    &document));
    struct systemd_reply *reply = document;
    struct error *error = NULL;
    if (reply->error != NULL) {
        error = error_new(ERROR_UNAVAILABLE, "%s", reply->error);
        *error_name = reply->error_name;
        reply->error_name = NULL;
    }
    schema_free(&systemd_reply_schema, reply);
    return error;
}

struct error *systemd_ask(const struct systemd_request *request, char **error_name) {
    *error_name = NULL;
    fd_owned int helper = sys_helper_open(SYSTEMD_HELPER);
    if (helper < 0)
        return error_new(ERROR_UNAVAILABLE,
                         "the systemd cgroup driver needs the helper " SYSTEMD_HELPER
                         " beside pinfold or in " PINFOLD_LIBEXECDIR
                         " (built where libsystemd-dev is installed); --cgroup-manager cgroupfs needs none");
    fd_owned int own = -1;
    fd_owned int theirs = -1;
    TRY(fd_pair(&own, &theirs));
    json_owned struct json_writer json = {0};
    schema_write(&systemd_request_schema, request, &json);
    if (json.text.length > SYSTEMD_MESSAGE_MAX)
        return error_new(ERROR_INVALID, "the properties of %s are more than %d bytes", request->unit,
                         SYSTEMD_MESSAGE_MAX);
    if (send(own, text_string(&json.text), json.text.length, MSG_NOSIGNAL) < 0)
        return error_system(errno, "send", "a request for systemd");
    struct launch launch = {.helper = helper, .socket = theirs};
    int pidfd = -1;
    pid_t pid = sys_spawn(helper_run, &launch, &pidfd);
    if (pid < 0)
        return error_system(errno, "fork", SYSTEMD_HELPER);
    fd_close(fd_take(&theirs));
    struct error *error = reply_receive(own, error_name);
    /* A container's init may hold a copy of this socket until it is the container's program. */
    (void)shutdown(own, SHUT_RDWR);
    (void)!sys_pidfd_send_signal(pidfd, SIGKILL);
    fd_close(pidfd);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return error;
}

void systemd_addresses(bool user_manager, const char *runtime_directory, const char *bus_address,
                       struct string_list *addresses) {
    if (!user_manager) {
        string_list_append(addresses, "unix:path=/run/systemd/private");
        string_list_append(addresses, "unix:path=/run/dbus/system_bus_socket");
        return;
    }
    if (runtime_directory != NULL)
        string_list_append_owned(addresses,
                                 text_formatted("unix:path=%s/systemd/private", runtime_directory));
    if (bus_address != NULL && bus_address[0] != '\0')
        string_list_append(addresses, bus_address);
    if (runtime_directory != NULL)
        string_list_append_owned(addresses, text_formatted("unix:path=%s/bus", runtime_directory));
}
