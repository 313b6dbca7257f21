#include "policies/distrib/complete.h"

#include <errno.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "placement/cost.h"
#include "placement/pack.h"

/* Of looking at a node, for a place of a job. */
static const double look_usec = 0.003;

struct complete {
        const struct rm_snapshot *snapshot;
        const struct relaxation *relaxation;
        const struct portion *portions; /* by demands */
        uint32_t *free_cores;           /* each node */
        int32_t *answer;                /* nodes of the groups of all jobs, one job after another */
        /* Each node, all 0 between jobs: of the job in hand, */
        uint32_t *full; /* full groups there, */
        uint32_t *here; /* those that run there */
        uint8_t *scratch;
        int32_t rest_node;
        uint32_t left; /* full groups that are nowhere yet */
        struct arena arena;
};

/* ---- what is left of a job ---- */

/* Of a full group, on average: the first `groups` of those that run there need not move. */
static double price_of(const struct complete *complete, const struct rm_job *job, double move_cost, uint32_t node,
                       uint32_t groups) {
        uint32_t there = complete->full[node], at_home = complete->here[node] > there ? complete->here[node] - there : 0;
        double price = (double) job->priority * (double) complete->snapshot->nodes[node].penalty * job->group_size;

        if (there == 0 && complete->rest_node != (int32_t) node)
                price += (double) (job->priority * complete->snapshot->params.distribution_weight) / groups;
        return price - move_cost * (at_home < groups ? at_home : groups) / groups;
}

/* The best node for some of the full groups. False: there is none. */
static bool put_some(struct complete *complete, const struct rm_job *job, double move_cost) {
        uint32_t best = 0, best_groups = 0;
        double least = DBL_MAX;

        for (uint32_t s = 0; s < complete->snapshot->n_nodes; s++) {
                uint32_t groups = complete->free_cores[s] / job->group_size;
                double price;

                groups = groups < complete->left ? groups : complete->left;
                if (groups == 0 || (price = price_of(complete, job, move_cost, s, groups)) >= least)
                        continue;
                least = price;
                best = s;
                best_groups = groups;
        }
        complete->full[best] += best_groups;
        complete->free_cores[best] -= best_groups * job->group_size;
        complete->left -= best_groups;
        return best_groups > 0;
}

/* The smaller last group, beside others if it can be. */
static bool put_rest(struct complete *complete, const struct rm_job *job) {
        const struct rm_snapshot *snapshot = complete->snapshot;
        uint32_t rest = job_rest_ranks(job);
        int32_t runs_on = job->groups[job->n_groups - 1].node;
        int64_t least = INT64_MAX;

        for (uint32_t s = 0; s < snapshot->n_nodes; s++) {
                int64_t price = job->priority * snapshot->nodes[s].penalty * rest;

                if (complete->free_cores[s] < rest)
                        continue;
                price += complete->full[s] > 0 ? 0 : job->priority * snapshot->params.distribution_weight;
                price -= runs_on == (int32_t) s ? job->groups[job->n_groups - 1].move_cost : 0;
                if (price < least) {
                        least = price;
                        complete->rest_node = (int32_t) s;
                }
        }
        if (complete->rest_node >= 0)
                complete->free_cores[complete->rest_node] -= rest;
        return complete->rest_node >= 0;
}

/* ---- one job ---- */

static void read_portions(struct complete *complete, const struct rm_job *job, const struct portion *portions, uint32_t n) {
        for (uint32_t i = 0; i < n; i++) {
                complete->full[portions[i].node] = portions[i].ranks / job->group_size;
                complete->left -= portions[i].ranks / job->group_size;
                if (portions[i].ranks % job->group_size > 0)
                        complete->rest_node = (int32_t) portions[i].node;
        }
}

/* What moving one of its groups costs, roughly, and where they are. */
static double read_groups(struct complete *complete, const struct rm_job *job) {
        double sum = 0;
        uint32_t n = 0;

        for (uint32_t g = 0; g < job_full_groups(job); g++)
                if (job->groups[g].node >= 0) {
                        complete->here[job->groups[g].node]++;
                        sum += (double) job->groups[g].move_cost;
                        n++;
                }
        return n > 0 ? sum / n : 0;
}

/* 0, or -ENOSPC: no room was found. */
static int put_job(struct complete *complete, uint32_t demand, const struct portion *portions, uint32_t n, int32_t *ret_node) {
        const struct rm_job *job = &complete->snapshot->jobs[complete->relaxation->demands[demand].job];
        double move_cost = read_groups(complete, job);
        bool done = true;
        int r = -ENOSPC;

        complete->left = job_full_groups(job);
        complete->rest_node = RM_NO_NODE;
        read_portions(complete, job, portions, n);
        while (done && complete->left > 0)
                done = put_some(complete, job, move_cost);
        if (done && job_rest_ranks(job) > 0 && complete->rest_node < 0)
                done = put_rest(complete, job);
        if (done)
                r = pack_name_groups(job, complete->snapshot->n_nodes, complete->full, complete->rest_node, ret_node);
        for (uint32_t g = 0; g < job->n_groups; g++)
                if (job->groups[g].node >= 0)
                        complete->here[job->groups[g].node] = 0;
        return r;
}

