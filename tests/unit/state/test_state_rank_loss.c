/* Jobs that go on without ranks that are lost, in the state: whose word of a loss counts, and what
 * must have been said for a job to have ended well. */
#include "state_test.h"

#include "daemon/state/commands.h"

static const char *const places[] = { "n1", "n2" };
static const uint32_t fours[] = { 4, 4 };

static int set_up(void **state) {
        return world_start(state, 2, 4);
}

static void place_all(struct world *w, uint64_t id) {
        start_job(w, id, places, fours, 2);
}

/* 8 ranks, 4 on each node. */
static uint64_t running_job(struct world *w) {
        int id = submit_enduring(w, 8);

        assert_true(id > 0);
        let_restart(w, (uint64_t) id, 5);
        place_all(w, (uint64_t) id);
        return (uint64_t) id;
}

/* The job has 8 ranks, of which 6 and 7 are spare. */
static uint64_t running_critical_job(struct world *w, uint32_t restarts) {
        int id = submit_critical(w, 8, 2, "0,4-5");

        assert_true(id > 0);
        if (restarts > 0)
                let_restart(w, (uint64_t) id, restarts);
        place_all(w, (uint64_t) id);
        return (uint64_t) id;
}

static int report(struct world *w, uint64_t id, int32_t group, uint32_t lost) {
        return ranks_reported(w, id, group, places[group], &lost, 1, false);
}

static int finish_group(struct world *w, uint64_t id, int32_t group) {
        return ranks_reported(w, id, group, places[group], NULL, 0, true);
}

static void expect_lost(struct world *w, uint64_t id, size_t n, const uint32_t *lost) {
        const Rm__RankLosses *losses = job_of(w, id)->rank_losses;

        assert_non_null(losses);
        assert_int_equal(losses->n_lost, n);
        for (size_t i = 0; i < n; i++)
                assert_int_equal(losses->lost[i], lost[i]);
}

/* mpirun has said 0, and nothing is left of it. */
static void end(struct world *w, uint64_t id, int32_t exit_code) {
        assert_int_equal(ends(w, id, exit_code, RM__JOB_STATE__JOB_PENDING, ""), 0);
        for (int32_t i = -1; i < 2; i++)
                assert_int_equal(gone(w, id, i, i == 1 ? "n2" : "n1"), 0);
}

static void expect_end(struct world *w, uint64_t id, int state, int32_t exit_code, const char *reason) {
        const Rm__Job *job = job_of(w, id);

        assert_int_equal(job->state, state);
        assert_int_equal(job->exit_code, exit_code);
        assert_string_equal(job->reason, reason);
}

static void test_losses_are_listed_once_in_order(void **state) {
        struct world *w = *state;
        uint64_t id = running_job(w);
        const uint32_t some[] = { 6, 5, 6 };

        expect_lost(w, id, 0, NULL);
        assert_int_equal(ranks_reported(w, id, 1, "n2", some, 3, false), 0);
        assert_string_equal(w->events, "job-ranks-lost ");
        assert_int_equal(report(w, id, 0, 1), 0);
        expect_lost(w, id, 3, (const uint32_t[]) { 6, 5, 1 });
        assert_int_equal(ranks_reported(w, id, 1, "n2", some, 2, false), 0);
        assert_string_equal(w->events, "");
        expect_lost(w, id, 3, (const uint32_t[]) { 6, 5, 1 });
        assert_true(rank_losses_has(job_of(w, id)->rank_losses, 5));
        assert_false(rank_losses_has(job_of(w, id)->rank_losses, 0));
}

