#include "process/seccomp.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "process/seccomp_filter.h"
#include "sys/syscalls.h"

/* Marks an x32 call among those of AUDIT_ARCH_X86_64. */
#define X32_BIT 0x40000000u
/* From here on no ABI has a call; -1 is what a tracer sets to skip one. */
#define NO_CALL_START 0x80000000u

/* --- names to values --- */

static fallible action_parse(const char *name, const struct optional_uint32 *errno_return, uint32_t *out) {
    /* config-linux.md: errnoRet is for ERRNO and TRACE; without it EPERM. */
    uint32_t number = errno_return->set ? errno_return->value : EPERM;
    const struct {
        const char *name;
        uint32_t action;
    } actions[] = {
        {"SCMP_ACT_KILL", SCMP_ACT_KILL_THREAD},
        {"SCMP_ACT_KILL_THREAD", SCMP_ACT_KILL_THREAD},
        {"SCMP_ACT_KILL_PROCESS", SCMP_ACT_KILL_PROCESS},
        {"SCMP_ACT_TRAP", SCMP_ACT_TRAP},
        {"SCMP_ACT_ERRNO", SCMP_ACT_ERRNO(number)},
        {"SCMP_ACT_TRACE", SCMP_ACT_TRACE(number)},
        {"SCMP_ACT_ALLOW", SCMP_ACT_ALLOW},
        {"SCMP_ACT_LOG", SCMP_ACT_LOG},
        {"SCMP_ACT_NOTIFY", SCMP_ACT_NOTIFY},
    };
    for (size_t i = 0; name != NULL && i < sizeof actions / sizeof *actions; i++)
        if (strcmp(actions[i].name, name) == 0) {
            /* The field has 16 bits; the kernel caps a larger number of an ERRNO at 4095 without a word. */
            if (errno_return->set && number > UINT16_MAX)
                return error_new(ERROR_INVALID, "linux.seccomp: errnoRet %u is above 65535", number);
            *out = actions[i].action;
            return NULL;
        }
    return error_new(ERROR_INVALID,
                     "linux.seccomp: unknown action \"%s\" (one of SCMP_ACT_KILL, SCMP_ACT_KILL_THREAD, "
                     "SCMP_ACT_KILL_PROCESS, SCMP_ACT_TRAP, SCMP_ACT_ERRNO, SCMP_ACT_TRACE, SCMP_ACT_ALLOW, "
                     "SCMP_ACT_LOG, SCMP_ACT_NOTIFY)",
                     name != NULL ? name : "");
}

static fallible operator_parse(const char *name, enum scmp_compare *out) {
    static const struct {
        const char *name;
        enum scmp_compare value;
    } operators[] = {
        {"SCMP_CMP_NE", SCMP_CMP_NE},
        {"SCMP_CMP_LT", SCMP_CMP_LT},
        {"SCMP_CMP_LE", SCMP_CMP_LE},
        {"SCMP_CMP_EQ", SCMP_CMP_EQ},
        {"SCMP_CMP_GE", SCMP_CMP_GE},
        {"SCMP_CMP_GT", SCMP_CMP_GT},
        {"SCMP_CMP_MASKED_EQ", SCMP_CMP_MASKED_EQ},
    };
    for (size_t i = 0; name != NULL && i < sizeof operators / sizeof *operators; i++)
        if (strcmp(operators[i].name, name) == 0) {
            *out = operators[i].value;
            return NULL;
        }
    return error_new(
        ERROR_INVALID,
        "linux.seccomp.syscalls.args: unknown op \"%s\" (one of SCMP_CMP_NE, SCMP_CMP_LT, SCMP_CMP_LE, "
        "SCMP_CMP_EQ, SCMP_CMP_GE, SCMP_CMP_GT, SCMP_CMP_MASKED_EQ)",
        name != NULL ? name : "");
}

