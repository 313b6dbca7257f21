/* A few nodes that share a state: joining, proposing from anywhere, catching up, losing the
 * leader. */
#include "cluster_test.h"

#include "daemon/peers/peer_message.h"
#include "daemon/peers/peers.h"

static void start(struct world *w, int n) {
        world_init(w);
        for (int i = 0; i < n; i++)
                (void) tnode_start(w, i, 0);
        EXPECT(w, joined(w, n), 5000);
}

static void test_four_nodes_join(void **state) {
        uint64_t begin = now_usec();
        struct world w;

        start(&w, 4);
        print_message("4 nodes joined in %.0f ms\n", (double) (now_usec() - begin) / 1000);
        for (int i = 0; i < 4; i++)
                assert_string_equal(cluster_leader(w.nodes[i].cluster), "n1");
        world_finish(&w);
}

static void test_join_through_any(void **state) {
        struct world w;

        /* Each through the one before it, the first last of all: nobody knows all addresses. */
        world_init(&w);
        (void) tnode_start(&w, 1, 1);
        (void) tnode_start(&w, 2, 1);
        (void) tnode_start(&w, 3, 2);
        RUN_UNTIL(&w, false, 300);
        assert_false(cluster_synced(w.nodes[3].cluster));
        assert_null(cluster_leader(w.nodes[3].cluster));
        (void) tnode_start(&w, 0, 3);
        EXPECT(&w, joined(&w, 4), 5000);
        world_finish(&w);
}

static void test_propose_from_follower(void **state) {
        struct answer answer = { 0 };
        struct answer refused = { 0 };
        struct answer many[100] = { 0 };
        struct world w;

        start(&w, 3);
        propose_drain(&w.nodes[2], "n2", "fan", false, &answer);
        EXPECT(&w, answer.calls == 1, 2000);
        assert_int_equal(answer.code, 0);
        /* The one who asked has it already. */
        assert_true(state_node(cluster_state(w.nodes[2].cluster), "n2")->drain);
        propose_drain(&w.nodes[2], "n9", "fan", false, &refused);
        EXPECT(&w, refused.calls == 1, 2000);
        assert_int_equal(refused.code, -ENOENT);
        assert_non_null(strstr(refused.text, "known: n1 n2 n3"));
        for (int i = 0; i < 100; i++)
                propose_note(&w.nodes[1 + i % 2], "x", &many[i]);
        EXPECT(&w, many[98].calls && many[99].calls, 5000);
        for (int i = 0; i < 100; i++) {
                assert_int_equal(many[i].calls, 1);
                assert_int_equal(many[i].code, 0);
                if (i >= 2)
                        assert_true(many[i].index > many[i - 2].index); /* in the order they were made */
        }
        EXPECT(&w, joined(&w, 3), 2000);
        world_finish(&w);
}

static void test_latency_from_follower(void **state) {
        uint64_t sum_usec = 0;
        struct world w;

        start(&w, 3);
        for (int i = 0; i < 50; i++) {
                struct answer answer = { 0 };
                uint64_t begin = now_usec();

                propose_note(&w.nodes[2], "how long", &answer);
                EXPECT(&w, answer.calls, 5000);
                sum_usec += answer.usec - begin;
        }
        print_message("propose at a follower to applied there: mean %lu us\n", (unsigned long) (sum_usec / 50));
        world_finish(&w);
}

static void test_follower_catches_up_by_append(void **state) {
        struct answer answer = { 0 };
        struct world w;

        start(&w, 3);
        tnode_stop(&w.nodes[2]);
        w.nodes[2].applied = 0;
        w.nodes[2].installed = 0;
        for (int i = 0; i < 10; i++)
                propose_note(&w.nodes[0], "missed", &answer);
        EXPECT(&w, answer.calls == 10, 2000);
        (void) tnode_start(&w, 2, 0);
        assert_true(cluster_state(w.nodes[2].cluster)->n_nodes == 3); /* from its own copy, before the leader answers */
        assert_false(cluster_synced(w.nodes[2].cluster));
        EXPECT(&w, joined(&w, 3), 3000);
        assert_true(w.nodes[2].applied >= 10);
        assert_int_equal(w.nodes[2].installed, 1); /* told that it is certain now */
        world_finish(&w);
}

