#include "launcher/client/attachment_internal.h"

#include <inttypes.h>

#include "common/util.h"

#define SECOND_USEC UINT64_C(1000000)
#define MINUTE_USEC (60U * SECOND_USEC)
#define HOUR_USEC (60U * MINUTE_USEC)

static const Rm__Checkpoint *find_checkpoint(const Rm__Job *job, uint64_t id) {
        for (size_t k = 0; k < job->n_checkpoints; k++)
                if (job->checkpoints[k]->id == id)
                        return job->checkpoints[k];
        return NULL;
}

static const Rm__Checkpoint *newest_checkpoint(const Rm__Job *job) {
        const Rm__Checkpoint *newest = NULL;

        for (size_t k = 0; k < job->n_checkpoints; k++)
                if (job->checkpoints[k]->state == RM__CHECKPOINT_STATE__CHECKPOINT_DONE)
                        newest = job->checkpoints[k];
        return newest;
}

/* The attempt has been placed, so that it is known where it begins. One that was cancelled before
 * that has no capsules. */
static bool is_placed(const Rm__Job *job) {
        if (job->state == RM__JOB_STATE__JOB_PENDING || job->state == RM__JOB_STATE__JOB_RECOVERING)
                return false;
        return job->state < RM__JOB_STATE__JOB_COMPLETED || job->n_capsules > 0;
}

/* " (12 s old)", or nothing where the time is not known. */
static char *age_words(const struct attachment *a, const Rm__Checkpoint *checkpoint, uint64_t now) {
        uint64_t now_real = a->config.real_usec + (now - a->start_usec);
        uint64_t age;

        if (!a->config.real_usec || !checkpoint || !checkpoint->captured_usec)
                return xstrdup("");
        age = now_real > checkpoint->captured_usec ? now_real - checkpoint->captured_usec : 0;
        if (age < 2 * MINUTE_USEC)
                return xasprintf(" (%" PRIu64 " s old)", age / SECOND_USEC);
        if (age < 2 * HOUR_USEC)
                return xasprintf(" (%" PRIu64 " min old)", age / MINUTE_USEC);
        return xasprintf(" (%" PRIu64 " h old)", age / HOUR_USEC);
}

static void say_goes_on(struct attachment *a, const Rm__Job *job, uint64_t id, uint64_t now) {
        const char *why = a->attempt == job->attempt ? "" : job->restart_reason; /* else that has been told */
        cleanup_free char *age = age_words(a, find_checkpoint(job, id), now);

        attachment_say(a, "job %" PRIu64 ": %s%sgoes on from checkpoint %" PRIu64 ".%" PRIu64 "%s", a->config.job, why,
                       *why ? ": " : "", a->config.job, id, age);
        a->said_from = id;
}

static void say_begins(struct attachment *a, const Rm__Job *job) {
        attachment_say(a,
                       "job %" PRIu64 ": %s; it starts again from its beginning, attempt %u of %" PRIu64
                       "; the output so far is of attempt %u",
                       a->config.job, job->restart_reason, job->attempt, (job->spec ? job->spec->restarts : 0) + UINT64_C(1),
                       a->offsets_attempt);
        a->said_from = 0;
}

/* Before it is placed it is only likely that it goes on from its newest checkpoint: the parts of
 * that may be lost too. */
static void announce(struct attachment *a, const Rm__Job *job, uint64_t now) {
        const Rm__Checkpoint *newest = newest_checkpoint(job);
        uint64_t from = is_placed(job) ? job->restored_from : newest ? newest->id : 0;

        if (from) {
                say_goes_on(a, job, from, now);
        } else {
                say_begins(a, job);
                input_repeat(a, now);
        }
        a->attempt = job->attempt;
        a->wait_from_usec = now;
        free(take_ptr(a->said));
}

/* True: it goes on from a checkpoint. */
static bool begin_attempt(struct attachment *a, const Rm__Job *job, uint64_t now) {
        bool skipped = job->attempt - a->offsets_attempt > 1;

        a->restored_from = job->restored_from;
        if (job->restored_from) {
                if (a->said_from != job->restored_from)
                        say_goes_on(a, job, job->restored_from, now);
                output_go_back(a, find_checkpoint(job, job->restored_from), skipped);
                input_resume(a);
        } else {
                if (a->said_from) {
                        say_begins(a, job);
                        input_repeat(a, now);
                }
                output_begin(a);
        }
        a->offsets_attempt = a->attempt;
        return job->restored_from != 0;
}

bool attempt_follow(struct attachment *a, const Rm__Job *job, uint64_t now) {
        bool restored = false;

        a->goes_back = job->n_checkpoints > 0 || (job->spec && (job->spec->on_node_loss || job->spec->checkpoint_usec));
        if (a->attempt == 0)
                a->attempt = a->offsets_attempt = job->attempt;
        if (a->attempt != job->attempt)
                announce(a, job, now);
        if (a->offsets_attempt != a->attempt && is_placed(job))
                restored = begin_attempt(a, job, now);
        output_follow(a, job);
        return restored;
}
