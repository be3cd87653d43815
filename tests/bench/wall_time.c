/* What the wall of a network namespace costs, for tests/bench/egress: `wall_time HOSTS ROUNDS`. Each round is
 * a child in a new namespace, as a container's first process is, page faults of its copied memory included.
 * Prints JSON: of each step the least and the median processor time in milliseconds. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "egress/egress.h"
#include "egress/routes.h"
#include "policy/policy.h"

enum { LOOPBACK, RAISE, SOCKETS, COMPLETE, TOTAL, STEPS };
static const char *const names[STEPS] = {"loopback", "raise", "sockets", "complete", "total"};

static double cpu_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void require(struct error *error) {
    if (error == NULL)
        return;
    fprintf(stderr, "wall_time: %s\n", error->message);
    _exit(1);
}

static struct error *step(unsigned number, const struct wall_network *network) {
    bool joined;
    uint32_t mark;
    struct wall_sockets sockets;
    switch (number) {
    case LOOPBACK: /* which any runtime does */
        return routes_loopback_up();
    case RAISE:
        return wall_raise(network, &joined, &mark);
    case SOCKETS:
        return wall_open_sockets(&sockets); /* theirs to close is the child's end */
    default:
        return wall_complete(network);
    }
}

static _Noreturn void round_run(const struct wall_network *network, int out) {
    double times[STEPS] = {0};
    if (unshare(CLONE_NEWNET) < 0)
        require(error_system(errno, "unshare", "a network namespace"));
    for (unsigned i = 0; i < TOTAL; i++) {
        double begun = cpu_ms();
        require(step(i, network));
        times[i] = cpu_ms() - begun;
        times[TOTAL] += i == LOOPBACK ? 0 : times[i];
    }
    _exit(write(out, times, sizeof times) == (ssize_t)sizeof times ? 0 : 1);
}

static int order(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return a < b ? -1 : a > b;
}

int main(int count, char **words) {
    if (count != 3 || strtoul(words[2], NULL, 10) == 0)
        return 2;
    unsigned long hosts = strtoul(words[1], NULL, 10);
    size_t rounds = strtoul(words[2], NULL, 10);
    memory_tune();
    struct policy_list lines = {0};
    for (unsigned long i = 0; i < hosts; i++) {
        memory_owned char *name = text_formatted("host%lu.test", i);
        policy_list_append(&lines, name, "");
    }
    const struct wall_network network = {.digest = "bench", .allowed_hosts = &lines};
    double *times = memory_zeroed(STEPS * rounds * sizeof *times);
    for (size_t i = 0; i < rounds; i++) {
        int ends[2], status;
        double round[STEPS];
        if (pipe(ends) < 0)
            return 1;
        pid_t child = fork();
        if (child == 0)
            round_run(&network, ends[1]);
        close(ends[1]);
        bool told = read(ends[0], round, sizeof round) == (ssize_t)sizeof round;
        close(ends[0]);
        if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0 || !told)
            return 1;
        for (size_t k = 0; k < STEPS; k++)
            times[k * rounds + i] = round[k];
    }
    for (size_t k = 0; k < STEPS; k++) {
        qsort(times + k * rounds, rounds, sizeof *times, order);
        printf("%s\"%s\": [%.3f, %.3f]", k == 0 ? "{" : ", ", names[k], times[k * rounds],
               times[k * rounds + rounds / 2]);
    }
    printf("}\n");
    free(times);
    policy_list_free(&lines);
    return 0;
}
