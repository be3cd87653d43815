/* record/: each class is valid OCSF, also with hostile strings; lines are bounded; the file and its sequence.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <yajl/yajl_tree.h>

#include "base/memory.h"
#include "base/text.h"
#include "record/internal.h"
#include "record/reasons.h"

#define ASSERT_OK(expression)                                                                                \
    do {                                                                                                     \
        error_owned error_here = (expression);                                                               \
        if (error_here != NULL)                                                                              \
            fail_msg("%s", error_here->message);                                                             \
    } while (0)

static char directory[64];

static int set_up(void **state) {
    (void)state;
    snprintf(directory, sizeof directory, "/tmp/test_record.XXXXXX");
    return mkdtemp(directory) ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", directory);
    return system(command);
}

static struct record_subject subject_named(const char *file) {
    static char path[128];
    snprintf(path, sizeof path, "%s/new/%s.jsonl", directory, file);
    return (struct record_subject){.container_id = "c0ffee",
                                   .container_name = "agent",
                                   .image = "localhost/image",
                                   .image_digest = "sha256:00ff",
                                   .pod_uuid = "12345678-1234-1234-1234-123456789abc",
                                   .run_id = "run-1",
                                   .hostname = "machine",
                                   .policy_name = "agent",
                                   .policy_digest = "abcd",
                                   .log_path = path};
}

static char *read_file(const char *path) {
    struct text text = {0};
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    char buffer[65536];
    size_t got;
    while ((got = fread(buffer, 1, sizeof buffer, file)) > 0)
        text_append_bytes(&text, buffer, got);
    fclose(file);
    return text_take(&text);
}

static size_t count_of(const char *haystack, const char *needle) {
    size_t count = 0;
    for (const char *at = haystack; (at = strstr(at, needle)) != NULL; at++)
        count++;
    return count;
}

static const char *check_ocsf_path(char *buffer, size_t size) {
    const char *named = getenv("CHECK_OCSF");
    const char *source = getenv("srcdir");
    snprintf(buffer, size, "%s/../shared/bin/check-ocsf", source ? source : ".");
    return named ? named : buffer;
}

/* Runs the schema's checker, or skips with the reason. */
static void check_ocsf(const char *file, int records) {
    char buffer[512], command[1024], expected[64], line[4096] = "", output[8192] = "";
    const char *checker = check_ocsf_path(buffer, sizeof buffer);
    if (access(checker, X_OK) != 0) {
        print_message("skipped: no schema checker at %s (set CHECK_OCSF)\n", checker);
        skip();
    }
    snprintf(command, sizeof command, "%s %s", checker, file);
    FILE *pipe = popen(command, "re");
    assert_non_null(pipe);
    for (size_t used = 0; fgets(line, sizeof line, pipe) && used < sizeof output; used = strlen(output))
        snprintf(output + used, sizeof output - used, "%s", line);
    int status = pclose(pipe);
    snprintf(expected, sizeof expected, "%d records, 0 faults\n", records);
    assert_string_equal(output, expected);
    assert_int_equal(status, 0);
}

static struct record_process example_process(void) {
    static char name[] = "sh", executable[] = "/bin/busybox",
                line[] = "sh -c curl --token abc https://u:p@h/";
    return (struct record_process){4242, name, executable, line, 1000};
}

