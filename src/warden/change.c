/* Another policy under a running container. The warden enforces nothing of it: it has to tell denied and
 * allowed connections right. */
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/memory.h"
#include "warden/observers.h"

static void strings_swap(char **one, char **other) {
    char *kept = *one;
    *one = *other;
    *other = kept;
}

static void lists_swap(struct string_list *one, struct string_list *other) {
    struct string_list kept = *one;
    *one = *other;
    *other = kept;
}

struct error *change_take(struct warden_context *context, int sealed) {
    struct warden_plan *plan = context->plan;
    struct warden_policy *next = &context->next, *earlier = &context->earlier;
    if (context->broker >= 0 && context->broker_ready)
        broker_handle(context); /* what was reported by the lines of now */
    warden_policy_clear(next);
    TRY(warden_policy_read(sealed, next));
    /* The lists into the plan, and the plan's to where reports that are still on their way find them. */
    warden_policy_clear(earlier);
    earlier->generation = plan->generation;
    lists_swap(&earlier->hosts, &plan->hosts);
    lists_swap(&earlier->hosts_origins, &plan->hosts_origins);
    lists_swap(&plan->hosts, &next->hosts);
    lists_swap(&plan->hosts_origins, &next->hosts_origins);
    lists_swap(&plan->names, &next->names);
    plan->generation = next->generation;
    packets_change(context);
    return NULL;
}

struct error *change_applied(struct warden_context *context) {
    struct warden_plan *plan = context->plan;
    struct warden_policy *next = &context->next;
    if (next->name == NULL)
        return error_new(ERROR_INVALID, "no policy was given");
    memory_owned char *message =
        text_formatted("Policy %s (digest %.12s) is in force, in place of %s (digest %.12s).", next->name,
                       next->digest != NULL ? next->digest : "", plan->subject.policy_name,
                       plan->subject.policy_digest != NULL ? plan->subject.policy_digest : "");
    strings_swap(&plan->subject.policy_name, &next->name);
    strings_swap(&plan->subject.policy_digest, &next->digest);
    strings_swap(&plan->policy_origin, &next->origin);
    context->policy_origin = plan->policy_origin;
    record_log_change_policy(context->log, &plan->subject);
    struct record_event event = {.class_id = RECORD_POLICY,
                                 .activity_id = 1,
                                 .action = RECORD_OBSERVED,
                                 .reason = "policy.applied",
                                 .message = message,
                                 .rule_origin = plan->policy_origin,
                                 .previous_policy = next->digest};
    struct error *error = record_write(context->log, &event);
    warden_policy_clear(next);
    return error;
}

struct error *change_broker(struct warden_context *context, int *broker) {
    fd_close(context->broker);
    context->broker = fd_take(broker);
    context->broker_ready = true;
    return NULL;
}
