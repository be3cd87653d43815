/* Mounts: removed, refused, covered or kept, by what the facts say of their sources. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "harden/harden.h"

/* One mount in a config of its own, and what harden() made of it. */
struct trial {
    struct oci_mount mount;
    struct oci_config config;
    struct oci_namespace namespaces[6];
    struct oci_linux linux_config;
    bool is_host[6];
    struct mount_fact fact;
    struct facts facts;
    struct policy *policy;
    struct hardened *hardened;
    struct error *error;
};

static struct trial *start(const char *source, const char *destination, const char *option) {
    struct trial *trial = memory_zeroed(sizeof *trial);
    static char *const types[] = {"network", "pid", "ipc", "uts", "mount", "cgroup"};
    for (size_t i = 0; i < 6; i++)
        trial->namespaces[i].type = types[i];
    trial->linux_config = (struct oci_linux){.namespaces = trial->namespaces, .namespaces_count = 6};
    trial->mount.destination = memory_copy_string(destination);
    trial->mount.source = memory_copy_string(source);
    trial->mount.type = memory_copy_string("bind");
    string_list_append(&trial->mount.options, "rbind");
    if (option != NULL)
        string_list_append(&trial->mount.options, option);
    trial->config = (struct oci_config){.oci_version = "1.0.2",
                                        .mounts = &trial->mount,
                                        .mounts_count = 1,
                                        .linux_config = &trial->linux_config};
    trial->fact = (struct mount_fact){.source_fd = -1, .bind = true, .real_path = trial->mount.source};
    trial->fact.status.st_mode = S_IFDIR | 0755;
    trial->facts = (struct facts){.root_fd = -1,
                                  .has_landlock = true,
                                  .mounts = &trial->fact,
                                  .mounts_count = 1,
                                  .namespaces_count = 6,
                                  .namespace_is_host = trial->is_host,
                                  .owner_home = "/home/owner"};
    assert_null(policy_select("agent", &trial->policy));
    return trial;
}

static void run(struct trial *trial) {
    hardened_free(trial->hardened);
    error_free(trial->error);
    trial->hardened = NULL;
    trial->error = harden(&trial->config, trial->policy, &trial->facts, &trial->hardened);
}

static void end(struct trial *trial) {
    hardened_free(trial->hardened);
    error_free(trial->error);
    string_list_free(&trial->fact.control_sockets);
    string_list_free(&trial->fact.credentials);
    free(trial->mount.destination);
    free(trial->mount.source);
    free(trial->mount.type);
    string_list_free(&trial->mount.options);
    policy_free(trial->policy);
    free(trial);
}

static const struct change *change_for(const struct hardened *hardened, const char *reason) {
    for (size_t i = 0; i < hardened->changes_count; i++)
        if (hardened->changes[i].reason != NULL && strcmp(hardened->changes[i].reason, reason) == 0)
            return &hardened->changes[i];
    return NULL;
}

static void expect_refused(struct trial *trial, const char *reason, const char *part) {
    run(trial);
    assert_non_null(trial->error);
    assert_null(trial->hardened);
    assert_int_equal(trial->error->kind, ERROR_REFUSED);
    memory_owned char *head = text_formatted("%s: ", reason);
    if (!text_starts_with(trial->error->message, head))
        fail_msg("%s", trial->error->message);
    assert_non_null(strstr(trial->error->message, part));
    assert_non_null(strstr(trial->error->message, trial->mount.destination));
    assert_non_null(strstr(trial->error->message, "built-in agent"));          /* whose line it was */
    assert_non_null(strstr(trial->error->message, "credentials: {mounts: [")); /* and what would allow it */
    assert_null(strchr(trial->error->message, '\n'));
}

static void expect_kept(struct trial *trial) {
    run(trial);
    if (trial->error != NULL)
        fail_msg("%s", trial->error->message);
    assert_int_equal(trial->hardened->config->mounts_count, 1);
    assert_ptr_equal(trial->hardened->mount_sources[0], &trial->fact);
}

static void expect_removed(struct trial *trial, const char *reason) {
    run(trial);
    assert_null(trial->error);
    assert_int_equal(trial->hardened->config->mounts_count, 0);
    const struct change *change = change_for(trial->hardened, reason);
    assert_non_null(change);
    assert_int_equal(change->kind, CHANGE_REMOVED);
    assert_string_equal(change->subject, trial->mount.destination);
}

