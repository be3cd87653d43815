/* Files of policies: opened once, believed only from those who may decide. */
#pragma once

#include "policy/policy.h"

#define POLICY_PROJECT_FILE ".pinfold.yaml"

/* Where documents lie. */
struct policy_places {
    const char *configuration; /* "/etc/pinfold" */
    const char *installed;     /* the directory of the presets that came with the program */
    const char *owner_home;    /* of the person who runs the runtime, where that is not root; else NULL */
    bool root;                 /* the machine's root: in a user namespace root's files seem to be nobody's */
};

struct policy_bytes {
    struct text text;
    struct policy_file file; /* taken over by the policy that comes of it */
    bool missing;            /* there is no such file; nothing else is set */
};

/* Reads a file of at most YAML_BYTES_MAX bytes. *out says so when there is none; anything but a regular file,
 * and a file that others can write or that is another user's, is ERROR_REFUSED. A project's own file has to
 * be pinned by `policy trust` in `pins` (paths of the lists of digests), and is believed whoever can write
 * it. */
fallible policy_file_read(const char *path, const struct policy_places *places,
                          const struct string_list *pins, struct policy_bytes *out);
void policy_bytes_clear(struct policy_bytes *bytes);

/* Adds the content of `path` to the list of digests `pins`, which is made where it is missing. */
fallible policy_file_pin(const char *path, const char *pins);
