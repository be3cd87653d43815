#include "process/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "base/text.h"
#include "process/unix_socket.h"
#include "sys/calls.h"

#define DEVPTS_MAGIC 0x1cd1

struct error *terminal_open(int pts, const struct oci_process *process, int *leader, int *other) {
    fd_owned int opened = openat(pts, "ptmx", O_RDWR | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
    if (opened < 0)
        return error_system(errno, "open",
                            "/dev/pts/ptmx in the container (process.terminal needs a devpts mount)");
    struct statfs fs;
    if (fstatfs(opened, &fs) < 0 || fs.f_type != DEVPTS_MAGIC)
        return error_new(ERROR_REFUSED, "/dev/pts of the container is not a devpts file system");
    int unlock = 0;
    if (ioctl(opened, TIOCSPTLCK, &unlock) < 0)
        return error_system(errno, "unlock", "a terminal");
    fd_owned int peer = ioctl(opened, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (peer < 0)
        return error_system(errno, "open", "the other end of a terminal");
    if (fchown(peer, process->user.uid, (gid_t)-1) < 0 && errno != EPERM && errno != EINVAL)
        return error_system(errno, "chown", "a terminal to uid %u", process->user.uid);
    if (process->console_size != NULL) {
        struct winsize size = {.ws_row = (unsigned short)process->console_size->height,
                               .ws_col = (unsigned short)process->console_size->width};
        if (ioctl(opened, TIOCSWINSZ, &size) < 0)
            return error_system(errno, "set", "process.consoleSize");
    }
    *leader = fd_take(&opened);
    *other = fd_take(&peer);
    return NULL;
}

struct error *terminal_take(int other) {
    if (ioctl(other, TIOCSCTTY, 0) < 0)
        return error_system(errno, "take", "the controlling terminal");
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (dup2(other, fd) < 0)
            return error_system(errno, "dup2", "a terminal");
    return NULL;
}

struct error *terminal_send(int socket, int leader) {
    static const char name[] = "/dev/ptmx";
    return error_context(fd_send(socket, name, sizeof name - 1, &leader, 1), "console socket");
}

struct error *terminal_connect(const char *path, int *out) {
    return unix_socket_connect(path, SOCK_STREAM, 0, "console socket", out);
}

/* Bytes on their way in one direction; reading stops while the buffer is not empty, so a slow reader slows
 * the container and costs no memory. */
struct stream {
    int from, to;
    char bytes[8192];
    size_t start, end;
    bool open;
};

static void stream_read(struct stream *stream) {
    ssize_t length = read(stream->from, stream->bytes, sizeof stream->bytes);
    if (length > 0) {
        stream->start = 0;
        stream->end = (size_t)length;
    } else if (length == 0 || (errno != EINTR && errno != EAGAIN)) {
        stream->open = false; /* EIO: the other end of a terminal is closed */
    }
}

static void stream_write(struct stream *stream) {
    ssize_t length = write(stream->to, stream->bytes + stream->start, stream->end - stream->start);
    if (length > 0)
        stream->start += (size_t)length;
    else if (length < 0 && errno != EINTR && errno != EAGAIN)
        stream->start = stream->end; /* nobody listens any more; the container's output is discarded */
}

/* Our own terminal, when standard input is one. */
struct own_terminal {
    struct termios before; /* to be put back */
    bool raw;
    bool background; /* another process group has it: to read it or to set it up would stop us (SIGTTIN,
                        SIGTTOU) */
};

/* Our own terminal passes every key on; the terminal in the container interprets them. Called at the start
 * and at each SIGCONT, which is what a shell's `fg` sends. */
static void own_terminal_take(struct own_terminal *own) {
    own->background = isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) != getpgrp();
    if (own->background || (!own->raw && tcgetattr(STDIN_FILENO, &own->before) < 0))
        return;
    struct termios raw = own->before;
    cfmakeraw(&raw);
    own->raw = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
}

static void own_terminal_give_back(struct own_terminal *own) {
    if (own->raw && tcgetpgrp(STDIN_FILENO) == getpgrp())
        tcsetattr(STDIN_FILENO, TCSANOW, &own->before);
}

static void signal_forward(int signals, int pidfd, int leader, struct own_terminal *own) {
    struct signalfd_siginfo info;
    if (read(signals, &info, sizeof info) != sizeof info)
        return;
    if (info.ssi_signo == SIGWINCH) {
        struct winsize size;
        if (leader >= 0 && ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0)
            (void)!ioctl(leader, TIOCSWINSZ, &size);
        return;
    }
    if (info.ssi_signo == SIGCONT && own != NULL)
        own_terminal_take(own);
    (void)!sys_pidfd_send_signal(pidfd, (int)info.ssi_signo);
}

static struct error *signals_open(int *out) {
    sigset_t set;
    sigemptyset(&set);
    static const int forwarded[] = {SIGHUP,  SIGINT,   SIGQUIT, SIGTERM, SIGUSR1,
                                    SIGUSR2, SIGWINCH, SIGCONT, SIGALRM};
    for (size_t i = 0; i < sizeof forwarded / sizeof forwarded[0]; i++)
        sigaddset(&set, forwarded[i]);
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++) /* systemd in a container is told with these */
        sigaddset(&set, number);
    sigprocmask(SIG_BLOCK, &set, NULL);
    *out = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (*out < 0)
        return error_system(errno, "open", "a signal descriptor");
    return NULL;
}

