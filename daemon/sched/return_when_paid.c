#include "daemon/sched/return_when_paid.h"

#include <math.h>

#include "common/text.h"
#include "common/util.h"
#include "placement/cost.h"
#include "placement/pack.h"

/* Steps that differ by less than this part take the same time: rates waver by some percent. */
#define SAME_TIME 0.05

bool return_pays(double steps_left, double move_time, double step_here, double step_there) {
        return step_here > step_there && steps_left > move_time / (step_here - step_there);
}

struct loads {
        const struct fold *fold;
        const struct rm_snapshot *snapshot;
        uint64_t *now, *then; /* ranks on each node, before the moves and after */
        uint64_t *comes; /* ranks that come to each node */
        uint64_t *own; /* each node; all 0 between jobs */
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

/* False: some move is no choice, or another job is to get the place. */
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

/* Do ranks of other jobs share the cores that it would leave? */
static bool others_gain(const struct loads *loads, const struct rm_job *job, const int32_t *planned) {
        bool any = false;

        for (uint32_t g = 0; g < job->n_groups; g++)
                loads->own[job->groups[g].node] += job->groups[g].ranks;
        for (uint32_t g = 0; g < job->n_groups; g++) {
                int32_t node = job->groups[g].node;

                any |= planned[g] != node && loads->now[node] > loads->fold->real_cores[node] &&
                       loads->own[node] < loads->now[node];
        }
        for (uint32_t g = 0; g < job->n_groups; g++)
                loads->own[job->groups[g].node] = 0;
        return any;
}

/* How many of its steps it has still to do, as far as its limit leaves time for them. */
static double steps_to_do(const struct round_job_state *state, double usec_here) {
        double left = state->given.steps.left > 0 ? (double) state->given.steps.left : INFINITY;

        return state->given.left_usec > 0 ? fmin(left, (double) state->given.left_usec / usec_here) : left;
}

void return_judge(const struct round_job_state *state, double moving_usec, struct round_return *back) {
        back->steps_left = steps_to_do(state, back->usec_here);
        back->stays = back->usec_here < (1 + SAME_TIME) * back->usec_there ||
                      !return_pays(back->steps_left, moving_usec, back->usec_here, back->usec_there);
}

/* Both have as many ranks of the job on each node, of whichever groups. */
static bool same_nodes(const struct loads *loads, const struct rm_job *job, const int32_t *a, const int32_t *b) {
        bool same = true;

        for (uint32_t g = 0; g < job->n_groups; g++) {
                loads->own[a[g]] += job->groups[g].ranks;
                loads->own[b[g]] -= job->groups[g].ranks; /* modulo 2^64 */
        }
        for (uint32_t g = 0; g < job->n_groups; g++) {
                same &= loads->own[a[g]] == 0 && loads->own[b[g]] == 0;
                loads->own[a[g]] = loads->own[b[g]] = 0;
        }
        return same;
}

/* The job was measured on both sets of nodes: other nodes, other times. */
static bool measured_times(const struct loads *loads, const struct rm_job *job, const struct steps *steps, const int32_t *planned,
                           struct round_return *back) {
        for (uint32_t i = 0; steps->here_rate > 0 && i < steps->n_places; i++) {
                if (!same_nodes(loads, job, steps->places[i].group_node, planned))
                        continue;
                back->usec_here = 1e6 / steps->here_rate;
                back->usec_there = 1e6 / steps->places[i].rate;
                return true;
        }
        return false;
}

/* Judges the return by the job's steps. False: nothing is known of these. */
static bool judge_by_steps(const struct loads *loads, const struct rm_job *job, const int32_t *planned,
                           struct round_job_state *state, double here, double there, double moving_usec) {
        struct round_return back = { .asked = true };

