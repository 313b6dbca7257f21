/* The limits of a user hold on every way by which he could come to have more, and end nothing that
 * was let in. */
#include "state_test.h"

#include "daemon/state/commands.h"

enum { DOWN = 2 };

static const char *const places[] = { "n1", "n2" };
static const uint32_t ones[] = { 1, 1 };

static int set_up(void **state) {
        return world_start(state, 3, 2);
}

static Rm__UserLimits limits_of(uint32_t jobs, uint64_t ranks) {
        Rm__UserLimits limits = RM__USER_LIMITS__INIT;

        limits.jobs = jobs;
        limits.ranks = ranks;
        return limits;
}

/* Submits a job of at most `max_jobs` and `max_ranks`; the number or the (negative) code. */
static int submit_within(struct world *w, uint32_t ranks, uint32_t active, uint32_t max_jobs, uint64_t max_ranks) {
        char *argv[] = { (char *) "mpirun" };
        Rm__JobSpec spec = RM__JOB_SPEC__INIT;
        struct command c;
        Rm__CmdJobSubmit *in;
        int code;

        spec.user = (char *) "alice";
        spec.name = (char *) "a.out";
        spec.argv = argv;
        spec.n_argv = 1;
        spec.ranks = ranks;
        spec.active_ranks = active;
        in = command_job_submit(&c, &spec);
        in->max_jobs = max_jobs;
        in->max_ranks = max_ranks;
        code = apply_command(w, &c.command);
        return code < 0 ? code : (int) w->created;
}

/* Head and group 0 on n1, group 1 on n2. */
static void start(struct world *w, uint64_t id) {
        start_job(w, id, places, ones, 2);
}

static uint64_t running_job(struct world *w) {
        int id = submit(w, 2);

        assert_true(id > 0);
        let_restart(w, (uint64_t) id, 5);
        start(w, (uint64_t) id);
        return (uint64_t) id;
}

static int begin(struct world *w, uint64_t job, Rm__CheckpointCause cause, bool stop, const Rm__UserLimits *limits) {
        char *nodes[] = { (char *) "n1", (char *) "n2" };
        char *partners[] = { (char *) "", (char *) "" };
        struct command c;
        Rm__CmdCheckpointStart *in = command_checkpoint_start(&c, job, cause);

        in->by = (char *) "alice";
        in->keep = 2;
        in->stop = stop;
        in->capsule_nodes = nodes;
        in->n_capsule_nodes = 2;
        in->partners = partners;
        in->n_partners = 2;
        in->limits = (Rm__UserLimits *) limits;
        return apply_command(w, &c.command);
}

static int drill(struct world *w, uint64_t job, const Rm__UserLimits *limits) {
        return begin(w, job, RM__CHECKPOINT_CAUSE__CHECKPOINT_CAUSE_DRILL, false, limits);
}

static void save(struct world *w, uint64_t job, bool stop) {
        struct command c;
        uint64_t id;

        assert_int_equal(begin(w, job, RM__CHECKPOINT_CAUSE__CHECKPOINT_CAUSE_ASKED, stop, NULL), 0);
        id = w->created;
        (void) command_checkpoint_captured(&c, job, id);
        assert_int_equal(apply_command(w, &c.command), 0);
        for (int32_t i = -1; i < 2; i++) {
                (void) command_checkpoint_stored(&c, job, id, i, i == 1 ? "n2" : "n1");
                assert_int_equal(apply_command(w, &c.command), 0);
        }
}

static void leave(struct world *w, uint64_t id) {
        for (int32_t i = -1; i < 2; i++)
                (void) gone(w, id, i, i == 1 ? "n2" : "n1");
}

/* Saved, and then cancelled by its owner. */
static uint64_t kept_job(struct world *w) {
        uint64_t id = running_job(w);

        save(w, id, false);
        assert_int_equal(cancel(w, id, 0, false), 0);
        assert_int_equal(ends(w, id, 143, 0, ""), 0);
        leave(w, id);
        assert_true(job_ended(job_of(w, id)));
        return id;
}

