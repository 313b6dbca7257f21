/* The effects of measured steps: which jobs go back, and whose cores are shared. */
#include <math.h>
#include <string.h>

#include "common/util.h"
#include "daemon/sched/round.h"
#include "daemon/sched/steps.h"
#include "tests/unit/sched/sched_test.h"

#define SECOND UINT64_C(1000000)
#define NOT_MOVING .head_node = 0, .head_moving_to = RM_NO_NODE
#define ABOUT(value, expected) assert_true(fabs((value) - (expected)) < 1e-6 * (expected))

/* ---- what a step takes ---- */

static void times_as_measured(void **state) {
        const struct steps both = { .own_rate = 100, .shared_rate = 40, .shared_by = 2 };
        const struct steps own = { .own_rate = 100 }, shared = { .shared_rate = 40, .shared_by = 2 };
        const struct steps none = { .left = 5, .goal_min = 1 };
        double here = -1, there = -1;

        (void) state;
        assert_true(steps_times(&both, 2, 1, &here, &there));
        ABOUT(here, 25000);
        ABOUT(there, 10000);
        assert_true(steps_times(&both, 2, 1.5, &here, &there)); /* between the two */
        ABOUT(there, 17500);
        assert_true(steps_times(&both, 4, 1, &here, &there)); /* that was never measured: in proportion */
        ABOUT(here, 40000);
        ABOUT(there, 10000);
        assert_true(steps_times(&own, 2, 1, &here, &there));
        ABOUT(here, 20000);
        ABOUT(there, 10000);
        assert_true(steps_times(&shared, 2, 1, &here, &there));
        ABOUT(here, 25000);
        ABOUT(there, 12500);
        here = there = -1;
        assert_false(steps_times(&none, 2, 1, &here, &there));
        assert_true(here < 0 && there < 0);
        assert_false(steps_known(&none));
        assert_true(steps_known(&own) && steps_known(&shared));
}

static bool first(struct steps steps, double *ret_bears) {
        return steps_above_goal(&steps, ret_bears);
}

static void turns_by_goals(void **state) {
        double bears;

        (void) state;
        assert_false(first((struct steps) { .own_rate = 100 }, &bears));
        assert_false(first((struct steps) { .goal_min = 100 }, &bears));
        assert_false(first((struct steps) { .own_rate = 100, .goal_min = 101 }, &bears));
        assert_false(first((struct steps) { .own_rate = 100, .goal_max = 101 }, &bears));
        assert_true(first((struct steps) { .own_rate = 100, .goal_min = 25, .goal_max = 50 }, &bears));
        ABOUT(bears, 4);
        assert_true(first((struct steps) { .own_rate = 100, .goal_max = 50 }, &bears));
        ABOUT(bears, 2);
        /* By sharing it loses more than in proportion: 10 ms, 30 ms, and 20 ms are wanted. */
        assert_true(first((struct steps) { .own_rate = 100, .shared_rate = 100.0 / 3, .shared_by = 2, .goal_min = 50 }, &bears));
        ABOUT(bears, 1.5);
        /* The job loses nothing. */
        assert_true(first((struct steps) { .own_rate = 100, .shared_rate = 100, .shared_by = 2, .goal_min = 50 }, &bears));
        assert_true(bears > 1000);
        /* The job was never seen on cores of its own: it bears what it has, could be fast enough,
         * or never. */
        assert_true(first((struct steps) { .shared_rate = 60, .shared_by = 2, .goal_min = 50 }, &bears));
        ABOUT(bears, 2);
        assert_false(first((struct steps) { .shared_rate = 30, .shared_by = 2, .goal_min = 50 }, &bears));
        assert_false(first((struct steps) { .shared_rate = 20, .shared_by = 2, .goal_min = 50 }, &bears));
}

/* ---- going back ---- */

struct fixture {
        struct snapshot *snapshot;
        struct round_result *result;
};