static void test_groups_lose_their_own_only(void **state) {
        struct world *w = *state;
        uint64_t id = running_job(w), other = (uint64_t) submit(w, 8);
        uint32_t rank = 3;

        assert_int_equal(report(w, id, 1, 3), -EINVAL);
        assert_int_equal(report(w, id, 0, 4), -EINVAL);
        assert_int_equal(report(w, id, 1, 8), -EINVAL);
        assert_int_equal(report(w, id, 1, UINT32_MAX), -EINVAL);
        assert_int_equal(ranks_reported(w, id, 0, "n2", &rank, 1, false), -ESRCH);
        assert_int_equal(ranks_reported(w, id, -1, "n1", &rank, 1, false), -ESRCH);
        assert_int_equal(ranks_reported(w, id, 2, "n1", &rank, 1, false), -ESRCH);
        assert_int_equal(ranks_reported(w, other, 0, "n1", &rank, 1, false), -ENOENT);
        assert_int_equal(ranks_reported(w, 77, 0, "n1", &rank, 1, false), -ENOENT);
        expect_lost(w, id, 0, NULL);
}

/* Ranks that rmd ends itself are not lost. */
static void test_no_losses_at_an_end(void **state) {
        struct world *w = *state;
        uint64_t id = running_job(w);

        assert_int_equal(cancel(w, id, 15, false), 0);
        assert_int_equal(report(w, id, 1, 5), -ESRCH);
        end(w, id, 143);
        assert_int_equal(report(w, id, 1, 5), -ESRCH);
        expect_lost(w, id, 0, NULL);
}

static void test_all_that_live_must_have_finished(void **state) {
        struct world *w = *state;
        uint64_t id = running_job(w);

        assert_int_equal(report(w, id, 1, 5), 0);
        assert_int_equal(finish_group(w, id, 0), 0);
        assert_int_equal(finish_group(w, id, 1), 0);
        assert_int_equal(finish_group(w, id, 1), 0);
        assert_true(rank_losses_finished(job_of(w, id)->rank_losses, 1));
        end(w, id, 0);
        expect_end(w, id, RM__JOB_STATE__JOB_COMPLETED, 0, "");

        id = running_job(w);
        assert_int_equal(finish_group(w, id, 0), 0);
        end(w, id, 0);
        expect_end(w, id, RM__JOB_STATE__JOB_FAILED, 1, "not all ranks of group 1 have come to the end of MPI_Finalize");
}

/* The reports of ranks may come when mpirun's end is known already. */
static void test_late_words_count(void **state) {
        struct world *w = *state;
        uint64_t id = running_job(w);

        assert_int_equal(finish_group(w, id, 0), 0);
        assert_int_equal(ends(w, id, 0, RM__JOB_STATE__JOB_PENDING, ""), 0);
        assert_int_equal(report(w, id, 1, 7), 0);
        assert_int_equal(finish_group(w, id, 1), 0);
        for (int32_t i = -1; i < 2; i++)
                assert_int_equal(gone(w, id, i, i == 1 ? "n2" : "n1"), 0);
        expect_end(w, id, RM__JOB_STATE__JOB_COMPLETED, 0, "");
}

static void test_nobody_left_is_no_success(void **state) {
        struct world *w = *state;
        uint64_t id = running_job(w);

        for (uint32_t rank = 0; rank < 8; rank++)
                assert_int_equal(report(w, id, (int32_t) rank / 4, rank), 0);
        assert_int_equal(finish_group(w, id, 0), 0);
        assert_int_equal(finish_group(w, id, 1), 0);
        end(w, id, 0);
        expect_end(w, id, RM__JOB_STATE__JOB_FAILED, 1, "all of its ranks were lost");
}

static void test_mpiruns_failure_stays(void **state) {
        struct world *w = *state;
        uint64_t id = running_job(w);

        assert_int_equal(finish_group(w, id, 0), 0);
        assert_int_equal(finish_group(w, id, 1), 0);
        end(w, id, 7);
        expect_end(w, id, RM__JOB_STATE__JOB_FAILED, 7, "");
}

static void test_other_programs_end_as_mpirun_says(void **state) {
        struct world *w = *state;
        uint64_t id = running_job(w);

        end(w, id, 0);
        expect_end(w, id, RM__JOB_STATE__JOB_COMPLETED, 0, "");
}

