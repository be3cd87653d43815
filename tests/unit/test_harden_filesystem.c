/* filesystem.readable, writable, hidden and protected: what hardening makes of them; and globs of paths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "harden/harden.h"
#include "policy/path_glob.h"

static const char config_text[] =
    "{\"ociVersion\":\"1.0.2\",\"process\":{\"user\":{\"uid\":0,\"gid\":0},\"args\":[\"true\"],\"cwd\":\"/"
    "app\"},"
    "\"root\":{\"path\":\"rootfs\"},\"mounts\":["
    "{\"destination\":\"/proc\",\"type\":\"proc\",\"source\":\"proc\"},"
    "{\"destination\":\"/dev\",\"type\":\"tmpfs\",\"source\":\"tmpfs\"},"
    "{\"destination\":\"/project\",\"type\":\"bind\",\"source\":\"/srv/"
    "project\",\"options\":[\"rbind\",\"rw\"]},"
    "{\"destination\":\"/data\",\"type\":\"bind\",\"source\":\"/srv/data\",\"options\":[\"rbind\",\"ro\"]},"
    "{\"destination\":\"/etc/hosts\",\"type\":\"bind\",\"source\":\"/e/"
    "hosts\",\"options\":[\"bind\",\"ro\"]}],"
    "\"linux\":{\"namespaces\":[{\"type\":\"network\"},{\"type\":\"mount\"},{\"type\":\"pid\"},{\"type\":"
    "\"ipc\"},"
    "{\"type\":\"uts\"},{\"type\":\"cgroup\"}]}}";

enum { WORK = 2, DATA = 3, HOSTS = 4, MOUNTS = 5 };

struct trial {
    struct oci_config *config;
    struct policy *policy;
    struct facts facts;
    struct mount_fact mounts[MOUNTS];
    struct protected_fact protected;
    struct glob_fact glob;
    bool is_host[6];
    struct hardened *hardened;
    struct error *error;
};

static void begin(struct trial *trial) {
    *trial = (struct trial){0};
    assert_null(oci_config_parse("config.json", config_text, strlen(config_text), &trial->config));
    assert_null(policy_select("agent", &trial->policy));
    for (size_t i = 0; i < MOUNTS; i++) {
        trial->mounts[i].source_fd = -1;
        if (i < WORK)
            continue;
        trial->mounts[i].bind = true;
        trial->mounts[i].real_path = trial->config->mounts[i].source;
        trial->mounts[i].status.st_mode = i == HOSTS ? S_IFREG | 0644 : S_IFDIR | 0755;
    }
    trial->mounts[HOSTS].engine_made = true;
    trial->facts = (struct facts){.root_fd = -1,
                                  .root_is_mount = true,
                                  .has_landlock = true,
                                  .container_home = "/root",
                                  .mounts = trial->mounts,
                                  .mounts_count = MOUNTS,
                                  .namespace_is_host = trial->is_host,
                                  .namespaces_count = 6};
}

static void lines(struct policy_list *list, const char *const *items) {
    policy_list_free(list);
    *list = (struct policy_list){0};
    for (; *items != NULL; items++)
        policy_list_append(list, *items, "test.yaml:1:1");
}
#define LINES(list, ...) lines(&(list), (const char *const[]){__VA_ARGS__, NULL})

static void run(struct trial *trial) {
    hardened_free(trial->hardened);
    error_free(trial->error);
    trial->hardened = NULL;
    trial->error = harden(trial->config, trial->policy, &trial->facts, &trial->hardened);
}

static void run_well(struct trial *trial) {
    run(trial);
    if (trial->error != NULL)
        fail_msg("%s", trial->error->message);
}

static void end(struct trial *trial) {
    hardened_free(trial->hardened);
    error_free(trial->error);
    oci_config_free(trial->config);
    policy_free(trial->policy);
}

static const struct change *change_of(const struct trial *trial, const char *subject) {
    for (size_t i = 0; i < trial->hardened->changes_count; i++)
        if (trial->hardened->changes[i].subject != NULL &&
            strcmp(trial->hardened->changes[i].subject, subject) == 0)
            return &trial->hardened->changes[i];
    return NULL;
}

static bool is_rebound(const struct trial *trial, const char *path, enum rebind_kind kind) {
    for (size_t i = 0; i < trial->hardened->rebinds_count; i++)
        if (strcmp(trial->hardened->rebinds[i].path, path) == 0)
            return trial->hardened->rebinds[i].kind == kind;
    return false;
}

static bool option_of(const struct trial *trial, size_t mount, const char *option) {
    return string_list_contains(&trial->hardened->config->mounts[mount].options, option);
}

/* --- readable --- */

