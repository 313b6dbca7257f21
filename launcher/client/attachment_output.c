#include "launcher/client/attachment_internal.h"

#include <inttypes.h>
#include <string.h>

#include "launcher/client/recall.h"

/* A job's first checkpoint is cut before we hear of it: so much of what comes meanwhile is kept. */
#define UNHEARD_BYTES (4U << 20)

static const char *const names[] = { "stdout", "stderr" };

void output_init(struct attachment *a) {
        for (size_t i = 0; i < 2; i++)
                a->recall[i] = recall_create(a->config.temporary_directory);
}

void output_finish(struct attachment *a) {
        for (size_t i = 0; i < 2; i++) {
                buffer_finish(&a->output[i]);
                recall_destroy(a->recall[i]);
        }
}

/* ---- what comes ---- */

static void deliver(struct attachment *a, unsigned i, const uint8_t *data, size_t size_bytes) {
        struct recall *recall = a->recall[i];

        a->received[i] += size_bytes;
        if (a->closed[i])
                return;
        buffer_add(&a->output[i], data, size_bytes);
        if (!a->goes_back)
                recall_reset(recall, a->received[i]);
        else
                recall_add(recall, data, size_bytes);
        if (a->goes_back && !a->has_checkpoints && recall_end(recall) > UNHEARD_BYTES)
                recall_drop(recall, recall_end(recall) - UNHEARD_BYTES);
}

/* The output that comes was there before, and is compared with it. */
static bool comes_again(const struct attachment *a, unsigned i) {
        return !a->closed[i] && a->received[i] < recall_end(a->recall[i]);
}

static void diverge(struct attachment *a, unsigned i, int error) {
        if (error < 0)
                attachment_say(a,
                               "job %" PRIu64 ": output from byte %" PRIu64
                               " of %s on can no longer be compared: %s; it may come twice",
                               a->config.job, a->received[i], names[i], strerror(-error));
        else
                attachment_say(a,
                               "job %" PRIu64 ": output differs from byte %" PRIu64
                               " of %s on: what follows is of attempt %u, which went on from checkpoint %" PRIu64 ".%" PRIu64,
                               a->config.job, a->received[i], names[i], a->attempt, a->config.job, a->restored_from);
        recall_cut(a->recall[i], a->received[i]);
}

/* How many of the first bytes are not to be delivered, as they have been. */
static size_t swallow(struct attachment *a, unsigned i, const uint8_t *data, size_t size_bytes) {
        uint64_t left = recall_end(a->recall[i]) - a->received[i];
        size_t n = left < size_bytes ? (size_t) left : size_bytes;
        size_t equal = 0;
        int error = recall_compare(a->recall[i], a->received[i], data, n, &equal);

        a->received[i] += equal;
        if (error < 0 || equal < n)
                diverge(a, i, error);
        return equal;
}

/* The bytes in between were dropped before they were asked for. */
static void miss(struct attachment *a, unsigned i, uint64_t from) {
        uint64_t had = comes_again(a, i) ? recall_end(a->recall[i]) : a->received[i];

        a->received[i] = from;
        if (from <= had)
                return; /* it was delivered, and cannot be compared */
        attachment_say(a, "%" PRIu64 " bytes of the job's %s are no longer stored", from - had, i == 0 ? "output" : "error output");
        recall_reset(a->recall[i], from);
}

void output_take(struct attachment *a, const Rm__JobOutput *output) {
        unsigned i = output->stream == 2 ? 1 : 0;
        const uint8_t *data = output->data.data;
        size_t left = output->data.len;
        size_t skip;

        if ((output->stream != 1 && output->stream != 2) || a->attempt != a->offsets_attempt ||
            (output->attempt && output->attempt != a->attempt))
                return;
        if (output->offset > a->received[i])
                miss(a, i, output->offset);
        if (a->received[i] - output->offset >= left)
                return;
        skip = (size_t) (a->received[i] - output->offset);
        data += skip;
        left -= skip;
        if (comes_again(a, i)) {
                skip = swallow(a, i, data, left);
                data += skip;
                left -= skip;
        }
        if (left > 0)
                deliver(a, i, data, left);
}

/* ---- attempts ---- */

void output_begin(struct attachment *a) {
        for (size_t i = 0; i < 2; i++) {
                a->received[i] = 0;
                recall_reset(a->recall[i], 0);
        }
}

/* Where attempts were that we have not seen, they may have gone on from any checkpoint that we
 * knew, none of which was before what is kept. */
static uint64_t goes_on_at(const struct attachment *a, unsigned i, const Rm__Checkpoint *checkpoint, bool skipped) {
        uint64_t at = a->received[i];

        if (checkpoint && checkpoint->n_output_end == 2 && checkpoint->output_end[i] < at)
                at = checkpoint->output_end[i];
        if ((skipped || !checkpoint || checkpoint->n_output_end != 2) && recall_begin(a->recall[i]) < at)
                at = recall_begin(a->recall[i]);
        return at;
}

void output_go_back(struct attachment *a, const Rm__Checkpoint *checkpoint, bool skipped) {
        for (unsigned i = 0; i < 2; i++) {
                struct recall *recall = a->recall[i];

                a->received[i] = goes_on_at(a, i, checkpoint, skipped);
                if (a->received[i] >= recall_begin(recall) || a->closed[i])
                        continue;
                attachment_say(a,
                               "job %" PRIu64 ": output from byte %" PRIu64
                               " of %s on is not compared with what was printed before%s%s: it may come twice",
                               a->config.job, a->received[i], names[i], recall_error(recall) ? ", which could not be kept: " : "",
                               recall_error(recall) ? strerror(recall_error(recall)) : "");
                recall_reset(recall, a->received[i]);
        }
}

/* Output before the point to which the job can go back is not needed any more; but output that
 * comes again now may have to be compared with it. */
static void drop_before(struct attachment *a, unsigned i, const Rm__Job *job) {
        uint64_t oldest = UINT64_MAX;

        for (size_t k = 0; k < job->n_checkpoints; k++)
                if (job->checkpoints[k]->n_output_end == 2 && job->checkpoints[k]->output_end[i] < oldest)
                        oldest = job->checkpoints[k]->output_end[i];
        if (oldest < UINT64_MAX)
                recall_drop(a->recall[i], oldest < a->received[i] ? oldest : a->received[i]);
}

void output_follow(struct attachment *a, const Rm__Job *job) {
        a->has_checkpoints = job->n_checkpoints > 0;
        for (unsigned i = 0; i < 2 && a->attempt == a->offsets_attempt; i++)
                drop_before(a, i, job);
}

void output_end(struct attachment *a) {
        for (unsigned i = 0; i < 2 && a->attempt == a->offsets_attempt; i++)
                if (comes_again(a, i))
                        attachment_say(a,
                                       "job %" PRIu64 ": what was printed from byte %" PRIu64
                                       " of %s on is of an attempt before: attempt %u, which went on from checkpoint %" PRIu64
                                       ".%" PRIu64 ", ended there",
                                       a->config.job, a->received[i], names[i], a->attempt, a->config.job, a->restored_from);
}