static int begin_checkpoint(struct world *w, uint64_t job) {
        struct command c;

        (void) command_checkpoint_start(&c, job, RM__CHECKPOINT_CAUSE__CHECKPOINT_CAUSE_ASKED);
        return apply_command(w, &c.command);
}

static void capture(struct world *w, uint64_t id, uint64_t checkpoint) {
        struct command c;

        assert_int_equal(begin_checkpoint(w, id), 0);
        (void) command_checkpoint_captured(&c, id, checkpoint);
        assert_int_equal(apply_command(w, &c.command), 0);
}

static void test_captured_before_or_after(void **state) {
        struct world *w = *state;
        uint64_t id = running_job(w);

        assert_int_equal(begin_checkpoint(w, id), 0);
        assert_int_equal(report(w, id, 0, 1), 0);
        assert_string_equal(w->events, "checkpoint-failed job-ranks-lost ");
        assert_null(job_checkpoint(job_of(w, id), 1));
        assert_string_equal(job_of(w, id)->checkpoint_error, "a rank was lost meanwhile");
        capture(w, id, 2);
        assert_int_equal(report(w, id, 0, 2), 0);
        assert_int_equal(job_checkpoint(job_of(w, id), 2)->rank_losses->n_lost, 1);
        expect_lost(w, id, 2, (const uint32_t[]) { 1, 2 });
}

static void lose_second_node(struct world *w, uint64_t id) {
        assert_int_equal(health(w, "n2", 2), 0);
        assert_int_equal(restart(w, id, 2, "n2", true), 0);
        assert_int_equal(report(w, id, 0, 3), -ESRCH);
        for (int32_t i = -1; i < 1; i++)
                assert_int_equal(gone(w, id, i, "n1"), 0);
        assert_int_equal(health(w, "n2", 1), 0);
}

static void test_begins_anew_with_all(void **state) {
        struct world *w = *state;
        uint64_t id = running_job(w);

        assert_int_equal(report(w, id, 0, 1), 0);
        lose_second_node(w, id);
        place_all(w, id);
        expect_lost(w, id, 0, NULL);
        assert_false(job_of(w, id)->rank_losses->speaks);
}

static void test_goes_on_with_what_was_saved(void **state) {
        struct world *w = *state;
        uint64_t id = running_job(w);
        struct command c;
        Rm__CmdJobPlace *body;

        assert_int_equal(report(w, id, 0, 1), 0);
        capture(w, id, 1);
        for (int32_t i = -1; i < 2; i++) {
                (void) command_checkpoint_stored(&c, id, 1, i, i == 1 ? "n2" : "n1");
                assert_int_equal(apply_command(w, &c.command), 0);
        }
        assert_int_equal(report(w, id, 1, 6), 0);
        lose_second_node(w, id);
        body = command_job_place(&c, id);
        body->group_size = 4;
        body->head_node = (char *) "n1";
        body->group_nodes = (char **) places;
        body->group_ranks = (uint32_t *) fours;
        body->n_group_nodes = body->n_group_ranks = 2;
        body->policy = (char *) "greedy";
        body->checkpoint = 1;
        assert_int_equal(apply_command(w, &c.command), 0);
        expect_lost(w, id, 1, (const uint32_t[]) { 1 });
        assert_true(job_of(w, id)->rank_losses->speaks);
}

static void test_critical_ranks_are_replaced(void **state) {
        struct world *w = *state;
        uint64_t id = running_critical_job(w, 0);

        assert_int_equal(report(w, id, 1, 4), 0);
        assert_string_equal(w->event, "job 1 has lost rank 4: 6 of 6 are left, spare rank 6 replaces rank 4");
        assert_int_equal(report(w, id, 0, 1), 0);
        assert_string_equal(w->event, "job 1 has lost rank 1: 5 of 6 are left");
        assert_int_equal(report(w, id, 1, 6), 0);
        assert_string_equal(w->event, "job 1 has lost rank 6: 5 of 6 are left, spare rank 7 replaces rank 4");
        assert_int_equal(job_of(w, id)->state, RM__JOB_STATE__JOB_RUNNING);
        assert_int_equal(finish_group(w, id, 0), 0);
        assert_int_equal(finish_group(w, id, 1), 0);
        end(w, id, 0);
        expect_end(w, id, RM__JOB_STATE__JOB_COMPLETED, 0, "");
}

