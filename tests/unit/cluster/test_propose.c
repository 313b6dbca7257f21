/* Proposals on their way: sent again to the next leader, answered once, in order; the log is played
 * by the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/cluster/propose.h"
#include "daemon/state/commands.h"
#include "daemon/state/state_index.h"
#include "daemon/state/state_session.h"

#define TIMEOUT_USEC UINT64_C(60000000)

struct answer {
        unsigned calls;
        int code;
        uint64_t index, order;
        char text[128];
};

struct fake {
        struct event_base *base;
        struct proposals *proposals;
        enum propose_route route;
        int log_code, send_code;
        const char *log_text; /* why the log does not take it; NULL: it does not say */
        Rm__State *state; /* of this node, */
        struct state_index *index;
        Rm__Command *sent[256]; /* to the leader or into our log, in order */
        uint32_t ids[256];
        raftlog_done_fn done[256];
        void *context[256];
        size_t n_sent;
};

static uint64_t answers;

static void on_answer(void *userdata, int code, const char *text, uint64_t index, uint64_t created) {
        struct answer *a = userdata;

        a->calls++;
        a->code = code;
        a->index = index;
        a->order = ++answers;
        (void) snprintf(a->text, sizeof(a->text), "%s", text);
}

static enum propose_route get_route(void *userdata) {
        return ((struct fake *) userdata)->route;
}

static void keep(struct fake *f, const Rm__Command *command, uint32_t id, raftlog_done_fn done, void *context) {
        assert_true(f->n_sent < ARRAY_SIZE(f->sent));
        f->ids[f->n_sent] = id;
        f->done[f->n_sent] = done;
        f->context[f->n_sent] = context;
        f->sent[f->n_sent++] = (Rm__Command *) message_copy(&command->base);
}

static int log_it(void *userdata, Rm__Command *command, raftlog_done_fn done, void *context, struct rm_error *err) {
        struct fake *f = userdata;

        if (f->log_code == 0)
                keep(f, command, 0, done, context);
        return f->log_text ? error_set(err, f->log_code, "%s", f->log_text) : f->log_code;
}

static int send_it(void *userdata, const Rm__PeerMessage *message) {
        struct fake *f = userdata;

        if (f->send_code == 0)
                keep(f, message->propose->command, message->propose->id, NULL, NULL);
        return f->send_code;
}

static const Rm__State *get_state(void *userdata) {
        return ((struct fake *) userdata)->state;
}

static const char *get_self(void *userdata) {
        return "n2";
}

static void fake_init(struct fake *f, enum propose_route route) {
        static const struct proposals_ops ops = {
                .route = get_route, .log = log_it, .send = send_it, .get_state = get_state, .self = get_self
        };

        memset(f, 0, sizeof(*f));
        f->base = event_base_new();
        f->route = route;
        f->state = state_create("testers");
        f->index = state_index_create(f->state);
        f->proposals = proposals_create(f->base, TIMEOUT_USEC, &ops, f);
}

static void fake_finish(struct fake *f) {
        proposals_destroy(f->proposals);
        for (size_t i = 0; i < f->n_sent; i++)
                rm__command__free_unpacked(f->sent[i], NULL);
        state_index_destroy(f->index);
        rm__state__free_unpacked(f->state, NULL);
        event_base_free(f->base);
}

static void loop(struct fake *f) {
        (void) event_base_loop(f->base, EVLOOP_NONBLOCK);
}

static void propose(struct fake *f, const char *text, struct answer *a) {
        struct command c;

        proposals_add(f->proposals, command_note(&c, text), on_answer, a);
        loop(f);
}

/* The i-th command that was sent reaches the state of this node; the leader's answer does not
 * come. */
static int apply(struct fake *f, size_t i) {
        struct state_result result;
        int code;

        state_apply(f->state, f->index, f->state->index + 1, f->sent[i], &result);
        code = result.error.code;
        state_result_finish(&result);
        proposals_applied(f->proposals);
        loop(f);
        return code;
}

static void new_leader(struct fake *f, enum propose_route route) {
        f->route = PROPOSE_NOWHERE;
        proposals_leader_changed(f->proposals);
        loop(f);
        f->route = route;
        proposals_leader_changed(f->proposals);
        loop(f);
}

static void reply(struct fake *f, size_t i, int code, uint64_t index) {
        Rm__ProposeReply message = RM__PROPOSE_REPLY__INIT;

        message.id = f->ids[i];
        message.code = code;
        message.index = index;
        proposals_reply(f->proposals, &message);
        loop(f);
}

static const char *text_of(const struct fake *f, size_t i) {
        return f->sent[i]->note->text;
}

