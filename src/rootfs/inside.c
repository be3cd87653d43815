#include "rootfs/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "rootfs/attach.h"
#include "sys/calls.h"

#define DIRECTORY "inside"
#define FILE_NAME "denials.jsonl"

/* For whoever works in the container, a program that reads text among them. */
static const char readme[] =
    "This container is a sandbox. What its policy does not allow is denied at once, and recorded outside.\n"
    "\n"
    "denials.jsonl, beside this file, shows what was denied here: a JSON object a line, the newest last.\n"
    "  reason   what kind of denial it is: fs.write.read_only, net.host.not_allowed, syscall.not_allowed, "
    "...\n"
    "  object   what was asked for: a path, a host, a system call, a variable\n"
    "  message  one sentence\n"
    "  remedy   the line of the policy that would allow it, where one can\n"
    "  count    how often, where it was more than once\n"
    "\n"
    "A denial is a boundary, not a fault: trying again, or another way, is denied as well. If the task needs "
    "what was\n"
    "denied, say so to the person who started this container, with the line of `remedy`: only that person "
    "can add it\n"
    "to the policy. Nothing in here can be changed from inside.\n";

static struct error *readable_file(int directory, const char *name, const char *content, int *out) {
    fd_owned int fd =
        openat(directory, name, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_system(errno, "create", "%s", name);
    TRY(fd_write_all(fd, content, strlen(content), name));
    if (fchmod(fd, 0444) < 0) /* whatever the umask */
        return error_system(errno, "chmod", "%s", name);
    *out = fd_take(&fd);
    return NULL;
}

static struct error *directory_make(int store, int *file, int *out) {
    if (mkdirat(store, DIRECTORY, 0700) < 0)
        return error_system(errno, "mkdir", DIRECTORY);
    fd_owned int directory = openat(store, DIRECTORY, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (directory < 0 || fchmod(directory, 0755) < 0)
        return error_system(errno, "open", DIRECTORY);
    fd_owned int note = -1;
    TRY(readable_file(directory, "README", readme, &note));
    TRY(readable_file(directory, FILE_NAME, "", file));
    *out = fd_take(&directory);
    return NULL;
}

/* A symlink of the image could lead into a directory of the user's, where we would leave one. *out is -1
 * then, and where a file is in the way or nothing can be made. */
static struct error *place_open(const struct rootfs *root, struct container_path place, int *out) {
    static const int passed_over[] = {ELOOP, ENOTDIR, EROFS, EACCES};
    struct error *error = rootfs_open_plain(root, place, O_PATH | O_DIRECTORY, out);
    if (error != NULL && error->number == ENOENT) {
        error_ignore(error);
        error = rootfs_make_directory(root, place, 0755, (uid_t)-1, (gid_t)-1, out);
    }
    for (size_t i = 0; error != NULL && i < sizeof passed_over / sizeof *passed_over; i++)
        if (error->number == passed_over[i]) {
            error_ignore(error);
            error = NULL;
        }
    return error;
}

struct error *inside_attach(const struct rootfs *root, int store, struct container_path place, int *out) {
    *out = -1;
    fd_owned int target = -1;
    TRY(place_open(root, place, &target));
    if (target < 0)
        return NULL;
    fd_owned int file = -1;
    fd_owned int directory = -1;
    TRY(directory_make(store, &file, &directory));
    fd_owned int tree = -1;
    TRY(mount_copy(directory, false, place.text, &tree));
    TRY(mount_change(tree, false,
                     MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, 0,
                     place.text));
    TRY(mount_attach(tree, target, place.text));
    *out = fd_take(&file);
    return NULL;
}
