/* Built-in policies, their digests, SHA-256 and the matchers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "policy/match.h"
#include "policy/policy.h"

static void expect_digest(const char *bytes, size_t length, const char *expected) {
    char *digest = policy_sha256(bytes, length);
    assert_string_equal(digest, expected);
    free(digest);
}

/* The examples of FIPS 180-4 (NIST CSRC "SHA256.pdf") and the boundaries of the padding. */
static void sha256_known_vectors(void **state) {
    (void)state;
    expect_digest("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect_digest("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    const char *two = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    expect_digest(two, 56, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    char *million = memory_zeroed(1000000);
    memset(million, 'a', 1000000);
    expect_digest(million, 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    expect_digest(million, 55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
    expect_digest(million, 64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
    free(million);
}

static void agent_is_the_default(void **state) {
    (void)state;
    struct policy *unnamed = NULL;
    struct policy *empty = NULL;
    struct policy *agent = NULL;
    assert_null(policy_select(NULL, &unnamed));
    assert_null(policy_select("", &empty));
    assert_null(policy_select("agent", &agent));
    assert_string_equal(unnamed->name, "agent");
    assert_string_equal(agent->origin, "built-in agent");
    assert_int_equal(strlen(agent->digest), 64);
    assert_string_equal(unnamed->digest, agent->digest);
    assert_string_equal(empty->digest, agent->digest);
    assert_true(agent->confined);
    assert_int_equal(agent->filesystem_default, POLICY_ACCESS_DENY);
    assert_int_equal(agent->network_mode, POLICY_NETWORK_ALLOWLIST);
    assert_false(agent->inherit_user_credentials);
    assert_false(agent->ptrace);
    assert_false(agent->userns);
    assert_int_equal(agent->capabilities.values.count, 9);
    assert_false(string_list_contains(&agent->capabilities.values, "CAP_NET_RAW"));
    assert_false(string_list_contains(&agent->capabilities.values, "CAP_SYS_ADMIN"));
    assert_true(agent->pids.set);
    assert_int_equal(agent->pids.value, 1024);
    policy_free(unnamed);
    policy_free(empty);
    policy_free(agent);
}

static void unconfined_has_its_own_digest(void **state) {
    (void)state;
    struct policy *agent = NULL;
    struct policy *unconfined = NULL;
    assert_null(policy_select("agent", &agent));
    assert_null(policy_select("unconfined", &unconfined));
    assert_false(unconfined->confined);
    assert_int_equal(unconfined->network_mode, POLICY_NETWORK_OPEN);
    assert_string_not_equal(unconfined->digest, agent->digest);
    policy_free(agent);
    policy_free(unconfined);
}

static void unknown_policy_lists_the_known(void **state) {
    (void)state;
    struct policy *policy = (struct policy *)1;
    struct error *error = policy_select("Agent", &policy);
    assert_non_null(error);
    assert_null(policy);
    assert_int_equal(error->kind, ERROR_INVALID);
    assert_non_null(strstr(error->message, "\"Agent\""));
    assert_non_null(strstr(error->message, "agent, unconfined"));
    error_free(error);
}

static void names_match_by_glob(void **state) {
    (void)state;
    assert_true(match_name("AWS_*", "aws_secret_access_key"));
    assert_true(match_name("*_TOKEN", "MY_TOKEN"));
    assert_false(match_name("*_TOKEN", "MY_TOKENS"));
    assert_true(match_name("*a*b*c", "xaxbxbxc"));
    assert_true(match_name("?", "x"));
    assert_false(match_name("?", ""));
    assert_true(match_name("**", ""));
    assert_false(match_name("", "a"));
    assert_true(match_name("", ""));
}

static void paths_match_by_component(void **state) {
    (void)state;
    assert_true(match_path_within("/etc", "/etc"));
    assert_true(match_path_within("/etc/passwd", "/etc"));
    assert_false(match_path_within("/etcetera", "/etc"));
    assert_false(match_path_within("/", "/etc"));
    assert_true(match_path_within("/anything", "/"));
    assert_string_equal(match_path_rest("/a/b/c", "/a"), "b/c");
    assert_string_equal(match_path_rest("/a", "/a"), "");
    assert_string_equal(match_path_rest("/a", "/"), "a");
}

static void expect_clean(const char *path, const char *expected) {
    char *clean = match_path_clean(path);
    assert_string_equal(clean, expected);
    free(clean);
}

static void paths_are_cleaned(void **state) {
    (void)state;
    expect_clean("//a//b/", "/a/b");
    expect_clean("a/./b", "/a/b");
    expect_clean("/a/../../b", "/b");
    expect_clean("/..", "/");
    expect_clean("", "/");
    expect_clean("/a/..b/.c", "/a/..b/.c");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha256_known_vectors),
        cmocka_unit_test(agent_is_the_default),
        cmocka_unit_test(unconfined_has_its_own_digest),
        cmocka_unit_test(unknown_policy_lists_the_known),
        cmocka_unit_test(names_match_by_glob),
        cmocka_unit_test(paths_match_by_component),
        cmocka_unit_test(paths_are_cleaned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
