/* Answers of rounds that are carried out after the state has changed since the round began. The
 * cluster's part is played by the test. */
#include <errno.h>

#include "daemon/cluster/cluster.h"
#include "daemon/config/config.h"
#include "daemon/context.h"
#include "daemon/leader/enact.h"
#include "daemon/leader/round_input.h"
#include "daemon/state/commands.h"
#include "tests/unit/state/state_test.h"

enum { DOWN = 2 };

struct scene {
        struct world w;
        struct config config;
        struct rmd rmd;
        uint64_t job;
        struct round_input input; /* that the round was made of */
        unsigned n_places, n_moves; /* that were proposed, and the last of each */
        uint64_t checkpoint;
        char policy[16], to[16];
};

const Rm__State *cluster_state(const struct cluster *cluster) {
        return ((const struct scene *) cluster)->w.state;
}

const struct state_index *cluster_index(const struct cluster *cluster) {
        return ((const struct scene *) cluster)->w.indexed;
}

uint64_t cluster_log_usec(const struct cluster *cluster) {
        return ((const struct scene *) cluster)->w.time_usec;
}

void cluster_decide(struct cluster *cluster, const Rm__Command *command) {
        struct scene *s = (struct scene *) cluster;

        if (command->body_case == RM__COMMAND__BODY_JOB_PLACE) {
                s->n_places++;
                s->checkpoint = command->job_place->checkpoint;
                (void) snprintf(s->policy, sizeof(s->policy), "%s", command->job_place->policy);
        } else if (command->body_case == RM__COMMAND__BODY_MOVE_START) {
                s->n_moves++;
                (void) snprintf(s->to, sizeof(s->to), "%s", command->move_start->to);
        }
        assert_int_equal(apply_command(&s->w, command), 0);
}

static int set_up(void **state) {
        struct scene *s = xcalloc(1, sizeof(*s));

        world_init(&s->w);
        s->w.thorough = false; /* the tests write into the state */
        for (unsigned i = 1; i <= 4; i++) {
                char name[8];

                (void) snprintf(name, sizeof(name), "n%u", i);
                assert_int_equal(join(&s->w, name, 4), 0);
        }
        s->config.moves_at_once = 4;
        s->config.horizon_usec = 1;
        s->rmd = (struct rmd) { .config = &s->config, .cluster = (struct cluster *) s };
        *state = s;
        return 0;
}

static int tear_down(void **state) {
        struct scene *s = *state;

        round_input_finish(&s->input);
        world_finish(&s->w);
        free(s);
        return 0;
}

/* Head and group 0 on n1, group 1 on n2. */
static void start(struct scene *s) {
        static const char *const nodes[] = { "n1", "n2" };
        static const uint32_t ranks[] = { 1, 1 };
        int id = submit(&s->w, 2);

        assert_true(id > 0);
        s->job = (uint64_t) id;
        let_restart(&s->w, s->job, 5);
        start_job(&s->w, s->job, nodes, ranks, 2);
}

/* A checkpoint of it, with copies of all parts on that node. */
static void save(struct scene *s, const char *copies) {
        char *nodes[] = { (char *) "n1", (char *) "n2" }, *partners[] = { (char *) copies, (char *) copies };
        struct command c;
        Rm__CmdCheckpointStart *in = command_checkpoint_start(&c, s->job, RM__CHECKPOINT_CAUSE__CHECKPOINT_CAUSE_ASKED);
        uint64_t id;

        in->by = (char *) "alice";
        in->keep = 5;
        in->capsule_nodes = nodes;
        in->partners = partners;
        in->n_capsule_nodes = in->n_partners = 2;
        assert_int_equal(apply_command(&s->w, &c.command), 0);
        id = s->w.created;
        (void) command_checkpoint_captured(&c, s->job, id);
        assert_int_equal(apply_command(&s->w, &c.command), 0);
        for (int32_t i = -1; i < 2; i++) {
                (void) command_checkpoint_stored(&c, s->job, id, i, i == 1 ? "n2" : "n1");
                assert_int_equal(apply_command(&s->w, &c.command), 0);
                (void) command_checkpoint_stored(&c, s->job, id, i, copies);
                assert_int_equal(apply_command(&s->w, &c.command), 0);
        }
        assert_int_equal(job_newest_checkpoint(s->w.state, job_of(&s->w, s->job))->id, id);
}

