#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cgroup/internal.h"

struct mount {
    int id;
    int parent;
    bool is_top; /* its parent is not in the list */
    char *root;
    char *point;
    char *type;
    char *options; /* of the super block */
};
struct mounts {
    struct mount *items;
    size_t count;
};

static void mounts_free(struct mounts *mounts) {
    for (size_t i = 0; i < mounts->count; i++) {
        free(mounts->items[i].root);
        free(mounts->items[i].point);
        free(mounts->items[i].type);
        free(mounts->items[i].options);
    }
    free(mounts->items);
}

/* Undoes \040 and its like, in place. */
static char *unescape(char *text) {
    char *to = text;
    for (const char *from = text; *from != '\0';) {
        if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] >= '0' && from[2] <= '7' &&
            from[3] >= '0' && from[3] <= '7') {
            *to++ = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
            from += 4;
        } else {
            *to++ = *from++;
        }
    }
    *to = '\0';
    return text;
}

/* "36 35 98:0 /root /point options [optional ...] - type source superoptions" (proc_pid_mountinfo(5)). */
static bool mount_parse(char *line, struct mount *out) {
    char *fields[6];
    char *rest = line;
    for (size_t i = 0; i < 6; i++)
        if ((fields[i] = strsep(&rest, " ")) == NULL)
            return false;
    char *word;
    do
        word = strsep(&rest, " ");
    while (word != NULL && strcmp(word, "-") != 0);
    char *type = strsep(&rest, " ");
    char *source = strsep(&rest, " ");
    if (word == NULL || type == NULL || source == NULL || rest == NULL)
        return false;
    *out = (struct mount){.id = (int)strtol(fields[0], NULL, 10),
                          .parent = (int)strtol(fields[1], NULL, 10),
                          .root = memory_copy_string(unescape(fields[3])),
                          .point = memory_copy_string(unescape(fields[4])),
                          .type = memory_copy_string(type),
                          .options = memory_copy_string(rest)};
    return true;
}

static bool path_within(const char *path, const char *top) {
    if (strcmp(top, "/") == 0)
        return true;
    size_t length = strlen(top);
    return strncmp(path, top, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

static void mounts_find_tops(struct mounts *mounts) {
    for (size_t i = 0; i < mounts->count; i++) {
        struct mount *mount = &mounts->items[i];
        mount->is_top = true;
        for (size_t other = 0; other < mounts->count && mount->is_top; other++)
            mount->is_top = other == i || mounts->items[other].id != mount->parent;
    }
}

/* The mount that the path enters next from `from`; NULL from where the list begins (a chroot has no mount at
 * "/"). */
static const struct mount *mount_entered(const struct mounts *mounts, const struct mount *from,
                                         const char *path) {
    const struct mount *next = NULL;
    for (size_t i = 0; i < mounts->count; i++) {
        const struct mount *mount = &mounts->items[i];
        bool is_child = from == NULL ? mount->is_top : !mount->is_top && mount->parent == from->id;
        if (is_child && path_within(path, mount->point) &&
            (next == NULL || strlen(mount->point) < strlen(next->point)))
            next = mount;
    }
    return next;
}

/* Hidden is a mount that its own mount point does not lead to: another stands on it, or on something above
 * it. */
static bool mount_is_hidden(const struct mounts *mounts, const struct mount *mount) {
    const struct mount *reached = NULL;
    for (size_t steps = 0; steps <= mounts->count; steps++) {
        const struct mount *next = mount_entered(mounts, reached, mount->point);
        if (next == NULL)
            break;
        reached = next;
    }
    return reached != mount;
}

/* Whether the super block's options name all of a line's controllers ("cpu,cpuacct", "name=systemd"). */
static bool mount_has_controllers(const struct mount *mount, const char *controllers) {
    memory_owned char *copy = memory_copy_string(controllers);
    char *rest = copy;
    for (char *word; (word = strsep(&rest, ",")) != NULL;)
        if (!cgroup_word_in(mount->options, ",", word))
            return false;
    return true;
}

/* The caller's cgroup as a path. In a container the mount's root is itself a cgroup, and with a cgroup
 * namespace the path may begin with "/..": what cannot be reached through the mount counts as the mount
 * point. */
static char *own_path(const struct mount *mount, const char *cgroup) {
    const char *below = "";
    if (path_within(cgroup, "/..") || cgroup[0] != '/')
        below = "";
    else if (strcmp(mount->root, "/") == 0)
        below = cgroup;
    else if (path_within(cgroup, mount->root))
        below = cgroup + strlen(mount->root);
    if (strcmp(below, "/") == 0)
        below = "";
    return text_formatted("%s%s", mount->point, below);
}

static const struct mount *mount_for(const struct mounts *mounts, const char *base, const char *controllers,
                                     const char *cgroup) {
    const struct mount *best = NULL;
    for (size_t i = 0; i < mounts->count; i++) {
        const struct mount *mount = &mounts->items[i];
        bool v2 = strcmp(mount->type, "cgroup2") == 0;
        if (controllers[0] == '\0'
                ? !v2
                : strcmp(mount->type, "cgroup") != 0 || !mount_has_controllers(mount, controllers))
            continue;
        if (!path_within(mount->point, base) || mount_is_hidden(mounts, mount))
            continue;
        /* The same hierarchy can be mounted more than once; the one that shows the caller's own cgroup is
         * better. */
        if (best == NULL || (!path_within(cgroup, best->root) && path_within(cgroup, mount->root)))
            best = mount;
    }
    return best;
}

static void hierarchy_append(struct cgroup_hierarchies *out, const struct mount *mount,
                             const char *controllers, const char *cgroup) {
    out->items = memory_resize(out->items, out->count + 1, sizeof *out->items);
    out->items[out->count++] = (struct cgroup_hierarchy){
        .unified = controllers[0] == '\0',
        .controllers = memory_copy_string(controllers[0] == '\0' ? "unified" : controllers),
        .mount_point = memory_copy_string(mount->point),
        .own = own_path(mount, cgroup)};
}

void cgroup_hierarchies_parse(const char *base, const char *mountinfo, const char *own_cgroups,
                              struct cgroup_hierarchies *out) {
    *out = (struct cgroup_hierarchies){0};
    __attribute__((cleanup(mounts_free))) struct mounts mounts = {0};
    memory_owned char *mount_lines = memory_copy_string(mountinfo);
    char *rest = mount_lines;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        struct mount mount;
        if (!mount_parse(line, &mount))
            continue;
        mounts.items = memory_resize(mounts.items, mounts.count + 1, sizeof mount);
        mounts.items[mounts.count++] = mount;
    }
    mounts_find_tops(&mounts);

    /* v1 first, so that v2 stands last, whatever the order of the lines. */
    for (int pass = 1; pass <= 2; pass++) {
        memory_owned char *cgroup_lines = memory_copy_string(own_cgroups);
        rest = cgroup_lines;
        for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
            char *path = line; /* "ID:CONTROLLERS:PATH"; only the path may hold colons */
            char *id = strsep(&path, ":");
            char *controllers = strsep(&path, ":");
            if (id == NULL || controllers == NULL || path == NULL || (controllers[0] == '\0') != (pass == 2))
                continue;
            const struct mount *mount = mount_for(&mounts, base, controllers, path);
            if (mount != NULL)
                hierarchy_append(out, mount, controllers, path);
        }
    }
}

