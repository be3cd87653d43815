/* broker/inspect: what a client says before anything of it goes to the host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/text.h"
#include "broker/inspect.h"

/* As flow.c does: what may not go yet is held. Ends with the last verdict; *forwarded receives what went. */
static enum inspect_verdict say(enum inspect_kind kind, const char *const *names, const char *words,
                                size_t length, size_t step, struct text *forwarded) {
    struct inspection *inspection = memory_zeroed(sizeof *inspection);
    inspection->kind = kind;
    inspection->port = 8080;
    inspection->name = names[0];
    for (size_t i = 0; names[1] != NULL && names[i] != NULL; i++)
        inspect_expect(inspection, names[i]);
    enum inspect_verdict verdict = INSPECT_HOLD;
    for (size_t at = 0; at < length; at += step) {
        uint8_t bytes[4096];
        size_t pass = 0, count = length - at < step ? length - at : step;
        struct inspect_denial denial = {0};
        memcpy(bytes, words + at, count);
        verdict = inspect_feed(inspection, bytes, count, &pass, &denial);
        if (verdict == INSPECT_DENY)
            break;
        if (verdict != INSPECT_HOLD) {
            if (inspection->held.length > 0)
                text_append_bytes(forwarded, inspection->held.data, inspection->held.length);
            text_append_bytes(forwarded, (char *)bytes, pass);
            text_free(&inspection->held);
        }
        text_append_bytes(&inspection->held, (char *)bytes + pass, count - pass);
        if (verdict == INSPECT_ENOUGH) {
            text_append_bytes(forwarded, words + at + count, length - at - count);
            break;
        }
    }
    inspect_free(inspection);
    return verdict;
}

static void another_port_is_judged_by_its_first_line(void **state) {
    (void)state;
    static const char *const one[] = {"allowed.test", NULL}, *const two[] = {"other.test", "allowed.test",
                                                                             NULL};
    static const struct {
        const char *words;
        const char *const *names;
        enum inspect_verdict verdict;
        bool whole; /* all of it went */
    } rows[] = {
        {"GET / HTTP/1.1\r\nHost: allowed.test:8080\r\n\r\n", one, INSPECT_PASS, true},
        {"GET / HTTP/1.1\r\nHost: allowed.test:8080\r\n\r\n", two, INSPECT_PASS, true},
        {"GET / HTTP/1.1\r\nHost: evil.test:8080\r\n\r\n", one, INSPECT_DENY, false},
        {"GET / HTTP/1.1\r\nHost: evil.test:8080\r\n\r\n", two, INSPECT_DENY, false},
        {"GET / HTTP/1.1\nHost: evil.test:8080\n\n", one, INSPECT_DENY, false},
        {"get / HTTP/1.0\r\nHost: evil.test\r\n\r\n", one, INSPECT_DENY, false},
        {"PROPFIND /x HTTP/1.1\r\nHost: evil.test\r\n\r\n", one, INSPECT_DENY, false},
        {"M-SEARCH * HTTP/1.1\r\nHost: evil.test\r\n\r\n", one, INSPECT_DENY, false},
        {"CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n", one, INSPECT_DENY, false},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", one, INSPECT_DENY, false},
        /* Other protocols. */
        {"SSH-2.0-OpenSSH_9.2\r\n", one, INSPECT_ENOUGH, true},
        {"PING\r\n", one, INSPECT_ENOUGH, true},
        {"GET key\r\n", one, INSPECT_ENOUGH, true},
        {"GET HTTP\r\n", one, INSPECT_ENOUGH, true},
        {"EHLO allowed.test\r\nHost: evil.test\r\n", one, INSPECT_ENOUGH, true},
        {"*1\r\n$4\r\nPING\r\n", one, INSPECT_ENOUGH, true},
        {"\x16\x04GET / HTTP/1.1\r\n", one, INSPECT_ENOUGH, true},
        {"\r\n", one, INSPECT_ENOUGH, true},
        {"JDWP-Handshake", one, INSPECT_ENOUGH, true},
        {"x", one, INSPECT_ENOUGH, true},
        {" GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", one, INSPECT_ENOUGH, true}, /* no server takes that */
        {"0047git-upload-pack /x\n", one, INSPECT_ENOUGH, true},
        /* Not to be told yet. */
        {"G", one, INSPECT_HOLD, false},
        {"get", one, INSPECT_HOLD, false},
        {"GET / HTTP/1.1", one, INSPECT_HOLD, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (size_t step = 1; step <= 4096; step += step < 64 ? 1 : 4032) {
            text_owned struct text forwarded = {0};
            size_t length = strlen(rows[i].words);
            enum inspect_verdict verdict =
                say(INSPECT_ANYTHING, rows[i].names, rows[i].words, length, step, &forwarded);
            bool whole = forwarded.length == length && memcmp(forwarded.data, rows[i].words, length) == 0;
            if (verdict != rows[i].verdict || whole != rows[i].whole || (!whole && forwarded.length > 0))
                fail_msg("row %zu (%.20s), %zu bytes at a time: verdict %d, %zu of %zu bytes went", i,
                         rows[i].words, step, (int)verdict, forwarded.length, length);
        }
}

static void a_first_line_without_end_is_let_go(void **state) {
    (void)state;
    static const char *const names[] = {"allowed.test", NULL};
    static char words[20 * 1024];
    memset(words, 'x', sizeof words);
    memcpy(words, "LOGIN ", 6);
    text_owned struct text forwarded = {0};
    assert_int_equal(say(INSPECT_ANYTHING, names, words, sizeof words, 1000, &forwarded), INSPECT_ENOUGH);
    assert_int_equal(forwarded.length, sizeof words);
    assert_memory_equal(forwarded.data, words, sizeof words);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_port_is_judged_by_its_first_line),
        cmocka_unit_test(a_first_line_without_end_is_let_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