/* The job has checkpoint 1, which n3 has, and 2, which n4 has; n2, which has both, is lost, and the
 * job waits to be placed. */
static void lose_node(struct scene *s) {
        start(s);
        save(s, "n3");
        save(s, "n4");
        assert_int_equal(health(&s->w, "n2", DOWN), 0);
        assert_int_equal(restart(&s->w, s->job, 2, "n2", true), 0);
        assert_int_equal(gone(&s->w, s->job, STATE_HEAD, "n1"), 0);
        assert_int_equal(gone(&s->w, s->job, 0, "n1"), 0);
        assert_int_equal(job_of(&s->w, s->job)->state, RM__JOB_STATE__JOB_PENDING);
}

static void see(struct scene *s, uint64_t checkpoint) {
        const struct round_input_config config = { .group_size = 1, .horizon_usec = 1, .bytes_per_cost = 1 };

        round_input_create(s->w.indexed, &config, &s->input);
        assert_int_equal(s->input.n_jobs, 1);
        assert_int_equal(s->input.jobs[0].checkpoint, checkpoint);
}

/* The answer is that the job starts with all groups on n1; or, `folded`, that it waits. */
static void answer(struct scene *s, bool folded) {
        int32_t nodes[] = { 0, 0 };
        struct round_action action = { .kind = ROUND_START, .group_node = nodes };
        struct round_job_result job = { .checkpoint = s->input.jobs[0].checkpoint, .policy = "greedy", .waits = folded };
        struct round_result result = { .actions = &action, .n_actions = !folded, .jobs = &job, .n_jobs = 1 };
        bool short_of_memory = false;

        (void) enact_round(&s->rmd, snapshot_view(s->input.snapshot), &result, "", &short_of_memory);
        assert_false(short_of_memory);
}

static void test_goes_on_from_what_was_planned(void **state) {
        struct scene *s = *state;

        lose_node(s);
        see(s, 2);
        assert_int_equal(health(&s->w, "n3", DOWN), 0); /* which matters to the other one only */
        answer(s, false);
        assert_int_equal(s->n_places, 1);
        assert_int_equal(s->checkpoint, 2);
        assert_int_equal(job_of(&s->w, s->job)->restored_from, 2);
}

/* ---- what happens while the round is under way ---- */

static void newest_is_back(struct scene *s) {
        assert_int_equal(join(&s->w, "n4", 4), 0);
}

static void newest_has_gone(struct scene *s) {
        assert_int_equal(health(&s->w, "n4", DOWN), 0);
}

static void all_have_gone(struct scene *s) {
        assert_int_equal(health(&s->w, "n4", DOWN), 0);
        assert_int_equal(health(&s->w, "n3", DOWN), 0);
}

static void remove_checkpoint(struct scene *s, uint64_t checkpoint) {
        struct command c;

        assert_int_equal(apply_command(&s->w, command_checkpoint_remove(&c, s->job, checkpoint, "alice")), 0);
}

static void newest_is_removed(struct scene *s) {
        remove_checkpoint(s, 2);
}

static void all_are_removed(struct scene *s) {
        remove_checkpoint(s, 2);
        remove_checkpoint(s, 1);
}

static void newest_cannot_be_read(struct scene *s) {
        job_checkpoint(job_of(&s->w, s->job), 2)->unreadable = true;
}

/* Nothing that was saved is thrown away, and an older state is not taken where a newer one is: the
 * next round is made of what is there then. */
