/* The effective policy (DESIGN.md section 5). In this first form the policies are built in: `agent` and
 * `unconfined`; the document parser fills the same structure. */
#pragma once

#include "base/error.h"
#include "base/text.h"
#include "libocispec/schema.h"

enum policy_network_mode { POLICY_NETWORK_NONE, POLICY_NETWORK_ALLOWLIST, POLICY_NETWORK_OPEN };

struct policy {
    char *name;    /* "agent" */
    char *origin;  /* where it stands, for records: "built-in agent" */
    char *digest;  /* hexadecimal SHA-256 of the canonical text of all lines */
    bool confined; /* false for `unconfined` alone: nothing is changed, observed or denied */
    bool root_read_only;
    struct string_list writable; /* "@mounts", "@cwd", or paths in the container */
    struct string_list scratch;  /* paths in the container, "~" */
    enum policy_network_mode network_mode;
    bool inherit_user_credentials;
    struct string_list environment;       /* names or globs let through */
    struct string_list credential_mounts; /* paths let through */
    struct string_list capabilities;      /* the most that is kept, "CAP_CHOWN" ... */
    bool ptrace;
    bool userns;
    struct optional_int64 pids;
};

/* The policy called `name` (NULL or "": agent). An unknown name is ERROR_INVALID and lists the known ones. */
fallible policy_select(const char *name, struct policy **out);
void policy_free(struct policy *policy);

/* Hexadecimal SHA-256 of the text, for digests of policies and files; the caller frees it. */
char *policy_sha256(const char *bytes, size_t length);
