/* cgroup/: layouts, plans, conversions and device rules from texts, and the files that each resource writes,
 * in directories that look like cgroups. test_cgroup_live.c does it with the kernel's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "cgroup/internal.h"

#define OPTIONAL(v)                                                                                          \
    { .set = true, .value = (v) }

static void assert_no_error(struct error *error) {
    if (error != NULL)
        fail_msg("unexpected error: %s", error->message);
}

static void assert_error(struct error *error, enum error_kind kind, const char *part) {
    assert_non_null(error);
    if (strstr(error->message, part) == NULL)
        fail_msg("\"%s\" lacks \"%s\"", error->message, part);
    assert_int_equal(error->kind, kind);
    error_free(error);
}

/* ---- layouts ---- */

static const char hybrid_mounts[] =
    "22 1 8:1 / / rw - ext4 /dev/sda rw\n"
    "30 22 0:27 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "31 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
    "34 30 0:31 / /sys/fs/cgroup/memory rw,relatime shared:1 master:2 - cgroup cgroup rw,memory\n"
    "39 30 0:36 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd\n"
    "40 30 0:37 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
static const char hybrid_own[] = "4:memory:/agents/one\n3:name=systemd:/\n2:cpu,cpuacct:/\n0::/work:a\n";

static void parse(const char *mounts, const char *own, struct cgroup_hierarchies *out) {
    cgroup_hierarchies_parse(CGROUP_BASE, mounts, own, out);
}

static void hybrid_layout_lists_v1_then_v2(void **state) {
    (void)state;
    cgroup_hierarchies_owned struct cgroup_hierarchies found;
    parse(hybrid_mounts, hybrid_own, &found);
    assert_int_equal(found.count, 4);
    assert_int_equal(cgroup_hierarchies_layout(&found), CGROUP_LAYOUT_HYBRID);
    assert_string_equal(found.items[0].controllers, "memory");
    assert_string_equal(found.items[0].mount_point, "/sys/fs/cgroup/memory");
    assert_string_equal(found.items[0].own, "/sys/fs/cgroup/memory/agents/one");
    assert_string_equal(found.items[1].controllers, "name=systemd");
    assert_string_equal(found.items[1].own, "/sys/fs/cgroup/systemd");
    assert_string_equal(found.items[2].controllers, "cpu,cpuacct");
    assert_string_equal(found.items[3].controllers, "unified");
    assert_true(found.items[3].unified);
    assert_string_equal(found.items[3].own, "/sys/fs/cgroup/unified/work:a");
}

static void covered_mounts_do_not_count(void **state) {
    (void)state;
    text_owned struct text mounts = {0};
    text_format(&mounts, "%s41 40 0:50 / /sys/fs/cgroup/unified rw - tmpfs t rw\n", hybrid_mounts);
    cgroup_hierarchies_owned struct cgroup_hierarchies found;
    parse(mounts.data, hybrid_own, &found);
    assert_int_equal(found.count, 3);
    assert_int_equal(cgroup_hierarchies_layout(&found), CGROUP_LAYOUT_V1);

    /* A cgroup2 over the whole directory: all v1 mounts are beneath it. */
    text_owned struct text above = {0};
    text_format(&above, "%s42 30 0:37 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", hybrid_mounts);
    cgroup_hierarchies_owned struct cgroup_hierarchies pure;
    parse(above.data, hybrid_own, &pure);
    assert_int_equal(pure.count, 1);
    assert_int_equal(cgroup_hierarchies_layout(&pure), CGROUP_LAYOUT_V2);
    assert_string_equal(pure.items[0].mount_point, "/sys/fs/cgroup");

    /* A tmpfs over the whole directory, and the hierarchies mounted afresh in it at their old places: what is
     * covered itself covers nothing. */
    text_owned struct text fresh_mounts = {0};
    text_format(&fresh_mounts,
                "%s42 30 0:50 / /sys/fs/cgroup rw - tmpfs t rw\n"
                "43 42 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
                hybrid_mounts);
    cgroup_hierarchies_owned struct cgroup_hierarchies fresh;
    parse(fresh_mounts.data, hybrid_own, &fresh);
    assert_int_equal(fresh.count, 1);
    assert_string_equal(fresh.items[0].controllers, "memory");
    assert_string_equal(fresh.items[0].mount_point, "/sys/fs/cgroup/memory");

    /* And a mount that stands on the covering one is visible again. */
    text_owned struct text again = {0};
    text_format(&again, "%s43 41 0:37 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n", mounts.data);
    cgroup_hierarchies_owned struct cgroup_hierarchies back;
    parse(again.data, hybrid_own, &back);
    assert_int_equal(cgroup_hierarchies_layout(&back), CGROUP_LAYOUT_HYBRID);
}

static void no_cgroups_is_a_layout(void **state) {
    (void)state;
    cgroup_hierarchies_owned struct cgroup_hierarchies found;
    parse("22 1 8:1 / / rw - ext4 /dev/sda rw\nnot a line\n", "", &found);
    assert_int_equal(found.count, 0);
    assert_int_equal(cgroup_hierarchies_layout(&found), CGROUP_LAYOUT_NONE);
    /* cgroup2 elsewhere is somebody's own. */
    cgroup_hierarchies_owned struct cgroup_hierarchies elsewhere;
    parse("22 1 8:1 / / rw - ext4 d rw\n23 22 0:9 / /run/other/cgroup2 rw - cgroup2 none rw\n", "0::/\n",
          &elsewhere);
    assert_int_equal(elsewhere.count, 0);
}

