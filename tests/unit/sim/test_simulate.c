/* Whole simulations: EASY and rmd's scheduler on workloads small enough to know what must come
 * out. */
#include <stdio.h>
#include <string.h>

#include "common/util.h"
#include "launcher/sim/plot.h"
#include "launcher/sim/report.h"
#include "launcher/sim/simulate.h"
#include "tests/unit/sched/sched_test.h"

#define SECOND INT64_C(1000000)

struct workload {
        const char *cluster, *trace, *changes;
        double malleable_share;
};

/* Seconds from the start to the end of each job, in the order of the trace. */
struct outcome {
        int64_t end_usec[8], start_usec[8];
        struct report report;
        char svg[4096];
};

static struct sim_scheduler scheduler_of(const char *policy) {
        const struct managed_config config = { .directory = getenv("TEST_POLICY_DIR"),
                                               .policy = policy,
                                               .budget_usec = 10000000,
                                               .horizon_usec = 600000000,
                                               .resize_interval_usec = 30000000,
                                               .group_size = 1,
                                               .moves_at_once = 8,
                                               .queue = 100,
                                               .backfill = MANAGED_LIMITS };
        struct sim_scheduler scheduler;
        struct rm_error err = { 0 };

        if (strcmp(policy, EASY_NAME) == 0)
                return easy_create();
        if (managed_create(&config, &scheduler, &err) < 0)
                fail_msg("%s", err.text);
        return scheduler;
}

static void draw(const struct world *world, struct outcome *outcome) {
        FILE *out = fmemopen(outcome->svg, sizeof(outcome->svg) - 1, "w");
        struct plot *plot = plot_create();

        plot_add(plot, "p", world);
        plot_write(plot, out);
        plot_destroy(plot);
        (void) fclose(out);
}

static struct outcome run(const struct workload *workload, const char *policy) {
        const struct world_config config = { .rank_bytes = 1000000,
                                             .bytes_per_usec = 1000,
                                             .freeze_usec = 0,
                                             .malleable_share = workload->malleable_share,
                                             .least_ratio = 0.5,
                                             .most_ratio = 4 };
        struct sim_scheduler scheduler = scheduler_of(policy);
        struct outcome outcome = { 0 };
        cleanup_snapshot struct snapshot *cluster = NULL;
        struct capacity capacity = { 0 };
        struct rm_error err = { 0 };
        struct world *world;
        struct swf swf;
        uint64_t rounds;

        if (cluster_read(workload->cluster, &cluster, &err) < 0 ||
            swf_parse("t", workload->trace, strlen(workload->trace), &swf, &err) < 0 ||
            capacity_parse("c", workload->changes, strlen(workload->changes), snapshot_view(cluster), &capacity, &err) < 0)
                fail_msg("%s", err.text);
        world = world_create(snapshot_view(cluster), &swf, &capacity, &config);
        if (simulate(world, &scheduler, 0, &rounds, &err) < 0)
                fail_msg("%s", err.text);
        for (size_t j = 0; j < swf.n_jobs && j < 8; j++) {
                outcome.end_usec[j] = world->jobs[j].end_usec;
                outcome.start_usec[j] = world->jobs[j].first_start_usec;
        }
        outcome.report = report_make(policy, world);
        draw(world, &outcome);
        scheduler.destroy(scheduler.self);
        world_destroy(world);
        capacity_finish(&capacity);
        swf_finish(&swf);
        return outcome;
}

/* number submit run ranks limit */
#define JOB(number, submit, run, ranks, limit)                                                                                     \
        #number " " #submit " -1 " #run " " #ranks " -1 -1 " #ranks " " #limit " -1 1 -1 -1 -1 -1 -1 -1 -1\n"

/* When each job starts, whoever schedules; all of them are done in the end. */
static void all_start(const struct workload *workload, const uint64_t *seconds, size_t n) {
        static const char *const policies[] = { "easy", "greedy", "distrib" };

        for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
                struct outcome outcome = run(workload, policies[i]);

                for (size_t j = 0; j < n; j++)
                        assert_int_equal(outcome.start_usec[j], seconds[j] * SECOND);
                assert_int_equal(outcome.report.n_done, n);
        }
}

/* A job of 3 ranks runs, one of 4 waits for it; of the small ones behind, the short one may
 * overtake and the long one may not. */
