/* Files: changes to what is read-only, keys, the kernel's settings, sockets of the host. */
#define _GNU_SOURCE
#include "attempts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Only opened, never written to: some of these are the machine's. */
static int open_to_write(const char *path) {
    return open(path, O_WRONLY) < 0 ? -1 : 0;
}
/* Through a descriptor that was opened for reading, or for nothing. */
static int reopen_to_write(int fd) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return fd < 0 ? -1 : open_to_write(path);
}

/* --- the root --- */

static int root_open(void) {
    return open_to_write("/etc/passwd");
}
static int root_append(void) {
    return open("/etc/passwd", O_WRONLY | O_APPEND) < 0 ? -1 : 0;
}
static int root_create(void) {
    return open("/etc/ld.so.preload", O_WRONLY | O_CREAT | O_EXCL, 0644) < 0 ? -1 : 0;
}
static int root_unlink(void) {
    return unlink("/bin/ash");
}
static int root_rename(void) {
    return rename("/etc/group", "/etc/group.old") < 0 ? -1 : rename("/etc/group.old", "/etc/group");
}
static int root_mode(void) {
    return chmod("/etc/group", 0666);
}
static int root_owner(void) {
    return chown("/etc/group", 1000, 1000);
}
static int root_symlink(void) {
    return symlink("/tmp/x", "/etc/link");
}
static int root_link(void) {
    return link("/etc/group", "/etc/hard");
}
static int root_directory(void) {
    return mkdir("/lib/escape", 0755);
}
static int root_fifo(void) {
    return mkfifo("/etc/fifo", 0600);
}
static int root_truncate(void) {
    struct stat status;
    return stat("/etc/group", &status) < 0 ? -1 : truncate("/etc/group", status.st_size);
}
static int root_attribute(void) {
    return setxattr("/etc/group", "trusted.escape", "x", 1, 0);
}
static int root_by_descriptor(void) {
    return reopen_to_write(open("/etc/passwd", O_RDONLY));
}
static int root_by_path_descriptor(void) {
    return reopen_to_write(open("/etc/passwd", O_PATH));
}
static int root_by_proc(void) {
    return open_to_write("/proc/self/root/etc/passwd");
}
static int root_by_other_process(void) {
    return open_to_write("/proc/1/root/etc/passwd");
}
static int root_by_working_directory(void) {
    return chdir("/etc") < 0 ? -1 : open_to_write("/proc/self/cwd/passwd");
}
static int root_by_symlink(void) {
    unlink("/tmp/way");
    return symlink("/etc/passwd", "/tmp/way") < 0 ? -1 : open_to_write("/tmp/way");
}

static int root_by_link_to_descriptor(void) {
    char path[64];
    unlink("/tmp/number");
    snprintf(path, sizeof path, "/proc/self/fd/%d", open("/etc/passwd", O_RDONLY));
    return symlink(path, "/tmp/number") < 0 ? -1 : open_to_write("/tmp/number");
}
static int root_create_by_proc(void) {
    return open("/proc/self/root/etc/made", O_WRONLY | O_CREAT, 0644) < 0 ? -1 : 0;
}

/* --- the kernel's settings --- */

static int kernel_core_pattern(void) {
    return open_to_write("/proc/sys/kernel/core_pattern");
}
static int kernel_caches(void) {
    return open_to_write("/proc/self/root/proc/sys/vm/drop_caches");
}
static int kernel_sysfs(void) {
    return open_to_write("/sys/kernel/mm/transparent_hugepage/enabled");
}
static int kernel_cgroup(void) {
    struct stat status;
    return mkdir(stat("/sys/fs/cgroup/pids", &status) == 0 ? "/sys/fs/cgroup/pids/escape"
                                                           : "/sys/fs/cgroup/escape",
                 0755);
}
/* Masked: there, and empty. */
static int kernel_timers(void) {
    char byte;
    int fd = open("/proc/timer_list", O_RDONLY);
    if (fd < 0)
        return -1;
    return read(fd, &byte, 1) == 1 ? 0 : ABSENT;
}

/* --- keys, which the image has where decoys go --- */

#define KEY "/root/.ssh/id_rsa"