static const struct record_event examples[] = {
    {.class_id = RECORD_FILE, .activity_id = 3, .reason = "fs.write.read_only", .file_path = "/etc/passwd"},
    {.class_id = RECORD_FILE,
     .activity_id = 14,
     .reason = "fs.decoy.opened",
     .file_path = "/root/.ssh/id_rsa"},
    {.class_id = RECORD_PROCESS,
     .activity_id = 99,
     .activity_name = "mount",
     .reason = "syscall.not_allowed"},
    {.class_id = RECORD_PROCESS, .activity_id = 1},
    {.class_id = RECORD_PROCESS, .activity_id = 2, .has_exit_code = true, .exit_code = 137},
    {.class_id = RECORD_NETWORK,
     .activity_id = 5,
     .reason = "net.address.literal",
     .address = "192.0.2.1",
     .port = 443,
     .source_address = "10.0.0.2",
     .source_port = 40000,
     .protocol = "tcp",
     .protocol_number = 6},
    {.class_id = RECORD_NETWORK,
     .activity_id = 5,
     .reason = "net.protocol.not_allowed",
     .address = "2001:db8::1",
     .protocol = "icmp6",
     .protocol_number = 58},
    {.class_id = RECORD_NETWORK,
     .activity_id = 1,
     .subject = "host.example",
     .address = "::ffff:192.0.2.1",
     .port = 443,
     .route = "npm"},
    {.class_id = RECORD_DNS, .activity_id = 2, .reason = "dns.name.not_allowed", .subject = "evil.example"},
    {.class_id = RECORD_FINDING,
     .activity_id = 1,
     .reason = "credential.env.removed",
     .subject = "GITHUB_TOKEN",
     .exec_id = "exec-1"},
    {.class_id = RECORD_LIFECYCLE, .activity_id = 3},
    {.class_id = RECORD_LIFECYCLE, .activity_id = 99, .activity_name = "Create"},
    {.class_id = RECORD_LIFECYCLE, .activity_id = 4, .has_exit_code = true, .exit_code = 1},
    {.class_id = RECORD_POLICY, .activity_id = 1},
};
#define EXAMPLES (sizeof examples / sizeof examples[0])

static void every_class_is_valid(void **state) {
    (void)state;
    struct record_subject subject = subject_named("valid");
    struct record_log *log = NULL;
    ASSERT_OK(record_log_open(&subject, NULL, &log));
    struct record_process process = example_process();
    for (int action = RECORD_ALLOWED; action <= RECORD_OBSERVED; action++)
        for (int known = 0; known < 2; known++)
            for (size_t i = 0; i < EXAMPLES; i++) {
                struct record_event event = examples[i];
                event.action = (enum record_action)action;
                event.process = known ? &process : NULL;
                event.message = "a sentence";
                event.rule = "filesystem.default: deny";
                event.rule_origin = "built-in agent";
                event.remedy = known ? "filesystem.writable: [/etc]" : NULL;
                event.suppressed = i == 3 ? 7 : 0;
                ASSERT_OK(record_write(log, &event));
            }
    record_log_close(log);
    check_ocsf(subject.log_path, 2 * 3 * EXAMPLES);
}

/* A subject and an event whose every string is `string`. */
static void fill_with(char *string, struct record_subject *subject, struct record_process *process,
                      struct record_event *event) {
    char *path = subject->log_path;
    *subject = (struct record_subject){string, string, string, string, string, string, string, string,
                                       string, string, path,   0,      0,      NULL,   NULL};
    *process = (struct record_process){4242, string, string, string, 1000};
    event->message = event->reason = event->rule = event->rule_origin = event->remedy = event->exec_id =
        string;
    event->file_path = event->subject = event->address = event->source_address = event->protocol = string;
    event->route = event->activity_name = string;
    event->process = process;
}

