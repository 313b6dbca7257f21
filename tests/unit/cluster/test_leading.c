/* The object of a leader, made and destroyed several times in one process: nothing of a leadership
 * that is lost acts any more. The log and the connections are played by the test. */
#include "cluster_test.h"

#include "daemon/cluster/leading.h"
#include "daemon/state/commands.h"
#include "daemon/state/feature_level.h"

#define LOG 7U
#define TIMEOUT_USEC UINT64_C(500000)
#define VOTER_TIMEOUT_USEC UINT64_C(300000)
#define HOUR_USEC (UINT64_C(3600) * 1000000U)

/* By the clock of the program (process_clock.c). */
static void sleep_for(uint64_t usec) {
        uint64_t end_usec = now_usec() + usec;

        while (now_usec() < end_usec)
                (void) usleep(5000);
}

/* In the log, not yet committed. */
struct entry {
        Rm__Command *command;
        raftlog_done_fn done;
        void *context;
};

struct node {
        Rm__Node description;
        uint64_t received_usec;
        bool connected;
};

struct fake {
        Rm__State *state;
        struct state_index *index;
        struct feed *feed;
        uint64_t last_index;
        struct entry log[32];
        size_t n_log;
        struct node nodes[3]; /* n1 is this one */
        Rm__PeerMessage *sent[64];
        char sent_to[64][8];
        size_t n_sent;
};

static const Rm__State *get_state(void *userdata) {
        return ((struct fake *) userdata)->state;
}

static int put(void *userdata, const Rm__Command *command, raftlog_done_fn done, void *context) {
        struct fake *fake = userdata;

        assert_true(fake->n_log < ARRAY_SIZE(fake->log));
        fake->log[fake->n_log++] = (struct entry) { (Rm__Command *) message_copy(&command->base), done, context };
        return 0;
}

static struct node *find(struct fake *fake, const char *name) {
        for (size_t i = 0; i < ARRAY_SIZE(fake->nodes); i++)
                if (strcmp(fake->nodes[i].description.name, name) == 0)
                        return &fake->nodes[i];
        fail_msg("no node %s", name);
        return NULL;
}

static int transport_send(void *transport, const char *node, const Rm__PeerMessage *message) {
        struct fake *fake = transport;

        if (!find(fake, node)->connected)
                return -ENOTCONN;
        assert_true(fake->n_sent < ARRAY_SIZE(fake->sent));
        (void) snprintf(fake->sent_to[fake->n_sent], sizeof(fake->sent_to[0]), "%s", node);
        fake->sent[fake->n_sent++] = (Rm__PeerMessage *) message_copy(&message->base);
        return 0;
}

static size_t transport_pending_bytes(void *transport, const char *node) {
        return 0;
}

static void transport_reset(void *transport, const char *node, const char *why) {
        find(transport, node)->connected = false;
}

static const Rm__Node *transport_self(void *transport) {
        return &((struct fake *) transport)->nodes[0].description;
}

static const Rm__Node *transport_node(void *transport, const char *node) {
        const struct node *found = find(transport, node);

        return found->connected ? &found->description : NULL;
}

static uint64_t transport_received_usec(void *transport, const char *node) {
        return find(transport, node)->received_usec;
}

static void transport_foreach(void *transport, void (*visit)(void *userdata, const char *node), void *userdata) {
        struct fake *fake = transport;

        for (size_t i = 1; i < ARRAY_SIZE(fake->nodes); i++)
                if (fake->nodes[i].connected)
                        visit(userdata, fake->nodes[i].description.name);
}

static void fake_init(struct fake *fake) {
        static const char *const names[] = { "n1", "n2", "n3" };

        memset(fake, 0, sizeof(*fake));
        fake->state = state_create("testers");
        fake->index = state_index_create(fake->state);
        fake->feed = feed_create(64, 65536);
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                rm__node__init(&fake->nodes[i].description);
                fake->nodes[i].description.name = (char *) names[i];
                fake->nodes[i].description.level = STATE_LEVEL;
        }
}

