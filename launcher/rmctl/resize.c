/* rmctl resize-job */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/util.h"
#include "launcher/rmctl/checkpoint.h"
#include "launcher/rmctl/verb.h"

#define RANKS_MAX 65536

/* Over when it is done, or another has followed it: then the number of active ranks; 0: it is under
 * way. */
static int judge(struct call *call, const Rm__Job *job, uint64_t epoch) {
        const Rm__Resize *resize = job->resize;
        cleanup_free char *text = NULL;

        if (job->end_usec)
                return error_set(&call->err, -ECANCELED, "job %" PRIu64 " has ended before it could change", job->id);
        if (!resize || resize->epoch < epoch)
                return 0; /* this node has not heard of it yet */
        if (resize->epoch > epoch || resize->requested == 0) {
                call_progress("");
                return (int) resize->active;
        }
        text = xasprintf("job %" PRIu64 ": %s", job->id,
                         resize->begun ? "the program changes" : "waits until the program comes to where it can change");
        call_progress(text);
        return 0;
}

static int report(const struct call *call, uint64_t job, uint32_t requested, uint32_t active) {
        if (call->json)
                call_print_json(NULL, json_pack("{s:I,s:I,s:I}", "job", (json_int_t) job, "wanted_ranks", (json_int_t) requested,
                                                "active_ranks", (json_int_t) active));
        else
                (void) printf("job %" PRIu64 " has %u active ranks%s\n", job, active,
                              active == requested ? "" : ": its program did not change as it was asked to");
        return active == requested ? 0 : 1;
}

static void report_asked(const struct call *call, uint64_t job, uint32_t requested) {
        if (call->json)
                call_print_json(NULL, json_pack("{s:I,s:I}", "job", (json_int_t) job, "wanted_ranks", (json_int_t) requested));
        else
                (void) printf("job %" PRIu64 " is to have %u active ranks\n", job, requested);
}

static int report_auto(const struct call *call, uint64_t job) {
        if (call->json)
                call_print_json(NULL, json_pack("{s:I}", "job", (json_int_t) job));
        else
                (void) printf("rmd decides from now on how many active ranks job %" PRIu64 " has\n", job);
        return 0;
}

static int run_resize(struct call *call) {
        struct checkpoint_awaited awaited = { .what = "change", .judge = judge };
        Rm__ResizeJob body = RM__RESIZE_JOB__INIT;
        uint64_t timeout_usec = 0;
        bool no_wait = call_flag(call, "no-wait") != NULL, automatic = strcmp(call->args[1], "auto") == 0;
        int64_t job = 0, ranks = 0;
        int r;

        if (parse_i64(call->args[0], 1, INT64_MAX, &job) < 0)
                return call_usage(call, "'%s' is not the number of a job", call->args[0]);
        if (!automatic && parse_i64(call->args[1], 1, RANKS_MAX, &ranks) < 0)
                return call_usage(call, "'%s' is not a number of ranks (1 to %d, or 'auto')", call->args[1], RANKS_MAX);
        r = call_duration(call, "timeout", &timeout_usec);
        if (r == 0 && no_wait && (call_flag(call, "wait") || call_flag(call, "timeout")))
                r = call_usage(call, "--no-wait excludes --wait and --timeout");
        if (r < 0)
                return r;
        body.job = (uint64_t) job;
        body.ranks = (uint32_t) ranks;
        awaited.job = body.job;
        r = call_request_ok(call, &body.base, &awaited.number);
        if (r < 0)
                return r;
        if (automatic)
                return report_auto(call, body.job);
        if (awaited.number == 0) /* it has so many */
                return report(call, body.job, body.ranks, body.ranks);
        if (no_wait) {
                report_asked(call, body.job, body.ranks);
                return 0;
        }
        r = checkpoint_wait(call, &awaited, timeout_usec);
        return r < 0 ? r : report(call, body.job, body.ranks, (uint32_t) r);
}

const struct verb verb_resize_job = {
        .name = "resize-job",
        .args = "JOB RANKS|auto",
        .min_args = 2,
        .max_args = 2,
        .role = ROLE_OWNER,
        .help = "let a running job go on with more or fewer of its ranks\n"
                "For jobs that were started with --max-ranks, and whose program calls rmrt_resize_point(): it changes when it\n"
                "comes there. Ranks 0 to RANKS-1 are active then; the others are parked and take no cores. The job keeps that\n"
                "number until 'auto' lets rmd decide again.",
        .flags = { { "wait", NULL, "return when the program has changed (default)" },
                   { "no-wait", NULL, "return when it is asked to" },
                   { "timeout", "TIME", "stop waiting after TIME (exit status 1); the program is still asked" } },
        .run = run_resize,
};
