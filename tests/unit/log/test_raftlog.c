/* The logs of three voters with libraft between them, whose messages go through the event loop: who
 * leads, what is told of it, and how voters come and go. */
#include "tests/unit/cluster/cluster_test.h"

#include "daemon/log/raft_message.h"
#include "daemon/log/raftlog.h"
#include "daemon/state/commands.h"

#define VOTERS 3

struct servers;

struct server {
        struct servers *all;
        struct raftlog *log;
        char *dir;
        char address[32];
        Rm__State *state; /* as of the last command applied */
        unsigned applied;
        unsigned roles;
        unsigned applied_when_reported; /* that it leads */
};

struct servers {
        struct event_base *base;
        char dir[64];
        struct server list[VOTERS];
        bool cut; /* nothing arrives */
        uint64_t rejected, rejected_last; /* what the last refusal of entries was sent with */
};

static int on_apply(void *userdata, uint64_t index, const Rm__Command *command, struct raftlog_outcome *ret) {
        struct server *voter = userdata;

        voter->applied++;
        voter->state->index = index;
        return 0;
}

static int on_restore(void *userdata, Rm__State *state, struct rm_error *err) {
        struct server *voter = userdata;

        rm__state__free_unpacked(voter->state, NULL);
        voter->state = state;
        return 0;
}

static void on_failed(void *userdata, const struct rm_error *why) {
        fail_msg("%s", why->text);
}

static const Rm__State *get_state(void *userdata) {
        return ((struct server *) userdata)->state;
}

static void on_role(void *userdata) {
        struct server *voter = userdata;

        voter->roles++;
        if (raftlog_leading(voter->log))
                voter->applied_when_reported = voter->applied;
}

/* On its way from one to another. */
struct letter {
        struct servers *all;
        char to[32], from[32];
        Rm__PeerMessage *message;
};

static void deliver(evutil_socket_t fd, short what, void *userdata) {
        struct letter *letter = userdata;

        for (int i = 0; i < VOTERS; i++) {
                struct server *to = &letter->all->list[i];

                if (to->log && strcmp(to->address, letter->to) == 0 && !letter->all->cut)
                        raftlog_receive(to->log, letter->from, letter->message->raft_part);
        }
        rm__peer_message__free_unpacked(letter->message, NULL);
        free(letter);
}

static void note_refusal(struct servers *v, const Rm__RaftPart *part) {
        struct raft_message message;

        if (part->data.len != part->total_bytes || raft_message_unpack(part->data.data, part->data.len, &message) < 0)
                return;
        if (message.type == RAFT_APPEND_ENTRIES_RESULT && message.append_entries_result.rejected > 0) {
                v->rejected = message.append_entries_result.rejected;
                v->rejected_last = message.append_entries_result.last_log_index;
        }
        raft_message_drop(&message);
}

static int on_send(void *userdata, const char *node, const Rm__PeerMessage *message) {
        static const struct timeval soon = { 0, 100 };
        struct server *voter = userdata;
        struct letter *letter = xcalloc(1, sizeof(*letter));

        letter->all = voter->all;
        (void) snprintf(letter->to, sizeof(letter->to), "%s", node);
        (void) snprintf(letter->from, sizeof(letter->from), "%s", voter->address);
        letter->message = (Rm__PeerMessage *) message_copy(&message->base);
        note_refusal(voter->all, message->raft_part);
        return event_base_once(voter->all->base, -1, EV_TIMEOUT, deliver, letter, &soon);
}

static void open_log(struct servers *v, int i, uint64_t join_log) {
        static const struct raftlog_ops ops = { .on_apply = on_apply,
                                                .on_restore = on_restore,
                                                .on_failed = on_failed,
                                                .get_state = get_state,
                                                .on_role = on_role,
                                                .send = on_send };
        struct server *voter = &v->list[i];
        struct raftlog_config config = {
                .dir = voter->dir, .name = voter->address, .snapshot_entries = 64, .election_msec = 300, .join_log = join_log
        };
        struct rm_error err = { 0 };

        voter->applied = voter->roles = 0;
        voter->state = state_create("testers");
        if (raftlog_open(v->base, &config, &ops, voter, &voter->log, &err) < 0)
                fail_msg("%s", err.text);
}

static void close_log(struct server *voter) {
        raftlog_close(take_ptr(voter->log));
        rm__state__free_unpacked(voter->state, NULL);
        voter->state = NULL;
}

