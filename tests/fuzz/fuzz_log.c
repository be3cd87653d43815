/* Any bytes as a line of a log: the table that `pinfold log` makes of it has no control bytes but its own
 * newlines. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/log_parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *shown = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&shown, &length);
    struct log_table *table = log_table_open(
        out, (struct log_layout){.summary = size > 0 && data[0] % 2, .several = size > 1 && data[1] % 2});
    struct log_record record;
    if (log_record_parse((const char *)data, size, &record))
        log_table_add(table, &record);
    log_record_clear(&record);
    log_table_finish(table);
    log_table_close(table);
    fclose(out);
    for (size_t i = 0; i < length; i++)
        if (shown[i] != '\n' && ((unsigned char)shown[i] < 0x20 || shown[i] == 0x7f))
            abort();
    free(shown);
    return 0;
}
