/* Commands that come again: applied once, in order, answered as before; and what the state keeps
 * for that is bounded. */
#include "state_test.h"

#include <errno.h>

#include "daemon/state/commands.h"
#include "daemon/state/state_session.h"

#define A UINT64_C(100)
#define B UINT64_C(200)

struct sent {
        int code;
        bool repeated;
        uint64_t created;
        size_t n_events;
        char text[RM_ERROR_TEXT_BYTES];
};

static struct sent send_command(struct world *w, const Rm__Origin *origin, Rm__Command *command) {
        struct state_result result;
        struct sent sent = { 0 };

        command->origin = (Rm__Origin *) origin;
        command->time_usec = ++w->time_usec;
        state_apply(w->state, w->indexed, ++w->index, command, &result);
        assert_false(result.unknown);
        sent = (struct sent) {
                .code = result.error.code, .repeated = result.repeated, .created = result.created, .n_events = result.n_events
        };
        (void) snprintf(sent.text, sizeof(sent.text), "%s", result.error.text);
        state_result_finish(&result);
        state_check(w->indexed);
        return sent;
}

/* As a proposer does that is answered at once, and knows that it is. */
static Rm__Origin origin_of(const char *node, uint64_t instance, uint64_t sequence) {
        Rm__Origin origin = RM__ORIGIN__INIT;

        origin.node = (char *) node;
        origin.instance = instance;
        origin.sequence = sequence;
        origin.answered = sequence - 1;
        origin.opens = sequence == 1;
        return origin;
}

static struct sent send_note(struct world *w, const Rm__Origin *origin) {
        struct command c;

        return send_command(w, origin, command_note(&c, "x"));
}

static struct sent send_drain(struct world *w, const Rm__Origin *origin, const char *node) {
        struct command c;

        return send_command(w, origin, command_node_drain(&c, node, "fan", "root", 0, false));
}

static void join_here(struct world *w, const char *name) {
        Rm__Node node = RM__NODE__INIT;
        struct command c;

        node.name = (char *) name;
        node.cores = 4;
        node.level = STATE_LEVEL;
        assert_int_equal(send_command(w, NULL, command_node_join(&c, &node)).code, 0);
}

static int setup(void **state) {
        struct world *w = xcalloc(1, sizeof(*w));

        world_init(w);
        join_here(w, "n1");
        join_here(w, "n2");
        *state = w;
        return 0;
}

static int teardown(void **state) {
        world_finish(*state);
        free(*state);
        return 0;
}

static void test_applied_once(void **state) {
        struct world *w = *state;
        Rm__Origin first = origin_of("n1", A, 1);
        struct sent sent = send_drain(w, &first, "n2");
        struct command c;

        assert_int_equal(sent.code, 0);
        assert_true(sent.n_events > 0);
        assert_int_equal(send_command(w, NULL, command_node_resume(&c, "n2", "root")).code, 0);
        sent = send_drain(w, &first, "n2");
        assert_int_equal(sent.code, 0);
        assert_true(sent.repeated);
        assert_int_equal(sent.n_events, 0);
        assert_false(state_node(w->state, "n2")->drain);
        assert_int_equal(state_session(w->state, "n1", A)->results[0]->index, w->index - 2);
}

static void test_refused_once(void **state) {
        struct world *w = *state;
        Rm__Origin first = origin_of("n1", A, 1);
        struct sent sent = send_drain(w, &first, "n3"), again;

        assert_int_equal(sent.code, -ENOENT);
        join_here(w, "n3");
        again = send_drain(w, &first, "n3");
        assert_int_equal(again.code, -ENOENT);
        assert_string_equal(again.text, sent.text);
        assert_false(state_node(w->state, "n3")->drain);
}

static void test_result_is_kept(void **state) {
        struct world *w = *state;
        Rm__JobSpec spec = RM__JOB_SPEC__INIT;
        Rm__Origin first = origin_of("n1", A, 1), second = origin_of("n1", A, 2);
        char *argv[] = { (char *) "mpirun" };
        struct command c;
        struct sent sent;

        spec.ranks = 1;
        spec.argv = argv;
        spec.n_argv = 1;
        spec.name = (char *) "a.out";
        sent = send_command(w, &first, &(command_job_submit(&c, &spec), &c)->command);
        assert_int_equal(sent.code, 0);
        assert_int_not_equal(sent.created, 0);
        second.answered = 0; /* the first is still open */
        assert_int_equal(send_note(w, &second).code, 0);
        assert_int_equal(send_command(w, &first, &c.command).created, sent.created);
        assert_int_equal(w->state->n_jobs, 1);
}

static void test_order(void **state) {
        struct world *w = *state;
        Rm__Origin first = origin_of("n1", A, 1), second = origin_of("n1", A, 2), fourth = origin_of("n1", A, 4);

        second.answered = 0;
        second.after = 1;
        second.opens = true;
        assert_int_equal(send_note(w, &second).code, -EILSEQ);
        assert_null(state_session(w->state, "n1", A));
        assert_int_equal(send_note(w, &first).code, 0);
        assert_int_equal(send_note(w, &second).code, 0);
        assert_false(send_note(w, &fourth).repeated); /* the third was given up */
        assert_int_equal(send_note(w, &(Rm__Origin) { .base = first.base, .node = first.node, .instance = A, .sequence = 3 }).code,
                         -ESTALE);
}