static void test_follower_catches_up_by_install(void **state) {
        struct answer answer = { 0 };
        struct world w;

        start(&w, 3);
        tnode_stop(&w.nodes[2]);
        w.nodes[2].applied = 0;
        for (int i = 0; i < 10; i++)
                propose_note(&w.nodes[0], "missed", &answer);
        EXPECT(&w, answer.calls == 10, 2000);
        (void) remove_tree(w.nodes[2].dir);
        (void) tnode_start(&w, 2, 1);
        assert_true(cluster_state(w.nodes[2].cluster)->n_nodes == 0);
        EXPECT(&w, joined(&w, 3), 3000);
        assert_true(w.nodes[2].applied < 10);
        world_finish(&w);
}

static void test_leader_restarts(void **state) {
        struct answer answer = { 0 };
        struct world w;

        start(&w, 4);
        for (int round = 0; round < 3; round++) {
                tnode_stop(&w.nodes[0]);
                EXPECT(&w, !cluster_leader(w.nodes[3].cluster), 1000);
                assert_false(cluster_synced(w.nodes[3].cluster));
                memset(&answer, 0, sizeof(answer));
                propose_note(&w.nodes[3], "while nobody leads", &answer);
                RUN_UNTIL(&w, false, 200);
                assert_int_equal(answer.calls, 0); /* waits */
                (void) tnode_start(&w, 0, 0);
                EXPECT(&w, answer.calls == 1, 4000);
                assert_int_equal(answer.code, 0);
                EXPECT(&w, joined(&w, 4), 4000);
        }
        /* Longer than the node timeout, so that a false alarm would have come. */
        RUN_UNTIL(&w, false, 2500);
        assert_true(joined(&w, 4));
        for (int i = 0; i < 4; i++)
                assert_string_equal(w.nodes[i].downs, "");
        world_finish(&w);
}

static void test_leader_lost_with_proposal(void **state) {
        struct answer answer = { 0 };
        struct world w;

        world_init(&w);
        w.propose_timeout_usec = 3000000;
        (void) tnode_start(&w, 0, 0);
        (void) tnode_start(&w, 1, 0);
        EXPECT(&w, joined(&w, 2), 5000);
        propose_note(&w.nodes[1], "x", &answer);
        (void) event_base_loop(w.base, EVLOOP_NONBLOCK); /* sent, not answered */
        tnode_stop(&w.nodes[0]);
        EXPECT(&w, answer.calls == 1, 6000);
        assert_true(answer.code == -ETIMEDOUT || answer.code == 0);
        EXPECT(&w, !cluster_leader(w.nodes[1].cluster), 5000); /* else the next one may be on its way to it */
        memset(&answer, 0, sizeof(answer));
        propose_note(&w.nodes[1], "x", &answer);
        EXPECT(&w, answer.calls == 1, 7000);
        assert_int_equal(answer.code, -EHOSTUNREACH);
        assert_true(w.nodes[1].leader_lost == 1);
        world_finish(&w);
}

static Rm__NodeHealth health_of(const struct tnode *node, const char *name) {
        return state_node(cluster_state(node->cluster), name)->health;
}

