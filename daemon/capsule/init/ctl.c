#include "daemon/capsule/init/ctl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/frame.h"
#include "common/log.h"
#include "common/message_body.h"
#include "common/util.h"
#include "daemon/capsule/init/init.h"

/* A backlog of more than this means that rmd hangs; it gets all again when it connects anew. */
enum { BACKLOG_MAX_BYTES = 32 * 1024 * 1024, READ_BYTES = 64 * 1024 };

struct buffer {
        uint8_t *data;
        size_t size;
        size_t capacity;
};

struct ctl {
        struct init *init;
        const struct ctl_handlers *handlers;
        struct source listener;
        struct source connection; /* fd -1: none */
        uint64_t number;          /* of the connection */
        struct buffer in;
        struct buffer out;
        bool waits_for_space;
};

static void buffer_append(struct buffer *b, const void *data, size_t size) {
        if (b->size + size > b->capacity) {
                b->capacity = (b->size + size) * 2;
                b->data = xrealloc(b->data, b->capacity);
        }
        memcpy(b->data + b->size, data, size);
        b->size += size;
}

static void buffer_consume(struct buffer *b, size_t size) {
        memmove(b->data, b->data + size, b->size - size);
        b->size -= size;
        if (b->size == 0 && b->capacity > 1024 * 1024) {
                free(b->data);
                *b = (struct buffer) { 0 };
        }
}

static void close_connection(struct ctl *ctl) {
        if (ctl->connection.fd < 0)
                return;
        source_remove(ctl->init->core.epoll_fd, &ctl->connection);
        cleanup_close_fd(&ctl->connection.fd);
        ctl->number++;
        ctl->in.size = 0;
        ctl->out.size = 0;
        ctl->waits_for_space = false;
}

static void ctl_flush(struct ctl *ctl) {
        bool wait;

        while (ctl->connection.fd >= 0 && ctl->out.size > 0) {
                ssize_t n = send(ctl->connection.fd, ctl->out.data, ctl->out.size, MSG_DONTWAIT | MSG_NOSIGNAL);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno == EAGAIN)
                        break;
                if (n < 0) {
                        close_connection(ctl);
                        return;
                }
                buffer_consume(&ctl->out, (size_t) n);
        }
        wait = ctl->out.size > 0;
        if (ctl->connection.fd >= 0 && wait != ctl->waits_for_space) {
                ctl->waits_for_space = wait;
                source_modify(ctl->init->core.epoll_fd, &ctl->connection, EPOLLIN | (wait ? EPOLLOUT : 0));
        }
}

void ctl_send(struct ctl *ctl, const ProtobufCMessage *body) {
        Capsule__Event event = CAPSULE__EVENT__INIT;
        cleanup_free uint8_t *frame = NULL;
        size_t size;

        if (ctl->connection.fd < 0)
                return;
        message_set_body(&event.base, body);
        frame = frame_pack(FRAME_MAGIC_CAPSULE, &event.base, &size);
        buffer_append(&ctl->out, frame, size);
        if (ctl->out.size > BACKLOG_MAX_BYTES)
                close_connection(ctl);
        else
                ctl_flush(ctl);
}

static void send_reply(struct ctl *ctl, struct ticket ticket, Capsule__Reply *reply) {
        if (ticket.connection != ctl->number || ticket.seq == 0)
                return;
        reply->seq = ticket.seq;
        ctl_send(ctl, &reply->base);
}

void ctl_reply(struct ctl *ctl, struct ticket ticket, int error, const char *text) {
        Capsule__Reply reply = CAPSULE__REPLY__INIT;

        reply.error = error;
        reply.text = (char *) (text ? text : error < 0 ? strerror(-error) : "");
        send_reply(ctl, ticket, &reply);
}

void ctl_reply_saved_state(struct ctl *ctl, struct ticket ticket, Capsule__SavedState *saved_state) {
        Capsule__Reply reply = CAPSULE__REPLY__INIT;

        reply.saved_state = saved_state;
        send_reply(ctl, ticket, &reply);
}

void ctl_reply_rank_ends(struct ctl *ctl, struct ticket ticket, Capsule__RankEnds *ends) {
        Capsule__Reply reply = CAPSULE__REPLY__INIT;

        reply.rank_ends = ends;
        send_reply(ctl, ticket, &reply);
}

