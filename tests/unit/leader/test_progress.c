/* How far jobs are, from what nodes report of their groups. */
#include "daemon/leader/progress.h"
#include "daemon/state/commands.h"
#include "tests/unit/state/state_test.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define SECOND UINT64_C(1000000)
#define REPORT_SECONDS 2U

struct scene {
        struct world world;
        struct progress *progress;
        uint64_t job;
        uint64_t now_usec;
        uint64_t age_usec; /* of what is told */
};

/* Two groups of two ranks. */
static int set_up(void **state) {
        static const char *const nodes[] = { "n1", "n2" };
        static const uint32_t ranks[] = { 2, 2 };
        struct scene *s = xcalloc(1, sizeof(*s));
        struct world *w = &s->world;

        world_init(w);
        assert_int_equal(join(w, "n1", 4), 0);
        assert_int_equal(join(w, "n2", 4), 0);
        s->job = (uint64_t) submit(w, 4);
        assert_int_equal(place(w, s->job, "n1", nodes, ranks, 2), 0);
        assert_int_equal(running(w, s->job), 0);
        s->progress = progress_create();
        s->now_usec = 1000 * SECOND;
        *state = s;
        return 0;
}

static int tear_down(void **state) {
        struct scene *s = *state;

        progress_destroy(s->progress);
        world_finish(&s->world);
        free(s);
        return 0;
}

static void report_of(struct scene *s, uint64_t job, int32_t group, uint64_t done, uint64_t total, double goal) {
        Rm__GroupProgress progress = RM__GROUP_PROGRESS__INIT;
        Rm__GroupMemory memory = RM__GROUP_MEMORY__INIT;
        Rm__GroupMemory *groups[] = { &memory };
        Rm__NodeMemory report = RM__NODE_MEMORY__INIT;

        progress.ranks = 2;
        progress.done = done;
        progress.total = total;
        progress.goal_min = goal;
        progress.age_usec = s->age_usec;
        memory.job = job;
        memory.capsule = group;
        memory.progress = &progress;
        report.groups = groups;
        report.n_groups = 1;
        progress_add(s->progress, s->world.indexed, &report, s->now_usec);
}

static void report_done(struct scene *s, int32_t group, uint64_t done, uint64_t total) {
        report_of(s, s->job, group, done, total, 0);
}

static Rm__Progress get(const struct scene *s) {
        Rm__Progress ret = RM__PROGRESS__INIT;

        assert_true(progress_get(s->progress, s->job, s->now_usec, &ret));
        return ret;
}

/* Both groups at this rate. */
static void run(struct scene *s, uint64_t seconds, uint64_t *done, uint64_t steps_per_second) {
        for (uint64_t i = 0; i < seconds; i += REPORT_SECONDS) {
                s->now_usec += REPORT_SECONDS * SECOND;
                *done += REPORT_SECONDS * steps_per_second;
                report_done(s, 0, *done, 100000);
                report_done(s, 1, *done, 100000);
        }
}

#define ABOUT(value, requested) assert_true(fabs((value) - (requested)) < (requested) * 0.05)

static void test_last_group(void **state) {
        struct scene *s = *state;
        Rm__Progress p = RM__PROGRESS__INIT;

        assert_false(progress_get(s->progress, s->job, s->now_usec, &p));
        report_done(s, 0, 50, 100);
        assert_int_equal(get(s).done, 50);
        assert_int_equal(get(s).ranks, 2);
        assert_true(get(s).rate <= 0);
        report_done(s, 1, 40, 100);
        p = get(s);
        assert_int_equal(p.done, 40);
        assert_int_equal(p.total, 100);
        assert_int_equal(p.ranks, 4);
}