static void hostile_strings_stay_valid_and_bounded(void **state) {
    (void)state;
    static char all_bytes[256], controls[9000], invalid[9000], quotes[9000], plain[9000];
    for (int i = 0; i < 255; i++)
        all_bytes[i] = (char)(i + 1);
    memset(controls, 0x1b, sizeof controls - 1);
    memset(invalid, 0xff, sizeof invalid - 1);
    memset(quotes, '"', sizeof quotes - 1);
    memset(plain, 'x', sizeof plain - 1);
    static char csi[] = "\xc2\x9b"
                        "31m \xe2\x80\xae reversed \xed\xa0\x80 \xf4\x90\x80\x80 \xc0\xaf";
    static char forged[] = "\"}}\n{\"time\":1,\"metadata\":{\"correlation_uid\":\"run-1\",\"sequence\":99}}";
    static char empty[] = "";
    char *const strings[] = {all_bytes, controls, invalid, quotes, plain, csi, forged, empty};
    struct record_subject subject = subject_named("hostile");
    int written = 0;
    for (size_t s = 0; s < sizeof strings / sizeof strings[0]; s++) {
        for (size_t i = 0; i < EXAMPLES; i++) {
            struct record_event event = examples[i];
            struct record_process process;
            fill_with(strings[s], &subject, &process, &event);
            event.action = RECORD_DENIED;
            /* The end writes a suppressed count before itself. */
            event.suppressed = event.class_id == RECORD_LIFECYCLE ? 0 : UINT64_MAX / 2;
            struct record_log *log = NULL;
            ASSERT_OK(record_log_open(&subject, NULL, &log));
            ASSERT_OK(record_write(log, &event));
            record_log_close(log);
            written++;
        }
    }
    memory_owned char *text = read_file(subject.log_path);
    size_t longest = 0, lines = 0;
    for (char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1, lines++)
        if ((size_t)(end + 1 - line) > longest)
            longest = (size_t)(end + 1 - line);
    assert_int_equal(lines, written);
    assert_in_range(longest, RECORD_LINE_MAX / 2, RECORD_LINE_MAX);
    for (const char *at = text; *at != '\0'; at++)
        assert_true(*at == '\n' || (unsigned char)*at >= 0x20);
    assert_null(strstr(text, "\xc2\x9b"));
    assert_null(strstr(text, "\xe2\x80\xae"));
    assert_non_null(strstr(text, "\\u009b31m \\u202e reversed"));
    assert_non_null(strstr(text, "\"is_truncated\":true"));
    check_ocsf(subject.log_path, written);
}

static void secrets_are_redacted(void **state) {
    (void)state;
    struct record_subject subject = subject_named("secrets");
    struct record_log *log = NULL;
    ASSERT_OK(record_log_open(&subject, NULL, &log));
    struct record_process process = example_process();
    struct record_event event = {.class_id = RECORD_FILE,
                                 .activity_id = 2,
                                 .action = RECORD_DENIED,
                                 .process = &process,
                                 .message = "read of https://user:hunter2@h",
                                 .file_path = "/x/ghp_abcdefghij0123"};
    ASSERT_OK(record_write(log, &event));
    record_log_close(log);
    memory_owned char *text = read_file(subject.log_path);
    assert_non_null(strstr(text, "\"cmd_line\":\"sh -c curl --token [redacted] https://u:[redacted]@h/\""));
    assert_non_null(strstr(text, "https://user:[redacted]@h"));
    assert_non_null(strstr(text, "\"path\":\"/x/ghp_[redacted]\""));
    assert_null(strstr(text, "hunter2"));
}

static const char *text_at(yajl_val tree, const char **path) {
    yajl_val value = yajl_tree_get(tree, path, yajl_t_string);
    return value ? YAJL_GET_STRING(value) : "(absent)";
}
#define TEXT_AT(tree, ...) text_at(tree, (const char *[]){__VA_ARGS__, NULL})
#define NUMBER_AT(tree, ...)                                                                                 \
    YAJL_GET_INTEGER(yajl_tree_get(tree, (const char *[]){__VA_ARGS__, NULL}, yajl_t_number))

