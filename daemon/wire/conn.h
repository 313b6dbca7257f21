/* A framed protobuf connection on the event loop: plain (Unix, TCP) or TLS. Bytes that are not ours
 * end the connection with one log line naming the other end, never the daemon. */
#ifndef RM_WIRE_CONN_H
#define RM_WIRE_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <event2/event.h>
#include <openssl/ssl.h>
#include <protobuf-c/protobuf-c.h>

#include "common/log_rate.h"

struct conn;

/* Every callback may call anything on its conn, conn_close() and conn_destroy() included. NULL
 * members are skipped. */
struct conn_ops {
        /* The connection stands: TCP connected, TLS done. Comes before any other callback, and from
         * the loop, never from inside conn_create() or conn_dial(). */
        void (*on_ready)(struct conn *conn, void *userdata);
        /* A frame of `payload_bytes` begins with these bytes (CONN_HEAD_BYTES of its payload, or
         * all); what follows is not read yet. Negative: it is refused, and the connection with it.
         * Comes once for each frame, before its message. */
        int (*on_header)(struct conn *conn, const uint8_t *head, size_t head_bytes, uint32_t payload_bytes, void *userdata);
        /* A whole frame waits. If there is this callback, frames are not handled as they come but
         * by conn_receive(), one for each time that this is called, and nothing is read meanwhile:
         * so many connections can be served in turn. */
        void (*on_frame)(struct conn *conn, void *userdata);
        /* `message` is of the configured type, without fields that this version does not know, and
         * freed when the callback returns. A part of it may be taken over: set its pointer in the
         * message to NULL. */
        void (*on_message)(struct conn *conn, ProtobufCMessage *message, void *userdata);
        /* The queued messages have left, down to `drained_bytes`: more may be sent. */
        void (*on_drained)(struct conn *conn, void *userdata);
        /* The last callback: the other end closed (code 0), or the connection failed (negative
         * errno; -EPROTO wrong magic, -EMSGSIZE, -EBADMSG, -ETIMEDOUT, -EACCES TLS refused: wrong
         * key). Not called after conn_close() or conn_destroy(). The conn is freed when this
         * returns. */
        void (*on_close)(struct conn *conn, int code, const char *reason, void *userdata);
};

/* How much of a payload on_header() sees at most: enough to tell what a protobuf message is going
 * to be. */
#define CONN_HEAD_BYTES 16U

/* Connections whose peers are not known yet, counted together. One too many, and the one that has
 * waited longest is closed: a peer that only waits cannot keep others out. Plain storage of the
 * caller, zero-initialised but for the list and the limit; outlives the conns. */
struct conn_gate {
        unsigned waiting;
        unsigned waiting_max; /* 0 = no limit */
        uint64_t patience_usec; /* conn_gate_full() until the first has waited for so long */
        TAILQ_HEAD(, conn) conns; /* the one that has waited longest first; the caller initialises it */
        struct log_rate log; /* for the lines about closed connections */
};

/* So many wait that another connection had better not be accepted yet: they are still getting to
 * know us, and to close the first of them would waste what that took. Once it has waited too long
 * it is to make room. */
bool conn_gate_full(const struct conn_gate *gate, uint64_t now_usec);

/* Bytes that connections hold in memory: received and not handled yet, to be sent and not taken
 * yet. Plain storage of the caller, outlives the conns. */
struct conn_meter {
        size_t bytes;
        size_t max_bytes; /* 0 = no limit */
        struct event *over; /* activated, again and again, while bytes are over it */
        struct conn_meter *above; /* what is counted here is counted there too; NULL ok */
};

struct conn_config {
        uint32_t magic;
        uint32_t max_bytes; /* largest payload accepted */
        const ProtobufCMessageDescriptor *type;
        SSL *ssl; /* NULL = plain. Taken over by conn_create(), also when that fails. From tls_session(). */
        const char *name; /* the other end, in log lines ("peer n2 (10.0.0.2:4711)"); copied */
        uint64_t trust_usec; /* closed with -ETIMEDOUT unless conn_trust() is called within; 0 = 30 s; UINT64_MAX = never */
        uint64_t frame_usec; /* a frame that was begun is whole within, or the connection is closed with -ETIMEDOUT; 0 = never */
        struct conn_gate *gate; /* NULL = not counted */
        struct conn_meter *meter; /* NULL = not counted */
        struct log_rate *log; /* bounds the lines for bytes that are not ours; NULL = each is written */
        size_t decoded_max_bytes; /* what one message may take in memory, else it is refused; 0 = no limit */
        int close_log_level; /* LOG_*: of the line for bytes that are not ours; 0 = LOG_WARNING */
};

/* Take over a connected stream socket. On failure `fd` and `config->ssl` are closed too. The conn
 * belongs to the caller until conn_close(), conn_destroy() or on_close. */
int conn_create(struct event_base *base, int fd, const struct conn_config *config, const struct conn_ops *ops, void *userdata,
                struct conn **ret);
/* Connect to an address without blocking; failure comes by on_close. */
int conn_dial(struct event_base *base, const struct sockaddr *address, socklen_t address_bytes, const struct conn_config *config,
              const struct conn_ops *ops, void *userdata, struct conn **ret);

/* Queue one message; it is packed at once and remains the caller's. -ENOTCONN after the connection
 * has failed, -EMSGSIZE over max_bytes, -ENOBUFS when more than 4 * max_bytes wait (the other end
 * does not read). */
int conn_send(struct conn *conn, const ProtobufCMessage *message);
/* Bytes queued and not yet handed to the kernel. */
size_t conn_pending_bytes(const struct conn *conn);
/* Bytes held in memory for it, as in conn_meter. */
size_t conn_held_bytes(const struct conn *conn);
/* Handle the frame that on_frame() told of. */
void conn_receive(struct conn *conn);
/* End it from the loop, soon: on_close comes with this code (negative) and reason (a literal, or
 * one that outlives the conn). */
void conn_fail(struct conn *conn, int code, const char *reason);
/* The identity of the other end is known: it leaves the gate, the trust timeout is off. */
void conn_trust(struct conn *conn);

/* Send what is queued (10 s at most), then close. No callback any more; the pointer is gone. NULL
 * ok. */
void conn_close(struct conn *conn);
/* Give the kernel what it takes of what is queued without waiting, and close: for a last message to
 * a peer that may never read it. Not for TLS. */
void conn_close_now(struct conn *conn);
/* Close at once, without callbacks. NULL ok. */
void conn_destroy(struct conn *conn);

/* The credentials of the process at the other end of a Unix socket. */
int conn_peer_creds(const struct conn *conn, struct ucred *ret);
const char *conn_name(const struct conn *conn);
void conn_set_name(struct conn *conn, const char *name);
int conn_fd(const struct conn *conn);

#endif
