/* Nodes that keep the log and lead, do not lead, lose the leadership and win it again, on real
 * connections. Instead of raft, the test says who leads, and when entries are committed: it has its
 * own raftlog.h. */
#include "cluster_test.h"

#include "daemon/log/raftlog.h"

#define LOG 99U
#define VOTERS 2
#define COMMIT_USEC 2000

/* In one voter's hands until it is committed. */
struct pending {
        Rm__Command *command;
        raftlog_done_fn done;
        void *userdata;
};

struct raftlog {
        struct raftlog_ops ops;
        void *userdata;
        size_t applied; /* entries */
        struct pending pending[64];
        size_t n_pending;
        unsigned proposed;
        bool lags; /* it does not hear yet of what is committed */
        uint64_t stale_term; /* it leads in this term, and has not heard of a later one; 0: it has */
};

/* The raft of all voters. */
static struct {
        struct raftlog *voters[VOTERS]; /* of n1 and n2; NULL: not there */
        Rm__Command *entries[4096];
        size_t n_entries;
        int leader; /* -1: none */
        uint64_t term;
        bool held; /* nothing is committed */
} raft;

static int index_of(const struct raftlog *voter) {
        return voter == raft.voters[0] ? 0 : 1;
}

/* ---- raftlog.h ---- */

bool raftlog_exists(const char *state_dir) {
        size_t n = strlen(state_dir);

        return n > 0 && state_dir[n - 1] - '1' < VOTERS; /* the names of nodes end in their number */
}

int raftlog_discard(const char *state_dir, struct rm_error *err) {
        return 0;
}

void raftlog_receive(struct raftlog *voter, const char *node, const Rm__RaftPart *part) {
}

uint64_t raftlog_voter_id(const struct raftlog *voter) {
        return (uint64_t) index_of(voter) + 1;
}

enum raftlog_role raftlog_role(const struct raftlog *voter) {
        return RAFTLOG_VOTER;
}

uint64_t raftlog_applied(const struct raftlog *voter) {
        return raft.n_entries;
}

int raftlog_open(struct event_base *base, const struct raftlog_config *config, const struct raftlog_ops *ops, void *userdata,
                 struct raftlog **ret, struct rm_error *err) {
        struct raftlog *voter = xcalloc(1, sizeof(*voter));

        voter->ops = *ops;
        voter->userdata = userdata;
        raft.voters[config->name[1] - '1'] = voter;
        *ret = voter;
        return 0;
}

static void answer_lost(struct raftlog *voter, int code) {
        struct raftlog_outcome outcome = { 0 };

        (void) error_set(&outcome.error, code, "lost");
        while (voter->n_pending > 0) {
                struct pending pending = voter->pending[--voter->n_pending];

                pending.done(pending.userdata, &outcome);
                rm__command__free_unpacked(pending.command, NULL);
        }
}

void raftlog_close(struct raftlog *voter) {
        if (!voter)
                return;
        answer_lost(voter, -ECANCELED);
        raft.voters[index_of(voter)] = NULL;
        free(voter);
}

bool raftlog_leading(const struct raftlog *voter) {
        return raft.leader == index_of(voter) || voter->stale_term > 0;
}

uint64_t raftlog_term(const struct raftlog *voter) {
        return voter->stale_term > 0 ? voter->stale_term : raft.term;
}

const char *raftlog_leader(const struct raftlog *voter) {
        if (voter->stale_term > 0)
                return index_of(voter) == 0 ? "n1" : "n2";
        return raft.leader < 0 ? NULL : raft.leader == 0 ? "n1" : "n2";
}

uint64_t raftlog_id(const struct raftlog *voter) {
        return LOG;
}

bool raftlog_full(const struct raftlog *voter) {
        return false;
}

int raftlog_propose(struct raftlog *voter, const Rm__Command *command, raftlog_done_fn done, void *userdata) {
        voter->proposed++;
        if (!raftlog_leading(voter))
                return -EHOSTUNREACH;
        assert_true(voter->n_pending < ARRAY_SIZE(voter->pending));
        voter->pending[voter->n_pending++] = (struct pending) { (Rm__Command *) message_copy(&command->base), done, userdata };
        return 0;
}