static void only_what_ends_in_time_overtakes(void **state) {
        static const struct workload workload = {
                .cluster = "1x4",
                .trace = JOB(1, 0, 100, 3, 100) JOB(2, 1, 50, 4, 50) JOB(3, 2, 90, 1, 90) JOB(4, 3, 200, 1, 200),
                .changes = "",
        };
        static const uint64_t starts[] = { 0, 100, 2, 150 };

        (void) state;
        all_start(&workload, starts, ARRAY_SIZE(starts));
}

/* The job of 4 waits for 100 s; then there are 6 cores, so those of 1 rank may run for long beside
 * it, and the one of 2 may not: of the two that the job of 4 does not need one is taken. */
static void what_is_not_needed_may_be_used(void **state) {
        static const struct workload workload = {
                .cluster = "1x6",
                .trace = JOB(1, 0, 100, 3, 100) JOB(2, 1, 50, 4, 50) JOB(3, 2, 400, 1, 400) JOB(4, 3, 400, 2, 400)
                        JOB(5, 4, 400, 1, 400),
                .changes = "",
        };
        static const uint64_t starts[] = { 0, 100, 2, 150, 4 };

        (void) state;
        all_start(&workload, starts, ARRAY_SIZE(starts));
}

/* A node leaves under a job: EASY begins it anew elsewhere, rmd moves it there and loses a
 * moment. */
static void moving_beats_killing(void **state) {
        static const struct workload workload = { .cluster = "2x2", .trace = JOB(1, 0, 100, 2, 100), .changes = "60 n1 0\n" };
        struct outcome easy, moved;

        (void) state;
        easy = run(&workload, "easy");
        assert_int_equal(easy.end_usec[0], 160 * SECOND);
        assert_int_equal(easy.report.kills, 1);
        assert_true(easy.report.lost_core_hours > 0.0333 && easy.report.lost_core_hours < 0.0334);
        assert_true(easy.report.utilisation > 0.454 && easy.report.utilisation < 0.455); /* 200 of 60 x 4 + 100 x 2 */
        moved = run(&workload, "greedy");
        assert_true(moved.end_usec[0] > 100 * SECOND && moved.end_usec[0] < 101 * SECOND);
        assert_int_equal(moved.report.moves, 2);
        assert_int_equal(moved.report.kills, 0);
        assert_non_null(strstr(moved.svg, "<svg "));
}

static struct outcome run_while_half_goes(const char *trace, const char *changes) {
        const struct workload workload = { .cluster = "2x2", .trace = trace, .changes = changes };

        return run(&workload, "greedy");
}

/* Half of the cluster goes for a while: everybody folds onto the rest, and unfolds when it is
 * back. */
static void folds_and_unfolds(void **state) {
        struct outcome outcome = run_while_half_goes(JOB(1, 0, 100, 4, 1000), "20 n1 0\n60 n1 all\n");

        (void) state;
        /* 20 s whole, 40 s at half speed, 60 s whole, and four moves of a millisecond each, two at
         * a time */
        assert_true(outcome.end_usec[0] > 120 * SECOND && outcome.end_usec[0] < 121 * SECOND);
        assert_int_equal(outcome.report.moves, 4);
}

/* The rest of the job is too short for going back to pay: 1 s of 100 MB/s moves to win half a
 * second. */
static void does_not_go_back_for_nothing(void **state) {
        struct outcome outcome = run_while_half_goes(JOB(1, 0, 100, 4, 100), "20 n1 0\n99.999 n1 all\n");

        (void) state;
        assert_int_equal(outcome.report.moves, 2); /* away, and not back: by its limit it has a millisecond left */
}

/* Jobs do not end at the time that their trace has asked for: one that folding has made late goes
 * back as any other. */
static void late_job_goes_back(void **state) {
        struct outcome outcome = run_while_half_goes(JOB(1, 0, 100, 4, 100), "20 n1 0\n130 n1 all\n");

        (void) state;
        assert_int_equal(outcome.report.moves, 4);
        assert_true(outcome.end_usec[0] > 155 * SECOND && outcome.end_usec[0] < 156 * SECOND); /* 20 s whole, 110 half, 25 whole */
}

/* A second, but where rounds would be too many: on 10,000 nodes 20,000 without jobs, or one in a
 * fiftieth of what jobs run. */
