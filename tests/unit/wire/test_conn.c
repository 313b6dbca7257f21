/* Framed connections: messages, backpressure, bytes that are not ours, and being closed from
 * everywhere. */
#include "wire_test.h"

struct pair {
        struct event_base *base;
        struct end a;
        struct end b;
        int raw; /* in place of b */
};

static void setup_pair(struct pair *p, bool raw) {
        struct conn_config config = end_config(NULL);
        int fds[2];

        memset(p, 0, sizeof(*p));
        p->raw = -1;
        p->base = event_base_new();
        p->a.base = p->b.base = p->base;
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        assert_int_equal(conn_create(p->base, fds[0], &config, &end_ops, &p->a, &p->a.conn), 0);
        if (raw)
                p->raw = fds[1];
        else
                assert_int_equal(conn_create(p->base, fds[1], &config, &end_ops, &p->b, &p->b.conn), 0);
        assert_int_equal(p->a.ready, 0); /* never from inside conn_create() */
        RUN_UNTIL(p->base, p->a.ready && (raw || p->b.ready), 30000);
        assert_int_equal(p->a.ready, 1);
}

static void finish_pair(struct pair *p) {
        conn_destroy(p->a.conn);
        conn_destroy(p->b.conn);
        if (p->raw >= 0)
                (void) close(p->raw);
        event_base_free(p->base);
}

static void test_messages_in_order(void **state) {
        struct pair p;

        setup_pair(&p, false);
        for (uint64_t i = 1; i <= 1000; i++)
                send_heartbeat(p.a.conn, i, 0);
        RUN_UNTIL(p.base, p.b.messages == 1000, 30000);
        assert_int_equal(p.b.messages, 1000);
        assert_int_equal(p.b.last_sequence, 1000);
        finish_pair(&p);
}

static void test_too_large_to_send(void **state) {
        Rm__PeerMessage message = RM__PEER_MESSAGE__INIT;
        Rm__AgentRun run = RM__AGENT_RUN__INIT;
        struct pair p;

        setup_pair(&p, false);
        run.command = xcalloc(1, (2U << 20) + 1);
        memset(run.command, 'x', 2U << 20);
        message.body_case = RM__PEER_MESSAGE__BODY_AGENT_RUN;
        message.agent_run = &run;
        assert_int_equal(conn_send(p.a.conn, &message.base), -EMSGSIZE);
        free(run.command);
        finish_pair(&p);
}

static void test_backpressure(void **state) {
        Rm__PeerMessage message = RM__PEER_MESSAGE__INIT;
        Rm__AgentRun run = RM__AGENT_RUN__INIT;
        struct conn_config config = end_config(NULL);
        struct pair p;
        unsigned sent = 0;

        setup_pair(&p, true); /* nobody reads there yet */
        run.command = xcalloc(1, 100001);
        memset(run.command, 'x', 100000);
        message.body_case = RM__PEER_MESSAGE__BODY_AGENT_RUN;
        message.agent_run = &run;
        while (conn_send(p.a.conn, &message.base) == 0 && sent < 1000)
                sent++;
        assert_in_range(sent, 40, 100); /* 4 * max_bytes and no more */
        assert_true(conn_pending_bytes(p.a.conn) > (4U << 20));
        p.a.drained = 0;
        RUN_UNTIL(p.base, false, 50);
        assert_int_equal(p.a.drained, 0);
        assert_int_equal(conn_create(p.base, take_fd(&p.raw), &config, &end_ops, &p.b, &p.b.conn), 0);
        RUN_UNTIL(p.base, p.b.messages == sent && p.a.drained > 0, 30000);
        assert_int_equal(p.b.messages, sent);
        assert_true(p.a.drained > 0);
        free(run.command);
        finish_pair(&p);
}

static void refuse_bytes(const void *bytes, size_t n, bool end, int code) {
        struct pair p;

        setup_pair(&p, true);
        assert_int_equal(write_all(p.raw, bytes, n), 0);
        if (end)
                (void) close(take_fd(&p.raw));
        RUN_UNTIL(p.base, p.a.closed, 30000);
        assert_int_equal(p.a.closed, 1);
        assert_int_equal(p.a.code, code);
        assert_int_equal(p.a.messages, 0);
        finish_pair(&p);
}

