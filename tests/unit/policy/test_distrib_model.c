/* distrib against the model that the thesis gives (policies/distrib.mod), solved by GLPK. */
#include <glpk.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/util.h"
#include "placement/cost.h"
#include "tests/unit/sched/sched_test.h"

static struct snapshot *draw_instance(struct dice *dice) {
        struct snapshot *snapshot = snapshot_create();
        uint32_t nodes = 2 + dice_roll(dice, 3), jobs = 2 + dice_roll(dice, 3), space = 0;
        bool equal = dice_roll(dice, 2);
        char name[16];

        for (uint32_t s = 0; s < nodes; s++) {
                uint32_t cores = 1 + dice_roll(dice, 16);

                (void) snprintf(name, sizeof(name), "n%" PRIu32, s);
                snapshot_add_node(snapshot, name, cores)->penalty = equal ? 1 : 1 + dice_roll(dice, 10);
                space += cores;
        }
        for (uint32_t j = 0; j < jobs && space > 0; j++) {
                uint32_t ranks = 1 + dice_roll(dice, space < 20 ? space : 20);

                (void) snprintf(name, sizeof(name), "j%" PRIu32, j);
                snapshot_add_job(snapshot, name, ranks, 1)->priority = 1 + dice_roll(dice, 10);
                space -= ranks;
        }
        return snapshot;
}

static void write_data(const struct rm_snapshot *snapshot, const char *path) {
        FILE *file = fopen(path, "w");

        assert_non_null(file);
        (void) fprintf(file, "data;\nparam K := %" PRId64 ";\nparam: NODES: c r :=", snapshot->params.distribution_weight);
        for (uint32_t s = 0; s < snapshot->n_nodes; s++)
                (void) fprintf(file, "\n%s %" PRIu32 " %" PRId64, snapshot->nodes[s].name, snapshot->nodes[s].cores,
                               snapshot->nodes[s].penalty);
        (void) fprintf(file, ";\nparam: JOBS: n p :=");
        for (uint32_t j = 0; j < snapshot->n_jobs; j++)
                (void) fprintf(file, "\n%s %" PRIu32 " %" PRId64, snapshot->jobs[j].name, snapshot->jobs[j].ranks,
                               snapshot->jobs[j].priority);
        (void) fprintf(file, ";\nend;\n");
        assert_int_equal(fclose(file), 0);
}

static int64_t solve_model(const char *model, const struct rm_snapshot *snapshot) {
        char path[] = "/tmp/rmd-model-XXXXXX";
        int fd = mkstemp(path);
        glp_tran *translator = glp_mpl_alloc_wksp();
        glp_prob *problem = glp_create_prob();
        glp_iocp options;
        double cost;

        assert_true(fd >= 0);
        (void) close(fd);
        write_data(snapshot, path);
        (void) glp_term_out(GLP_OFF);
        assert_int_equal(glp_mpl_read_model(translator, model, 1), 0);
        assert_int_equal(glp_mpl_read_data(translator, path), 0);
        assert_int_equal(glp_mpl_generate(translator, NULL), 0);
        glp_mpl_build_prob(translator, problem);
        glp_init_iocp(&options);
        options.presolve = GLP_ON;
        options.msg_lev = GLP_MSG_OFF;
        assert_int_equal(glp_intopt(problem, &options), 0);
        assert_int_equal(glp_mip_status(problem), GLP_OPT);
        cost = glp_mip_obj_val(problem);
        glp_delete_prob(problem);
        glp_mpl_free_wksp(translator);
        (void) glp_free_env();
        (void) unlink(path);
        return llround(cost);
}

static void same_as_the_model(void **state) {
        const char *model = getenv("TEST_MODEL");
        struct dice dice = { 11 };
        struct test_policy policy;

        (void) state;
        assert_non_null(model);
        test_policy_load(&policy, "distrib");
        for (int i = 0; i < 60; i++) {
                cleanup_snapshot struct snapshot *snapshot = draw_instance(&dice);
                cleanup_plan struct rm_plan *plan = NULL;
                int64_t cost;

                assert_int_equal(test_policy_place(&policy, snapshot_view(snapshot), &plan), 0);
                assert_int_equal(cost_plan(snapshot_view(snapshot), plan, &cost), 0);
                assert_int_equal(plan->proven, 1);
                assert_int_equal(plan->bound, cost);
                assert_int_equal(cost, solve_model(model, snapshot_view(snapshot)));
        }
        test_policy_unload(&policy);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(same_as_the_model) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
