#include "container/notify_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "process/unix_socket.h"

#define MOUNT_POINT "/run/notify"
#define BARRIER_PATIENCE_MS 30000
#define MESSAGE_MAX 4096

static const char *caller_socket(void) {
    const char *path = getenv("NOTIFY_SOCKET");
    return path != NULL && (path[0] == '/' || path[0] == '@') ? path : NULL;
}

static bool is_engines_business(const struct oci_config *config) {
    for (size_t i = 0; i < config->process->env.count; i++)
        if (text_starts_with(config->process->env.items[i], "NOTIFY_SOCKET="))
            return true;
    for (size_t i = 0; i < config->mounts_count; i++)
        if (strcmp(config->mounts[i].destination, MOUNT_POINT) == 0)
            return true;
    return false;
}

/* A mount that hardening did not judge: the source is ours. */
static void mount_add(struct hardened *hardened, const char *source) {
    struct oci_config *config = hardened->config;
    size_t count = config->mounts_count + 1;
    config->mounts = memory_resize(config->mounts, count, sizeof *config->mounts);
    hardened->mount_sources = memory_resize(hardened->mount_sources, count, sizeof *hardened->mount_sources);
    hardened->mount_sources[count - 1] = NULL;
    struct oci_mount *mount = &config->mounts[count - 1];
    *mount = (struct oci_mount){.destination = memory_copy_string(MOUNT_POINT),
                                .type = memory_copy_string("bind"),
                                .source = memory_copy_string(source)};
    static const char *const options[] = {"bind", "ro", "nosuid", "nodev", "noexec"};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        string_list_append(&mount->options, options[i]);
    config->mounts_count = count;
}

struct error *notify_socket_offer(const struct container *container, struct hardened *hardened) {
    if (caller_socket() == NULL || is_engines_business(hardened->config))
        return NULL;
    if (mkdirat(container->directory, NOTIFY_DIRECTORY, 0755) < 0)
        return error_system(errno, "mkdir", "%s/" NOTIFY_DIRECTORY, container->path);
    /* Not by the umask: a user of the container has to reach it. */
    if (fchmodat(container->directory, NOTIFY_DIRECTORY, 0755, 0) < 0)
        return error_system(errno, "chmod", "%s/" NOTIFY_DIRECTORY, container->path);
    memory_owned char *source = realpath(container->path, NULL);
    if (source == NULL)
        return error_system(errno, "resolve", "%s", container->path);
    memory_owned char *directory = text_formatted("%s/" NOTIFY_DIRECTORY, source);
    mount_add(hardened, directory);
    string_list_append(&hardened->config->process->env, "NOTIFY_SOCKET=" MOUNT_POINT "/" NOTIFY_SOCKET_NAME);
    return NULL;
}

struct error *notify_socket_listen(const struct container *container, int *listening) {
    *listening = -1;
    fd_owned int directory =
        openat(container->directory, NOTIFY_DIRECTORY, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (caller_socket() == NULL || directory < 0)
        return NULL;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/" NOTIFY_SOCKET_NAME, directory);
    fd_owned int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_system(errno, "make", "a socket");
    (void)!unlinkat(directory, NOTIFY_SOCKET_NAME, 0); /* of a start that was killed */
    if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0)
        return error_system(errno, "bind", "the container's notification socket");
    if (fchmodat(directory, NOTIFY_SOCKET_NAME, 0777, 0) < 0)
        return error_system(errno, "chmod", "the container's notification socket");
    *listening = fd_take(&fd);
    return NULL;
}

/* One datagram: whether a line of it is READY=1. */
static bool says_ready(int listening) {
    char message[MESSAGE_MAX + 1];
    /* No room for descriptors: the kernel closes those that are sent. */
    ssize_t length = recv(listening, message, MESSAGE_MAX, 0);
    if (length <= 0)
        return false;
    message[length] = '\0';
    for (char *line = message; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, "READY=1", 7) == 0 && (line[7] == '\n' || line[7] == '\0'))
            return true;
    }
    return false;
}

static struct error *message_send(int upstream, const char *message) {
    if (send(upstream, message, strlen(message), MSG_NOSIGNAL) < 0)
        return error_system(errno, "send", "to NOTIFY_SOCKET");
    return NULL;
}

/* sd_notify_barrier(3): the manager closes the descriptor when it has read everything before it. */
static struct error *barrier(int upstream) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_system(errno, "make", "a pipe");
    static const char message[] = "BARRIER=1";
    struct error *error = fd_send(upstream, message, sizeof message - 1, &ends[1], 1);
    fd_close(ends[1]);
    struct pollfd end = {.fd = ends[0], .events = POLLIN};
    while (error == NULL && poll(&end, 1, BARRIER_PATIENCE_MS) < 0 && errno == EINTR)
        ;
    fd_close(ends[0]);
    return error;
}

struct error *notify_socket_relay(int listening, int init_pidfd, pid_t pid) {
    for (;;) {
        struct pollfd events[] = {{.fd = listening, .events = POLLIN}, {.fd = init_pidfd, .events = POLLIN}};
        if (poll(events, 2, -1) < 0 && errno != EINTR)
            return error_system(errno, "poll", "the container's notification socket");
        if ((events[0].revents & POLLIN) && says_ready(listening))
            break;
        if (events[1].revents != 0 && events[0].revents == 0)
            return NULL;
    }
    fd_owned int upstream = -1;
    TRY(unix_socket_connect(caller_socket(), SOCK_DGRAM, 0, "NOTIFY_SOCKET", &upstream));
    TRY(message_send(upstream, "READY=1"));
    memory_owned char *main_pid = text_formatted("MAINPID=%d", (int)pid);
    TRY(message_send(upstream, main_pid));
    return barrier(upstream);
}
