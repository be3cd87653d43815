/* pinfold-systemd: makes, changes and stops a container's scope for the systemd cgroup driver. Started by the
 * runtime with a socket as its standard input and an empty environment; takes one request, answers, ends
 * (cgroup/systemd_protocol.h). The one part of pinfold that is linked dynamically. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <systemd/sd-bus.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "cgroup/systemd_protocol.h"

/* A machine on which hundreds of containers start at once answers late (runc #4853). */
#define PATIENCE_USEC (UINT64_C(90) * 1000 * 1000)
#define SERVICE "org.freedesktop.systemd1"
#define MANAGER_PATH "/org/freedesktop/systemd1"
#define MANAGER "org.freedesktop.systemd1.Manager"

/* The outcome of a call: a negative errno, with systemd's name and words where it has said any. */
struct outcome {
    int result;
    char *name;
    char *words;
};

static void outcome_clear(struct outcome *outcome) {
    free(outcome->name);
    free(outcome->words);
    *outcome = (struct outcome){0};
}

static void outcome_from(struct outcome *outcome, int result, const sd_bus_error *error) {
    outcome_clear(outcome);
    outcome->result = result;
    if (result >= 0)
        return;
    if (error != NULL && error->name != NULL)
        outcome->name = memory_copy_string(error->name);
    outcome->words =
        memory_copy_string(error != NULL && error->message != NULL ? error->message : strerror(-result));
}

static bool outcome_is(const struct outcome *outcome, const char *name) {
    return outcome->result < 0 && outcome->name != NULL && strcmp(outcome->name, name) == 0;
}

/* ---- the connection ---- */

struct connection {
    sd_bus *bus;
    bool direct;        /* to the manager itself, without a message bus between */
    bool same_pids;     /* the peer is a process that we can see: our process ids mean the same to it */
    char *removed_jobs; /* " PATH=RESULT" each, as they are announced */
};

static bool peer_is_visible(sd_bus *bus) {
    struct ucred peer;
    socklen_t length = sizeof peer;
    int fd = sd_bus_get_fd(bus);
    return fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.pid > 0;
}

static int connect_to(const char *address, struct connection *out) {
    sd_bus *bus = NULL;
    int result = sd_bus_new(&bus);
    if (result >= 0)
        result = sd_bus_set_address(bus, address);
    bool direct = strstr(address, "/systemd/private") != NULL;
    if (result >= 0 && !direct)
        result = sd_bus_set_bus_client(bus, true);
    if (result >= 0)
        result = sd_bus_start(bus);
    /* The connection is made in the background: a first call shows whether there is one. */
    uint64_t unused;
    if (result >= 0) {
        sd_bus_set_method_call_timeout(bus, PATIENCE_USEC);
        result = sd_bus_get_property_trivial(bus, direct ? NULL : SERVICE, MANAGER_PATH, MANAGER,
                                             "UserspaceTimestampMonotonic", NULL, 't', &unused);
    }
    if (result < 0) {
        sd_bus_unref(bus);
        return result;
    }
    out->bus = bus;
    out->direct = direct;
    out->same_pids = peer_is_visible(bus);
    return 0;
}

static int connection_open(const struct string_list *addresses, struct connection *out) {
    int result = -ENOENT;
    for (size_t i = 0; i < addresses->count; i++) {
        int attempt = connect_to(addresses->items[i], out);
        if (attempt >= 0)
            return 0;
        if (result == -ENOENT || attempt != -ENOENT)
            result = attempt; /* what failed for another reason than "is not there" tells more */
    }
    return result;
}

static const char *service_of(const struct connection *connection) {
    return connection->direct ? NULL : SERVICE;
}

/* ---- jobs ---- */

static int job_removed(sd_bus_message *message, void *data, sd_bus_error *unused) {
    (void)unused;
    struct connection *connection = data;
    uint32_t id;
    const char *path, *unit, *result;
    if (sd_bus_message_read(message, "uoss", &id, &path, &unit, &result) < 0)
        return 0;
    char *longer =
        text_formatted("%s %s=%s ", connection->removed_jobs ? connection->removed_jobs : "", path, result);
    free(connection->removed_jobs);
    connection->removed_jobs = longer;
    return 0;
}

