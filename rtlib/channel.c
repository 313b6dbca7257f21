#include "rtlib/channel.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "common/program_socket.h"

static const struct sockaddr_un program_socket = { .sun_family = AF_UNIX, .sun_path = PROGRAM_SOCKET_PATH };

static struct {
        _Atomic int fd; /* -1: this process does not listen */
        pid_t pid;      /* whose it is; this and the name are written before `fd` */
        struct sockaddr_un name;
        socklen_t name_bytes;
} channel = { .fd = -1 };

/* The program may have closed it unknowingly, and have something else there now; a process that was
 * forked has it, too. By its name, since a move makes it another inode. */
static bool is_ours(int fd) {
        struct sockaddr_un name;
        socklen_t bytes = sizeof(name);

        return fd >= 0 && channel.pid == getpid() && getsockname(fd, (struct sockaddr *) &name, &bytes) == 0 &&
               bytes == channel.name_bytes && memcmp(&name, &channel.name, bytes) == 0;
}

static int open_socket(void) {
        return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* Sends from the own socket, or else from one that has no peer and lives for one message: there is
 * never a connection that a move would have to carry. A full queue is not waited for. */
static void send_out(const uint8_t *data, size_t size) {
        int own = channel.fd, fd = is_ours(own) ? own : open_socket();

        if (fd < 0)
                return;
        (void) sendto(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT, (const struct sockaddr *) &program_socket,
                      sizeof(program_socket));
        if (fd != own)
                (void) close(fd);
}

void channel_send(const Program__Request *request) {
        uint8_t data[PROGRAM_SOCKET_MESSAGE_BYTES];
        int error = errno;

        if (program__request__get_packed_size(request) <= sizeof(data))
                send_out(data, program__request__pack(request, data));
        errno = error;
}

static int listen_as(uint32_t rank) {
        int fd, r = 0;

        if (is_ours(channel.fd))
                return 0;
        channel.fd = -1;
        fd = open_socket();
        if (fd < 0)
                return -errno;
        channel.pid = getpid();
        channel.name_bytes = program_socket_rank_address(rank, &channel.name);
        if (bind(fd, (const struct sockaddr *) &channel.name, channel.name_bytes) < 0)
                r = -errno;
        if (r == 0)
                channel.fd = fd;
        else
                (void) close(fd);
        return r;
}

int channel_listen(uint32_t rank) {
        int error = errno, r = listen_as(rank);

        errno = error;
        return r;
}

void channel_close(void) {
        int error = errno, fd = atomic_exchange(&channel.fd, -1);

        if (is_ours(fd))
                (void) close(fd);
        errno = error;
}

static Program__Notice *receive(void) {
        uint8_t data[PROGRAM_SOCKET_MESSAGE_BYTES + 1];
        int fd = channel.fd;
        ssize_t n;

        while (is_ours(fd) && (n = recv(fd, data, sizeof(data), MSG_DONTWAIT)) >= 0) {
                Program__Notice *notice =
                        n <= PROGRAM_SOCKET_MESSAGE_BYTES ? program__notice__unpack(NULL, (size_t) n, data) : NULL;

                if (notice)
                        return notice;
        }
        return NULL;
}

Program__Notice *channel_next(void) {
        int error = errno;
        Program__Notice *notice = receive();

        errno = error;
        return notice;
}

void channel_wait(uint64_t usec) {
        struct pollfd fd = { .fd = channel.fd, .events = POLLIN };
        int error = errno;

        /* Without a descriptor, poll() still waits for the time. */
        (void) poll(&fd, 1, (int) (usec / 1000));
        errno = error;
}