static void test_node_down_and_up(void **state) {
        uint64_t begin;
        struct world w;

        start(&w, 3);
        begin = now_usec();
        tnode_stop(&w.nodes[2]);
        EXPECT(&w, health_of(&w.nodes[1], "n3") == RM__NODE_HEALTH__NODE_HEALTH_DOWN, 5000);
        assert_true(now_usec() - begin >= w.node_timeout_usec / 2); /* counted from when it was last heard */
        (void) tnode_start(&w, 2, 0);
        EXPECT(&w, joined(&w, 3), 3000);
        /* A short absence is none. */
        w.nodes[0].downs[0] = 0;
        tnode_stop(&w.nodes[2]);
        RUN_UNTIL(&w, false, 500);
        (void) tnode_start(&w, 2, 0);
        EXPECT(&w, joined(&w, 3), 3000);
        assert_string_equal(w.nodes[0].downs, "");
        world_finish(&w);
}

static void test_unheard_node_is_unknown_first(void **state) {
        struct world w;

        start(&w, 2);
        tnode_stop(&w.nodes[1]);
        tnode_stop(&w.nodes[0]);
        w.node_timeout_usec = 500000;
        (void) tnode_start(&w, 0, 0);
        assert_int_equal(health_of(&w.nodes[0], "n2"), RM__NODE_HEALTH__NODE_HEALTH_UP);
        EXPECT(&w, health_of(&w.nodes[0], "n2") == RM__NODE_HEALTH__NODE_HEALTH_UNKNOWN, 2000);
        EXPECT(&w, health_of(&w.nodes[0], "n2") == RM__NODE_HEALTH__NODE_HEALTH_DOWN, 5000);
        world_finish(&w);
}

/* Four nodes, of which the leader hears nobody any more. */
static void start_cut_off(struct world *w, uint64_t node_timeout_usec, uint32_t msec) {
        world_init(w);
        w->node_timeout_usec = node_timeout_usec;
        for (int i = 0; i < 4; i++)
                (void) tnode_start(w, i, 0);
        EXPECT(w, joined(w, 4), 5000);
        for (int i = 1; i < 4; i++)
                tnode_stop(&w->nodes[i]);
        for (int i = 1; i < 4; i++)
                EXPECT(w, health_of(&w->nodes[0], w->nodes[i].name) == RM__NODE_HEALTH__NODE_HEALTH_UNKNOWN, msec);
}

/* Hearing nobody, a leader takes itself for the one that is cut off. */
static void test_cut_off_leader_buries_nobody(void **state) {
        struct world w;

        start_cut_off(&w, 500000, 2000);
        assert_string_equal(w.nodes[0].downs, "");
        (void) tnode_start(&w, 1, 0);
        (void) tnode_start(&w, 2, 0);
        (void) tnode_start(&w, 3, 0);
        EXPECT(&w, joined(&w, 4), 5000);
        assert_string_equal(w.nodes[0].downs, "");
        world_finish(&w);
}

/* When its network is back, one node is heard of later than the others: it was buried at once. */
static void test_late_node_is_not_buried(void **state) {
        struct world w;
        uint64_t begin;

        start_cut_off(&w, 2000000, 5000);
        (void) tnode_start(&w, 1, 0);
        (void) tnode_start(&w, 2, 0);
        for (int i = 1; i < 3; i++)
                EXPECT(&w, health_of(&w.nodes[0], w.nodes[i].name) == RM__NODE_HEALTH__NODE_HEALTH_UP, 5000);
        begin = now_usec();
        RUN_UNTIL(&w, now_usec() - begin > w.node_timeout_usec / 4, 5000);
        assert_string_equal(w.nodes[0].downs, "");
        (void) tnode_start(&w, 3, 0);
        EXPECT(&w, joined(&w, 4), 5000);
        assert_string_equal(w.nodes[0].downs, "");
        world_finish(&w);
}

static void send_opened(struct tnode *from, const char *to, uint64_t sequence, int expected) {
        Rm__MoveOpened opened = RM__MOVE_OPENED__INIT;

        opened.move = sequence;
        assert_int_equal(cluster_send(from->cluster, to, &PEER_MESSAGE(&opened)), expected);
}

