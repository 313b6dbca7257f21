/* The transport and those who do not belong to it. */
#include "tests/unit/cluster/cluster_test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "common/frame.h"
#include "daemon/peers/peer_message.h"
#include "daemon/wire/conn.h"

static void start(struct world *w, int n) {
        world_init(w);
        for (int i = 0; i < n; i++)
                (void) tnode_start(w, i, 0);
        EXPECT(w, joined(w, n), 5000);
}

static int connect_to(const struct tnode *node) {
        struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons((uint16_t) node->port) };
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        (void) inet_pton(AF_INET, "127.0.0.1", &in.sin_addr);
        assert_int_equal(connect(fd, (struct sockaddr *) &in, sizeof(in)), 0);
        return fd;
}

static bool ended(int fd) {
        char c[256];
        ssize_t n = recv(fd, c, sizeof(c), MSG_DONTWAIT);

        return n == 0 || (n < 0 && errno != EAGAIN);
}

static void test_strange_bytes(void **state) {
        struct world w;
        int fd;

        start(&w, 2);
        fd = connect_to(&w.nodes[0]);
        assert_int_equal(write_all(fd, "GET / HTTP/1.0\r\n\r\n", 18), 0);
        RUN_UNTIL(&w, ended(fd), 2000);
        (void) close(fd);
        assert_true(joined(&w, 2));
        world_finish(&w);
}

/* The node tells why it does not join. */
static void check_told(const struct tnode *node, const char *why) {
        cleanup_free char *text = cluster_join_failures(node->cluster);

        assert_non_null(text);
        if (!strstr(text, why))
                fail_msg("'%s' does not say '%s'", text, why);
}

static void test_wrong_key(void **state) {
        struct world w;

        start(&w, 2);
        w.key[5]++;
        (void) tnode_start(&w, 2, 0);
        RUN_UNTIL(&w, false, 1000);
        assert_int_equal(w.nodes[2].peer_up, 0);
        check_told(&w.nodes[2], "key");
        assert_true(joined(&w, 2));
        assert_null(cluster_join_failures(w.nodes[1].cluster));
        assert_int_equal(cluster_state(w.nodes[0].cluster)->n_nodes, 2);
        world_finish(&w);
}

static void test_other_cluster(void **state) {
        struct rm_error err = { 0 };
        struct world w;

        start(&w, 1);
        cleanup_free char *peer = xasprintf("127.0.0.1:%u", w.nodes[0].port);
        const char *const peers[] = { peer };

        assert_int_equal(tnode_try(&w, &w.nodes[1], false, peers, 1, "others", &err), 0);
        RUN_UNTIL(&w, false, 700);
        assert_int_equal(w.nodes[1].peer_up, 0);
        check_told(&w.nodes[1], "not of this cluster");
        assert_int_equal(cluster_state(w.nodes[0].cluster)->n_nodes, 1);
        world_finish(&w);
}

/* A stranger has the key, and its rmd is of another version. */
struct stranger {
        uint32_t version;
        uint32_t port;
        bool closed;
        int code;
        char text[256];
};

static void stranger_on_ready(struct conn *conn, void *userdata) {
        const struct stranger *stranger = userdata;
        Rm__PeerHello hello = RM__PEER_HELLO__INIT;
        Rm__Node self = RM__NODE__INIT;

        self.name = (char *) "n9";
        self.address = (char *) "127.0.0.1";
        self.port = stranger->port;
        self.level = STATE_LEVEL;
        hello.version = stranger->version;
        hello.cluster = (char *) "testers";
        hello.node = self.name;
        hello.boot_id = (char *) "boot";
        hello.instance = 9;
        hello.self = &self;
        assert_int_equal(conn_send(conn, &PEER_MESSAGE(&hello).base), 0);
}

static void stranger_on_message(struct conn *conn, ProtobufCMessage *message, void *userdata) {
        const Rm__PeerMessage *said = (const Rm__PeerMessage *) message;
        struct stranger *stranger = userdata;

        if (said->body_case != RM__PEER_MESSAGE__BODY_REFUSE)
                return;
        stranger->code = said->refuse->code;
        (void) snprintf(stranger->text, sizeof(stranger->text), "%s", said->refuse->text);
}

static void stranger_on_close(struct conn *conn, int code, const char *reason, void *userdata) {
        ((struct stranger *) userdata)->closed = true;
}

static struct conn *stranger_dial(struct world *w, struct tls *tls, struct stranger *stranger, const struct tnode *node) {
        static const struct conn_ops ops = { .on_ready = stranger_on_ready,
                                             .on_message = stranger_on_message,
                                             .on_close = stranger_on_close };
        struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons((uint16_t) node->port) };
        struct conn_config config = { .magic = FRAME_MAGIC_PEER,
                                      .max_bytes = FRAME_MAX_PEER_BYTES,
                                      .type = &rm__peer_message__descriptor,
                                      .ssl = tls_session(tls, false),
                                      .name = "stranger" };
        struct conn *conn = NULL;

        (void) inet_pton(AF_INET, "127.0.0.1", &in.sin_addr);
        assert_non_null(config.ssl);
        assert_int_equal(conn_dial(w->base, (struct sockaddr *) &in, sizeof(in), &config, &ops, stranger, &conn), 0);
        return conn;
}

