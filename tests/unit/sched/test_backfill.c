/* Jobs that may overtake one that waits, jobs that should go back, and the cost of moves. */
#include <string.h>

#include "common/util.h"
#include "daemon/sched/backfill.h"
#include "daemon/sched/move_cost.h"
#include "daemon/sched/return_when_paid.h"
#include "daemon/sched/round.h"
#include "tests/unit/sched/sched_test.h"

#define NODES "'nodes':[{'name':'n1','cores':4,'penalty':0},{'name':'n2','cores':4,'penalty':0}]"
#define SNAPSHOT(jobs) "{'version':1," NODES ",'jobs':[" jobs "]}"
#define RUNS(name, node, ranks)                                                                                                    \
        "{'name':'" name "','ranks':" #ranks ",'priority':1,'placed':[{'node':'" node "','ranks':" #ranks "}]}"
#define WAITS(name, ranks, seconds) "{'name':'" name "','ranks':" #ranks ",'priority':1,'time_limit_usec':" #seconds "000000}"
#define SECOND UINT64_C(1000000)

/* ---- reservations ---- */

/* Everything stays, everything waits. */
static struct rm_plan *plan_as_it_is(const struct rm_snapshot *view) {
        struct rm_plan *plan = plan_create(view);

        for (uint32_t j = 0; j < view->n_jobs; j++)
                for (uint32_t g = 0; g < view->jobs[j].n_groups; g++) {
                        plan->jobs[j].group_node[g] = view->jobs[j].groups[g].node;
                        plan->jobs[j].decision = view->jobs[j].groups[g].node >= 0 ? RM_PLACE : RM_WAIT;
                }
        return plan;
}

static uint64_t reservation(const char *text, const uint64_t *left_usec, uint32_t job) {
        cleanup_snapshot struct snapshot *snapshot = test_snapshot(text);
        cleanup_plan struct rm_plan *plan = plan_as_it_is(snapshot_view(snapshot));

        return backfill_reserve(snapshot_view(snapshot), plan, left_usec, job).usec;
}

static void reserves(void **state) {
        static const char *const two = SNAPSHOT(RUNS("a", "n1", 3) "," RUNS("b", "n2", 4) "," WAITS("c", 4, 9));
        const uint64_t left[] = { 10 * SECOND, 20 * SECOND, 0 }, one_unknown[] = { 0, 20 * SECOND, 0 }, unknown[] = { 0, 0, 0 };

        (void) state;
        assert_int_equal(reservation(two, left, 2), 10 * SECOND);
        assert_int_equal(reservation(two, one_unknown, 2), 20 * SECOND);
        assert_true(reservation(two, unknown, 2) == BACKFILL_NEVER);
        assert_int_equal(reservation(SNAPSHOT(RUNS("a", "n1", 3) "," RUNS("b", "n2", 4) "," WAITS("c", 1, 9)), left, 2), 0);
        /* Eight cores are free together only when both have ended. */
        assert_int_equal(reservation(SNAPSHOT(RUNS("a", "n1", 3) "," RUNS("b", "n2", 4) "," WAITS("c", 8, 9)), left, 2),
                         20 * SECOND);
}

/* 3 + 3 cores are free, but not for a group of 4: the groups count, not the sum. The smaller last
 * one counts too. */
static void reserves_whole_groups(void **state) {
        static const char *const four =
                SNAPSHOT(RUNS("a", "n1", 1) "," RUNS("b", "n2", 1) ",{'name':'c','ranks':4,'group_size':4,'priority':1}");
        static const char *const rest =
                SNAPSHOT(RUNS("a", "n1", 1) "," RUNS("b", "n2", 1) ",{'name':'c','ranks':7,'group_size':3,'priority':1}");
        const uint64_t left[] = { 10 * SECOND, 20 * SECOND, 0 };

        (void) state;
        assert_int_equal(reservation(four, left, 2), 10 * SECOND);
        assert_int_equal(reservation(rest, left, 2), 10 * SECOND);
}

#define MEMORY(jobs) "{'version':1,'nodes':[{'name':'n1','cores':8,'penalty':0,'memory':1000,'memory_free':100}],'jobs':[" jobs "]}"
#define HOLDS(name, memory)                                                                                                        \
        "{'name':'" name "','ranks':1,'priority':1,'group_memory':" #memory ",'placed':[{'node':'n1','ranks':1}]}"

/* There are cores, but no memory. Of a group that runs, half of what a move would need is sure to
 * become free. */
