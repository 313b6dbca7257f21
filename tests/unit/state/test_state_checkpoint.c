/* The life of a checkpoint in the state: captured, stored, copied; copies that are lost and made
 * again; what is kept, and what a job goes on from. */
#include "state_test.h"

#include <malloc.h>

#include "common/groups.h"
#include "common/util.h"
#include "daemon/state/commands.h"

enum { DOWN = 2, UP = 1 };

static int set_up(void **state) {
        return world_start(state, 4, 4);
}

/* Head and group 0 on n1, group 1 on n2. */
static uint64_t running_job(struct world *w) {
        static const char *const nodes[] = { "n1", "n2" };
        static const uint32_t ranks[] = { 1, 1 };
        int id = submit(w, 2);

        assert_true(id > 0);
        let_restart(w, (uint64_t) id, 5);
        start_job(w, (uint64_t) id, nodes, ranks, 2);
        return (uint64_t) id;
}

/* Copies: of n1's parts on n2, of n2's on n3. */
static int begin_by(struct world *w, uint64_t job, uint32_t keep, bool stop, bool force) {
        char *nodes[] = { (char *) "n1", (char *) "n2" };
        char *partners[] = { (char *) "n2", (char *) "n3" };
        struct command c;
        Rm__CmdCheckpointStart *in = command_checkpoint_start(&c, job, RM__CHECKPOINT_CAUSE__CHECKPOINT_CAUSE_ASKED);

        in->by = (char *) "alice";
        in->keep = keep;
        in->stop = stop;
        in->force = force;
        in->capsule_nodes = nodes;
        in->n_capsule_nodes = 2;
        in->partners = partners;
        in->n_partners = 2;
        return apply_command(w, &c.command);
}

static int begin(struct world *w, uint64_t job, uint32_t keep, bool stop) {
        return begin_by(w, job, keep, stop, false);
}

static int captured(struct world *w, uint64_t job, uint64_t checkpoint) {
        struct command c;

        (void) command_checkpoint_captured(&c, job, checkpoint);
        return apply_command(w, &c.command);
}

static int stored(struct world *w, uint64_t job, uint64_t checkpoint, int32_t capsule, const char *node) {
        struct command c;

        (void) command_checkpoint_stored(&c, job, checkpoint, capsule, node);
        return apply_command(w, &c.command);
}

static int uncopied(struct world *w, uint64_t job, uint64_t checkpoint, int32_t capsule, const char *node) {
        struct command c;

        return apply_command(w, command_checkpoint_uncopied(&c, job, checkpoint, capsule, node, "its disk is full"));
}

static int lost(struct world *w, uint64_t job, uint64_t checkpoint, int32_t capsule, const char *node) {
        struct command c;

        return apply_command(w, command_checkpoint_copy_lost(&c, job, checkpoint, capsule, node, "pack-1 is damaged"));
}

static int requested(struct world *w, uint64_t job, uint64_t checkpoint, int32_t capsule, const char *node) {
        struct command c;

        return apply_command(w, command_checkpoint_copy_requested(&c, job, checkpoint, capsule, node));
}

/* Makes a checkpoint all parts of which are wherever they are to be. */
static uint64_t make(struct world *w, uint64_t job, uint32_t keep) {
        uint64_t id;

        assert_int_equal(begin(w, job, keep, false), 0);
        id = w->created;
        assert_int_equal(captured(w, job, id), 0);
        for (int32_t i = -1; i < 2; i++) {
                assert_int_equal(stored(w, job, id, i, i == 1 ? "n2" : "n1"), 0);
                assert_int_equal(stored(w, job, id, i, i == 1 ? "n3" : "n2"), 0);
        }
        assert_int_equal(job_checkpoint(job_of(w, job), id)->state, RM__CHECKPOINT_STATE__CHECKPOINT_DONE);
        return id;
}

static void test_life(void **state) {
        struct world *w = *state;
        uint64_t job = running_job(w);
        Rm__Checkpoint *c;

        assert_int_equal(begin(w, job, 2, false), 0);
        assert_int_equal(begin(w, job, 2, false), -EALREADY);
        c = job_checkpoint(job_of(w, job), 1);
        assert_int_equal(c->state, RM__CHECKPOINT_STATE__CHECKPOINT_CAPTURING);
        assert_int_equal(c->n_parts, 3);
        assert_int_equal(captured(w, job, 1), 0);
        assert_int_equal(captured(w, job, 1), -EALREADY);
        assert_int_equal(stored(w, job, 1, 7, "n1"), -ESRCH);
        assert_int_equal(stored(w, job, 9, 0, "n1"), -ENOENT);
        assert_int_equal(stored(w, job, 1, -1, "n1"), 0);
        assert_int_equal(stored(w, job, 1, 0, "n1"), 0);
        assert_int_equal(stored(w, job, 1, 1, "n2"), 0);
        assert_int_equal(stored(w, job, 1, -1, "n2"), 0);
        assert_int_equal(stored(w, job, 1, 0, "n2"), 0);
        assert_int_equal(c->state, RM__CHECKPOINT_STATE__CHECKPOINT_STORING);
        assert_null(job_newest_checkpoint(w->state, job_of(w, job)));
        /* A copy that cannot be made holds it up no longer. */
        assert_int_equal(uncopied(w, job, 1, 1, "n4"), -ESRCH);
        assert_int_equal(uncopied(w, job, 1, 1, "n3"), 0);
        assert_non_null(strstr(w->events, "checkpoint-done"));
        assert_int_equal(c->state, RM__CHECKPOINT_STATE__CHECKPOINT_DONE);
        assert_int_equal(c->copy_error_usec, w->time_usec);
        assert_ptr_equal(job_newest_checkpoint(w->state, job_of(w, job)), c);
}

static void test_kept(void **state) {
        struct world *w = *state;
        uint64_t job = running_job(w);

        for (uint64_t i = 1; i <= 4; i++)
                assert_int_equal(make(w, job, 2), i);
        assert_int_equal(job_of(w, job)->n_checkpoints, 2);
        assert_non_null(job_checkpoint(job_of(w, job), 3));
        assert_non_null(job_checkpoint(job_of(w, job), 4));
}

