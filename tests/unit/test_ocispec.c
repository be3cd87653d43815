/* The schema's reader, writer, copy and string maps, and the podman example. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "libocispec/config.h"

static char *write_document(const struct schema *schema, const void *object) {
    struct json_writer json = {0};
    schema_write(schema, object, &json);
    return text_take(&json.text);
}

static void *read_document(const struct schema *schema, const char *text) {
    void *object = NULL;
    struct error *error = schema_read(schema, "config.json", text, strlen(text), &object);
    if (error != NULL)
        fail_msg("%s: %s", text, error->message);
    assert_non_null(object);
    return object;
}

static void expect_error_bytes(const struct schema *schema, const char *bytes, size_t length,
                               const char *message) {
    void *object = (void *)1;
    error_owned error = schema_read(schema, "config.json", bytes, length, &object);
    if (error == NULL)
        fail_msg("no error for %s", bytes);
    assert_int_equal(error->kind, ERROR_INVALID);
    assert_string_equal(error->message, message);
    assert_null(object);
}

/* Reads and writes; `expected` NULL: the same text. */
static void expect_round(const struct schema *schema, const char *text, const char *expected) {
    void *object = read_document(schema, text);
    char *written = write_document(schema, object);
    assert_string_equal(written, expected ? expected : text);
    free(written);
    schema_free(schema, object);
}

static void expect_error(const struct schema *schema, const char *text, const char *message) {
    expect_error_bytes(schema, text, strlen(text), message);
}

static char *read_file(const char *name) {
    const char *tests = getenv("PINFOLD_TESTS");
    char *path = text_formatted("%s/unit/data/%s", tests ? tests : "tests", name);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        fail_msg("%s is missing", path);
    free(path);
    struct text text = {0};
    char buffer[4096];
    for (size_t count; (count = fread(buffer, 1, sizeof buffer, file)) > 0;)
        text_append_bytes(&text, buffer, count);
    fclose(file);
    return text_take(&text);
}

/* --- whole documents
 * ----------------------------------------------------------------------------------------- */

static void podman_example(void **state) {
    (void)state;
    char *text = read_file("podman-4.3-config.json");
    struct oci_config *config = NULL;
    struct error *error = oci_config_parse("config.json", text, strlen(text), &config);
    if (error != NULL)
        fail_msg("%s", error->message);
    assert_string_equal(config->oci_version, "1.0.2-dev");
    assert_int_equal(config->process->args.count, 2);
    assert_string_equal(config->process->args.items[0], "/bin/sleep");
    assert_null(config->process->args.items[2]);
    assert_true(config->process->user.umask.set);
    assert_int_equal(config->process->user.umask.value, 18);
    assert_int_equal(config->process->capabilities->bounding.count, 11);
    assert_int_equal(config->process->capabilities->ambient.count, 0);
    assert_int_equal(config->process->rlimits_count, 2);
    assert_int_equal(config->process->rlimits[1].hard, 32768);
    assert_int_equal(config->mounts_count, 10);
    assert_string_equal(config->mounts[9].destination, "/sys/fs/cgroup");
    assert_int_equal(config->mounts[9].options.count, 6);
    assert_string_equal(string_map_get(&config->annotations, "io.container.manager"), "libpod");
    assert_int_equal(config->linux_config->seccomp->syscalls_count, 22);
    assert_int_equal(config->linux_config->seccomp->default_errno_return.value, 38);
    assert_int_equal(config->linux_config->seccomp->syscalls[6].args[0].value, 4294967295u);
    assert_non_null(oci_config_namespace(config, "network"));
    assert_null(oci_config_namespace(config, "user"));
    assert_false(config->linux_config->resources->devices[0].allow);

    char *written = write_document(&oci_config_schema, config);
    struct oci_config *again = NULL;
    assert_null(oci_config_parse("config.json", written, strlen(written), &again));
    char *rewritten = write_document(&oci_config_schema, again);
    assert_string_equal(written, rewritten);
    assert_int_equal(strlen(written), strlen(text)); /* podman's order differs, not its content */

    struct oci_config *copy = oci_config_copy(again);
    oci_config_free(again);
    char *copied = write_document(&oci_config_schema, copy);
    assert_string_equal(written, copied);
    free(copied);
    free(rewritten);
    free(written);
    oci_config_free(copy);
    oci_config_free(config);
    free(text);
}