static void on_change(void *userdata, int code) {
        *(int *) userdata = code;
}

/* The change that was requested of the leader is done. */
static void expect_changed(struct servers *v, int asked, const int *code) {
        assert_int_equal(asked, 0);
        EXPECT(v, *code != 1, 5000);
        assert_int_equal(*code, 0);
}

static const struct raftlog_member *find_member(struct raftlog *log, uint64_t id) {
        static struct raftlog_member members[16];
        size_t n = raftlog_members(log, members, ARRAY_SIZE(members));

        for (size_t i = 0; i < n; i++)
                if (members[i].id == id)
                        return &members[i];
        return NULL;
}

static void add_standby(struct servers *v, struct raftlog *leader, struct server *server) {
        uint64_t id = raftlog_voter_id(server->log);
        int code = 1;

        assert_null(find_member(leader, id));
        expect_changed(v, raftlog_add(leader, id, server->address, on_change, &code), &code);
        assert_int_equal(find_member(leader, id)->role, RAFTLOG_SPARE);
        code = 1;
        expect_changed(v, raftlog_assign(leader, id, RAFTLOG_STANDBY, on_change, &code), &code);
        EXPECT(v, find_member(leader, id)->current, 3000);
}

static void add_voter(struct servers *v, struct raftlog *leader, struct server *server) {
        uint64_t id = raftlog_voter_id(server->log);
        int code = 1;

        add_standby(v, leader, server);
        expect_changed(v, raftlog_assign(leader, id, RAFTLOG_VOTER, on_change, &code), &code);
        EXPECT(v, raftlog_role(server->log) == RAFTLOG_VOTER, 1000);
}

/* The first begins the log, the others have prepared one. */
static struct servers *open_logs(int n) {
        struct servers *v = xcalloc(1, sizeof(*v));

        v->base = event_base_new();
        (void) snprintf(v->dir, sizeof(v->dir), "%s/test-raftlog-XXXXXX", getenv("TEST_DIR") ? getenv("TEST_DIR") : "/tmp");
        assert_non_null(mkdtemp(v->dir));
        for (int i = 0; i < n; i++) {
                v->list[i].all = v;
                v->list[i].dir = xasprintf("%s/%d", v->dir, i);
                assert_int_equal(mkdir_p(v->list[i].dir, 0700), 0);
                (void) snprintf(v->list[i].address, sizeof(v->list[i].address), "n%d", i + 1);
                open_log(v, i, i == 0 ? 0 : raftlog_id(v->list[0].log));
                assert_int_equal(raftlog_role(v->list[i].log), i == 0 ? RAFTLOG_VOTER : RAFTLOG_NONE);
        }
        EXPECT(v, raftlog_leading(v->list[0].log), 100);
        return v;
}

static int set_up_two(void **state) {
        *state = open_logs(2);
        return 0;
}

/* The others are made voters one by one. */
static int set_up(void **state) {
        struct servers *v = open_logs(VOTERS);

        for (int i = 1; i < VOTERS; i++)
                add_voter(v, v->list[0].log, &v->list[i]);
        *state = v;
        return 0;
}

static int tear_down(void **state) {
        struct servers *v = *state;

        for (int i = 0; i < VOTERS; i++) {
                if (v->list[i].log)
                        close_log(&v->list[i]);
                free(v->list[i].dir);
        }
        while (event_base_get_num_events(v->base, EVENT_BASE_COUNT_ADDED) > 0)
                (void) event_base_loop(v->base, EVLOOP_ONCE);
        event_base_free(v->base);
        (void) remove_tree(v->dir);
        free(v);
        return 0;
}

/* The one that leads, and that all who are there take for the leader; NULL: there is none yet. */
static struct server *leader_of(struct servers *v) {
        struct server *leader = NULL;

