/* The counters of nodes: each event once, by one node, with the times of the log; and their sum at
 * the leader. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/util.h"
#include "daemon/metrics/tally.h"
#include "daemon/metrics/totals.h"
#include "tests/unit/state/state_test.h"

#define NODES 3U
#define SECOND_USEC UINT64_C(1000000)

/* Three nodes that all see what happens. */
struct scene {
        struct world *w;
        struct tally *tallies[NODES]; /* of n1, n2, n3 */
        uint64_t now_usec; /* the world's own clock goes on with each command */
};

static int set_up(void **state) {
        return world_start(state, NODES, 4);
}

static struct scene begin(void **state) {
        static const char *const names[NODES] = { "n1", "n2", "n3" };
        struct scene s = { .w = *state };

        s.now_usec = s.w->time_usec + 1000 * SECOND_USEC;
        for (size_t i = 0; i < NODES; i++) {
                s.tallies[i] = tally_create(names[i]);
                tally_learn(s.tallies[i], s.w->state);
        }
        return s;
}

static void end(struct scene *s) {
        for (size_t i = 0; i < NODES; i++)
                tally_destroy(s->tallies[i]);
}

/* So many seconds after what was before. */
static void happens(struct scene *s, unsigned seconds, const char *kind, const char *node, uint64_t job, uint64_t move) {
        Rm__Event event = RM__EVENT__INIT;

        s->now_usec += seconds * SECOND_USEC;
        event.kind = (char *) kind;
        event.node = (char *) (node ? node : "");
        event.job = job;
        event.move = move;
        event.time_usec = s->now_usec;
        for (size_t i = 0; i < NODES; i++)
                tally_event(s->tallies[i], s->w->state, &event);
}

/* The counter has this value on the node of that number, and is 0 on all others; `node` 0: on
 * all. */
static void expect(const struct scene *s, size_t counter, unsigned node, uint64_t value) {
        for (unsigned i = 0; i < NODES; i++) {
                uint64_t got = tally_counters(s->tallies[i])->values[counter];

                if (got != (i + 1 == node ? value : 0))
                        fail_msg("counter %zu of n%u is %llu", counter, i + 1, (unsigned long long) got);
        }
}

/* Two groups, on n1 with the head and on n2, and a move of the second one to n3. */
static uint64_t job_with_move(struct scene *s, uint64_t *ret_move) {
        static const char *const nodes[] = { "n1", "n2" };
        static const uint32_t ranks[] = { 1, 1 };
        uint64_t job = (uint64_t) submit(s->w, 2);

        happens(s, 0, "job-submitted", "n2", job, 0);
        start_job(s->w, job, nodes, ranks, 2);
        happens(s, 7, "job-placed", "n1", job, 0);
        happens(s, 0, "job-started", "n1", job, 0);
        assert_int_equal(move_start(s->w, job, 1, "n3"), 0);
        *ret_move = s->w->created;
        return job;
}

static void test_a_move(void **state) {
        struct scene s = begin(state);
        uint64_t move, job = job_with_move(&s, &move);

        assert_int_equal(move_commit(s.w, move), 0);
        assert_int_equal(move_done(s.w, move, 1000, 200000), 0);
        happens(&s, 0, "move-done", "n3", job, move);
        expect(&s, histogram_bucket(HISTOGRAM_FREEZE, 2), 3, 1); /* from 0.1 to 0.25 s */
        expect(&s, histogram_sum(HISTOGRAM_FREEZE), 3, 200000);
        expect(&s, COUNTER_MOVES_DONE + state_move(s.w->state, move)->cause - 1, 3, 1);
        end(&s);
}

static void test_a_failed_move(void **state) {
        struct scene s = begin(state);
        uint64_t move, job = job_with_move(&s, &move);

        assert_int_equal(move_abort(s.w, move, "it cannot"), 0);
        happens(&s, 0, "move-failed", "n2", job, move);
        expect(&s, COUNTER_MOVES_FAILED + state_move(s.w->state, move)->cause - 1, 2, 1);
        expect(&s, histogram_sum(HISTOGRAM_FREEZE), 0, 0);
        end(&s);
}

/* The one that it concerns is not there: all others know who counts. */
static void test_who_counts_for_a_lost_node(void **state) {
        struct scene s = begin(state);
        uint64_t move, job = job_with_move(&s, &move);

        assert_int_equal(health(s.w, "n2", RM__NODE_HEALTH__NODE_HEALTH_DOWN), 0);
        assert_int_equal(state_move(s.w->state, move)->state, RM__MOVE_STATE__MOVE_RUNNING);
        assert_int_equal(move_abort(s.w, move, "n2 is down"), 0);
        happens(&s, 0, "move-failed", "n2", job, move);
        expect(&s, COUNTER_MOVES_FAILED + state_move(s.w->state, move)->cause - 1, 1, 1);
        end(&s);
}

