/* The effect of a command is known before it is in the log: those that change nothing, and those
 * that are refused, need not be there. That the effect comes true is checked for each command of
 * all tests of the state (apply_command()). */
#include "state_test.h"

#include "daemon/state/commands.h"

static int set_up(void **state) {
        return world_start(state, 3, 4);
}

static enum state_effect effect(struct world *w, const Rm__Command *command, struct state_result *ret) {
        return state_effect(w->state, w->indexed, command, w->time_usec, ret);
}

static void none(struct world *w, const Rm__Command *command, uint64_t created) {
        struct state_result result;

        assert_int_equal(effect(w, command, &result), STATE_EFFECT_NONE);
        assert_int_equal(result.created, created);
}

static void changes(struct world *w, const Rm__Command *command) {
        struct state_result result;

        assert_int_equal(effect(w, command, &result), STATE_EFFECT_CHANGE);
}

static void refused(struct world *w, const Rm__Command *command, int code) {
        struct state_result result;

        assert_int_equal(effect(w, command, &result), STATE_EFFECT_REFUSED);
        assert_int_equal(result.error.code, code);
        assert_true(result.error.text[0]);
}

/* The job's program listens; two of four ranks are active, those on n2 are parked. */
static uint64_t running_job(struct world *w) {
        static const char *const nodes[] = { "n1", "n2" };
        static const uint32_t ranks[] = { 2, 2 };
        uint64_t id = (uint64_t) submit_resizable(w, 4, 2, 1);

        start_job(w, id, nodes, ranks, 2);
        assert_int_equal(resize_reported(w, id, 0, 0, 0, false), 0);
        return id;
}

static void test_jobs(void **state) {
        struct world *w = *state;
        uint64_t id = running_job(w);
        struct command c;

        changes(w, command_job_resize(&c, id, 2, "alice")); /* from now on by hand */
        assert_int_equal(resize(w, id, 2), 0);
        none(w, command_job_resize(&c, id, 2, "alice"), 0);
        changes(w, command_job_resize(&c, id, 0, "alice"));
        refused(w, command_job_resize(&c, id, 5, "alice"), -ERANGE);
        assert_int_equal(resize(w, id, 4), 0);
        none(w, command_job_resize(&c, id, 4, "alice"), w->created); /* who asks again waits for the same */
        changes(w, command_job_resize(&c, id, 3, "alice"));
        changes(w, command_job_cancel(&c, id, 15, "alice"));
        assert_int_equal(cancel(w, id, 15, false), 0);
        none(w, command_job_cancel(&c, id, 15, "root"), 0);
        changes(w, command_job_cancel(&c, id, 9, "alice"));
        assert_int_equal(ends(w, id, 143, RM__JOB_STATE__JOB_CANCELLED, ""), 0);
        for (int32_t i = -1; i < 2; i++)
                assert_int_equal(gone(w, id, i, i == 1 ? "n2" : "n1"), 0);
        refused(w, command_job_cancel(&c, id, 9, "alice"), -EALREADY);
        refused(w, command_job_resize(&c, id, 3, "alice"), -EALREADY);
        changes(w, command_job_output_done(&c, id));
        assert_int_equal(output_done(w, id), 0);
        none(w, command_job_output_done(&c, id), 0);
        refused(w, command_job_release(&c, id, 0, "alice", NULL), -ENOENT);
        refused(w, command_checkpoint_remove(&c, id, 7, "alice"), -ENOENT);
}

static Rm__Command *ask_to_move(struct command *c, uint64_t job, int32_t group, const char *to) {
        Rm__CmdMoveStart *body = command_move_start(c, job, group, to);

        body->cause = RM__MOVE_CAUSE__MOVE_CAUSE_ASKED;
        body->reason = (char *) "asked for by alice";
        body->asked_uid = 1000;
        body->one_at_a_time = true;
        return &c->command;
}

static void test_moves_and_checkpoints(void **state) {
        struct world *w = *state;
        uint64_t id = running_job(w);
        Rm__CmdCheckpointStart *start;
        struct command c;

        refused(w, ask_to_move(&c, id, 0, "n1"), -EALREADY);
        refused(w, ask_to_move(&c, id, 0, "n9"), -ENOENT);
        changes(w, ask_to_move(&c, id, 0, "n3"));
        assert_int_equal(apply_command(w, ask_to_move(&c, id, 0, "n3")), 0);
        refused(w, ask_to_move(&c, id, 0, "n3"), -EBUSY);
        refused(w, ask_to_move(&c, id, 1, "n3"), -EBUSY);
        start = command_checkpoint_start(&c, id, RM__CHECKPOINT_CAUSE__CHECKPOINT_CAUSE_ASKED);
        start->by = (char *) "alice";
        refused(w, &c.command, -EAGAIN);
        assert_int_equal(move_abort(w, w->created, "why"), 0);
        start = command_checkpoint_start(&c, id, RM__CHECKPOINT_CAUSE__CHECKPOINT_CAUSE_ASKED);
        start->by = (char *) "alice";
        changes(w, &c.command);
        assert_int_equal(apply_command(w, &c.command), 0);
        refused(w, &c.command, -EALREADY);
        refused(w, command_checkpoint_remove(&c, id, 1, "alice"), -EBUSY);
        refused(w, ask_to_move(&c, id, 0, "n3"), -EBUSY);
        /* A needed move gives the checkpoint up, but not when its effect is only asked for. */
        (void) ask_to_move(&c, id, 0, "n3");
        c.move_start.cause = RM__MOVE_CAUSE__MOVE_CAUSE_NEEDED;
        changes(w, &c.command);
        assert_int_equal(state_job(w->state, id)->n_checkpoints, 1);
        assert_int_equal(apply_command(w, &c.command), 0);
}

