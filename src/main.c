/* Global options and the table of subcommands. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "broker/broker.h"
#include "cli/cli.h"
#include "cli/log.h"
#include "cli/options.h"
#include "container/fault.h"
#include "process/binary.h"
#include "warden/warden.h"

static fallible log_command_entry(const struct global_options *global, int argc, char **argv,
                                  int *exit_status) {
    (void)global;
    return log_command(argc, argv, exit_status);
}

static const struct {
    const char *name;
    command_function run;
    const char *help;
    bool enters; /* makes processes in containers */
} commands[] = {
    {"sandbox", sandbox_command, "run a command in a sandbox made from this machine: no image, no engine",
     true},
    {"create", create_command, "create a container from a bundle", true},
    {"start", start_command, "start a created container", false},
    {"run", run_command, "create and start a container", true},
    {"exec", exec_command, "run another process in a container", true},
    {"state", state_command, "print a container's state", false},
    {"kill", kill_command, "send a signal to a container", false},
    {"delete", delete_command, "delete a container", false},
    {"list", list_command, "list containers", false},
    {"ps", ps_command, "list a container's processes", false},
    {"pause", pause_command, "freeze a container", false},
    {"resume", resume_command, "thaw a container", false},
    {"events", events_command, "print what a container uses, and that it ran out of memory", false},
    {"update", update_command, "change a container's limits", false},
    {"log", log_command_entry, "print what was denied", false},
    {"explain", explain_command, "print what holds for a container and why, and run nothing", false},
    {"why", why_command, "say whether a host, path, system call or variable is allowed, and by which line",
     false},
    {"policy", policy_command, "write, check and show policies", false},
    {"checkpoint", checkpoint_command, "not supported: says so", false},
    {"restore", restore_command, "not supported: says so", false},
    {"spec", spec_command, "print or write a config.json", false},
    {"features", features_command, "print what this runtime can do", false},
};

#define COMMAND_COUNT (sizeof commands / sizeof commands[0])

static void usage(void) {
    puts("pinfold: an OCI container runtime whose containers are agent sandboxes\n\n"
         "usage: pinfold [OPTIONS] COMMAND ...\n\ncommands:");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        printf("  %-10s %s\n", commands[i].name, commands[i].help);
    puts("\noptions:\n"
         "  --root DIR               state directories (/run/pinfold, or below $XDG_RUNTIME_DIR)\n"
         "  --policy NAME|FILE       the policy (agent): pinfold policy list names them\n"
         "  --log FILE               where errors are written too\n"
         "  --log-format text|json   how\n"
         "  --cgroup-manager NAME    cgroupfs (the default), systemd or disabled\n"
         "  --systemd-cgroup         the same as --cgroup-manager systemd\n"
         "  --version, --help");
}

/* Root of a user namespace, as which podman runs a user's containers. The number is fixed (PROC_USER_INIT_INO
 * of include/linux/proc_ns.h). */
static bool is_mapped_root(void) {
    struct stat status;
    return stat("/proc/self/ns/user", &status) == 0 && status.st_ino != 0xEFFFFFFDu;
}

static char *default_root(void) {
    const char *runtime_directory = getenv("XDG_RUNTIME_DIR");
    bool usable = runtime_directory != NULL && runtime_directory[0] == '/';
    /* By who we are, not by the variable: engines set it for root as well. */
    if (geteuid() == 0 && !(usable && is_mapped_root() && access(runtime_directory, W_OK) == 0))
        return memory_copy_string("/run/pinfold");
    if (usable)
        return text_formatted("%s/pinfold", runtime_directory);
    return text_formatted("/tmp/pinfold-%u", geteuid());
}

/* The policy of the link that we were called by, as in pinfold-npm: for callers that can give a runtime no
 * flag (containerd, a RuntimeClass). Whoever chooses what is executed chooses the flags too, so the name is
 * as trusted as they are; a name without such a policy fails in policy_resolve. NULL: plain pinfold. */
static const char *policy_of_name(const char *called) {
    const char *slash = strrchr(called, '/'), *name = slash != NULL ? slash + 1 : called;
    const char prefix[] = "pinfold-";
    if (FAULT_BUILD && strcmp(name, "pinfold-faults") == 0) /* the tests' own program, by its own name */
        return NULL;
    return text_starts_with(name, prefix) && name[sizeof prefix - 1] != '\0' ? name + sizeof prefix - 1
                                                                             : NULL;
}

