#include "daemon/sched/scheduler.h"

#include <string.h>

#include "common/text.h"
#include "common/util.h"

/* The policies that a pass asks; each when the one before has failed. */
enum step {
        STEP_POLICY,
        STEP_OLDER, /* a model that was changed: as it was when it last answered */
        STEP_FALLBACK,
};

struct scheduler {
        struct policy_host *host, *side_host;
        char *policy;
        uint64_t budget_usec;

        /* The round in hand; round NULL: none. */
        struct snapshot *snapshot;
        struct round *round;
        uint32_t pass;
        enum step step; /* of this pass */
        char warnings[1024];
        scheduler_done done;
        void *context;
};

static void ask(struct scheduler *scheduler);

struct scheduler *scheduler_create(struct event_base *base, const struct scheduler_config *config) {
        struct scheduler *scheduler = xcalloc(1, sizeof(*scheduler));

        scheduler->host = policy_host_create(base, &config->host);
        scheduler->side_host = policy_host_create(base, &config->host);
        scheduler->policy = xstrdup(config->policy ? config->policy : SCHEDULER_FALLBACK);
        scheduler->budget_usec = config->budget_usec;
        return scheduler;
}

static void drop_round(struct scheduler *scheduler) {
        round_destroy(scheduler->round);
        snapshot_destroy(scheduler->snapshot);
        scheduler->round = NULL;
        scheduler->snapshot = NULL;
}

void scheduler_destroy(struct scheduler *scheduler) {
        if (!scheduler)
                return;
        policy_host_destroy(scheduler->host);
        policy_host_destroy(scheduler->side_host);
        drop_round(scheduler);
        free(scheduler->policy);
        free(scheduler);
}

bool scheduler_busy(const struct scheduler *scheduler) {
        return scheduler->round != NULL;
}

struct policy_host *scheduler_side_host(struct scheduler *scheduler) {
        return scheduler->side_host;
}

static const char *requested_policy(const struct scheduler *scheduler) {
        const char *own = round_policy(scheduler->round, scheduler->pass);

        return own ? own : scheduler->policy;
}

static void warn(struct scheduler *scheduler, const char *text, const char *then) {
        (void) text_append(scheduler->warnings, sizeof(scheduler->warnings), "%s%s; %s", scheduler->warnings[0] ? "\n" : "", text,
                           then);
}

static void next_pass(struct scheduler *scheduler) {
        scheduler->pass++;
        scheduler->step = STEP_POLICY;
}

/* The policy asked has failed: once more as it was before, then with the fallback, and if that is
 * what failed, without any. */
static void policy_failed(struct scheduler *scheduler, const char *text) {
        if (scheduler->step == STEP_POLICY && policy_host_has_older(scheduler->host, requested_policy(scheduler))) {
                warn(scheduler, text, "using its last valid version");
                scheduler->step = STEP_OLDER;
                return;
        }
        if (scheduler->step != STEP_FALLBACK && strcmp(requested_policy(scheduler), SCHEDULER_FALLBACK) != 0) {
                warn(scheduler, text, "asking '" SCHEDULER_FALLBACK "' instead");
                scheduler->step = STEP_FALLBACK;
                return;
        }
        warn(scheduler, text, "its jobs wait, running ones stay where they can");
        round_skip(scheduler->round, scheduler->pass, text);
        next_pass(scheduler);
}

static void on_answer(void *context, struct plan_answer *answer, const struct rm_error *failure) {
        struct scheduler *scheduler = context;
        struct rm_error err = { 0 };

        if (!answer)
                policy_failed(scheduler, error_text(failure));
        else if (round_accept(scheduler->round, scheduler->pass, answer->policy, answer->plan, &err) < 0)
                policy_failed(scheduler, error_text(&err));
        else
                next_pass(scheduler);
        ask(scheduler);
}

static void finish(struct scheduler *scheduler) {
        struct round_result *result;
        struct round *round = take_ptr(scheduler->round);
        struct snapshot *snapshot = take_ptr(scheduler->snapshot);

        cleanup_free char *warnings = xstrdup(scheduler->warnings);

        round_finish(round, &result);
        scheduler->done(scheduler->context, snapshot_view(snapshot), result, warnings);
        round_result_destroy(result);
        round_destroy(round);
        snapshot_destroy(snapshot);
}

static void ask(struct scheduler *scheduler) {
        struct rm_error err = { 0 };

        while (scheduler->pass < round_passes(scheduler->round)) {
                const struct rm_snapshot *asked = round_prepare(scheduler->round, scheduler->pass);
                const char *policy = scheduler->step == STEP_FALLBACK ? SCHEDULER_FALLBACK : requested_policy(scheduler);
                bool older = scheduler->step == STEP_OLDER;

                if ((older ? policy_host_run_older : policy_host_run)(scheduler->host, policy, asked, scheduler->budget_usec,
                                                                      on_answer, scheduler, &err) == 0)
                        return;
                policy_failed(scheduler, error_text(&err));
        }
        finish(scheduler);
}

int scheduler_run(struct scheduler *scheduler, struct snapshot *snapshot, const struct round_job *jobs, scheduler_done done,
                  void *context, struct rm_error *err) {
        int r = 0;

        if (scheduler->round)
                r = error_set(err, -EBUSY, "a scheduling round is in progress");
        else
                r = round_create(snapshot_view(snapshot), jobs, &scheduler->round, err);
        if (r < 0) {
                snapshot_destroy(snapshot);
                return r;
        }
        scheduler->snapshot = snapshot;
        scheduler->pass = 0;
        scheduler->step = STEP_POLICY;
        scheduler->warnings[0] = '\0';
        scheduler->done = done;
        scheduler->context = context;
        ask(scheduler);
        return 0;
}