static void test_copies(void **state) {
        struct world *w = *state;
        uint64_t job = running_job(w);
        const Rm__CheckpointPart *part;

        assert_int_equal(begin(w, job, 2, false), 0);
        assert_int_equal(requested(w, job, 1, 1, "n4"), -EALREADY); /* it is not done */
        assert_int_equal(apply_command(w, command_checkpoint_abort(&(struct command) { 0 }, job, 1, "no reason")), 0);
        assert_int_equal(make(w, job, 2), 2);
        part = checkpoint_part(job_checkpoint(job_of(w, job), 2), 1);
        assert_int_equal(requested(w, job, 2, 1, "n3"), -EALREADY);
        assert_int_equal(requested(w, job, 2, 1, "n9"), -ESRCH);
        /* The partner's connection was closed before it had told the sender. */
        assert_int_equal(uncopied(w, job, 2, 1, "n3"), -EALREADY);
        assert_int_equal(part->n_partners, 1);
        assert_int_equal(job_checkpoint(job_of(w, job), 2)->copy_error_usec, 0);
        assert_int_equal(lost(w, job, 2, 1, "n4"), -ESRCH);
        assert_int_equal(lost(w, job, 2, 1, "n2"), 0);
        assert_non_null(strstr(w->events, "checkpoint-copy-lost"));
        assert_int_equal(part->n_stored, 1);
        assert_string_equal(checkpoint_part_holder(w->state, part, "n2")->name, "n3");
        assert_int_equal(requested(w, job, 2, 1, "n4"), 0);
        assert_int_equal(requested(w, job, 2, 1, "n4"), -EALREADY);
        assert_int_equal(stored(w, job, 2, 1, "n4"), 0);
        assert_int_equal(part->n_stored, 2);
        /* A node that has lost its copy may get another. */
        assert_int_equal(lost(w, job, 2, 1, "n3"), 0);
        assert_int_equal(requested(w, job, 2, 1, "n3"), 0);
        assert_ptr_equal(job_newest_checkpoint(w->state, job_of(w, job)), job_checkpoint(job_of(w, job), 2));
}

/* The job has the one before it. */
static void test_no_good_copy(void **state) {
        struct world *w = *state;
        uint64_t job = running_job(w);

        assert_int_equal(make(w, job, 2), 1);
        assert_int_equal(make(w, job, 2), 2);
        assert_int_equal(lost(w, job, 2, 0, "n1"), 0);
        assert_int_equal(lost(w, job, 2, 0, "n2"), 0);
        assert_non_null(strstr(w->events, "checkpoint-failed"));
        assert_null(job_checkpoint(job_of(w, job), 2));
        assert_int_equal(job_newest_checkpoint(w->state, job_of(w, job))->id, 1);
}

/* A part that is damaged before the checkpoint is done is given up: the node that captured it has
 * nothing to copy from. */
static void test_damaged_at_once(void **state) {
        struct world *w = *state;
        uint64_t job = running_job(w);

        assert_int_equal(begin(w, job, 2, false), 0);
        assert_int_equal(captured(w, job, 1), 0);
        assert_int_equal(stored(w, job, 1, 1, "n2"), 0);
        assert_int_equal(stored(w, job, 1, 1, "n3"), 0);
        assert_int_equal(lost(w, job, 1, 1, "n2"), 0);
        assert_null(job_checkpoint(job_of(w, job), 1));
        assert_non_null(strstr(job_of(w, job)->checkpoint_error, "no good copy"));
}

/* Where no node that is up has a part, an older one is the newest; when it is back, that one
 * again. */
static void test_away(void **state) {
        struct world *w = *state;
        uint64_t job = running_job(w);
        const char *away = NULL;

        assert_int_equal(make(w, job, 2), 1);
        assert_int_equal(health(w, "n2", DOWN), 0);
        assert_int_equal(job_newest_checkpoint(w->state, job_of(w, job))->id, 1);
        assert_int_equal(health(w, "n3", DOWN), 0);
        assert_null(job_newest_checkpoint(w->state, job_of(w, job)));
        assert_int_equal(job_awaited_checkpoint(w->state, job_of(w, job), &away)->id, 1);
        assert_non_null(away);
        assert_int_equal(join(w, "n3", 4), 0);
        assert_int_equal(job_newest_checkpoint(w->state, job_of(w, job))->id, 1);
}

static void test_stop(void **state) {
        struct world *w = *state;
        uint64_t job = running_job(w);
        struct command c;

        assert_int_equal(begin(w, job, 2, true), 0);
        assert_int_equal(captured(w, job, 1), 0);
        for (int32_t i = -1; i < 2; i++) {
                assert_int_equal(stored(w, job, 1, i, i == 1 ? "n2" : "n1"), 0);
                assert_int_equal(stored(w, job, 1, i, i == 1 ? "n3" : "n2"), 0);
        }
        assert_true(job_of(w, job)->held);
        assert_int_equal(apply_command(w, command_checkpoint_remove(&c, job, 1, "alice")), -EBUSY);
        assert_int_equal(apply_command(w, command_job_release(&c, job, 7, "alice", NULL)), -ENOENT);
        assert_int_equal(apply_command(w, command_job_release(&c, job, 1, "alice", NULL)), 0);
        assert_false(job_of(w, job)->held);
        assert_int_equal(apply_command(w, command_job_release(&c, job, 1, "alice", NULL)), -EBUSY);
}

static void all_gone(struct world *w, uint64_t job) {
        for (int32_t i = -1; i < 2; i++) {
                assert_true(job_of(w, job)->left_usec < w->state->time_usec);
                assert_int_equal(gone(w, job, i, i == 1 ? "n2" : "n1"), 0);
        }
        assert_int_equal(job_of(w, job)->left_usec, w->state->time_usec);
}