static int release(struct world *w, uint64_t job, const Rm__UserLimits *limits) {
        struct command c;

        return apply_command(w, command_job_release(&c, job, 0, "alice", limits));
}

/* ---- restart-job ---- */

static void test_jobs_come_back_by_restart(void **state) {
        struct world *w = *state;
        Rm__UserLimits limits = limits_of(2, 100);
        uint64_t kept[3];

        for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
                kept[i] = kept_job(w);
        assert_int_equal(release(w, kept[0], &limits), 0);
        assert_int_equal(release(w, kept[1], &limits), 0);
        expect_refused(w, release(w, kept[2], &limits),
                       "restart-job: alice has 2 jobs that have not ended, and 2 is the limit ([job] max_jobs_per_user)");
        expect_refused(w, submit_within(w, 1, 0, 2, 100), "submit: alice has 2 jobs");
        assert_true(job_ended(job_of(w, kept[2])));
        assert_int_equal(release(w, kept[2], NULL), 0); /* an administrator */
}

static void test_ranks_come_back_by_restart(void **state) {
        struct world *w = *state;
        Rm__UserLimits limits = limits_of(0, 4);
        uint64_t a = kept_job(w), b = kept_job(w), c = kept_job(w);

        assert_int_equal(release(w, a, &limits), 0);
        assert_int_equal(release(w, b, &limits), 0);
        expect_refused(w, release(w, c, &limits),
                       "restart-job: the jobs of alice that have not ended have 4 ranks (parked ranks, spare ones and copies of "
                       "drills count); with 2 more they are over the limit of 4 ([job] max_ranks_per_user)");
        assert_int_equal(cancel(w, a, 0, false), 0);
        assert_int_equal(release(w, c, &limits), 0);
}

static void test_groups_come_back_by_restart(void **state) {
        struct world *w = *state;
        Rm__UserLimits limits = limits_of(0, 0);
        uint64_t id = kept_job(w);

        limits.groups = 1;
        expect_refused(w, release(w, id, &limits),
                       "restart-job: it has 2 groups, and a job of alice may have 1 ([job] max_groups_per_job)");
        limits.groups = 2;
        assert_int_equal(release(w, id, &limits), 0);
}

/* Environments of ended jobs are not counted, those of jobs that come back are. */
static void test_environments_come_back_by_restart(void **state) {
        struct world *w = *state;
        Rm__UserLimits limits = limits_of(0, 0);
        uint64_t kept[17];

        for (uint64_t i = 0; i < ARRAY_SIZE(kept); i++) {
                kept[i] = kept_job(w);
                for (int twin = 0; twin < 2; twin++) {
                        Rm__JobSpec *spec = state_job(twin ? w->twin : w->state, kept[i])->spec;

                        spec->body_bytes = STATE_BODY_MAX_BYTES;
                        spec->body_digest.len = STATE_DIGEST_BYTES;
                        spec->body_digest.data = xcalloc(1, STATE_DIGEST_BYTES);
                        memcpy(spec->body_digest.data, &i, sizeof(i));
                }
        }
        for (size_t i = 0; i < ARRAY_SIZE(kept) - 1; i++)
                assert_int_equal(release(w, kept[i], &limits), 0);
        expect_refused(w, release(w, kept[16], &limits),
                       "restart-job: the environments and command lines of your waiting and running jobs would be 17.0 MiB");
        assert_int_equal(cancel(w, kept[0], 0, false), 0);
        assert_int_equal(release(w, kept[16], &limits), 0);
}

/* The job has counted all the time, so that its owner may let it go on though he could begin no
 * other. */