struct error *signals_attend(int pidfd) {
    fd_owned int signals = -1;
    TRY(signals_open(&signals));
    for (;;) {
        struct pollfd events[] = {{.fd = pidfd, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
        if (poll(events, 2, -1) < 0 && errno != EINTR)
            return error_system(errno, "poll", "the container");
        if (events[1].revents & POLLIN)
            signal_forward(signals, pidfd, -1, NULL);
        if (events[0].revents & POLLIN)
            return NULL;
    }
}

static struct error *attend_loop(int leader, int pidfd, int signals, struct own_terminal *own) {
    struct stream input = {.from = STDIN_FILENO, .to = leader, .open = true};
    struct stream output = {.from = leader, .to = STDOUT_FILENO, .open = true};
    bool ended = false;
    while (output.open || output.start < output.end) {
        struct pollfd events[5] = {
            {.fd = ended ? -1 : pidfd, .events = POLLIN},
            {.fd = signals, .events = POLLIN},
            {.fd = input.open && input.start == input.end && !own->background ? input.from : -1,
             .events = POLLIN},
            /* Left out while there is nothing to do with it: a hang-up is reported even when nobody asked. */
            {.fd = output.start == output.end || input.start < input.end ? leader : -1,
             .events = (short)((output.start == output.end ? POLLIN : 0) |
                               (input.start < input.end ? POLLOUT : 0))},
            {.fd = output.start < output.end ? output.to : -1, .events = POLLOUT},
        };
        /* After the end, what is still in the terminal is drained; a process that outlived init may hold it
         * open. */
        int ready = poll(events, 5, ended ? 100 : -1);
        if (ready < 0 && errno != EINTR)
            return error_system(errno, "poll", "the container's terminal");
        if (ready == 0 && ended)
            return NULL;
        if (ready <= 0)
            continue;
        if (events[0].revents & POLLIN)
            ended = true;
        if (events[1].revents & POLLIN)
            signal_forward(signals, pidfd, leader, own);
        if (events[2].revents != 0) {
            stream_read(&input);
            if (!input.open) {
                /* The end of a file on standard input is Ctrl-D to whoever reads the terminal. */
                static const char end_of_transmission = 4;
                (void)!write(leader, &end_of_transmission, 1);
            }
        }
        if (events[3].revents & POLLOUT)
            stream_write(&input);
        if (events[3].revents & (POLLIN | POLLHUP | POLLERR)) {
            if (output.start == output.end)
                stream_read(&output);
        }
        if (events[4].revents != 0)
            stream_write(&output);
    }
    return NULL;
}

struct error *terminal_attend(int leader, int pidfd) {
    fd_owned int signals = -1;
    TRY(signals_open(&signals));
    struct winsize size;
    if (ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0)
        (void)!ioctl(leader, TIOCSWINSZ, &size);
    struct own_terminal own = {.raw = false};
    own_terminal_take(&own);
    /* Who reads the output may go away before the container does (crun #1717): then it is discarded, and the
     * exit code is still to come. */
    signal(SIGPIPE, SIG_IGN);
    struct error *error = attend_loop(leader, pidfd, signals, &own);
    own_terminal_give_back(&own);
    if (error != NULL)
        return error;
    /* The terminal may have closed before the process ended. */
    return signals_attend(pidfd);
}

void standard_streams_give(uid_t uid, gid_t gid) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        struct stat status;
        if (isatty(fd) || fstat(fd, &status) < 0 || (status.st_uid == uid && status.st_gid == gid))
            continue;
        /* /dev/null is everybody's. Refusals (a read-only file system, an unmapped owner) take nothing away
         * that the process had. */
        if (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode))
            (void)!fchown(fd, uid, gid);
    }
}
