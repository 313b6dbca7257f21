/* Constructors of commands: what they are given is what the log gets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/util.h"
#include "daemon/state/commands.h"

/* The command as it comes out of the log. */
static Rm__Command *logged(const Rm__Command *command) {
        size_t size_bytes = rm__command__get_packed_size(command);
        cleanup_free uint8_t *data = xcalloc(1, size_bytes);
        Rm__Command *copy;

        assert_int_equal(rm__command__pack(command, data), size_bytes);
        copy = rm__command__unpack(NULL, size_bytes, data);
        assert_non_null(copy);
        assert_int_equal(copy->body_case, command->body_case);
        return copy;
}

static void finish(Rm__Command *command) {
        rm__command__free_unpacked(command, NULL);
}

static void test_values(void **state) {
        struct command c;
        Rm__Command *out = logged(command_job_exit(&c, 7, 255, "node n2 is down", RM__JOB_STATE__JOB_NODE_FAIL));

        assert_int_equal(out->body_case, RM__COMMAND__BODY_JOB_EXIT);
        assert_int_equal(out->job_exit->job, 7);
        assert_int_equal(out->job_exit->exit_code, 255);
        assert_string_equal(out->job_exit->reason, "node n2 is down");
        assert_int_equal(out->job_exit->final_state, RM__JOB_STATE__JOB_NODE_FAIL);
        finish(out);
        out = logged(command_job_exit(&c, 7, 0, NULL, 0));
        assert_string_equal(out->job_exit->reason, "");
        finish(out);
        out = logged(command_job_restart(&c, 7, 2, "n2", "node n2 is down", true));
        assert_int_equal(out->job_restart->job, 7);
        assert_int_equal(out->job_restart->attempt, 2);
        assert_string_equal(out->job_restart->node, "n2");
        assert_string_equal(out->job_restart->reason, "node n2 is down");
        assert_true(out->job_restart->down);
        finish(out);
        out = logged(command_job_timeout(&c, 8, 15));
        assert_int_equal(out->body_case, RM__COMMAND__BODY_JOB_CANCEL);
        assert_true(out->job_cancel->timeout);
        assert_string_equal(out->job_cancel->by, "");
        finish(out);
        out = logged(command_job_cancel(&c, 8, 9, "alice"));
        assert_false(out->job_cancel->timeout); /* nothing of the one before is left */
        assert_string_equal(out->job_cancel->by, "alice");
        finish(out);
        out = logged(command_node_condition(&c, "n2", "edac", RM__CONDITION__CONDITION_FAILING, "12 errors", "n2"));
        assert_string_equal(out->node_condition->node, "n2");
        assert_string_equal(out->node_condition->source, "edac");
        assert_int_equal(out->node_condition->condition, RM__CONDITION__CONDITION_FAILING);
        assert_string_equal(out->node_condition->reason, "12 errors");
        assert_string_equal(out->node_condition->by, "n2");
        finish(out);
        out = logged(command_capsule_blocker(&c, 9, -1, "n3", "a pipe", true));
        assert_int_equal(out->capsule_blocker->capsule, -1);
        assert_string_equal(out->capsule_blocker->node, "n3");
        assert_string_equal(out->capsule_blocker->text, "a pipe");
        finish(out);
        out = logged(command_node_drain(&c, "n1", "disk", "root", 5, true));
        assert_string_equal(out->node_drain->node, "n1");
        assert_string_equal(out->node_drain->reason, "disk");
        assert_string_equal(out->node_drain->by, "root");
        assert_int_equal(out->node_drain->drain_deadline_usec, 5);
        assert_true(out->node_drain->update);
        finish(out);
}

static void test_checkpoints(void **state) {
        struct command c;
        Rm__CmdCheckpointStart *start = command_checkpoint_start(&c, 3, RM__CHECKPOINT_CAUSE__CHECKPOINT_CAUSE_ASKED);
        Rm__Command *out;

        start->by = (char *) "alice";
        start->stop = true;
        out = logged(&c.command);
        assert_int_equal(out->body_case, RM__COMMAND__BODY_CHECKPOINT_START);
        assert_int_equal(out->checkpoint_start->job, 3);
        assert_int_equal(out->checkpoint_start->cause, RM__CHECKPOINT_CAUSE__CHECKPOINT_CAUSE_ASKED);
        assert_string_equal(out->checkpoint_start->by, "alice");
        assert_true(out->checkpoint_start->stop);
        assert_int_equal(out->checkpoint_start->n_capsule_nodes, 0);
        finish(out);
        out = logged(command_checkpoint_remove(&c, 3, 2, "bob"));
        assert_int_equal(out->body_case, RM__COMMAND__BODY_CHECKPOINT_REMOVE);
        assert_int_equal(out->checkpoint_remove->job, 3);
        assert_int_equal(out->checkpoint_remove->checkpoint, 2);
        assert_string_equal(out->checkpoint_remove->by, "bob");
        finish(out);
        out = logged(command_job_release(&c, 4, 1, NULL, NULL));
        assert_int_equal(out->body_case, RM__COMMAND__BODY_JOB_RELEASE);
        assert_int_equal(out->job_release->job, 4);
        assert_int_equal(out->job_release->checkpoint, 1);
        assert_string_equal(out->job_release->by, "");
        finish(out);
}

static void test_filled_in(void **state) {
        struct command c;
        Rm__CmdMoveStart *start = command_move_start(&c, 3, 1, "n4");
        Rm__Command *out;

        start->reason = (char *) "asked for by root";
        start->stop = true;
        out = logged(&c.command);
        assert_int_equal(out->body_case, RM__COMMAND__BODY_MOVE_START);
        assert_int_equal(out->move_start->job, 3);
        assert_int_equal(out->move_start->capsule, 1);
        assert_string_equal(out->move_start->to, "n4");
        assert_string_equal(out->move_start->reason, "asked for by root");
        assert_true(out->move_start->stop);
        finish(out);
        command_group_end(&c, 5, 2, "n2")->lost = true;
        out = logged(&c.command);
        assert_int_equal(out->group_end->group, 2);
        assert_true(out->group_end->lost);
        assert_int_equal(out->group_end->exit_code, 0);
        finish(out);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_values),
                cmocka_unit_test(test_checkpoints),
                cmocka_unit_test(test_filled_in),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
