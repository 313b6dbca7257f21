#include "daemon/sched/return_to_faster.h"

#include <string.h>

#include "common/text.h"
#include "common/util.h"
#include "daemon/sched/return_when_paid.h"
#include "placement/cost.h"
#include "placement/memory.h"
#include "placement/pack.h"

/* The load of each node after the moves of the plan, and now. */
struct space {
        struct fold *fold;
        const struct rm_snapshot *snapshot;
        uint32_t *held;
        uint64_t *ranks;  /* of groups that are there, or come */
        int64_t *memory;  /* of groups that come */
        uint64_t *own;    /* scratch, all 0 between jobs: ranks of the job in hand */
        int64_t *brought; /* likewise: memory that it brings */
};

static void count(struct space *space, const struct rm_plan *plan) {
        for (uint32_t j = 0; j < space->snapshot->n_jobs; j++) {
                const struct rm_job *job = &space->snapshot->jobs[j];

                for (uint32_t g = 0; g < job->n_groups; g++) {
                        int32_t now = job->groups[g].node;
                        int32_t then = plan->jobs[j].decision == RM_PLACE ? plan->jobs[j].group_node[g] : now;

                        if (now >= 0)
                                space->ranks[now] += job->groups[g].ranks;
                        if (then < 0 || then == now)
                                continue;
                        space->ranks[then] += job->groups[g].ranks;
                        space->memory[then] = memory_sum(space->memory[then], job->groups[g].memory);
                }
        }
}

static uint32_t cores_for(const struct space *space, const struct round_job_state *state, int32_t node) {
        if (state->given.pool && state->given.pool[node] && space->held[node] > 0)
                return space->held[node];
        for (uint32_t i = 0; i < state->given.n_spare_nodes; i++)
                if (state->given.spare_nodes[i] == node && space->held[node] > 0)
                        return space->held[node];
        return space->fold->real_cores[node];
}

/* The job's ranks that are on the node already are counted in room->ranks, and need no room. */
static bool node_has_space(const struct space *space, const struct rm_job *job, const struct round_job_state *state, int32_t node) {
        const struct rm_node *there = &space->snapshot->nodes[node];
        uint64_t here = 0;

        for (uint32_t g = 0; g < job->n_groups; g++)
                if (job->groups[g].node == node)
                        here += job->groups[g].ranks;
        if (space->own[node] > job_node_limit(job, (uint32_t) node) || (state->given.kept_off && state->given.kept_off[node]))
                return false;
        if (there->memory_free != RM_NO_MEMORY_LIMIT && memory_sum(space->memory[node], space->brought[node]) > there->memory_free)
                return false;
        return space->ranks[node] - here + space->own[node] <= cores_for(space, state, node);
}

static bool has_space(const struct space *space, const struct rm_job *job, const struct round_job_state *state, const int32_t *to) {
        bool fits = true;

        for (uint32_t g = 0; g < job->n_groups; g++) {
                space->own[to[g]] += job->groups[g].ranks;
                space->brought[to[g]] = memory_sum(space->brought[to[g]], memory_taken(job, g, to[g]));
        }
        for (uint32_t g = 0; g < job->n_groups && fits; g++)
                fits = node_has_space(space, job, state, to[g]);
        for (uint32_t g = 0; g < job->n_groups; g++) {
                space->own[to[g]] = 0;
                space->brought[to[g]] = 0;
        }
        return fits;
}

/* The fastest that it had to leave and that it may go to; NULL: there is none that is faster than
 * where it is. */
static const struct steps_place *faster_place(const struct space *space, const struct rm_job *job,
                                              const struct round_job_state *state) {
        const struct steps_place *best = NULL;

        for (uint32_t i = 0; i < state->given.steps.n_places; i++) {
                const struct steps_place *place = &state->given.steps.places[i];

                if (place->left && place->rate > (best ? best->rate : state->given.steps.here_rate) &&
                    has_space(space, job, state, place->group_node))
                        best = place;
        }
        return best;
}

/* The groups are frozen one after the other, and the job with each. 0: that was never measured, or
 * nothing would move. */
