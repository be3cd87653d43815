/* The seccomp listener: answers calls that the plan denies, and judges mutating file calls. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "policy/match.h"
#include "sys/syscalls.h"
#include "warden/describe.h"
#include "warden/executions.h"
#include "warden/mutation.h"
#include "warden/observers.h"
#include "warden/reading.h"

#define X32_BIT 0x40000000

/* --- which rule asked --- */

static bool condition_holds(const struct oci_seccomp_argument *condition, const struct seccomp_data *data) {
    if (condition->index >= sizeof data->args / sizeof *data->args || condition->op == NULL)
        return false;
    /* As the filter has it: an ABI of 32 bits has no upper half. */
    bool narrow = (data->arch & __AUDIT_ARCH_64BIT) == 0 ||
                  (data->arch == AUDIT_ARCH_X86_64 && data->nr >= 0 && (data->nr & X32_BIT) != 0);
    uint64_t keep = narrow ? UINT32_MAX : UINT64_MAX;
    uint64_t argument = data->args[condition->index] & keep, value = condition->value & keep;
    if (strcmp(condition->op, "SCMP_CMP_MASKED_EQ") == 0)
        return (argument & value) == (condition->value_two & value);
    if (strcmp(condition->op, "SCMP_CMP_EQ") == 0)
        return argument == value;
    if (strcmp(condition->op, "SCMP_CMP_NE") == 0)
        return argument != value;
    if (strcmp(condition->op, "SCMP_CMP_GT") == 0)
        return argument > value;
    if (strcmp(condition->op, "SCMP_CMP_GE") == 0)
        return argument >= value;
    if (strcmp(condition->op, "SCMP_CMP_LT") == 0)
        return argument < value;
    return strcmp(condition->op, "SCMP_CMP_LE") == 0 && argument <= value;
}

/* The first notifying rule of the document for this call, or NULL. */
static const struct oci_seccomp_rule *rule_find(const struct oci_seccomp *document, const char *call,
                                                const struct seccomp_data *data) {
    for (size_t i = 0; document != NULL && i < document->syscalls_count; i++) {
        const struct oci_seccomp_rule *rule = &document->syscalls[i];
        if (rule->action == NULL || strcmp(rule->action, "SCMP_ACT_NOTIFY") != 0 ||
            !string_list_contains(&rule->names, call))
            continue;
        bool all = true;
        for (size_t k = 0; all && k < rule->args_count; k++)
            all = condition_holds(&rule->args[k], data);
        if (all)
            return rule;
    }
    return NULL;
}

/* --- answers --- */

/* False for a call that is no longer there: killed, or interrupted where the kernel has no
 * WAIT_KILLABLE_RECV. */
static bool still_waits(int listener, uint64_t id) {
    return ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

static void respond(int listener, struct seccomp_notif_resp response) {
    while (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response) < 0 && errno == EINTR)
        continue;
}

/* `error` 0: the kernel decides. A call that is gone takes no answer, which is no error of ours. */
static void answer(int listener, uint64_t id, int error) {
    respond(listener,
            (struct seccomp_notif_resp){
                .id = id, .error = -error, .flags = error == 0 ? SECCOMP_USER_NOTIF_FLAG_CONTINUE : 0});
}

/* As if the call had done its work. */
static void answer_done(int listener, uint64_t id) {
    respond(listener, (struct seccomp_notif_resp){.id = id});
}

static void record(struct warden_context *context, const struct seccomp_notif *request, const char *exec_id,
                   struct record_event *event) {
    struct record_process process;
    record_process_read((pid_t)request->pid, &process);
    event->process = &process;
    event->exec_id = exec_id;
    if (event->action == RECORD_OBSERVED) {
        event->rule_origin = context->policy_origin;
        error_ignore(record_write(context->log, event)); /* counted in the next record */
    } else {
        denial_record(context, event);
    }
    event->process = NULL;
    record_process_clear(&process);
}

/* --- denied calls --- */

static bool is_learning(const struct warden_context *context) {
    return context->on_denied == POLICY_DENIED_LOG_ONLY;
}