static void expect_cores(struct world *w, uint64_t id, uint32_t first_group, uint32_t second_group) {
        uint32_t capsules;

        assert_int_equal(job_capsule_cores(job_of(w, id), job_capsule(job_of(w, id), STATE_HEAD)), 0);
        assert_int_equal(job_capsule_cores(job_of(w, id), job_capsule(job_of(w, id), 0)), first_group);
        assert_int_equal(job_capsule_cores(job_of(w, id), job_capsule(job_of(w, id), 1)), second_group);
        assert_int_equal(state_node_ranks(w->indexed, "n1", &capsules), first_group);
        assert_int_equal(state_node_ranks(w->indexed, "n2", &capsules), second_group);
}

/* A spare rank has no core until it replaces another one, and keeps it when it is lost itself. */
static void test_spare_ranks_have_no_cores(void **state) {
        struct world *w = *state;
        uint64_t id = running_critical_job(w, 0);

        expect_cores(w, id, 4, 2);
        assert_int_equal(job_active_ranks(w->state, job_of(w, id)), 6);
        assert_int_equal(report(w, id, 0, 1), 0); /* not critical */
        expect_cores(w, id, 4, 2);
        assert_int_equal(report(w, id, 1, 4), 0);
        expect_cores(w, id, 4, 3);
        assert_int_equal(job_active_ranks(w->state, job_of(w, id)), 7);
        assert_int_equal(report(w, id, 1, 6), 0);
        expect_cores(w, id, 4, 4);
}

/* The first spare rank was lost before anybody needed it. */
static void test_a_spare_rank_is_passed_over(void **state) {
        struct world *w = *state;
        uint64_t id = running_critical_job(w, 0);

        assert_int_equal(report(w, id, 1, 6), 0);
        expect_cores(w, id, 4, 2);
        assert_int_equal(report(w, id, 0, 0), 0);
        expect_cores(w, id, 4, 4);
}

static void test_groups_of_spare_ranks_are_parked(void **state) {
        struct world *w = *state;
        int id = submit_critical(w, 8, 4, "0");

        assert_true(id > 0);
        assert_int_equal(job_active_ranks(w->state, job_of(w, (uint64_t) id)), 4);
        place_all(w, (uint64_t) id);
        expect_cores(w, (uint64_t) id, 4, 0);
        assert_true(job_group_parked(job_of(w, (uint64_t) id), job_capsule(job_of(w, (uint64_t) id), 1)));
        assert_false(job_group_may_freeze(job_of(w, (uint64_t) id), job_capsule(job_of(w, (uint64_t) id), 1)));
        assert_int_equal(report(w, (uint64_t) id, 0, 0), 0);
        assert_false(job_group_parked(job_of(w, (uint64_t) id), job_capsule(job_of(w, (uint64_t) id), 1)));
        expect_cores(w, (uint64_t) id, 4, 1);
}

/* Nodes that do not know it would count them. */
static void test_spare_ranks_have_cores_below_the_level(void **state) {
        struct world *w = *state;
        uint64_t id;

        w->state->level = w->twin->level = STATE_LEVEL_SPARES - 1;
        id = running_critical_job(w, 0);
        w->state->level = w->twin->level = STATE_LEVEL_SPARES;
        expect_cores(w, id, 4, 4);
        assert_int_equal(report(w, id, 1, 4), 0);
        expect_cores(w, id, 4, 4);
}

