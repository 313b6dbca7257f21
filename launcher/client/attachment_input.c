#include "launcher/client/attachment_internal.h"

#include <inttypes.h>
#include <signal.h>

/* Input that rmd has not acknowledged is kept, to be sent again; so this bounds our memory too. */
#define INPUT_WINDOW_BYTES (512U << 10)
/* The last bytes of input that are kept for a job that may start again, or go back to a checkpoint:
 * all, as long as it is not more than this. */
#define INPUT_KEPT_BYTES (8U << 20)
#define INPUT_CHUNK_BYTES (64U << 10)

static bool takes_input(const struct attachment *a) {
        return a->attached && a->input_known && !a->input_over && attachment_runs(a) && a->input_at_usec == ATTACHMENT_NEVER_USEC;
}

void input_put(struct attachment *a) {
        while (takes_input(a)) {
                size_t sent = (size_t) (a->input_sent - a->input_base);
                size_t n = a->input.used - sent;
                Rm__JobInput input = RM__JOB_INPUT__INIT;

                if (n > 0 && a->input_sent - a->input_acked >= INPUT_WINDOW_BYTES)
                        return; /* rmd takes no more at once, which is less than what is kept */
                if (n > INPUT_CHUNK_BYTES)
                        n = INPUT_CHUNK_BYTES;
                input.job = a->config.job;
                input.offset = a->input_sent;
                input.data.data = n ? a->input.data + a->input.start + sent : NULL;
                input.data.len = n;
                input.eof = a->input_eof && sent + n == a->input.used;
                input.attempt = a->attempt;
                if (n == 0 && (!input.eof || a->input_eof_sent))
                        return;
                (void) attachment_put(a, &input.base);
                a->input_sent += n;
                a->input_eof_sent = input.eof;
        }
}

void input_rewind(struct attachment *a) {
        a->input_sent = a->input_acked;
        a->input_eof_sent = false;
}

size_t attachment_input_space(const struct attachment *a) {
        uint64_t waiting = a->input_base + a->input.used - a->input_acked;

        if (a->done || a->input_over || a->input_eof || !a->input_known || waiting >= INPUT_WINDOW_BYTES)
                return 0;
        return (size_t) (INPUT_WINDOW_BYTES - waiting);
}

void attachment_input(struct attachment *a, const void *data, size_t size_bytes) {
        if (a->input_over)
                return;
        buffer_add(&a->input, data, size_bytes);
        input_put(a);
}

void attachment_input_eof(struct attachment *a) {
        a->input_eof = true;
        input_put(a);
}

/* Drops input that was acknowledged and is not kept for a next attempt. */
static void drop_old(struct attachment *a) {
        uint64_t keep = a->goes_back ? INPUT_KEPT_BYTES : 0;
        uint64_t taken = a->input_acked - a->input_base;

        if (taken <= keep)
                return;
        buffer_drop(&a->input, (size_t) (taken - keep));
        a->input_base += taken - keep;
}

static void cancel(struct attachment *a, uint64_t now) {
        a->giving_up = true;
        a->give_up_usec = now + GIVE_UP_USEC;
        controls_add(a, true, false, SIGTERM);
}

/* Another front end may have given more than we have. */
static void start_at(struct attachment *a, uint64_t offset) {
        buffer_finish(&a->input);
        a->input_base = a->input_acked = a->input_sent = offset;
}

/* The attempt had taken so much at its checkpoint. */
static void resume_at(struct attachment *a, uint64_t offset, uint64_t now) {
        a->input_resumes = false;
        a->input_known = true;
        if (offset < a->input_base) {
                attachment_say(a,
                               "job %" PRIu64 " is cancelled: it needs its standard input from byte %" PRIu64
                               " on again, and %s has it only from byte %" PRIu64 " on",
                               a->config.job, offset, a->config.program, a->input_base);
                a->input_over = true;
                cancel(a, now);
                return;
        }
        if (offset > a->input_base + a->input.used)
                start_at(a, offset);
        a->input_acked = offset;
        input_rewind(a);
        input_put(a);
}

void input_ack(struct attachment *a, uint64_t offset, uint64_t now) {
        if (a->attempt != a->offsets_attempt)
                return;
        if (a->input_resumes) {
                resume_at(a, offset, now);
                return;
        }
        if (!a->input_known) {
                a->input_known = true;
                start_at(a, offset);
        }
        if (offset <= a->input_acked)
                return;
        if (offset - a->input_base > a->input.used)
                offset = a->input_base + a->input.used;
        a->input_acked = offset;
        if (a->input_sent < offset)
                a->input_sent = offset;
        drop_old(a);
        input_put(a);
}

/* The job has closed its input. The rest is needed if the job goes back to where it still read. */
void input_closed(struct attachment *a) {
        a->input_over = true;
        if (!a->goes_back)
                start_at(a, a->input_sent);
}

/* Gives the input of the attempt before to this one too. */
void input_repeat(struct attachment *a, uint64_t now) {
        if (!a->config.input)
                return;
        if (a->input_base > 0) {
                attachment_say(a,
                               "job %" PRIu64
                               " is cancelled: it cannot start again, as %s does not have all of its standard input any more",
                               a->config.job, a->config.program);
                cancel(a, now);
                return;
        }
        a->input_resumes = false;
        a->input_known = true;
        a->input_over = false;
        a->input_acked = 0;
        input_rewind(a);
}

/* How much it had taken at the checkpoint is told when it is attached; what comes after that is
 * given again. */
void input_resume(struct attachment *a) {
        if (!a->config.input)
                return;
        a->input_resumes = true;
        a->input_known = false;
        a->input_over = false;
        input_rewind(a);
}
