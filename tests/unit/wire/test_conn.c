/* Framed connections: messages, backpressure, bytes that are not ours, and being closed from everywhere. */
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
        struct pair p;
        unsigned sent = 0;

        setup_pair(&p, false);
        conn_pause(p.b.conn, true);
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
        assert_int_equal(p.b.messages, 0);
        assert_int_equal(p.a.drained, 0);
        conn_pause(p.b.conn, false);
        RUN_UNTIL(p.base, p.b.messages == sent && p.a.drained > 0, 30000);
        assert_int_equal(p.b.messages, sent);
        assert_true(p.a.drained > 0);
        free(run.command);
        finish_pair(&p);
}

static void test_paused_end_loses_nothing(void **state) {
        struct pair p;

        setup_pair(&p, false);
        p.b.on_message_action = END_PAUSE;
        for (uint64_t i = 1; i <= 5; i++)
                send_heartbeat(p.a.conn, i, 0);
        conn_close(take_ptr(p.a.conn));
        for (unsigned i = 1; i <= 5; i++) {
                RUN_UNTIL(p.base, p.b.messages == i, 30000);
                assert_int_equal(p.b.messages, i);
                assert_int_equal(p.b.closed, 0);
                conn_pause(p.b.conn, false);
        }
        RUN_UNTIL(p.base, p.b.closed, 30000);
        assert_int_equal(p.b.closed, 1);
        assert_int_equal(p.b.code, 0);
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
                /* What was sent before conn_close() arrives. */
                if (action == END_CLOSE)
                        assert_int_equal(p.a.messages, 1);
                finish_pair(&p);
        }
}

static void test_trust_timeout_and_gate(void **state) {
        struct conn_gate gate = { .waiting_max = 2 };
        struct conn_config config = end_config(NULL);
        struct event_base *base = event_base_new();
        struct end ends[3] = { 0 };
        struct conn_ops ops = end_ops;
        int fds[3][2];

        ops.on_ready = NULL; /* nobody trusts */
        config.gate = &gate;
        config.trust_usec = 50000;
        for (int i = 0; i < 3; i++) {
                assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds[i]), 0);
                assert_int_equal(conn_create(base, fds[i][0], &config, &ops, &ends[i], &ends[i].conn), i < 2 ? 0 : -EUSERS);
        }
        assert_int_equal(gate.waiting, 2);
        conn_trust(ends[0].conn);
        assert_int_equal(gate.waiting, 1);
        RUN_UNTIL(base, ends[1].closed, 30000);
        assert_int_equal(ends[1].code, -ETIMEDOUT);
        assert_int_equal(ends[0].closed, 0);
        assert_int_equal(gate.waiting, 0);
        conn_destroy(ends[0].conn);
        for (int i = 0; i < 3; i++)
                (void) close(fds[i][1]);
        event_base_free(base);
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
                cmocka_unit_test(test_paused_end_loses_nothing),
                cmocka_unit_test(test_wrong_magic),
                cmocka_unit_test(test_oversized),
                cmocka_unit_test(test_not_a_message),
                cmocka_unit_test(test_truncated),
                cmocka_unit_test(test_unknown_fields_are_dropped),
                cmocka_unit_test(test_closed_in_callback),
                cmocka_unit_test(test_trust_timeout_and_gate),
                cmocka_unit_test(test_creds),
        };

        (void) signal(SIGPIPE, SIG_IGN);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