static void test_without_a_spare_rank_it_has_failed(void **state) {
        struct world *w = *state;
        uint64_t id = running_critical_job(w, 0);
        const uint32_t spare[] = { 6, 7 };

        assert_int_equal(ranks_reported(w, id, 1, "n2", spare, 2, false), 0);
        assert_int_equal(job_of(w, id)->state, RM__JOB_STATE__JOB_RUNNING);
        assert_int_equal(report(w, id, 0, 0), 0);
        assert_int_equal(job_of(w, id)->state, RM__JOB_STATE__JOB_COMPLETING);
        assert_int_equal(ends(w, id, 0, RM__JOB_STATE__JOB_PENDING, ""), -EALREADY);
        for (int32_t i = -1; i < 2; i++)
                assert_int_equal(gone(w, id, i, i == 1 ? "n2" : "n1"), 0);
        expect_end(w, id, RM__JOB_STATE__JOB_FAILED, 1, "critical rank 0 was lost, and no spare rank is left");
}

static void test_or_starts_again(void **state) {
        struct world *w = *state;
        uint64_t id = running_critical_job(w, 1);
        const uint32_t some[] = { 6, 7, 5 };

        assert_int_equal(ranks_reported(w, id, 1, "n2", some, 3, false), 0);
        assert_int_equal(job_of(w, id)->state, RM__JOB_STATE__JOB_RECOVERING);
        assert_int_equal(job_of(w, id)->attempt, 2);
        for (int32_t i = -1; i < 2; i++)
                assert_int_equal(gone(w, id, i, i == 1 ? "n2" : "n1"), 0);
        assert_int_equal(job_of(w, id)->state, RM__JOB_STATE__JOB_PENDING);
        assert_string_equal(job_of(w, id)->restart_reason, "critical rank 5 was lost, and no spare rank is left");
        place_all(w, id);
        expect_lost(w, id, 0, NULL);
        /* The job had its last restart. */
        assert_int_equal(ranks_reported(w, id, 1, "n2", some, 3, false), 0);
        assert_int_equal(job_of(w, id)->final_state, RM__JOB_STATE__JOB_FAILED);
}

/* mpirun has said 0 before its loss was heard of. */
static void test_late_loss_of_a_critical_rank(void **state) {
        struct world *w = *state;
        uint64_t id = running_critical_job(w, 0);
        const uint32_t some[] = { 6, 7, 5 };

        assert_int_equal(finish_group(w, id, 0), 0);
        assert_int_equal(ends(w, id, 0, RM__JOB_STATE__JOB_PENDING, ""), 0);
        assert_int_equal(ranks_reported(w, id, 1, "n2", some, 3, true), 0);
        for (int32_t i = -1; i < 2; i++)
                assert_int_equal(gone(w, id, i, i == 1 ? "n2" : "n1"), 0);
        expect_end(w, id, RM__JOB_STATE__JOB_FAILED, 1, "critical rank 5 was lost, and no spare rank is left");
}

/* ---- without the daemon of a group ---- */

/* 8 ranks that may start again so often. */
static uint64_t running_counted_job(struct world *w, uint32_t restarts) {
        uint64_t id = running_job(w);

        let_restart(w, id, restarts);
        return id;
}

/* mpirun ends, and then the daemon of the second group is heard of. */
static void end_daemon(struct world *w, uint64_t id, int32_t mpirun_exit_code, int32_t exit_code, enum end_way way) {
        assert_int_equal(ends(w, id, mpirun_exit_code, RM__JOB_STATE__JOB_PENDING, ""), 0);
        assert_int_equal(group_end(w, id, 1, "n2", exit_code, way, 5, "no daemon"), 0);
}

static void leave_all(struct world *w, uint64_t id) {
        for (int32_t i = -1; i < 2; i++)
                assert_int_equal(gone(w, id, i, i == 1 ? "n2" : "n1"), 0);
}

