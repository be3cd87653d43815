/* pinfold policy generate MANAGER: the policy for the registry that this machine's package manager uses. The
 * helper asks the manager; what it prints is read as a policy before anybody sees it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "policy/document.h"
#include "sys/calls.h"
#include "sys/helper.h"

#define HELPER "pinfold-policy-generate"
#define POLICY_BYTES_MAX (64 * 1024)
#define MESSAGE_MAX 1000

static const char *const managers[] = {"npm", "pip", "cargo", "go", "apt", "gem", "maven"};

struct question {
    const char *manager;
    const char *url; /* NULL: the manager is asked */
    int helper;
    int answer;
    int errors;
};

/* In the child. The managers are found by the caller's PATH and read the caller's configuration. */
static int question_run(void *data) {
    const struct question *question = data;
    int helper = fcntl(question->helper, F_DUPFD_CLOEXEC, 16);
    int answer = fcntl(question->answer, F_DUPFD_CLOEXEC, 16);
    int errors = fcntl(question->errors, F_DUPFD_CLOEXEC, 16);
    int null_device = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (helper < 0 || answer < 0 || errors < 0 || null_device < 0 || dup2(null_device, STDIN_FILENO) < 0 ||
        dup2(answer, STDOUT_FILENO) < 0 || dup2(errors, STDERR_FILENO) < 0 || dup2(helper, 3) < 0 ||
        sys_close_range(4, ~0u, 0) < 0)
        _exit(127);
    sys_signals_reset();
    prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
    /* A script cannot be executed by a descriptor that is close-on-exec; the shell reads this one. */
    char *arguments[] = {"sh", "/proc/self/fd/3", (char *)question->manager, (char *)question->url, NULL};
    execv("/bin/sh", arguments);
    _exit(127);
}

static struct error *memory_read(int fd, size_t limit, struct text *out) {
    memory_owned char *path = text_formatted("/proc/self/fd/%d", fd);
    return file_read(AT_FDCWD, path, limit, out);
}

static struct error *question_ask(const char *manager, const char *url, struct text *out) {
    fd_owned int helper = sys_helper_open(HELPER);
    if (helper < 0)
        return error_new(ERROR_UNAVAILABLE,
                         "the helper " HELPER " is neither beside pinfold nor in " PINFOLD_LIBEXECDIR
                         ", or others may write it");
    fd_owned int answer = memfd_create("policy", MFD_CLOEXEC);
    fd_owned int errors = memfd_create("errors", MFD_CLOEXEC);
    if (answer < 0 || errors < 0)
        return error_system(errno, "memfd_create", "the answer of " HELPER);
    struct question question = {
        .manager = manager, .url = url, .helper = helper, .answer = answer, .errors = errors};
    fd_owned int pidfd = -1;
    pid_t pid = sys_spawn(question_run, &question, &pidfd);
    if (pid < 0)
        return error_system(errno, "fork", HELPER);
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return error_system(errno, "wait for", HELPER);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        text_owned struct text said = {0};
        TRY(memory_read(errors, POLICY_BYTES_MAX, &said));
        while (said.length > 0 && said.data[said.length - 1] == '\n')
            said.data[--said.length] = '\0';
        return error_new(ERROR_UNAVAILABLE, "policy generate %s: %.*s", manager, MESSAGE_MAX,
                         said.length > 0 ? said.data : "the helper " HELPER " failed without a word");
    }
    return memory_read(answer, POLICY_BYTES_MAX, out);
}

/* Where the policies of a person lie: root's are the machine's. */
static struct error *directory_of_policies(char **out) {
    if (geteuid() == 0) {
        *out = memory_copy_string("/etc/pinfold/policies");
        return NULL;
    }
    const char *home = getenv("HOME");
    if (home == NULL || home[0] != '/')
        return error_new(ERROR_INVALID, "HOME names no directory to install a policy below");
    *out = text_formatted("%s/.config/pinfold/policies", home);
    return NULL;
}

static struct error *make_directories(const char *path) {
    memory_owned char *part = memory_copy_string(path);
    for (char *slash = part + 1;; slash++) {
        if (*slash != '/' && *slash != '\0')
            continue;
        bool last = *slash == '\0';
        *slash = '\0';
        if (mkdir(part, 0755) < 0 && errno != EEXIST)
            return error_system(errno, "mkdir", "%s", part);
        if (last)
            return NULL;
        *slash = '/';
    }
}

static struct error *install(const char *manager, const struct text *policy) {
    memory_owned char *directory = NULL;
    TRY(directory_of_policies(&directory));
    umask(022); /* whoever runs a container may have to read it */
    TRY(make_directories(directory));
    memory_owned char *path = text_formatted("%s/%s.yaml", directory, manager);
    TRY(file_replace(AT_FDCWD, path, text_string(policy), policy->length, 0644));
    printf("%s\n", path);
    return NULL;
}

static bool is_manager(const char *name) {
    for (size_t i = 0; i < sizeof managers / sizeof managers[0]; i++)
        if (strcmp(managers[i], name) == 0)
            return true;
    return false;
}

struct error *policy_generate_command(const struct global_options *global, int argc, char **argv,
                                      int *exit_status) {
    (void)global;
    (void)exit_status;
    const char *url = NULL;
    bool store = false, help;
    int first;
    const struct option options[] = {
        {"registry", 0, OPTION_VALUE, &url, "use this registry's URL; the manager is not asked"},
        {"install", 0, OPTION_FLAG, &store, "store it under the manager's name, instead of printing it"},
        {NULL, 0, OPTION_FLAG, NULL, NULL}};
    TRY(options_parse_anywhere("policy generate", options, argc, argv, &first, &help));
    if (help) {
        options_print("pinfold policy generate npm|pip|cargo|go|apt|gem|maven [OPTIONS]", options);
        return NULL;
    }
    if (first + 1 != argc)
        return error_new(ERROR_USAGE,
                         "\"policy generate\" takes one of npm, pip, cargo, go, apt, gem and maven");
    if (!is_manager(argv[first]))
        return error_new(ERROR_USAGE,
                         "policy generate: expected npm, pip, cargo, go, apt, gem or maven, found \"%s\"",
                         argv[first]);
    if (isatty(STDERR_FILENO)) /* a registry that does not answer takes half a minute */
        fprintf(stderr, "pinfold: asking %s and its registry where files come from ...\n", argv[first]);
    text_owned struct text policy = {0};
    TRY(question_ask(argv[first], url, &policy));
    policy_document_owned struct policy_document *document = NULL;
    TRY(policy_document_read(HELPER, text_string(&policy), policy.length, &document));
    if (store)
        return install(argv[first], &policy);
    fputs(text_string(&policy), stdout);
    return NULL;
}
