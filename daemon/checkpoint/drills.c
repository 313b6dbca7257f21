/* Drills: whether what was captured of a job could be restored is tried, beside the job, which runs
 * on. Each node restores the parts that it has captured, one after the other, into a capsule that
 * no other can hear and that never runs, and tells the log. The checkpoint is gone by the state
 * when all have; whatever the state does not know of any more is removed. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/text.h"
#include "common/util.h"
#include "daemon/checkpoint/checkpoints_internal.h"
#include "daemon/job/launch.h"
#include "daemon/job/memory_report.h"
#include "daemon/node/memory_use.h"
#include "daemon/state/commands.h"

bool drills_own(const struct checkpoints *c, const struct resident *resident) {
        const struct restore *restore;

        LIST_FOREACH (restore, &c->restores, entry)
                if (restore->drill && restore->job == resident_job(resident) && restore->index == resident_index(resident) &&
                    restore->incarnation == resident_incarnation(resident))
                        return !restore->drilled;
        return false;
}

/* ---- room ---- */

/* The processes' memory now counts like a capture of a moment ago. */
static uint64_t needed_bytes(const struct checkpoints *c, uint64_t job, const Rm__CheckpointPart *part, uint64_t checkpoint) {
        const struct save *save = saves_last(c, job, part->capsule, checkpoint);
        const struct resident *original = runner_copy(c->rmd->runner, job, part->capsule, part->incarnation);
        struct memory_report_use use = { 0 };

        if (original && resident_answers(original))
                memory_report_read(original, MEMORY_REPORT_PROCESSES_MAX, &use);
        if (use.memory_bytes + use.files_bytes < part->raw_bytes)
                use.memory_bytes = part->raw_bytes;
        return memory_use_of_move(use.memory_bytes, use.files_bytes, save && save->pages);
}

static int check_space(const struct checkpoints *c, uint64_t job, const Rm__CheckpointPart *part, uint64_t checkpoint,
                       struct rm_error *err) {
        uint64_t needed = needed_bytes(c, job, part, checkpoint);
        uint64_t free_bytes = memory_report_space(c->rmd->runner);

        if (needed <= free_bytes)
                return 0;
        return error_set(err, -ENOSPC, "not tried: a second copy needs %" PRIu64 " MB of memory, and %" PRIu64 " MB are free",
                         needed / 1000000, free_bytes / 1000000);
}

/* ---- one part ---- */

static void propose(struct checkpoints *c, const struct restore *restore) {
        const struct save *save = saves_last(c, restore->job, restore->index, restore->checkpoint);
        struct rm_error text = { 0 };
        struct command cmd;
        Rm__CmdCheckpointDrilled *body =
                command_checkpoint_drilled(&cmd, restore->job, restore->checkpoint, restore->index, checkpoints_self(c));

        if (restore->error[0]) {
                (void) error_set(&text, -EIO, "%.*s", (int) STATE_DRILL_ERROR_MAX, restore->error);
                error_clean(&text);
        }
        body->usec = restore->took_usec;
        body->pause_usec = save ? save->pause_usec : 0;
        body->error = text.text;
        checkpoints_propose(c, &cmd.command);
        checkpoints_retry(c); /* until the state shows it */
}

void drills_tried(struct restore *restore) {
        restore->drilled = true;
        (void) evtimer_del(restore->deadline);
        if (restore->state == RESTORE_DONE)
                restore->error[0] = '\0';
        else if (restore->state == RESTORE_NEW)
                log_info("drill %" PRIu64 ".%" PRIu64 ": capsule %" PRId32 ": %s", restore->job, restore->checkpoint,
                         restore->index, restore->error);
        runner_wake(restore->c->rmd->runner); /* its capsule is not needed any more */
        checkpoints_wake(restore->c);
}

static bool is_left(const struct checkpoints *c, uint64_t job, int32_t index, uint64_t incarnation) {
        char id[64];

        launch_capsule_id(id, job, index, incarnation);
        return runner_copy(c->rmd->runner, job, index, incarnation) || capsule_is_going(c->rmd->capsules, id);
}

static void begin(struct checkpoints *c, const Rm__Job *job, const Rm__Checkpoint *checkpoint, const Rm__CheckpointPart *part) {
        struct rm_error err = { 0 };
        struct restore *restore;
        int r;

        /* The capsule is of a previous rmd: the runner removes it, as it is not needed. */
        if (is_left(c, job->id, part->capsule, DRILL_INCARNATION | checkpoint->id)) {
                checkpoints_retry(c);
                return;
        }
        restore = restores_begin_drill(c, job->id, checkpoint, part->capsule);
        r = check_space(c, job->id, part, checkpoint->id, &err);
        if (r == 0)
                r = runner_make_drill(c->rmd->runner, job, part->capsule, restore->incarnation, &err);
        if (r == 0)
                return; /* restores_capsule_ready() */
        (void) text_format(restore->error, sizeof(restore->error), "%s", error_text(&err));
        drills_tried(restore);
}

/* ---- what the state says ---- */

static const Rm__CheckpointPart *part_of(const struct checkpoints *c, const struct restore *restore) {
        const Rm__Checkpoint *checkpoint = checkpoints_record(c, restore->job, restore->checkpoint);

        return checkpoint ? checkpoint_part(checkpoint, restore->index) : NULL;
}

/* True: one goes on, or is still to be told. */
static bool see_restores(struct checkpoints *c) {
        struct restore *restore, *next;
        bool busy = false;

        for (restore = LIST_FIRST(&c->restores); restore; restore = next) {
                const Rm__CheckpointPart *part = restore->drill ? part_of(c, restore) : NULL;

                next = LIST_NEXT(restore, entry);
                if (!restore->drill)
                        continue;
                if (!part || part->drilled) {
                        restores_end_drill(restore);
                        continue;
                }
                busy = true;
                if (restore->drilled)
                        propose(c, restore);
        }
        return busy;
}

/* A node runs one drill at a time, so that as few capsules as possible are there twice. */
void drills_wake(struct checkpoints *c) {
        const Rm__State *state = checkpoints_state(c);

        if (see_restores(c))
                return;
        for (size_t i = 0; i < state->n_jobs; i++) {
                const Rm__Job *job = state->jobs[i];
                const Rm__Checkpoint *checkpoint = job_checkpoint_under_way(job);

                if (!checkpoint || checkpoint->state != RM__CHECKPOINT_STATE__CHECKPOINT_DRILLING)
                        continue;
                for (size_t k = 0; k < checkpoint->n_parts; k++) {
                        const Rm__CheckpointPart *part = checkpoint->parts[k];

                        if (part->drilled || strcmp(part->node, checkpoints_self(c)) != 0)
                                continue;
                        begin(c, job, checkpoint, part);
                        return;
                }
        }
}
