/* Hardening as a whole: what it changes in a config.json like the engines', and that `unconfined` changes
 * nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/memory.h"
#include "harden/harden.h"

struct fixture {
    struct oci_config *config;
    struct policy *policy;
    struct facts facts;
};

static const char engine_config[] =
    "{\"ociVersion\":\"1.0.2-dev\",\"process\":{\"user\":{\"uid\":0,\"gid\":0},\"args\":[\"/bin/"
    "sleep\",\"100\"],"
    "\"env\":[\"PATH=/usr/bin:/bin\",\"TERM=xterm\",\"GITHUB_TOKEN=notavalue\",\"HOME=/root\"],\"cwd\":\"/"
    "app\","
    "\"capabilities\":{\"bounding\":[\"CAP_CHOWN\",\"CAP_SYS_ADMIN\",\"CAP_NET_RAW\"],"
    "\"effective\":[\"CAP_CHOWN\",\"CAP_NET_RAW\"],\"permitted\":[\"CAP_CHOWN\",\"CAP_SYS_ADMIN\"]}},"
    "\"root\":{\"path\":\"rootfs\"},\"mounts\":["
    "{\"destination\":\"/proc\",\"type\":\"proc\",\"source\":\"proc\",\"options\":[\"nosuid\"]},"
    "{\"destination\":\"/sys\",\"type\":\"sysfs\",\"source\":\"sysfs\",\"options\":[\"nosuid\",\"rw\"]},"
    "{\"destination\":\"/data\",\"type\":\"bind\",\"source\":\"/srv/data\",\"options\":[\"rbind\",\"rw\"]}],"
    "\"linux\":{\"namespaces\":[{\"type\":\"network\"},{\"type\":\"mount\"},{\"type\":\"pid\"}],"
    "\"maskedPaths\":[\"/proc/kcore\"]}}";

static struct fixture make(const char *policy_name, const char *config) {
    struct fixture fixture = {0};
    assert_null(oci_config_parse("config.json", config, strlen(config), &fixture.config));
    assert_null(policy_select(policy_name, &fixture.policy));
    fixture.facts.root_fd = -1;
    fixture.facts.root_is_mount = true;
    fixture.facts.has_landlock = true;
    fixture.facts.container_home = "/root";
    fixture.facts.owner_home = "/home/owner";
    fixture.facts.mounts_count = fixture.config->mounts_count;
    fixture.facts.mounts = memory_zeroed((fixture.config->mounts_count + 1) * sizeof(struct mount_fact));
    for (size_t i = 0; i < fixture.config->mounts_count; i++) {
        struct mount_fact *fact = &fixture.facts.mounts[i];
        fact->source_fd = -1;
        fact->bind = strcmp(fixture.config->mounts[i].type, "bind") == 0;
        if (!fact->bind)
            continue;
        fact->real_path = fixture.config->mounts[i].source;
        fact->status.st_mode = S_IFDIR | 0755;
    }
    if (fixture.config->linux_config != NULL) {
        fixture.facts.namespaces_count = fixture.config->linux_config->namespaces_count;
        fixture.facts.namespace_is_host = memory_zeroed((fixture.facts.namespaces_count + 1) * sizeof(bool));
    }
    return fixture;
}

static void drop(struct fixture *fixture) {
    for (size_t i = 0; i < fixture->facts.mounts_count; i++) {
        string_list_free(&fixture->facts.mounts[i].control_sockets);
        string_list_free(&fixture->facts.mounts[i].credentials);
    }
    free(fixture->facts.mounts);
    free(fixture->facts.namespace_is_host);
    oci_config_free(fixture->config);
    policy_free(fixture->policy);
}

static char *written(const struct oci_config *config) {
    struct json_writer json = {0};
    schema_write(&oci_config_schema, config, &json);
    return text_take(&json.text);
}

static const struct change *find_change(const struct hardened *hardened, const char *subject) {
    for (size_t i = 0; i < hardened->changes_count; i++)
        if (hardened->changes[i].subject != NULL && strcmp(hardened->changes[i].subject, subject) == 0)
            return &hardened->changes[i];
    return NULL;
}

static const struct scratch_place *find_scratch(const struct hardened *hardened, const char *path) {
    for (size_t i = 0; i < hardened->scratch_count; i++)
        if (strcmp(hardened->scratch[i].path, path) == 0)
            return &hardened->scratch[i];
    return NULL;
}

static bool has_decoy(const struct hardened *hardened, const char *path) {
    for (size_t i = 0; i < hardened->decoys_count; i++)
        if (strcmp(hardened->decoys[i].path, path) == 0)
            return true;
    return false;
}

/* Invariant 6: --policy unconfined makes a plain OCI runtime. */
static void unconfined_changes_nothing(void **state) {
    (void)state;
    struct fixture fixture = make("unconfined", engine_config);
    fixture.facts.mounts[2].place_relation = PLACE_EQUALS;
    fixture.facts.mounts[2].host_place = "/etc";
    fixture.facts.namespace_is_host[0] = true;
    struct hardened *hardened = NULL;
    assert_null(harden(fixture.config, fixture.policy, &fixture.facts, &hardened));
    memory_owned char *before = written(fixture.config);
    memory_owned char *after = written(hardened->config);
    assert_string_equal(before, after);
    assert_false(hardened->confined);
    assert_false(hardened->wall);
    assert_int_equal(hardened->changes_count, 0);
    assert_int_equal(hardened->scratch_count, 0);
    assert_int_equal(hardened->decoys_count, 0);
    assert_null(hardened->denied);
    assert_null(hardened->observed);
    assert_null(hardened->access);
    for (size_t i = 0; i < 3; i++)
        assert_ptr_equal(hardened->mount_sources[i], &fixture.facts.mounts[i]);
    hardened_free(hardened);
    drop(&fixture);
}

