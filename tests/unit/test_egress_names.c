/* egress/names: what a host name is, and the addresses that the broker answers for names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>

#include "base/memory.h"
#include "egress/host_alias.h"
#include "egress/names.h"

#define LABEL_63 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define NAME_253                                                                                             \
    LABEL_63 "." LABEL_63 "." LABEL_63 "."                                                                   \
             "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static void test_names_normalised(void **state) {
    (void)state;
    static const struct {
        const char *given, *expected;
    } rows[] = {
        {"example.org", "example.org"},
        {"EXAMPLE.Org", "example.org"},
        {"example.org.", "example.org"},
        {"localhost", "localhost"},
        {"_dmarc.x.test", "_dmarc.x.test"},
        {"xn--bcher-kva.test", "xn--bcher-kva.test"},
        {"r3---sn.test", "r3---sn.test"},
        {"1.2.3.x", "1.2.3.x"},
        {"0xg.test", "0xg.test"},
        {LABEL_63 ".test", LABEL_63 ".test"},
        {NAME_253, NAME_253},
        {NAME_253 ".", NAME_253},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char name[HOST_NAME_SIZE] = "unchanged";
        assert_true(host_name_normalise(rows[i].given, strlen(rows[i].given), name));
        assert_string_equal(name, rows[i].expected);
    }
}

struct bytes {
    const char *what, *given;
    size_t length;
};
#define BYTES(what, literal)                                                                                 \
    { what, literal, sizeof literal - 1 }

static void test_names_refused(void **state) {
    (void)state;
    static const struct bytes rows[] = {
        BYTES("empty", ""),
        BYTES("the root", "."),
        BYTES("two last dots", "example.org.."),
        BYTES("an empty label", "a..b"),
        BYTES("a first dot", ".example.org"),
        BYTES("NUL at the end", "example.org\0"),
        BYTES("NUL, then the allowed name (srt's SOCKS differential)", "evil.test\0.example.org"),
        BYTES("a line feed", "example.org\n"),
        BYTES("DEL", "example\x7f.org"),
        BYTES("a blank", "example .org"),
        BYTES("a tab", "\texample.org"),
        BYTES("UTF-8", "b\xc3\xbc"
                       "cher.test"),
        BYTES("a wide dot", "example\xe3\x80\x82org"),
        BYTES("userinfo", "user@example.org"),
        BYTES("a port", "example.org:80"),
        BYTES("a path", "example.org/x"),
        BYTES("a backslash", "example.org\\x"),
        BYTES("percent", "example%2eorg"),
        BYTES("a wildcard", "*.example.org"),
        BYTES("a hyphen first", "-a.test"),
        BYTES("a hyphen last in a label", "a-.test"),
        BYTES("a hyphen last", "a.test-"),
        BYTES("a label of 64", "a" LABEL_63 ".test"),
        BYTES("254 bytes", "a" NAME_253),
        BYTES("254 bytes and a dot", "a" NAME_253 "."),
        BYTES("an address", "169.254.169.254"),
        BYTES("an address as one number", "2852039166"),
        BYTES("an address in hexadecimal", "0xa9fea9fe"),
        BYTES("an address in hexadecimal parts", "0xa9.0xfe.0xA9.0xFE"),
        BYTES("an address in octal", "0251.0376.0251.0376"),
        BYTES("an address of two parts", "169.16689662"),
        BYTES("an address with a last dot", "127.0.0.1."),
        BYTES("a lone 0x", "a.0x"),
        BYTES("IPv6", "[::1]"),
        BYTES("bare IPv6", "fd00::1"),
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char name[HOST_NAME_SIZE] = "unchanged";
        memory_owned char *copy = memory_copy(rows[i].given, rows[i].length + 1);
        if (host_name_normalise(copy, rows[i].length, name))
            fail_msg("taken: %s", rows[i].what);
        assert_string_equal(name, "");
    }
}

static struct host_map *map_make(const char *const *lines) {
    struct policy_list list = {0};
    for (; *lines != NULL; lines++)
        policy_list_append(&list, *lines, "test");
    struct host_map *map;
    struct error *error = host_map_make(&list, &map);
    assert_null(error);
    policy_list_free(&list);
    return map;
}

static const char *const usual[] = {"example.org",
                                    "*.wild.test:8443",
                                    "git.example.org:22",
                                    "192.0.2.0/24",
                                    "a.wild.test",
                                    "example.org:8080",
                                    "*.wild.test",
                                    "[2001:db8::1]:443",
                                    "fd00:1::/32 private",
                                    "z.example.org",
                                    NULL};

static void assert_entry(const struct host_entry *entry, const char *name, const char *ipv4,
                         const char *ipv6) {
    char text[INET6_ADDRSTRLEN];
    assert_string_equal(entry->name, name);
    assert_string_equal(inet_ntop(AF_INET, entry->ipv4, text, sizeof text), ipv4);
    assert_string_equal(inet_ntop(AF_INET6, entry->ipv6, text, sizeof text), ipv6);
}

static void test_exact_names(void **state) {
    (void)state;
    host_map_owned map = map_make(usual);
    static const struct {
        const char *name, *ipv4, *ipv6;
    } rows[] = {{"example.org", "198.18.0.1", "fd00:9800::1"},
                {"git.example.org", "198.18.0.2", "fd00:9800::2"},
                {"a.wild.test", "198.18.0.3", "fd00:9800::3"},
                {"z.example.org", "198.18.0.4", "fd00:9800::4"}};
    assert_int_equal(host_map_exact_count(map), 4);
    for (size_t i = 0; i < 4; i++) {
        struct host_entry entry = host_map_exact(map, i);
        assert_entry(&entry, rows[i].name, rows[i].ipv4, rows[i].ipv6);
        assert_true(host_map_allows(map, rows[i].name));
        assert_true(host_map_find(map, rows[i].name, &entry));
        assert_int_equal(entry.slot, i + 1);
        assert_false(entry.learnt);
        assert_int_equal(host_map_learn(map, rows[i].name, &entry), HOST_KNOWN);
        assert_entry(&entry, rows[i].name, rows[i].ipv4, rows[i].ipv6);
        assert_string_equal(host_map_name(map, AF_INET, entry.ipv4), rows[i].name);
        assert_string_equal(host_map_name(map, AF_INET6, entry.ipv6), rows[i].name);
    }
    assert_int_equal(host_map_learnt_count(map), 0);
}

static void test_denied_names(void **state) {
    (void)state;
    host_map_owned map = map_make(usual);
    static const char *const names[] = {"evil.test",
                                        "wild.test",
                                        "evilwild.test",
                                        "xexample.org",
                                        "www.example.org",
                                        "org",
                                        "a.wild.test.evil.test",
                                        "192.0.2.1",
                                        "example.or",
                                        ".wild.test",
                                        ""};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct host_entry entry;
        if (host_map_allows(map, names[i]) || host_map_find(map, names[i], &entry) ||
            host_map_learn(map, names[i], &entry) != HOST_DENIED)
            fail_msg("allowed: %s", names[i]);
    }
    assert_int_equal(host_map_learnt_count(map), 0);
}

static void test_learnt_names(void **state) {
    (void)state;
    host_map_owned map = map_make(usual);
    struct host_entry entry, again;
    assert_true(host_map_allows(map, "x.y.wild.test"));
    assert_false(host_map_find(map, "x.y.wild.test", &entry));
    assert_int_equal(host_map_learn(map, "x.y.wild.test", &entry), HOST_LEARNT);
    assert_true(entry.learnt);
    assert_int_equal(entry.ipv4[0], 198);
    assert_int_equal(entry.ipv4[1], 19);
    assert_int_equal(entry.ipv6[5], 1);
    assert_int_equal(entry.ipv4[2] << 8 | entry.ipv4[3], entry.slot);
    assert_int_equal(entry.ipv6[14] << 8 | entry.ipv6[15], entry.slot);
    assert_int_equal(host_map_learn(map, "x.y.wild.test", &again), HOST_KNOWN);
    assert_int_equal(again.slot, entry.slot);
    assert_string_equal(host_map_name(map, AF_INET, entry.ipv4), "x.y.wild.test");
    assert_string_equal(host_map_name(map, AF_INET6, entry.ipv6), "x.y.wild.test");

    /* The same in another map: the address is of the name, not of the order. */
    host_map_owned other = map_make(usual);
    assert_int_equal(host_map_learn(other, "before.wild.test", &again), HOST_LEARNT);
    assert_int_equal(host_map_learn(other, "x.y.wild.test", &again), HOST_LEARNT);
    assert_int_equal(again.slot, entry.slot);
}