static void test_rate(void **state) {
        struct scene *s = *state;
        uint64_t done = 0;

        report_done(s, 0, 0, 100000);
        report_done(s, 1, 0, 100000);
        run(s, 20, &done, 10);
        ABOUT(get(s).rate, 10);
        ABOUT((double) get(s).left_usec, (100000 - 200) / 10 * 1e6);
        run(s, 200, &done, 40);
        ABOUT(get(s).rate, 40);
        /* The job makes no steps. */
        s->now_usec += 100 * SECOND;
        assert_true(get(s).rate < 0.011);
        run(s, 200, &done, 40);
        ABOUT(get(s).rate, 40);
}

/* Steps that come at once, as when the ranks of a loaded node get their cores for a moment, count
 * for no more than their time. */
static void test_burst(void **state) {
        struct scene *s = *state;
        uint64_t done = 1000;

        report_done(s, 0, 0, 100000);
        report_done(s, 1, 0, 100000);
        s->now_usec += 10000;
        report_done(s, 0, done, 100000);
        report_done(s, 1, done, 100000);
        assert_true(get(s).rate <= 0);
        assert_int_equal(get(s).left_usec, 0);
        run(s, 100, &done, 10);
        assert_true(get(s).rate < 20);
        s->now_usec += 10000;
        done += 1000;
        report_done(s, 0, done, 100000);
        report_done(s, 1, done, 100000);
        assert_true(get(s).rate < 60);
}

/* Steps that a restart undoes are no slow ones. */
static void test_goes_back(void **state) {
        struct scene *s = *state;
        uint64_t done = 1000;

        report_done(s, 0, done, 100000);
        report_done(s, 1, done, 100000);
        run(s, 100, &done, 10);
        done = 500;
        report_done(s, 0, done, 100000);
        report_done(s, 1, done, 100000);
        assert_int_equal(get(s).done, 500);
        ABOUT(get(s).rate, 10);
        run(s, 10, &done, 10);
        ABOUT(get(s).rate, 10);
}

static void test_nonsense(void **state) {
        struct scene *s = *state;
        Rm__Progress p = RM__PROGRESS__INIT;

        report_done(s, -1, 1, 2);
        report_done(s, 2, 1, 2);
        report_done(s, INT32_MAX, 1, 2);
        report_done(s, INT32_MIN, 1, 2);
        report_of(s, 99, 0, 1, 2, 0);
        assert_false(progress_get(s->progress, s->job, s->now_usec, &p));
        assert_false(progress_get(s->progress, 99, s->now_usec, &p));
        report_of(s, s->job, 0, UINT64_MAX, 1, NAN);
        p = get(s);
        assert_int_equal(p.left_usec, 0);
        assert_true(p.goal_min <= 0);
}

static void test_forgotten(void **state) {
        struct scene *s = *state;
        Rm__Progress p = RM__PROGRESS__INIT;

        report_done(s, 0, 1, 2);
        progress_forget(s->progress, s->world.state);
        assert_int_equal(get(s).done, 1);
        state_job(s->world.state, s->job)->state = RM__JOB_STATE__JOB_COMPLETED;
        progress_forget(s->progress, s->world.state);
        assert_false(progress_get(s->progress, s->job, s->now_usec, &p));
        state_job(s->world.state, s->job)->state = RM__JOB_STATE__JOB_RUNNING;
}

static struct steps steps(const struct scene *s) {
        struct steps ret;

        progress_steps(s->progress, s->job, &ret);
        return ret;
}

/* Half of the cores, and all of them again: what was measured with the others is kept, and what was
 * done before the change counts for neither. */