static void test_stopped_job_goes_on(void **state) {
        struct world *w = *state;
        Rm__UserLimits limits = limits_of(1, 2);
        uint64_t id = running_job(w);

        save(w, id, true);
        leave(w, id);
        assert_true(job_of(w, id)->held);
        expect_refused(w, submit_within(w, 1, 0, 1, 2), "max_jobs_per_user");
        assert_int_equal(release(w, id, &limits), 0);
        assert_false(job_of(w, id)->held);
}

static void test_lost_job_goes_on(void **state) {
        struct world *w = *state;
        uint64_t id = running_job(w);

        expect_refused(w, submit_within(w, 1, 0, 1, 2), "max_jobs_per_user");
        assert_int_equal(health(w, "n2", DOWN), 0);
        assert_int_equal(restart(w, id, 2, "n2", true), 0);
        expect_refused(w, submit_within(w, 1, 0, 1, 2), "max_jobs_per_user"); /* RECOVERING */
        for (int32_t i = -1; i < 1; i++)
                assert_int_equal(gone(w, id, i, "n1"), 0);
        expect_refused(w, submit_within(w, 1, 0, 1, 2), "max_jobs_per_user"); /* PENDING */
        assert_int_equal(place(w, id, "n1", (const char *const[]) { "n1", "n3" }, ones, 2), 0);
}

/* ---- parked, spare and drilled ranks ---- */

static void test_parked_ranks_count_and_may_grow(void **state) {
        struct world *w = *state;
        int id = submit_within(w, 2, 1, 0, 3);

        assert_int_equal(id, 1);
        expect_refused(w, submit_within(w, 2, 1, 0, 3), "have 2 ranks (parked ranks");
        let_restart(w, 1, 5);
        start(w, 1);
        assert_int_equal(job_of(w, 1)->resize->active, 1);
        assert_int_equal(resize_reported(w, 1, 0, 0, 0, false), 0);
        assert_int_equal(resize(w, 1, 2), 0);
        assert_int_equal(resize_reported(w, 1, w->created, w->created, 2, false), 0);
        assert_int_equal(job_of(w, 1)->resize->active, 2);
        assert_int_equal(submit_within(w, 1, 0, 0, 3), 2); /* as before it grew */
}

static void test_spare_ranks_count(void **state) {
        struct world *w = *state;

        assert_int_equal(submit_critical(w, 3, 2, "0"), 1);
        expect_refused(w, submit_within(w, 2, 0, 0, 4), "have 3 ranks");
}

static void test_drills_count(void **state) {
        struct world *w = *state;
        Rm__UserLimits limits = limits_of(1, 5);
        uint64_t id = running_job(w), other = running_job(w);
        struct command c;

        expect_refused(w, drill(w, id, &limits), "drill: the jobs of alice that have not ended have 4 ranks");
        limits = limits_of(1, 6); /* no further job comes to be */
        assert_int_equal(drill(w, id, &limits), 0);
        expect_refused(w, drill(w, other, &limits), "have 6 ranks");
        expect_refused(w, submit_within(w, 1, 0, 0, 6), "have 6 ranks");
        assert_int_equal(apply_command(w, command_checkpoint_abort(&c, id, job_of(w, id)->last_checkpoint, "no room")), 0);
        assert_int_equal(submit_within(w, 1, 0, 0, 6), 3);
        assert_int_equal(drill(w, other, NULL), 0);
}

/* ---- import-checkpoint ---- */

static Rm__Job *exported(const struct world *w, uint64_t id) {
        return (Rm__Job *) message_copy(&state_job(w->state, id)->base);
}

static int import(struct world *w, const Rm__Job *job, const Rm__UserLimits *limits) {
        struct command c;

        return apply_command(w, command_checkpoint_import(&c, job, "n3", "alice", limits));
}