static void test_wrong_magic(void **state) {
        refuse_bytes("GET / HTTP/1.0\r\n\r\n", 18, false, -EPROTO);
}

static void test_oversized(void **state) {
        uint8_t header[FRAME_HEADER_BYTES];

        frame_header_write(header, FRAME_MAGIC_PEER, (1U << 20) + 1);
        refuse_bytes(header, sizeof(header), false, -EMSGSIZE);
        frame_header_write(header, FRAME_MAGIC_PEER, UINT32_MAX);
        refuse_bytes(header, sizeof(header), false, -EMSGSIZE);
}

static void test_not_a_message(void **state) {
        uint8_t frame[FRAME_HEADER_BYTES + 4] = { 0 };

        frame_header_write(frame, FRAME_MAGIC_PEER, 4);
        memset(frame + FRAME_HEADER_BYTES, 0xff, 4);
        refuse_bytes(frame, sizeof(frame), false, -EBADMSG);
}

/* A field that nobody knows, in a nested message, with a number that cannot be written again. */
static void test_unknown_fields_are_dropped(void **state) {
        static const uint8_t payload[] = { 0x1a, 0x05, 0x08, 0x09, 0x80, 0x00, 0x52 };
        uint8_t frame[FRAME_HEADER_BYTES + sizeof(payload)];
        Rm__PeerMessage *echo = NULL;
        struct pair p;

        setup_pair(&p, true);
        p.a.echo = true;
        frame_header_write(frame, FRAME_MAGIC_PEER, sizeof(payload));
        memcpy(frame + FRAME_HEADER_BYTES, payload, sizeof(payload));
        assert_int_equal(write_all(p.raw, frame, sizeof(frame)), 0);
        RUN_UNTIL(p.base, p.a.messages || p.a.closed, 30000);
        RUN_UNTIL(p.base, false, 20);
        assert_int_equal(p.a.last_sequence, 9);
        assert_int_equal(frame_receive(p.raw, FRAME_MAGIC_PEER, 1000, &rm__peer_message__descriptor, (ProtobufCMessage **) &echo),
                         0);
        assert_int_equal(echo->heartbeat->sequence, 9);
        assert_int_equal(echo->heartbeat->base.n_unknown_fields, 0);
        rm__peer_message__free_unpacked(echo, NULL);
        finish_pair(&p);
}

static void test_truncated(void **state) {
        uint8_t frame[FRAME_HEADER_BYTES + 4] = { 0 };

        frame_header_write(frame, FRAME_MAGIC_PEER, 100);
        refuse_bytes(frame, sizeof(frame), true, -EPIPE);
        refuse_bytes(frame, 3, true, -EPIPE);
        refuse_bytes(frame, 0, true, 0);
}

static void test_closed_in_callback(void **state) {
        struct pair p;

        for (int action = END_DESTROY; action <= END_CLOSE; action++) {
                setup_pair(&p, false);
                p.b.on_message_action = (enum end_action) action;
                p.b.echo = true;
                for (uint64_t i = 1; i <= 3; i++)
                        send_heartbeat(p.a.conn, i, 0);
                RUN_UNTIL(p.base, p.a.closed, 30000);
                assert_int_equal(p.b.messages, 1);
                assert_int_equal(p.b.closed, 0);
                assert_int_equal(p.a.closed, 1);
                /* A message that was sent before conn_close() arrives. */
                if (action == END_CLOSE)
                        assert_int_equal(p.a.messages, 1);
                finish_pair(&p);
        }
}

