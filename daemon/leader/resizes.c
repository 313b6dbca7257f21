#include "daemon/leader/resizes.h"

#include <stdlib.h>

#include "common/groups.h"
#include "common/util.h"
#include "daemon/cluster/cluster.h"
#include "daemon/config/config.h"
#include "daemon/leader/enact.h"
#include "daemon/leader/parked.h"
#include "daemon/leader/spare_pool.h"
#include "daemon/sched/malleable.h"
#include "daemon/state/commands.h"

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

static bool has_rested(const struct rmd *rmd, const Rm__Job *job) {
        uint64_t asked = job->resize->asked_usec;

        return asked == 0 || cluster_log_usec(rmd->cluster) >= asked + rmd->config->resize_interval_usec;
}

/* A decision about resizes, made from the state as it is now; the results of this round may not be
 * in it yet. */
struct deciding {
        struct rmd *rmd;
        const struct progress *progress;
        const struct rm_snapshot *snapshot;
        struct malleable_job *jobs;
        int32_t **group_node; /* of each job; NULL: of one that is fixed */
        uint64_t *numbers; /* of the jobs */
        uint32_t *snapshot_job; /* where they are in the snapshot */
        size_t n_jobs;
        struct malleable_node *nodes;
};

static void take(struct deciding *d, int32_t node, uint32_t ranks) {
        if (node >= 0 && (uint32_t) node < d->snapshot->n_nodes)
                d->nodes[node].free_cores -= ranks;
}

/* Where it is, and where it moves to; RM_NO_NODE: it does not. */
static int32_t position(const struct deciding *d, const Rm__Job *job, const Rm__Capsule *capsule, int32_t *ret_to) {
        const struct state_index *index = cluster_index(d->rmd->cluster);
        const Rm__Move *move = state_capsule_move(index, job->id, capsule->index);

        *ret_to = move ? state_node_position(index, move->to) : RM_NO_NODE;
        return state_capsule_position(index, job, capsule->index);
}

static void take_capsules(struct deciding *d, const Rm__Job *job) {
        for (size_t i = 0; i < job->n_capsules; i++) {
                uint32_t ranks = job_capsule_cores(job, job->capsules[i]);
                int32_t to, at = position(d, job, job->capsules[i], &to);

                take(d, at, ranks);
                if (to != at)
                        take(d, to, ranks);
        }
}

static void take_action(struct deciding *d, const struct round_action *action) {
        const struct rm_job *view = &d->snapshot->jobs[action->job];
        const Rm__Job *job = enact_job(d->rmd, d->snapshot, action->job);

        for (uint32_t g = 0; action->kind == ROUND_START && job && job->n_capsules == 0 && g < view->n_groups; g++)
                take(d, action->group_node[g], view->groups[g].ranks);
        if (action->kind == ROUND_MOVE && action->group != ROUND_HEAD && job &&
            !state_capsule_move(cluster_index(d->rmd->cluster), job->id, action->group))
                take(d, action->to, view->groups[action->group].ranks);
}

static int32_t *groups_of(const struct deciding *d, const Rm__Job *job, uint32_t *ret_first_moving) {
        uint32_t n = groups_number(job->spec->ranks, job->group_size);
        int32_t *nodes = xcalloc(n, sizeof(*nodes));

        for (uint32_t g = 0; g < n; g++)
                nodes[g] = RM_NO_NODE;
        for (size_t i = 0; i < job->n_capsules; i++) {
                const Rm__Capsule *capsule = job->capsules[i];
                int32_t to, at = position(d, job, capsule, &to);

                if (capsule->index == STATE_HEAD || (uint32_t) capsule->index >= n)
                        continue;
                nodes[capsule->index] = to >= 0 ? to : at;
                if (to >= 0 && job_group_parked(job, capsule) && *ret_first_moving == 0)
                        *ret_first_moving = (uint32_t) capsule->index + 1;
        }
        return nodes;
}

/* The job was asked to shrink, and its program does not answer: other jobs are not to share cores
 * for that. */
static bool is_silent(const struct deciding *d, const Rm__Job *job) {
        const Rm__Resize *resize = job->resize;

        return resize->requested != 0 && resize->requested < resize->active && !resize->begun && has_rested(d->rmd, job);
}

static void add_job(struct deciding *d, uint32_t index, const Rm__Job *job) {
        const struct rm_job *view = &d->snapshot->jobs[index];
        const Rm__Resize *resize = job->resize;
        struct malleable_job *ret = &d->jobs[d->n_jobs];

        *ret = (struct malleable_job) { .active = view->ranks, .priority = view->priority };
        if (resize && job->n_capsules > 0) { /* else it is being started, or fixed */
                ret->active = resize->active;
                ret->requested = is_silent(d, job) ? 0 : resize->requested;
                ret->least = job->spec->min_ranks;
                ret->most = job->spec->ranks;
                ret->step = job->group_size;
                ret->may_change = resize->listens && ret->requested == resize->requested && !resize->by_hand && !resize->ending &&
                                  job->state == RM__JOB_STATE__JOB_RUNNING && !job->cancel;
                ret->may_stay = ret->may_change && !resize->begun;
                ret->goal = goal_of(d->progress, job->id);
                ret->group_node = d->group_node[d->n_jobs] = groups_of(d, job, &ret->first_moving);
                ret->node_limit = view->node_limit;
                ret->rank_memory_bytes = job->spec->rank_memory_bytes;
        }
        take_capsules(d, job);
        d->snapshot_job[d->n_jobs] = index;
        d->numbers[d->n_jobs++] = job->id;
}