/* ---- all of them ---- */

double complete_work_usec(const struct rm_snapshot *snapshot, const struct relaxation *relaxation, const struct portion *portions,
                          uint32_t n) {
        double left = 0, cores = 0, places;

        for (uint32_t t = 0; t < relaxation->n_demands; t++)
                left += relaxation->demands[t].ranks;
        for (uint32_t i = 0; i < n; i++)
                left -= portions[i].ranks;
        for (uint32_t s = 0; s < snapshot->n_nodes; s++)
                cores += snapshot->nodes[s].cores;
        places = left * snapshot->n_nodes / (cores + 1) + 3.0 * relaxation->n_demands;
        return places * snapshot->n_nodes * look_usec;
}

static int compare_portions(const void *a, const void *b) {
        const struct portion *x = a, *y = b;

        if (x->demand != y->demand)
                return x->demand < y->demand ? -1 : 1;
        return x->node < y->node ? -1 : x->node > y->node;
}

static bool applies(const struct rm_snapshot *snapshot, const struct relaxation *relaxation) {
        for (uint32_t t = 0; t < relaxation->n_demands; t++) {
                const struct rm_job *job = &snapshot->jobs[relaxation->demands[t].job];

                if (job->node_limit)
                        return false;
                for (uint32_t g = 0; g < job->n_groups; g++)
                        if (job->groups[g].node >= 0 && (job->groups[g].flags & RM_GROUP_PINNED))
                                return false;
        }
        return true;
}

static int init(struct complete *complete, const struct portion *portions, uint32_t n) {
        const struct rm_snapshot *snapshot = complete->snapshot;
        struct portion *sorted = arena_alloc(&complete->arena, n, sizeof(*sorted));
        size_t groups = 0, nodes = snapshot->n_nodes;

        for (uint32_t t = 0; t < complete->relaxation->n_demands; t++)
                groups += snapshot->jobs[complete->relaxation->demands[t].job].n_groups;
        complete->free_cores = arena_alloc(&complete->arena, nodes, sizeof(*complete->free_cores));
        complete->full = arena_alloc(&complete->arena, nodes, sizeof(*complete->full));
        complete->here = arena_alloc(&complete->arena, nodes, sizeof(*complete->here));
        complete->scratch = arena_alloc(&complete->arena, nodes, sizeof(*complete->scratch));
        complete->answer = arena_alloc(&complete->arena, groups, sizeof(*complete->answer));
        if (complete->arena.failed)
                return -ENOMEM;
        for (uint32_t s = 0; s < nodes; s++)
                complete->free_cores[s] = snapshot->nodes[s].cores;
        for (uint32_t i = 0; i < n; i++) {
                sorted[i] = portions[i];
                complete->free_cores[portions[i].node] -= portions[i].ranks;
        }
        qsort(sorted, n, sizeof(*sorted), compare_portions);
        complete->portions = sorted;
        return 0;
}

/* Into complete->answer; *ret_cost: of it. */
static int put_all(struct complete *complete, uint32_t n, int64_t *ret_cost) {
        int32_t *node = complete->answer;
        int64_t cost = 0;
        int r = 0;

        for (uint32_t t = 0, first = 0, end; t < complete->relaxation->n_demands && r == 0; t++, first = end) {
                const struct rm_job *job = &complete->snapshot->jobs[complete->relaxation->demands[t].job];

                for (end = first; end < n && complete->portions[end].demand == t; end++)
                        ;
                r = put_job(complete, t, complete->portions + first, end - first, node);
                if (r == 0)
                        cost += cost_job(complete->snapshot, job, node, complete->scratch) + cost_job_moves(job, node);
                node += job->n_groups;
        }
        *ret_cost = cost;
        return r;
}

int complete_run(const struct rm_snapshot *snapshot, const struct relaxation *relaxation, const struct portion *portions,
                 uint32_t n, struct rm_plan *plan, int64_t *cost) {
        struct complete complete = { .snapshot = snapshot, .relaxation = relaxation };
        const int32_t *node;
        int64_t now = 0;
        int r = 0;

        if (!applies(snapshot, relaxation))
                return 0;
        r = init(&complete, portions, n);
        if (r == 0)
                r = put_all(&complete, n, &now);
        node = complete.answer;
        for (uint32_t t = 0; t < relaxation->n_demands && r == 0 && now < *cost; t++) {
                uint32_t job = relaxation->demands[t].job, n_groups = snapshot->jobs[job].n_groups;

                memcpy(plan->jobs[job].group_node, node, sizeof(*node) * n_groups);
                node += n_groups;
        }
        if (r == 0 && now < *cost)
                *cost = now;
        arena_finish(&complete.arena);
        return r == -ENOSPC ? 0 : r;
}
