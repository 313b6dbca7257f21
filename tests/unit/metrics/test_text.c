/* The texts that are scraped: their form, how many series they have, and that nothing of users and
 * jobs is in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/util.h"
#include "daemon/metrics/metrics.h"
#include "tests/unit/state/state_test.h"

#define SECRET "s3cret"
#define NODE_SERIES_MAX 30U
#define CLUSTER_SERIES_MAX 100U

static int set_up(void **state) {
        return world_start(state, 3, 4);
}

/* ---- the writer ---- */

static void test_formats(void **state) {
        assert_int_equal(metrics_format_for(NULL), METRICS_OPEN);
        assert_int_equal(metrics_format_for("*/*"), METRICS_OPEN);
        assert_int_equal(metrics_format_for("text/html"), METRICS_OPEN);
        assert_int_equal(metrics_format_for("text/plain"), METRICS_PLAIN);
        assert_int_equal(metrics_format_for("text/plain;version=0.0.4;q=0.5,*/*;q=0.1"), METRICS_PLAIN);
        assert_int_equal(metrics_format_for("application/openmetrics-text;version=1.0.0,text/plain;q=0.5"), METRICS_OPEN);
}

static char *write_sample(enum metrics_format format) {
        struct openmetrics *om = openmetrics_create(format);
        struct counters counters = { 0 };

        counters_observe(&counters, HISTOGRAM_RECOVERY, 1000000); /* on the bound: below it */
        counters_observe(&counters, HISTOGRAM_RECOVERY, 1000001);
        counters_observe(&counters, HISTOGRAM_RECOVERY, UINT64_C(10000000000));
        openmetrics_family(om, METRIC_COUNTER, "a", NULL, "One.");
        openmetrics_value2(om, "x", "back\\slash \"quote\"\nline", "y", "", 3);
        openmetrics_family(om, METRIC_INFO, "b", NULL, "Two.");
        openmetrics_value(om, "v", "1", 1);
        openmetrics_family(om, METRIC_GAUGE, "c_seconds", "seconds", "Three.");
        openmetrics_value(om, NULL, NULL, 0.25);
        openmetrics_family(om, METRIC_HISTOGRAM, "d_seconds", "seconds", "Four.");
        openmetrics_histogram(om, &counters, HISTOGRAM_RECOVERY);
        return openmetrics_finish(om);
}

static const char histogram_text[] = "d_seconds_bucket{le=\"1.0\"} 1\n"
                                     "d_seconds_bucket{le=\"2.0\"} 2\n"
                                     "d_seconds_bucket{le=\"5.0\"} 2\n"
                                     "d_seconds_bucket{le=\"10.0\"} 2\n"
                                     "d_seconds_bucket{le=\"30.0\"} 2\n"
                                     "d_seconds_bucket{le=\"60.0\"} 2\n"
                                     "d_seconds_bucket{le=\"300.0\"} 2\n"
                                     "d_seconds_bucket{le=\"+Inf\"} 3\n"
                                     "d_seconds_count 3\n"
                                     "d_seconds_sum 10002.000001\n";

static void test_writer(void **state) {
        cleanup_free char *open = write_sample(METRICS_OPEN);
        cleanup_free char *plain = write_sample(METRICS_PLAIN);
        cleanup_free char *want_open =
                xasprintf("# TYPE a counter\n# HELP a One.\n"
                          "a_total{x=\"back\\\\slash \\\"quote\\\"\\nline\",y=\"\"} 3\n"
                          "# TYPE b info\n# HELP b Two.\nb_info{v=\"1\"} 1\n"
                          "# TYPE c_seconds gauge\n# UNIT c_seconds seconds\n# HELP c_seconds Three.\nc_seconds 0.25\n"
                          "# TYPE d_seconds histogram\n# UNIT d_seconds seconds\n# HELP d_seconds Four.\n%s# EOF\n",
                          histogram_text);
        cleanup_free char *want_plain = xasprintf("# TYPE a_total counter\n# HELP a_total One.\n"
                                                  "a_total{x=\"back\\\\slash \\\"quote\\\"\\nline\",y=\"\"} 3\n"
                                                  "# TYPE b_info gauge\n# HELP b_info Two.\nb_info{v=\"1\"} 1\n"
                                                  "# TYPE c_seconds gauge\n# HELP c_seconds Three.\nc_seconds 0.25\n"
                                                  "# TYPE d_seconds histogram\n# HELP d_seconds Four.\n%s",
                                                  histogram_text);

        assert_string_equal(open, want_open);
        assert_string_equal(plain, want_plain);
}

