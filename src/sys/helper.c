#include "sys/helper.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"

/* A program that is run with our rights must be as hard to replace as we are. */
static bool is_trusted(int helper, const struct stat *own) {
    struct stat status;
    if (fstat(helper, &status) < 0 || !S_ISREG(status.st_mode) || (status.st_mode & 022) != 0)
        return false;
    return status.st_uid == own->st_uid || status.st_uid == 0 || status.st_uid == geteuid();
}

int sys_helper_open(const char *name) {
    struct stat own;
    if (stat("/proc/self/exe", &own) < 0)
        return -1;
    char directory[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", directory, sizeof directory - 1);
    directory[length < 0 ? 0 : length] = '\0';
    char *slash = strrchr(directory, '/');
    if (slash != NULL)
        *slash = '\0';
    memory_owned char *beside = text_formatted("%s/%s", directory, name);
    memory_owned char *relative = text_formatted("%s/../libexec/pinfold/%s", directory, name);
    memory_owned char *installed = text_formatted("%s/%s", PINFOLD_LIBEXECDIR, name);
    const char *places[] = {beside, relative, installed};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (places[i][0] != '/')
            continue;
        fd_owned int fd = open(places[i], O_RDONLY | O_CLOEXEC | O_NOCTTY);
        if (fd >= 0 && is_trusted(fd, &own))
            return fd_take(&fd);
    }
    return -1;
}