static void fields_are_where_the_design_says(void **state) {
    (void)state;
    struct record_subject subject = subject_named("fields");
    struct record_log *log = NULL;
    ASSERT_OK(record_log_open(&subject, NULL, &log));
    struct record_process process = example_process();
    struct record_event event = examples[0];
    event.action = RECORD_DENIED;
    event.process = &process;
    event.message = "write";
    event.rule = "filesystem.default: deny";
    event.rule_origin = "built-in agent";
    event.remedy = "filesystem.writable: [/etc]";
    event.exec_id = "e1";
    event.route = "npm";
    event.suppressed = 5;
    event.time_ms = 1700000000123;
    ASSERT_OK(record_write(log, &event));
    record_log_close(log);
    memory_owned char *text = read_file(subject.log_path);
    yajl_val tree = yajl_tree_parse(text, NULL, 0);
    assert_non_null(tree);
    assert_int_equal(NUMBER_AT(tree, "class_uid"), 1001);
    assert_int_equal(NUMBER_AT(tree, "type_uid"), 100103);
    assert_int_equal(NUMBER_AT(tree, "action_id"), 2);
    assert_int_equal(NUMBER_AT(tree, "disposition_id"), 2);
    assert_int_equal(NUMBER_AT(tree, "time"), 1700000000123);
    assert_int_equal(NUMBER_AT(tree, "metadata", "sequence"), 1);
    assert_int_equal(NUMBER_AT(tree, "unmapped", "suppressed"), 5);
    assert_int_equal(NUMBER_AT(tree, "actor", "process", "pid"), 4242);
    assert_string_equal(TEXT_AT(tree, "metadata", "version"), "1.8.0");
    assert_string_equal(TEXT_AT(tree, "metadata", "correlation_uid"), "run-1");
    assert_string_equal(TEXT_AT(tree, "metadata", "product", "name"), "pinfold");
    assert_string_equal(TEXT_AT(tree, "device", "hostname"), "machine");
    assert_string_equal(TEXT_AT(tree, "actor", "process", "name"), "sh");
    assert_string_equal(TEXT_AT(tree, "actor", "process", "file", "path"), "/bin/busybox");
    assert_string_equal(TEXT_AT(tree, "actor", "process", "user", "uid"), "1000");
    assert_string_equal(TEXT_AT(tree, "actor", "process", "container", "uid"), "c0ffee");
    assert_string_equal(TEXT_AT(tree, "actor", "process", "container", "name"), "agent");
    assert_string_equal(TEXT_AT(tree, "actor", "process", "container", "runtime"), "pinfold");
    assert_string_equal(TEXT_AT(tree, "actor", "process", "container", "image", "uid"), "sha256:00ff");
    assert_string_equal(TEXT_AT(tree, "actor", "process", "container", "pod_uuid"), subject.pod_uuid);
    assert_string_equal(TEXT_AT(tree, "status_detail"), "fs.write.read_only");
    assert_string_equal(TEXT_AT(tree, "message"), "write");
    assert_string_equal(TEXT_AT(tree, "policy", "name"), "agent");
    assert_string_equal(TEXT_AT(tree, "policy", "uid"), "abcd");
    assert_string_equal(TEXT_AT(tree, "firewall_rule", "name"), "filesystem.default: deny");
    assert_string_equal(TEXT_AT(tree, "firewall_rule", "desc"), "built-in agent");
    assert_string_equal(TEXT_AT(tree, "file", "path"), "/etc/passwd");
    assert_string_equal(TEXT_AT(tree, "file", "name"), "passwd");
    assert_string_equal(TEXT_AT(tree, "unmapped", "remedy"), "filesystem.writable: [/etc]");
    assert_string_equal(TEXT_AT(tree, "unmapped", "exec_id"), "e1");
    assert_string_equal(TEXT_AT(tree, "unmapped", "route"), "npm");
    yajl_tree_free(tree);
}

static void sequence_continues_in_the_file(void **state) {
    (void)state;
    struct record_subject subject = subject_named("sequence");
    struct record_event event = {.class_id = RECORD_LIFECYCLE, .activity_id = 3, .action = RECORD_ALLOWED};
    struct record_log *first = NULL, *second = NULL, *other = NULL;
    ASSERT_OK(record_log_open(&subject, NULL, &first));
    ASSERT_OK(record_write(first, &event));
    ASSERT_OK(record_log_open(&subject, NULL, &second)); /* create and exec beside the warden */
    ASSERT_OK(record_write(second, &event));
    ASSERT_OK(record_write(first, &event));
    ASSERT_OK(record_write(second, &event));
    struct record_subject run_two = subject;
    run_two.run_id = "run-2";
    ASSERT_OK(record_log_open(&run_two, NULL, &other));
    ASSERT_OK(record_write(other, &event));
    ASSERT_OK(record_write(first, &event));
    record_log_close(first);
    record_log_close(second);
    record_log_close(other);
    memory_owned char *text = read_file(subject.log_path);
    char expected[64];
    for (int i = 1; i <= 5; i++) {
        snprintf(expected, sizeof expected, "\"run-1\",\"sequence\":%d}", i);
        assert_int_equal(count_of(text, expected), 1);
    }
    assert_int_equal(count_of(text, "\"run-2\",\"sequence\":1}"), 1);
    check_ocsf(subject.log_path, 6);
}