        for (int i = 0; i < VOTERS; i++)
                if (v->list[i].log && raftlog_leading(v->list[i].log))
                        leader = &v->list[i];
        for (int i = 0; leader && i < VOTERS; i++) {
                const char *name = v->list[i].log ? raftlog_leader(v->list[i].log) : leader->address;

                if (!name || strcmp(name, leader->address) != 0)
                        return NULL;
        }
        return leader;
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

static int propose(struct server *voter, struct done *done) {
        struct command c;

        return raftlog_propose(voter->log, command_note(&c, "x"), on_done, done);
}

static bool all_applied(const struct servers *v, unsigned n) {
        for (int i = 0; i < VOTERS; i++)
                if (v->list[i].log && v->list[i].applied != n)
                        return false;
        return true;
}

static void test_one_leads(void **state) {
        struct servers *v = *state;
        struct done done = { 0 };
        struct server *leader;

        EXPECT(v, leader_of(v), 3000);
        leader = leader_of(v);
        assert_ptr_equal(leader, &v->list[0]);
        for (int i = 1; i < VOTERS; i++) {
                EXPECT(v, v->list[i].roles > 0, 100);
                assert_int_equal(propose(&v->list[i], &done), -EHOSTUNREACH);
        }
        for (unsigned i = 1; i <= 5; i++) {
                assert_int_equal(propose(leader, &done), 0);
                EXPECT(v, done.calls == i && all_applied(v, i), 1000);
                assert_int_equal(done.code, 0);
        }
}

/* The next one leads when it has applied all that was committed before, and says so. */
static void test_leader_ends(void **state) {
        struct servers *v = *state;
        struct done done = { 0 };
        struct server *first, *second;
        uint64_t term;
        unsigned roles;

        EXPECT(v, leader_of(v), 3000);
        first = leader_of(v);
        term = raftlog_term(first->log);
        for (unsigned i = 1; i <= 20; i++)
                assert_int_equal(propose(first, &done), 0);
        EXPECT(v, done.calls == 20, 1000);
        close_log(first);
        EXPECT(v, leader_of(v), 4000);
        second = leader_of(v);
        assert_true(raftlog_term(second->log) > term);
        EXPECT(v, second->applied_when_reported == 20, 100);
        assert_int_equal(propose(second, &done), 0);
        EXPECT(v, all_applied(v, 21), 1000);
        /* The one before comes back and follows. */
        roles = second->roles;
        open_log(v, (int) (first - v->list), 0);
        EXPECT(v, leader_of(v) == second && all_applied(v, 21), 4000);
        EXPECT(v, first->roles > 0, 100);
        assert_int_equal(second->roles, roles);
}

/* A leader that hears none of the others leads no more: what it was asked is answered, and it says
 * so. */
static void test_leader_alone(void **state) {
        struct servers *v = *state;
        struct done done = { 0 };
        struct server *leader;
        unsigned roles;

        EXPECT(v, leader_of(v), 3000);
        leader = leader_of(v);
        roles = leader->roles;
        for (int i = 0; i < VOTERS; i++)
                if (&v->list[i] != leader)
                        close_log(&v->list[i]);
        assert_int_equal(propose(leader, &done), 0);
        EXPECT(v, done.calls == 1, 3000);
        assert_int_equal(done.code, -EHOSTUNREACH);
        assert_false(raftlog_leading(leader->log));
        EXPECT(v, leader->roles > roles, 100);
        assert_null(raftlog_leader(leader->log));
        assert_int_equal(propose(leader, &done), -EHOSTUNREACH);
        /* The same happens when there are two of three. */
        roles = leader->roles;
        open_log(v, (int) (leader - v->list + 1) % VOTERS, 0);
        EXPECT(v, leader_of(v), 4000);
        EXPECT(v, leader->roles > roles, 100);
        assert_int_equal(propose(leader_of(v), &done), 0);
        EXPECT(v, done.calls == 2, 1000);
        assert_int_equal(done.code, 0);
}

/* The leader is asked to hand over, and names its successor. */
static void test_hands_over(void **state) {
        struct servers *v = *state;
        struct done done = { 0 };
        int code = 1;

        EXPECT(v, leader_of(v) == &v->list[0], 3000);
        expect_changed(v, raftlog_transfer(v->list[0].log, raftlog_voter_id(v->list[2].log), on_change, &code), &code);
        EXPECT(v, leader_of(v) == &v->list[2], 1000);
        assert_int_equal(propose(&v->list[2], &done), 0);
        EXPECT(v, done.calls == 1 && all_applied(v, 1), 1000);
}

/* While entries are on their way to the one that is to lead: it leads once it has them, and nobody
 * waits for an election. */
static void test_hands_over_amid_entries(void **state) {
        struct servers *v = *state;
        struct done done = { 0 };
        int code = 1;

        EXPECT(v, leader_of(v) == &v->list[0], 3000);
        for (int i = 0; i < 20; i++)
                assert_int_equal(propose(&v->list[0], &done), 0);
        assert_int_equal(raftlog_transfer(v->list[0].log, raftlog_voter_id(v->list[2].log), on_change, &code), 0);
        EXPECT(v, leader_of(v) == &v->list[2], 150);
        EXPECT(v, done.calls == 20 && all_applied(v, 20), 1000);
}

/* A voter is replaced by another that has none of the log, which is too long by then to be sent
 * entry by entry. */
static void test_replaced(void **state) {
        struct servers *v = *state;
        struct server *leader = &v->list[0], *gone = &v->list[2];
        struct done done = { 0 };
        struct rm_error err = { 0 };
        uint64_t id = raftlog_voter_id(gone->log);
        int code = 1;

        EXPECT(v, leader_of(v) == leader, 3000);
        for (unsigned i = 1; i <= 300; i++) {
                assert_int_equal(propose(leader, &done), 0);
                EXPECT(v, done.calls == i, 1000);
        }
        close_log(gone);
        expect_changed(v, raftlog_remove(leader->log, id, on_change, &code), &code);
        assert_null(find_member(leader->log, id));
        assert_int_equal(raftlog_discard(gone->dir, &err), 0);
        assert_false(raftlog_exists(gone->dir));
        open_log(v, 2, raftlog_id(leader->log));
        assert_true(raftlog_voter_id(gone->log) != id);
        add_voter(v, leader->log, gone);
        assert_int_equal(gone->state->index, leader->state->index);
        assert_true(gone->applied < 300); /* by a snapshot */
        /* The new voter is one of two that decide. */
        close_log(&v->list[1]);
        assert_int_equal(propose(leader, &done), 0);
        EXPECT(v, done.calls == 301 && gone->state->index == leader->state->index, 2000);
        assert_int_equal(done.code, 0);
}

/* Only the leader changes the voters, one change at a time. */
static void test_change_refused(void **state) {
        struct servers *v = *state;
        int code = 1, other = 1;

        EXPECT(v, leader_of(v) == &v->list[0], 3000);
        assert_int_equal(raftlog_add(v->list[1].log, 77, "n9", on_change, &code), -EHOSTUNREACH);
        assert_int_equal(raftlog_add(v->list[0].log, 77, "n9", on_change, &code), 0);
        assert_int_equal(raftlog_remove(v->list[0].log, 77, on_change, &other), -EBUSY);
        expect_changed(v, 0, &code);
        /* A leader that is alone says that it came to nothing. */
        v->cut = true;
        code = 1;
        assert_int_equal(raftlog_remove(v->list[0].log, 77, on_change, &code), 0);
        EXPECT(v, code != 1, 3000);
        assert_int_equal(code, -EHOSTUNREACH);
}

/* A leader that was alone ends when it has made another one a voter, and that has not heard of it:
 * it needs the vote of a standby. */
static void test_promotion_lost(void **state) {
        struct servers *v = *state;
        struct server *first = &v->list[0], *second = &v->list[1];
        struct done done = { 0 };
        int code = 1;

        add_standby(v, first->log, second);
        v->cut = true;
        assert_int_equal(raftlog_assign(first->log, raftlog_voter_id(second->log), RAFTLOG_VOTER, on_change, &code), 0);
        RUN_UNTIL(v, false, 500); /* it is on the first one's disk */
        close_log(first);
        assert_int_equal(raftlog_role(second->log), RAFTLOG_STANDBY);
        v->cut = false;
        open_log(v, 0, 0);
        EXPECT(v, raftlog_leading(first->log), 4000);
        EXPECT(v, raftlog_role(second->log) == RAFTLOG_VOTER, 1000);
        assert_int_equal(propose(first, &done), 0);
        EXPECT(v, done.calls == 1, 1000);
        assert_int_equal(done.code, 0);
}

/* Alone, it leads in another term each time: what a standby was sent in the one before is not what
 * comes now. */
static void test_terms_alone(void **state) {
        struct servers *v = *state;
        uint64_t term = raftlog_term(v->list[0].log);

        add_standby(v, v->list[0].log, &v->list[1]);
        close_log(&v->list[0]);
        open_log(v, 0, 0);
        assert_true(raftlog_leading(v->list[0].log));
        assert_true(raftlog_term(v->list[0].log) > term);
}

/* `to` gets the message as of `from`. */
static void hand(struct server *to, struct server *from, uint64_t from_id, const struct raft_message *message) {
        Rm__RaftPart part = RM__RAFT_PART__INIT;
        cleanup_free uint8_t *data = NULL;
        size_t size_bytes;

        assert_int_equal(raft_message_pack(message, &data, &size_bytes), 0);
        part.log = raftlog_id(to->log);
        part.from = from_id;
        part.to = raftlog_voter_id(to->log);
        part.total_bytes = part.data.len = size_bytes;
        part.data.data = data;
        raftlog_receive(to->log, from->address, &part);
}

/* A voter refuses what a leader of an earlier term sends, and says how far its own log goes, but
 * not beyond what it refuses. */
static void test_earlier_leader_refused(void **state) {
        const uint64_t behind[] = { 2, 1000, UINT64_C(1) << 40, UINT64_C(1) << 62 };
        struct servers *v = *state;
        struct server *first = &v->list[0], *second = &v->list[1];
        struct raft_message append = { .type = RAFT_APPEND_ENTRIES };
        uint64_t last;

        add_voter(v, first->log, second);
        EXPECT(v, raftlog_applied(second->log) == raftlog_applied(first->log), 1000);
        last = raftlog_applied(second->log);
        assert_true(last > behind[0] && last < behind[1]);
        append.append_entries.term = 1;
        append.append_entries.prev_log_term = 1;
        for (size_t i = 0; i < ARRAY_SIZE(behind); i++) {
                append.append_entries.prev_log_index = behind[i];
                v->rejected = 0;
                hand(second, first, raftlog_voter_id(first->log), &append);
                EXPECT(v, v->rejected > 0, 1000);
                assert_int_equal(v->rejected, behind[i]);
                assert_int_equal(v->rejected_last, last < behind[i] ? last : behind[i] - 1);
        }
}

/* Memory that libraft gets is zero, and has nothing of what was there before. */
static void test_memory_is_zero(void **state) {
        const size_t sizes[] = { 8, 24, 200, 1000, 40960 };

        for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
                static const uint8_t zeros[40960];
                void *used = raft_malloc(sizes[i]), *other;

                memset(used, 0xa5, sizes[i]);
                raft_free(used);
                used = raft_malloc(sizes[i]);
                other = raft_calloc(sizes[i] / 8, 8);
                assert_memory_equal(used, zeros, sizes[i]);
                assert_memory_equal(other, zeros, sizes[i]);
                raft_free(used);
                raft_free(other);
        }
}

