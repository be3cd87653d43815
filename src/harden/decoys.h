/* Fake keys at places that nothing opens by habit. The content looks real and opens nothing. */
#pragma once

#include <stddef.h>

struct decoy_file {
    const char *path; /* below a home */
    const char *content;
};
extern const struct decoy_file decoy_files[];
extern const size_t decoy_files_count;
