/* The look at the machine: passwd by hand, places by inode, sockets and credentials inside mounted
 * directories. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/memory.h"
#include "facts/facts.h"
#include "facts/passwd.h"
#include "facts/places.h"

/* --- passwd --- */

static void expect_home(const char *passwd, uid_t uid, const char *expected) {
    char *home = passwd_home(passwd, strlen(passwd), uid);
    if (expected == NULL)
        assert_null(home);
    else
        assert_string_equal(home, expected);
    free(home);
}

static void passwd_homes_are_found(void **state) {
    (void)state;
    const char *passwd =
        "root:x:0:0:root:/root:/bin/sh\n\n# comment\nbroken:line\nminus:x:-1:0::/minus:\n"
        "huge:x:4294967296:0::/wrapped:\nnode:x:1000:1000::/home/node:/bin/sh\n"
        "again:x:1000:1000::/home/again:\nrelative:x:7:7::home:\nempty:x:8:8:::\nlast:x:9:9::/last";
    expect_home(passwd, 0, "/root");
    expect_home(passwd, 1000, "/home/node");
    expect_home(passwd, 7, NULL);
    expect_home(passwd, 8, NULL);
    expect_home(passwd, 9, "/last");
    expect_home(passwd, 4294967295u, NULL);
    expect_home("", 0, NULL);
    expect_home(":::::", 0, NULL);
}

static void expect_name(const char *passwd, uid_t uid, const char *expected) {
    char *name = passwd_name(passwd, strlen(passwd), uid);
    if (expected == NULL)
        assert_null(name);
    else
        assert_string_equal(name, expected);
    free(name);
}

static void passwd_names_are_found(void **state) {
    (void)state;
    const char *passwd =
        "root:x:0:0\nminus:x:-1:0:\n:x:7:7:::\nnode:x:1000:1000::/home/node:\nagain:x:1000:\nx:y\nlast:x:9";
    expect_name(passwd, 0, "root");
    expect_name(passwd, 1000, "node");
    expect_name(passwd, 7, NULL);
    expect_name(passwd, 9, "last");
    expect_name(passwd, 4294967295u, NULL);
    expect_name("", 0, NULL);
}

static void passwd_never_opens_what_is_no_file(void **state) {
    (void)state;
    char path[] = "/tmp/pinfold-facts-XXXXXX";
    assert_non_null(mkdtemp(path));
    char *fifo = text_formatted("%s/passwd", path);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    int fd = open(fifo, O_PATH | O_CLOEXEC);
    assert_true(fd >= 0);
    size_t length;
    assert_null(passwd_read(fd, &length)); /* An open of it for reading would wait for ever. */
    close(fd);
    unlink(fifo);
    rmdir(path);
    free(fifo);
}

/* --- a small tree to judge --- */

struct tree {
    char root[64];
};

static int make_tree(void **state) {
    struct tree *tree = memory_zeroed(sizeof *tree);
    snprintf(tree->root, sizeof tree->root, "/var/tmp/pinfold-facts-XXXXXX");
    if (mkdtemp(tree->root) == NULL)
        return -1;
    *state = tree;
    return 0;
}

static int remove_tree(void **state) {
    struct tree *tree = *state;
    char *command = text_formatted("rm -rf -- '%s'", tree->root);
    int status = system(command);
    free(command);
    free(tree);
    return status;
}

static char *in_tree(const struct tree *tree, const char *path) {
    return text_formatted("%s/%s", tree->root, path);
}