static fallible architecture_parse(const char *name, uint32_t *out) {
    /* "SCMP_ARCH_X86_64" is "x86_64" to libseccomp, and so are all others. */
    static const char prefix[] = "SCMP_ARCH_";
    if (text_starts_with(name, prefix)) {
        char lower[32] = "";
        for (size_t i = 0; i + 1 < sizeof lower && name[sizeof prefix - 1 + i] != '\0'; i++) {
            char c = name[sizeof prefix - 1 + i];
            lower[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
        }
        *out = seccomp_arch_resolve_name(lower);
        if (*out != 0)
            return NULL;
    }
    return error_new(ERROR_INVALID, "linux.seccomp.architectures: unknown architecture \"%s\"", name);
}

static fallible flags_parse(const struct string_list *names, unsigned *flags) {
    static const struct {
        const char *name;
        unsigned flag;
    } known[] = {
        {"SECCOMP_FILTER_FLAG_TSYNC", SECCOMP_FILTER_FLAG_TSYNC},
        {"SECCOMP_FILTER_FLAG_LOG", SECCOMP_FILTER_FLAG_LOG},
        {"SECCOMP_FILTER_FLAG_SPEC_ALLOW", SECCOMP_FILTER_FLAG_SPEC_ALLOW},
        {"SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV", SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV},
    };
    for (size_t i = 0; i < names->count; i++) {
        unsigned flag = 0;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            if (strcmp(known[k].name, names->items[i]) == 0)
                flag = known[k].flag;
        if (flag == 0)
            return error_new(ERROR_INVALID, "linux.seccomp.flags: unknown flag \"%s\"", names->items[i]);
        *flags |= flag;
    }
    return NULL;
}

/* --- one document --- */

/* A rule of the document with its words as values. */
struct parsed_rule {
    uint32_t action;
    struct scmp_arg_cmp *conditions;
    size_t count;
    bool alternatives; /* each condition by itself suffices */
    const struct string_list *names;
};

struct document {
    uint32_t default_action;
    uint32_t architectures[8]; /* libseccomp's tokens, the native one first */
    size_t architectures_count;
    struct parsed_rule *rules;
    size_t rules_count;
    bool notifies;
};

static void document_clear(struct document *document) {
    for (size_t i = 0; i < document->rules_count; i++)
        free(document->rules[i].conditions);
    free(document->rules);
}

static bool document_has_architecture(const struct document *document, uint32_t token) {
    for (size_t i = 0; i < document->architectures_count; i++)
        if (document->architectures[i] == token)
            return true;
    return false;
}

/* Profiles name the architectures of many machines; code for those that this one cannot run is left out. */
static bool machine_runs(uint32_t token) {
    switch (seccomp_arch_native()) {
    case SCMP_ARCH_X86_64:
        return token == SCMP_ARCH_X86_64 || token == SCMP_ARCH_X86 || token == SCMP_ARCH_X32;
    case SCMP_ARCH_AARCH64:
        return token == SCMP_ARCH_AARCH64 || token == SCMP_ARCH_ARM;
    case SCMP_ARCH_S390X:
        return token == SCMP_ARCH_S390X || token == SCMP_ARCH_S390;
    default:
        return token == seccomp_arch_native();
    }
}

static fallible document_parse_architectures(struct document *document, const struct string_list *names) {
    document->architectures[document->architectures_count++] = seccomp_arch_native();
    for (size_t i = 0; i < names->count; i++) {
        uint32_t token;
        TRY(architecture_parse(names->items[i], &token));
        if (machine_runs(token) && !document_has_architecture(document, token))
            document->architectures[document->architectures_count++] = token;
    }
    return NULL;
}

static fallible document_parse_rule(struct document *document, const struct oci_seccomp_rule *rule) {
    uint32_t action;
    TRY(action_parse(rule->action, &rule->errno_return, &action));
    if (action == document->default_action)
        return NULL; /* says nothing; with conditions it would even shadow a rule that does */
    if (action == SCMP_ACT_NOTIFY)
        document->notifies = true;

    document->rules = memory_resize(document->rules, document->rules_count + 1, sizeof *document->rules);
    struct parsed_rule *parsed = &document->rules[document->rules_count++];
    *parsed = (struct parsed_rule){
        .action = action,
        .conditions = memory_zeroed((rule->args_count + 1) * sizeof *parsed->conditions),
        .count = rule->args_count,
        .names = &rule->names,
    };
    unsigned seen = 0;
    for (size_t i = 0; i < rule->args_count; i++) {
        const struct oci_seccomp_argument *argument = &rule->args[i];
        if (argument->index > 5)
            return error_new(ERROR_INVALID, "linux.seccomp.syscalls.args: index %u (0 to 5)",
                             argument->index);
        /* Two conditions on one argument of one rule make every condition of the rule an alternative:
         * libseccomp cannot join them, so profiles were written for this reading. */
        parsed->alternatives |= (seen & (1u << argument->index)) != 0;
        seen |= 1u << argument->index;
        parsed->conditions[i] = (struct scmp_arg_cmp){
            .arg = argument->index, .datum_a = argument->value, .datum_b = argument->value_two};
        TRY(operator_parse(argument->op, &parsed->conditions[i].op));
    }
    return NULL;
}

static fallible document_parse(const struct oci_seccomp *source, struct document *document) {
    TRY(action_parse(source->default_action, &source->default_errno_return, &document->default_action));
    if (document->default_action == SCMP_ACT_NOTIFY)
        return error_new(ERROR_INVALID,
                         "linux.seccomp.defaultAction: SCMP_ACT_NOTIFY would stop the container's "
                         "own start");
    TRY(document_parse_architectures(document, &source->architectures));
    for (size_t i = 0; i < source->syscalls_count; i++)
        TRY(document_parse_rule(document, &source->syscalls[i]));
    return NULL;
}

/* --- the rules of one ABI --- */

/* Calls that x86 knows by numbers of their own (arch/x86/entry/syscalls/syscall_32.tbl) and as a function of
 * socketcall(2) or ipc(2). libseccomp gives one negative number for both. */
static const struct {
    const char *name;
    int number;
} direct_calls[] = {
    {"socket", 359},   {"socketpair", 360}, {"bind", 361},       {"connect", 362},     {"listen", 363},
    {"accept4", 364},  {"getsockopt", 365}, {"setsockopt", 366}, {"getsockname", 367}, {"getpeername", 368},
    {"sendto", 369},   {"sendmsg", 370},    {"recvfrom", 371},   {"recvmsg", 372},     {"shutdown", 373},
    {"semget", 393},   {"semctl", 394},     {"shmget", 395},     {"shmctl", 396},      {"shmat", 397},
    {"shmdt", 398},    {"msgget", 399},     {"msgsnd", 400},     {"msgrcv", 401},      {"msgctl", 402},
    {"recvmmsg", 337}, {"sendmmsg", 345},
};

/* "The first argument is N", for the functions of socketcall and ipc. */
#define FUNCTION(n)                                                                                          \
    { .arg = 0, .op = SCMP_CMP_EQ, .datum_a = n }
static const struct scmp_arg_cmp functions[] = {
    FUNCTION(0),  FUNCTION(1),  FUNCTION(2),  FUNCTION(3),  FUNCTION(4),  FUNCTION(5),  FUNCTION(6),
    FUNCTION(7),  FUNCTION(8),  FUNCTION(9),  FUNCTION(10), FUNCTION(11), FUNCTION(12), FUNCTION(13),
    FUNCTION(14), FUNCTION(15), FUNCTION(16), FUNCTION(17), FUNCTION(18), FUNCTION(19), FUNCTION(20),
    FUNCTION(21), FUNCTION(22), FUNCTION(23), FUNCTION(24),
};
#undef FUNCTION

static void list_add_conditions(struct filter_list *list, const struct parsed_rule *rule,
                                struct filter_rule one) {
    one.conditions = rule->conditions;
    one.count = rule->count;
    if (!rule->alternatives) {
        filter_list_add(list, one);
        return;
    }
    one.count = 1;
    for (size_t i = 0; i < rule->count; i++, one.conditions++)
        filter_list_add(list, one);
}

static void list_add_multiplexed(struct filter_list *list, const struct parsed_rule *rule, const char *name,
                                 uint32_t architecture, int pseudo, struct filter_rule one) {
    for (size_t i = 0; i < sizeof direct_calls / sizeof *direct_calls; i++)
        if (strcmp(direct_calls[i].name, name) == 0) {
            one.number = (uint32_t)direct_calls[i].number;
            list_add_conditions(list, rule, one);
        }
    /* The arguments lie in memory there: a rule that looks at them cannot speak for these. */
    if (rule->count > 0)
        return;
    bool socket = pseudo > -200;
    int number = seccomp_syscall_resolve_name_arch(architecture, socket ? "socketcall" : "ipc");
    size_t function = (size_t)(-pseudo % 100);
    if (number < 0 || function >= sizeof functions / sizeof *functions)
        return;
    one.number = (uint32_t)number;
    one.conditions = &functions[function];
    one.count = 1;
    filter_list_add(list, one);
}

/* Adds the rules for one ABI; returns the highest number that the document names in it. */
static uint32_t document_list(const struct document *document, uint32_t architecture,
                              struct filter_list *list, struct string_list *unknown) {
    uint32_t mark = architecture == SCMP_ARCH_X32 ? X32_BIT : 0, highest = 0;
    for (size_t i = 0; i < document->rules_count; i++) {
        const struct parsed_rule *rule = &document->rules[i];
        struct filter_rule one = {.action = rule->action, .narrow = (architecture & __AUDIT_ARCH_64BIT) == 0};
        for (size_t k = 0; k < rule->names->count; k++) {
            const char *name = rule->names->items[k];
            int number = seccomp_syscall_resolve_name_arch(architecture, name);
            /* Newer than libseccomp, or of no machine: the latter is ignored, as a profile is written for
             * many. */
            if (number == __NR_SCMP_ERROR && (number = syscall_number_recent(name)) >= 0)
                number |= (int)mark;
            if (number <= -101 && number >= -224) {
                list_add_multiplexed(list, rule, name, architecture, number, one);
                continue;
            }
            if (number == __NR_SCMP_ERROR && unknown != NULL && !string_list_contains(unknown, name))
                string_list_append(unknown, name);
            if (number < 0)
                continue;
            one.number = (uint32_t)number;
            list_add_conditions(list, rule, one);
            /* ARM's private calls begin at 0xf0000. */
            if ((one.number & ~mark) < 0x10000 && one.number > highest)
                highest = one.number;
        }
    }
    return highest;
}

/* What the document says about one audit architecture; x32 shares that of x86_64. */
static void document_layer(const struct document *document, uint32_t architecture, struct filter_layer *layer,
                           struct string_list *unknown) {
    size_t count = 0;
    if (!document_has_architecture(document, architecture)) {
        layer->ranges[count++] = (struct filter_range){0, SCMP_ACT_KILL};
        layer->ranges_count = count;
        return;
    }
    /* Why: seccomp.h. With TRACE the tracer knows better. */
    uint32_t denies = document->default_action & SECCOMP_RET_ACTION_FULL;
    bool stub = denies == SECCOMP_RET_ERRNO || denies == SECCOMP_RET_KILL_PROCESS ||
                denies == SECCOMP_RET_KILL_THREAD || denies == SECCOMP_RET_TRAP;
    uint32_t newer = stub ? SCMP_ACT_ERRNO(ENOSYS) : document->default_action;
    uint32_t highest = document_list(document, architecture, &layer->rules,
                                     architecture == seccomp_arch_native() ? unknown : NULL);
    layer->ranges[count++] = (struct filter_range){0, document->default_action};
    if (highest > 0)
        layer->ranges[count++] = (struct filter_range){highest + 1, newer};
    /* On s390 a number above 255 comes in a register of setup(2), number 0; the kernel puts it in its place
     * only if it knows the call: one that it does not know reaches the filter as 0 (runc #3474). */
    if (stub && highest > 0 && (architecture == SCMP_ARCH_S390X || architecture == SCMP_ARCH_S390))
        filter_list_add(&layer->rules, (struct filter_rule){.number = 0, .action = newer});
    if (architecture == SCMP_ARCH_X86_64 && document_has_architecture(document, SCMP_ARCH_X32)) {
        highest = document_list(document, SCMP_ARCH_X32, &layer->rules, NULL);
        layer->ranges[count++] = (struct filter_range){X32_BIT, document->default_action};
        if (highest > 0)
            layer->ranges[count++] = (struct filter_range){highest + 1, newer};
        layer->ranges[count++] = (struct filter_range){NO_CALL_START, document->default_action};
    } else if (architecture == SCMP_ARCH_X86_64) {
        layer->ranges[count++] = (struct filter_range){X32_BIT, SCMP_ACT_KILL};
        layer->ranges[count++] = (struct filter_range){UINT32_MAX, document->default_action};
    } else {
        layer->ranges[count++] = (struct filter_range){NO_CALL_START, document->default_action};
    }
    layer->ranges_count = count;
}

/* Appends the code for one architecture, and nothing where no document names it. */
static void architecture_append(const struct document *documents, size_t count, uint32_t architecture,
                                struct string_list *unknown, struct seccomp_program *program) {
    bool named = false;
    for (size_t i = 0; i < count; i++)
        named |= document_has_architecture(&documents[i], architecture);
    if (!named)
        return;
    struct filter_layer layers[FILTER_LAYERS_MAX] = {0};
    for (size_t i = 0; i < count; i++)
        document_layer(&documents[i], architecture, &layers[i], unknown);
    filter_append(program, architecture, layers, count);
    for (size_t i = 0; i < count; i++)
        filter_list_free(&layers[i].rules);
}

/* The kernel gives one listener to a chain of filters: all documents that notify must mean the same. */
static fallible check_listener(const struct document *document, const struct oci_seccomp *source,
                               struct seccomp_program *program, const char **listener_path) {
    if (!document->notifies)
        return NULL;
    if (source->listener_path == NULL || source->listener_path[0] == '\0')
        return error_new(ERROR_INVALID, "linux.seccomp: SCMP_ACT_NOTIFY without a listenerPath");
    if (*listener_path != NULL && strcmp(*listener_path, source->listener_path) != 0)
        return error_new(ERROR_UNAVAILABLE,
                         "linux.seccomp: a listener for %s and one for %s cannot be had at the same time",
                         *listener_path, source->listener_path);
    *listener_path = source->listener_path;
    program->has_listener = true;
    return NULL;
}

static fallible program_flags(const struct oci_seccomp *const *documents, size_t count,
                              const char *listener_path, struct seccomp_program *program) {
    bool given = false;
    for (size_t i = 0; i < count; i++)
        if (documents[i] != NULL) {
            given |= documents[i]->flags.items != NULL; /* by an empty list, too */
            TRY(flags_parse(&documents[i]->flags, &program->flags));
        }
    /* The speculation mitigation that a filter switches on by default costs every indirect branch of the
     * workload and is off in every engine. */
    if (!given)
        program->flags |= SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    if ((program->flags & SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV) != 0 && !program->has_listener)
        return error_new(
            ERROR_INVALID,
            "linux.seccomp.flags: SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV without a rule that notifies");
    if (program->has_listener) {
        program->flags |= SECCOMP_FILTER_FLAG_NEW_LISTENER;
        /* Without it a signal, for example of a profiling timer, ends a call that waits for the warden, and
         * the restarted call is judged and recorded again. Others ask for it if they want it. */
        if (listener_path[0] != '/')
            program->flags |= SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
        /* Both flags give their answer in the return value; this one makes a failed TSYNC an errno. */
        if ((program->flags & SECCOMP_FILTER_FLAG_TSYNC) != 0)
            program->flags |= SECCOMP_FILTER_FLAG_TSYNC_ESRCH;
    }
    return NULL;
}

void seccomp_program_forgo_listener(struct seccomp_program *program) {
    program->has_listener = false;
    program->flags &= ~(unsigned)(SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV |
                                  SECCOMP_FILTER_FLAG_TSYNC_ESRCH);
}

static fallible compile(const struct oci_seccomp *const *sources, size_t count, struct document *documents,
                        struct string_list *unknown, struct seccomp_program *program) {
    const char *listener_path = NULL;
    size_t parsed = 0;
    for (size_t i = 0; i < count; i++) {
        if (sources[i] == NULL)
            continue;
        if (parsed == FILTER_LAYERS_MAX)
            return error_new(ERROR_INVALID, "linux.seccomp: more than %d documents", FILTER_LAYERS_MAX);
        struct document *document = &documents[parsed++];
        TRY(document_parse(sources[i], document));
        TRY(check_listener(document, sources[i], program, &listener_path));
    }
    if (parsed == 0)
        return NULL;
    /* Their order is that of the filter: native calls first. */
    const uint32_t architectures[] = {seccomp_arch_native(), SCMP_ARCH_X86_64, SCMP_ARCH_X86,
                                      SCMP_ARCH_AARCH64,     SCMP_ARCH_ARM,    SCMP_ARCH_S390X,
                                      SCMP_ARCH_S390};
    for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++)
        if (i == 0 || architectures[i] != architectures[0])
            architecture_append(documents, parsed, architectures[i], unknown, program);
    /* An ABI that no document names. */
    filter_append_return(program, SCMP_ACT_KILL);
    if (program->count > BPF_MAXINSNS)
        return error_new(ERROR_INVALID, "linux.seccomp: the filter has %zu instructions, the kernel takes %d",
                         program->count, BPF_MAXINSNS);
    return program_flags(sources, count, listener_path, program);
}

