/* The effective policy as the state directory keeps it, with the origin of every line, and as people read it.
 */
#pragma once

#include "policy/policy.h"

/* One line for a key or an item of a list: NAME, origin and value, with tabs between them. */
void policy_store_write(const struct policy *policy, struct text *text);
/* Reads what policy_store_write wrote; ERROR_INVALID for anything else, and where the digest is not `digest`.
 */
fallible policy_store_read(const char *bytes, const char *digest, struct policy **out);

/* YAML with the origin of each line as a comment; it can be read as a policy again. */
void policy_show(const struct policy *policy, struct text *text);
/* The same of the keys that are `written` alone, without a head. */
void policy_keys_show(const struct policy *policy, const bool written[POLICY_KEY_COUNT], struct text *text);
/* The JSON Schema (2020-12) of a policy, for editors. */
void policy_schema_write(struct text *text);