static void test_trust_timeout_and_gate(void **state) {
        struct conn_gate gate = { .waiting_max = 2 };
        struct conn_config config = end_config(NULL);
        struct event_base *base = event_base_new();
        struct end ends[4] = { 0 };
        struct conn_ops ops = end_ops;
        int fds[4][2];

        TAILQ_INIT(&gate.conns);
        ops.on_ready = NULL; /* nobody trusts */
        config.gate = &gate;
        config.trust_usec = 500000;
        for (int i = 0; i < 4; i++)
                assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds[i]), 0);
        for (int i = 0; i < 2; i++)
                assert_int_equal(conn_create(base, fds[i][0], &config, &ops, &ends[i], &ends[i].conn), 0);
        assert_int_equal(gate.waiting, 2);
        assert_false(conn_gate_full(&gate, now_usec()));
        gate.patience_usec = 10000000;
        assert_true(conn_gate_full(&gate, now_usec()));
        assert_false(conn_gate_full(&gate, now_usec() + gate.patience_usec));
        /* This one is too many: the oldest goes, not the one who comes. */
        assert_int_equal(conn_create(base, fds[2][0], &config, &ops, &ends[2], &ends[2].conn), 0);
        assert_int_equal(gate.waiting, 2);
        assert_int_equal(ends[0].closed, 1);
        assert_int_equal(ends[0].code, -EUSERS);
        assert_int_equal(ends[1].closed + ends[2].closed, 0);
        /* A trusted connection is not closed in favour of others. */
        conn_trust(ends[1].conn);
        assert_int_equal(gate.waiting, 1);
        assert_false(conn_gate_full(&gate, now_usec()));
        assert_int_equal(conn_create(base, fds[3][0], &config, &ops, &ends[3], &ends[3].conn), 0);
        RUN_UNTIL(base, ends[2].closed && ends[3].closed, 30000);
        assert_int_equal(ends[2].code, -ETIMEDOUT);
        assert_int_equal(ends[3].code, -ETIMEDOUT);
        assert_int_equal(ends[1].closed, 0);
        assert_int_equal(gate.waiting, 0);
        assert_true(TAILQ_EMPTY(&gate.conns));
        conn_destroy(ends[1].conn);
        for (int i = 0; i < 4; i++)
                (void) close(fds[i][1]);
        event_base_free(base);
}

/* ---- one who is served in turn, and counted ---- */

struct turns {
        struct end end;
        unsigned frames;
        unsigned heads;
        uint32_t payload_bytes;
        uint32_t max_bytes; /* on_header() refuses more */
        bool destroy;
};

static int turns_on_header(struct conn *conn, const uint8_t *head, size_t head_bytes, uint32_t payload_bytes, void *userdata) {
        struct turns *turns = userdata;

        turns->heads++;
        turns->payload_bytes = payload_bytes;
        assert_true(head_bytes == (payload_bytes < CONN_HEAD_BYTES ? payload_bytes : CONN_HEAD_BYTES));
        assert_true(head_bytes == 0 || head[0] == 0x1a); /* a heartbeat */
        return payload_bytes > turns->max_bytes ? -EMSGSIZE : 0;
}

static void turns_on_frame(struct conn *conn, void *userdata) {
        struct turns *turns = userdata;

        turns->frames++;
        if (turns->destroy)
                conn_destroy(take_ptr(turns->end.conn));
}

static int start_turns(struct event_base *base, struct turns *turns, struct conn_meter *meter, int *ret_raw) {
        static const struct conn_ops ops = {
                .on_ready = end_on_ready,
                .on_header = turns_on_header,
                .on_frame = turns_on_frame,
                .on_message = end_on_message,
                .on_close = end_on_close,
        };
        struct conn_config config = end_config(NULL);
        int fds[2];

        config.meter = meter;
        config.frame_usec = 300000;
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        *ret_raw = fds[1];
        return conn_create(base, fds[0], &config, &ops, turns, &turns->end.conn);
}

static void write_heartbeats(int fd, unsigned n) {
        static const uint8_t payload[] = { 0x1a, 0x02, 0x08, 0x09 };
        uint8_t frame[FRAME_HEADER_BYTES + sizeof(payload)];

        frame_header_write(frame, FRAME_MAGIC_PEER, sizeof(payload));
        memcpy(frame + FRAME_HEADER_BYTES, payload, sizeof(payload));
        while (n-- > 0)
                assert_int_equal(write_all(fd, frame, sizeof(frame)), 0);
}

/* A frame is handled when its turn has come, and no further one before that; the last ones too,
 * after the other end has closed. */