static void finish(struct fixture *f) {
        round_result_destroy(f->result);
        snapshot_destroy(f->snapshot);
}

static void run(struct fixture *f, const char *text, const struct round_job *jobs) {
        f->snapshot = test_snapshot(text);
        f->result = test_round("greedy", snapshot_view(f->snapshot), jobs);
}

#define GOING_BACK                                                                                                                 \
        "{'version':1,'nodes':[{'name':'n1','cores':4,'penalty':1},{'name':'n2','cores':4,'penalty':1}],'jobs':["                  \
        "{'name':'a','ranks':8,'priority':1,'move_cost':1,'placed':[{'node':'n1','ranks':8}]}]}"

static const uint64_t one_second[] = { SECOND, SECOND, SECOND, SECOND, SECOND, SECOND, SECOND, SECOND };

/* 8 ranks share 4 cores, and the other node is back: going there takes 4 x 1 s. Returns the number
 * of moves. */
static size_t goes_back(struct fixture *f, struct steps steps, uint64_t left_usec) {
        const struct round_job job = { NOT_MOVING, .left_usec = left_usec, .group_move_usec = one_second, .steps = steps };

        run(f, GOING_BACK, &job);
        return f->result->n_actions;
}

static void stays(struct steps steps, uint64_t left_usec, const char *measured) {
        struct fixture f;

        assert_int_equal(goes_back(&f, steps, left_usec), 0);
        assert_true(f.result->jobs[0].folded);
        assert_string_equal(f.result->jobs[0].reason, "stays: by its steps it gains too little by going back, which takes 4.0 s");
        assert_string_equal(f.result->jobs[0].measured, measured);
        finish(&f);
}

static void goes(struct steps steps, uint64_t left_usec, const char *why) {
        struct fixture f;

        assert_int_equal(goes_back(&f, steps, left_usec), 4);
        assert_string_equal(f.result->jobs[0].reason, "");
        assert_string_equal(f.result->actions[0].reason, why);
        finish(&f);
}

static void goes_back_by_steps(void **state) {
        struct steps steps = { .own_rate = 100, .shared_rate = 50, .shared_by = 2 };

        (void) state;
        /* R > T_m / (T_d - T_o): 4 s / 10 ms */
        steps.left = 401;
        goes(steps, 0, "node 'n1' has 8 ranks on 4 cores; a step takes 20 ms here and 10 ms there, 401 are left");
        steps.left = 400;
        stays(steps, 0, "a step takes 20 ms here and 10 ms there, 400 are left");
        /* No faster there. */
        steps.left = 1000000000;
        steps.shared_rate = 100;
        stays(steps, 0, "a step takes 10 ms here and 10 ms there, 1000000000 are left");
        steps.left = 0;
        stays(steps, 0, "a step takes 10 ms here and 10 ms there, and no end is known");
        steps.shared_rate = 96; /* not for certain */
        stays(steps, 0, "a step takes 10.4 ms here and 10 ms there, and no end is known");
        /* Faster, and nobody knows for how long. */
        steps.shared_rate = 80;
        goes(steps, 0, "node 'n1' has 8 ranks on 4 cores; a step takes 12.5 ms here and 10 ms there, and no end is known");
        /* The limit leaves time for less: 8 s at 20 ms, and 400 are needed. */
        steps.shared_rate = 50;
        steps.left = 1000000;
        stays(steps, 8 * SECOND, "a step takes 20 ms here and 10 ms there, 400 are left");
        goes(steps, 9 * SECOND, "node 'n1' has 8 ranks on 4 cores; a step takes 20 ms here and 10 ms there, 450 are left");
}

/* The case is after a change of leaders: judged by time, as programs that count no steps. */
static void estimates_without_rates(void **state) {
        const struct steps unknown = { .left = 1000, .goal_min = 1 };
        struct fixture f;

        (void) state;
        goes(unknown, 0, "node 'n1' has 8 ranks on 4 cores");
        assert_int_equal(goes_back(&f, unknown, 8 * SECOND), 0);
        assert_string_equal(f.result->jobs[0].reason, "stays: its time limit leaves too little for going back, which takes 4.0 s");
        assert_string_equal(f.result->jobs[0].measured, "");
        finish(&f);
}

