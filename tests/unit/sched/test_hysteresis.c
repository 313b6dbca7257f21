/* Which moves of a plan stay in it: those that pay in the objective, and those that traffic pays
 * for. */
#include "common/util.h"
#include "daemon/sched/hysteresis.h"
#include "daemon/sched/round.h"
#include "tests/unit/sched/sched_test.h"

#define NODES(cores) "'nodes':[{'name':'n1','cores':" #cores ",'penalty':1},{'name':'n2','cores':" #cores ",'penalty':5}]"
#define ROOMY(cores, budget, jobs)                                                                                                 \
        "{'version':1,'params':{'distribution_weight':0,'move_budget':" #budget "}," NODES(cores) ",'jobs':[" jobs "]}"
#define SNAPSHOT(budget, jobs) ROOMY(4, budget, jobs)
#define PRICED(bytes_per_cost, jobs)                                                                                               \
        "{'version':1,'params':{'distribution_weight':0,'move_budget':4,'bytes_per_cost':" #bytes_per_cost                         \
        "}," NODES(4) ",'jobs':[" jobs "]}"
/* Rank 2 talks to rank 3, and is with the others. */
#define ONE(cost, bytes)                                                                                                           \
        "{'name':'a','ranks':4,'priority':1,'move_cost':" #cost ",'placed':[{'node':'n1','ranks':3},{'node':'n2','ranks':1}],"     \
        "'traffic':[[2,3," #bytes "]]}"
/* Four pairs, each on two nodes, which are full. */
#define FOUR_PAIRS(name, cost, bytes)                                                                                              \
        "{'name':'" name "','ranks':8,'priority':1,'move_cost':" #cost ",'placed':[{'node':'n1','ranks':4},{'node':'n2',"          \
        "'ranks':4}],'traffic':[[0,4," #bytes "],[1,5," #bytes "],[2,6," #bytes "],[3,7," #bytes "]]}"
/* A pair on two nodes that the other job fills. */
#define TWO_JOBS(cost, bytes)                                                                                                      \
        "{'name':'a','ranks':2,'priority':1,'move_cost':" #cost ",'placed':[{'node':'n1','ranks':1},{'node':'n2','ranks':1}],"     \
        "'traffic':[[0,1," #bytes "]]},"                                                                                           \
        "{'name':'b','ranks':6,'priority':1,'move_cost':" #cost ",'placed':[{'node':'n1','ranks':3},{'node':'n2','ranks':3}]}"

/* How many groups still move after settling a plan that has all groups, job after job, on the nodes
 * `to`. */
static uint32_t moves_left(const char *text, const int32_t *to) {
        cleanup_snapshot struct snapshot *snapshot = test_snapshot(text);
        const struct rm_snapshot *view = snapshot_view(snapshot);
        cleanup_plan struct rm_plan *plan = plan_create(view);
        cleanup_free uint32_t *back = xcalloc(view->n_jobs, sizeof(*back));
        struct rm_error err = { 0 };
        uint32_t moves = 0, planned = 0;

        for (uint32_t j = 0; j < view->n_jobs; j++) {
                plan->jobs[j].decision = RM_PLACE;
                for (uint32_t g = 0; g < view->jobs[j].n_groups; g++) {
                        planned += *to != view->jobs[j].groups[g].node;
                        plan->jobs[j].group_node[g] = *to++;
                }
        }
        hysteresis_apply(view, plan, back);
        if (plan_validate(view, plan, &err) < 0)
                fail_msg("%s", error_text(&err));
        for (uint32_t j = 0; j < view->n_jobs; j++) {
                planned -= back[j];
                for (uint32_t g = 0; g < view->jobs[j].n_groups; g++)
                        moves += plan->jobs[j].group_node[g] != view->jobs[j].groups[g].node;
        }
        assert_int_equal(planned, moves);
        return moves;
}

/* The objective would rather have it where it is. A byte that goes to another node makes two
 * hops. */
static void one_group(void **state) {
        static const int32_t to[] = { 0, 0, 1, 1 };

        (void) state;
        assert_int_equal(moves_left(SNAPSHOT(4, ONE(5, 100)), to), 1);
        assert_int_equal(moves_left(SNAPSHOT(0, ONE(5, 100)), to), 0);
        assert_int_equal(moves_left(SNAPSHOT(4, ONE(199, 100)), to), 1);
        assert_int_equal(moves_left(SNAPSHOT(4, ONE(200, 100)), to), 0);
        assert_int_equal(moves_left(SNAPSHOT(4, ONE(0, 0)), to), 0);
}

/* How many bytes over a hop weigh as much as a unit of cost is a parameter. */
static void bytes_per_cost(void **state) {
        static const int32_t to[] = { 0, 0, 1, 1 };

        (void) state;
        assert_int_equal(moves_left(PRICED(39, ONE(5, 100)), to), 1);
        assert_int_equal(moves_left(PRICED(40, ONE(5, 100)), to), 0);
}

/* A move that traffic does not ask for is taken back, beside one that stays. */
static void each_group_by_itself(void **state) {
        static const int32_t to[] = { 0, 1, 1, 1 };

        (void) state;
        assert_int_equal(moves_left(SNAPSHOT(4, ONE(5, 100)), to), 1);
}

static void exchanges_in_a_job(void **state) {
        static const int32_t to[] = { 0, 0, 1, 1, 0, 0, 1, 1 };

        (void) state;
        assert_int_equal(moves_left(SNAPSHOT(4, FOUR_PAIRS("a", 5, 100)), to), 4);
        assert_int_equal(moves_left(SNAPSHOT(0, FOUR_PAIRS("a", 5, 100)), to), 0);
        assert_int_equal(moves_left(SNAPSHOT(4, FOUR_PAIRS("a", 1000, 100)), to), 0);
}

/* The gain of one job by its penalty is the loss of the other. */
static void exchanges_of_jobs(void **state) {
        static const int32_t to[] = { 0, 0, 1, 0, 0, 1, 1, 1 };

        (void) state;
        assert_int_equal(moves_left(SNAPSHOT(8, TWO_JOBS(5, 100)), to), 2);
        assert_int_equal(moves_left(SNAPSHOT(0, TWO_JOBS(5, 100)), to), 0);
        assert_int_equal(moves_left(SNAPSHOT(8, TWO_JOBS(100, 100)), to), 0);
}

/* Moves that treematch makes for the sake of traffic are made, when they have a budget. */
static void rounds(void **state) {
        static const uint32_t budgets[] = { 0, 8 }, moves[] = { 0, 4 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(budgets); i++) {
                cleanup_snapshot struct snapshot *snapshot = test_snapshot(ROOMY(6, 0, FOUR_PAIRS("a", 5, 100)));
                struct round_result *result;

                snapshot_params(snapshot)->move_budget = budgets[i];
                result = test_round("treematch", snapshot_view(snapshot), NULL);
                assert_int_equal(result->n_actions, moves[i]);
                for (size_t k = 0; k < result->n_actions; k++) {
                        assert_int_equal(result->actions[k].kind, ROUND_MOVE);
                        assert_int_equal(result->actions[k].cause, ROUND_CHOICE);
                }
                round_result_destroy(result);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(one_group),          cmocka_unit_test(bytes_per_cost),    cmocka_unit_test(each_group_by_itself),
                cmocka_unit_test(exchanges_in_a_job), cmocka_unit_test(exchanges_of_jobs), cmocka_unit_test(rounds),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