/* A change of the voters is under way for ever: this test has none. */
bool raftlog_changing(const struct raftlog *voter) {
        return true;
}

bool raftlog_yield(struct raftlog *voter) {
        return false;
}

size_t raftlog_members(const struct raftlog *voter, struct raftlog_member *members, size_t max) {
        return 0;
}

void raftlog_leader_gone(struct raftlog *voter) {
}

uint64_t raftlog_last_term(const struct raftlog *voter) {
        return raft.term;
}

int raftlog_add(struct raftlog *voter, uint64_t id, const char *node, raftlog_change_fn done, void *userdata) {
        return -EBUSY;
}

int raftlog_assign(struct raftlog *voter, uint64_t id, enum raftlog_role role, raftlog_change_fn done, void *userdata) {
        return -EBUSY;
}

int raftlog_remove(struct raftlog *voter, uint64_t id, raftlog_change_fn done, void *userdata) {
        return -EBUSY;
}

int raftlog_transfer(struct raftlog *voter, uint64_t id, raftlog_change_fn done, void *userdata) {
        return -EBUSY;
}

/* ---- the test's side of it ---- */

static void apply_entries(struct raftlog *voter, struct raftlog_outcome *outcome) {
        while (voter->applied < raft.n_entries) {
                uint64_t index = ++voter->applied;

                memset(outcome, 0, sizeof(*outcome));
                assert_int_equal(voter->ops.on_apply(voter->userdata, index, raft.entries[index - 1], outcome), 0);
                outcome->index = index;
        }
}

static void commit_first(struct raftlog *voter) {
        struct pending pending = voter->pending[0];
        struct raftlog_outcome outcome;

        memmove(voter->pending, voter->pending + 1, --voter->n_pending * sizeof(pending));
        assert_true(raft.n_entries < ARRAY_SIZE(raft.entries));
        raft.entries[raft.n_entries++] = pending.command;
        apply_entries(voter, &outcome);
        pending.done(pending.userdata, &outcome);
}

static void on_commit(evutil_socket_t fd, short what, void *userdata) {
        for (int i = 0; i < VOTERS; i++)
                while (raft.leader == i && !raft.held && raft.voters[i]->n_pending > 0)
                        commit_first(raft.voters[i]);
        for (int i = 0; i < VOTERS; i++) {
                struct raftlog_outcome outcome;

                if (raft.voters[i] && !raft.voters[i]->lags)
                        apply_entries(raft.voters[i], &outcome);
        }
}

/* -1: nobody. Each voter hears of it, the one that leads no more first of its entries. */
static void elect(int leader) {
        raft.leader = leader;
        raft.term++;
        for (int i = 0; i < VOTERS; i++)
                if (raft.voters[i] && i != leader && raft.voters[i]->stale_term == 0)
                        answer_lost(raft.voters[i], -EHOSTUNREACH);
        for (int i = 0; i < VOTERS; i++)
                if (raft.voters[i])
                        raft.voters[i]->ops.on_role(raft.voters[i]->userdata);
}

/* All are synced with the same state, and follow this one. */
static bool follow(const struct world *w, int leader, int n) {
        for (int i = 0; i < n; i++) {
                const struct tnode *node = &w->nodes[i];

                if (!cluster_synced(node->cluster) || !cluster_leader(node->cluster) ||
                    strcmp(cluster_leader(node->cluster), w->nodes[leader].name) != 0 || !same_state(node, &w->nodes[leader]) ||
                    cluster_is_leader(node->cluster) != (i == leader))
                        return false;
        }
        return cluster_state(w->nodes[leader].cluster)->n_nodes == (size_t) n &&
               cluster_state(w->nodes[leader].cluster)->level == STATE_LEVEL;
}

static struct event *committer;

