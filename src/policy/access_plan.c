#include "policy/access_plan.h"

#include "libocispec/schema_table.h"
#include "policy/match.h"

static const struct schema_field fields[] = {
    BOOL(OPTIONAL, "reads", access_plan, reads),
    BOOL(OPTIONAL, "image", access_plan, image),
    STRINGS(OPTIONAL, "unreadable", access_plan, unreadable),
    STRINGS(OPTIONAL, "readable", access_plan, readable),
    STRINGS(OPTIONAL, "writable", access_plan, writable),
    STRINGS(OPTIONAL, "writableFiles", access_plan, writable_files),
};
const struct schema access_plan_schema = SCHEMA("access plan", access_plan, fields);

static bool is_within_any(const struct string_list *places, const char *path) {
    for (size_t i = 0; i < places->count; i++)
        if (match_path_within(path, places->items[i]))
            return true;
    return false;
}

/* A directory above an unreadable mount has no rule of its own: that would hold for the mount too. */
static bool is_image(const struct access_plan *plan, const char *path) {
    for (size_t i = 0; i < plan->unreadable.count; i++)
        if (match_path_within(path, plan->unreadable.items[i]) ||
            match_path_within(plan->unreadable.items[i], path))
            return false;
    return plan->image;
}

bool access_plan_lets_read(const struct access_plan *plan, const char *path) {
    return !plan->reads || is_image(plan, path) || is_within_any(&plan->readable, path) ||
           is_within_any(&plan->writable, path) || is_within_any(&plan->writable_files, path);
}

bool access_plan_lets_write(const struct access_plan *plan, const char *path) {
    return is_within_any(&plan->writable, path) || is_within_any(&plan->writable_files, path);
}

void access_plan_free(struct access_plan *plan) {
    if (plan == NULL)
        return;
    schema_free(&access_plan_schema, plan);
}
