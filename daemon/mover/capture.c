#include "daemon/mover/capture.h"

#include <endian.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/log.h"
#include "common/util.h"

#define SOCKET_NAME "streamer-capture.sock"
#define REQUEST_MAX_BYTES 4096U
#define PIPES_MAX 512U
#define READ_MIN_BYTES (64U << 10)
/* How long CRIU may take to hang up after it is said to be done. */
#define HANGUP_MSEC 2000

/* An image file that is being written by CRIU. */
struct pipe {
        int fd;
        uint32_t slot;
        uint64_t offset;
        size_t kept; /* its number there; 0: it is not kept */
        char *name;
};

struct capture {
        char *path;
        int dir_fd;
        int listen_fd;
        int criu_fd;
        uid_t criu_uid;
        bool criu_came;
        struct kept_images *kept; /* NULL: nothing is */
        size_t n_pipes;
        struct pipe pipes[PIPES_MAX];
        struct pollfd fds[PIPES_MAX + 4];
};

enum {
        POLL_CONTROL = 0,
        POLL_LINK,
        POLL_LISTEN,
        POLL_CRIU,
        POLL_PIPES,
};

int capture_listen(const char *images_dir, uid_t criu_uid, struct capture **ret_capture, struct rm_error *err) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        struct capture *c = xcalloc(1, sizeof(*c));
        int r;

        c->listen_fd = -1;
        c->criu_fd = -1;
        c->criu_uid = criu_uid;
        /* A short name, whatever the length of the path. */
        c->dir_fd = open(images_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (c->dir_fd >= 0)
                c->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void) snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/" SOCKET_NAME, c->dir_fd);
        if (c->dir_fd >= 0)
                (void) unlinkat(c->dir_fd, SOCKET_NAME, 0);
        if (c->listen_fd < 0 || bind(c->listen_fd, (struct sockaddr *) &address, sizeof(address)) < 0 ||
            fchmodat(c->dir_fd, SOCKET_NAME, 0666, 0) < 0 || listen(c->listen_fd, 4) < 0) {
                r = error_sys(err, -errno, "listen on %s/%s", images_dir, SOCKET_NAME);
                capture_destroy(c);
                return r;
        }
        *ret_capture = c;
        return 0;
}

static void pipe_forget(struct capture *c, size_t i) {
        (void) close(c->pipes[i].fd);
        free(c->pipes[i].name);
        c->pipes[i] = c->pipes[--c->n_pipes];
}

void capture_destroy(struct capture *c) {
        if (!c)
                return;
        while (c->n_pipes > 0)
                pipe_forget(c, 0);
        cleanup_close_fd(&c->criu_fd);
        if (c->listen_fd >= 0) {
                (void) close(c->listen_fd);
                (void) unlinkat(c->dir_fd, SOCKET_NAME, 0);
        }
        cleanup_close_fd(&c->dir_fd);
        free(c);
}

void capture_keep(struct capture *c, struct kept_images *kept) {
        c->kept = kept;
}

/* The directory keeps out all but root and the CRIU that was lent it. */
static void criu_accept(struct capture *c) {
        struct ucred peer = { .uid = (uid_t) -1 };
        socklen_t size = sizeof(peer);
        int fd = accept4(c->listen_fd, NULL, NULL, SOCK_CLOEXEC);

        if (fd < 0)
                return;
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || (peer.uid != 0 && peer.uid != c->criu_uid) ||
            c->criu_came) {
                log_warn("refused a connection to the capture socket, from pid %d of uid %u%s", (int) peer.pid, (unsigned) peer.uid,
                         c->criu_came ? ": there was one before" : "");
                (void) close(fd);
                return;
        }
        c->criu_fd = fd;
        c->criu_came = true;
}

/* Receives a pipe, which comes with one byte. */
static int pipe_receive(int sock, int *ret_fd) {
        char byte;
        struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
        union {
                struct cmsghdr align;
                char space[CMSG_SPACE(sizeof(int))];
        } buffer = { 0 };
        struct msghdr message = {
                .msg_iov = &iov,
                .msg_iovlen = 1,
                .msg_control = buffer.space,
                .msg_controllen = sizeof(buffer.space),
        };
        struct cmsghdr *c;
        ssize_t n;

        do
                n = recvmsg(sock, &message, MSG_CMSG_CLOEXEC);
        while (n < 0 && errno == EINTR);
        if (n <= 0)
                return n < 0 ? -errno : -EPIPE;
        c = CMSG_FIRSTHDR(&message);
        if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(sizeof(int)))
                return -EPROTO;
        memcpy(ret_fd, CMSG_DATA(c), sizeof(int));
        return 0;
}

