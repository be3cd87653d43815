/* What the files of the checks share. `at` is the JSON path of the object that is checked, with its closing
 * dot
 * ("linux.resources."), "" for a document of its own. A message never holds a value of an environment. */
#pragma once

#include "libocispec/config.h"

/* A value for a message: quoted, escaped, bounded. The caller frees it. */
char *check_quoted(const char *value);
/* ERROR_INVALID "FIELD: expected WORDS, found VALUE", where FIELD is a format. */
fallible check_unexpected(const char *words, const char *value, const char *field, ...)
    __attribute__((format(printf, 3, 4)));
/* Each word of `list` is one of `names`; `what` names the kind ("a known capability"). */
fallible check_words(const char *at, const char *key, const struct string_list *list,
                     const char *const *names, const char *what);
/* config-linux.md, "User namespace mappings": sizes, ranges and overlaps as the kernel will judge them. */
fallible check_id_mappings(const char *at, const struct oci_id_mapping *mappings, size_t count);

fallible check_process(const char *at, const struct oci_process *process);
fallible check_resources(const char *at, const struct oci_resources *resources);
fallible check_seccomp(const char *at, const struct oci_seccomp *seccomp);
/* The "linux" part, and what it owes to other members of the document. */
fallible check_linux(const struct oci_config *config);
