/* Which nodes keep copies: behind other switches first, and those that had some before; and who
 * gets another one when some are lost. */
#include "leader_test.h"

#include "daemon/leader/partners.h"

enum { DOWN = 2 };

static Rm__Job *job_on(struct world *w) {
        return state_job(w->state, run_job(w, "n1", "n2"));
}

static void chosen(const struct world *w, const Rm__Job *job, const char *node, uint32_t copies, const char *want) {
        cleanup_free char *text = partners_choose(w->state, job, node, copies);

        assert_string_equal(text, want);
}

static void test_chosen(void **state) {
        struct world *w = *state;
        const Rm__Job *job = job_on(w);

        chosen(w, job, "n1", 0, "");
        chosen(w, job, "n1", 1, "n2");
        chosen(w, job, "n3", 1, "n1");
        chosen(w, job, "n1", 8, "n2 n3");
        assert_int_equal(topology(w, "left:n1,n2:0 right:n3:0"), 0);
        chosen(w, job, "n1", 1, "n3");
        chosen(w, job, "n2", 2, "n3 n1");
        /* A node that is drained, or down, gets no copy. */
        assert_int_equal(drain(w, "n3", "repair", false), 0);
        chosen(w, job, "n1", 1, "n2");
        assert_int_equal(health(w, "n2", DOWN), 0);
        chosen(w, job, "n1", 1, "");
}

static void another(struct world *w, const Rm__Job *job, const Rm__CheckpointPart *part, uint32_t copies, uint64_t later_usec,
                    const char *want) {
        const char *node = partners_another(w->state, job, part, copies, w->time_usec + later_usec);

        if (want)
                assert_string_equal(node, want);
        else
                assert_null(node);
}

static void test_another(void **state) {
        struct world *w = *state;
        const Rm__Job *job = job_on(w);
        char *stored[] = { (char *) "n1", (char *) "n2" };
        char *partners[] = { (char *) "n3" };
        Rm__CheckpointPart part = RM__CHECKPOINT_PART__INIT;

        part.node = (char *) "n1";
        part.stored = stored;
        part.n_stored = 2;
        another(w, job, &part, 1, 0, NULL);
        another(w, job, &part, 2, 0, "n3");
        /* The node may be back soon. */
        assert_int_equal(health(w, "n2", DOWN), 0);
        another(w, job, &part, 1, PARTNERS_AWAY_USEC / 2, NULL);
        another(w, job, &part, 1, 2 * PARTNERS_AWAY_USEC, "n3");
        part.partners = partners;
        part.n_partners = 1;
        another(w, job, &part, 1, 2 * PARTNERS_AWAY_USEC, NULL); /* n3 gets one already */
        part.n_partners = 0;
        /* No node can send the copy. */
        assert_int_equal(health(w, "n1", DOWN), 0);
        another(w, job, &part, 1, 2 * PARTNERS_AWAY_USEC, NULL);
        part.stored[0] = (char *) STATE_STORED_SHARED;
        part.n_stored = 1;
        another(w, job, &part, 1, 0, NULL);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_chosen, leader_set_up, leader_tear_down),
                cmocka_unit_test_setup_teardown(test_another, leader_set_up, leader_tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