static struct leading *lead(struct fake *fake, uint64_t last_time_usec) {
        static const struct feature_field later[] = {
                { &rm__command__descriptor, 80, STATE_LEVEL }, /* job_restart */
                { NULL, 0, 0 },
        };
        static const struct transport_ops transport = { .send = transport_send,
                                                        .pending_bytes = transport_pending_bytes,
                                                        .reset = transport_reset,
                                                        .self = transport_self,
                                                        .node = transport_node,
                                                        .received_usec = transport_received_usec,
                                                        .foreach = transport_foreach };
        static const struct leading_ops ops = { .get_state = get_state, .log = put };
        const struct leading_config config = { .log_id = LOG,
                                               .feed = fake->feed,
                                               .transport_ops = &transport,
                                               .transport = fake,
                                               .last_time_usec = last_time_usec,
                                               .node_timeout_usec = TIMEOUT_USEC,
                                               .voter_timeout_usec = VOTER_TIMEOUT_USEC,
                                               .later = later };

        return leading_create(&config, &ops, fake);
}

static struct entry take_first(struct fake *fake) {
        struct entry entry = fake->log[0];

        memmove(fake->log, fake->log + 1, --fake->n_log * sizeof(fake->log[0]));
        return entry;
}

/* Commits all entries of the log, and those that follow from them. */
static void commit(struct fake *fake, struct leading *leading) {
        while (fake->n_log > 0) {
                struct entry entry = take_first(fake);
                uint64_t before = fake->state->index;
                struct raftlog_outcome outcome = { .index = ++fake->last_index };
                struct state_result result;

                state_apply(fake->state, fake->index, outcome.index, entry.command, &result);
                outcome.error = result.error;
                leading_applied(leading, before, outcome.index, entry.command);
                feed_push(fake->feed, outcome.index, entry.command);
                state_result_finish(&result);
                entry.done(entry.context, &outcome);
                rm__command__free_unpacked(entry.command, NULL);
        }
}

/* Raft tells of its lost entries; it may do so long after. */
static void lose_log(struct fake *fake) {
        while (fake->n_log > 0) {
                struct entry entry = take_first(fake);
                struct raftlog_outcome outcome = { 0 };

                (void) error_set(&outcome.error, -EHOSTUNREACH, "lost");
                entry.done(entry.context, &outcome);
                rm__command__free_unpacked(entry.command, NULL);
        }
}

static void forget_sent(struct fake *fake) {
        while (fake->n_sent > 0)
                rm__peer_message__free_unpacked(fake->sent[--fake->n_sent], NULL);
}

static void fake_finish(struct fake *fake) {
        forget_sent(fake);
        assert_int_equal(fake->n_log, 0);
        feed_destroy(fake->feed);
        state_index_destroy(fake->index);
        rm__state__free_unpacked(fake->state, NULL);
}

static void follow(struct leading *leading, const char *node, uint64_t index, bool voter) {
        Rm__Follow follow = RM__FOLLOW__INIT;

        follow.log = LOG;
        follow.index = index;
        follow.voter = voter;
        leading_follow(leading, node, &follow);
}

static unsigned count_sent(const struct fake *fake, Rm__PeerMessage__BodyCase kind) {
        unsigned n = 0;

        for (size_t i = 0; i < fake->n_sent; i++)
                n += fake->sent[i]->body_case == kind;
        return n;
}

static void connect_node(struct fake *fake, struct leading *leading, const char *name) {
        find(fake, name)->connected = true;
        find(fake, name)->received_usec = now_usec();
        leading_scan(leading, name);
}

static void disconnect_node(struct fake *fake, struct leading *leading, const char *name) {
        find(fake, name)->connected = false;
        leading_lost(leading, name);
}

/* n1 leads, n2 is connected and follows; nothing is under way. */
static struct leading *begin(struct fake *fake) {
        struct leading *leading;

        fake_init(fake);
        leading = lead(fake, 0);
        leading_heartbeat(leading);
        commit(fake, leading);
        connect_node(fake, leading, "n2");
        commit(fake, leading);
        assert_int_equal(fake->state->n_nodes, 2);
        follow(leading, "n2", 0, false);
        assert_int_equal(count_sent(fake, RM__PEER_MESSAGE__BODY_FOLLOWED), 1);
        forget_sent(fake);
        return leading;
}

struct done {
        unsigned calls;
        int code;
};

static void on_done(void *userdata, const struct raftlog_outcome *outcome) {
        struct done *done = userdata;

        done->calls++;
        done->code = outcome->error.code;
}

