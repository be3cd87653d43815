/* run NAME...: tries each attempt in a process of its own and prints "NAME worked", "NAME absent" or "NAME
 * E...". NAME (the name that it was called by): tries that one. */
#define _GNU_SOURCE
#include "attempts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECONDS_MAX 10

int attempt_find_marker(int fd) {
    static char content[65536];
    if (fd < 0)
        return -1;
    ssize_t length = read(fd, content, sizeof content);
    int error = errno;
    close(fd);
    errno = error;
    if (length < 0)
        return -1;
    return memmem(content, (size_t)length, MARKER, strlen(MARKER)) != NULL ? 0 : ABSENT;
}

int attempt_peer(void) {
    const char *peer = getenv("PEER");
    return peer != NULL ? (int)strtol(peer, NULL, 10) : getppid();
}

static const struct attempt *find(const char *name) {
    static const struct attempt *const tables[] = {call_attempts, process_attempts, file_attempts,
                                                   network_attempts};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (const struct attempt *attempt = tables[i]; attempt->name != NULL; attempt++)
            if (strcmp(attempt->name, name) == 0)
                return attempt;
    return NULL;
}

static int try_one(const char *name) {
    const struct attempt *attempt = find(name);
    if (attempt == NULL) {
        printf("%s unknown\n", name);
        return 1;
    }
    alarm(SECONDS_MAX);
    int result = attempt->run();
    const char *word = result == 0 ? "worked" : result == ABSENT ? "absent" : strerrorname_np(errno);
    printf("%s %s\n", name, word != NULL ? word : "error");
    return 0;
}

static void run(const char *directory, const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    pid_t child = fork();
    if (child == 0) {
        execl(path, name, (char *)NULL);
        printf("%s unknown\n", name);
        fflush(stdout);
        _exit(1);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    if (WIFSIGNALED(status))
        printf("%s signal-%d\n", name, WTERMSIG(status));
    fflush(stdout);
}

int main(int argc, char **argv) {
    const char *slash = strrchr(argv[0], '/');
    const char *name = slash != NULL ? slash + 1 : argv[0];
    if (strcmp(name, "enforced_calls") == 0 || strcmp(name, "enforced_paths") == 0) {
        (name[9] == 'c' ? enforced_calls : enforced_paths)();
        return 0;
    }
    if (strcmp(name, "run") != 0)
        return try_one(name);
    for (int i = 1; i < argc; i++)
        run("/attempt", argv[i]);
    return 0;
}
