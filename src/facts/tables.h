/* The tables of the host's places, sockets and credentials: where they start from is the list that agent
 * sandboxes and their users' reports have gathered. "~" is the home of the runtime's owner, UID the owner's
 * uid. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "facts/places.h"

struct host_place_row {
    const char *path;
    enum place_kind kind;
};
extern const struct host_place_row host_places[];
extern const size_t host_places_count;

extern const char *const host_sockets[];
extern const size_t host_sockets_count;

/* Absolute paths of the host. */
extern const char *const host_credentials[];
extern const size_t host_credentials_count;

/* Relative to a home, or to any directory that looks like a part of one. */
struct credential_name {
    const char *path;
    bool by_content; /* also a project's ordinary settings: a credential only with a token in it */
};
extern const struct credential_name credential_names[];
extern const size_t credential_names_count;

/* Parts of a credential directory that hold no secret: public keys, known hosts. */
bool credential_is_harmless(const char *name, const char *path);