/* Every key that the tables know, in their order. */
static const char full_document[] =
    "{\"ociVersion\":\"1.2.0\",\"root\":{\"path\":\"rootfs\",\"readonly\":true},"
    "\"process\":{\"terminal\":true,\"consoleSize\":{\"height\":25,\"width\":80},"
    "\"user\":{\"uid\":1,\"gid\":2,\"umask\":0,\"additionalGids\":[0,4294967295]},\"args\":[\"\",\"a b\"],"
    "\"env\":[\"A=\\u0001\\\"\\\\\"],\"cwd\":\"/\",\"capabilities\":{\"bounding\":[\"CAP_KILL\"],"
    "\"effective\":[\"CAP_KILL\"],\"inheritable\":[\"CAP_KILL\"],\"permitted\":[\"CAP_KILL\"],"
    "\"ambient\":[\"CAP_KILL\"]},\"rlimits\":[{\"type\":\"RLIMIT_CORE\",\"hard\":18446744073709551615,"
    "\"soft\":0}],"
    "\"noNewPrivileges\":true,\"oomScoreAdj\":0,\"apparmorProfile\":\"p\",\"selinuxLabel\":\"l\","
    "\"scheduler\":{\"policy\":\"SCHED_DEADLINE\",\"nice\":-5,\"flags\":[\"SCHED_FLAG_RECLAIM\"],"
    "\"runtime\":1024,\"deadline\":2048,\"period\":4096},\"ioPriority\":{\"class\":\"IOPRIO_CLASS_BE\","
    "\"priority\":4}"
    ","
    "\"execCPUAffinity\":{\"initial\":\"0\",\"final\":\"0-1,3\"}},\"hostname\":\"h\",\"domainname\":\"d\","
    "\"mounts\":[{\"destination\":\"/m\",\"type\":\"t\",\"source\":\"s\",\"options\":[\"bind\"],"
    "\"uidMappings\":[{\"containerID\":0,\"hostID\":1,\"size\":1}],"
    "\"gidMappings\":[{\"containerID\":0,\"hostID\":1,\"size\":1}]}],"
    "\"hooks\":{\"prestart\":[{\"path\":\"/a\",\"args\":[\"a\"],\"env\":[\"B=\"],\"timeout\":1}],"
    "\"createRuntime\":[{\"path\":\"/b\"}],\"createContainer\":[{\"path\":\"/c\"}],"
    "\"startContainer\":[{\"path\":\"/d\"}],\"poststart\":[{\"path\":\"/e\"}],\"poststop\":[{\"path\":\"/"
    "f\"}]},"
    "\"annotations\":{\"k\":\"v\",\"empty\":\"\"},"
    "\"linux\":{\"uidMappings\":[{\"containerID\":0,\"hostID\":1,\"size\":4294967294}],"
    "\"gidMappings\":[{\"containerID\":0,\"hostID\":1,\"size\":1}],\"sysctl\":{\"net.core.somaxconn\":\"1\"},"
    "\"resources\":{\"devices\":[{\"allow\":false,\"type\":\"a\",\"major\":-1,\"minor\":0,\"access\":\"rwm\"}"
    "],"
    "\"memory\":{\"limit\":-1,\"reservation\":0,\"swap\":9223372036854775807,\"kernel\":1,\"kernelTCP\":2,"
    "\"swappiness\":0,\"disableOOMKiller\":false,\"useHierarchy\":true,\"checkBeforeUpdate\":false},"
    "\"cpu\":{\"shares\":0,\"quota\":-1,\"burst\":1,\"period\":2,\"realtimeRuntime\":3,\"realtimePeriod\":4,"
    "\"cpus\":\"0\",\"mems\":\"0\",\"idle\":1},\"pids\":{\"limit\":0},"
    "\"blockIO\":{\"weight\":10,\"leafWeight\":20,"
    "\"weightDevice\":[{\"major\":8,\"minor\":0,\"weight\":10,\"leafWeight\":11}],"
    "\"throttleReadBpsDevice\":[{\"major\":8,\"minor\":0,\"rate\":1}],"
    "\"throttleWriteBpsDevice\":[{\"major\":8,\"minor\":0,\"rate\":2}],"
    "\"throttleReadIOPSDevice\":[{\"major\":8,\"minor\":0,\"rate\":3}],"
    "\"throttleWriteIOPSDevice\":[{\"major\":8,\"minor\":0,\"rate\":0}]},"
    "\"hugepageLimits\":[{\"pageSize\":\"2MB\",\"limit\":0}],"
    "\"network\":{\"classID\":1048577,\"priorities\":[{\"name\":\"eth0\",\"priority\":5}]},"
    "\"rdma\":{\"mlx5_1\":{\"hcaHandles\":3,\"hcaObjects\":10000},\"mlx4_0\":{}},"
    "\"unified\":{\"memory.high\":\"max\"}},"
    "\"cgroupsPath\":\"/c\",\"namespaces\":[{\"type\":\"uts\"},{\"type\":\"network\",\"path\":\"/n\"},"
    "{\"type\":\"time\"}],\"devices\":[{\"type\":\"c\",\"path\":\"/dev/x\",\"major\":1,\"minor\":2,"
    "\"fileMode\":438,\"uid\":0,\"gid\":0}],\"seccomp\":{\"defaultAction\":\"SCMP_ACT_ERRNO\","
    "\"defaultErrnoRet\":0,\"architectures\":[\"SCMP_ARCH_X86\"],\"flags\":[\"SECCOMP_FILTER_FLAG_LOG\"],"
    "\"listenerPath\":\"/l\",\"listenerMetadata\":\"m\",\"syscalls\":[{\"names\":[\"read\"],"
    "\"action\":\"SCMP_ACT_TRACE\",\"errnoRet\":1,\"args\":[{\"index\":5,\"value\":18446744073709551615,"
    "\"valueTwo\":1,\"op\":\"SCMP_CMP_MASKED_EQ\"}]}]},\"rootfsPropagation\":\"rslave\","
    "\"maskedPaths\":[\"/x\"],\"readonlyPaths\":[\"/y\"],\"mountLabel\":\"l\","
    "\"personality\":{\"domain\":\"LINUX\"},\"memoryPolicy\":{\"mode\":\"MPOL_BIND\",\"nodes\":\"0\","
    "\"flags\":[\"MPOL_F_STATIC_NODES\"]},\"timeOffsets\":{\"boottime\":{\"secs\":-5,\"nanosecs\":1},"
    "\"monotonic\":{\"secs\":1}},\"intelRdt\":{\"closID\":\"fast\",\"schemata\":[\"L3:0=f\"],"
    "\"l3CacheSchema\":\"L3:0=f\",\"memBwSchema\":\"MB:0=50\",\"enableCMT\":true,\"enableMBM\":true,"
    "\"enableMonitoring\":true}}}";

