#include "container/seccomp_agent.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "process/unix_socket.h"

#define PATIENCE_SECONDS 10

struct error *seccomp_agent_connect(const struct container *container, struct seccomp_agent *out) {
    *out = (struct seccomp_agent)SECCOMP_AGENT_NONE;
    const char *path = container->state->seccomp_agent;
    if (path == NULL)
        return NULL;
    /* An agent that takes no more connections, or does not read, must not hold the container for ever. */
    fd_owned int connection = -1;
    TRY(unix_socket_connect(path, SOCK_STREAM, PATIENCE_SECONDS, "linux.seccomp.listenerPath", &connection));
    fd_owned int document = memfd_create("container-process-state", MFD_CLOEXEC);
    if (document < 0)
        return error_system(errno, "memfd_create", "the container process state");
    *out = (struct seccomp_agent){fd_take(&connection), fd_take(&document)};
    return NULL;
}

struct error *seccomp_agent_describe(const struct seccomp_agent *agent, const struct container *container,
                                     const char *status, pid_t pid) {
    if (agent->connection < 0)
        return NULL;
    json_owned struct json_writer json = {0};
    json_object_begin(&json);
    json_member_string(&json, "ociVersion", CONTAINER_STATE_VERSION);
    json_key(&json, "fds");
    json_array_begin(&json);
    json_string(&json, "seccompFd");
    json_array_end(&json);
    json_member_integer(&json, "pid", pid);
    json_member_string_optional(&json, "metadata", container->state->seccomp_agent_metadata);
    json_key(&json, "state");
    container_state_write(container, status, &json);
    json_object_end(&json);
    return fd_write_all(agent->document, text_string(&json.text), json.text.length,
                        "the container process state");
}

struct error *seccomp_agent_give(const struct seccomp_agent *agent, int listener) {
    struct stat status;
    if (fstat(agent->document, &status) < 0)
        return error_system(errno, "stat", "the container process state");
    size_t length = (size_t)status.st_size;
    void *document = mmap(NULL, length, PROT_READ, MAP_PRIVATE, agent->document, 0);
    if (document == MAP_FAILED)
        return error_system(errno, "map", "the container process state");
    struct error *error = fd_send(agent->connection, document, length, &listener, 1);
    munmap(document, length);
    return error_context(error, "seccomp agent (linux.seccomp.listenerPath)");
}

void seccomp_agent_close(struct seccomp_agent *agent) {
    fd_close(agent->connection);
    fd_close(agent->document);
    *agent = (struct seccomp_agent)SECCOMP_AGENT_NONE;
}
