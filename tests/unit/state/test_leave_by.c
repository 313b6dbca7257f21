/* By when a job is to have left, and how long its programs may be waited for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "common/util.h"
#include "daemon/state/leave_by.h"
#include "daemon/state/state.h"

static void test_wait(void **state) {
        assert_int_equal(leave_by_wait_usec(UINT64_MAX, 5, 1000), 1000);
        assert_int_equal(leave_by_wait_usec(1000 + 16000, 1000, 1000), 1000);
        assert_int_equal(leave_by_wait_usec(1000 + 4000, 1000, 1000), 500);
        assert_int_equal(leave_by_wait_usec(1000, 1000, 1000), 0);
        assert_int_equal(leave_by_wait_usec(1000, 2000, 1000), 0);
}

static void test_first(void **state) {
        Rm__Node n1 = RM__NODE__INIT, n2 = RM__NODE__INIT;
        Rm__Node *nodes[] = { &n1, &n2 };
        Rm__Capsule head = RM__CAPSULE__INIT, group = RM__CAPSULE__INIT;
        Rm__Capsule *capsules[] = { &head, &group };
        Rm__NodeCondition condition = RM__NODE_CONDITION__INIT;
        Rm__NodeCondition *conditions[] = { &condition };
        Rm__JobSpec spec = RM__JOB_SPEC__INIT;
        Rm__Job job = RM__JOB__INIT;
        Rm__State s = RM__STATE__INIT;

        n1.name = head.node = (char *) "n1";
        n2.name = group.node = (char *) "n2";
        s.nodes = nodes;
        s.n_nodes = ARRAY_SIZE(nodes);
        job.spec = &spec;
        job.capsules = capsules;
        job.n_capsules = ARRAY_SIZE(capsules);
        job.start_usec = 100;
        assert_int_equal(job_leave_by_usec(&s, &job), UINT64_MAX);
        spec.time_limit_usec = 900;
        assert_int_equal(job_leave_by_usec(&s, &job), UINT64_MAX); /* it ends there, and is not saved */
        spec.checkpoint_at_limit = true;
        assert_int_equal(job_leave_by_usec(&s, &job), 1000);
        n2.drain_deadline_usec = 700;
        assert_int_equal(job_leave_by_usec(&s, &job), 1000);
        n2.drain = true;
        assert_int_equal(job_leave_by_usec(&s, &job), 700);
        condition.condition = RM__CONDITION__CONDITION_CRITICAL;
        condition.since_usec = 50;
        n1.conditions = conditions;
        n1.n_conditions = 1;
        assert_int_equal(job_leave_by_usec(&s, &job), 50);
        assert_int_equal(node_leave_by_usec(&n2), 700);
        assert_int_equal(node_leave_by_usec(NULL), UINT64_MAX);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_wait), cmocka_unit_test(test_first) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
