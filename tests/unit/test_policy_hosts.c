/* Whether a policy lets a host through: match_host, which the broker and `pinfold why` call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "policy/match_host.h"

/* The number of the line that lets it through, from 1; 0: none does. */
static size_t line_of(const char *const *lines, const char *asked, uint16_t port) {
    struct policy_list list = {0};
    for (; *lines != NULL; lines++)
        policy_list_append(&list, *lines, "test");
    struct policy_host host;
    bool allowed = false;
    size_t index = 0;
    assert_null(policy_host_read(asked, &host));
    assert_null(match_host(&list, &host, port, &allowed, &index));
    policy_host_clear(&host);
    policy_list_free(&list);
    return allowed ? index + 1 : 0;
}
#define LINES(...) ((const char *const[]){__VA_ARGS__, NULL})

static void names(void **state) {
    (void)state;
    const char *const *lines =
        LINES("example.org", "*.example.net:8443", "db:5432 private", "*.cdn.example.net");
    assert_int_equal(line_of(lines, "example.org", 443), 1);
    assert_int_equal(line_of(lines, "EXAMPLE.org.", 80), 1);
    assert_int_equal(line_of(lines, "example.org", 8443), 0);
    assert_int_equal(line_of(lines, "www.example.org", 443), 0);
    assert_int_equal(line_of(lines, "example.net", 8443), 0);
    assert_int_equal(line_of(lines, "a.b.example.net", 8443), 2);
    assert_int_equal(line_of(lines, "evilexample.net", 8443), 0);
    assert_int_equal(line_of(lines, "a.cdn.example.net", 443), 4);
    assert_int_equal(line_of(lines, "db", 5432), 3);
    assert_int_equal(line_of(lines, "db.example.org", 5432), 0);
    assert_int_equal(line_of(LINES("203.0.113.1"), "example.org", 443), 0);
}

static void addresses(void **state) {
    (void)state;
    const char *const *lines = LINES("203.0.113.0/25", "2001:db8::/32", "10.1.0.0/16:5432 private");
    assert_int_equal(line_of(lines, "203.0.113.127", 443), 1);
    assert_int_equal(line_of(lines, "203.0.113.128", 443), 0);
    assert_int_equal(line_of(lines, "2001:db8:ffff::1", 80), 2);
    assert_int_equal(line_of(lines, "2001:db9::1", 80), 0);
    assert_int_equal(line_of(lines, "10.1.2.3", 5432), 3);
    assert_int_equal(line_of(lines, "10.2.2.3", 5432), 0);
    assert_int_equal(line_of(LINES("example.org", "*.org"), "203.0.113.1", 443), 0);
}

/* However wide a range is, what it holds of others' networks it must name. */
static void special_addresses(void **state) {
    (void)state;
    static const char *const private[] = {"127.0.0.1",     "10.0.0.1",        "172.31.0.1",
                                          "192.168.1.1",   "100.100.100.200", "169.254.169.254",
                                          "168.63.129.16", "192.0.0.192"};
    static const char *const private_ipv6[] = {"::1",    "fd00:ec2::254",  "fe80::1",      "fec0::1",
                                               "100::1", "64:ff9b::a00:1", "64:ff9b:1::1", "2002:a00:1::1"};
    static const char *const refused[] = {"0.0.0.1", "224.0.0.1", "255.255.255.255", "198.18.0.1"};
    static const char *const refused_ipv6[] = {"::", "ff02::1", "::ffff:10.0.0.1", "::ffff:8.8.8.8"};
    for (size_t i = 0; i < sizeof private / sizeof *private; i++) {
        assert_int_equal(line_of(LINES("0.0.0.0/0"), private[i], 443), 0);
        assert_int_equal(line_of(LINES("0.0.0.0/0 private"), private[i], 443), 1);
        assert_int_equal(line_of(LINES("::/0"), private_ipv6[i], 443), 0);
        assert_int_equal(line_of(LINES("::/0 private"), private_ipv6[i], 443), 1);
    }
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        assert_int_equal(line_of(LINES("0.0.0.0/0", "0.0.0.0/0 private"), refused[i], 443), 0);
        assert_int_equal(line_of(LINES("::/0", "::/0 private"), refused_ipv6[i], 443), 0);
    }
    assert_int_equal(line_of(LINES("0.0.0.0/0"), "203.0.113.1", 443), 1);
    assert_int_equal(line_of(LINES("::/0"), "2001:db8::1", 443), 1);
}

static void a_line_that_cannot_be_read_is_an_error(void **state) {
    (void)state;
    struct policy_list list = {0};
    struct policy_host host;
    bool allowed = true;
    size_t index;
    policy_list_append(&list, "not a host", "test");
    policy_list_append(&list, "example.org", "test");
    assert_null(policy_host_read("example.org", &host));
    struct error *error = match_host(&list, &host, 443, &allowed, &index);
    assert_non_null(error);
    assert_false(allowed);
    error_free(error);
    policy_host_clear(&host);
    policy_list_free(&list);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(addresses),
        cmocka_unit_test(special_addresses),
        cmocka_unit_test(a_line_that_cannot_be_read_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