static void sequence_rises_under_concurrent_writers(void **state) {
    (void)state;
    for (int shared = 0; shared < 2; shared++) {
        struct record_subject subject = subject_named(shared ? "shared" : "concurrent");
        uint64_t *counter = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        assert_ptr_not_equal(counter, MAP_FAILED);
        pid_t children[3];
        for (int c = 0; c < 3; c++) {
            children[c] = fork();
            if (children[c] != 0)
                continue;
            struct record_log *log = NULL;
            struct record_event event = {
                .class_id = RECORD_LIFECYCLE, .activity_id = 3, .action = RECORD_ALLOWED};
            struct error *error = record_log_open(&subject, shared ? counter : NULL, &log);
            for (int i = 0; i < 50 && error == NULL; i++)
                error = record_write(log, &event);
            _exit(error != NULL);
        }
        for (int c = 0; c < 3; c++) {
            int status = -1;
            waitpid(children[c], &status, 0);
            assert_int_equal(status, 0);
        }
        memory_owned char *text = read_file(subject.log_path);
        assert_int_equal(count_of(text, "\n"), 150);
        assert_int_equal(count_of(text, "\"sequence\":150}"), 1); /* no number twice, none left out */
        munmap(counter, 4096);
        check_ocsf(subject.log_path, 150);
    }
}

static void shared_counter_is_used(void **state) {
    (void)state;
    struct record_subject subject = subject_named("counter");
    struct record_event event = {.class_id = RECORD_LIFECYCLE, .activity_id = 3, .action = RECORD_ALLOWED};
    uint64_t counter = 41;
    struct record_log *log = NULL;
    ASSERT_OK(record_log_open(&subject, &counter, &log));
    ASSERT_OK(record_write(log, &event));
    record_log_close(log);
    assert_int_equal(counter, 42);
    memory_owned char *text = read_file(subject.log_path);
    assert_non_null(strstr(text, "\"sequence\":42}"));
}

static void torn_line_is_ended(void **state) {
    (void)state;
    struct record_subject subject = subject_named("torn");
    struct record_event event = {.class_id = RECORD_LIFECYCLE, .activity_id = 3, .action = RECORD_ALLOWED};
    struct record_log *log = NULL;
    ASSERT_OK(record_log_open(&subject, NULL, &log));
    record_log_close(log);
    FILE *file = fopen(subject.log_path, "ae");
    fputs("{\"time\":1", file);
    fclose(file);
    ASSERT_OK(record_log_open(&subject, NULL, &log));
    ASSERT_OK(record_write(log, &event));
    record_log_close(log);
    memory_owned char *text = read_file(subject.log_path);
    assert_int_equal(strncmp(text, "{\"time\":1\n{\"time\":", 18), 0);
}

/* A write grows the file page by page: who opens it in between sees half a line, which is no torn one. */
static void half_a_line_of_another_writer_is_waited_for(void **state) {
    (void)state;
    struct record_subject subject = subject_named("half");
    struct record_event event = {.class_id = RECORD_LIFECYCLE, .activity_id = 3, .action = RECORD_ALLOWED};
    struct record_log *first = NULL, *second = NULL;
    ASSERT_OK(record_log_open(&subject, NULL, &first));
    ASSERT_OK(record_write(first, &event));
    record_log_close(first);
    memory_owned char *line = read_file(subject.log_path);
    const char *cut = strstr(line, "correlation_uid");
    assert_non_null(cut);
    assert_int_equal(truncate(subject.log_path, cut - line), 0);
    ASSERT_OK(record_log_open(&subject, NULL, &second));
    FILE *file = fopen(subject.log_path, "ae");
    fputs(cut, file);
    fclose(file);
    ASSERT_OK(record_write(second, &event));
    record_log_close(second);
    memory_owned char *text = read_file(subject.log_path);
    assert_int_equal(count_of(text, "\n"), 2);
    assert_int_equal(count_of(text, "\"sequence\":2}"), 1);
}

