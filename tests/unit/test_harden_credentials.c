/* The environment: which names and values count as credentials, and which look alike. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "harden/parts.h"
#include "harden/secrets.h"

static int make_policy(void **state) {
    struct policy *policy = NULL;
    struct error *error = policy_select("agent", &policy);
    *state = policy;
    return error == NULL ? 0 : -1;
}

static int drop_policy(void **state) {
    policy_free(*state);
    return 0;
}

static void credentials_are_removed(void **state) {
    static const char *const rows[] = {"GITHUB_TOKEN=x",
                                       "gh_token=x",
                                       "GITHUB_PAT=x",
                                       "OPENAI_API_KEY=x",
                                       "OPENAI_KEY=x",
                                       "ANTHROPIC_API_KEY=x",
                                       "ANTHROPIC_AUTH_TOKEN=x",
                                       "CLAUDE_CODE_OAUTH_TOKEN=x",
                                       "GEMINI_API_KEY=x",
                                       "GOOGLE_APPLICATION_CREDENTIALS=/x",
                                       "AWS_ACCESS_KEY_ID=x",
                                       "AWS_SECRET_ACCESS_KEY=x",
                                       "AWS_SESSION_TOKEN=x",
                                       "AWS_PROFILE=prod",
                                       "AWS_WEB_IDENTITY_TOKEN_FILE=/x",
                                       "AZURE_CLIENT_SECRET=x",
                                       "CODEX_AUTH_STATE=x",
                                       "OP_SESSION_abc=x",
                                       "MYSQL_PWD=x",
                                       "REDISCLI_AUTH=x",
                                       "PGPASSWORD=x",
                                       "PGPASSFILE=/x",
                                       "DATABASE_URL=x",
                                       "REDIS_URL=x",
                                       "VAULT_TOKEN=x",
                                       "NPM_TOKEN=x",
                                       "NODE_AUTH_TOKEN=x",
                                       "ACTIONS_ID_TOKEN_REQUEST_URL=https://x",
                                       "MY_COMPANY_API_KEY=x",
                                       "STRIPE_SECRET=x",
                                       "DB_PASSWORD=x",
                                       "DBPASSWORD=x",
                                       "DB_PASS=x",
                                       "SMTP_PASSWD=x",
                                       "SERVICE_CREDENTIALS=x",
                                       "SIGNING_PRIVATE_KEY=x",
                                       "SENTRY_DSN=x",
                                       "APITOKEN=x",
                                       "X_APIKEY=x",
                                       "ENCRYPTION_KEY=x",
                                       "SECRET_KEY_BASE=x",
                                       "DJANGO_SECRET_KEY=x",
                                       "TOKEN=x",
                                       "SECRET=x",
                                       "KEY=x",
                                       "MY-TOKEN=x",
                                       "app.secret=x",
                                       "SSH_ASKPASS=/usr/bin/ssh-askpass",
                                       "GIT_ASKPASS=/opt/editor/askpass.sh",
                                       "SSH_AUTH_SOCK=/x",
                                       "DOCKER_HOST=tcp://x",
                                       "CONTAINER_HOST=x",
                                       "DBUS_SESSION_BUS_ADDRESS=x",
                                       "KUBECONFIG=x",
                                       "XAUTHORITY=x",
                                       "WAYLAND_DISPLAY=wayland-0",
                                       "GPG_AGENT_INFO=x",
                                       "TOKENS=abc",
                                       "PASSWORD=123456"};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *equals = strchr(rows[i], '=');
        memory_owned char *name = text_formatted("%.*s", (int)(equals - rows[i]), rows[i]);
        if (harden_environment_reason(*state, name, equals + 1) == NULL)
            fail_msg("%s stays", rows[i]);
    }
}

/* What a tool needs, what image builders put into Env, and words that only look like it. */
static void look_alikes_stay(void **state) {
    static const char *const rows[] = {"PATH=/usr/bin",
                                       "HOME=/root",
                                       "TERM=xterm",
                                       "PWD=/",
                                       "OLDPWD=/",
                                       "LANG=C",
                                       "container=podman",
                                       "AWS_REGION=eu-west-1",
                                       "AWS_DEFAULT_REGION=eu-west-1",
                                       "AWS_PAGER=less",
                                       "AZURE_LOCATION=west",
                                       "GPG_KEY=E3FF2839C048B25C084DEBE9B26995E310250568",
                                       "GPG_KEYS=AB CD",
                                       "NGINX_GPGKEY_PATH=/x",
                                       "RABBITMQ_PGP_KEY_ID=0x0A9AF2115F4687BD29803A206B73A36E6026DFCA",
                                       "GOPRIVATE=example.org",
                                       "MAX_THINKING_TOKENS=1024",
                                       "CLAUDE_CODE_MAX_OUTPUT_TOKENS=32000",
                                       "TOKENIZERS_PARALLELISM=false",
                                       "LLM_MAX_TOKENS=12",
                                       "KEYBOARD_LAYOUT=us",
                                       "KEYMAP=us",
                                       "MONKEY=1",
                                       "HOTKEYS=x",
                                       "TURKEY=x",
                                       "COMPASS=n",
                                       "BYPASS=1",
                                       "SSH_PUBLIC_KEY=ssh-ed25519 AAAA",
                                       "POSTGRES_PASSWORD_FILE=/run/secrets/db",
                                       "DISABLE_TOKEN=true",
                                       "GIT_ASKPASS=true",
                                       "GIT_ASKPASS=/bin/echo",
                                       "SSH_CONNECTION=1.2.3.4 5 6.7.8.9 22",
                                       "OPENAI_API_KEY=",
                                       "DOCKER_CONTENT_TRUST=1",
                                       "NODE_VERSION=20",
                                       "PYTHON_GET_PIP_SHA256=abc",
                                       "YARN_VERSION=1",
                                       "HTTP_PROXY=http://proxy.example:3128",
                                       "GIT_REPO=ssh://git@example.org/x.git",
                                       "LD_PRELOAD=/x.so",
                                       "NODE_OPTIONS=--x",
                                       "PYTHONPATH=/x",
                                       "GOFLAGS=-mod=mod",
                                       "GIT_SSH_COMMAND=ssh",
                                       "JAVA_TOOL_OPTIONS=-Dhttp.x",
                                       "KUBERNETES_SERVICE_HOST=10.0.0.1",
                                       "PINFOLD_DENIALS=/run/pinfold/denials.jsonl",
                                       "PIP_PACKAGES=scikit-learn sk-learn-something-long-and-plain",
                                       "TASK=task-abcdefghij0123456789xyz"};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *equals = strchr(rows[i], '=');
        memory_owned char *name = text_formatted("%.*s", (int)(equals - rows[i]), rows[i]);
        const char *why = harden_environment_reason(*state, name, equals + 1);
        if (why != NULL)
            fail_msg("%s removed: %s", rows[i], why);
    }
}