static void bind_mount_root_is_taken_off_the_own_path(void **state) {
    (void)state;
    static const char mounts[] =
        "22 1 8:1 / / rw - ext4 d rw\n"
        "34 22 0:31 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
        "35 22 0:32 /docker/abc /sys/fs/cgroup/pids\\040x ro - cgroup cgroup rw,pids\n"
        "36 22 0:33 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n"
        "37 22 0:34 /../.. /sys/fs/cgroup/unified ro - cgroup2 cgroup rw\n";
    cgroup_hierarchies_owned struct cgroup_hierarchies found;
    parse(mounts, "4:memory:/docker/abc/sub\n3:pids:/docker/abc\n2:cpu:/docker/abcd\n0::/../x\n", &found);
    assert_int_equal(found.count, 4);
    assert_string_equal(found.items[0].own, "/sys/fs/cgroup/memory/sub");
    assert_string_equal(found.items[1].own, "/sys/fs/cgroup/pids x");
    assert_string_equal(found.items[2].own, "/sys/fs/cgroup/cpu");
    assert_string_equal(found.items[3].own, "/sys/fs/cgroup/unified");
}

/* ---- plans ---- */

static const char *planned(const struct cgroup *cgroup, const char *controllers) {
    for (size_t i = 0; i < cgroup->count; i++)
        if (strcmp(cgroup->directories[i].controllers, controllers) == 0)
            return cgroup->directories[i].path;
    fail_msg("no directory for %s", controllers);
    return "";
}

static void plan_places_each_form_of_path(void **state) {
    (void)state;
    cgroup_hierarchies_owned struct cgroup_hierarchies found;
    parse(hybrid_mounts, hybrid_own, &found);
    struct cgroup *cgroup;
    assert_no_error(cgroup_plan_in(&found, "/a//./b/", "box", false, &cgroup));
    assert_int_equal(cgroup->count, 4);
    assert_false(cgroup->unified);
    assert_string_equal(cgroup->relative_path, "/a/b");
    assert_string_equal(planned(cgroup, "memory"), "/sys/fs/cgroup/memory/a/b");
    assert_string_equal(planned(cgroup, "unified"), "/sys/fs/cgroup/unified/a/b");
    cgroup_free(cgroup);

    assert_no_error(cgroup_plan_in(&found, "a/b", "box", false, &cgroup));
    assert_string_equal(planned(cgroup, "memory"), "/sys/fs/cgroup/memory/agents/one/a/b");
    assert_string_equal(planned(cgroup, "cpu,cpuacct"), "/sys/fs/cgroup/cpu,cpuacct/a/b");
    cgroup_free(cgroup);

    const char *const unset[] = {NULL, ""};
    for (size_t i = 0; i < 2; i++) {
        assert_no_error(cgroup_plan_in(&found, unset[i], "box", false, &cgroup));
        assert_string_equal(planned(cgroup, "memory"), "/sys/fs/cgroup/memory/agents/one/pinfold/box");
        assert_string_equal(planned(cgroup, "name=systemd"), "/sys/fs/cgroup/systemd/pinfold/box");
        cgroup_free(cgroup);
    }
}

static void plan_in_v2_stands_beside_the_caller(void **state) {
    (void)state;
    cgroup_hierarchies_owned struct cgroup_hierarchies found;
    parse("26 1 0:24 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n", "0::/user.slice/session.scope\n",
          &found);
    struct cgroup *cgroup;
    assert_no_error(cgroup_plan_in(&found, "", "box", false, &cgroup));
    assert_true(cgroup->unified);
    assert_int_equal(cgroup->count, 1);
    assert_string_equal(cgroup->directories[0].path, "/sys/fs/cgroup/user.slice/pinfold/box");
    cgroup_free(cgroup);
}

static void plan_never_resolves_to_a_root(void **state) {
    (void)state;
    cgroup_hierarchies_owned struct cgroup_hierarchies found;
    parse(hybrid_mounts, hybrid_own, &found);
    const char *const bad[] = {"/", "//", ".", "..", "/..", "/a/..", "a/../b", "./", "/./.", "/a/../../b"};
    struct cgroup *cgroup;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_error(cgroup_plan_in(&found, bad[i], "box", false, &cgroup), ERROR_INVALID,
                     "linux.cgroupsPath");
        assert_null(cgroup);
    }
    assert_error(cgroup_plan_in(&found, "/a\nb", "box", false, &cgroup), ERROR_INVALID, "linux.cgroupsPath");
    assert_error(cgroup_plan_in(&found, "", "..", false, &cgroup), ERROR_ID_FORMAT, "");
    assert_error(cgroup_plan_in(&found, NULL, "a/b", false, &cgroup), ERROR_ID_FORMAT, "");
    /* Three dots are a name like any other. */
    assert_no_error(cgroup_plan_in(&found, "/...", "box", false, &cgroup));
    assert_string_equal(planned(cgroup, "memory"), "/sys/fs/cgroup/memory/...");
    cgroup_free(cgroup);
}