static void propose(struct leading *leading, struct done *done) {
        struct command c;

        assert_int_equal(leading_propose(leading, command_note(&c, "x"), on_done, done, NULL), 0);
}

static void serve_command(struct leading *leading, const char *node, uint32_t id, Rm__Command *command) {
        Rm__Propose propose = RM__PROPOSE__INIT;

        propose.id = id;
        propose.command = command;
        leading_serve(leading, node, &propose);
}

static void serve(struct leading *leading, const char *node, uint32_t id) {
        struct command c;

        serve_command(leading, node, id, command_note(&c, "y"));
}

static void test_serves(void **state) {
        struct done done = { 0 };
        struct fake fake;
        struct leading *leading = begin(&fake);

        propose(leading, &done);
        serve(leading, "n2", 5);
        assert_int_equal(done.calls, 0);
        commit(&fake, leading);
        assert_int_equal(done.calls, 1);
        assert_int_equal(done.code, 0);
        assert_int_equal(count_sent(&fake, RM__PEER_MESSAGE__BODY_APPEND), 2);
        assert_int_equal(count_sent(&fake, RM__PEER_MESSAGE__BODY_PROPOSE_REPLY), 1);
        /* The command comes before the answer. */
        assert_int_equal(fake.sent[fake.n_sent - 1]->body_case, RM__PEER_MESSAGE__BODY_PROPOSE_REPLY);
        assert_int_equal(fake.sent[fake.n_sent - 1]->propose_reply->id, 5);
        leading_destroy(leading, -ECANCELED);
        fake_finish(&fake);
}

static void test_lost_with_proposals(void **state) {
        struct done done = { 0 };
        struct fake fake;
        struct leading *leading = begin(&fake);

        propose(leading, &done);
        serve(leading, "n2", 5);
        connect_node(&fake, leading, "n3"); /* it is to join */
        assert_int_equal(fake.n_log, 3);
        leading_destroy(leading, -EHOSTUNREACH);
        assert_int_equal(done.calls, 1);
        assert_int_equal(done.code, -EHOSTUNREACH);
        assert_int_equal(fake.n_sent, 1);
        assert_string_equal(fake.sent_to[0], "n2");
        assert_int_equal(fake.sent[0]->propose_reply->id, 5);
        assert_int_equal(fake.sent[0]->propose_reply->code, -EHOSTUNREACH);
        lose_log(&fake);
        assert_int_equal(done.calls, 1);
        assert_int_equal(fake.n_sent, 1);
        assert_int_equal(fake.n_log, 0);
        fake_finish(&fake);
}

/* The node that asked learns it from the end of the connection; -ECANCELED would be taken for the
 * end of its own rmd. */
static void test_stopped_with_proposals(void **state) {
        struct done done = { 0 };
        struct fake fake;
        struct leading *leading = begin(&fake);

        propose(leading, &done);
        serve(leading, "n2", 5);
        leading_destroy(leading, -ECANCELED);
        assert_int_equal(done.code, -ECANCELED);
        assert_int_equal(fake.n_sent, 0);
        lose_log(&fake);
        fake_finish(&fake);
}

static void test_won_again(void **state) {
        struct done done = { 0 };
        struct fake fake;
        struct leading *leading = begin(&fake);
        uint64_t ahead = now_real_usec() + 3600 * UINT64_C(1000000);

        for (int round = 0; round < 3; round++) {
                leading_destroy(leading, -EHOSTUNREACH);
                forget_sent(&fake);
                leading = lead(&fake, ahead);
                leading_heartbeat(leading);
                assert_int_equal(fake.n_log, 0); /* all is as the state says */
                propose(leading, &done);
                assert_true(fake.log[0].command->time_usec >= ahead); /* of a leader in between, whose clock was ahead */
                commit(&fake, leading);
                assert_int_equal(done.code, 0);
                assert_int_equal(fake.n_sent, 0); /* n2 followed the one before, and has not asked this one */
                follow(leading, "n2", fake.state->index - 1, false);
                assert_int_equal(count_sent(&fake, RM__PEER_MESSAGE__BODY_APPEND), 1); /* of what it has missed: from the feed */
                assert_int_equal(count_sent(&fake, RM__PEER_MESSAGE__BODY_FOLLOWED), 1);
        }
        assert_int_equal(done.calls, 3);
        leading_destroy(leading, -EHOSTUNREACH);
        fake_finish(&fake);
}