/* Invariant 2: the same input gives the same result, and the input is not touched. */
static void hardening_is_a_function(void **state) {
    (void)state;
    struct fixture fixture = make("agent", engine_config);
    memory_owned char *before = written(fixture.config);
    struct hardened *first = NULL;
    struct hardened *second = NULL;
    assert_null(harden(fixture.config, fixture.policy, &fixture.facts, &first));
    assert_null(harden(fixture.config, fixture.policy, &fixture.facts, &second));
    memory_owned char *after = written(fixture.config);
    memory_owned char *one = written(first->config);
    memory_owned char *two = written(second->config);
    assert_string_equal(before, after);
    assert_string_equal(one, two);
    assert_string_not_equal(one, before);
    assert_int_equal(first->changes_count, second->changes_count);
    /* What is hardened stays as it is when it is hardened again: exec's stored policy meets a hardened
     * config. */
    struct fixture again = make("agent", one);
    struct hardened *third = NULL;
    assert_null(harden(again.config, again.policy, &again.facts, &third));
    memory_owned char *three = written(third->config);
    assert_string_equal(one, three);
    assert_int_equal(third->changes_count, 0);
    hardened_free(first);
    hardened_free(second);
    hardened_free(third);
    drop(&fixture);
    drop(&again);
}

static void agent_hardens_an_engines_config(void **state) {
    (void)state;
    struct fixture fixture = make("agent", engine_config);
    struct hardened *hardened = NULL;
    assert_null(harden(fixture.config, fixture.policy, &fixture.facts, &hardened));
    const struct oci_config *config = hardened->config;
    assert_true(hardened->confined);
    assert_true(hardened->wall);
    assert_non_null(hardened->denied);
    assert_non_null(hardened->observed);
    assert_true(config->root->readonly);
    assert_true(config->process->no_new_privileges);

    assert_int_equal(config->process->env.count, 4);
    assert_string_equal(config->process->env.items[2], "HOME=/root");
    assert_string_equal(config->process->env.items[3], "PINFOLD_DENIALS=" HARDEN_INSIDE_FILE);
    assert_null(config->process->env.items[4]);
    const struct change *token = find_change(hardened, "GITHUB_TOKEN");
    assert_non_null(token);
    assert_int_equal(token->kind, CHANGE_REMOVED);
    assert_string_equal(token->reason, "credential.env.removed");
    assert_string_equal(token->remedy, "credentials: {environment: [GITHUB_TOKEN]}");
    assert_null(strstr(token->message, "notavalue"));

    assert_int_equal(config->process->capabilities->bounding.count, 1);
    assert_int_equal(config->process->capabilities->effective.count, 1);
    assert_string_equal(config->process->capabilities->effective.items[0], "CAP_CHOWN");
    const struct change *dropped = find_change(hardened, "CAP_SYS_ADMIN CAP_NET_RAW");
    if (dropped == NULL)
        dropped = find_change(hardened, "CAP_NET_RAW CAP_SYS_ADMIN");
    assert_non_null(dropped);
    assert_string_equal(dropped->reason, "capability.dropped");

    assert_non_null(oci_config_namespace(config, "ipc"));
    assert_non_null(oci_config_namespace(config, "uts"));
    assert_non_null(oci_config_namespace(config, "cgroup"));
    assert_null(oci_config_namespace(config, "user"));
    assert_string_equal(find_change(hardened, "cgroup")->reason, "namespace.added");

    assert_true(string_list_contains(&config->mounts[1].options, "ro"));
    assert_false(string_list_contains(&config->mounts[1].options, "rw"));
    assert_true(string_list_contains(&config->linux_config->masked_paths, "/proc/keys"));
    assert_true(string_list_contains(&config->linux_config->readonly_paths, "/proc/sys"));
    assert_int_equal(config->linux_config->resources->pids->limit.value, 1024);
    assert_null(oci_config_check(config));
    hardened_free(hardened);
    drop(&fixture);
}