static void every_key(void **state) {
    (void)state;
    expect_round(&oci_config_schema, full_document, NULL);
    struct oci_config *config = NULL;
    struct error *error = oci_config_parse("config.json", full_document, sizeof full_document - 1, &config);
    if (error != NULL)
        fail_msg("%s", error->message);
    assert_true(config->linux_config->resources->memory->swap.value == INT64_MAX);
    assert_true(config->process->rlimits[0].hard == UINT64_MAX);
    assert_true(config->linux_config->seccomp->syscalls[0].args[0].value == UINT64_MAX);
    assert_int_equal(config->process->user.additional_gids_count, 2);
    assert_int_equal(config->process->user.additional_gids[1], UINT32_MAX);
    assert_int_equal(config->process->scheduler->nice, -5);
    assert_string_equal(config->process->env.items[0], "A=\x01\"\\");
    assert_true(config->linux_config->resources->pids->limit.set);
    assert_int_equal(config->linux_config->resources->pids->limit.value, 0);

    struct oci_config *copy = oci_config_copy(config);
    oci_config_free(config);
    char *copied = write_document(&oci_config_schema, copy);
    assert_string_equal(copied, full_document);
    free(copied);
    oci_config_free(copy);
    assert_null(oci_config_copy(NULL));
    oci_config_free(NULL);
}

static void state_document(void **state) {
    (void)state;
    expect_round(&oci_state_schema,
                 "{\"ociVersion\":\"1.2.0\",\"id\":\"c\",\"status\":\"created\",\"pid\":7,\"bundle\":\"/b\","
                 "\"annotations\":{\"a\":\"b\"}}",
                 NULL);
    expect_error(&oci_state_schema, "{\"ociVersion\":\"1.2.0\",\"id\":\"c\",\"bundle\":\"/b\"}",
                 "config.json: status: required, but missing");
}

/* --- absence, repetition, what is ignored
 * ---------------------------------------------------------------------- */

#define P(members) "{\"cwd\":\"/\"," members "}"
static const char root_user[] = "{\"user\":{\"uid\":0,\"gid\":0},\"cwd\":\"/\"}";

static void absence(void **state) {
    (void)state;
    const struct schema *process = &oci_process_schema;
    expect_round(process, "{\"cwd\":\"/\"}", root_user);
    expect_round(process,
                 P("\"terminal\":null,\"args\":null,\"user\":null,\"capabilities\":null,\"rlimits\":null,"
                   "\"oomScoreAdj\":null,\"apparmorProfile\":null"),
                 root_user);
    expect_round(process, P("\"terminal\":false,\"args\":[],\"rlimits\":[],\"apparmorProfile\":\"\""),
                 root_user);
    /* Objects that are there but empty stay. */
    expect_round(process, P("\"capabilities\":{}"),
                 "{\"user\":{\"uid\":0,\"gid\":0},\"cwd\":\"/\",\"capabilities\":{}}");
    /* An empty path is no path: a namespace to be made, not one to be joined. */
    struct oci_config *config =
        read_document(&oci_config_schema, "{\"ociVersion\":\"1.0\",\"linux\":{\"cgroupsPath\":\"\","
                                          "\"namespaces\":[{\"type\":\"pid\",\"path\":\"\"}]}}");
    assert_null(config->linux_config->cgroups_path);
    assert_null(config->linux_config->namespaces[0].path);
    oci_config_free(config);
}

