/* Any bytes as a policy: read or refused with one line; what is read survives being stored and shown, and an
 * annotation never makes a policy wider. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "policy/check.h"
#include "policy/document.h"
#include "policy/keys.h"
#include "policy/narrow.h"
#include "policy/store.h"

static void require(bool condition) {
    if (!condition)
        abort();
}

static void require_restored(const struct policy *policy) {
    text_owned struct text stored = {0}, shown = {0};
    policy_store_write(policy, &stored);
    struct policy *restored = NULL, *agent = NULL;
    error_owned error = policy_store_read(text_string(&stored), policy->digest, &restored);
    require(error == NULL);
    policy_free(restored);
    policy_show(policy, &shown);
    struct policy_document *document = NULL;
    error_owned unread = policy_document_read("shown", text_string(&shown), shown.length, &document);
    require(unread == NULL || shown.length > YAML_BYTES_MAX);
    error_owned unknown = policy_select("agent", &agent);
    require(unknown == NULL);
    if (document != NULL) {
        policy_document_apply(document, agent);
        policy_digest_update(agent);
        require(strcmp(agent->digest, policy->digest) == 0);
    }
    policy_document_free(document);
    policy_free(agent);
}

static void require_narrowed(const struct policy_document *document) {
    struct policy *agent = NULL, *narrowed = NULL;
    error_owned one = policy_select("agent", &agent);
    error_owned other = policy_select("agent", &narrowed);
    require(one == NULL && other == NULL);
    policy_narrow(narrowed, document, "annotation");
    size_t item;
    for (enum policy_key key = 0; key < POLICY_KEY_COUNT; key++)
        require(policy_is_within(narrowed, agent, key, &item));
    policy_free(agent);
    policy_free(narrowed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct policy_document *document = NULL;
    error_owned error = policy_document_read("fuzz", (const char *)data, size, &document);
    require((error == NULL) == (document != NULL));
    if (document == NULL) {
        require(strchr(error->message, '\n') == NULL);
        return 0;
    }
    struct policy *policy = NULL;
    error_owned unknown = policy_select("agent", &policy);
    require(unknown == NULL);
    policy_document_apply(document, policy);
    policy_digest_update(policy);
    string_list_owned struct string_list warnings = {0};
    policy_check(policy, &warnings);
    require_restored(policy);
    require_narrowed(document);
    policy_free(policy);
    policy_document_free(document);
    return 0;
}