/* ---- the texts ---- */

static uint64_t interval(const void *context, const Rm__Job *job) {
        return job->spec->checkpoint_usec;
}

static char *node_text(const struct metrics *metrics, const struct world *w, const char *version) {
        const struct metrics_own own = { .version = version, .node = "n1", .leads = true };

        return metrics_node_text(metrics, w->indexed, &own, METRICS_OPEN);
}

static char *cluster_text(const struct metrics *metrics, const struct world *w) {
        const struct metrics_cluster cluster = { .log_usec = w->time_usec, .interval_usec = interval };

        return metrics_cluster_text(metrics, w->indexed, &cluster, METRICS_OPEN);
}

static size_t count_series(const char *text) {
        size_t n = 0;

        for (const char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
                n += *line != '#';
        return n;
}

static void expect_line(const char *text, const char *line) {
        cleanup_free char *whole = xasprintf("\n%s\n", line);

        if (!strstr(text, whole))
                fail_msg("no line '%s' in:\n%s", line, text);
}

static void plant(char **field) {
        message_set_string(field, SECRET);
}

/* In everything that a user, an administrator or a sensor writes, and in what is told of it. */
static void plant_secrets(Rm__State *state) {
        for (size_t i = 0; i < state->n_nodes; i++) {
                Rm__Node *node = state->nodes[i];

                plant(&node->topology);
                plant(&node->drain_reason);
                plant(&node->drain_by);
                plant(&node->leaving);
                plant(&node->fence);
                plant(&node->address);
                plant(&node->boot_id);
                for (size_t k = 0; k < node->n_conditions; k++) {
                        plant(&node->conditions[k]->reason);
                        plant(&node->conditions[k]->by);
                        plant(&node->conditions[k]->source);
                }
        }
        for (size_t i = 0; i < state->n_jobs; i++) {
                Rm__Job *job = state->jobs[i];

                plant(&job->reason);
                plant(&job->restart_reason);
                plant(&job->checkpoint_error);
                plant(&job->policy);
                plant(&job->spec->name);
                plant(&job->spec->user);
                plant(&job->spec->cwd);
                plant(&job->spec->policy);
                plant(&job->spec->availability_path);
                plant(&job->spec->submit_node);
                plant(&job->spec->token);
                for (size_t k = 0; k < job->spec->n_argv; k++)
                        plant(&job->spec->argv[k]);
                for (size_t k = 0; k < job->spec->n_env; k++)
                        plant(&job->spec->env[k]);
        }
        for (size_t i = 0; i < state->n_moves; i++) {
                plant(&state->moves[i]->reason);
                plant(&state->moves[i]->error);
                plant(&state->moves[i]->untracked);
                plant(&state->moves[i]->waiting);
        }
        plant(&state->scheduling_warning);
        plant(&state->topology_error);
        plant(&state->topology_path);
        plant(&state->cluster);
}

/* A state with all that the texts depend on: a job that runs and moves, one that waits, a drained
 * node, one that is lost, one with a warning. */
static uint64_t make_busy(struct world *w) {
        static const char *const nodes[] = { "n1", "n2" };
        static const char *const voters[] = { "n1", "n2", "n3" };
        static const uint32_t ranks[] = { 1, 2 };
        uint64_t job = (uint64_t) submit(w, 3);

        start_job(w, job, nodes, ranks, 2);
        assert_int_equal(move_start(w, job, 1, "n3"), 0);
        assert_true(submit(w, 1) > 0);
        assert_int_equal(keep_log(w, voters, 3), 0);
        assert_int_equal(drain(w, "n2", "new memory", false), 0);
        assert_int_equal(condition(w, "n1", "fan", RM__CONDITION__CONDITION_WARN, "slow"), 0);
        return job;
}

static void test_no_secrets(void **state) {
        struct world *w = *state;
        struct metrics *metrics = metrics_create("n1", 1, 0);
        cleanup_free char *node = NULL, *cluster = NULL, *shown = NULL;

        (void) make_busy(w);
        w->thorough = false;
        plant_secrets(w->state);
        node = node_text(metrics, w, "1.0");
        cluster = cluster_text(metrics, w);
        assert_null(strstr(node, SECRET));
        assert_null(strstr(cluster, SECRET));
        /* The search finds what is there. */
        shown = node_text(metrics, w, "1." SECRET);
        assert_non_null(strstr(shown, SECRET));
        metrics_destroy(metrics);
}

/* However many there are of what is counted. */
static void test_few_series(void **state) {
        struct world *w = *state;
        struct metrics *metrics = metrics_create("n1", 1, 0);
        cleanup_free char *node = NULL, *cluster = NULL;
        char name[16];

        (void) make_busy(w);
        w->thorough = false;
        for (unsigned i = 10; i < 200; i++) {
                (void) snprintf(name, sizeof(name), "n%u", i);
                assert_int_equal(join(w, name, 4), 0);
                assert_true(submit(w, 2) > 0);
        }
        node = node_text(metrics, w, "1.0");
        cluster = cluster_text(metrics, w);
        assert_in_range(count_series(node), 20, NODE_SERIES_MAX);
        assert_in_range(count_series(cluster), 50, CLUSTER_SERIES_MAX);
        metrics_destroy(metrics);
}

static void test_figures(void **state) {
        struct world *w = *state;
        struct metrics *metrics = metrics_create("n1", 1, 0);
        cleanup_free char *node = NULL, *cluster = NULL;
        uint64_t job = make_busy(w);

        w->thorough = false;
        state_job(w->state, job)->spec->checkpoint_usec = 10000000;
        state_job(w->state, job)->start_usec = w->time_usec - 25000000;
        node = node_text(metrics, w, "1.0");
        expect_line(node, "rmd_leader 1");
        expect_line(node, "rmd_node_cores{node=\"n1\",state=\"used\"} 1");
        expect_line(node, "rmd_node_cores{node=\"n1\",state=\"free\"} 3");
        expect_line(node, "rmd_node_cores{node=\"n1\",state=\"offline\"} 0");
        cluster = cluster_text(metrics, w);
        expect_line(cluster, "rmd_nodes{state=\"DRAINING\"} 1");
        expect_line(cluster, "rmd_nodes_unwell{condition=\"warn\"} 1");
        expect_line(cluster, "rmd_cores{state=\"offline\"} 4");
        expect_line(cluster, "rmd_jobs{state=\"MIGRATING\"} 1");
        expect_line(cluster, "rmd_jobs{state=\"PENDING\"} 1");
        expect_line(cluster, "rmd_moves_open 1");
        expect_line(cluster, "rmd_voters{state=\"up\"} 3");
        expect_line(cluster, "rmd_voters_may_lose 1");
        expect_line(cluster, "rmd_checkpoint_age_seconds 25");
        expect_line(cluster, "rmd_checkpoint_age_intervals 2.5");
        metrics_destroy(metrics);
}

/* From what a node counts to what the leader shows. */
static void test_from_node_to_leader(void **state) {
        struct world *w = *state;
        struct metrics *node = metrics_create("n3", 7, 1000), *leader = metrics_create("n1", 8, 0);
        Rm__NodeCounters report = RM__NODE_COUNTERS__INIT;
        Rm__Event event = RM__EVENT__INIT, *events[] = { &event };
        struct state_result result = { .events = events, .n_events = 1 };
        cleanup_free char *text = NULL;
        uint64_t job = make_busy(w);

        event.kind = (char *) "move-done";
        event.job = job;
        event.move = state_move(w->state, 1)->id;
        assert_int_equal(move_commit(w, event.move), 0);
        assert_int_equal(move_done(w, event.move, 1000, 70000), 0);
        metrics_applied(node, w->state, &result);
        metrics_applied(leader, w->state, &result);
        metrics_policy(leader, 5000, true); /* another leader's rounds */
        metrics_lead(leader);
        metrics_policy(leader, 5000, true);
        metrics_report(node, 1500, &report);
        assert_int_equal(report.run, 7);
        assert_int_equal(report.age_usec, 500);
        metrics_reported(leader, "n3", &report, 501);
        metrics_reported(leader, "n3", &report, 1); /* it has that of the time before, too */
        metrics_report(leader, 10, &report);
        metrics_reported(leader, "n1", &report, 1);
        metrics_reported(leader, "n2", NULL, 1); /* it does not count */
        metrics_forget(leader, w->state);
        text = cluster_text(leader, w);
        expect_line(text, "rmd_move_freeze_seconds_count 1");
        expect_line(text, "rmd_move_freeze_seconds_sum 0.07");
        expect_line(text, "rmd_policy_failures_total 1");
        metrics_destroy(node);
        metrics_destroy(leader);
        metrics_applied(NULL, w->state, &result);
        metrics_report(NULL, 0, &report);
        metrics_lead(NULL);
        metrics_forget(NULL, w->state);
        metrics_destroy(NULL);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_formats),
                cmocka_unit_test(test_writer),
                cmocka_unit_test_setup_teardown(test_no_secrets, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_few_series, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_figures, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_from_node_to_leader, set_up, world_tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