static void repetition(void **state) {
    (void)state;
    const struct schema *process = &oci_process_schema;
    expect_round(process, P("\"args\":[\"a\",\"b\"],\"args\":[\"c\"]"),
                 "{\"user\":{\"uid\":0,\"gid\":0},\"args\":[\"c\"],\"cwd\":\"/\"}");
    expect_round(process, P("\"cwd\":\"/a\",\"cwd\":\"/b\""),
                 "{\"user\":{\"uid\":0,\"gid\":0},\"cwd\":\"/b\"}");
    expect_round(process,
                 P("\"user\":{\"uid\":1,\"gid\":2,\"umask\":3,\"additionalGids\":[1]},"
                   "\"user\":{\"uid\":5,\"gid\":6}"),
                 "{\"user\":{\"uid\":5,\"gid\":6},\"cwd\":\"/\"}");
    expect_round(process, P("\"rlimits\":[{\"type\":\"RLIMIT_CPU\",\"hard\":1,\"soft\":1}],\"rlimits\":null"),
                 root_user);
    expect_round(process, P("\"capabilities\":{\"bounding\":[\"CAP_KILL\"]},\"capabilities\":{}"),
                 "{\"user\":{\"uid\":0,\"gid\":0},\"cwd\":\"/\",\"capabilities\":{}}");
    expect_error(process, P("\"cwd\":null"), "config.json: cwd: required, but missing");

    const struct schema *config = &oci_config_schema;
    expect_round(
        config,
        "{\"ociVersion\":\"1.0\",\"annotations\":{\"b\":\"1\",\"a\":\"2\",\"b\":\"3\",\"n\":null,\"c\":\"4\","
        "\"a\":null,\"b\":\"5\"}}",
        "{\"ociVersion\":\"1.0\",\"annotations\":{\"b\":\"5\",\"c\":\"4\"}}");
    expect_round(config,
                 "{\"ociVersion\":\"1.0\",\"annotations\":{\"a\":\"1\"},\"annotations\":{\"b\":\"2\"}}",
                 "{\"ociVersion\":\"1.0\",\"annotations\":{\"b\":\"2\"}}");
}

/* An object whose keys are names and whose members are objects. */
static void named_objects(void **state) {
    (void)state;
    const struct schema *resources = &oci_resources_schema;
    expect_round(resources,
                 "{\"rdma\":{\"a\":{\"hcaHandles\":1},\"b\":{},\"c\":null,\"a\":{\"hcaObjects\":2}}}",
                 "{\"rdma\":{\"a\":{\"hcaObjects\":2},\"b\":{}}}");
    expect_round(resources, "{\"rdma\":{\"a\":{},\"a\":null}}", "{}");
    expect_round(resources, "{\"rdma\":{\"a\":{}},\"rdma\":{\"b\":{\"unknown\":[{}]}}}",
                 "{\"rdma\":{\"b\":{}}}");
    expect_error(resources, "{\"rdma\":{\"a\":1}}",
                 "config.json: rdma.a: expected an object, found a number");
    expect_error(resources, "{\"rdma\":{\"a\":[]}}",
                 "config.json: rdma.a: expected an object, found an array");
    expect_error(resources, "{\"rdma\":[]}", "config.json: rdma: expected an object, found an array");
    expect_error(
        resources, "{\"rdma\":{\"a b\":{\"hcaHandles\":-1}}}",
        "config.json: rdma[\"a b\"].hcaHandles: expected an integer between 0 and 4294967295, found -1");
    text_owned struct text many = {0};
    text_append(&many, "{\"rdma\":{\"x\":{}");
    for (int i = 0; i < SCHEMA_NAMED_MAX; i++)
        text_format(&many, ",\"n%d\":{}", i);
    text_append(&many, "}}");
    expect_error(resources, text_string(&many), "config.json: rdma: more than 256 members");
}

static void unknown_keys(void **state) {
    (void)state;
    /* A key that only begins as a known one does, and goes on behind a NUL (found by fuzz_state). */
    expect_round(&oci_process_schema,
                 "{\"cwd\":\"/\",\"terminal\\u0000and much more than the name has\":true}", root_user);
    expect_round(&oci_process_schema,
                 P("\"new\":{\"cwd\":[1,{\"x\":[[]]},null,1e400,\"\\u0000\"]},\"\":1,\"cw\":2,\"cwdd\":3,"
                   "\"c\\u0000\":4,\"CWD\":5,\"user\":{\"uid\":7,\"gid\":8,\"username\":{\"a\":1}}"),
                 "{\"user\":{\"uid\":7,\"gid\":8},\"cwd\":\"/\"}");
}

static void white_space(void **state) {
    (void)state;
    expect_round(&oci_process_schema, " \t\r\n{ \"cwd\" : \"/\" } \n\n", root_user);
}

