/* Memory: a failed allocation ends the process (nothing sensible can follow in a runtime that lives for
 * milliseconds; the kernel overcommits, so this is a broken limit, not a full machine). */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* For the start of a program that lives for milliseconds: the heap grows in larger steps and is not given
 * back in between (24 brk calls and 15 page faults less for a `run`). */
void memory_tune(void);
/* Part of the heap that is present. */
struct memory_range {
    uintptr_t start; /* an address: what was there may be freed */
    size_t length;
};
/* Makes the heap's next `bytes` present in one call, less than memory_tune's largest block. Where a page
 * fault is a trap (a virtual machine without nested paging: 20 us), a page that is asked for with others
 * costs less than one. It cannot fail in a way that matters: what is not there comes by a fault. */
struct memory_range memory_populate(size_t bytes);
/* The same pages again: after a fork each of them would be copied, or found to be one's own, at a fault of
 * its own. */
void memory_populate_again(const struct memory_range *range);

void *memory_zeroed(size_t size) __attribute__((returns_nonnull, malloc));
/* Like reallocarray; ends the process on failure or overflow. */
void *memory_resize(void *pointer, size_t count, size_t size) __attribute__((returns_nonnull));
char *memory_copy_string(const char *text) __attribute__((returns_nonnull, malloc));
/* Frees what *place holds, which may be NULL, and puts a copy of `text` there. */
void memory_replace_string(char **place, const char *text);
void *memory_copy(const void *bytes, size_t size) __attribute__((returns_nonnull, malloc));

void memory_free_cleanup(void *pointer_to_pointer);
/* A pointer that is freed when it leaves its scope: `memory_owned char *name = ...;` */
#define memory_owned __attribute__((cleanup(memory_free_cleanup)))