/* A job has left its nodes when its last capsule has, whether it is stopped, has lost a node or has
 * ended; and nothing that comes later changes that. */
static void test_left(void **state) {
        struct world *w = *state;
        uint64_t stopped = running_job(w), lost = running_job(w), ended = running_job(w), left_usec;
        struct command c;

        assert_int_equal(begin(w, stopped, 2, true), 0);
        assert_int_equal(captured(w, stopped, 1), 0);
        for (int32_t i = -1; i < 2; i++) {
                assert_int_equal(stored(w, stopped, 1, i, i == 1 ? "n2" : "n1"), 0);
                assert_int_equal(stored(w, stopped, 1, i, i == 1 ? "n3" : "n2"), 0);
        }
        all_gone(w, stopped);
        left_usec = w->state->time_usec;
        assert_int_equal(ends(w, ended, 1, RM__JOB_STATE__JOB_FAILED, ""), 0);
        all_gone(w, ended);
        assert_int_equal(health(w, "n2", DOWN), 0);
        let_restart(w, lost, 5);
        assert_int_equal(restart(w, lost, 2, "n2", true), 0);
        assert_int_equal(gone(w, lost, 0, "n1"), 0);
        assert_int_equal(job_of(w, lost)->left_usec, 0);
        assert_int_equal(gone(w, lost, STATE_HEAD, "n1"), 0);
        assert_int_equal(job_of(w, lost)->left_usec, w->state->time_usec);
        assert_int_equal(join(w, "n2", 4), 0);
        assert_int_equal(apply_command(w, command_job_release(&c, stopped, 1, "alice", NULL)), 0);
        assert_int_equal(job_of(w, stopped)->left_usec, left_usec);
}

static int given_up(struct world *w, uint64_t job, uint64_t checkpoint) {
        struct command c;

        return apply_command(w, command_checkpoint_abort(&c, job, checkpoint, "rmd was restarted"));
}

/* The word that it is given up may come late: with copies, without, and when the job has left its
 * nodes for it. What is under way ends by it. */
static void test_done_is_not_given_up(void **state) {
        struct world *w = *state;
        uint64_t job = running_job(w);

        assert_int_equal(make(w, job, 3), 1);
        assert_int_equal(given_up(w, job, 1), -EALREADY);
        assert_int_equal(begin(w, job, 3, false), 0);
        assert_int_equal(captured(w, job, 2), 0);
        for (int32_t i = -1; i < 2; i++) {
                assert_int_equal(uncopied(w, job, 2, i, i == 1 ? "n3" : "n2"), 0);
                assert_int_equal(stored(w, job, 2, i, i == 1 ? "n2" : "n1"), 0);
        }
        assert_int_equal(given_up(w, job, 2), -EALREADY);
        assert_int_equal(begin(w, job, 3, false), 0);
        assert_int_equal(given_up(w, job, 3), 0);
        assert_int_equal(begin(w, job, 3, true), 0);
        assert_int_equal(captured(w, job, 4), 0);
        for (int32_t i = -1; i < 2; i++) {
                assert_int_equal(stored(w, job, 4, i, i == 1 ? "n2" : "n1"), 0);
                assert_int_equal(stored(w, job, 4, i, i == 1 ? "n3" : "n2"), 0);
        }
        assert_true(job_of(w, job)->held);
        assert_int_equal(given_up(w, job, 4), -EALREADY);
        assert_int_equal(job_of(w, job)->n_checkpoints, 3);
        assert_int_equal(job_newest_checkpoint(w->state, job_of(w, job))->id, 4);
}

static uint64_t cancelled_in_checkpoint(struct world *w, bool timeout) {
        uint64_t job = running_job(w);

        assert_int_equal(begin(w, job, 2, true), 0);
        assert_int_equal(captured(w, job, 1), 0);
        assert_int_equal(cancel(w, job, 15, timeout), 0);
        for (int32_t i = -1; i < 2; i++)
                assert_int_equal(stored(w, job, 1, i, i == 1 ? "n2" : "n1"), 0);
        return job;
}

static void expect_end(struct world *w, uint64_t job, Rm__JobState state) {
        assert_int_equal(job_checkpoint(job_of(w, job), 1)->state, RM__CHECKPOINT_STATE__CHECKPOINT_DONE);
        assert_int_equal(job_of(w, job)->state, RM__JOB_STATE__JOB_RUNNING);
        assert_false(job_of(w, job)->held);
        assert_int_equal(ends(w, job, 143, state, ""), 0);
        for (int32_t i = -1; i < 2; i++)
                assert_int_equal(gone(w, job, i, i == 1 ? "n2" : "n1"), 0);
        assert_int_equal(job_of(w, job)->state, state);
        assert_int_equal(job_of(w, job)->attempt, 1);
}

/* A cancelled job ends, and waits for nothing, whoever cancels it, and whatever is the last report
 * of the checkpoint after which it was to leave its nodes. */
static void test_cancel_before_stop(void **state) {
        struct world *w = *state;
        uint64_t job = cancelled_in_checkpoint(w, false);

        for (int32_t i = -1; i < 2; i++)
                assert_int_equal(stored(w, job, 1, i, i == 1 ? "n3" : "n2"), 0);
        expect_end(w, job, RM__JOB_STATE__JOB_CANCELLED);
        job = cancelled_in_checkpoint(w, true);
        for (int32_t i = -1; i < 2; i++)
                assert_int_equal(stored(w, job, 1, i, i == 1 ? "n3" : "n2"), 0);
        expect_end(w, job, RM__JOB_STATE__JOB_TIMEOUT);
        job = cancelled_in_checkpoint(w, false);
        for (int32_t i = -1; i < 2; i++)
                assert_int_equal(uncopied(w, job, 1, i, i == 1 ? "n3" : "n2"), 0);
        expect_end(w, job, RM__JOB_STATE__JOB_CANCELLED);
}

/* ---- programs that restore themselves ---- */

