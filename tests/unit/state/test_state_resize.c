/* Jobs that grow and shrink, in the state: which ranks compute, what a parked group asks for, and
 * whose word of a change counts. */
#include "state_test.h"

#include "daemon/state/commands.h"

static int set_up(void **state) {
        return world_start(state, 2, 4);
}

static const char *const places[] = { "n1", "n1", "n2", "n2" };
static const uint32_t twos[] = { 2, 2, 2, 2 };

static void place_all(struct world *w, uint64_t id) {
        start_job(w, id, places, twos, 4);
}

/* 4 of 8 ranks, at least 2, in groups of 2; those of the second node are parked. */
static uint64_t running_job(struct world *w) {
        int id = submit_resizable(w, 8, 4, 2);

        assert_true(id > 0);
        let_restart(w, (uint64_t) id, 5);
        place_all(w, (uint64_t) id);
        return (uint64_t) id;
}

/* The job runs, and its program listens. */
static uint64_t listening_job(struct world *w) {
        uint64_t id = running_job(w);

        assert_int_equal(resize_reported(w, id, 0, 0, 0, false), 0);
        return id;
}

static uint32_t ranks_on(struct world *w, const char *node) {
        return state_node_ranks(w->indexed, node, NULL);
}

static void expect_active(struct world *w, uint64_t id, uint32_t active, uint32_t on_first, uint32_t on_second) {
        assert_int_equal(job_of(w, id)->resize->active, active);
        assert_int_equal(ranks_on(w, "n1"), on_first);
        assert_int_equal(ranks_on(w, "n2"), on_second);
}

static void test_parked_groups_ask_for_no_cores(void **state) {
        struct world *w = *state;
        uint64_t id = running_job(w);
        uint32_t ranks;

        expect_active(w, id, 4, 4, 0);
        assert_string_equal(state_node_name(w->indexed, state_node(w->state, "n2")), "IDLE");
        assert_null(state_job_fold(w->indexed, job_of(w, id), &ranks));
        assert_false(job_group_parked(job_of(w, id), job_of(w, id)->capsules[0])); /* the head */
        assert_false(job_group_parked(job_of(w, id), job_of(w, id)->capsules[2]));
        assert_true(job_group_may_freeze(job_of(w, id), job_of(w, id)->capsules[3]));
}

static void test_grows(void **state) {
        struct world *w = *state;
        uint64_t id = listening_job(w), epoch;

        assert_int_equal(resize(w, id, 7), 0);
        epoch = w->created;
        assert_int_equal(epoch, job_of(w, id)->resize->epoch);
        expect_active(w, id, 4, 4, 0);
        assert_int_equal(resize_reported(w, id, epoch, 0, 0, false), 0);
        expect_active(w, id, 7, 4, 3); /* rank 7 waits beside rank 6, and needs no core */
        assert_true(job_of(w, id)->resize->begun);
        assert_int_equal(resize_reported(w, id, epoch, epoch, 7, false), 0);
        assert_string_equal(w->events, "job-resized ");
        assert_int_equal(job_of(w, id)->resize->requested, 0);
        expect_active(w, id, 7, 4, 3);
}

static void test_shrinks_when_it_is_done(void **state) {
        struct world *w = *state;
        uint64_t id = listening_job(w), epoch;

        assert_int_equal(resize(w, id, 2), 0);
        epoch = w->created;
        assert_int_equal(resize_reported(w, id, epoch, 0, 0, false), 0);
        expect_active(w, id, 4, 4, 0);
        assert_int_equal(resize_reported(w, id, epoch, epoch, 2, false), 0);
        expect_active(w, id, 2, 2, 0);
}

/* Both words at once, since rmd was away. */
static void test_late_words_count(void **state) {
        struct world *w = *state;
        uint64_t id = listening_job(w);

        assert_int_equal(resize(w, id, 8), 0);
        assert_int_equal(resize_reported(w, id, w->created, w->created, 8, false), 0);
        expect_active(w, id, 8, 4, 4);
}