static void test_waiting(void **state) {
        struct scene s = begin(state);
        uint64_t move, job = job_with_move(&s, &move);

        expect(&s, histogram_bucket(HISTOGRAM_WAITING, 1), 1, 1); /* from 1 to 10 s */
        expect(&s, histogram_sum(HISTOGRAM_WAITING), 1, 7 * SECOND_USEC);
        happens(&s, 50, "job-requeued", NULL, job, 0);
        happens(&s, 20, "job-placed", "n2", job, 0);
        assert_int_equal(tally_counters(s.tallies[1])->values[histogram_bucket(HISTOGRAM_WAITING, 2)], 1);
        end(&s);
}

/* A job loses two nodes in a row: that is one recovery, and its work since its checkpoint, or its
 * start, is lost once. */
static void test_recovery(void **state) {
        struct scene s = begin(state);
        uint64_t move, job = job_with_move(&s, &move);

        happens(&s, 100, "job-restarted", "n2", job, 0);
        happens(&s, 5, "job-placed", "n1", job, 0);
        happens(&s, 1, "job-restarted", "n3", job, 0);
        happens(&s, 5, "job-placed", "n1", job, 0);
        happens(&s, 1, "job-started", "n1", job, 0);
        expect(&s, COUNTER_WORK_LOST_USEC, 1, 100 * SECOND_USEC);
        expect(&s, COUNTER_RECOVERIES_DONE, 1, 1);
        expect(&s, histogram_sum(HISTOGRAM_RECOVERY), 1, 12 * SECOND_USEC);
        expect(&s, histogram_sum(HISTOGRAM_WAITING), 1, 7 * SECOND_USEC); /* that of the submission */
        end(&s);
}

static void test_no_recovery(void **state) {
        struct scene s = begin(state);
        uint64_t move, job = job_with_move(&s, &move);

        assert_int_equal(ends(s.w, job, 255, RM__JOB_STATE__JOB_NODE_FAIL, "node n2 is down"), 0);
        state_job(s.w->state, job)->state = RM__JOB_STATE__JOB_NODE_FAIL;
        happens(&s, 3, "job-ended", NULL, job, 0);
        expect(&s, COUNTER_RECOVERIES_FAILED, 1, 1);
        expect(&s, COUNTER_RECOVERIES_DONE, 0, 0);
        end(&s);
}

/* Job 1 with a checkpoint in this state, captured so long ago. */
static Rm__Checkpoint *add_checkpoint(struct scene *s, uint64_t job, Rm__CheckpointState state, unsigned seconds_ago) {
        Rm__Job *of = state_job(s->w->state, job);
        Rm__Checkpoint *checkpoint = xcalloc(1, sizeof(*checkpoint));

        rm__checkpoint__init(checkpoint);
        checkpoint->id = of->last_checkpoint = of->n_checkpoints + 1;
        checkpoint->state = state;
        checkpoint->pause_usec = 300000;
        checkpoint->captured_usec = s->now_usec - seconds_ago * SECOND_USEC;
        of->checkpoints = xrealloc(of->checkpoints, (of->n_checkpoints + 1) * sizeof(*of->checkpoints));
        of->checkpoints[of->n_checkpoints++] = checkpoint;
        return checkpoint;
}

static void test_checkpoints(void **state) {
        struct scene s = begin(state);
        uint64_t move, job = job_with_move(&s, &move);
        Rm__Checkpoint *checkpoint;

        s.w->thorough = false;
        s.now_usec += 100 * SECOND_USEC;
        checkpoint = add_checkpoint(&s, job, RM__CHECKPOINT_STATE__CHECKPOINT_STORING, 0);
        happens(&s, 0, "checkpoint-captured", NULL, job, 0);
        expect(&s, histogram_bucket(HISTOGRAM_PAUSE, 3), 1, 1); /* from 0.25 to 0.5 s */
        checkpoint->state = RM__CHECKPOINT_STATE__CHECKPOINT_DONE;
        happens(&s, 10, "checkpoint-done", NULL, job, 0);
        expect(&s, COUNTER_CHECKPOINTS_DONE, 1, 1);
        (void) add_checkpoint(&s, job, RM__CHECKPOINT_STATE__CHECKPOINT_STORING, 0);
        happens(&s, 1, "checkpoint-failed", NULL, job, 0);
        expect(&s, COUNTER_CHECKPOINTS_FAILED, 1, 1);
        happens(&s, 4, "job-restarted", "n2", job, 0);
        expect(&s, COUNTER_WORK_LOST_USEC, 1, 15 * SECOND_USEC);
        end(&s);
}

/* An rmd that was started since reads from the state what it has not seen. */
static void test_learns(void **state) {
        struct scene s = begin(state);
        uint64_t move, job = job_with_move(&s, &move), waits = (uint64_t) submit(s.w, 1);
        uint64_t start_usec = state_job(s.w->state, job)->start_usec, submit_usec = state_job(s.w->state, waits)->submit_usec;
        struct tally *late = tally_create("n1");
        Rm__Event event = RM__EVENT__INIT;

        tally_learn(late, s.w->state);
        event.time_usec = s.w->time_usec + 60 * SECOND_USEC;
        event.kind = (char *) "job-restarted";
        event.job = job;
        tally_event(late, s.w->state, &event);
        assert_int_equal(tally_counters(late)->values[COUNTER_WORK_LOST_USEC], event.time_usec - start_usec);
        event.kind = (char *) "job-placed";
        event.node = (char *) "n1";
        event.job = waits;
        tally_event(late, s.w->state, &event);
        assert_int_equal(tally_counters(late)->values[histogram_sum(HISTOGRAM_WAITING)], event.time_usec - submit_usec);
        assert_int_equal(tally_changes(late), 2);
        event.kind = (char *) "something-new";
        tally_event(late, s.w->state, &event);
        assert_int_equal(tally_changes(late), 2);
        tally_destroy(late);
        end(&s);
}

