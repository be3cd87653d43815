/* cli/log*.c: which file is read, what is shown, and what a hostile log cannot do. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "cli/log.h"
#include "cli/log_parts.h"
#include "record/record.h"

#define ASSERT_OK(expression)                                                                                \
    do {                                                                                                     \
        error_owned error_here = (expression);                                                               \
        if (error_here != NULL)                                                                              \
            fail_msg("%s", error_here->message);                                                             \
    } while (0)

static char directory[64];

static char *log_file(const char *id) {
    static char path[256];
    snprintf(path, sizeof path, "%s/%s.jsonl", directory, id);
    return path;
}

static struct record_log *open_log(const char *id, const char *name, const char *run) {
    struct record_subject subject = {.container_id = (char *)id,
                                     .container_name = (char *)name,
                                     .run_id = (char *)run,
                                     .policy_name = (char *)"agent",
                                     .log_path = log_file(id)};
    struct record_log *log = NULL;
    ASSERT_OK(record_log_open(&subject, NULL, &log));
    return log;
}

static void write_denial(struct record_log *log, const char *reason, const char *object, const char *remedy) {
    static char name[] = "sh";
    struct record_process process = {.pid = 42, .name = name, .uid = -1};
    struct record_event event = {.class_id = RECORD_FILE,
                                 .activity_id = 3,
                                 .action = RECORD_DENIED,
                                 .reason = reason,
                                 .file_path = object,
                                 .remedy = remedy,
                                 .process = &process};
    ASSERT_OK(record_write(log, &event));
}

static void write_end(struct record_log *log) {
    struct record_event event = {.class_id = RECORD_LIFECYCLE,
                                 .activity_id = 4,
                                 .action = RECORD_OBSERVED,
                                 .message = "Ended with 7.",
                                 .has_exit_code = true,
                                 .exit_code = 7};
    ASSERT_OK(record_write(log, &event));
}

static void age(const char *id, int seconds) {
    struct timespec times[2] = {{.tv_sec = time(NULL) - seconds}, {.tv_sec = time(NULL) - seconds}};
    assert_int_equal(utimensat(AT_FDCWD, log_file(id), times, 0), 0);
}

static int set_up(void **state) {
    (void)state;
    snprintf(directory, sizeof directory, "/tmp/test_log.XXXXXX");
    if (mkdtemp(directory) == NULL)
        return -1;
    unsetenv("COLUMNS");
    struct record_log *log = open_log("aaa111", "first", "run-1");
    write_denial(log, "fs.write.read_only", "/etc/passwd", "filesystem.writable: [/etc]");
    for (int i = 0; i < 5; i++)
        write_denial(log, "fs.write.read_only", "/etc/shadow", "filesystem.writable: [/etc]");
    write_denial(log, "fs.decoy.opened", "/root/.ssh/id_rsa", NULL);
    ASSERT_OK(record_log_flush(log, true));
    write_end(log);
    record_log_close(log);
    log = open_log("aaa222", "second", "run-2");
    write_end(log);
    record_log_close(log);
    age("aaa222", 100);
    log = open_log("bbb333", "first", "run-3"); /* an older container of the same name */
    write_end(log);
    record_log_close(log);
    age("bbb333", 200);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", directory);
    return system(command);
}