static void a_project_is_kept(void **state) {
    (void)state;
    struct trial *trial = start("/home/owner/project", "/app", "rw");
    expect_kept(trial);
    assert_true(string_list_contains(&trial->hardened->config->mounts[0].options, "rw"));
    end(trial);
}

static void host_places_are_refused(void **state) {
    (void)state;
    struct trial *trial = start("/etc", "/host", NULL);
    trial->fact.host_place = "/etc";
    trial->fact.place_relation = PLACE_EQUALS;
    expect_refused(trial, "mount.host_path.refused", "the host's /etc");
    trial->fact.place_relation = PLACE_CONTAINS;
    expect_refused(trial, "mount.host_path.refused", "holds /etc");
    trial->fact.place_relation = PLACE_INSIDE;
    trial->fact.host_place = "/var/lib/docker";
    expect_refused(trial, "mount.host_path.refused", "a part of the host's /var/lib/docker");
    trial->fact.engine_made = true;
    expect_kept(trial);
    trial->fact.engine_made = false;
    trial->fact.engine_volume = true;
    expect_kept(trial);
    /* A volume's form does not save the place itself. */
    trial->fact.place_relation = PLACE_CONTAINS;
    expect_refused(trial, "mount.host_path.refused", "/var/lib/docker");
    end(trial);
}

static void host_places_are_granted_by_their_exact_path(void **state) {
    (void)state;
    struct trial *trial = start("/home/owner/.config", "/config", NULL);
    trial->fact.host_place = "~/.config/pinfold";
    trial->fact.place_relation = PLACE_CONTAINS;
    string_list_append(&trial->policy->credential_mounts.values, "/config");
    string_list_append(&trial->policy->credential_mounts.values, "/home/owner/.config/other");
    expect_refused(trial, "mount.host_path.refused", "pinfold");
    string_list_append(&trial->policy->credential_mounts.values, "~/.config/");
    expect_kept(trial);
    end(trial);
}

static void sockets_are_refused(void **state) {
    (void)state;
    struct trial *trial = start("/run/docker.sock", "/var/run/docker.sock", "ro");
    trial->fact.status.st_mode = S_IFSOCK | 0660;
    expect_refused(trial, "mount.socket.refused", "/run/docker.sock");
    trial->policy->inherit_user_credentials = true; /* says nothing about sockets */
    expect_refused(trial, "mount.socket.refused", "/run/docker.sock");
    trial->fact.engine_made = true; /* podman's --sdnotify */
    expect_kept(trial);
    trial->fact.engine_made = false;
    string_list_append(&trial->policy->credential_mounts.values, "/run/docker.sock");
    expect_kept(trial);
    end(trial);
}

static void credentials_are_refused(void **state) {
    (void)state;
    struct trial *trial = start("/home/owner/.ssh", "/root/.ssh", "ro");
    trial->fact.credential = ".ssh";
    expect_refused(trial, "mount.credential.refused", ".ssh");
    string_list_append(&trial->policy->credential_mounts.values, "~/.ssh");
    expect_kept(trial);
    end(trial);
    trial = start("/home/owner/.ssh", "/root/.ssh", "ro");
    trial->fact.credential = ".ssh";
    trial->policy->inherit_user_credentials = true;
    expect_kept(trial);
    end(trial);
}

static void automatic_credentials_are_removed(void **state) {
    (void)state;
    const char *token = "/var/run/secrets/kubernetes.io/serviceaccount";
    struct trial *trial =
        start("/var/lib/kubelet/pods/u/volumes/kubernetes.io~projected/kube-api-access-x", token, "ro");
    trial->fact.place_relation = PLACE_INSIDE;
    trial->fact.host_place = "/var/lib/kubelet";
    trial->fact.engine_volume = true;
    expect_removed(trial, "credential.mount.removed");
    assert_string_equal(change_for(trial->hardened, "credential.mount.removed")->remedy,
                        "credentials: {mounts: [/var/run/secrets/kubernetes.io/serviceaccount]}");
    string_list_append(&trial->policy->credential_mounts.values, token);
    expect_kept(trial);
    end(trial);

    trial = start("/x/vfs-containers/id/userdata/run/secrets", "/run/secrets", NULL);
    trial->fact.engine_made = true;
    expect_removed(trial, "credential.mount.removed");
    trial->fact.engine_made = false; /* somebody's own file at that place */
    expect_refused(trial, "mount.credential.refused", "a secret");
    end(trial);

    trial = start("/var/lib/kubelet/pods/u/volumes/kubernetes.io~secret/db", "/etc/db", "ro");
    trial->fact.engine_volume = true;
    expect_refused(trial, "mount.credential.refused", "a secret");
    end(trial);
}

