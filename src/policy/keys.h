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

/* What an item of a list is. */
enum policy_item {
    POLICY_ITEM_NONE,
    POLICY_ITEM_READABLE,   /* @image, @mounts, @cwd, ~, an absolute path or glob */
    POLICY_ITEM_WRITABLE,   /* @mounts, @cwd, ~, an absolute path */
    POLICY_ITEM_SCRATCH,    /* ~, an absolute path */
    POLICY_ITEM_HIDDEN,     /* an absolute path or glob, ~/... */
    POLICY_ITEM_PROTECTED,  /* the same, or relative to each writable place */
    POLICY_ITEM_HOST,       /* policy/hosts.h */
    POLICY_ITEM_VARIABLE,   /* a name or glob */
    POLICY_ITEM_MOUNT,      /* an absolute path of the host or the container, ~/... */
    POLICY_ITEM_CAPABILITY, /* CAP_CHOWN */
    POLICY_ITEM_MECHANISM   /* a key of this table or the name of a mechanism */
};

/* Which of two values is the narrower one: what an annotation may change and a ceiling bounds. */
enum policy_narrower {
    POLICY_NARROWER_LOWER,  /* false, an earlier word, a smaller number; no number is the widest */
    POLICY_NARROWER_HIGHER, /* true */
    POLICY_NARROWER_FEWER,  /* a list of which each item is covered by the other list */
    POLICY_NARROWER_MORE,   /* a list that holds all items of the other one */
    POLICY_NARROWER_NEITHER /* nothing of the boundary depends on it: not for annotations and ceilings */
};

struct policy_key_info {
    const char *name; /* "filesystem.writable" */
    enum policy_type type;
    size_t offset;            /* in struct policy */
    const char *const *words; /* for words, from the narrowest to the widest, in the enumeration's order */
    enum policy_item item;    /* for lists */
    enum policy_narrower narrower;
    const char *help; /* one line */
};

/* POLICY_KEY_COUNT entries, by enum policy_key. */
extern const struct policy_key_info policy_keys[POLICY_KEY_COUNT];

/* The value's place in the policy; for a list only. */
struct policy_list *policy_list_of(const struct policy *policy, enum policy_key key);
struct optional_int64 *policy_number_of(const struct policy *policy, enum policy_key key);

/* The key of that name, POLICY_KEY_COUNT when there is none. */
enum policy_key policy_key_find(const char *name);

/* Reads the value of a key that is not a list into the policy. `plain`: it stood without quotes. The error
 * has no position and does not name the key. */
fallible policy_value_read(struct policy *policy, enum policy_key key, const char *value, bool plain);
/* The one form of an item of a list, without a leading "!"; the caller frees it. The error has no position
 * and does not name the key. */
fallible policy_item_read(enum policy_key key, const char *item, char **out);
/* "true or false", "deny or allow": what a value of the key looks like. The caller frees it. */
char *policy_value_expected(enum policy_key key);

/* Appends the value of a key that is not a list, as YAML reads it: "true", "allowlist", "10s", "null". */
void policy_value_write(const struct policy *policy, enum policy_key key, struct text *text);

/* One line for each key, in a fixed order, whether it was written or is the default: equal digests mean equal
 * behaviour. Neither the name nor an origin is part of it. */
void policy_canonical_write(const struct policy *policy, struct text *text);
