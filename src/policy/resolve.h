/* The order of policies (DESIGN.md section 5): which documents count, where they are looked for, whom they
 * are believed from, and what they come to. */
#pragma once

#include "libocispec/schema.h"
#include "policy/document.h"
#include "policy/files.h"
#include "policy/policy.h"

#define POLICY_ANNOTATION "dev.pinfold."

/* What the program uses. `owner_home` is that of the person who runs the runtime, NULL for the machine's
 * root.
 */
struct policy_places policy_places_default(const char *owner_home, bool root);

struct policy_request {
    struct policy_places places;
    const char *called;    /* by the name that pinfold was called by, NULL: none */
    const char *given;     /* --policy NAME or FILE, NULL: none */
    const char *workspace; /* a directory whose own .pinfold.yaml counts if it is pinned, or NULL */
    const struct string_map *annotations; /* of the container, or NULL */
    bool sandbox; /* no engine gives it a network: allowed hosts are dialled from the runtime's own, unless
                     a policy says otherwise */
};

/* The effective policy. With nothing written anywhere it is the built-in agent and costs one failed look.
 * With an error *out is NULL, but for POLICY_CEILING_EXCEEDED: then it is the policy that goes beyond, for
 * its record. */
fallible policy_resolve(const struct policy_request *request, struct policy **out);

/* One document with all that it extends, for `policy check`; `given` is a name or a file. *path receives
 * where it was found. */
fallible policy_load(const struct policy_places *places, const char *given, struct policy_document **out,
                     char **path);
/* The names of policies that can be given, and the file of each, in the order of the search; both lists are
 * parallel. A name may come twice: the first one counts. */
void policy_names_list(const struct policy_places *places, struct string_list *names,
                       struct string_list *paths);

/* Pins the content of FILE: a .pinfold.yaml counts only so. Says in *pinned where. */
fallible policy_trust(const struct policy_places *places, const char *file, char **pinned);