static void test_unknown_instance(void **state) {
        struct world *w = *state;
        Rm__Origin second = origin_of("n1", A, 2), other = origin_of("n2", A, 1), nobody = origin_of("", A, 1);

        assert_int_equal(send_note(w, &second).code, -ESTALE);
        assert_int_equal(w->state->n_sessions, 0);
        second.opens = true; /* the first was given up */
        assert_int_equal(send_note(w, &second).code, 0);
        assert_int_equal(send_note(w, &other).code, 0); /* the same number, of another node */
        assert_int_equal(send_note(w, &nobody).code, -EINVAL);
        assert_int_equal(w->state->n_sessions, 2);
}

/* The one before, whose commands may still be on their way, is known; in the end it is
 * forgotten. */
static void test_instances_of_a_node(void **state) {
        struct world *w = *state;
        Rm__Origin origin;

        for (uint64_t i = 1; i <= 3 * STATE_SESSIONS_PER_NODE; i++) {
                origin = origin_of("n1", i, 1);
                assert_int_equal(send_note(w, &origin).code, 0);
                origin = origin_of("n2", 50 - i, 1);
                assert_int_equal(send_note(w, &origin).code, 0);
                origin = origin_of("n1", i > 1 ? i - 1 : 1, 1);
                assert_true(send_note(w, &origin).repeated);
        }
        assert_int_equal(w->state->n_sessions, 2 * STATE_SESSIONS_PER_NODE);
        for (size_t i = 1; i < w->state->n_sessions; i++)
                assert_true(strcmp(w->state->sessions[i - 1]->node, w->state->sessions[i]->node) <= 0);
        origin = origin_of("n1", 1, 2);
        assert_int_equal(send_note(w, &origin).code, -ESTALE);
}

static void test_node_that_left(void **state) {
        struct world *w = *state;
        Rm__Origin gone = origin_of("gone", B, 1), next = origin_of("gone", B, 2), other = origin_of("n1", A, 1);

        assert_int_equal(send_note(w, &gone).code, 0);
        assert_int_equal(send_note(w, &other).code, 0);
        assert_int_equal(w->state->n_sessions, 1);
        assert_int_equal(send_note(w, &next).code, -ESTALE);
}

static void test_results_are_bounded(void **state) {
        struct world *w = *state;
        Rm__Origin origin;

        for (uint64_t i = 1; i <= 10 * STATE_RESULTS_KEPT; i++) {
                origin = origin_of("n1", A, i);
                origin.answered = 0; /* says a proposer that goes too far */
                assert_int_equal(send_note(w, &origin).code, 0);
                assert_true(state_session(w->state, "n1", A)->n_results <= STATE_RESULTS_KEPT);
        }
        origin.sequence = 10 * STATE_RESULTS_KEPT - STATE_RESULTS_KEPT + 1;
        assert_int_equal(send_note(w, &origin).code, 0);
        origin.sequence--;
        assert_int_equal(send_note(w, &origin).code, -ESTALE);
        origin = origin_of("n1", A, 10 * STATE_RESULTS_KEPT + 1);
        assert_int_equal(send_note(w, &origin).code, 0);
        assert_int_equal(state_session(w->state, "n1", A)->n_results, 1);
}

static void test_time_of_the_log(void **state) {
        struct world *w = *state;
        Rm__Command command = RM__COMMAND__INIT;
        Rm__CmdNote body = RM__CMD_NOTE__INIT;
        struct state_result result;
        struct packed packed;
        Rm__State *copy;

        command.body_case = RM__COMMAND__BODY_NOTE;
        command.note = &body;
        command.time_usec = w->time_usec + 1000000;
        state_apply(w->state, w->indexed, ++w->index, &command, &result);
        state_result_finish(&result);
        assert_int_equal(w->state->time_usec, w->time_usec + 1000000);
        command.time_usec = w->time_usec; /* of a leader that did not know */
        state_apply(w->state, w->indexed, ++w->index, &command, &result);
        assert_int_equal(result.events[0]->time_usec, w->time_usec + 1000000);
        state_result_finish(&result);
        packed = pack_state(w->state);
        copy = rm__state__unpack(NULL, packed.bytes, packed.data);
        assert_int_equal(copy->time_usec, w->time_usec + 1000000);
        rm__state__free_unpacked(copy, NULL);
        packed_finish(&packed);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_applied_once, setup, teardown),
                cmocka_unit_test_setup_teardown(test_refused_once, setup, teardown),
                cmocka_unit_test_setup_teardown(test_result_is_kept, setup, teardown),
                cmocka_unit_test_setup_teardown(test_order, setup, teardown),
                cmocka_unit_test_setup_teardown(test_unknown_instance, setup, teardown),
                cmocka_unit_test_setup_teardown(test_instances_of_a_node, setup, teardown),
                cmocka_unit_test_setup_teardown(test_node_that_left, setup, teardown),
                cmocka_unit_test_setup_teardown(test_results_are_bounded, setup, teardown),
                cmocka_unit_test_setup_teardown(test_time_of_the_log, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