struct error *cgroup_hierarchies_read(struct cgroup_hierarchies *out) {
    *out = (struct cgroup_hierarchies){0};
    memory_owned char *mountinfo = cgroup_file_read("/proc/self", "mountinfo");
    if (mountinfo == NULL)
        return error_system(errno, "read", "/proc/self/mountinfo");
    memory_owned char *own = cgroup_file_read("/proc/self", "cgroup");
    if (own == NULL && errno != ENOENT) /* a kernel without cgroups has no such file */
        return error_system(errno, "read", "/proc/self/cgroup");
    cgroup_hierarchies_parse(CGROUP_BASE, mountinfo, own != NULL ? own : "", out);
    return NULL;
}

void cgroup_hierarchies_free(struct cgroup_hierarchies *hierarchies) {
    for (size_t i = 0; i < hierarchies->count; i++) {
        free(hierarchies->items[i].controllers);
        free(hierarchies->items[i].mount_point);
        free(hierarchies->items[i].own);
    }
    free(hierarchies->items);
    *hierarchies = (struct cgroup_hierarchies){0};
}

enum cgroup_layout cgroup_hierarchies_layout(const struct cgroup_hierarchies *hierarchies) {
    bool v1 = false;
    bool v2 = false;
    for (size_t i = 0; i < hierarchies->count; i++) {
        if (hierarchies->items[i].unified)
            v2 = true;
        else
            v1 = true;
    }
    if (v1)
        return v2 ? CGROUP_LAYOUT_HYBRID : CGROUP_LAYOUT_V1;
    return v2 ? CGROUP_LAYOUT_V2 : CGROUP_LAYOUT_NONE;
}

enum cgroup_layout cgroup_layout(void) {
    cgroup_hierarchies_owned struct cgroup_hierarchies hierarchies = {0};
    /* Without /proc there is no layout to speak of. */
    error_ignore(cgroup_hierarchies_read(&hierarchies));
    return cgroup_hierarchies_layout(&hierarchies);
}