static void scratch_and_decoys(void **state) {
    (void)state;
    struct fixture fixture = make("agent", engine_config);
    struct hardened *hardened = NULL;
    assert_null(harden(fixture.config, fixture.policy, &fixture.facts, &hardened));
    assert_int_equal(hardened->scratch_count, 5);
    static const char *const places[] = {"/tmp", "/var/tmp", "/run", "/root", "/app"};
    for (size_t i = 0; i < 5; i++) {
        const struct scratch_place *place = find_scratch(hardened, places[i]);
        assert_non_null(place);
        assert_int_equal(place->kind, SCRATCH_OWN_LAYER);
        assert_true(place->create);
    }
    assert_int_equal(hardened->decoys_count, 4);
    assert_true(has_decoy(hardened, "/root/.ssh/id_ed25519"));
    assert_true(has_decoy(hardened, "/root/.aws/credentials"));
    hardened_free(hardened);

    /* The engine asked for a read-only root: the layer is not the container's to write. */
    fixture.config->root->readonly = true;
    assert_null(harden(fixture.config, fixture.policy, &fixture.facts, &hardened));
    assert_int_equal(find_scratch(hardened, "/tmp")->kind, SCRATCH_TMPFS);
    assert_null(find_change(hardened, "/"));
    hardened_free(hardened);
    fixture.config->root->readonly = false;

    fixture.facts.root_is_mount = false; /* a bare bundle */
    assert_null(harden(fixture.config, fixture.policy, &fixture.facts, &hardened));
    assert_int_equal(find_scratch(hardened, "/tmp")->kind, SCRATCH_TMPFS);
    hardened_free(hardened);
    fixture.facts.root_is_mount = true;

    /* Nothing covers what the engine mounted, and what lies in its mount is not the root's. */
    const struct {
        const char *destination;
        const char *home;
        const char *cwd;
        const char *absent[3];
        const char *present[2];
        const char *no_decoy;
        const char *decoy;
    } rows[] = {
        {"/tmp", "/root", "/", {"/tmp", "/", NULL}, {"/run"}, NULL, "/root/.ssh/id_rsa"},
        {"/tmp/deep", "/root", "/", {NULL}, {"/tmp", "/run"}, NULL, NULL},
        {"/home/node",
         "/home/node",
         "/home/node/app",
         {"/home/node", "/home/node/app"},
         {"/tmp"},
         "/home/node/.ssh/id_rsa",
         "/root/.ssh/id_rsa"},
        {"/home/node/app",
         "/home/node",
         "/home/node/app",
         {"/home/node/app"},
         {"/home/node"},
         NULL,
         "/home/node/.ssh/id_rsa"},
        {"/data", "/", "/usr/bin", {"/", "/usr/bin"}, {"/tmp"}, NULL, NULL},
        {"/data",
         "/usr/share/app",
         "/etc/app",
         {"/usr/share/app", "/etc/app"},
         {"/tmp"},
         "/usr/share/app/.ssh/id_rsa",
         NULL},
        {"/data",
         "/var/www",
         "/usr/src/app",
         {"/var", "/usr"},
         {"/var/www", "/usr/src/app"},
         NULL,
         "/var/www/.aws/credentials"},
        {"/data", "/home/a", "/home/a/b", {"/home/a/b", "/home"}, {"/home/a"}, NULL, NULL},
        {"/data", "/home/a/b", "/home/a", {"/home/a/b"}, {"/home/a"}, NULL, NULL},
        {"/data", "/run/sshd", "/home", {"/run/sshd", "/home"}, {"/run"}, NULL, NULL},
        {"/root/.ssh", "/root", "/", {NULL}, {"/root"}, "/root/.ssh/id_rsa", "/root/.aws/credentials"},
        {"/data", NULL, "/w", {NULL}, {"/w"}, NULL, "/root/.ssh/id_rsa"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        free(fixture.config->mounts[2].destination);
        fixture.config->mounts[2].destination = memory_copy_string(rows[i].destination);
        free(fixture.config->process->cwd);
        fixture.config->process->cwd = memory_copy_string(rows[i].cwd);
        fixture.facts.container_home = (char *)rows[i].home;
        assert_null(harden(fixture.config, fixture.policy, &fixture.facts, &hardened));
        for (size_t a = 0; a < 3 && rows[i].absent[a] != NULL; a++)
            if (find_scratch(hardened, rows[i].absent[a]) != NULL)
                fail_msg("row %zu: %s is scratch", i, rows[i].absent[a]);
        for (size_t p = 0; p < 2 && rows[i].present[p] != NULL; p++)
            if (find_scratch(hardened, rows[i].present[p]) == NULL)
                fail_msg("row %zu: %s is not scratch", i, rows[i].present[p]);
        if (rows[i].decoy != NULL && !has_decoy(hardened, rows[i].decoy))
            fail_msg("row %zu: no decoy %s", i, rows[i].decoy);
        if (rows[i].no_decoy != NULL && has_decoy(hardened, rows[i].no_decoy))
            fail_msg("row %zu: decoy %s", i, rows[i].no_decoy);
        hardened_free(hardened);
    }
    drop(&fixture);
}

static struct error *refusal(struct fixture *fixture) {
    struct hardened *hardened = (struct hardened *)1;
    struct error *error = harden(fixture->config, fixture->policy, &fixture->facts, &hardened);
    assert_non_null(error);
    assert_null(hardened);
    assert_int_equal(error->kind, ERROR_REFUSED);
    /* podman and dockerd turn these words into exit codes of the command. */
    assert_null(strcasestr(error->message, "permission denied"));
    assert_null(strcasestr(error->message, "no such file or directory"));
    return error;
}

static void host_namespaces_are_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct fixture fixture = make("agent", engine_config);
        struct oci_namespace *namespace = &fixture.config->linux_config->namespaces[i];
        namespace->path = memory_copy_string("/proc/1/ns/some");
        struct hardened *hardened = NULL;
        assert_null(
            harden(fixture.config, fixture.policy, &fixture.facts, &hardened)); /* another container's */
        hardened_free(hardened);
        fixture.facts.namespace_is_host[i] = true;
        struct error *error = refusal(&fixture);
        assert_true(text_starts_with(error->message, "namespace.host.refused: "));
        assert_non_null(strstr(error->message, namespace->type));
        error_free(error);
        drop(&fixture);
    }
}

