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
#include "warden/observers.h"

#define UDP_TABLE_MAX (4 * 1024 * 1024) /* 30,000 sockets: some milliseconds */

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
        if (entry->d_name[0] == '.')
            continue;
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

/* A packet's source as /proc/net/udp and udp6 write addresses: words of 32 bits in the machine's order. */
struct table_address {
    char own[33], mapped[33]; /* "" where there is none */
};

static void append_word(char text[33], const uint8_t *bytes) {
    uint32_t word;
    memcpy(&word, bytes, sizeof word);
    snprintf(text + strlen(text), 9, "%08X", word);
}

static struct table_address table_address_of(const struct denied_packet *packet) {
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    struct table_address out = {0};
    for (size_t i = 0; i < (packet->family == AF_INET ? 4u : 16u); i += 4)
        append_word(out.own, packet->source + i);
    for (size_t i = 0; packet->family == AF_INET && i < 12; i += 4)
        append_word(out.mapped, mapped + i);
    if (packet->family == AF_INET)
        append_word(out.mapped, packet->source);
    return out;
}

enum { OF_ANOTHER, OF_ANY_ADDRESS, OF_THIS_ADDRESS };

/* How well the socket of a table's line fits; *inode is its. */
static int line_fits(const char *line, const struct denied_packet *packet, const struct table_address *source,
                     unsigned *inode) {
    char local[33];
    unsigned port;
    if (sscanf(line, " %*u: %32[0-9A-F]:%4x %*s %*s %*s %*s %*s %*s %*s %u", local, &port, inode) != 3 ||
        port != packet->source_port || *inode == 0)
        return OF_ANOTHER;
    if (strcmp(local, source->own) == 0 || strcmp(local, source->mapped) == 0)
        return OF_THIS_ADDRESS;
    return local[strspn(local, "0")] == '\0' ? OF_ANY_ADDRESS : OF_ANOTHER;
}

/* The inode of the UDP socket that a packet came from, in init's network namespace; 0 for none. For those
 * whose other end is not known: a question for a name reaches the broker with only one. A socket that is
 * bound to another address with the same port is somebody else's. It costs about what a dump of sock_diag
 * does, and of questions there are few. */
static uint32_t udp_inode_find(const struct warden_context *context, const struct denied_packet *packet) {
    const char *const tables[] = {"udp", "udp6"}; /* an IPv6 socket may speak IPv4 */
    const struct table_address source = table_address_of(packet);
    uint32_t any = 0;
    for (size_t i = packet->family == AF_INET ? 0 : 1; i < 2; i++) {
        char path[64], bytes[8192];
        snprintf(path, sizeof path, "/proc/%d/net/%s", (int)context->init_pid, tables[i]);
        fd_owned int fd = open(path, O_RDONLY | O_CLOEXEC);
        size_t length = 0, total = 0;
        ssize_t more = 0;
        while (fd >= 0 && total < UDP_TABLE_MAX &&
               (more = read(fd, bytes + length, sizeof bytes - 1 - length)) > 0) {
            length += (size_t)more;
            total += (size_t)more;
            bytes[length] = '\0';
            char *line = bytes, *end;
            for (; (end = strchr(line, '\n')) != NULL; line = end + 1) {
                unsigned inode = 0;
                *end = '\0';
                int fits = line_fits(line, packet, &source, &inode);
                if (fits == OF_THIS_ADDRESS)
                    return inode;
                if (fits == OF_ANY_ADDRESS && any == 0)
                    any = inode;
            }
            length = strlen(line);
            memmove(bytes, line, length);
            if (length == sizeof bytes - 1) /* no line of the kernel's */
                break;
        }
    }
    return any;
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
    pid_t pid = process_find(context, one_ended ? udp_inode_find(context, packet)
                                                : socket_inode_find(context->wall.socket_diagnosis, packet));
    if (pid != 0)
        record_process_read(pid, out);
    else
        out->uid = uid_outside(context, packet->uid);
}