/* A voter has more in its log, the other one is in a later term, as after an election that came
 * to nothing, and the third is down. */
static void test_longer_log_in_earlier_term(void **state) {
        struct servers *v = *state;
        struct server *first = &v->list[0], *second = &v->list[1];
        struct raft_message vote = { .type = RAFT_REQUEST_VOTE };
        uint64_t third = raftlog_voter_id(v->list[2].log);
        struct done done = { 0 };

        EXPECT(v, leader_of(v) == first, 3000);
        close_log(&v->list[2]);
        v->cut = true;
        assert_int_equal(propose(first, &done), 0);
        EXPECT(v, done.calls == 1 && !raftlog_leading(first->log), 3000);
        vote.request_vote.version = 2;
        vote.request_vote.term = raftlog_term(first->log) + 10;
        vote.request_vote.candidate_id = third;
        vote.request_vote.disrupt_leader = true;
        hand(second, &v->list[2], third, &vote);
        EXPECT(v, raftlog_term(second->log) == vote.request_vote.term, 1000);
        v->cut = false;
        EXPECT(v, leader_of(v), 5000);
        assert_ptr_equal(leader_of(v), first);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_one_leads, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_leader_ends, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_leader_alone, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_hands_over_amid_entries, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_hands_over, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_replaced, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_longer_log_in_earlier_term, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_change_refused, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_promotion_lost, set_up_two, tear_down),
                cmocka_unit_test_setup_teardown(test_terms_alone, set_up_two, tear_down),
                cmocka_unit_test_setup_teardown(test_earlier_leader_refused, set_up_two, tear_down),
                cmocka_unit_test_setup_teardown(test_memory_is_zero, set_up_two, tear_down),
        };

        (void) signal(SIGPIPE, SIG_IGN);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