static void test_messages(void **state) {
        struct world w;

        start(&w, 3);
        for (uint64_t i = 1; i <= 500; i++) {
                send_opened(&w.nodes[1], "n3", i, 0);
                send_opened(&w.nodes[1], "n2", i, 0); /* to oneself */
        }
        assert_int_equal(w.nodes[1].messages, 0);
        EXPECT(&w, w.nodes[2].messages == 500 && w.nodes[1].messages == 500, 3000);
        assert_int_equal(w.nodes[2].last_sequence, 500);
        assert_int_equal(w.nodes[1].last_sequence, 500);
        send_opened(&w.nodes[1], "n77", 1, -ENOTCONN);
        tnode_stop(&w.nodes[2]);
        EXPECT(&w, !cluster_connected(w.nodes[1].cluster, "n3"), 1000);
        /* The node was there a moment ago: the attempt to reach it fails, and that is reported. */
        w.nodes[1].peer_down = 0;
        send_opened(&w.nodes[1], "n3", 1, 0);
        EXPECT(&w, w.nodes[1].peer_down == 1, 1000);
        send_opened(&w.nodes[1], "n3", 1, -ENOTCONN);
        world_finish(&w);
}

/* The state that a lost log leaves at followers is not mixed with the new one. */
static void test_new_log(void **state) {
        struct answer answer = { 0 };
        struct world w;

        start(&w, 2);
        for (int i = 0; i < 20; i++)
                propose_drain(&w.nodes[1], "n2", "old", i > 0, &answer);
        EXPECT(&w, answer.calls == 20, 2000);
        tnode_stop(&w.nodes[1]);
        tnode_stop(&w.nodes[0]);
        (void) remove_tree(w.nodes[0].dir);
        (void) tnode_start(&w, 0, 0);
        /* So that an index alone would let the old copy pass for a part of the new log. */
        for (int i = 0; i < 60; i++)
                propose_note(&w.nodes[0], "new", &answer);
        EXPECT(&w, answer.calls == 80, 2000);
        (void) tnode_start(&w, 1, 0);
        assert_true(state_node(cluster_state(w.nodes[1].cluster), "n2")->drain);
        EXPECT(&w, joined(&w, 2), 4000);
        assert_false(state_node(cluster_state(w.nodes[1].cluster), "n2")->drain);
        world_finish(&w);
}

/* ---- a state that is long ---- */

static char *long_text(size_t n) {
        char *text = xcalloc(1, n + 1);

        memset(text, 'x', n);
        return text;
}

/* Jobs whose environment is in the state. */
static void propose_large_jobs(struct world *w, unsigned count, size_t env_bytes, struct answer *answer) {
        cleanup_free char *env = long_text(env_bytes);
        char *argv[] = { (char *) "true" };
        Rm__JobSpec spec = RM__JOB_SPEC__INIT;
        Rm__CmdJobSubmit submit = RM__CMD_JOB_SUBMIT__INIT;
        Rm__Command command = RM__COMMAND__INIT;

        spec.ranks = 1;
        spec.argv = argv;
        spec.n_argv = 1;
        spec.env = &env;
        spec.n_env = 1;
        submit.spec = &spec;
        command.body_case = RM__COMMAND__BODY_JOB_SUBMIT;
        command.job_submit = &submit;
        for (unsigned i = 0; i < count; i++) {
                unsigned calls = answer->calls;

                cluster_propose(w->nodes[0].cluster, &command, on_answer, answer);
                EXPECT(w, answer->calls > calls, 5000);
                assert_int_equal(answer->code, 0);
        }
}

#define LARGE_JOBS 76U /* of 900 kB: a little more than a frame takes */

/* True like joined(), but to compare so much takes longer than heartbeats may be late. */
static bool level(const struct world *w, int n) {
        for (int i = 0; i < n; i++)
                if (!cluster_synced(w->nodes[i].cluster) ||
                    cluster_state(w->nodes[i].cluster)->index != cluster_state(w->nodes[0].cluster)->index)
                        return false;
        return true;
}

/* A node that comes back was sent all in one frame, which is too small for it: it was reset, and
 * again, for ever. */
