/* The common functions of the tests of the wire: two connected ends on one loop, and a record of
 * what each was told. */
#ifndef RM_TESTS_WIRE_TEST_H
#define RM_TESTS_WIRE_TEST_H

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/event.h>

#include "common/frame.h"
#include "common/util.h"
#include "daemon/wire/conn.h"
#include "daemon/wire/tls.h"
#include "proto/peer.pb-c.h"

enum end_action { END_NOTHING, END_DESTROY, END_CLOSE };

struct end {
        struct conn *conn;
        struct event_base *base;
        unsigned ready;
        unsigned messages;
        unsigned drained;
        unsigned closed;
        int code;
        uint64_t last_sequence;
        uint64_t bytes;
        char reason[256];
        enum end_action on_message_action;
        bool echo;
};

static inline void end_on_ready(struct conn *conn, void *userdata) {
        struct end *end = userdata;

        end->ready++;
        conn_trust(conn);
}

static inline void end_on_message(struct conn *conn, ProtobufCMessage *message, void *userdata) {
        struct end *end = userdata;
        const Rm__PeerMessage *in = (const Rm__PeerMessage *) message;

        end->messages++;
        if (in->body_case == RM__PEER_MESSAGE__BODY_HEARTBEAT)
                end->last_sequence = in->heartbeat->sequence;
        end->bytes += protobuf_c_message_get_packed_size(message);
        if (end->echo)
                (void) conn_send(conn, message);
        if (end->on_message_action == END_DESTROY)
                conn_destroy(take_ptr(end->conn));
        else if (end->on_message_action == END_CLOSE)
                conn_close(take_ptr(end->conn));
}

static inline void end_on_drained(struct conn *conn, void *userdata) {
        struct end *end = userdata;

        (void) conn;
        end->drained++;
}

static inline void end_on_close(struct conn *conn, int code, const char *reason, void *userdata) {
        struct end *end = userdata;

        (void) conn;
        end->closed++;
        end->code = code;
        end->conn = NULL;
        (void) snprintf(end->reason, sizeof(end->reason), "%s", reason);
}

static const struct conn_ops end_ops = {
        .on_ready = end_on_ready,
        .on_message = end_on_message,
        .on_drained = end_on_drained,
        .on_close = end_on_close,
};

static inline struct conn_config end_config(SSL *ssl) {
        return (struct conn_config) {
                .magic = FRAME_MAGIC_PEER,
                .max_bytes = 1U << 20,
                .type = &rm__peer_message__descriptor,
                .ssl = ssl,
                .name = "test end",
        };
}

/* Run the loop until `condition` or for `msec`. */
#define RUN_UNTIL(base, condition, msec)                                                                                           \
        do {                                                                                                                       \
                uint64_t _end = now_usec() + (uint64_t) (msec) * 1000U;                                                            \
                while (!(condition) && now_usec() < _end) {                                                                        \
                        struct timeval _tick = { .tv_usec = 10000 };                                                               \
                        (void) event_base_loopexit((base), &_tick);                                                                \
                        (void) event_base_loop((base), EVLOOP_ONCE);                                                               \
                }                                                                                                                  \
        } while (0)

static inline void send_heartbeat(struct conn *conn, uint64_t sequence, int expected) {
        Rm__PeerMessage message = RM__PEER_MESSAGE__INIT;
        Rm__Heartbeat heartbeat = RM__HEARTBEAT__INIT;

        heartbeat.sequence = sequence;
        message.body_case = RM__PEER_MESSAGE__BODY_HEARTBEAT;
        message.heartbeat = &heartbeat;
        assert_int_equal(conn_send(conn, &message.base), expected);
}

#endif