static int own_state(struct world *w, uint64_t job, uint32_t attempt, bool own) {
        struct command c;

        return apply_command(w, command_job_own_state(&c, job, attempt, own));
}

static int requeue(struct world *w, uint64_t job, uint32_t attempt) {
        struct command c;

        return apply_command(w, command_job_requeue(&c, job, attempt, "n1 must be empty soon"));
}

/* The job goes on from no checkpoint, although there is one. */
static void test_own_state(void **state) {
        struct world *w = *state;
        uint64_t job = running_job(w);

        assert_int_equal(make(w, job, 2), 1);
        assert_int_equal(own_state(w, 99, 1, true), -ENOENT);
        assert_int_equal(own_state(w, job, 2, true), -ESRCH);
        assert_int_equal(requeue(w, job, 1), -EPERM);
        assert_non_null(job_newest_checkpoint(w->state, job_of(w, job)));
        assert_int_equal(own_state(w, job, 1, true), 0);
        assert_true(job_of(w, job)->own_state);
        assert_non_null(strstr(w->events, "job-own-state"));
        assert_null(job_newest_checkpoint(w->state, job_of(w, job)));
        assert_int_equal(begin(w, job, 2, false), -EPERM);
        assert_int_equal(requeue(w, job, 2), -ESRCH);
        assert_int_equal(requeue(w, job, 1), 0);
        assert_int_equal(job_of(w, job)->state, RM__JOB_STATE__JOB_RECOVERING);
        assert_int_equal(job_counted_attempts(job_of(w, job)), 1);
        assert_true(job_of(w, job)->own_state); /* until the next attempt says otherwise */
        assert_int_equal(requeue(w, job, 2), -ESRCH);
        assert_int_equal(own_state(w, job, 2, false), -ESRCH);
}

static void test_own_state_saved_by_force(void **state) {
        struct world *w = *state;
        uint64_t job = running_job(w);
        struct command c;

        assert_int_equal(own_state(w, job, 1, true), 0);
        assert_int_equal(begin_by(w, job, 2, true, true), 0);
        assert_int_equal(captured(w, job, 1), 0);
        for (int32_t i = -1; i < 2; i++) {
                assert_int_equal(stored(w, job, 1, i, i == 1 ? "n2" : "n1"), 0);
                assert_int_equal(stored(w, job, 1, i, i == 1 ? "n3" : "n2"), 0);
        }
        assert_true(job_of(w, job)->held);
        assert_null(job_newest_checkpoint(w->state, job_of(w, job)));
        assert_int_equal(apply_command(w, command_job_release(&c, job, 1, "alice", NULL)), 0);
        assert_int_equal(job_newest_checkpoint(w->state, job_of(w, job))->id, 1); /* which is what was asked for */
}

static int import(struct world *w, const Rm__Job *job, const char *node) {
        struct command c;

        return apply_command(w, command_checkpoint_import(&c, job, node, "alice", NULL));
}

/* The job as it was exported: with one checkpoint. */
static Rm__Job *exported(const struct world *w, uint64_t id) {
        Rm__Job *job = (Rm__Job *) message_copy(&state_job(w->state, id)->base);

        assert_int_equal(job->n_checkpoints, 1);
        return job;
}

static void end_by_cancel(struct world *w, uint64_t id) {
        struct command c;

        assert_int_equal(apply_command(w, command_job_cancel(&c, id, 0, "alice")), 0);
        assert_int_equal(apply_command(w, command_job_exit(&c, id, 143, NULL, 0)), 0);
        for (int32_t i = -1; i < 2; i++)
                (void) gone(w, id, i, i == 1 ? "n2" : "n1");
        assert_true(job_ended(job_of(w, id)));
}

/* Removed by its owner, and handed in again. */
static void test_import(void **state) {
        struct world *w = *state;
        uint64_t id = running_job(w);
        struct command c;
        Rm__Job *out;
        const Rm__Checkpoint *back;

        assert_int_equal(make(w, id, 2), 1);
        out = exported(w, id);
        assert_int_equal(import(w, out, "n4"), -EBUSY); /* it runs */
        end_by_cancel(w, id);
        assert_int_equal(import(w, out, "n4"), -EEXIST);
        assert_int_equal(apply_command(w, command_checkpoint_remove(&c, id, 1, "alice")), 0);
        assert_int_equal(apply_command(w, command_job_release(&c, id, 1, "alice", NULL)), -ENOENT);
        assert_int_equal(import(w, out, "n9"), -ESRCH);
        out->spec->uid++;
        assert_int_equal(import(w, out, "n4"), -EEXIST); /* somebody else's job of that number */
        out->spec->uid--;
        assert_int_equal(import(w, out, "n4"), 0);
        back = job_newest_checkpoint(w->state, job_of(w, id));
        assert_int_equal(back->id, 1);
        for (size_t i = 0; i < back->n_parts; i++) {
                assert_int_equal(back->parts[i]->n_stored, 1);
                assert_string_equal(back->parts[i]->stored[0], "n4");
                assert_int_equal(back->parts[i]->n_partners, 0);
        }
        assert_int_equal(apply_command(w, command_job_release(&c, id, 1, "alice", NULL)), 0);
        assert_int_equal(import(w, out, "n4"), -EBUSY); /* it waits */
        rm__job__free_unpacked(out, NULL);
}