static double moving_usec(const struct rm_job *job, const struct round_job_state *state, const int32_t *to) {
        double sum = 0;

        for (uint32_t g = 0; g < job->n_groups; g++) {
                if (job->groups[g].node == to[g])
                        continue;
                if (state->given.group_move_usec[g] == 0)
                        return 0;
                sum += (double) state->given.group_move_usec[g];
        }
        return sum;
}

static void go(struct space *space, const struct rm_job *job, const struct round_job_state *state, const int32_t *to,
               struct rm_plan_job *planned) {
        for (uint32_t g = 0; g < job->n_groups; g++) {
                if (job->groups[g].node == to[g])
                        continue;
                space->fold->real_cores[to[g]] = cores_for(space, state, to[g]);
                space->held[to[g]] = 0;
                space->ranks[to[g]] += job->groups[g].ranks;
                space->memory[to[g]] = memory_sum(space->memory[to[g]], job->groups[g].memory);
                planned->group_node[g] = to[g];
        }
        for (uint32_t rank = 0; rank < job->ranks; rank++)
                planned->rank_core[rank] = RM_NO_CORE;
}

/* The job stays where it is, by the plan, and none of its groups is moving or cannot move. */
static bool may_go(const struct rm_job *job, const struct round_job_state *state, const struct rm_plan_job *planned) {
        if (planned->decision != RM_PLACE || !job_runs(job) || !state->given.group_move_usec || state->given.pinned ||
            state->given.steps.here_rate <= 0 || state->back.asked)
                return false;
        for (uint32_t g = 0; g < job->n_groups; g++)
                if (job->groups[g].node != planned->group_node[g] || (job->groups[g].flags & RM_GROUP_PINNED))
                        return false;
        return true;
}

static void consider(struct space *space, const struct rm_job *job, struct round_job_state *state, struct rm_plan_job *planned) {
        const struct steps_place *place = faster_place(space, job, state);
        struct round_return back = { .asked = true, .usec_here = 1e6 / state->given.steps.here_rate };
        double moving = place ? moving_usec(job, state, place->group_node) : 0;

        if (moving <= 0)
                return;
        back.usec_there = 1e6 / place->rate;
        return_judge(state, moving, &back);
        state->back = back;
        if (back.stays)
                (void) text_format(planned->reason, sizeof(planned->reason),
                                   "stays: by its steps it gains too little by going back, which takes %.1f s", moving / 1e6);
        else
                go(space, job, state, place->group_node, planned);
}

static bool any_left(const struct steps *steps) {
        for (uint32_t i = 0; i < steps->n_places; i++)
                if (steps->places[i].left)
                        return true;
        return false;
}

static void consider_all(struct fold *fold, struct round_job_state *jobs, uint32_t *held, uint32_t first, struct rm_plan *plan) {
        const struct rm_snapshot *snapshot = snapshot_view(fold->snapshot);
        cleanup_free uint64_t *ranks = xcalloc(snapshot->n_nodes + 1u, sizeof(*ranks));
        cleanup_free uint64_t *own = xcalloc(snapshot->n_nodes + 1u, sizeof(*own));
        cleanup_free int64_t *memory = xcalloc(snapshot->n_nodes + 1u, sizeof(*memory));
        cleanup_free int64_t *brought = xcalloc(snapshot->n_nodes + 1u, sizeof(*brought));
        struct space space = {
                .fold = fold, .snapshot = snapshot, .held = held, .ranks = ranks, .memory = memory, .own = own, .brought = brought
        };

        count(&space, plan);
        for (uint32_t j = first; j < snapshot->n_jobs; j++)
                if (any_left(&jobs[j].given.steps) && may_go(&snapshot->jobs[j], &jobs[j], &plan->jobs[j]))
                        consider(&space, &snapshot->jobs[j], &jobs[j], &plan->jobs[j]);
}

void return_to_faster(struct fold *fold, struct round_job_state *jobs, uint32_t *held, struct rm_plan *plan) {
        const struct rm_snapshot *snapshot = snapshot_view(fold->snapshot);

        /* In most rounds no job has left a place where it was faster, and nothing is computed. */
        for (uint32_t j = 0; j < snapshot->n_jobs; j++)
                if (any_left(&jobs[j].given.steps)) {
                        consider_all(fold, jobs, held, j, plan);
                        return;
                }
}
