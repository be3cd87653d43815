/* Any bytes as config.json, process.json and resources: the reader never breaks, its messages are one line,
 * and what it accepted survives writing, reading again and copying unchanged. Seeds: corpus/config. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "libocispec/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition)
        abort();
}

static char *written(const struct schema *schema, const void *object) {
    struct json_writer json = {0};
    schema_write(schema, object, &json);
    return text_take(&json.text);
}

static void round_trip(const struct schema *schema, const char *bytes, size_t size) {
    void *first = NULL;
    error_owned error = schema_read(schema, "fuzz", bytes, size, &first);
    require((error == NULL) == (first != NULL));
    if (error != NULL) {
        require(text_starts_with(error->message, "fuzz: "));
        require(strchr(error->message, '\n') == NULL);
        return;
    }
    memory_owned char *first_text = written(schema, first);
    void *second = NULL;
    error_owned again = schema_read(schema, "fuzz", first_text, strlen(first_text), &second);
    require(again == NULL);
    memory_owned char *second_text = written(schema, second);
    require(strcmp(first_text, second_text) == 0);
    void *copy = schema_copy(schema, first);
    schema_free(schema, first);
    schema_free(schema, second);
    memory_owned char *copy_text = written(schema, copy);
    require(strcmp(first_text, copy_text) == 0);
    schema_free(schema, copy);
}

/* The checks come to the same end for the document and for what is written of it. */
static void checks(const char *bytes, size_t size) {
    struct oci_config *config = NULL;
    error_owned error = oci_config_parse("fuzz", bytes, size, &config);
    require((error == NULL) == (config != NULL));
    if (config == NULL) {
        require(strchr(error->message, '\n') == NULL);
        return;
    }
    memory_owned char *text = written(&oci_config_schema, config);
    oci_config_free(config);
    error_owned again = oci_config_parse("fuzz", text, strlen(text), &config);
    require(again == NULL);
    oci_config_free(config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *bytes = (const char *)data;
    round_trip(&oci_config_schema, bytes, size);
    round_trip(&oci_process_schema, bytes, size);
    round_trip(&oci_resources_schema, bytes, size);
    checks(bytes, size);
    struct oci_process *process = NULL;
    error_owned process_error = oci_process_parse("fuzz", bytes, size, &process);
    require((process_error == NULL) == (process != NULL));
    oci_process_free(process);
    struct oci_resources *resources = NULL;
    error_owned resources_error = oci_resources_parse("fuzz", bytes, size, &resources);
    require((resources_error == NULL) == (resources != NULL));
    oci_resources_free(resources);
    return 0;
}