static void test_frames_in_turn(void **state) {
        struct event_base *base = event_base_new();
        struct conn_meter above = { 0 };
        struct conn_meter meter = { .above = &above };
        struct turns turns = { .max_bytes = 100 };
        int raw;

        assert_int_equal(start_turns(base, &turns, &meter, &raw), 0);
        write_heartbeats(raw, 3);
        (void) close(raw);
        for (unsigned i = 1; i <= 3; i++) {
                RUN_UNTIL(base, turns.frames == i, 30000);
                RUN_UNTIL(base, false, 20);
                assert_int_equal(turns.frames, i);
                assert_int_equal(turns.end.messages, i - 1);
                assert_int_equal(turns.end.closed, 0);
                assert_int_equal(meter.bytes, (4 - i) * 12);
                assert_int_equal(conn_held_bytes(turns.end.conn), meter.bytes);
                conn_receive(turns.end.conn);
                assert_int_equal(turns.end.messages, i);
                assert_int_equal(turns.heads, i < 3 ? i + 1 : 3);
        }
        RUN_UNTIL(base, turns.end.closed, 30000);
        assert_int_equal(turns.end.code, 0);
        assert_int_equal(meter.bytes, 0);
        assert_int_equal(above.bytes, 0);
        event_base_free(base);
}

static void test_destroyed_when_a_frame_comes(void **state) {
        struct event_base *base = event_base_new();
        struct turns turns = { .max_bytes = 100, .destroy = true };
        struct conn_meter meter = { 0 };
        int raw;

        assert_int_equal(start_turns(base, &turns, &meter, &raw), 0);
        write_heartbeats(raw, 2);
        RUN_UNTIL(base, turns.frames, 30000);
        assert_int_equal(turns.frames, 1);
        assert_int_equal(meter.bytes, 0);
        (void) close(raw);
        event_base_free(base);
}

/* Refused from its first bytes, before the rest has come. */
static void test_too_large_for_what_it_is(void **state) {
        struct event_base *base = event_base_new();
        struct turns turns = { .max_bytes = 100 };
        uint8_t frame[FRAME_HEADER_BYTES + CONN_HEAD_BYTES] = { 0 };
        int raw;

        assert_int_equal(start_turns(base, &turns, NULL, &raw), 0);
        frame_header_write(frame, FRAME_MAGIC_PEER, 1000);
        frame[FRAME_HEADER_BYTES] = 0x1a;
        assert_int_equal(write_all(raw, frame, sizeof(frame)), 0);
        RUN_UNTIL(base, turns.end.closed, 30000);
        assert_int_equal(turns.end.code, -EMSGSIZE);
        assert_int_equal(turns.payload_bytes, 1000);
        (void) close(raw);
        event_base_free(base);
}

/* A peer that begins a frame and never ends it is held in memory for a while only; one that is
 * between frames stays. */
static void test_half_frame_times_out(void **state) {
        struct event_base *base = event_base_new();
        struct turns turns = { .max_bytes = 100 };
        struct conn_meter meter = { 0 };
        int raw;

        assert_int_equal(start_turns(base, &turns, &meter, &raw), 0);
        write_heartbeats(raw, 1);
        RUN_UNTIL(base, turns.frames, 30000);
        conn_receive(turns.end.conn);
        RUN_UNTIL(base, false, 500);
        assert_int_equal(turns.end.closed, 0);
        assert_int_equal(write_all(raw, "RMP1", 4), 0);
        RUN_UNTIL(base, turns.end.closed, 30000);
        assert_int_equal(turns.end.code, -ETIMEDOUT);
        assert_int_equal(meter.bytes, 0);
        (void) close(raw);
        event_base_free(base);
}

static void count_over(evutil_socket_t fd, short what, void *arg) {
        (*(unsigned *) arg)++;
}

/* The meter counts bytes that wait to be sent; over the limit an event fires. */
static void test_meter(void **state) {
        struct event_base *base = event_base_new();
        unsigned over = 0;
        struct event *event = event_new(base, -1, 0, count_over, &over);
        struct conn_meter meter = { .max_bytes = 100, .over = event };
        struct turns turns = { .max_bytes = 100 };
        int raw;

        assert_int_equal(start_turns(base, &turns, &meter, &raw), 0);
        RUN_UNTIL(base, turns.end.ready, 30000);
        send_heartbeat(turns.end.conn, 0, 0);
        assert_in_range(meter.bytes, FRAME_HEADER_BYTES, meter.max_bytes);
        RUN_UNTIL(base, meter.bytes == 0, 30000);
        assert_int_equal(meter.bytes, 0);
        assert_int_equal(over, 0);
        for (unsigned i = 1; i < 10; i++)
                send_heartbeat(turns.end.conn, i, 0);
        assert_true(meter.bytes > meter.max_bytes);
        RUN_UNTIL(base, over && meter.bytes == 0, 30000);
        assert_int_equal(over, 1);
        assert_int_equal(meter.bytes, 0);
        send_heartbeat(turns.end.conn, 1, 0);
        conn_fail(turns.end.conn, -ENOBUFS, "for a test");
        assert_int_equal(turns.end.closed, 0);
        RUN_UNTIL(base, turns.end.closed, 30000);
        assert_int_equal(turns.end.code, -ENOBUFS);
        assert_string_equal(turns.end.reason, "for a test");
        assert_int_equal(meter.bytes, 0);
        (void) close(raw);
        event_free(event);
        event_base_free(base);
}