/* In a directory that everybody writes to, the name that we would take may be taken already: whoever owns it
 * could put another config.json, hooks included, in the place of ours. */
static struct error *default_root_check(const char *root) {
    struct stat status;
    if (!text_starts_with(root, "/tmp/"))
        return NULL;
    if (mkdir(root, 0700) < 0 && errno != EEXIST)
        return error_system(errno, "mkdir", "%s", root);
    if (lstat(root, &status) < 0)
        return error_system(errno, "stat", "%s", root);
    if (!S_ISDIR(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 077) != 0)
        return error_new(ERROR_REFUSED,
                         "state directory %s is not a directory of uid %u's alone; set XDG_RUNTIME_DIR, or "
                         "give --root DIR",
                         root, geteuid());
    return NULL;
}

/* What our own records begin with. */
static bool is_our_record(const char *line) {
    return text_starts_with(line, "{\"level\":\"error\",\"msg\":") || text_starts_with(line, "time=\"");
}

/* Whether all lines of the file are earlier records of ours: then they go, because podman parses the file as
 * one object. A file that somebody else writes to as well is appended to. */
static bool holds_only_our_records(const char *path) {
    struct stat status;
    text_owned struct text bytes = {0};
    if (stat(path, &status) < 0 || !S_ISREG(status.st_mode))
        return false;
    struct error *error = file_read(AT_FDCWD, path, 1024 * 1024, &bytes);
    if (error != NULL) {
        error_ignore(error); /* not readable, or far too long for records of ours */
        return false;
    }
    for (const char *line = text_string(&bytes); *line != '\0'; line += strcspn(line, "\n")) {
        line += *line == '\n';
        if (*line != '\0' && !is_our_record(line))
            return false;
    }
    return true;
}

/* A string in logfmt's quotes. */
static void logfmt_quote(const char *message, struct text *out) {
    json_owned struct json_writer quoted = {0};
    json_string(&quoted, message); /* the same escapes */
    text_append(out, text_string(&quoted.text));
}

/* Exactly one record in the file: podman parses it as a whole, containerd reads the last error. */
static void log_write(const struct global_options *global, const char *message) {
    if (global->log == NULL)
        return;
    int mode = holds_only_our_records(global->log) ? O_TRUNC : O_APPEND;
    fd_owned int fd = open(global->log, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | mode, 0644);
    if (fd < 0)
        return;
    struct tm parts;
    time_t now = time(NULL);
    char stamp[32];
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &parts));
    json_owned struct json_writer json = {0};
    if (global->log_json) {
        json_object_begin(&json);
        json_member_string(&json, "level", "error");
        json_member_string(&json, "msg", message);
        json_member_string(&json, "time", stamp);
        json_object_end(&json);
        text_append(&json.text, "\n");
    } else {
        text_format(&json.text, "time=\"%s\" level=error msg=", stamp);
        logfmt_quote(message, &json.text);
        text_append(&json.text, "\n");
    }
    error_ignore(
        fd_write_all(fd, text_string(&json.text), json.text.length, global->log)); /* stderr has it too */
}

/* containerd takes a missing log file for an error of its own. */
static struct error *log_open(const struct global_options *global) {
    if (global->log == NULL)
        return NULL;
    fd_owned int fd = open(global->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0644);
    return fd < 0 ? error_system(errno, "open", "%s (--log)", global->log) : NULL;
}

/* What ends and removes a container does so without a log, too: an engine keeps it in a directory that may be
 * gone by then. */
static struct error *log_verdict(struct error *error, const char *command) {
    if (error == NULL || (strcmp(command, "delete") != 0 && strcmp(command, "kill") != 0))
        return error;
    fprintf(stderr, "pinfold: warning: %s\n", error->message);
    error_free(error);
    return NULL;
}