static void test_words_of_no_change_have_no_effect(void **state) {
        struct world *w = *state;
        uint64_t id = listening_job(w), epoch = job_of(w, id)->resize->epoch;

        assert_int_equal(resize_reported(w, id, epoch, epoch, 8, false), 0);
        expect_active(w, id, 4, 4, 0);
        assert_int_equal(resize(w, id, 6), 0);
        assert_int_equal(resize_reported(w, id, epoch, epoch, 8, false), 0); /* of the one before */
        assert_int_equal(resize_reported(w, id, 99, 99, 8, false), 0);
        expect_active(w, id, 4, 4, 0);
        assert_int_equal(resize_reported(w, id, w->created + 1, w->created + 1, 6, false), 0);
        epoch = job_of(w, id)->resize->epoch;
        assert_int_equal(resize_reported(w, id, epoch, epoch, 4, false), 0);
        assert_string_equal(w->events, "job-resize-refused ");
        expect_active(w, id, 4, 4, 0);
}

/* Asks the job for `wanted` ranks, and hears from its program that there are `said`. */
static void expect_not_taken(struct world *w, uint64_t id, uint32_t requested, uint32_t said, const char *text) {
        assert_int_equal(resize(w, id, requested), 0);
        assert_int_equal(resize_reported(w, id, w->created, w->created, said, false), 0);
        assert_string_equal(w->events, "job-resize-refused ");
        assert_string_equal(w->event, text);
        assert_int_equal(job_of(w, id)->resize->requested, 0);
        assert_false(job_of(w, id)->resize->begun);
}

/* The job may have 2 to 8 ranks. The cores of all that may compute stay its own. */
static void test_programs_say_numbers_that_cannot_be(void **state) {
        struct world *w = *state;
        uint64_t id = listening_job(w);

        expect_not_taken(w, id, 3, 1, "job 1 cannot have 1 active ranks, as its program says, but 2 to 4: it counts as having 4");
        expect_active(w, id, 4, 4, 0);
        expect_not_taken(w, id, 3, 0, "job 1 cannot have 0 active ranks, as its program says, but 2 to 4: it counts as having 4");
        expect_not_taken(w, id, 3, 5, "job 1 cannot have 5 active ranks, as its program says, but 2 to 4: it counts as having 4");
        expect_active(w, id, 4, 4, 0);
        expect_not_taken(w, id, 6, 7, "job 1 cannot have 7 active ranks, as its program says, but 2 to 6: it counts as having 6");
        expect_active(w, id, 6, 4, 2);
        expect_not_taken(w, id, 8, UINT32_MAX,
                         "job 1 cannot have 4294967295 active ranks, as its program says, but 2 to 8: it counts as having 8");
        expect_active(w, id, 8, 4, 4);
}

/* Nodes of an older version would have taken it. */
static void test_numbers_below_the_level(void **state) {
        struct world *w = *state;
        uint64_t id = listening_job(w);

        w->state->level = w->twin->level = STATE_LEVEL_RESIZED - 1;
        assert_int_equal(resize(w, id, 3), 0);
        assert_int_equal(resize_reported(w, id, w->created, w->created, 1, false), 0);
        assert_int_equal(job_of(w, id)->resize->active, 1);
}

static void test_refusals_say_why(void **state) {
        struct world *w = *state;
        uint64_t fixed = (uint64_t) submit(w, 2), id = running_job(w);

        assert_int_equal(resize(w, 77, 4), -ENOENT);
        assert_int_equal(resize(w, fixed, 1), -EOPNOTSUPP);
        assert_non_null(strstr(w->error, "--max-ranks"));
        assert_int_equal(resize(w, id, 6), -EAGAIN);
        assert_non_null(strstr(w->error, "rmrt_resize_point"));
        assert_int_equal(resize_reported(w, id, 0, 0, 0, false), 0);
        assert_int_equal(resize(w, id, 9), -ERANGE);
        assert_int_equal(resize(w, id, 1), -ERANGE);
        assert_non_null(strstr(w->error, "2 to 8"));
        assert_int_equal(resize(w, id, 4), 0); /* it has so many */
        assert_int_equal(w->created, 0);
        assert_int_equal(resize(w, id, 6), 0);
        assert_int_equal(resize_reported(w, id, w->created, 0, 0, false), 0);
        assert_int_equal(resize(w, id, 8), -EBUSY);
        assert_non_null(strstr(w->error, "changes to 6 active ranks"));
        assert_int_equal(cancel(w, id, 0, false), 0);
        assert_int_equal(resize(w, id, 8), -EBUSY);
}