static void what_lies_inside_is_covered(void **state) {
    (void)state;
    struct trial *trial = start("/home/owner/project", "//app/", NULL);
    string_list_append(&trial->fact.control_sockets, "run/agent.sock");
    string_list_append(&trial->fact.credentials, ".aws/");
    string_list_append(&trial->fact.credentials, ".netrc");
    run(trial);
    assert_null(trial->error);
    const struct oci_config *config = trial->hardened->config;
    assert_int_equal(config->mounts_count, 4);
    static const struct {
        const char *destination;
        const char *type;
        const char *source;
    } covers[] = {{"/app/run/agent.sock", "bind", "/dev/null"},
                  {"/app/.aws", "tmpfs", "tmpfs"},
                  {"/app/.netrc", "bind", "/dev/null"}};
    for (size_t i = 0; i < 3; i++) {
        const struct oci_mount *mount = &config->mounts[i + 1];
        assert_string_equal(mount->destination, covers[i].destination);
        assert_string_equal(mount->type, covers[i].type);
        assert_string_equal(mount->source, covers[i].source);
        assert_true(string_list_contains(&mount->options, "ro"));
        assert_null(trial->hardened->mount_sources[i + 1]);
    }
    assert_string_equal(change_for(trial->hardened, "mount.socket.refused")->subject, "/app/run/agent.sock");
    assert_string_equal(change_for(trial->hardened, "credential.mount.removed")->subject, "/app/.aws");

    string_list_append(&trial->policy->credential_mounts.values, "/home/owner/project/.aws");
    run(trial);
    assert_int_equal(trial->hardened->config->mounts_count, 3);
    trial->policy->inherit_user_credentials = true;
    run(trial);
    assert_int_equal(trial->hardened->config->mounts_count, 2); /* the socket's cover stays */
    trial->policy->inherit_user_credentials = false;
    string_list_append(&trial->policy->credential_mounts.values, "/home/owner/project");
    run(trial);
    assert_int_equal(trial->hardened->config->mounts_count, 1);
    end(trial);
}

static void devices_are_removed(void **state) {
    (void)state;
    struct trial *trial = start("/dev/kvm", "/dev/kvm", NULL);
    trial->fact.status.st_mode = S_IFCHR | 0666;
    trial->fact.device_major = 10;
    trial->fact.device_minor = 232;
    trial->fact.place_relation = PLACE_INSIDE;
    trial->fact.host_place = "/dev";
    expect_removed(trial, "device.removed");
    string_list_append(&trial->policy->credential_mounts.values, "/dev/kvm");
    expect_kept(trial);
    end(trial);

    trial = start("/dev/null", "/dev/null", NULL); /* rootless engines bind the standard ones */
    trial->fact.status.st_mode = S_IFCHR | 0666;
    trial->fact.device_major = 1;
    trial->fact.device_minor = 3;
    trial->fact.place_relation = PLACE_INSIDE;
    trial->fact.host_place = "/dev";
    expect_kept(trial);
    trial->fact.status.st_mode = S_IFBLK | 0666; /* block 1:3 is a RAM disk */
    expect_removed(trial, "device.removed");
    end(trial);

    trial = start("/dev/dri", "/dev/dri", NULL);
    trial->fact.place_relation = PLACE_INSIDE;
    trial->fact.host_place = "/dev";
    expect_removed(trial, "device.removed");
    end(trial);

    trial = start("/var/tmp/node", "/data/disk", NULL); /* a node outside /dev */
    trial->fact.status.st_mode = S_IFBLK | 0600;
    trial->fact.device_major = 8;
    trial->fact.device_minor = 0;
    expect_removed(trial, "device.removed");
    end(trial);
}