fallible seccomp_compile(const struct oci_seccomp *const *documents, size_t count,
                         struct string_list *unknown, struct seccomp_program *out) {
    *out = (struct seccomp_program){0};
    struct document parsed[FILTER_LAYERS_MAX] = {0};
    struct error *failed = compile(documents, count, parsed, unknown, out);
    for (size_t i = 0; i < FILTER_LAYERS_MAX; i++)
        document_clear(&parsed[i]);
    if (failed != NULL)
        seccomp_program_free(out);
    return failed;
}

void seccomp_program_free(struct seccomp_program *program) {
    free(program->instructions);
    *program = (struct seccomp_program){0};
}

/* --- the state directory --- */

struct saved {
    char magic[8];
    uint32_t architecture; /* the file does not travel, but a wrong one must not load */
    uint32_t flags;
    uint32_t count;
    uint32_t has_listener;
};
static const char saved_magic[8] = {'P', 'F', 'S', 'E', 'C', 'C', '0', '1'};

fallible seccomp_program_save(const struct seccomp_program *program, int directory_fd, const char *name) {
    struct saved saved = {.architecture = seccomp_arch_native(),
                          .flags = program->flags,
                          .count = (uint32_t)program->count,
                          .has_listener = program->has_listener};
    memcpy(saved.magic, saved_magic, sizeof saved.magic);
    text_owned struct text bytes = {0};
    text_append_bytes(&bytes, &saved, sizeof saved);
    text_append_bytes(&bytes, program->instructions, program->count * sizeof *program->instructions);
    return file_replace(directory_fd, name, bytes.data, bytes.length, 0600);
}

fallible seccomp_program_load_file(int directory_fd, const char *name, struct seccomp_program *out) {
    *out = (struct seccomp_program){0};
    text_owned struct text bytes = {0};
    TRY(file_read(directory_fd, name, sizeof(struct saved) + BPF_MAXINSNS * sizeof(struct sock_filter),
                  &bytes));
    struct saved saved;
    if (bytes.length < sizeof saved)
        return error_new(ERROR_INVALID, "%s: too short for a saved seccomp filter", name);
    memcpy(&saved, bytes.data, sizeof saved);
    if (memcmp(saved.magic, saved_magic, sizeof saved.magic) != 0 ||
        saved.architecture != seccomp_arch_native() || saved.has_listener > 1 || saved.count > BPF_MAXINSNS ||
        bytes.length != sizeof saved + saved.count * sizeof(struct sock_filter))
        return error_new(ERROR_INVALID, "%s: not a saved seccomp filter of this machine", name);
    out->flags = saved.flags;
    out->has_listener = saved.has_listener != 0;
    if (saved.count > 0)
        out->instructions = memory_copy(bytes.data + sizeof saved, saved.count * sizeof *out->instructions);
    out->count = saved.count;
    return NULL;
}
