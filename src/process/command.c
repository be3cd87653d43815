#include "process/command.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

/* Where a shell looks when nobody said where. */
#define PATH_DEFAULT "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* 0 when `path` can be executed, else the errno: EISDIR for a directory, EACCES also for other things that
 * are no files. */
static int executable_check(const char *path) {
    struct stat status;
    if (stat(path, &status) < 0)
        return errno;
    if (S_ISDIR(status.st_mode))
        return EISDIR;
    if (!S_ISREG(status.st_mode))
        return EACCES;
    return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0 ? errno : 0;
}

static const char *environment_get(const struct string_list *env, const char *name) {
    size_t length = strlen(name);
    const char *value = NULL;
    for (size_t i = 0; i < env->count; i++)
        if (strncmp(env->items[i], name, length) == 0 && env->items[i][length] == '=')
            value = env->items[i] + length + 1;
    return value;
}

struct error *command_find(const struct oci_process *process, char **path) {
    const char *name = process->args.items[0];
    if (strchr(name, '/') != NULL) {
        int number = executable_check(name);
        if (number == 0) {
            *path = memory_copy_string(name);
            return NULL;
        }
        if (number == EISDIR)
            return error_known(ERROR_COMMAND_DIRECTORY, name);
        if (number == EACCES || number == EPERM)
            return error_known(ERROR_COMMAND_DENIED, name);
        return error_known(ERROR_COMMAND_MISSING, name);
    }
    if (name[0] == '\0')
        return error_known(ERROR_COMMAND_NOT_FOUND, name);
    const char *search = environment_get(&process->env, "PATH");
    bool denied = false;
    for (const char *next = search ? search : PATH_DEFAULT; next != NULL;) {
        const char *colon = strchrnul(next, ':');
        int length = (int)(colon - next);
        char *candidate = text_formatted("%.*s/%s", length ? length : 1, length ? next : ".", name);
        int number = executable_check(candidate);
        if (number == 0) {
            *path = candidate;
            return NULL;
        }
        free(candidate);
        denied = denied || number == EACCES || number == EISDIR;
        next = *colon ? colon + 1 : NULL;
    }
    return error_known(denied ? ERROR_COMMAND_DENIED : ERROR_COMMAND_NOT_FOUND, name);
}

struct error *command_enter_directory(const char *cwd) {
    if (chdir(cwd) == 0)
        return NULL;
    int number = errno;
    if (number == ENOTDIR || number == ENOENT) /* crun #307: which part of the path it is */
        for (const char *slash = strchrnul(cwd + 1, '/');; slash = strchrnul(slash + 1, '/')) {
            struct stat status;
            memory_owned char *part = text_formatted("%.*s", (int)(slash - cwd), cwd);
            int failed = stat(part, &status) < 0 ? errno : 0;
            if (failed == ENOENT)
                return error_system(ENOENT, "chdir", "to process.cwd %s, where %s is missing", cwd, part);
            if (failed == 0 && !S_ISDIR(status.st_mode))
                return error_new(ERROR_INVALID, "process.cwd %s: %s is not a directory", cwd, part);
            if (failed != 0 || *slash == '\0')
                break;
        }
    return error_system(number, "chdir", "to process.cwd %s", cwd);
}

struct error *command_verify_directory(void) {
    char directory[PATH_MAX];
    /* The system call itself: glibc hides "(unreachable)" by walking the tree on its own. */
    if (getcwd(directory, sizeof directory) == NULL || directory[0] != '/')
        return error_new(ERROR_REFUSED, "process.cwd is not inside the container's root (CVE-2024-21626)");
    return NULL;
}

bool command_lacks_home(const struct string_list *env) {
    const char *home = environment_get(env, "HOME");
    return home == NULL || home[0] == '\0';
}

void command_complete_environment(struct string_list *env, const char *home) {
    struct string_list complete = {0};
    for (size_t i = 0; i < env->count; i++) {
        size_t name = strcspn(env->items[i], "=");
        bool again = false;
        for (size_t later = i + 1; later < env->count && !again; later++)
            again = strncmp(env->items[i], env->items[later], name + 1) == 0;
        bool empty_home = strcmp(env->items[i], "HOME=") == 0;
        if (!again && !empty_home)
            string_list_append(&complete, env->items[i]);
    }
    if (environment_get(&complete, "HOME") == NULL)
        string_list_append_owned(&complete, text_formatted("HOME=%s", home ? home : "/"));
    string_list_free(env);
    *env = complete;
}
