/* The documents that `spec` and `features` print. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "libocispec/config.h"
#include "libocispec/features_document.h"
#include "libocispec/spec_document.h"

static struct oci_config *spec(bool rootless) {
    json_owned struct json_writer json = {0};
    oci_spec_document(rootless, 1000, 1001, true, &json);
    struct oci_config *config = NULL;
    struct error *error = oci_config_parse("config.json", json.text.data, json.text.length, &config);
    if (error != NULL)
        fail_msg("%s", error->message);
    return config;
}

static const struct oci_mount *mount_at(const struct oci_config *config, const char *destination) {
    for (size_t i = 0; i < config->mounts_count; i++)
        if (strcmp(config->mounts[i].destination, destination) == 0)
            return &config->mounts[i];
    return NULL;
}

static void spec_default(void **state) {
    (void)state;
    struct oci_config *config = spec(false);
    const struct oci_capabilities *capabilities = config->process->capabilities;
    assert_string_equal(config->oci_version, "1.2.0");
    assert_true(config->process->terminal);
    assert_int_equal(config->process->args.count, 1);
    assert_string_equal(config->process->args.items[0], "sh");
    assert_string_equal(config->process->cwd, "/");
    assert_true(config->process->no_new_privileges);
    assert_int_equal(capabilities->bounding.count, 3);
    assert_string_equal(capabilities->bounding.items[0], "CAP_AUDIT_WRITE");
    assert_string_equal(capabilities->bounding.items[1], "CAP_KILL");
    assert_string_equal(capabilities->bounding.items[2], "CAP_NET_BIND_SERVICE");
    assert_int_equal(capabilities->effective.count, 3);
    assert_int_equal(capabilities->permitted.count, 3);
    assert_int_equal(capabilities->inheritable.count, 0); /* CVE-2022-29162 */
    assert_int_equal(capabilities->ambient.count, 0);
    assert_int_equal(config->process->rlimits_count, 1);
    assert_string_equal(config->process->rlimits[0].type, "RLIMIT_NOFILE");
    assert_int_equal(config->process->rlimits[0].hard, 1024);
    assert_string_equal(config->root->path, "rootfs");
    assert_true(config->root->readonly);
    assert_string_equal(config->hostname, "pinfold");
    assert_int_equal(config->mounts_count, 7);
    assert_true(string_list_contains(&mount_at(config, "/dev/pts")->options, "gid=5"));
    assert_string_equal(mount_at(config, "/sys")->type, "sysfs");
    assert_true(string_list_contains(&mount_at(config, "/sys/fs/cgroup")->options, "ro"));
    static const char *const types[] = {"pid", "network", "ipc", "uts", "mount", "cgroup"};
    assert_int_equal(config->linux_config->namespaces_count, 6);
    for (size_t i = 0; i < 6; i++)
        assert_non_null(oci_config_namespace(config, types[i]));
    assert_null(oci_config_namespace(config, "user"));
    assert_int_equal(config->linux_config->resources->devices_count, 1);
    assert_false(config->linux_config->resources->devices[0].allow);
    assert_true(string_list_contains(&config->linux_config->masked_paths, "/proc/kcore"));
    assert_true(string_list_contains(&config->linux_config->masked_paths, "/proc/keys"));
    assert_true(string_list_contains(&config->linux_config->masked_paths, "/sys/firmware"));
    assert_true(string_list_contains(&config->linux_config->readonly_paths, "/proc/sys"));
    assert_true(string_list_contains(&config->linux_config->readonly_paths, "/proc/sysrq-trigger"));
    oci_config_free(config);
}

static void spec_rootless(void **state) {
    (void)state;
    struct oci_config *config = spec(true);
    const struct oci_linux *part = config->linux_config;
    assert_non_null(oci_config_namespace(config, "user"));
    assert_null(oci_config_namespace(config, "network"));
    assert_non_null(oci_config_namespace(config, "pid"));
    assert_int_equal(part->uid_mappings_count, 1);
    assert_int_equal(part->uid_mappings[0].host_id, 1000);
    assert_int_equal(part->uid_mappings[0].container_id, 0);
    assert_int_equal(part->uid_mappings[0].size, 1);
    assert_int_equal(part->gid_mappings[0].host_id, 1001);
    assert_null(part->resources);
    assert_false(string_list_contains(&mount_at(config, "/dev/pts")->options, "gid=5"));
    const struct oci_mount *sys = mount_at(config, "/sys");
    assert_string_equal(sys->source, "/sys");
    assert_true(string_list_contains(&sys->options, "rbind"));
    assert_true(string_list_contains(&sys->options, "ro"));
    assert_null(mount_at(config, "/sys/fs/cgroup"));
    oci_config_free(config);
}