/* The pages go through pipes, and the larger a pipe, the fewer the changes between CRIU and us.
 * What is refused (there is a limit for users without CAP_SYS_RESOURCE) costs speed only. */
static void pipe_enlarge(int fd) {
        for (int size_bytes = 1 << 20; size_bytes > 1 << 16; size_bytes /= 2)
                if (fcntl(fd, F_SETPIPE_SZ, size_bytes) > 0)
                        return;
}

static int request_read(int sock, char **ret_name, struct rm_error *err) {
        uint8_t data[REQUEST_MAX_BYTES];
        Rm__CriuStreamRequest *m;
        uint32_t size_bytes = 0;
        int r;

        r = read_all(sock, &size_bytes, sizeof(size_bytes));
        if (r < 0)
                return r;
        size_bytes = le32toh(size_bytes);
        if (size_bytes > sizeof(data))
                return error_set(err, -EPROTO, "CRIU requests an image with a name of %u bytes", size_bytes);
        r = read_all(sock, data, size_bytes);
        if (r < 0)
                return r;
        m = rm__criu_stream_request__unpack(NULL, size_bytes, data);
        if (!m)
                return error_set(err, -EPROTO, "CRIU sent an invalid image request");
        *ret_name = xstrdup(m->filename);
        rm__criu_stream_request__free_unpacked(m, NULL);
        return 0;
}

/* 0 also when CRIU has hung up. */
static int criu_serve(struct capture *c, struct image_writer *w, struct rm_error *err) {
        struct image_object o = { .kind = RM__IMAGE_KIND__IMAGE_KIND_CRIU, .role = "", .path = "", .target = "" };
        cleanup_free char *name = NULL;
        cleanup_close int fd = -1;
        uint32_t slot = 0;
        int r;

        r = request_read(c->criu_fd, &name, err);
        if (r == -ENODATA || r == -ECONNRESET) {
                cleanup_close_fd(&c->criu_fd);
                return 0;
        }
        if (r == 0)
                r = pipe_receive(c->criu_fd, &fd);
        if (r < 0)
                return err && err->code ? r : error_sys(err, r, "receive a request from CRIU");
        if (c->n_pipes >= PIPES_MAX)
                return error_set(err, -EMFILE, "CRIU writes more than %u images at once", PIPES_MAX);
        o.path = name;
        r = image_writer_open(w, &o, &slot, err);
        if (r < 0)
                return r;
        r = set_nonblock(fd, true);
        if (r < 0)
                return error_sys(err, r, "image %s", name);
        if (strncmp(name, "pages-", 6) == 0)
                pipe_enlarge(fd);
        c->pipes[c->n_pipes++] = (struct pipe) {
                .fd = take_fd(&fd),
                .slot = slot,
                .kept = c->kept ? kept_images_begin(c->kept, name) : 0,
                .name = take_ptr(name),
        };
        return 0;
}

/* The contents of the pipe become one chunk: large ones when we are the slower side, and when CRIU
 * is, it does not matter. */
static int pipe_pump(struct capture *c, size_t i, struct image_writer *w, struct capture_figures *figures, struct rm_error *err) {
        struct pipe *p = &c->pipes[i];
        int waiting = 0;
        size_t want;
        ssize_t n;
        void *buffer;
        int r;

        if (ioctl(p->fd, FIONREAD, &waiting) < 0)
                return error_sys(err, -errno, "image %s", p->name);
        want = waiting < (int) READ_MIN_BYTES ? READ_MIN_BYTES : (size_t) waiting;
        if (want > IMAGE_PAYLOAD_MAX_BYTES)
                want = IMAGE_PAYLOAD_MAX_BYTES;
        buffer = image_writer_buffer(w, want, err);
        if (!buffer)
                return err ? err->code : -EIO;
        n = read(p->fd, buffer, want);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
                return error_sys(err, -errno, "read image %s from CRIU", p->name);
        if (n > 0 && p->kept)
                kept_images_add(c->kept, p->kept, buffer, (size_t) n);
        r = image_writer_data(w, p->slot, p->offset, n > 0 ? (size_t) n : 0, err);
        if (r < 0 || n < 0)
                return r;
        p->offset += (uint64_t) n;
        figures->read_bytes += (uint64_t) n;
        if (n > 0)
                return 0;
        r = image_writer_close(w, p->slot, p->offset, err);
        if (r == 0)
                pipe_forget(c, i);
        return r;
}