/* Growth across the sizes at which arrays are made longer. */
static void long_arrays(void **state) {
    (void)state;
    for (size_t count = 0; count <= 70; count++) {
        struct json_writer json = {0};
        json_object_begin(&json);
        json_key(&json, "user");
        json_object_begin(&json);
        json_member_integer(&json, "uid", 0);
        json_member_integer(&json, "gid", 0);
        json_key(&json, "additionalGids");
        json_array_begin(&json);
        for (size_t i = 0; i < count; i++)
            json_unsigned(&json, i * 1000);
        json_array_end(&json);
        json_object_end(&json);
        json_key(&json, "args");
        json_array_begin(&json);
        for (size_t i = 0; i < count; i++)
            json_string(&json, i % 2 ? "odd" : "");
        json_array_end(&json);
        json_member_string(&json, "cwd", "/");
        json_key(&json, "rlimits");
        json_array_begin(&json);
        for (size_t i = 0; i < count; i++) {
            json_object_begin(&json);
            json_member_string(&json, "type", "x");
            json_member_integer(&json, "hard", (int64_t)i);
            json_member_integer(&json, "soft", 0);
            json_object_end(&json);
        }
        json_array_end(&json);
        json_object_end(&json);
        struct oci_process *process = read_document(&oci_process_schema, text_string(&json.text));
        assert_int_equal(process->args.count, count);
        assert_int_equal(process->user.additional_gids_count, count);
        assert_int_equal(process->rlimits_count, count);
        if (count > 0) {
            assert_null(process->args.items[count]);
            assert_int_equal(process->user.additional_gids[count - 1], (count - 1) * 1000);
            assert_int_equal(process->rlimits[count - 1].hard, count - 1);
            char *written = write_document(&oci_process_schema, process);
            assert_string_equal(written, json.text.data);
            free(written);
        }
        string_list_append(&process->args, "more"); /* the list is a base/text one, whatever grew it */
        assert_string_equal(process->args.items[count], "more");
        assert_null(process->args.items[count + 1]);
        oci_process_free(process);
        json_free(&json);
    }
}

/* --- errors
 * ------------------------------------------------------------------------------------------------- */

static void wrong_types(void **state) {
    (void)state;
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"[]", "config.json: expected an object, found an array"},
        {"null", "config.json: expected an object, found null"},
        {"3", "config.json: expected an object, found a number"},
        {"\"x\"", "config.json: expected an object, found a string"},
        {"true", "config.json: expected an object, found a boolean"},
        {"{\"ociVersion\":1}", "config.json: ociVersion: expected a string, found a number"},
        {"{\"hostname\":[\"secret\"]}", "config.json: hostname: expected a string, found an array"},
        {"{\"root\":\"secret\"}", "config.json: root: expected an object, found a string"},
        {"{\"root\":{\"readonly\":\"yes\"}}",
         "config.json: root.readonly: expected true or false, found a string"},
        {"{\"root\":{\"readonly\":1}}", "config.json: root.readonly: expected true or false, found a number"},
        {"{\"root\":[]}", "config.json: root: expected an object, found an array"},
        {"{\"mounts\":{}}", "config.json: mounts: expected an array, found an object"},
        {"{\"mounts\":[{\"destination\":\"/\"},null]}",
         "config.json: mounts[1]: expected an object, found null"},
        {"{\"mounts\":[{\"destination\":\"/\"},\"x\"]}",
         "config.json: mounts[1]: expected an object, found a string"},
        {"{\"mounts\":[[]]}", "config.json: mounts[0]: expected an object, found an array"},
        {"{\"mounts\":[{\"destination\":\"/\",\"options\":[\"a\",null]}]}",
         "config.json: mounts[0].options[1]: expected a string, found null"},
        {"{\"mounts\":[{\"destination\":\"/\",\"options\":[[]]}]}",
         "config.json: mounts[0].options[0]: expected a string, found an array"},
        {"{\"mounts\":[{\"destination\":\"/\",\"options\":[{}]}]}",
         "config.json: mounts[0].options[0]: expected a string, found an object"},
        {"{\"mounts\":[{\"destination\":\"/a\"},{\"destination\":\"/b\"},{\"destination\":\"/"
         "c\"},{\"type\":\"x\"}]}",
         "config.json: mounts[3].destination: required, but missing"},
        {"{\"annotations\":{\"a\":1}}", "config.json: annotations.a: expected a string, found a number"},
        {"{\"annotations\":{\"a\":{}}}", "config.json: annotations.a: expected a string, found an object"},
        {"{\"annotations\":{\"a\":true}}", "config.json: annotations.a: expected a string, found a boolean"},
        {"{\"annotations\":{\"b\":\"\",\"a.b\\n\":[]}}",
         "config.json: annotations[\"a.b\\n\"]: expected a string, found an array"},
        {"{\"annotations\":[]}", "config.json: annotations: expected an object, found an array"},
        {"{\"linux\":{\"resources\":{\"pids\":{\"limit\":\"x\"}}}}",
         "config.json: linux.resources.pids.limit: expected an integer, found a string"},
        {"{\"process\":{\"user\":{\"uid\":0,\"gid\":0,\"additionalGids\":[0,\"x\"]}}}",
         "config.json: process.user.additionalGids[1]: expected an integer, found a string"},
        {"{\"process\":{\"user\":{\"uid\":0,\"gid\":0,\"additionalGids\":[false]}}}",
         "config.json: process.user.additionalGids[0]: expected an integer, found a boolean"},
        {"{\"process\":{\"terminal\":{}}}",
         "config.json: process.terminal: expected true or false, found an object"},
        {"{\"process\":{\"args\":\"sh\"}}", "config.json: process.args: expected an array, found a string"},
        {"{\"process\":{\"user\":{\"uid\":0}}}", "config.json: process.user.gid: required, but missing"},
        {"{\"process\":{}}", "config.json: process.cwd: required, but missing"},
        {"{\"process\":{\"cwd\":\"/\"}}", "config.json: ociVersion: required, but missing"},
        {"{\"linux\":{\"seccomp\":{\"syscalls\":[]}}}",
         "config.json: linux.seccomp.defaultAction: required, but missing"},
        {"{\"linux\":{\"resources\":{\"devices\":[{\"allow\":true},{\"access\":\"r\"}]}}}",
         "config.json: linux.resources.devices[1].allow: required, but missing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_error(&oci_config_schema, cases[i].text, cases[i].message);
}

