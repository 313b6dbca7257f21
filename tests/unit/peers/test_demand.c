/* Followers are connected to the leader, and to each other only while they have something to
 * say. */
#include "tests/unit/cluster/cluster_test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "daemon/peers/peer_message.h"
#include "daemon/peers/peers_internal.h"

/* ---- two nodes that both follow ---- */

struct end {
        struct peers *peers;
        struct tls *tls;
        char name[8];
        unsigned up;
        unsigned down;
        uint64_t received;
        bool unordered;
};

static void end_on_peer(void *userdata, const char *name, bool connected) {
        struct end *end = userdata;

        (void) name;
        if (connected)
                end->up++;
        else
                end->down++;
}

static void end_on_message(void *userdata, const char *name, Rm__PeerMessage *message) {
        struct end *end = userdata;

        (void) name;
        if (message->body_case != RM__PEER_MESSAGE__BODY_MOVE_OPENED)
                return;
        if (message->move_opened->move != end->received + 1)
                end->unordered = true;
        end->received++;
}

static void end_start_beating(struct world *w, struct end *end, const char *name, uint64_t idle_usec, uint64_t heartbeat_usec,
                              uint64_t timeout_usec) {
        static const struct peers_ops ops = { .on_peer = end_on_peer, .on_message = end_on_message };
        Rm__Node self = RM__NODE__INIT;
        struct peers_config config = { .cluster = "testers", .self = &self, .listen_address = "127.0.0.1" };

        memset(end, 0, sizeof(*end));
        (void) snprintf(end->name, sizeof(end->name), "%s", name);
        assert_int_equal(tls_create("testers", TLS_PEER, w->key, &end->tls, NULL), 0);
        self.name = end->name;
        self.address = (char *) "127.0.0.1";
        config.tls = end->tls;
        config.heartbeat_usec = heartbeat_usec;
        config.timeout_usec = timeout_usec;
        config.idle_usec = idle_usec;
        assert_int_equal(peers_create(w->base, &config, &ops, end, &end->peers, NULL), 0);
}

static void end_start(struct world *w, struct end *end, const char *name, uint64_t idle_usec) {
        end_start_beating(w, end, name, idle_usec, 50000, 10000000);
}

static void end_stop(struct end *end) {
        peers_destroy(end->peers);
        tls_destroy(end->tls);
        end->peers = NULL;
        end->tls = NULL;
}

static int post(struct end *from, const struct end *to, uint64_t sequence) {
        Rm__MoveOpened opened = RM__MOVE_OPENED__INIT;

        opened.move = sequence;
        return peers_post(from->peers, to->name, &PEER_MESSAGE(&opened));
}

static void start_two(struct world *w, struct end *a, struct end *b, uint64_t idle_usec) {
        world_init(w);
        end_start(w, a, "a", idle_usec);
        end_start(w, b, "b", idle_usec);
        peers_learn(a->peers, peers_self(b->peers));
        peers_learn(b->peers, peers_self(a->peers));
}

static void stop_two(struct world *w, struct end *a, struct end *b) {
        end_stop(a);
        end_stop(b);
        world_finish(w);
}

static bool connected(const struct end *a, const struct end *b) {
        return peers_connected(a->peers, b->name) || peers_connected(b->peers, a->name);
}

static void test_connects_when_asked(void **state) {
        struct end a, b;
        struct world w;

        start_two(&w, &a, &b, 300000);
        RUN_UNTIL(&w, connected(&a, &b), 700);
        assert_false(connected(&a, &b));
        for (uint64_t i = 1; i <= 100; i++)
                assert_int_equal(post(&b, &a, i), 0);
        assert_true(peers_pending_bytes(b.peers, "a") > 0);
        EXPECT(&w, a.received == 100, 1000);
        assert_false(a.unordered);
        assert_int_equal(a.up + b.up, 2);
        /* The connection does not last indefinitely. */
        EXPECT(&w, !connected(&a, &b), 1000);
        assert_int_equal(a.down + b.down, 0);
        assert_int_equal(post(&a, &b, 1), 0);
        EXPECT(&w, b.received == 1, 1000);
        stop_two(&w, &a, &b);
}

