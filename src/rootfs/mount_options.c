#include "rootfs/mount_options.h"

#include <string.h>
#include <sys/mount.h>

#include "sys/calls.h"

/* atime is one three-valued field: the kernel wants MOUNT_ATTR__ATIME cleared whenever a value of it is set,
 * and refuses (EINVAL) or ignores the value otherwise. */
#define ATIME MOUNT_ATTR__ATIME

enum word_kind {
    WORD_ATTRIBUTE,           /* of the mount */
    WORD_RECURSIVE_ATTRIBUTE, /* of the tree below it */
    WORD_PROPAGATION,
    WORD_BIND,
    WORD_SUPERBLOCK, /* a flag that belongs to the file system */
    WORD_REMOUNT,
    WORD_COPY_UP,
    WORD_IDMAP,
    WORD_IGNORED /* the default, or without meaning for a container */
};

struct word {
    const char *name;
    enum word_kind kind;
    uint64_t set;
    uint64_t clear;
};

static const struct word words[] = {
    {"ro", WORD_ATTRIBUTE, MOUNT_ATTR_RDONLY, 0},
    {"rw", WORD_ATTRIBUTE, 0, MOUNT_ATTR_RDONLY},
    {"nosuid", WORD_ATTRIBUTE, MOUNT_ATTR_NOSUID, 0},
    {"suid", WORD_ATTRIBUTE, 0, MOUNT_ATTR_NOSUID},
    {"nodev", WORD_ATTRIBUTE, MOUNT_ATTR_NODEV, 0},
    {"dev", WORD_ATTRIBUTE, 0, MOUNT_ATTR_NODEV},
    {"noexec", WORD_ATTRIBUTE, MOUNT_ATTR_NOEXEC, 0},
    {"exec", WORD_ATTRIBUTE, 0, MOUNT_ATTR_NOEXEC},
    {"noatime", WORD_ATTRIBUTE, MOUNT_ATTR_NOATIME, ATIME},
    {"atime", WORD_ATTRIBUTE, MOUNT_ATTR_RELATIME, ATIME},
    {"relatime", WORD_ATTRIBUTE, MOUNT_ATTR_RELATIME, ATIME},
    {"norelatime", WORD_ATTRIBUTE, MOUNT_ATTR_STRICTATIME, ATIME},
    {"strictatime", WORD_ATTRIBUTE, MOUNT_ATTR_STRICTATIME, ATIME},
    {"nostrictatime", WORD_ATTRIBUTE, MOUNT_ATTR_RELATIME, ATIME},
    {"nodiratime", WORD_ATTRIBUTE, MOUNT_ATTR_NODIRATIME, 0},
    {"diratime", WORD_ATTRIBUTE, 0, MOUNT_ATTR_NODIRATIME},
    {"nosymfollow", WORD_ATTRIBUTE, MOUNT_ATTR_NOSYMFOLLOW, 0},
    {"symfollow", WORD_ATTRIBUTE, 0, MOUNT_ATTR_NOSYMFOLLOW},
    {"rro", WORD_RECURSIVE_ATTRIBUTE, MOUNT_ATTR_RDONLY, 0},
    {"rrw", WORD_RECURSIVE_ATTRIBUTE, 0, MOUNT_ATTR_RDONLY},
    {"rnosuid", WORD_RECURSIVE_ATTRIBUTE, MOUNT_ATTR_NOSUID, 0},
    {"rsuid", WORD_RECURSIVE_ATTRIBUTE, 0, MOUNT_ATTR_NOSUID},
    {"rnodev", WORD_RECURSIVE_ATTRIBUTE, MOUNT_ATTR_NODEV, 0},
    {"rdev", WORD_RECURSIVE_ATTRIBUTE, 0, MOUNT_ATTR_NODEV},
    {"rnoexec", WORD_RECURSIVE_ATTRIBUTE, MOUNT_ATTR_NOEXEC, 0},
    {"rexec", WORD_RECURSIVE_ATTRIBUTE, 0, MOUNT_ATTR_NOEXEC},
    {"rnoatime", WORD_RECURSIVE_ATTRIBUTE, MOUNT_ATTR_NOATIME, ATIME},
    {"ratime", WORD_RECURSIVE_ATTRIBUTE, MOUNT_ATTR_RELATIME, ATIME},
    {"rrelatime", WORD_RECURSIVE_ATTRIBUTE, MOUNT_ATTR_RELATIME, ATIME},
    {"rnorelatime", WORD_RECURSIVE_ATTRIBUTE, MOUNT_ATTR_STRICTATIME, ATIME},
    {"rstrictatime", WORD_RECURSIVE_ATTRIBUTE, MOUNT_ATTR_STRICTATIME, ATIME},
    {"rnostrictatime", WORD_RECURSIVE_ATTRIBUTE, MOUNT_ATTR_RELATIME, ATIME},
    {"rnodiratime", WORD_RECURSIVE_ATTRIBUTE, MOUNT_ATTR_NODIRATIME, 0},
    {"rdiratime", WORD_RECURSIVE_ATTRIBUTE, 0, MOUNT_ATTR_NODIRATIME},
    {"rnosymfollow", WORD_RECURSIVE_ATTRIBUTE, MOUNT_ATTR_NOSYMFOLLOW, 0},
    {"rsymfollow", WORD_RECURSIVE_ATTRIBUTE, 0, MOUNT_ATTR_NOSYMFOLLOW},
    {"shared", WORD_PROPAGATION, MS_SHARED, 0},
    {"rshared", WORD_PROPAGATION, MS_SHARED | MS_REC, 0},
    {"slave", WORD_PROPAGATION, MS_SLAVE, 0},
    {"rslave", WORD_PROPAGATION, MS_SLAVE | MS_REC, 0},
    {"private", WORD_PROPAGATION, MS_PRIVATE, 0},
    {"rprivate", WORD_PROPAGATION, MS_PRIVATE | MS_REC, 0},
    {"unbindable", WORD_PROPAGATION, MS_UNBINDABLE, 0},
    {"runbindable", WORD_PROPAGATION, MS_UNBINDABLE | MS_REC, 0},
    {"bind", WORD_BIND, 0, 0},
    {"rbind", WORD_BIND, MS_REC, 0},
    {"sync", WORD_SUPERBLOCK, 0, 0},
    {"async", WORD_SUPERBLOCK, 0, 0},
    {"dirsync", WORD_SUPERBLOCK, 0, 0},
    {"lazytime", WORD_SUPERBLOCK, 0, 0},
    {"nolazytime", WORD_SUPERBLOCK, 0, 0},
    {"mand", WORD_IGNORED, 0, 0}, /* mandatory locks left the kernel in 5.15 */
    {"nomand", WORD_IGNORED, 0, 0},
    {"iversion", WORD_IGNORED, 0, 0}, /* the file systems that have it keep it by themselves now */
    {"noiversion", WORD_IGNORED, 0, 0},
    {"silent", WORD_IGNORED, 0, 0},
    {"loud", WORD_IGNORED, 0, 0},
    {"defaults", WORD_IGNORED, 0, 0},
    {"remount", WORD_REMOUNT, 0, 0},
    {"tmpcopyup", WORD_COPY_UP, 0, 0},
    {"idmap", WORD_IDMAP, 0, 0},
    {"ridmap", WORD_IDMAP, MS_REC, 0},
};