static void an_absent_network_is_refused_unless_open(void **state) {
    (void)state;
    struct fixture fixture = make("agent", engine_config);
    memcpy(fixture.config->linux_config->namespaces[0].type, "cgroup", 7);
    struct error *error = refusal(&fixture);
    assert_true(text_starts_with(error->message, "namespace.host.refused: "));
    assert_non_null(strstr(error->message, "--network none"));
    error_free(error);
    fixture.policy->network_mode = POLICY_NETWORK_NONE;
    error = refusal(&fixture);
    error_free(error);
    fixture.policy->network_mode = POLICY_NETWORK_OPEN;
    struct hardened *hardened = NULL;
    assert_null(harden(fixture.config, fixture.policy, &fixture.facts, &hardened));
    assert_null(oci_config_namespace(hardened->config, "network"));
    assert_false(hardened->wall);
    hardened_free(hardened);
    drop(&fixture);
}

static void limits_are_cut(void **state) {
    (void)state;
    static const struct {
        bool set;
        int64_t value;
        int64_t expected;
    } rows[] = {{false, 0, 1024},   {true, 0, 1024},    {true, -1, 1024},
                {true, 2048, 1024}, {true, 1024, 1024}, {true, 12, 12}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fixture fixture = make("agent", engine_config);
        if (rows[i].set) {
            fixture.config->linux_config->resources = memory_zeroed(sizeof(struct oci_resources));
            fixture.config->linux_config->resources->pids = memory_zeroed(sizeof(struct oci_pids));
            fixture.config->linux_config->resources->pids->limit =
                (struct optional_int64){.set = true, .value = rows[i].value};
        }
        struct hardened *hardened = NULL;
        assert_null(harden(fixture.config, fixture.policy, &fixture.facts, &hardened));
        assert_int_equal(hardened->config->linux_config->resources->pids->limit.value, rows[i].expected);
        hardened_free(hardened);
        drop(&fixture);
    }
}