static bool is_led_by(const struct tnode *node, const char *leader) {
        const char *name = cluster_leader(node->cluster);

        return name && strcmp(name, leader) == 0;
}

static void start_node(struct world *w, int i) {
        cleanup_free char *peer = xasprintf("127.0.0.1:%u", w->nodes[0].port);
        const char *const peers[] = { peer };
        struct rm_error err = { 0 };

        if (tnode_try(w, &w->nodes[i], i < VOTERS, peers, i == 0 ? 0 : 1, "testers", &err) < 0)
                fail_msg("%s: %s", w->nodes[i].name, err.text);
}

/* n1 and n2 keep the log, n1 leads. */
static void start(struct world *w, int n) {
        const struct timeval often = { .tv_usec = COMMIT_USEC };

        memset(&raft, 0, sizeof(raft));
        raft.term = 1;
        world_init(w);
        committer = event_new(w->base, -1, EV_PERSIST, on_commit, NULL);
        (void) event_add(committer, &often);
        for (int i = 0; i < n; i++)
                start_node(w, i);
        EXPECT(w, follow(w, 0, n), 5000);
}

static void finish(struct world *w) {
        event_free(committer);
        world_finish(w);
        for (size_t i = 0; i < raft.n_entries; i++)
                rm__command__free_unpacked(raft.entries[i], NULL);
}

static void test_follower_with_a_log(void **state) {
        struct answer answer = { 0 };
        struct world w;

        start(&w, 3);
        assert_int_equal(raft.voters[1]->proposed, 0);
        propose_drain(&w.nodes[1], "n3", "fan", false, &answer);
        EXPECT(&w, answer.calls == 1, 2000);
        assert_int_equal(answer.code, 0);
        assert_true(state_node(cluster_state(w.nodes[1].cluster), "n3")->drain);
        assert_int_equal(raft.voters[1]->proposed, 0); /* it went to the leader */
        assert_int_not_equal(w.nodes[1].applied, 0);
        RUN_UNTIL(&w, false, 500);
        assert_int_equal(raft.voters[1]->proposed, 0);
        assert_true(follow(&w, 0, 3));
        finish(&w);
}

/* The leader's answer may be faster than the log. */
static void test_answer_waits_for_the_state(void **state) {
        struct answer answer = { 0 };
        struct world w;

        start(&w, 3);
        raft.voters[1]->lags = true;
        propose_drain(&w.nodes[1], "n3", "fan", false, &answer);
        EXPECT(&w, state_node(cluster_state(w.nodes[2].cluster), "n3")->drain, 2000);
        RUN_UNTIL(&w, false, 200);
        assert_int_equal(answer.calls, 0);
        raft.voters[1]->lags = false;
        EXPECT(&w, answer.calls == 1, 2000);
        assert_int_equal(answer.code, 0);
        assert_true(state_node(cluster_state(w.nodes[1].cluster), "n3")->drain);
        finish(&w);
}

/* A voter that has not come as far as the leader had when it asked does not take its state for
 * current. */
static void test_synced_when_caught_up(void **state) {
        struct answer answer = { 0 };
        struct world w;

        start(&w, 3);
        raft.voters[1]->lags = true;
        elect(-1);
        EXPECT(&w, !cluster_leader(w.nodes[1].cluster) && !cluster_leader(w.nodes[2].cluster), 2000);
        elect(0);
        propose_note(&w.nodes[0], "meanwhile", &answer);
        EXPECT(&w, answer.calls == 1 && cluster_synced(w.nodes[2].cluster), 4000);
        elect(-1);
        elect(0);
        EXPECT(&w, cluster_leader(w.nodes[1].cluster), 4000);
        RUN_UNTIL(&w, false, 300);
        assert_false(cluster_synced(w.nodes[1].cluster));
        raft.voters[1]->lags = false;
        EXPECT(&w, follow(&w, 0, 3), 4000);
        finish(&w);
}