static void test_sent_again(void **state) {
        struct answer a[3] = { 0 };
        struct fake f;

        fake_init(&f, PROPOSE_THERE);
        propose(&f, "0", &a[0]);
        propose(&f, "1", &a[1]);
        propose(&f, "2", &a[2]);
        assert_int_equal(f.n_sent, 3);
        new_leader(&f, PROPOSE_THERE);
        assert_int_equal(f.n_sent, 6);
        for (size_t i = 0; i < 3; i++) {
                assert_string_equal(text_of(&f, i), text_of(&f, i + 3));
                assert_int_equal(f.sent[i]->origin->sequence, f.sent[i + 3]->origin->sequence);
                assert_int_equal(f.sent[i]->origin->after, i);
        }
        assert_int_equal(a[0].calls, 0);
        for (size_t i = 0; i < 3; i++)
                assert_int_equal(apply(&f, i + 3), 0);
        for (size_t i = 0; i < 3; i++) {
                assert_int_equal(a[i].calls, 1);
                assert_int_equal(a[i].code, 0);
                assert_int_equal(a[i].index, i + 1);
        }
        assert_true(a[0].order < a[1].order && a[1].order < a[2].order);
        fake_finish(&f);
}

/* The first leader has put two into the log before it was lost: only the third is applied of what
 * the next one gets. */
static void test_found_in_the_state(void **state) {
        struct answer a[3] = { 0 };
        struct fake f;

        fake_init(&f, PROPOSE_THERE);
        for (int i = 0; i < 3; i++)
                propose(&f, "x", &a[i]);
        f.route = PROPOSE_NOWHERE;
        proposals_leader_changed(f.proposals);
        assert_int_equal(apply(&f, 0), 0);
        assert_int_equal(apply(&f, 1), 0);
        assert_int_equal(a[0].calls + a[1].calls, 2);
        new_leader(&f, PROPOSE_THERE);
        assert_int_equal(f.n_sent, 4);
        assert_int_equal(f.sent[3]->origin->sequence, 3);
        assert_int_equal(f.sent[3]->origin->answered, 2);
        assert_false(f.sent[3]->origin->opens);
        assert_int_equal(apply(&f, 3), 0);
        assert_int_equal(a[2].calls, 1);
        fake_finish(&f);
}

/* From this node's own log to another's, and back. */
static void test_own_log_lost(void **state) {
        struct raftlog_outcome lost = { .error = { .code = -EHOSTUNREACH } };
        struct answer a[2] = { 0 };
        struct fake f;

        fake_init(&f, PROPOSE_HERE);
        propose(&f, "0", &a[0]);
        propose(&f, "1", &a[1]);
        assert_int_equal(f.n_sent, 2);
        f.route = PROPOSE_NOWHERE;
        proposals_leader_changed(f.proposals);
        f.done[1](f.context[1], &lost);
        f.done[0](f.context[0], &lost);
        new_leader(&f, PROPOSE_THERE);
        assert_int_equal(f.n_sent, 4);
        assert_string_equal(text_of(&f, 2), "0");
        assert_string_equal(text_of(&f, 3), "1");
        new_leader(&f, PROPOSE_HERE);
        assert_int_equal(f.n_sent, 6);
        assert_int_equal(apply(&f, 4), 0);
        assert_int_equal(apply(&f, 5), 0);
        assert_int_equal(a[0].calls + a[1].calls, 2);
        /* Late answers of the log are ignored. */
        f.done[4](f.context[4], &lost);
        f.done[5](f.context[5], &lost);
        assert_int_equal(a[0].calls + a[1].calls, 2);
        fake_finish(&f);
}

static void test_refused_by_a_leader(void **state) {
        struct answer a[2] = { 0 };
        struct fake f;

        fake_init(&f, PROPOSE_THERE);
        propose(&f, "0", &a[0]);
        propose(&f, "1", &a[1]);
        reply(&f, 0, -EHOSTUNREACH, 0); /* it does not lead, */
        reply(&f, 1, -EILSEQ, 7);       /* and now it does */
        assert_int_equal(f.n_sent, 2);
        proposals_expire(f.proposals, now_usec());
        loop(&f);
        assert_int_equal(f.n_sent, 4);
        assert_string_equal(text_of(&f, 2), "0");
        assert_string_equal(text_of(&f, 3), "1");
        reply(&f, 2, -ENOSPC, 0); /* the first answer had told that it is in no log; another leader may have it */
        assert_int_equal(a[0].calls, 0);
        proposals_expire(f.proposals, now_usec());
        loop(&f);
        assert_int_equal(f.n_sent, 5);
        assert_int_equal(apply(&f, 4), 0);
        assert_int_equal(a[0].calls, 1);
        fake_finish(&f);
}

static void test_full_disk(void **state) {
        struct answer a = { 0 };
        struct fake f;

        fake_init(&f, PROPOSE_THERE);
        propose(&f, "0", &a);
        reply(&f, 0, -ENOSPC, 0);
        assert_int_equal(a.calls, 1);
        assert_int_equal(a.code, -ENOSPC);
        fake_finish(&f);
}