static void test_both_at_once(void **state) {
        struct end a, b;
        struct world w;

        for (uint64_t i = 1; i <= 20; i++) {
                start_two(&w, &a, &b, 10000000);
                assert_int_equal(post(&a, &b, 1), 0);
                if (i % 3 == 0)
                        RUN_UNTIL(&w, false, i);
                assert_int_equal(post(&b, &a, 1), 0);
                EXPECT(&w, a.received == 1 && b.received == 1, 1000);
                RUN_UNTIL(&w, false, 20);
                assert_int_equal(a.up, 1);
                assert_int_equal(b.up, 1);
                assert_int_equal(a.down + b.down, 0);
                stop_two(&w, &a, &b);
        }
}

/* A message that one sends while the other ends the connection, or both do, comes all the same. */
static void test_nothing_lost_at_the_end(void **state) {
        uint64_t sent_by_a = 0;
        uint64_t sent_by_b = 0;
        struct end a, b;
        struct world w;

        start_two(&w, &a, &b, 10000000);
        for (int i = 0; i < 60; i++) {
                assert_int_equal(post(&a, &b, ++sent_by_a), 0);
                EXPECT(&w, b.received == sent_by_a, 1000);
                if (i % 3 != 0)
                        demand_close_idle(a.peers, UINT64_MAX);
                if (i % 3 != 1)
                        demand_close_idle(b.peers, UINT64_MAX);
                peer_find(a.peers, "b")->needed_usec = peer_find(b.peers, "a")->needed_usec = 0;
                if (i % 4 == 3)
                        RUN_UNTIL(&w, false, 1 + i % 7);
                if (i % 2 == 0)
                        assert_int_equal(post(&a, &b, ++sent_by_a), 0);
                if (i % 5 != 0)
                        assert_int_equal(post(&b, &a, ++sent_by_b), 0);
                EXPECT(&w, a.received == sent_by_b && b.received == sent_by_a, 1000);
        }
        assert_false(a.unordered || b.unordered);
        assert_int_equal(a.down + b.down, 0);
        assert_true(a.up > 10);
        stop_two(&w, &a, &b);
}

/* A single one of the two nodes needs the connection. */
static void test_kept(void **state) {
        struct end a, b;
        struct world w;
        uint64_t begin;

        start_two(&w, &a, &b, 200000);
        assert_int_equal(post(&a, &b, 1), 0);
        EXPECT(&w, b.received == 1, 1000);
        begin = now_usec();
        while (now_usec() - begin < 1500000) {
                peers_keep(b.peers, "a");
                RUN_UNTIL(&w, !connected(&a, &b), 20);
                assert_true(connected(&a, &b));
        }
        /* Lost, it is made again. */
        peers_reset(a.peers, "b", "test");
        EXPECT(&w, b.down == 1, 1000);
        peers_keep(b.peers, "a");
        EXPECT(&w, b.up == 2, 1000);
        EXPECT(&w, !connected(&a, &b), 1000);
        stop_two(&w, &a, &b);
}

/* Two that beat so, and have a connection since one has sent something. */
static void speak_once(struct world *w, struct end *a, struct end *b, uint64_t heartbeat_usec, uint64_t timeout_usec) {
        world_init(w);
        end_start_beating(w, a, "a", 60000000, heartbeat_usec, timeout_usec);
        end_start_beating(w, b, "b", 60000000, heartbeat_usec, timeout_usec);
        peers_learn(a->peers, peers_self(b->peers));
        assert_int_equal(post(a, b, 1), 0);
        EXPECT(w, b->received == 1, 1000);
}

/* With a node_timeout as short as it may be they took each other for lost between two
 * heartbeats. */
static void test_quiet_is_not_lost(void **state) {
        struct end a, b;
        struct world w;

        speak_once(&w, &a, &b, 500000, 1000000);
        RUN_UNTIL(&w, a.down + b.down > 0, 4000);
        assert_int_equal(a.down + b.down, 0);
        stop_two(&w, &a, &b);
}

/* A connection is given up only where nothing was heard of the other for half of what counts as
 * silence. Neither beats within this time. */
static void test_suspected(void **state) {
        struct end a, b;
        struct world w;

        speak_once(&w, &a, &b, 4000000, 4000000);
        peers_suspect(a.peers, "b");
        peers_suspect(a.peers, "nobody");
        assert_int_equal(a.down, 0);
        RUN_UNTIL(&w, a.down > 0, 2200);
        assert_int_equal(a.down, 0);
        peers_suspect(a.peers, "b");
        assert_int_equal(a.down, 1);
        EXPECT(&w, b.down == 1, 1000);
        assert_int_equal(post(&a, &b, 2), 0);
        EXPECT(&w, b.received == 2, 1000);
        stop_two(&w, &a, &b);
}