static void make_directory(const struct tree *tree, const char *path) {
    char *full = in_tree(tree, path);
    for (char *slash = full + strlen(tree->root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        mkdir(full, 0755);
        *slash = '/';
    }
    assert_true(mkdir(full, 0755) == 0 || errno == EEXIST);
    free(full);
}

static void make_file(const struct tree *tree, const char *path, const char *content) {
    char *full = in_tree(tree, path);
    FILE *file = fopen(full, "we");
    assert_non_null(file);
    fputs(content, file);
    fclose(file);
    free(full);
}

static void make_socket(const struct tree *tree, const char *path) {
    char *full = in_tree(tree, path);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    assert_true(strlen(full) < sizeof address.sun_path);
    memcpy(address.sun_path, full, strlen(full));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    close(fd);
    free(full);
}

static struct mount_fact open_fact(const char *path) {
    struct mount_fact fact = {.bind = true};
    fact.source_fd = open(path, O_PATH | O_CLOEXEC);
    assert_true(fact.source_fd >= 0);
    assert_int_equal(fstat(fact.source_fd, &fact.status), 0);
    char real[4096];
    assert_non_null(realpath(path, real));
    fact.real_path = memory_copy_string(real);
    return fact;
}

static void close_fact(struct mount_fact *fact) {
    close(fact->source_fd);
    free(fact->real_path);
    free(fact->host_place);
    string_list_free(&fact->control_sockets);
    string_list_free(&fact->credentials);
}

static const struct string_list none = {0};

static void expect_place(struct places *places, const char *path, enum place_relation relation,
                         const char *place) {
    struct mount_fact fact = open_fact(path);
    places_judge(places, &fact);
    assert_int_equal(fact.place_relation, relation);
    if (place != NULL)
        assert_string_equal(fact.host_place, place);
    close_fact(&fact);
}

static void host_places_by_inode(void **state) {
    struct tree *tree = *state;
    char *home = in_tree(tree, "people/alice");
    make_directory(tree, "people/alice/project/src");
    make_directory(tree, "elsewhere");
    char *people = in_tree(tree, "people");
    char *project = in_tree(tree, "people/alice/project");
    char *config = in_tree(tree, "people/alice/.config");
    char *elsewhere = in_tree(tree, "elsewhere");
    char *link = in_tree(tree, "elsewhere/link");
    make_directory(tree, "people/alice/.config");
    assert_int_equal(symlink(home, link), 0);

    struct places *places = places_look(home, 1000, &none, &none);
    expect_place(places, "/", PLACE_EQUALS, "/");
    expect_place(places, "/etc", PLACE_EQUALS, "/etc");
    expect_place(places, "/var/../etc", PLACE_EQUALS, "/etc");
    expect_place(places, "/var", PLACE_CONTAINS, NULL);
    expect_place(places, "/run", PLACE_EQUALS, "/run");
    expect_place(places, "/proc/sys", PLACE_INSIDE, "/proc");
    expect_place(places, home, PLACE_EQUALS, home);
    expect_place(places, link, PLACE_EQUALS, home); /* the symlink is resolved */
    expect_place(places, people, PLACE_CONTAINS, NULL);
    /* ~/.config/pinfold is not there yet; whoever writes ~/.config could make it. */
    expect_place(places, config, PLACE_CONTAINS, NULL);
    expect_place(places, project, PLACE_NONE, NULL);
    expect_place(places, elsewhere, PLACE_NONE, NULL);
    expect_place(places, "/usr", PLACE_NONE, NULL);
    expect_place(places, "/etc/passwd", PLACE_NONE, NULL);
    places_free(places);
    free(home);
    free(people);
    free(project);
    free(config);
    free(elsewhere);
    free(link);
}

/* A hard link has another name and another directory; the inode is the key's all the same. */
static void credentials_by_inode(void **state) {
    struct tree *tree = *state;
    make_directory(tree, "home/.ssh");
    make_directory(tree, "plain");
    make_file(tree, "home/.ssh/id_rsa", "key");
    make_file(tree, "home/.netrc", "machine x");
    char *home = in_tree(tree, "home");
    char *netrc = in_tree(tree, "home/.netrc");
    char *alias = in_tree(tree, "plain/notes.txt");
    char *key = in_tree(tree, "home/.ssh/id_rsa");
    char *link = in_tree(tree, "plain/link");
    assert_int_equal(linkat(AT_FDCWD, netrc, AT_FDCWD, alias, 0), 0);
    assert_int_equal(symlink(key, link), 0);
    struct places *places = places_look(home, 1000, &none, &none);
    const struct {
        const char *path;
        const char *expected;
    } rows[] = {
        {alias, ".netrc"}, {key, ".ssh"}, {link, ".ssh"}, {netrc, ".netrc"}, {"/etc/shadow", "/etc/shadow"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mount_fact fact = open_fact(rows[i].path);
        places_judge(places, &fact);
        assert_non_null(fact.credential);
        assert_string_equal(fact.credential, rows[i].expected);
        close_fact(&fact);
    }
    places_free(places);
    free(home);
    free(netrc);
    free(alias);
    free(key);
    free(link);
}

static void expect_credential_name(const char *path, const char *expected) {
    struct mount_fact fact = {.source_fd = -1, .real_path = memory_copy_string(path)};
    const char *name = search_credential_name(&fact);
    if (expected == NULL)
        assert_null(name);
    else
        assert_string_equal(name, expected);
    free(fact.real_path);
}

static void credentials_by_name_in_any_home(void **state) {
    (void)state;
    expect_credential_name("/data/backup/.ssh/id_rsa", ".ssh");
    expect_credential_name("/home/bob/.ssh", ".ssh");
    expect_credential_name("/home/bob/.ssh/known_hosts", NULL);
    expect_credential_name("/home/bob/.ssh/id_rsa.pub", NULL);
    expect_credential_name("/home/bob/.sshrc", NULL);
    expect_credential_name("/home/bob/x.ssh", NULL);
    expect_credential_name("/home/bob/.config/gh/hosts.yml", ".config/gh/hosts.yml");
    expect_credential_name("/home/bob/.docker", NULL);
    expect_credential_name("/home/bob/project", NULL);
}

static void search_covers_what_lies_inside(void **state) {
    struct tree *tree = *state;
    make_directory(tree, "home/.aws");
    make_directory(tree, "home/.config/gh");
    make_directory(tree, "home/dotfiles/kube");
    make_file(tree, "home/.aws/credentials", "x");
    make_file(tree, "home/.config/gh/hosts.yml", "x");
    make_file(tree, "home/.npmrc", "registry=https://npm.example\n");
    make_file(tree, "home/.yarnrc.yml", "npmAuthToken: \"abc\"\n");
    make_socket(tree, "home/docker.sock");
    char *home = in_tree(tree, "home");
    char *config = in_tree(tree, "home/.config");
    char *kube = in_tree(tree, "home/.kube");
    char *outside = in_tree(tree, "home/.netrc");
    assert_int_equal(symlink("dotfiles/kube", kube), 0);
    assert_int_equal(symlink("/etc/passwd", outside), 0);

    struct mount_fact fact = open_fact(home);
    search_directory(&fact);
    assert_true(string_list_contains(&fact.credentials, ".aws/"));
    assert_true(string_list_contains(&fact.credentials, ".config/gh/hosts.yml"));
    assert_true(string_list_contains(&fact.credentials, "dotfiles/kube/")); /* where the symlink leads */
    assert_true(string_list_contains(&fact.credentials, ".yarnrc.yml"));
    assert_false(string_list_contains(&fact.credentials, ".npmrc")); /* settings, no token */
    assert_int_equal(fact.credentials.count, 4);
    assert_int_equal(fact.control_sockets.count, 1);
    assert_string_equal(fact.control_sockets.items[0], "docker.sock");
    close_fact(&fact);

    make_file(tree, "home/.npmrc", "//npm.example/:_authToken=${NPM_TOKEN}\n");
    fact = open_fact(home);
    search_directory(&fact);
    assert_false(string_list_contains(&fact.credentials, ".npmrc")); /* a reference, no token */
    close_fact(&fact);
    make_file(tree, "home/.npmrc", "//npm.example/:_authToken=abcdef\n");
    fact = open_fact(home);
    search_directory(&fact);
    assert_true(string_list_contains(&fact.credentials, ".npmrc"));
    close_fact(&fact);

    fact = open_fact(config); /* a part of a home */
    search_directory(&fact);
    assert_int_equal(fact.credentials.count, 1);
    assert_string_equal(fact.credentials.items[0], "gh/hosts.yml");
    close_fact(&fact);
    free(home);
    free(config);
    free(kube);
    free(outside);
}

static void engine_paths_by_form(void **state) {
    (void)state;
    const char *id = "d45d66ed7cc5a89af37975da0873d41b2491da93f89798a82fadc9b1dcccdd69";
    const struct {
        const char *path;
        bool made;
        bool volume;
    } rows[] = {
        {"/srv/m/pr/vfs-containers/%s/userdata/shm", true, false},
        {"/srv/m/prr/vfs-containers/%s/userdata/.containerenv", true, false},
        {"/var/lib/containers/storage/overlay-containers/%s/userdata/config.json", false, false},
        {"/var/lib/containers/storage/overlay-containers/%s/userdata", false, false},
        {"/var/lib/docker/containers/%s/resolv.conf", true, false},
        {"/var/lib/docker/containers/%s/mounts/shm", true, false},
        {"/var/lib/docker/containers/%s/config.v2.json", false, false},
        {"/run/containerd/io.containerd.grpc.v1.cri/sandboxes/%s/shm", true, false},
        {"/var/lib/containerd/io.containerd.grpc.v1.cri/containers/%s/volumes/abc", false, true},
        {"/var/lib/docker/volumes/data/_data", false, true},
        {"/var/lib/docker/volumes/data/_data/sub", false, true},
        {"/var/lib/docker/volumes/data", false, false},
        {"/var/lib/docker/volumes", false, false},
        {"/var/lib/docker/overlay2", false, false},
        {"/var/lib/kubelet/pods/0a1b2c3d-0000-1111-2222-333344445555/etc-hosts", true, false},
        {"/var/lib/kubelet/pods/0a1b2c3d-0000-1111-2222-333344445555/volumes/kubernetes.io~empty-dir/x",
         false, true},
        {"/var/lib/kubelet/pods/0a1b2c3d-0000-1111-2222-333344445555/volumes", false, false},
        {"/var/lib/kubelet/pods/0a1b2c3d000011112222333344445555/containers/app/0a1b2c3d", false, true},
        {"/var/lib/kubelet/pki/kubelet.key", false, false},
        {"/bundle/hosts", true, false},
        {"/bundle/rootfs", false, false},
        {"/home/user/containers/project/hosts", false, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char path[512];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(path, sizeof path, rows[i].path, id);
#pragma GCC diagnostic pop
        if (places_engine_made(path, "/bundle") != rows[i].made ||
            places_engine_volume(path) != rows[i].volume)
            fail_msg("%s", path);
    }
}

/* --- the whole --- */

static struct oci_config small_config(struct oci_root *root, struct oci_process *process,
                                      struct oci_mount *mounts, size_t count) {
    return (struct oci_config){.root = root, .process = process, .mounts = mounts, .mounts_count = count};
}

static void collect_opens_and_judges(void **state) {
    struct tree *tree = *state;
    make_directory(tree, "bundle/rootfs/etc");
    make_directory(tree, "bundle/data");
    make_directory(tree, "host");
    make_file(tree, "bundle/rootfs/etc/passwd", "agent:x:1000:1000::/home/agent:\n");
    make_socket(tree, "host/some.sock");
    char *bundle = in_tree(tree, "bundle");
    char *socket_path = in_tree(tree, "host/some.sock");
    char *missing = in_tree(tree, "missing");

    struct oci_root root = {.path = "rootfs"};
    struct oci_process process = {.user = {.uid = 1000}};
    struct oci_mount mounts[5] = {
        {.destination = "/proc", .type = "proc", .source = "proc"},
        {.destination = "/data", .type = "bind", .source = "data"},
        {.destination = "/sock", .source = socket_path},
        {.destination = "/gone", .type = "none", .source = missing},
        {.destination = "/o", .type = "overlay", .source = "overlay"},
    };
    string_list_append(&mounts[2].options, "bind");
    string_list_append(&mounts[3].options, "rbind");
    string_list_append(&mounts[4].options, "lowerdir=/usr:/etc");
    struct oci_config config = small_config(&root, &process, mounts, 5);
    struct policy *policy = NULL;
    assert_null(policy_select("agent", &policy));

    struct facts *facts = NULL;
    assert_null(facts_collect(&config, bundle, policy, &facts));
    assert_string_equal(facts->bundle, bundle);
    assert_true(facts->root_fd >= 0);
    assert_false(facts->root_is_mount);
    assert_string_equal(facts->container_home, "/home/agent");
    assert_int_equal(facts->mounts_count, 5);
    assert_false(facts->mounts[0].bind);
    assert_int_equal(facts->mounts[0].source_fd, -1);
    assert_true(facts->mounts[1].bind);
    assert_true(facts->mounts[1].source_fd >= 0);
    assert_int_equal(facts->mounts[1].place_relation, PLACE_NONE);
    assert_true(S_ISSOCK(facts->mounts[2].status.st_mode));
    assert_string_equal(facts->mounts[2].real_path, socket_path);
    assert_int_equal(facts->mounts[3].source_fd, -1);
    assert_int_equal(facts->mounts[3].open_errno, ENOENT);
    assert_int_equal(facts->mounts[4].place_relation, PLACE_EQUALS);
    assert_string_equal(facts->mounts[4].host_place, "/etc");
    assert_int_equal(fcntl(facts->mounts[1].source_fd, F_GETFD), FD_CLOEXEC);
    facts_free(facts);

    /* The bundle itself holds config.json, with the environment that was scrubbed. */
    mounts[1].source = "..";
    assert_null(facts_collect(&config, bundle, policy, &facts));
    assert_int_equal(facts->mounts[1].place_relation, PLACE_CONTAINS);
    facts_free(facts);

    root.path = "nothing";
    struct error *error = facts_collect(&config, bundle, policy, &facts);
    assert_non_null(error);
    assert_null(facts);
    assert_int_equal(error->number, ENOENT);
    error_free(error);
    root.path = NULL;
    error = facts_collect(&config, bundle, policy, &facts);
    assert_int_equal(error->kind, ERROR_INVALID);
    error_free(error);

    for (size_t i = 0; i < 5; i++)
        string_list_free(&mounts[i].options);
    policy_free(policy);
    free(bundle);
    free(socket_path);
    free(missing);
}

static void passwd_symlink_stays_in_the_root(void **state) {
    struct tree *tree = *state;
    make_directory(tree, "bundle/rootfs/etc");
    char *bundle = in_tree(tree, "bundle");
    char *passwd = in_tree(tree, "bundle/rootfs/etc/passwd");
    assert_int_equal(symlink("../../../../../../../../../etc/passwd", passwd), 0);
    struct oci_root root = {.path = "rootfs"};
    struct oci_process process = {.user = {.uid = 0}};
    struct oci_config config = small_config(&root, &process, NULL, 0);
    struct policy *policy = NULL;
    assert_null(policy_select("agent", &policy));
    struct facts *facts = NULL;
    assert_null(facts_collect(&config, bundle, policy, &facts));
    assert_null(facts->container_home); /* the host's would be /root */
    facts_free(facts);
    policy_free(policy);
    free(bundle);
    free(passwd);
}

static void host_namespaces_are_seen(void **state) {
    struct tree *tree = *state;
    make_directory(tree, "bundle/rootfs");
    char *bundle = in_tree(tree, "bundle");
    struct oci_root root = {.path = "rootfs"};
    struct oci_namespace namespaces[] = {{.type = "pid"},
                                         {.type = "network", .path = "/proc/self/ns/net"},
                                         {.type = "ipc", .path = "/proc/self/ns/uts"}};
    struct oci_linux linux_config = {.namespaces = namespaces, .namespaces_count = 3};
    struct oci_config config = small_config(&root, NULL, NULL, 0);
    config.linux_config = &linux_config;
    struct policy *policy = NULL;
    assert_null(policy_select("agent", &policy));
    struct facts *facts = NULL;
    assert_null(facts_collect(&config, bundle, policy, &facts));
    assert_int_equal(facts->namespaces_count, 3);
    assert_false(facts->namespace_is_host[0]);
    assert_true(facts->namespace_is_host[1]);
    assert_false(facts->namespace_is_host[2]);
    facts_free(facts);
    policy_free(policy);
    free(bundle);
}

#define WITH_TREE(test) cmocka_unit_test_setup_teardown(test, make_tree, remove_tree)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passwd_homes_are_found),
        cmocka_unit_test(passwd_names_are_found),
        cmocka_unit_test(passwd_never_opens_what_is_no_file),
        WITH_TREE(host_places_by_inode),
        WITH_TREE(credentials_by_inode),
        cmocka_unit_test(credentials_by_name_in_any_home),
        WITH_TREE(search_covers_what_lies_inside),
        cmocka_unit_test(engine_paths_by_form),
        WITH_TREE(collect_opens_and_judges),
        WITH_TREE(passwd_symlink_stays_in_the_root),
        WITH_TREE(host_namespaces_are_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
