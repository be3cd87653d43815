/* record/redact.c: what is taken out of argv and URLs, and what must stay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "record/redact.h"

static void check_text(const char *in, const char *out) {
    text_owned struct text text = {0};
    redact_text(in, strlen(in), &text);
    assert_string_equal(text_string(&text), out);
}

static void check_line(const char *in, const char *out) {
    text_owned struct text text = {0}, again = {0};
    redact_command_line(in, strlen(in), &text);
    assert_string_equal(text_string(&text), out);
    redact_command_line(text.data, text.length, &again);
    assert_string_equal(text_string(&again), out); /* its own output is unchanged */
}

/* `in` separates arguments by '|'. */
static void check_arguments(const char *in, const char *out) {
    char bytes[1024];
    size_t length = strlen(in) + 1;
    memcpy(bytes, in, length);
    for (size_t i = 0; i < length; i++)
        if (bytes[i] == '|')
            bytes[i] = '\0';
    text_owned struct text text = {0}, again = {0};
    redact_arguments(bytes, length, &text);
    assert_string_equal(text_string(&text), out);
    redact_command_line(text.data, text.length, &again);
    assert_string_equal(text_string(&again), out);
}

static void tokens_of_known_shape(void **state) {
    (void)state;
    check_text("ghp_abcdefghij0123456789", "ghp_[redacted]");
    check_text("x gho_abcdef0123,ghs_abcdef0123 ghu_abcdef",
               "x gho_[redacted],ghs_[redacted] ghu_[redacted]");
    check_text("github_pat_11ABCDE_xyz", "github_pat_[redacted]");
    check_text("sk-"
               "ant-abcdefgh-x",
               "sk-"
               "ant-[redacted]");
    check_text("sk-"
               "proj-a1b2c3d4e5f6",
               "sk-[redacted]");
    check_text("xoxb-123456-abcdef", "xoxb-[redacted]");
    check_text("AKIAIOSFODNN7EXAMPLE", "AKIA[redacted]");
    check_text("glpat-abcDEF_123", "glpat-[redacted]");
    check_text("npm_abcdefghijklmnopqrstuvwxyz0123456789", "npm_[redacted]");
    check_text("eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.c2ln", "eyJ[redacted]");
    check_text("-----BEGIN OPENSSH PRIVATE KEY-----\nabc", "-----BEGIN [redacted]");
}

static void look_alikes_stay(void **state) {
    (void)state;
    const char *const same[] = {
        "npm_config_registry=x npm_lifecycle_event",
        "task-scheduler sk-learn-contrib-tools",
        "xghp_abcdefghij",
        "AKIAsmall",
        "git@host:org/repo.git",
        "ssh://git@host/path",
        "https://host:8080/a@b",
        "eyJ.eyJ",
        "-----BEGIN CERTIFICATE-----",
        "",
        "ghp_",
        "a://",
        "://@",
    };
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
        check_text(same[i], same[i]);
}

static void user_information_of_urls(void **state) {
    (void)state;
    check_text("https://user:pass@host/x", "https://user:[redacted]@host/x");
    check_text("'https://user:p%40ss@host'", "'https://user:[redacted]@host'");
    check_text("https://user:pa/ss@host/x", "https://user:[redacted]@host/x");
    check_text("https://u:a@b@host", "https://u:[redacted]@host");
    check_text("https://0123456789abcdef0123@host", "https://[redacted]@host");
    check_text("http://a:b@h http://c:d@i", "http://a:[redacted]@h http://c:[redacted]@i");
}