/* The job loses nothing by sharing, but those with which it shares do: 4 s are worth it. */
static void leaves_for_others(void **state) {
        static const char *const text =
                "{'version':1,'nodes':[{'name':'n1','cores':4,'penalty':1},{'name':'n2','cores':4,'penalty':1}],'jobs':["
                "{'name':'a','ranks':4,'priority':1,'move_cost':1,'placed':[{'node':'n1','ranks':4}]},"
                "{'name':'b','ranks':4,'priority':1,'move_cost':1,'placed':[{'node':'n1','ranks':4}]}]}";
        struct round_job jobs[] = { { NOT_MOVING }, { NOT_MOVING, .group_move_usec = one_second } };
        struct fixture f;

        (void) state;
        jobs[1].steps = (struct steps) { .own_rate = 100, .shared_rate = 100, .shared_by = 2, .left = 1000 };
        run(&f, text, jobs);
        assert_int_equal(f.result->n_actions, 4);
        assert_int_equal(f.result->actions[0].job, 1);
        finish(&f);
        jobs[1].steps.left = 400;
        run(&f, text, jobs);
        assert_int_equal(f.result->n_actions, 0);
        finish(&f);
}

/* ---- nodes that were faster ---- */

/* Two groups of two ranks, on n1 and the slow n3; they had to leave n2, which is back. */
#define LEFT(n2)                                                                                                                   \
        "{'version':1,'nodes':[{'name':'n1','cores':4,'penalty':1},{'name':'n2','penalty':1," n2 "},"                              \
        "{'name':'n3','cores':4,'penalty':1}],'jobs':["                                                                            \
        "{'name':'a','ranks':4,'group_size':2,'priority':1,'move_cost':1,'placed':[{'node':'n1','ranks':2},{'node':'n3','ranks':"  \
        "2}]}"

static const int32_t before[] = { 0, 1 };
#define ONE_HERE "'cores':4"

static size_t goes_to_faster(struct fixture *f, const char *text, struct steps_place place, struct round_job job) {
        job.steps.n_places = 1;
        job.steps.places = &place;
        job.group_move_usec = job.group_move_usec ? job.group_move_usec : one_second;
        run(f, text, (const struct round_job[]) { job, { NOT_MOVING } });
        return f->result->n_actions;
}

static size_t moves(const struct fixture *f) {
        size_t n = 0;

        for (size_t i = 0; i < f->result->n_actions; i++)
                n += f->result->actions[i].kind == ROUND_MOVE;
        return n;
}

/* The moves alone, of a job that does 50 steps a second and did `rate` where it had to leave. */
static size_t returns(const char *text, double rate, bool had_to, struct round_job job) {
        struct fixture f;
        size_t n;

        job.steps.here_rate = job.steps.own_rate = 50;
        (void) goes_to_faster(&f, text, (struct steps_place) { .group_node = before, .rate = rate, .left = had_to }, job);
        n = moves(&f);
        finish(&f);
        return n;
}

