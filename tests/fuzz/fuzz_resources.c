/* Any bytes as the document of `update --resources`: what the reader accepts survives writing and reading,
 * merging it twice is merging it once, and its device rules become a program (or one clear error) whatever
 * they are. Seeds: corpus/resources. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cgroup/device_program.h"
#include "cgroup/internal.h"
#include "libocispec/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition)
        abort();
}

static char *written(const struct oci_resources *resources) {
    struct json_writer json = {0};
    schema_write(&oci_resources_schema, resources, &json);
    return text_take(&json.text);
}

static void merge_check(const struct oci_resources *resources) {
    struct oci_resources *base = memory_zeroed(sizeof *base);
    oci_resources_merge(base, resources);
    memory_owned char *once = written(base);
    oci_resources_merge(base, resources);
    memory_owned char *twice = written(base);
    require(strcmp(once, twice) == 0);
    require(oci_resources_check(base) == NULL);
    oci_resources_free(base);
}

static void devices_check(const struct oci_resources *resources) {
    cgroup_device_program_owned struct cgroup_device_program program;
    error_owned error = cgroup_device_program_make(resources->devices, resources->devices_count, &program);
    require((error == NULL) == (program.count > 0));
    for (size_t i = 0; i < program.count; i++) { /* no jump leads out of it */
        const struct bpf_insn *instruction = &program.instructions[i];
        if (BPF_CLASS(instruction->code) == BPF_JMP && BPF_OP(instruction->code) != BPF_EXIT)
            require(instruction->off >= 0 && i + 1 + (size_t)instruction->off < program.count);
    }
    require(program.count == 0 || program.instructions[program.count - 1].code == (BPF_JMP | BPF_EXIT));
    string_list_owned struct string_list lines = {0};
    bool allow_all;
    size_t base;
    error_owned v1 =
        cgroup_devices_lines(resources->devices, resources->devices_count, &allow_all, &lines, &base);
    require(v1 == NULL || strchr(v1->message, '\n') == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct oci_resources *resources = NULL;
    error_owned error = oci_resources_parse("fuzz", (const char *)data, size, &resources);
    require((error == NULL) == (resources != NULL));
    if (error != NULL) {
        require(strchr(error->message, '\n') == NULL);
        return 0;
    }
    memory_owned char *text = written(resources);
    struct oci_resources *again = NULL;
    error_owned second = oci_resources_parse("fuzz", text, strlen(text), &again);
    require(second == NULL);
    memory_owned char *text_again = written(again);
    require(strcmp(text, text_again) == 0);
    oci_resources_free(again);
    merge_check(resources);
    devices_check(resources);
    oci_resources_free(resources);
    return 0;
}