static void expect_next_round(struct scene *s, void (*change)(struct scene *s), uint64_t planned, bool folded) {
        size_t n_checkpoints;

        lose_node(s);
        if (change == newest_is_back)
                assert_int_equal(health(&s->w, "n4", DOWN), 0);
        job_of(&s->w, s->job)->spec->on_node_loss = STATE_LOSS_FOLD;
        see(s, planned);
        change(s);
        n_checkpoints = job_of(&s->w, s->job)->n_checkpoints;
        answer(s, folded);
        assert_int_equal(s->n_places, 0);
        assert_int_equal(job_of(&s->w, s->job)->state, RM__JOB_STATE__JOB_PENDING);
        assert_int_equal(job_of(&s->w, s->job)->n_checkpoints, n_checkpoints);
}

static void each_change(void **state, bool folded) {
        static const struct {
                void (*change)(struct scene *s);
                uint64_t planned;
        } changes[] = {
                { newest_is_back, 1 },    { newest_has_gone, 2 }, { all_have_gone, 2 },
                { newest_is_removed, 2 }, { all_are_removed, 2 }, { newest_cannot_be_read, 2 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
                if (i > 0) {
                        assert_int_equal(tear_down(state), 0);
                        assert_int_equal(set_up(state), 0);
                }
                expect_next_round(*state, changes[i].change, changes[i].planned, folded);
        }
}

static void test_not_placed_from_another_checkpoint(void **state) {
        each_change(state, false);
}

static void test_not_folded_from_another_checkpoint(void **state) {
        each_change(state, true);
}

/* A job that shares cores goes on from its checkpoint as well. */
static void test_folded_from_what_was_planned(void **state) {
        struct scene *s = *state;

        lose_node(s);
        job_of(&s->w, s->job)->spec->on_node_loss = STATE_LOSS_FOLD;
        see(s, 2);
        answer(s, true);
        assert_int_equal(s->n_places, 1);
        assert_int_equal(s->checkpoint, 2);
        assert_string_equal(s->policy, "fold");
}

/* ---- moves ---- */

static size_t move_to_n4(struct scene *s, int32_t group, enum round_cause cause) {
        struct round_action action = { .kind = ROUND_MOVE, .group = group, .from = group == 1 ? 1 : 0, .to = 3, .cause = cause };
        struct round_job_result job = { 0 };
        struct round_result result = { .actions = &action, .n_actions = 1, .jobs = &job, .n_jobs = 1 };
        bool short_of_memory = false;

        s->n_moves = 0;
        (void) enact_round(&s->rmd, snapshot_view(s->input.snapshot), &result, "", &short_of_memory);
        return s->n_moves;
}

/* A user has moved the capsule where he wants it while the round was under way, which saw it where
 * it was: no cause of the round holds any more. */
static void test_moved_by_a_user_meanwhile(void **state) {
        static const struct {
                int32_t group;
                enum round_cause cause;
        } cases[] = { { 0, ROUND_NEEDED }, { 1, ROUND_RETURN }, { 1, ROUND_CHOICE }, { ROUND_HEAD, ROUND_NEEDED } };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                for (int moved = 0; moved < 2; moved++) {
                        int32_t capsule = cases[i].group == ROUND_HEAD ? STATE_HEAD : cases[i].group;
                        struct scene *s;

                        assert_int_equal(tear_down(state), 0);
                        assert_int_equal(set_up(state), 0);
                        s = *state;
                        start(s);
                        see(s, 0);
                        if (moved) {
                                assert_int_equal(move_start(&s->w, s->job, capsule, "n3"), 0);
                                assert_int_equal(move_commit(&s->w, s->w.state->next_move - 1), 0);
                                assert_int_equal(move_done(&s->w, s->w.state->next_move - 1, 1, 1), 0);
                        }
                        assert_int_equal(move_to_n4(s, cases[i].group, cases[i].cause), !moved);
                        assert_string_equal(job_capsule(job_of(&s->w, s->job), capsule)->node, moved              ? "n3"
                                                                                               : i == 0 || i == 3 ? "n1"
                                                                                                                  : "n2");
                }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_goes_on_from_what_was_planned, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_not_placed_from_another_checkpoint, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_not_folded_from_another_checkpoint, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_folded_from_what_was_planned, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_moved_by_a_user_meanwhile, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