/* Put together here, so that no scanner takes this file for a leak. */
#define FAKE(prefix) prefix "0123456789abcdefghij0123456789ABCDEFGHIJ"

static void values_have_shapes(void **state) {
    (void)state;
    static const struct {
        const char *value;
        const char *part;
    } rows[] = {
        {FAKE("gh"
              "p_"),
         "GitHub"},
        {FAKE("github"
              "_pat_"),
         "GitHub"},
        {"prefix " FAKE("gh"
                        "o_") " suffix",
         "GitHub"},
        {FAKE("gl"
              "pat-"),
         "GitLab"},
        {FAKE("s"
              "k-proj-"),
         "model provider"},
        {FAKE("s"
              "k-ant-api03-"),
         "model provider"},
        {"AK"
         "IAABCDEFGHIJKLMNOP",
         "AWS"},
        {FAKE("AI"
              "za"),
         "Google"},
        {FAKE("xo"
              "xb-"),
         "Slack"},
        {FAKE("np"
              "m_"),
         "npm"},
        {FAKE("h"
              "f_"),
         "Hugging"},
        {"-----BEGIN "
         "OPENSSH PRIVATE KEY-----\nx",
         "private key"},
        {"-----BEGIN "
         "RSA PRIVATE KEY-----",
         "private key"},
        {"ey"
         "JhbGciOiJIUzI1NiJ9.ey"
         "JzdWIiOiIxMjM0In0.abcdef",
         "web token"},
        {"postgres://user:hunter2@db/app", "URL with a password"},
        {"http://user:p@ss@proxy:3128", "URL with a password"},
        {"https://0123456789abcdef0123@git.example/x.git", "URL with a password"},
        {"-Dproxy=http://u:p@h -x", "URL with a password"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *shape = secret_shape(rows[i].value);
        if (shape == NULL)
            fail_msg("row %zu has no shape", i);
        assert_non_null(strstr(shape, rows[i].part));
        assert_null(strstr(shape, rows[i].value));
    }
    static const char *const plain[] = {"",
                                        "x",
                                        "sk-",
                                        "ghp_short",
                                        "https://example.org/a:b@c",
                                        "http://example.org?u=a:b@c",
                                        "git@github.com:x/y.git",
                                        "https://user:@example.org",
                                        "https://user:${PASSWORD}@example.org",
                                        "-----BEGIN CERTIFICATE-----",
                                        "eyJhbGciOiJIUzI1NiJ9",
                                        "a.eyJ.b",
                                        "https://user@example.org/x",
                                        "AKIAshort",
                                        "://",
                                        "http://@"};
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        if (secret_shape(plain[i]) != NULL)
            fail_msg("%s: %s", plain[i], secret_shape(plain[i]));
}

/* A harmless name does not save a value that is a token. */
static void a_token_under_a_harmless_name(void **state) {
    assert_non_null(harden_environment_reason(*state, "AWS_REGION",
                                              FAKE("gh"
                                                   "p_")));
    assert_non_null(harden_environment_reason(*state, "EDITOR",
                                              FAKE("gh"
                                                   "p_")));
}

/* The report behind it: a heuristic that overrode an explicit allow. */
static void an_explicit_grant_wins(void **state) {
    struct policy *policy = *state;
    string_list_append(&policy->environment.values, "GITHUB_TOKEN");
    string_list_append(&policy->environment.values, "MY_*");
    assert_null(harden_environment_reason(policy, "GITHUB_TOKEN",
                                          FAKE("gh"
                                               "p_")));
    assert_null(harden_environment_reason(policy, "MY_SECRET", "x"));
    assert_non_null(harden_environment_reason(policy, "GH_TOKEN", "x"));
    policy->inherit_user_credentials = true;
    assert_null(harden_environment_reason(policy, "GH_TOKEN", "x"));
}

static void no_message_holds_a_value(void **state) {
    struct oci_process process = {0};
    string_list_append(&process.env, "A=1");
    string_list_append(&process.env, "DB_PASSWORD=correct horse");
    string_list_append(&process.env, "EDITOR=http://u:battery@staple");
    string_list_append(&process.env, "B=2");
    struct hardened *hardened = memory_zeroed(sizeof *hardened);
    harden_environment(&process, *state, hardened);
    assert_int_equal(process.env.count, 2);
    assert_string_equal(process.env.items[0], "A=1");
    assert_string_equal(process.env.items[1], "B=2");
    assert_null(process.env.items[2]);
    assert_int_equal(hardened->changes_count, 2);
    for (size_t i = 0; i < 2; i++) {
        const struct change *change = &hardened->changes[i];
        assert_string_equal(change->reason, "credential.env.removed");
        const char *const texts[] = {change->message, change->subject, change->remedy, change->rule};
        for (size_t t = 0; t < 4; t++) {
            assert_null(strstr(texts[t], "horse"));
            assert_null(strstr(texts[t], "battery"));
        }
    }
    string_list_free(&process.env);
    hardened_free(hardened);
}

static void a_flood_of_names_is_told_in_a_bounded_way(void **state) {
    struct oci_process process = {0};
    for (int i = 0; i < 20000; i++)
        string_list_append_owned(&process.env, text_formatted("T%d_TOKEN=x", i));
    struct hardened *hardened = memory_zeroed(sizeof *hardened);
    harden_environment(&process, *state, hardened);
    assert_int_equal(process.env.count, 0);
    assert_int_equal(hardened->changes_count, 257);
    assert_non_null(strstr(hardened->changes[256].message, "19744 more"));
    string_list_free(&process.env);
    hardened_free(hardened);
}

static void remedies_are_yaml(void **state) {
    (void)state;
    static const struct {
        const char *item;
        const char *expected;
    } rows[] = {{"A_B", "credentials: {environment: [A_B]}"},
                {"a b", "credentials: {environment: [\"a b\"]}"},
                {"a\"]}\n", "credentials: {environment: [\"a\\\"]}\\x0a\"]}"},
                {"", "credentials: {environment: [\"\"]}"},
                {"-x", "credentials: {environment: [\"-x\"]}"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        memory_owned char *remedy = harden_remedy("credentials", "environment", rows[i].item);
        assert_string_equal(remedy, rows[i].expected);
    }
}

#define WITH_POLICY(test) cmocka_unit_test_setup_teardown(test, make_policy, drop_policy)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_POLICY(credentials_are_removed),
        WITH_POLICY(look_alikes_stay),
        cmocka_unit_test(values_have_shapes),
        WITH_POLICY(a_token_under_a_harmless_name),
        WITH_POLICY(an_explicit_grant_wins),
        WITH_POLICY(no_message_holds_a_value),
        WITH_POLICY(a_flood_of_names_is_told_in_a_bounded_way),
        cmocka_unit_test(remedies_are_yaml),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