/* A peer of another version is told which versions there are, and becomes no node. One of this
 * version is greeted. */
static void test_other_version(void **state) {
        static const uint32_t others[] = { 0, 1, 4, 6 };
        struct tls *tls = NULL;
        struct world w;

        start(&w, 1);
        assert_int_equal(tls_create("testers", TLS_PEER, w.key, &tls, NULL), 0);
        for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
                struct stranger stranger = { .version = others[i], .port = 1 };
                cleanup_free char *text = xasprintf("has version %u of the peer protocol, this node has 5", others[i]);

                (void) stranger_dial(&w, tls, &stranger, &w.nodes[0]);
                EXPECT(&w, stranger.closed, 2000);
                assert_int_equal(stranger.code, EPROTO);
                assert_non_null(strstr(stranger.text, text));
                assert_null(state_node(cluster_state(w.nodes[0].cluster), "n9"));
        }
        struct stranger same = { .version = 5, .port = 1 };
        struct conn *conn = stranger_dial(&w, tls, &same, &w.nodes[0]);

        RUN_UNTIL(&w, same.closed, 300);
        assert_false(same.closed);
        conn_destroy(conn);
        tls_destroy(tls);
        world_finish(&w);
}

static void test_two_of_one_name(void **state) {
        struct world w;

        start(&w, 3);
        (void) snprintf(w.nodes[3].name, sizeof(w.nodes[3].name), "n2");
        (void) tnode_start(&w, 3, 0);
        RUN_UNTIL(&w, false, 1000);
        assert_int_equal(w.nodes[3].peer_up, 0);
        check_told(&w.nodes[3], "two nodes are named 'n2'");
        assert_true(joined(&w, 3));
        assert_int_equal(state_node(cluster_state(w.nodes[0].cluster), "n2")->port, w.nodes[1].port);
        assert_int_equal(w.nodes[0].peer_down, 0);
        /* When the first one has gone, the second may take its place. */
        tnode_stop(&w.nodes[1]);
        EXPECT(&w, state_node(cluster_state(w.nodes[0].cluster), "n2")->port == w.nodes[3].port, 10000);
        world_finish(&w);
}

static void test_name_of_the_one_asked(void **state) {
        struct world w;

        start(&w, 2);
        (void) snprintf(w.nodes[3].name, sizeof(w.nodes[3].name), "n1");
        (void) tnode_start(&w, 3, 0);
        RUN_UNTIL(&w, false, 700);
        assert_int_equal(w.nodes[3].peer_up, 0);
        assert_true(joined(&w, 2));
        world_finish(&w);
}

static void say_hello(struct tnode *from, const char *to, const char *node, const char *self_name) {
        Rm__PeerHello hello = RM__PEER_HELLO__INIT;
        Rm__Node self = RM__NODE__INIT;

        self.name = (char *) self_name;
        self.address = (char *) "127.0.0.1";
        self.port = from->port;
        self.level = STATE_LEVEL;
        hello.node = (char *) node;
        hello.self = self_name ? &self : NULL;
        assert_int_equal(cluster_send(from->cluster, to, &PEER_MESSAGE(&hello)), 0);
}

/* A connected node may not describe itself again, under its own name or another. */
static void test_other_name_later(void **state) {
        static const char *const others[][2] = { { "n2", "n2" }, { "n3", "n2" }, { "n2", "n3" }, { "n3", "n3" }, { "n2", NULL } };
        struct world w;

        start(&w, 2);
        for (unsigned i = 0; i < ARRAY_SIZE(others); i++) {
                unsigned before = w.nodes[0].peer_down;

                EXPECT(&w, cluster_connected(w.nodes[0].cluster, "n2") && cluster_connected(w.nodes[1].cluster, "n1"), 5000);
                say_hello(&w.nodes[1], "n1", others[i][0], others[i][1]);
                EXPECT(&w, w.nodes[0].peer_down > before, 1000);
        }
        EXPECT(&w, joined(&w, 2), 5000);
        assert_null(state_node(cluster_state(w.nodes[0].cluster), "n3"));
        world_finish(&w);
}

static void test_two_logs(void **state) {
        struct rm_error err = { 0 };
        struct world w;

        start(&w, 2);
        cleanup_free char *peer = xasprintf("127.0.0.1:%u", w.nodes[0].port);
        const char *const peers[] = { peer };

        assert_int_equal(tnode_try(&w, &w.nodes[2], true, NULL, 0, "testers", &err), 0);
        tnode_stop(&w.nodes[2]);
        assert_int_equal(tnode_try(&w, &w.nodes[2], true, peers, 1, "testers", &err), 0);
        RUN_UNTIL(&w, false, 700);
        assert_false(cluster_connected(w.nodes[0].cluster, "n3"));
        check_told(&w.nodes[2], "have each begun a cluster");
        assert_true(joined(&w, 2));
        world_finish(&w);
}

/* A node that may ask others begins no second cluster: it joins theirs, and begins none either when
 * they are away. */