static int key_read(void) {
    return attempt_find_marker(open(KEY, O_RDONLY));
}
static int key_aws(void) {
    return attempt_find_marker(open("/root/.aws/credentials", O_RDONLY));
}
static int key_by_symlink(void) {
    unlink("/tmp/key");
    return symlink(KEY, "/tmp/key") < 0 ? -1 : attempt_find_marker(open("/tmp/key", O_RDONLY));
}
static int key_by_proc(void) {
    return attempt_find_marker(open("/proc/self/root" KEY, O_RDONLY));
}
static int key_by_directory(void) {
    return attempt_find_marker(openat(open("/root/.ssh", O_PATH), "id_rsa", O_RDONLY));
}
static int key_by_descriptor(void) {
    char path[64];
    int fd = open(KEY, O_PATH);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return fd < 0 ? -1 : attempt_find_marker(open(path, O_RDONLY));
}
/* What lies below a decoy? */
static int key_by_rename(void) {
    if (rename(KEY, "/root/.ssh/moved") < 0)
        return -1;
    int result = attempt_find_marker(open("/root/.ssh/moved", O_RDONLY));
    rename("/root/.ssh/moved", KEY);
    return result;
}
static int key_by_directory_rename(void) {
    if (rename("/root/.ssh", "/root/moved") < 0)
        return -1;
    int result = attempt_find_marker(open("/root/moved/id_rsa", O_RDONLY));
    rename("/root/moved", "/root/.ssh");
    return result;
}
static int key_by_link(void) {
    unlink("/root/linked");
    return link(KEY, "/root/linked") < 0 ? -1 : attempt_find_marker(open("/root/linked", O_RDONLY));
}

/* --- what somebody mounted at /data --- */

static int data_read(void) {
    return attempt_find_marker(open("/data/secret", O_RDONLY));
}
static int data_key(void) {
    return attempt_find_marker(open("/data/.ssh/id_ed25519", O_RDONLY));
}
static int data_symlink(void) {
    return attempt_find_marker(open("/data/link", O_RDONLY));
}
static int data_socket(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/data/docker.sock"};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
        return -1;
    return attempt_find_marker(fd);
}
static int data_hook(void) {
    return open("/data/.git/hooks/pre-commit", O_WRONLY | O_CREAT, 0755) < 0 ? -1 : 0;
}

static int data_hook_by_rename(void) {
    if (rename("/data/.git", "/data/aside") < 0)
        return -1;
    if (mkdir("/data/.git", 0755) < 0 || mkdir("/data/.git/hooks", 0755) < 0)
        return -1;
    return data_hook();
}

const struct attempt file_attempts[] = {
    {"root_open", root_open},
    {"root_append", root_append},
    {"root_create", root_create},
    {"root_unlink", root_unlink},
    {"root_rename", root_rename},
    {"root_mode", root_mode},
    {"root_owner", root_owner},
    {"root_symlink", root_symlink},
    {"root_link", root_link},
    {"root_directory", root_directory},
    {"root_fifo", root_fifo},
    {"root_truncate", root_truncate},
    {"root_attribute", root_attribute},
    {"root_by_descriptor", root_by_descriptor},
    {"root_by_path_descriptor", root_by_path_descriptor},
    {"root_by_proc", root_by_proc},
    {"root_by_other_process", root_by_other_process},
    {"root_by_working_directory", root_by_working_directory},
    {"root_by_symlink", root_by_symlink},
    {"root_by_link_to_descriptor", root_by_link_to_descriptor},
    {"root_create_by_proc", root_create_by_proc},
    {"kernel_core_pattern", kernel_core_pattern},
    {"kernel_caches", kernel_caches},
    {"kernel_sysfs", kernel_sysfs},
    {"kernel_cgroup", kernel_cgroup},
    {"kernel_timers", kernel_timers},
    {"key_read", key_read},
    {"key_aws", key_aws},
    {"key_by_symlink", key_by_symlink},
    {"key_by_proc", key_by_proc},
    {"key_by_directory", key_by_directory},
    {"key_by_descriptor", key_by_descriptor},
    {"key_by_rename", key_by_rename},
    {"key_by_directory_rename", key_by_directory_rename},
    {"key_by_link", key_by_link},
    {"data_read", data_read},
    {"data_key", data_key},
    {"data_symlink", data_symlink},
    {"data_socket", data_socket},
    {"data_hook", data_hook},
    {"data_hook_by_rename", data_hook_by_rename},
    {0},
};