        if (here <= there)
                return false;
        if (!measured_times(loads, job, &state->given.steps, planned, &back) &&
            !steps_times(&state->given.steps, here, there, &back.usec_here, &back.usec_there))
                return false;
        if (others_gain(loads, job, planned))
                back.usec_here = fmax(back.usec_here, back.usec_there * here / there);
        return_judge(state, moving_usec, &back);
        state->back = back;
        return true;
}

static void say(struct rm_plan_job *planned, const char *text, double moving_usec) {
        (void) text_format(planned->reason, sizeof(planned->reason), "stays: %s, which takes %.1f s", text, moving_usec / 1e6);
}

/* True: it stays, and `planned` says why. */
static bool does_not_pay(const struct loads *loads, const struct rm_job *job, struct round_job_state *state,
                         struct rm_plan_job *planned, const uint64_t *move_usec) {
        double here = 1, there = 1, moving = 0, left = (double) state->given.left_usec;
        bool pays;

        for (uint32_t g = 0; g < job->n_groups; g++) {
                here = stretch_on(loads, loads->now, job->groups[g].node, here);
                there = stretch_on(loads, loads->then, planned->group_node[g], there);
                if (planned->group_node[g] == job->groups[g].node)
                        continue;
                if (move_usec[g] == 0) /* never measured */
                        return false;
                moving += (double) move_usec[g]; /* one is frozen after the other, and the job with each */
        }
        if (judge_by_steps(loads, job, planned->group_node, state, here, there, moving)) {
                if (state->back.stays)
                        say(planned, "by its steps it gains too little by going back", moving);
                return state->back.stays;
        }
        if (state->given.left_usec == 0)
                return false;
        pays = here <= there ? left > moving : return_pays(left / here, moving, here, there);
        if (!pays)
                say(planned, "its time limit leaves too little for going back", moving);
        return !pays;
}

static bool moves(const struct rm_job *job, const struct rm_plan_job *planned) {
        for (uint32_t g = 0; planned->decision == RM_PLACE && g < job->n_groups; g++)
                if (planned->group_node[g] != job->groups[g].node)
                        return true;
        return false;
}

static void stay(struct loads *loads, const struct rm_job *job, struct rm_plan_job *planned) {
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
}

/* Is something known of its end, or of what it gains, and of what it takes to go back? */
static bool may_go_back(const struct rm_job *job, const struct round_job_state *state, const struct rm_plan_job *planned) {
        return (state->given.left_usec > 0 || steps_known(&state->given.steps)) && state->given.group_move_usec && job_runs(job) &&
               moves(job, planned);
}

static void keep_from(const struct fold *fold, struct round_job_state *jobs, uint32_t first, struct rm_plan *plan) {
        const struct rm_snapshot *snapshot = snapshot_view(fold->snapshot);
        cleanup_free uint64_t *now = xcalloc(snapshot->n_nodes + 1u, sizeof(*now));
        cleanup_free uint64_t *then = xcalloc(snapshot->n_nodes + 1u, sizeof(*then));
        cleanup_free uint64_t *comes = xcalloc(snapshot->n_nodes + 1u, sizeof(*comes));
        cleanup_free uint64_t *own = xcalloc(snapshot->n_nodes + 1u, sizeof(*own));
        struct loads loads = { .fold = fold, .snapshot = snapshot, .now = now, .then = then, .comes = comes, .own = own };

        count_loads(&loads, plan);
        for (uint32_t j = first; j < snapshot->n_jobs; j++) {
                const struct rm_job *job = &snapshot->jobs[j];

                if (may_go_back(job, &jobs[j], &plan->jobs[j]) && may_stay(&loads, job, plan->jobs[j].group_node) &&
                    does_not_pay(&loads, job, &jobs[j], &plan->jobs[j], jobs[j].given.group_move_usec))
                        stay(&loads, job, &plan->jobs[j]);
        }
}

void return_when_paid(const struct fold *fold, struct round_job_state *jobs, struct rm_plan *plan) {
        const struct rm_snapshot *snapshot = snapshot_view(fold->snapshot);

        /* In most rounds no job may go back, and nothing is computed. */
        for (uint32_t j = 0; j < snapshot->n_jobs; j++)
                if (may_go_back(&snapshot->jobs[j], &jobs[j], &plan->jobs[j])) {
                        keep_from(fold, jobs, j, plan);
                        return;
                }
}
