#include "rootfs/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "rootfs/attach.h"
#include "rootfs/idmap.h"
#include "rootfs/mount_options.h"
#include "sys/calls.h"

static struct error *source_open(const struct oci_mount *mount, const struct bind_source *source, bool reopen,
                                 int *out) {
    if (source->judged && source->fd < 0)
        return error_system(source->open_errno ? source->open_errno : EINVAL, "open", "mount source %s",
                            mount->source);
    if (source->judged && !reopen) {
        *out = fcntl(source->fd, F_DUPFD_CLOEXEC, 0);
        if (*out < 0)
            return error_system(errno, "duplicate", "descriptor of mount source %s", mount->source);
        return NULL;
    }
    const char *path = source->judged ? source->path : mount->source;
    *out = open(path, O_PATH | O_CLOEXEC);
    if (*out < 0)
        return error_system(errno, "open", "mount source %s", path);
    struct stat status;
    if (fstat(*out, &status) < 0)
        return error_system(errno, "stat", "mount source %s", path);
    if (source->judged && (status.st_dev != source->device || status.st_ino != source->inode))
        return error_new(ERROR_REFUSED, "mount source %s was replaced while the container was created", path);
    if (!source->judged && strcmp(path, "/dev/null") == 0 &&
        (!S_ISCHR(status.st_mode) || status.st_rdev != makedev(1, 3)))
        return error_new(ERROR_REFUSED, "/dev/null of this machine is not the null device (CVE-2025-31133)");
    return NULL;
}

static struct error *bind_prepare(const struct oci_config *config, const struct oci_mount *mount,
                                  const struct mount_options *options, const struct bind_source *source,
                                  bool reopen, int *out) {
    fd_owned int opened = -1;
    TRY(source_open(mount, source, reopen, &opened));
    *out =
        sys_open_tree(opened, "", OPEN_TREE_CLONE | AT_EMPTY_PATH | (options->recursive ? AT_RECURSIVE : 0));
    if (*out < 0)
        return error_system(errno, "open_tree", "mount source %s", mount->source);
    /* First slave, then what was asked: a copy of a shared mount is its peer, and "rslave" means a slave of
     * that peer, "private" and no word at all an end to both (crun #2059, #2066). */
    uint64_t propagation = options->propagation ? options->propagation : MS_PRIVATE;
    if (options->propagation != 0 && propagation != MS_SLAVE && propagation != MS_SHARED)
        TRY(mount_propagate(*out, true, MS_SLAVE, mount->source));
    TRY(mount_propagate(*out, options->propagation == 0 || options->propagation_recursive, propagation,
                        mount->source));
    TRY(mount_change(*out, false, options->set, options->clear, mount->source));
    TRY(mount_change(*out, true, options->recursive_set, options->recursive_clear, mount->source));
    return idmap_apply(config, mount, options, *out);
}

static struct error *check_options(const struct oci_mount *mount, const struct mount_options *options,
                                   bool strict, const char *field) {
    if (options->passed_over != NULL && strict)
        return error_new(ERROR_INVALID, "%s.options: \"%s\" is not an option of a bind mount", field,
                         options->passed_over);
    if (options->passed_over != NULL)
        fprintf(stderr,
                "pinfold: warning: %s.options: \"%s\" is not an option of a bind mount, passed over\n", field,
                options->passed_over);
    memory_owned char *clean = container_path_clean(mount->destination);
    if (options->copy_up && !options->bind && strcmp(clean, "/") == 0)
        return error_new(ERROR_INVALID,
                         "%s.options: tmpcopyup at / would hold the whole root file system in "
                         "memory; expected a directory in it",
                         field);
    return NULL;
}

struct error *mount_set_prepare(const struct oci_config *config, const struct bind_source *sources,
                                bool reopen, bool strict, struct mount_set *out) {
    out->count = config->mounts_count;
    out->trees = memory_resize(NULL, out->count, sizeof *out->trees);
    for (size_t i = 0; i < out->count; i++)
        out->trees[i] = -1;
    for (size_t i = 0; i < out->count; i++) {
        memory_owned char *field = text_formatted("mounts[%zu]", i);
        struct mount_options options;
        TRY(mount_options_parse(&config->mounts[i], field, &options));
        struct error *error = check_options(&config->mounts[i], &options, strict, field);
        if (error != NULL) {
            mount_options_free(&options);
            return error;
        }
        if (options.bind)
            error = bind_prepare(config, &config->mounts[i], &options, &sources[i], reopen, &out->trees[i]);
        else
            error = idmap_apply(config, &config->mounts[i], &options, -1); /* says that it cannot be */
        mount_options_free(&options);
        if (error != NULL)
            return error_context(error, "%s", field);
    }
    return NULL;
}

