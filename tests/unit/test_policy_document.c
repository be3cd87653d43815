/* Documents of policies: what is read, what is refused and where, how they join, what narrows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "base/memory.h"
#include "policy/check.h"
#include "policy/document.h"
#include "policy/gaps.h"
#include "policy/hosts.h"
#include "policy/keys.h"
#include "policy/narrow.h"
#include "policy/store.h"

static struct policy_document *read_document(const char *text) {
    struct policy_document *document = NULL;
    struct error *error = policy_document_read("p.yaml", text, strlen(text), &document);
    if (error != NULL)
        fail_msg("%s", error->message);
    return document;
}

/* The built-in agent with a document over it. */
static struct policy *policy_with(const char *text) {
    struct policy *policy = NULL;
    assert_null(policy_select("agent", &policy));
    struct policy_document *document = read_document(text);
    policy_document_apply(document, policy);
    policy_document_free(document);
    policy_digest_update(policy);
    return policy;
}

static void expect_list(const struct policy_list *list, const char *expected) {
    text_owned struct text joined = {0};
    for (size_t i = 0; i < list->values.count; i++)
        text_format(&joined, "%s%s", i > 0 ? "|" : "", list->values.items[i]);
    assert_string_equal(text_string(&joined), expected);
    assert_int_equal(list->values.count, list->origins.count);
}

static void the_short_policy_is_valid(void **state) {
    (void)state;
    struct policy *policy = policy_with("filesystem:\n  default: deny\n  writable: [/data]\n"
                                        "network: {mode: allowlist, allowed_hosts: [example.org]}\n"
                                        "credentials: {inherit_user_credentials: false}\n"
                                        "on_denied_action: block_and_log\n");
    expect_list(&policy->writable, "/data");
    expect_list(&policy->allowed_hosts, "example.org");
    assert_string_equal(policy_list_origin(&policy->writable, 0), "p.yaml:3:14");
    assert_string_equal(policy_origin(policy, POLICY_NETWORK_MODE), "p.yaml:4:17");
    assert_string_equal(policy_origin(policy, POLICY_PROCESSES_PTRACE), "built-in agent");
    expect_list(&policy->scratch, "/tmp|/var/tmp|/run|~");
    policy_free(policy);
}

static void values_are_read(void **state) {
    (void)state;
    struct policy *policy = policy_with(
        "limits: {time: 90s, exec_time: 2h, memory: 512MiB, cpus: 1.5, pids: null, output: 1000}\n"
        "processes: {ptrace: true, capabilities: [net_raw, CAP_CHOWN]}\n"
        "filesystem: {scratch: [/tmp//x/, ~], hidden: [\"/w/**/.env\", \"~/x\"]}\n"
        "credentials: {environment: MY_TOKEN}\n"
        "observe: {files: false}\n"
        "log: {otlp: \"http://collector:4318\"}\n");
    assert_int_equal(policy->time.value, 90000);
    assert_int_equal(policy->exec_time.value, 7200000);
    assert_int_equal(policy->memory.value, 512 << 20);
    assert_int_equal(policy->cpus.value, 1500);
    assert_false(policy->pids.set);
    assert_int_equal(policy->output.value, 1000);
    assert_true(policy->ptrace);
    expect_list(&policy->capabilities, "CAP_NET_RAW|CAP_CHOWN");
    expect_list(&policy->scratch, "/tmp/x|~");
    expect_list(&policy->hidden, "/w/**/.env|~/x");
    expect_list(&policy->environment, "MY_TOKEN");
    assert_int_equal(policy->observe_files, POLICY_OBSERVER_OFF);
    assert_string_equal(policy->log_otlp, "http://collector:4318");
    policy_free(policy);
}