static void reserves_memory(void **state) {
        const uint64_t left[] = { 10 * SECOND, 20 * SECOND, 0 };

        (void) state;
        assert_int_equal(
                reservation(MEMORY(HOLDS("a", 600) "," HOLDS("b", 1000) ",{'name':'c','ranks':1,'priority':1,'group_memory':400}"),
                            left, 2),
                10 * SECOND);
        assert_int_equal(
                reservation(MEMORY(HOLDS("a", 600) "," HOLDS("b", 1000) ",{'name':'c','ranks':1,'priority':1,'group_memory':401}"),
                            left, 2),
                20 * SECOND);
        assert_int_equal(
                reservation(MEMORY(HOLDS("a", 600) "," HOLDS("b", 1000) ",{'name':'c','ranks':1,'priority':1,'group_memory':100}"),
                            left, 2),
                0);
}

/* ---- rounds ---- */

struct fixture {
        struct snapshot *snapshot;
        struct round_result *result;
};

static void run(struct fixture *f, const char *text, const struct round_job *jobs, uint32_t backfill) {
        f->snapshot = test_snapshot(text);
        snapshot_params(f->snapshot)->backfill = backfill;
        f->result = test_round("greedy", snapshot_view(f->snapshot), jobs);
}

static void finish(struct fixture *f) {
        round_result_destroy(f->result);
        snapshot_destroy(f->snapshot);
}

/* The names of the jobs that are started, in order. */
static void starts(struct fixture *f, const char *expected) {
        char names[256] = "";

        for (size_t i = 0; i < f->result->n_actions; i++)
                if (f->result->actions[i].kind == ROUND_START)
                        (void) strcat(names, snapshot_view(f->snapshot)->jobs[f->result->actions[i].job].name);
        assert_string_equal(names, expected);
}

#define NOT_MOVING .head_node = RM_NO_NODE, .head_moving_to = RM_NO_NODE

/* The first of the jobs, which runs, has 100 s left; these, of those that wait, start by time
 * limits. */
/* The start of this job is expected then, and of no other. */
static void expects(const struct fixture *f, uint32_t job, uint64_t usec) {
        for (uint32_t j = 0; j < f->result->n_jobs; j++)
                assert_int_equal(f->result->jobs[j].start_usec, j == job ? usec : 0);
}

static void overtake(const char *text, const char *expected) {
        const struct round_job jobs[6] = { { NOT_MOVING, .left_usec = 100 * SECOND },
                                           { NOT_MOVING },
                                           { NOT_MOVING },
                                           { NOT_MOVING },
                                           { NOT_MOVING },
                                           { NOT_MOVING } };
        struct fixture f;

        run(&f, text, jobs, ROUND_BACKFILL_LIMITS);
        assert_in_range(snapshot_view(f.snapshot)->n_jobs, 1, ARRAY_SIZE(jobs));
        starts(&f, expected);
        finish(&f);
}

/* Behind a job that waits for memory: one that ends before, or leaves it what it will need; not one
 * that takes that. */
static void overtakes_who_waits_for_memory(void **state) {
        (void) state;
        overtake(MEMORY(HOLDS("a", 600) ",{'name':'b','ranks':1,'priority':1,'group_memory':400}," WAITS("c", 1, 90)), "c");
        overtake(MEMORY(HOLDS("a", 600) ",{'name':'b','ranks':1,'priority':1,'group_memory':400},"
                                        "{'name':'d','ranks':1,'priority':1,'group_memory':50}"),
                 "");
        overtake(MEMORY(HOLDS("a", 1800) ",{'name':'b','ranks':1,'priority':1,'group_memory':400},"
                                         "{'name':'d','ranks':1,'priority':1,'group_memory':50}"),
                 "d");
}