static void test_cores(void **state) {
        static const char *const nodes[] = { "n1", "n2" };
        static const uint32_t all[] = { 4, 4 }, few[] = { 1, 1 }, one[] = { 1, 4 };
        struct scene *s = *state;
        struct world *w = &s->world;
        uint64_t done = 0;

        assert_false(steps_known(&(struct steps) { 0 }));
        assert_int_equal(available(w, nodes, all, 2), 0);
        run(s, 6, &done, 10);
        assert_false(steps_known(&(struct steps) { steps(s).own_rate })); /* too short */
        run(s, 60, &done, 10);
        ABOUT(steps(s).own_rate, 10);
        assert_true(steps(s).shared_rate <= 0);
        assert_int_equal(steps(s).left, 100000 - done);

        assert_int_equal(available(w, nodes, few, 2), 0); /* two ranks to a core */
        done += 30; /* of the time before */
        run(s, 4, &done, 4);
        assert_true(steps(s).shared_rate <= 0);
        run(s, 60, &done, 4);
        ABOUT(steps(s).own_rate, 10);
        ABOUT(steps(s).shared_rate, 4);
        ABOUT(steps(s).shared_by, 2);
        assert_int_equal(available(w, nodes, one, 2), 0); /* as far as the fuller node it is the same */
        run(s, 20, &done, 4);
        ABOUT(steps(s).shared_rate, 4);

        assert_int_equal(available(w, nodes, all, 2), 0);
        run(s, 60, &done, 10);
        ABOUT(steps(s).own_rate, 10);
        ABOUT(steps(s).shared_rate, 4);
}

/* A report that was made some time before it came counts from then on. */
static void test_age(void **state) {
        struct scene *s = *state;
        uint64_t done = 0;

        for (int i = 0; i < 40; i++) {
                s->age_usec = (uint64_t) (i % 2) * 1500000;
                s->now_usec += 2 * SECOND;
                done += 20 - (i % 2 ? 15 : 0) + (i > 0 && i % 2 == 0 ? 15 : 0);
                report_done(s, 0, done, 100000);
        }
        assert_true(fabs(steps(s).own_rate - 10) < 0.001);
}

/* The group is frozen in a move, and that is no slow step. */
static void test_moves(void **state) {
        struct scene *s = *state;
        uint64_t done = 0;

        run(s, 60, &done, 10);
        assert_int_equal(move_start(&s->world, s->job, 0, "n2"), 0);
        run(s, 40, &done, 1);
        assert_int_equal(move_abort(&s->world, s->world.created, "no"), 0);
        run(s, 40, &done, 10);
        ABOUT(steps(s).own_rate, 10);
        assert_true(steps(s).shared_rate <= 0);
}

/* ---- by the nodes it runs on ---- */

static size_t places(const struct scene *s, const struct job_place *ret[JOB_PLACES_MOST]) {
        return progress_places(s->progress, s->job, ret);
}

/* Group 1 leaves n2 for n3, for this cause; some time passes in the move. */
static void move_to(struct scene *s, int32_t group, const char *node, Rm__MoveCause cause) {
        struct world *w = &s->world;
        uint64_t move;

        assert_int_equal(move_start(w, s->job, group, node), 0);
        move = w->created;
        w->state->moves[w->state->n_moves - 1]->cause = w->twin->moves[w->twin->n_moves - 1]->cause = cause;
        assert_int_equal(move_commit(w, move), 0);
        assert_int_equal(move_done(w, move, 1 << 20, 200000), 0);
        s->now_usec += 2 * SECOND;
}

static void evacuate(struct scene *s) {
        move_to(s, 1, "n3", RM__MOVE_CAUSE__MOVE_CAUSE_NEEDED);
}

/* The rate of one set of nodes is not that of another, though each rank has a core on both. */
static void test_nodes(void **state) {
        struct scene *s = *state;
        const struct job_place *known[JOB_PLACES_MOST];
        uint64_t done = 0;

        assert_int_equal(join(&s->world, "n3", 4), 0);
        run(s, 60, &done, 10);
        ABOUT(steps(s).here_rate, 10);
        assert_int_equal(places(s, known), 0);
        evacuate(s);
        done += 30; /* of the time before */
        run(s, 4, &done, 5);
        assert_true(steps(s).here_rate <= 0);
        ABOUT(steps(s).own_rate, 10);
        run(s, 60, &done, 5);
        ABOUT(steps(s).here_rate, 5);
        ABOUT(steps(s).own_rate, 5);
        assert_int_equal(places(s, known), 1);
        ABOUT(known[0]->rate, 10);
        assert_true(known[0]->left);
        assert_string_equal(known[0]->nodes[0], "n1");
        assert_string_equal(known[0]->nodes[1], "n2");
        assert_null(known[0]->nodes[2]); /* that is the head's */
        /* The job is back, and has no place to go back to. */
        move_to(s, 1, "n2", RM__MOVE_CAUSE__MOVE_CAUSE_CHOICE);
        run(s, 20, &done, 10);
        ABOUT(steps(s).here_rate, 10);
        assert_int_equal(places(s, known), 1);
        ABOUT(known[0]->rate, 5);
        assert_false(known[0]->left);
}