/* Before a job is asked for: the announcement of its end must not be missed. */
static int jobs_watch(struct connection *connection) {
    int result = sd_bus_match_signal(connection->bus, NULL, service_of(connection), MANAGER_PATH, MANAGER,
                                     "JobRemoved", job_removed, connection);
    if (result < 0)
        return result;
    sd_bus_error error = SD_BUS_ERROR_NULL;
    result = sd_bus_call_method(connection->bus, service_of(connection), MANAGER_PATH, MANAGER, "Subscribe",
                                &error, NULL, NULL);
    bool already = sd_bus_error_has_name(&error, "org.freedesktop.systemd1.AlreadySubscribed");
    sd_bus_error_free(&error);
    return already ? 0 : result;
}

static uint64_t now_usec(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void job_await(struct connection *connection, const char *job, struct outcome *outcome) {
    memory_owned char *sought = text_formatted(" %s=", job);
    uint64_t deadline = now_usec() + PATIENCE_USEC;
    for (;;) {
        const char *found =
            connection->removed_jobs == NULL ? NULL : strstr(connection->removed_jobs, sought);
        if (found != NULL) {
            found += strlen(sought);
            size_t length = strcspn(found, " ");
            if (length == strlen("done") && strncmp(found, "done", length) == 0)
                return;
            outcome_clear(outcome);
            outcome->result = -EIO;
            outcome->words = text_formatted("its job ended with the result \"%.*s\"", (int)length, found);
            return;
        }
        int result = sd_bus_process(connection->bus, NULL);
        if (result > 0)
            continue;
        if (result == 0) {
            if (now_usec() > deadline)
                result = -ETIMEDOUT;
            else
                result = sd_bus_wait(connection->bus, deadline - now_usec());
        }
        if (result < 0 && result != -EINTR) {
            outcome_from(outcome, result, NULL);
            return;
        }
    }
}

/* ---- properties ---- */

static int value_append(sd_bus_message *message, char type, const char *value) {
    switch (type) {
    case 'b':
        return sd_bus_message_append(message, "b", strcmp(value, "true") == 0);
    case 'y':
        return sd_bus_message_append(message, "y", (uint8_t)strtoul(value, NULL, 10));
    case 'n':
        return sd_bus_message_append(message, "n", (int16_t)strtol(value, NULL, 10));
    case 'q':
        return sd_bus_message_append(message, "q", (uint16_t)strtoul(value, NULL, 10));
    case 'i':
        return sd_bus_message_append(message, "i", (int32_t)strtol(value, NULL, 10));
    case 'u':
        return sd_bus_message_append(message, "u", (uint32_t)strtoul(value, NULL, 10));
    case 'x':
        return sd_bus_message_append(message, "x", strtoll(value, NULL, 10));
    case 't':
        return sd_bus_message_append(message, "t", strtoull(value, NULL, 10));
    case 'd':
        return sd_bus_message_append(message, "d", strtod(value, NULL));
    case 's':
        return sd_bus_message_append(message, "s", value);
    default:
        return -EINVAL;
    }
}

static int array_append(sd_bus_message *message, const char *element, const struct string_list *values) {
    int result = sd_bus_message_open_container(message, 'a', element);
    bool pairs = strcmp(element, "(ss)") == 0;
    for (size_t i = 0; result >= 0 && i + pairs < values->count; i += 1 + pairs)
        result = pairs ? sd_bus_message_append(message, "(ss)", values->items[i], values->items[i + 1])
                       : value_append(message, element[0], values->items[i]);
    return result < 0 ? result : sd_bus_message_close_container(message);
}

static int property_append(sd_bus_message *message, const struct systemd_property *property) {
    int result = sd_bus_message_open_container(message, 'r', "sv");
    if (result >= 0)
        result = sd_bus_message_append(message, "s", property->name);
    if (result >= 0)
        result = sd_bus_message_open_container(message, 'v', property->type);
    if (result >= 0 && property->type[0] == 'a')
        result = array_append(message, property->type + 1, &property->values);
    else if (result >= 0)
        result = property->values.count == 1
                     ? value_append(message, property->type[0], property->values.items[0])
                     : -EINVAL;
    if (result >= 0)
        result = sd_bus_message_close_container(message);
    return result < 0 ? result : sd_bus_message_close_container(message);
}

static int properties_append(sd_bus_message *message, const struct systemd_properties *properties) {
    int result = 0;
    for (size_t i = 0; result >= 0 && i < properties->items_count; i++)
        result = property_append(message, &properties->items[i]);
    return result;
}

/* ---- calls ---- */

/* Sends a message that was put together with this `result`, and takes it from the caller. With `job`, the
 * reply names one. */
static void call(struct connection *connection, sd_bus_message *message, int result, char **job,
                 struct outcome *outcome) {
    sd_bus_error error = SD_BUS_ERROR_NULL;
    sd_bus_message *reply = NULL;
    if (result >= 0)
        result = sd_bus_call(connection->bus, message, PATIENCE_USEC, &error, &reply);
    const char *path;
    if (result >= 0 && job != NULL) {
        result = sd_bus_message_read(reply, "o", &path);
        if (result >= 0)
            *job = memory_copy_string(path);
    }
    outcome_from(outcome, result, &error);
    sd_bus_message_unref(reply);
    sd_bus_message_unref(message);
    sd_bus_error_free(&error);
}

static int method(const struct connection *connection, const char *name, sd_bus_message **message) {
    return sd_bus_message_new_method_call(connection->bus, message, service_of(connection), MANAGER_PATH,
                                          MANAGER, name);
}

static void unit_call(struct connection *connection, const char *name, const char *unit,
                      struct outcome *outcome) {
    sd_bus_message *message = NULL;
    int result = method(connection, name, &message);
    if (result >= 0)
        result = sd_bus_message_append(message, "s", unit);
    call(connection, message, result, NULL, outcome);
}

/* By descriptor, which means one process to everybody, where systemd takes that (253 and later); else by
 * number. */
static int process_append(sd_bus_message *message, pid_t pid, int pidfd) {
    if (pidfd < 0)
        return sd_bus_message_append(message, "(sv)", "PIDs", "au", 1, (uint32_t)pid);
    int result = sd_bus_message_open_container(message, 'r', "sv");
    if (result >= 0)
        result = sd_bus_message_append(message, "s", "PIDFDs");
    if (result >= 0)
        result = sd_bus_message_append(message, "v", "ah", 1, pidfd);
    return result < 0 ? result : sd_bus_message_close_container(message);
}

static void scope_start_once(struct connection *connection, const struct systemd_request *request, int pidfd,
                             char **job, struct outcome *outcome) {
    sd_bus_message *message = NULL;
    int result = method(connection, "StartTransientUnit", &message);
    if (result >= 0)
        result = sd_bus_message_append(message, "ss", request->unit, "fail");
    if (result >= 0)
        result = sd_bus_message_open_container(message, 'a', "(sv)");
    if (result >= 0)
        result = sd_bus_message_append(message, "(sv)", "Description", "s", request->description);
    if (result >= 0)
        result = properties_append(message, &request->properties);
    if (result >= 0)
        result = sd_bus_message_append(message, "(sv)", "Slice", "s", request->slice);
    if (result >= 0)
        result = process_append(message, (pid_t)request->pid, pidfd);
    if (result >= 0)
        result = sd_bus_message_close_container(message);
    if (result >= 0)
        result = sd_bus_message_append(message, "a(sa(sv))", 0);
    call(connection, message, result, job, outcome);
}

static void scope_start(struct connection *connection, const struct systemd_request *request, char **job,
                        struct outcome *outcome) {
    fd_owned int pidfd = pidfd_open((pid_t)request->pid, 0);
    if (pidfd >= 0)
        scope_start_once(connection, request, pidfd, job, outcome);
    /* An older systemd has no such property; which one it does not know, only its words say. */
    bool unknown = outcome_is(outcome, "org.freedesktop.DBus.Error.PropertyReadOnly") &&
                   strstr(outcome->words, "PIDFDs") != NULL;
    if (pidfd >= 0 && !unknown)
        return;
    if (connection->same_pids) {
        scope_start_once(connection, request, -1, job, outcome);
        return;
    }
    outcome_clear(outcome);
    outcome->result = -EOPNOTSUPP;
    outcome->words = memory_copy_string("systemd is in another process namespace, and takes no descriptor of "
                                        "a process (it is older than version 253)");
}

static void start(struct connection *connection, const struct systemd_request *request,
                  struct outcome *outcome) {
    int watched = jobs_watch(connection);
    if (watched < 0) {
        outcome_from(outcome, watched, NULL);
        return;
    }
    memory_owned char *job = NULL;
    scope_start(connection, request, &job, outcome);
    if (outcome_is(outcome, "org.freedesktop.systemd1.UnitExists")) {
        /* One that has failed is in nobody's use (runc #3780, crun #1138); any other is another container's.
         */
        struct outcome forgotten = {0};
        unit_call(connection, "ResetFailedUnit", request->unit, &forgotten);
        outcome_clear(&forgotten);
        scope_start(connection, request, &job, outcome);
    }
    if (outcome->result >= 0)
        job_await(connection, job, outcome);
}

static void stop(struct connection *connection, const struct systemd_request *request,
                 struct outcome *outcome) {
    memory_owned char *job = NULL;
    sd_bus_message *message = NULL;
    int result = jobs_watch(connection);
    if (result >= 0)
        result = method(connection, "StopUnit", &message);
    if (result >= 0)
        result = sd_bus_message_append(message, "ss", request->unit, "replace");
    call(connection, message, result, &job, outcome);
    if (outcome->result >= 0)
        job_await(connection, job, outcome);
    if (outcome_is(outcome, "org.freedesktop.systemd1.NoSuchUnit"))
        outcome_clear(outcome);
    /* A unit that is left failed is in the way of the next of its name. */
    struct outcome forgotten = {0};
    unit_call(connection, "ResetFailedUnit", request->unit, &forgotten);
    outcome_clear(&forgotten);
}

static void set(struct connection *connection, const struct systemd_request *request,
                struct outcome *outcome) {
    sd_bus_message *message = NULL;
    int result = method(connection, "SetUnitProperties", &message);
    if (result >= 0)
        result = sd_bus_message_append(message, "sb", request->unit, 1);
    if (result >= 0)
        result = sd_bus_message_open_container(message, 'a', "(sv)");
    if (result >= 0)
        result = properties_append(message, &request->properties);
    if (result >= 0)
        result = sd_bus_message_close_container(message);
    call(connection, message, result, NULL, outcome);
}

static void attach(struct connection *connection, const struct systemd_request *request,
                   struct outcome *outcome) {
    sd_bus_message *message = NULL;
    int result = connection->same_pids ? method(connection, "AttachProcessesToUnit", &message) : -EOPNOTSUPP;
    if (result >= 0)
        result = sd_bus_message_append(message, "ssau", request->unit, "", 1, request->pid);
    call(connection, message, result, NULL, outcome);
}

static const struct {
    const char *name;
    void (*run)(struct connection *, const struct systemd_request *, struct outcome *);
} operations[] = {{SYSTEMD_START, start}, {SYSTEMD_STOP, stop}, {SYSTEMD_SET, set}, {SYSTEMD_ATTACH, attach}};

static void request_run(const struct systemd_request *request, struct outcome *outcome) {
    struct connection connection = {0};
    int connected = connection_open(&request->addresses, &connection);
    if (connected < 0) {
        outcome->result = connected;
        outcome->words =
            text_formatted("systemd cannot be reached at %s: %s",
                           request->addresses.count > 0 ? request->addresses.items[0] : "any address",
                           connected == -ENOENT ? "it does not run here" : strerror(-connected));
        return;
    }
    outcome->result = -EINVAL;
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++)
        if (strcmp(request->operation, operations[i].name) == 0) {
            outcome->result = 0;
            operations[i].run(&connection, request, outcome);
        }
    sd_bus_flush_close_unref(connection.bus);
    free(connection.removed_jobs);
}