/* The cluster knows nothing of the job any more, or has lost all that it knew. */
static void test_import_of_forgotten(void **state) {
        struct world *w = *state;
        uint64_t id = running_job(w), other;
        struct command c;
        Rm__Job *out;

        assert_int_equal(make(w, id, 2), 1);
        out = exported(w, id);
        end_by_cancel(w, id);
        assert_int_equal(apply_command(w, command_job_forget(&c, id)), 0);
        assert_null(job_of(w, id));
        assert_int_equal(import(w, out, "n4"), 0);
        assert_int_equal(job_of(w, id)->state, RM__JOB_STATE__JOB_CANCELLED);
        assert_int_equal(job_of(w, id)->end_usec, w->time_usec);
        assert_int_equal(job_of(w, id)->n_capsules, 0);
        out->id = id + 100;
        out->checkpoints[0]->id = 7;
        assert_int_equal(import(w, out, "n4"), -EADDRINUSE); /* the first one may be restarted */
        assert_int_equal(apply_command(w, command_job_forget(&c, id)), 0);
        assert_int_equal(import(w, out, "n4"), 0);
        assert_int_equal(job_of(w, id + 100)->last_checkpoint, 7);
        other = running_job(w);
        assert_int_equal(other, id + 101);
        for (size_t i = 0; i < job_of(w, other)->n_capsules; i++)
                for (size_t k = 0; k < out->checkpoints[0]->n_parts; k++)
                        assert_int_not_equal(job_of(w, other)->capsules[i]->address, out->checkpoints[0]->parts[k]->address);
        rm__job__free_unpacked(out, NULL);
}

/* The job could never be placed again, nor be shown to a policy: groups of no size, of another one,
 * or without ranks; ranks in the head. */
static void expect_unplaceable(struct world *w, Rm__Job *out) {
        Rm__Checkpoint *checkpoint = out->checkpoints[0];

        for (uint32_t size = 0; size < 4; size++) {
                checkpoint->group_size = size;
                if (size != 1)
                        assert_int_equal(import(w, out, "n4"), -EINVAL);
        }
        checkpoint->group_size = 2;
        for (uint32_t empty = 0; empty < 3; empty++) {
                for (uint32_t i = 0; i < 3; i++)
                        checkpoint->parts[i]->ranks = i == (empty + 1) % 3 ? 2 : 0;
                assert_int_equal(import(w, out, "n4"), -EINVAL);
        }
        checkpoint->group_size = 1;
        for (uint32_t i = 0; i < 3; i++)
                checkpoint->parts[i]->ranks = i > 0;
}

/* A job of so many groups runs on n1, each of one rank. */
static uint64_t large_job(struct world *w, uint32_t n) {
        cleanup_free const char **nodes = xcalloc(n, sizeof(*nodes));
        cleanup_free uint32_t *ranks = xcalloc(n, sizeof(*ranks));
        uint64_t id = (uint64_t) submit(w, n);

        for (uint32_t i = 0; i < n; i++) {
                nodes[i] = "n1";
                ranks[i] = 1;
        }
        let_restart(w, id, 5);
        assert_int_equal(place(w, id, "n1", nodes, ranks, n), 0);
        assert_int_equal(running(w, id), 0);
        return id;
}

static void set_saved(Rm__Checkpoint *checkpoint) {
        checkpoint->state = RM__CHECKPOINT_STATE__CHECKPOINT_DONE;
        for (size_t i = 0; i < checkpoint->n_parts; i++) {
                Rm__CheckpointPart *part = checkpoint->parts[i];

                assert_int_equal(part->n_stored, 0);
                part->stored = xcalloc(1, sizeof(*part->stored));
                part->stored[part->n_stored++] = xstrdup("n3");
        }
}

/* All parts are on n3; without a command for each part, of which there are too many. */
static void save_large(struct world *w, uint64_t id) {
        char *nodes[] = { (char *) "n1" }, *partners[] = { (char *) "n3" };
        struct command c;
        Rm__CmdCheckpointStart *in = command_checkpoint_start(&c, id, RM__CHECKPOINT_CAUSE__CHECKPOINT_CAUSE_ASKED);

        in->by = (char *) "alice";
        in->keep = 2;
        in->capsule_nodes = nodes;
        in->partners = partners;
        in->n_capsule_nodes = in->n_partners = 1;
        assert_int_equal(apply_command(w, &c.command), 0);
        set_saved(job_checkpoint(job_of(w, id), 1));
        set_saved(job_checkpoint(state_job(w->twin, id), 1));
}

/* The job goes on from `checkpoint`, or begins again. */
static int place_again(struct world *w, uint64_t id, uint64_t checkpoint, const char *node) {
        struct command c;
        Rm__CmdJobPlace *in = command_job_place(&c, id);
        cleanup_free char **nodes = NULL;
        uint32_t n;
        cleanup_free uint32_t *ranks = groups_create(job_of(w, id)->spec->ranks, 1, &n);

        nodes = xcalloc(n, sizeof(*nodes));
        for (uint32_t i = 0; i < n; i++)
                nodes[i] = (char *) node;
        in->head_node = (char *) node;
        in->group_size = 1;
        in->group_nodes = nodes;
        in->group_ranks = ranks;
        in->n_group_nodes = in->n_group_ranks = n;
        in->checkpoint = checkpoint;
        return apply_command(w, &c.command);
}

static void set_gone(Rm__Job *job) {
        for (size_t i = 0; i < job->n_capsules; i++)
                job->capsules[i]->state = RM__CAPSULE_STATE__CAPSULE_GONE;
}

/* The node is lost with all of the job, which waits for its next attempt. */
static void lose_large(struct world *w, uint64_t id, uint32_t attempt, const char *node) {
        assert_int_equal(health(w, node, DOWN), 0);
        set_gone(job_of(w, id));
        set_gone(state_job(w->twin, id));
        assert_int_equal(restart(w, id, attempt, node, false), 0);
        assert_int_equal(job_of(w, id)->state, RM__JOB_STATE__JOB_PENDING);
}

/* No two capsules have one. state_check() would take seconds for so many. */
static void expect_own_addresses(const struct world *w) {
        static bool used[STATE_CAPSULES_MAX + 1];

        for (size_t i = 0; i < w->state->n_jobs; i++)
                for (size_t k = 0; k < w->state->jobs[i]->n_capsules; k++) {
                        bool *address = &used[w->state->jobs[i]->capsules[k]->address];

                        assert_false(*address);
                        *address = true;
                }
        for (uint32_t address = 1; address <= STATE_CAPSULES_MAX; address++)
                assert_int_equal(state_address_used(w->indexed, address), used[address]);
}

