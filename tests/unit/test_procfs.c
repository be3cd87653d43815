/* The only way to /proc, where the machine's own procfs is all there is (the kernel refuses a new one: --wrap
 * in Makefile.am) and something lies on it. In a mount namespace of this program. */
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
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "sys/calls.h"
#include "sys/procfs.h"

static bool refuses; /* a user namespace that sees a masked procfs may make none */
int __real_sys_fsopen(const char *type, unsigned flags);
int __wrap_sys_fsopen(const char *type, unsigned flags);
int __wrap_sys_fsopen(const char *type, unsigned flags) {
    if (!refuses)
        return __real_sys_fsopen(type, flags);
    errno = EPERM;
    return -1;
}

static char fake[] = "/tmp/procfs.XXXXXX"; /* what an image has at the place of /proc */

static void file_write(const char *path, const char *text) {
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void file_is(const char *path, const char *wanted) {
    char bytes[64] = "";
    fd_owned int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0 && read(fd, bytes, sizeof bytes - 1) >= 0);
    assert_string_equal(bytes, wanted);
}

static int set_up(void **state) {
    (void)state;
    refuses = false;
    if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mkdtemp(fake) == NULL || mount("tmpfs", fake, "tmpfs", 0, NULL) < 0)
        return 0; /* not root: skipped below */
    char path[128];
    snprintf(path, sizeof path, "%s/file", fake);
    file_write(path, "untouched");
    snprintf(path, sizeof path, "%s/self", fake);
    assert_int_equal(mkdir(path, 0755), 0);
    snprintf(path, sizeof path, "%s/self/oom_score_adj", fake);
    file_write(path, "untouched");
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    (void)!umount2(fake, MNT_DETACH);
    (void)!rmdir(fake);
    return 0;
}

static void needs_root(void) {
    if (geteuid() != 0 || access(fake, F_OK) != 0)
        skip();
}

static void refused(struct error *error, const char *part) {
    assert_non_null(error);
    assert_int_equal(error->kind, ERROR_REFUSED);
    if (strstr(error->message, part) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", part, error->message);
    error_free(error);
}

/* By path, each of these is written to. */
static void attack_works(const char *written) {
    file_write("/proc/self/oom_score_adj", "0");
    file_is(written, "0");
    file_write(written, "untouched");
}

static void cve_2019_16884_proc_is_no_procfs(void **state) {
    (void)state;
    needs_root();
    char file[128];
    snprintf(file, sizeof file, "%s/self/oom_score_adj", fake);
    assert_int_equal(mount(fake, "/proc", NULL, MS_BIND, NULL), 0);
    attack_works(file);
    refuses = true;
    struct procfs procfs = PROCFS_NONE;
    refused(procfs_open(PROCFS_WHOLE, &procfs),
            "/proc is not a procfs; nothing is written there (CVE-2019-16884)");
    assert_int_equal(procfs.fd, -1);
    /* One that is new does not care. */
    refuses = false;
    assert_null(procfs_open(PROCFS_WHOLE, &procfs));
    assert_int_equal(umount2("/proc", MNT_DETACH), 0);
    assert_null(procfs_write(&procfs, "self/oom_score_adj", "1"));
    file_is("/proc/self/oom_score_adj", "1\n");
    file_is(file, "untouched");
    procfs_close(&procfs);
}

static void cve_2023_28642_proc_is_a_part_of_a_procfs(void **state) {
    (void)state;
    needs_root();
    /* The type is right, the place is not: "self" would be another file. */
    assert_int_equal(mount("/proc/sys", "/proc", NULL, MS_BIND, NULL), 0);
    refuses = true;
    struct procfs procfs = PROCFS_NONE;
    struct error *error = procfs_open(PROCFS_WHOLE, &procfs);
    assert_int_equal(umount2("/proc", MNT_DETACH), 0);
    refused(error, "/proc is not a procfs");
    refuses = false;
}

static void cve_2025_52881_something_is_mounted_over_the_file(void **state) {
    (void)state;
    needs_root();
    char file[128], directory[128];
    snprintf(file, sizeof file, "%s/file", fake);
    snprintf(directory, sizeof directory, "%s/self", fake);
    assert_int_equal(mount(file, "/proc/self/oom_score_adj", NULL, MS_BIND, NULL), 0);
    attack_works(file);
    refuses = true;
    struct procfs procfs = PROCFS_NONE;
    assert_null(procfs_open(PROCFS_WHOLE, &procfs));
    refused(procfs_write(&procfs, "self/oom_score_adj", "0"),
            "/proc/self/oom_score_adj: something is mounted over it (CVE-2025-52881)");
    /* Another file of procfs is no better: this one would take nearly any word. */
    assert_int_equal(umount2("/proc/self/oom_score_adj", MNT_DETACH), 0);
    assert_int_equal(mount("/proc/self/comm", "/proc/self/oom_score_adj", NULL, MS_BIND, NULL), 0);
    refused(procfs_write(&procfs, "self/oom_score_adj", "0"), "something is mounted over it");
    assert_int_equal(umount2("/proc/self/oom_score_adj", MNT_DETACH), 0);
    assert_int_equal(mount(directory, "/proc/self/attr", NULL, MS_BIND, NULL), 0);
    refused(procfs_write(&procfs, "self/attr/oom_score_adj", "0"), "something is mounted over it");
    assert_int_equal(umount2("/proc/self/attr", MNT_DETACH), 0);
    assert_null(procfs_write(&procfs, "self/oom_score_adj", "2"));
    file_is("/proc/self/oom_score_adj", "2\n");
    file_is(file, "untouched");
    procfs_close(&procfs);
    refuses = false;
}

static void no_path_leads_out(void **state) {
    (void)state;
    needs_root();
    struct procfs procfs = PROCFS_NONE;
    assert_null(procfs_open(PROCFS_WHOLE, &procfs));
    static const char *const paths[] = {"self/root/etc/passwd", "self/cwd/x", "self/exe", "self/fd/0",
                                        "../etc/passwd",        "self/ns/net"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        int fd = -1;
        struct error *error = procfs_open_file(&procfs, paths[i], O_RDONLY, &fd);
        assert_non_null(error);
        assert_int_equal(fd, -1);
        error_free(error);
    }
    procfs_close(&procfs);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cve_2019_16884_proc_is_no_procfs),
        cmocka_unit_test(cve_2023_28642_proc_is_a_part_of_a_procfs),
        cmocka_unit_test(cve_2025_52881_something_is_mounted_over_the_file),
        cmocka_unit_test(no_path_leads_out),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