static void by_default_only_writing_is_restricted(void **state) {
    (void)state;
    struct trial trial;
    begin(&trial);
    run_well(&trial);
    const struct access_plan *plan = trial.hardened->access;
    assert_non_null(plan);
    assert_false(plan->reads);
    assert_true(access_plan_lets_read(plan, "/data/file"));
    assert_true(access_plan_lets_write(plan, "/project/file"));
    assert_true(access_plan_lets_write(plan, "/tmp/file"));
    assert_true(access_plan_lets_write(plan, "/app/file"));
    assert_true(access_plan_lets_write(plan, "/dev/null"));
    assert_false(access_plan_lets_write(plan, "/data/file"));
    assert_false(access_plan_lets_write(plan, "/etc/passwd"));
    assert_false(access_plan_lets_write(plan, "/projects"));
    end(&trial);
}

static void paths_are_all_that_is_read(void **state) {
    (void)state;
    struct trial trial;
    begin(&trial);
    LINES(trial.policy->readable, "/usr", "~/notes");
    run_well(&trial);
    const struct access_plan *plan = trial.hardened->access;
    assert_true(plan->reads);
    assert_true(access_plan_lets_read(plan, "/usr/bin/env"));
    assert_true(access_plan_lets_read(plan, "/root/notes/a"));
    assert_true(access_plan_lets_read(plan, "/proc/self/status"));
    assert_true(access_plan_lets_read(plan, "/etc/hosts"));    /* the engine's own file */
    assert_true(access_plan_lets_read(plan, "/project/file")); /* what is writable */
    assert_false(access_plan_lets_read(plan, "/etc/passwd"));
    assert_false(access_plan_lets_read(plan, "/data/file"));
    end(&trial);
}

static void the_image_without_the_mounts(void **state) {
    (void)state;
    struct trial trial;
    begin(&trial);
    LINES(trial.policy->readable, "@image");
    run_well(&trial);
    const struct access_plan *plan = trial.hardened->access;
    assert_true(plan->reads);
    assert_true(access_plan_lets_read(plan, "/etc/passwd"));
    assert_false(access_plan_lets_read(plan, "/data/file"));
    assert_false(access_plan_lets_read(plan, "/")); /* a rule there would hold for the mount too */
    LINES(trial.policy->readable, "@image", "/data");
    run_well(&trial);
    assert_false(trial.hardened->access->reads); /* nothing is left to deny */
    end(&trial);
}

static void a_narrower_readable_needs_landlock(void **state) {
    (void)state;
    struct trial trial;
    begin(&trial);
    trial.facts.has_landlock = false;
    LINES(trial.policy->readable, "/usr");
    run(&trial);
    assert_non_null(trial.error);
    assert_int_equal(trial.error->kind, ERROR_REFUSED);
    assert_non_null(strstr(trial.error->message, "mechanism.unavailable: filesystem.readable"));
    assert_non_null(strstr(trial.error->message, "enforcement: {best_effort: [filesystem.readable]}"));
    static const char *const names[] = {"filesystem.readable", "landlock"};
    for (size_t i = 0; i < 2; i++) {
        LINES(trial.policy->best_effort, names[i]);
        run_well(&trial);
        assert_null(trial.hardened->access);
        assert_string_equal(change_of(&trial, "filesystem.readable")->reason, "mechanism.degraded");
    }
    end(&trial);
}

static void the_default_degrades(void **state) {
    (void)state;
    struct trial trial;
    begin(&trial);
    trial.facts.has_landlock = false;
    run_well(&trial);
    assert_null(trial.hardened->access);
    assert_int_equal(change_of(&trial, "landlock")->kind, CHANGE_DEGRADED);
    assert_string_equal(change_of(&trial, "landlock")->reason, "mechanism.degraded");
    trial.policy->ptrace = true; /* for which it is not used anyhow */
    run_well(&trial);
    assert_null(change_of(&trial, "landlock"));
    end(&trial);
}

static void a_decoy_is_lifted_by_its_exact_path(void **state) {
    (void)state;
    struct trial trial;
    begin(&trial);
    run_well(&trial);
    size_t before = trial.hardened->decoys_count;
    LINES(trial.policy->readable, "@image", "@mounts", "~/.ssh/id_rsa");
    run_well(&trial);
    assert_int_equal(trial.hardened->decoys_count, before - 1);
    LINES(trial.policy->readable, "@image", "@mounts", "~/.ssh");
    run_well(&trial);
    assert_int_equal(trial.hardened->decoys_count, before);
    end(&trial);
}

/* --- writable --- */