static void test_joins_with_a_long_state(void **state) {
        struct answer answer = { 0 };
        struct answer other = { 0 };
        uint64_t begin;
        struct world w;

        start(&w, 1);
        w.node_timeout_usec = 10000000; /* all nodes share one processor here */
        propose_large_jobs(&w, LARGE_JOBS, 900000, &answer);
        begin = now_usec();
        (void) tnode_start(&w, 1, 0);
        EXPECT(&w, cluster_connected(w.nodes[0].cluster, "n2"), 2000);
        /* Commands meanwhile are neither lost nor done twice. */
        propose_note(&w.nodes[0], "meanwhile", &other);
        propose_drain(&w.nodes[0], "n1", "meanwhile", false, &other);
        EXPECT(&w, level(&w, 2) && other.calls == 2, 5000);
        print_message("%zu bytes of state after %.0f ms\n", rm__state__get_packed_size(cluster_state(w.nodes[1].cluster)),
                      (double) (now_usec() - begin) / 1000);
        assert_true(same_state(&w.nodes[0], &w.nodes[1]));
        assert_int_equal(w.nodes[0].peer_down, 0);
        /* Both keep so much on their disks, and come back with it. */
        tnode_stop(&w.nodes[1]);
        tnode_stop(&w.nodes[0]);
        w.nodes[1].installed = 0;
        (void) tnode_start(&w, 1, 0);
        assert_int_equal(cluster_state(w.nodes[1].cluster)->n_jobs, LARGE_JOBS);
        (void) tnode_start(&w, 0, 0);
        assert_int_equal(cluster_state(w.nodes[0].cluster)->n_jobs, LARGE_JOBS);
        EXPECT(&w, level(&w, 2), 5000);
        assert_int_equal(w.nodes[1].installed, 1); /* that all is certain now: nothing had to be sent */
        world_finish(&w);
}

/* A leader made of a bare transport, which sends what no leader sends. */
struct bad_leader {
        struct peers *peers;
        struct tls *tls;
        unsigned follows;
        unsigned lost;
        int kind;
};

static void send_part(struct bad_leader *bad, uint64_t total, uint64_t offset) {
        Rm__InstallPart part = RM__INSTALL_PART__INIT;
        uint8_t bytes[10] = { 0 };

        part.log = 5;
        part.index = 100;
        part.total_bytes = total;
        part.offset = offset;
        part.data = (ProtobufCBinaryData) { .len = sizeof(bytes), .data = bytes };
        assert_int_equal(peers_send(bad->peers, "n2", &PEER_MESSAGE(&part)), 0);
}

static void bad_on_message(void *userdata, const char *name, Rm__PeerMessage *message) {
        struct bad_leader *bad = userdata;

        if (message->body_case != RM__PEER_MESSAGE__BODY_FOLLOW)
                return;
        bad->follows++;
        switch (bad->kind) {
        case 0: /* one is missing */
                send_part(bad, 100, 0);
                send_part(bad, 100, 20);
                break;
        case 1: /* more than a follower takes */
                send_part(bad, UINT64_C(1) << 40, 0);
                break;
        case 2: /* whole, but no state */
                send_part(bad, 10, 0);
                break;
        default: /* one too many */
                send_part(bad, 10, 0);
                send_part(bad, 10, 10);
                break;
        }
        for (int i = 0; i < 50; i++)
                send_part(bad, 1000, 30); /* the rest, which is of no use any more */
}

static void resetting_on_message(void *userdata, const char *name, Rm__PeerMessage *message) {
        struct bad_leader *bad = userdata;

        if (message->body_case != RM__PEER_MESSAGE__BODY_FOLLOW)
                return;
        bad->follows++;
        peers_reset(bad->peers, name, "sending failed; follower reset");
}

static void silent_on_message(void *userdata, const char *name, Rm__PeerMessage *message) {
        struct bad_leader *bad = userdata;

        bad->follows += message->body_case == RM__PEER_MESSAGE__BODY_FOLLOW;
}