/* A job that a user sends elsewhere, or a policy that prefers a place, is wanted there. */
static void test_nodes_not_left_by_need(void **state) {
        struct scene *s = *state;
        const struct job_place *known[JOB_PLACES_MOST];
        uint64_t done = 0;

        assert_int_equal(join(&s->world, "n3", 4), 0);
        for (int i = 0; i < 2; i++) {
                run(s, 30, &done, 10);
                move_to(s, 1, i == 0 ? "n3" : "n2", i == 0 ? RM__MOVE_CAUSE__MOVE_CAUSE_ASKED : RM__MOVE_CAUSE__MOVE_CAUSE_CHOICE);
                run(s, 30, &done, 5);
                assert_int_equal(places(s, known), 1);
                assert_false(known[0]->left);
        }
}

/* Groups leave one after the other: what is measured in between is no place, and what was before is
 * not forgotten for it. */
static void test_nodes_left_one_by_one(void **state) {
        static const char *const between[] = { "n3", "n4", "n5", "n6", "n7", "n8" };
        struct scene *s = *state;
        const struct job_place *known[JOB_PLACES_MOST];
        uint64_t done = 0;

        for (size_t i = 0; i < ARRAY_SIZE(between); i++)
                assert_int_equal(join(&s->world, between[i], 4), 0);
        run(s, 30, &done, 10);
        for (size_t i = 0; i < ARRAY_SIZE(between); i++) {
                move_to(s, (int32_t) (i % 2), between[i], RM__MOVE_CAUSE__MOVE_CAUSE_NEEDED);
                run(s, 2, &done, 5);
        }
        run(s, 30, &done, 5);
        assert_int_equal(places(s, known), 1);
        ABOUT(known[0]->rate, 10);
        assert_true(known[0]->left);
        assert_string_equal(known[0]->nodes[1], "n2");
}

/* A node is lost, and the job goes on elsewhere in another attempt. */
static void test_nodes_of_another_attempt(void **state) {
        static const char *const nodes[] = { "n1", "n3" };
        static const uint32_t ranks[] = { 2, 2 };
        struct scene *s = *state;
        struct world *w = &s->world;
        const struct job_place *known[JOB_PLACES_MOST];
        Rm__Progress p = RM__PROGRESS__INIT;
        uint64_t done = 0;

        assert_int_equal(join(w, "n3", 4), 0);
        let_restart(w, s->job, 3);
        run(s, 30, &done, 10);
        assert_int_equal(health(w, "n2", RM__NODE_HEALTH__NODE_HEALTH_DOWN), 0);
        assert_int_equal(restart(w, s->job, state_job(w->state, s->job)->attempt + 1, "n2", true), 0);
        progress_forget(s->progress, w->state);
        assert_false(progress_get(s->progress, s->job, s->now_usec, &p));
        assert_int_equal(gone(w, s->job, STATE_HEAD, "n1"), 0);
        assert_int_equal(gone(w, s->job, 0, "n1"), 0);
        assert_int_equal(place(w, s->job, "n1", nodes, ranks, 2), 0);
        assert_int_equal(running(w, s->job), 0);
        done = 0;
        run(s, 30, &done, 5);
        ABOUT(steps(s).here_rate, 5);
        assert_int_equal(places(s, known), 1);
        ABOUT(known[0]->rate, 10);
        assert_true(known[0]->left);
}

