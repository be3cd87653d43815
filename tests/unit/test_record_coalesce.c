/* record/record.c and coalesce.c: what is written when, and that the accounts add up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "record/internal.h"
#include "record/siphash.h"

#define ASSERT_OK(expression)                                                                                \
    do {                                                                                                     \
        error_owned error_here = (expression);                                                               \
        if (error_here != NULL)                                                                              \
            fail_msg("%s", error_here->message);                                                             \
    } while (0)

static char directory[64];
static char path[128];

static int set_up(void **state) {
    (void)state;
    snprintf(directory, sizeof directory, "/tmp/test_record.XXXXXX");
    if (mkdtemp(directory) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/log.jsonl", directory);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    unlink(path);
    return rmdir(directory);
}

static struct record_log *open_log(void) {
    static char id[] = "c", run[] = "r";
    struct record_subject subject = {.container_id = id, .run_id = run, .log_path = path};
    struct record_log *log = NULL;
    ASSERT_OK(record_log_open(&subject, NULL, &log));
    return log;
}

struct sums {
    uint64_t lines, count, suppressed, denied_count, denied_suppressed;
    uint64_t counts[4096]; /* of each line, in order */
    size_t bytes;
};

static uint64_t number_after(const char *line, const char *key, uint64_t absent) {
    const char *found = strstr(line, key);
    return found ? strtoull(found + strlen(key), NULL, 10) : absent;
}

static struct sums *read_sums(void) {
    struct sums *sums = memory_zeroed(sizeof *sums);
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    while ((length = getline(&line, &capacity, file)) > 0) {
        uint64_t count = number_after(line, "\"count\":", 1);
        uint64_t suppressed = number_after(line, "\"suppressed\":", 0);
        bool denied = number_after(line, "\"action_id\":", 0) == 2;
        assert_in_range(sums->lines, 0, 4095);
        sums->counts[sums->lines++] = count;
        sums->count += count;
        sums->suppressed += suppressed;
        sums->denied_count += denied ? count : 0;
        sums->denied_suppressed += denied ? suppressed : 0;
        sums->bytes += (size_t)length;
    }
    free(line);
    fclose(file);
    return sums;
}

static struct record_event denial(const char *object) {
    return (struct record_event){.class_id = RECORD_FILE,
                                 .activity_id = 3,
                                 .action = RECORD_DENIED,
                                 .reason = "fs.write.read_only",
                                 .message = "write",
                                 .file_path = object};
}

static void repeats_are_written_at_powers_of_two(void **state) {
    (void)state;
    struct record_log *log = open_log();
    for (int i = 0; i < 100; i++) {
        struct record_event event = denial("/etc/passwd");
        event.time_ms = 1000 + i;
        ASSERT_OK(record_write(log, &event));
    }
    memory_owned struct sums *sums = read_sums();
    static const uint64_t expected[] = {1, 1, 2, 4, 8, 16, 32}; /* at 1, 2, 4, 8, 16, 32, 64 */
    assert_int_equal(sums->lines, 7);
    for (size_t i = 0; i < 7; i++)
        assert_int_equal(sums->counts[i], expected[i]);
    assert_in_range(record_log_timeout(log), 1, 1000);
    ASSERT_OK(record_log_flush(log, false)); /* its time has not come */
    memory_owned struct sums *early = read_sums();
    assert_int_equal(early->lines, 7);
    ASSERT_OK(record_log_flush(log, true));
    assert_int_equal(record_log_timeout(log), -1);
    memory_owned struct sums *after = read_sums();
    assert_int_equal(after->lines, 8);
    assert_int_equal(after->counts[7], 36);
    assert_int_equal(after->count, 100);
    assert_int_equal(after->suppressed, 0);
    record_log_close(log);
    char command[256];
    snprintf(command, sizeof command,
             "tail -n 1 %s | grep -q '\"count\":36,\"start_time\":1064,\"end_time\":1099'", path);
    assert_int_equal(system(command), 0);
}