/* podman --privileged: every capability, hundreds of devices, everything writable. It stays hardened. */
static void privileged_stays_hardened(void **state) {
    (void)state;
    static const char privileged[] =
        "{\"ociVersion\":\"1.0.2\",\"process\":{\"user\":{\"uid\":0,\"gid\":0},\"args\":[\"sh\"],\"cwd\":\"/"
        "\","
        "\"capabilities\":{\"bounding\":[\"CAP_SYS_ADMIN\",\"CAP_KILL\",\"CAP_NET_ADMIN\"]}},\"root\":{"
        "\"path\":\"r\"},"
        "\"mounts\":[{\"destination\":\"/sys\",\"type\":\"sysfs\",\"source\":\"sysfs\",\"options\":[\"rw\"]},"
        "{\"destination\":\"/sys/fs/"
        "cgroup\",\"type\":\"cgroup\",\"source\":\"cgroup\",\"options\":[\"rw\"]}],"
        "\"linux\":{\"namespaces\":[{\"type\":\"network\"}],\"devices\":["
        "{\"type\":\"c\",\"path\":\"/dev/null\",\"major\":1,\"minor\":3},"
        "{\"type\":\"b\",\"path\":\"/dev/sda\",\"major\":8,\"minor\":0},"
        "{\"type\":\"c\",\"path\":\"/dev/kvm\",\"major\":10,\"minor\":232}],"
        "\"resources\":{\"devices\":[{\"allow\":true,\"access\":\"rwm\"},"
        "{\"allow\":true,\"type\":\"c\",\"major\":1,\"minor\":3,\"access\":\"rwm\"},"
        "{\"allow\":true,\"type\":\"c\",\"access\":\"m\"}]}}}";
    struct fixture fixture = make("agent", privileged);
    struct hardened *hardened = NULL;
    assert_null(harden(fixture.config, fixture.policy, &fixture.facts, &hardened));
    const struct oci_linux *linux_config = hardened->config->linux_config;
    assert_int_equal(linux_config->devices_count, 1);
    assert_string_equal(linux_config->devices[0].path, "/dev/null");
    const struct change *change = find_change(hardened, "/dev/sda /dev/kvm");
    assert_non_null(change);
    assert_string_equal(change->reason, "device.removed");
    const struct oci_resources *resources = linux_config->resources;
    assert_int_equal(resources->devices_count, 3);
    assert_false(resources->devices[0].allow);
    assert_false(resources->devices[0].major.set);
    assert_int_equal(resources->devices[1].major.value, 1);
    assert_string_equal(resources->devices[2].access, "m");
    for (size_t i = 0; i < 2; i++)
        assert_string_equal(hardened->config->mounts[i].options.items[0], "ro");
    assert_int_equal(hardened->config->process->capabilities->bounding.count, 1);
    assert_null(oci_config_check(hardened->config));
    hardened_free(hardened);
    drop(&fixture);
}

/* A policy may list NET_RAW; a wall takes it again. */
static void no_raw_sockets_behind_a_wall(void **state) {
    (void)state;
    struct fixture fixture = make("agent", engine_config);
    string_list_append(&fixture.policy->capabilities.values, "CAP_NET_RAW");
    struct hardened *hardened = NULL;
    assert_null(harden(fixture.config, fixture.policy, &fixture.facts, &hardened));
    assert_false(string_list_contains(&hardened->config->process->capabilities->bounding, "CAP_NET_RAW"));
    hardened_free(hardened);
    fixture.policy->network_mode = POLICY_NETWORK_OPEN;
    assert_null(harden(fixture.config, fixture.policy, &fixture.facts, &hardened));
    assert_true(string_list_contains(&hardened->config->process->capabilities->bounding, "CAP_NET_RAW"));
    hardened_free(hardened);
    drop(&fixture);
}