static void goes_back_to_faster_nodes(void **state) {
        static const char *const text = LEFT(ONE_HERE) "]}";
        const struct round_job unknown_end = { NOT_MOVING }, short_end = { NOT_MOVING, .steps = { .left = 100 } };
        const struct steps_place place = { .group_node = before, .rate = 100, .left = true };
        struct fixture f;

        (void) state;
        /* R > T_m / (T_d - T_o): 1 s / 10 ms */
        assert_int_equal(goes_to_faster(&f, text, place,
                                        (struct round_job) { NOT_MOVING,
                                                             .steps = { .own_rate = 50, .here_rate = 50, .left = 101 } }),
                         1);
        assert_int_equal(f.result->actions[0].kind, ROUND_MOVE);
        assert_int_equal(f.result->actions[0].group, 1);
        assert_int_equal(f.result->actions[0].to, 1);
        assert_string_equal(f.result->actions[0].reason,
                            "a better place than 'n3'; a step takes 20 ms here and 10 ms there, 101 are left");
        finish(&f);
        assert_int_equal(goes_to_faster(&f, text, place,
                                        (struct round_job) { NOT_MOVING,
                                                             .steps = { .own_rate = 50, .here_rate = 50, .left = 100 } }),
                         0);
        assert_string_equal(f.result->jobs[0].reason, "stays: by its steps it gains too little by going back, which takes 1.0 s");
        finish(&f);
        assert_int_equal(returns(text, 100, true, unknown_end), 1);
        assert_int_equal(returns(text, 100, true, short_end), 0);
        assert_int_equal(returns(text, 100, true, (struct round_job) { NOT_MOVING, .left_usec = SECOND }), 0);
        /* The job was sent here, it was no faster there, or a move was never measured. */
        assert_int_equal(returns(text, 100, false, unknown_end), 0);
        assert_int_equal(returns(text, 50, true, unknown_end), 0);
        assert_int_equal(returns(text, 51, true, unknown_end), 0);
        assert_int_equal(returns(text, 100, true, (struct round_job) { NOT_MOVING, .group_move_usec = (uint64_t[]) { 0, 0 } }), 0);
        /* The job does not go while it may not, or is not measured where it is. */
        assert_int_equal(returns(text, 100, true, (struct round_job) { NOT_MOVING, .pinned = true }), 0);
        assert_int_equal(goes_to_faster(&f, text, place, (struct round_job) { NOT_MOVING, .steps = { .own_rate = 50 } }), 0);
        finish(&f);
}

static void goes_back_where_there_is_room(void **state) {
        static const int32_t spare[] = { 1 };
        static const bool warned[] = { false, true, false };
        const struct round_job job = { NOT_MOVING };
        const struct steps_place place = { .group_node = before, .rate = 100, .left = true };
        const struct steps steps = { .own_rate = 50, .here_rate = 50, .n_places = 1, .places = &place };
        const struct round_job others[] = { { NOT_MOVING, .group_move_usec = one_second, .steps = steps },
                                            { NOT_MOVING, .spares = 1, .n_spare_nodes = 1, .spare_nodes = spare } };
        struct fixture f;

        (void) state;
        assert_int_equal(returns(LEFT("'cores':1") "]}", 100, true, job), 0);
        assert_int_equal(returns(LEFT("'cores':2") "]}", 100, true, job), 1);
        assert_int_equal(returns(LEFT("'cores':4,'state':'DRAINED'") "]}", 100, true, job), 0);
        assert_int_equal(returns(LEFT("'cores':4,'memory':1000,'memory_free':10") "]}", 100, true, job), 1);
        assert_int_equal(returns(LEFT(ONE_HERE) "]}", 100, true, (struct round_job) { NOT_MOVING, .kept_off = warned }), 0);
        /* Another job is there, and leaves one core or two. */
        assert_int_equal(returns(LEFT(ONE_HERE) ",{'name':'b','ranks':3,'priority':1,'placed':[{'node':'n2','ranks':3}]}]}", 100,
                                 true, job),
                         0);
        assert_int_equal(returns(LEFT(ONE_HERE) ",{'name':'b','ranks':2,'priority':1,'placed':[{'node':'n2','ranks':2}]}]}", 100,
                                 true, job),
                         1);
        /* The node is kept free for the job itself, or for another one. */
        assert_int_equal(returns(LEFT(ONE_HERE) "]}", 100, true,
                                 (struct round_job) { NOT_MOVING, .spares = 1, .n_spare_nodes = 1, .spare_nodes = spare }),
                         1);
        run(&f, LEFT(ONE_HERE) ",{'name':'b','ranks':1,'priority':1,'placed':[{'node':'n1','ranks':1}]}]}", others);
        assert_int_equal(moves(&f), 0);
        finish(&f);
}

