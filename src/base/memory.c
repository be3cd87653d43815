#include "base/memory.h"

#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void *memory_check(void *pointer) {
    if (pointer == NULL) {
        static const char message[] = "pinfold: out of memory\n";
        (void)!write(STDERR_FILENO, message, sizeof message - 1);
        _exit(1);
    }
    return pointer;
}

void memory_tune(void) {
    enum { STEP_BYTES = 256 * 1024, KEPT_BYTES = 16 * 1024 * 1024, BLOCK_BYTES = 1024 * 1024 };
    mallopt(M_TOP_PAD, STEP_BYTES);
    mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
    mallopt(M_MMAP_THRESHOLD, BLOCK_BYTES);
}

struct memory_range memory_populate(size_t bytes) {
    /* What the heap gives for one large block is what it gives for many small ones next. */
    void *block = memory_check(malloc(bytes));
    struct memory_range range = {(uintptr_t)block, bytes};
    memory_populate_again(&range);
    free(block);
    return range;
}

void memory_populate_again(const struct memory_range *range) {
    uintptr_t first = range->start & ~((uintptr_t)getpagesize() - 1);
    (void)!madvise((void *)first,
                   range->start + range->length - first, /* NOLINT(performance-no-int-to-ptr) */
                   MADV_POPULATE_WRITE);
}

void *memory_zeroed(size_t size) {
    return memory_check(calloc(1, size ? size : 1));
}

void *memory_resize(void *pointer, size_t count, size_t size) {
    return memory_check(reallocarray(pointer, count ? count : 1, size ? size : 1));
}

char *memory_copy_string(const char *text) {
    return memory_check(strdup(text));
}

void memory_replace_string(char **place, const char *text) {
    char *copy = memory_copy_string(text);
    free(*place);
    *place = copy;
}

void *memory_copy(const void *bytes, size_t size) {
    void *copy = memory_zeroed(size);
    if (size > 0)
        memcpy(copy, bytes, size);
    return copy;
}

void memory_free_cleanup(void *pointer_to_pointer) {
    void **pointer = pointer_to_pointer;
    free(*pointer);
    *pointer = NULL;
}
