/* `pinfold explain`: what is printed for a person is safe for a terminal, and the JSON form says the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "cli/explain.h"

static const char config_text[] =
    "{\"ociVersion\":\"1.0.2\",\"process\":{\"user\":{\"uid\":0,\"gid\":0},\"args\":[\"sh\"],\"cwd\":\"/\","
    "\"env\":[\"MY_TOKEN=verysecret\",\"BAD\\u001b[31m_SECRET=verysecret\"]},\"root\":{\"path\":\"r\"},"
    "\"linux\":{\"namespaces\":[{\"type\":\"network\"}]}}";

static char *explained(const char *policy_name, bool json) {
    struct oci_config *config = NULL;
    struct policy *policy = NULL;
    struct hardened *hardened = NULL;
    struct facts facts = {.root_fd = -1, .bundle = "/bundle", .root_is_mount = true, .namespaces_count = 1};
    bool is_host[1] = {false};
    facts.namespace_is_host = is_host;
    assert_null(oci_config_parse("config.json", config_text, strlen(config_text), &config));
    assert_null(policy_select(policy_name, &policy));
    assert_null(harden(config, policy, &facts, &hardened));
    char *output = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&output, &length);
    struct enforcement *enforcement = enforcement_make(hardened, policy, &facts);
    if (json)
        enforcement->config = oci_config_copy(hardened->config);
    explain_print(enforcement, json, stream);
    fclose(stream);
    enforcement_free(enforcement);
    hardened_free(hardened);
    policy_free(policy);
    oci_config_free(config);
    return output;
}

static void a_person_reads_it(void **state) {
    (void)state;
    memory_owned char *output = explained("agent", false);
    assert_true(text_starts_with(output, "Policy agent (built-in agent), digest "));
    assert_non_null(strstr(output, "removed  process.env MY_TOKEN\n"));
    assert_non_null(strstr(output, "recorded as credential.env.removed\n"));
    assert_non_null(strstr(output, "allow with  credentials: {environment: [MY_TOKEN]}\n"));
    assert_non_null(strstr(output, "  /var/tmp  (the container's own layer)\n"));
    assert_non_null(strstr(output, "  /root/.ssh/id_rsa\n"));
    assert_non_null(strstr(output, "Network: walled (allowlist)"));
    assert_non_null(strstr(output, "mount "));
    assert_null(strstr(output, "verysecret"));
    assert_null(strchr(output, '\x1b'));
    assert_int_equal(output[strlen(output) - 1], '\n');
    for (const char *line = output; *line != '\0'; line += strcspn(line, "\n") + 1)
        assert_true(strcspn(line, "\n") <= 110);
}

static void a_program_reads_it(void **state) {
    (void)state;
    memory_owned char *output = explained("agent", true);
    assert_non_null(strstr(output, "\"subject\":\"MY_TOKEN\",\"reason\":\"credential.env.removed\""));
    assert_non_null(strstr(output, "\"network\":{\"mode\":\"allowlist\",\"wall\":true}"));
    assert_non_null(strstr(output, "{\"path\":\"/tmp\",\"kind\":\"layer\"}"));
    assert_non_null(strstr(output, "\"denied_calls\":[\"mount\""));
    assert_non_null(strstr(output, "\"config\":{\"ociVersion\""));
    assert_null(strstr(output, "verysecret"));
    assert_null(strchr(output, '\x1b'));
    assert_ptr_equal(strchr(output, '\n'), output + strlen(output) - 1);
}

static void unconfined_says_so(void **state) {
    (void)state;
    memory_owned char *output = explained("unconfined", false);
    assert_non_null(strstr(output, "confines nothing"));
    assert_null(strstr(output, "removed"));
    memory_owned char *json = explained("unconfined", true);
    assert_non_null(strstr(json, "\"confined\":false"));
    assert_non_null(strstr(json, "\"changes\":[]"));
    assert_non_null(strstr(json, "\"denied_calls\":[]"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_person_reads_it),
        cmocka_unit_test(a_program_reads_it),
        cmocka_unit_test(unconfined_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
