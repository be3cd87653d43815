/* Values of the annotations org.systemd.property.*: anybody's text. What is taken has one type and values
 * that the helper can read. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cgroup/gvariant.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    memory_owned char *text = memory_zeroed(length + 1);
    memcpy(text, bytes, length);
    memory_owned char *type = NULL;
    string_list_owned struct string_list values = {0};
    struct error *error = gvariant_parse(text, &type, &values);
    if (error != NULL) {
        if (type != NULL || values.count != 0)
            abort();
        error_free(error);
        return 0;
    }
    size_t letters = strlen(type);
    if (letters < 1 || letters > 2 || (letters == 2 && type[0] != 'a') ||
        strchr("bynqiuxtds", type[letters - 1]) == NULL || (letters == 1 && values.count != 1))
        abort();
    return 0;
}