static void plan_wants_the_systemd_flag_for_its_form(void **state) {
    (void)state;
    struct cgroup *cgroup;
    assert_error(cgroup_plan("system.slice:runc:box", "box", CGROUP_MANAGER_CGROUPFS, false, &cgroup),
                 ERROR_INVALID, "--systemd-cgroup");
    assert_error(cgroup_plan("/system/box", "box", CGROUP_MANAGER_SYSTEMD, false, &cgroup), ERROR_INVALID,
                 "slice:prefix:name");
    assert_null(cgroup);
}

static void disabled_plans_nothing_at_all(void **state) {
    (void)state;
    struct cgroup *cgroup;
    assert_no_error(cgroup_plan("/..", "box", CGROUP_MANAGER_DISABLED, false, &cgroup));
    assert_int_equal(cgroup->count, 0);
    string_list_owned struct string_list created = {0};
    assert_no_error(cgroup_make(cgroup, &created));
    assert_int_equal(created.count, 0);
    assert_no_error(cgroup_attach(cgroup, getpid()));
    assert_no_error(cgroup_destroy(&created));
    assert_false(cgroup_is_frozen(cgroup));
    assert_error(cgroup_freeze(cgroup, true), ERROR_UNAVAILABLE, "no cgroup");
    struct oci_device_cgroup rule = {.access = (char *)"rwm"};
    struct oci_resources devices = {.devices = &rule, .devices_count = 1};
    assert_no_error(cgroup_apply(cgroup, &devices));
    struct oci_pids pids = {.limit = OPTIONAL(5)};
    struct oci_resources resources = {.pids = &pids};
    assert_error(cgroup_apply(cgroup, &resources), ERROR_UNAVAILABLE,
                 "linux.resources.pids.limit needs the pids");
    pids.limit.value = -1;
    assert_no_error(cgroup_apply(cgroup, &resources));
    cgroup_free(cgroup);
}

/* ---- conversions ---- */

static void crun_1721_runc_4772_shares_1024_is_weight_100(void **state) {
    (void)state;
    assert_int_equal(cgroup_weight_from_shares(0), 0);
    assert_int_equal(cgroup_weight_from_shares(1), 1);
    assert_int_equal(cgroup_weight_from_shares(2), 1);
    assert_int_equal(cgroup_weight_from_shares(1024), 100);
    assert_int_equal(cgroup_weight_from_shares(262144), 10000);
    assert_int_equal(cgroup_weight_from_shares(UINT64_MAX), 10000);
    uint64_t last = 0;
    for (uint64_t shares = 2; shares <= 262144; shares += 37) {
        uint64_t weight = cgroup_weight_from_shares(shares);
        assert_in_range(weight, last > 0 ? last : 1, 10000);
        last = weight;
    }
    assert_int_equal(cgroup_io_weight(0), 0);
    assert_int_equal(cgroup_io_weight(10), 1);
    assert_int_equal(cgroup_io_weight(500), 4950);
    assert_int_equal(cgroup_io_weight(1000), 10000);
}

static void swap_is_what_is_beyond_the_limit(void **state) {
    (void)state;
    char *swap;
    struct oci_memory memory = {.limit = OPTIONAL(100), .swap = OPTIONAL(300)};
    assert_no_error(cgroup_swap_beyond_limit(&memory, &swap));
    assert_string_equal(swap, "200");
    free(swap);
    memory.swap.value = 100;
    assert_no_error(cgroup_swap_beyond_limit(&memory, &swap));
    assert_string_equal(swap, "0");
    free(swap);
    memory.swap.value = -1;
    assert_no_error(cgroup_swap_beyond_limit(&memory, &swap));
    assert_string_equal(swap, "max");
    free(swap);
    memory.swap.value = 99;
    assert_error(cgroup_swap_beyond_limit(&memory, &swap), ERROR_INVALID, "linux.resources.memory.swap: 99");
    memory.swap.value = -2;
    assert_error(cgroup_swap_beyond_limit(&memory, &swap), ERROR_INVALID, "linux.resources.memory.swap: -2");
    memory.swap = (struct optional_int64){0};
    assert_no_error(cgroup_swap_beyond_limit(&memory, &swap));
    assert_null(swap);
    memory.limit.value = -1;
    assert_no_error(cgroup_swap_beyond_limit(&memory, &swap));
    assert_string_equal(swap, "max");
    free(swap);
    struct oci_memory alone = {.swap = OPTIONAL(300)};
    assert_error(cgroup_swap_beyond_limit(&alone, &swap), ERROR_INVALID, "linux.resources.memory.limit");
}

/* ---- devices ---- */

#define ANY                                                                                                  \
    { 0 }
#define NUMBER(n) OPTIONAL(n)

static char *device_lines(const struct oci_device_cgroup *rules, size_t count, bool *allow_all) {
    string_list_owned struct string_list lines = {0};
    size_t base = 0;
    assert_no_error(cgroup_devices_lines(rules, count, allow_all, &lines, &base));
    struct text all = {0};
    text_append(&all, "");
    for (size_t i = base; i < lines.count; i++)
        text_format(&all, "%s;", lines.items[i]);
    if (!*allow_all)
        assert_in_range(base, 7, 10);
    return text_take(&all);
}

