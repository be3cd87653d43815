#include "base/fd.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FD_MESSAGE_MAX 16

void fd_close(int fd) {
    if (fd < 0)
        return;
    int saved = errno;
    close(fd); /* EINTR on Linux has closed it; never retry. */
    errno = saved;
}

void fd_cleanup(int *fd) {
    fd_close(*fd);
    *fd = -1;
}

int fd_take(int *fd) {
    int taken = *fd;
    *fd = -1;
    return taken;
}

struct error *fd_pair(int *one, int *other) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return error_system(errno, "make", "a socket pair");
    *one = ends[0];
    *other = ends[1];
    return NULL;
}

struct error *fd_write_all(int fd, const void *bytes, size_t length, const char *subject) {
    const char *next = bytes;
    while (length > 0) {
        ssize_t written = write(fd, next, length);
        if (written < 0) {
            if (errno == EINTR)
                continue;
            return error_system(errno, "write", "%s", subject);
        }
        next += written;
        length -= (size_t)written;
    }
    return NULL;
}

struct error *fd_send(int socket, const void *payload, size_t length, const int *fds, size_t count) {
    char control[CMSG_SPACE(sizeof(int) * FD_MESSAGE_MAX)] = {0};
    struct iovec part = {.iov_base = (void *)payload, .iov_len = length};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (count > 0) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int) * count);
        memcpy(CMSG_DATA(header), fds, sizeof(int) * count);
    }
    ssize_t sent;
    do
        sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent < 0)
        return error_system(errno, "send", "file descriptors");
    return NULL;
}

ssize_t fd_receive_message(int socket, void *message, size_t size) {
    for (bool reset = false;; reset = reset || errno == ECONNRESET) {
        ssize_t length = recv(socket, message, size, 0);
        if (length >= 0 || (errno != EINTR && (errno != ECONNRESET || reset)))
            return length;
    }
}

struct error *fd_receive(int socket, void *payload, size_t length, int *fds, size_t capacity, size_t *count) {
    char control[CMSG_SPACE(sizeof(int) * FD_MESSAGE_MAX)] = {0};
    struct iovec part = {.iov_base = payload, .iov_len = length};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    *count = 0;
    ssize_t received;
    do
        received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (received < 0 && errno == EINTR);
    if (received < 0)
        return error_system(errno, "receive", "file descriptors");
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
            continue;
        size_t arrived = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        int list[FD_MESSAGE_MAX];
        memcpy(list, CMSG_DATA(header), arrived * sizeof(int));
        for (size_t i = 0; i < arrived; i++) {
            if (*count < capacity)
                fds[(*count)++] = list[i];
            else
                fd_close(list[i]);
        }
    }
    if ((size_t)received != length) {
        for (size_t i = 0; i < *count; i++)
            fd_close(fds[i]);
        *count = 0;
        return error_system(EPIPE, "receive", "file descriptors");
    }
    return NULL;
}