static void overtakes_by_limits(void **state) {
        /* a runs on 6 of 8 cores for 100 s more; b wants all; c ends in time, d does not, e has no
         * limit, f finds no core left */
        static const char *const text =
                SNAPSHOT("{'name':'a','ranks':6,'priority':1,'placed':[{'node':'n1','ranks':4},{'node':'n2','ranks':2}]}," WAITS(
                        "b", 8, 50) "," WAITS("c", 2, 100) "," WAITS("d", 1,
                                                                     101) ","
                                                                          "{'name':'e','ranks':1,'priority':1}," WAITS("f", 1, 5));
        struct round_job jobs[6] = { { NOT_MOVING, .left_usec = 100 * SECOND },
                                     { NOT_MOVING },
                                     { NOT_MOVING },
                                     { NOT_MOVING },
                                     { NOT_MOVING },
                                     { NOT_MOVING } };
        struct fixture f;

        (void) state;
        run(&f, text, jobs, ROUND_BACKFILL_LIMITS);
        starts(&f, "c");
        assert_true(f.result->jobs[5].waits && f.result->jobs[1].lost);
        expects(&f, 1, 100 * SECOND);
        finish(&f);
        run(&f, text, jobs, 0);
        starts(&f, "");
        expects(&f, 1, 100 * SECOND);
        finish(&f);
        run(&f, text, jobs, 1); /* those that overtake may hold the cores for ever */
        starts(&f, "c");
        expects(&f, 1, 0);
        finish(&f);
        jobs[0].left_usec = 0; /* nobody knows when b can start */
        run(&f, text, jobs, ROUND_BACKFILL_LIMITS);
        starts(&f, "");
        expects(&f, 1, 0);
        finish(&f);
}

/* A start is not expected of a job that starts, of one that could not run on the whole cluster, and
 * where one without a limit is in the way. */
static void expects_starts_only_of_the_next(void **state) {
        const struct round_job jobs[3] = { { NOT_MOVING, .left_usec = 100 * SECOND }, { NOT_MOVING }, { NOT_MOVING } };
        struct fixture f;

        (void) state;
        run(&f, SNAPSHOT(RUNS("a", "n1", 4) "," WAITS("b", 4, 50)), jobs, ROUND_BACKFILL_LIMITS);
        starts(&f, "b");
        expects(&f, 1, 0);
        finish(&f);
        run(&f, SNAPSHOT(RUNS("a", "n1", 4) "," WAITS("b", 9, 50) "," WAITS("c", 8, 50)), jobs, ROUND_BACKFILL_LIMITS);
        starts(&f, "");
        expects(&f, 2, 100 * SECOND);
        finish(&f);
        run(&f, SNAPSHOT(RUNS("a", "n1", 4) "," RUNS("x", "n2", 4) "," WAITS("c", 8, 50)), jobs, ROUND_BACKFILL_LIMITS);
        expects(&f, 2, 0);
        finish(&f);
        run(&f, SNAPSHOT(RUNS("a", "n1", 4) "," RUNS("x", "n2", 4) "," WAITS("c", 4, 50)), jobs, ROUND_BACKFILL_LIMITS);
        expects(&f, 2, 100 * SECOND);
        finish(&f);
}

/* When a has ended there are 8 cores, and b needs 6: c and e may run for as long as they like, d is
 * too large for what is left of that, and f ends in time. */
static void overtakes_with_what_is_not_needed(void **state) {
        static const char *const text =
                SNAPSHOT(RUNS("a", "n1", 4) "," WAITS("b", 6, 50) ",{'name':'c','ranks':1,'priority':1}," WAITS(
                        "d", 2, 1000) "," WAITS("e", 1, 1000) "," WAITS("f", 2, 50));

        (void) state;
        overtake(text, "cef");
}

/* When a has ended there are 6 cores, and b needs 4, but together: c might take one of the node
 * that b is to have. */
static void overtakes_nobody_who_needs_a_whole_node(void **state) {
        static const char *const text =
                SNAPSHOT(RUNS("a", "n1", 4) "," RUNS("x", "n2", 2) ",{'name':'b','ranks':4,'group_size':4,'priority':1},"
                                                                   "{'name':'c','ranks':1,'priority':1}," WAITS("d", 1, 50));

        (void) state;
        overtake(text, "d");
}

/* Groups of 2, when a has ended for 4 of them; b takes 2, and its smaller last one may need
 * another. c takes half of one, d two, e one. */
static void counts_places_for_groups(void **state) {
        static const char *const text =
                SNAPSHOT(RUNS("a", "n1", 4) ",{'name':'b','ranks':5,'group_size':2,'priority':1},"
                                            "{'name':'c','ranks':1,'priority':1},{'name':'d','ranks':2,'priority':1},"
                                            "{'name':'e','ranks':2,'group_size':2,'priority':1}");

        (void) state;
        overtake(text, "c");
}

/* A job that could not run on the whole cluster reserves nothing. */
static void hopeless_jobs_hold_up_nobody(void **state) {
        struct fixture f;

        (void) state;
        run(&f, SNAPSHOT(WAITS("a", 9, 1) "," WAITS("b", 8, 1)), NULL, ROUND_BACKFILL_LIMITS);
        starts(&f, "b");
        finish(&f);
}

