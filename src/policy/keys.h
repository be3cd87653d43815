/* The table of the keys of a policy. Parser, canonical text, `policy show`, JSON Schema, annotations and the
 * ceiling all walk it. */
#pragma once

#include <stddef.h>

#include "policy/policy.h"

enum policy_type {
    POLICY_TYPE_BOOL,     /* bool */
    POLICY_TYPE_WORD,     /* an enumeration: one of `words` */
    POLICY_TYPE_LIST,     /* struct policy_list */
    POLICY_TYPE_DURATION, /* struct optional_int64, milliseconds: 10s, 5m, null */
    POLICY_TYPE_SIZE,     /* struct optional_int64, bytes: 512MiB, null */
    POLICY_TYPE_COUNT,    /* struct optional_int64, null */
    POLICY_TYPE_CPUS,     /* struct optional_int64, thousandths: 1.5, null */
    POLICY_TYPE_TEXT      /* char *, null */
};

struct policy_key_info {
    const char *name; /* "filesystem.writable" */
    enum policy_type type;
    size_t offset;            /* in struct policy */
    const char *const *words; /* for words, from the narrowest to the widest, in the enumeration's order */
};

/* POLICY_KEY_COUNT entries, by enum policy_key. */
extern const struct policy_key_info policy_keys[POLICY_KEY_COUNT];

/* The value's place in the policy; for a list only. */
struct policy_list *policy_list_of(const struct policy *policy, enum policy_key key);
struct optional_int64 *policy_number_of(const struct policy *policy, enum policy_key key);

/* Appends the value of a key that is not a list, as YAML reads it: "true", "allowlist", "10s", "null". */
void policy_value_write(const struct policy *policy, enum policy_key key, struct text *text);

/* One line for each key, in a fixed order, whether it was written or is the default: equal digests mean equal
 * behaviour. Neither the name nor an origin is part of it. */
void policy_canonical_write(const struct policy *policy, struct text *text);
