#include "daemon/leader/resizes.h"

#include "common/util.h"
#include "daemon/cluster/cluster.h"
#include "daemon/cluster/commands.h"
#include "daemon/config/config.h"
#include "daemon/leader/enact.h"
#include "daemon/sched/malleable.h"

/* A rate wavers: one that is this much above its goal is ahead of it. */
#define AHEAD 1.1

static enum malleable_goal goal_of(const struct progress *progress, uint64_t job) {
        Rm__Progress p = RM__PROGRESS__INIT;
        double most;

        if (!progress_get(progress, job, now_usec(), &p) || p.rate <= 0 || (p.goal_min <= 0 && p.goal_max <= 0))
                return MALLEABLE_NO_GOAL;
        most = p.goal_max > 0 ? p.goal_max : p.goal_min * AHEAD;
        if (p.rate >= most)
                return MALLEABLE_AHEAD;
        return p.rate < p.goal_min ? MALLEABLE_BEHIND : MALLEABLE_NO_GOAL;
}

static struct malleable_job describe(const struct rmd *rmd, const struct progress *progress, const struct rm_snapshot *snapshot,
                                     uint32_t index, const Rm__Job *job) {
        const struct rm_job *view = &snapshot->jobs[index];
        const Rm__Resize *resize = job->resize;
        struct malleable_job ret = { .active = view->ranks, .priority = view->priority };
        uint64_t limit;

        if (!resize || job->n_capsules == 0) /* it is being started */
                return ret;
        limit = malleable_limit(snapshot, view);
        ret.active = resize->active;
        ret.wanted = resize->wanted;
        ret.least = job->spec->min_ranks;
        ret.most = limit < job->spec->ranks ? (uint32_t) limit : job->spec->ranks;
        ret.step = job->group_size;
        ret.may_change =
                resize->listens && !resize->by_hand && !resize->ending && job->state == RM__JOB_STATE__JOB_RUNNING && !job->cancel;
        ret.goal = goal_of(progress, job->id);
        return ret;
}

/* Usable, without those of nodes that are kept free. */
static uint64_t cores_of(const struct rmd *rmd, const struct rm_snapshot *snapshot) {
        const Rm__State *state = cluster_state(rmd->cluster);
        cleanup_free bool *kept = xcalloc(snapshot->n_nodes + 1u, sizeof(*kept));
        uint64_t cores = 0;

        for (size_t j = 0; j < state->n_jobs; j++)
                for (size_t i = 0; i < state->jobs[j]->n_spare_nodes && !job_ended(state->jobs[j]); i++) {
                        int32_t node = state_node_position(cluster_index(rmd->cluster), state->jobs[j]->spare_nodes[i]);

                        if (node >= 0 && (uint32_t) node < snapshot->n_nodes)
                                kept[node] = true;
                }
        for (uint32_t n = 0; n < snapshot->n_nodes; n++)
                cores += kept[n] ? 0 : snapshot->nodes[n].cores;
        return cores;
}

static const char *reason_for(const struct malleable_job *job, uint32_t wanted, const struct malleable_waiting *waiting) {
        if (wanted > job->active)
                return "there are free cores";
        return waiting->ranks > 0 ? "a job waits for cores" : "there are fewer cores than ranks";
}

static bool has_rested(const struct rmd *rmd, const Rm__Job *job) {
        uint64_t asked = job->resize->asked_usec;

        return asked == 0 || cluster_log_usec(rmd->cluster) >= asked + rmd->config->resize_interval_usec;
}

static bool any_resizable(const struct rmd *rmd) {
        const Rm__State *state = cluster_state(rmd->cluster);

        for (size_t j = 0; j < state->n_jobs; j++)
                if (state->jobs[j]->resize && !job_ended(state->jobs[j]))
                        return true;
        return false;
}

bool resizes_decide(struct rmd *rmd, const struct progress *progress, const struct rm_snapshot *snapshot,
                    const struct round_result *result) {
        struct malleable_waiting waiting;
        cleanup_free struct malleable_job *jobs = NULL;
        cleanup_free uint32_t *wanted = NULL;
        cleanup_free uint64_t *numbers = NULL;
        bool again = false;
        size_t n = 0;

        if (rmd->config->resize_interval_usec == 0 || !any_resizable(rmd))
                return false;
        waiting = malleable_first_waiting(snapshot, result);
        jobs = xcalloc(snapshot->n_jobs + 1u, sizeof(*jobs));
        wanted = xcalloc(snapshot->n_jobs + 1u, sizeof(*wanted));
        numbers = xcalloc(snapshot->n_jobs + 1u, sizeof(*numbers));
        for (uint32_t j = 0; j < snapshot->n_jobs; j++) {
                const Rm__Job *job = enact_job(rmd, snapshot, j);

                if (!job || job_ended(job) || result->jobs[j].waits)
                        continue; /* what this round starts has its cores already */
                numbers[n] = job->id;
                jobs[n++] = describe(rmd, progress, snapshot, j, job);
        }
        malleable_decide(jobs, n, &waiting, cores_of(rmd, snapshot), wanted);
        for (size_t i = 0; i < n; i++) {
                const Rm__Job *job = wanted[i] ? state_job(cluster_state(rmd->cluster), numbers[i]) : NULL;
                struct command c;

                if (!job)
                        continue;
                if (has_rested(rmd, job))
                        cluster_decide(rmd->cluster,
                                       command_job_resize_auto(&c, job->id, wanted[i], reason_for(&jobs[i], wanted[i], &waiting)));
                else
                        again = true;
        }
        return again;
}
