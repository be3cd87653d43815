/* One policy document, read: what it writes, not what it comes to. And how documents are put over a policy.
 */
#pragma once

#include "policy/policy.h"
#include "policy/yaml.h"

struct policy_document {
    char *name;            /* of its file, as errors and origins show it */
    struct policy *values; /* of the keys that are written; items of lists keep their "!" and "@default" */
    bool written[POLICY_KEY_COUNT];
    char *positions[POLICY_KEY_COUNT]; /* "FILE:LINE:COLUMN" of each key that is written */
    struct policy_list extends;
};

/* Reads the text of a policy. Errors are ERROR_INVALID and begin with NAME:LINE:COLUMN. */
fallible policy_document_read(const char *name, const char *bytes, size_t length,
                              struct policy_document **out);
/* The value of one key, as an annotation holds it: YAML of the value alone. `origin` names the annotation. */
fallible policy_document_read_value(const char *origin, enum policy_key key, const char *value,
                                    struct policy_document **out);
void policy_document_free(struct policy_document *document);
void policy_document_cleanup(struct policy_document **document);
#define policy_document_owned __attribute__((cleanup(policy_document_cleanup)))

/* What `over` writes joins `document`: scalars are replaced, lists follow each other. */
void policy_document_join(struct policy_document *document, const struct policy_document *over);
/* Puts a document over a policy. A list that names something replaces the list that was there; one of only
 * "!x" takes x out of it; "@default" stands for the built-in agent's items. */
void policy_document_apply(const struct policy_document *document, struct policy *policy);
/* The same for one of its keys. */
void policy_document_apply_key(const struct policy_document *document, enum policy_key key,
                               struct policy *policy);
