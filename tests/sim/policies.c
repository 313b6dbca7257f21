/* The policy host of daemon/sched/policy_host.h without a process: `greedy` answers after a while,
 * or fails as a process can. */
#include <errno.h>
#include <stdlib.h>

#include "common/util.h"
#include "daemon/sched/policy_host.h"
#include "rm/policy.h"
#include "tests/sim/host.h"

#define ANSWER_MAX_USEC 60000U
/* The policy gives no answer once in so many times. */
#define ANSWERS_A_FAILURE 20U

extern const struct rm_policy_plugin rm_plugin; /* policies/greedy.c */

struct run {
        struct policy_host *host; /* NULL: nobody waits for it any more */
        const struct rm_snapshot *snapshot;
        policy_host_done done;
        void *context;
};

struct policy_host {
        struct host *host;
        struct run *run; /* under way */
};

struct policy_host *policy_host_create(struct event_base *base, const struct policy_host_config *config) {
        struct policy_host *host = xcalloc(1, sizeof(*host));

        host->host = host_current();
        return host;
}

void policy_host_destroy(struct policy_host *host) {
        if (!host)
                return;
        if (host->run)
                host->run->host = NULL;
        free(host);
}

/* The process was killed. */
static void on_dropped(void *userdata) {
        struct run *run = userdata;

        if (run->host)
                run->host->run = NULL;
        free(run);
}

static uint64_t left_usec(void *context) {
        return 1000000;
}

static int place(const struct rm_snapshot *snapshot, struct rm_plan *plan, struct rm_error *err) {
        const struct rm_policy_run run = { .size = sizeof(run), .left_usec = left_usec };
        int r = rm_plugin.place(NULL, snapshot, &run, plan);

        return r < 0 ? error_sys(err, r, "policy 'greedy'") : plan_validate(snapshot, plan, err);
}

static void on_time(void *userdata) {
        struct run *run = userdata;
        struct policy_host *host = run->host;
        struct plan_answer answer = { .policy = "greedy" };
        struct rm_error err = { 0 };
        int r;

        if (host) {
                host->run = NULL;
                answer.plan = plan_create(run->snapshot);
                r = timeline_random(host_timeline(host->host), ANSWERS_A_FAILURE) == 0
                            ? error_set(&err, -EIO, "policy 'greedy' crashed")
                            : place(run->snapshot, answer.plan, &err);
                run->done(run->context, r < 0 ? NULL : &answer, r < 0 ? &err : NULL);
                plan_answer_finish(&answer);
        }
        free(run);
}

int policy_host_run(struct policy_host *host, const char *policy, const struct rm_snapshot *snapshot, uint64_t budget_usec,
                    policy_host_done done, void *context, struct rm_error *err) {
        struct run *run;

        if (host->run)
                return error_set(err, -EBUSY, "a policy runs");
        run = host->run = xcalloc(1, sizeof(*run));
        *run = (struct run) { host, snapshot, done, context };
        host_after(host->host, timeline_random(host_timeline(host->host), ANSWER_MAX_USEC), on_time, on_dropped, run);
        return 0;
}

/* Only models have older versions. */
bool policy_host_has_older(const struct policy_host *host, const char *policy) {
        return false;
}

int policy_host_run_older(struct policy_host *host, const char *policy, const struct rm_snapshot *snapshot, uint64_t budget_usec,
                          policy_host_done done, void *context, struct rm_error *err) {
        return error_set(err, -ENOENT, "policy '%s' is no model", policy);
}
