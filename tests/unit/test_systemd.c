/* The systemd driver without systemd: names and paths of units, values in GVariant text, properties from
 * annotations and resources. tests/vm does it with systemd. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cgroup/gvariant.h"
#include "cgroup/systemd.h"

static void assert_no_error(struct error *error) {
    if (error != NULL)
        fail_msg("unexpected error: %s", error->message);
}

static void assert_error(struct error *error, const char *part) {
    assert_non_null(error);
    if (strstr(error->message, part) == NULL)
        fail_msg("\"%s\" lacks \"%s\"", error->message, part);
    assert_int_equal(error->kind, ERROR_INVALID);
    error_free(error);
}

/* ---- names ---- */

static void assert_names(const char *path, bool user, const char *slice, const char *unit) {
    char *found_slice, *found_unit;
    assert_no_error(systemd_names(path, "a+b", user, &found_slice, &found_unit));
    assert_string_equal(found_slice, slice);
    assert_string_equal(found_unit, unit);
    free(found_slice);
    free(found_unit);
}

static void names_of_units(void **state) {
    (void)state;
    assert_names(NULL, false, "system.slice", "pinfold-a\\x2bb.scope");
    assert_names("", true, "user.slice", "pinfold-a\\x2bb.scope");
    assert_names("machine.slice:libpod:abc", false, "machine.slice", "libpod-abc.scope");
    assert_names(":docker:abc", false, "system.slice", "docker-abc.scope");
    assert_names("user.slice::abc", true, "user.slice", "abc.scope");
    assert_names("-.slice:p:n", false, "-.slice", "p-n.scope");
    static const char *const wrong[] = {
        "/a/b",         "a:b",           "a:b:c:d",      "system.slice:p:", "system.slice:p:../x",
        "system:p:n",   "/x.slice:p:n",  "-a.slice:p:n", "a-.slice:p:n",    "a--b.slice:p:n",
        ".slice:p:n",   "a.slice:p:n n", "a.slice:p:n@", "a b.slice:p:n",   "..:p:n",
        "a.slice:.p:n", "a.slice:p:n\n", "a.service:p:n"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char *slice, *unit;
        assert_error(systemd_names(wrong[i], "id", false, &slice, &unit), "linux.cgroupsPath: \"");
        assert_null(slice);
        assert_null(unit);
    }
    char id[300];
    memset(id, 'x', sizeof id - 1);
    id[sizeof id - 1] = '\0';
    char *slice, *unit;
    assert_error(systemd_names(NULL, id, false, &slice, &unit), "too long");
    memory_owned char *path = text_formatted("a.slice:p:%s", id);
    assert_error(systemd_names(path, "id", false, &slice, &unit), "linux.cgroupsPath");
}

static void slices_nest_by_their_dashes(void **state) {
    (void)state;
    const struct {
        const char *slice;
        const char *path;
    } rows[] = {{"system.slice", "/system.slice"},
                {"a-b-c.slice", "/a.slice/a-b.slice/a-b-c.slice"},
                {"-.slice", ""}};
    for (size_t i = 0; i < 3; i++) {
        memory_owned char *path = systemd_slice_path(rows[i].slice);
        assert_string_equal(path, rows[i].path);
    }
}

/* ---- GVariant text ---- */

static char *joined(const struct string_list *values) {
    struct text text = {0};
    text_append(&text, "");
    for (size_t i = 0; i < values->count; i++)
        text_format(&text, "%s%s", i == 0 ? "" : "|", values->items[i]);
    return text_take(&text);
}