void ctl_reply_flows(struct ctl *ctl, struct ticket ticket, const struct capsule_flow *flows, size_t n) {
        cleanup_free Capsule__Flow *messages = xcalloc(n + 1, sizeof(*messages));
        cleanup_free Capsule__Flow **pointers = xcalloc(n + 1, sizeof(*pointers));
        Capsule__Reply reply = CAPSULE__REPLY__INIT;

        for (size_t i = 0; i < n; i++) {
                capsule__flow__init(&messages[i]);
                messages[i].address = flows[i].address;
                messages[i].sent_bytes = flows[i].sent_bytes;
                pointers[i] = &messages[i];
        }
        reply.flows = pointers;
        reply.n_flows = n;
        send_reply(ctl, ticket, &reply);
}

size_t ctl_backlog(const struct ctl *ctl) {
        return ctl->out.size;
}

/* Carries out the first request in the buffer. False when there is no whole one. */
static bool handle_request(struct ctl *ctl) {
        Capsule__Request *request;
        uint32_t size;
        uint64_t number = ctl->number;
        int r;

        if (ctl->in.size < FRAME_HEADER_BYTES)
                return false;
        r = frame_header_read(ctl->in.data, FRAME_MAGIC_CAPSULE, FRAME_MAX_CAPSULE_BYTES, &size);
        if (r == 0 && ctl->in.size < FRAME_HEADER_BYTES + size)
                return false;
        request = r == 0 ? capsule__request__unpack(NULL, size, ctl->in.data + FRAME_HEADER_BYTES) : NULL;
        if (!request) {
                log_warn("control socket: not a request of ours; connection closed");
                close_connection(ctl);
                return false;
        }
        buffer_consume(&ctl->in, FRAME_HEADER_BYTES + size);
        ctl->handlers->request(ctl->init, request, (struct ticket) { .connection = number, .seq = request->seq });
        return ctl->number == number;
}

static void on_connection(struct source *source, uint32_t events) {
        struct ctl *ctl = source->data;
        uint8_t chunk[READ_BYTES];
        ssize_t n;

        if (events & EPOLLOUT) {
                ctl_flush(ctl);
                if (ctl->out.size == 0)
                        ctl->handlers->drained(ctl->init);
        }
        if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)) || ctl->connection.fd < 0)
                return;
        n = recv(source->fd, chunk, sizeof(chunk), MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        if (n <= 0) {
                close_connection(ctl);
                return;
        }
        buffer_append(&ctl->in, chunk, (size_t) n);
        while (handle_request(ctl))
                ;
}

static void on_listener(struct source *source, uint32_t events) {
        struct ctl *ctl = source->data;
        struct ucred peer = { .uid = (uid_t) -1 };
        socklen_t size = sizeof(peer);
        int fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd < 0)
                return;
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || peer.uid != 0) {
                log_warn("control socket: connection of uid %u refused", peer.uid);
                close(fd);
                return;
        }
        /* A new rmd has come; the old connection can only be of one that is dead. */
        close_connection(ctl);
        ctl->connection.fd = fd;
        if (source_add(ctl->init->core.epoll_fd, &ctl->connection, EPOLLIN) < 0) {
                close(fd);
                ctl->connection.fd = -1;
                return;
        }
        ctl->handlers->connected(ctl->init);
}

int ctl_create(struct init *init, const struct ctl_handlers *handlers, struct ctl **ret) {
        struct ctl *ctl = xcalloc(1, sizeof(*ctl));
        int r;

        ctl->init = init;
        ctl->handlers = handlers;
        ctl->number = 1;
        ctl->listener = (struct source) { .fd = init->core.node.listen, .fn = on_listener, .data = ctl };
        ctl->connection = (struct source) { .fd = -1, .fn = on_connection, .data = ctl };
        /* The socket listens only from now on: a program that connects sees the credentials, and so
         * the pid, of the process that listens. */
        r = listen(init->core.node.listen, 4) < 0 ? -errno : source_add(init->core.epoll_fd, &ctl->listener, EPOLLIN);
        if (r < 0) {
                free(ctl);
                return r;
        }
        *ret = ctl;
        return 0;
}