static void the_timer_writes_what_is_owed(void **state) {
    (void)state;
    struct record_log *log = open_log();
    struct record_event event = denial("/a");
    assert_int_equal(record_log_timeout(log), -1);
    for (int i = 0; i < 3; i++)
        ASSERT_OK(record_write(log, &event));
    int left = record_log_timeout(log);
    assert_in_range(left, 900, 1000);
    usleep((useconds_t)(left + 5) * 1000);
    assert_int_equal(record_log_timeout(log), 0);
    ASSERT_OK(record_log_flush(log, false));
    assert_int_equal(record_log_timeout(log), -1);
    memory_owned struct sums *sums = read_sums();
    assert_int_equal(sums->lines, 3);
    assert_int_equal(sums->count, 3);
    /* The longer it goes on, the rarer: the next wait is twice as long. */
    ASSERT_OK(record_write(log, &event)); /* the fourth: a power of two */
    ASSERT_OK(record_write(log, &event));
    assert_in_range(record_log_timeout(log), 1900, 2000);
    record_log_close(log);
}

static void what_differs_is_not_merged(void **state) {
    (void)state;
    struct record_log *log = open_log();
    static char sh[] = "/bin/sh", cat[] = "/bin/cat";
    struct record_process one = {.pid = 1, .executable = sh, .uid = -1},
                          two = {.pid = 1, .executable = cat, .uid = -1},
                          same = {.pid = 2, .executable = sh, .uid = -1};
    struct record_event base = denial("/a"), event;
    base.process = &one;
    for (int i = 0; i < 3; i++)
        ASSERT_OK(record_write(log, &base));
    event = base, event.process = &two;
    ASSERT_OK(record_write(log, &event));
    event = base, event.file_path = "/b";
    ASSERT_OK(record_write(log, &event));
    event = base, event.reason = "fs.read.not_granted";
    ASSERT_OK(record_write(log, &event));
    event = base, event.action = RECORD_OBSERVED;
    ASSERT_OK(record_write(log, &event));
    event = base, event.activity_id = 4;
    ASSERT_OK(record_write(log, &event));
    event = base, event.process = &same; /* another process of the same program: a repeat, the fourth */
    ASSERT_OK(record_write(log, &event));
    memory_owned struct sums *sums = read_sums();
    static const uint64_t expected[] = {1, 1, 1, 1, 1, 1, 1, 2};
    assert_int_equal(sums->lines, 8);
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(sums->counts[i], expected[i]);
    record_log_close(log);
}

static void lifecycle_and_traces_are_not_coalesced(void **state) {
    (void)state;
    struct record_log *log = open_log();
    struct record_event event = {.class_id = RECORD_LIFECYCLE, .activity_id = 3, .action = RECORD_ALLOWED};
    struct record_event launch = {.class_id = RECORD_PROCESS, .activity_id = 1, .action = RECORD_OBSERVED};
    for (int i = 0; i < 5; i++) {
        ASSERT_OK(record_write(log, &event));
        ASSERT_OK(record_write(log, &launch));
    }
    memory_owned struct sums *sums = read_sums();
    assert_int_equal(sums->lines, 10);
    record_log_close(log);
}

static void the_end_comes_last(void **state) {
    (void)state;
    struct record_log *log = open_log();
    struct record_event event = denial("/a");
    for (int i = 0; i < 3; i++)
        ASSERT_OK(record_write(log, &event)); /* the third is owed */
    struct record_event end = {.class_id = RECORD_LIFECYCLE, .activity_id = 4, .action = RECORD_OBSERVED};
    ASSERT_OK(record_write(log, &end));
    ASSERT_OK(record_log_flush(log, true));
    record_log_close(log);
    memory_owned struct sums *sums = read_sums();
    assert_int_equal(sums->lines, 4);
    assert_int_equal(sums->denied_count, 3);
    char command[256];
    snprintf(command, sizeof command, "tail -n 1 %s | grep -q '\"class_uid\":6002'", path);
    assert_int_equal(system(command), 0);
}