/* Engines bind the host's /proc, /dev/shm and /dev/mqueue for --pid and --ipc host; /sys in a user namespace.
 */
static void system_mounts_are_the_containers_own(void **state) {
    (void)state;
    static const struct {
        const char *path;
        const char *type;
    } rows[] = {{"/proc", "proc"}, {"/dev/shm", "tmpfs"}, {"/dev/mqueue", "mqueue"}};
    for (size_t i = 0; i < 3; i++) {
        struct trial *trial = start(rows[i].path, rows[i].path, NULL);
        trial->fact.place_relation = PLACE_EQUALS;
        trial->fact.host_place = "/proc";
        run(trial);
        assert_null(trial->error);
        assert_string_equal(trial->hardened->config->mounts[0].type, rows[i].type);
        assert_false(string_list_contains(&trial->hardened->config->mounts[0].options, "rbind"));
        assert_null(trial->hardened->mount_sources[0]);
        end(trial);
    }
    struct trial *trial = start("/sys", "/sys", NULL);
    trial->fact.place_relation = PLACE_EQUALS;
    trial->fact.host_place = "/sys";
    expect_kept(trial);
    assert_true(string_list_contains(&trial->hardened->config->mounts[0].options, "rro"));
    end(trial);
    trial = start("/sys", "/mnt", "ro");
    trial->fact.place_relation = PLACE_EQUALS;
    trial->fact.host_place = "/sys";
    expect_refused(trial, "mount.host_path.refused", "/sys");
    end(trial);
    trial = start("/sys/fs/cgroup", "/sys/fs/cgroup", "rw");
    trial->fact.place_relation = PLACE_INSIDE;
    trial->fact.host_place = "/sys";
    expect_kept(trial);
    assert_true(string_list_contains(&trial->hardened->config->mounts[0].options, "rro"));
    assert_false(string_list_contains(&trial->hardened->config->mounts[0].options, "rw"));
    end(trial);
}

static void strange_file_systems_are_refused(void **state) {
    (void)state;
    static const char *const types[] = {"debugfs", "ext4", "nfs", "bpf", "securityfs", "fuse"};
    for (size_t i = 0; i < 6; i++) {
        struct trial *trial = start("none", "/mnt", NULL);
        free(trial->mount.type);
        trial->mount.type = memory_copy_string(types[i]);
        trial->fact = (struct mount_fact){.source_fd = -1};
        expect_refused(trial, "mount.host_path.refused", types[i]);
        end(trial);
    }
}

static void overlays_are_judged_by_their_layers(void **state) {
    (void)state;
    struct trial *trial = start("overlay", "/app", NULL);
    free(trial->mount.type);
    trial->mount.type = memory_copy_string("overlay");
    trial->fact.bind = false;
    trial->fact.real_path = "/etc";
    trial->fact.place_relation = PLACE_EQUALS;
    trial->fact.host_place = "/etc";
    expect_refused(trial, "mount.host_path.refused", "/etc");
    end(trial);
}

static void an_incomplete_search_is_refused(void **state) {
    (void)state;
    struct trial *trial = start("/run/many", "/many", NULL);
    trial->fact.search_incomplete = true;
    expect_refused(trial, "mount.socket.refused", "more files than");
    end(trial);
}

static void a_missing_source_is_left_to_the_mount(void **state) {
    (void)state;
    struct trial *trial = start("/gone", "/gone", NULL);
    trial->fact.real_path = NULL;
    expect_kept(trial);
    end(trial);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_project_is_kept),
        cmocka_unit_test(host_places_are_refused),
        cmocka_unit_test(host_places_are_granted_by_their_exact_path),
        cmocka_unit_test(sockets_are_refused),
        cmocka_unit_test(credentials_are_refused),
        cmocka_unit_test(automatic_credentials_are_removed),
        cmocka_unit_test(what_lies_inside_is_covered),
        cmocka_unit_test(devices_are_removed),
        cmocka_unit_test(system_mounts_are_the_containers_own),
        cmocka_unit_test(strange_file_systems_are_refused),
        cmocka_unit_test(overlays_are_judged_by_their_layers),
        cmocka_unit_test(an_incomplete_search_is_refused),
        cmocka_unit_test(a_missing_source_is_left_to_the_mount),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