static void expect_limit(const char *number, const char *range) {
    char *text = text_formatted(
        "{\"ociVersion\":\"1.0\",\"linux\":{\"resources\":{\"pids\":{\"limit\":%s}}}}", number);
    if (range == NULL) {
        struct oci_config *config = read_document(&oci_config_schema, text);
        assert_true(config->linux_config->resources->pids->limit.set);
        assert_true(config->linux_config->resources->pids->limit.value == strtoll(number, NULL, 10));
        oci_config_free(config);
    } else {
        char *message =
            text_formatted("config.json: linux.resources.pids.limit: expected an integer between %s", range);
        expect_error(&oci_config_schema, text, message);
        free(message);
    }
    free(text);
}

static void expect_uid(const char *number, const char *message) {
    char *text = text_formatted("{\"user\":{\"uid\":%s,\"gid\":0},\"cwd\":\"/\"}", number);
    if (message == NULL) {
        struct oci_process *process = read_document(&oci_process_schema, text);
        assert_true(process->user.uid == strtoul(number, NULL, 10));
        oci_process_free(process);
    } else {
        expect_error(&oci_process_schema, text, message);
    }
    free(text);
}

static void numbers(void **state) {
    (void)state;
    expect_limit("0", NULL);
    expect_limit("-0", NULL);
    expect_limit("9223372036854775807", NULL);
    expect_limit("-9223372036854775808", NULL);
    expect_limit("9007199254740993", NULL); /* not a double */
#define INT64_RANGE "-9223372036854775808 and 9223372036854775807, found "
    expect_limit("9223372036854775808", INT64_RANGE "9223372036854775808");
    expect_limit("-9223372036854775809", INT64_RANGE "-9223372036854775809");
    expect_limit("1.0", INT64_RANGE "1.0");
    expect_limit("1e3", INT64_RANGE "1e3");
    expect_limit("99999999999999999999999999999999999999999999999999",
                 INT64_RANGE "9999999999999999999999999999999999999999...");

    expect_uid("4294967295", NULL);
    expect_uid("4294967296",
               "config.json: user.uid: expected an integer between 0 and 4294967295, found 4294967296");
    expect_uid(
        "18446744073709551616",
        "config.json: user.uid: expected an integer between 0 and 4294967295, found 18446744073709551616");
    expect_uid("-1", "config.json: user.uid: expected an integer between 0 and 4294967295, found -1");
    expect_uid("0.5", "config.json: user.uid: expected an integer between 0 and 4294967295, found 0.5");
    expect_uid("\"0\"", "config.json: user.uid: expected an integer, found a string");
    expect_error(&oci_process_schema, P("\"scheduler\":{\"policy\":\"x\",\"nice\":2147483648}"),
                 "config.json: scheduler.nice: expected an integer between -2147483648 and 2147483647, found "
                 "2147483648");
    expect_error(&oci_process_schema, P("\"scheduler\":{\"policy\":\"x\",\"nice\":-2147483649}"),
                 "config.json: scheduler.nice: expected an integer between -2147483648 and 2147483647, found "
                 "-2147483649");
    expect_error(&oci_process_schema, P("\"rlimits\":[{\"hard\":18446744073709551616}]"),
                 "config.json: rlimits[0].hard: expected an integer between 0 and 18446744073709551615, "
                 "found 18446744073709551616");
    expect_error(
        &oci_process_schema, P("\"rlimits\":[{\"hard\":-1}]"),
        "config.json: rlimits[0].hard: expected an integer between 0 and 18446744073709551615, found -1");
    expect_error(
        &oci_process_schema, P("\"user\":{\"uid\":0,\"gid\":0,\"additionalGids\":[1,2,-3]}"),
        "config.json: user.additionalGids[2]: expected an integer between 0 and 4294967295, found -3");
}

