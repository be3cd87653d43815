/* The config.json that `spec` prints: a shell in ./rootfs, to be edited. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"

/* Writes it. `rootless`: for a caller without privileges; `uid` and `gid` are the caller's, which root in the
 * container's user namespace stands for. They are not looked at otherwise. `cgroup_namespace`: with one. */
void oci_spec_document(bool rootless, uint32_t uid, uint32_t gid, bool cgroup_namespace,
                       struct json_writer *json);

/* Appends compact JSON (as a json_writer makes it) to `text`, in lines, indented by four blanks, with a
 * newline at the end: for documents that people edit. */
void oci_document_indent(const char *compact, struct text *text);
