#include "daemon/mover/postcopy.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/fault.h"
#include "common/util.h"
#include "daemon/pages/maps.h"

/* A page that is waited for comes behind what is in the socket's queue and on the way: so much of
 * it as the link carries in that time, within limits. */
#define QUEUE_USEC 2000U
#define QUEUE_LEAST_BYTES (64U << 10)
#define QUEUE_MOST_BYTES (1U << 20)
#define PAUSE_NSEC 200000L
/* A page also comes behind bytes that have arrived and were not read, of which the sender's kernel
 * does not know: the receiver tells. The window of TCP would bound it as well, but it never becomes
 * smaller than what it was when all else was sent, and the kernel makes it larger where it
 * likes. */
#define TAKEN_STEP_BYTES (128U << 10)
/* rmd starts the restore at once when it has heard that all else is there. */
#define UFFD_HANDLER_WAIT_MSEC 60000

/* rmd may be killed and started again: neither end of the group could go on without this
 * process. */
static void outlive(struct control *c) {
        (void) prctl(PR_SET_PDEATHSIG, 0);
        control_outlive(c);
}

/* ---- the sender ---- */

struct sending {
        struct link *link;
        struct pages *pages;
        uint64_t begin_usec;
        uint64_t taken_bytes; /* of those that were sent: the receiver has passed them on */
        struct postcopy_figures figures;
        struct pages_piece piece;
};

static int piece_send(struct sending *s, uint32_t pid, uint64_t address, struct rm_error *err) {
        Rm__MoverLater m = RM__MOVER_LATER__INIT;
        int r = pages_later_read(s->pages, pid, address, &s->piece, err);

        if (r < 0 || s->piece.size_bytes == 0)
                return r;
        m.pid = s->piece.pid;
        m.address = s->piece.address;
        m.data.data = s->piece.data;
        m.data.len = s->piece.size_bytes;
        m.count = link_peer_counts_later(s->link);
        s->figures.bytes += s->piece.size_bytes;
        return link_send(s->link, &m.base, err);
}

/* Which page is waited for: what was sent already is on its way. Or what was taken. */
static int peer_receive(struct sending *s, struct rm_error *err) {
        Rm__MoverPeerMessage *m = NULL;
        int r = link_receive(s->link, &m, err);

        if (r < 0)
                return r;
        if (m->body_case == RM__MOVER_PEER_MESSAGE__BODY_LATER_REQUESTED && m->later_requested->pid > 0) {
                s->figures.requested++;
                r = piece_send(s, m->later_requested->pid, m->later_requested->address, err);
        } else if (m->body_case == RM__MOVER_PEER_MESSAGE__BODY_LATER_TAKEN && m->later_taken->bytes >= s->taken_bytes &&
                   m->later_taken->bytes <= s->figures.bytes) {
                s->taken_bytes = m->later_taken->bytes;
        } else {
                r = error_set(err, -EPROTO, "unexpected message from the destination");
        }
        rm__mover_peer_message__free_unpacked(m, NULL);
        return r;
}

static void pause_for(struct link *link) {
        struct pollfd p = { .fd = link_fd(link), .events = POLLIN };
        const struct timespec pause = { .tv_nsec = PAUSE_NSEC };

        (void) ppoll(&p, 1, &pause, NULL);
}

static bool may_queue(const struct sending *s) {
        uint64_t usec = now_usec() - s->begin_usec;
        uint64_t bytes = s->figures.bytes * QUEUE_USEC / (usec > 0 ? usec : 1);

        bytes = bytes < QUEUE_LEAST_BYTES ? QUEUE_LEAST_BYTES : bytes > QUEUE_MOST_BYTES ? QUEUE_MOST_BYTES : bytes;
        if (link_peer_counts_later(s->link) && s->figures.bytes - s->taken_bytes >= QUEUE_MOST_BYTES)
                return false;
        return link_queued_bytes(s->link) < bytes;
}

static int all_send(struct sending *s, struct control *c, struct rm_error *err) {
        int r = 0;

        while (r == 0 && pages_later_bytes(s->pages) > 0) {
                if (link_peer_speaks(s->link))
                        r = peer_receive(s, err);
                else if (may_queue(s))
                        r = piece_send(s, 0, 0, err);
                else
                        pause_for(s->link);
                if (r == 0)
                        r = control_check(c, err);
        }
        while (r == 0)
                r = peer_receive(s, err);
        if (r != -ENODATA || pages_later_bytes(s->pages) > 0)
                return r;
        error_clear(err);
        return 0;
}

int postcopy_send(struct control *c, struct link *link, struct pages *pages, struct postcopy_figures *ret, struct rm_error *err) {
        struct sending *s = xcalloc(1, sizeof(*s));
        int r;

        outlive(c);
        s->begin_usec = now_usec();
        s->link = link;
        s->pages = pages;
        r = fault_wait("mover.send.later", err);
        if (r == 0)
                r = all_send(s, c, err);
        s->figures.usec = now_usec() - s->begin_usec;
        *ret = s->figures;
        free(s);
        return r;
}