static void without_mounts_the_engines_are_read_only(void **state) {
    (void)state;
    struct trial trial;
    begin(&trial);
    LINES(trial.policy->writable, "@cwd");
    run_well(&trial);
    assert_true(option_of(&trial, WORK, "rro"));
    assert_false(option_of(&trial, WORK, "rw"));
    assert_false(option_of(&trial, 1, "ro")); /* /dev */
    assert_false(access_plan_lets_write(trial.hardened->access, "/project/file"));
    assert_string_equal(change_of(&trial, "/project")->rule, "filesystem.writable");
    end(&trial);
}

static void a_path_in_a_mount_is_writable_by_itself(void **state) {
    (void)state;
    struct trial trial;
    begin(&trial);
    LINES(trial.policy->writable, "/project/out", "/data/out");
    run_well(&trial);
    assert_true(option_of(&trial, WORK, "rro"));
    assert_true(is_rebound(&trial, "/project/out", REBIND_WRITABLE));
    assert_true(access_plan_lets_write(trial.hardened->access, "/project/out/file"));
    /* What the engine mounted read-only stays so. */
    assert_false(is_rebound(&trial, "/data/out", REBIND_WRITABLE));
    assert_false(access_plan_lets_write(trial.hardened->access, "/data/out/file"));
    LINES(trial.policy->writable, "/project");
    run_well(&trial);
    assert_true(option_of(&trial, WORK, "rw"));
    end(&trial);
}

/* --- hidden --- */

static void hidden_paths_are_masked(void **state) {
    (void)state;
    struct trial trial;
    begin(&trial);
    char *matches[] = {"/project/.env", "/project/a/.env"};
    trial.glob = (struct glob_fact){.pattern = "/project/**/.env", .matches = {matches, 2}};
    trial.facts.globs = &trial.glob;
    trial.facts.globs_count = 1;
    LINES(trial.policy->hidden, "/project/**/.env", "/etc/secret/", "~/x");
    run_well(&trial);
    const struct string_list *masked = &trial.hardened->config->linux_config->masked_paths;
    static const char *const wanted[] = {"/project/.env", "/project/a/.env", "/etc/secret", "/root/x"};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        if (!string_list_contains(masked, wanted[i]))
            fail_msg("%s is not hidden", wanted[i]);
    trial.glob.incomplete = true;
    run(&trial);
    assert_non_null(trial.error);
    assert_non_null(strstr(trial.error->message, "/project/**/.env"));
    assert_non_null(strstr(trial.error->message, "test.yaml:1:1"));
    LINES(trial.policy->best_effort, "filesystem.hidden");
    run_well(&trial);
    assert_string_equal(change_of(&trial, "/project/**/.env")->reason, "mechanism.degraded");
    end(&trial);
}

/* --- protected --- */

static bool is_read_only(const struct trial *trial, const char *path) {
    return string_list_contains(&trial->hardened->config->linux_config->readonly_paths, path);
}

static void protect(struct trial *trial, const char *path, size_t found, mode_t mode) {
    trial->protected = (struct protected_fact){.path = (char *)path, .found = found, .mode = mode};
    trial->mounts[WORK].protected = &trial->protected;
    trial->mounts[WORK].protected_count = 1;
    run_well(trial);
}

static void a_protected_name_is_read_only_and_its_parents_stay(void **state) {
    (void)state;
    struct trial trial;
    begin(&trial);
    protect(&trial, ".git/hooks", 2, S_IFDIR | 0755);
    assert_true(is_read_only(&trial, "/project/.git/hooks"));
    assert_true(is_rebound(&trial, "/project/.git", REBIND_FIXED));
    assert_int_equal(trial.hardened->rebinds_count, 1);
    /* Missing in a repository: made. */
    protect(&trial, ".git/hooks", 1, S_IFDIR | 0755);
    assert_true(is_read_only(&trial, "/project/.git/hooks"));
    assert_true(is_rebound(&trial, "/project/.git/hooks", REBIND_MADE));
    assert_true(is_rebound(&trial, "/project/.git", REBIND_FIXED));
    /* No repository. */
    protect(&trial, ".git/hooks", 0, 0);
    assert_false(is_read_only(&trial, "/project/.git/hooks"));
    assert_int_equal(trial.hardened->rebinds_count, 0);
    /* A worktree: its .git is a file. */
    protect(&trial, ".git/hooks", 1, S_IFREG | 0644);
    assert_true(is_read_only(&trial, "/project/.git"));
    /* A symlink cannot be kept, which is said. */
    protect(&trial, ".git/hooks", 1, S_IFLNK | 0777);
    assert_true(is_read_only(&trial, "/project/.git/hooks"));
    assert_int_equal(trial.hardened->changes[trial.hardened->changes_count - 1].kind, CHANGE_DEGRADED);
    /* A name that git does not make is not made either. */
    protect(&trial, ".vscode/settings.json", 1, S_IFDIR | 0755);
    assert_false(is_read_only(&trial, "/project/.vscode/settings.json"));
    end(&trial);
}

