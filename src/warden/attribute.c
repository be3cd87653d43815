/* Which process of the container has a socket. */
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"
#include "warden/observers.h"

#define UDP_TABLE_MAX (256 * 1024) /* 2,000 sockets */

/* Whether the process has the socket among its descriptors. */
static bool process_holds(int proc, pid_t pid, const char *socket_name) {
    char path[32];
    snprintf(path, sizeof path, "%d/fd", (int)pid);
    int fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return false;
    DIR *directory = fdopendir(fd);
    if (directory == NULL) {
        fd_close(fd);
        return false;
    }
    bool holds = false;
    struct dirent *entry;
    while (!holds && (entry = readdir(directory)) != NULL) {
        char target[40];
        ssize_t length = readlinkat(dirfd(directory), entry->d_name, target, sizeof target - 1);
        if (length <= 0)
            continue;
        target[length] = '\0';
        holds = strcmp(target, socket_name) == 0;
    }
    closedir(directory);
    return holds;
}

/* Walks the children of init, depth first: on a machine with thousands of processes this is the difference
 * between one millisecond and ten. Needs CONFIG_PROC_CHILDREN; without it, finds nothing. `budget` bounds
 * what a fork bomb costs. */
static pid_t descendant_find(int proc, pid_t pid, const char *socket_name, unsigned depth, unsigned *budget) {
    if (depth == 0 || *budget == 0)
        return 0;
    (*budget)--;
    if (process_holds(proc, pid, socket_name))
        return pid;
    char path[64];
    snprintf(path, sizeof path, "%d/task", (int)pid);
    int fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    DIR *tasks = fdopendir(fd);
    if (tasks == NULL) {
        fd_close(fd);
        return 0;
    }
    pid_t found = 0;
    struct dirent *task;
    while (found == 0 && (task = readdir(tasks)) != NULL) {
        if (task->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%.20s/children", task->d_name);
        fd_owned int children = openat(dirfd(tasks), path, O_RDONLY | O_CLOEXEC);
        char list[4096];
        ssize_t length = children < 0 ? -1 : read(children, list, sizeof list - 1);
        if (length <= 0)
            continue;
        list[length] = '\0';
        char *rest = list, *end;
        for (long child; found == 0 && (child = strtol(rest, &end, 10)) > 0; rest = end)
            found = descendant_find(proc, (pid_t)child, socket_name, depth - 1, budget);
    }
    closedir(tasks);
    return found;
}

/* The inode of the UDP socket that is bound to a port in init's network namespace; 0 for none. For those
 * whose other end is not known: a question for a name reaches the broker with only one. It costs about what a
 * dump of sock_diag does, and of questions there are few. */
static uint32_t udp_inode_find(const struct warden_context *context, int family, uint16_t port) {
    const char *const tables[] = {family == AF_INET ? "udp" : "udp6", family == AF_INET ? "udp6" : "udp"};
    for (size_t i = 0; i < 2; i++) { /* an IPv6 socket may speak IPv4 */
        char path[64];
        text_owned struct text table = {0};
        snprintf(path, sizeof path, "/proc/%d/net/%s", (int)context->init_pid, tables[i]);
        error_ignore(file_read(AT_FDCWD, path, UDP_TABLE_MAX, &table)); /* then nobody is named */
        for (const char *line = text_string(&table); line != NULL && *line != '\0';) {
            unsigned local, inode;
            if (sscanf(line, " %*u: %*[0-9A-F]:%4x %*s %*s %*s %*s %*s %*s %*s %u", &local, &inode) == 2 &&
                local == port && inode != 0)
                return inode;
            line = strchr(line, '\n');
            line += line != NULL;
        }
    }
    return 0;
}

/* Every process outside the warden's own pid namespace: what `exec` made is not below init. */
static pid_t process_scan(ino_t own_pid_namespace, int proc, const char *socket_name) {
    int fd = openat(proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    DIR *directory = fdopendir(fd);
    if (directory == NULL) {
        fd_close(fd);
        return 0;
    }
    pid_t found = 0;
    struct dirent *entry;
    while (found == 0 && (entry = readdir(directory)) != NULL) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid <= 0)
            continue;
        char path[64];
        struct stat namespace;
        snprintf(path, sizeof path, "%d/ns/pid", (int)pid);
        if (fstatat(proc, path, &namespace, 0) < 0 || namespace.st_ino == own_pid_namespace)
            continue;
        if (process_holds(proc, pid, socket_name))
            found = pid;
    }
    closedir(directory);
    return found;
}

static ino_t own_pid_namespace(void) {
    struct stat own;
    return stat("/proc/self/ns/pid", &own) == 0 ? own.st_ino : 0;
}

static void process_remember(struct warden_context *context, pid_t pid) {
    size_t at = 0;
    while (at < ATTRIBUTED_PIDS - 1 && context->attributed[at] != pid)
        at++;
    memmove(context->attributed + 1, context->attributed, at * sizeof context->attributed[0]);
    context->attributed[0] = pid;
}

static pid_t process_find(struct warden_context *context, uint32_t inode) {
    fd_owned int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (inode == 0 || proc < 0)
        return 0;
    char socket_name[40];
    snprintf(socket_name, sizeof socket_name, "socket:[%u]", inode);
    pid_t pid = 0;
    for (size_t i = 0; pid == 0 && i < ATTRIBUTED_PIDS && context->attributed[i] != 0; i++)
        if (process_holds(proc, context->attributed[i], socket_name))
            pid = context->attributed[i];
    unsigned budget = 256;
    if (pid == 0 && context->init_pid > 0)
        pid = descendant_find(proc, context->init_pid, socket_name, 16, &budget);
    if (pid == 0)
        pid = process_scan(own_pid_namespace(), proc, socket_name);
    if (pid != 0)
        process_remember(context, pid);
    return pid;
}

/* The packet log was opened in the container, so the kernel gives uids as the container's user namespace has
 * them; a record has the runtime's. The kernel shows the map in the reader's terms. -1 where there is no
 * telling. */
static int64_t uid_outside(const struct warden_context *context, int64_t uid) {
    char path[40], map[4096];
    snprintf(path, sizeof path, "/proc/%d/uid_map", (int)context->init_pid);
    fd_owned int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, map, sizeof map - 1);
    if (uid < 0 || length <= 0)
        return -1;
    map[length] = '\0';
    long long inside, outside, count;
    int used;
    for (const char *line = map; sscanf(line, " %lld %lld %lld%n", &inside, &outside, &count, &used) == 3;
         line += used)
        if (uid >= inside && uid - inside < count)
            return outside + (uid - inside);
    return -1;
}

void attribute(struct warden_context *context, const struct denied_packet *packet,
               struct record_process *out) {
    *out = (struct record_process){.uid = -1};
    bool one_ended = packet->protocol == IPPROTO_UDP && packet->destination_port == 0;
    pid_t pid = process_find(context, one_ended ? udp_inode_find(context, packet->family, packet->source_port)
                                                : socket_inode_find(context->wall.socket_diagnosis, packet));
    if (pid != 0)
        record_process_read(pid, out);
    else
        out->uid = uid_outside(context, packet->uid);
}