static size_t poll_fill(struct capture *c, const struct control *control, const struct capture_hooks *hooks) {
        c->fds[POLL_LINK] = (struct pollfd) { .fd = hooks->link_fd, .events = POLLIN };
        c->fds[POLL_LISTEN] = (struct pollfd) { .fd = control->started ? c->listen_fd : -1, .events = POLLIN };
        c->fds[POLL_CRIU] = (struct pollfd) { .fd = c->criu_fd, .events = POLLIN };
        for (size_t i = 0; i < c->n_pipes; i++)
                c->fds[POLL_PIPES + i] = (struct pollfd) { .fd = c->pipes[i].fd, .events = POLLIN };
        return POLL_PIPES + c->n_pipes;
}

/* Looks first without waiting; only when there is nothing, what was collected goes out and time is
 * counted as waiting. Returns too when rmd says meanwhile that CRIU is done: there may be nothing
 * left to wait for. */
static int capture_wait(struct capture *c, struct control *control, const struct capture_hooks *hooks,
                        struct capture_figures *figures, struct rm_error *err) {
        bool done = control->dump_done;
        size_t n_fds = poll_fill(c, control, hooks);
        uint64_t start_usec;
        int r;

        r = control_poll(control, c->fds, n_fds, 0, err);
        if (r != 0)
                return r;
        r = hooks->idle(hooks->ctx, err);
        if (r < 0 || (!done && control->dump_done))
                return r;
        start_usec = now_usec();
        n_fds = poll_fill(c, control, hooks);
        r = control_poll(control, c->fds, n_fds, done ? HANGUP_MSEC : -1, err);
        if (control->started)
                figures->wait_usec += now_usec() - start_usec;
        return r;
}

static int capture_step(struct capture *c, struct image_writer *w, const struct capture_hooks *hooks,
                        struct capture_figures *figures, struct rm_error *err) {
        int r = 0;

        if (c->fds[POLL_LINK].revents)
                return hooks->link_readable(hooks->ctx, err);
        /* From the end, since a pipe that ends is replaced by the last one; new ones have not been
         * polled. */
        for (size_t i = c->n_pipes; i-- > 0 && r == 0;)
                if (c->fds[POLL_PIPES + i].revents) {
                        hooks->progress(hooks->ctx, c->pipes[i].name);
                        r = pipe_pump(c, i, w, figures, err);
                }
        if (r == 0 && c->fds[POLL_CRIU].revents)
                r = criu_serve(c, w, err);
        if (r == 0 && c->fds[POLL_LISTEN].revents)
                criu_accept(c);
        return r;
}

int capture_try(struct capture *c, struct control *control, struct image_writer *writer, const struct capture_hooks *hooks,
                struct capture_figures *figures, struct rm_error *err) {
        size_t n_fds = poll_fill(c, control, hooks);
        int r = control_poll(control, c->fds, n_fds, 0, err);

        return r > 0 ? capture_step(c, writer, hooks, figures, err) : r;
}

/* CRIU has exited: what it wrote is in the pipes, so nothing can be long in coming. */
static int hangup_check(const struct capture *c, uint64_t quiet_since_usec, struct rm_error *err) {
        if (now_usec() - quiet_since_usec < HANGUP_MSEC * UINT64_C(1000))
                return 0;
        if (!c->criu_came)
                return error_set(err, -EPROTO, "the dump has ended, but CRIU never connected");
        return error_set(err, -EPROTO, "the dump has ended, but CRIU has not closed its images");
}

int capture_run(struct capture *c, struct control *control, struct image_writer *writer, const struct capture_hooks *hooks,
                struct capture_figures *figures, struct rm_error *err) {
        uint64_t active_usec = now_usec();
        bool done_said = false;

        for (;;) {
                bool over = c->criu_came && c->criu_fd < 0 && c->n_pipes == 0;
                int r;

                if (over && control->dump_done)
                        return 0;
                r = capture_wait(c, control, hooks, figures, err);
                if (r > 0) {
                        active_usec = now_usec();
                        r = capture_step(c, writer, hooks, figures, err);
                }
                if (r == 0 && control->dump_done) {
                        if (!done_said)
                                active_usec = now_usec();
                        done_said = true;
                        r = hangup_check(c, active_usec, err);
                }
                if (r < 0)
                        return r;
        }
}