static void test_gone(void **state) {
        struct end a, b;
        struct world w;

        start_two(&w, &a, &b, 1000000);
        end_stop(&b);
        assert_int_equal(post(&a, &b, 1), 0);
        assert_int_equal(a.down, 0); /* not from within */
        EXPECT(&w, a.down == 1, 1000);
        assert_int_equal(a.up, 0);
        assert_int_equal(peers_pending_bytes(a.peers, "b"), 0);
        assert_int_equal(post(&a, &b, 1), -ENOTCONN);
        (void) snprintf(b.name, sizeof(b.name), "c");
        assert_int_equal(post(&a, &b, 1), -ENOTCONN);
        end_stop(&a);
        world_finish(&w);
}

/* A node that begins to lead does not wait for the next try at a node that could not be reached:
 * that does not seek the leader while it knows none. */
static void test_new_leader_seeks_at_once(void **state) {
        struct end a, b;
        struct world w;
        const struct peer *peer;

        (void) state;
        start_two(&w, &a, &b, 1000000);
        end_stop(&b);
        peer = peer_find(a.peers, "b");
        peers_set_leading(a.peers, 1);
        EXPECT(&w, peer->failures > 2, 3000);
        assert_true(peer->next_dial_usec > now_usec());
        peers_set_leading(a.peers, 0);
        peers_set_leading(a.peers, 2);
        assert_true(peer->next_dial_usec <= now_usec());
        assert_int_equal(peer->failures, 0);
        EXPECT(&w, peer->failures > 0, 1000);
        end_stop(&a);
        world_finish(&w);
}

/* `end` believes that b is where something listens that says nothing: the socket. */
static int learn_silent(struct end *end) {
        struct sockaddr_in in = { .sin_family = AF_INET };
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        Rm__Node node = RM__NODE__INIT;
        socklen_t n = sizeof(in);

        (void) inet_pton(AF_INET, "127.0.0.1", &in.sin_addr);
        assert_int_equal(bind(fd, (struct sockaddr *) &in, sizeof(in)), 0);
        assert_int_equal(listen(fd, 4), 0);
        assert_int_equal(getsockname(fd, (struct sockaddr *) &in, &n), 0);
        node.name = (char *) "b";
        node.address = (char *) "127.0.0.1";
        node.port = ntohs(in.sin_port);
        peers_learn(end->peers, &node);
        return fd;
}

/* The other end died while it was being dialled, and dials now itself: what waits for its answer is
 * not in the way. */
static void test_dialled_in_vain(void **state) {
        struct end a, b;
        struct world w;
        int fd;

        world_init(&w);
        end_start(&w, &a, "a", 1000000);
        fd = learn_silent(&a);
        assert_int_equal(post(&a, &(struct end) { .name = "b" }, 1), 0);
        RUN_UNTIL(&w, a.up > 0, 500);
        end_start(&w, &b, "b", 1000000);
        peers_learn(b.peers, peers_self(a.peers));
        assert_int_equal(post(&b, &a, 1), 0);
        EXPECT(&w, a.received == 1 && b.received == 1, 1000);
        stop_two(&w, &a, &b);
        (void) close(fd);
}

static void test_much_for_nobody(void **state) {
        cleanup_free uint8_t *bytes = xcalloc(1, 1 << 20);
        Rm__PeerMessage message = RM__PEER_MESSAGE__INIT;
        Rm__BodyPart part = RM__BODY_PART__INIT;
        unsigned posted = 0;
        struct end a;
        struct world w;
        int fd;

        world_init(&w);
        end_start(&w, &a, "a", 1000000);
        fd = learn_silent(&a);
        part.data = (ProtobufCBinaryData) { .len = 1 << 20, .data = bytes };
        message.body_case = RM__PEER_MESSAGE__BODY_BODY_PART;
        message.body_part = &part;
        while (peers_post(a.peers, "b", &message) == 0)
                posted++;
        assert_int_equal(posted, 15);
        assert_int_equal(peers_post(a.peers, "b", &message), -ENOBUFS);
        EXPECT(&w, a.down == 1, PEERS_DIAL_USEC / 1000 + 500);
        assert_int_equal(peers_pending_bytes(a.peers, "b"), 0);
        end_stop(&a);
        (void) close(fd);
        world_finish(&w);
}