int main(void) {
    char *bytes = memory_zeroed(SYSTEMD_MESSAGE_MAX);
    ssize_t length = recv(STDIN_FILENO, bytes, SYSTEMD_MESSAGE_MAX, 0);
    if (length <= 0) {
        fprintf(stderr, SYSTEMD_HELPER ": this program is pinfold's own, which speaks to it over a socket\n");
        return 1;
    }
    void *document = NULL;
    struct outcome outcome = {0};
    error_owned error = schema_read(&systemd_request_schema, "request", bytes, (size_t)length, &document);
    if (error != NULL) {
        outcome.result = -EINVAL;
        outcome.words = memory_copy_string(error->message);
    } else {
        request_run(document, &outcome);
    }
    struct systemd_reply reply = {0};
    if (outcome.result < 0) {
        reply.error = outcome.words != NULL ? outcome.words : strerror(-outcome.result);
        reply.error_name = outcome.name;
    }
    json_owned struct json_writer json = {0};
    schema_write(&systemd_reply_schema, &reply, &json);
    ssize_t sent = send(STDIN_FILENO, text_string(&json.text), json.text.length, MSG_NOSIGNAL);
    schema_free(&systemd_request_schema, document);
    outcome_clear(&outcome);
    free(bytes);
    return sent < 0;
}