static void bad_on_peer(void *userdata, const char *name, bool connected) {
        struct bad_leader *bad = userdata;

        bad->lost += !connected;
}

static void start_bad(struct world *w, struct bad_leader *bad, const struct peers_ops *ops) {
        Rm__Node self = RM__NODE__INIT;
        struct peers_config config = { .cluster = "testers", .self = &self, .listen_address = "127.0.0.1", .leading_term = 1 };

        world_init(w);
        w->node_timeout_usec = 1000000;
        assert_int_equal(tls_create("testers", TLS_PEER, w->key, &bad->tls, NULL), 0);
        self.name = (char *) "n1";
        self.address = (char *) "127.0.0.1";
        config.tls = bad->tls;
        config.heartbeat_usec = 100000;
        config.timeout_usec = 1000000;
        assert_int_equal(peers_create(w->base, &config, ops, bad, &bad->peers, NULL), 0);
        w->nodes[0].port = peers_port(bad->peers);
        (void) tnode_start(w, 1, 0);
}

static void finish_bad(struct world *w, struct bad_leader *bad) {
        peers_destroy(bad->peers);
        tls_destroy(bad->tls);
        world_finish(w);
}

/* Connections that are lost as soon as they stand are made again at a slower and slower pace, by
 * both sides; it was thousands in a minute. */
static void test_reset_is_no_loop(void **state) {
        static const struct peers_ops ops = { .on_message = resetting_on_message, .on_peer = bad_on_peer };
        struct bad_leader bad = { 0 };
        struct world w;

        start_bad(&w, &bad, &ops);
        EXPECT(&w, bad.lost >= 2, 3000);
        bad.lost = 0;
        RUN_UNTIL(&w, false, 4000);
        print_message("lost %u times in 4 s\n", bad.lost);
        assert_true(bad.lost >= 1 && bad.lost <= 10);
        finish_bad(&w, &bad);
}

/* A leader that was lost and elected again while a connection to it was being made, so that nobody
 * was told of the time between: it does not know whom it led before. */
static void test_elected_again_unseen(void **state) {
        static const struct peers_ops ops = { .on_message = silent_on_message, .on_peer = bad_on_peer };
        struct bad_leader bad = { 0 };
        struct world w;

        start_bad(&w, &bad, &ops);
        EXPECT(&w, bad.follows == 1, 3000);
        peers_set_leading(bad.peers, 2);
        EXPECT(&w, bad.follows == 2, 1000);
        peers_heartbeat(bad.peers);
        RUN_UNTIL(&w, false, 300);
        assert_int_equal(bad.follows, 2);
        assert_int_equal(bad.lost, 0);
        finish_bad(&w, &bad);
}

/* The state is asked for again, later each time, over the same connection. */
static void test_broken_install_is_no_loop(void **state) {
        static const struct peers_ops ops = { .on_message = bad_on_message, .on_peer = bad_on_peer };

        for (int kind = 0; kind < 4; kind++) {
                struct bad_leader bad = { .kind = kind };
                struct world w;

                start_bad(&w, &bad, &ops);
                EXPECT(&w, bad.follows == 1, 3000);
                EXPECT(&w, bad.follows == 2, 3000);
                RUN_UNTIL(&w, false, 1500);
                assert_true(bad.follows <= 3);
                assert_int_equal(bad.lost, 0);
                assert_false(cluster_synced(w.nodes[1].cluster));
                assert_int_equal(cluster_state(w.nodes[1].cluster)->n_nodes, 0);
                finish_bad(&w, &bad);
        }
}

/* A follower to whom a leader of a later version sends what it does not understand: it stops there,
 * and says so once. */