/* ---- the receiver ---- */

int postcopy_listen(const char *images_dir, int *ret_fd, struct rm_error *err) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        cleanup_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        int n = snprintf(address.sun_path, sizeof(address.sun_path), "%s/" LATER_SOCKET, images_dir);

        if (n < 0 || (size_t) n >= sizeof(address.sun_path))
                return error_set(err, -ENAMETOOLONG, "%s/" LATER_SOCKET ": the name is too long", images_dir);
        if (fd < 0 || bind(fd, (const struct sockaddr *) &address, sizeof(address)) < 0 || listen(fd, 1) < 0)
                return error_sys(err, -errno, "listen on %s", address.sun_path);
        *ret_fd = take_fd(&fd);
        return 0;
}

static int uffd_handler_accept(struct control *c, int listen_fd, int *ret_fd, struct rm_error *err) {
        struct pollfd fds[2] = { { .fd = -1 }, { .fd = listen_fd, .events = POLLIN } };
        uint64_t end_usec = now_usec() + UFFD_HANDLER_WAIT_MSEC * UINT64_C(1000);
        int fd, r = 0;

        while (r == 0 && now_usec() < end_usec)
                r = control_poll(c, fds, 2, UFFD_HANDLER_WAIT_MSEC, err);
        if (r <= 0)
                return r < 0 ? r : error_set(err, -ETIMEDOUT, "no uffd handler came for the pages that are still at the source");
        fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
                return error_sys(err, -errno, "accept the uffd handler");
        *ret_fd = fd;
        return 0;
}

struct passing {
        struct link *link;
        int fd; /* of the uffd handler */
        uint64_t bytes, said_bytes;
};

static int taken_say(struct passing *p, struct rm_error *err) {
        Rm__MoverLaterTaken m = RM__MOVER_LATER_TAKEN__INIT;

        if (p->bytes - p->said_bytes < TAKEN_STEP_BYTES)
                return 0;
        m.bytes = p->said_bytes = p->bytes;
        return link_send(p->link, &m.base, err);
}

/* Passes a piece from the source to the uffd handler. */
static int piece_pass(struct passing *p, struct rm_error *err) {
        Rm__MoverPeerMessage *m = NULL;
        int r = link_receive(p->link, &m, err);

        if (r < 0)
                return r;
        if (m->body_case == RM__MOVER_PEER_MESSAGE__BODY_LATER && m->later->data.len > 0 &&
            m->later->data.len <= LATER_PIECE_MAX_BYTES && m->later->data.len % PAGES_PAGE_BYTES == 0) {
                struct later_piece head = { .pid = m->later->pid,
                                            .size_bytes = (uint32_t) m->later->data.len,
                                            .address = m->later->address };
                struct iovec parts[2] = { { &head, sizeof(head) }, { m->later->data.data, m->later->data.len } };
                const struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };

                if (sendmsg(p->fd, &message, MSG_NOSIGNAL) < 0)
                        r = errno == EPIPE || errno == ECONNRESET ? -ENODATA : -errno;
                if (r < 0)
                        (void) error_sys(err, r, "pass pages on to the uffd handler");
                p->bytes += m->later->data.len;
                if (r == 0 && m->later->count)
                        r = taken_say(p, err);
        } else {
                r = error_set(err, -EPROTO, "unexpected message from the source");
        }
        rm__mover_peer_message__free_unpacked(m, NULL);
        return r;
}

/* Passes a request from the uffd handler to the source. 1: the uffd handler has hung up. */
static int requested_pass(const struct passing *p, struct rm_error *err) {
        Rm__MoverLaterRequested m = RM__MOVER_LATER_REQUESTED__INIT;
        struct later_piece requested;
        ssize_t n = recv(p->fd, &requested, sizeof(requested), 0);

        if (n != (ssize_t) sizeof(requested))
                return 1;
        m.pid = requested.pid;
        m.address = requested.address;
        return link_send(p->link, &m.base, err);
}

static int pass(struct control *c, struct link *link, int fd, struct rm_error *err) {
        struct passing p = { .link = link, .fd = fd };
        struct pollfd fds[3] = { { .fd = -1 }, { .fd = fd, .events = POLLIN }, { .fd = link_fd(link), .events = POLLIN } };
        int r = 0;

        while (r == 0) {
                fds[1].revents = fds[2].revents = 0;
                r = control_poll(c, fds, 3, link_peer_speaks(link) ? 0 : -1, err);
                if (r >= 0)
                        r = fds[1].revents ? requested_pass(&p, err) : 0;
                if (r == 0 && link_peer_speaks(link))
                        r = piece_pass(&p, err);
        }
        return r > 0 ? 0 : r;
}

int postcopy_receive(struct control *c, struct link *link, int listen_fd, struct rm_error *err) {
        cleanup_close int listening = listen_fd;
        cleanup_close int fd = -1;
        int r;

        outlive(c);
        r = fault_wait("mover.receive.later", err);
        if (r == 0)
                r = uffd_handler_accept(c, listening, &fd, err);
        return r < 0 ? r : pass(c, link, fd, err);
}
