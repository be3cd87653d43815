/* Errors are values. A function that can fail is declared `fallible name(...)`: it returns NULL for
 * success, else an error that the caller owns, and the compiler refuses to see it ignored.
 *
 * The wording that callers (podman, dockerd, containerd, CRI-O) match is made here, in one table;
 * see docs/errors in the caller contract: "permission denied" anywhere becomes exit code 126 in podman,
 * "no such file or directory" anywhere becomes 127, so plain system errors are worded without those. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>

enum error_kind {
    ERROR_SYSTEM,      /* a system call failed; has an errno */
    ERROR_INVALID,     /* a document or argument is wrong: the message names the field and what is allowed */
    ERROR_USAGE,       /* the command line is wrong */
    ERROR_REFUSED,     /* the policy refuses what was asked; the message carries the reason code */
    ERROR_UNAVAILABLE, /* this machine lacks a mechanism that was promised */
    ERROR_CONTAINER_MISSING,   /* "container does not exist" */
    ERROR_CONTAINER_EXISTS,    /* "container with given ID already exists" */
    ERROR_ID_FORMAT,           /* "invalid container ID format" */
    ERROR_NOT_RUNNING,         /* "container not running" */
    ERROR_ALREADY_STARTED,     /* "cannot start an already running container" */
    ERROR_EXEC_STOPPED,        /* "cannot exec in a stopped container" */
    ERROR_NOT_STOPPED,         /* "cannot delete container X that is not stopped: STATUS" */
    ERROR_COMMAND_NOT_FOUND,   /* exec: "X": executable file not found in $PATH: no such file or directory */
    ERROR_COMMAND_MISSING,     /* exec: "/X": stat /X: no such file or directory */
    ERROR_COMMAND_DENIED,      /* exec: "/X": permission denied */
    ERROR_COMMAND_DIRECTORY,   /* exec: "/X": is a directory: permission denied */
    ERROR_COMMAND_FORMAT,      /* exec: "/X": exec format error */
    ERROR_COMMAND_INTERPRETER, /* exec: "/X": no such file or directory, of what "#!" or ELF names */
    ERROR_KIND_COUNT
};

struct error {
    enum error_kind kind;
    int number;    /* the errno captured at the call, 0 where none applies */
    char *message; /* one line, complete, for a person and for the callers' matching */
};

#define fallible __attribute__((warn_unused_result)) struct error *

/* A system call failed with `number` (errno, captured by the caller at the call). `operation` is the call or
 * what it was to do ("open", "mount"), the format names its subject. */
fallible error_system(int number, const char *operation, const char *subject, ...)
    __attribute__((returns_nonnull, format(printf, 3, 4)));

/* An error of a kind with a message of its own, for ERROR_INVALID, ERROR_USAGE, ERROR_REFUSED,
 * ERROR_UNAVAILABLE. */
fallible error_new(enum error_kind kind, const char *format, ...)
    __attribute__((returns_nonnull, format(printf, 2, 3)));

/* An error whose whole wording comes from the table of error.c; `subject` (may be NULL) fills its place. */
fallible error_known(enum error_kind kind, const char *subject) __attribute__((returns_nonnull));

/* Puts `context: ` before the message of `cause`; NULL stays NULL. Kind and errno are kept. */
fallible error_context(struct error *cause, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Sends an error (or, for NULL, "no error") as one message through a SOCK_SEQPACKET socket, and receives it
 * at the other end; a peer that closed without a word becomes ERROR_SYSTEM with EPIPE. Neither allocates
 * before the message has arrived, so a child may use it before exec. error_receive returns what was sent. */
void error_send(int socket, const struct error *error);
fallible error_receive(int socket);

void error_free(struct error *error);
void error_cleanup(struct error **error);

/* For an error that is of no consequence at its place; the reason stands in a comment beside the call. */
void error_ignore(struct error *error);

#define error_owned __attribute__((cleanup(error_cleanup))) struct error *

/* Returns from the enclosing fallible function when `expression` fails. */
#define TRY(expression)                                                                                      \
    do {                                                                                                     \
        struct error *try_error = (expression);                                                              \
        if (try_error != NULL)                                                                               \
            return try_error;                                                                                \
    } while (0)