static void test_is_taken_back_before_it_begins(void **state) {
        struct world *w = *state;
        uint64_t id = listening_job(w), epoch;

        assert_int_equal(resize(w, id, 6), 0);
        epoch = w->created;
        assert_int_equal(resize(w, id, 4), 0);
        assert_string_equal(w->events, "job-resize-cancelled ");
        assert_int_equal(job_of(w, id)->resize->requested, 0);
        assert_int_equal(resize_reported(w, id, epoch, epoch, 6, false), 0);
        expect_active(w, id, 4, 4, 0);
        assert_int_equal(resize(w, id, 6), 0);
        assert_int_equal(resize_reported(w, id, w->created, 0, 0, false), 0);
        assert_int_equal(resize(w, id, 4), -EBUSY);
}

static void test_newer_word_counts(void **state) {
        struct world *w = *state;
        uint64_t id = listening_job(w), epoch;

        assert_int_equal(resize(w, id, 6), 0);
        epoch = w->created;
        assert_int_equal(resize(w, id, 8), 0);
        assert_int_equal(resize_reported(w, id, epoch, epoch, 6, false), 0);
        expect_active(w, id, 4, 4, 0);
        assert_int_equal(job_of(w, id)->resize->requested, 8);
}

static void test_number_asked_for_stays(void **state) {
        struct world *w = *state;
        uint64_t id = listening_job(w);

        assert_int_equal(resize_auto(w, id, 0), -EBUSY);
        assert_int_equal(resize_auto(w, id, 6), 0);
        assert_int_equal(resize_auto(w, id, 8), -EBUSY); /* one after the other */
        assert_int_equal(resize(w, id, 4), 0);
        assert_true(job_of(w, id)->resize->by_hand);
        assert_int_equal(resize_auto(w, id, 6), -EBUSY);
        assert_int_equal(resize(w, id, 0), 0);
        assert_false(job_of(w, id)->resize->by_hand);
        assert_int_equal(resize_auto(w, id, 6), 0);
        assert_int_equal(job_of(w, id)->resize->requested, 6);
}

static void test_rmd_takes_its_growth_back(void **state) {
        struct world *w = *state;
        uint64_t id = listening_job(w), epoch;

        assert_int_equal(resize_auto(w, id, 6), 0);
        epoch = w->created;
        assert_int_equal(resize_auto(w, id, 4), 0);
        assert_string_equal(w->events, "job-resize-cancelled ");
        assert_int_equal(job_of(w, id)->resize->requested, 0);
        assert_int_equal(resize_reported(w, id, epoch, epoch, 6, false), 0);
        expect_active(w, id, 4, 4, 0);
        assert_int_equal(resize_auto(w, id, 4), 0); /* nothing is to be taken back */
        assert_int_equal(resize_auto(w, id, 6), 0);
        epoch = w->created;
        assert_int_equal(resize_reported(w, id, epoch, 0, 0, false), 0);
        assert_int_equal(resize_auto(w, id, 4), -EBUSY); /* it has begun */
        assert_int_equal(job_of(w, id)->resize->requested, 6);
}

static void test_end_unparks(void **state) {
        struct world *w = *state;
        uint64_t id = listening_job(w);

        assert_int_equal(resize_reported(w, id, 0, 0, 0, true), 0);
        assert_false(job_group_may_freeze(job_of(w, id), job_of(w, id)->capsules[3]));
        expect_active(w, id, 4, 4, 0); /* for that moment no cores are asked for */
        assert_int_equal(resize(w, id, 6), -EBUSY);
}

static void test_cores_of_parked_groups_are_free(void **state) {
        static const uint32_t cores[] = { 2, 3 };
        struct world *w = *state;
        uint64_t id = listening_job(w);

        assert_int_equal(job_cores(w, id, 1, "n1", cores, 2), 0);
        assert_int_equal(job_cores(w, id, 2, "n2", cores, 2), 0);
        assert_int_equal(job_of(w, id)->capsules[2]->n_cores, 2);
        assert_int_equal(job_of(w, id)->capsules[3]->n_cores, 0); /* it is parked */
        assert_int_equal(resize(w, id, 2), 0);
        assert_int_equal(resize_reported(w, id, w->created, w->created, 2, false), 0);
        assert_int_equal(job_of(w, id)->capsules[2]->n_cores, 0);
}

