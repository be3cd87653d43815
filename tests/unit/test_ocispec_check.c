/* The rules that the tables cannot say: each with the nearest value that is still right and the exact message
 * of the first that is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "libocispec/config.h"
#include "libocispec/names.h"

/* `message` NULL: the document is right. */
static void expect_config(const char *text, const char *message) {
    struct oci_config *config = NULL;
    error_owned error = oci_config_parse("config.json", text, strlen(text), &config);
    const char *found = error ? error->message : "no error";
    char *expected = message ? text_formatted("config.json: %s", message) : memory_copy_string("no error");
    if (strcmp(found, expected) != 0)
        fail_msg("%s\n  found: %s\n  expected: %s", text, found, expected);
    assert_true((config == NULL) == (message != NULL));
    if (error != NULL)
        assert_int_equal(error->kind, ERROR_INVALID);
    oci_config_free(config);
    free(expected);
}

static void expect_formatted(const char *message, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void expect_formatted(const char *message, const char *format, ...) {
    struct text text = {0};
    va_list arguments;
    va_start(arguments, format);
    text_vformat(&text, format, arguments);
    va_end(arguments);
    expect_config(text.data, message);
    text_free(&text);
}

/* Members of the document, of its process, of its linux part. */
static void expect_top(const char *members, const char *message) {
    expect_formatted(message, "{\"ociVersion\":\"1.2.0\",%s}", members);
}

static void expect_process(const char *members, const char *message) {
    expect_formatted(message, "{\"ociVersion\":\"1.2.0\",\"process\":{\"cwd\":\"/\",\"args\":[\"sh\"],%s}}",
                     members);
}

static void expect_linux(const char *members, const char *message) {
    expect_formatted(message, "{\"ociVersion\":\"1.2.0\",\"linux\":{%s}}", members);
}

static void expect_resources(const char *members, const char *message) {
    expect_formatted(message, "{\"ociVersion\":\"1.2.0\",\"linux\":{\"resources\":{%s}}}", members);
}

static void versions(void **state) {
    (void)state;
    expect_config("{\"ociVersion\":\"1.0.2-dev\"}", NULL);
    expect_config("{\"ociVersion\":\"1.99.0\"}", NULL);
    expect_config("{\"ociVersion\":\"2.0.0\"}",
                  "ociVersion: expected a version that starts with \"1.\", found \"2.0.0\"");
    expect_config("{\"ociVersion\":\"10.0\"}",
                  "ociVersion: expected a version that starts with \"1.\", found \"10.0\"");
    expect_config("{\"ociVersion\":\"\"}",
                  "ociVersion: expected a version that starts with \"1.\", found \"\"");
    expect_config("{}", "ociVersion: required, but missing");
}

static void root(void **state) {
    (void)state;
    expect_top("\"root\":{\"path\":\"r\"}", NULL);
    expect_top("\"root\":{}", "root.path: required, but missing");
    expect_top("\"root\":{\"path\":\"\"}", "root.path: must not be empty");
}

static void command(void **state) {
    (void)state;
    expect_process("\"args\":[\"\"]", NULL);
    expect_process("\"args\":[]", "process.args: must not be empty");
    expect_process("\"args\":null", "process.args: must not be empty");
    expect_process("\"cwd\":\"srv\"", "process.cwd: expected an absolute path, found \"srv\"");
    expect_process("\"cwd\":\"\"", "process.cwd: expected an absolute path, found \"\"");
    expect_process("\"env\":[\"A=\",\"B==\",\"C=x\\ny\"]", NULL);
    expect_process("\"env\":[\"A=1\",\"hunter2\"]", "process.env[1]: expected the form NAME=VALUE");
    expect_process("\"env\":[\"=hunter2\"]", "process.env[0]: expected the form NAME=VALUE");
    expect_process("\"env\":[\"\"]", "process.env[0]: expected the form NAME=VALUE");
    expect_process("\"terminal\":true,\"consoleSize\":{\"height\":0,\"width\":0}", NULL);
    expect_process("\"user\":{\"uid\":0,\"gid\":0,\"umask\":511,\"additionalGids\":[1,1]}", NULL);
    expect_process("\"user\":{\"uid\":0,\"gid\":0,\"umask\":512}",
                   "process.user.umask: expected an integer between 0 and 511 (0777), found 512");
    expect_process("\"oomScoreAdj\":-1000", NULL);
    expect_process("\"oomScoreAdj\":1000", NULL);
    expect_process("\"oomScoreAdj\":1001",
                   "process.oomScoreAdj: expected an integer between -1000 and 1000, found 1001");
    expect_process("\"oomScoreAdj\":-1001",
                   "process.oomScoreAdj: expected an integer between -1000 and 1000, found -1001");
}

static void rlimits(void **state) {
    (void)state;
    expect_process("\"rlimits\":[{\"type\":\"RLIMIT_CPU\",\"hard\":1,\"soft\":1},"
                   "{\"type\":\"RLIMIT_AS\",\"hard\":18446744073709551615,\"soft\":0}]",
                   NULL);
    expect_process("\"rlimits\":[{\"type\":\"RLIMIT_CPU\",\"hard\":1,\"soft\":2}]",
                   "process.rlimits[0].soft: expected at most hard, 1, found 2");
    expect_process("\"rlimits\":[{\"type\":\"RLIMIT_CPU\",\"hard\":1,\"soft\":1},"
                   "{\"type\":\"RLIMIT_CPU\",\"hard\":2,\"soft\":2}]",
                   "process.rlimits[1].type: RLIMIT_CPU is there twice");
    expect_process("\"rlimits\":[{\"type\":\"RLIMIT_FOO\",\"hard\":1,\"soft\":1}]",
                   "process.rlimits[0].type: expected a known resource limit, found \"RLIMIT_FOO\"");
    expect_process("\"rlimits\":[{\"type\":\"NOFILE\",\"hard\":1,\"soft\":1}]",
                   "process.rlimits[0].type: expected a known resource limit, found \"NOFILE\"");
    static const char *const known[] = {"AS",      "CORE",     "CPU",        "DATA",   "FSIZE", "LOCKS",
                                        "MEMLOCK", "MSGQUEUE", "NICE",       "NOFILE", "NPROC", "RSS",
                                        "RTPRIO",  "RTTIME",   "SIGPENDING", "STACK"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char *members =
            text_formatted("\"rlimits\":[{\"type\":\"RLIMIT_%s\",\"hard\":1,\"soft\":1}]", known[i]);
        expect_process(members, NULL);
        free(members);
    }
}

static void capabilities(void **state) {
    (void)state;
    static const char *const sets[] = {"bounding", "effective", "inheritable", "permitted", "ambient"};
    expect_process("\"capabilities\":{}", NULL);
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        char *right =
            text_formatted("\"capabilities\":{\"%s\":[\"CAP_CHOWN\",\"CAP_CHECKPOINT_RESTORE\"]}", sets[i]);
        char *wrong = text_formatted("\"capabilities\":{\"%s\":[\"CAP_KILL\",\"CAP_NEXT\"]}", sets[i]);
        char *message = text_formatted(
            "process.capabilities.%s[1]: expected a known capability, found \"CAP_NEXT\"", sets[i]);
        expect_process(right, NULL);
        expect_process(wrong, message);
        free(right);
        free(wrong);
        free(message);
    }
    expect_process("\"capabilities\":{\"bounding\":[\"cap_kill\"]}",
                   "process.capabilities.bounding[0]: expected a known capability, found \"cap_kill\"");
    expect_process("\"capabilities\":{\"bounding\":[\"\"]}",
                   "process.capabilities.bounding[0]: expected a known capability, found \"\"");
}

