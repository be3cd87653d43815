/* What of the host a container must not get, and how a mount's source lies to it. Every comparison is made on
 * (device, inode) of the thing and of each directory above it, so that a symlink or a bind mount elsewhere
 * changes nothing; names matter only for what is told to the user. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/text.h"
#include "facts/facts.h"

enum place_kind {
    PLACE_HOST,       /* a directory of the host: refused when it is the source or below it */
    PLACE_STATE,      /* an engine's state: refused inside it too, but for what engines mount from there */
    PLACE_WHOLE,      /* refused inside it too, without exception: /proc, pinfold's own */
    PLACE_SOCKET,     /* a control socket */
    PLACE_CREDENTIAL, /* a credential file or directory */
};

struct places;

/* The table for one owner (home may be NULL, uid is the one of /run/user/UID). Looks at every place once.
 * `homes` are those of other people; `own` are directories of this very container: its bundle and root. */
struct places *places_look(const char *home, uid_t uid, const struct string_list *homes,
                           const struct string_list *own);
void places_free(struct places *places);

/* Judges a source by its status and real path: fills place_relation, host_place, credential, and adds the
 * sockets and credentials of the table that lie below it. */
void places_judge(struct places *places, struct mount_fact *fact);

/* Adds a path that was found inside a directory, once. */
void places_append(struct string_list *list, const char *path, bool directory);

/* The names in a directory that begin with a dot, read in one go: most of the well-known names are not there,
 * and asking for each costs more than the list. False (and no names) for a directory that is too large or not
 * readable. */
bool search_dot_names(int directory, struct string_list *names);
/* Is the first component of a credential's name among them? */
bool search_may_have(const struct string_list *names, const char *credential);

/* By its path (and for some names its content): the well-known credential that the source is or lies in,
 * whoever's home it is (".ssh" in "/data/backup/.ssh/id_rsa"), or NULL. */
const char *search_credential_name(const struct mount_fact *fact);
/* Looks inside a mounted directory: for credentials at the well-known names (as if it were a home, or a part
 * of one), and for sockets where a directory may hold them: below /run and at the top of /tmp. */
void search_directory(struct mount_fact *fact);

/* Is this real path a file that engines make for one container, or data of an engine's volume? By the form of
 * the path: engines' directories can be anywhere. */
bool places_engine_made(const char *path, const char *bundle);
bool places_engine_volume(const char *path);