static void deny_call(struct warden_context *context, int listener, const struct seccomp_notif *request,
                      const char *exec_id, const char *call, int error, bool learning) {
    /* What a policy can say about it. */
    static const struct {
        const char *call, *rule, *remedy;
    } policy_lines[] = {
        {"ptrace", "processes.ptrace: false", "processes: {ptrace: true}"},
        {"process_vm_readv", "processes.ptrace: false", "processes: {ptrace: true}"},
        {"process_vm_writev", "processes.ptrace: false", "processes: {ptrace: true}"},
        {"pidfd_getfd", "processes.ptrace: false", "processes: {ptrace: true}"},
        {"kcmp", "processes.ptrace: false", "processes: {ptrace: true}"},
        {"clone", "processes.userns: false", "processes: {userns: true}"},
        {"unshare", "processes.userns: false", "processes: {userns: true}"},
    };
    text_owned struct text message = {0};
    describe_call(&message, call, &request->data);
    text_append(&message, learning ? " was let through (on_denied_action: log_only); it is denied otherwise."
                                   : " was denied: a sandbox has no use for it.");
    struct record_event event = {
        .class_id = RECORD_PROCESS,
        .activity_id = 99,
        .activity_name = call,
        .action = learning ? RECORD_OBSERVED : RECORD_DENIED,
        .reason = "syscall.not_allowed",
        .message = text_string(&message),
        .rule = "processes: default",
    };
    for (size_t i = 0; i < sizeof policy_lines / sizeof *policy_lines; i++)
        if (strcmp(policy_lines[i].call, call) == 0) {
            event.rule = policy_lines[i].rule;
            event.remedy = policy_lines[i].remedy;
        }
    /* Before the answer: once the call has returned, its record is there. */
    record(context, request, exec_id, &event);
    answer(listener, request->id, learning ? 0 : error);
}

/* --- mutating file calls --- */

static void deny_mutation(struct warden_context *context, int listener, const struct seccomp_notif *request,
                          const char *exec_id, const struct mutation *mutation) {
    struct record_process process;
    record_process_read((pid_t)request->pid, &process);
    file_denial_record(context, mutation, &process, exec_id);
    record_process_clear(&process);
    answer(listener, request->id, mutation->let_through ? 0 : mutation->error);
}

/* Entrypoints give all of /run to their user, and end where that fails. What lies in the container's view of
 * its denials stays as it is; nobody but its reader could tell. */
static bool is_passed_over(const struct warden_context *context, const struct mutation *mutation) {
    return context->inside && mutation->of_owner &&
           match_path_within(mutation->path, RECORD_INSIDE_DIRECTORY);
}

/* --- reading --- */

/* The policy's own lines with one more: a list replaces, and "@default" is everything. */
static char *reading_remedy(const struct warden_plan *plan, const char *path) {
    json_owned struct json_writer remedy = {0};
    text_append(&remedy.text, "filesystem: {readable: [");
    for (size_t i = 0; i < plan->readable.count; i++)
        json_string(&remedy, plan->readable.items[i]);
    json_string(&remedy, path);
    text_append(&remedy.text, "]}");
    return memory_copy_string(text_string(&remedy.text));
}

static void deny_reading(struct warden_context *context, int listener, const struct seccomp_notif *request,
                         const char *exec_id, const struct mutation *reading) {
    memory_owned char *message =
        text_formatted("The attempt at %s %s was denied: filesystem.readable does not name it.",
                       reading->doing, reading->path);
    memory_owned char *remedy = reading_remedy(context->plan, reading->path);
    struct record_event event = {
        .class_id = RECORD_FILE,
        .activity_id = reading->activity_id,
        .action = RECORD_DENIED,
        .reason = "fs.read.not_granted",
        .message = message,
        .file_path = reading->path,
        .rule = "filesystem.readable",
        .remedy = remedy,
    };
    record(context, request, exec_id, &event);
    answer(listener, request->id, EACCES);
}

/* --- programs --- */

/* No rule denies these calls: what may be read decides, and else the kernel. The plan's rules are not read
 * for them, because each container makes one to begin with. */