static void options_and_assignments(void **state) {
    (void)state;
    check_line("tool --password=hunter2 -v", "tool --password=[redacted] -v");
    check_line("tool --token X --verbose", "tool --token [redacted] --verbose");
    check_line("tool --api-key 'a b c' next", "tool --api-key '[redacted]' next");
    check_line("GITHUB_TOKEN=abc MODE=x tool", "GITHUB_TOKEN=[redacted] MODE=x tool");
    check_line("npm --_authToken=abc //r/:_authToken=xyz",
               "npm --_authToken=[redacted] //r/:_authToken=[redacted]");
    check_line("java -Dsonar.token=abc", "java -Dsonar.token=[redacted]");
    check_line("get http://h/p?a=1&access_token=xyz&b=2", "get http://h/p?a=1&access_token=[redacted]&b=2");
    check_line("send {\"user\":\"u\",\"password\":\"abc\",\"n\":1}",
               "send {\"user\":\"u\",\"password\":\"[redacted]\",\"n\":1}");
    check_line("send { \"password\": \"abc\", \"n\": 1 }", "send { \"password\": \"[redacted]\", \"n\": 1 }");
    check_line("curl -u user:pass http://h", "curl -u user:[redacted] http://h");
    check_line("mysql -psecret -u root", "mysql -p[redacted] -u root");
    check_line("sshpass -p secret ssh h", "sshpass -p [redacted] ssh h");
    check_line("mkdir -p secret", "mkdir -p secret");
    check_line("run -u 1000:1000 image", "run -u 1000:1000 image");
    check_line("tool --token-file /run/token --no-password", "tool --token-file /run/token --no-password");
}

static void headers(void **state) {
    (void)state;
    check_line("curl -H Authorization: Bearer abc http://h",
               "curl -H Authorization: Bearer [redacted] http://h");
    check_line("curl -H 'Authorization: token abc' http://h",
               "curl -H 'Authorization: token [redacted]' http://h");
    check_line("curl -HX-Api-Key:abc http://h", "curl -HX-Api-Key:[redacted] http://h");
    check_line("curl -H PRIVATE-TOKEN: abc", "curl -H PRIVATE-TOKEN: [redacted]");
}

static void arguments_keep_their_boundaries(void **state) {
    (void)state;
    check_arguments("tool|--password=two words|x", "tool --password=[redacted] x");
    check_arguments("tool|--password|two words|x", "tool --password [redacted] x");
    check_arguments("curl|-H|Authorization: Bearer a b c|http://h",
                    "curl -H Authorization: [redacted] http://h");
    check_arguments("sh|-c|TOKEN=abc curl https://u:p@h|y",
                    "sh -c TOKEN=[redacted] curl https://u:[redacted]@h y");
    check_arguments("env|TOKEN=two words|x", "env TOKEN=[redacted] x");
    check_arguments("a||b", "a  b");
}

static void any_bytes(void **state) {
    (void)state;
    /* Every pair of bytes, and cut-off prefixes of everything above: nothing is read past the end (asan). */
    for (unsigned a = 0; a < 256; a++)
        for (unsigned b = 0; b < 256; b++) {
            char *bytes = malloc(2);
            bytes[0] = (char)a;
            bytes[1] = (char)b;
            text_owned struct text text = {0};
            redact_text(bytes, 2, &text);
            redact_command_line(bytes, 2, &text);
            redact_arguments(bytes, 2, &text);
            assert_in_range(text.length, 3, 6);
            free(bytes);
        }
    static const char long_line[] = "curl -u a:b -H 'Authorization: Basic abc' https://u:p@h/?token=x "
                                    "--password=\"a b\" ghp_abcdefghijkl";
    for (size_t cut = 0; cut < sizeof long_line; cut++) {
        char *bytes = malloc(cut + 1);
        memcpy(bytes, long_line, cut);
        bytes[cut] = '\0';
        text_owned struct text text = {0};
        redact_command_line(bytes, cut, &text);
        redact_arguments(bytes, cut, &text);
        assert_null(strstr(text_string(&text), "abcdef"));
        free(bytes);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_of_known_shape),
        cmocka_unit_test(look_alikes_stay),
        cmocka_unit_test(user_information_of_urls),
        cmocka_unit_test(options_and_assignments),
        cmocka_unit_test(headers),
        cmocka_unit_test(arguments_keep_their_boundaries),
        cmocka_unit_test(any_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
