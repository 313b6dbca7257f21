#include "daemon/mover/user_link.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/log.h"
#include "common/util.h"

#define CONNECT_USEC (UINT64_C(20) * 1000000)
/* The time for each piece that is read or written, even if some bytes come now and then. */
#define PIECE_USEC (UINT64_C(60) * 1000000)

int user_link_listen(const char *path, uint32_t uid, int *ret_fd, struct rm_error *err) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        size_t n = strlen(path);

        if (fd < 0)
                return error_sys(err, -errno, "make a socket");
        if (n >= sizeof(address.sun_path))
                return error_set(err, -ENAMETOOLONG, "%s is too long for a socket", path);
        memcpy(address.sun_path, path, n);
        /* Root's until it listens. */
        if (bind(fd, (struct sockaddr *) &address, sizeof(address)) < 0 || listen(fd, 4) < 0 || lchown(path, uid, (gid_t) -1) < 0)
                return error_sys(err, -errno, "listen at %s", path);
        *ret_fd = take_fd(&fd);
        return 0;
}

int user_link_accept(struct control *c, int listen_fd, uint32_t uid, int *ret_fd, struct rm_error *err) {
        uint64_t deadline_usec = now_usec() + CONNECT_USEC;

        for (;;) {
                int r = control_await(c, listen_fd, POLLIN, deadline_usec, err);
                cleanup_close int fd = r == 0 ? accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;
                struct ucred peer = { 0 };
                socklen_t n = sizeof(peer);

                if (r < 0)
                        return r == -ETIMEDOUT ? error_set(err, r, "the program that asked for it has not connected") : r;
                if (fd < 0)
                        continue;
                if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 && peer.uid == uid) {
                        *ret_fd = take_fd(&fd);
                        return 0;
                }
                log_warn("process %d of user %u is refused: user %u is expected", (int) peer.pid, (unsigned) peer.uid,
                         (unsigned) uid);
        }
}

static int too_slow(struct rm_error *err, const char *what, size_t left_bytes) {
        return error_set(err, -ETIMEDOUT, "the program is too slow: %zu bytes were not %s within %u s", left_bytes, what,
                         (unsigned) (PIECE_USEC / 1000000));
}

int user_link_write(struct control *c, int fd, const void *data, size_t size_bytes, struct rm_error *err) {
        uint64_t deadline_usec = now_usec() + PIECE_USEC;
        const uint8_t *at = data;

        while (size_bytes > 0) {
                ssize_t n = send(fd, at, size_bytes, MSG_NOSIGNAL);
                int r = 0;

                if (n >= 0) {
                        at += n;
                        size_bytes -= (size_t) n;
                } else if (errno == EAGAIN) {
                        r = control_await(c, fd, POLLOUT, deadline_usec, err);
                } else if (errno != EINTR) {
                        r = error_sys(err, -errno, "sending to the program");
                }
                if (r < 0)
                        return r == -ETIMEDOUT ? too_slow(err, "taken", size_bytes) : r;
        }
        return 0;
}

int user_link_read(struct control *c, int fd, void *data, size_t size_bytes, size_t *ret_bytes, struct rm_error *err) {
        uint64_t deadline_usec = now_usec() + PIECE_USEC;
        uint8_t *at = data;
        size_t done = 0;

        while (done < size_bytes) {
                ssize_t n = recv(fd, at + done, size_bytes - done, 0);
                int r = 0;

                if (n > 0)
                        done += (size_t) n;
                else if (n == 0 || errno == ECONNRESET)
                        break;
                else if (errno == EAGAIN)
                        r = control_await(c, fd, POLLIN, deadline_usec, err);
                else if (errno != EINTR)
                        r = error_sys(err, -errno, "receiving from the program");
                if (r < 0)
                        return r == -ETIMEDOUT ? too_slow(err, "sent", size_bytes - done) : r;
        }
        *ret_bytes = done;
        return 0;
}