/* The leader's node is drained: the next leader has it from the log, and the move there from the
 * state. */
static void test_nodes_known_to_the_next_leader(void **state) {
        struct scene *s = *state;
        struct world *w = &s->world;
        const struct job_place *known[JOB_PLACES_MOST];
        const struct job_places *all;
        Rm__JobRate rate, *list[] = { &rate };
        Rm__CmdJobRates *body;
        struct command c;
        uint64_t done = 0, id = 0;

        assert_int_equal(join(w, "n3", 4), 0);
        run(s, 8, &done, 10);
        assert_false(progress_take_news(s->progress, &id, &all));
        run(s, 30, &done, 10);
        assert_true(progress_take_news(s->progress, &id, &all));
        assert_int_equal(id, s->job);
        body = command_job_rates(&c, id, state_job(w->state, id)->attempt);
        job_place_pack(&all->places[0], &rate);
        body->rates = list;
        body->n_rates = 1;
        assert_int_equal(apply_command(w, &c.command), 0);
        body->attempt++;
        assert_int_equal(apply_command(w, &c.command), -ESRCH);
        free(rate.nodes);
        assert_false(progress_take_news(s->progress, &id, &all));
        progress_destroy(s->progress);
        s->progress = progress_create();
        evacuate(s);
        run(s, 30, &done, 5);
        ABOUT(steps(s).here_rate, 5);
        assert_int_equal(places(s, known), 1);
        ABOUT(known[0]->rate, 10);
        assert_true(known[0]->left);
        assert_string_equal(known[0]->nodes[1], "n2");
        assert_true(progress_take_news(s->progress, &id, &all));
}

static void test_goals(void **state) {
        struct scene *s = *state;

        assert_true(steps(s).goal_min <= 0);
        report_of(s, s->job, 0, 7, 7, 5);
        ABOUT(steps(s).goal_min, 5);
        assert_int_equal(steps(s).left, 1); /* none is left, and that is known */
        report_of(s, s->job, 0, 7, 0, 5);
        assert_int_equal(steps(s).left, 0);
}

/* The group reported before it was parked, and does not report any more. */
static void test_parked_groups_hold_up_nobody(void **state) {
        static const char *const nodes[] = { "n1", "n2" };
        static const uint32_t ranks[] = { 2, 2 };
        struct scene *s = *state;
        struct world *w = &s->world;
        Rm__GroupMemory memory = RM__GROUP_MEMORY__INIT;
        Rm__GroupMemory *groups[] = { &memory };
        Rm__NodeMemory report = RM__NODE_MEMORY__INIT;

        s->job = (uint64_t) submit_resizable(w, 4, 4, 1);
        assert_int_equal(place(w, s->job, "n1", nodes, ranks, 2), 0);
        assert_int_equal(running(w, s->job), 0);
        report_done(s, 0, 10, 100);
        report_done(s, 1, 10, 100);
        assert_int_equal(get(s).done, 10);
        assert_int_equal(resize_reported(w, s->job, 0, 0, 0, false), 0);
        assert_int_equal(resize(w, s->job, 2), 0);
        assert_int_equal(resize_reported(w, s->job, w->created, w->created, 2, false), 0);
        memory.job = s->job;
        memory.capsule = 1;
        report.groups = groups;
        report.n_groups = 1;
        progress_add(s->progress, w->indexed, &report, s->now_usec);
        report_done(s, 0, 50, 100);
        assert_int_equal(get(s).done, 50);
        assert_int_equal(get(s).ranks, 2);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_parked_groups_hold_up_nobody, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_last_group, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_rate, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_burst, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_goes_back, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_nonsense, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_forgotten, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_cores, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_age, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_moves, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_goals, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_nodes, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_nodes_known_to_the_next_leader, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_nodes_not_left_by_need, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_nodes_left_one_by_one, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_nodes_of_another_attempt, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
