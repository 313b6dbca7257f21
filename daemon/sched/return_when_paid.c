#include "daemon/sched/return_when_paid.h"

#include "common/util.h"
#include "placement/cost.h"
#include "placement/pack.h"

bool return_pays(double steps_left, double move_time, double step_here, double step_there) {
        return step_here > step_there && steps_left > move_time / (step_here - step_there);
}

struct loads {
        const struct fold *fold;
        const struct rm_snapshot *snapshot;
        uint64_t *now, *then; /* ranks on each node, before the moves and after */
        uint64_t *comes; /* ranks that come to each node */
};

static void count_loads(struct loads *loads, const struct rm_plan *plan) {
        for (uint32_t j = 0; j < loads->snapshot->n_jobs; j++) {
                const struct rm_job *job = &loads->snapshot->jobs[j];

                for (uint32_t g = 0; g < job->n_groups; g++) {
                        int32_t node = job->groups[g].node, planned = plan->jobs[j].group_node[g];

                        if (node >= 0)
                                loads->now[node] += job->groups[g].ranks;
                        if (plan->jobs[j].decision != RM_PLACE)
                                continue;
                        loads->then[planned] += job->groups[g].ranks;
                        if (planned != node)
                                loads->comes[planned] += job->groups[g].ranks;
                }
        }
}

/* Ranks for each core where a rank has the least of one, at least 1. */
static double stretch_on(const struct loads *loads, const uint64_t *load, int32_t node, double stretch) {
        uint32_t cores = loads->fold->real_cores[node];
        double here = cores > 0 ? (double) load[node] / cores : 1;

        return here > stretch ? here : stretch;
}

/* False: some move is no choice, or somebody else is to get the place. */
static bool may_stay(const struct loads *loads, const struct rm_job *job, const int32_t *planned) {
        for (uint32_t g = 0; g < job->n_groups; g++) {
                int32_t node = job->groups[g].node;

                if (node == planned[g])
                        continue;
                if (node < 0 || loads->fold->real_cores[node] == 0 || job_node_limit(job, (uint32_t) node) == 0 ||
                    loads->comes[node] > 0)
                        return false;
        }
        return true;
}

/* `ret_moving_usec`: what its moves would take. */
static bool pays(const struct loads *loads, const struct rm_job *job, const int32_t *planned, uint64_t left_usec,
                 const uint64_t *move_usec, double *ret_moving_usec) {
        double here = 1, there = 1, moving = 0;

        for (uint32_t g = 0; g < job->n_groups; g++) {
                here = stretch_on(loads, loads->now, job->groups[g].node, here);
                there = stretch_on(loads, loads->then, planned[g], there);
                if (planned[g] == job->groups[g].node)
                        continue;
                if (move_usec[g] == 0) /* never measured */
                        return true;
                moving += (double) move_usec[g]; /* one stands still after the other, and the job with each */
        }
        *ret_moving_usec = moving;
        if (here <= there)
                return (double) left_usec > moving;
        return return_pays((double) left_usec / here, moving, here, there);
}

static bool moves(const struct rm_job *job, const struct rm_plan_job *planned) {
        for (uint32_t g = 0; planned->decision == RM_PLACE && g < job->n_groups; g++)
                if (planned->group_node[g] != job->groups[g].node)
                        return true;
        return false;
}

static void stay(struct loads *loads, const struct rm_job *job, double moving_usec, struct rm_plan_job *planned) {
        for (uint32_t g = 0; g < job->n_groups; g++) {
                int32_t node = job->groups[g].node;

                if (planned->group_node[g] == node)
                        continue;
                loads->then[planned->group_node[g]] -= job->groups[g].ranks;
                loads->comes[planned->group_node[g]] -= job->groups[g].ranks;
                loads->then[node] += job->groups[g].ranks;
                planned->group_node[g] = node;
        }
        for (uint32_t rank = 0; rank < job->ranks; rank++)
                planned->rank_core[rank] = RM_NO_CORE;
        (void) snprintf(planned->reason, sizeof(planned->reason),
                        "stays: its time limit leaves too little for going back, which takes %.1f s", moving_usec / 1e6);
}

/* Has it something to go back with, and is it known what that takes? */
static bool may_go_back(const struct rm_job *job, const struct round_job_state *state, const struct rm_plan_job *planned) {
        return state->left_usec > 0 && state->group_move_usec && job_runs(job) && moves(job, planned);
}

static void keep_from(const struct fold *fold, const struct round_job_state *jobs, uint32_t first, struct rm_plan *plan) {
        const struct rm_snapshot *snapshot = snapshot_view(fold->snapshot);
        cleanup_free uint64_t *now = xcalloc(snapshot->n_nodes + 1u, sizeof(*now));
        cleanup_free uint64_t *then = xcalloc(snapshot->n_nodes + 1u, sizeof(*then));
        cleanup_free uint64_t *comes = xcalloc(snapshot->n_nodes + 1u, sizeof(*comes));
        struct loads loads = { .fold = fold, .snapshot = snapshot, .now = now, .then = then, .comes = comes };

        count_loads(&loads, plan);
        for (uint32_t j = first; j < snapshot->n_jobs; j++) {
                const struct rm_job *job = &snapshot->jobs[j];
                double moving_usec = 0;

                if (may_go_back(job, &jobs[j], &plan->jobs[j]) && may_stay(&loads, job, plan->jobs[j].group_node) &&
                    !pays(&loads, job, plan->jobs[j].group_node, jobs[j].left_usec, jobs[j].group_move_usec, &moving_usec))
                        stay(&loads, job, moving_usec, &plan->jobs[j]);
        }
}

void return_when_paid(const struct fold *fold, const struct round_job_state *jobs, struct rm_plan *plan) {
        const struct rm_snapshot *snapshot = snapshot_view(fold->snapshot);

        /* In most rounds nobody does. */
        for (uint32_t j = 0; j < snapshot->n_jobs; j++)
                if (may_go_back(&snapshot->jobs[j], &jobs[j], &plan->jobs[j])) {
                        keep_from(fold, jobs, j, plan);
                        return;
                }
}