static void values_have_types(void **state) {
    (void)state;
    const struct {
        const char *text;
        const char *type;
        const char *values;
    } rows[] = {
        {"true", "b", "true"},
        {" false ", "b", "false"},
        {"15", "i", "15"},
        {"-1", "i", "-1"},
        {"0x10", "i", "16"},
        {"010", "i", "8"},
        {"uint64 18446744073709551615", "t", "18446744073709551615"},
        {"@t 5", "t", "5"},
        {"int64 -9223372036854775808", "x", "-9223372036854775808"},
        {"byte 255", "y", "255"},
        {"uint16 65535", "q", "65535"},
        {"int16 -32768", "n", "-32768"},
        {"1.5", "d", "1.5"},
        {"double 2", "d", "2"},
        {"'text'", "s", "text"},
        {"\"a'b\"", "s", "a'b"},
        {"'it\\'s \\u00e4\\U0001f600\\n'", "s", "it's \xc3\xa4\xf0\x9f\x98\x80\n"},
        {"''", "s", ""},
        {"['a', 'b']", "as", "a|b"},
        {"@as []", "as", ""},
        {"[uint32 1, 2]", "au", "1|2"},
        {"@ay [1,2]", "ay", "1|2"},
        {"[true,false]", "ab", "true|false"},
        {"[ 1 , 2 ]", "ai", "1|2"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        memory_owned char *type = NULL;
        string_list_owned struct string_list values = {0};
        assert_no_error(gvariant_parse(rows[i].text, &type, &values));
        memory_owned char *text = joined(&values);
        assert_string_equal(type, rows[i].type);
        assert_string_equal(text, rows[i].values);
    }
}

static void what_is_no_value_is_one_error(void **state) {
    (void)state;
    static const char *const wrong[] = {"",
                                        " ",
                                        "yes",
                                        "'",
                                        "'a",
                                        "'\\",
                                        "'\\u12'",
                                        "'\\u0000'",
                                        "'\\ud800'",
                                        "[",
                                        "[]",
                                        "[1",
                                        "[1,",
                                        "[1 2]",
                                        "[1,'a']",
                                        "[uint32 1, uint64 2]",
                                        "1 2",
                                        "uint64 -1",
                                        "byte 256",
                                        "2147483648",
                                        "-2147483649",
                                        "uint64 18446744073709551616",
                                        "0x",
                                        "--1",
                                        "@t",
                                        "uint64",
                                        "@z 1",
                                        "@as 1",
                                        "[[1]]",
                                        "{'a': 1}",
                                        "(1,)",
                                        "<1>",
                                        "nothing",
                                        "just 1",
                                        "1e999",
                                        "b'x'",
                                        "string 5",
                                        "boolean 1",
                                        "int32 'a'",
                                        "-",
                                        "+",
                                        "uint64 1.5",
                                        "true1",
                                        "1a"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char *type;
        struct string_list values;
        struct error *error = gvariant_parse(wrong[i], &type, &values);
        if (error == NULL)
            fail_msg("\"%s\" was taken", wrong[i]);
        assert_int_equal(error->kind, ERROR_INVALID);
        assert_null(type);
        assert_int_equal(values.count, 0);
        error_free(error);
    }
    struct text many = {0};
    text_append(&many, "[1");
    for (int i = 0; i < GVARIANT_ITEMS_MAX; i++)
        text_append(&many, ",1");
    text_append(&many, "]");
    char *type;
    struct string_list values;
    assert_error(gvariant_parse(text_string(&many), &type, &values), "elements");
    for (int i = 0; i < GVARIANT_BYTES_MAX; i++)
        text_append(&many, " ");
    assert_error(gvariant_parse(text_string(&many), &type, &values), "bytes");
    text_free(&many);
}

/* ---- properties ---- */

/* "NAME TYPE VALUES" of the last property of that name, or "". */
static char *property_text(const struct systemd_properties *properties, const char *name) {
    for (size_t i = properties->items_count; i > 0; i--) {
        const struct systemd_property *property = &properties->items[i - 1];
        if (strcmp(property->name, name) != 0)
            continue;
        memory_owned char *values = joined(&property->values);
        return text_formatted("%s %s", property->type, values);
    }
    return memory_copy_string("");
}

static void assert_property(const struct systemd_properties *properties, const char *name,
                            const char *expected) {
    memory_owned char *found = property_text(properties, name);
    assert_string_equal(found, expected);
}

static void annotations_become_properties(void **state) {
    (void)state;
    struct string_map annotations = {0};
    string_map_set(&annotations, "org.systemd.property.KillSignal", "15");
    string_map_set(&annotations, "org.systemd.property.TimeoutStopUSec", "uint64 10000000");
    string_map_set(&annotations, "org.systemd.property.RuntimeMaxSec", "1.5");
    string_map_set(&annotations, "org.systemd.property.Wants", "['a.service']");
    string_map_set(&annotations, "io.podman.annotations.x", "not a [value");
    systemd_properties_owned struct systemd_properties properties = {0};
    assert_no_error(systemd_properties_from_annotations(&annotations, &properties));
    assert_int_equal(properties.items_count, 4);
    assert_property(&properties, "KillSignal", "i 15");
    assert_property(&properties, "TimeoutStopUSec", "t 10000000");
    assert_property(&properties, "RuntimeMaxUSec", "t 1500000");
    assert_property(&properties, "Wants", "as a.service");
    string_map_free(&annotations);
}

/* runc #5133: a bad one ended the runtime with a panic. */
static void a_bad_annotation_is_one_error(void **state) {
    (void)state;
    const struct {
        const char *key;
        const char *value;
        const char *part;
    } rows[] = {
        {"KillSignal", "fifteen", "annotations.org.systemd.property.KillSignal: expected"},
        {"KillSignal", "", "annotations.org.systemd.property.KillSignal: the value ends"},
        {"", "1", "annotations.org.systemd.property.: not the name"},
        {"killSignal", "1", "not the name"},
        {"Kill Signal", "1", "not the name"},
        {"Slice", "'a.slice'", "the runtime's own"},
        {"PIDs", "[uint32 1]", "the runtime's own"},
        {"Delegate", "false", "the runtime's own"},
        {"TimeoutStopSec", "'5'", "a number of seconds"},
        {"TimeoutStopSec", "-1", "no number of seconds"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct string_map annotations = {0};
        memory_owned char *key = text_formatted("org.systemd.property.%s", rows[i].key);
        string_map_set(&annotations, key, rows[i].value);
        systemd_properties_owned struct systemd_properties properties = {0};
        assert_error(systemd_properties_from_annotations(&annotations, &properties), rows[i].part);
        string_map_free(&annotations);
    }
}

/* runc #3808: with more than eight the bytes came in the wrong order. */
static void bitmaps_are_little_endian(void **state) {
    (void)state;
    const struct {
        const char *list;
        const char *bytes;
    } rows[] = {{"0", "1"},       {"0-2", "7"},           {"8", "0|1"},
                {"0-9", "255|3"}, {"1,3-5,17", "58|0|2"}, {"0,31", "1|0|0|128"},
                {"1, 2\n", "6"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        string_list_owned struct string_list bytes = {0};
        assert_no_error(systemd_bitmap("cpus", rows[i].list, &bytes));
        memory_owned char *text = joined(&bytes);
        assert_string_equal(text, rows[i].bytes);
    }
    static const char *const wrong[] = {"a",   "1-", "-1", "2-1", "1;2", "8192", "99999999999999999999",
                                        "1--2"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        string_list_owned struct string_list bytes = {0};
        assert_error(systemd_bitmap("linux.resources.cpu.cpus", wrong[i], &bytes),
                     "linux.resources.cpu.cpus");
    }
}

static void resources_become_properties(void **state) {
    (void)state;
    static const char document[] =
        "{\"memory\":{\"limit\":67108864,\"reservation\":33554432,\"swap\":100000000},"
        "\"cpu\":{\"shares\":1024,\"quota\":12345,\"period\":50000,\"cpus\":\"0-9\",\"mems\":\"0\"},"
        "\"pids\":{\"limit\":0},\"blockIO\":{\"weight\":500},"
        "\"unified\":{\"memory.high\":\"max\",\"memory.min\":\"4096\",\"hugetlb.2MB.max\":\"0\"}}";
    struct oci_resources *resources;
    assert_no_error(oci_resources_parse("resources", document, strlen(document), &resources));
    systemd_properties_owned struct systemd_properties properties = {0};
    assert_no_error(systemd_properties_from_resources(resources, NULL, true, &properties));
    assert_property(&properties, "MemoryMax", "t 67108864");
    assert_property(&properties, "MemoryLow", "t 33554432");
    assert_property(&properties, "MemorySwapMax", "t 32891136");
    assert_property(&properties, "CPUWeight", "t 100");
    assert_property(&properties, "CPUQuotaPeriodUSec", "t 50000");
    assert_property(&properties, "CPUQuotaPerSecUSec", "t 250000"); /* 24.69 % */
    assert_property(&properties, "AllowedCPUs", "ay 255|3");
    assert_property(&properties, "AllowedMemoryNodes", "ay 1");
    assert_property(&properties, "TasksMax", "t 1");
    assert_property(&properties, "IOWeight", "t 4950");
    assert_property(&properties, "MemoryHigh", "t 18446744073709551615");
    assert_property(&properties, "MemoryMin", "t 4096");
    assert_property(&properties, "DevicePolicy", "");
    oci_resources_free(resources);
}

static void device_rules_become_properties(void **state) {
    (void)state;
    const struct {
        const char *rules;
        const char *policy;
        const char *allow;
    } rows[] = {
        {"{\"allow\":false,\"access\":\"rwm\"},{\"allow\":true,\"type\":\"c\",\"major\":10,\"minor\":229,"
         "\"access\":\"rw\"}",
         "s strict", "/dev/char/10:229|rw"},
        {"{\"allow\":true,\"access\":\"rwm\"}", "s auto", ""},
        /* a range out of which one is taken */
        {"{\"allow\":true,\"type\":\"c\",\"major\":9,\"access\":\"rwm\"},{\"allow\":false,\"type\":\"c\","
         "\"major\":9,\"minor\":1,\"access\":\"rwm\"}",
         "s auto", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        memory_owned char *document = text_formatted("{\"devices\":[%s]}", rows[i].rules);
        struct oci_resources *resources;
        assert_no_error(oci_resources_parse("resources", document, strlen(document), &resources));
        systemd_properties_owned struct systemd_properties properties = {0};
        assert_no_error(systemd_properties_from_resources(resources, NULL, true, &properties));
        assert_property(&properties, "DevicePolicy", rows[i].policy);
        memory_owned char *allowed = property_text(&properties, "DeviceAllow");
        if (strstr(allowed, rows[i].allow) == NULL)
            fail_msg("%s lacks %s", allowed, rows[i].allow);
        if (rows[i].allow[0] != '\0') {
            assert_non_null(strstr(allowed, "/dev/char/1:3|rwm"));
            assert_non_null(strstr(allowed, "char-*|m"));
        }
        oci_resources_free(resources);
    }
}

static void unlimited_is_the_highest_number(void **state) {
    (void)state;
    static const char document[] = "{\"memory\":{\"limit\":-1,\"swap\":-1},\"cpu\":{\"quota\":-1},\"pids\":{"
                                   "\"limit\":-1},\"unified\":{\"cpu.max\":\"50000 100000\"}}";
    struct oci_resources *resources;
    assert_no_error(oci_resources_parse("resources", document, strlen(document), &resources));
    systemd_properties_owned struct systemd_properties properties = {0};
    assert_no_error(systemd_properties_from_resources(resources, NULL, false, &properties));
    assert_property(&properties, "MemoryMax", "t 18446744073709551615");
    assert_property(&properties, "MemorySwapMax", "t 18446744073709551615");
    assert_property(&properties, "TasksMax", "t 18446744073709551615");
    assert_property(&properties, "CPUQuotaPerSecUSec", "t 500000"); /* unified comes last */
    oci_resources_free(resources);
}

static void messages_survive_the_socket(void **state) {
    (void)state;
    struct systemd_request request = {
        .operation = (char *)SYSTEMD_START, .unit = (char *)"a.scope", .pid = 7};
    systemd_addresses(true, "/run/user/1000", "unix:path=/x", &request.addresses);
    systemd_property_add(&request.properties, "Wants", "as", "a.service");
    json_owned struct json_writer json = {0};
    schema_write(&systemd_request_schema, &request, &json);
    void *document;
    assert_no_error(schema_read(&systemd_request_schema, "request", text_string(&json.text), json.text.length,
                                &document));
    const struct systemd_request *read = document;
    assert_string_equal(read->unit, "a.scope");
    assert_int_equal(read->pid, 7);
    assert_int_equal(read->addresses.count, 3);
    assert_string_equal(read->addresses.items[0], "unix:path=/run/user/1000/systemd/private");
    assert_string_equal(read->addresses.items[1], "unix:path=/x");
    assert_int_equal(read->properties.items_count, 1);
    assert_property(&read->properties, "Wants", "as a.service");
    schema_free(&systemd_request_schema, document);
    string_list_free(&request.addresses);
    systemd_properties_clear(&request.properties);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_units),
        cmocka_unit_test(slices_nest_by_their_dashes),
        cmocka_unit_test(values_have_types),
        cmocka_unit_test(what_is_no_value_is_one_error),
        cmocka_unit_test(annotations_become_properties),
        cmocka_unit_test(a_bad_annotation_is_one_error),
        cmocka_unit_test(bitmaps_are_little_endian),
        cmocka_unit_test(resources_become_properties),
        cmocka_unit_test(device_rules_become_properties),
        cmocka_unit_test(unlimited_is_the_highest_number),
        cmocka_unit_test(messages_survive_the_socket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
