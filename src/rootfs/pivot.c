#include "rootfs/pivot.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mntent.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/fd.h"
#include "rootfs/attach.h"
#include "sys/calls.h"

struct propagation_word {
    const char *name;
    unsigned long flags;
};

static const struct propagation_word propagation_words[] = {
    {"shared", MS_SHARED},         {"rshared", MS_SHARED | MS_REC},
    {"slave", MS_SLAVE},           {"rslave", MS_SLAVE | MS_REC},
    {"private", MS_PRIVATE},       {"rprivate", MS_PRIVATE | MS_REC},
    {"unbindable", MS_UNBINDABLE}, {"runbindable", MS_UNBINDABLE | MS_REC},
};

static unsigned long propagation_flags(const struct oci_config *config) {
    const char *word = config->linux_config ? config->linux_config->rootfs_propagation : NULL;
    for (size_t i = 0; word != NULL && i < sizeof propagation_words / sizeof propagation_words[0]; i++)
        if (strcmp(propagation_words[i].name, word) == 0)
            return propagation_words[i].flags;
    return 0;
}

struct error *rootfs_enter(const char *path, const struct stat *judged, const struct oci_config *config,
                           struct rootfs *out) {
    unsigned long wanted = propagation_flags(config) & ~(unsigned long)MS_REC;
    /* Slave lets later mounts of the machine in (hot-plugged volumes of rslave mounts) and none out. */
    unsigned long outer = wanted == MS_PRIVATE ? MS_PRIVATE : MS_SLAVE;
    if (mount(NULL, "/", NULL, MS_REC | outer, NULL) < 0)
        return error_system(errno, "set propagation of", "/");
    fd_owned int place = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (place < 0)
        return error_system(errno, "open", "root.path %s", path);
    struct stat status;
    if (fstat(place, &status) < 0)
        return error_system(errno, "stat", "root.path %s", path);
    if (status.st_dev != judged->st_dev || status.st_ino != judged->st_ino)
        return error_new(ERROR_REFUSED, "root.path %s was replaced while the container was created", path);
    /* A copy of a slave is a slave of the same peers, a private one gets nothing (crun #2066, youki #3621).
     */
    fd_owned int tree = sys_open_tree(place, "", OPEN_TREE_CLONE | AT_EMPTY_PATH | AT_RECURSIVE);
    if (tree < 0)
        return error_system(errno, "open_tree", "root.path %s", path);
    TRY(mount_propagate(tree, true, wanted == MS_SLAVE || wanted == MS_SHARED ? MS_SLAVE : MS_PRIVATE, path));
    TRY(mount_attach(tree, place, path));
    out->fd = fd_take(&tree);
    return NULL;
}

struct error *rootfs_forbid_devices(const struct rootfs *root) {
    return mount_change(root->fd, true, MOUNT_ATTR_NODEV, 0, "the container's root");
}

struct error *rootfs_make_readonly(const struct rootfs *root) {
    return mount_change(root->fd, false, MOUNT_ATTR_RDONLY, 0, "the container's root");
}

/* Without pivot_root(2) the machine's mounts stay in the namespace, below the new root. A whole procfs or
 * sysfs among them would let any user namespace in the container mount one more, without the masks (the
 * kernel asks only whether one is fully visible). In a user namespace they are locked, and covered instead.
 */
static struct error *kernel_mounts_remove(const struct rootfs *root) {
    char link[64], own[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", root->fd);
    ssize_t length = readlink(link, own, sizeof own - 2);
    if (length < 0)
        return error_system(errno, "read", "%s", link);
    own[length] = '/';
    own[length + 1] = '\0';
    string_list_owned struct string_list places = {0};
    FILE *mounts = setmntent("/proc/self/mounts", "re");
    if (mounts == NULL)
        return error_system(errno, "open", "/proc/self/mounts");
    for (struct mntent *entry; (entry = getmntent(mounts)) != NULL;)
        if ((strcmp(entry->mnt_type, "proc") == 0 || strcmp(entry->mnt_type, "sysfs") == 0) &&
            strncmp(entry->mnt_dir, own, (size_t)length + 1) != 0)
            string_list_append(&places, entry->mnt_dir);
    endmntent(mounts);
    for (size_t i = places.count; i > 0; i--) { /* those on top come last */
        const char *place = places.items[i - 1];
        if (umount2(place, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
            continue;
        if (mount("none", place, "tmpfs", MS_RDONLY, "size=0k,nr_inodes=2") < 0)
            return error_system(errno, "cover", "%s of the machine (--no-pivot)", place);
    }
    return NULL;
}

struct error *rootfs_pivot(const struct rootfs *root, bool no_pivot) {
    fd_owned int old_root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (old_root < 0)
        return error_system(errno, "open", "/");
    if (fchdir(root->fd) < 0)
        return error_system(errno, "chdir", "to the container's root");
    if (no_pivot) {
        TRY(kernel_mounts_remove(root));
        if (sys_move_mount(root->fd, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) < 0)
            return error_system(errno, "move", "the container's root to /");
        if (chroot(".") < 0)
            return error_system(errno, "chroot", "to the container's root");
    } else {
        /* The same directory twice: the old root ends up mounted over the new one, and is found by its
         * descriptor. */
        if (sys_pivot_root(".", ".") < 0)
            return error_system(errno, "pivot_root", "to the container's root");
        if (fchdir(old_root) < 0)
            return error_system(errno, "chdir", "to the old root");
        if (mount(NULL, ".", NULL, MS_SLAVE | MS_REC, NULL) < 0)
            return error_system(errno, "set propagation of", "the old root");
        if (umount2(".", MNT_DETACH) < 0)
            return error_system(errno, "unmount", "the old root");
    }
    if (chdir("/") < 0)
        return error_system(errno, "chdir", "/");
    return NULL;
}

struct error *rootfs_take_away(const struct rootfs *root, int to, const struct oci_config *config) {
    fd_owned int tree =
        sys_open_tree(root->fd, "", OPEN_TREE_CLONE | AT_EMPTY_PATH | AT_RECURSIVE | OPEN_TREE_CLOEXEC);
    if (tree < 0)
        return error_system(errno, "open_tree", "the container's root");
    unsigned long wanted = propagation_flags(config);
    if (wanted != 0)
        TRY(mount_propagate(tree, (wanted & MS_REC) != 0, wanted & ~(unsigned long)MS_REC,
                            "the container's root (linux.rootfsPropagation)"));
    if (setns(to, CLONE_NEWNS) < 0)
        return error_system(errno, "return", "to the caller's mount namespace");
    /* What is detached when its descriptor is closed stays whole below a root that is in use. */
    if (fchdir(tree) < 0 || chroot(".") < 0)
        return error_system(errno, "chroot", "to the container's root");
    return NULL;
}

struct error *rootfs_propagate(const struct oci_config *config) {
    unsigned long flags = propagation_flags(config);
    /* Private or slave the whole tree is since rootfs_enter, and what was mounted since is private or what
     * its own options say: an rshared volume stays in the peer group of its source (crun #2122). */
    if ((flags & (MS_PRIVATE | MS_SLAVE)) != 0)
        flags &= ~(unsigned long)MS_REC;
    if (flags != 0 && mount(NULL, "/", NULL, flags, NULL) < 0)
        return error_system(errno, "set propagation of", "/ (linux.rootfsPropagation)");
    return NULL;
}