static void test_bootstrap_of_a_cluster_that_is_there(void **state) {
        struct rm_error err = { 0 };
        struct world w;

        start(&w, 2);
        cleanup_free char *peer = xasprintf("127.0.0.1:%u", w.nodes[0].port);
        const char *const peers[] = { peer };

        assert_int_equal(tnode_try(&w, &w.nodes[2], true, peers, 1, "testers", &err), 0);
        EXPECT(&w, joined(&w, 3) && cluster_synced(w.nodes[2].cluster), 3000);
        tnode_stop(&w.nodes[2]);
        tnode_stop(&w.nodes[0]);
        tnode_stop(&w.nodes[1]);
        assert_int_equal(tnode_try(&w, &w.nodes[2], true, peers, 1, "testers", &err), 0);
        RUN_UNTIL(&w, false, 4000);
        assert_null(cluster_leader(w.nodes[2].cluster));
        world_finish(&w);
}

/* A node that has asked in vain begins the cluster. */
static void test_bootstrap_alone(void **state) {
        const char *const peers[] = { "127.0.0.1:1" };
        struct rm_error err = { 0 };
        struct world w;

        world_init(&w);
        assert_int_equal(tnode_try(&w, &w.nodes[0], true, peers, 1, "testers", &err), 0);
        assert_false(cluster_is_leader(w.nodes[0].cluster));
        EXPECT(&w, cluster_is_leader(w.nodes[0].cluster) && joined(&w, 1), 5000);
        world_finish(&w);
}

static void test_own_address_among_the_peers(void **state) {
        struct rm_error err = { 0 };
        struct world w;

        start(&w, 1);
        cleanup_free char *first = xasprintf("127.0.0.1:%u", w.nodes[0].port);
        const char *const one[] = { first };
        assert_int_equal(tnode_try(&w, &w.nodes[1], false, one, 1, "testers", &err), 0);
        EXPECT(&w, joined(&w, 2), 3000);
        tnode_stop(&w.nodes[1]);
        cleanup_free char *own = xasprintf("127.0.0.1:%u", w.nodes[1].port);
        cleanup_free char *own_by_name = xasprintf("localhost:%u", w.nodes[1].port);
        cleanup_free char *first_by_name = xasprintf("localhost:%u", w.nodes[0].port);
        const char *const all[] = { own, own_by_name, first, first_by_name };

        (void) remove_tree(w.nodes[1].dir);
        w.nodes[1].peer_up = w.nodes[1].peer_down = 0;
        assert_int_equal(tnode_try(&w, &w.nodes[1], false, all, 4, "testers", &err), 0);
        EXPECT(&w, joined(&w, 2), 3000);
        RUN_UNTIL(&w, false, 500);
        assert_int_equal(w.nodes[1].peer_up, 1);
        assert_int_equal(w.nodes[1].peer_down, 0);
        world_finish(&w);
}

static void test_bad_configuration(void **state) {
        static const char *const bad[] = { "n1", ":80", "n1:", "n1:0", "n1:70000", "n1:8x" };
        struct rm_error err = { 0 };
        struct world w;

        world_init(&w);
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                assert_int_equal(tnode_try(&w, &w.nodes[0], true, &bad[i], 1, "testers", &err), -EINVAL);
        assert_int_equal(tnode_try(&w, &w.nodes[0], true, NULL, 0, "not a name", &err), -EINVAL);
        (void) tnode_start(&w, 0, 0);
        w.nodes[1].port = w.nodes[0].port;
        assert_int_equal(tnode_try(&w, &w.nodes[1], false, NULL, 0, "testers", &err), -EADDRINUSE);
        w.nodes[1].port = 0;
        world_finish(&w);
}

/* All at once and again and again: nobody is left out, and nothing is left behind. */
static void test_restarts(void **state) {
        struct world w;

        start(&w, 4);
        for (int round = 0; round < 12; round++) {
                int victim = round % 4;

                tnode_stop(&w.nodes[victim]);
                if (round % 3 == 0)
                        RUN_UNTIL(&w, false, 50);
                if (round % 4 == 1) {
                        tnode_stop(&w.nodes[3]);
                        (void) tnode_start(&w, 3, 0);
                }
                (void) tnode_start(&w, victim, victim == 0 ? 1 : 0);
                EXPECT(&w, joined(&w, 4), 6000);
        }
        world_finish(&w);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_strange_bytes),
                cmocka_unit_test(test_wrong_key),
                cmocka_unit_test(test_other_cluster),
                cmocka_unit_test(test_other_version),
                cmocka_unit_test(test_two_of_one_name),
                cmocka_unit_test(test_name_of_the_one_asked),
                cmocka_unit_test(test_other_name_later),
                cmocka_unit_test(test_two_logs),
                cmocka_unit_test(test_bootstrap_of_a_cluster_that_is_there),
                cmocka_unit_test(test_bootstrap_alone),
                cmocka_unit_test(test_own_address_among_the_peers),
                cmocka_unit_test(test_bad_configuration),
                cmocka_unit_test(test_restarts),
        };

        (void) signal(SIGPIPE, SIG_IGN);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