/* DESIGN.md section 10: 50,000 denials in a burst, count exact. */
static void a_burst_of_one_key_is_exact(void **state) {
    (void)state;
    struct record_log *log = open_log();
    struct record_event event = denial("/a");
    for (int i = 0; i < 50000; i++)
        ASSERT_OK(record_write(log, &event));
    ASSERT_OK(record_log_flush(log, true));
    record_log_close(log);
    memory_owned struct sums *sums = read_sums();
    assert_int_equal(sums->count + sums->suppressed, 50000);
    assert_int_equal(sums->suppressed, 0);
    assert_in_range(sums->lines, 16, 20);
}

static void a_burst_of_ever_new_objects_is_exact_and_bounded(void **state) {
    (void)state;
    struct record_log *log = open_log();
    char object[5000];
    memset(object, 'x', sizeof object);
    object[sizeof object - 1] = '\0';
    for (int i = 0; i < 50000; i++) {
        snprintf(object, 16, "/%d", i);
        object[strlen(object)] = 'x';
        struct record_event event = denial(object);
        event.suppressed = i % 100 == 0;
        ASSERT_OK(record_write(log, &event));
    }
    ASSERT_OK(record_log_flush(log, true));
    record_log_close(log);
    memory_owned struct sums *sums = read_sums();
    assert_int_equal(sums->count + sums->suppressed, 50000 + 500);
    assert_int_equal(sums->denied_count + sums->denied_suppressed, 50000 + 500);
    assert_in_range(sums->lines, 400, 3000); /* burst, rate, and a table's worth at the end */
    assert_in_range(sums->suppressed, 1, 50000);
}

static void other_events_do_not_crowd_out_denials(void **state) {
    (void)state;
    struct record_log *log = open_log();
    struct record_event launch = {.class_id = RECORD_PROCESS, .activity_id = 1, .action = RECORD_OBSERVED};
    for (int i = 0; i < 5000; i++)
        ASSERT_OK(record_write(log, &launch));
    struct record_event event = denial("/secret");
    memory_owned struct sums *before = read_sums();
    ASSERT_OK(record_write(log, &event));
    memory_owned struct sums *after = read_sums();
    assert_int_equal(after->lines, before->lines + 1);
    assert_int_equal(after->denied_count, 1);
    assert_int_equal(after->denied_suppressed, 0); /* the launches' account stays its own */
    ASSERT_OK(record_log_flush(log, true));
    record_log_close(log);
    memory_owned struct sums *sums = read_sums();
    assert_int_equal(sums->count + sums->suppressed, 5001);
    assert_int_equal(sums->denied_count + sums->denied_suppressed, 1);
}

static void kernel_counts_are_reported_without_another_event(void **state) {
    (void)state;
    struct record_log *log = open_log();
    struct record_event event = denial("/a");
    for (int i = 0; i < 3; i++)
        ASSERT_OK(record_write(log, &event)); /* the third is owed */
    event.suppressed = 9;
    event.file_path = "/a";
    for (int i = 0; i < 2; i++)
        ASSERT_OK(record_write(log, &event)); /* the fourth carries 9; the fifth is owed, with its 9 */
    ASSERT_OK(record_log_flush(log, true));
    record_log_close(log);
    memory_owned struct sums *sums = read_sums();
    assert_int_equal(sums->count, 5);
    assert_int_equal(sums->suppressed, 18);
    assert_int_equal(sums->lines, 4);
}

/* The example of the SipHash paper, appendix A. */
static void siphash_is_siphash(void **state) {
    (void)state;
    unsigned char bytes[15];
    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)i;
    const uint64_t key[2] = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
    assert_true(siphash(key, bytes, sizeof bytes) == 0xa129ca6149be45e5);
}

#define WITH_FILE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_FILE(repeats_are_written_at_powers_of_two),
        WITH_FILE(the_timer_writes_what_is_owed),
        WITH_FILE(what_differs_is_not_merged),
        WITH_FILE(lifecycle_and_traces_are_not_coalesced),
        WITH_FILE(the_end_comes_last),
        WITH_FILE(a_burst_of_one_key_is_exact),
        WITH_FILE(a_burst_of_ever_new_objects_is_exact_and_bounded),
        WITH_FILE(other_events_do_not_crowd_out_denials),
        WITH_FILE(kernel_counts_are_reported_without_another_event),
        cmocka_unit_test(siphash_is_siphash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