static void errors_name_line_and_column(void **state) {
    (void)state;
    static const struct {
        const char *text;
        const char *error;
    } cases[] = {
        {"netwrok: {}", "p.yaml:1:1: unknown key \"netwrok\"; did you mean \"network\"?"},
        {"network:\n  mods: open", "p.yaml:2:3: unknown key \"mods\" in network; did you mean \"mode\"?"},
        {"limits: {writable: []}", "p.yaml:1:10: unknown key \"writable\" in limits; did you mean "
                                   "\"filesystem.writable\"?"},
        {"version: 2", "p.yaml:1:10: version: expected 1"},
        {"network: {mode: allow}",
         "p.yaml:1:17: network.mode: expected none, allowlist or open, found \"allow\""},
        {"network: {mode: [open]}",
         "p.yaml:1:17: network.mode: expected none, allowlist or open, found a list"},
        {"network: open", "p.yaml:1:10: network: expected keys and their values, found a value"},
        {"processes: {ptrace: yes}", "p.yaml:1:21: processes.ptrace: expected true or false, found \"yes\""},
        {"processes: {ptrace: \"true\"}", "expected true or false"},
        {"limits: {time: 10}", "p.yaml:1:16: limits.time: expected a duration"},
        {"limits: {pids: -1}", "limits.pids: expected a number from 1, or null, found \"-1\""},
        {"limits: {pids: 0}", "limits.pids: expected a number from 1"},
        {"limits: {memory: 99999999999TiB}", "limits.memory: expected a size"},
        {"limits: {cpus: 0}", "limits.cpus: expected a number of processors"},
        {"filesystem: {writable: [src]}", "p.yaml:1:25: filesystem.writable: expected @mounts, @cwd, ~ or an "
                                          "absolute path, found \"src\""},
        {"filesystem: {writable: [/a/../b]}", "expected a path without \"..\""},
        {"filesystem: {writable: [\"/a/*\"]}", "found the glob"},
        {"filesystem: {writable: null}", "filesystem.writable: expected a list, found nothing"},
        {"filesystem: {writable: [\"@everything\"]}", "found \"@everything\""},
        {"credentials: {environment: [\"A=b\"]}", "expected the name of a variable"},
        {"processes: {capabilities: [ALL]}", "expected a capability such as CAP_NET_RAW, found \"ALL\""},
        {"enforcement: {best_effort: [magic]}", "expected the name of a key"},
        {"network: {allowed_hosts: [\"*\"]}", "every host is `mode: open`"},
        {"network: {allowed_hosts: [\"https://example.org/x\"]}", "write the host alone"},
        {"network: {allowed_hosts: [example.org:0]}", "expected a port from 1 to 65535, found \"0\""},
        {"network: {allowed_hosts: [1.2.3]}", "expected a host"},
        {"network: {allowed_hosts: [a..b]}", "expected a host"},
        {"network: {allowed_hosts: [10.1.1.1]}", "is private, unless the line says so"},
        {"network: {allowed_hosts: [169.254.169.254]}", "link-local"},
        {"network: {allowed_hosts: [239.0.0.1]}", "always refused: it is multicast"},
        {"network: {allowed_hosts: [{host: 0.0.0.0, private: true}]}", "always refused"},
        {"network: {allowed_hosts: [10.0.0.1/8]}", "bits set beyond its prefix of 8"},
        {"network: {allowed_hosts: [{ports: [1]}]}", "needs a \"host\""},
        {"network: {allowed_hosts: [{host: a.b, port: 1}]}",
         "p.yaml:1:39: unknown key \"port\" of an allowed host"},
        {"log: {otlp: collector}", "expected an absolute path, a URL"},
        {"a: 1\na: 2", "p.yaml:2:1: key \"a\" is written twice, the first time in line 1"},
        {"network: &x {mode: open}", "p.yaml:1:10: anchors (&name) are not used"},
        {"network: *x", "aliases (*name) are not used"},
        {"network: !!map {}", "tags (!name) are not used"},
        {"- a", "p.yaml:1:1: expected a policy: keys and their values, found a list"},
        {"network: {mode: open}\n---\nnetwork: {}", "one document"},
        {"network: [", "p.yaml:2:1: while parsing a flow node"},
        {"a: \"\\0\"", "no control characters"},
        {"a: \"\xff\"", "(a policy is UTF-8)"},
        {"[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]", "nested deeper"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct policy_document *document = NULL;
        struct error *error = policy_document_read("p.yaml", cases[i].text, strlen(cases[i].text), &document);
        assert_null(document);
        if (error == NULL || strstr(error->message, cases[i].error) == NULL)
            fail_msg("%s: %s, not %s", cases[i].text, error != NULL ? error->message : "valid",
                     cases[i].error);
        assert_int_equal(error->kind, ERROR_INVALID);
        error_free(error);
    }
}

static void nothing_is_a_policy_too(void **state) {
    (void)state;
    static const char *const texts[] = {"", "# a comment\n", "---\n", "{}", "network:\n", "version: 1\n"};
    struct policy *agent = NULL;
    assert_null(policy_select("agent", &agent));
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct policy *policy = policy_with(texts[i]);
        assert_string_equal(policy->digest, agent->digest);
        policy_free(policy);
    }
    policy_free(agent);
}

