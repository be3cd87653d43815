/* What is written to /proc/self/attr and when, without a kernel that has SELinux or AppArmor: the linker puts
 * the functions below in the place of the two that reach the kernel (Makefile.am, --wrap). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>

#include "base/text.h"
#include "process/keyring.h"
#include "process/lsm.h"

#define LABEL "system_u:system_r:container_t:s0:c1,c2"

static struct text journal; /* what happened, in its order */
static int join_errno, opened, write_errno;

struct error *__wrap_procfs_write(const struct procfs *procfs, const char *path, const char *value);
struct error *__wrap_procfs_open_file(const struct procfs *procfs, const char *path, int flags, int *out);
int __wrap_sys_keyctl_join_session(const char *name);

struct error *__wrap_procfs_write(const struct procfs *procfs, const char *path, const char *value) {
    text_format(&journal, "%d:%s=%s;", procfs->fd, path, strcmp(value, "\n") == 0 ? "(none)" : value);
    return write_errno != 0 ? error_system(write_errno, "write", "%s", path) : NULL;
}

struct error *__wrap_procfs_open_file(const struct procfs *procfs, const char *path, int flags, int *out) {
    text_format(&journal, "%d:open %s%s;", procfs->fd, path,
                (flags & O_ACCMODE) == O_WRONLY ? "" : " to read");
    *out = opened = memfd_create("attribute", MFD_CLOEXEC);
    return NULL;
}

int __wrap_sys_keyctl_join_session(const char *name) {
    text_format(&journal, "join %s;", name != NULL ? name : "(unnamed)");
    errno = join_errno;
    return join_errno != 0 ? -1 : 0;
}

static void journal_is(const char *wanted) {
    assert_string_equal(text_string(&journal), wanted);
    text_free(&journal);
}

static const struct procfs procfs = {7};

static void crun_687_session_keyring_has_the_label(void **state) {
    (void)state;
    struct oci_process process = {.selinux_label = (char *)LABEL};
    /* The keyring gets the label, and keys that the program makes do not: it is taken back. */
    assert_null(keyring_join("_ses.x", &procfs, &process));
    journal_is("7:self/attr/keycreate=" LABEL ";join _ses.x;7:self/attr/keycreate=(none);");
    /* exec's, too. */
    assert_null(keyring_join(NULL, &procfs, &process));
    journal_is("7:self/attr/keycreate=" LABEL ";join (unnamed);7:self/attr/keycreate=(none);");
    /* Also when no keyring could be made; and a kernel that takes no label is no reason to fail. */
    static const int passed_over[] = {ENOSYS, EDQUOT, EPERM};
    for (size_t i = 0; i < sizeof passed_over / sizeof *passed_over; i++) {
        join_errno = passed_over[i];
        write_errno = i == 0 ? EINVAL : 0;
        assert_null(keyring_join("_ses.x", &procfs, &process));
        journal_is("7:self/attr/keycreate=" LABEL ";join _ses.x;7:self/attr/keycreate=(none);");
    }
    write_errno = 0;
    join_errno = ENOMEM;
    struct error *error = keyring_join("_ses.x", &procfs, &process);
    assert_non_null(error);
    assert_int_equal(error->number, ENOMEM);
    error_free(error);
    journal_is("7:self/attr/keycreate=" LABEL ";join _ses.x;7:self/attr/keycreate=(none);");
    /* Without a label nothing is written. */
    join_errno = 0;
    assert_null(keyring_join("_ses.x", &procfs, &(struct oci_process){0}));
    journal_is("join _ses.x;");
}

static void attribute_is(int fd, const char *wanted) {
    char bytes[128] = "";
    assert_true(pread(fd, bytes, sizeof bytes - 1, 0) >= 0);
    assert_string_equal(bytes, wanted);
    close(fd);
}

static void labels_of_the_next_program(void **state) {
    (void)state;
    struct oci_process process = {.selinux_label = (char *)LABEL};
    struct lsm_attributes attributes;
    assert_true(lsm_wants_procfs(&process));
    assert_null(lsm_open(&procfs, &process, &attributes));
    journal_is("7:open self/attr/exec;");
    assert_int_equal(attributes.apparmor, -1);
    assert_int_equal(attributes.selinux, opened);
    int written = fcntl(attributes.selinux, F_DUPFD_CLOEXEC, 0);
    assert_null(lsm_apply(&attributes, &process));
    assert_int_equal(attributes.selinux, -1); /* closed: the program does not get it */
    attribute_is(written, LABEL);
    /* AppArmor's takes a command; under no_new_privs in a confined process the profile can only be added. */
    process = (struct oci_process){.apparmor_profile = (char *)"docker-default"};
    for (int stack = 0; stack < 2; stack++) {
        attributes = (struct lsm_attributes){memfd_create("attribute", MFD_CLOEXEC), -1, stack != 0};
        written = fcntl(attributes.apparmor, F_DUPFD_CLOEXEC, 0);
        assert_null(lsm_apply(&attributes, &process));
        attribute_is(written, stack ? "stack docker-default" : "exec docker-default");
    }
    /* What the kernel refuses stops the container, with the field's name. */
    attributes = (struct lsm_attributes){-1, open("/dev/full", O_WRONLY | O_CLOEXEC), false};
    process = (struct oci_process){.selinux_label = (char *)LABEL};
    struct error *error = lsm_apply(&attributes, &process);
    assert_non_null(error);
    assert_non_null(strstr(error->message, "process.selinuxLabel \"" LABEL "\""));
    error_free(error);
    /* Nothing asked for: nothing opened, nothing written. */
    process = (struct oci_process){0};
    assert_false(lsm_wants_procfs(&process));
    assert_null(lsm_open(&procfs, &process, &attributes));
    assert_null(lsm_apply(&attributes, &process));
    journal_is("");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crun_687_session_keyring_has_the_label),
        cmocka_unit_test(labels_of_the_next_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