static void scheduling(void **state) {
    (void)state;
    expect_process("\"scheduler\":{\"policy\":\"SCHED_FIFO\",\"nice\":19,\"priority\":1,\"flags\":[\"SCHED_"
                   "FLAG_RESET_ON_FORK\"]},"
                   "\"ioPriority\":{\"class\":\"IOPRIO_CLASS_IDLE\",\"priority\":7},"
                   "\"execCPUAffinity\":{\"initial\":\"0-3,7\",\"final\":\"5\"}",
                   NULL);
    expect_process("\"ioPriority\":{\"class\":\"IOPRIO_CLASS_BE\"}", NULL);
    expect_process("\"ioPriority\":{\"class\":\"IOPRIO_CLASS_BE\",\"priority\":-1}",
                   "process.ioPriority.priority: expected an integer between 0 and 7, found -1");
    expect_process("\"scheduler\":{\"policy\":\"FIFO\"}",
                   "process.scheduler.policy: expected a known scheduling policy, found \"FIFO\"");
    expect_process("\"scheduler\":{\"policy\":\"SCHED_RR\",\"nice\":20}",
                   "process.scheduler.nice: expected an integer between -20 and 19, found 20");
    expect_process("\"scheduler\":{\"policy\":\"SCHED_RR\",\"nice\":-21}",
                   "process.scheduler.nice: expected an integer between -20 and 19, found -21");
    expect_process("\"scheduler\":{\"policy\":\"SCHED_RR\",\"flags\":[\"X\"]}",
                   "process.scheduler.flags[0]: expected a known scheduler flag, found \"X\"");
    expect_process("\"scheduler\":{\"policy\":\"SCHED_RR\"}",
                   "process.scheduler.priority: expected an integer between 1 and 99 for SCHED_RR, found 0");
    expect_process(
        "\"scheduler\":{\"policy\":\"SCHED_FIFO\",\"priority\":100}",
        "process.scheduler.priority: expected an integer between 1 and 99 for SCHED_FIFO, found 100");
    expect_process("\"scheduler\":{\"policy\":\"SCHED_BATCH\",\"priority\":1}",
                   "process.scheduler.priority: expected 0 for SCHED_BATCH, found 1");
    expect_process("\"scheduler\":{\"policy\":\"SCHED_IDLE\",\"runtime\":1}",
                   "process.scheduler: runtime, deadline and period are for SCHED_DEADLINE");
    expect_process(
        "\"scheduler\":{\"policy\":\"SCHED_DEADLINE\",\"runtime\":3000,\"deadline\":2000}",
        "process.scheduler: expected nanoseconds with 1024 <= runtime <= deadline <= period, found 3000, "
        "2000, 0");
    expect_process("\"scheduler\":{\"policy\":\"SCHED_DEADLINE\",\"runtime\":2000,\"deadline\":2000}", NULL);
    expect_process("\"ioPriority\":{\"class\":\"BE\"}",
                   "process.ioPriority.class: expected a known I/O priority class, found \"BE\"");
    expect_process("\"ioPriority\":{\"class\":\"IOPRIO_CLASS_RT\",\"priority\":8}",
                   "process.ioPriority.priority: expected an integer between 0 and 7, found 8");
    static const char *const lists[] = {"x",    "0-", "-1", "3-2",   "0,",       ",0",
                                        "0--1", "1 ", " 1", "0-1-2", "99999999", "0;1"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        char *members = text_formatted("\"execCPUAffinity\":{\"final\":\"%s\"}", lists[i]);
        char *message = text_formatted(
            "process.execCPUAffinity.final: expected a list of processors like 0-3,7, found \"%s\"",
            lists[i]);
        expect_process(members, message);
        free(members);
        free(message);
    }
}