static void device_rules_later_ones_win(void **state) {
    (void)state;
    bool allow_all;
    char a[] = "a", b[] = "b", c[] = "c", rwm[] = "rwm", rw[] = "rw", m[] = "m", r[] = "r";
    struct oci_device_cgroup podman[] = {
        {.access = rwm},
        {.allow = true, .type = c, .major = NUMBER(10), .minor = NUMBER(229), .access = rw},
        {.allow = true, .type = b, .major = NUMBER(8), .access = r},
        {.allow = true, .type = c, .major = NUMBER(10), .minor = NUMBER(229), .access = m}};
    char *lines = device_lines(podman, 4, &allow_all);
    assert_false(allow_all);
    assert_string_equal(lines, "c 10:229 rwm;b 8:* r;");
    free(lines);

    /* Docker ends its list by a denial of fuse, which is not allowed anyway. */
    struct oci_device_cgroup docker[] = {
        {.type = a, .major = NUMBER(-1), .minor = NUMBER(-1), .access = rwm},
        {.type = c, .major = NUMBER(10), .minor = NUMBER(229), .access = rwm}};
    lines = device_lines(docker, 2, &allow_all);
    assert_false(allow_all);
    assert_string_equal(lines, "");
    free(lines);

    struct oci_device_cgroup taken[] = {
        {.access = rwm},
        {.allow = true, .type = c, .major = NUMBER(10), .minor = NUMBER(229), .access = rwm},
        {.type = c, .major = NUMBER(10), .access = rw}};
    lines = device_lines(taken, 3, &allow_all);
    assert_string_equal(lines, "c 10:229 m;");
    free(lines);

    struct oci_device_cgroup privileged[] = {
        {.access = rwm}, {.allow = true, .access = rwm}, {.type = b, .major = NUMBER(8), .access = rw}};
    lines = device_lines(privileged, 3, &allow_all);
    assert_true(allow_all);
    assert_string_equal(lines, "b 8:* rw;");
    free(lines);

    /* "a" with less than everything is a rule for both kinds. */
    struct oci_device_cgroup both[] = {{.allow = true, .type = a, .major = NUMBER(9), .access = r}};
    lines = device_lines(both, 1, &allow_all);
    assert_false(allow_all);
    assert_string_equal(lines, "b 9:* r;c 9:* r;");
    free(lines);
}

static void device_rules_base_can_be_denied(void **state) {
    (void)state;
    char c[] = "c", rwm[] = "rwm", rw[] = "rw";
    struct oci_device_cgroup rules[] = {{.access = rwm},
                                        {.type = c, .major = NUMBER(1), .minor = NUMBER(8), .access = rwm}};
    bool allow_all;
    string_list_owned struct string_list lines = {0};
    size_t base;
    assert_no_error(cgroup_devices_lines(rules, 2, &allow_all, &lines, &base));
    assert_int_equal(base, 9);
    assert_int_equal(lines.count, 9);
    assert_false(string_list_contains(&lines, "c 1:8 rwm"));
    assert_true(string_list_contains(&lines, "c 1:3 rwm"));
    assert_true(string_list_contains(&lines, "c *:* m"));
    assert_true(string_list_contains(&lines, "c 136:* rwm"));
    assert_false(string_list_contains(&lines, "c 10:200 rwm"));

    struct oci_device_cgroup part[] = {{.access = rwm},
                                       {.allow = true, .type = c, .major = NUMBER(10), .access = rw},
                                       {.type = c, .major = NUMBER(10), .minor = NUMBER(5), .access = rw}};
    string_list_owned struct string_list none = {0};
    assert_error(cgroup_devices_lines(part, 3, &allow_all, &none, &base), ERROR_UNAVAILABLE,
                 "linux.resources.devices[2]");
}

static void device_rules_are_checked(void **state) {
    (void)state;
    char x[] = "x", c[] = "c", rwz[] = "rwz", rw[] = "rw";
    bool allow_all;
    size_t base;
    string_list_owned struct string_list lines = {0};
    struct oci_device_cgroup type = {.type = x, .access = rw};
    assert_error(cgroup_devices_lines(&type, 1, &allow_all, &lines, &base), ERROR_INVALID, "devices[0].type");
    struct oci_device_cgroup access = {.type = c, .access = rwz};
    assert_error(cgroup_devices_lines(&access, 1, &allow_all, &lines, &base), ERROR_INVALID,
                 "devices[0].access");
    struct oci_device_cgroup number = {.type = c, .major = NUMBER(-7), .access = rw};
    assert_error(cgroup_devices_lines(&number, 1, &allow_all, &lines, &base), ERROR_INVALID, "-7");
}

/* ---- files, in a directory that looks like a cgroup ---- */

static char directory[] = "/tmp/pinfold-unit-cgroup-XXXXXX";

static int directory_setup(void **state) {
    (void)state;
    snprintf(directory, sizeof directory, "/tmp/pinfold-unit-cgroup-XXXXXX");
    return mkdtemp(directory) == NULL ? -1 : 0;
}