static void indentation(void **state) {
    (void)state;
    text_owned struct text text = {0};
    oci_document_indent("{\"a\":[],\"b\":{},\"c\":[1,{\"d\":\"x,:{\\\"}\\\\\"}]}", &text);
    assert_string_equal(text.data, "{\n"
                                   "    \"a\": [],\n"
                                   "    \"b\": {},\n"
                                   "    \"c\": [\n"
                                   "        1,\n"
                                   "        {\n"
                                   "            \"d\": \"x,:{\\\"}\\\\\"\n"
                                   "        }\n"
                                   "    ]\n"
                                   "}\n");
    /* The same document, laid out otherwise. */
    json_owned struct json_writer compact = {0};
    oci_spec_document(false, 0, 0, true, &compact);
    text_owned struct text indented = {0};
    oci_document_indent(compact.text.data, &indented);
    struct oci_config *first = NULL;
    struct oci_config *second = NULL;
    assert_null(oci_config_parse("a", compact.text.data, compact.text.length, &first));
    assert_null(oci_config_parse("b", indented.data, indented.length, &second));
    json_owned struct json_writer first_text = {0};
    json_owned struct json_writer second_text = {0};
    schema_write(&oci_config_schema, first, &first_text);
    schema_write(&oci_config_schema, second, &second_text);
    assert_string_equal(first_text.text.data, second_text.text.data);
    oci_config_free(first);
    oci_config_free(second);
}

static void features(void **state) {
    (void)state;
    static const char *const options[] = {"ro", "rro", NULL};
    static const char *const few[] = {"CAP_KILL", NULL};
    static const char *const architectures[] = {"SCMP_ARCH_X86_64", NULL};
    static const char *const flags[] = {"SECCOMP_FILTER_FLAG_LOG", NULL};
    static const char *const unsafe[] = {"dev.pinfold.", NULL};
    const struct oci_features all = {
        .mount_options = options,
        .capabilities = few,
        .cgroup_v1 = true,
        .cgroup_v2 = true,
        .seccomp = true,
        .seccomp_architectures = architectures,
        .seccomp_flags = flags,
        .id_mapped_mounts = true,
        .unsafe_annotations = unsafe,
    };
    json_owned struct json_writer json = {0};
    oci_features_document(&all, &json);
    assert_string_equal(
        json.text.data,
        "{\"ociVersionMin\":\"1.0.0\",\"ociVersionMax\":\"1.2.0\","
        "\"hooks\":[\"prestart\",\"createRuntime\",\"createContainer\",\"startContainer\",\"poststart\","
        "\"poststop\"],"
        "\"mountOptions\":[\"ro\",\"rro\"],\"linux\":{"
        "\"namespaces\":[\"pid\",\"network\",\"mount\",\"ipc\",\"uts\",\"user\",\"cgroup\",\"time\"],"
        "\"capabilities\":[\"CAP_KILL\"],"
        "\"cgroup\":{\"v1\":true,\"v2\":true,\"systemd\":false,\"systemdUser\":false,\"rdma\":true},"
        "\"seccomp\":{\"enabled\":true,\"actions\":[\"SCMP_ACT_KILL\",\"SCMP_ACT_KILL_PROCESS\","
        "\"SCMP_ACT_KILL_THREAD\",\"SCMP_ACT_TRAP\",\"SCMP_ACT_ERRNO\",\"SCMP_ACT_TRACE\",\"SCMP_ACT_ALLOW\","
        "\"SCMP_ACT_LOG\",\"SCMP_ACT_NOTIFY\"],\"operators\":[\"SCMP_CMP_NE\",\"SCMP_CMP_LT\",\"SCMP_CMP_"
        "LE\","
        "\"SCMP_CMP_EQ\",\"SCMP_CMP_GE\",\"SCMP_CMP_GT\",\"SCMP_CMP_MASKED_EQ\"],\"archs\":[\"SCMP_ARCH_X86_"
        "64\"],"
        "\"knownFlags\":[\"SECCOMP_FILTER_FLAG_TSYNC\",\"SECCOMP_FILTER_FLAG_LOG\","
        "\"SECCOMP_FILTER_FLAG_SPEC_ALLOW\",\"SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV\"],"
        "\"supportedFlags\":[\"SECCOMP_FILTER_FLAG_LOG\"]},"
        "\"apparmor\":{\"enabled\":true},\"selinux\":{\"enabled\":true},\"intelRdt\":{\"enabled\":true,"
        "\"schemata\":true},"
        "\"mountExtensions\":{\"idmap\":{\"enabled\":true}},\"netDevices\":{\"enabled\":true}},"
        "\"annotations\":{\"org.opencontainers.runc.checkpoint.enabled\":\"false\"},"
        "\"potentiallyUnsafeConfigAnnotations\":[\"dev.pinfold.\"]}");

    json_owned struct json_writer bare = {0};
    oci_features_document(&(struct oci_features){0}, &bare);
    assert_non_null(strstr(bare.text.data, "\"seccomp\":{\"enabled\":false}"));
    assert_non_null(strstr(bare.text.data, "\"CAP_CHECKPOINT_RESTORE\"]"));
    assert_null(strstr(bare.text.data, "mountOptions"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spec_default),
        cmocka_unit_test(spec_rootless),
        cmocka_unit_test(indentation),
        cmocka_unit_test(features),
    };
    return cmocka_run_group_tests_name("ocispec_documents", tests, NULL, NULL);
}