/* ---- who shares first ---- */

/* a is on n1, b on n2, and c must leave n3. */
#define DRAINED                                                                                                                    \
        "{'version':1,'nodes':[{'name':'n1','cores':2,'penalty':1},{'name':'n2','cores':2,'penalty':1},"                           \
        "{'name':'n3','cores':0,'penalty':1}],'jobs':["                                                                            \
        "{'name':'a','ranks':2,'priority':1,'move_cost':5,'placed':[{'node':'n1','ranks':2}]},"                                    \
        "{'name':'b','ranks':2,'priority':1,'move_cost':5,'placed':[{'node':'n2','ranks':2}]},"                                    \
        "{'name':'c','ranks':2,'priority':1,'move_cost':5,'placed':[{'node':'n3','ranks':2}]}]}"

/* Where the two ranks of c go. */
static void sends(const struct steps steps[3], int32_t first, int32_t second) {
        struct round_job jobs[3];
        struct fixture f;

        for (size_t j = 0; j < 3; j++)
                jobs[j] = (struct round_job) { NOT_MOVING, .steps = steps[j] };
        run(&f, DRAINED, jobs);
        assert_int_equal(f.result->n_actions, 2);
        for (size_t i = 0; i < 2; i++)
                assert_int_equal(f.result->actions[i].job, 2);
        assert_int_equal(f.result->actions[0].to, first);
        assert_int_equal(f.result->actions[1].to, second);
        for (size_t j = 0; j < 2; j++)
                assert_int_equal(f.result->jobs[j].folded, first == (int32_t) j || second == (int32_t) j);
        finish(&f);
}

static const struct steps silent = { 0 };
static const struct steps fast = { .own_rate = 100, .goal_min = 40 };   /* bears 2.5 ranks to a core */
static const struct steps little = { .own_rate = 100, .goal_min = 80 }; /* 1.25 */
static const struct steps slow = { .own_rate = 100, .goal_min = 120 };

static void folds_who_is_above_its_goal(void **state) {
        (void) state;
        sends((struct steps[]) { silent, silent, silent }, 0, 1);
        sends((struct steps[]) { fast, silent, silent }, 0, 0);
        sends((struct steps[]) { silent, fast, silent }, 1, 1);
        /* A job is not spared for wanting more. */
        sends((struct steps[]) { slow, silent, silent }, 0, 1);
        sends((struct steps[]) { silent, slow, silent }, 0, 1);
        sends((struct steps[]) { slow, fast, fast }, 1, 1);
        /* The job bears one as far as its goal allows. */
        sends((struct steps[]) { little, silent, silent }, 0, 1);
        /* Equals share alike. */
        sends((struct steps[]) { fast, fast, silent }, 0, 1);
        sends((struct steps[]) { slow, slow, silent }, 0, 1);
        sends((struct steps[]) { fast, silent, slow }, 0, 0);
}

/* A placement stays while the state is the same, and also for jobs whose measurements differ a
 * little. */
static void rests_afterwards(void **state) {
        static const char *const text =
                "{'version':1,'nodes':[{'name':'n1','cores':2,'penalty':1},{'name':'n2','cores':2,'penalty':1}],'jobs':["
                "{'name':'a','ranks':2,'priority':1,'move_cost':5,'placed':[{'node':'n1','ranks':2}]},"
                "{'name':'b','ranks':2,'priority':1,'move_cost':5,'placed':[{'node':'n2','ranks':2}]},"
                "{'name':'c','ranks':2,'priority':1,'move_cost':5,'placed':[{'node':'n1','ranks':2}]}]}";
        struct round_job jobs[3] = { { NOT_MOVING, .steps = { .own_rate = 100, .goal_min = 52 } }, { NOT_MOVING }, { NOT_MOVING } };
        struct fixture f;

        (void) state;
        run(&f, text, jobs);
        assert_int_equal(f.result->n_actions, 0);
        assert_string_equal(f.result->jobs[0].measured, "folds first: 100 steps a second on its own cores, 52 wanted");
        assert_string_equal(f.result->jobs[0].reason, "");
        assert_string_equal(f.result->jobs[1].measured, "");
        finish(&f);
        /* The job is seen to bear no more than 1.5: one goes. */
        jobs[0].steps = (struct steps) { .own_rate = 100, .shared_rate = 100.0 / 3, .shared_by = 2, .goal_min = 50 };
        run(&f, text, jobs);
        assert_int_equal(f.result->n_actions, 1);
        assert_int_equal(f.result->actions[0].to, 1);
        finish(&f);
        /* So it is when nobody knows its rate any more. */
        run(&f, text, NULL);
        assert_int_equal(f.result->n_actions, 1);
        finish(&f);
}