static void exec_is_hardened_the_same(void **state) {
    (void)state;
    struct policy *policy = NULL;
    assert_null(policy_select("agent", &policy));
    static const char document[] =
        "{\"args\":[\"id\"],\"cwd\":\"/"
        "\",\"user\":{\"uid\":0,\"gid\":0},\"env\":[\"A=b\",\"NPM_TOKEN=x\",\"NPM_TOKEN=y\"],"
        "\"capabilities\":{\"bounding\":[\"CAP_SYS_PTRACE\",\"CAP_CHOWN\"]}}";
    struct oci_process *process = NULL;
    assert_null(oci_process_parse("process.json", document, strlen(document), &process));
    struct hardened *changes = memory_zeroed(sizeof *changes);
    harden_process(process, policy, changes);
    assert_int_equal(process->env.count, 1);
    assert_string_equal(process->env.items[0], "A=b");
    assert_int_equal(process->capabilities->bounding.count, 1);
    assert_true(process->no_new_privileges);
    size_t tokens = 0;
    for (size_t i = 0; i < changes->changes_count; i++)
        tokens += strcmp(changes->changes[i].subject, "NPM_TOKEN") == 0;
    assert_int_equal(tokens, 1);
    hardened_free(changes);
    oci_process_free(process);
    policy_free(policy);
}

static void minimal_config_has_no_null_to_fall_over(void **state) {
    (void)state;
    struct oci_config config = {.oci_version = "1.0.2"};
    struct oci_namespace network = {.type = "network"};
    struct oci_linux linux_config = {.namespaces = &network, .namespaces_count = 1};
    bool is_host[1] = {false};
    config.linux_config = &linux_config;
    struct facts facts = {.root_fd = -1, .namespaces_count = 1, .namespace_is_host = is_host};
    struct policy *policy = NULL;
    assert_null(policy_select("agent", &policy));
    struct hardened *hardened = NULL;
    assert_null(harden(&config, policy, &facts, &hardened));
    assert_true(hardened->wall);
    hardened_free(hardened);
    policy_free(policy);
}

/* podman hands an image's annotations on; Conflicts= would stop any service of the machine. */
static void annotations_set_no_unit_properties(void **state) {
    (void)state;
    static const char config[] =
        "{\"ociVersion\":\"1.0.2\",\"process\":{\"user\":{\"uid\":0,\"gid\":0},\"args\":[\"a\"],\"cwd\":\"/"
        "\"},"
        "\"root\":{\"path\":\"rootfs\"},\"annotations\":{\"a\":\"b\",\"org.systemd.property.Conflicts\":"
        "\"['x.service']\",\"org.systemd.property.KillSignal\":\"15\",\"org.systemd.property.MemoryMax\":"
        "\"uint64 "
        "1\"},\"linux\":{\"namespaces\":[{\"type\":\"network\"},{\"type\":\"mount\"},{\"type\":\"pid\"}]}}";
    for (int confined = 0; confined < 2; confined++) {
        struct fixture fixture = make(confined ? "agent" : "unconfined", config);
        struct hardened *hardened;
        assert_null(harden(fixture.config, fixture.policy, &fixture.facts, &hardened));
        const struct string_map *left = &hardened->config->annotations;
        assert_int_equal(left->count, confined ? 2 : 4);
        assert_string_equal(string_map_get(left, "a"), "b");
        assert_string_equal(string_map_get(left, "org.systemd.property.KillSignal"), "15");
        size_t recorded = 0;
        for (size_t i = 0; i < hardened->changes_count; i++)
            recorded += hardened->changes[i].reason != NULL &&
                        strcmp(hardened->changes[i].reason, "policy.annotation.ignored") == 0;
        assert_int_equal(recorded, confined ? 2 : 0);
        hardened_free(hardened);
        drop(&fixture);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unconfined_changes_nothing),
        cmocka_unit_test(hardening_is_a_function),
        cmocka_unit_test(agent_hardens_an_engines_config),
        cmocka_unit_test(scratch_and_decoys),
        cmocka_unit_test(host_namespaces_are_refused),
        cmocka_unit_test(an_absent_network_is_refused_unless_open),
        cmocka_unit_test(limits_are_cut),
        cmocka_unit_test(privileged_stays_hardened),
        cmocka_unit_test(no_raw_sockets_behind_a_wall),
        cmocka_unit_test(exec_is_hardened_the_same),
        cmocka_unit_test(annotations_set_no_unit_properties),
        cmocka_unit_test(minimal_config_has_no_null_to_fall_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