static Rm__NodeHealth proposed_health(struct fake *fake, const char *node) {
        for (size_t i = 0; i < fake->n_log; i++)
                if (fake->log[i].command->body_case == RM__COMMAND__BODY_NODE_HEALTH &&
                    strcmp(fake->log[i].command->node_health->node, node) == 0)
                        return fake->log[i].command->node_health->health;
        return RM__NODE_HEALTH__NODE_HEALTH_UP;
}

/* A node that is silent is so since the leadership began: before, it had no reason to speak to this
 * one. */
static void test_health_begins_anew(void **state) {
        struct fake fake;
        struct leading *leading = begin(&fake);

        leading_destroy(leading, -EHOSTUNREACH);
        find(&fake, "n2")->connected = false;
        find(&fake, "n2")->received_usec = now_usec() - 100 * TIMEOUT_USEC;
        leading = lead(&fake, 0);
        leading_heartbeat(leading);
        assert_int_equal(fake.n_log, 0);
        sleep_for(TIMEOUT_USEC + 100000);
        leading_heartbeat(leading);
        assert_int_not_equal(proposed_health(&fake, "n2"), RM__NODE_HEALTH__NODE_HEALTH_UP);
        commit(&fake, leading);
        leading_destroy(leading, -EHOSTUNREACH);
        fake_finish(&fake);
}

static void test_voter_is_told_only(void **state) {
        struct fake fake;
        struct leading *leading = begin(&fake);
        struct done done = { 0 };

        disconnect_node(&fake, leading, "n2");
        connect_node(&fake, leading, "n2");
        follow(leading, "n2", 0, true);
        assert_int_equal(fake.n_sent, 1);
        assert_int_equal(fake.sent[0]->followed->index, fake.state->index);
        assert_int_equal(fake.sent[0]->followed->log, LOG);
        propose(leading, &done);
        commit(&fake, leading);
        leading_drained(leading, "n2");
        leading_heartbeat(leading);
        assert_int_equal(fake.n_sent, 1); /* it has the commands from raft */
        leading_destroy(leading, -EHOSTUNREACH);
        fake_finish(&fake);
}

/* A node whose rmd knows a lower feature level keeps the log at that one until it is updated; and
 * is not taken back at it afterwards. */
static void test_older_node(void **state) {
        struct fake fake;
        char needs[64];
        struct rm_error err = { 0 };
        struct leading *leading;
        struct command c;

        (void) state;
        fake_init(&fake);
        for (size_t i = 0; i < ARRAY_SIZE(fake.nodes); i++)
                fake.nodes[i].description.level = STATE_LEVEL - 1;
        leading = lead(&fake, 0);
        leading_heartbeat(leading);
        commit(&fake, leading);
        connect_node(&fake, leading, "n2");
        commit(&fake, leading);
        assert_int_equal(fake.state->level, STATE_LEVEL - 1);
        /* This node is updated; n2 is not. */
        fake.nodes[0].description.level = STATE_LEVEL;
        leading_heartbeat(leading);
        commit(&fake, leading);
        assert_int_equal(state_node(fake.state, "n1")->level, STATE_LEVEL);
        assert_int_equal(fake.state->level, STATE_LEVEL - 1);
        assert_int_equal(leading_propose(leading, command_job_restart(&c, 7, 2, "n2", "why", true), NULL, NULL, &err), -EAGAIN);
        (void) snprintf(needs, sizeof(needs), "'job_restart' needs feature level %u,", STATE_LEVEL);
        assert_non_null(strstr(error_text(&err), needs));
        serve_command(leading, "n2", 6, &c.command);
        assert_int_equal(fake.sent[fake.n_sent - 1]->propose_reply->id, 6);
        assert_int_equal(fake.sent[fake.n_sent - 1]->propose_reply->code, -EAGAIN);
        assert_string_equal(fake.sent[fake.n_sent - 1]->propose_reply->text, error_text(&err));
        assert_int_equal(fake.n_log, 0);
        /* The node leaves, is updated and comes back. */
        disconnect_node(&fake, leading, "n2");
        find(&fake, "n2")->description.level = STATE_LEVEL;
        connect_node(&fake, leading, "n2");
        commit(&fake, leading);
        leading_heartbeat(leading);
        commit(&fake, leading);
        assert_int_equal(fake.state->level, STATE_LEVEL);
        /* The node is back with the older rmd. */
        disconnect_node(&fake, leading, "n2");
        find(&fake, "n2")->description.level = STATE_LEVEL - 1;
        connect_node(&fake, leading, "n2");
        commit(&fake, leading);
        assert_int_equal(state_node(fake.state, "n2")->level, STATE_LEVEL);
        assert_int_equal(fake.state->level, STATE_LEVEL);
        leading_destroy(leading, -ECANCELED);
        forget_sent(&fake);
        fake_finish(&fake);
}