static void mounts(void **state) {
    (void)state;
    expect_top("\"mounts\":[{\"destination\":\"relative\"}]", NULL);
    expect_top("\"mounts\":[{\"destination\":\"/\"},{\"destination\":\"\"}]",
               "mounts[1].destination: must not be empty");
#define MAP_OF(container, host, size)                                                                        \
    "{\"containerID\":" #container ",\"hostID\":" #host ",\"size\":" #size "}"
#define MOUNT(uids, gids)                                                                                    \
    "\"mounts\":[{\"destination\":\"/\",\"uidMappings\":[" uids "],\"gidMappings\":[" gids "]}]"
    expect_top(MOUNT(MAP_OF(0, 1, 1), MAP_OF(0, 1, 1)), NULL);
    expect_top(MOUNT("", ""), NULL);
    expect_top(MOUNT(MAP_OF(0, 1, 1), ""), "mounts[0].gidMappings: required, because uidMappings is given");
    expect_top(MOUNT("", MAP_OF(0, 1, 1)), "mounts[0].uidMappings: required, because gidMappings is given");
    expect_top(MOUNT(MAP_OF(0, 1, 1), MAP_OF(0, 1, 0)),
               "mounts[0].gidMappings[0].size: expected at least 1, found 0");
    expect_top(MOUNT(MAP_OF(0, 1, 0), MAP_OF(0, 1, 1)),
               "mounts[0].uidMappings[0].size: expected at least 1, found 0");
}

static void mappings(void **state) {
    (void)state;
    expect_linux("\"uidMappings\":[" MAP_OF(0, 0, 4294967295) "]", NULL);
    expect_linux("\"uidMappings\":[" MAP_OF(0, 100, 10) "," MAP_OF(10, 110, 10) "],\"gidMappings\":[" MAP_OF(
                     10, 0, 10) "," MAP_OF(0, 10, 10) "]",
                 NULL);
    expect_linux("\"uidMappings\":[" MAP_OF(0, 0, 0) "]",
                 "linux.uidMappings[0].size: expected at least 1, found 0");
    expect_linux("\"gidMappings\":[" MAP_OF(0, 0, 1) "," MAP_OF(1, 1, 0) "]",
                 "linux.gidMappings[1].size: expected at least 1, found 0");
    expect_linux("\"uidMappings\":[" MAP_OF(1, 0, 4294967295) "]",
                 "linux.uidMappings[0]: containerID 1 with size 4294967295 goes beyond 4294967294");
    expect_linux("\"uidMappings\":[" MAP_OF(0, 4294967295, 1) "]",
                 "linux.uidMappings[0]: hostID 4294967295 with size 1 goes beyond 4294967294");
    expect_linux("\"uidMappings\":[" MAP_OF(0, 100, 10) "," MAP_OF(9, 200, 1) "]",
                 "linux.uidMappings[1]: its containerIDs overlap those of [0]");
    expect_linux("\"uidMappings\":[" MAP_OF(0, 100, 10) "," MAP_OF(20, 95, 6) "]",
                 "linux.uidMappings[1]: its hostIDs overlap those of [0]");
    struct text text = {0};
    for (unsigned i = 0; i < 340; i++)
        text_format(&text, "%s{\"containerID\":%u,\"hostID\":%u,\"size\":1}", i ? "," : "", i, i);
    expect_formatted(NULL, "{\"ociVersion\":\"1.2\",\"linux\":{\"uidMappings\":[%s]}}", text.data);
    expect_formatted("linux.uidMappings: expected at most 340 mappings, found 341",
                     "{\"ociVersion\":\"1.2\",\"linux\":{\"uidMappings\":[%s," MAP_OF(340, 340, 1) "]}}",
                     text.data);
    text_free(&text);
}

static void hooks(void **state) {
    (void)state;
    for (const char *const *name = oci_hook_names; *name != NULL; name++) {
        char *right = text_formatted("\"hooks\":{\"%s\":[{\"path\":\"/h\",\"timeout\":1}]}", *name);
        char *relative = text_formatted("\"hooks\":{\"%s\":[{\"path\":\"/h\"},{\"path\":\"h\"}]}", *name);
        char *path_message =
            text_formatted("hooks.%s[1].path: expected an absolute path, found \"h\"", *name);
        char *zero = text_formatted("\"hooks\":{\"%s\":[{\"path\":\"/h\",\"timeout\":0}]}", *name);
        char *timeout_message = text_formatted("hooks.%s[0].timeout: expected more than 0, found 0", *name);
        expect_top(right, NULL);
        expect_top(relative, path_message);
        expect_top(zero, timeout_message);
        free(right);
        free(relative);
        free(path_message);
        free(zero);
        free(timeout_message);
    }
    expect_top("\"hooks\":{\"poststop\":[{\"path\":\"/h\",\"timeout\":-5}]}",
               "hooks.poststop[0].timeout: expected more than 0, found -5");
    expect_top("\"hooks\":{\"poststop\":[{\"path\":\"\"}]}",
               "hooks.poststop[0].path: expected an absolute path, found \"\"");
}

static void namespaces(void **state) {
    (void)state;
    expect_linux(
        "\"namespaces\":[{\"type\":\"pid\"},{\"type\":\"network\"},{\"type\":\"mount\"},{\"type\":\"ipc\"},"
        "{\"type\":\"uts\"},{\"type\":\"user\"},{\"type\":\"cgroup\"},{\"type\":\"time\",\"path\":\"/n\"}]",
        NULL);
    expect_linux("\"namespaces\":[{\"type\":\"net\"}]",
                 "linux.namespaces[0].type: expected a known namespace, found \"net\"");
    expect_linux("\"namespaces\":[{\"type\":\"pid\"},{\"type\":\"ipc\"},{\"type\":\"pid\",\"path\":\"/n\"}]",
                 "linux.namespaces[2].type: pid is there twice");
    expect_linux("\"namespaces\":[{\"type\":\"pid\",\"path\":\"n\"}]",
                 "linux.namespaces[0].path: expected an absolute path, found \"n\"");
}