/* Few bytes that would be much in memory: so many empty strings. */
static void test_much_from_few_bytes(void **state) {
        enum { STRINGS = 200000 };
        struct event_base *base = event_base_new();
        struct conn_config config = end_config(NULL);
        cleanup_free uint8_t *frame = xcalloc(1, FRAME_HEADER_BYTES + 2 * STRINGS);
        struct end end = { 0 };
        int fds[2];

        config.type = &rm__node_view__descriptor;
        config.decoded_max_bytes = 1U << 20;
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        assert_int_equal(conn_create(base, fds[0], &config, &end_ops, &end, &end.conn), 0);
        frame_header_write(frame, FRAME_MAGIC_PEER, 2 * STRINGS);
        for (size_t i = 0; i < STRINGS; i++)
                frame[FRAME_HEADER_BYTES + 2 * i] = 0x3a; /* a switch's name */
        set_nonblock(fds[1], true);
        for (size_t sent = 0; sent < FRAME_HEADER_BYTES + 2 * STRINGS && !end.closed;) {
                ssize_t n = write(fds[1], frame + sent, FRAME_HEADER_BYTES + 2 * STRINGS - sent);

                sent += n > 0 ? (size_t) n : 0;
                RUN_UNTIL(base, false, 10);
        }
        RUN_UNTIL(base, end.closed, 30000);
        assert_int_equal(end.code, -EBADMSG);
        (void) close(fds[1]);
        event_base_free(base);
}

/* The last word of one that is closed for others reaches it. */
static void test_closed_now_with_a_last_word(void **state) {
        Rm__PeerMessage *message = NULL;
        struct pair p;

        setup_pair(&p, true);
        send_heartbeat(p.a.conn, 7, 0);
        conn_close_now(take_ptr(p.a.conn));
        assert_int_equal(frame_receive(p.raw, FRAME_MAGIC_PEER, 1000, &rm__peer_message__descriptor,
                                       (ProtobufCMessage **) &message),
                         0);
        assert_int_equal(message->heartbeat->sequence, 7);
        rm__peer_message__free_unpacked(message, NULL);
        finish_pair(&p);
}

static void test_creds(void **state) {
        struct ucred cred;
        struct pair p;

        setup_pair(&p, false);
        assert_int_equal(conn_peer_creds(p.a.conn, &cred), 0);
        assert_int_equal(cred.pid, getpid());
        assert_int_equal(cred.uid, getuid());
        finish_pair(&p);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_messages_in_order),
                cmocka_unit_test(test_too_large_to_send),
                cmocka_unit_test(test_backpressure),
                cmocka_unit_test(test_wrong_magic),
                cmocka_unit_test(test_oversized),
                cmocka_unit_test(test_not_a_message),
                cmocka_unit_test(test_truncated),
                cmocka_unit_test(test_unknown_fields_are_dropped),
                cmocka_unit_test(test_closed_in_callback),
                cmocka_unit_test(test_trust_timeout_and_gate),
                cmocka_unit_test(test_frames_in_turn),
                cmocka_unit_test(test_destroyed_when_a_frame_comes),
                cmocka_unit_test(test_too_large_for_what_it_is),
                cmocka_unit_test(test_half_frame_times_out),
                cmocka_unit_test(test_meter),
                cmocka_unit_test(test_much_from_few_bytes),
                cmocka_unit_test(test_closed_now_with_a_last_word),
                cmocka_unit_test(test_creds),
        };

        (void) signal(SIGPIPE, SIG_IGN);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