static void test_wrong_key(void **state) {
        struct end a, b;
        struct world w;

        start_two(&w, &a, &b, 1000000);
        end_stop(&b);
        w.key[5]++;
        end_start(&w, &b, "b", 1000000);
        peers_learn(a.peers, peers_self(b.peers));
        assert_int_equal(post(&a, &b, 1), 0);
        EXPECT(&w, a.down == 1, 1000);
        assert_int_equal(b.up + b.received, 0);
        stop_two(&w, &a, &b);
}

/* Another node lives where this one was. */
static void test_somebody_else(void **state) {
        struct end a, b, c;
        struct world w;
        Rm__Node node;

        start_two(&w, &a, &b, 1000000);
        end_start(&w, &c, "c", 1000000);
        node = *peers_self(b.peers);
        node.name = c.name;
        peers_learn(a.peers, &node);
        assert_int_equal(post(&a, &c, 1), 0);
        EXPECT(&w, a.down == 1, 1000);
        assert_int_equal(b.received + c.received, 0);
        end_stop(&c);
        stop_two(&w, &a, &b);
}

/* ---- whole clusters ---- */

static void test_only_to_the_leader(void **state) {
        struct world w;

        world_init(&w);
        w.idle_usec = 100000;
        for (int i = 0; i < NODES_MAX; i++)
                (void) tnode_start(&w, i, i / 2); /* some know only one that does not lead */
        EXPECT(&w, joined(&w, NODES_MAX), 5000);
        for (int i = 1; i < NODES_MAX; i++)
                for (int k = 1; k < NODES_MAX; k++)
                        if (k != i)
                                EXPECT(&w, !cluster_connected(w.nodes[i].cluster, w.nodes[k].name), 3000);
        assert_true(joined(&w, NODES_MAX));
        world_finish(&w);
}

/* The node of the configuration knows no leader itself, at first. */
static void test_leader_found_late(void **state) {
        struct world w;

        world_init(&w);
        w.idle_usec = 600000000; /* a new connection would tell it */
        (void) tnode_start(&w, 0, 0);
        tnode_stop(&w.nodes[0]); /* its port is known now */
        (void) tnode_start(&w, 1, 0);
        (void) tnode_start(&w, 2, 1);
        EXPECT(&w, cluster_connected(w.nodes[1].cluster, "n3"), 2000);
        (void) tnode_start(&w, 0, 0);
        EXPECT(&w, joined(&w, 3), 5000);
        world_finish(&w);
}

/* The leader comes back at an unknown address, and knows only one of the others. */
static void test_leader_elsewhere(void **state) {
        struct world w;

        world_init(&w);
        for (int i = 0; i < 4; i++)
                (void) tnode_start(&w, i, 0);
        EXPECT(&w, joined(&w, 4), 3000);
        tnode_stop(&w.nodes[0]);
        w.nodes[0].port = 0;
        (void) tnode_start(&w, 0, 2);
        EXPECT(&w, joined(&w, 4), 8000);
        world_finish(&w);
}

/* A reinstalled node asks one that knows it from elsewhere. */
static void test_refused_by_a_follower(void **state) {
        struct world w;

        world_init(&w);
        w.idle_usec = 100000;
        for (int i = 0; i < 4; i++)
                (void) tnode_start(&w, i, 0);
        EXPECT(&w, joined(&w, 4), 3000);
        tnode_stop(&w.nodes[3]);
        (void) remove_tree(w.nodes[3].dir);
        w.nodes[3].port = 0;
        (void) tnode_start(&w, 3, 2);
        EXPECT(&w, joined(&w, 4), 3000);
        EXPECT(&w, state_node(cluster_state(w.nodes[2].cluster), "n4")->port == w.nodes[3].port, 3000);
        world_finish(&w);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_connects_when_asked),
                cmocka_unit_test(test_both_at_once),
                cmocka_unit_test(test_nothing_lost_at_the_end),
                cmocka_unit_test(test_kept),
                cmocka_unit_test(test_suspected),
                cmocka_unit_test(test_quiet_is_not_lost),
                cmocka_unit_test(test_gone),
                cmocka_unit_test(test_new_leader_seeks_at_once),
                cmocka_unit_test(test_dialled_in_vain),
                cmocka_unit_test(test_much_for_nobody),
                cmocka_unit_test(test_wrong_key),
                cmocka_unit_test(test_somebody_else),
                cmocka_unit_test(test_only_to_the_leader),
                cmocka_unit_test(test_leader_found_late),
                cmocka_unit_test(test_leader_elsewhere),
                cmocka_unit_test(test_refused_by_a_follower),
        };

        (void) signal(SIGPIPE, SIG_IGN);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