static void host_names(void **state) {
    (void)state;
    static const char uts[] = "\"linux\":{\"namespaces\":[{\"type\":\"uts\"}]}";
    static const char *const keys[] = {"hostname", "domainname"};
    for (size_t i = 0; i < 2; i++) {
        char *needs = text_formatted("%s: needs an entry of type \"uts\" in linux.namespaces", keys[i]);
        char *length = text_formatted("%s: expected at most 64 bytes, found 65", keys[i]);
        expect_formatted(NULL, "{\"ociVersion\":\"1.2\",\"%s\":\"%064d\",%s}", keys[i], 0, uts);
        expect_formatted(length, "{\"ociVersion\":\"1.2\",\"%s\":\"%065d\",%s}", keys[i], 0, uts);
        expect_formatted(NULL, "{\"ociVersion\":\"1.2\",\"%s\":\"\"}", keys[i]);
        expect_formatted(needs, "{\"ociVersion\":\"1.2\",\"%s\":\"h\"}", keys[i]);
        expect_formatted(
            needs, "{\"ociVersion\":\"1.2\",\"%s\":\"h\",\"linux\":{\"namespaces\":[{\"type\":\"ipc\"}]}}",
            keys[i]);
        free(needs);
        free(length);
    }
}

static void sysctls(void **state) {
    (void)state;
    static const struct {
        const char *key;
        const char *type; /* of the namespace */
    } known[] = {
        {"net.ipv4.ping_group_range", "network"},
        {"net/ipv4/conf/eth0.1/forwarding", "network"},
        {"kernel.shmmax", "ipc"},
        {"kernel.msgmax", "ipc"},
        {"kernel.sem", "ipc"},
        {"fs.mqueue.queues_max", "ipc"},
        {"kernel.domainname", "uts"},
        {"user.max_user_namespaces", "user"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char *message =
            text_formatted("linux.sysctl[\"%s\"]: needs an entry of type \"%s\" in linux.namespaces",
                           known[i].key, known[i].type);
        expect_formatted(NULL,
                         "{\"ociVersion\":\"1.2\",\"linux\":{\"sysctl\":{\"%s\":\"1\"},\"namespaces\":[{"
                         "\"type\":\"%s\"}]}}",
                         known[i].key, known[i].type);
        expect_formatted(message, "{\"ociVersion\":\"1.2\",\"linux\":{\"sysctl\":{\"%s\":\"1\"}}}",
                         known[i].key);
        free(message);
    }
    static const char all[] = "\"namespaces\":[{\"type\":\"network\"},{\"type\":\"ipc\"},{\"type\":\"uts\"}]";
    static const char *const host[] = {"kernel.core_pattern", "vm.swappiness", "fs.file-max",        "netx.a",
                                       "kernel.shmmaxx",      "net",           "kernel/core_pattern"};
    for (size_t i = 0; i < sizeof host / sizeof *host; i++) {
        char *message = text_formatted(
            "linux.sysctl[\"%s\"]: belongs to no namespace, it would change the host", host[i]);
        expect_formatted(message, "{\"ociVersion\":\"1.2\",\"linux\":{\"sysctl\":{\"%s\":\"1\"},%s}}",
                         host[i], all);
        free(message);
    }
    static const char *const bad[] = {
        "net/../kernel/core_pattern", "net.//.kernel", "net..x", "", ".net", "net.x.", "net/./x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char *message = text_formatted("linux.sysctl[\"%s\"]: not a sysctl key", bad[i]);
        expect_formatted(message, "{\"ociVersion\":\"1.2\",\"linux\":{\"sysctl\":{\"%s\":\"1\"},%s}}", bad[i],
                         all);
        free(message);
    }
    expect_formatted("linux.sysctl[\"kernel.hostname\"]: use the member hostname instead",
                     "{\"ociVersion\":\"1.2\",\"linux\":{\"sysctl\":{\"kernel.hostname\":\"1\"},%s}}", all);
}

static void linux_words(void **state) {
    (void)state;
    static const char *const propagations[] = {"shared",  "rshared",  "slave",      "rslave",
                                               "private", "rprivate", "unbindable", "runbindable"};
    for (size_t i = 0; i < sizeof propagations / sizeof *propagations; i++) {
        char *members = text_formatted("\"rootfsPropagation\":\"%s\"", propagations[i]);
        expect_linux(members, NULL);
        free(members);
    }
    expect_linux("\"rootfsPropagation\":\"\"", NULL);
    expect_linux("\"rootfsPropagation\":\"Shared\"",
                 "linux.rootfsPropagation: expected shared, slave, private or unbindable, found \"Shared\"");
    expect_linux("\"maskedPaths\":[\"/a\",\"b\"]",
                 "linux.maskedPaths[1]: expected an absolute path, found \"b\"");
    expect_linux("\"readonlyPaths\":[\"\"]", "linux.readonlyPaths[0]: expected an absolute path, found \"\"");
    expect_linux("\"personality\":{\"domain\":\"LINUX32\",\"flags\":[]}", NULL);
    expect_linux("\"personality\":{\"domain\":\"BSD\"}",
                 "linux.personality.domain: expected LINUX or LINUX32, found \"BSD\"");
    expect_linux("\"personality\":{\"domain\":\"LINUX\",\"flags\":[\"x\"]}",
                 "linux.personality.flags: must be empty");
#define MEMORY(members) "\"memoryPolicy\":{\"mode\":" members "}"
    expect_linux(MEMORY("\"MPOL_DEFAULT\""), NULL);
    expect_linux(MEMORY("\"MPOL_PREFERRED\",\"nodes\":\"\""), NULL);
    expect_linux(MEMORY("\"MPOL_BIND\",\"nodes\":\"0,2-3\",\"flags\":[\"MPOL_F_STATIC_NODES\"]"), NULL);
    expect_linux(MEMORY("\"BIND\""),
                 "linux.memoryPolicy.mode: expected a known memory policy, found \"BIND\"");
    /* crun #2181 */
    expect_linux(MEMORY("\"MPOL_BIND\""), "linux.memoryPolicy.nodes: expected memory nodes for MPOL_BIND");
    expect_linux(MEMORY("\"MPOL_BIND\",\"nodes\":\"\""),
                 "linux.memoryPolicy.nodes: expected memory nodes for MPOL_BIND");
    expect_linux(MEMORY("\"MPOL_BIND\",\"nodes\":\"0-\""),
                 "linux.memoryPolicy.nodes: expected a list of memory nodes like 0-3,7, found \"0-\"");
    expect_linux(MEMORY("\"MPOL_BIND\",\"nodes\":\"8192\""),
                 "linux.memoryPolicy.nodes: expected a list of memory nodes like 0-3,7, found \"8192\"");
    expect_linux(MEMORY("\"MPOL_LOCAL\",\"nodes\":\"0\""),
                 "linux.memoryPolicy.nodes: expected none with this mode, found \"0\"");
    expect_linux(MEMORY("\"MPOL_BIND\",\"nodes\":\"0\",\"flags\":[\"x\"]"),
                 "linux.memoryPolicy.flags[0]: expected a known memory policy flag, found \"x\"");
    expect_linux(
        MEMORY("\"MPOL_BIND\",\"nodes\":\"0\",\"flags\":[\"MPOL_F_STATIC_NODES\",\"MPOL_F_RELATIVE_NODES\"]"),
        "linux.memoryPolicy.flags: MPOL_F_STATIC_NODES and MPOL_F_RELATIVE_NODES exclude each other");
    expect_linux(MEMORY("\"MPOL_LOCAL\",\"flags\":[\"MPOL_F_STATIC_NODES\"]"),
                 "linux.memoryPolicy.flags: expected none without nodes");
    expect_linux("\"timeOffsets\":{}",
                 "linux.timeOffsets: needs an entry of type \"time\" in linux.namespaces");
    expect_linux("\"namespaces\":[{\"type\":\"time\"}],\"timeOffsets\":{\"boottime\":{\"secs\":-1,"
                 "\"nanosecs\":999999999}}",
                 NULL);
    expect_linux(
        "\"namespaces\":[{\"type\":\"time\"}],\"timeOffsets\":{\"monotonic\":{\"nanosecs\":1000000000}}",
        "linux.timeOffsets.monotonic.nanosecs: expected an integer between 0 and 999999999, found "
        "1000000000");
    expect_linux(
        "\"namespaces\":[{\"type\":\"time\"}],\"timeOffsets\":{\"boottime\":{\"nanosecs\":1000000000}}",
        "linux.timeOffsets.boottime.nanosecs: expected an integer between 0 and 999999999, found 1000000000");
}

static void devices(void **state) {
    (void)state;
#define DEVICE(type, path, rest) "\"devices\":[{\"type\":\"" type "\",\"path\":\"" path "\"" rest "}]"
    expect_linux(DEVICE("c", "/dev/x", ",\"major\":4095,\"minor\":1048575"), NULL);
    expect_linux(DEVICE("b", "/dev/x", ""), NULL);
    expect_linux(DEVICE("u", "/dev/x", ""), NULL);
    expect_linux(DEVICE("p", "/dev/x", ",\"major\":-1,\"minor\":-1"), NULL);
    expect_linux(DEVICE("a", "/dev/x", ""), "linux.devices[0].type: expected c, b, u or p, found \"a\"");
    expect_linux(DEVICE("c", "x", ""), "linux.devices[0].path: expected an absolute path, found \"x\"");
    expect_linux(DEVICE("c", "/x", ",\"major\":4096"),
                 "linux.devices[0].major: expected an integer between 0 and 4095, found 4096");
    /* 2^32 + 1 would be major 1 after makedev(): /dev/mem. */
    expect_linux(DEVICE("c", "/x", ",\"major\":4294967297"),
                 "linux.devices[0].major: expected an integer between 0 and 4095, found 4294967297");
    expect_linux(DEVICE("c", "/x", ",\"minor\":-1"),
                 "linux.devices[0].minor: expected an integer between 0 and 1048575, found -1");
}

static void intel_rdt(void **state) {
    (void)state;
    expect_linux("\"intelRdt\":{}", NULL);
    expect_linux("\"intelRdt\":{\"closID\":\"/\",\"schemata\":[\"L3:0=f\"]}", NULL);
    expect_linux("\"intelRdt\":{\"closID\":\"a/../..\"}",
                 "linux.intelRdt.closID: expected the name of a class of service, found \"a/../..\"");
    expect_linux("\"intelRdt\":{\"closID\":\"..\"}",
                 "linux.intelRdt.closID: expected the name of a class of service, found \"..\"");
    expect_linux("\"intelRdt\":{\"closID\":\"info\"}",
                 "linux.intelRdt.closID: expected the name of a class of service, found \"info\"");
    expect_linux("\"intelRdt\":{\"memBwSchema\":\"L3:0=f\"}",
                 "linux.intelRdt.memBwSchema: expected a schema that begins with MB:, found \"L3:0=f\"");
    expect_linux("\"intelRdt\":{\"schemata\":[\"L3:0=f\\nMB:0=1\"]}",
                 "linux.intelRdt.schemata: a line break is not allowed");
}

static void resources(void **state) {
    (void)state;
    expect_resources(
        "\"devices\":[{\"allow\":true,\"type\":\"a\",\"major\":-1,\"minor\":-1,\"access\":\"rwm\"},"
        "{\"allow\":false,\"type\":\"\",\"access\":\"\"},{\"allow\":true,\"type\":\"c\"}]",
        NULL);
    expect_resources("\"devices\":[{\"allow\":true,\"type\":\"u\"}]",
                     "linux.resources.devices[0].type: expected a, c or b, found \"u\"");
    expect_resources("\"devices\":[{\"allow\":true,\"access\":\"rx\"}]",
                     "linux.resources.devices[0].access: expected some of r, w and m, found \"rx\"");
    expect_resources("\"devices\":[{\"allow\":true,\"major\":-2}]",
                     "linux.resources.devices[0].major: expected an integer between -1 and 4095, found -2");
    expect_resources(
        "\"devices\":[{\"allow\":true,\"minor\":1048576}]",
        "linux.resources.devices[0].minor: expected an integer between -1 and 1048575, found 1048576");
    expect_resources("\"network\":{\"priorities\":[{\"name\":\"eth0 1\\neth1\",\"priority\":1}]}",
                     "linux.resources.network.priorities[0].name: expected the name of a network interface, "
                     "found \"eth0 1\\neth1\"");
    expect_resources("\"rdma\":{\"mlx5_1\":{\"hcaHandles\":1}}", NULL);
    expect_resources("\"rdma\":{\"a b\":{}}",
                     "linux.resources.rdma: expected names of RDMA devices as keys, found \"a b\"");
    expect_resources("\"memory\":{\"limit\":-1,\"swappiness\":100}", NULL);
    static const char *const limits[] = {"limit", "reservation", "swap", "kernel", "kernelTCP"};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        char *members = text_formatted("\"memory\":{\"%s\":-2}", limits[i]);
        char *message =
            text_formatted("linux.resources.memory.%s: expected -1 (unlimited) or more, found -2", limits[i]);
        expect_resources(members, message);
        free(members);
        free(message);
    }
    expect_resources("\"memory\":{\"swappiness\":101}",
                     "linux.resources.memory.swappiness: expected an integer between 0 and 100, found 101");
    expect_resources("\"cpu\":{\"idle\":1}", NULL);
    expect_resources("\"cpu\":{\"idle\":2}",
                     "linux.resources.cpu.idle: expected an integer between 0 and 1, found 2");
    expect_resources("\"pids\":{\"limit\":-1}", NULL);
    expect_resources("\"pids\":{}", NULL);
    expect_resources("\"blockIO\":{\"weight\":0,\"leafWeight\":1000}", NULL);
    expect_resources("\"blockIO\":{\"weight\":9}",
                     "linux.resources.blockIO.weight: expected an integer between 10 and 1000, found 9");
    expect_resources(
        "\"blockIO\":{\"leafWeight\":1001}",
        "linux.resources.blockIO.leafWeight: expected an integer between 10 and 1000, found 1001");
    expect_resources(
        "\"blockIO\":{\"weightDevice\":[{\"major\":1,\"minor\":0,\"weight\":1}]}",
        "linux.resources.blockIO.weightDevice[0].weight: expected an integer between 10 and 1000, found 1");
    expect_resources(
        "\"blockIO\":{\"weightDevice\":[{\"major\":-1,\"minor\":0}]}",
        "linux.resources.blockIO.weightDevice[0].major: expected an integer between 0 and 4095, found -1");
    static const char *const throttles[] = {"throttleReadBpsDevice", "throttleWriteBpsDevice",
                                            "throttleReadIOPSDevice", "throttleWriteIOPSDevice"};
    for (size_t i = 0; i < sizeof throttles / sizeof *throttles; i++) {
        char *members =
            text_formatted("\"blockIO\":{\"%s\":[{\"major\":8,\"minor\":-1,\"rate\":1}]}", throttles[i]);
        char *message = text_formatted(
            "linux.resources.blockIO.%s[0].minor: expected an integer between 0 and 1048575, found -1",
            throttles[i]);
        expect_resources(members, message);
        free(members);
        free(message);
    }
    static const char *const sizes[] = {"64KB", "2MB", "1GB", "16GB"};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *members = text_formatted("\"hugepageLimits\":[{\"pageSize\":\"%s\",\"limit\":1}]", sizes[i]);
        expect_resources(members, NULL);
        free(members);
    }
    static const char *const bad_sizes[] = {"",     "MB",     "2",      "2mb",  "2M",  "2TB",
                                            "02MB", "2MB/..", "../2MB", "2MBx", "-2MB"};
    for (size_t i = 0; i < sizeof bad_sizes / sizeof *bad_sizes; i++) {
        char *members =
            text_formatted("\"hugepageLimits\":[{\"pageSize\":\"%s\",\"limit\":1}]", bad_sizes[i]);
        char *message = text_formatted(
            "linux.resources.hugepageLimits[0].pageSize: expected a size like 2MB, found \"%s\"",
            bad_sizes[i]);
        expect_resources(members, message);
        free(members);
        free(message);
    }
    expect_resources("\"unified\":{\"memory.high\":\"1\",\"..a\":\"\"}", NULL);
    static const char *const files[] = {"", ".", "..", "a/b", "../cgroup.procs", "/x"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char *members = text_formatted("\"unified\":{\"%s\":\"1\"}", files[i]);
        char *message = text_formatted(
            "linux.resources.unified: expected names of cgroup files as keys, found \"%s\"", files[i]);
        expect_resources(members, message);
        free(members);
        free(message);
    }
}