static void strings(void **state) {
    (void)state;
    expect_error(&oci_process_schema, P("\"env\":[\"A=1\",\"SECRET=x\\u0000y\"]"),
                 "config.json: env[1]: a NUL (\\u0000) within a string");
    expect_error(&oci_process_schema, P("\"apparmorProfile\":\"\\u0000\""),
                 "config.json: apparmorProfile: a NUL (\\u0000) within a string");
    expect_error(&oci_config_schema, "{\"annotations\":{\"first\":\"\",\"a\\u0000\":\"\"}}",
                 "config.json: annotations: a NUL (\\u0000) within a string");
    expect_round(
        &oci_process_schema, P("\"args\":[\"\\ud83d\\ude00\\u00e9\\u20ac/\\/\\\\u0000\\\\\"]"),
        "{\"user\":{\"uid\":0,\"gid\":0},\"args\":[\"\xf0\x9f\x98\x80\xc3\xa9\xe2\x82\xac//\\\\u0000\\\\\"],"
        "\"cwd\":\"/\"}");
    expect_round(
        &oci_process_schema, P("\"args\":[\"\\td800\",\"\\udbff\\udfff\",\"\\ud800\\udc00\"]"),
        "{\"user\":{\"uid\":0,\"gid\":0},\"args\":[\"\\td800\",\"\xf4\x8f\xbf\xbf\",\"\xf0\x90\x80\x80\"],"
        "\"cwd\":\"/\"}");
    static const char *const halves[] = {
        "\"\\ud800\"",        "\"\\udc00\"",          "\"\\ud800\\u0041\"", "\"\\uD83D \\uDE00\"",
        "\"\\ud83d\\ud83d\"", "\"\\ud83d\\\\ude00\"", "\"\\uDFFFx\"",       "\"\\ud83d",
    };
    for (size_t i = 0; i < sizeof halves / sizeof *halves; i++)
        expect_error(&oci_process_schema, halves[i],
                     "config.json: byte 1: a \\u escape of half a surrogate pair");
    /* yajl itself refuses some, with a place; the others are ours: overlong, surrogate, beyond the last
     * plane. */
    static const char *const ours[] = {"\xc0\xaf",         "\xe0\x80\xaf",     "\xed\xa0\x80",
                                       "\xf0\x80\x80\xaf", "\xf4\x90\x80\x80", "1234567\xc1\x81",
                                       "12345678\xc1\x81"};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
        char *text = text_formatted("{\"args\":[\"%s\"]}", ours[i]);
        expect_error(&oci_process_schema, text, "config.json: args[0]: not valid UTF-8");
        free(text);
    }
    static const char *const lexed[] = {"\xff", "\x80", "\xc3", "\xe2\x82", "\xf8\x88\x80\x80\x80"};
    for (size_t i = 0; i < sizeof lexed / sizeof *lexed; i++) {
        char *text = text_formatted("{\"args\":[\"%s\"]}", lexed[i]);
        void *object = NULL;
        error_owned error = schema_read(&oci_process_schema, "config.json", text, strlen(text), &object);
        assert_non_null(error);
        assert_non_null(strstr(error->message, "invalid bytes in UTF8 string"));
        assert_null(object);
        free(text);
    }
}

static void syntax(void **state) {
    (void)state;
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"", "config.json: byte 0: parse error: premature EOF"},
        {"  ", "config.json: byte 2: parse error: premature EOF"},
        {"{\"cwd\":\"/\"", "config.json: byte 10: parse error: premature EOF"},
        {"{\"cwd\":\"/", "config.json: byte 9: parse error: premature EOF"},
        {"{\"user\":{\"uid\":1", "config.json: byte 16: parse error: premature EOF"},
        {"{\"cwd\":\"/\"} x", "config.json: byte 13: parse error: trailing garbage"},
        {"{\"cwd\":\"/\"}{}", "config.json: byte 12: parse error: trailing garbage"},
        {"{\"cwd\":\"/\"}]", "config.json: byte 12: parse error: trailing garbage"},
        {"{\"cwd\":\"/\",}", "config.json: byte 12: parse error: invalid object key (must be a string)"},
        {"{'cwd':1}", "config.json: byte 2: lexical error: invalid char in json text."},
        {"{\"env\":[\"PASSWORD=hunter2\" \"x\"]}",
         "config.json: byte 30: parse error: after array element, I expect ',' or ']'"},
        {"{\"env\":[\"PASSWORD=hunter2\n\"]}",
         "config.json: byte 25: lexical error: invalid character inside string."},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_error(&oci_process_schema, cases[i].text, cases[i].message);
    static const char *const refused[] = {
        "/* c */{\"cwd\":\"/\"}",     "{\"cwd\":\"/\"}// c",
        "{\"cwd\":\"/\",\"a\":01}",   "{\"cwd\":\"/\",\"a\":+1}",
        "{\"cwd\":\"/\",\"a\":.5}",   "{\"cwd\":\"/\",\"a\":NaN}",
        "{\"cwd\":\"/\",\"a\":[1,]}", "\xef\xbb\xbf{\"cwd\":\"/\"}",
        "{\"cwd\":\"/\" \"a\":1}",    "{\"cwd\"}",
        "{\"cwd\":\"\\x\"}",          "{\"cwd\":\"\\u12g4\"}",
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        void *object = NULL;
        error_owned error =
            schema_read(&oci_process_schema, "config.json", refused[i], strlen(refused[i]), &object);
        if (error == NULL)
            fail_msg("accepted: %s", refused[i]);
        assert_null(object);
        assert_null(strchr(error->message, '\n'));
        assert_true(text_starts_with(error->message, "config.json: byte "));
    }
    expect_error_bytes(&oci_process_schema, "{\"cwd\":\"/\"}\0", 12,
                       "config.json: byte 12: parse error: trailing garbage");
}