static void test_addresses_that_stand_for_no_name(void **state) {
    (void)state;
    host_map_owned map = map_make(usual);
    static const char *const addresses[] = {
        "198.18.0.0",       "198.18.0.5",   "198.18.255.255", "198.19.0.0",
        "198.19.1.1",       "198.17.0.1",   "198.20.0.1",     "10.0.0.1",
        "fd00:9800::",      "fd00:9800::5", "fd00:9800:2::1", "fd00:9800:0:1::1",
        "fd00:9800::1:0:1", "fd00:9801::1", "::198.18.0.1",   "::ffff:198.18.0.1"};
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
        uint8_t address[16];
        int family = strchr(addresses[i], ':') != NULL ? AF_INET6 : AF_INET;
        assert_int_equal(inet_pton(family, addresses[i], address), 1);
        if (host_map_name(map, family, address) != NULL)
            fail_msg("%s has a name", addresses[i]);
    }
}

static void test_synthetic_ranges(void **state) {
    (void)state;
    static const struct {
        const char *address;
        bool expected;
    } rows[] = {{"198.17.255.255", false}, {"198.18.0.0", true},       {"198.19.255.255", true},
                {"198.20.0.0", false},     {"fd00:9800::", true},      {"fd00:9800:ffff::1", true},
                {"fd00:9801::", false},    {"fd00:97ff::", false},     {"::ffff:198.18.0.1", true},
                {"64:ff9b::c612:1", true}, {"::ffff:192.0.2.1", false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t address[16];
        int family = strchr(rows[i].address, ':') != NULL ? AF_INET6 : AF_INET;
        assert_int_equal(inet_pton(family, rows[i].address, address), 1);
        if (host_address_is_synthetic(family, address) != rows[i].expected)
            fail_msg("%s", rows[i].address);
    }
}

/* 4,096 names below a wildcard, then no more; none shares an address; the map is made anew from what it
 * tells. */
static void test_full_and_imported(void **state) {
    (void)state;
    host_map_owned map = map_make(usual);
    host_map_owned copy = map_make(usual);
    struct host_entry entry, other;
    for (int i = 0; i < HOST_MAP_LEARNT_MAX; i++) {
        char name[64];
        snprintf(name, sizeof name, "n%d.wild.test", i);
        assert_int_equal(host_map_learn(map, name, &entry), HOST_LEARNT);
        assert_in_range(entry.slot, 1, 65534);
        assert_true(host_map_import(copy, name, entry.slot));
    }
    assert_int_equal(host_map_learn(map, "one.more.wild.test", &entry), HOST_FULL);
    assert_int_equal(host_map_learn(map, "n7.wild.test", &entry), HOST_KNOWN);
    assert_int_equal(host_map_learn(map, "example.org", &entry), HOST_KNOWN);
    assert_false(host_map_import(map, "one.more.wild.test", 77));
    assert_int_equal(host_map_learnt_count(map), HOST_MAP_LEARNT_MAX);

    memory_owned uint8_t *seen = memory_zeroed(65536);
    for (size_t i = 0; i < HOST_MAP_LEARNT_MAX; i++) {
        entry = host_map_learnt(map, i);
        assert_false(seen[entry.slot]);
        seen[entry.slot] = 1;
        assert_string_equal(host_map_name(map, AF_INET, entry.ipv4), entry.name);
        assert_true(host_map_find(copy, entry.name, &other));
        assert_int_equal(other.slot, entry.slot);
    }
}

/* Names that were chosen to have the same hash. Whoever looks for the hundredth of them must not walk past
 * all the others: sixteen have addresses, the next one none, and names beside them are as before. */
static void test_names_chosen_to_fall_together(void **state) {
    static const char *const lines[] = {"*.wild.test", NULL};
    (void)state;
    host_map_owned map = map_make(lines);
    unsigned count = 0, learnt = 0;
    uint16_t first = 0;
    for (unsigned i = 0; count < 24; i++) {
        char name[32];
        snprintf(name, sizeof name, "n%u.wild.test", i);
        uint32_t hash = 2166136261u; /* FNV-1a, as everybody can compute it */
        for (const char *c = name; *c != '\0'; c++)
            hash = (hash ^ (uint8_t)*c) * 16777619u;
        if (hash % 65534 != 4711)
            continue;
        count++;
        struct host_entry entry;
        enum host_answer answer = host_map_learn(map, name, &entry);
        if (answer == HOST_LEARNT) {
            first = learnt == 0 ? entry.slot : first;
            assert_int_equal(entry.slot, first + learnt++);
        } else {
            assert_int_equal(answer, HOST_FULL);
            assert_false(host_map_find(map, name, &entry));
        }
    }
    assert_int_equal(learnt, 16);
    struct host_entry other;
    assert_int_equal(host_map_learn(map, "another.wild.test", &other), HOST_LEARNT);
    assert_int_equal(host_map_learn(map, "another.wild.test", &other), HOST_KNOWN);
}

/* Names with the same hash: the second gets the next slot, and only in that order can they be imported. */
static void test_names_that_fall_together(void **state) {
    (void)state;
    host_map_owned map = map_make(usual);
    memory_owned int *first = memory_zeroed(65536 * sizeof *first);
    int one = -1, two = -1;
    for (int i = 1; two < 0; i++) {
        host_map_owned alone = map_make(usual);
        struct host_entry entry;
        char name[64];
        snprintf(name, sizeof name, "c%d.wild.test", i);
        assert_int_equal(host_map_learn(alone, name, &entry), HOST_LEARNT);
        if (first[entry.slot] != 0) {
            one = first[entry.slot];
            two = i;
        }
        first[entry.slot] = i;
    }
    char one_name[64], two_name[64];
    snprintf(one_name, sizeof one_name, "c%d.wild.test", one);
    snprintf(two_name, sizeof two_name, "c%d.wild.test", two);
    struct host_entry entry;
    assert_int_equal(host_map_learn(map, one_name, &entry), HOST_LEARNT);
    uint16_t slot = entry.slot;
    assert_int_equal(host_map_learn(map, two_name, &entry), HOST_LEARNT);
    assert_int_equal(entry.slot, slot == 65534 ? 1 : slot + 1);

    host_map_owned copy = map_make(usual);
    assert_false(host_map_import(copy, two_name, entry.slot));
    assert_true(host_map_import(copy, one_name, slot));
    assert_false(host_map_import(copy, two_name, slot));
    assert_true(host_map_import(copy, two_name, entry.slot));
    assert_true(host_map_import(copy, two_name, entry.slot));
    assert_int_equal(host_map_learnt_count(copy), 2);
}

static void test_imports_refused(void **state) {
    (void)state;
    host_map_owned map = map_make(usual);
    host_map_owned other = map_make(usual);
    struct host_entry entry;
    assert_int_equal(host_map_learn(other, "b.wild.test", &entry), HOST_LEARNT);
    assert_false(host_map_import(map, "evil.test", entry.slot));
    assert_false(host_map_import(map, "B.wild.test", entry.slot));
    assert_false(host_map_import(map, "b.wild.test.", entry.slot));
    assert_false(host_map_import(map, "wild.test", entry.slot));
    assert_false(host_map_import(map, "", entry.slot));
    assert_false(host_map_import(map, "b.wild.test", 0));
    assert_false(host_map_import(map, "b.wild.test", (uint16_t)(entry.slot + 1)));
    assert_false(host_map_import(map, "example.org", 1));
    assert_int_equal(host_map_learnt_count(map), 0);
    assert_true(host_map_import(map, "b.wild.test", entry.slot));
    assert_string_equal(host_map_name(map, AF_INET, entry.ipv4), "b.wild.test");
}

static void test_lines_that_cannot_be_read(void **state) {
    (void)state;
    struct policy_list list = {0};
    policy_list_append(&list, "example.org", "test");
    policy_list_append(&list, "http://evil", "test");
    struct host_map *map;
    struct error *error = host_map_make(&list, &map);
    assert_non_null(error);
    assert_int_equal(error->kind, ERROR_INVALID);
    assert_null(map);
    error_free(error);
    policy_list_free(&list);

    host_map_owned none = map_make((const char *const[]){NULL});
    struct host_entry entry;
    assert_int_equal(host_map_exact_count(none), 0);
    assert_int_equal(host_map_learn(none, "example.org", &entry), HOST_DENIED);
}

/* -- addresses of the engine's hosts file -- */

static void test_aliases(void **state) {
    (void)state;
    static const struct {
        const char *address, *name, *alias; /* NULL: none is made of it */
    } rows[] = {
        {"10.88.0.1", "allowed.test", "10.88.0.1 allowed.test"},
        {"10.88.0.1", "Allowed.Test.", NULL}, /* the same again */
        {"192.0.2.7", "a.below.test", "192.0.2.7 a.below.test"},
        {"fd12::1", "allowed.test", "fd12::1 allowed.test"},
        {"10.88.0.1", "below.test", NULL}, /* "*.below.test" is not itself */
        {"10.88.0.1", "other.test", NULL},
        {"127.0.0.1", "allowed.test", NULL},
        {"::1", "allowed.test", NULL},
        {"0.0.0.0", "allowed.test", NULL},
        {"169.254.169.254", "allowed.test", NULL},
        {"::ffff:169.254.169.254", "allowed.test", NULL},
        {"198.18.0.1", "allowed.test", NULL}, /* what names stand for */
        {"224.0.0.1", "allowed.test", NULL},
        {"10.88.0", "allowed.test", NULL},
        {"fe80::1%eth0", "allowed.test", NULL},
        {"10.88.0.1 x", "allowed.test", NULL},
    };
    struct policy_list lines = {0};
    struct string_list aliases = {0};
    policy_list_append(&lines, "allowed.test", "");
    policy_list_append(&lines, "*.below.test:22", "");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t before = aliases.count;
        host_aliases_add(&aliases, &lines, rows[i].address, rows[i].name);
        if ((aliases.count > before) != (rows[i].alias != NULL))
            fail_msg("%s %s: %s", rows[i].address, rows[i].name,
                     aliases.count > before ? "taken" : "not taken");
        if (rows[i].alias != NULL)
            assert_string_equal(aliases.items[before], rows[i].alias);
    }
    struct host_alias alias;
    assert_true(host_alias_read("fd12::1 allowed.test", &alias));
    assert_int_equal(alias.family, AF_INET6);
    assert_int_equal(alias.address[15], 1);
    assert_string_equal(alias.name, "allowed.test");
    static const char *const wrong[] = {
        "", " ", "10.88.0.1", "10.88.0.1 ", "allowed.test 10.88.0.1", " allowed.test"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(host_alias_read(wrong[i], &alias));
    string_list_free(&aliases);
    policy_list_free(&lines);
}

static struct host_map *map_after(const struct string_list *names, const char *const *lines) {
    struct policy_list list = {0};
    for (; *lines != NULL; lines++)
        policy_list_append(&list, *lines, "test");
    struct host_map *map;
    assert_null(host_map_make_after(names, &list, &map));
    policy_list_free(&list);
    return map;
}

static void remember(struct string_list *names, const char *const *lines) {
    struct policy_list list = {0};
    for (; *lines != NULL; lines++)
        policy_list_append(&list, *lines, "test");
    assert_null(host_names_remember(names, &list));
    policy_list_free(&list);
}

static uint16_t exact_slot(const struct host_map *map, const char *name) {
    struct host_entry entry;
    assert_true(host_map_find(map, name, &entry));
    assert_false(entry.learnt);
    return entry.slot;
}

/* Programs keep addresses: under another policy a name has the one that it had, and nobody else gets it. */
static void test_names_of_earlier_policies(void **state) {
    (void)state;
    static const char *const first[] = {"a.test", "b.test:22", "*.wild.test", NULL};
    static const char *const second[] = {"c.test", "b.test", NULL};
    static const char *const third[] = {"*.wild.test", "d.test", "x.wild.test", "a.test", NULL};
    string_list_owned struct string_list names = {0};
    struct host_entry x, y, entry;
    host_map_owned one = map_after(&names, first);
    assert_int_equal(host_map_learn(one, "x.wild.test", &x), HOST_LEARNT);
    assert_int_equal(host_map_learn(one, "y.wild.test", &y), HOST_LEARNT);
    remember(&names, first);
    remember(&names, second);
    host_map_owned two = map_after(&names, second);
    assert_int_equal(exact_slot(two, "b.test"), 2);
    assert_int_equal(exact_slot(two, "c.test"), 3);
    assert_false(host_map_allows(two, "a.test"));
    assert_int_equal(host_map_learn(two, "a.test", &entry), HOST_DENIED);
    assert_string_equal(host_map_name(two, AF_INET, (const uint8_t[]){198, 18, 0, 1}), "a.test");
    /* What was learnt below a line that is no more comes along, allows nothing, and keeps its slot. */
    assert_true(host_map_import(two, "x.wild.test", x.slot));
    assert_true(host_map_import(two, "y.wild.test", y.slot));
    assert_false(host_map_allows(two, "x.wild.test"));
    assert_int_equal(host_map_learn(two, "x.wild.test", &entry), HOST_DENIED);
    assert_int_equal(host_map_learn(two, "z.wild.test", &entry), HOST_DENIED);
    remember(&names, third);
    assert_int_equal(names.count, 6); /* a, b, c, d, x.wild, *.wild */
    host_map_owned three = map_after(&names, third);
    assert_int_equal(exact_slot(three, "a.test"), 1);
    assert_int_equal(exact_slot(three, "d.test"), 4);
    assert_int_equal(exact_slot(three, "x.wild.test"), 5);
    assert_true(host_map_import(three, "x.wild.test", x.slot)); /* it has a line of its own by now */
    assert_true(host_map_import(three, "y.wild.test", y.slot));
    assert_string_equal(host_map_name(three, AF_INET, x.ipv4), "x.wild.test");
    assert_int_equal(host_map_learn(three, "y.wild.test", &entry), HOST_KNOWN);
    assert_memory_equal(entry.ipv6, y.ipv6, sizeof y.ipv6);
    assert_false(host_map_allows(three, "c.test"));
    assert_false(host_map_import(three, "evil.test", 7));
    remember(&names, third);
    assert_int_equal(names.count, 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_normalised),
        cmocka_unit_test(test_aliases),
        cmocka_unit_test(test_names_refused),
        cmocka_unit_test(test_exact_names),
        cmocka_unit_test(test_denied_names),
        cmocka_unit_test(test_learnt_names),
        cmocka_unit_test(test_addresses_that_stand_for_no_name),
        cmocka_unit_test(test_synthetic_ranges),
        cmocka_unit_test(test_full_and_imported),
        cmocka_unit_test(test_names_chosen_to_fall_together),
        cmocka_unit_test(test_names_that_fall_together),
        cmocka_unit_test(test_imports_refused),
        cmocka_unit_test(test_lines_that_cannot_be_read),
        cmocka_unit_test(test_names_of_earlier_policies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