static struct error *cgroup_manager_parse(const char *name, bool systemd, enum cgroup_manager *out) {
    *out = systemd ? CGROUP_MANAGER_SYSTEMD : CGROUP_MANAGER_CGROUPFS;
    if (name == NULL || strcmp(name, "cgroupfs") == 0)
        return NULL;
    if (strcmp(name, "systemd") == 0)
        *out = CGROUP_MANAGER_SYSTEMD;
    else if (strcmp(name, "disabled") == 0)
        *out = CGROUP_MANAGER_DISABLED;
    else
        return error_new(ERROR_USAGE,
                         "--cgroup-manager: expected cgroupfs, systemd or disabled, found \"%s\"", name);
    return NULL;
}

static void version_print(void) {
    printf("pinfold version " PINFOLD_VERSION "\ncommit: " PINFOLD_COMMIT "\nspec: 1.2.0\n");
}

static struct error *dispatch(struct global_options *global, int argc, char **argv, int *exit_status) {
    bool version = false, help, systemd = false;
    const char *log_format = NULL, *manager = NULL, *built_in_root = global->runtime.root;
    int first;
    const struct option options[] = {
        {"root", 0, OPTION_VALUE, &global->runtime.root, NULL},
        {"policy", 0, OPTION_VALUE, &global->runtime.policy_given, NULL},
        {"log", 0, OPTION_VALUE, &global->log, NULL},
        {"log-format", 0, OPTION_VALUE, &log_format, NULL},
        {"log-level", 0, OPTION_IGNORED_VALUE, NULL, NULL},
        {"debug", 0, OPTION_IGNORED_FLAG, NULL, NULL},
        {"systemd-cgroup", 0, OPTION_FLAG, &systemd, NULL},
        {"cgroup-manager", 0, OPTION_VALUE, &manager, NULL},
        {"rootless", 0, OPTION_IGNORED_VALUE, NULL, NULL},
        {"criu", 0, OPTION_IGNORED_VALUE, NULL, NULL},
        {"version", 'v', OPTION_FLAG, &version, NULL},
        {"V", 'V', OPTION_FLAG, &version, NULL},
        {NULL, 0, OPTION_FLAG, NULL, NULL},
    };
    struct error *error = options_parse("pinfold", options, argc, argv, &first, &help);
    global->log_json = log_format != NULL && strcmp(log_format, "json") == 0;
    error_owned unopened = log_open(global);
    TRY(error); /* into the log, too */
    if (version) {
        version_print();
        return NULL;
    }
    if (help || first >= argc) {
        usage();
        *exit_status = help ? 0 : 1;
        return NULL;
    }
    struct error *verdict = log_verdict(unopened, argv[first]);
    unopened = NULL;
    TRY(verdict);
    if (log_format != NULL && !global->log_json && strcmp(log_format, "text") != 0)
        return error_new(ERROR_USAGE, "--log-format: expected text or json, found \"%s\"", log_format);
    TRY(cgroup_manager_parse(manager, systemd, &global->runtime.cgroup_manager));
    if (global->runtime.root == built_in_root)
        TRY(default_root_check(built_in_root));
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i].name, argv[first]) != 0)
            continue;
        if (commands[i].enters)
            TRY(binary_execute_guarded(argv));
        return commands[i].run(global, argc - first, argv + first, exit_status);
    }
    return error_new(ERROR_USAGE, "unknown command \"%s\" (see pinfold --help)", argv[first]);
}

int main(int argc, char **argv) {
    memory_tune();
    /* A caller may ignore it, and that survives execve: children would be reaped unseen, and each of them, a
     * container and a hook too, would seem to have ended with 0 (runc #5208). */
    signal(SIGCHLD, SIG_DFL);
    if (argc == 2 && strcmp(argv[1], "warden") == 0)
        return warden_main();
    if (argc == 2 && strcmp(argv[1], "broker") == 0)
        return broker_main();
    memory_owned char *root = default_root();
    struct global_options global = {.runtime.root = root};
    if (argc > 0)
        global.runtime.policy_called = policy_of_name(argv[0]);
    int exit_status = 0;
    error_owned error = dispatch(&global, argc, argv, &exit_status);
    if (error == NULL)
        return exit_status;
    fprintf(stderr, "pinfold: %s\n", error->message);
    log_write(&global, error->message);
    return exit_status != 0 ? exit_status : 1;
}