/* Runs `pinfold log WORDS`; *output is what it printed. */
static struct error *run_log(const char *words, int *status, char **output) {
    char line[512], *argv[16] = {(char *)"log"};
    int argc = 1;
    snprintf(line, sizeof line, "%s --log-dir %s", words, directory);
    char *rest = NULL;
    for (char *word = strtok_r(line, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
        argv[argc++] = word;
    fflush(stdout);
    int kept = dup(STDOUT_FILENO);
    FILE *file = tmpfile();
    dup2(fileno(file), STDOUT_FILENO);
    struct error *error = log_command(argc, argv, status);
    fflush(stdout);
    dup2(kept, STDOUT_FILENO);
    close(kept);
    off_t size = lseek(fileno(file), 0, SEEK_END);
    *output = memory_zeroed((size_t)size + 1);
    assert_int_equal(pread(fileno(file), *output, (size_t)size, 0), size);
    fclose(file);
    return error;
}

static void check(const char *words, int expected_status, const char *const *present,
                  const char *const *absent) {
    memory_owned char *output = NULL;
    int status = -1;
    ASSERT_OK(run_log(words, &status, &output));
    assert_int_equal(status, expected_status);
    for (; present != NULL && *present != NULL; present++)
        if (strstr(output, *present) == NULL)
            fail_msg("%s: no \"%s\" in:\n%s", words, *present, output);
    for (; absent != NULL && *absent != NULL; absent++)
        if (strstr(output, *absent) != NULL)
            fail_msg("%s: found \"%s\" in:\n%s", words, *absent, output);
}
#define LIST(...)                                                                                            \
    (const char *const[]) {                                                                                  \
        __VA_ARGS__, NULL                                                                                    \
    }

static void check_error(const char *words, enum error_kind kind, const char *expected) {
    memory_owned char *output = NULL;
    int status = -1;
    error_owned error = run_log(words, &status, &output);
    assert_non_null(error);
    assert_int_equal(error->kind, kind);
    if (strstr(error->message, expected) == NULL)
        fail_msg("%s: no \"%s\" in: %s", words, expected, error->message);
    assert_string_equal(output, "");
}

static void a_file_is_found_by_id_prefix_name_and_age(void **state) {
    (void)state;
    check("aaa111", 0, LIST("run run-1"), NULL);
    check("aaa2", 0, LIST("run run-2"), NULL);
    check("second", 0, LIST("run run-2"), NULL);
    check("first", 0, LIST("run run-1"), LIST("run-3")); /* the newest of that name */
    check("--last", 0, LIST("run run-1"), NULL);
    check_error("aaa", ERROR_INVALID, "2 container IDs: aaa111, aaa222");
    check_error("nobody", ERROR_INVALID, "container does not exist: no log of \"nobody\" in /tmp/test_log.");
    check_error("no\x1b[31mbody", ERROR_INVALID, "\"no\\x1b[31mbody\"");
    check_error("../aaa111", ERROR_SYSTEM, "open the log ../aaa111");
}

static void usage_errors_name_the_forms(void **state) {
    (void)state;
    check_error("", ERROR_USAGE, "(ID | PREFIX | NAME | FILE | -)... | --last | --all");
    check_error("aaa111 --last", ERROR_USAGE, "either containers, or --last or --all");
    check_error("--last --all", ERROR_USAGE, "either --last or --all");
    check_error("--json --summary aaa111", ERROR_USAGE, "either --json or --summary");
    check_error("--bogus aaa111", ERROR_USAGE, "unknown option --bogus");
}

static void the_table_merges_repeats_and_shows_a_remedy_once(void **state) {
    (void)state;
    memory_owned char *output = NULL;
    int status = -1;
    ASSERT_OK(run_log("aaa111", &status, &output));
    char *shadow = strstr(output, "5  /etc/shadow\n");
    assert_non_null(shadow);
    assert_null(strstr(shadow + 10, "/etc/shadow"));
    char *remedy = strstr(output, "allow with  filesystem.writable: [/etc]\n");
    assert_non_null(remedy);
    assert_null(strstr(remedy + 1, "allow with"));
    assert_true(remedy < shadow);
    assert_non_null(strstr(output, "sh (42)"));
    assert_non_null(strstr(output, "ended"));
    assert_non_null(strstr(output, "exit code 7\n"));
    assert_non_null(strstr(output, "\n7 denied\n"));
    assert_null(strchr(output, '\x1b')); /* no colours in a pipe */
}

static void filters_and_exit_code(void **state) {
    (void)state;
    check("aaa111 --reason fs.decoy.*", 0, LIST("id_rsa", "1 denied"), LIST("shadow", "ended"));
    check("aaa111 --exit-code", LOG_EXIT_DENIED, NULL, NULL);
    check("aaa111 --exit-code --reason net.*", 0, LIST("nothing denied"), NULL);
    check("aaa222 --exit-code", 0, LIST("nothing denied"), NULL);
    check("aaa111 --run run-1", 0, LIST("7 denied"), NULL);
    check("aaa111 --json --exit-code --reason=fs.decoy.opened", LOG_EXIT_DENIED,
          LIST("{\"time\":", "\"status_detail\":\"fs.decoy.opened\""), LIST("shadow"));
    memory_owned char *output = NULL;
    int status = -1;
    error_owned error = run_log("aaa111 --run typo --exit-code", &status, &output);
    assert_non_null(error);
    assert_non_null(strstr(error->message, "no record of run \"typo\""));
}

static void json_lines_are_the_files_own(void **state) {
    (void)state;
    memory_owned char *output = NULL;
    int status = -1;
    ASSERT_OK(run_log("aaa111 --json", &status, &output));
    FILE *file = fopen(log_file("aaa111"), "re");
    char bytes[65536] = "";
    size_t length = fread(bytes, 1, sizeof bytes - 1, file);
    fclose(file);
    assert_int_equal(length, strlen(output));
    assert_memory_equal(bytes, output, length);
}

static void the_summary_counts_by_reason_and_object(void **state) {
    (void)state;
    memory_owned char *output = NULL;
    int status = -1;
    ASSERT_OK(run_log("aaa111 --summary", &status, &output));
    char *shadow = strstr(output, "    5  denied    fs.write.read_only  /etc/shadow\n");
    char *passwd = strstr(output, "    1  denied    fs.write.read_only  /etc/passwd\n");
    assert_non_null(shadow);
    assert_non_null(passwd);
    assert_true(shadow < passwd);
    assert_null(strstr(output, "container.ended")); /* how it ended is a sentence of its own */
    assert_non_null(strstr(output, "Ended with 7.\n"));
}

static void hostile_text_cannot_drive_a_terminal(void **state) {
    (void)state;
    /* Written by hand: a log that did not pass record/'s own escaping. */
    FILE *file = fopen(log_file("evil"), "we");
    fputs("{\"class_uid\":1001,\"action_id\":2,\"time\":1,\"status_detail\":\"a\\u001b[2J\",\"file\":{"
          "\"path\":\""
          "\xc2\x9b"
          "31m\xe2\x80\xae\\u0007\\r\\nfake "
          "row\"},\"actor\":{\"process\":{\"pid\":1,\"name\":\"\\u001b]0;x\\u0007\"}},"
          "\"unmapped\":{\"remedy\":\"x\\u001b[0m\"},\"metadata\":{\"correlation_uid\":\"\\u001bc\"}}\n"
          "not a record\n"
          "{\"class_uid\":1001,\"action_id\":2,\"count\":-5,\"file\":{\"path\":\"/torn\"}}",
          file); /* no newline */
    fclose(file);
    memory_owned char *output = NULL;
    int status = -1;
    ASSERT_OK(run_log("evil", &status, &output));
    for (const char *at = output; *at != '\0'; at++)
        assert_true(*at == '\n' || (unsigned char)*at >= 0x20);
    assert_null(strstr(output, "\xc2\x9b"));
    assert_null(strstr(output, "\xe2\x80\xae"));
    assert_null(strstr(output, "\nfake row"));
    assert_non_null(strstr(output, "\\u009b31m\\u202e\\x07\\x0d\\x0afake row"));
    assert_non_null(strstr(output, "/torn"));
    unlink(log_file("evil"));
}

static void every_byte_can_be_shown(void **state) {
    (void)state;
    char string[4] = "";
    for (unsigned a = 1; a < 256; a++)
        for (unsigned b = 0; b < 256; b++) {
            string[0] = (char)a;
            string[1] = (char)b;
            text_owned struct text text = {0};
            size_t width = log_show(string, &text);
            assert_in_range(width, 0, 8);
            for (size_t i = 0; i < text.length; i++)
                assert_true((unsigned char)text.data[i] >= 0x20 && text.data[i] != 0x7f);
        }
    text_owned struct text text = {0};
    assert_int_equal(log_show("\xe6\x97\xa5\xe6\x9c\xac x", &text), 6); /* two wide characters */
    assert_int_equal(log_show("\xff\xc0\xaf", &text), 12);
}

static void a_table_fits_its_width(void **state) {
    (void)state;
    char object[300];
    memset(object, 'o', sizeof object);
    object[0] = '/';
    object[sizeof object - 1] = '\0';
    struct record_log *log = open_log("wide", "wide", "run-9");
    write_denial(log, "fs.write.read_only", object, NULL);
    for (int i = 0; i < 4; i++)
        write_denial(log, "policy.annotation.ignored.and.more", "/x/\xe6\x97\xa5\xe6\x9c\xac", NULL);
    ASSERT_OK(record_log_flush(log, true));
    record_log_close(log);
    static const char *const widths[] = {"60", "80", "100", "200"};
    for (size_t w = 0; w < 4; w++) {
        setenv("COLUMNS", widths[w], 1);
        memory_owned char *output = NULL;
        int status = -1;
        ASSERT_OK(run_log("wide", &status, &output));
        char *rows = strchr(output, '\n') + 1; /* the heading may be longer */
        char *rest = NULL;
        for (char *line = strtok_r(rows, "\n", &rest); line != NULL && line[0] != '\0';
             line = strtok_r(NULL, "\n", &rest)) {
            text_owned struct text text = {0};
            size_t limit = strtoul(widths[w], NULL, 10) < 72 ? 72 : strtoul(widths[w], NULL, 10);
            if (log_show(line, &text) > limit)
                fail_msg("longer than %zu: %s", limit, line);
        }
    }
    unsetenv("COLUMNS");
    check("wide", 0, LIST(object), NULL); /* in a pipe nothing is cut */
    unlink(log_file("wide"));
}

static void follow_ends_with_the_run(void **state) {
    (void)state;
    struct record_log *log = open_log("follow", "follow", "run-5");
    write_denial(log, "fs.write.read_only", "/early", NULL);
    pid_t child = fork();
    if (child == 0) {
        usleep(300000);
        write_denial(log, "fs.write.read_only", "/late", NULL);
        usleep(300000);
        write_end(log);
        _exit(0);
    }
    alarm(20); /* a --follow that never ends fails here */
    check("follow --follow", 0, LIST("/early", "/late", "ended", "2 denied"), NULL);
    alarm(0);
    int status = -1;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    check("follow --follow --json", 0, LIST("/late"), NULL); /* has ended already */
    record_log_close(log);
    unlink(log_file("follow"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_found_by_id_prefix_name_and_age),
        cmocka_unit_test(usage_errors_name_the_forms),
        cmocka_unit_test(the_table_merges_repeats_and_shows_a_remedy_once),
        cmocka_unit_test(filters_and_exit_code),
        cmocka_unit_test(json_lines_are_the_files_own),
        cmocka_unit_test(the_summary_counts_by_reason_and_object),
        cmocka_unit_test(hostile_text_cannot_drive_a_terminal),
        cmocka_unit_test(every_byte_can_be_shown),
        cmocka_unit_test(a_table_fits_its_width),
        cmocka_unit_test(follow_ends_with_the_run),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
