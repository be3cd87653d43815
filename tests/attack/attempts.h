/* Ways out of a sandbox, tried one by one: for tests/bats/escapes*.bats. Static, linked without libraries,
 * and one executable for each attempt (hard links), so that the record of a denial names the attempt. */
#pragma once

/* In what an attempt must not get at: the content of a key, a variable's value. */
#define MARKER "escape-marker-4711"
/* Beside 0 (it worked) and -1 (errno says how it was refused): there was nothing to take. */
#define ABSENT (-2)

struct attempt {
    const char *name;
    int (*run)(void);
};
/* Each ends with a name that is NULL. */
extern const struct attempt call_attempts[];
extern const struct attempt process_attempts[];
extern const struct attempt file_attempts[];
extern const struct attempt network_attempts[];

/* 0 where the descriptor's next bytes hold the marker, ABSENT otherwise; closes it. -1 for a descriptor of
 * -1. */
int attempt_find_marker(int fd);
/* The process that is attacked: $PEER, else the parent. */
int attempt_peer(void);

/* enforced.c: reads questions from standard input and prints what is so, a line each. */
void enforced_calls(void); /* "NAME NUMBER ARGUMENT..." */
void enforced_paths(void); /* paths: are they written to? */