/* flock asks for no write permission: whoever may read the log could stop the container's answers for ever.
 */
static void a_reader_that_holds_the_lock_is_waited_for_once(void **state) {
    (void)state;
    struct record_subject subject = subject_named("held");
    struct record_event event = {.class_id = RECORD_LIFECYCLE, .activity_id = 3, .action = RECORD_ALLOWED};
    struct record_log *log = NULL;
    ASSERT_OK(record_log_open(&subject, NULL, &log));
    FILE *reader = fopen(subject.log_path, "re");
    assert_int_equal(flock(fileno(reader), LOCK_EX), 0);
    for (int i = 0; i < 100; i++) /* if each waited the test would take minutes */
        ASSERT_OK(record_write(log, &event));
    record_log_close(log);
    memory_owned char *text = read_file(subject.log_path);
    fclose(reader);
    assert_int_equal(count_of(text, "\n"), 100);
    assert_int_equal(count_of(text, "\"sequence\":100}"), 1);
}

static void file_is_private(void **state) {
    (void)state;
    struct record_subject subject = subject_named("private");
    struct record_log *log = NULL;
    mode_t mask = umask(0);
    ASSERT_OK(record_log_open(&subject, NULL, &log));
    umask(mask);
    record_log_close(log);
    struct stat status;
    assert_int_equal(stat(subject.log_path, &status), 0);
    assert_int_equal(status.st_mode & 07777, geteuid() == 0 ? 0640 : 0600);
    char parent[128];
    snprintf(parent, sizeof parent, "%s/new", directory);
    assert_int_equal(stat(parent, &status), 0);
    assert_int_equal(status.st_mode & 0777, geteuid() == 0 ? 0750 : 0700);
}

static void expect_refused(const char *path, const char *words) {
    struct record_subject subject = subject_named("x");
    subject.log_path = (char *)path;
    struct record_log *log = NULL;
    error_owned error = record_log_open(&subject, NULL, &log);
    assert_non_null(error);
    assert_null(log);
    assert_non_null(strstr(error->message, words));
}

static void links_and_pipes_are_refused(void **state) {
    (void)state;
    char link_path[128], pipe_path[128], target[128];
    snprintf(link_path, sizeof link_path, "%s/link.jsonl", directory);
    snprintf(pipe_path, sizeof pipe_path, "%s/pipe.jsonl", directory);
    snprintf(target, sizeof target, "%s/target", directory);
    assert_int_equal(symlink(target, link_path), 0);
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    expect_refused(link_path, "open the log");
    expect_refused(pipe_path, "not a regular file");
    expect_refused("relative.jsonl", "absolute path");
    assert_int_equal(access(target, F_OK), -1);
}

static void a_failed_write_is_counted(void **state) {
    (void)state;
    struct record_subject subject = subject_named("full");
    struct record_event event = {.class_id = RECORD_LIFECYCLE, .activity_id = 3, .action = RECORD_DENIED};
    struct record_log *log = NULL;
    ASSERT_OK(record_log_open(&subject, NULL, &log));
    /* No file of this process may grow: as on a disk that is full. */
    struct rlimit before, none;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    error_owned error = record_write(log, &event);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_non_null(error);
    assert_int_equal(error->number, EFBIG);
    assert_in_range(record_log_timeout(log), 1, 1000);
    ASSERT_OK(record_write(log, &event));
    assert_int_equal(record_log_timeout(log), -1);
    record_log_close(log);
    memory_owned char *text = read_file(subject.log_path);
    assert_int_equal(count_of(text, "\n"), 2);
    assert_non_null(strstr(text, "\"suppressed\":1}"));
    assert_non_null(strstr(text, "1 records could not be written (write "));
    assert_int_equal(count_of(text, "\"count\":0"), 1);
}