static void expect_restart(struct world *w, uint64_t id, uint32_t attempt) {
        const Rm__Job *job = job_of(w, id);

        assert_string_equal(w->events, "job-restarted ");
        assert_int_equal(job->state, RM__JOB_STATE__JOB_RECOVERING);
        assert_int_equal(job->attempt, attempt);
        assert_int_equal(job_counted_attempts(job), attempt);
        assert_string_equal(job->restart_reason, "no daemon");
}

static void expect_no_restart(struct world *w, uint64_t id, uint32_t attempt) {
        assert_string_equal(w->events, "");
        assert_int_equal(job_of(w, id)->state, RM__JOB_STATE__JOB_COMPLETING);
        assert_int_equal(job_of(w, id)->attempt, attempt);
}

/* A user may kill his daemons again and again. mpirun may have said the same, or 0. */
static void test_killed_daemon_restarts_only_so_often(void **state) {
        struct world *w = *state;
        static const int32_t mpirun_exit_codes[] = { 137, 0 };

        for (size_t i = 0; i < ARRAY_SIZE(mpirun_exit_codes); i++) {
                uint64_t id = running_counted_job(w, 2);

                for (uint32_t attempt = 1; attempt <= 2; attempt++) {
                        end_daemon(w, id, mpirun_exit_codes[i], 137, KILLED);
                        expect_restart(w, id, attempt + 1);
                        /* The end counts once, however many groups end so. */
                        assert_int_equal(group_end(w, id, 0, "n1", 137, KILLED, 6, "no daemon"), -EBUSY);
                        assert_int_equal(job_of(w, id)->attempt, attempt + 1);
                        leave_all(w, id);
                        assert_int_equal(job_of(w, id)->state, RM__JOB_STATE__JOB_PENDING);
                        place_all(w, id);
                }
                end_daemon(w, id, mpirun_exit_codes[i], 137, KILLED);
                expect_no_restart(w, id, 3);
                leave_all(w, id);
                expect_end(w, id, RM__JOB_STATE__JOB_FAILED, 137, "no daemon");
        }
}

static void test_lost_or_killed_daemon_restarts(void **state) {
        struct world *w = *state;
        static const struct {
                int32_t mpirun_exit_code;
                int32_t exit_code;
                enum end_way way;
        } cases[] = { { 0, 129, KILLED }, { 1, 129, KILLED }, { 0, 143, KILLED }, { 1, 255, LOST }, { 0, 1, LOST } };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                uint64_t id = running_counted_job(w, 1);

                end_daemon(w, id, cases[i].mpirun_exit_code, cases[i].exit_code, cases[i].way);
                expect_restart(w, id, 2);
                leave_all(w, id);
                place_all(w, id);
                end(w, id, 0);
                expect_end(w, id, RM__JOB_STATE__JOB_COMPLETED, 0, "");
        }
}

/* Or by rmd, whatever the exit code; 255 where nothing is known of the end. */
static void test_daemon_that_ends_by_itself_does_not_restart(void **state) {
        struct world *w = *state;
        static const struct {
                int32_t mpirun_exit_code;
                int32_t exit_code;
                int32_t shown_code;
        } cases[] = { { 0, 1, 1 }, { 0, 137, 137 }, { 0, 255, 255 }, { 14, 1, 14 }, { 14, 137, 14 }, { 137, 137, 137 } };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                uint64_t id = running_job(w);

                end_daemon(w, id, cases[i].mpirun_exit_code, cases[i].exit_code, BY_ITSELF);
                expect_no_restart(w, id, 1);
                leave_all(w, id);
                expect_end(w, id, RM__JOB_STATE__JOB_FAILED, cases[i].shown_code, "no daemon");
        }
}

static void let_abort(struct world *w, uint64_t id) {
        job_of(w, id)->spec->on_node_loss = state_job(w->twin, id)->spec->on_node_loss = 0;
}