void mount_set_free(struct mount_set *set) {
    for (size_t i = 0; i < set->late_count; i++)
        fd_close(set->late[i]);
    free(set->late);
    free(set->made);
    for (size_t i = 0; i < set->count; i++)
        fd_close(set->trees[i]);
    free(set->trees);
    for (size_t i = 0; i < set->cgroup_views_count; i++) {
        free(set->cgroup_views[i].name);
        fd_close(set->cgroup_views[i].tree);
    }
    free(set->cgroup_views);
    *set = (struct mount_set){0};
}

/* A mount at "/" is the root from there on: what comes later, and pivot_root, go to it (crun #1752). */
static struct error *tree_attach(struct rootfs *root, const struct oci_mount *mount, int tree, int target) {
    memory_owned char *clean = container_path_clean(mount->destination);
    TRY(mount_attach(tree, target, mount->destination));
    if (strcmp(clean, "/") != 0)
        return NULL;
    int over = fcntl(tree, F_DUPFD_CLOEXEC, 0);
    if (over < 0)
        return error_system(errno, "duplicate", "the descriptor of the container's root");
    fd_close(root->fd);
    root->fd = over;
    return NULL;
}

static struct error *bind_attach(struct rootfs *root, const struct oci_mount *mount, int tree) {
    struct container_path path = {mount->destination};
    struct stat status;
    if (fstat(tree, &status) < 0)
        return error_system(errno, "stat", "mount source %s", mount->source);
    fd_owned int target = -1;
    if (S_ISDIR(status.st_mode))
        TRY(rootfs_make_directory(root, path, 0755, (uid_t)-1, (gid_t)-1, &target));
    else
        TRY(rootfs_make_mount_point(root, path, &target));
    return tree_attach(root, mount, tree, target);
}

void mount_set_add_cgroup_view(struct mount_set *set, const char *name, int tree) {
    set->cgroup_views =
        memory_resize(set->cgroup_views, set->cgroup_views_count + 1, sizeof *set->cgroup_views);
    set->cgroup_views[set->cgroup_views_count++] =
        (struct cgroup_view){.name = memory_copy_string(name), .tree = tree};
}

/* The container's own cgroups at /sys/fs/cgroup: in pure v2 the directory itself, else a directory for each
 * hierarchy, as the machine has them, with the comounted names as links. */
