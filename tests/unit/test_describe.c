/* A denied call in words. */
#include <linux/sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

/* After the headers that it leans on. */
#include <cmocka.h>

#include "base/text.h"
#include "warden/describe.h"

static void calls_say_what_they_were_for(void **state) {
    (void)state;
    static const struct {
        const char *call;
        uint64_t first, second;
        const char *words;
    } cases[] = {
        {"socket", AF_VSOCK, SOCK_STREAM, "socket for AF_VSOCK (40)"},
        {"socketpair", AF_TIPC, 0, "socketpair for AF_TIPC (30)"},
        {"socket", 9, 0, "socket for address family 9"},
        /* The kernel reads an int: what is above it is the caller's noise. */
        {"socket", 0xffffffff00000000u | AF_ALG, 0, "socket for AF_ALG (38)"},
        {"ioctl", 0, 0x5412, "ioctl with request 0x5412"},
        {"clone", CLONE_NEWUSER | SIGCHLD, 0, "clone with a new user namespace"},
        {"clone", CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWTIME, 0, "clone with a new user and pid namespace"},
        {"unshare", CLONE_NEWTIME, 0, "unshare with a new time namespace"},
        {"unshare", CLONE_NEWNS | CLONE_NEWNET, 0, "unshare with a new mount and network namespace"},
        {"unshare", CLONE_FILES, 0, "unshare"},
        {"mount", 1, 2, "mount"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct seccomp_data data = {.args = {cases[i].first, cases[i].second}};
        text_owned struct text words = {0};
        text_append(&words, "");
        describe_call(&words, cases[i].call, &data);
        assert_true(text_starts_with(text_string(&words), "The system call "));
        assert_string_equal(text_string(&words) + strlen("The system call "), cases[i].words);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(calls_say_what_they_were_for)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