/* Usable, without those of nodes that are kept free. */
static uint64_t add_nodes(struct deciding *d) {
        const Rm__State *state = cluster_state(d->rmd->cluster);
        cleanup_free bool *pool = xcalloc(state->n_nodes + 1, sizeof(*pool));
        uint64_t cores = 0;

        (void) spare_pool_choose(cluster_index(d->rmd->cluster), d->rmd->config->spare_nodes, pool);
        for (uint32_t n = 0; n < d->snapshot->n_nodes; n++)
                d->nodes[n] = (struct malleable_node) { d->snapshot->nodes[n].cores, d->snapshot->nodes[n].memory_free };
        for (size_t j = 0; j < state->n_jobs; j++)
                for (size_t i = 0; i < state->jobs[j]->n_spare_nodes && !job_ended(state->jobs[j]); i++) {
                        int32_t node = state_node_position(cluster_index(d->rmd->cluster), state->jobs[j]->spare_nodes[i]);

                        if (node >= 0 && (uint32_t) node < d->snapshot->n_nodes)
                                d->nodes[node].free_cores = 0;
                }
        for (uint32_t n = 0; n < d->snapshot->n_nodes; n++)
                if (n < state->n_nodes && pool[n])
                        d->nodes[n].free_cores = 0;
        for (uint32_t n = 0; n < d->snapshot->n_nodes; n++)
                cores += (uint64_t) d->nodes[n].free_cores;
        return cores;
}

static const char *reason_for(const struct malleable_job *job, uint32_t requested, const struct malleable_waiting *waiting) {
        if (requested > job->active)
                return "there are free cores";
        if (requested == job->active)
                return "its cores are needed otherwise";
        return waiting->ranks > 0 ? "a job waits for cores" : "there are fewer cores than ranks";
}

static bool any_resizable(const struct rmd *rmd) {
        const Rm__State *state = cluster_state(rmd->cluster);

        for (size_t j = 0; j < state->n_jobs; j++)
                if (state->jobs[j]->resize && !job_ended(state->jobs[j]))
                        return true;
        return false;
}

static void deciding_finish(struct deciding *d) {
        free_all(d->group_node, d->n_jobs);
        free(d->jobs);
        free(d->numbers);
        free(d->snapshot_job);
        free(d->nodes);
}

static void add_jobs(struct deciding *d, const struct round_result *result) {
        for (uint32_t j = 0; j < d->snapshot->n_jobs; j++) {
                const Rm__Job *job = enact_job(d->rmd, d->snapshot, j);

                if (job && !job_ended(job) && !result->jobs[j].waits) /* what this round starts has its cores already */
                        add_job(d, j, job);
        }
        for (size_t i = 0; i < result->n_actions; i++)
                take_action(d, &result->actions[i]);
}

/* True: the job was changed a moment ago, and is to be looked at again. */
static bool ask(const struct deciding *d, size_t i, uint32_t requested, const struct malleable_waiting *waiting) {
        const Rm__Job *job = requested ? state_job(cluster_state(d->rmd->cluster), d->numbers[i]) : NULL;
        struct command c;

        if (!job)
                return false;
        if (requested != job->resize->active && !has_rested(d->rmd, job))
                return true;
        cluster_decide(d->rmd->cluster,
                       command_job_resize_auto(&c, job->id, requested, reason_for(&d->jobs[i], requested, waiting)));
        return false;
}

/* True: as above. */
static bool move_groups(const struct deciding *d, const struct malleable_answer *answer) {
        struct round_result moves = { 0 };
        bool again = false;

        for (size_t i = 0; i < answer->n_moves; i++) {
                const struct malleable_move *move = &answer->moves[i];
                const Rm__Job *job = state_job(cluster_state(d->rmd->cluster), d->numbers[move->job]);

                if (job && has_rested(d->rmd, job))
                        parked_move(cluster_index(d->rmd->cluster), d->snapshot, d->snapshot_job[move->job], job, move->group,
                                    move->node, &moves);
                again |= job && !has_rested(d->rmd, job);
        }
        again |= enact_moves(d->rmd, d->snapshot, &moves);
        free(moves.actions);
        return again;
}

bool resizes_decide(struct rmd *rmd, const struct progress *progress, const struct rm_snapshot *snapshot,
                    const struct round_result *result) {
        struct deciding d = { .rmd = rmd, .progress = progress, .snapshot = snapshot };
        struct malleable_question question = { .n_nodes = snapshot->n_nodes };
        struct malleable_answer answer;
        bool again = false;

        if (rmd->config->resize_interval_usec == 0 || !any_resizable(rmd))
                return false;
        d.jobs = xcalloc(snapshot->n_jobs + 1u, sizeof(*d.jobs));
        d.group_node = xcalloc(snapshot->n_jobs + 1u, sizeof(*d.group_node));
        d.numbers = xcalloc(snapshot->n_jobs + 1u, sizeof(*d.numbers));
        d.snapshot_job = xcalloc(snapshot->n_jobs + 1u, sizeof(*d.snapshot_job));
        d.nodes = xcalloc(snapshot->n_nodes + 1u, sizeof(*d.nodes));
        question.cores = add_nodes(&d);
        add_jobs(&d, result);
        question.waiting = malleable_first_waiting(snapshot, result);
        question.jobs = d.jobs;
        question.n_jobs = d.n_jobs;
        question.nodes = d.nodes;
        malleable_decide(&question, &answer);
        for (size_t i = 0; i < d.n_jobs; i++)
                again |= ask(&d, i, answer.requested[i], &question.waiting);
        again |= move_groups(&d, &answer);
        malleable_answer_finish(&answer);
        deciding_finish(&d);
        return again;
}