static void lists_replace_take_out_and_join(void **state) {
    (void)state;
    struct policy *policy =
        policy_with("filesystem: {scratch: [\"!/run\"], writable: [/a, \"@default\", \"!@cwd\"], "
                    "protected: []}");
    expect_list(&policy->scratch, "/tmp|/var/tmp|~");
    expect_list(&policy->writable, "/a|@mounts");
    expect_list(&policy->protected, "");
    policy_free(policy);
    struct policy_document *base = read_document("filesystem: {writable: [/a, /b]}\nnetwork: {mode: none}");
    struct policy_document *over =
        read_document("filesystem: {writable: [\"!/a\", /c]}\nnetwork: {mode: open}");
    policy_document_join(base, over);
    assert_null(policy_select("agent", &policy));
    policy_document_apply(base, policy);
    expect_list(&policy->writable, "/b|/c");
    assert_int_equal(policy->network_mode, POLICY_NETWORK_OPEN);
    policy_document_free(base);
    policy_document_free(over);
    policy_free(policy);
}

static void the_state_keeps_a_policy_and_show_can_be_read(void **state) {
    (void)state;
    struct policy *policy = policy_with("network: {allowed_hosts: [\"*.example.org\", \"[2001:db8::1]:443\", "
                                        "{host: 10.0.0.0/8, ports: [5432, 22], "
                                        "private: true}]}\nlimits: {time: 90s, cpus: 0.25}\nlog: {otlp: "
                                        "\"https://x/\"}\nobserve: {files: true}");
    expect_list(&policy->allowed_hosts, "*.example.org|[2001:db8::1]:443|10.0.0.0/8:22,5432 private");
    text_owned struct text stored = {0}, shown = {0}, again = {0};
    policy_store_write(policy, &stored);
    struct policy *restored = NULL;
    assert_null(policy_store_read(text_string(&stored), policy->digest, &restored));
    assert_string_equal(restored->digest, policy->digest);
    assert_string_equal(restored->name, policy->name);
    policy_store_write(restored, &again);
    assert_string_equal(text_string(&again), text_string(&stored));
    policy_show(policy, &shown);
    struct policy *reread = policy_with(text_string(&shown));
    assert_string_equal(reread->digest, policy->digest);
    struct policy *damaged = NULL;
    struct error *error = policy_store_read(text_string(&stored), "0000", &damaged);
    assert_non_null(error);
    error_free(error);
    stored.data[stored.length / 2] = '\n';
    error = policy_store_read(text_string(&stored), policy->digest, &damaged);
    assert_non_null(error);
    assert_null(damaged);
    error_free(error);
    policy_free(policy);
    policy_free(restored);
    policy_free(reread);
}

static bool allows(const char *rule, const char *name, uint16_t port) {
    struct policy_host host;
    assert_null(policy_host_read(rule, &host));
    bool matches = policy_host_matches_name(&host, name, port);
    policy_host_clear(&host);
    return matches;
}

static bool covers(const char *wide, const char *narrow) {
    struct policy_host one, other;
    assert_null(policy_host_read(wide, &one));
    assert_null(policy_host_read(narrow, &other));
    bool result = policy_host_covers(&one, &other);
    policy_host_clear(&one);
    policy_host_clear(&other);
    return result;
}

static void hosts_match(void **state) {
    (void)state;
    assert_true(allows("example.org", "EXAMPLE.org.", 443));
    assert_false(allows("example.org", "example.org", 22));
    assert_false(allows("example.org", "www.example.org", 443));
    assert_true(allows("*.example.org", "a.b.example.org", 80));
    assert_false(allows("*.example.org", "example.org", 443));
    assert_false(allows("*.example.org", "evilexample.org", 443));
    assert_false(allows("*.example.org", ".example.org", 443));
    assert_true(allows("db:5432", "db", 5432));
    assert_true(covers("*.example.org", "x.example.org:443"));
    assert_false(covers("x.example.org:443", "x.example.org"));
    assert_false(covers("*.example.org", "*.org"));
    assert_true(covers("10.0.0.0/8 private", "10.1.0.0/16 private"));
    assert_false(covers("10.1.0.0/16 private", "10.0.0.0/8 private"));
    assert_false(covers("example.org", "example.org private"));
    assert_true(covers("2001:db8::/32", "2001:db8:1::/48"));
    struct policy_host host;
    assert_null(policy_host_read("192.0.2.0/25", &host));
    assert_true(policy_host_matches_address(&host, AF_INET, (const unsigned char[]){192, 0, 2, 127}, 443));
    assert_false(policy_host_matches_address(&host, AF_INET, (const unsigned char[]){192, 0, 2, 128}, 443));
    policy_host_clear(&host);
}