static void execution_handle(struct warden_context *context, int listener,
                             const struct seccomp_notif *request, const char *exec_id, const char *call,
                             const struct readable *readable) {
    struct mutation reading;
    if (request->pid != 0 && context->plan->mutations_judged &&
        reading_judge(call, &request->data, (pid_t)request->pid, readable, &reading) &&
        still_waits(listener, request->id)) {
        deny_reading(context, listener, request, exec_id, &reading);
        return;
    }
    if (request->pid != 0)
        executions_attempt(context, call, request, exec_id);
    answer(listener, request->id, 0);
}

/* --- the entry --- */

static const struct warden_rules *rules_of(struct warden_context *context) {
    const struct warden_rules *rules;
    struct error *error = warden_plan_rules(context->plan, &rules);
    if (error == NULL)
        return rules;
    memory_owned char *message = text_formatted(
        "What this sandbox denies cannot be told from what it observes: %s. Every such call is denied.",
        error->message);
    const struct record_event event = {.class_id = RECORD_FINDING,
                                       .activity_id = 1,
                                       .action = RECORD_DENIED,
                                       .reason = "mechanism.unavailable",
                                       .message = message,
                                       .rule = "promise: denial records",
                                       .rule_origin = context->policy_origin,
                                       .subject = "seccomp"};
    error_ignore(record_write(context->log, &event)); /* counted by the log */
    error_free(error);
    return rules;
}

static void notification_handle(struct warden_context *context, int listener,
                                const struct seccomp_notif *request, const char *exec_id,
                                const struct readable *readable) {
    char call[64];
    syscall_name(request->data.arch, request->data.nr, call, sizeof call);
    if (context->plan->executions && executions_is_call(call)) {
        execution_handle(context, listener, request, exec_id, call, readable);
        return;
    }
    const struct warden_rules *rules = rules_of(context);
    const struct oci_seccomp_rule *rule = rule_find(rules->denied, call, &request->data);
    if (rule != NULL) {
        int error = rule->errno_return.set ? (int)rule->errno_return.value : EPERM;
        deny_call(context, listener, request, exec_id, call, error, is_learning(context));
        return;
    }
    if (rule_find(rules->observed, call, &request->data) == NULL) {
        /* The filter asks for nothing else; if it does, the plan and the filter differ, and the answer is no.
         */
        deny_call(context, listener, request, exec_id, call[0] != '\0' ? call : "unknown", EPERM, false);
        return;
    }
    struct mutation mutation;
    bool denied = request->pid != 0 &&
                  mutation_judge(call, &request->data, (pid_t)request->pid, is_learning(context), &mutation);
    bool unreadable = request->pid != 0 && !denied &&
                      reading_judge(call, &request->data, (pid_t)request->pid, readable, &mutation);
    /* Only now is it certain that what was read belongs to this call and not to a later process of the same
     * number. */
    if (denied && mutation.error == EROFS && is_passed_over(context, &mutation))
        answer_done(listener, request->id);
    else if (!context->plan->mutations_judged)
        answer(listener, request->id, 0); /* that was the only question */
    else if (denied && still_waits(listener, request->id))
        deny_mutation(context, listener, request, exec_id, &mutation);
    else if (unreadable && still_waits(listener, request->id))
        deny_reading(context, listener, request, exec_id, &mutation);
    else
        answer(listener, request->id, 0);
}

bool notify_handle(struct warden_context *context, int listener, const char *exec_id,
                   const struct readable *readable) {
    /* RECV waits where nothing is pending, so that is asked for first. */
    struct pollfd ready = {.fd = listener, .events = POLLIN};
    if (poll(&ready, 1, 0) < 0)
        return errno == EINTR;
    if ((ready.revents & POLLIN) == 0)
        return (ready.revents & (POLLHUP | POLLERR | POLLNVAL)) == 0;
    struct seccomp_notif request;
    memset(&request, 0, sizeof request); /* the kernel wants zeros, padding included */
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request) < 0)
        return errno == ENOENT || errno == EINTR; /* ENOENT: the caller is gone meanwhile */
    notification_handle(context, listener, &request, exec_id, readable);
    return true;
}