/* With a core for each nobody folds, whatever they want. */
static void leaves_alone_who_has_cores(void **state) {
        static const char *const text =
                "{'version':1,'nodes':[{'name':'n1','cores':2,'penalty':1},{'name':'n2','cores':2,'penalty':1}],'jobs':["
                "{'name':'a','ranks':2,'priority':1,'move_cost':5,'placed':[{'node':'n1','ranks':2}]},"
                "{'name':'b','ranks':2,'priority':1,'move_cost':5,'placed':[{'node':'n2','ranks':2}]}]}";
        const struct round_job jobs[] = { { NOT_MOVING, .steps = fast }, { NOT_MOVING, .steps = slow } };
        struct fixture f;

        (void) state;
        run(&f, text, jobs);
        assert_int_equal(f.result->n_actions, 0);
        assert_string_equal(f.result->jobs[1].measured, "");
        finish(&f);
}

/* However much one bears, those who come to it share with it: no node gets more than one rank to a
 * core above what all would have alike. */
static void spreads_many(void **state) {
        static const char *const text =
                "{'version':1,'nodes':[{'name':'n1','cores':2,'penalty':1},{'name':'n2','cores':2,'penalty':1},"
                "{'name':'n3','cores':0,'penalty':1}],'jobs':["
                "{'name':'a','ranks':2,'priority':1,'placed':[{'node':'n1','ranks':2}]},"
                "{'name':'b','ranks':2,'priority':1,'placed':[{'node':'n2','ranks':2}]},"
                "{'name':'c','ranks':16,'priority':1,'placed':[{'node':'n3','ranks':16}]}]}";
        struct round_job jobs[3] = { { NOT_MOVING, .steps = { .own_rate = 1000, .goal_min = 1 } }, { NOT_MOVING }, { NOT_MOVING } };
        uint32_t to[2] = { 0 };
        struct fixture f;

        (void) state;
        run(&f, text, jobs); /* 20 ranks on 4 cores: 5 to a core, and at most 6 */
        assert_int_equal(f.result->n_actions, 16);
        for (size_t i = 0; i < 16; i++)
                to[f.result->actions[i].to]++;
        assert_int_equal(to[0], 10);
        finish(&f);
        jobs[0].steps.goal_min = 200; /* it bears 5 */
        run(&f, text, jobs);
        to[0] = 0;
        for (size_t i = 0; i < 16; i++)
                to[f.result->actions[i].to]++;
        assert_int_equal(to[0], 8);
        finish(&f);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(times_as_measured),
                cmocka_unit_test(turns_by_goals),
                cmocka_unit_test(goes_back_by_steps),
                cmocka_unit_test(estimates_without_rates),
                cmocka_unit_test(leaves_for_others),
                cmocka_unit_test(folds_who_is_above_its_goal),
                cmocka_unit_test(rests_afterwards),
                cmocka_unit_test(leaves_alone_who_has_cores),
                cmocka_unit_test(spreads_many),
                cmocka_unit_test(goes_back_to_faster_nodes),
                cmocka_unit_test(goes_back_where_there_is_room),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
