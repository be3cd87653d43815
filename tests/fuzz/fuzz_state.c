/* Any bytes as state.json: root may have written it, a full disk may have cut it, an older version may have
 * other keys. The reader never breaks, and what it accepted is written and read again unchanged. Seeds:
 * corpus/state. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "container/state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition)
        abort();
}

static char *written(const void *state) {
    struct json_writer json = {0};
    schema_write(&container_state_schema, state, &json);
    return text_take(&json.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    void *state = NULL;
    error_owned error = schema_read(&container_state_schema, "state.json", (const char *)data, size, &state);
    require((error == NULL) == (state != NULL));
    if (state == NULL) {
        require(text_starts_with(error->message, "state.json: ") && strchr(error->message, '\n') == NULL);
        return 0;
    }
    memory_owned char *first = written(state);
    void *again = NULL;
    error_owned second_error =
        schema_read(&container_state_schema, "state.json", first, strlen(first), &again);
    require(second_error == NULL);
    memory_owned char *second = written(again);
    require(strcmp(first, second) == 0);
    /* What engines are shown of it is one JSON object on one line. */
    struct container container = {.id = "fuzz", .directory = -1, .state = state};
    struct json_writer json = {0};
    container_state_write(&container, "stopped", &json);
    memory_owned char *shown = text_take(&json.text);
    require(shown[0] == '{' && strchr(shown, '\n') == NULL);
    schema_free(&container_state_schema, state);
    schema_free(&container_state_schema, again);
    return 0;
}