static int directory_teardown(void **state) {
    (void)state;
    memory_owned char *command = text_formatted("rm -rf %s", directory);
    return system(command);
}

static void file_put(const char *name, const char *content) {
    memory_owned char *path = text_formatted("%s/%s", directory, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(content, file);
    fclose(file);
}

static void assert_file(const char *name, const char *expected) {
    memory_owned char *content = cgroup_file_read(directory, name);
    assert_non_null(content);
    assert_string_equal(content, expected);
}

static void v2_memory_writes_its_files(void **state) {
    (void)state;
    file_put("memory.max", "");
    file_put("memory.low", "");
    file_put("memory.swap.max", "");
    struct oci_memory memory = {
        .limit = OPTIONAL(4096), .reservation = OPTIONAL(1000), .swap = OPTIONAL(8192)};
    assert_no_error(cgroup_v2_memory(directory, &memory));
    assert_file("memory.max", "4096");
    assert_file("memory.low", "1000");
    assert_file("memory.swap.max", "4096");

    file_put("memory.max", "");
    file_put("memory.swap.max", "");
    struct oci_memory unlimited = {.limit = OPTIONAL(-1)};
    assert_no_error(cgroup_v2_memory(directory, &unlimited));
    assert_file("memory.max", "max");
    assert_file("memory.swap.max", "max");

    file_put("memory.current", "9000\n");
    file_put("memory.max", "");
    struct oci_memory low = {.limit = OPTIONAL(4096), .check_before_update = OPTIONAL(true)};
    assert_error(cgroup_v2_memory(directory, &low), ERROR_INVALID, "below the 9000 bytes");
    assert_file("memory.max", "");

    struct oci_memory killer = {.disable_oom_killer = OPTIONAL(true)};
    assert_error(cgroup_v2_memory(directory, &killer), ERROR_UNAVAILABLE, "disableOOMKiller");
    struct oci_memory swappiness = {.swappiness = OPTIONAL(10)};
    assert_error(cgroup_v2_memory(directory, &swappiness), ERROR_UNAVAILABLE, "swappiness");
    struct oci_memory negative = {.limit = OPTIONAL(-5)};
    assert_error(cgroup_v2_memory(directory, &negative), ERROR_INVALID, "linux.resources.memory.limit: -5");
}

static void v2_cpu_writes_its_files(void **state) {
    (void)state;
    file_put("cpu.weight", "");
    file_put("cpu.max", "");
    file_put("cpu.max.burst", "");
    file_put("cpu.idle", "");
    struct oci_cpu cpu = {.shares = OPTIONAL(1024),
                          .quota = OPTIONAL(50000),
                          .period = OPTIONAL(100000),
                          .burst = OPTIONAL(1000),
                          .idle = OPTIONAL(0)};
    assert_no_error(cgroup_v2_cpu(directory, &cpu));
    assert_file("cpu.weight", "100");
    assert_file("cpu.max", "50000 100000");
    assert_file("cpu.max.burst", "1000");
    assert_file("cpu.idle", "0");

    file_put("cpu.max", "");
    struct oci_cpu unlimited = {.shares = OPTIONAL(0), .quota = OPTIONAL(-1)};
    assert_no_error(cgroup_v2_cpu(directory, &unlimited));
    assert_file("cpu.max", "max");

    /* The period alone keeps the quota that is there. */
    file_put("cpu.max", "7000 100000\n");
    struct oci_cpu period = {.period = OPTIONAL(200000)};
    assert_no_error(cgroup_v2_cpu(directory, &period));
    assert_file("cpu.max", "7000 200000");

    struct oci_cpu realtime = {.realtime_runtime = OPTIONAL(5)};
    assert_error(cgroup_v2_cpu(directory, &realtime), ERROR_UNAVAILABLE, "realtimeRuntime");
    struct oci_cpu no_realtime = {.realtime_runtime = OPTIONAL(0), .realtime_period = OPTIONAL(0)};
    assert_no_error(cgroup_v2_cpu(directory, &no_realtime));
}

static void missing_file_names_field_and_controller(void **state) {
    (void)state;
    struct oci_memory memory = {.limit = OPTIONAL(4096)};
    struct error *error = cgroup_v2_memory(directory, &memory);
    assert_non_null(error);
    assert_non_null(strstr(error->message, "linux.resources.memory.limit: the memory controller"));
    assert_error(error, ERROR_UNAVAILABLE, "memory.max");
    memory_owned char *path = text_formatted("%s/memory.max", directory);
    assert_int_equal(access(path, F_OK), -1); /* never created */
}

static void v2_unified_is_validated(void **state) {
    (void)state;
    file_put("cgroup.controllers", "cpu io memory\n");
    file_put("memory.high", "");
    file_put("cgroup.max.depth", "");
    file_put("cgroup.procs", "");
    struct key_value good[] = {{(char *)"memory.high", (char *)"5000\n"},
                               {(char *)"cgroup.max.depth", (char *)"3"}};
    struct string_map unified = {.items = good, .count = 2};
    assert_no_error(cgroup_v2_unified(directory, &unified));
    assert_file("memory.high", "5000");
    assert_file("cgroup.max.depth", "3");

    const char *const invalid[] = {"../memory.max",
                                   "memory/max",
                                   "memory",
                                   "",
                                   ".",
                                   "..",
                                   ".x",
                                   "memory.",
                                   "cgroup.procs",
                                   "cgroup.kill",
                                   "cgroup.subtree_control",
                                   "cgroup.freeze"};
    for (size_t i = 0; i < sizeof invalid / sizeof invalid[0]; i++) {
        struct key_value bad = {(char *)invalid[i], (char *)"1"};
        struct string_map map = {.items = &bad, .count = 1};
        assert_error(cgroup_v2_unified(directory, &map), ERROR_INVALID, "linux.resources.unified");
    }
    assert_file("cgroup.procs", "");
    struct key_value absent = {(char *)"pids.max", (char *)"1"};
    struct string_map map = {.items = &absent, .count = 1};
    assert_error(cgroup_v2_unified(directory, &map), ERROR_UNAVAILABLE, "needs the pids controller");
}

static void v2_block_io_writes_its_files(void **state) {
    (void)state;
    file_put("io.weight", "");
    file_put("io.max", "");
    struct oci_throttle_device read = {.major = 8, .minor = 16, .rate = 1024};
    struct oci_block_io block_io = {
        .weight = OPTIONAL(500), .throttle_read_bps_device = &read, .throttle_read_bps_device_count = 1};
    assert_true(cgroup_block_io_wanted(&block_io));
    assert_no_error(cgroup_v2_block_io(directory, &block_io));
    assert_file("io.weight", "4950");
    assert_file("io.max", "8:16 rbps=1024");
    file_put("io.max", "");
    read.rate = 0;
    assert_no_error(cgroup_v2_block_io(directory, &block_io));
    assert_file("io.max", "8:16 rbps=max");
    file_put("io.bfq.weight", "");
    assert_no_error(cgroup_v2_block_io(directory, &block_io));
    assert_file("io.bfq.weight", "500");
    struct oci_block_io bad = {.weight = OPTIONAL(5)};
    assert_error(cgroup_v2_block_io(directory, &bad), ERROR_INVALID, "10 to 1000");
    struct oci_block_io leaf = {.leaf_weight = OPTIONAL(50)};
    assert_error(cgroup_v2_block_io(directory, &leaf), ERROR_UNAVAILABLE, "leafWeight");
    struct oci_block_io zero = {.weight = OPTIONAL(0)};
    assert_false(cgroup_block_io_wanted(&zero));
}

static void v1_block_io_writes_its_files(void **state) {
    (void)state;
    file_put("blkio.bfq.weight", "");
    file_put("blkio.throttle.write_iops_device", "");
    struct oci_throttle_device write = {.major = 8, .minor = 0, .rate = 7};
    struct oci_block_io block_io = {
        .weight = OPTIONAL(300), .throttle_write_iops_device = &write, .throttle_write_iops_device_count = 1};
    assert_no_error(cgroup_v1_block_io(directory, &block_io));
    assert_file("blkio.bfq.weight", "300");
    assert_file("blkio.throttle.write_iops_device", "8:0 7");
}

static void controllers_are_enabled_down_the_path(void **state) {
    (void)state;
    memory_owned char *a = text_formatted("%s/a", directory);
    memory_owned char *leaf = text_formatted("%s/a/leaf", directory);
    assert_int_equal(mkdir(a, 0755) | mkdir(leaf, 0755), 0);
    const char *const levels[] = {"", "a/", "a/leaf/"};
    for (size_t i = 0; i < 3; i++) {
        memory_owned char *controllers = text_formatted("%scgroup.controllers", levels[i]);
        memory_owned char *control = text_formatted("%scgroup.subtree_control", levels[i]);
        file_put(controllers, "cpu io memory pids\n");
        file_put(control, "");
    }
    file_put("a/cgroup.controllers", "cpu\n");
    cgroup_unified_enable(directory, leaf, "cpu memory hugetlb");
    assert_file("cgroup.subtree_control", "+cpu +memory");
    assert_file("a/cgroup.subtree_control", "+cpu");
    assert_file("a/leaf/cgroup.subtree_control", ""); /* never the container's own: it will hold processes */
    file_put("cgroup.subtree_control", "cpu io memory pids\n");
    cgroup_unified_enable(directory, leaf, NULL);
    assert_file("cgroup.subtree_control", "cpu io memory pids");
    /* Not below the top: nothing. */
    file_put("cgroup.subtree_control", "");
    cgroup_unified_enable("/tmp/elsewhere", leaf, NULL);
    assert_file("cgroup.subtree_control", "");
}

/* A whole pure v2 machine in a directory: each limit goes to the one directory, if its controller is there.
 */
static void apply_in_v2_needs_the_controller(void **state) {
    (void)state;
    struct cgroup_directory only = {(char *)"unified", directory};
    struct cgroup cgroup = {.unified = true, .directories = &only, .count = 1};
    file_put("cgroup.controllers", "cpu pids\n");
    file_put("pids.max", "");
    file_put("cpu.weight", "");
    assert_true(cgroup_has_controller(&cgroup, "pids"));
    assert_false(cgroup_has_controller(&cgroup, "memory"));
    struct oci_pids pids = {.limit = OPTIONAL(0)};
    struct oci_cpu cpu = {.shares = OPTIONAL(2048), .cpus = (char *)""};
    struct oci_device_cgroup rule = {.access = (char *)"rwm"};
    struct oci_resources resources = {.pids = &pids, .cpu = &cpu, .devices = &rule, .devices_count = 1};
    /* The directory only looks like a cgroup: a device program has no place there, and that is said. */
    assert_error(cgroup_apply(&cgroup, &resources), ERROR_SYSTEM, "linux.resources.devices: ");
    cgroup.rootless = true; /* a user loads none */
    assert_no_error(cgroup_apply(&cgroup, &resources));
    cgroup.rootless = false;
    resources.devices_count = 0;
    assert_file("pids.max", "0");
    struct oci_memory memory = {.limit = OPTIONAL(4096)};
    resources.memory = &memory;
    assert_error(cgroup_apply(&cgroup, &resources), ERROR_UNAVAILABLE,
                 "linux.resources.memory.limit needs the memory");
    memory.limit.value = 0;
    assert_no_error(cgroup_apply(&cgroup, &resources));
    cpu.mems = (char *)"0";
    assert_error(cgroup_apply(&cgroup, &resources), ERROR_UNAVAILABLE,
                 "linux.resources.cpu.mems needs the cpuset");
    cpu.mems = NULL;
    struct oci_hugepage_limit pages = {.page_size = (char *)"../2MB", .limit = 1};
    resources.hugepage_limits = &pages;
    resources.hugepage_limits_count = 1;
    assert_error(cgroup_apply(&cgroup, &resources), ERROR_INVALID,
                 "linux.resources.hugepageLimits[0].pageSize");
    pages.page_size = (char *)"2MB";
    assert_error(cgroup_apply(&cgroup, &resources), ERROR_UNAVAILABLE, "hugetlb");
    file_put("cgroup.controllers", "cpu pids hugetlb\n");
    file_put("hugetlb.2MB.max", "");
    file_put("hugetlb.2MB.rsvd.max", "");
    assert_no_error(cgroup_apply(&cgroup, &resources));
    assert_file("hugetlb.2MB.max", "1");
    assert_file("hugetlb.2MB.rsvd.max", "1");
}

static void network_is_of_v1(void **state) {
    (void)state;
    struct cgroup_directory both = {(char *)"net_cls,net_prio", directory};
    struct cgroup cgroup = {.directories = &both, .count = 1};
    file_put("net_cls.classid", "");
    file_put("net_prio.ifpriomap", "");
    struct oci_interface_priority priority = {(char *)"eth0", 5};
    struct oci_network network = {
        .class_id = OPTIONAL(1048577), .priorities = &priority, .priorities_count = 1};
    struct oci_resources resources = {.network = &network};
    assert_no_error(cgroup_apply(&cgroup, &resources));
    assert_file("net_cls.classid", "1048577");
    assert_file("net_prio.ifpriomap", "eth0 5");

    struct cgroup_directory only = {(char *)"unified", directory};
    struct cgroup pure = {.unified = true, .directories = &only, .count = 1};
    assert_error(cgroup_apply(&pure, &resources), ERROR_UNAVAILABLE,
                 "linux.resources.network.classID needs the net_cls controller of cgroup v1");
    network.class_id.value = 0;
    assert_error(cgroup_apply(&pure, &resources), ERROR_UNAVAILABLE,
                 "linux.resources.network.priorities needs the net_prio controller of cgroup v1");
    network.priorities_count = 0;
    assert_no_error(cgroup_apply(&pure, &resources));
    struct cgroup none = {.count = 0};
    network.class_id.value = 1;
    assert_error(cgroup_apply(&none, &resources), ERROR_UNAVAILABLE, "no cgroup");
}

static void rdma_limits_are_lines(void **state) {
    (void)state;
    struct cgroup_directory only = {(char *)"unified", directory};
    struct cgroup cgroup = {.unified = true, .directories = &only, .count = 1};
    file_put("cgroup.controllers", "rdma\n");
    file_put("rdma.max", "");
    struct oci_rdma devices[] = {
        {.device = (char *)"mlx5_1", .hca_handles = OPTIONAL(3), .hca_objects = OPTIONAL(UINT32_MAX)},
        {.device = (char *)"mlx4_0"}};
    struct oci_resources resources = {.rdma = devices, .rdma_count = 2};
    assert_no_error(cgroup_apply(&cgroup, &resources));
    assert_file("rdma.max", "mlx5_1 hca_handle=3 hca_object=max");
    file_put("cgroup.controllers", "cpu\n");
    assert_error(cgroup_apply(&cgroup, &resources), ERROR_UNAVAILABLE,
                 "linux.resources.rdma.mlx5_1 needs the rdma controller");
}

static void rdt_classes(void **state) {
    (void)state;
    memory_owned char *class = text_formatted("%s/box", directory);
    memory_owned char *monitoring = text_formatted("%s/mon_groups/box", class);
    /* A class of the container's own. */
    struct oci_intel_rdt own = {.l3_cache_schema = (char *)"L3:0=f",
                                .memory_bandwidth_schema = (char *)"MB:0=50"};
    string_list_owned struct string_list create = {0};
    assert_no_error(cgroup_rdt_intent_in(directory, &own, "box", &create));
    assert_int_equal(create.count, 1);
    assert_string_equal(create.items[0], class);
    assert_int_equal(mkdir(class, 0755), 0); /* resctrl fills a new directory with files */
    file_put("box/schemata", "");
    file_put("box/tasks", "");
    assert_no_error(cgroup_rdt_apply_in(directory, &own, "box", &create, 77));
    assert_file("box/schemata", "L3:0=f\nMB:0=50");
    assert_file("box/tasks", "77");

    /* One that is there must say the same, and is not ours to remove. */
    file_put("box/schemata", "    L3:0=f\n    MB:0=50\n");
    own.clos_id = (char *)"box";
    string_list_owned struct string_list none = {0};
    assert_no_error(cgroup_rdt_intent_in(directory, &own, "other", &none));
    assert_int_equal(none.count, 0);
    own.l3_cache_schema = (char *)"L3:0=1";
    assert_error(cgroup_rdt_intent_in(directory, &own, "other", &none), ERROR_INVALID, "has no line L3:0=1");
    struct oci_intel_rdt missing = {.clos_id = (char *)"absent"};
    assert_error(cgroup_rdt_intent_in(directory, &missing, "other", &none), ERROR_INVALID,
                 "linux.intelRdt.closID: there is no class absent");

    /* Monitoring has a group of its own below the class; "/" is everybody's class. */
    struct oci_intel_rdt counted = {.clos_id = (char *)"box", .enable_monitoring = true};
    assert_no_error(cgroup_rdt_intent_in(directory, &counted, "box", &none));
    assert_int_equal(none.count, 1);
    assert_string_equal(none.items[0], monitoring);
    struct oci_intel_rdt root = {.clos_id = (char *)"/"};
    file_put("tasks", "");
    string_list_owned struct string_list nothing = {0};
    assert_no_error(cgroup_rdt_intent_in(directory, &root, "box", &nothing));
    assert_int_equal(nothing.count, 0);
    assert_no_error(cgroup_rdt_apply_in(directory, &root, "box", &nothing, 78));
    assert_file("tasks", "78");
}

/* A directory that only looks like a cgroup is not touched. */
static void destroy_refuses_what_is_no_cgroup(void **state) {
    (void)state;
    memory_owned char *inside = text_formatted("%s/inside", directory);
    assert_int_equal(mkdir(inside, 0755), 0);
    string_list_owned struct string_list created = {0};
    string_list_append(&created, inside);
    assert_error(cgroup_destroy(&created), ERROR_REFUSED, "is not touched");
    assert_int_equal(access(inside, F_OK), 0);

    const char *const bad[] = {"/", "relative", "/sys/fs/cgroup/../cgroup/x", "/a/..", "/a/"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        string_list_owned struct string_list list = {0};
        string_list_append(&list, bad[i]);
        assert_error(cgroup_destroy(&list), ERROR_INVALID, "is not the path");
    }
    struct cgroup_directory only = {(char *)"unified", inside};
    (void)rmdir(inside);
    struct cgroup cgroup = {.unified = true, .directories = &only, .count = 1};
    string_list_owned struct string_list made = {0};
    assert_error(cgroup_make(&cgroup, &made), ERROR_UNAVAILABLE, "not in a cgroup file system");
    assert_int_equal(access(inside, F_OK), -1);
}

#define IN_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, directory_setup, directory_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hybrid_layout_lists_v1_then_v2),
        cmocka_unit_test(covered_mounts_do_not_count),
        cmocka_unit_test(no_cgroups_is_a_layout),
        cmocka_unit_test(bind_mount_root_is_taken_off_the_own_path),
        cmocka_unit_test(plan_places_each_form_of_path),
        cmocka_unit_test(plan_in_v2_stands_beside_the_caller),
        cmocka_unit_test(plan_never_resolves_to_a_root),
        cmocka_unit_test(plan_wants_the_systemd_flag_for_its_form),
        cmocka_unit_test(disabled_plans_nothing_at_all),
        cmocka_unit_test(crun_1721_runc_4772_shares_1024_is_weight_100),
        cmocka_unit_test(swap_is_what_is_beyond_the_limit),
        cmocka_unit_test(device_rules_later_ones_win),
        cmocka_unit_test(device_rules_base_can_be_denied),
        cmocka_unit_test(device_rules_are_checked),
        IN_DIRECTORY(v2_memory_writes_its_files),
        IN_DIRECTORY(v2_cpu_writes_its_files),
        IN_DIRECTORY(missing_file_names_field_and_controller),
        IN_DIRECTORY(v2_unified_is_validated),
        IN_DIRECTORY(v2_block_io_writes_its_files),
        IN_DIRECTORY(v1_block_io_writes_its_files),
        IN_DIRECTORY(controllers_are_enabled_down_the_path),
        IN_DIRECTORY(apply_in_v2_needs_the_controller),
        IN_DIRECTORY(network_is_of_v1),
        IN_DIRECTORY(rdt_classes),
        IN_DIRECTORY(rdma_limits_are_lines),
        IN_DIRECTORY(destroy_refuses_what_is_no_cgroup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
