#include "rootfs/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "sys/calls.h"

struct error *mount_propagate(int mount, bool recursive, uint64_t propagation, const char *subject) {
    struct mount_attr attributes = {.propagation = propagation};
    if (sys_mount_setattr(mount, "", AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0), &attributes) < 0)
        return error_system(errno, "set propagation of", "%s", subject);
    return NULL;
}

struct error *mount_copy(int source, bool recursive, const char *subject, int *out) {
    *out = sys_open_tree(source, "", OPEN_TREE_CLONE | AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0));
    if (*out < 0)
        return error_system(errno, "open_tree", "%s", subject);
    return mount_propagate(*out, true, MS_PRIVATE, subject);
}

/* The kernel's own words on what a file system did not like, from the fs context's log. */
static void configuration_message(int fs, struct text *out) {
    char line[512];
    ssize_t length = read(fs, line, sizeof line - 1);
    if (length > 2) {
        line[length] = '\0';
        line[strcspn(line, "\n")] = '\0'; /* an error is one line */
        text_format(out, " (%s)", line + 2);
    }
}

static struct error *options_put(int fs, const char *type, const struct string_list *superblock) {
    for (size_t i = 0; superblock != NULL && i < superblock->count; i++) {
        memory_owned char *key = memory_copy_string(superblock->items[i]);
        char *value = strchr(key, '=');
        if (value != NULL)
            *value++ = '\0';
        int result = value ? sys_fsconfig(fs, FSCONFIG_SET_STRING, key, value, 0)
                           : sys_fsconfig(fs, FSCONFIG_SET_FLAG, key, NULL, 0);
        if (result < 0) {
            int number = errno;
            /* gid=5 of devpts is not mapped in every user namespace; the file system works without it. */
            if (number == EINVAL && strcmp(type, "devpts") == 0 && strcmp(key, "gid") == 0)
                continue;
            text_owned struct text words = {0};
            configuration_message(fs, &words);
            return error_system(number, "mount", "%s with option %s%s", type, superblock->items[i],
                                text_string(&words));
        }
    }
    return NULL;
}

struct error *mount_reconfigure(int mount, const struct string_list *superblock, const char *subject) {
    fd_owned int fs = sys_fspick(mount, "", FSPICK_EMPTY_PATH);
    if (fs < 0)
        return error_system(errno, "fspick", "%s", subject);
    TRY(options_put(fs, "tmpfs", superblock));
    if (sys_fsconfig(fs, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0) == 0)
        return NULL;
    int number = errno;
    text_owned struct text words = {0};
    configuration_message(fs, &words);
    return error_system(number, "remount", "%s%s", subject, text_string(&words));
}

struct error *mount_new(const char *type, const char *source, const struct string_list *superblock,
                        uint64_t attributes, int *out) {
    fd_owned int fs = sys_fsopen(type, 0);
    if (fs < 0)
        return error_system(errno, "fsopen", "%s", type);
    if (source != NULL && sys_fsconfig(fs, FSCONFIG_SET_STRING, "source", source, 0) < 0)
        return error_system(errno, "fsconfig", "%s source=%s", type, source);
    TRY(options_put(fs, type, superblock));
    if (sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0) {
        int number = errno;
        text_owned struct text words = {0};
        configuration_message(fs, &words);
        return error_system(number, "create", "a %s file system%s", type, text_string(&words));
    }
    *out = sys_fsmount(fs, 0, (unsigned)attributes);
    if (*out < 0)
        return error_system(errno, "fsmount", "%s", type);
    return NULL;
}

struct error *mount_change(int mount, bool recursive, uint64_t set, uint64_t clear, const char *subject) {
    if (set == 0 && clear == 0)
        return NULL;
    struct mount_attr attributes = {.attr_set = set, .attr_clr = clear};
    unsigned flags = AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0);
    if (sys_mount_setattr(mount, "", flags, &attributes) == 0)
        return NULL;
    int number = errno;
    if (number != EPERM || clear == 0)
        return error_system(number, "change attributes of", "%s", subject);
    /* What is locked stays, the rest is done: first what is set (the atime field apart, which may be locked
     * as a whole), then each flag that is cleared by itself. */
    attributes = (struct mount_attr){.attr_set = set & ~(uint64_t)MOUNT_ATTR__ATIME};
    if (attributes.attr_set != 0 && sys_mount_setattr(mount, "", flags, &attributes) < 0)
        return error_system(errno, "change attributes of", "%s", subject);
    for (uint64_t bit = 1; bit != 0 && bit <= clear; bit <<= 1) {
        attributes = (struct mount_attr){.attr_clr = clear & bit & ~(uint64_t)MOUNT_ATTR__ATIME};
        if (attributes.attr_clr != 0 && sys_mount_setattr(mount, "", flags, &attributes) < 0 &&
            errno != EPERM)
            return error_system(errno, "change attributes of", "%s", subject);
    }
    attributes =
        (struct mount_attr){.attr_set = set & MOUNT_ATTR__ATIME, .attr_clr = clear & MOUNT_ATTR__ATIME};
    if (attributes.attr_clr != 0 && sys_mount_setattr(mount, "", flags, &attributes) < 0 && errno != EPERM)
        return error_system(errno, "change attributes of", "%s", subject);
    return NULL;
}

struct error *mount_attach(int mount, int target, const char *subject) {
    if (sys_move_mount(mount, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
        return error_system(errno, "mount", "%s", subject);
    return NULL;
}

struct error *mount_detach(int mount, const char *subject) {
    char place[64];
    snprintf(place, sizeof place, "/proc/self/fd/%d", mount);
    if (umount2(place, MNT_DETACH) < 0)
        return error_system(errno, "unmount", "%s", subject);
    return NULL;
}
