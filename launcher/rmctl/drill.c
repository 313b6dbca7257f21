/* rmctl drill */
#include <inttypes.h>
#include <stdio.h>

#include "common/util.h"
#include "launcher/rmctl/checkpoint.h"
#include "launcher/rmctl/human.h"
#include "launcher/rmctl/verb.h"
#include "proto/json.h"

enum { DRILL_GOOD = 1, DRILL_BAD = 2 };

static size_t count_bad(const Rm__Checkpoint *drill) {
        size_t n = 0;

        for (size_t i = 0; i < drill->n_parts; i++)
                n += *drill->parts[i]->drill_error != '\0';
        return n;
}

static void fill_row(struct table *t, const Rm__CheckpointPart *part) {
        bool good = !*part->drill_error;

        if (part->capsule < 0)
                table_cell(t, "head");
        else
                table_printf(t, "%" PRId32, part->capsule);
        table_cell(t, part->drill_node);
        table_take(t, human_bytes(part->raw_bytes));
        table_take(t, human_bytes(part->stored_bytes));
        table_take(t, part->pause_usec ? human_duration(part->pause_usec) : NULL);
        table_take(t, part->store_usec ? human_duration(part->store_usec) : NULL);
        table_take(t, part->drill_usec ? human_duration(part->drill_usec) : NULL);
        table_colour(t, good ? "good" : part->drill_error, good ? COLOUR_GREEN : COLOUR_RED);
}

static void table_parts(struct call *call, const Rm__Checkpoint *drill) {
        static const struct column columns[] = {
                { "GROUP", true, false, 0 },   { "NODE", false, false, 0 },   { "SIZE", true, false, 0 },
                { "STORED", true, false, 2 },  { "PAUSE", true, false, 0 },   { "STORE", true, false, 3 },
                { "RESTORE", true, false, 0 }, { "RESULT", false, false, 0 },
        };
        struct table *t = table_create(columns, ARRAY_SIZE(columns));

        for (size_t i = 0; i < drill->n_parts; i++)
                fill_row(t, drill->parts[i]);
        call_print_table(call, t);
}

/* Prints the verdict of a drill in one line: its meaning, and the cost of a restart. */
static void print_verdict(const Rm__Job *job, const Rm__Checkpoint *drill) {
        cleanup_free char *pause = human_duration(drill->pause_usec);
        size_t bad = count_bad(drill);
        uint64_t raw_bytes = 0, longest_usec = 0;
        cleanup_free char *raw = NULL, *longest = NULL;

        for (size_t i = 0; i < drill->n_parts; i++) {
                raw_bytes += drill->parts[i]->raw_bytes;
                if (drill->parts[i]->drill_usec > longest_usec)
                        longest_usec = drill->parts[i]->drill_usec;
        }
        raw = human_bytes(raw_bytes);
        longest = human_duration(longest_usec);
        if (bad == 0)
                (void) printf("job %" PRIu64 " can be saved and restored: pause %s, %s, restore %s\n", job->id, pause, raw,
                              longest);
        else
                (void) printf("job %" PRIu64 " can be saved (pause %s), but %zu of %zu parts were not restored\n", job->id, pause,
                              bad, drill->n_parts);
}

static int report_over(struct call *call, const Rm__Job *job) {
        const Rm__Checkpoint *drill = job->drill;

        call_progress("");
        if (*drill->error)
                return error_set(&call->err, -ECANCELED, "drill %" PRIu64 ".%" PRIu64 " was given up: %s", job->id, drill->id,
                                 drill->error);
        if (call->json) {
                json_t *one = json_from_message(&drill->base);

                (void) json_object_set_new(one, "job", json_integer((json_int_t) job->id));
                (void) json_object_set_new(one, "good", json_boolean(count_bad(drill) == 0));
                call_print_json("drill", one);
        } else {
                table_parts(call, drill);
                print_verdict(job, drill);
        }
        return count_bad(drill) == 0 ? DRILL_GOOD : DRILL_BAD;
}

static void report_under_way(const Rm__Job *job, const Rm__Checkpoint *drill) {
        cleanup_free char *text = NULL;
        size_t n_stored = 0, n_drilled = 0;

        for (size_t i = 0; i < drill->n_parts; i++) {
                n_stored += drill->parts[i]->n_stored > 0;
                n_drilled += drill->parts[i]->drilled;
        }
        if (drill->state == RM__CHECKPOINT_STATE__CHECKPOINT_CAPTURING)
                text = xasprintf("drill %" PRIu64 ".%" PRIu64 ": capturing", job->id, drill->id);
        else if (drill->state == RM__CHECKPOINT_STATE__CHECKPOINT_STORING)
                text = xasprintf("drill %" PRIu64 ".%" PRIu64 ": storing, %zu of %zu parts", job->id, drill->id, n_stored,
                                 drill->n_parts);
        else
                text = xasprintf("drill %" PRIu64 ".%" PRIu64 ": restoring copies, %zu of %zu parts", job->id, drill->id, n_drilled,
                                 drill->n_parts);
        call_progress(text);
}

static int judge(struct call *call, const Rm__Job *job, uint64_t number) {
        if (job->drill && job->drill->id == number)
                return report_over(call, job);
        for (size_t i = 0; i < job->n_checkpoints; i++)
                if (job->checkpoints[i]->id == number) {
                        report_under_way(job, job->checkpoints[i]);
                        return 0;
                }
        if (job->last_checkpoint < number)
                return 0; /* this node has not heard of it yet */
        return error_set(&call->err, -ECANCELED, "drill %" PRIu64 ".%" PRIu64 " was given up: the job has ended", job->id, number);
}

static int run_drill(struct call *call) {
        struct checkpoint_awaited awaited = { .what = "drill", .judge = judge };
        Rm__DrillJob body = RM__DRILL_JOB__INIT;
        uint64_t timeout_usec = 0;
        int r = call_job(call, &body.job);

        if (r == 0)
                r = call_duration(call, "timeout", &timeout_usec);
        if (r < 0)
                return r;
        r = call_request_ok(call, &body.base, &awaited.number);
        awaited.job = body.job;
        if (r == 0)
                r = checkpoint_wait(call, &awaited, timeout_usec);
        return r < 0 ? r : r == DRILL_GOOD ? 0 : 1;
}

const struct verb verb_drill = {
        .name = "drill",
        .args = "JOB",
        .min_args = 1,
        .max_args = 1,
        .role = ROLE_OWNER,
        .help = "try whether a running job can be saved and restored, and what that costs\n"
                "The job is captured as for a checkpoint, and runs on. Then each part is restored beside it, on the same node, as "
                "a copy\n"
                "that never runs and that no other can hear; it is removed, and so is what was stored. Files are only looked at.\n"
                "Exit status 1: the job, or a part of it, could not be saved or restored. See 'rmctl doctor' for nodes.",
        .flags = { { "timeout", "TIME", "stop waiting after TIME (exit status 1); the drill goes on, and ends by itself" } },
        .run = run_drill,
};
