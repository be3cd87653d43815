#include "policy/narrow.h"

#include <string.h>

#include "base/memory.h"
#include "policy/hosts.h"
#include "policy/keys.h"
#include "policy/match.h"

#define IGNORED "policy.annotation.ignored"

static bool host_is_covered(const char *item, const struct string_list *wide) {
    struct policy_host narrow;
    bool covered = false;
    struct error *error = policy_host_read(item, &narrow);
    for (size_t i = 0; error == NULL && !covered && i < wide->count; i++) {
        struct policy_host candidate;
        struct error *unread = policy_host_read(wide->items[i], &candidate);
        covered = unread == NULL && policy_host_covers(&candidate, &narrow);
        error_ignore(unread); /* such a line lets nothing through */
        policy_host_clear(&candidate);
    }
    error_ignore(error);
    policy_host_clear(&narrow);
    return covered;
}

/* A glob is covered by another where that one's stars take its stars; "?" takes one byte, and a star may
 * stand for more. */
static bool glob_covers(const char *wide, const char *narrow) {
    if (strcmp(wide, narrow) == 0)
        return true;
    return match_name(wide, narrow) && (strchr(wide, '?') == NULL || strchr(narrow, '*') == NULL);
}

static bool path_covers(const char *wide, const char *narrow) {
    if (strcmp(wide, narrow) == 0)
        return true;
    return (wide[0] == '/' || wide[0] == '~') && strpbrk(wide, "*?[") == NULL &&
           match_path_within(narrow, wide);
}

static bool item_is_covered(enum policy_key key, const char *item, const struct string_list *wide) {
    enum policy_item kind = policy_keys[key].item;
    if (string_list_contains(wide, item))
        return true;
    if (kind == POLICY_ITEM_HOST)
        return host_is_covered(item, wide);
    /* Together they are all there is. */
    if (kind == POLICY_ITEM_READABLE && string_list_contains(wide, "@image") &&
        string_list_contains(wide, "@mounts"))
        return true;
    for (size_t i = 0; i < wide->count; i++) {
        if (kind == POLICY_ITEM_VARIABLE && glob_covers(wide->items[i], item))
            return true;
        if ((kind == POLICY_ITEM_READABLE || kind == POLICY_ITEM_WRITABLE || kind == POLICY_ITEM_SCRATCH) &&
            path_covers(wide->items[i], item))
            return true;
    }
    return false;
}

static bool list_is_within(enum policy_key key, const struct string_list *narrow,
                           const struct string_list *wide, size_t *item) {
    bool more = policy_keys[key].narrower == POLICY_NARROWER_MORE;
    const struct string_list *each = more ? wide : narrow, *other = more ? narrow : wide;
    for (size_t i = 0; i < each->count; i++)
        if (more ? !string_list_contains(other, each->items[i])
                 : !item_is_covered(key, each->items[i], other)) {
            *item = i;
            return false;
        }
    return true;
}

static bool number_is_within(const struct optional_int64 *narrow, const struct optional_int64 *wide) {
    return !wide->set || (narrow->set && narrow->value <= wide->value);
}

bool policy_is_within(const struct policy *narrow, const struct policy *wide, enum policy_key key,
                      size_t *item) {
    const struct policy_key_info *info = &policy_keys[key];
    if (info->narrower == POLICY_NARROWER_NEITHER)
        return true;
    const void *one = (const char *)narrow + info->offset, *other = (const char *)wide + info->offset;
    switch (info->type) {
    case POLICY_TYPE_LIST:
        return list_is_within(key, &policy_list_of(narrow, key)->values, &policy_list_of(wide, key)->values,
                              item);
    case POLICY_TYPE_BOOL:
        return info->narrower == POLICY_NARROWER_HIGHER ? *(const bool *)one >= *(const bool *)other
                                                        : *(const bool *)one <= *(const bool *)other;
    case POLICY_TYPE_WORD:
        return *(const unsigned *)one <= *(const unsigned *)other;
    case POLICY_TYPE_TEXT:
        return true;
    default:
        return number_is_within(one, other);
    }
}

/* --- annotations --- */

static struct policy *policy_of(const struct policy_document *document, const struct policy *base) {
    struct policy *policy = memory_zeroed(sizeof *policy);
    for (enum policy_key key = 0; key < POLICY_KEY_COUNT; key++) {
        if (!document->written[key] || policy_keys[key].type != POLICY_TYPE_LIST)
            continue;
        const struct policy_list *list = policy_list_of(base, key);
        for (size_t i = 0; i < list->values.count; i++)
            policy_list_append(policy_list_of(policy, key), list->values.items[i],
                               policy_list_origin(list, i));
    }
    policy_document_apply(document, policy);
    return policy;
}

