/* What is enforced, question by question, to be compared with what `pinfold why` says
 * (tests/bats/explain.bats). */
#define _GNU_SOURCE
#include "attempts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void say(const char *question, long result) {
    printf("%s %s\n", question, result >= 0 ? "worked" : strerrorname_np(errno));
    fflush(stdout);
}

/* NUMBER is the call's; the rest of the line are its arguments. Each in a process of its own: some end it. */
void enforced_calls(void) {
    char line[512];
    while (fgets(line, sizeof line, stdin) != NULL) {
        char *rest = line, *question = strsep(&rest, " \n");
        long values[7] = {0};
        for (size_t i = 0; i < 7 && rest != NULL && *rest != '\0'; i++)
            values[i] = strtol(rest, &rest, 0);
        pid_t child = fork();
        if (child == 0) {
            long result =
                syscall(values[0], values[1], values[2], values[3], values[4], values[5], values[6]);
            if (result < 0 || values[0] >= 0)
                say(question, result);
            _exit(0);
        }
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
}

void enforced_paths(void) {
    char path[512];
    while (fgets(path, sizeof path, stdin) != NULL) {
        path[strcspn(path, "\n")] = '\0';
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600);
        say(path, fd);
        if (fd >= 0)
            close(fd);
    }
}
