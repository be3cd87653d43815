/* The denial record (DESIGN.md section 8): the only module that writes records. An event becomes one OCSF 1.8
 * object on one line, appended to the container's file; repeats are coalesced, the rate is bounded, and what
 * was not written is counted in the next one that is. One process writes a container's records at a time: the
 * warden. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "libocispec/schema.h"

/* What all records of one container share. Written into the warden's plan as JSON (record_subject_schema). */
struct record_subject {
    char *container_id;
    char *container_name; /* from the engine's annotations, or the id */
    char *image;          /* name, or NULL */
    char *image_digest;   /* "sha256:...", or NULL */
    char *pod_uuid;       /* or NULL */
    char *runtime;        /* that runs it, NULL: pinfold */
    char *run_id;         /* metadata.correlation_uid */
    char *hostname;       /* device.hostname: the machine's */
    char *policy_name;
    char *policy_digest; /* hexadecimal SHA-256 of the effective policy */
    char *log_path;
    int64_t log_keep_ms; /* how long logs of ended containers are kept; 0: for ever */
    int64_t log_total;   /* bytes that all logs of the directory may have; 0: without a bound */
    char *journald;      /* "auto": to the journal where there is one, "true": it must be there; NULL: not */
    char *otlp_path;     /* a file that OTLP/JSON is appended to, or NULL */
};
extern const struct schema record_subject_schema;

enum record_class {
    RECORD_FILE,      /* 1001 File System Activity */
    RECORD_PROCESS,   /* 1007 Process Activity */
    RECORD_NETWORK,   /* 4001 Network Activity */
    RECORD_HTTP,      /* 4002 HTTP Activity */
    RECORD_DNS,       /* 4003 DNS Activity */
    RECORD_FINDING,   /* 2004 Detection Finding */
    RECORD_LIFECYCLE, /* 6002 Application Lifecycle */
    RECORD_POLICY     /* 5019 Device Config State Change */
};

enum record_action { RECORD_ALLOWED = 1, RECORD_DENIED = 2, RECORD_OBSERVED = 3 };

/* A process as the kernel showed it when the event came; every string may be hostile, none needs to be valid
 * UTF-8. */
struct record_process {
    pid_t pid;          /* 0: unknown */
    char *name;         /* comm */
    char *executable;   /* path of the executable, as seen in the container */
    char *command_line; /* argv joined by spaces, bounded; secrets are redacted by record_write */
    int64_t uid;        /* in the runtime's user namespace; -1 unknown */
};
void record_process_clear(struct record_process *process);
/* Reads /proc/PID for a process of a container. Never fails: what cannot be read stays NULL. */
void record_process_read(pid_t pid, struct record_process *out);

/* One event. Strings are borrowed for the call. Zero or NULL: does not apply. */
struct record_event {
    enum record_class class_id;
    int activity_id;           /* of the class */
    const char *activity_name; /* with activity_id 99, for example the system call */
    enum record_action action;
    const char *reason;      /* the reason code, status_detail: "fs.write.read_only" */
    const char *message;     /* one sentence for a person */
    const char *rule;        /* the policy line that decided, "filesystem.default: deny" */
    const char *rule_origin; /* where that line stands, "built-in agent" */
    const char *remedy;      /* the exact policy line that would allow it, or NULL */
    const struct record_process *process;
    const char *exec_id;
    int64_t time_ms;       /* since the epoch; 0: now */
    const char *file_path; /* RECORD_FILE: the object, as seen in the container */
    const char *subject;   /* RECORD_FINDING: name of the variable, mount, capability, limit ...;
                            * RECORD_DNS: the name asked for; RECORD_NETWORK, RECORD_HTTP: the destination's
                            * name, if known */
    const char *address;   /* RECORD_NETWORK: destination, textual; 0 port: none */
    uint16_t port;
    bool inbound; /* RECORD_NETWORK: to the container, from source_address */
    const char *source_address;
    uint16_t source_port;
    const char *protocol; /* "tcp", "udp", "icmp", ... */
    int protocol_number;
    int exit_code; /* RECORD_LIFECYCLE: of init; RECORD_PROCESS: of the process; with has_exit_code */
    bool has_exit_code;
    int signal;                          /* RECORD_PROCESS: the one that ended it, or 0 */
    const struct record_process *parent; /* RECORD_PROCESS: who launched it, or NULL */
    const char *directory;               /* RECORD_PROCESS: its working directory, or NULL */
    int64_t begun_ms, ended_ms;          /* RECORD_PROCESS: since the epoch; 0: unknown */
    uint64_t suppressed; /* attempts that the kernel counted and never showed: added to unmapped.suppressed */
    const char
        *previous_policy; /* RECORD_POLICY: the digest of the one that was in force until then, or NULL */
    const char *route;    /* the preset that a host came from, or NULL */
    bool has_traffic;     /* RECORD_NETWORK, of a connection that was closed. It is no repeat of any other. */
    uint64_t bytes_in, bytes_out; /* to the container, from it */
    int64_t duration_ms;
    const char *method; /* RECORD_HTTP: of the request, or NULL */
    const char *asked;  /* RECORD_HTTP: the host that the request names, or NULL */
    const char *scheme; /* RECORD_HTTP: "http", "https" */
};

struct record_log;

/* Opens (and creates, 0640 root:adm; rootless 0600) the file named by the subject, for append. `sequence` is
 * the counter that all writers of this container share; it may lie in memory shared with another process. It
 * is NULL for a counter of its own, which continues after the highest sequence of this run id in the file.
 * Borrows subject. */
fallible record_log_open(const struct record_subject *subject, uint64_t *sequence, struct record_log **out);
/* Another policy is in force: the subject's, in what is written from here on. */
void record_log_change_policy(struct record_log *log, const struct record_subject *subject);
/* Coalesces and writes. A failed write is kept as a suppressed count and returned. Repeats of the same
 * (class, activity, action, reason, object, exec, executable) are written at 1, 2, 4, 8, ... and when
 * record_log_flush finds them due; `count` is what a record covers since the last one of its key, from
 * start_time to end_time, so that the sum of `count` (1 where absent) and `unmapped.suppressed` over the run
 * is the number of attempts. At most 200 records a second (a burst of 400) for denials, as many for programs
 * that are run, and as many for the rest. The record of the end (RECORD_LIFECYCLE, 4) is preceded by all that
 * is owed. */
fallible record_write(struct record_log *log, const struct record_event *event);
/* Where a container sees its own denials: a read-only directory that the warden's file is in. */
#define RECORD_INSIDE_DIRECTORY "/run/pinfold"

/* From now on each record of a denial is also written to this file, which the container sees: what, why, and
 * what would allow it, in few words (log.inside). It is emptied when it is full, and says so. Takes the
 * descriptor, which must be open for append. A failure there changes nothing in the log. */
void record_log_show_inside(struct record_log *log, int file);
/* Milliseconds until record_log_flush has something to do, -1 for nothing. */
int record_log_timeout(const struct record_log *log);
/* Writes the repeat counts that are still owed; `final` also those whose time has not come. */
fallible record_log_flush(struct record_log *log, bool final);
void record_log_close(struct record_log *log);
/* Whether this machine has a journal that this process may write to. */
bool record_has_journal(void);
/* Removes what is too old or too much of the logs beside this one (log.keep, log.total): for a moment when
 * nobody waits. */
void record_log_tidy(struct record_log *log);

/* The default path of a container's log: /var/log/pinfold/ID.jsonl for root, else below the user's state
 * directory
 * (`home` is the owner's home). The caller frees it. */
char *record_log_path(const char *container_id, bool root, const char *home);