/* A checkpoint holds addresses so that its job can come back with them. They are not counted twice
 * while the job runs, nor against the job itself, whether it goes on from the checkpoint or begins
 * anew. */
static void test_addresses_of_its_own_checkpoint(void **state) {
        struct world *w = *state;
        const uint32_t n = STATE_CAPSULES_MAX / 2 + 1000;
        uint64_t id;

        w->thorough = false;
        /* Filling is switched off: else each of these long arrays would be filled again whenever it
         * grows: meson sets MALLOC_PERTURB_. */
        (void) mallopt(M_PERTURB, 0);
        id = large_job(w, n);
        save_large(w, id);
        (void) large_job(w, STATE_CAPSULES_MAX - (n + 1) - 1);
        lose_large(w, id, 2, "n1");
        assert_int_equal(place_again(w, id, 1, "n2"), 0);
        assert_int_equal(job_of(w, id)->restored_from, 1);
        assert_int_equal(running(w, id), 0);
        lose_large(w, id, 3, "n2");
        assert_int_equal(place_again(w, id, 0, "n4"), 0);
        expect_own_addresses(w);
}

/* An address that it needs has gone to a job that runs; and what no export says. */
static void test_import_refused(void **state) {
        struct world *w = *state;
        uint64_t id = running_job(w), other = running_job(w);
        struct command c;
        uint32_t address;
        Rm__Job *out;

        assert_int_equal(make(w, id, 2), 1);
        out = exported(w, id);
        end_by_cancel(w, id);
        assert_int_equal(apply_command(w, command_job_forget(&c, id)), 0);
        address = out->checkpoints[0]->parts[1]->address;
        out->checkpoints[0]->parts[1]->address = job_of(w, other)->capsules[0]->address;
        assert_int_equal(import(w, out, "n4"), -EADDRINUSE);
        out->checkpoints[0]->parts[1]->address = out->checkpoints[0]->parts[0]->address;
        assert_int_equal(import(w, out, "n4"), -EINVAL);
        out->checkpoints[0]->parts[1]->address = STATE_CAPSULES_MAX + 1;
        assert_int_equal(import(w, out, "n4"), -EINVAL);
        out->checkpoints[0]->parts[1]->address = address;
        out->checkpoints[0]->parts[1]->ranks++;
        assert_int_equal(import(w, out, "n4"), -EINVAL);
        out->checkpoints[0]->parts[1]->ranks--;
        out->checkpoints[0]->parts[1]->capsule = 5;
        assert_int_equal(import(w, out, "n4"), -EINVAL);
        out->checkpoints[0]->parts[1]->capsule = 0;
        assert_null(job_of(w, id));
        expect_unplaceable(w, out);
        assert_int_equal(import(w, out, "n4"), 0);
        rm__job__free_unpacked(out, NULL);
}

/* ---- restores that fail ---- */

static void leave(struct world *w, uint64_t job) {
        for (int32_t i = -1; i < 2; i++) {
                cleanup_free char *node = xstrdup(job_of(w, job)->capsules[i + 1]->node);

                assert_int_equal(gone(w, job, i, node), 0);
        }
}

/* A job with `n` checkpoints has lost its node, and is placed on n4 to go on from the newest. */
static uint64_t restored_job(struct world *w, unsigned n) {
        uint64_t job = running_job(w);

        for (unsigned i = 0; i < n; i++)
                (void) make(w, job, 0);
        assert_int_equal(restart(w, job, 2, "n2", false), 0);
        leave(w, job);
        assert_int_equal(job_of(w, job)->state, RM__JOB_STATE__JOB_PENDING);
        assert_int_equal(place_again(w, job, n, "n4"), 0);
        assert_int_equal(job_of(w, job)->restored_from, n);
        return job;
}

static int unrestored(struct world *w, uint64_t job, bool passing, bool unread) {
        struct command c;
        Rm__CmdCheckpointUnrestored *in =
                command_checkpoint_unrestored(&c, job, job_of(w, job)->restored_from, "n4", "its log: it is another file");

        in->attempt = job_of(w, job)->attempt;
        in->passing = passing;
        in->unread = unread;
        return apply_command(w, &c.command);
}

static void fail_to_restore(struct world *w, uint64_t job, bool passing, bool unread) {
        assert_int_equal(unrestored(w, job, passing, unread), 0);
        leave(w, job);
        assert_int_equal(job_of(w, job)->state, RM__JOB_STATE__JOB_PENDING);
}

static int release(struct world *w, uint64_t job, bool other_files) {
        struct command c;

        (void) command_job_release(&c, job, 0, "alice", NULL);
        c.job_release.other_files = other_files;
        return apply_command(w, &c.command);
}

static uint64_t newest(const struct world *w, uint64_t job) {
        const Rm__Checkpoint *c = job_newest_checkpoint(w->state, state_job(w->state, job));

        return c ? c->id : 0;
}

static void test_stands_in_the_way(void **state) {
        struct world *w = *state;
        uint64_t job = restored_job(w, 2);
        uint32_t counted = job_counted_attempts(job_of(w, job));

        fail_to_restore(w, job, false, false);
        assert_true(job_of(w, job)->held);
        assert_non_null(strstr(job_of(w, job)->reason, "checkpoint 1.2 was not restored: n4: its log: it is another file"));
        assert_non_null(strstr(job_of(w, job)->reason, "rmctl restart-job 1"));
        assert_int_equal(job_of(w, job)->n_checkpoints, 2);
        assert_int_equal(job_counted_attempts(job_of(w, job)), counted);
        assert_int_equal(release(w, job, true), 0);
        assert_true(job_checkpoint(job_of(w, job), 2)->other_files);
        assert_int_equal(newest(w, job), 2);
        assert_int_equal(place_again(w, job, 2, "n4"), 0);
        for (int32_t i = -1; i < 2; i++)
                assert_int_equal(ready(w, job, i, "n4"), 0);
        assert_int_equal(running(w, job), 0);
        assert_int_equal(unrestored(w, job, false, false), -EALREADY); /* the word of another group comes too late */
        assert_false(job_checkpoint(job_of(w, job), 2)->other_files); /* that was said for this time */
        assert_int_equal(job_of(w, job)->state, RM__JOB_STATE__JOB_RUNNING);
}

