/* Bytes from outside against what reads frames: the event loop's connection, as it serves peers and
 * as it serves local clients, and the blocking receiver. The first byte says which of them, and
 * which message is expected; the rest arrives. Whatever decodes must survive being packed and read
 * again. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include "common/log.h"
#include "common/unknown.h"
#include "common/util.h"
#include "daemon/client/request_head.h"
#include "daemon/wire/conn.h"
#include "protocols.h"

#define PROTOCOL (&protocols[FUZZ_PROTOCOL])
#define IN_TURN 0x80U /* of the first byte: as local clients are served */
#define SOCKET_BYTES 65536U /* what a socket surely takes without a reader */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static void check_message(const ProtobufCMessage *message) {
        size_t size_bytes = protobuf_c_message_get_packed_size(message);
        cleanup_free uint8_t *packed = xcalloc(1, size_bytes);
        ProtobufCMessage *again;

        if (protobuf_c_message_pack(message, packed) != size_bytes)
                abort();
        again = protobuf_c_message_unpack(message->descriptor, NULL, size_bytes, packed);
        if (!again)
                abort();
        protobuf_c_message_free_unpacked(again, NULL);
}

struct watched {
        struct conn *conn;
        bool over;
        bool waits; /* for its turn */
};

/* Twice as large as it is allowed to be is enough to see that the rest is refused. */
static int on_header(struct conn *conn, const uint8_t *bytes, size_t n, uint32_t payload_bytes, void *userdata) {
        struct request_head head = request_head_read(bytes, n);

        if (n > CONN_HEAD_BYTES || (n < CONN_HEAD_BYTES && n != payload_bytes))
                abort();
        return payload_bytes > request_head_max_bytes(&head, payload_bytes & 1) ? -EMSGSIZE : 0;
}

static void on_frame(struct conn *conn, void *userdata) {
        struct watched *watched = userdata;

        watched->waits = true;
}

static void on_message(struct conn *conn, ProtobufCMessage *message, void *userdata) {
        check_message(message);
        (void) conn_send(conn, message);
}

static void on_close(struct conn *conn, int code, const char *reason, void *userdata) {
        struct watched *watched = userdata;

        watched->over = true;
}

static void feed_conn(int fds[2], const ProtobufCMessageDescriptor *type, bool in_turn) {
        static struct event_base *base;
        struct watched watched = { 0 };
        static const struct conn_ops ops = { .on_message = on_message, .on_close = on_close };
        static const struct conn_ops turn_ops = {
                .on_header = on_header, .on_frame = on_frame, .on_message = on_message, .on_close = on_close
        };
        struct conn_meter meter = { 0 };
        struct conn_config config = {
                .magic = PROTOCOL->magic,
                .max_bytes = PROTOCOL->max_bytes,
                .type = type,
                .name = "fuzz",
                .trust_usec = UINT64_MAX,
                .meter = &meter,
                .decoded_max_bytes = in_turn ? 8U << 20 : 0,
        };

        if (!base)
                base = event_base_new();
        if (conn_create(base, fds[0], &config, in_turn ? &turn_ops : &ops, &watched, &watched.conn) < 0)
                abort();
        /* The loop ends after as many frames as the input can hold. */
        for (int i = 0; i < (in_turn ? 10000 : 1000) && !watched.over; i++) {
                (void) event_base_loop(base, EVLOOP_NONBLOCK);
                if (!watched.over && watched.waits) {
                        watched.waits = false;
                        conn_receive(watched.conn);
                }
        }
        /* The other side has closed: every byte was looked at, so the end must have been seen. */
        if (!watched.over || meter.bytes != 0)
                abort();
}

static void feed_blocking(int fds[2], const ProtobufCMessageDescriptor *type) {
        ProtobufCMessage *message;

        while (frame_receive(fds[0], PROTOCOL->magic, PROTOCOL->max_bytes, type, &message) == 0) {
                unknown_drop(message); /* as conn does by itself */
                check_message(message);
                protobuf_c_message_free_unpacked(message, NULL);
        }
        (void) close(fds[0]);
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
        (void) signal(SIGPIPE, SIG_IGN);
        log_setup("fuzz", -1);
        return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
        const ProtobufCMessageDescriptor *type;
        int fds[2];

        if (size_bytes < 1 || size_bytes > SOCKET_BYTES)
                return -1;
        type = PROTOCOL->types[(data[0] >> 1) % protocol_types(PROTOCOL)];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
                abort();
        if (write_all(fds[1], data + 1, size_bytes - 1) < 0)
                abort();
        (void) close(fds[1]);
        if (data[0] & 1)
                feed_blocking(fds, type);
        else
                feed_conn(fds, type, data[0] & IN_TURN);
        return 0;
}