#define WORD_COUNT (sizeof words / sizeof words[0])

static const struct word *word_find(const char *name) {
    for (size_t i = 0; i < WORD_COUNT; i++)
        if (strcmp(words[i].name, name) == 0)
            return &words[i];
    return NULL;
}

/* Later words win: setting takes the bit out of the cleared ones and the other way round. */
static void attribute_apply(const struct word *word, uint64_t *set, uint64_t *clear) {
    *set = (*set & ~word->clear) | word->set;
    *clear = (*clear & ~(word->set & ~ATIME)) | word->clear;
}

static void word_apply(const struct word *word, const char *option, struct mount_options *out) {
    switch (word->kind) {
    case WORD_ATTRIBUTE:
        attribute_apply(word, &out->set, &out->clear);
        break;
    case WORD_RECURSIVE_ATTRIBUTE:
        attribute_apply(word, &out->recursive_set, &out->recursive_clear);
        break;
    case WORD_PROPAGATION:
        out->propagation = word->set & ~(uint64_t)MS_REC;
        out->propagation_recursive = (word->set & MS_REC) != 0;
        break;
    case WORD_BIND:
        out->bind = true;
        out->recursive = out->recursive || word->set != 0;
        break;
    case WORD_SUPERBLOCK:
        string_list_append(&out->superblock, option);
        break;
    case WORD_REMOUNT:
        out->remount = true;
        break;
    case WORD_COPY_UP:
        out->copy_up = true;
        break;
    case WORD_IDMAP:
        out->idmap = true;
        out->idmap_recursive = out->idmap_recursive || word->set != 0;
        break;
    case WORD_IGNORED:
        break;
    }
}

/* A word of a file system's own: what is left for it, "idmap=" aside. */
static bool is_foreign(const char *option) {
    return word_find(option) == NULL && !text_starts_with(option, "idmap=") &&
           !text_starts_with(option, "ridmap=");
}

struct error *mount_options_parse(const struct oci_mount *mount, const char *field,
                                  struct mount_options *out) {
    *out = (struct mount_options){0};
    const char *foreign = NULL, *value = NULL;
    for (size_t i = 0; i < mount->options.count; i++) {
        const char *option = mount->options.items[i];
        const struct word *word = word_find(option);
        if (word != NULL) {
            word_apply(word, option, out);
        } else if (!is_foreign(option)) {
            out->idmap = true;
            out->idmap_recursive = out->idmap_recursive || option[0] == 'r';
            out->idmap_mappings = strchr(option, '=') + 1;
        } else {
            string_list_append(&out->superblock, option);
            const char **first = strchr(option, '=') != NULL ? &value : &foreign;
            *first = *first ? *first : option;
        }
    }
    if (mount->type != NULL && strcmp(mount->type, "bind") == 0)
        out->bind = true;
    if (!out->bind)
        return NULL;
    string_list_free(&out->superblock);
    out->passed_over = value;
    if (foreign == NULL)
        return NULL;
    return error_new(ERROR_INVALID, "%s.options: \"%s\" is not an option of a bind mount", field, foreign);
}

void mount_options_free(struct mount_options *options) {
    string_list_free(&options->superblock);
}

void mount_options_known(struct string_list *out) {
    for (size_t i = 0; i < WORD_COUNT; i++)
        string_list_append(out, words[i].name);
}