/* The checkpoint is tried again, but not indefinitely; the count begins again each time that a user
 * lets the job go on, and each time that it ran. */
static void test_may_pass(void **state) {
        struct world *w = *state;
        uint64_t job = restored_job(w, 2);

        for (unsigned round = 0; round < 2; round++) {
                for (unsigned i = 1; i <= STATE_RESTORES_MAX; i++) {
                        fail_to_restore(w, job, true, false);
                        assert_int_equal(job_of(w, job)->held, i == STATE_RESTORES_MAX);
                        assert_int_equal(newest(w, job), 2);
                        if (i < STATE_RESTORES_MAX)
                                assert_int_equal(place_again(w, job, 2, "n4"), 0);
                }
                assert_int_equal(release(w, job, false), 0);
                assert_int_equal(place_again(w, job, 2, "n4"), 0);
        }
        fail_to_restore(w, job, true, false);
        assert_int_equal(place_again(w, job, 2, "n4"), 0);
        for (int32_t i = -1; i < 2; i++)
                assert_int_equal(ready(w, job, i, "n4"), 0);
        assert_int_equal(running(w, job), 0);
        assert_int_equal(job_checkpoint(job_of(w, job), 2)->restore_failures, 0);
        assert_int_equal(job_of(w, job)->n_checkpoints, 2);
}

/* A checkpoint that no node can send is passed over, while there is another one; it stays, and may
 * be asked for. */
static void test_unreadable(void **state) {
        struct world *w = *state;
        uint64_t job = restored_job(w, 2);

        for (uint64_t from = 2; from > 0; from--)
                for (unsigned i = 1; i <= STATE_RESTORES_MAX; i++) {
                        assert_int_equal(newest(w, job), from);
                        fail_to_restore(w, job, true, true);
                        assert_int_equal(job_of(w, job)->held, from == 1 && i == STATE_RESTORES_MAX);
                        if (!job_of(w, job)->held)
                                assert_int_equal(place_again(w, job, newest(w, job), "n4"), 0);
                }
        assert_int_equal(newest(w, job), 0);
        assert_int_equal(job_of(w, job)->n_checkpoints, 2);
        assert_int_equal(release(w, job, false), 0);
        assert_int_equal(newest(w, job), 2);
}

/* The job has gone on from the one before, so that the other is of a past that did not happen; it
 * does not count for those that are kept. */
static void test_passed_over(void **state) {
        struct world *w = *state;
        uint64_t job = restored_job(w, 2);

        for (unsigned i = 1; i <= STATE_RESTORES_MAX; i++) {
                fail_to_restore(w, job, true, true);
                assert_int_equal(place_again(w, job, newest(w, job), "n4"), 0);
        }
        assert_int_equal(job_of(w, job)->restored_from, 1);
        for (int32_t i = -1; i < 2; i++)
                assert_int_equal(ready(w, job, i, "n4"), 0);
        assert_int_equal(running(w, job), 0);
        assert_int_equal(newest(w, job), 1);
        assert_int_equal(begin(w, job, 2, false), 0);
        assert_int_equal(captured(w, job, 3), 0);
        for (int32_t i = -1; i < 2; i++)
                assert_int_equal(stored(w, job, 3, i, "n4"), 0);
        assert_int_equal(newest(w, job), 3);
        assert_int_equal(job_of(w, job)->n_checkpoints, 3);
        assert_non_null(job_checkpoint(job_of(w, job), 1));
}

/* Both copies of a part are no good, and another checkpoint could not be sent: it does not begin
 * anew. */
static void test_last_is_damaged(void **state) {
        struct world *w = *state;
        uint64_t job = restored_job(w, 2);

        for (unsigned i = 1; i <= STATE_RESTORES_MAX; i++) {
                fail_to_restore(w, job, true, true);
                if (i < STATE_RESTORES_MAX)
                        assert_int_equal(place_again(w, job, 2, "n4"), 0);
        }
        assert_int_equal(newest(w, job), 1);
        assert_int_equal(lost(w, job, 1, 1, "n2"), 0);
        assert_false(job_of(w, job)->held);
        assert_int_equal(lost(w, job, 1, 1, "n3"), 0);
        assert_true(job_of(w, job)->held);
        assert_int_equal(job_of(w, job)->n_checkpoints, 1);
        assert_int_equal(release(w, job, false), 0);
        assert_int_equal(newest(w, job), 2);
}

/* A node that is lost meanwhile costs no attempt. */
static void test_restarted_in_restore(void **state) {
        struct world *w = *state;
        uint64_t job = restored_job(w, 1);
        uint32_t counted = job_counted_attempts(job_of(w, job));

        assert_int_equal(restart(w, job, 3, "n4", false), 0);
        assert_int_equal(health(w, "n4", DOWN), 0);
        assert_int_equal(restart(w, job, 3, "n4", true), 0); /* said again */
        assert_int_equal(job_of(w, job)->state, RM__JOB_STATE__JOB_PENDING);
        assert_int_equal(job_counted_attempts(job_of(w, job)), counted);
        assert_int_equal(job_checkpoint(job_of(w, job), 1)->restore_failures, 1);
}

/* A node or mpirun that is lost before the job runs is no end of it either, also where it may not
 * start again by itself. */