static void list_narrow(struct policy *policy, struct policy *asked, enum policy_key key,
                        const char *annotation) {
    struct policy_list *have = policy_list_of(policy, key), *want = policy_list_of(asked, key);
    bool more = policy_keys[key].narrower == POLICY_NARROWER_MORE;
    if (more) { /* what is there stays */
        for (size_t i = 0; i < want->values.count; i++)
            if (!string_list_contains(&have->values, want->values.items[i]))
                policy_list_append(have, want->values.items[i], policy_list_origin(want, i));
        return;
    }
    for (size_t i = 0; i < want->values.count;) {
        const char *item = want->values.items[i];
        if (item_is_covered(key, item, &have->values)) {
            i++;
            continue;
        }
        policy_remark(policy, IGNORED, annotation, policy_origin(policy, key),
                      "The annotation %.200s asks for \"%.200s\" in %s, which the policy does not give; an "
                      "annotation only narrows.",
                      annotation, item, policy_keys[key].name);
        policy_list_remove(want, i);
    }
    struct policy_list kept = *want;
    *want = *have;
    *have = kept;
}

void policy_narrow(struct policy *policy, const struct policy_document *document, const char *annotation) {
    struct policy *asked = policy_of(document, policy);
    for (enum policy_key key = 0; key < POLICY_KEY_COUNT; key++) {
        size_t item;
        if (!document->written[key])
            continue;
        if (policy_keys[key].narrower == POLICY_NARROWER_NEITHER ||
            (policy_keys[key].type != POLICY_TYPE_LIST && !policy_is_within(asked, policy, key, &item))) {
            policy_remark(policy, IGNORED, annotation, policy_origin(policy, key),
                          "The annotation %.200s would set %s, which an annotation can only narrow.",
                          annotation, policy_keys[key].name);
            continue;
        }
        if (policy_keys[key].type == POLICY_TYPE_LIST) {
            list_narrow(policy, asked, key, annotation);
            memory_replace_string(&policy->origins[key], document->positions[key]);
        } else {
            policy_document_apply_key(document, key, policy);
        }
    }
    policy_free(asked);
}

/* --- the ceiling --- */

static struct error *beyond(const char *what, const char *here, const char *there) {
    return error_new(ERROR_REFUSED, POLICY_CEILING_EXCEEDED ": %s, written in %s, is more than %s allows",
                     what, here, there);
}

static struct error *list_beyond(const struct policy *policy, const struct policy *most, enum policy_key key,
                                 size_t item, const char *there) {
    if (policy_keys[key].narrower == POLICY_NARROWER_MORE) {
        memory_owned char *what = text_formatted("%s without \"%.200s\"", policy_keys[key].name,
                                                 policy_list_of(most, key)->values.items[item]);
        return beyond(what, policy_origin(policy, key), policy_list_origin(policy_list_of(most, key), item));
    }
    const struct policy_list *list = policy_list_of(policy, key);
    memory_owned char *what =
        text_formatted("%s: \"%.200s\"", policy_keys[key].name, list->values.items[item]);
    return beyond(what, policy_list_origin(list, item), there);
}

struct error *policy_ceiling_check(const struct policy *policy, const struct policy_document *ceiling) {
    struct policy *most = memory_zeroed(sizeof *most);
    policy_document_apply(ceiling, most);
    struct error *error = NULL;
    for (enum policy_key key = 0; error == NULL && key < POLICY_KEY_COUNT; key++) {
        size_t item = 0;
        if (!ceiling->written[key])
            continue;
        if (!policy->confined) {
            error = beyond("a policy that confines nothing", policy->origin, ceiling->positions[key]);
        } else if (policy_is_within(policy, most, key, &item)) {
            continue;
        } else if (policy_keys[key].type == POLICY_TYPE_LIST) {
            error = list_beyond(policy, most, key, item, ceiling->positions[key]);
        } else {
            text_owned struct text value = {0};
            text_format(&value, "%s: ", policy_keys[key].name);
            policy_value_write(policy, key, &value);
            error = beyond(text_string(&value), policy_origin(policy, key), ceiling->positions[key]);
        }
    }
    policy_free(most);
    return error;
}
