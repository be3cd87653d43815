/* Any bytes as the strings of an event: the record stays one bounded, printable line of valid JSON, and
 * redaction gives its own output unchanged. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_tree.h>

#include "base/memory.h"
#include "record/internal.h"
#include "record/redact.h"

static void require(bool condition) {
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 3)
        return 0;
    char *string = memory_zeroed(size);
    memcpy(string, data + 2, size - 2);
    struct record_subject subject = {string, string, string, string, string, string, string, string,
                                     string, string, string, 0,      0,      NULL,   NULL};
    struct record_process process = {1, string, string, string, data[1]};
    struct record_event event = {.class_id = (enum record_class)(data[0] % 7),
                                 .activity_id = data[1],
                                 .activity_name = string,
                                 .action = (enum record_action)(data[0] / 7 % 5),
                                 .reason = string,
                                 .message = string,
                                 .rule = string,
                                 .rule_origin = string,
                                 .remedy = string,
                                 .process = data[1] & 1 ? &process : NULL,
                                 .exec_id = string,
                                 .file_path = string,
                                 .subject = string,
                                 .address = string,
                                 .source_address = string,
                                 .protocol = string,
                                 .route = string};
    struct record_constants constants = {0};
    record_constants_make(&subject, &constants);
    struct text body = {0}, line = {0}, once = {0}, twice = {0};
    struct record_stamp stamp = {UINT64_MAX, INT64_MIN, UINT64_MAX, false,
                                 INT64_MIN,  INT64_MIN, UINT64_MAX, false};
    record_body(&constants, &event, &body, &stamp.truncated);
    record_line(&constants, body.data, body.length, &stamp, &line);
    require(line.length <= RECORD_LINE_MAX);
    for (size_t i = 0; i < line.length - 1; i++)
        require((unsigned char)line.data[i] >= 0x20 && line.data[i] != 0x7f);
    yajl_val tree = yajl_tree_parse(line.data, NULL, 0);
    require(tree != NULL);
    yajl_tree_free(tree);

    redact_text(string, strlen(string), &once);
    redact_text(text_string(&once), once.length, &twice);
    require(once.length == twice.length && memcmp(text_string(&once), text_string(&twice), once.length) == 0);
    require(redact_needed(string, strlen(string)) || strcmp(text_string(&once), string) == 0);
    text_free(&once);
    redact_command_line(string, strlen(string), &once);
    redact_arguments((const char *)data, size, &once);

    text_free(&body);
    text_free(&line);
    text_free(&once);
    text_free(&twice);
    record_constants_clear(&constants);
    free(string);
    return 0;
}