static void test_lost_in_restore(void **state) {
        struct world *w = *state;
        uint64_t job = restored_job(w, 1);

        let_restart(w, job, 1); /* it has been once */
        assert_int_equal(ends(w, job, 255, RM__JOB_STATE__JOB_NODE_FAIL, "node n4 is lost"), 0);
        leave(w, job);
        assert_int_equal(job_of(w, job)->state, RM__JOB_STATE__JOB_PENDING);
        assert_false(job_of(w, job)->held);
        assert_int_equal(place_again(w, job, 1, "n4"), 0);
        assert_int_equal(ends(w, job, 137, RM__JOB_STATE__JOB_PENDING, ""), 0); /* mpirun was killed */
        leave(w, job);
        assert_int_equal(release(w, job, false), -EBUSY);
        assert_int_equal(place_again(w, job, 1, "n4"), 0);
        assert_int_equal(cancel(w, job, 15, false), 0);
        assert_int_equal(ends(w, job, 143, RM__JOB_STATE__JOB_CANCELLED, ""), 0);
        leave(w, job);
        assert_int_equal(job_of(w, job)->state, RM__JOB_STATE__JOB_CANCELLED);
        assert_int_equal(job_of(w, job)->n_checkpoints, 1);
}

/* ---- drills ---- */

static int begin_drill(struct world *w, uint64_t job) {
        char *nodes[] = { (char *) "n1", (char *) "n2" };
        char *partners[] = { (char *) "", (char *) "" };
        struct command c;
        Rm__CmdCheckpointStart *in = command_checkpoint_start(&c, job, RM__CHECKPOINT_CAUSE__CHECKPOINT_CAUSE_DRILL);

        in->by = (char *) "alice";
        in->keep = 2;
        in->capsule_nodes = nodes;
        in->n_capsule_nodes = 2;
        in->partners = partners;
        in->n_partners = 2;
        return apply_command(w, &c.command);
}

static int drilled(struct world *w, uint64_t job, uint64_t checkpoint, int32_t capsule, const char *error) {
        struct command c;
        Rm__CmdCheckpointDrilled *in = command_checkpoint_drilled(&c, job, checkpoint, capsule, capsule == 1 ? "n2" : "n1");

        in->usec = 7;
        in->error = (char *) error;
        return apply_command(w, &c.command);
}

static uint64_t drill_stored(struct world *w, uint64_t job) {
        uint64_t id;

        assert_int_equal(begin_drill(w, job), 0);
        id = w->created;
        assert_int_equal(captured(w, job, id), 0);
        for (int32_t i = -1; i < 2; i++)
                assert_int_equal(stored(w, job, id, i, i == 1 ? "n2" : "n1"), 0);
        return id;
}

/* A drill counts for nothing, and leaves only its result. */
static void test_drill(void **state) {
        struct world *w = *state;
        uint64_t job = running_job(w), id, try_usec;
        Rm__Checkpoint *c;

        assert_int_equal(make(w, job, 2), 1);
        assert_int_equal(make(w, job, 2), 2);
        try_usec = job_of(w, job)->checkpoint_try_usec;
        id = drill_stored(w, job);
        c = job_checkpoint(job_of(w, job), id);
        assert_int_equal(c->state, RM__CHECKPOINT_STATE__CHECKPOINT_DRILLING);
        assert_int_equal(c->n_output_end, 0);
        assert_int_equal(job_newest_checkpoint(w->state, job_of(w, job))->id, 2);
        assert_int_equal(begin(w, job, 2, false), -EALREADY);
        assert_int_equal(begin_drill(w, job), -EALREADY);
        assert_int_equal(drilled(w, job, 2, 0, ""), -EALREADY);
        assert_int_equal(drilled(w, job, id, -1, ""), 0);
        assert_int_equal(drilled(w, job, id, -1, ""), -EALREADY);
        assert_int_equal(drilled(w, job, id, 0, "a file is gone"), 0);
        assert_int_equal(drilled(w, job, id, 1, ""), 0);
        assert_non_null(strstr(w->events, "drill-done"));
        assert_int_equal(job_of(w, job)->n_checkpoints, 2);
        assert_int_equal(job_of(w, job)->checkpoint_try_usec, try_usec);
        c = job_of(w, job)->drill;
        assert_int_equal(c->id, id);
        assert_string_equal(c->error, "");
        assert_string_equal(c->parts[1]->drill_error, "a file is gone");
        assert_int_equal(c->parts[2]->drill_usec, 7);
        assert_int_equal(c->parts[2]->n_stored, 0);
        assert_int_equal(drilled(w, job, id, 1, ""), -ENOENT);
        assert_int_equal(make(w, job, 2), id + 1);
}

/* A drill that is given up is kept as such, and is no failed checkpoint. */
static void test_drill_given_up(void **state) {
        struct world *w = *state;
        uint64_t job = running_job(w), id = drill_stored(w, job);
        cleanup_free char *text = xcalloc(1, STATE_DRILL_ERROR_MAX + 2);
        struct command c;

        memset(text, 'x', STATE_DRILL_ERROR_MAX + 1);
        assert_int_equal(drilled(w, job, id, 0, text), -EINVAL);
        assert_int_equal(apply_command(w, command_checkpoint_abort(&c, job, id, "a node of the job is down")), 0);
        assert_int_equal(job_of(w, job)->n_checkpoints, 0);
        assert_string_equal(job_of(w, job)->drill->error, "a node of the job is down");
        assert_string_equal(job_of(w, job)->checkpoint_error, "");
        id = drill_stored(w, job); /* the next one takes its place */
        for (int32_t i = -1; i < 2; i++)
                assert_int_equal(drilled(w, job, id, i, ""), 0);
        assert_int_equal(job_of(w, job)->drill->id, id);
        assert_string_equal(job_of(w, job)->drill->error, "");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_life, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_kept, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_copies, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_no_good_copy, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_damaged_at_once, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_away, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_stop, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_left, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_done_is_not_given_up, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_cancel_before_stop, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_own_state, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_own_state_saved_by_force, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_import, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_import_of_forgotten, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_import_refused, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_addresses_of_its_own_checkpoint, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_stands_in_the_way, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_may_pass, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_unreadable, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_passed_over, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_last_is_damaged, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_restarted_in_restore, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_lost_in_restore, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_drill, set_up, world_tear_down),
                cmocka_unit_test_setup_teardown(test_drill_given_up, set_up, world_tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