/* An annotation over a policy, and how many of its wishes came to nothing. */
static size_t annotate(struct policy *policy, const char *key, const char *value) {
    struct policy_document *document = NULL;
    struct error *error = policy_document_read_value("annotation", policy_key_find(key), value, &document);
    if (error != NULL)
        fail_msg("%s", error->message);
    size_t before = policy->remarks_count;
    policy_narrow(policy, document, key);
    policy_document_free(document);
    return policy->remarks_count - before;
}

static void annotations_only_narrow(void **state) {
    (void)state;
    struct policy *policy = policy_with(
        "network: {allowed_hosts: [\"*.example.org\", other.net]}\ncredentials: {environment: [\"AWS_*\"]}"
        "\nfilesystem: {writable: [/data, \"@mounts\"], hidden: [/x]}\nprocesses: {ptrace: true}");
    assert_int_equal(annotate(policy, "network.mode", "open"), 1);
    assert_int_equal(policy->network_mode, POLICY_NETWORK_ALLOWLIST);
    assert_int_equal(annotate(policy, "network.allowed_hosts", "[a.example.org, evil.net]"), 1);
    expect_list(&policy->allowed_hosts, "a.example.org");
    assert_int_equal(annotate(policy, "credentials.environment", "[\"AWS_S*\", GITHUB_TOKEN]"), 1);
    expect_list(&policy->environment, "AWS_S*");
    assert_int_equal(annotate(policy, "filesystem.writable", "[/data/x, /etc]"), 1);
    expect_list(&policy->writable, "/data/x");
    assert_int_equal(annotate(policy, "filesystem.hidden", "[\"!/x\", /y]"), 0);
    expect_list(&policy->hidden, "/x|/y");
    assert_int_equal(annotate(policy, "filesystem.protected", "[]"), 0);
    expect_list(&policy->protected, ".git/hooks");
    assert_int_equal(annotate(policy, "processes.ptrace", "false"), 0);
    assert_false(policy->ptrace);
    assert_int_equal(annotate(policy, "processes.ptrace", "true"), 1);
    assert_int_equal(annotate(policy, "processes.capabilities", "[CHOWN, SYS_ADMIN]"), 1);
    expect_list(&policy->capabilities, "CAP_CHOWN");
    assert_int_equal(annotate(policy, "processes.capabilities", "\"@default\""), 8);
    assert_int_equal(annotate(policy, "limits.pids", "4096"), 1);
    assert_int_equal(annotate(policy, "limits.pids", "null"), 1);
    assert_int_equal(annotate(policy, "limits.pids", "10"), 0);
    assert_int_equal(policy->pids.value, 10);
    assert_int_equal(annotate(policy, "on_denied_action", "log_only"), 1);
    assert_int_equal(annotate(policy, "on_denied_action", "stop"), 0);
    assert_int_equal(annotate(policy, "enforcement.best_effort", "[landlock]"), 1);
    assert_int_equal(annotate(policy, "log.otlp", "\"http://evil/\""), 1);
    assert_null(policy->log_otlp);
    assert_int_equal(annotate(policy, "log.file", "false"), 1);
    assert_string_equal(policy->remarks[0].reason, "policy.annotation.ignored");
    policy_free(policy);
}

static void expect_ceiling(const char *policy_text, const char *ceiling_text, const char *expected) {
    struct policy *policy = policy_with(policy_text);
    struct policy_document *ceiling = NULL;
    assert_null(policy_document_read("c.yaml", ceiling_text, strlen(ceiling_text), &ceiling));
    struct error *error = policy_ceiling_check(policy, ceiling);
    if (expected == NULL && error != NULL)
        fail_msg("%s", error->message);
    if (expected != NULL && (error == NULL || strstr(error->message, expected) == NULL))
        fail_msg("%s, not %s", error != NULL ? error->message : "within", expected);
    error_free(error);
    policy_document_free(ceiling);
    policy_free(policy);
}