static void process_is_read(void **state) {
    (void)state;
    int status;
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/sleep", "sleep", "60", "0.1", NULL);
        _exit(127);
    }
    struct record_process process;
    for (int i = 0; i < 500; i++) {
        record_process_read(child, &process);
        if (process.name != NULL && strcmp(process.name, "sleep") == 0 && process.command_line != NULL)
            break;
        record_process_clear(&process);
        usleep(10000);
    }
    assert_int_equal(process.pid, child);
    assert_string_equal(process.name, "sleep");
    assert_non_null(strstr(process.executable, "/sleep"));
    assert_string_equal(process.command_line, "sleep 60 0.1");
    assert_int_equal(process.uid, getuid());
    record_process_clear(&process);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    record_process_read(child, &process);
    assert_null(process.name);
    assert_null(process.executable);
    assert_null(process.command_line);
    assert_int_equal(process.uid, -1);
}

static void default_paths(void **state) {
    (void)state;
    memory_owned char *root = record_log_path("abc", true, "/home/u");
    memory_owned char *user = record_log_path("abc", false, "/home/u");
    assert_string_equal(root, "/var/log/pinfold/abc.jsonl");
    assert_string_equal(user, "/home/u/.local/state/pinfold/abc.jsonl");
    assert_null(record_log_path("a/b", true, NULL));
    assert_null(record_log_path("..", true, NULL));
    assert_null(record_log_path("", true, NULL));
}

static void names_of_logs(void **state) {
    (void)state;
    bool current;
    assert_true(record_is_log_name("abc.jsonl", &current));
    assert_true(current);
    assert_true(record_is_log_name("a.jsonl.b.jsonl.12", &current));
    assert_false(current);
    static const char *const others[] = {".jsonl",         ".x.jsonl",         "abc.jsonl.",
                                         "abc.jsonl.1.gz", "abc.jsonl.123456", "abc.jsonl.foreign-0",
                                         "abc.jsonlx",     "abc.json",         ""};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_false(record_is_log_name(others[i], &current));
}

static void a_clock_that_is_set_is_told_from_one_that_drifts(void **state) {
    (void)state;
    struct record_clock clock = {0};
    assert_int_equal(record_clock_step(&clock, 1000000000, 5000), 0);
    assert_int_equal(record_clock_step(&clock, 1000010100, 15000), 0); /* 100 ms in ten seconds */
    assert_int_equal(record_clock_step(&clock, 996420100, 25000), -3600000);
    assert_int_equal(record_clock_step(&clock, 996430100, 35000), 0);
    assert_int_equal(record_clock_step(&clock, 996439100 + 86400000, 44000), 86400000);
    assert_int_equal(record_clock_step(&clock, 1082889100, 94000), 0);
}

static void a_refusal_is_recorded_by_the_code_in_its_message(void **state) {
    (void)state;
    assert_string_equal(record_reason_of("mount.socket.refused: mounts[3]: no"), "mount.socket.refused");
    assert_string_equal(record_reason_of("network wall: net.namespace.shared: another policy"),
                        "net.namespace.shared");
    /* a name that somebody else chose is no code */
    assert_string_equal(record_reason_of("container warden.lost: policy x confines nothing"),
                        "policy.refused");
    assert_string_equal(record_reason_of("no code at all"), "policy.refused");
    assert_string_equal(record_reason_of(""), "policy.refused");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_class_is_valid),
        cmocka_unit_test(hostile_strings_stay_valid_and_bounded),
        cmocka_unit_test(secrets_are_redacted),
        cmocka_unit_test(fields_are_where_the_design_says),
        cmocka_unit_test(sequence_continues_in_the_file),
        cmocka_unit_test(sequence_rises_under_concurrent_writers),
        cmocka_unit_test(shared_counter_is_used),
        cmocka_unit_test(torn_line_is_ended),
        cmocka_unit_test(half_a_line_of_another_writer_is_waited_for),
        cmocka_unit_test(a_reader_that_holds_the_lock_is_waited_for_once),
        cmocka_unit_test(file_is_private),
        cmocka_unit_test(links_and_pipes_are_refused),
        cmocka_unit_test(a_failed_write_is_counted),
        cmocka_unit_test(process_is_read),
        cmocka_unit_test(a_refusal_is_recorded_by_the_code_in_its_message),
        cmocka_unit_test(default_paths),
        cmocka_unit_test(names_of_logs),
        cmocka_unit_test(a_clock_that_is_set_is_told_from_one_that_drifts),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