static void test_submissions(void **state) {
        struct world *w = *state;
        uint64_t id = (uint64_t) submit(w, 2);
        Rm__JobSpec spec = *state_job(w->state, id)->spec;
        struct command c;
        Rm__CmdJobSubmit *in = command_job_submit(&c, &spec);

        spec.token = (char *) "a token";
        changes(w, &c.command);
        assert_int_equal(apply_command(w, &c.command), 0);
        none(w, &c.command, w->created); /* its front end has lost the answer */
        spec.token = (char *) "another";
        in->max_jobs = 2;
        refused(w, &c.command, -EDQUOT);
        in->max_jobs = 3;
        changes(w, &c.command);
        spec.n_argv = 0;
        refused(w, &c.command, -EINVAL);
}

static void test_nodes(void **state) {
        struct world *w = *state;
        uint64_t id = running_job(w);
        struct command c;

        assert_true(id > 0);
        refused(w, command_node_resume(&c, "n1", "root"), -EALREADY);
        changes(w, command_node_drain(&c, "n1", "disk", "root", 0, false));
        assert_int_equal(drain(w, "n1", "disk", false), 0);
        refused(w, command_node_drain(&c, "n1", "disk", "root", 0, false), -EALREADY);
        none(w, command_node_drain(&c, "n1", "disk", "root", 0, true), 0);
        changes(w, command_node_drain(&c, "n1", "fan", "root", 0, true));
        changes(w, command_node_drain(&c, "n1", "disk", "root", w->time_usec + 1000, true));
        changes(w, command_node_resume(&c, "n1", "root"));
        changes(w, command_node_remove(&c, "n1", "root", false)); /* once its capsules have left */
        assert_int_equal(remove_node(w, "n1"), 0);
        none(w, command_node_remove(&c, "n1", "root", false), 0);
        refused(w, command_node_remove(&c, "n9", "root", false), -ENOENT);
        none(w, command_node_condition(&c, "n3", "fan", RM__CONDITION__CONDITION_OK, "", "root"), 0);
        changes(w, command_node_condition(&c, "n3", "fan", RM__CONDITION__CONDITION_WARN, "slow", "root"));
        assert_int_equal(condition(w, "n3", "fan", RM__CONDITION__CONDITION_WARN, "slow"), 0);
        none(w, command_node_condition(&c, "n3", "fan", RM__CONDITION__CONDITION_WARN, "slow", "root"), 0);
        refused(w, command_node_fence(&c, "n3", 0, true, "", "root"), -EBUSY);
        assert_int_equal(health(w, "n3", RM__NODE_HEALTH__NODE_HEALTH_DOWN), 0);
        changes(w, command_node_fence(&c, "n3", 0, true, "", "root"));
        assert_int_equal(apply_command(w, command_node_fence(&c, "n3", 0, true, "", "root")), 0);
        refused(w, command_node_fence(&c, "n3", 0, true, "", "root"), -EALREADY);
}

static void whose(struct world *w, const Rm__Command *command, bool known) {
        uint32_t uid = 7;

        assert_int_equal(state_command_user(w->state, command, &uid), known);
        assert_int_equal(uid, known ? 1000 : 7);
}

/* Commands count for the user who wants them, whichever way he asks. */
static void test_whose_it_is(void **state) {
        struct world *w = *state;
        uint64_t id = running_job(w);
        struct command c;

        state_job(w->state, id)->spec->uid = 1000;
        (void) command_job_submit(&c, state_job(w->state, id)->spec);
        whose(w, &c.command, true);
        whose(w, command_job_cancel(&c, id, 15, "root"), true);
        c.job_cancel.timeout = true;
        whose(w, &c.command, false);
        whose(w, command_job_cancel(&c, 77, 15, "alice"), false);
        whose(w, command_job_resize(&c, id, 2, "alice"), true);
        whose(w, command_job_resize_auto(&c, id, 2, "cores are free"), false);
        whose(w, ask_to_move(&c, id, 0, "n3"), true);
        c.move_start.cause = RM__MOVE_CAUSE__MOVE_CAUSE_NEEDED;
        whose(w, &c.command, false);
        whose(w, command_checkpoint_remove(&c, id, 1, "alice"), true);
        whose(w, command_job_release(&c, id, 1, "alice", NULL), true);
        whose(w, command_job_output_done(&c, id), true);
        (void) command_job_availability(&c, id);
        whose(w, &c.command, true);
        whose(w, command_capsule_blocker(&c, id, 0, "n1", "a device", false), true);
        whose(w, command_capsule_ready(&c, id, 0, "n1"), false);
        whose(w, command_node_drain(&c, "n1", "", "root", 0, false), false);
        state_job(w->state, id)->spec->uid = 0;
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, world_tear_down)
        const struct CMUnitTest tests[] = {
                T(test_jobs), T(test_moves_and_checkpoints), T(test_submissions), T(test_nodes), T(test_whose_it_is),
        };

        return cmocka_run_group_tests_name("state-effect", tests, NULL, NULL);
}