static void the_ceiling_names_both_lines(void **state) {
    (void)state;
    expect_ceiling("", "network: {mode: allowlist}", NULL);
    expect_ceiling("network: {mode: open}", "network: {mode: allowlist}",
                   "policy.ceiling.exceeded: network.mode: open, written in p.yaml:1:17, is more than "
                   "c.yaml:1:17 allows");
    expect_ceiling("network: {allowed_hosts: [a.example.org]}",
                   "network: {allowed_hosts: [\"*.example.org\"]}", NULL);
    expect_ceiling("network: {allowed_hosts: [a.example.net]}",
                   "network: {allowed_hosts: [\"*.example.org\"]}",
                   "\"a.example.net\", written in p.yaml:1:27, is more than c.yaml:1:26 allows");
    expect_ceiling("limits: {pids: null}", "limits: {pids: 100}", "limits.pids: null");
    expect_ceiling("limits: {pids: 50}", "limits: {pids: 100}", NULL);
    expect_ceiling("filesystem: {protected: []}", "filesystem: {protected: [.git/hooks]}",
                   "filesystem.protected without \".git/hooks\", written in p.yaml:1:25");
}

static void what_is_not_in_force_is_refused_or_said(void **state) {
    (void)state;
    struct policy *policy = policy_with("limits: {time: 10m}");
    struct error *error = policy_gaps_check(policy);
    if (error != NULL) { /* until there is a clock */
        assert_int_equal(error->kind, ERROR_UNAVAILABLE);
        assert_non_null(strstr(error->message, "limits.time, written in p.yaml:1:16, needs"));
        error_free(error);
    }
    policy_free(policy);
    policy = policy_with("log: {otlp: \"http://x/\"}\nenforcement: {best_effort: [log.otlp]}");
    assert_null(policy_gaps_check(policy));
    policy_free(policy);
    policy = policy_with("");
    assert_null(policy_gaps_check(policy));
    assert_int_equal(policy->remarks_count, 0);
    policy_free(policy);
}

static void wide_policies_are_warned_of(void **state) {
    (void)state;
    static const struct {
        const char *text;
        const char *warning;
    } cases[] = {
        {"network: {allowed_hosts: [\"*.com\"]}", "p.yaml:1:27: \"*.com\" is every host of other people's"},
        {"network: {allowed_hosts: [\"*.co.uk\"]}", "other people's domains"},
        {"network: {allowed_hosts: [\"*.github.io\"]}", "shared hosting"},
        {"network: {allowed_hosts: [{host: db, private: true}]}", "private addresses"},
        {"network: {allowed_hosts: [8.0.0.0/8]}", "large part of the network"},
        {"network: {mode: open}", "everything can be reached"},
        {"filesystem: {writable: [/]}", "the whole root file system"},
        {"credentials: {environment: [\"*\"]}", "name the variables"},
        {"credentials: {mounts: [/var/run/docker.sock]}", "who can speak to a daemon"},
        {"processes: {capabilities: [SYS_ADMIN]}", "CAP_SYS_ADMIN is more"},
        {"network: {mode: none, allowed_hosts: [a.org]}", "has no effect"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct policy *policy = policy_with(cases[i].text);
        string_list_owned struct string_list warnings = {0};
        policy_check(policy, &warnings);
        if (warnings.count != 1 || strstr(warnings.items[0], cases[i].warning) == NULL)
            fail_msg("%s: %zu, %s", cases[i].text, warnings.count,
                     warnings.count > 0 ? warnings.items[0] : "");
        policy_free(policy);
    }
    struct policy *agent = policy_with("");
    string_list_owned struct string_list none = {0};
    policy_check(agent, &none);
    assert_int_equal(none.count, 0);
    policy_free(agent);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_short_policy_is_valid),
        cmocka_unit_test(values_are_read),
        cmocka_unit_test(errors_name_line_and_column),
        cmocka_unit_test(nothing_is_a_policy_too),
        cmocka_unit_test(lists_replace_take_out_and_join),
        cmocka_unit_test(the_state_keeps_a_policy_and_show_can_be_read),
        cmocka_unit_test(hosts_match),
        cmocka_unit_test(annotations_only_narrow),
        cmocka_unit_test(the_ceiling_names_both_lines),
        cmocka_unit_test(what_is_not_in_force_is_refused_or_said),
        cmocka_unit_test(wide_policies_are_warned_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