/* ---- what the leader adds up ---- */

static void report_as(struct totals *totals, const char *node, uint64_t run, uint64_t moves, uint64_t bytes, bool whole) {
        uint64_t values[COUNTERS] = { 0 };
        Rm__NodeCounters in = RM__NODE_COUNTERS__INIT;

        values[COUNTER_MOVES_DONE] = moves;
        values[COUNTER_MOVE_BYTES] = bytes;
        in.run = run;
        in.values = values;
        in.n_values = COUNTERS;
        totals_add(totals, node, &in, whole);
}

static void report(struct totals *totals, const char *node, uint64_t run, uint64_t moves, uint64_t bytes) {
        report_as(totals, node, run, moves, bytes, true);
}

static void expect_total(const struct totals *totals, uint64_t moves, uint64_t bytes) {
        assert_int_equal(totals_counters(totals)->values[COUNTER_MOVES_DONE], moves);
        assert_int_equal(totals_counters(totals)->values[COUNTER_MOVE_BYTES], bytes);
}

static void test_totals(void **state) {
        struct totals *totals = totals_create();

        report(totals, "n1", 1, 3, 300);
        report(totals, "n2", 9, 2, 200);
        expect_total(totals, 5, 500);
        report(totals, "n1", 1, 3, 300); /* once more */
        expect_total(totals, 5, 500);
        report(totals, "n1", 1, 4, 350);
        expect_total(totals, 6, 550);
        report(totals, "n1", 1, 3, 300); /* it was overtaken */
        expect_total(totals, 6, 550);
        report(totals, "n1", 2, 0, 0); /* another rmd, which begins at 0 */
        expect_total(totals, 6, 550);
        report(totals, "n1", 2, 1, 10);
        expect_total(totals, 7, 560);
        totals_destroy(totals);
}

/* Counts from before the leadership are another leader's. */
static void test_totals_since_it_leads(void **state) {
        struct totals *totals = totals_create();

        report_as(totals, "n1", 1, 30, 3000, false); /* older than the leadership */
        report_as(totals, "n2", 9, 2, 200, true);
        expect_total(totals, 2, 200);
        report_as(totals, "n1", 1, 31, 3100, false);
        expect_total(totals, 3, 300);
        report_as(totals, "n1", 2, 1, 10, false); /* it begins again while this one leads */
        expect_total(totals, 4, 310);
        totals_begin(totals); /* another one led meanwhile, and has the five of n1 */
        report_as(totals, "n1", 2, 6, 510, false);
        expect_total(totals, 4, 310);
        report_as(totals, "n1", 2, 7, 610, false);
        report_as(totals, "n2", 9, 2, 200, false);
        expect_total(totals, 5, 410);
        totals_destroy(totals);
}

static void test_totals_of_other_versions(void **state) {
        uint64_t values[COUNTERS + 5] = { 0 };
        Rm__NodeCounters in = RM__NODE_COUNTERS__INIT;
        struct totals *totals = totals_create();

        report(totals, "n1", 1, 3, 300);
        in.run = 1;
        in.values = values;
        in.n_values = COUNTER_MOVES_DONE + 1; /* an older one, which knows fewer */
        values[COUNTER_MOVES_DONE] = 5;
        totals_add(totals, "n1", &in, false);
        expect_total(totals, 5, 300);
        in.n_values = COUNTERS + 5; /* a newer one */
        values[COUNTER_MOVE_BYTES] = 310;
        values[COUNTERS] = 1000;
        totals_add(totals, "n1", &in, false);
        expect_total(totals, 5, 310);
        in.n_values = 0;
        totals_add(totals, "n1", &in, false);
        expect_total(totals, 5, 310);
        totals_destroy(totals);
}

static void test_totals_forget(void **state) {
        struct world *w = *state;
        struct totals *totals = totals_create();

        report(totals, "n1", 1, 3, 300);
        report(totals, "gone", 1, 4, 400);
        totals_forget(totals, w->state);
        assert_int_equal(totals_nodes(totals), 1);
        expect_total(totals, 7, 700);
        totals_destroy(totals);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_a_move, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_a_failed_move, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_who_counts_for_a_lost_node, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_waiting, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_recovery, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_no_recovery, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_checkpoints, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_learns, set_up, world_tear_down),
                cmocka_unit_test(test_totals),
                cmocka_unit_test(test_totals_since_it_leads),
                cmocka_unit_test(test_totals_of_other_versions),
                cmocka_unit_test_setup_teardown(test_totals_forget, set_up, world_tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