static void seccomp(void **state) {
    (void)state;
#define SECCOMP(rest) "\"seccomp\":{\"defaultAction\":\"SCMP_ACT_ALLOW\"," rest "}"
#define RULE(rest) SECCOMP("\"syscalls\":[{\"names\":[\"read\"]," rest "}]")
#define ARGUMENT(index, op)                                                                                  \
    RULE("\"action\":\"SCMP_ACT_LOG\",\"args\":[{\"index\":" #index ",\"value\":0,\"op\":\"" op "\"}]")
    for (const char *const *name = oci_seccomp_actions; *name != NULL; name++) {
        char *members =
            text_formatted(SECCOMP("\"syscalls\":[{\"names\":[\"read\"],\"action\":\"%s\"}]"), *name);
        expect_linux(members, NULL);
        free(members);
    }
    expect_linux("\"seccomp\":{\"defaultAction\":\"ALLOW\"}",
                 "linux.seccomp.defaultAction: expected a known seccomp action, found \"ALLOW\"");
    expect_linux(
        RULE("\"action\":\"SCMP_ACT_DENY\""),
        "linux.seccomp.syscalls[0].action: expected a known seccomp action, found \"SCMP_ACT_DENY\"");
    expect_linux(SECCOMP("\"defaultErrnoRet\":1"),
                 "linux.seccomp.defaultErrnoRet: SCMP_ACT_ALLOW takes no errno");
    expect_linux(RULE("\"action\":\"SCMP_ACT_KILL\",\"errnoRet\":1"),
                 "linux.seccomp.syscalls[0].errnoRet: SCMP_ACT_KILL takes no errno");
    expect_linux(RULE("\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":4095"), NULL);
    expect_linux(RULE("\"action\":\"SCMP_ACT_TRACE\",\"errnoRet\":65535"), NULL);
    /* 65536 would be cut to 0, and the denied call would seem to have succeeded. */
    expect_linux(RULE("\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":65536"),
                 "linux.seccomp.syscalls[0].errnoRet: expected an integer between 0 and 4095, found 65536");
    expect_linux(SECCOMP("\"syscalls\":[{\"names\":[],\"action\":\"SCMP_ACT_LOG\"}]"),
                 "linux.seccomp.syscalls[0].names: must not be empty");
    for (const char *const *name = oci_seccomp_operators; *name != NULL; name++) {
        char *members = text_formatted(
            RULE("\"action\":\"SCMP_ACT_LOG\",\"args\":[{\"index\":5,\"value\":0,\"op\":\"%s\"}]"), *name);
        expect_linux(members, NULL);
        free(members);
    }
    expect_linux(ARGUMENT(6, "SCMP_CMP_EQ"),
                 "linux.seccomp.syscalls[0].args[0].index: expected an integer between 0 and 5, found 6");
    expect_linux(ARGUMENT(0, "=="),
                 "linux.seccomp.syscalls[0].args[0].op: expected a known seccomp operator, found \"==\"");
    expect_linux(SECCOMP("\"architectures\":[\"SCMP_ARCH_X86_64\",\"SCMP_ARCH_LOONGARCH64\"]"), NULL);
    expect_linux(SECCOMP("\"architectures\":[\"SCMP_ARCH_X86_64\",\"x86\"]"),
                 "linux.seccomp.architectures[1]: expected a known seccomp architecture, found \"x86\"");
    expect_linux(SECCOMP("\"flags\":[\"SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV\"]"), NULL);
    expect_linux(
        SECCOMP("\"flags\":[\"SECCOMP_FILTER_FLAG_NEW_LISTENER\"]"),
        "linux.seccomp.flags[0]: expected a known seccomp flag, found \"SECCOMP_FILTER_FLAG_NEW_LISTENER\"");
    expect_linux(SECCOMP("\"listenerMetadata\":\"m\",\"listenerPath\":\"/s\""), NULL);
    expect_linux(SECCOMP("\"listenerMetadata\":\"m\""), "linux.seccomp.listenerMetadata: needs listenerPath");
}

/* Documents of their own have paths of their own. */
static void other_documents(void **state) {
    (void)state;
    struct oci_process *process = NULL;
    static const char no_args[] = "{\"cwd\":\"/\"}";
    error_owned args = oci_process_parse("process.json", no_args, strlen(no_args), &process);
    assert_non_null(args);
    assert_string_equal(args->message, "process.json: args: must not be empty");
    assert_null(process);
    static const char bad_cap[] = "{\"cwd\":\"/\",\"args\":[\"x\"],\"capabilities\":{\"bounding\":[\"X\"]}}";
    error_owned cap = oci_process_parse("process.json", bad_cap, strlen(bad_cap), &process);
    assert_non_null(cap);
    assert_string_equal(cap->message,
                        "process.json: capabilities.bounding[0]: expected a known capability, found \"X\"");
    static const char good[] = "{\"cwd\":\"/\",\"args\":[\"x\"]}";
    assert_null(oci_process_parse("process.json", good, strlen(good), &process));
    assert_null(oci_process_check(process));
    string_list_append(&process->env, "hunter2");
    error_owned changed = oci_process_check(process);
    assert_non_null(changed);
    assert_string_equal(changed->message, "process.env[0]: expected the form NAME=VALUE");
    oci_process_free(process);

    struct oci_resources *resources = NULL;
    static const char bad_rule[] = "{\"devices\":[{\"allow\":true,\"type\":\"x\"}]}";
    error_owned rule = oci_resources_parse("-", bad_rule, strlen(bad_rule), &resources);
    assert_non_null(rule);
    assert_string_equal(rule->message, "-: devices[0].type: expected a, c or b, found \"x\"");
    assert_null(resources);
    assert_null(oci_resources_parse("-", "{\"pids\":{\"limit\":3}}", 20, &resources));
    assert_int_equal(resources->pids->limit.value, 3);
    oci_resources_free(resources);
}

/* What is shown of a value is bounded, escaped and cut between characters. */
static void shown_values(void **state) {
    (void)state;
    expect_formatted("ociVersion: expected a version that starts with \"1.\", "
                     "found \"0000000000000000000000000000000000000000000000000000000000000000\"...",
                     "{\"ociVersion\":\"%0200d\"}", 0);
    expect_formatted("ociVersion: expected a version that starts with \"1.\", "
                     "found \"000000000000000000000000000000000000000000000000000000000000000\"...",
                     "{\"ociVersion\":\"%063d\xe2\x82\xac\"}", 0);
    expect_config("{\"ociVersion\":\"a\\nb\\u001b\\\"\"}",
                  "ociVersion: expected a version that starts with \"1.\", found \"a\\nb\\u001b\\\"\"");
}

static void names(void **state) {
    (void)state;
    assert_int_equal(oci_capability_number("CAP_CHOWN"), 0);
    assert_int_equal(oci_capability_number("CAP_NET_ADMIN"), 12);
    assert_int_equal(oci_capability_number("CAP_SYS_ADMIN"), 21);
    assert_int_equal(oci_capability_number("CAP_SETFCAP"), 31);
    assert_int_equal(oci_capability_number("CAP_CHECKPOINT_RESTORE"), 40);
    assert_int_equal(oci_capability_number("CAP_"), -1);
    assert_int_equal(oci_capability_number(""), -1);
    assert_int_equal(oci_capability_number(NULL), -1);
    assert_null(oci_capability_name(-1));
    assert_null(oci_capability_name(41));
    assert_null(oci_capability_name(1 << 20));
    for (int i = 0; i <= 40; i++)
        assert_int_equal(oci_capability_number(oci_capability_name(i)), i);
    assert_int_equal(oci_rlimit_number("RLIMIT_NOFILE"), 7);
    assert_int_equal(oci_rlimit_number("RLIMIT_RTTIME"), 15);
    assert_int_equal(oci_rlimit_number("RLIMIT_X"), -1);
    assert_int_equal(oci_rlimit_number(NULL), -1);
    char *path = oci_sysctl_path("net.ipv4.conf.eth0/1.forwarding");
    assert_string_equal(path, "net/ipv4/conf/eth0.1/forwarding");
    free(path);
    path = oci_sysctl_path("net/ipv4/conf/eth0.1/forwarding");
    assert_string_equal(path, "net/ipv4/conf/eth0.1/forwarding");
    free(path);
    assert_null(oci_sysctl_path("net.//.x"));
}

static void net_devices(void **state) {
    (void)state;
    expect_linux("\"netDevices\":{}", NULL);
    expect_linux("\"netDevices\":{\"a\":{}}",
                 "linux.netDevices: needs an entry of type \"network\" in linux.namespaces");
#define DEVICES(members) "\"namespaces\":[{\"type\":\"network\"}],\"netDevices\":{" members "}"
    expect_linux(DEVICES("\"a\":{},\"b\":{\"name\":\"c%d\"},\"c\":{\"name\":\"c%d\"}"), NULL);
    expect_linux(DEVICES("\"a\":{\"name\":\"b\"},\"b\":{\"name\":\"a\"}"), NULL);
    expect_linux(DEVICES("\"a23456789012345\":{\"name\":\"\"}"), NULL);
    expect_linux(DEVICES("\"a\":{},\"b\":{\"name\":\"a\"}"),
                 "linux.netDevices.b.name: a is the name of linux.netDevices.a already");
    static const char *const keys[] = {"", "a234567890123456", ".", "..", "a/b", "a:1", "a b", "lo", "a%d"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        memory_owned char *message =
            text_formatted("linux.netDevices: expected names of network interfaces other than lo as keys, "
                           "found \"%s\"",
                           keys[i]);
        expect_formatted(message, "{\"ociVersion\":\"1.3.0\",\"linux\":{" DEVICES("\"%s\":{}") "}}", keys[i]);
    }
    static const char *const names[] = {
        "a234567890123456", "..", "a/b", "lo", "%d", "a%s", "a%db", "%d%d", "a%"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        memory_owned char *message =
            text_formatted("linux.netDevices.a.name: expected the name of a network interface other than lo "
                           "(1 to 15 characters, %%d at the end at most), found \"%s\"",
                           names[i]);
        expect_formatted(message,
                         "{\"ociVersion\":\"1.3.0\",\"linux\":{" DEVICES("\"a\":{\"name\":\"%s\"}") "}}",
                         names[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions),        cmocka_unit_test(root),         cmocka_unit_test(command),
        cmocka_unit_test(rlimits),         cmocka_unit_test(capabilities), cmocka_unit_test(scheduling),
        cmocka_unit_test(mounts),          cmocka_unit_test(mappings),     cmocka_unit_test(hooks),
        cmocka_unit_test(namespaces),      cmocka_unit_test(host_names),   cmocka_unit_test(sysctls),
        cmocka_unit_test(linux_words),     cmocka_unit_test(devices),      cmocka_unit_test(intel_rdt),
        cmocka_unit_test(net_devices),     cmocka_unit_test(resources),    cmocka_unit_test(seccomp),
        cmocka_unit_test(other_documents), cmocka_unit_test(shown_values), cmocka_unit_test(names),
    };
    return cmocka_run_group_tests_name("ocispec_check", tests, NULL, NULL);
}