static void change(struct world *w, uint64_t id, uint32_t ranks) {
        assert_int_equal(resize(w, id, ranks), 0);
        assert_int_equal(resize_reported(w, id, w->created, w->created, ranks, false), 0);
}

/* In a group of both kinds the ranks that compute have cores, and no others: another job can use
 * these. One that is unparked shares cores where there are none, as it does in a group that is
 * added, and the cores that were chosen are those of fewer ranks. */
static void test_parked_ranks_beside_others(void **state) {
        static const char *const on_n2[] = { "n2" };
        static const uint32_t three[] = { 3 }, cores[] = { 1, 2 };
        struct world *w = *state;
        uint64_t id = listening_job(w);
        uint32_t ranks;

        change(w, id, 5);
        expect_active(w, id, 5, 4, 1);
        assert_int_equal(job_cores(w, id, 2, "n2", cores, 1), 0);
        assert_int_equal(job_of(w, id)->capsules[3]->n_cores, 1);
        assert_int_equal(job_cores(w, id, 2, "n2", cores, 2), 0); /* not for the one that is parked */
        assert_int_equal(job_of(w, id)->capsules[3]->n_cores, 1);
        start_job(w, (uint64_t) submit(w, 3), on_n2, three, 1);
        assert_null(state_job_fold(w->indexed, job_of(w, id), &ranks));
        change(w, id, 6);
        expect_active(w, id, 6, 4, 5);
        assert_int_equal(job_of(w, id)->capsules[3]->n_cores, 0);
        assert_string_equal(state_job_fold(w->indexed, job_of(w, id), &ranks)->name, "n2");
        assert_int_equal(ranks, 5);
        change(w, id, 3);
        expect_active(w, id, 3, 3, 3);
        assert_null(state_job_fold(w->indexed, job_of(w, id), &ranks));
}

/* A job that began before all nodes knew of that keeps a core for each rank of such a group, until
 * it begins again. */
static void test_parked_ranks_of_an_older_job(void **state) {
        struct world *w = *state;
        uint64_t id;

        w->state->level = w->twin->level = 1;
        id = listening_job(w);
        w->state->level = w->twin->level = STATE_LEVEL;
        change(w, id, 5);
        expect_active(w, id, 5, 4, 2);
        assert_int_equal(restart(w, id, 2, "n2", false), 0);
        for (int32_t i = -1; i < 4; i++)
                assert_int_equal(gone(w, id, i, i < 2 ? "n1" : "n2"), 0);
        place_all(w, id);
        assert_int_equal(resize_reported(w, id, 0, 0, 0, false), 0);
        change(w, id, 5);
        expect_active(w, id, 5, 4, 1);
}

static void test_begins_anew_as_at_first(void **state) {
        struct world *w = *state;
        uint64_t id = listening_job(w), epoch;

        assert_int_equal(resize(w, id, 8), 0);
        assert_int_equal(resize_reported(w, id, w->created, w->created, 8, false), 0);
        assert_int_equal(resize(w, id, 6), 0);
        epoch = w->created;
        assert_int_equal(health(w, "n2", 2), 0);
        assert_int_equal(restart(w, id, 2, "n2", true), 0);
        for (int32_t i = -1; i < 2; i++)
                assert_int_equal(gone(w, id, i, "n1"), 0);
        assert_int_equal(job_active_ranks(w->state, job_of(w, id)), 4);
        assert_int_equal(health(w, "n2", 1), 0);
        place_all(w, id);
        expect_active(w, id, 4, 4, 0);
        assert_true(job_of(w, id)->resize->epoch > epoch);
        assert_int_equal(job_of(w, id)->resize->requested, 0);
        assert_false(job_of(w, id)->resize->listens);
        assert_int_equal(resize_reported(w, id, epoch, epoch, 6, false), 0);
        expect_active(w, id, 4, 4, 0);
}

static int begin_checkpoint(struct world *w, uint64_t job) {
        struct command c;

        (void) command_checkpoint_start(&c, job, RM__CHECKPOINT_CAUSE__CHECKPOINT_CAUSE_ASKED);
        return apply_command(w, &c.command);
}