static void nothing_is_protected_where_nothing_is_writable(void **state) {
    (void)state;
    struct trial trial;
    begin(&trial);
    LINES(trial.policy->writable, "@cwd");
    protect(&trial, ".git/hooks", 2, S_IFDIR | 0755);
    assert_false(is_read_only(&trial, "/project/.git/hooks"));
    end(&trial);
}

/* --- globs --- */

static void globs_mean_what_people_expect(void **state) {
    (void)state;
    static const struct {
        const char *pattern, *path;
        bool matches;
    } rows[] = {
        {"/project/**/.env", "/project/.env", true},
        {"/project/**/.env", "/project/a/.env", true},
        {"/project/**/.env", "/project/a/b/c/.env", true},
        {"/project/**/.env", "/project/a.env", false},
        {"/project/**/.env", "/project/.env/x", false},
        {"/project/**/.env", "/other/.env", false},
        {"/project/**/.env", "/projects/.env", false},
        {"/project/*/.env", "/project/.env", false},
        {"/project/*/.env", "/project/a/.env", true},
        {"/project/*/.env", "/project/a/b/.env", false},
        {"/project/*", "/project/.hidden", true},
        {"/project/*.key", "/project/a.key", true},
        {"/project/*.key", "/project/a.keys", false},
        {"/project/.env*", "/project/.env.local", true},
        {"/project/.env*", "/project/.env", true},
        {"/project/file?", "/project/file1", true},
        {"/project/file?", "/project/file", false},
        {"/project/file?", "/project/file12", false},
        {"/project/[a-c]x", "/project/bx", true},
        {"/project/[a-c]x", "/project/dx", false},
        {"/project/[!a-c]x", "/project/dx", true},
        {"/project/[]]x", "/project/]x", true},
        {"/project/[x", "/project/[x", true},
        {"/project/[a-c]*x", "/project/abcx", true},
        {"/project/.ENV", "/project/.env", false},
        {"/**", "/", true},
        {"/**/x/**/y", "/a/x/b/c/y", true},
        {"/**/x/**/y", "/x/y", true},
        {"/**/x/**/y", "/a/y/b/x", false},
        {"/a**b", "/axxb", true},
        {"/a**b", "/a/b", false},
        {"/project//a/", "/project/a", true},
        {"/*a*a*a*a*a*b", "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (path_glob_matches(rows[i].pattern, rows[i].path) != rows[i].matches)
            fail_msg("%s against %s", rows[i].pattern, rows[i].path);
    assert_true(path_glob_is("/a/*"));
    assert_false(path_glob_is("/a/b"));
    struct path_glob glob;
    struct text deep = {0};
    for (int i = 0; i <= PATH_GLOB_NAMES_MAX; i++)
        text_append(&deep, "/a");
    assert_false(path_glob_parse(text_string(&deep), &glob));
    path_glob_free(&glob);
    text_free(&deep);
}

static void a_walk_lists_only_what_it_must(void **state) {
    (void)state;
    struct path_glob glob;
    assert_true(path_glob_parse("/project/*/x", &glob));
    uint64_t standing = path_glob_begin(&glob);
    assert_string_equal(path_glob_only_name(&glob, standing), "project");
    assert_int_equal(path_glob_step(&glob, standing, "etc"), 0);
    standing = path_glob_step(&glob, standing, "project");
    assert_null(path_glob_only_name(&glob, standing));
    standing = path_glob_step(&glob, standing, "a");
    assert_string_equal(path_glob_only_name(&glob, standing), "x");
    assert_false(path_glob_accepts(&glob, standing));
    assert_true(path_glob_accepts(&glob, path_glob_step(&glob, standing, "x")));
    path_glob_free(&glob);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_default_only_writing_is_restricted),
        cmocka_unit_test(paths_are_all_that_is_read),
        cmocka_unit_test(the_image_without_the_mounts),
        cmocka_unit_test(a_narrower_readable_needs_landlock),
        cmocka_unit_test(the_default_degrades),
        cmocka_unit_test(a_decoy_is_lifted_by_its_exact_path),
        cmocka_unit_test(without_mounts_the_engines_are_read_only),
        cmocka_unit_test(a_path_in_a_mount_is_writable_by_itself),
        cmocka_unit_test(hidden_paths_are_masked),
        cmocka_unit_test(a_protected_name_is_read_only_and_its_parents_stay),
        cmocka_unit_test(nothing_is_protected_where_nothing_is_writable),
        cmocka_unit_test(globs_mean_what_people_expect),
        cmocka_unit_test(a_walk_lists_only_what_it_must),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
