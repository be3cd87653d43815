#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"

/* %s is the subject. Each line is matched by some caller's code or tests; caller-contract.md 1.3. */
static const char *const known_wording[ERROR_KIND_COUNT] = {
    [ERROR_CONTAINER_MISSING] = "container does not exist",
    [ERROR_CONTAINER_EXISTS] = "container with given ID already exists",
    [ERROR_ID_FORMAT] = "invalid container ID format",
    [ERROR_NOT_RUNNING] = "container not running",
    [ERROR_ALREADY_STARTED] = "cannot start an already running container",
    [ERROR_EXEC_STOPPED] = "cannot exec in a stopped container",
    [ERROR_COMMAND_NOT_FOUND] = "exec: \"%s\": executable file not found in $PATH: no such file or directory",
    [ERROR_COMMAND_MISSING] = "exec: \"%1$s\": stat %1$s: no such file or directory",
    [ERROR_COMMAND_DENIED] = "exec: \"%s\": permission denied",
    /* Both at once: dockerd looks for the first, podman for the second. */
    [ERROR_COMMAND_DIRECTORY] = "exec: \"%s\": is a directory: permission denied",
    [ERROR_COMMAND_FORMAT] = "exec: \"%s\": exec format error (neither a program of this machine nor a "
                             "script with a \"#!\" line)",
    [ERROR_COMMAND_INTERPRETER] = "exec: \"%s\": no such file or directory: the interpreter that its \"#!\" "
                                  "line or its ELF header names",
};

/* strerror's words for these three make podman and dockerd report 126 or 127, which mean "the command cannot
 * be run"; only the ERROR_COMMAND kinds may say that. */
static const char *system_wording(int number) {
    switch (number) {
    case ENOENT:
        return "nothing of that name (ENOENT)";
    case EACCES:
        return "access refused by the system (EACCES)";
    case EPERM:
        return "not allowed by the system (EPERM)";
    default:
        return NULL;
    }
}

static struct error *error_make(enum error_kind kind, int number, char *message) {
    struct error *error = memory_zeroed(sizeof *error);
    error->kind = kind;
    error->number = number;
    error->message = message;
    return error;
}

struct error *error_system(int number, const char *operation, const char *subject, ...) {
    struct text text = {0};
    text_append(&text, operation);
    if (subject != NULL && subject[0] != '\0') {
        va_list arguments;
        va_start(arguments, subject);
        text_append(&text, " ");
        text_vformat(&text, subject, arguments);
        va_end(arguments);
    }
    const char *wording = system_wording(number);
    const char *name = strerrorname_np(number);
    if (wording != NULL)
        text_format(&text, ": %s", wording);
    else
        text_format(&text, ": %s (%s)", strerrordesc_np(number) ? strerrordesc_np(number) : "unknown error",
                    name ? name : "?");
    return error_make(ERROR_SYSTEM, number, text_take(&text));
}

struct error *error_new(enum error_kind kind, const char *format, ...) {
    struct text text = {0};
    va_list arguments;
    va_start(arguments, format);
    text_vformat(&text, format, arguments);
    va_end(arguments);
    return error_make(kind, 0, text_take(&text));
}

struct error *error_known(enum error_kind kind, const char *subject) {
    struct text text = {0};
    const char *wording = known_wording[kind];
    /* The table's formats are constants of this file; the compiler cannot see that through the array. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
    text_format(&text, wording ? wording : "unknown error", subject ? subject : "");
#pragma GCC diagnostic pop
    return error_make(kind, 0, text_take(&text));
}

struct error *error_context(struct error *cause, const char *format, ...) {
    if (cause == NULL)
        return NULL;
    struct text text = {0};
    va_list arguments;
    va_start(arguments, format);
    text_vformat(&text, format, arguments);
    va_end(arguments);
    text_format(&text, ": %s", cause->message);
    free(cause->message);
    cause->message = text_take(&text);
    return cause;
}

/* The wire form of an error between a child and its parent. */
struct error_packet {
    int failed;
    int kind;
    int number;
    char message[4096];
};

void error_send(int socket, const struct error *error) {
    struct error_packet packet = {0};
    if (error != NULL) {
        packet.failed = 1;
        packet.kind = error->kind;
        packet.number = error->number;
        snprintf(packet.message, sizeof packet.message, "%s", error->message);
    }
    /* A peer that is gone needs no answer. */
    (void)!send(socket, &packet, sizeof packet, MSG_NOSIGNAL);
}

struct error *error_receive(int socket) {
    struct error_packet packet;
    ssize_t length = fd_receive_message(socket, &packet, sizeof packet);
    if (length < 0)
        return error_system(errno, "receive", "the answer of a process of this container");
    if ((size_t)length != sizeof packet)
        return error_system(EPIPE, "receive", "the answer of a process of this container");
    if (!packet.failed)
        return NULL;
    packet.message[sizeof packet.message - 1] = '\0';
    return error_make((enum error_kind)packet.kind, packet.number, memory_copy_string(packet.message));
}

void error_free(struct error *error) {
    if (error == NULL)
        return;
    free(error->message);
    free(error);
}

void error_cleanup(struct error **error) {
    error_free(*error);
    *error = NULL;
}

void error_ignore(struct error *error) {
    error_free(error);
}