/* "{"cwd":"/","x":" with `depth` arrays around nothing. */
static char *nested(size_t depth) {
    struct text text = {0};
    text_append(&text, "{\"cwd\":\"/\",\"x\":");
    for (size_t i = 0; i < depth; i++)
        text_append(&text, i % 2 ? "{\"y\":" : "[");
    if (depth % 2 == 0)
        text_append(&text, "1");
    for (size_t i = depth; i-- > 0;)
        text_append(&text, i % 2 ? "}" : "]");
    text_append(&text, "}");
    return text_take(&text);
}

static void depth_bound(void **state) {
    (void)state;
    char *most = nested(SCHEMA_DEPTH_MAX - 1);
    expect_round(&oci_process_schema, most, root_user);
    char *beyond = nested(SCHEMA_DEPTH_MAX);
    expect_error(&oci_process_schema, beyond, "config.json: nested deeper than 64 levels");
    char *far = nested(1000000);
    expect_error(&oci_process_schema, far, "config.json: nested deeper than 64 levels");
    free(most);
    free(beyond);
    free(far);
}

static void size_bound(void **state) {
    (void)state;
    char *text = memory_zeroed(SCHEMA_BYTES_MAX + 2);
    memset(text, ' ', SCHEMA_BYTES_MAX + 1);
    memcpy(text, "{\"cwd\":\"/\"}", 11);
    void *object = NULL;
    assert_null(schema_read(&oci_process_schema, "config.json", text, SCHEMA_BYTES_MAX, &object));
    oci_process_free(object);
    expect_error_bytes(&oci_process_schema, text, SCHEMA_BYTES_MAX + 1,
                       "config.json: 16777217 bytes, but at most 16777216 are read");
    free(text);
}

/* A million keys, each twice: a search at each of them would take hours. */
static void large_map(void **state) {
    (void)state;
    enum { KEYS = 500000 };
    struct text text = {0};
    text_append(&text, "{\"ociVersion\":\"1.0\",\"annotations\":{\"k\":\"v\"");
    for (unsigned i = 0; i < 2 * KEYS; i++)
        text_format(&text, ",\"%x\":\"%x\"", i % KEYS, i / KEYS);
    text_append(&text, "}}");
    struct oci_config *config = read_document(&oci_config_schema, text.data);
    assert_int_equal(config->annotations.count, KEYS + 1);
    assert_string_equal(config->annotations.items[0].key, "k");
    assert_string_equal(config->annotations.items[256].key, "ff");
    assert_string_equal(config->annotations.items[256].value, "1");
    assert_string_equal(config->annotations.items[KEYS].value, "1");
    oci_config_free(config);
    text_free(&text);
}

static void maps(void **state) {
    (void)state;
    struct string_map map = {0};
    assert_null(string_map_get(&map, "a"));
    string_map_set(&map, "a", "1");
    string_map_set(&map, "b", "2");
    string_map_set(&map, "a", "3");
    assert_int_equal(map.count, 2);
    assert_string_equal(string_map_get(&map, "a"), "3");
    assert_string_equal(map.items[0].key, "a");
    string_map_set(&map, "a", string_map_get(&map, "a"));
    assert_string_equal(string_map_get(&map, "a"), "3");
    assert_null(string_map_get(&map, "c"));
    string_map_free(&map);
    assert_int_equal(map.count, 0);
    assert_null(map.items);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(podman_example), cmocka_unit_test(every_key),   cmocka_unit_test(state_document),
        cmocka_unit_test(absence),        cmocka_unit_test(repetition),  cmocka_unit_test(named_objects),
        cmocka_unit_test(unknown_keys),   cmocka_unit_test(white_space), cmocka_unit_test(long_arrays),
        cmocka_unit_test(wrong_types),    cmocka_unit_test(numbers),     cmocka_unit_test(strings),
        cmocka_unit_test(syntax),         cmocka_unit_test(depth_bound), cmocka_unit_test(size_bound),
        cmocka_unit_test(large_map),      cmocka_unit_test(maps),
    };
    return cmocka_run_group_tests_name("ocispec", tests, NULL, NULL);
}