/* Only one that goes on without lost ranks does, and only if its owner wants it to. */
static void test_others_fail_without_a_daemon(void **state) {
        struct world *w = *state;
        static const struct {
                bool enduring;
                bool aborts;
                bool restarts;
        } cases[] = {
                { true, false, true },
                { false, false, false },
                { true, true, false },
        };
        static const struct {
                int32_t exit_code;
                enum end_way way;
                int state;
        } ways[] = { { 137, KILLED, RM__JOB_STATE__JOB_FAILED }, { 255, LOST, RM__JOB_STATE__JOB_NODE_FAIL } };

        for (size_t i = 0; i < ARRAY_SIZE(cases) * ARRAY_SIZE(ways); i++) {
                size_t k = i / ARRAY_SIZE(ways), way = i % ARRAY_SIZE(ways);
                uint64_t id;

                id = (uint64_t) (cases[k].enduring ? submit_enduring(w, 8) : submit(w, 8));
                let_restart(w, id, 5);
                if (cases[k].aborts)
                        let_abort(w, id);
                place_all(w, id);
                end_daemon(w, id, 0, ways[way].exit_code, ways[way].way);
                if (cases[k].restarts)
                        expect_restart(w, id, 2);
                else
                        expect_no_restart(w, id, 1);
                leave_all(w, id);
                if (!cases[k].restarts)
                        expect_end(w, id, ways[way].state, ways[way].exit_code, "no daemon");
        }
}

/* The known end of the attempt before is not that of the next one. */
static void test_killed_daemon_restarts_after_another_has_ended(void **state) {
        struct world *w = *state;
        uint64_t id = running_counted_job(w, 1);

        assert_int_equal(ends(w, id, 0, RM__JOB_STATE__JOB_PENDING, ""), 0);
        assert_int_equal(group_end(w, id, 0, "n1", 1, BY_ITSELF, 3, "it ended"), 0);
        expect_no_restart(w, id, 1);
        assert_int_equal(group_end(w, id, 1, "n2", 137, KILLED, 2, "no daemon"), 0);
        expect_restart(w, id, 2);
        leave_all(w, id);
        place_all(w, id);
        end_daemon(w, id, 0, 137, KILLED);
        leave_all(w, id);
        expect_end(w, id, RM__JOB_STATE__JOB_FAILED, 137, "no daemon");
}

/* The end of the job is asked for: the daemons are ended with it. */
static void test_cancelled_job_does_not_restart_without_a_daemon(void **state) {
        struct world *w = *state;
        uint64_t id = running_job(w);

        assert_int_equal(cancel(w, id, 15, false), 0);
        end_daemon(w, id, 143, 143, KILLED);
        expect_no_restart(w, id, 1);
        leave_all(w, id);
        expect_end(w, id, RM__JOB_STATE__JOB_CANCELLED, 143, "cancelled by alice");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_losses_are_listed_once_in_order, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_groups_lose_their_own_only, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_no_losses_at_an_end, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_all_that_live_must_have_finished, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_late_words_count, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_nobody_left_is_no_success, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_mpiruns_failure_stays, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_other_programs_end_as_mpirun_says, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_captured_before_or_after, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_begins_anew_with_all, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_critical_ranks_are_replaced, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_spare_ranks_have_no_cores, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_a_spare_rank_is_passed_over, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_groups_of_spare_ranks_are_parked, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_spare_ranks_have_cores_below_the_level, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_without_a_spare_rank_it_has_failed, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_or_starts_again, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_late_loss_of_a_critical_rank, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_goes_on_with_what_was_saved, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_killed_daemon_restarts_only_so_often, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_lost_or_killed_daemon_restarts, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_daemon_that_ends_by_itself_does_not_restart, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_others_fail_without_a_daemon, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_killed_daemon_restarts_after_another_has_ended, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_cancelled_job_does_not_restart_without_a_daemon, set_up, world_tear_down),
        };

        return cmocka_run_group_tests_name("state_rank_loss", tests, NULL, NULL);
}