static void test_unknown_command_at_a_follower(void **state) {
        Rm__Append append = RM__APPEND__INIT;
        Rm__Command command = RM__COMMAND__INIT;
        struct answer answer = { 0 };
        struct world w;
        struct tnode *n1, *n2;
        uint64_t index;

        world_init(&w);
        n1 = tnode_start(&w, 0, 0);
        EXPECT(&w, joined(&w, 1), 1000);
        n2 = tnode_start(&w, 1, 0);
        EXPECT(&w, joined(&w, 2), 1000);
        EXPECT(&w, cluster_state(n2->cluster)->level == STATE_LEVEL, 1000); /* both know it */
        index = cluster_state(n2->cluster)->index;
        append.index = index + 1;
        append.after = index;
        append.command = &command;
        assert_int_equal(cluster_send(n1->cluster, "n2", &PEER_MESSAGE(&append)), 0);
        EXPECT(&w, n2->failed == 1, 1000);
        assert_non_null(strstr(n2->why_failed, "node n1"));
        assert_non_null(strstr(n2->why_failed, "does not know the command"));
        assert_false(cluster_synced(n2->cluster));
        propose_note(n1, "more", &answer);
        EXPECT(&w, answer.calls == 1, 1000);
        RUN_UNTIL(&w, false, 300);
        assert_int_equal(cluster_state(n2->cluster)->index, index); /* nothing after it is applied */
        assert_int_equal(n2->failed, 1);
        assert_int_equal(n1->failed, 0);
        world_finish(&w);
}

static bool has_log(const struct tnode *node) {
        cleanup_free char *path = xasprintf("%s/voter", node->dir);

        return access(path, F_OK) == 0;
}

static bool three_voters(struct world *w) {
        for (int i = 0; i < 3; i++)
                if (!cluster_synced(w->nodes[i].cluster) || cluster_state(w->nodes[i].cluster)->n_voters != 3)
                        return false;
        return true;
}

/* The leader and a node that has a log and no vote yet start anew: the node follows, and becomes a
 * voter. */
static void test_restarts_before_the_vote(void **state) {
        for (unsigned msec = 200; msec <= 600; msec += 400) {
                struct world w;
                int other;

                world_init(&w);
                w.voters = 3;
                w.lease_usec = 2000000;
                for (int i = 0; i < 3; i++)
                        (void) tnode_start(&w, i, 0);
                EXPECT(&w, has_log(&w.nodes[1]) || has_log(&w.nodes[2]), 3000);
                other = has_log(&w.nodes[1]) ? 1 : 2;
                RUN_UNTIL(&w, false, msec);
                tnode_stop(&w.nodes[0]);
                tnode_stop(&w.nodes[other]);
                (void) tnode_start(&w, 0, 0);
                (void) tnode_start(&w, other, 0);
                EXPECT(&w, three_voters(&w), 6000);
                world_finish(&w);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_unknown_command_at_a_follower),
                cmocka_unit_test(test_four_nodes_join),
                cmocka_unit_test(test_join_through_any),
                cmocka_unit_test(test_propose_from_follower),
                cmocka_unit_test(test_latency_from_follower),
                cmocka_unit_test(test_follower_catches_up_by_append),
                cmocka_unit_test(test_follower_catches_up_by_install),
                cmocka_unit_test(test_leader_restarts),
                cmocka_unit_test(test_restarts_before_the_vote),
                cmocka_unit_test(test_leader_lost_with_proposal),
                cmocka_unit_test(test_node_down_and_up),
                cmocka_unit_test(test_unheard_node_is_unknown_first),
                cmocka_unit_test(test_cut_off_leader_buries_nobody),
                cmocka_unit_test(test_late_node_is_not_buried),
                cmocka_unit_test(test_messages),
                cmocka_unit_test(test_new_log),
                cmocka_unit_test(test_joins_with_a_long_state),
                cmocka_unit_test(test_broken_install_is_no_loop),
                cmocka_unit_test(test_reset_is_no_loop),
                cmocka_unit_test(test_elected_again_unseen),
        };

        (void) signal(SIGPIPE, SIG_IGN);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