/* Policies of their own, and more than one that overtakes. */
static void asks_the_policies_of_those_that_overtake(void **state) {
        static const char *const text =
                SNAPSHOT("{'name':'a','ranks':6,'priority':1,'placed':[{'node':'n1','ranks':4},{'node':'n2','ranks':2}]}," WAITS(
                        "b", 8, 50) ",{'name':'c','ranks':1,'priority':1,'policy':'x','time_limit_usec':1000000}," WAITS("d", 1,
                                                                                                                         5));

        (void) state;
        overtake(text, "cd");
}

/* ---- going back ---- */

static void pays_by_the_rule(void **state) {
        (void) state;
        /* R > T_m / (T_d - T_o) */
        assert_true(return_pays(11, 10, 3, 2));
        assert_false(return_pays(10, 10, 3, 2));
        assert_false(return_pays(1e9, 1, 2, 2));
        assert_false(return_pays(1e9, 1, 1, 2));
}

/* 8 ranks share 4 cores, and the other node is back: going there takes 4 x 1 s, and what is left at
 * half speed gains half of it. */
static size_t moves_back(uint64_t left_usec, uint64_t move_usec) {
        static const char *const text =
                SNAPSHOT("{'name':'a','ranks':8,'priority':1,'move_cost':1,'placed':[{'node':'n1','ranks':8}]}");
        const uint64_t moves[] = { move_usec, move_usec, move_usec, move_usec, move_usec, move_usec, move_usec, move_usec };
        struct round_job job = { NOT_MOVING, .left_usec = left_usec, .group_move_usec = moves };
        struct fixture f;
        size_t n;

        run(&f, text, &job, 0);
        n = f.result->n_actions;
        assert_string_equal(f.result->jobs[0].reason,
                            n > 0 ? "" : "stays: its time limit leaves too little for going back, which takes 4.0 s");
        assert_int_equal(f.result->jobs[0].folded, n == 0);
        finish(&f);
        return n;
}

static void goes_back_while_it_pays(void **state) {
        (void) state;
        assert_int_equal(moves_back(9 * SECOND, SECOND), 4);
        assert_int_equal(moves_back(8 * SECOND, SECOND), 0); /* R = 4, T_m / (T_d - T_o) = 4 / (2 - 1) */
        assert_int_equal(moves_back(0, SECOND), 4); /* no limit: for ever */
        assert_int_equal(moves_back(SECOND, 0), 4); /* never measured */
}

/* A node that must be left is left, however short the rest of the job is. */
static void leaves_nevertheless(void **state) {
        static const char *const text =
                "{'version':1,'nodes':[{'name':'n1','cores':0,'penalty':0},{'name':'n2','cores':4,'penalty':0}],"
                "'jobs':[" RUNS("a", "n1", 2) "]}";
        const uint64_t moves[] = { SECOND, SECOND };
        struct round_job job = { NOT_MOVING, .left_usec = 1, .group_move_usec = moves };
        struct fixture f;

        (void) state;
        run(&f, text, &job, 0);
        assert_int_equal(f.result->n_actions, 2);
        finish(&f);
}

static void costs_of_moves(void **state) {
        (void) state;
        assert_int_equal(move_cost(0, 600 * SECOND), MOVE_COST_BASE);
        assert_int_equal(move_cost(SECOND, 600 * SECOND), MOVE_COST_BASE + 10);
        assert_int_equal(move_cost(SECOND, 60 * SECOND), MOVE_COST_BASE + 100);
        assert_int_equal(move_cost(SECOND, 6000 * SECOND), MOVE_COST_BASE + 1);
        assert_true(move_cost(UINT64_MAX, 0) < INT64_C(1) << 31);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(reserves),
                cmocka_unit_test(reserves_whole_groups),
                cmocka_unit_test(reserves_memory),
                cmocka_unit_test(overtakes_who_waits_for_memory),
                cmocka_unit_test(overtakes_by_limits),
                cmocka_unit_test(expects_starts_only_of_the_next),
                cmocka_unit_test(overtakes_with_what_is_not_needed),
                cmocka_unit_test(overtakes_nobody_who_needs_a_whole_node),
                cmocka_unit_test(counts_places_for_groups),
                cmocka_unit_test(hopeless_jobs_hold_up_nobody),
                cmocka_unit_test(asks_the_policies_of_those_that_overtake),
                cmocka_unit_test(pays_by_the_rule),
                cmocka_unit_test(goes_back_while_it_pays),
                cmocka_unit_test(leaves_nevertheless),
                cmocka_unit_test(costs_of_moves),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
