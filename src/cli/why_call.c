#include <errno.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "cli/why.h"
#include "harden/seccomp.h"
#include "process/seccomp.h"
#include "sys/syscalls.h"

static char *name_of(const char *subject) {
    return text_formatted("%.*s", (int)strcspn(subject, "("), subject);
}

static int number_of(const char *name) {
    int number = seccomp_syscall_resolve_name(name);
    if (number == __NR_SCMP_ERROR)
        number = syscall_number_recent(name);
    return number;
}

bool why_is_call(const char *subject) {
    memory_owned char *name = name_of(subject);
    return number_of(name) != -1;
}

static struct error *arguments_read(const char *subject, uint64_t arguments[6]) {
    const char *at = strchr(subject, '(');
    if (at++ == NULL)
        return NULL;
    for (size_t i = 0; i < 6 && *at != ')' && *at != '\0'; i++) {
        char *end;
        errno = 0;
        arguments[i] = strtoull(at, &end, 0);
        if (end == at || errno != 0)
            break;
        at = end + strspn(end, " ");
        if (*at == ',')
            at++;
    }
    if (strcmp(at, ")") != 0)
        return error_new(ERROR_USAGE, "why: expected CALL(NUMBER, ...), found \"%.100s\"", subject);
    return NULL;
}

/* In the order in which the filter was joined: the first that does not let the call pass has decided. */
static struct error *decided_by(const struct hardened *hardened, int number, const uint64_t arguments[6],
                                const struct oci_seccomp **out) {
    const struct oci_seccomp *documents[] = {hardened->denied, hardened->config->linux_config->seccomp};
    *out = NULL;
    for (size_t i = 0; i < 2 && *out == NULL; i++) {
        struct seccomp_program program = {0};
        TRY(seccomp_compile(&documents[i], 1, NULL, &program));
        if (seccomp_program_verdict(&program, number, arguments) != SECCOMP_RET_ALLOW)
            *out = documents[i];
        seccomp_program_free(&program);
    }
    return NULL;
}

static void answer_denied(const struct prepared *prepared, const char *name, bool by_policy, uint32_t verdict,
                          struct why_answer *answer) {
    if (!by_policy) {
        answer->rule = memory_copy_string("linux.seccomp of config.json, as the engine wrote it");
        return;
    }
    enum policy_key key = POLICY_KEY_COUNT;
    const char *reason = harden_seccomp_reason(name);
    if (harden_seccomp_key(name, &key)) {
        answer->rule =
            text_formatted("processes.%s: false", key == POLICY_PROCESSES_PTRACE ? "ptrace" : "userns");
        answer->remedy =
            text_formatted("processes: {%s: true}", key == POLICY_PROCESSES_PTRACE ? "ptrace" : "userns");
        answer->origin = memory_copy_string(policy_origin(prepared->policy, key));
    } else {
        answer->rule = memory_copy_string("built-in: system calls of a sandbox");
    }
    bool recorded = (verdict & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_USER_NOTIF;
    answer->note =
        text_formatted("%s%s", reason != NULL ? reason : "", recorded ? "" : " (without a record)");
}

struct error *why_call(const struct prepared *prepared, const char *subject, struct why_answer *answer) {
    const struct hardened *hardened = prepared->hardened;
    memory_owned char *name = name_of(subject);
    uint64_t arguments[6] = {0};
    TRY(arguments_read(subject, arguments));
    int number = number_of(name);
    answer->what = text_formatted("the system call %s", subject);
    if (number < 0) {
        answer->allowed = true;
        answer->rule = memory_copy_string("this machine's own ABI has no such call");
        return NULL;
    }
    const struct oci_seccomp *documents[] = {hardened->denied, hardened->config->linux_config->seccomp,
                                             hardened->observed};
    struct seccomp_program program = {0};
    TRY(seccomp_compile(documents, 3, NULL, &program));
    uint32_t verdict = seccomp_program_verdict(&program, number, arguments);
    seccomp_program_free(&program);
    const struct oci_seccomp *decided = NULL;
    TRY(decided_by(hardened, number, arguments, &decided));
    answer->allowed = decided == NULL;
    if (decided == hardened->denied && decided != NULL &&
        (verdict & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_USER_NOTIF &&
        prepared->policy->on_denied_action == POLICY_DENIED_LOG_ONLY) {
        answer->allowed = true;
        answer->rule = memory_copy_string("on_denied_action: log_only");
        answer->origin = memory_copy_string(policy_origin(prepared->policy, POLICY_ON_DENIED_ACTION));
        answer->note = memory_copy_string("it is recorded, and denied otherwise");
        return NULL;
    }
    if (answer->allowed) {
        answer->rule = memory_copy_string("no rule denies it");
        if (strchr(subject, '(') == NULL && harden_seccomp_reason(name) != NULL)
            answer->note = text_formatted("some of its forms are denied: ask with arguments, %s(1, 2)", name);
        return NULL;
    }
    answer_denied(prepared, name, decided == hardened->denied, verdict, answer);
    return NULL;
}
