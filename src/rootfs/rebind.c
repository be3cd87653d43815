#include "rootfs/rebind.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "rootfs/attach.h"
#include "sys/calls.h"

static bool is_absent(const struct error *error) {
    return error != NULL && (error->number == ENOENT || error->number == ENOTDIR || error->number == EACCES ||
                             error->number == ELOOP);
}

static struct error *rebind(const struct rootfs *root, struct container_path path, uint64_t clear) {
    fd_owned int place = -1;
    struct error *error = rootfs_open_plain(root, path, O_PATH, &place);
    /* Where the image has a symlink on the way to a mount, it leads to the same place as when it was mounted.
     */
    if (error != NULL && error->number == ELOOP && clear == 0) {
        error_ignore(error);
        error = rootfs_open(root, path, O_PATH, &place);
    }
    if (is_absent(error)) {
        error_ignore(error);
        return NULL;
    }
    TRY(error);
    fd_owned int tree = -1;
    TRY(mount_copy(place, true, path.text, &tree));
    TRY(mount_change(tree, false, 0, clear, path.text));
    return mount_attach(tree, place, path.text);
}

struct error *rebind_fixed(const struct rootfs *root, struct container_path path) {
    return rebind(root, path, 0);
}

struct error *rebind_writable(const struct rootfs *root, struct container_path path) {
    return rebind(root, path, MOUNT_ATTR_RDONLY);
}

void rebind_make_directory(const struct rootfs *root, struct container_path path) {
    memory_owned char *clean = container_path_clean(path.text);
    char *slash = strrchr(clean, '/');
    memory_owned char *name = memory_copy_string(slash + 1);
    *slash = '\0';
    fd_owned int parent = -1;
    struct stat status;
    struct error *error = rootfs_open(root, (struct container_path){clean[0] != '\0' ? clean : "/"},
                                      O_RDONLY | O_DIRECTORY, &parent);
    if (error == NULL && fstat(parent, &status) == 0 && mkdirat(parent, name, 0755) == 0)
        (void)!fchownat(parent, name, status.st_uid, status.st_gid, AT_SYMLINK_NOFOLLOW);
    error_ignore(error); /* What is not there and cannot be made by the container's root cannot be made later
                            either. */
}