static void test_leadership_moves(void **state) {
        struct world w;

        start(&w, 4);
        for (int round = 0; round < 6; round++) {
                int leader = (round + 1) % 2;
                unsigned proposed;

                elect(leader);
                assert_true(cluster_is_leader(w.nodes[leader].cluster));
                assert_false(cluster_is_leader(w.nodes[1 - leader].cluster));
                assert_false(cluster_synced(w.nodes[1 - leader].cluster));
                proposed = raft.voters[1 - leader]->proposed;
                EXPECT(&w, follow(&w, leader, 4), 4000);
                for (int i = 0; i < 4; i++) {
                        struct answer answer = { 0 };

                        propose_note(&w.nodes[i], "x", &answer);
                        EXPECT(&w, answer.calls == 1, 2000);
                        assert_int_equal(answer.code, 0);
                }
                EXPECT(&w, follow(&w, leader, 4), 2000);
                assert_int_equal(raft.voters[1 - leader]->proposed, proposed);
        }
        for (int i = 0; i < 4; i++)
                assert_string_equal(w.nodes[i].downs, "");
        finish(&w);
}

/* Proposals of the leader, of a voter and of another node, which are in the log of a leader that is
 * lost: they are put into the next one's, and answered once. */
static void test_lost_with_proposals(void **state) {
        struct answer own = { 0 };
        struct answer voters = { 0 };
        struct answer others = { 0 };
        struct world w;

        start(&w, 3);
        raft.held = true;
        propose_note(&w.nodes[0], "own", &own);
        propose_note(&w.nodes[1], "voter's", &voters);
        propose_note(&w.nodes[2], "other's", &others);
        EXPECT(&w, raft.voters[0]->n_pending == 3, 2000);
        elect(1);
        assert_int_equal(own.calls + voters.calls + others.calls, 0);
        raft.held = false;
        EXPECT(&w, own.calls == 1 && voters.calls == 1 && others.calls == 1, 4000);
        assert_int_equal(own.code, 0);
        assert_int_equal(voters.code, 0);
        assert_int_equal(others.code, 0);
        EXPECT(&w, follow(&w, 1, 3), 4000);
        assert_int_equal(own.calls + voters.calls + others.calls, 3);
        finish(&w);
}

/* The entry of the one before is committed, but nobody was told: the same command comes to the next
 * leader, and is not applied again. */
static void test_committed_without_an_answer(void **state) {
        struct answer answer = { 0 };
        struct raftlog_outcome outcome;
        struct pending pending;
        struct world w;

        start(&w, 3);
        raft.held = true;
        propose_drain(&w.nodes[2], "n3", "fan", false, &answer);
        EXPECT(&w, raft.voters[0]->n_pending == 1, 2000);
        raft.voters[0]->lags = true;
        pending = raft.voters[0]->pending[--raft.voters[0]->n_pending];
        raft.entries[raft.n_entries++] = pending.command;
        apply_entries(raft.voters[1], &outcome);
        elect(1);
        pending.done(pending.userdata, &(struct raftlog_outcome) { .error = { .code = -EHOSTUNREACH } });
        raft.voters[0]->lags = false;
        raft.held = false;
        EXPECT(&w, answer.calls == 1, 4000);
        assert_int_equal(answer.code, 0); /* and not -EALREADY */
        EXPECT(&w, follow(&w, 1, 3), 4000);
        assert_int_equal(answer.calls, 1);
        finish(&w);
}

/* Lost and won again between two looks: what was proposed before is proposed again. */
static void test_lost_and_won_unseen(void **state) {
        struct answer answer = { 0 };
        struct world w;

        start(&w, 3);
        raft.held = true;
        propose_note(&w.nodes[0], "x", &answer);
        EXPECT(&w, raft.voters[0]->n_pending == 1, 2000);
        elect(0); /* another term */
        assert_int_equal(w.nodes[0].leader_lost, 1);
        answer_lost(raft.voters[0], -EHOSTUNREACH); /* which raft tells late */
        assert_int_equal(answer.calls, 0);
        raft.held = false;
        EXPECT(&w, answer.calls == 1, 2000);
        assert_int_equal(answer.code, 0);
        EXPECT(&w, follow(&w, 0, 3), 4000);
        assert_int_equal(answer.calls, 1);
        finish(&w);
}