/* Each import brings a job, which others then have no room for in the table. */
static void test_imports_fill_no_table(void **state) {
        struct world *w = *state;
        Rm__UserLimits limits = limits_of(0, 0);
        Rm__Job *out;

        limits.ended_kept = 2;
        out = exported(w, kept_job(w));
        assert_int_equal(forget(w, out->id), 0);
        for (uint64_t i = 0; i < 4; i++) {
                out->id = 10 + i;
                for (size_t k = 0; k < out->checkpoints[0]->n_parts; k++)
                        out->checkpoints[0]->parts[k]->address += 10;
                assert_int_equal(import(w, out, &limits), 0);
                assert_non_null(job_of(w, out->id));
        }
        assert_int_equal(w->state->n_jobs, 2);
        assert_non_null(job_of(w, 12));
        assert_non_null(job_of(w, 13));
        rm__job__free_unpacked(out, NULL);
}

static void test_import_has_too_many_groups(void **state) {
        struct world *w = *state;
        Rm__UserLimits limits = limits_of(0, 0);
        Rm__Job *out;

        out = exported(w, kept_job(w));
        assert_int_equal(forget(w, out->id), 0);
        limits.groups = 1;
        expect_refused(w, import(w, out, &limits), "it has 2 groups, and a job of alice may have 1");
        assert_null(job_of(w, out->id));
        limits.groups = 2;
        assert_int_equal(import(w, out, &limits), 0);
        rm__job__free_unpacked(out, NULL);
}

/* A job with so many groups, which has one checkpoint. */
static Rm__Job *large_job(struct world *w, uint64_t id, uint32_t groups) {
        Rm__Job *out = exported(w, kept_job(w));
        Rm__Checkpoint *checkpoint = out->checkpoints[0];

        assert_int_equal(forget(w, out->id), 0);
        out->id = id;
        out->spec->ranks = groups;
        while (checkpoint->n_parts < groups + 1) {
                Rm__CheckpointPart *part = (Rm__CheckpointPart *) message_copy(&checkpoint->parts[1]->base);

                part->capsule = (int32_t) checkpoint->n_parts - 1;
                checkpoint->parts = xrealloc(checkpoint->parts, (checkpoint->n_parts + 1) * sizeof(part));
                checkpoint->parts[checkpoint->n_parts++] = part;
        }
        for (size_t i = 0; i < checkpoint->n_parts; i++)
                checkpoint->parts[i]->address = (uint32_t) (id * 10000 + i);
        return out;
}

/* Checkpoints that are kept of ended jobs hold addresses that others need. */
static void test_kept_checkpoints_hold_addresses(void **state) {
        struct world *w = *state;
        Rm__Job *again;

        w->thorough = false;
        for (uint64_t id = 1; id <= 3; id++) {
                Rm__Job *out = large_job(w, id, 7000);

                assert_int_equal(import(w, out, NULL), 0);
                rm__job__free_unpacked(out, NULL);
        }
        assert_int_equal(job_of(w, 1)->n_checkpoints, 0);
        assert_int_equal(job_of(w, 2)->n_checkpoints, 1);
        assert_int_equal(job_of(w, 3)->n_checkpoints, 1);
        assert_non_null(strstr(w->events, "checkpoint-removed"));
        /* Another checkpoint of the same job holds the same addresses. */
        again = large_job(w, 2, 7000);
        again->checkpoints[0]->id = 2;
        again->submit_usec = job_of(w, 2)->submit_usec;
        assert_int_equal(import(w, again, NULL), 0);
        rm__job__free_unpacked(again, NULL);
        assert_int_equal(job_of(w, 2)->n_checkpoints, 2);
        assert_int_equal(job_of(w, 3)->n_checkpoints, 1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_jobs_come_back_by_restart, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_ranks_come_back_by_restart, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_groups_come_back_by_restart, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_environments_come_back_by_restart, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_stopped_job_goes_on, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_lost_job_goes_on, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_parked_ranks_count_and_may_grow, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_spare_ranks_count, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_drills_count, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_imports_fill_no_table, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_import_has_too_many_groups, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_kept_checkpoints_hold_addresses, set_up, world_tear_down),
        };

        return cmocka_run_group_tests_name("state-limits", tests, NULL, NULL);
}
