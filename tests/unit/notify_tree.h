/* The little container of test_notify.c: a root that is read-only, with a writable and another read-only
 * mount. */
#pragma once

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/text.h"

static void make_file(const char *tree, const char *name, mode_t mode) {
    char *path = text_formatted("%s%s", tree, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
    free(path);
}

static void make_directory(const char *tree, const char *name) {
    char *path = text_formatted("%s%s", tree, name);
    assert_int_equal(mkdir(path, 0777), 0);
    assert_int_equal(chmod(path, 0777), 0);
    free(path);
}

static void make_link(const char *tree, const char *name, const char *target) {
    char *path = text_formatted("%s%s", tree, name);
    assert_int_equal(symlink(target, path), 0);
    free(path);
}

static void mount_tmpfs(const char *tree, const char *name) {
    char *path = text_formatted("%s%s", tree, name);
    assert_int_equal(mount("test", path, "tmpfs", 0, "mode=777"), 0);
    free(path);
}

static void make_read_only(const char *tree, const char *name, bool bind) {
    char *path = text_formatted("%s%s", tree, name);
    if (bind)
        assert_int_equal(mount(path, path, NULL, MS_BIND, NULL), 0);
    assert_int_equal(mount(NULL, path, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL), 0);
    free(path);
}

static void tree_make(const char *tree) {
    mount_tmpfs(tree, "");
    static const char *const directories[] = {"/etc",  "/dir",     "/rw",     "/other",
                                              "/full", "/removed", "/changed"};
    for (size_t i = 0; i < sizeof directories / sizeof *directories; i++)
        make_directory(tree, directories[i]);
    static const char *const files[] = {"/etc/passwd", "/etc/linked", "/etc/upward", "/etc/far",
                                        "/etc/unlinked"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        make_file(tree, files[i], 0644);
    make_file(tree, "/etc/open", 0666);
    make_file(tree, "/full/file", 0644);
    make_link(tree, "/etc/link", "linked");
    make_link(tree, "/etc/dangling", "/etc/behind-dangling");
    make_link(tree, "/etc/to-rw", "/rw/made-through-link");
    make_link(tree, "/dir/loop", "loop");
    char *path = text_formatted("%s/etc/fifo", tree);
    assert_int_equal(mkfifo(path, 0666), 0);
    free(path);
    path = text_formatted("%s/etc/null", tree);
    assert_int_equal(mknod(path, S_IFCHR | 0666, makedev(1, 3)), 0);
    assert_int_equal(chmod(path, 0666), 0);
    free(path);
    mount_tmpfs(tree, "/rw");
    mount_tmpfs(tree, "/other");
    make_file(tree, "/other/file", 0666);
    make_read_only(tree, "/other", false);
    make_file(tree, "/rw/file", 0666);
    make_file(tree, "/rw/protected", 0666);
    make_read_only(tree, "/rw/protected", true);
    make_file(tree, "/rw/cut", 0666);
    make_read_only(tree, "/rw/cut", true);
    make_link(tree, "/rw/up", "../etc/upward");
    make_link(tree, "/rw/absolute", "/etc/far");
    make_link(tree, "/rw/missing", "../etc/behind-missing");
    make_directory(tree, "/rw/sub");
    make_file(tree, "/rw/open", 0666);
    make_directory(tree, "/rw/closed");
    make_file(tree, "/rw/closed/file", 0644);
    for (int i = 1; i < 10; i++) {
        char name[32];
        snprintf(name, sizeof name, "/rw/closed/file-%d", i);
        make_file(tree, name, 0644);
    }
    path = text_formatted("%s/rw/closed", tree);
    assert_int_equal(chmod(path, 0755), 0);
    free(path);
    make_read_only(tree, "", false);
}

static void tree_remove(const char *tree) {
    assert_int_equal(umount2(tree, MNT_DETACH), 0);
}