/* n1 leads and knows a higher level than n2, which is DOWN since `since_usec`, as an earlier leader
 * has put into the log then. */
static struct leading *begin_beside_dead(struct fake *fake, uint64_t since_usec) {
        struct leading *leading;
        struct command c;
        struct state_result result;

        fake_init(fake);
        for (size_t i = 0; i < ARRAY_SIZE(fake->nodes); i++)
                fake->nodes[i].description.level = STATE_LEVEL - 1;
        leading = lead(fake, 0);
        leading_heartbeat(leading);
        commit(fake, leading);
        connect_node(fake, leading, "n2");
        commit(fake, leading);
        assert_int_equal(fake->state->level, STATE_LEVEL - 1);
        disconnect_node(fake, leading, "n2");
        leading_destroy(leading, -EHOSTUNREACH);
        (void) command_node_health(&c, "n2", RM__NODE_HEALTH__NODE_HEALTH_DOWN, "gone");
        c.command.time_usec = since_usec;
        state_apply(fake->state, fake->index, ++fake->last_index, &c.command, &result);
        feed_push(fake->feed, fake->last_index, &c.command);
        state_result_finish(&result);
        fake->state->time_usec = since_usec;
        fake->nodes[0].description.level = STATE_LEVEL;
        leading = lead(fake, since_usec);
        leading_heartbeat(leading);
        commit(fake, leading);
        return leading;
}

/* The clock of this leader is ahead of that of the one before: for how long a node is DOWN cannot
 * be told from the log alone. */
static void test_clock_ahead(void **state) {
        struct fake fake;
        struct leading *leading = begin_beside_dead(&fake, now_real_usec() - HOUR_USEC);

        (void) state;
        assert_int_equal(state_node(fake.state, "n1")->level, STATE_LEVEL);
        assert_int_equal(fake.state->level, STATE_LEVEL - 1);
        sleep_for(VOTER_TIMEOUT_USEC / 2);
        leading_heartbeat(leading);
        assert_int_equal(fake.n_log, 0);
        sleep_for(VOTER_TIMEOUT_USEC);
        leading_heartbeat(leading);
        commit(&fake, leading);
        assert_int_equal(fake.state->level, STATE_LEVEL);
        leading_destroy(leading, -ECANCELED);
        fake_finish(&fake);
}

/* The clock is behind: the log's times do not run back, but no deadline is early. */
static void test_clock_behind(void **state) {
        struct fake fake;
        struct leading *leading = begin_beside_dead(&fake, now_real_usec() + VOTER_TIMEOUT_USEC);

        (void) state;
        sleep_for(VOTER_TIMEOUT_USEC + 100000);
        leading_heartbeat(leading);
        assert_int_equal(fake.n_log, 0);
        sleep_for(VOTER_TIMEOUT_USEC);
        leading_heartbeat(leading);
        commit(&fake, leading);
        assert_int_equal(fake.state->level, STATE_LEVEL);
        leading_destroy(leading, -ECANCELED);
        fake_finish(&fake);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_serves),
                cmocka_unit_test(test_lost_with_proposals),
                cmocka_unit_test(test_stopped_with_proposals),
                cmocka_unit_test(test_won_again),
                cmocka_unit_test(test_health_begins_anew),
                cmocka_unit_test(test_voter_is_told_only),
                cmocka_unit_test(test_older_node),
                cmocka_unit_test(test_clock_ahead),
                cmocka_unit_test(test_clock_behind),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