static struct error *cgroup_attach_views(const struct rootfs *root, const struct oci_mount *mount,
                                         const struct mount_options *options, struct mount_set *set) {
    fd_owned int target = -1;
    TRY(rootfs_make_directory(root, (struct container_path){mount->destination}, 0755, (uid_t)-1, (gid_t)-1,
                              &target));
    uint64_t attributes = options->set & ~(uint64_t)MOUNT_ATTR_RDONLY;
    if (set->cgroup_views_count == 1 && set->cgroup_views[0].name[0] == '\0') {
        TRY(mount_change(set->cgroup_views[0].tree, false, options->set, options->clear, mount->destination));
        return mount_attach(set->cgroup_views[0].tree, target, mount->destination);
    }
    /* Also where there is no cgroup at all: an empty directory, so that the host's never shows
     * (CVE-2023-25809). */
    string_list_owned struct string_list data = {0};
    string_list_append(&data, "mode=755");
    string_list_append(&data, "size=64k");
    fd_owned int base = -1;
    TRY(mount_new("tmpfs", "tmpfs", &data, attributes, &base));
    TRY(mount_attach(base, target, mount->destination));
    for (size_t i = 0; i < set->cgroup_views_count; i++) {
        struct cgroup_view *view = &set->cgroup_views[i];
        if (mkdirat(base, view->name, 0755) < 0)
            return error_system(errno, "mkdir", "%s/%s", mount->destination, view->name);
        fd_owned int place = openat(base, view->name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (place < 0)
            return error_system(errno, "open", "%s/%s", mount->destination, view->name);
        TRY(mount_change(view->tree, false, options->set, options->clear, view->name));
        TRY(mount_attach(view->tree, place, view->name));
        if (strchr(view->name, ',') == NULL)
            continue;
        memory_owned char *names = memory_copy_string(view->name);
        char *rest = NULL;
        for (char *name = strtok_r(names, ",", &rest); name != NULL; name = strtok_r(NULL, ",", &rest))
            if (symlinkat(view->name, base, name) < 0 && errno != EEXIST)
                return error_system(errno, "symlink", "%s/%s", mount->destination, name);
    }
    return mount_change(base, false, options->set & MOUNT_ATTR_RDONLY, 0, mount->destination);
}

/* File systems that the kernel makes afresh only for the owner of a namespace. Where the container shares
 * that namespace, the machine's own is what it would see anyway, and is bound. */
static const struct {
    const char *type;
    const char *path;
    const char *namespace; /* NULL: also beside a namespace of its own, read-only */
    uint64_t attributes;
} fallbacks[] = {
    /* The host's settings: always read-only (crun #2178). A sysfs is refused also where parts of the
     * machine's are masked. */
    {"sysfs", "/sys", NULL, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC},
    {"proc", "/proc", "pid", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC},
    {"mqueue", "/dev/mqueue", "ipc", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC},
};

/* *out stays -1 where there is none. */
static struct error *fallback_make(const struct oci_config *config, const char *type, uint64_t attributes,
                                   int *out) {
    for (size_t i = 0; i < sizeof fallbacks / sizeof fallbacks[0]; i++) {
        if (strcmp(fallbacks[i].type, type) != 0 ||
            (fallbacks[i].namespace != NULL && oci_config_namespace(config, fallbacks[i].namespace) != NULL))
            continue;
        fd_owned int source = open(fallbacks[i].path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (source < 0)
            return NULL; /* the machine has none either: the kernel's first word counts */
        TRY(mount_copy(source, true, fallbacks[i].path, out));
        return mount_change(*out, true, attributes | fallbacks[i].attributes, 0, fallbacks[i].path);
    }
    return NULL;
}

static bool is_made_here(int target, const struct mount_set *set) {
    struct stat status;
    bool made = false;
    if (fstat(target, &status) < 0)
        return false;
    for (size_t i = 0; i < set->late_count; i++)
        made = made || (set->made[i] != 0 && set->made[i] == status.st_dev);
    return made;
}

/* "remount": the attributes of what is mounted at the place. A file system's own options are for all of its
 * mounts, so that they are changed for a tmpfs of this container's alone: another may be the machine's. */
static struct error *remount(const struct rootfs *root, const struct oci_mount *mount,
                             const struct mount_options *options, const struct mount_set *set) {
    fd_owned int target = -1;
    TRY(rootfs_open(root, (struct container_path){mount->destination}, O_PATH, &target));
    if (options->superblock.count > 0) {
        if (!is_made_here(target, set))
            return error_new(
                ERROR_INVALID,
                "options: \"%s\" beside \"remount\" is for a tmpfs that a mount before it has made",
                options->superblock.items[0]);
        TRY(mount_reconfigure(target, &options->superblock, mount->destination));
    }
    TRY(mount_change(target, false, options->set, options->clear, mount->destination));
    return mount_change(target, true, options->recursive_set, options->recursive_clear, mount->destination);
}

static bool has_option(const struct mount_options *options, const char *prefix) {
    for (size_t i = 0; i < options->superblock.count; i++)
        if (text_starts_with(options->superblock.items[i], prefix))
            return true;
    return false;
}

/* The default data of a devpts, and the mode and owner of what a tmpfs covers (runc #4971): a tmpfs's alone,
 * as another file system has modes of its own (crun #2176). */
static void superblock_complete(const char *type, const struct stat *covered, struct mount_options *options) {
    if (strcmp(type, "tmpfs") == 0 && covered != NULL && !has_option(options, "mode="))
        string_list_append_owned(&options->superblock, text_formatted("mode=%o", covered->st_mode & 07777));
    if (strcmp(type, "devpts") == 0 && options->superblock.count == 0) {
        string_list_append(&options->superblock, "newinstance");
        string_list_append(&options->superblock, "ptmxmode=0666");
        string_list_append(&options->superblock, "mode=0620");
    }
}

static struct error *copy_up(const struct rootfs *root, const struct oci_mount *mount,
                             const struct mount_options *options, const struct stat *covered, int tree) {
    fd_owned int from = -1;
    TRY(rootfs_open(root, (struct container_path){mount->destination}, O_RDONLY | O_DIRECTORY, &from));
    if (!has_option(options, "uid=") && !has_option(options, "gid=") &&
        fchownat(tree, "", covered->st_uid, covered->st_gid, AT_EMPTY_PATH) < 0 && errno != EINVAL)
        return error_system(errno, "chown", "%s", mount->destination);
    TRY(directory_copy(from, tree, COPY_UP_MAX, mount->destination));
    return mount_change(tree, false, options->set & MOUNT_ATTR_RDONLY, 0, mount->destination);
}

static struct error *filesystem_attach(struct rootfs *root, const struct oci_config *config,
                                       const struct oci_mount *mount, struct mount_options *options,
                                       int *late, dev_t *made) {
    struct container_path path = {mount->destination};
    const char *type = mount->type ? mount->type : "";
    if (type[0] == '\0')
        return error_new(ERROR_INVALID, "type: expected a file system type, or \"bind\" among the options");
    fd_owned int target = -1;
    bool is_tmpfs = strcmp(type, "tmpfs") == 0;
    struct stat before;
    bool existed = false;
    struct error *missing = rootfs_open(root, path, O_PATH | O_DIRECTORY, &target);
    if (missing == NULL)
        existed = fstat(target, &before) == 0;
    error_ignore(missing); /* made below */
    if (!existed)
        TRY(rootfs_make_directory(root, path, 0755, (uid_t)-1, (gid_t)-1, &target));
    superblock_complete(type, existed ? &before : NULL, options);
    fd_owned int tree = -1;
    /* Content is copied, and places for what is mounted below are made, before the mount turns read-only. */
    uint64_t attributes = options->set & ~(is_tmpfs || options->copy_up ? (uint64_t)MOUNT_ATTR_RDONLY : 0);
    struct error *error =
        mount_new(type, mount->source ? mount->source : type, &options->superblock, attributes, &tree);
    if (error != NULL && error->number == EPERM) {
        struct error *failed = fallback_make(config, type, options->set, &tree);
        if (failed != NULL || tree >= 0) {
            error_free(error);
            error = failed;
        }
    }
    TRY(error);
    struct stat own;
    if (is_tmpfs && fstat(tree, &own) == 0)
        *made = own.st_dev;
    if (is_tmpfs && options->copy_up && existed)
        TRY(copy_up(root, mount, options, &before, tree));
    TRY(tree_attach(root, mount, tree, target));
    if (options->propagation != 0)
        TRY(mount_propagate(tree, options->propagation_recursive, options->propagation, mount->destination));
    TRY(mount_change(tree, true, options->recursive_set, options->recursive_clear, mount->destination));
    if (is_tmpfs && (options->set & MOUNT_ATTR_RDONLY) != 0)
        *late = fd_take(&tree);
    return NULL;
}

struct error *mount_set_attach(struct rootfs *root, const struct oci_config *config, struct mount_set *set) {
    set->late = memory_zeroed((config->mounts_count + 1) * sizeof *set->late);
    set->made = memory_zeroed((config->mounts_count + 1) * sizeof *set->made);
    set->late_count = config->mounts_count;
    for (size_t i = 0; i < set->late_count; i++)
        set->late[i] = -1;
    for (size_t i = 0; i < config->mounts_count; i++) {
        const struct oci_mount *mount = &config->mounts[i];
        memory_owned char *field = text_formatted("mounts[%zu]", i);
        struct mount_options options;
        TRY(mount_options_parse(mount, field, &options));
        struct error *error;
        if (set->trees[i] >= 0)
            error = bind_attach(root, mount, set->trees[i]);
        else if (options.remount)
            error = remount(root, mount, &options, set);
        else if (mount->type != NULL && text_starts_with(mount->type, "cgroup"))
            error = cgroup_attach_views(root, mount, &options, set);
        else
            error = filesystem_attach(root, config, mount, &options, &set->late[i], &set->made[i]);
        mount_options_free(&options);
        if (error != NULL)
            return error_context(error, "%s (%s)", field, mount->destination);
    }
    return NULL;
}

struct error *mount_set_complete(const struct oci_config *config, struct mount_set *set) {
    for (size_t i = 0; i < set->late_count; i++) {
        if (set->late[i] < 0)
            continue;
        TRY(mount_change(set->late[i], false, MOUNT_ATTR_RDONLY, 0, config->mounts[i].destination));
        fd_close(fd_take(&set->late[i]));
    }
    return NULL;
}
