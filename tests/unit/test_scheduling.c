/* Turns on the processor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "sys/scheduling.h"

static struct sys_sched_attributes attributes_now(void) {
    struct sys_sched_attributes attributes = {0};
    assert_int_equal(syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0), 0);
    return attributes;
}

/* Policy and nice value are a caller's, who may have lowered them. */
static void test_turn(void **state) {
    (void)state;
    const struct sched_param none = {0};
    assert_int_equal(sched_setscheduler(0, SCHED_BATCH, &none), 0);
    assert_int_equal(setpriority(PRIO_PROCESS, 0, 7), 0);
    assert_int_equal(sys_sched_set_turn(100000), 0);
    struct sys_sched_attributes now = attributes_now();
    assert_int_equal(now.policy, SCHED_BATCH);
    assert_int_equal(now.nice, 7);
    struct utsname kernel;
    int major = 0, minor = 0;
    assert_int_equal(uname(&kernel), 0);
    assert_int_equal(sscanf(kernel.release, "%d.%d", &major, &minor), 2);
    if (major > 6 || (major == 6 && minor >= 12))
        assert_int_equal(now.runtime, 100000);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_turn)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
