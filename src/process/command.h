/* The executable of process.args, and what else stands between a container's environment and execve. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "libocispec/config.h"

/* Inside the container's root and as its final user: the path that execve is to be given. Looks in the LAST
 * PATH of env (the specification's order for duplicates), or takes a name with a slash as it is. Errors have
 * the wording that engines turn into 126 and 127. The caller frees *path. */
fallible command_find(const struct oci_process *process, char **path);

/* Changes to process.cwd; an error names the part of it that is missing or no directory. */
fallible command_enter_directory(const char *cwd);

/* Refuses a working directory outside the root (CVE-2024-21626: cwd through a leaked descriptor). */
fallible command_verify_directory(void);

/* Whether env has no HOME, or an empty one. */
bool command_lacks_home(const struct string_list *env);

/* HOME is added from the image's passwd (or "/") where env has none or an empty one; duplicates: the last
 * wins. */
void command_complete_environment(struct string_list *env, const char *home);