static void test_captured_before_or_after(void **state) {
        struct world *w = *state;
        uint64_t id = listening_job(w), epoch;
        struct command c;

        assert_int_equal(resize(w, id, 8), 0);
        epoch = w->created;
        assert_int_equal(begin_checkpoint(w, id), 0);
        /* A refused report changes nothing, whatever else it tells. */
        assert_int_equal(resize_reported(w, id, epoch, 0, 0, false), -EAGAIN);
        assert_int_equal(resize_reported(w, id, epoch, 0, 0, true), -EAGAIN);
        assert_int_equal(resize_reported(w, id, epoch, epoch, 8, true), -EAGAIN);
        assert_int_equal(resize_reported(w, id, 0, epoch, 6, true), -EAGAIN);
        assert_false(job_of(w, id)->resize->ending);
        expect_active(w, id, 4, 4, 0);
        (void) command_checkpoint_captured(&c, id, 1);
        assert_int_equal(apply_command(w, &c.command), 0);
        assert_int_equal(job_checkpoint(job_of(w, id), 1)->resize->active, 4);
        assert_int_equal(resize_reported(w, id, epoch, 0, 0, false), 0);
        assert_int_equal(apply_command(w, command_checkpoint_abort(&c, id, 1, "disk")), 0);
        assert_int_equal(begin_checkpoint(w, id), -EAGAIN);
        assert_int_equal(resize_reported(w, id, epoch, epoch, 8, false), 0);
        assert_int_equal(begin_checkpoint(w, id), 0);
        assert_int_equal(job_checkpoint(job_of(w, id), 2)->resize->active, 8);
}

/* From a checkpoint with the number that it had then, whatever came later. */
static void test_goes_on_with_what_was_saved(void **state) {
        struct world *w = *state;
        uint64_t id = listening_job(w), epoch;
        struct command c;
        Rm__CmdJobPlace *body;

        assert_int_equal(begin_checkpoint(w, id), 0);
        (void) command_checkpoint_captured(&c, id, 1);
        assert_int_equal(apply_command(w, &c.command), 0);
        for (int32_t i = -1; i < 4; i++) {
                (void) command_checkpoint_stored(&c, id, 1, i, i > 1 ? "n2" : "n1");
                assert_int_equal(apply_command(w, &c.command), 0);
        }
        assert_int_equal(resize(w, id, 8), 0);
        assert_int_equal(resize_reported(w, id, w->created, w->created, 8, false), 0);
        epoch = job_of(w, id)->resize->epoch;
        assert_int_equal(restart(w, id, 2, "n2", false), 0);
        for (int32_t i = -1; i < 4; i++)
                assert_int_equal(gone(w, id, i, i > 1 ? "n2" : "n1"), 0);
        body = command_job_place(&c, id);
        body->group_size = 2;
        body->head_node = (char *) "n1";
        body->group_nodes = (char **) places;
        body->group_ranks = (uint32_t *) twos;
        body->n_group_nodes = body->n_group_ranks = 4;
        body->policy = (char *) "greedy";
        body->checkpoint = 1;
        assert_int_equal(apply_command(w, &c.command), 0);
        expect_active(w, id, 4, 4, 0);
        assert_true(job_of(w, id)->resize->epoch > epoch);
}

static void test_impossible_jobs_are_refused(void **state) {
        struct world *w = *state;

        assert_int_equal(submit_resizable(w, 4, 5, 1), -EINVAL);
        assert_int_equal(submit_resizable(w, 4, 2, 3), -EINVAL);
        assert_true(submit_resizable(w, 4, 4, 4) > 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_parked_groups_ask_for_no_cores, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_grows, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_shrinks_when_it_is_done, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_late_words_count, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_words_of_no_change_have_no_effect, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_programs_say_numbers_that_cannot_be, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_numbers_below_the_level, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_refusals_say_why, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_is_taken_back_before_it_begins, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_newer_word_counts, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_number_asked_for_stays, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_rmd_takes_its_growth_back, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_end_unparks, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_cores_of_parked_groups_are_free, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_parked_ranks_beside_others, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_parked_ranks_of_an_older_job, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_begins_anew_as_at_first, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_captured_before_or_after, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_goes_on_with_what_was_saved, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_impossible_jobs_are_refused, set_up, world_tear_down),
        };

        return cmocka_run_group_tests_name("state_resize", tests, NULL, NULL);
}