static void large_clusters_have_fewer_rounds(void **state) {
        struct rm_node nodes[10000] = { 0 };
        struct rm_snapshot cluster = { .n_nodes = ARRAY_SIZE(nodes), .nodes = nodes };
        struct capacity capacity = { 0 };
        struct swf swf = { .n_jobs = 50000 };
        int64_t settle, longer;

        (void) state;
        for (size_t s = 0; s < ARRAY_SIZE(nodes); s++)
                nodes[s].cores = 8;
        swf.jobs = xcalloc(swf.n_jobs, sizeof(*swf.jobs));
        for (size_t j = 0; j < swf.n_jobs; j++)
                swf.jobs[j] = (struct swf_job) { .submit_usec = (int64_t) j * 6 * SECOND, .run_usec = 3600 * SECOND, .ranks = 1 };
        settle = simulate_usual_settle_usec(&cluster, &swf, &capacity);
        assert_true(settle > 17 * SECOND && settle < 19 * SECOND);
        /* Many jobs at a time make a round longer, so there are fewer. */
        for (size_t j = 0; j < swf.n_jobs; j++)
                swf.jobs[j].run_usec = 36000 * SECOND;
        longer = simulate_usual_settle_usec(&cluster, &swf, &capacity);
        assert_true(longer > settle + 10 * SECOND && longer < 3 * settle);
        for (size_t j = 0; j < swf.n_jobs; j++)
                swf.jobs[j].run_usec = 500 * SECOND;
        assert_true(simulate_usual_settle_usec(&cluster, &swf, &capacity) == 10 * SECOND);
        cluster.n_nodes = 100;
        assert_true(simulate_usual_settle_usec(&cluster, &swf, &capacity) == SECOND);
        swf.n_jobs = 1000;
        cluster.n_nodes = 10000;
        assert_true(simulate_usual_settle_usec(&cluster, &swf, &capacity) == SECOND);
        free(swf.jobs);
}

static void jobs_that_never_can(void **state) {
        static const struct workload workload = { .cluster = "2x2",
                                                  .trace = JOB(1, 0, 10, 4, 10) JOB(2, 1, 10, 5, 10) JOB(3, 20, 10, 4, 10),
                                                  .changes = "15 n1 0\n" };
        struct outcome outcome = run(&workload, "greedy");

        (void) state;
        assert_int_equal(outcome.report.n_done, 1);
        assert_int_equal(outcome.report.n_too_large, 1);
        assert_int_equal(outcome.start_usec[2], -1);
}

/* Alone it takes all 8 cores, and gives 4 back for the job that comes after 40 s, whose end frees
 * them again. */
static void malleable_jobs_follow_the_cores(void **state) {
        struct workload workload = { .cluster = "2x4", .trace = JOB(1, 0, 100, 4, 100) JOB(2, 40, 10, 4, 10), .changes = "" };
        struct outcome fixed = run(&workload, "greedy"), malleable;

        (void) state;
        workload.malleable_share = 1;
        malleable = run(&workload, "greedy");
        assert_int_equal(fixed.report.resizes, 0);
        assert_int_equal(fixed.report.n_malleable, 0);
        assert_int_equal(malleable.report.n_malleable, 2);
        assert_true(malleable.report.resizes >= 2);
        assert_int_equal(malleable.report.n_done, 2);
        assert_true(malleable.end_usec[0] < fixed.end_usec[0] * 3 / 4);
        assert_true(malleable.start_usec[1] - 40 * SECOND < SECOND);
        assert_true(malleable.report.turnaround_seconds.mean < fixed.report.turnaround_seconds.mean);
        assert_string_equal(malleable.report.label, "greedy+malleable");
}

/* A job that just changed rests for 30 s: then it gives way, though there is no other event at that
 * moment. */
static void malleable_jobs_rest(void **state) {
        const struct workload workload = {
                .cluster = "2x4", .trace = JOB(1, 0, 1000, 4, 1000) JOB(2, 10, 10, 4, 10), .changes = "", .malleable_share = 1
        };
        struct outcome outcome = run(&workload, "greedy");

        (void) state;
        assert_int_equal(outcome.start_usec[1] / SECOND, 31);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(malleable_jobs_follow_the_cores),
                cmocka_unit_test(malleable_jobs_rest),
                cmocka_unit_test(only_what_ends_in_time_overtakes),
                cmocka_unit_test(what_is_not_needed_may_be_used),
                cmocka_unit_test(moving_beats_killing),
                cmocka_unit_test(folds_and_unfolds),
                cmocka_unit_test(does_not_go_back_for_nothing),
                cmocka_unit_test(late_job_goes_back),
                cmocka_unit_test(large_clusters_have_fewer_rounds),
                cmocka_unit_test(jobs_that_never_can),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