static void test_window(void **state) {
        struct answer a[3 * STATE_RESULTS_KEPT] = { 0 };
        struct fake f;

        fake_init(&f, PROPOSE_THERE);
        for (size_t i = 0; i < ARRAY_SIZE(a); i++)
                propose(&f, "x", &a[i]);
        assert_int_equal(f.n_sent, STATE_RESULTS_KEPT);
        for (size_t i = 0; i < ARRAY_SIZE(a); i++) {
                if (i == STATE_RESULTS_KEPT) { /* a leader that has put them into the log, and could not say so */
                        size_t n = f.n_sent;

                        new_leader(&f, PROPOSE_THERE);
                        assert_int_equal(f.n_sent, 2 * n - i);
                        for (size_t k = n; k < f.n_sent; k++)
                                rm__command__free_unpacked(f.sent[k], NULL);
                        f.n_sent = n;
                }
                assert_int_equal(apply(&f, i), 0);
        }
        for (size_t i = 0; i < ARRAY_SIZE(a); i++)
                assert_int_equal(a[i].calls, 1);
        assert_true(state_session(f.state, "n2", f.sent[0]->origin->instance)->n_results <= STATE_RESULTS_KEPT);
        fake_finish(&f);
}

static void test_given_up(void **state) {
        struct answer a[3] = { 0 };
        struct fake f;

        fake_init(&f, PROPOSE_THERE);
        propose(&f, "0", &a[0]);
        f.route = PROPOSE_NOWHERE;
        proposals_leader_changed(f.proposals);
        propose(&f, "1", &a[1]);
        proposals_expire(f.proposals, now_usec() + TIMEOUT_USEC);
        assert_int_equal(a[0].code, -ETIMEDOUT);
        assert_non_null(strstr(a[0].text, "may be done or not"));
        assert_int_equal(a[1].code, -EHOSTUNREACH);
        assert_non_null(strstr(a[1].text, "no leader can be reached"));
        f.route = PROPOSE_THERE;
        propose(&f, "2", &a[2]);
        assert_int_equal(f.n_sent, 2);
        assert_int_equal(f.sent[1]->origin->after, 0);
        assert_true(f.sent[1]->origin->opens);
        assert_int_equal(apply(&f, 1), 0);
        assert_int_equal(apply(&f, 0), -ESTALE); /* not after it */
        fake_finish(&f);
}

/* The cluster has forgotten this node's proposals: it begins anew. */
static void test_session_lost(void **state) {
        struct answer a[3] = { 0 };
        struct fake f;

        fake_init(&f, PROPOSE_THERE);
        propose(&f, "0", &a[0]);
        assert_int_equal(apply(&f, 0), 0);
        rm__session__free_unpacked(f.state->sessions[--f.state->n_sessions], NULL);
        propose(&f, "1", &a[1]);
        assert_int_equal(apply(&f, 1), -ESTALE);
        reply(&f, 1, -ESTALE, f.state->index);
        assert_int_equal(a[1].code, -ESTALE);
        propose(&f, "2", &a[2]);
        assert_int_not_equal(f.sent[2]->origin->instance, f.sent[1]->origin->instance);
        assert_int_equal(apply(&f, 2), 0);
        assert_int_equal(a[2].calls, 1);
        fake_finish(&f);
}

/* A caller gets the leader's text, or else the meaning of the code. */
static void test_refused_with_words(void **state) {
        static const struct {
                int code;
                const char *text;
                const char *reported;
        } cases[] = {
                { -EAGAIN, "update rmd on n2", "update rmd on n2" },
                { -ENOSPC, NULL, "the leader's disk is full" },
                { -ENOMEM, NULL, "Cannot allocate memory" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct answer a = { 0 };
                struct fake f;

                fake_init(&f, PROPOSE_HERE);
                f.log_code = cases[i].code;
                f.log_text = cases[i].text;
                propose(&f, "0", &a);
                assert_int_equal(a.code, cases[i].code);
                assert_non_null(strstr(a.text, cases[i].reported));
                fake_finish(&f);
        }
}

static void test_decisions_end_with_the_leadership(void **state) {
        struct answer a = { 0 };
        struct command c;
        struct fake f;

        fake_init(&f, PROPOSE_HERE);
        proposals_add_decision(f.proposals, command_note(&c, "queued"));
        f.route = PROPOSE_NOWHERE;
        proposals_leader_changed(f.proposals);
        f.route = PROPOSE_HERE; /* and this node again, which has just decided something */
        proposals_add_decision(f.proposals, command_note(&c, "new"));
        proposals_leader_changed(f.proposals);
        propose(&f, "a client's", &a);
        assert_int_equal(f.n_sent, 2);
        assert_string_equal(text_of(&f, 0), "new");
        assert_null(f.sent[0]->origin);
        f.done[0](f.context[0], &(struct raftlog_outcome) { .error = { .code = -EHOSTUNREACH } });
        f.done[1](f.context[1], &(struct raftlog_outcome) { .error = { .code = -EHOSTUNREACH } });
        new_leader(&f, PROPOSE_THERE);
        assert_int_equal(f.n_sent, 3);
        assert_string_equal(text_of(&f, 2), "a client's");
        fake_finish(&f);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_sent_again),         cmocka_unit_test(test_found_in_the_state),
                cmocka_unit_test(test_own_log_lost),       cmocka_unit_test(test_refused_by_a_leader),
                cmocka_unit_test(test_full_disk),          cmocka_unit_test(test_window),
                cmocka_unit_test(test_given_up),           cmocka_unit_test(test_session_lost),
                cmocka_unit_test(test_refused_with_words), cmocka_unit_test(test_decisions_end_with_the_leadership),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