/* The one before does not know yet that it leads no more: others are not to follow now this one and
 * now that one. */
static void test_stale_leader(void **state) {
        struct answer answer = { 0 };
        struct world w;
        unsigned lost;

        start(&w, 4);
        raft.voters[0]->stale_term = raft.term;
        raft.voters[0]->lags = true;
        elect(1);
        assert_true(cluster_is_leader(w.nodes[0].cluster) && cluster_is_leader(w.nodes[1].cluster));
        EXPECT(&w, is_led_by(&w.nodes[2], "n2") && is_led_by(&w.nodes[3], "n2"), 4000);
        lost = w.nodes[2].leader_lost;
        propose_drain(&w.nodes[2], "n3", "fan", false, &answer);
        EXPECT(&w, answer.calls == 1, 2000);
        assert_int_equal(answer.code, 0);
        for (int i = 0; i < 100; i++) {
                RUN_UNTIL(&w, false, 10);
                assert_string_equal(cluster_leader(w.nodes[2].cluster), "n2");
                assert_true(state_node(cluster_state(w.nodes[2].cluster), "n3")->drain);
        }
        assert_int_equal(w.nodes[2].leader_lost, lost);
        raft.voters[0]->stale_term = 0;
        raft.voters[0]->lags = false;
        elect(1);
        EXPECT(&w, follow(&w, 1, 4), 4000);
        finish(&w);
}

/* The one after it is gone, before it knows: what it shows is old. It may be followed again once it
 * is elected again. */
static void test_stale_leader_outlives_next(void **state) {
        struct world w;

        start(&w, 4);
        EXPECT(&w, cluster_state(w.nodes[3].cluster)->level == STATE_LEVEL, 5000);
        raft.voters[0]->stale_term = raft.term;
        raft.voters[0]->lags = true;
        elect(1);
        EXPECT(&w, is_led_by(&w.nodes[2], "n2") && is_led_by(&w.nodes[3], "n2"), 4000);
        elect(-1);
        EXPECT(&w, !cluster_leader(w.nodes[2].cluster) && !cluster_leader(w.nodes[3].cluster), 4000);
        for (int i = 0; i < 150; i++) {
                RUN_UNTIL(&w, false, 10);
                assert_null(cluster_leader(w.nodes[2].cluster));
                assert_null(cluster_leader(w.nodes[3].cluster));
        }
        assert_true(cluster_connected(w.nodes[2].cluster, "n1"));
        raft.voters[0]->stale_term = 0;
        raft.voters[0]->lags = false;
        elect(0);
        EXPECT(&w, follow(&w, 0, 4), 4000);
        finish(&w);
}

/* The one that leads now says which nodes are down; the one before says nothing. */
static void test_health_after_a_change(void **state) {
        struct world w;
        unsigned proposed;

        start(&w, 4);
        elect(1);
        EXPECT(&w, follow(&w, 1, 4), 4000);
        proposed = raft.voters[0]->proposed;
        tnode_stop(&w.nodes[3]);
        EXPECT(&w, strstr(w.nodes[2].downs, "n4"), 5000);
        assert_int_equal(raft.voters[0]->proposed, proposed);
        finish(&w);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_follower_with_a_log),   cmocka_unit_test(test_answer_waits_for_the_state),
                cmocka_unit_test(test_synced_when_caught_up), cmocka_unit_test(test_leadership_moves),
                cmocka_unit_test(test_lost_with_proposals),   cmocka_unit_test(test_committed_without_an_answer),
                cmocka_unit_test(test_lost_and_won_unseen),   cmocka_unit_test(test_stale_leader),
                cmocka_unit_test(test_health_after_a_change), cmocka_unit_test(test_stale_leader_outlives_next),
        };

        (void) signal(SIGPIPE, SIG_IGN);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
